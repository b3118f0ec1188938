"""What a format is: files of recorded answers in, one row an answer out. A new one is a file beside this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import pandas as pd

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.data.recorded.base import Rated
from comperdial.judges.base import Form

COLUMNS = ("place", "item_id", "system_id", "dimension", "sample", "answer")
Row = tuple[str, str, str, str, int, str]


class AnswerFormat(ABC):
    """Reads the answers of one judge to one prompt.

    Parameters
    ----------
    paths
        The files under the names that :attr:`files` has for them; some formats can do with some of them.
    """

    version: ClassVar[int] = 1
    """Raised when a change of the code changes what is read."""
    level: ClassVar[str] = "turn"
    dimensions: ClassVar[Mapping[str, tuple[float, float]]]
    """What is rated, and the scale."""
    files: ClassVar[tuple[str, ...]]
    """How the files are named: after dimensions, where each has its own."""
    samples: ClassVar[int]
    """Answers an item and dimension."""
    words: ClassVar[Mapping[str, Mapping[str, float]]] = {}
    """What the prompts call the steps of a dimension's scale."""
    targets: ClassVar[Mapping[str, str]] = {}
    """The rated dimension that each is held against, where it has another name there."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        for name in paths:
            if name not in self.files:
                raise UnknownNameError("file of recorded answers", name, self.files)
        if not paths:
            raise ConfigError("no file of recorded answers", expected=" or ".join(self.files))
        self.paths = {name: Path(paths[name]) for name in self.files if name in paths}

    @abstractmethod
    def read(self, rated: Rated | None) -> pd.DataFrame:
        """Return the answers as :func:`frame` makes them; ``rated`` is what they rate, where the format needs it."""

    def form(self, dimension: str) -> Form:
        """Return what an answer must hold."""
        low, high = self.dimensions[dimension]
        return Form((dimension,), dimension, low, high, words=self.words.get(dimension, {}))

    def owners_reading(self, answer: str) -> float | None:
        """Return what those who published an answer read in it; None if they read nothing, or it is not known how."""
        return None


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Make the frame that formats return, one row an answer.

    ``place`` is the item as messages name it ("item 3"), ``sample`` the index among the answers to the same prompt.
    """
    return pd.DataFrame(list(rows), columns=COLUMNS)


def systems_of(rated: Rated) -> dict[str, list[str]]:
    """Return whose responses each dialogue holds."""
    joined = rated.responses.merge(rated.contexts[["context_id", "dialogue_id"]], on="context_id")
    pairs = joined[["dialogue_id", "system_id"]].drop_duplicates()
    return {str(name): [*group] for name, group in pairs.groupby("dialogue_id")["system_id"]}
