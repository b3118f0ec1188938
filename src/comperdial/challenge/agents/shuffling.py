"""An agent that gets its words in the wrong order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import chance, fraction
from comperdial.challenge.agents._wrap import WrappingAgent


class ShufflingAgent(WrappingAgent):
    """Swap words of the base's response.

    Parameters
    ----------
    rate
        Probability, for each word, of changing places with another one: higher is worse.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self, *, base: str, rate: float = 0.3, options: Mapping[str, object] | None = None, seed: int = 0
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.rate = fraction(self, "rate", rate)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's words, some of them out of place."""
        said = self.base_answer(conversation).split()
        for i in range(len(said)):
            j = int(rng.integers(len(said)))
            if chance(rng, self.rate):
                said[i], said[j] = said[j], said[i]
        return " ".join(said)
