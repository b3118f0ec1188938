"""ConvAI2's conversations between volunteers and bots (DeepPavlov/convai), with the user's ratings and thumbs.

``eval_score`` is the user's rating of the conversation, 1 to 5, ``evaluation_score`` a thumb up (1) or down (0) for one of the
bot's messages. Times are per conversation, not per message. Users are numbered by first appearance.
"""

from __future__ import annotations

from datetime import UTC, datetime

from comperdial.core.files import read_json
from comperdial.data.continuations import Conversation, Message, conversation_tables, merged
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

_SENDERS = ("participant1", "participant2")


def read(dataset: str, files: Files) -> Tables:
    """Read conversation files of any role."""
    scales = {"turn": (0, 1), "dialogue": (1, 5)}
    return conversation_tables(dataset, files, conversations(dataset, files), scales)


def conversations(dataset: str, files: Files) -> list[Conversation]:
    """Return the conversations in which both sides wrote something, by start time."""
    records = [
        (datetime.fromisoformat(record["start_time"]).replace(tzinfo=UTC).timestamp(), record)
        for path in files.values()
        for record in read_json(path)
    ]
    records.sort(key=lambda record: record[0])
    result: list[Conversation] = []
    numbers: dict[str, str] = {}
    for began, record in records:
        utterances = merged(
            Message(message["sender"], message["text"], rating=_mark(message["evaluation_score"]))
            for message in record["dialog"]
        )
        if {utterance.speaker for utterance in utterances} != set(_SENDERS):
            continue
        user, bot = sorted(_SENDERS, key=lambda side: record[f"{side}_id"]["class"] == "Bot")
        name, number = record[f"{user}_id"]["user_id"], base.numbered(dataset, len(result) + 1)
        users, systems = {user: numbers.setdefault(name, str(len(numbers) + 1))}, {bot: record[f"{bot}_id"]["user_id"]}
        profiles = {user: tuple(filter(str.strip, record["user_profile"]))}
        profiles[bot] = tuple(filter(str.strip, record["bot_profile"]))
        began, rating = began - records[0][0], _mark(record["eval_score"])
        result.append(Conversation(number, began, utterances, users, systems | {user: "person"}, profiles, rating))
    return result


def _mark(value: str | float | None) -> float | None:
    """Return a rating as a number; None if the user gave none."""
    return None if value in (None, "") else float(value)
