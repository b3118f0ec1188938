"""The response gives way to a generic one, or to what the speaker said before."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations._generic import generic
from comperdial.perturbations._text import dressed, same
from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool

_OWN = 1 / 3


class Dullness(TurnStrategy):
    """A generic answer to a question, a generic remark else; in a third of cases the speaker's own earlier words."""

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the dull response."""
        own = [text for text in turn.own if not same(text, turn.response)]
        if own and random.random() < _OWN:
            return own[random.integers(len(own))]
        last = turn.history[-1].text if turn.history else None
        return dressed(generic(last, random), turn.response)
