"""Echo: what A has just said, or part of it."""

from __future__ import annotations

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, fraction
from comperdial.challenge.agents._text import last_utterance


class EchoAgent(SingleAgent):
    """Repeat a stretch of the last utterance, taken at a random place.

    Parameters
    ----------
    share
        Fraction of the words that are repeated. Higher is better formed and shares more words with the context, which
        deceives metrics of overlap; to a person every echo is a bad answer.
    """

    def __init__(self, *, share: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.share = fraction(self, "share", share)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a stretch of at least one word."""
        heard = last_utterance(conversation).split()
        length = max(1, round(self.share * len(heard)))
        start = int(rng.integers(max(1, len(heard) - length + 1)))
        return " ".join(heard[start : start + length])
