"""Small invented tables to judge, and what tests of judging share: nobody said any of this."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from comperdial import schema
from comperdial.judges.items import Turns, items_of
from comperdial.judges.scores import Tally, in_memory, judge_items
from comperdial.judges.services.rules import Rules
from comperdial.judges.tasks import Judging, Task


def write_tables(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the tables of the data set ``mine``.

    A row is a context: ``dialogue``, ``turn``, ``history`` (lines such as "A: Hi."), ``said`` (the response of each
    system; "gold" is a reference), and if wanted ``context`` (its name), ``references`` and ``facts``.
    """
    tables: dict[str, list[dict[str, Any]]] = {"systems": [], "contexts": [], "responses": []}
    for number, row in enumerate(rows):
        name = row.get("context", f"c{number}")
        tables["contexts"].append(
            {
                "dataset": "mine", "context_id": name, "dialogue_id": row["dialogue"], "turn": row["turn"],
                "history": [dict(zip(("speaker", "text"), line.split(": ", 1), strict=True)) for line in row["history"]],
                "references": row.get("references", []), "facts": row.get("facts", []),
            }
        )  # fmt: skip
        tables["responses"] += [
            {"dataset": "mine", "system_id": system, "context_id": name, "response": text}
            for system, text in row["said"].items()
        ]
    for system in dict.fromkeys(system for row in rows for system in row["said"]):
        kind = "reference" if system == "gold" else "agent"
        tables["systems"].append(
            {"dataset": "mine", "system_id": system, "kind": kind, "track": None, "description": ""}
        )
    folder.mkdir(parents=True, exist_ok=True)
    for table, content in tables.items():
        schema.write(folder / f"{table}.parquet", pd.DataFrame(content), table)
    return folder


def judged(
    judging: Judging, task: Task, folder: Path, turns: Turns | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, Tally]:
    """Have the data set judged; return scores, judgements and what came of it."""
    items = items_of(judging, task, folder, turns)
    return in_memory(lambda sink: judge_items(judging, task, items, sink, dataset="mine"))


def count_requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often ``rules`` is asked each prompt, from now on."""
    seen: Counter[str] = Counter()
    complete = Rules.complete

    async def counting(self, messages, parameters):
        seen[messages[0]["content"]] += 1
        return await complete(self, messages, parameters)

    monkeypatch.setattr(Rules, "complete", counting)
    return seen
