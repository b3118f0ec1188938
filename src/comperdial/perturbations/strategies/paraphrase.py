"""Words give way to their least common synonym in WordNet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from lemminflect import getAllLemmas, getInflection

from comperdial.data import wordnet
from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import STOP_WORDS, article, join, like, split

_SHARE = 0.5
WORDNET = "3.0"
"""The version of WordNet that must be at hand: another gives other words."""
# Part of speech in lemminflect -> in WordNet, and the forms that are looked for, by their tags in the Penn Treebank.
_PARTS = {
    "NOUN": ("n", ("NN", "NNS")),
    "VERB": ("v", ("VB", "VBD", "VBN", "VBG", "VBZ")),
    "ADJ": ("a", ("JJ",)),
    "ADV": ("r", ("RB",)),
}


class Paraphrase(TurnStrategy):
    """Half of the words that have a synonym, and at least one, become it; stop words and names stay."""

    def prepare(self) -> None:
        """Find WordNet."""
        wordnet.require(WORDNET)

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the response with rare words."""
        pieces = split(turn.response)
        names = {place for entity in pool.finder.find(turn.response) for place in range(entity.start, entity.end)}
        new = {}
        for place, piece in enumerate(pieces):
            if piece.is_word and len(piece.text) > 2 and piece.low not in STOP_WORDS and place not in names:
                synonym = rarest(piece.low)
                if synonym:
                    new[place] = like(synonym, piece.text)
        if not new:
            return None
        chosen = [place for place in new if random.random() < _SHARE] or [list(new)[random.integers(len(new))]]
        for place in chosen:
            pieces[place].text = new[place]
            if place:
                pieces[place - 1].text = article(pieces[place - 1].text, new[place])
        return join(pieces)


@lru_cache(maxsize=16_384)
def rarest(word: str) -> str | None:
    """Return the least common synonym of a lower-case word, inflected as it is; None when there is none.

    The word is taken for what it most often is: noun, verb, adjective or adverb, of the forms that it may have. Of the
    names of its commonest sense, those count that are one lower-case word, rarer than the word, and no spelling or
    extension of it. The least often used in WordNet's tagged texts is taken, of equally rare ones the longest, of
    these the first by the alphabet.
    """
    # Nouns first where no text says what a word mostly is.
    readings = [(_uses(base, part), -list(_PARTS).index(part), part, base, tag) for part, base, tag in _readings(word)]
    if not readings:
        return None
    most, _, part, base, tag = max(readings)
    forms = {
        name: form
        for name in _first_sense(base, part)
        if name.isalpha()
        and name.islower()
        and name not in STOP_WORDS
        and not _alike(name, base)
        and _uses(name, part) <= max(most - 1, 0)
        and (form := _inflected(name, tag))
    }
    return forms[min(forms, key=lambda name: (_uses(name, part), -len(name), name))] if forms else None


def _inflected(name: str, tag: str) -> str | None:
    """Return a form of a word; None for the plural of one that is no plural and has none ("plumage")."""
    form = str(getInflection(name, tag)[0])
    return None if tag == "NNS" and form == name and not name.endswith("s") else form


def _readings(word: str) -> Iterator[tuple[str, str, str]]:
    for part, bases in getAllLemmas(word).items():
        for tag in _PARTS[part][1] if part in _PARTS and _lemmas(bases[0], part) else ():
            if word in getInflection(bases[0], tag):
                yield part, bases[0], tag
                break


@lru_cache(maxsize=16_384)
def _lemmas(base: str, part: str) -> list[Any]:
    """Return a word's senses, commonest first."""
    from nltk.corpus import wordnet as words

    return list(words.lemmas(base, _PARTS[part][0]))


@lru_cache(maxsize=16_384)
def _uses(base: str, part: str) -> int:
    """Return how often people used a word in WordNet's tagged texts."""
    return sum(lemma.count() for lemma in _lemmas(base, part))


def _first_sense(base: str, part: str) -> list[str]:
    """Return the names of a word's commonest sense; none of slang and insults, which WordNet marks."""
    sense = _lemmas(base, part)[0].synset()
    marked = any(item.usage_domains() for item in (sense, *sense.lemmas()))
    return [] if marked else sense.lemma_names()


def _alike(one: str, other: str) -> bool:
    """Say whether one word is a spelling of the other ("colour", "color"), or goes on from it ("floor", "flooring")."""
    first, second = (word.replace("z", "s").replace("our", "or").replace("ll", "l") for word in (one, other))
    return first.startswith(second) or second.startswith(first) or first.removesuffix("e") == second.removesuffix("e")
