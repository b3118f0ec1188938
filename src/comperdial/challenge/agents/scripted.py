"""A stand-in for a strong model: answers that somebody wrote for the very context, where it finds one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, chance, fraction, one_of, pick
from comperdial.challenge.agents._corpus import read_records
from comperdial.challenge.agents._persona import template_answer
from comperdial.challenge.agents._text import last_utterance, normalised

STYLES = ("concise", "verbose")


class ScriptedAgent(SingleAgent):
    """Answer from a bank of responses, looked up by A's last utterance; else from one persona sentence.

    Parameters
    ----------
    bank
        JSONL file of {"last_utterance", "style", "response"}. Several responses to one utterance are equally likely.
    strength
        Probability of using the bank: higher is better. An utterance that is not in it never gets an answer from it.
    style
        Which of the bank's responses are used, "concise" or "verbose".
    """

    def __init__(self, *, bank: str, strength: float = 0.8, style: str = "concise", seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.strength = fraction(self, "strength", strength)
        self.style = one_of(self, "style", style, STYLES)
        self._responses = defaultdict(list)
        for record in read_records(bank, ("last_utterance", "style", "response")):
            if record["style"] == self.style:
                self._responses[normalised(record["last_utterance"])].append(record["response"])

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a response of the bank, or a persona sentence made into an answer."""
        written = self._responses.get(normalised(last_utterance(conversation)))
        if chance(rng, self.strength) and written:
            return pick(rng, written)
        return template_answer(conversation, rng, relevance=0.8, question=0.3)
