"""Spot the Bot (Deriu et al. 2020): two bots chat with each other, and a crowd worker judges both.

Workers saw a chat up to some utterance, and said of each side whether it is a person, whether they are unsure, or
whether it is a bot; and whether it is fluent, sensible and specific. A side that is judged better is preferred; person
is better than unsure, and that is better than bot. Each worker's judgement of a chat is a vote on four questions.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import SchemaError
from comperdial.core.files import parse_json
from comperdial.data.preferences import EMPTY, PreferenceReader, numbered
from comperdial.data.readers.base import get

DOMAINS = ("convai2", "dailydialog", "empathetic")
# What the file calls a question; "sensitiveness" is the paper's sensibleness.
QUESTIONS = {
    "humanness": "is_human",
    "fluency": "fluencyValue",
    "sensibleness": "sensitivenessValue",
    "specificity": "specificityValue",
}


@dataclass(frozen=True)
class Chat:
    """Who talked to whom, and whether both are people, whose chats are controls and no pairs of systems."""

    systems: tuple[str, str]
    human: bool
    utterances: tuple[tuple[str, str], ...]


class SpotTheBot(PreferenceReader):
    """Reader of one domain: the archive's role says which (``convai2``, ``dailydialog`` or ``empathetic``).

    Attributes
    ----------
    of_people
        After ``preferences``: how many judgements are of a chat between two people, which are left out.
    """

    of_people = 0

    def preferences(self) -> pd.DataFrame:
        """Return the votes on chats of two bots.

        A pair is a chat and how many of its utterances were shown, which its name ends with: the same worker may have
        judged a longer part of it too. Where workers judged the same part again, that is another pair, ``-2``. The
        seconds are those of a judgement, hence the same for its four questions. The side that spoke first is the first;
        none was shown on the left.
        """
        chats = self._chats()
        made = self._records("annotated")
        workers = numbered([get(record, "user_name", str, where) for where, record in made])
        seen: Counter[tuple[str, str]] = Counter()
        rows = []
        self.of_people = 0
        for where, record in made:
            chat_id = get(record, "convo_id", str, where)
            if chat_id not in chats:
                raise SchemaError(f"no chat {chat_id!r}", where=where, expected="a chat of the archive")
            chat = chats[chat_id]
            if chat.human:
                self.of_people += 1
                continue
            sides = [get(record, f"entity{at}_annotation", dict, where) for at in (0, 1)]
            pair = f"{chat_id}-{get(sides[0], 'decision_turn', int, where)}"
            worker = workers[record["user_name"]]
            seen[pair, worker] += 1
            if seen[pair, worker] > 1:
                pair = f"{pair}-{seen[pair, worker]}"
            for question, field in QUESTIONS.items():
                apart = _judged(sides[0], field, where) - _judged(sides[1], field, where)
                rows.append(
                    {
                        "pair_id": pair,
                        "first_dialogue_id": chat_id,
                        "first_system_id": chat.systems[0],
                        "second_dialogue_id": chat_id,
                        "second_system_id": chat.systems[1],
                        "annotator_id": worker,
                        "question": question,
                        "choice": "first" if apart > 0 else "second" if apart < 0 else "tie",
                        "seconds": _seconds(record, where),
                        "source": "human",
                    }
                )
        return self.frame("preferences", rows, self.files[self._domain()])

    def dialogues(self) -> list[Dialogue]:
        """Return the whole chats of two bots, once for each; the judged speaker has the bot's name."""
        return [
            Dialogue(chat_id, system, system, chat.utterances)
            for chat_id, chat in self._chats().items()
            if not chat.human
            for system in chat.systems
        ]

    def _domain(self) -> str:
        if len(self.files) != 1 or not set(self.files) <= set(DOMAINS):
            raise SchemaError(
                f"the files are {', '.join(self.files)}",
                where=f"data set {self.dataset!r}",
                expected=f"one archive, as {', '.join(DOMAINS)}",
            )
        return next(iter(self.files))

    def _chats(self) -> dict[str, Chat]:
        found = {}
        for where, record in self._records("sampled"):
            human = get(record, "is_human0", bool, where)
            systems = (_system(record, 0, where), _system(record, 1, where))
            if not human and systems[0] == systems[1]:
                raise SchemaError(f"both sides are {systems[0]!r}", where=where, expected="two bots")
            names = {record[f"system_type{at}"]: systems[at] for at in (0, 1)}
            said = tuple(
                (names[get(one, "id", str, where)], get(one, "text", str, where).strip() or EMPTY)
                for one in get(record, "convo", list, where)
            )
            found[get(get(record, "_id", dict, where), "$oid", str, where)] = Chat(systems, human, said)
        return found

    def _records(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the objects of a member of the archive, with where each stands."""
        domain = self._domain()
        path, member = self.files[domain], f"{kind}-dialogues-full-{domain}.json"
        try:
            with zipfile.ZipFile(path) as archive:
                lines = archive.read(member).decode("utf-8").split("\n")
        except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
            raise SchemaError(
                f"{member} cannot be read", where=str(path), expected="a zip archive with this file of JSON Lines"
            ) from error
        return [
            (where := f"{path}, {member}, line {number}", parse_json(line, where, expected="a JSON object"))
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]


def _system(record: dict[str, Any], at: int, where: str) -> str:
    """Return what a system is called: its type, but for Blender, whose type is ``model``."""
    kind = get(record, f"system_type{at}", str, where)
    return "blender" if "blender" in get(record, f"system_name{at}", str, where) else kind


def _seconds(record: dict[str, Any], where: str) -> float | None:
    """Return what a judgement took; None where its start was not recorded, and the time since 1970 stands there."""
    value = record.get("elapsed_time")
    if isinstance(value, dict):
        return None
    return get(record, "elapsed_time", int, where) / 1000


def _judged(side: dict[str, Any], field: str, where: str) -> int:
    """Return 2 for yes, 1 for unsure, 0 for no; only whether it is a person may be unsure."""
    value = side.get(field)
    if value is None and field == QUESTIONS["humanness"] and field in side:
        return 1
    return 2 * int(get(side, field, bool, where))
