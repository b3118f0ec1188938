"""Each chatbot utterance gives way to a generic one."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Dialogue, DialogueStrategy, Line, rewrite
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.strategies.dullness import generic
from comperdial.perturbations.text import dressed


class GenericUtterances(DialogueStrategy):
    """Generic answers to questions, generic remarks else; none twice while there is another."""

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts, the chatbot's generic."""
        used: set[str] = set()

        def new(place: int, line: Line) -> str:
            last = dialogue.lines[place - 1].text if place else None
            text = generic(last, random, frozenset(used))
            used.add(text)
            return dressed(text, line.text)

        return rewrite(dialogue, new)
