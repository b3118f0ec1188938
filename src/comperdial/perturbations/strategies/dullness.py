"""The response gives way to a generic one, or to what the speaker said before."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import dressed, same

_OWN = 1 / 3
_REMARKS = (
    "I see.",
    "That's nice.",
    "Oh, okay.",
    "That sounds good.",
    "Good to know.",
    "Right, fair enough.",
    "That makes sense.",
    "Well, that's life.",
    "Sure, why not.",
    "Things are like that sometimes.",
    "That's one way to put it.",
    "Fine by me.",
)
_ANSWERS = (
    "I don't know.",
    "Maybe.",
    "It depends.",
    "I'm not really sure.",
    "Hard to say.",
    "I guess so.",
    "Could be, I never thought about it.",
    "More or less.",
    "Not much to say about that.",
    "A bit of everything, I suppose.",
)


class Dullness(TurnStrategy):
    """A generic answer to a question, a generic remark else; in a third of cases the speaker's own earlier words."""

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the dull response."""
        own = [text for text in turn.own if not same(text, turn.response)]
        if own and random.random() < _OWN:
            return own[random.integers(len(own))]
        last = turn.history[-1].text if turn.history else None
        return dressed(generic(last, random), turn.response)


def generic(last: str | None, random: np.random.Generator, leave_out: frozenset[str] = frozenset()) -> str:
    """Return a generic answer when the last utterance asks something, else a generic remark.

    What stands in ``leave_out`` is not taken while there is anything else.
    """
    texts = _ANSWERS if last is not None and last.rstrip().endswith("?") else _REMARKS
    fresh = [text for text in texts if text not in leave_out] or list(texts)
    return fresh[random.integers(len(fresh))]
