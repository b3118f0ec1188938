"""A request to a judge, its answer, and the ways a call can fail."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from comperdial.core.errors import ComperdialError

Message = Mapping[str, str]
"""One message of a chat: ``role`` and ``content``."""

REFUSED = "refused"
"""The ``finish`` of a refusal."""
DECLINED = "refusal"
"""The ``finish`` of an answer in which the model itself refuses; a fresh sample may not."""
CUT = "cut by the token limit"
_FINISHES = {
    CUT: r".*length.*|max_.*|truncated|.*token_?limit.*|.*context_window.*|limit|error_limit|incomplete",
    "withheld by the service": r".*content_?filter.*|.*safety|recitation|blocklist|prohibited_content|spii|guardrail.*",
    "refused by the model": DECLINED,
    "broken off by the service": r"error|abort(ed)?|cancel(l?ed)?|time_?(limit|out)|malformed_.*|insufficient_.*",
}


def canonical(value: Any) -> str:  # noqa: ANN401
    """Return canonical JSON: sorted keys, no spaces, no escaped characters."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    """Return the SHA-256 of a text as hex."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True)
class Request:
    """A request to a judge."""

    family: str  # hash shared by all requests of one judge, model and prompt
    messages: str  # the chat as JSON
    sample: int = 0  # distinguishes several answers to the same chat

    @cached_property
    def key(self) -> str:
        """Return 32 hex digits that identify the request; each key is answered once."""
        return digest(f"{self.family}\0{self.messages}\0{self.sample}")[:32]

    @property
    def chat(self) -> list[Message]:
        """Return the messages."""
        chat: list[Message] = json.loads(self.messages)
        return chat


@dataclass(frozen=True)
class Answer:
    """An answer, or a permanent refusal by the service."""

    text: str  # the raw answer, or the reason for a refusal
    finish: str | None = None  # the service's finish reason: ``stop``, ``length``, …
    input_tokens: int | None = None  # as reported by the service
    output_tokens: int | None = None
    model: str | None = None  # the version reported by the service
    logprobs: Mapping[str, float] | None = None  # of the first token, by token or by label
    cost: float | None = None  # US dollars

    @property
    def refused(self) -> bool:
        """Return whether the service refused the request."""
        return self.finish == REFUSED

    @property
    def unfinished(self) -> str | None:
        """Return why an answer is incomplete; None if it is complete or unknown."""
        if self.refused:
            return f"refused: {self.text}"
        word = re.sub(r"[\s.-]+", "_", (self.finish or "").strip().lower()).removeprefix("finishreason_")
        return next((why for why, words in _FINISHES.items() if re.fullmatch(words, word)), None)


class JudgeError(ComperdialError):
    """A judge cannot be asked, or a run cannot continue."""


class MissingAnswersError(JudgeError):
    """Answers are missing, and the judge may not be asked."""


class InterruptedRunError(JudgeError):
    """A run was stopped by Ctrl-C or SIGTERM."""

    status = 130


class RefusedError(Exception):
    """The service rejects this request as invalid."""


class TransientError(Exception):
    """A call failed, and a retry may succeed.

    ``retry_after`` is the delay in seconds that the service requests. A ``charged`` call may have been billed; ``unreachable``
    means that nothing listens at the address.
    """

    def __init__(
        self, problem: str, *, retry_after: float | None = None, charged: bool = False, unreachable: bool = False
    ) -> None:
        super().__init__(problem)
        self.retry_after, self.charged, self.unreachable = retry_after, charged, unreachable
