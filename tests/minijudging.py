"""Small invented tables to judge, and helpers shared by tests of judging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.config.registry import completed
from comperdial.judges.items import Item, message
from comperdial.judges.tasks import Judging, read_judging


def write_tables(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the tables of the data set ``mine``.

    A row is a context: ``dialogue``, ``turn``, ``history`` (lines such as "A: Hi."), ``responses`` (of each
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
            for system, text in row["responses"].items()
        ]
    for system in dict.fromkeys(system for row in rows for system in row["responses"]):
        kind = "reference" if system == "gold" else "agent"
        tables["systems"].append(
            {"dataset": "mine", "system_id": system, "kind": kind, "track": None, "description": ""}
        )
    folder.mkdir(parents=True, exist_ok=True)
    for table, content in tables.items():
        schema.write(folder / f"{table}.parquet", pd.DataFrame(content), table)
    return folder


def judging_of(server: dict[str, Any], folder: Path, **judging: Any) -> Judging:
    """Return the package's variants, and a judge ``server`` in addition to ``rules``, with answers in a folder of their own."""
    names = ("cpds-d", "cpds-d-ref", "cpds-s", "cpds-s-ref", "cpds-dial", "original-s")
    config = completed({"judging": {"variants": dict.fromkeys(names)}})
    entry = {"service": "openai", "model": "m", "parameters": {"max_tokens": 20}, **server}
    judges = {"rules": {"service": "rules", "explain": True}, "server": entry}
    asked = {"judges": {"default": ["rules"]}, "ledger": str(folder / "ledger"), **judging}
    return read_judging(judges, {**config["judging"], **asked})


def chats(count: int) -> list[Item]:
    """Return this many items to judge."""
    return [Item("mine", f"c{number}", "bot", message(f"How human is number {number}?")) for number in range(count)]
