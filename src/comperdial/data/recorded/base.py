"""What a format is: a file of recorded scores in, scores of turns and dialogues out. A new one is a file here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd

COLUMNS = ("place", "level", "item_id", "system_id", "output", "value")
Row = tuple[str, str, str, str, str, float]


@dataclass(frozen=True)
class Rated:
    """The tables of the data set that scores are of; ``ratings`` may be None."""

    contexts: pd.DataFrame
    responses: pd.DataFrame
    systems: pd.DataFrame
    ratings: pd.DataFrame | None = None

    @property
    def dataset(self) -> str:
        """Return the data set's name."""
        return str(self.contexts["dataset"].iloc[0])

    @property
    def references(self) -> frozenset[str]:
        """Return the systems that are held against, never evaluated."""
        return frozenset(self.systems.loc[self.systems["kind"] == "reference", "system_id"])

    def items(self, level: str) -> frozenset[tuple[str, str]]:
        """Return what a system said at a level: its responses by context, or the dialogues that they are of."""
        names = self.responses["context_id"]
        if level == "dialogue":
            names = names.map(self.contexts.set_index("context_id")["dialogue_id"])
        return frozenset(zip(names, self.responses["system_id"], strict=True))

    def rated_items(self, level: str) -> frozenset[tuple[str, str]] | None:
        """Return which of them were rated; None without ratings of the level."""
        if self.ratings is None:
            return None
        ratings = self.ratings[self.ratings["level"] == level]
        return frozenset(zip(ratings["item_id"], ratings["system_id"], strict=True)) if len(ratings) else None


class Format(ABC):
    """Reads one file.

    Parameters
    ----------
    path
        The file.
    rated
        What it scores.
    """

    version: ClassVar[int] = 1
    """Raised when a change of the code changes what is read."""

    def __init__(self, path: Path, rated: Rated) -> None:
        self.path = path
        self.rated = rated

    @abstractmethod
    def read(self) -> pd.DataFrame:
        """Return one row a score, as :func:`frame` makes it; what is scored need not be checked to exist."""


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Make the frame that formats return.

    Its columns: ``place`` (the item as messages name it: "item 3"), ``level`` (``turn`` or ``dialogue``), ``item_id``
    (a context or a dialogue), ``system_id``, ``output``, ``value`` (float64; NaN where the file has none) and ``cut``,
    0 where a file does not say how many tokens were left out.
    """
    made = pd.DataFrame(list(rows), columns=COLUMNS)
    return made.astype({"value": "float64"}).assign(cut=0)
