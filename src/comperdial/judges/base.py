"""What services, ledger, asker and parser hand each other: plain data and faults, no input or output."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from comperdial.core.errors import ComperdialError

Message = Mapping[str, str]
"""One chat message: ``role`` and ``content``."""


def canonical(value: Any) -> str:  # noqa: ANN401
    """Return JSON that is the same for the same content: sorted keys, no spaces, characters as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Family:
    """Requests that differ in their messages and sample only: one judge, one model, one prompt.

    Attributes
    ----------
    judge
        The judge's name in ``params.yaml``.
    service
        The module of :mod:`comperdial.judges.services` that answers; ``recorded`` for answers made elsewhere.
    model
        The model that is asked for.
    parameters
        Everything else that an answer depends on: temperature, max_tokens, the version of a service of ours, ….
    prompt
        The prompt's name.
    prompt_hash
        sha256 of the prompt's template, in hexadecimal.
    """

    judge: str
    service: str
    model: str
    parameters: Mapping[str, Any]
    prompt: str
    prompt_hash: str

    @property
    def id(self) -> str:
        """Return sixteen hexadecimal digits of what the answers depend on."""
        return hashlib.sha256(canonical(self.content).encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def content(self) -> dict[str, Any]:
        """Return what the answers depend on. The names of prompt and service are not part of it."""
        return {
            "judge": self.judge,
            "model": self.model,
            # 1.0 and 1 are the same to a service, and must not be paid for twice.
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "prompt_hash": self.prompt_hash,
        }


def _plain(value: Any) -> Any:  # noqa: ANN401
    return int(value) if isinstance(value, float) and value.is_integer() else value


def encode_messages(messages: Sequence[Message]) -> str:
    """Return messages as the one text that the ledger keeps and keys."""
    return canonical([dict(message) for message in messages])


def key(family_id: str, messages: str, sample: int) -> str:
    """Return the key of a request: 32 hexadecimal digits of family, messages (encoded) and sample index."""
    return hashlib.sha256(f"{family_id}\0{messages}\0{sample}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


@dataclass(frozen=True)
class Completion:
    """What a service answered to one request.

    Attributes
    ----------
    text
        The raw answer.
    finish
        Why it ended: ``stop``, ``length``, …
    input_tokens, output_tokens
        As the service counted them.
    model
        The model version that the service reports.
    logprobs
        The most probable beginnings of the answer with their log probabilities, where they were asked for: first tokens, or
        the word that the first ones make together. One that ends in a space is known to be the whole word.
    """

    text: str
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    logprobs: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Answer:
    """One record of the ledger: a request and its raw answer.

    Attributes
    ----------
    messages
        The request's messages, encoded by :func:`encode_messages`.
    sample
        The sample index of the request.
    completion
        The answer.
    cost
        US dollars, at the price of the day; None where no price is known.
    latency
        Milliseconds from sending to the last byte, of the try that succeeded.
    time
        When it came: seconds since 1970, UTC; None where it is not known.
    origin
        Where an answer made elsewhere comes from (repository, commit and file); None for our own.
    """

    messages: str
    sample: int
    completion: Completion
    cost: float | None = None
    latency: int | None = None
    time: int | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Form:
    """What an answer must hold.

    Attributes
    ----------
    dimensions
        The names of the ratings asked for, in order, lower case: ``overall``, ``final score``.
    main
        The one without which an answer is a failure.
    low, high
        The scale.
    aliases
        Other names a model may write for a dimension.
    words
        What the prompt calls a step of the scale (``somewhat``: 2), in lower case: an answer may be that word alone.
    """

    dimensions: tuple[str, ...]
    main: str
    low: float = 1.0
    high: float = 5.0
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    words: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Parsed:
    """What was found in an answer: ratings within the scale, or why there is none; and the explanation."""

    values: Mapping[str, float]
    failure: str | None = None
    rationale: str | None = None


CUT = "cut by the token limit"
WITHHELD = "withheld by the service"
BROKEN = "broken off by the service"
DENIED = "refused by the model"
"""Failures: why an answer is not whole."""

_FINISHES = {
    CUT: r".*length.*|max_.*|truncated|.*token_?limit.*|.*context_window.*|limit|error_limit|incomplete",
    WITHHELD: r".*content_?filter.*|.*safety|recitation|blocklist|prohibited_content|spii|guardrail.*|error_toxic",
    DENIED: r"refusal",
    BROKEN: r"error|abort(ed)?|cancel(l?ed)?|time_?(limit|out)|malformed_.*|insufficient_.*",
}


def unfinished(finish: str | None) -> str | None:
    """Say why an answer is not whole, by the word that its service has for its end; None if it is, or if nobody knows."""
    word = re.sub(r"[\s.-]+", "_", (finish or "").strip().lower()).removeprefix("finishreason_")
    return next((why for why, words in _FINISHES.items() if re.fullmatch(words, word)), None)


DECLINED = "refusal"
"""The ``finish`` of an answer in which the model itself refuses; a fresh sample may not."""
REFUSED = "refused"
"""The ``finish`` of an answer that says that the service refuses the request for good; its text says why."""


def refusal(messages: str, sample: int, reason: str, when: int | None) -> Answer:
    """Return the answer that says that a request was refused."""
    return Answer(messages, sample, Completion(reason, finish=REFUSED), cost=0.0, time=when)


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


FOR_GOOD = frozenset({"400", "413", "422", "not Unicode"})
"""Kinds of refusals that may lie in a request's content. Whether one does, other requests of its family tell."""


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
