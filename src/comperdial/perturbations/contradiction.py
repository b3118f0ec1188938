"""The strategy ``contradiction``: the first verb of each statement is negated, or its negation removed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from comperdial.perturbations.items import Pool, Turn
from comperdial.perturbations.text import (
    STOP_WORDS,
    Piece,
    article,
    clitic_gap,
    is_participle,
    join,
    like,
    sentences,
    split,
    verb_of,
    word_set,
)

_BE = frozenset({"am", "is", "are", "was", "were"})
_MODALS = frozenset({"can", "could", "will", "would", "should", "may", "might", "must"})
_HAVE = frozenset({"have", "has", "had"})
_DO = frozenset({"do", "does", "did"})
_PLAIN = word_set("is are was were could would should have has had do does did")
# Auxiliary -> what is left of it before "n't"; "" if English has no short form.
_SHORT = {word: word for word in _PLAIN} | {"can": "ca", "will": "wo", "am": "", "may": "", "might": "", "must": ""}
_LONG = {"ca": "can", "wo": "will"}
# As people type them without an apostrophe.
_JOINED = {f"{word}nt": word for word in _PLAIN} | {"cannot": "can", "cant": "can"}
_CLITICS = {"'m": "", "'re": "", "'s": "", "'ll": "wo", "'ve": "have", "'d": "would"}
_WITH_IS = word_set("it that this he she there here everything everyone nothing name")
_PLURAL = frozenset({"i", "we", "you", "they"})
_SINGULAR = frozenset({"he", "she", "it"})
_ADVERBS = word_set(
    "just also still really actually only often usually sometimes even then now already probably mostly kinda"
)
_BEFORE_YOU = frozenset({"and", "but", "if", "when", "because", "that", "so", "think", "hope", "sure", "glad", "guess"})
_EMPHASISED = word_set("like love have know think enjoy want need feel hope agree believe understand not get go too so")
_NO_VERBS = STOP_WORDS - {"like", "let", "go", "get", "got", "went", "hope", "thank"}
# Of verbs whose past looks like their present.
_RATHER_PAST = frozenset({"quit", "hurt"})
_UNDER = word_set("if when while who which whether until once unless what where how why because since although though")
_CLAUSE_MARKS = frozenset({",", "-", "–", "—", ":"})
# What denies without "not", and its opposite.
_NEGATIVES = {
    **{"nothing": "something", "nobody": "somebody", "nowhere": "somewhere", "none": "some"},
    **{"no-one": "someone", "noone": "someone"},
}
_HALF_NEGATIVES = word_set("never hardly barely scarcely neither nor")
# After "no" or "nothing" it is a phrase of its own, which has no plain opposite.
_PHRASES = word_set(
    "longer more better less fewer worse matter good fun use doubt wonder later sooner way thanks different but much"
    " like"
)
_BEFORE_PHRASES = word_set("to for or next")
# What cannot stand without a negation.
_NEGATIVE_ONLY = word_set("any anything anyone anybody anymore ever yet")
_SINGULAR_BE = frozenset({"is", "was", "am", "'s", "'m"})
_OPENERS = word_set("and but so well yes yeah no oh ok okay maybe if because , \" ' “ ( - –")


def contradiction(turn: Turn, random: np.random.Generator, pool: Pool) -> str:
    """Negate each statement by rules for auxiliaries, contractions and verbs after a pronoun; questions stay.

    A clause with "no", "nothing" and the like gets no second negation: these words become "some", "something", or the
    clause stays as it is. There is no randomness in it.
    """
    gap = clitic_gap(turn.response)
    groups = sentences(split(turn.response))
    return join([piece for group in groups for piece in _turned(group, gap)])


def _turned(sentence: list[Piece], gap: str) -> Sequence[Piece]:
    if any(piece.text == "?" for piece in sentence[-2:]):
        return sentence
    # What stands under "if" or "who" is not what the sentence says: its turn comes when there is nothing else.
    main = _main_clauses(sentence)
    for place in sorted(range(len(sentence)), key=lambda place: (place not in main, place)):
        new = _affirmed(sentence, place) or _denied(sentence, place, gap)
        if new:
            return new
    return sentence


def _main_clauses(sentence: list[Piece]) -> set[int]:
    places = set()
    under = False
    for place, piece in enumerate(sentence):
        under = piece.low in _UNDER or (under and piece.text not in _CLAUSE_MARKS)
        if not under:
            places.add(place)
    return places


def _low(sentence: list[Piece], place: int) -> str:
    return sentence[place].low if 0 <= place < len(sentence) else ""


def _replaced(sentence: list[Piece], place: int, *words: tuple[str, str], over: int = 1) -> list[Piece]:
    """Return a sentence with (gap, word) pairs for ``over`` pieces; the first keeps the old gap and capital."""
    old = sentence[place]
    new = [Piece(gap, word) for gap, word in words]
    if new:
        new[0] = Piece(old.gap, like(new[0].text, old.text) if old.text[0].isalpha() else new[0].text)
    return [*sentence[:place], *new, *sentence[place + over :]]


def _affirmed(sentence: list[Piece], place: int) -> list[Piece] | None:
    """Return a sentence without the negation at a place, if there is one."""
    word, before = _low(sentence, place), _low(sentence, place - 1)
    if _low(sentence, place + 1) == "n't" and word not in {"ai", "sha", "need"}:
        return _replaced(sentence, place, ("", _LONG.get(word, word)), over=2)
    if word in _JOINED:
        return _replaced(sentence, place, ("", _JOINED[word]))
    if word == "not" and (before in _SHORT or before in _CLITICS) and _low(sentence, place + 1) != "only":
        return [*sentence[:place], *sentence[place + 1 :]]
    if word == "never" and _low(sentence, place + 1) != "mind":
        return _replaced(sentence, place, ("", "always"))
    return _asserted(sentence, place) if word in _NEGATIVES or word == "no" else None


def _asserted(sentence: list[Piece], place: int) -> list[Piece] | None:
    """Return a sentence with "something" for "nothing", with "some", an article or nothing for "no"."""
    word, after, before = _low(sentence, place), _low(sentence, place + 1), _low(sentence, place - 1)
    clause = _clause(sentence, place)
    if after in _PHRASES or before in _BEFORE_PHRASES or not _NEGATIVE_ONLY.isdisjoint(clause):
        return None
    if "at all" in " ".join(clause) or (word != "no" and _is_without_verb(before, after)):
        return None
    if word in _NEGATIVES:
        return _replaced(sentence, place, ("", _NEGATIVES[word]))
    if after == "one":
        if _is_without_verb(before, _low(sentence, place + 2)):
            return None
        return _replaced(sentence, place, ("", "someone"), over=2)
    if not after[:1].isalpha() or before not in _BE | _HAVE | {"'s", "'m", "'re", "'ve", "got"}:
        return None
    subject = _low(sentence, place - 2)
    if before in _HAVE | {"'ve", "got"} or subject in {"there", "here"}:
        return _replaced(sentence, place, ("", "some"))
    if before in _SINGULAR_BE or subject == "you":
        return _replaced(sentence, place, ("", article("a", after)))
    return _replaced(sentence, place)


def _is_without_verb(before: str, after: str) -> bool:
    """Say whether what begins a clause seems to be no verb's subject: "Nothing much."."""
    begins = before in _OPENERS | _UNDER | {""} or not before[-1].isalpha()
    return begins and not (
        after in _BE | _MODALS | _HAVE | _DO | _CLITICS.keys() or verb_of(after, "VBD") or verb_of(after, "VBZ")
    )


def _clause(sentence: list[Piece], place: int) -> list[str]:
    """Return the words between the marks and conjunctions around a place."""
    low = [piece.low for piece in sentence]
    ends = [at for at, word in enumerate(low) if word in _CLAUSE_MARKS | _UNDER | {"but"}]
    start = max((at + 1 for at in ends if at <= place), default=0)
    return low[start : min((at for at in ends if at > place), default=len(low))]


def _is_negative(clause: list[str]) -> bool:
    """Say whether a clause denies already, without "not"."""
    for word, after in itertools.pairwise([*clause, ""]):
        if word in _NEGATIVES or word in _HALF_NEGATIVES:
            return True
        # Before "I", "that", "it" and the like it answers.
        if word == "no" and (after not in STOP_WORDS or after in {"one", "other", "such", "more"}):
            return True
    return False


def _denied(sentence: list[Piece], place: int, gap: str) -> list[Piece] | None:
    """Return a sentence with the verb at a place negated, if there is one that can be."""
    word, after, before = _low(sentence, place), _low(sentence, place + 1), _low(sentence, place - 1)
    if after in {"not", "never"} or word == "n't" or after == "n't" or _is_negative(_clause(sentence, place)):
        return None
    if word in _CLITICS:
        return _denied_clitic(sentence, place, gap)
    if before in {"to", "as", "than"}:
        return None
    follows = after if after not in _ADVERBS else _low(sentence, place + 2)
    if after in _PLURAL | _SINGULAR and (before == "" or before in _OPENERS):
        # Turned round: a question without its mark, or a wish.
        return None
    short = _SHORT.get(word)
    if word in _BE | _MODALS or (word in _HAVE and is_participle(follows)):
        if short:
            return _replaced(sentence, place, ("", short), (gap, "n't"))
        return _replaced(sentence, place, ("", word), (" ", "not"))
    if word in _PLURAL | _SINGULAR and _is_subject(sentence, place):
        return _denied_verb(sentence, place, gap)
    return None


def _denied_clitic(sentence: list[Piece], place: int, gap: str) -> list[Piece] | None:
    word, after, before = _low(sentence, place), _low(sentence, place + 1), _low(sentence, place - 1)
    follows = after if after not in _ADVERBS else _low(sentence, place + 2)
    if (word == "'s" and before not in _WITH_IS) or (word == "'d" and after == "better"):
        return None
    # "I'd put", "I'd come": would, as far as their forms tell.
    had = word == "'d" and is_participle(follows) and not verb_of(follows, "VB")
    short = "had" if had else _CLITICS[word]
    if not short:
        return [*sentence[: place + 1], Piece(" ", "not"), *sentence[place + 1 :]]
    return _replaced_after_space(sentence, place, short, gap)


def _replaced_after_space(sentence: list[Piece], place: int, short: str, gap: str) -> list[Piece]:
    return [*sentence[:place], Piece(" ", short), Piece(gap, "n't"), *sentence[place + 1 :]]


def _is_subject(sentence: list[Piece], place: int) -> bool:
    word, before = _low(sentence, place), _low(sentence, place - 1)
    if word in {"you", "it"}:
        return before == "" or before in _OPENERS or before in _BEFORE_YOU
    return True


def _denied_verb(sentence: list[Piece], place: int, gap: str) -> list[Piece] | None:
    """Negate the verb after a pronoun with "do"."""
    subject = _low(sentence, place)
    at = place + 1
    while _low(sentence, at) in _ADVERBS or (_low(sentence, at).endswith("ly") and _low(sentence, at) not in _NO_VERBS):
        at += 1
    verb, after = _low(sentence, at), _low(sentence, at + 1)
    if not verb or not sentence[at].is_word or after in {"n't", "not", "never"}:
        return None
    if verb in _HAVE and is_participle(after):
        return None
    if verb in _DO and (after in _EMPHASISED or not after or not after[0].isalpha()):
        return _replaced(sentence, at, ("", verb), (gap, "n't"))
    if verb in _NO_VERBS - _HAVE - _DO:
        return None
    # "Read" is a past after "he"; after "I", it is taken for a present.
    if (base := verb_of(verb, "VBD")) and (base != verb or subject in _SINGULAR or verb in _RATHER_PAST):
        auxiliary = "did"
    elif base := verb_of(verb, "VB" if subject in _PLURAL else "VBZ"):
        auxiliary = "do" if subject in _PLURAL else "does"
    else:
        return None
    return _replaced(sentence, at, ("", auxiliary), (gap, "n't"), (" ", base))
