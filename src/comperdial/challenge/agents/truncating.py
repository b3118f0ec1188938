"""An agent that breaks off in the middle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import fraction
from comperdial.challenge.agents._wrap import WrappingAgent


class TruncatingAgent(WrappingAgent):
    """Cut the base's response after a fraction of its words, and at least one.

    Parameters
    ----------
    keep
        Fraction of the words that stay: higher is better.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self, *, base: str, keep: float = 0.5, options: Mapping[str, object] | None = None, seed: int = 0
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.keep = fraction(self, "keep", keep)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the beginning of the base's response."""
        said = self.base_answer(conversation).split()
        return " ".join(said[: max(1, round(self.keep * len(said)))])
