"""One utterance gives way to one of another dialogue."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Dialogue, DialogueStrategy
from comperdial.perturbations.pool import Pool


class UtteranceReplacement(DialogueStrategy):
    """Any utterance but the first, of either speaker; where the others' are fixed, one of the chatbot's."""

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts with one from elsewhere."""
        texts = [line.text for line in dialogue.lines]
        places = [place for place in dialogue.movable if place > 0]
        place = places[random.integers(len(places))] if places else 0
        new = pool.elsewhere(dialogue.dialogue_id, random, than=texts[place])
        if new is None or not places:
            return None
        texts[place] = new
        return texts
