"""Scores computed elsewhere. The files of this package are the formats: module ``table`` reads the format ``table``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comperdial.core.plugins import load_class, module_names

if TYPE_CHECKING:
    from comperdial.data.recorded.base import Format

__all__ = ["find", "formats"]

_HELPERS = frozenset({"base", "entries", "importing"})


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return module_names(__name__, _HELPERS)


def find(name: str) -> type[Format]:
    """Return a format by name.

    Raises
    ------
    UnknownNameError
        When there is no such format; names the nearest ones.
    """
    # Not above: the workflow asks for names each time it starts, and pandas takes half a second.
    from comperdial.data.recorded.base import Format

    return load_class(__name__, name, Format, kind="format", helpers=_HELPERS)  # type: ignore[type-abstract]
