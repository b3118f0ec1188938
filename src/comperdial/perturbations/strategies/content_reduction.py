"""Each chatbot utterance is cut to its first clause, without what describes, counts or names."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations._generic import STOP_WORDS
from comperdial.perturbations._text import Piece, capitalised, join, sentences, split, word_set
from comperdial.perturbations.base import Dialogue, DialogueStrategy, rewrite
from comperdial.perturbations.pool import Pool

# A clause ends before these.
_LINKS = word_set("because but which who while although though when where since until and or")
_BREAKS = frozenset({",", ":", "-", "–", "—", "("})
# Less weighty than what goes before them.
_PREPOSITIONS = word_set("in on at with for from about during after before by near since")
_EMPTY = word_set("yes no yeah oh ah well ok okay hi hello hey thanks sure wow")
_SPACED_ENDS = frozenset({" .", " !", " ?"})
_MARKS = frozenset('.!?;…"“”()')
_ADVERBS = word_set("very really just quite so too also")
_NO_ADVERBS = word_set("family only july italy reply lovely lonely friendly silly ugly early apply")
# Words that must be left.
_FEWEST = 2
_LEAST = 3
_LEAST_CUT = 0.1
_ADJECTIVES = word_set("""
    good great nice big small little old new young long short high low fast slow hot cold warm cool sweet bitter happy
    sad funny strange odd rare common easy hard heavy light dark bright red blue green yellow white black brown pink
    purple grey gray orange wooden golden favourite favorite whole entire huge tiny giant loud quiet soft rough cheap
    rich poor strong weak deep early late fresh dry wet wild famous popular local real proper clever smart kind brave
    shy proud modest ancient modern simple plain sour salty spicy crazy lovely lonely friendly silly ugly
    """)
_ENDS = ("ful", "ous", "able", "ible", "less", "ish", "ical", "ive")
_NO_ADJECTIVES = word_set("delicious fish dish wish english native relative drive give live arrive table able")
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
    """Return the pieces but for some; what follows one of these takes over its white space."""
    kept: list[Piece] = []
    gap = ""
    for place, piece in enumerate(pieces):
        gap = gap or piece.gap
        if place not in drop:
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
        adverb = low in _ADVERBS or (low.endswith("ly") and len(low) > 4 and low not in _NO_ADVERBS)
        describes = low in _ADJECTIVES or (low.endswith(_ENDS) and low not in _NO_ADJECTIVES)
        after_article = place > 0 and pieces[place - 1].low in _BEFORE_ADJECTIVE
        if place in named or adverb or (describes and after_article):
            drop.add(place)
    return _without(pieces, drop)
