"""Readers of the catalogue's formats: format ``usr`` is read by function ``read`` of module ``usr``.

To add a format, add a module with ``read(dataset, files)``; :mod:`comperdial.data.readers.base` has helpers that make table
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any
from zipfile import BadZipFile

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.data.readers.base import Tables

__all__ = ["Tables", "find", "read", "readers"]


def readers() -> tuple[str, ...]:
    """Return the names of all readers."""
    names = (module.name for module in iter_modules(__path__))
    return tuple(sorted(name for name in names if name != "base" and not name.startswith("_")))


def find(name: str) -> Any:  # noqa: ANN401
    """Return a reader's module; raise :class:`UnknownNameError` if it does not exist."""
    if name not in readers():
        raise UnknownNameError("reader", name, readers())
    return import_module(f"{__name__}.{name}")


def read(reader: str, dataset: str, files: Mapping[str, Path], options: Mapping[str, Any] | None = None) -> Tables:
    """Read a data set's files into validated tables.

    ``files`` are keyed by the reader's names (``data/sources.yaml``); ``options`` are its settings in ``params.yaml``.

    Raises
    ------
    UnknownNameError
        If the reader does not exist.
    FileError, SchemaError
        If a file does not have the reader's format, or its content violates a table's schema.
    """
    where = ", ".join(map(str, files.values()))
    try:
        tables: Tables = find(reader).read(dataset, files, *([options] if options else []))
    except (AttributeError, BadZipFile, LookupError, StopIteration, SyntaxError, TypeError, ValueError) as error:
        # Readers do not validate the catalogue's checksummed files, so this must be a different file.
        raise SchemaError(
            f"{type(error).__name__} ({error}) while reading",
            where=where,
            expected=f"files of the format {reader!r}",
            hint="`comperdial --debug` shows where the reader failed",
        ) from error
    if all(frame.empty for frame in tables.values()):
        raise SchemaError("no records", where=where, expected="at least one")
    return tables
