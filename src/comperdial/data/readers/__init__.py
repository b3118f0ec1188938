"""Datasets by name: ``data/sources.yaml`` names the reader, and the files of this package are the readers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.core.plugins import load_class, module_names
from comperdial.data.readers.base import Reader, Tables

__all__ = ["Reader", "Tables", "read", "readers"]

_HELPERS = frozenset({"base"})


def readers() -> tuple[str, ...]:
    """Return the names of all readers."""
    return module_names(__name__, _HELPERS)


def read(reader: str, dataset: str, files: Mapping[str, Path], options: Mapping[str, Any] | None = None) -> Tables:
    """Read a dataset's files into checked tables.

    Raises
    ------
    UnknownNameError
        When there is no such reader.
    FileError, SchemaError
        When a file is not what the reader expects: names file, item and what was expected.
    """
    found = load_class(__name__, reader, Reader, kind="reader", helpers=_HELPERS)  # type: ignore[type-abstract]
    return found(dataset, files, options).read()
