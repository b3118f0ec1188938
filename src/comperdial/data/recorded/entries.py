"""The section ``recorded`` of ``params.yaml``: which scores are taken from where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.data.catalogue import Catalogue, Source
from comperdial.data.recorded import formats

_WHERE = "params.yaml, recorded.{}"


def origin(file: Source | Path) -> str:
    """Return where a file comes from, as a signature says it: ``owner/name@commit/file``, or a local file's name."""
    if isinstance(file, Path):
        return file.name
    commit = f"@{file.commit[:7]}" if file.commit else ""
    return f"{file.repository}{commit}/{PurePosixPath(file.path).name}"


@dataclass(frozen=True)
class Entry:
    """Scores computed elsewhere: of which data set, in which format, whose, in which file."""

    name: str
    dataset: str
    format: str
    about: str
    file: Source | Path

    @property
    def origin(self) -> str:
        """Return where the file comes from, as a signature says it."""
        return origin(self.file)


def read_entries(
    section: Mapping[str, Mapping[str, Any]] | None,
    *,
    taken: Collection[str],
    datasets: Collection[str],
    catalogue: Catalogue,
) -> dict[str, Entry]:
    """Check the section and return its entries by name.

    Parameters
    ----------
    section
        As :class:`comperdial.config.parameters.Parameters` has it; None for no such section.
    taken
        Names that scores made elsewhere may not have: those of the configured metrics, and of all kinds of metric.
    datasets
        The names of all data sets there can be.
    catalogue
        Where ``source`` is looked up.

    Raises
    ------
    ConfigError
        When a name is taken.
    UnknownNameError
        When there is no such data set, format or source.
    """
    found = {}
    for name, entry in (section or {}).items():
        where = _WHERE.format(name)
        if name in taken:
            raise ConfigError(
                f"{name!r} is the name of a metric that is computed here",
                where=where,
                expected="another name, so that nobody takes recorded scores for computed ones",
                hint=f"Call it {name}_recorded",
            )
        if entry["dataset"] not in datasets:
            raise UnknownNameError("dataset", entry["dataset"], datasets, where=where)
        if entry["format"] not in formats():
            raise UnknownNameError("format", entry["format"], formats(), where=where)
        file = catalogue.file(entry["source"]) if "source" in entry else Path(entry["path"])
        found[name] = Entry(name, entry["dataset"], entry["format"], entry["about"], file)
    return found
