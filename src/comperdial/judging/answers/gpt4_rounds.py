"""GPT-4's ratings of whole dialogues in five rounds, by Zhang et al. 2024 (A Comprehensive Analysis, AAAI)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from comperdial.datasets.base import get
from comperdial.errors import SchemaError
from comperdial.files import read_json
from comperdial.judging.answers.base import AnswerFormat, Row, as_messages, frame, text_hash
from comperdial.recorded.base import Rated

_SHORT = {
    "coherence": "coh",
    "diversity": "div",
    "engagingness": "eng",
    "informativeness": "inf",
    "overall": "ovr",
}
_PLACES = "indices"


class Gpt4Rounds(AnswerFormat):
    """A JSON object of ``coh_1`` … ``coh_5``, ``div_1`` … ``ovr_5``: a list each, with a number a dialogue.

    The numbers were published, neither the texts of the answers nor the prompts: an answer here is a number's text, and
    its prompt a line that names file, dialogue and dimension. What the five short names stand for is inferred, and so
    is the scale, 1 to 5. In two files (ConTurE, HEval) some numbers are not whole; they look imputed, and are taken as
    they are.

    A dialogue is named by its line in the data set's text file, counted from 0, in four digits; ``indices`` holds the
    lines where only some were rated. Whose dialogue it is stands in other files: ``system_id`` is empty.
    """

    level: ClassVar[str] = "dialogue"
    dimensions: ClassVar[Mapping[str, tuple[float, float]]] = dict.fromkeys(_SHORT, (1, 5))
    files: ClassVar[tuple[str, ...]] = ("rounds",)
    samples: ClassVar[int] = 5

    def read(self, rated: Rated | None = None) -> pd.DataFrame:
        """Return the answers, dimension by dimension; tables are not needed.

        Raises
        ------
        SchemaError
            When a list is missing, has another length or holds something that is no number.
        """
        path = self.paths["rounds"]
        content = read_json(path)
        numbers = {
            (name, number): get(content, f"{short}_{number + 1}", list, str(path))
            for name, short in _SHORT.items()
            for number in range(self.samples)
        }
        count = len(numbers["coherence", 0])
        lines = _lines(content, count, path)
        rows: list[Row] = []
        for (dimension, number), values in numbers.items():
            where = f"{path}, {_SHORT[dimension]}_{number + 1}"
            if len(values) != count:
                raise SchemaError(f"{len(values)} ratings", where=where, expected=f"{count}, as in coh_1")
            for place, (line, value) in enumerate(zip(lines, values, strict=True)):
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise SchemaError(f"entry {place} is {value!r}", where=where, expected="a number")
                item = f"{line:04d}"
                messages = as_messages(f"{path.name}, dialogue {item}, {dimension}")
                rows.append((f"{_SHORT[dimension]}, entry {place}", item, "", dimension, number, messages, repr(value)))
        return frame(rows)

    def prompt_hash(self, dimension: str) -> str:
        """Return the sha256 of the file's name and the dimension: the prompt was not published."""
        return text_hash(f"{self.paths['rounds'].name}, {dimension}")


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
