"""Words of utterances, and views of a conversation."""

from __future__ import annotations

import re

from comperdial.challenge.agent import Conversation

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_STOP_TEXT = """
a about after all also am an and any are aren't as at be been being but by can can't could did didn't do does doesn't
doing don't every for from get go going got had has have haven't he her him his how i i'd i'll i'm i've if in into is
isn't it it's its just kind know like lot lots make many me more most much my no not now of off oh ok on one or our out
over quite really she should so some sound sounds such take than that that's the their them then there they thing things
think this those to too up us very want was wasn't we well were what what's when where which while who why will with
would yeah yes you you'd you'll you're you've your
"""
_STOP = frozenset(_WORD.findall(_STOP_TEXT))


def words(text: str) -> list[str]:
    """Return the words in lower case; a contraction is one word, punctuation is none."""
    return _WORD.findall(text.lower().replace("’", "'"))


def stems(text: str) -> set[str]:
    """Return the content words, each by its first five letters: enough to find "protect" in "protecting"."""
    return {word[:5] for word in words(text) if word not in _STOP}


def normalised(text: str) -> str:
    """Return the words joined by spaces: the key under which an utterance is looked up."""
    return " ".join(words(text))


def sentences(text: str) -> list[str]:
    """Split at full stops, question and exclamation marks, which stay."""
    return [part.strip() for part in re.findall(r"[^.!?]+[.!?]*", text) if part.strip()]


def last_utterance(conversation: Conversation) -> str:
    """Return what A has just said."""
    return conversation["dialogue"][-1]["text"]


def said_by_b(conversation: Conversation) -> list[str]:
    """Return what B has said so far, in order."""
    return [utterance["text"] for utterance in conversation["dialogue"] if utterance["persona_id"] == "B"]
