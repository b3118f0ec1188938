"""The files with GPT-4's five rounds of whole dialogues, of Zhang et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers.base import get

ROUNDS = 5
# The files' short names; what they stand for is inferred.
SHORT = {
    "coherence": "coh",
    "diversity": "div",
    "engagingness": "eng",
    "informativeness": "inf",
    "overall": "ovr",
}
_PLACES = "indices"


class Rounds(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    lines
        The line of each dialogue in the set's text file, counted from 0.
    some
        Whether the file names the lines: only some dialogues were rated.
    numbers
        By dimension and round, counted from 0: one number a dialogue, in the order of ``lines``.
    """

    lines: list[int]
    some: bool
    numbers: Mapping[tuple[str, int], list[int | float]]


def read_rounds(path: Path) -> Rounds:
    """Read a JSON object of ``coh_1`` … ``coh_5``, ``div_1`` … ``ovr_5``, and ``indices`` where some were rated.

    Raises
    ------
    SchemaError
        When a list is missing, has another length or holds something that is no number.
    """
    content = read_json(path)
    numbers = {
        (name, number): get(content, f"{short}_{number + 1}", list, str(path))
        for name, short in SHORT.items()
        for number in range(ROUNDS)
    }
    count = len(numbers["coherence", 0])
    lines = _lines(content, count, path)
    for (dimension, number), values in numbers.items():
        where = f"{path}, {SHORT[dimension]}_{number + 1}"
        if len(values) != count:
            raise SchemaError(f"{len(values)} ratings", where=where, expected=f"{count}, as in coh_1")
        for place, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise SchemaError(f"entry {place} is {value!r}", where=where, expected="a number")
    return Rounds(lines, _PLACES in content, numbers)


def _lines(content: Any, count: int, path: Path) -> list[int]:  # noqa: ANN401
    """Return the line of each dialogue."""
    if _PLACES not in content:
        return list(range(count))
    lines = get(content, _PLACES, list, str(path))
    whole = all(isinstance(line, int) and not isinstance(line, bool) and line >= 0 for line in lines)
    if not whole or len(lines) != count or len(set(lines)) != count:
        raise SchemaError(
            f"`{_PLACES}` has {len(lines)} entries", where=str(path), expected=f"{count} different line numbers"
        )
    return lines
