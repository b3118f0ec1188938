"""Dialogues and submissions as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, context_id
from comperdial.challenge.personas.wording import kinds_of

Answer = tuple[str, str, int, str]
"""System, dialogue, turn and response."""


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
    answers = (
        (system, dialogue, turn, text)
        for system, given in responses.items()
        for (dialogue, turn), text in given.items()
    )
    tables = make_setting(dataset, dialogues, systems, where=where)
    return tables | {"responses": responses_of(dataset, answers, where=where)}


def make_setting(
    dataset: str, dialogues: Sequence[Dialogue], systems: Mapping[str, Mapping[str, Any]], *, where: str
) -> dict[str, pd.DataFrame]:
    """Return the tables systems, contexts and personas, those that do not grow with the responses."""
    return {
        "systems": _frame(dataset, "systems", ({"system_id": s, **about} for s, about in systems.items()), where),
        "contexts": _frame(dataset, "contexts", (c for d in dialogues for c in _contexts(d)), where),
        "personas": _frame(dataset, "personas", (p for d in dialogues for p in _personas(d)), where),
    }


def responses_of(dataset: str, answers: Iterable[Answer], *, where: str) -> pd.DataFrame:
    """Return some answers as table responses."""
    rows = (
        {"context_id": context_id(dialogue, turn), "system_id": system, "response": text}
        for system, dialogue, turn, text in answers
    )
    return _frame(dataset, "responses", rows, where)


def _frame(dataset: str, table: str, rows: Iterable[Mapping[str, Any]], where: str) -> pd.DataFrame:
    frame = pd.DataFrame([{"dataset": dataset, **row} for row in rows], columns=schema.table(table).columns)
    return schema.validate(frame, table, where=f"{where}, as table {table!r}")


def _contexts(dialogue: Dialogue) -> Iterable[dict[str, Any]]:
    for turn in range(dialogue.turns):
        yield {
            "context_id": context_id(dialogue.dialogue_id, turn),
            "dialogue_id": dialogue.dialogue_id,
            "turn": turn,
            "history": dialogue.history(turn),
            "references": [dialogue.reference(turn)],
            "facts": dialogue.personas["B"],
        }


def _personas(dialogue: Dialogue) -> Iterable[dict[str, Any]]:
    for speaker, sentences in dialogue.personas.items():
        yield {
            "dialogue_id": dialogue.dialogue_id,
            "speaker": speaker,
            "sentences": sentences,
            "kinds": kinds_of(sentences),
        }


def dialogues_of(contexts: pd.DataFrame, personas: pd.DataFrame) -> list[Dialogue]:
    """Return the dialogues that :func:`make_tables` was given, from its tables."""
    sentences = personas.set_index(["dialogue_id", "speaker"])["sentences"]
    found = []
    for name, rows in contexts.sort_values(["dialogue_id", "turn"]).groupby("dialogue_id"):
        last = rows.iloc[-1]
        texts = (*(u["text"] for u in last["history"]), last["references"][0])
        found.append(Dialogue(str(name), {s: list(sentences.get((name, s), [])) for s in ("A", "B")}, texts))
    return found
