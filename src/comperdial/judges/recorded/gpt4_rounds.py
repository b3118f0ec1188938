"""GPT-4's ratings of whole dialogues in five rounds, by Zhang et al. 2024 (A Comprehensive Analysis, AAAI)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.data.readers._comp import ROUNDS, SHORT, read_rounds
from comperdial.data.readers.base import numbered
from comperdial.data.recorded import Rated
from comperdial.judges.recorded import AnswerFormat, Row, frame, systems_of


class Gpt4Rounds(AnswerFormat):
    """A JSON object of ``coh_1`` … ``coh_5``, ``div_1`` … ``ovr_5``: a list each, with a number a dialogue.

    The numbers were published, neither the texts of the answers nor the prompts: an answer here is a number's text.
    What the five short names stand for is inferred, and so is the scale, 1 to 5. In two files (ConTurE, HEval) some
    numbers are not whole; they look imputed, and are taken as they are.

    The file names a dialogue by its line in the data set's text file, counted from 0; ``indices`` holds the lines where
    only some were rated. With the tables of the set (reader ``comp_dialogues``) an item is a dialogue of theirs, and
    the system is the one whose responses it holds. Without tables an item is the line in four digits, and no system is
    named.
    """

    version: ClassVar[int] = 2
    level: ClassVar[str] = "dialogue"
    dimensions: ClassVar[Mapping[str, tuple[float, float]]] = dict.fromkeys(SHORT, (1, 5))
    files: ClassVar[tuple[str, ...]] = ("rounds",)
    samples: ClassVar[int] = ROUNDS

    def read(self, rated: Rated | None = None) -> pd.DataFrame:
        """Return the answers, dimension by dimension.

        Raises
        ------
        SchemaError
            When a list is missing, has another length or holds something that is no number; or when the tables have no
            dialogue of a line, or one with responses of several systems.
        """
        path = self.paths["rounds"]
        found = read_rounds(path)
        names = [("", f"{line:04d}") for line in found.lines] if rated is None else self._dialogues(found.lines, rated)
        rows: list[Row] = []
        for (dimension, number), values in found.numbers.items():
            rows += [
                (f"{SHORT[dimension]}, entry {place}", item, system, dimension, number, repr(value))
                for place, ((system, item), value) in enumerate(zip(names, values, strict=True))
            ]
        return frame(rows)

    def _dialogues(self, lines: list[int], rated: Rated) -> list[tuple[str, str]]:
        """Return system and dialogue of each line."""
        systems = systems_of(rated)
        found = []
        for place, line in enumerate(lines):
            dialogue_id = numbered(rated.dataset, line)
            where = f"{self.paths['rounds']}, entry {place}"
            if len(names := systems.get(dialogue_id, [])) != 1:
                raise SchemaError(
                    f"dialogue {dialogue_id!r} has responses of {', '.join(map(repr, names)) or 'no system'}",
                    where=where,
                    expected=f"a dialogue of {rated.dataset!r} with one system",
                )
            found.append((names[0], dialogue_id))
        return found
