"""CRSArena-Eval (FACE; Joko and Hasibi 2026): dialogues with nine recommender systems, rated per turn and as a whole.

The ratings are aggregated over several people; individual ratings are not public. A session of the arena often has two
dialogues, with two systems: its id is replaced by a number at the end of the dialogue's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables, get

ANNOTATOR = "aggregated"
TURN_SCALES = {"relevance": (0, 2), "interestingness": (0, 2)}
DIALOGUE_SCALES = {
    "understanding": (0, 2),
    "task_completion": (0, 2),
    "interest_arousal": (0, 2),
    "efficiency": (0, 1),
    "dialogue_overall": (0, 4),
    "preference_elicitation": (0, 2),
    "explanation": (0, 2),
}
_SPEAKERS = {"USER": base.PERSON, "ASST": base.CHATBOT}


def read(dataset: str, files: Files) -> Tables:
    """Read ``dialogues``; a few turns have no relevance rating."""
    path = files["dialogues"]
    answers, ratings, records = [], [], read_json(path)
    names = dialogue_names(dataset, records, path)
    for number, (record, (dialogue_id, system)) in enumerate(zip(records, names, strict=True)):
        where = f"{path}, item {number}"
        given = get(record, "dial_level_aggregated", dict, where)
        ratings += [
            base.rating(("dialogue", dialogue_id, system), ANNOTATOR, name, get(given, name, int, where), scale)
            for name, scale in DIALOGUE_SCALES.items()
        ]
        history: list[tuple[str, str]] = []
        for turn in get(record, "dialogue", list, where):
            text, place = get(turn, "utterance", str, where).strip(), get(turn, "turn_ind", int, where)
            speaker = _SPEAKERS[get(turn, "role", str, where)]
            if speaker == base.CHATBOT:
                name, count = context_id(dialogue_id, place), sum(one == base.CHATBOT for one, _ in history)
                past = base.as_history(history)
                answers.append(base.answer(name, dialogue_id, count, past, system, text or base.EMPTY))
                rated = get(turn, "turn_level_aggregated", dict, f"{where}, turn {place}")
                ratings += [
                    base.rating(("turn", name, system), ANNOTATOR, dimension, rated[dimension], scale)
                    for dimension, scale in TURN_SCALES.items()
                    if dimension in rated
                ]
            history.append((speaker, text))
    systems = [base.system(name) for name in dict.fromkeys(system for _, system in names)]
    return base.tables(dataset, files, systems, answers, ratings)


def dialogue_names(dataset: str, records: Sequence[Any], path: Path) -> list[tuple[str, str]]:
    """Return dialogue and system of each record; sessions are numbered by first appearance in the whole file.

    Raises
    ------
    SchemaError
        If a record has no ``conv_id``, or two have the same one.
    """
    ids = [get(record, "conv_id", str, f"{path}, item {number}") for number, record in enumerate(records)]
    parts = [tuple(name.rsplit("_", 1)) for name in ids]
    sessions = base.worker_numbers(session for *_, session in parts)
    names = [(f"{dataset}-{system}-{int(sessions[session]):03d}", system) for system, session in parts]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SchemaError("the same `conv_id` a second time", where=f"{path}, item {number}", expected="each once")
    return names


def context_id(dialogue_id: str, turn: int) -> str:
    """Return the context id of a turn from its ``turn_ind``, which also counts the user's turns."""
    return f"{dialogue_id}-{turn:02d}"
