"""Spot the Bot (Deriu et al. 2020): crowd workers judge both sides of chats between two bots.

Workers saw a chat up to some utterance and judged each side as a person, unsure or a bot, and as fluent, sensible and specific.
The side judged better is preferred, where person beats unsure and unsure beats bot. Each worker's judgement of a chat is a vote
on four questions.
"""

from __future__ import annotations

import json
import logging
import zipfile
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from comperdial.challenge.pairs import Dialogue
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Row, Tables

log = logging.getLogger(__name__)

# The file's names of the questions; its "sensitiveness" is the paper's sensibleness.
QUESTIONS = {
    "humanness": "is_human",
    "fluency": "fluencyValue",
    "sensibleness": "sensitivenessValue",
    "specificity": "specificityValue",
}


class Chat(NamedTuple):
    """The two speakers, and whether both are people: such chats are controls, not pairs of systems."""

    systems: tuple[str, str]
    human: bool
    utterances: tuple[tuple[str, str], ...]


def read(dataset: str, files: Files) -> Tables:
    """Read the votes on chats between two bots of one domain, given by the archive's role.

    A pair is a chat up to some utterance, whose number ends its name: the same worker may have judged a longer part too.
    Repeated judgements of the same part form another pair, ``-2``. The seconds are per judgement, hence equal for its four
    questions. The side that spoke first is the first; neither was shown on the left.
    """
    chats, judgements = _chats(files), _records(files, "annotated")
    workers = base.worker_numbers(record["user_name"] for record in judgements)
    seen: Counter[tuple[str, str]] = Counter()
    rows: list[Row] = []
    of_people = 0
    for record in judgements:
        chat_id, worker = record["convo_id"], workers[record["user_name"]]
        if chats[chat_id].human:
            of_people += 1
            continue
        first, second = (record[f"entity{at}_annotation"] for at in (0, 1))
        pair = f"{chat_id}-{first['decision_turn']}"
        seen[pair, worker] += 1
        if seen[pair, worker] > 1:
            pair = f"{pair}-{seen[pair, worker]}"
        # If the start was not recorded, this is an object with the time since 1970.
        seconds = None if isinstance(record["elapsed_time"], dict) else record["elapsed_time"] / 1000
        for question, field in QUESTIONS.items():
            preference = _judged(first[field]) - _judged(second[field])
            rows.append(base.vote(pair, chat_id, chats[chat_id].systems, worker, question, preference, seconds=seconds))
    log.info("%s: %d of %d judgements are of two people and left out", dataset, of_people, len(judgements))
    return base.make_tables(dataset, files, preferences=rows)


def dialogues(files: Files) -> list[Dialogue]:
    """Return each full chat between two bots once; the judged speaker has the bot's name."""
    return [
        Dialogue(chat_id, system, system, chat.utterances)
        for chat_id, chat in _chats(files).items()
        if not chat.human
        for system in chat.systems
    ]


def _chats(files: Files) -> dict[str, Chat]:
    result = {}
    for record in _records(files, "sampled"):
        systems = (_system(record, 0), _system(record, 1))
        names = {record[f"system_type{at}"]: systems[at] for at in (0, 1)}
        texts = tuple((names[one["id"]], one["text"].strip() or base.EMPTY) for one in record["convo"])
        result[record["_id"]["$oid"]] = Chat(systems, record["is_human0"], texts)
    return result


def _records(files: Files, kind: str) -> list[Any]:
    """Return the objects in a member of the archive."""
    ((domain, path),) = files.items()
    with zipfile.ZipFile(path) as archive:
        lines = archive.read(f"{kind}-dialogues-full-{domain}.json").decode("utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def _system(record: Mapping[str, str], at: int) -> str:
    """Return a system's name: its type, except for Blender, whose type is ``model``."""
    return "blender" if "blender" in record[f"system_name{at}"] else record[f"system_type{at}"]


def _judged(value: bool | None) -> int:
    """Return 2 for yes, 1 for unsure, 0 for no."""
    return 1 if value is None else 2 * value
