"""Rates by rules, without a model: the same answer to the same prompt, on any machine.

Served in process through the same client and from the same prompt text as any model. Its ratings are no language
model's: they stand on the features in ``_rules_scoring.py``, ``_rules_dialogue.py`` and ``_rules_conversation.py``,
which know words, not meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import httpx2

from comperdial.judges.base import Completion, Message
from comperdial.judges.services._chat import ChatTransport
from comperdial.judges.services._rules_conversation import conversation_rationale, judge_conversation
from comperdial.judges.services._rules_dialogue import dialogue_rationale, judge_dialogue, tenth
from comperdial.judges.services._rules_reading import Request, UnreadableError, count_tokens, read
from comperdial.judges.services._rules_scoring import judge, rationale
from comperdial.judges.services.base import Service

VERSION = 1
"""Goes up with every change that can change an answer."""
MODEL = f"rules-{VERSION}"


class Rules(Service):
    """The rule-based judge."""

    name: ClassVar[str] = "rules"
    deterministic: ClassVar[bool] = True

    def identity(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": VERSION}

    def unavailable(self) -> str | None:
        """Return None: rules can be had anywhere."""
        return None

    def transport(self) -> httpx2.AsyncBaseTransport:
        """Return the endpoint in this process."""
        return ChatTransport(lambda messages, body: respond(messages))


def respond(messages: Sequence[Message]) -> Completion:
    """Answer as a chat model would, with words and marks counted as tokens."""
    prompt = "\n".join(message["content"] for message in messages)
    try:
        request = read(prompt)
        answer = fill_in(request)
    except UnreadableError as error:
        answer = f"This prompt cannot be rated: {error}."
        return Completion(answer, "stop", count_tokens(prompt), count_tokens(answer), MODEL)
    return Completion(answer, "stop", request.tokens, count_tokens(answer), MODEL)


def decide(request: Request) -> dict[str, float]:
    """Return the ratings asked for, on the scale asked for, by name in lower case; those that the rules know.

    Raises
    ------
    UnreadableError
        When the rules know none of the dimensions.
    """
    return _decide(request)[0]


def fill_in(request: Request) -> str:
    """Return the answer in the form asked for.

    A dimension that the rules do not know is left out of the answer, never guessed.

    Raises
    ------
    UnreadableError
        When the rules know none of the dimensions.
    """
    ratings, why = _decide(request)
    if len(request.form) == 1:
        answer = f"{next(iter(ratings.values())):g}"
    else:
        answer = "\n".join(f"{name} - {ratings[name.lower()]:g}" for name in request.form if name.lower() in ratings)
    return f"{answer}\nRationale: {why}" if request.rationale else answer


def _decide(request: Request) -> tuple[dict[str, float], str]:
    names = [name.lower() for name in request.form]
    if request.sections.get("responses"):
        found = judge_dialogue(request)
        ratings = {name: value for name, value in found.ratings.items() if name in names}
        why = dialogue_rationale(found) if request.rationale else ""
    elif request.sections.get("conversation") and request.one("response") is None:
        heard = judge_conversation(request.sections["conversation"])
        ratings = {
            name: tenth(request.low + (heard.ratings[name] - 1) / 4 * (request.high - request.low))
            for name in names
            if name in heard.ratings
        }
        why = conversation_rationale(heard) if request.rationale else ""
    else:
        judged = judge(request)
        ratings = {
            name: _half(judged.ratings[name], request.low, request.high) for name in names if name in judged.ratings
        }
        why = rationale(judged, names) if request.rationale else ""
    if not ratings:
        raise UnreadableError(f"the rules know nothing about {', '.join(names)}")
    return ratings, why


def _half(rating: float, low: int, high: int) -> float:
    """Return a rating from 1 to 5 on another scale, rounded to halves, upwards between two."""
    value = low + (rating - 1) / 4 * (high - low)
    return math.floor(round(value * 2, 6) + 0.5) / 2
