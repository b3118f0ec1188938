"""Each chatbot utterance says its last part again."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Dialogue, DialogueStrategy, Line, rewrite
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import join, split

_SHARE = (0.3, 1.0)


class Duplication(DialogueStrategy):
    """The last words, from three tenths of an utterance to all of it, are appended to it once more."""

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts, the chatbot's with their ends twice."""

        def new(_place: int, line: Line) -> str:
            pieces = split(line.text)
            starts = [place for place, piece in enumerate(pieces) if piece.is_word or piece.text[0].isdigit()]
            share = random.uniform(*_SHARE)
            if not starts:
                return f"{line.text.strip()} {line.text.strip()}"
            start = starts[len(starts) - max(1, round(share * len(starts)))]
            return f"{line.text.strip()} {join(pieces[start:])}"

        return rewrite(dialogue, new)
