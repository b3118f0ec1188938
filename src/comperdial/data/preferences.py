"""Public data in which people chose between two dialogues: its readers give table ``preferences``, and the dialogues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import UnknownNameError
from comperdial.core.plugins import load_class
from comperdial.data import sources
from comperdial.data.catalogue import CATALOGUE, Catalogue, load_catalogue
from comperdial.data.readers.base import Reader, Tables

_READERS = ("ieval", "llmbar", "llmfao", "spot_the_bot")
# What stands for an utterance that is empty in the file: people saw it, and it is part of what they judged.
EMPTY = "<EMPTY>"


class PreferenceReader(Reader):
    """Turns a data set's upstream files into table ``preferences`` and the dialogues that it compares."""

    @abstractmethod
    def preferences(self) -> pd.DataFrame:
        """Return table ``preferences``. Annotators are numbers, or judges' names."""

    @abstractmethod
    def dialogues(self) -> list[Dialogue]:
        """Return the dialogues, one for each system that is judged in it; ``preferences`` names no other."""

    def read(self) -> Tables:
        """Return systems and preferences, and the tables of rated responses, which are empty."""
        made = self.preferences()
        names = pd.unique(made[["first_system_id", "second_system_id"]].to_numpy().ravel())
        origin = next(iter(self.files.values()))
        rows = [{"system_id": name, "kind": "agent", "track": None, "description": ""} for name in sorted(names)]
        empty = {name: schema.empty(name) for name in ("contexts", "personas", "responses", "ratings")}
        return {"systems": self.frame("systems", rows, origin), **empty, "preferences": made}


def preference_sets(catalogue: Catalogue) -> list[str]:
    """Return the names of the data sets of preferences in a catalogue."""
    return [name for name, entry in catalogue.datasets.items() if entry.reader in _READERS]


def preference_reader(
    name: str, *, catalogue: str | Path = CATALOGUE, files: Mapping[str, Path] | None = None
) -> PreferenceReader:
    """Return the reader of a data set of preferences; files that are not here yet are fetched.

    Parameters
    ----------
    name
        As in the catalogue.
    catalogue
        The catalogue's file.
    files
        The fetched files, where they do not lie under ``data/raw``.

    Raises
    ------
    UnknownNameError
        When the catalogue has no such data set of preferences.
    SourceError
        When a file cannot be had.
    """
    known = load_catalogue(catalogue)
    sets = preference_sets(known)
    if name not in sets:
        raise UnknownNameError("data set of preferences", name, sets, where=str(catalogue))
    entry = known.dataset(name)
    if files is None:
        files = {role: sources.raw_path(source) for role, source in entry.files.items()}
        for role, source in entry.files.items():
            sources.fetch(source, files[role])
    found = load_class(
        "comperdial.data.readers",
        entry.reader,
        PreferenceReader,  # type: ignore[type-abstract]
        kind="reader",
        helpers=frozenset({"base"}),
    )
    return found(name, files)


def numbered(names: list[str]) -> dict[str, str]:
    """Return a number for each name, from 1 in the order of first appearance: what a table calls a crowd worker."""
    return {name: str(number) for number, name in enumerate(dict.fromkeys(names), start=1)}
