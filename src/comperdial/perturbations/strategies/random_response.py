"""The response gives way to one of another dialogue, or to an utterance of the dialogue's own history."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import same

_FROM_HISTORY = 0.25


class RandomResponse(TurnStrategy):
    """A response of another dialogue in three of four cases, else an utterance of the history."""

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the other text."""
        said = [line.text for line in turn.history if not same(line.text, turn.response)]
        if said and random.random() < _FROM_HISTORY:
            return said[random.integers(len(said))]
        return pool.elsewhere(turn.dialogue_id, random, than=turn.response, responses=True)
