"""LLMFAO (Ustalov 2023): crowd workers, GPT-3 and GPT-4 compared answers of 59 models to 13 prompts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_jsonl, read_text
from comperdial.data.preferences import EMPTY, PreferenceReader, numbered
from comperdial.data.readers.base import get

USER, MODEL = "user", "model"
# The files of votes, and whose they are.
SOURCES = {"crowd": "human", "gpt3": "gpt-3", "gpt4": "gpt-4"}
_CHOICES = {"left": "first", "right": "second", "tie": "tie"}
_COLUMNS = ("id", "prompt", "winner", "left", "right")


class LLMFAO(PreferenceReader):
    """Reader of ``answers``, ``crowd``, ``gpt3`` and ``gpt4``: the last three are told apart by column ``source``."""

    def preferences(self) -> pd.DataFrame:
        """Return the votes; the first of a pair was shown on the left."""
        rows = []
        for role, source in SOURCES.items():
            votes = _votes(self.files[role], (*_COLUMNS, "worker") if role == "crowd" else _COLUMNS)
            workers = numbered([vote.get("worker", source) for vote in votes])
            for number, vote in enumerate(votes, start=1):
                if vote["winner"] not in _CHOICES:
                    raise SchemaError(
                        f"winner is {vote['winner']!r}",
                        where=f"{self.files[role]}, vote {number}",
                        expected="left, right or tie",
                    )
                rows.append(
                    {
                        "pair_id": vote["id"],
                        "first_dialogue_id": f"prompt-{vote['prompt']}",
                        "first_system_id": vote["left"],
                        "second_dialogue_id": f"prompt-{vote['prompt']}",
                        "second_system_id": vote["right"],
                        "annotator_id": workers[vote["worker"]] if role == "crowd" else source,
                        "question": "overall",
                        "choice": _CHOICES[vote["winner"]],
                        "left": "first",
                        "source": source,
                    }
                )
        return self.frame("preferences", rows, self.files["crowd"])

    def dialogues(self) -> list[Dialogue]:
        """Return each model's answer to each prompt."""
        names: dict[str, str] = {}
        for vote in _votes(self.files["crowd"], (*_COLUMNS, "model_x", "model_y")):
            names |= {vote["model_x"]: vote["left"], vote["model_y"]: vote["right"]}
        found: dict[tuple[str, str], Dialogue] = {}
        for line, record in read_jsonl(self.files["answers"]):
            where = f"{self.files['answers']}, line {line}"
            dialogue_id, asked = f"prompt-{get(record, 'prompt', int, where)}", get(record, "text", str, where)
            for side in ("x", "y"):
                model = str(get(record, f"model_{side}", int, where))
                if model not in names:
                    continue
                said = get(record, f"result_{side}", str, where)
                made = Dialogue(dialogue_id, names[model], MODEL, ((USER, asked), (MODEL, said.strip() or EMPTY)))
                if found.setdefault(made.key, made) != made:
                    raise SchemaError(
                        f"another answer of {names[model]!r} to {dialogue_id}", where=where, expected="one answer each"
                    )
        return list(found.values())


def _votes(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    votes = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    if not votes or not set(columns) <= votes[0].keys():
        raise SchemaError(
            f"the columns are {', '.join(votes[0]) if votes else 'none'}",
            where=str(path),
            expected=f"votes with {', '.join(columns)}",
        )
    for number, vote in enumerate(votes, start=1):
        if None in vote or None in vote.values():
            raise SchemaError("not as many cells as columns", where=f"{path}, vote {number}", expected="one each")
    return votes
