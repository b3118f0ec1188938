"""Answers that judges gave to others. The files here are the formats: module ``chiang2023`` reads ``chiang2023``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comperdial.core.plugins import load_class, module_names

if TYPE_CHECKING:
    from comperdial.judges.recorded.base import AnswerFormat

__all__ = ["find", "formats"]

_HELPERS = frozenset({"base", "entries", "taking"})


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return module_names(__name__, _HELPERS)


def find(name: str) -> type[AnswerFormat]:
    """Return a format by name.

    Raises
    ------
    UnknownNameError
        When there is no such format; names the nearest ones.
    """
    from comperdial.judges.recorded.base import AnswerFormat

    return load_class(__name__, name, AnswerFormat, kind="answer format", helpers=_HELPERS)  # type: ignore[type-abstract]
