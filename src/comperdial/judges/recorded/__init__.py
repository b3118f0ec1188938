"""Answers of judges that others recorded and published. A format is a class in a file of its own, named like it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.data.catalogue import Catalogue, Source
from comperdial.data.recorded import Rated
from comperdial.judges.parsing import Form

_FORMATS = {"chiang2023": "Chiang2023", "gpt4_rounds": "Gpt4Rounds"}
COLUMNS = ("place", "item_id", "system_id", "dimension", "sample", "answer")
Row = tuple[str, str, str, str, int, str]


class AnswerFormat:
    """Reads the answers of one judge to one prompt.

    Parameters
    ----------
    paths
        The files, under the names that :attr:`files` has for them; some formats can do with some of them.

    Attributes
    ----------
    version
        Raised when a change of the code changes what is read.
    level
        What is rated: a turn or a dialogue.
    dimensions
        The qualities that are rated, and the scale.
    samples
        Answers an item and dimension.
    words
        What the prompts call the steps of a dimension's scale.
    targets
        The rated dimension that each is compared with, if it has another name there.
    """

    version: ClassVar[int] = 1
    level: ClassVar[str] = "turn"
    dimensions: ClassVar[Mapping[str, tuple[float, float]]]
    files: ClassVar[tuple[str, ...]]
    samples: ClassVar[int]
    words: ClassVar[Mapping[str, Mapping[str, float]]] = {}
    targets: ClassVar[Mapping[str, str]] = {}

    def __init__(self, paths: Mapping[str, Path]) -> None:
        for name in paths:
            if name not in self.files:
                raise UnknownNameError("file of recorded answers", name, self.files)
        if not paths:
            raise ConfigError("no file of recorded answers", expected=" or ".join(self.files))
        self.paths = {name: Path(paths[name]) for name in self.files if name in paths}

    def read(self, rated: Rated | None) -> pd.DataFrame:
        """Return the answers as :func:`frame` makes them; ``rated`` is what they rate, if the format needs it."""
        raise NotImplementedError

    def form(self, dimension: str) -> Form:
        """Return what an answer must hold."""
        low, high = self.dimensions[dimension]
        return Form((dimension,), dimension, low, high, words=self.words.get(dimension, {}))

    def owners_reading(self, answer: str) -> float | None:
        """Return what those who published an answer read in it; None if they read nothing, or it is not known how."""
        return None


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_FORMATS)


def find(name: str) -> type[AnswerFormat]:
    """Return a format by name."""
    if name not in _FORMATS:
        raise UnknownNameError("answer format", name, formats())
    found: type[AnswerFormat] = getattr(import_module(f"{__name__}.{name}"), _FORMATS[name])
    return found


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


@dataclass(frozen=True)
class RecordedEntry:
    """An entry of ``recorded_judges``: of which data set, in which format, the model, the prompt, the files."""

    name: str
    dataset: str
    format: str
    model: str
    prompt: str
    files: Mapping[str, Source]


def read_recorded_judges(
    section: Mapping[str, Mapping[str, Any]] | None,
    *,
    taken: Collection[str],
    datasets: Collection[str],
    catalogue: Catalogue,
) -> dict[str, RecordedEntry]:
    """Check the section ``recorded_judges`` of ``params.yaml`` and return its entries by name.

    Parameters
    ----------
    taken
        The names of other metrics.
    datasets
        The names of all data sets there can be.
    catalogue
        Where the files are looked up.

    Raises
    ------
    ConfigError
        When a name is taken, or there is no such data set, format, source or file of the format.
    """
    found = {}
    for name, entry in (section or {}).items():
        where = f"params.yaml, recorded_judges.{name}"
        if name in taken:
            raise ConfigError(f"{name!r} is the name of another metric", where=where, expected="a name of its own")
        for kind, value, known in (("dataset", entry["dataset"], datasets), ("format", entry["format"], formats())):
            if value not in known:
                raise UnknownNameError(kind, value, known, where=where)
        for file in entry["sources"]:
            if file not in find(entry["format"]).files:
                raise UnknownNameError("file", file, find(entry["format"]).files, where=where)
        files = {file: catalogue.file(source) for file, source in entry["sources"].items()}
        found[name] = RecordedEntry(name, entry["dataset"], entry["format"], entry["model"], entry["prompt"], files)
    return found
