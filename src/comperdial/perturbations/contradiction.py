"""The strategy ``contradiction``: the first verb of each statement is negated, or its negation removed."""

from __future__ import annotations

import itertools
import re

import numpy as np

from comperdial.perturbations.corpus import Corpus, Turn
from comperdial.perturbations.text import (
    STOP_WORDS,
    Piece,
    article,
    is_participle,
    join,
    like,
    sentences,
    split,
    verb_of,
    words,
)

_SPACED_CLITIC = re.compile(r"\w (?:n['’]t|['’](?:m|re|s|ve|ll|d))\b", re.IGNORECASE)
_BE = words("am is are was were")
_MODALS = words("can could will would should may might must")
_HAVE = words("have has had")
_DO = words("do does did")
_REGULAR = words("is are was were could would should have has had do does did")
# Auxiliary -> what is left of it before "n't"; "" if English has no short form.
_SHORT = {word: word for word in _REGULAR} | {"can": "ca", "will": "wo", "am": "", "may": "", "might": "", "must": ""}
_LONG = {"ca": "can", "wo": "will"}
# As people type them without an apostrophe.
_JOINED = {f"{word}nt": word for word in _REGULAR} | {"cannot": "can", "cant": "can"}
_CLITICS = {"'m": "", "'re": "", "'s": "", "'ll": "wo", "'ve": "have", "'d": "would"}
_WITH_IS = words("it that this he she there here everything everyone nothing name")
_PLURAL = words("i we you they")
_SINGULAR = words("he she it")
_SINGULAR_BE = words("is was am 's 'm")
_ADVERBS = words(
    "just also still really actually only often usually sometimes even then now already probably mostly kinda"
)
_BEFORE_YOU = words("and but if when because that so think hope sure glad guess")
_EMPHASISED = words("like love have know think enjoy want need feel hope agree believe understand not get go too so")
_NO_VERBS = STOP_WORDS - words("like let go get got went hope thank have has had do does did")
# Of verbs whose past looks like their present.
_RATHER_PAST = words("quit hurt")
_UNDER = words("if when while who which whether until once unless what where how why because since although though")
_CLAUSE_MARKS = words(", - – — :")
# What denies without "not", and its opposite.
_NEGATIVES = {
    **{"nothing": "something", "nobody": "somebody", "nowhere": "somewhere", "none": "some"},
    **{"no-one": "someone", "noone": "someone"},
}
_HALF_NEGATIVES = words("never hardly barely scarcely neither nor")
# After "no" or "nothing" it is a phrase of its own, which has no plain opposite.
_PHRASES = words(
    "longer more better less fewer worse matter good fun use doubt wonder later sooner way thanks different but much"
    " like"
)
_BEFORE_PHRASES = words("to for or next")
# What cannot stand without a negation.
_NEGATIVE_ONLY = words("any anything anyone anybody anymore ever yet")
_OPENERS = words("and but so well yes yeah no oh ok okay maybe if because , \" ' “ ( - –") | {""}


def contradiction(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str:
    """Negate each statement by rules for auxiliaries, contractions and verbs after a pronoun; questions stay.

    A clause with "no", "nothing" and the like gets no second negation: these words become "some", "something", or the
    clause stays as it is. There is no randomness in it.
    """
    # Some texts are tokenised: "do n't".
    gap = " " if _SPACED_CLITIC.search(turn.response) else ""
    return join([piece for group in sentences(split(turn.response)) for piece in _contradicted(group, gap)])


def _contradicted(sentence: list[Piece], gap: str) -> list[Piece]:
    if any(piece.text == "?" for piece in sentence[-2:]):
        return sentence
    # What a clause with "if" or "who" holds is not asserted: it is changed only if nothing else can be.
    main: list[int] = []
    subordinate: list[int] = []
    under = False
    for place, piece in enumerate(sentence):
        under = piece.low in _UNDER or (under and piece.text not in _CLAUSE_MARKS)
        (subordinate if under else main).append(place)
    changed = (_affirmed(sentence, place) or _denied(sentence, place, gap) for place in main + subordinate)
    return next(filter(None, changed), sentence)


def _at(sentence: list[Piece], place: int) -> str:
    """Return the piece at a place in lower case; nothing beyond the ends."""
    return sentence[place].low if 0 <= place < len(sentence) else ""


def _replaced(sentence: list[Piece], place: int, *new: tuple[str, str], over: int = 1) -> list[Piece]:
    """Return a sentence with (gap, word) pairs for ``over`` pieces; the first keeps the old gap and capital."""
    old, pieces = sentence[place], [Piece(gap, word) for gap, word in new]
    if pieces:
        pieces[0] = Piece(old.gap, like(pieces[0].text, old.text) if old.text[0].isalpha() else pieces[0].text)
    return [*sentence[:place], *pieces, *sentence[place + over :]]


def _affirmed(sentence: list[Piece], place: int) -> list[Piece] | None:
    """Return a sentence without the negation at a place, if there is one."""
    before, word, after = (_at(sentence, place + step) for step in (-1, 0, 1))
    if after == "n't" and word not in {"ai", "sha", "need"}:
        return _replaced(sentence, place, ("", _LONG.get(word, word)), over=2)
    if word in _JOINED:
        return _replaced(sentence, place, ("", _JOINED[word]))
    if word == "not" and (before in _SHORT or before in _CLITICS) and after != "only":
        return _replaced(sentence, place)
    if word == "never" and after != "mind":
        return _replaced(sentence, place, ("", "always"))
    return _asserted(sentence, place) if word in _NEGATIVES or word == "no" else None


def _asserted(sentence: list[Piece], place: int) -> list[Piece] | None:
    """Return a sentence with "something" for "nothing", with "some", an article or nothing for "no"."""
    subject, before, word, after = (_at(sentence, place + step) for step in (-2, -1, 0, 1))
    clause = _clause(sentence, place)
    if after in _PHRASES or before in _BEFORE_PHRASES or not _NEGATIVE_ONLY.isdisjoint(clause):
        return None
    if "at all" in " ".join(clause) or (word != "no" and _is_without_verb(before, after)):
        return None
    if word in _NEGATIVES:
        return _replaced(sentence, place, ("", _NEGATIVES[word]))
    if after == "one":
        without_verb = _is_without_verb(before, _at(sentence, place + 2))
        return None if without_verb else _replaced(sentence, place, ("", "someone"), over=2)
    if not after[:1].isalpha() or before not in _BE | _HAVE | {"'s", "'m", "'re", "'ve", "got"}:
        return None
    if before in _HAVE | {"'ve", "got"} or subject in {"there", "here"}:
        return _replaced(sentence, place, ("", "some"))
    if before in _SINGULAR_BE or subject == "you":
        return _replaced(sentence, place, ("", article("a", after)))
    return _replaced(sentence, place)


def _is_without_verb(before: str, after: str) -> bool:
    """Say whether what begins a clause seems to be no verb's subject: "Nothing much."."""
    begins = before in _OPENERS | _UNDER or not before[-1].isalpha()
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
    """Say whether a clause denies already, without "not"; before "I", "that", "it" and the like, "no" is an answer."""
    return any(
        word in _NEGATIVES
        or word in _HALF_NEGATIVES
        or (word == "no" and (after not in STOP_WORDS or after in {"one", "other", "such", "more"}))
        for word, after in itertools.pairwise([*clause, ""])
    )


def _denied(sentence: list[Piece], place: int, gap: str) -> list[Piece] | None:
    """Return a sentence with the verb at a place negated, if there is one that can be."""
    before, word, after, second = (_at(sentence, place + step) for step in (-1, 0, 1, 2))
    if after in {"not", "never", "n't"} or word == "n't" or _is_negative(_clause(sentence, place)):
        return None
    follows = second if after in _ADVERBS else after
    if word in _CLITICS:
        return _denied_clitic(sentence, place, follows, gap)
    # Turned round it is a question without its mark, or a wish.
    if before in {"to", "as", "than"} or (after in _PLURAL | _SINGULAR and before in _OPENERS):
        return None
    if word in _BE | _MODALS or (word in _HAVE and is_participle(follows)):
        if short := _SHORT.get(word):
            return _replaced(sentence, place, ("", short), (gap, "n't"))
        return _replaced(sentence, place, ("", word), (" ", "not"))
    if word in {"you", "it"} and before not in _OPENERS | _BEFORE_YOU:
        return None
    return _denied_verb(sentence, place, gap) if word in _PLURAL | _SINGULAR else None


def _denied_clitic(sentence: list[Piece], place: int, follows: str, gap: str) -> list[Piece] | None:
    before, word, after = (_at(sentence, place + step) for step in (-1, 0, 1))
    if (word == "'s" and before not in _WITH_IS) or (word == "'d" and after == "better"):
        return None
    # "I'd put", "I'd come": would, as far as their forms tell.
    had = word == "'d" and is_participle(follows) and not verb_of(follows, "VB")
    if short := "had" if had else _CLITICS[word]:
        return [*sentence[:place], Piece(" ", short), Piece(gap, "n't"), *sentence[place + 1 :]]
    return [*sentence[: place + 1], Piece(" ", "not"), *sentence[place + 1 :]]


def _denied_verb(sentence: list[Piece], place: int, gap: str) -> list[Piece] | None:
    """Negate the verb after a pronoun with "do"."""
    subject, at = _at(sentence, place), place + 1
    while (verb := _at(sentence, at)) in _ADVERBS or (verb.endswith("ly") and verb not in STOP_WORDS):
        at += 1
    after = _at(sentence, at + 1)
    if not verb or not sentence[at].is_word or after in {"n't", "not", "never"}:
        return None
    if verb in _HAVE and is_participle(after):
        return None
    if verb in _DO and (after in _EMPHASISED or not after[:1].isalpha()):
        return _replaced(sentence, at, ("", verb), (gap, "n't"))
    if verb in _NO_VERBS:
        return None
    # "Read" is a past after "he"; after "I", it is taken for a present.
    if (base := verb_of(verb, "VBD")) and (base != verb or subject in _SINGULAR or verb in _RATHER_PAST):
        auxiliary = "did"
    elif base := verb_of(verb, "VB" if subject in _PLURAL else "VBZ"):
        auxiliary = "do" if subject in _PLURAL else "does"
    else:
        return None
    return _replaced(sentence, at, ("", auxiliary), (gap, "n't"), (" ", base))
