"""Readers of the catalogue's formats: module ``usr`` reads the format ``usr`` with its function ``read``.

A new format is a file here whose ``read(dataset, files)`` returns the tables; :mod:`comperdial.data.readers.base` makes their
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
    """Return a reader's module, or raise :class:`UnknownNameError`."""
    if name not in readers():
        raise UnknownNameError("reader", name, readers())
    return import_module(f"{__name__}.{name}")


def read(reader: str, dataset: str, files: Mapping[str, Path], options: Mapping[str, Any] | None = None) -> Tables:
    """Read a data set's files into checked tables.

    ``files`` are under the reader's names for them (``data/sources.yaml``); ``options`` are the reader's settings of
    ``params.yaml``, if it has any.

    Raises
    ------
    UnknownNameError
        When there is no such reader.
    FileError, SchemaError
        When a file does not have the reader's format, or what it holds breaks a table's rules.
    """
    where = ", ".join(map(str, files.values()))
    try:
        tables: Tables = find(reader).read(dataset, files, *([options] if options else []))
    except (AttributeError, BadZipFile, LookupError, StopIteration, SyntaxError, TypeError, ValueError) as error:
        # The catalogue's files are checksummed, so that readers do not check their content: this is another file.
        raise SchemaError(
            f"{type(error).__name__} ({error}) while reading",
            where=where,
            expected=f"files of the format {reader!r}",
            hint="`comperdial --debug` shows where the reader failed",
        ) from error
    if all(frame.empty for frame in tables.values()):
        raise SchemaError("no records", where=where, expected="at least one")
    return tables
