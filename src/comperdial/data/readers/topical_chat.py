"""Topical-Chat (Gopalakrishnan et al. 2019): human conversations in which the partner rated each message.

``turn_rating`` is by the partner (upstream's README), from Poor (1) to Excellent (5). The files do not identify agents, so each
conversation has its own users. A number of turns was required, so continuing carries no information.
"""

from __future__ import annotations

from comperdial.core.files import read_json
from comperdial.data.continuations import Conversation, Message, conversation_tables, merged
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

RATINGS = {"Poor": 1.0, "Not Good": 2.0, "Passable": 3.0, "Good": 4.0, "Excellent": 5.0, "": None}


def read(dataset: str, files: Files) -> Tables:
    """Read conversation files of any role."""
    return conversation_tables(dataset, files, conversations(dataset, files), {"turn": (1, 5)})


def conversations(dataset: str, files: Files) -> list[Conversation]:
    """Return the conversations of two agents in file order, assumed to be chronological."""
    result: list[Conversation] = []
    for record in (record for path in files.values() for record in read_json(path).values()):
        messages = [Message(m["agent"], m["message"], rating=RATINGS[m["turn_rating"]]) for m in record["content"]]
        agents = sorted({message.speaker for message in messages})
        if len(agents) == 2:
            number, systems = len(result) + 1, dict.fromkeys(agents, "person")
            users = {agent: f"{number}-{place}" for place, agent in enumerate(agents, start=1)}
            name = base.numbered(dataset, number)
            result.append(Conversation(name, float(number - 1), merged(messages), users, systems))
    return result
