"""ConvAI2's conversations between volunteers and bots (DeepPavlov/convai): the user's marks and thumbs beside them.

``eval_score`` is the user's mark of the whole conversation, 1 to 5, ``evaluation_score`` a thumb up (1) or down (0) for one
message of the bot's. Times are those of the conversation, not of messages. Users are numbered as they first appear.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.continuations import Conversation, ConversationReader, Message, merged
from comperdial.data.readers.base import get

_SENDERS = ("participant1", "participant2")


class ConvAI2(ConversationReader):
    """Reader of files of conversations, whatever their roles; only those in which both sides said something count."""

    scales: ClassVar[Mapping[str, tuple[int, int]]] = {"turn": (0, 1), "dialogue": (1, 5)}

    def conversations(self) -> list[Conversation]:
        """Return the conversations of all files in the order of their beginning."""
        records: list[tuple[float, str, dict[str, Any]]] = []
        for path in self.files.values():
            content = read_json(path)
            if not isinstance(content, list) or not content:
                raise SchemaError("no list of conversations", where=str(path), expected="a JSON list of conversations")
            for number, record in enumerate(content, start=1):
                where = f"{path}, item {number}"
                records.append((_seconds(get(record, "start_time", str, where), where), where, record))
        records.sort(key=lambda record: record[0])
        found: list[Conversation] = []
        numbers: dict[str, str] = {}
        for began, where, record in records:
            said = merged(_messages(record, where))
            classes = {side: get(get(record, f"{side}_id", dict, where), "class", str, where) for side in _SENDERS}
            if sorted(classes.values()) != ["Bot", "User"]:
                raise SchemaError(f"speakers are {classes}", where=where, expected="a User and a Bot")
            if len({utterance.speaker for utterance in said}) < len(_SENDERS):
                continue
            user, bot = sorted(_SENDERS, key=lambda side: classes[side] == "Bot")
            names = {side: get(record[f"{side}_id"], "user_id", str, where) for side in _SENDERS}
            user_id = numbers.setdefault(names[user], str(len(numbers) + 1))
            found.append(
                Conversation(
                    f"{self.dataset}-{len(found) + 1:04d}",
                    began - records[0][0],
                    said,
                    users={user: user_id},
                    systems={bot: names[bot], user: "person"},
                    profiles={
                        side: tuple(filter(str.strip, get(record, f"{kind}_profile", list, where)))
                        for side, kind in ((user, "user"), (bot, "bot"))
                    },
                    rating=_mark(record, "eval_score", range(1, 6), where),
                )
            )
        return found


def _messages(record: dict[str, Any], where: str) -> list[Message]:
    found = []
    for place, message in enumerate(get(record, "dialog", list, where), start=1):
        at = f"{where}, message {place}"
        sender = get(message, "sender", str, at)
        if sender not in _SENDERS:
            raise SchemaError("sender is neither speaker", where=at, expected=" or ".join(_SENDERS))
        rating = _mark(message, "evaluation_score", range(2), at)
        found.append(Message(sender, get(message, "text", str, at), rating=rating))
    return found


def _mark(record: dict[str, Any], name: str, known: range, where: str) -> float | None:
    """Return a mark as a number; None where the user gave none."""
    value = record.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isdigit() or int(value) not in known:
        raise SchemaError(f"{name} is {value!r}", where=where, expected=f"{known[0]} to {known[-1]}, or nothing")
    return float(value)


def _seconds(text: str, where: str) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise SchemaError(f"start_time is {text!r}", where=where, expected="a date and a time") from error
