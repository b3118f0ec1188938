"""An agent that answers something that was not asked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import chance, fraction, pick
from comperdial.challenge.agents._corpus import read_pairs
from comperdial.challenge.agents._wrap import WrappingAgent


class OfftopicAgent(WrappingAgent):
    """Answer with the base's response to another context, taken from a corpus.

    Parameters
    ----------
    corpus
        JSONL file of {"context", "response"}; the contexts are used.
    rate
        Probability of leaving the topic: higher is worse.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self,
        *,
        base: str,
        corpus: str,
        rate: float = 0.5,
        options: Mapping[str, object] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.rate = fraction(self, "rate", rate)
        self._contexts = [pair.context for pair in read_pairs(corpus)]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response to the conversation or to another one."""
        if not chance(rng, self.rate):
            return self.base_answer(conversation)
        other = [{"persona_id": "A", "text": pick(rng, self._contexts)}]
        return self.base_answer({**conversation, "dialogue": other})
