"""A few words in a row are said several times."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import Piece, join, split

_MOST_WORDS = 4
_TIMES = (2, 5)
_ENDS = frozenset(".!?…")


class Repetition(TurnStrategy):
    """One to four words between two marks are said three to six times in all."""

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the response with the repetition."""
        pieces = split(turn.response)
        starts = [place for place, piece in enumerate(pieces) if piece.is_word]
        if not starts:
            return None
        start = starts[random.integers(len(starts))]
        end = start + 1
        length = random.integers(1, _MOST_WORDS + 1)
        while end < len(pieces) and _goes_on(pieces[end]) and _words(pieces[start : end + 1]) <= length:
            end += 1
        span = pieces[start:end]
        again = [Piece(piece.gap, piece.text) for piece in span]
        again[0].gap = " "
        if start == 0 or pieces[start - 1].text in _ENDS:
            again[0].text = _inside(again[0].text)
        times = int(random.integers(_TIMES[0], _TIMES[1] + 1))
        return join([*pieces[:end], *again * times, *pieces[end:]])


def _goes_on(piece: Piece) -> bool:
    return piece.is_word or piece.low == "n't" or (piece.low[0] == "'" and len(piece.low) > 1)


def _words(pieces: list[Piece]) -> int:
    return sum(piece.is_word for piece in pieces)


def _inside(word: str) -> str:
    """Return a sentence's first word as it stands inside one."""
    return word if word == "I" or not word.istitle() else word.lower()
