"""Each chatbot utterance is cut to its first clause, without what describes, counts or names."""

from __future__ import annotations

import numpy as np
from lemminflect import getAllLemmas, getInflection

from comperdial.perturbations.base import Dialogue, DialogueStrategy, rewrite
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import STOP_WORDS, Piece, article, capitalised, join, sentences, split, word_set
from comperdial.perturbations.verbs import base_of

# A clause ends before these.
_LINKS = word_set("because but which who while although though when where since until and or")
_BREAKS = frozenset({",", ":", "-", "–", "—", "("})
# Less weighty than what goes before them.
_PREPOSITIONS = word_set("in on at with for from about during after before by near since")
_EMPTY = word_set("yes no yeah oh ah well ok okay hi hello hey thanks sure wow")
_SPACED_ENDS = frozenset({" .", " !", " ?"})
_MARKS = frozenset('.!?;…"“”()')
_ADVERBS = word_set("very really just quite so too also")
# Words that must be left.
_FEWEST = 2
_LEAST = 3
_LEAST_CUT = 0.1
_BEFORE_ADJECTIVE = word_set("a an the my your his her our their its this that these those some")


class ContentReduction(DialogueStrategy):
    """The first clause of at least three words, without adjectives before nouns, adverbs, numbers and names.

    A dialogue that this makes shorter by less than a tenth of its words is not changed.
    """

    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts, the chatbot's cut; chance has no part in it."""
        new = rewrite(dialogue, lambda _place, line: _cut(line.text, pool))
        before, after = 0, 0
        for text, line in zip(new, dialogue.lines, strict=True):
            if line.chatbot:
                before += len(line.text.split())
                after += len(text.split())
        return new if after <= (1 - _LEAST_CUT) * before else None


def _cut(text: str, pool: Pool) -> str:
    groups = sentences(split(text))
    if not groups:
        return text
    sentence = groups[0]
    clause = _clause(sentence)
    if len(groups) > 1 and not any(piece.is_word and piece.low not in _EMPTY for piece in clause):
        sentence = groups[1]
        clause = _clause(sentence)
    end = "?" if any(piece.text == "?" for piece in sentence) else "."
    words = _without(clause, {place for place, piece in enumerate(clause) if piece.text in _MARKS})
    plain = _plain(words, pool)
    short = plain if sum(piece.is_word for piece in plain) >= _FEWEST else words
    gap = " " if text.rstrip()[-2:] in _SPACED_ENDS else ""
    return capitalised(join([*short, Piece(gap, end)]), text)


def _without(pieces: list[Piece], drop: set[int]) -> list[Piece]:
    """Return the pieces but for some; what follows one of these takes over its white space, and its article."""
    kept: list[Piece] = []
    gap = ""
    for place, piece in enumerate(pieces):
        gap = gap or piece.gap
        if place not in drop:
            if place - 1 in drop and kept:
                kept[-1].text = article(kept[-1].text, piece.text)
            kept.append(Piece(gap, piece.text))
            gap = ""
    return kept


def _clause(sentence: list[Piece]) -> list[Piece]:
    words = 0
    for place, piece in enumerate(sentence):
        ends = piece.low in _LINKS or piece.text in _BREAKS
        if (words >= _LEAST and ends) or (words > _LEAST and piece.low in _PREPOSITIONS):
            return sentence[:place]
        words += piece.is_word
    return sentence


def _plain(pieces: list[Piece], pool: Pool) -> list[Piece]:
    """Return the pieces without what describes, counts or names, as far as a word follows it."""
    found = [entity for entity in pool.finder.find(join(pieces)) if entity.end < len(pieces)]
    named = {place for entity in found for place in range(entity.start, entity.end)}
    drop = set()
    for place, piece in enumerate(pieces[:-1]):
        low, follows = piece.low, pieces[place + 1]
        if not follows.is_word or (follows.low in STOP_WORDS and place not in named):
            continue
        kinds = getAllLemmas(low)
        adverb = low in _ADVERBS or (low.endswith("ly") and "ADV" in kinds and "ADJ" not in kinds)
        determined = place > 0 and pieces[place - 1].low in _BEFORE_ADJECTIVE
        if place in named or adverb or (determined and low not in STOP_WORDS and _describes(low, follows.low)):
            drop.add(place)
    return _without(pieces, drop)


def _describes(word: str, follows: str) -> bool:
    """Say whether a word after a determiner is an adjective before a noun, as far as what follows it tells."""
    kinds, after = getAllLemmas(word), getAllLemmas(follows)
    if "ADJ" not in kinds or (after and "NOUN" not in after and ("ADJ" not in after or "ADV" in after)):
        return False
    # "Your kind words", but "my back hurts": what has no comparative is the noun.
    compared = getInflection(word, "JJR", inflect_oov=False)
    return "NOUN" not in kinds or bool(compared) or not base_of(follows, "VBZ")
