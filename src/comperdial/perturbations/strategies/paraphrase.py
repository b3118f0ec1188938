"""Words give way to their least common synonym in WordNet."""

from __future__ import annotations

import numpy as np

from comperdial import wordnet
from comperdial.perturbations._generic import STOP_WORDS
from comperdial.perturbations._lexicon import Lexicon, lexicon
from comperdial.perturbations._text import Piece, join, like, split
from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool

_SHARE = 0.5
WORDNET = "3.0"
"""The version of WordNet that must be at hand: another gives other words."""


class Paraphrase(TurnStrategy):
    """Half of the words that have a synonym, and at least one, become it; stop words and names stay."""

    def prepare(self) -> None:
        """Find WordNet."""
        _lexicon()

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the response with rare words."""
        words = _lexicon()
        pieces = split(turn.response)
        names = {place for entity in pool.finder.find(turn.response) for place in range(entity.start, entity.end)}
        new = {}
        for place, piece in enumerate(pieces):
            if piece.is_word and len(piece.text) > 2 and piece.low not in STOP_WORDS and place not in names:
                synonym = words.rarest(piece.low)
                if synonym:
                    new[place] = like(synonym, piece.text)
        if not new:
            return None
        chosen = [place for place in new if random.random() < _SHARE] or [list(new)[random.integers(len(new))]]
        for place in chosen:
            pieces[place].text = new[place]
            _mend_article(pieces[place - 1].text if place else "", new[place], pieces, place - 1)
        return join(pieces)


def _lexicon() -> Lexicon:
    return lexicon(wordnet.require(WORDNET).path)


def _mend_article(article: str, word: str, pieces: list[Piece], place: int) -> None:
    """Make "a" to "an", or the other way, where the word after it is another now."""
    if article.lower() in {"a", "an"}:
        pieces[place].text = like("an" if word[0].lower() in "aeiou" else "a", article)
