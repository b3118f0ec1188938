"""The language model behind the API track, as the runner sees it; agents never call it themselves."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._corpus import read_records
from comperdial.challenge.agents._persona import template_answer
from comperdial.challenge.agents._text import normalised
from comperdial.core.terminal import money

Message = Mapping[str, str]
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Completion:
    """One answer of a language model, with the tokens that it is charged for."""

    text: str
    input_tokens: int
    output_tokens: int


class Api(Protocol):
    """What a language model must offer. The judges' client will be one; tests and the demo have simulated ones."""

    def count(self, messages: Sequence[Message]) -> int:
        """Return how many input tokens the messages cost, without calling."""

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """Answer the messages with at most ``max_tokens`` tokens."""


@contextmanager
def closing(model: Any) -> Iterator[None]:  # noqa: ANN401 - of a service, or None
    """Say in the end what a model of a service cost, and close it; one that cannot be closed costs nothing."""
    try:
        yield
    finally:
        if hasattr(model, "close"):
            kept = f"; {model.known:,} came from the ledger" if getattr(model, "known", 0) else ""
            print(f"the language model's answers cost {money(model.spent, 4)}{kept}")  # noqa: T201
            model.close()


def count_words(text: str) -> int:
    """Count words and marks: the simulated models' tokens. A real model's own tokenizer counts differently."""
    return len(_TOKEN.findall(text))


class SimulatedApi:
    """A language model for the embedded benchmark, which is none: written answers, and persona sentences between them.

    Parameters
    ----------
    bank
        JSONL file of {"last_utterance", "style", "response"}; its concise responses are used.
    strength
        Probability of a written answer where the bank has one; a second call of the same turn has it again.
    seed
        The same seed and messages give the same answer.
    """

    def __init__(self, bank: str | Path, *, strength: float, seed: int) -> None:
        self._strength, self._seed = strength, seed
        records = read_records(str(bank), ("last_utterance", "style", "response"))
        self._bank = {normalised(r["last_utterance"]): r["response"] for r in records if r["style"] == "concise"}

    def count(self, messages: Sequence[Message]) -> int:
        """Count words and marks."""
        return sum(count_words(message["content"]) for message in messages)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """Answer the last message by a user that the bank knows, cut to ``max_tokens`` words and marks."""
        everything = "\n".join(message["content"] for message in messages)
        rng = np.random.default_rng([self._seed, zlib.crc32(everything.encode())])
        said = [message["content"] for message in messages if message["role"] == "user"]
        written = next(
            (self._bank[normalised(text)] for text in reversed(said) if normalised(text) in self._bank), None
        )
        persona = [line[2:] for line in everything.splitlines() if line.startswith("- ")]
        if written is not None and rng.random() < self._strength:
            text = written
        else:
            heard = said[-1] if said else ""
            last: Conversation = {"persona B": persona, "dialogue": [{"persona_id": "A", "text": heard}]}
            text = template_answer(last, rng, relevance=0.8, question=0.3)
        ends = [match.end() for match in _TOKEN.finditer(text)][:max_tokens]
        text = text[: ends[-1]]
        return Completion(text, self.count(messages), count_words(text))
