"""The section ``recorded_judges`` of ``params.yaml``: whose recorded answers are taken from where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.data.catalogue import Catalogue, Source
from comperdial.judges.recorded import find, formats

_WHERE = "params.yaml, recorded_judges.{}"


@dataclass(frozen=True)
class RecordedEntry:
    """Answers of a judge recorded elsewhere: of which data set, in which format, the model, the prompt, the files."""

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
    """Check the section and return its entries by name.

    Parameters
    ----------
    section
        As :class:`comperdial.config.parameters.Parameters` has it; None for no such section.
    taken
        The names of other metrics.
    datasets
        The names of all data sets there can be.
    catalogue
        Where the files are looked up.

    Raises
    ------
    ConfigError
        When a name is taken.
    UnknownNameError
        When there is no such data set, format, source or file of the format.
    """
    found = {}
    for name, entry in (section or {}).items():
        where = _WHERE.format(name)
        if name in taken:
            raise ConfigError(f"{name!r} is the name of another metric", where=where, expected="a name of its own")
        if entry["dataset"] not in datasets:
            raise UnknownNameError("dataset", entry["dataset"], datasets, where=where)
        if entry["format"] not in formats():
            raise UnknownNameError("format", entry["format"], formats(), where=where)
        for file in entry["sources"]:
            if file not in find(entry["format"]).files:
                raise UnknownNameError("file", file, find(entry["format"]).files, where=where)
        files = {file: catalogue.file(source) for file, source in entry["sources"].items()}
        found[name] = RecordedEntry(name, entry["dataset"], entry["format"], entry["model"], entry["prompt"], files)
    return found
