"""Dialogues and submissions as tables, and dialogues out of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, context_id, read_dialogues
from comperdial.challenge.personas.wording import kinds_of
from comperdial.challenge.submissions import read_submissions
from comperdial.core.errors import SchemaError
from comperdial.core.files import write_json


def make_tables(
    dataset: str,
    dialogues: Sequence[Dialogue],
    systems: Mapping[str, Mapping[str, Any]],
    responses: Mapping[str, Mapping[tuple[str, int], str]],
    *,
    where: str,
) -> dict[str, pd.DataFrame]:
    """Return the tables systems, contexts, personas and responses.

    Parameters
    ----------
    dataset
        Their ``dataset`` column.
    dialogues
        The gold dialogues; B's utterances are the references, B's persona the facts.
    systems
        system -> kind, track, description.
    responses
        system -> (dialogue_id, turn) -> response.
    where
        What messages name.
    """
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "systems": ({"system_id": system, **about} for system, about in systems.items()),
        "contexts": (
            {
                "context_id": context_id(dialogue.dialogue_id, turn),
                "dialogue_id": dialogue.dialogue_id,
                "turn": turn,
                "history": dialogue.history(turn),
                "references": [dialogue.reference(turn)],
                "facts": dialogue.personas["B"],
            }
            for dialogue in dialogues
            for turn in range(dialogue.turns)
        ),
        "personas": (
            {"dialogue_id": dialogue.dialogue_id, "speaker": s, "sentences": sentences, "kinds": kinds_of(sentences)}
            for dialogue in dialogues
            for s, sentences in dialogue.personas.items()
        ),
        "responses": (
            {"context_id": context_id(dialogue, turn), "system_id": system, "response": text}
            for system, answers in responses.items()
            for (dialogue, turn), text in answers.items()
        ),
    }
    return {
        name: schema.validate(
            pd.DataFrame([{"dataset": dataset, **row} for row in records], columns=schema.table(name).columns),
            name,
            where=f"{where}, as table {name!r}",
        )
        for name, records in rows.items()
    }


def dialogues_of(contexts: pd.DataFrame, personas: pd.DataFrame) -> list[Dialogue]:
    """Return the dialogues that :func:`make_tables` was given, from its tables."""
    sentences = personas.set_index(["dialogue_id", "speaker"])["sentences"]
    dialogues = []
    for name, rows in contexts.sort_values(["dialogue_id", "turn"]).groupby("dialogue_id"):
        last = rows.iloc[-1]
        texts = (*(u["text"] for u in last["history"]), last["references"][0])
        dialogues.append(Dialogue(str(name), {s: list(sentences.get((name, s), [])) for s in ("A", "B")}, texts))
    return dialogues


def read_challenge(
    name: str, dialogues: str | Path, submissions: Sequence[str | Path], folder: str | Path
) -> dict[str, str]:
    """Read a challenge, and write its tables and ``submissions.json``, which names what was left out.

    Parameters
    ----------
    name
        The data set's name.
    dialogues, submissions
        As :func:`read_dialogues` and :func:`read_submissions` take them.
    folder
        Gets the tables systems, contexts, personas and responses.

    Returns
    -------
    dict
        System or file -> why it was left out.

    Raises
    ------
    SchemaError
        When no submission is complete.
    """
    gold = read_dialogues(dialogues)
    read = read_submissions(submissions, gold)
    where = ", ".join(map(str, submissions))
    if not read.responses:
        problems = "; ".join(read.problems.values())
        raise SchemaError("no submission that is complete", where=where, expected="at least one", hint=problems or None)
    systems = {system: read.systems[system] for system in read.responses}
    for table, frame in make_tables(name, gold, systems, read.responses, where=where).items():
        schema.write(Path(folder) / f"{table}.parquet", frame, table)
    write_json(Path(folder) / "submissions.json", {"systems": len(systems), "failed": read.problems})
    return read.problems
