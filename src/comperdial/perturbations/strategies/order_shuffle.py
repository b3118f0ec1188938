"""The utterances come in another order."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Dialogue, DialogueStrategy
from comperdial.perturbations.pool import Pool

_TRIES = 20


class OrderShuffle(DialogueStrategy):
    """All utterances change places, as in the recorded suite: the speakers keep their turns, the texts move.

    Where the others' utterances are fixed, the chatbot's change places among themselves.
    """

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts in their new places."""
        texts = [line.text for line in dialogue.lines]
        places = dialogue.movable
        if len({texts[place] for place in places}) < 2:
            return None
        for _ in range(_TRIES):
            shuffled = list(texts)
            for place, source in zip(places, random.permutation(places), strict=True):
                shuffled[place] = texts[source]
            if shuffled != texts:
                return shuffled
        return None
