"""Persona templates: one persona sentence made into an answer."""

from __future__ import annotations

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, fraction
from comperdial.challenge.agents._persona import template_answer


class PersonaTemplateAgent(SingleAgent):
    """Put one of B's persona sentences in a frame, such as "i'm a bodyguard, so my days are never boring".

    Parameters
    ----------
    relevance
        Probability of the sentence that fits the last utterance best, rather than any: higher is better.
    question
        Probability of a question back, which keeps the talk going; always asking is tiring.
    """

    def __init__(self, *, relevance: float = 1.0, question: float = 0.3, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.relevance = fraction(self, "relevance", relevance)
        self.question = fraction(self, "question", question)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a framed persona sentence."""
        return template_answer(conversation, rng, relevance=self.relevance, question=self.question)
