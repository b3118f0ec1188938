"""LLMFAO (Ustalov 2023): answers of 59 models to 13 prompts, compared by crowd workers, GPT-3 and GPT-4."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from comperdial.challenge.pairs import Dialogue
from comperdial.core.files import read_jsonl, read_text
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

USER, MODEL = "user", "model"
# The vote files and their sources.
SOURCES = {"crowd": "human", "gpt3": "gpt-3", "gpt4": "gpt-4"}
_PREFERENCES = {"left": 1, "right": -1, "tie": 0}


def read(dataset: str, files: Files) -> Tables:
    """Read ``answers``, ``crowd``, ``gpt3`` and ``gpt4``; the first of a pair was shown on the left."""
    rows = []
    for role, source in SOURCES.items():
        votes = _votes(files[role])
        workers = base.worker_numbers(vote["worker"] for vote in votes) if role == "crowd" else {}
        for vote in votes:
            prompt, systems = f"prompt-{vote['prompt']}", (vote["left"], vote["right"])
            who, preference = workers.get(vote.get("worker", ""), source), _PREFERENCES[vote["winner"]]
            rows.append(base.vote(vote["id"], prompt, systems, who, "overall", preference, source=source, left="first"))
    return base.make_tables(dataset, files, preferences=rows)


def dialogues(files: Files) -> list[Dialogue]:
    """Return each model's answer to each prompt."""
    names: dict[str, str] = {}
    for vote in _votes(files["crowd"]):
        names |= {vote["model_x"]: vote["left"], vote["model_y"]: vote["right"]}
    result: dict[tuple[str, str], Dialogue] = {}
    for _, record in read_jsonl(files["answers"]):
        for side in "xy":
            if model := names.get(str(record[f"model_{side}"])):
                answer = record[f"result_{side}"].strip() or base.EMPTY
                one = Dialogue(f"prompt-{record['prompt']}", model, MODEL, ((USER, record["text"]), (MODEL, answer)))
                result[one.key] = one
    return list(result.values())


def _votes(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_text(path), newline="")))
