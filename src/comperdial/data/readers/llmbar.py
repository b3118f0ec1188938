"""LLMBar (Zeng et al. 2024): two outputs for an instruction, and which of them follows it better (gold label)."""

from __future__ import annotations

import pandas as pd

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.preferences import EMPTY, PreferenceReader
from comperdial.data.readers.base import get

SYSTEMS = ("output_1", "output_2")
USER, MODEL = "user", "model"


class LLMBar(PreferenceReader):
    """Reader of ``pairs``: items are numbered from 0, as in the file; outputs have no names of systems."""

    def preferences(self) -> pd.DataFrame:
        """Return the gold label of each pair."""
        rows = []
        for number, entry in enumerate(self._entries()):
            where = f"{self.files['pairs']}, item {number}"
            label = get(entry, "label", int, where)
            if label not in (1, 2):
                raise SchemaError(f"label is {label}", where=where, expected="1 or 2")
            rows.append(
                {
                    "pair_id": str(number),
                    "first_dialogue_id": str(number),
                    "first_system_id": SYSTEMS[0],
                    "second_dialogue_id": str(number),
                    "second_system_id": SYSTEMS[1],
                    "annotator_id": "gold",
                    "question": "instruction following",
                    "choice": "first" if label == 1 else "second",
                    "source": "human",
                }
            )
        return self.frame("preferences", rows, self.files["pairs"])

    def dialogues(self) -> list[Dialogue]:
        """Return each output as an answer to its instruction."""
        made = []
        for number, entry in enumerate(self._entries()):
            where = f"{self.files['pairs']}, item {number}"
            asked = get(entry, "input", str, where)
            for system in SYSTEMS:
                said = get(entry, system, str, where)
                made.append(Dialogue(str(number), system, MODEL, ((USER, asked or EMPTY), (MODEL, said or EMPTY))))
        return made

    def _entries(self) -> list[object]:
        found = read_json(self.files["pairs"])
        if not isinstance(found, list) or not found:
            raise SchemaError("no list of pairs", where=str(self.files["pairs"]), expected="a JSON list of pairs")
        return found
