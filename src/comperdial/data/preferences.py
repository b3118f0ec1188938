"""Public data in which people chose between two dialogues: the votes and the dialogues."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from comperdial.challenge.pairs import Dialogue
from comperdial.core.errors import UnknownNameError
from comperdial.data import readers, sources
from comperdial.data.catalogue import CATALOGUE, Catalogue, Dataset, load_catalogue
from comperdial.data.readers.base import Files

READERS = ("ieval", "llmbar", "llmfao", "pandalm", "spot_the_bot")


def preference_sets(catalogue: Catalogue) -> list[str]:
    """Return the names of a catalogue's preference data sets."""
    return [name for name, entry in catalogue.datasets.items() if entry.reader in READERS]


def read_preferences(name: str, *, catalogue: str | Path = CATALOGUE, files: Files | None = None) -> pd.DataFrame:
    """Read the votes of a data set as table ``preferences``; annotators are numbers or judges' names.

    ``files`` are downloaded files outside ``data/raw``; otherwise missing ones are downloaded.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such preference data set.
    SourceError
        If a file cannot be downloaded.
    """
    entry = _entry(name, catalogue)
    return readers.read(entry.reader, name, files or sources.require_all(entry.files))["preferences"]


def read_dialogues(name: str, *, catalogue: str | Path = CATALOGUE, files: Files | None = None) -> list[Dialogue]:
    """Read the dialogues that a data set compares, one per judged system; see :func:`read_preferences`."""
    entry = _entry(name, catalogue)
    result: list[Dialogue] = readers.find(entry.reader).dialogues(files or sources.require_all(entry.files))
    return result


def _entry(name: str, catalogue: str | Path) -> Dataset:
    known = load_catalogue(catalogue)
    sets = preference_sets(known)
    if name not in sets:
        raise UnknownNameError("data set of preferences", name, sets, where=str(catalogue))
    return known.dataset(name)
