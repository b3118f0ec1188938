"""What the simulated agents share: one answer at a time, from one random stream a conversation, and checked options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from comperdial.challenge.agent import Agent, Conversation
from comperdial.core.errors import ConfigError

T = TypeVar("T")

# Said when a kind has come up with nothing, because the challenge counts no empty response.
NOTHING_TO_SAY = "i see."


class SingleAgent(Agent):
    """An agent that answers each conversation by itself, so that its answers cannot depend on the batch."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=whole(self, "seed", seed, least=0))

    def generate_responses(self, test_data: list[Conversation]) -> list[str]:
        """Return one response by persona B for each conversation: lower case, on one line, never empty."""
        return [spoken(self.answer(conversation, self.rng(conversation))) for conversation in test_data]

    @abstractmethod
    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return what persona B says next; all that is random in it comes from ``rng``."""


def spoken(text: str) -> str:
    """Return the text in lower case on one line, or a filler when there is none."""
    return " ".join(text.lower().split()) or NOTHING_TO_SAY


def pick(rng: np.random.Generator, items: Sequence[T]) -> T:
    """Return one of the items, all equally likely."""
    return items[int(rng.integers(len(items)))]


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Return True with a probability; takes one number from ``rng`` whatever the probability."""
    return bool(rng.random() < probability)


def fraction(agent: Agent, name: str, value: object) -> float:
    """Return an option that is a number from 0 to 1, or raise ConfigError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise _wrong(agent, name, value, "a number from 0 to 1")


def whole(agent: Agent, name: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return an option that is a whole number in a range, or raise ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least and (most is None or value <= most):
        return value
    upper = f" to {most}" if most is not None else " up"
    raise _wrong(agent, name, value, f"a whole number from {least}{upper}")


def one_of(agent: Agent, name: str, value: object, known: Sequence[str]) -> str:
    """Return an option that is one of a few words, or raise ConfigError."""
    if isinstance(value, str) and value in known:
        return value
    raise _wrong(agent, name, value, "one of " + ", ".join(known))


def positive(agent: Agent, name: str, value: object) -> float:
    """Return an option that is a number above 0, or raise ConfigError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise _wrong(agent, name, value, "a number above 0")


def _wrong(agent: Agent, name: str, value: object, expected: str) -> ConfigError:
    kind = type(agent).__module__.rpartition(".")[2]
    return ConfigError(f"option {name!r} of agent kind {kind!r} is {value!r}", expected=expected)
