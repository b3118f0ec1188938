"""Topical-Chat (Gopalakrishnan et al. 2019): conversations between people whose partner rated each message.

``turn_rating`` is the partner's (upstream's README), from Poor (1) to Excellent (5). The files say nothing of who an agent is, so
that each conversation has users of its own; people had to write a number of turns, and whether they went on says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.continuations import Conversation, ConversationReader, Message, merged
from comperdial.data.readers.base import get

RATINGS = {"Poor": 1, "Not Good": 2, "Passable": 3, "Good": 4, "Excellent": 5}


class TopicalChat(ConversationReader):
    """Reader of files of conversations, whatever their roles."""

    scales: ClassVar[Mapping[str, tuple[int, int]]] = {"turn": (1, 5)}

    def conversations(self) -> list[Conversation]:
        """Return the conversations, in the files' order, which stands for time."""
        found: list[Conversation] = []
        for path in self.files.values():
            content = read_json(path)
            if not isinstance(content, dict) or not content:
                raise SchemaError("no conversations", where=str(path), expected="a JSON object of conversations")
            for number, record in enumerate(content.values(), start=1):
                messages = []
                for place, message in enumerate(
                    get(record, "content", list, f"{path}, conversation {number}"), start=1
                ):
                    where = f"{path}, conversation {number}, message {place}"
                    said = get(message, "turn_rating", str, where)
                    if said and said not in RATINGS:
                        raise SchemaError(f"turn_rating is {said!r}", where=where, expected=", ".join(RATINGS))
                    agent, text = get(message, "agent", str, where), get(message, "message", str, where)
                    messages.append(Message(agent, text, rating=float(RATINGS[said]) if said else None))
                agents = sorted({message.speaker for message in messages})
                if len(agents) != 2:
                    continue
                name = f"{self.dataset}-{len(found) + 1:04d}"
                users = {agent: f"{len(found) + 1}-{place}" for place, agent in enumerate(agents, start=1)}
                systems = dict.fromkeys(agents, "person")
                found.append(Conversation(name, float(len(found)), merged(messages), users=users, systems=systems))
        return found
