"""Each chatbot utterance first quotes a part of the other speaker's."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Dialogue, DialogueStrategy, Line, rewrite
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import capitalised, dressed, join, sentences, split

_FRAMES = (
    "You said {}.",
    "So you say {}.",
    "{}, you say.",
    "Ah, {}.",
    "As you said, {}.",
    "{}, I heard you.",
)
_MARKS = ".!?;,…"
_QUOTES = '"“”'
_MOST_WORDS = 12


class RepeatingOthers(DialogueStrategy):
    """One sentence, of at most twelve words, of what the other just said, in quotes, stands before the utterance."""

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts, the chatbot's with the quotes."""

        def new(place: int, line: Line) -> str:
            if place == 0 or dialogue.lines[place - 1].speaker == line.speaker:
                return line.text
            groups = [
                group for group in sentences(split(dialogue.lines[place - 1].text)) if any(p.is_word for p in group)
            ]
            if not groups:
                return line.text
            part = [piece for piece in groups[random.integers(len(groups))] if piece.text not in _QUOTES]
            words = [place for place, piece in enumerate(part) if piece.is_word][:_MOST_WORDS]
            quote = join(part[: words[-1] + 1] if len(words) == _MOST_WORDS else part).strip(_MARKS + " ")
            frame = dressed(_FRAMES[random.integers(len(_FRAMES))], line.text)
            opening = capitalised(frame.format('"' + quote + '"'), line.text)
            return f"{opening} {line.text.strip()}"

        return rewrite(dialogue, new)
