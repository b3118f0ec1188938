"""What came back from a service: an answer, or a fault of one of three kinds. Knows the protocol, and no network."""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Mapping
from typing import Any

from comperdial.core.errors import ComperdialError
from comperdial.judges.base import Completion

REFUSED = "refused"
"""How an answer of the ledger ended that is none: the service refuses the request for good, and the text says why."""

FOR_GOOD = frozenset({"400", "413", "422", "not Unicode"})
"""Kinds of refusals that may lie in a request's content. Whether one does, other requests of its family tell."""

SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes of errors that no request is to blame for, whatever their status."""


class Transient(Exception):
    """A fault that another try may not meet.

    Attributes
    ----------
    kind
        What it is counted as: ``429``, ``500``, ``timed out``, ``cut``, ``not reached``, ``invalid answer``.
    after
        Seconds that the service asks to wait; None if it does not say.
    charged
        Whether the call may have been charged all the same.
    """

    def __init__(self, kind: str, problem: str, *, after: float | None = None, charged: bool = False) -> None:
        super().__init__(problem)
        self.kind = kind
        self.after = after
        self.charged = charged


class Refused(Exception):
    """A request that this service will not answer, however often it is asked.

    Attributes
    ----------
    kind
        What it is counted as: its status.
    """

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


class JudgeError(ComperdialError):
    """A judge cannot go on: the key is wrong, the quota is used up, there is no such model, …."""


class InterruptedRunError(JudgeError):
    """A run was ended by Ctrl-C or SIGTERM."""

    status = 130


def read_completion(content: bytes) -> Completion:
    """Return what an answer says.

    Raises
    ------
    Transient
        When it does not have the shape of a chat completion.
    """
    try:
        body = json.loads(content)
    except ValueError:
        raise _invalid("it is not JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        said = read_error(body)
        raise _invalid(f"it says {said!r}" if said else "it has no list of choices")
    choice = body["choices"][0] if body["choices"] else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _invalid("it has no message")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        text=_text(message, choice.get("finish_reason")),
        finish=_string(choice.get("finish_reason")),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        model=_string(body.get("model")),
        logprobs=_first_token(choice.get("logprobs")),
    )


def read_codes(body: object) -> set[str]:
    """Return the codes and types that an error body names."""
    if not isinstance(body, dict):
        return set()
    found = {str(body[name]) for name in ("code", "type") if body.get(name) is not None}
    return found | read_codes(body.get("error"))


def read_error(body: object) -> str | None:
    """Return the text of an error body: the protocol's, or one of the shapes that other servers have."""
    if isinstance(body, dict):
        for name in ("message", "error", "detail"):
            value = body.get(name)
            if isinstance(value, str) and value:
                return value
            if isinstance(value, dict):
                return read_error(value)
    return None


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the service asks to wait: ``retry-after-ms``, or ``retry-after`` in either form."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _invalid(reason: str) -> Transient:
    return Transient("invalid answer", f"invalid answer: {reason}", charged=True)


def _text(message: Mapping[str, Any], finish: object) -> str:
    """Return an answer's text; a refusal is one, and so is the nothing that a cut or filtered answer is left with."""
    text = message.get("content")
    if text is None:
        text = message.get("refusal")
    if text is None and finish in ("length", "content_filter"):
        # A model that thinks can use up its tokens before it says anything.
        return ""
    if not isinstance(text, str):
        raise _invalid("its message has no text")
    return _whole(text)


def _whole(text: str) -> str:
    """Return a text with halves of characters, which JSON can hold and no file can, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _string(value: object) -> str | None:
    return _whole(value) if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first_token(logprobs: object) -> dict[str, float] | None:
    """Return the most probable first tokens and their log probabilities, where the answer has them."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    found: dict[str, float] = {}
    for entry in top if isinstance(top, list) else ():
        token, value = (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
        if isinstance(token, str) and isinstance(value, int | float) and math.isfinite(value):
            found.setdefault(_whole(token), float(value))
    return found or None
