"""The strategy ``paraphrase``: words become their rarest synonym in WordNet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from comperdial.perturbations.corpus import Corpus, Turn
from comperdial.perturbations.text import STOP_WORDS, article, forms, join, lemmas, like, split

# Part of speech in lemminflect -> in WordNet, and the forms to look for, by their tags in the Penn Treebank.
_PARTS = {
    "NOUN": ("n", ("NN", "NNS")),
    "VERB": ("v", ("VB", "VBD", "VBN", "VBG", "VBZ")),
    "ADJ": ("a", ("JJ",)),
    "ADV": ("r", ("RB",)),
}


def paraphrase(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Replace half of the words that have a synonym, and at least one; stop words and names stay."""
    pieces = split(turn.response)
    names = {place for entity in corpus.finder.find(turn.response) for place in range(entity.start, entity.end)}
    new = {}
    for place, piece in enumerate(pieces):
        plain = piece.is_word and len(piece.text) > 2 and piece.low not in STOP_WORDS and place not in names
        if plain and (synonym := rarest(piece.low)):
            new[place] = like(synonym, piece.text)
    if not new:
        return None
    chosen = [place for place in new if random.random() < 0.5] or [list(new)[random.integers(len(new))]]
    for place in chosen:
        pieces[place].text = new[place]
        if place:
            pieces[place - 1].text = article(pieces[place - 1].text, new[place])
    return join(pieces)


@lru_cache(maxsize=16_384)
def rarest(word: str) -> str | None:
    """Return the least common synonym of a lower-case word, with the same inflection; None if it has none.

    The word is taken for what it most often is: noun, verb, adjective or adverb. Of the names of its commonest sense,
    those count that are one lower-case word, rarer than the word, and no spelling or extension of it. The one least
    used in WordNet's tagged texts is taken; of equally rare ones the longest, then the first by the alphabet.
    """
    # Nouns first if no text shows what a word mostly is.
    readings = [(_uses(base, part), -list(_PARTS).index(part), part, base, tag) for part, base, tag in _readings(word)]
    if not readings:
        return None
    most, _, part, base, tag = max(readings)
    sense = _senses(base, part)[0].synset()
    # WordNet marks slang and insults.
    slang = any(item.usage_domains() for item in (sense, *sense.lemmas()))
    synonyms = {
        name: form
        for name in ([] if slang else sense.lemma_names())
        if name.isalpha()
        and name.islower()
        and name not in STOP_WORDS
        and not _alike(name, base)
        and _uses(name, part) <= max(most - 1, 0)
        and (form := _inflected(name, tag))
    }
    return synonyms[min(synonyms, key=lambda name: (_uses(name, part), -len(name), name))] if synonyms else None


def _inflected(name: str, tag: str) -> str | None:
    """Return a form of a word; None for the plural of a word that has none ("plumage")."""
    form = forms(name, tag)[0]
    return None if tag == "NNS" and form == name and not name.endswith("s") else form


def _readings(word: str) -> Iterator[tuple[str, str, str]]:
    """Yield part of speech, lemma and tag of what a word may be."""
    for part, bases in lemmas(word).items():
        for tag in _PARTS[part][1] if part in _PARTS and _senses(bases[0], part) else ():
            if word in forms(bases[0], tag):
                yield part, bases[0], tag
                break


@lru_cache(maxsize=16_384)
def _senses(base: str, part: str) -> list[Any]:
    """Return a word's senses in WordNet, commonest first."""
    from nltk.corpus import wordnet as words

    return list(words.lemmas(base, _PARTS[part][0]))


@lru_cache(maxsize=16_384)
def _uses(base: str, part: str) -> int:
    """Return how often WordNet's tagged texts use a word."""
    return sum(lemma.count() for lemma in _senses(base, part))


def _alike(one: str, other: str) -> bool:
    """Return whether one word spells the other in another way ("colour", "color") or extends it ("floor", "flooring")."""
    first, second = (word.replace("z", "s").replace("our", "or").replace("ll", "l") for word in (one, other))
    return first.startswith(second) or second.startswith(first) or first.removesuffix("e") == second.removesuffix("e")
