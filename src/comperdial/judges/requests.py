"""A request to a judge, its answer, and the ways in which a call can fail."""

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
    """Return JSON that is the same for the same content: sorted keys, no spaces, characters as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True)
class Request:
    """One question to a judge."""

    family: str  # the hash of what requests of one judge, model and prompt share
    messages: str  # the chat, as JSON
    sample: int = 0  # numbers the answers if several to the same chat are wanted

    @cached_property
    def key(self) -> str:
        """Return 32 hexadecimal digits: the same request has the same key, and is answered once."""
        return digest(f"{self.family}\0{self.messages}\0{self.sample}")[:32]

    @property
    def chat(self) -> list[Message]:
        """Return the messages."""
        chat: list[Message] = json.loads(self.messages)
        return chat


@dataclass(frozen=True)
class Answer:
    """An answer, or why the service refuses a request for good."""

    text: str  # the raw answer; the reason of a refusal
    finish: str | None = None  # why it ended, in the service's words: ``stop``, ``length``, …
    input_tokens: int | None = None  # as the service counted them
    output_tokens: int | None = None
    model: str | None = None  # the version that the service reports
    logprobs: Mapping[str, float] | None = None  # of the answer's first token by token, or of each label
    cost: float | None = None  # US dollars

    @property
    def refused(self) -> bool:
        """Return whether the service refused the request."""
        return self.finish == REFUSED

    @property
    def unfinished(self) -> str | None:
        """Return why an answer is not whole; None if it is, or if it is not known."""
        if self.refused:
            return f"refused: {self.text}"
        word = re.sub(r"[\s.-]+", "_", (self.finish or "").strip().lower()).removeprefix("finishreason_")
        return next((why for why, words in _FINISHES.items() if re.fullmatch(words, word)), None)


class JudgeError(ComperdialError):
    """A judge cannot be asked, or a run cannot go on."""


class MissingAnswersError(JudgeError):
    """Answers are missing, and nothing may be asked."""


class InterruptedRunError(JudgeError):
    """A run was ended by Ctrl-C or SIGTERM."""

    status = 130


class RefusedError(Exception):
    """The service does not answer this request, and says that it is the request's fault."""


class TransientError(Exception):
    """A call failed, and another attempt may succeed.

    ``retry_after`` is how many seconds the service asks to wait. A ``charged`` call may have been billed all the same; if it
    is ``unreachable``, nothing listens at the address.
    """

    def __init__(
        self, problem: str, *, retry_after: float | None = None, charged: bool = False, unreachable: bool = False
    ) -> None:
        super().__init__(problem)
        self.retry_after, self.charged, self.unreachable = retry_after, charged, unreachable
