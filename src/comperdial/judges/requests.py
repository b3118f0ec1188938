"""A request to a judge, a service's answer to it, and the ways in which a call can fail."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from comperdial.core.errors import ComperdialError

Message = Mapping[str, str]
"""One message of a chat: ``role`` and ``content``."""


def canonical(value: Any) -> str:  # noqa: ANN401
    """Return JSON that is the same for the same content: sorted keys, no spaces, characters as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True)
class Family:
    """What requests of one judge, model and prompt share: all that an answer depends on, except messages and sample.

    Attributes
    ----------
    judge, service, model
        As ``params.yaml`` has them.
    parameters
        What is sent with a request (temperature, max_tokens, …), and what else an answer depends on, such as the
        checksum of a local model.
    prompt, prompt_hash
        The prompt's name, and the sha256 of its template.
    """

    judge: str
    service: str
    model: str
    parameters: Mapping[str, Any]
    prompt: str
    prompt_hash: str

    @cached_property
    def id(self) -> str:
        """Return sixteen hexadecimal digits. The names of prompt and service do not count."""
        # 1.0 and 1 are the same to a service, and must not be paid for twice.
        plain = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in self.parameters.items()
        }
        content = {"judge": self.judge, "model": self.model, "parameters": plain, "prompt_hash": self.prompt_hash}
        return _digest(canonical(content))[:16]


def encode(messages: Sequence[Message]) -> str:
    """Return messages as the one text that is kept and hashed."""
    return canonical([dict(message) for message in messages])


def request_key(family: str, messages: str, sample: int) -> str:
    """Return the key of a request: 32 hexadecimal digits."""
    return _digest(f"{family}\0{messages}\0{sample}")[:32]


@dataclass(frozen=True)
class Request:
    """One question to a judge; ``sample`` numbers the answers where several to the same chat are wanted."""

    family: Family
    messages: str
    sample: int = 0

    @cached_property
    def key(self) -> str:
        """Return the request's name among the answers: the same request has the same key, and is answered once."""
        return request_key(self.family.id, self.messages, self.sample)

    @property
    def chat(self) -> list[Message]:
        """Return the messages."""
        chat: list[Message] = json.loads(self.messages)
        return chat


@dataclass(frozen=True)
class Answer:
    """An answer, or why the service refuses a request for good.

    Attributes
    ----------
    text
        The raw answer; the reason of a refusal.
    finish
        Why it ended, as the service says: ``stop``, ``length``, …; :data:`REFUSED` of a refusal.
    input_tokens, output_tokens
        As the service counted them; None where it did not.
    model
        The version that the service reports.
    logprobs
        Log probabilities of the answer's first token by token, or of each label, where they were asked for.
    cost
        US dollars.
    """

    text: str
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    logprobs: Mapping[str, float] | None = None
    cost: float | None = None

    @property
    def refused(self) -> bool:
        """Return whether the service refused the request."""
        return self.finish == REFUSED


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


def unfinished(finish: str | None) -> str | None:
    """Say why an answer is not whole, by the word that its service has for its end; None if it is, or if it is not known."""
    word = re.sub(r"[\s.-]+", "_", (finish or "").strip().lower()).removeprefix("finishreason_")
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

    Attributes
    ----------
    retry_after
        Seconds that the service asks to wait; None if it does not say.
    charged
        Whether the call may have been billed all the same.
    unreachable
        Whether nothing listens at the address.
    """

    def __init__(
        self, problem: str, *, retry_after: float | None = None, charged: bool = False, unreachable: bool = False
    ) -> None:
        super().__init__(problem)
        self.retry_after = retry_after
        self.charged = charged
        self.unreachable = unreachable
