"""Public data in which people and judges labelled the same items, for audits of judges."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from comperdial.core.errors import UnknownNameError
from comperdial.data import readers, sources
from comperdial.data.catalogue import CATALOGUE, Catalogue, load_catalogue
from comperdial.data.readers.base import Files

READERS = ("alt_test", "pandalm")


class Labels(NamedTuple):
    """Human labels (``item``, ``cluster``, ``rater``, ``label``) and judge labels (``judge`` instead of ``rater``).

    Labels are integers if all are, otherwise texts.
    """

    people: pd.DataFrame
    judges: pd.DataFrame


def label_sets(catalogue: Catalogue) -> list[str]:
    """Return the names of a catalogue's label data sets."""
    return [name for name, entry in catalogue.datasets.items() if entry.reader in READERS]


def read_labels(name: str, *, catalogue: str | Path = CATALOGUE, files: Files | None = None) -> Labels:
    """Read a label data set; people are numbered. ``files`` are downloaded files outside ``data/raw``.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such label data set.
    SourceError
        If a file cannot be downloaded.
    """
    known = load_catalogue(catalogue)
    if name not in (sets := label_sets(known)):
        raise UnknownNameError("data set of labels", name, sets, where=str(catalogue))
    entry = known.dataset(name)
    table = readers.read(entry.reader, name, files or sources.require_all(entry.files))["labels"]
    if table["label"].str.fullmatch(r"-?\d+").all():
        table = table.astype({"label": "int64"})
    people = table["source"] == "human"
    columns = {"item_id": "item", "cluster": "cluster", "annotator_id": "rater", "label": "label"}
    frame = table.rename(columns=columns)[list(columns.values())]
    judges = frame[~people].rename(columns={"rater": "judge"})
    return Labels(frame[people].reset_index(drop=True), judges.reset_index(drop=True))
