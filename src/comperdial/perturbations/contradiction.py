"""The strategy ``contradiction``: negate the first verb of each statement, or remove its negation."""

from __future__ import annotations

import itertools
import re

import numpy as np

from comperdial.perturbations import text as t
from comperdial.perturbations.corpus import Corpus, Turn
from comperdial.perturbations.text import STOP_WORDS, Piece, is_participle, verb_of

_SPACED_CLITIC = re.compile(r"\w (?:n['’]t|['’](?:m|re|s|ve|ll|d))\b", re.IGNORECASE)
_W = t.words("contradiction")
_OPENERS = _W.openers | {""}
_SHORT = {word: word for word in _W.regular} | _W.short
# Spellings without apostrophe.
_JOINED = {f"{word}nt": word for word in _W.regular} | {"cannot": "can", "cant": "can"}
Sentence = list[Piece]


def contradiction(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str:
    """Negate each statement by rules for auxiliaries, contractions and verbs after a pronoun; questions are kept.

    A clause with "no", "nothing" and the like gets no second negation: these words become "some", "something", or the clause is
    kept. The result is deterministic.
    """
    # Some texts are tokenized: "do n't".
    gap = " " if _SPACED_CLITIC.search(turn.response) else ""
    return t.join([piece for group in t.sentences(t.split(turn.response)) for piece in _contradicted(group, gap)])


def _contradicted(sentence: Sentence, gap: str) -> Sentence:
    if any(piece.text == "?" for piece in sentence[-2:]):
        return sentence
    # A clause with "if" or "who" asserts nothing: it is changed only if nothing else can be.
    main: list[int] = []
    subordinate: list[int] = []
    under = False
    for place, piece in enumerate(sentence):
        under = piece.low in _W.subordinate or (under and piece.text not in _W.clause_marks)
        (subordinate if under else main).append(place)
    changed = (_affirmed(sentence, place) or _denied(sentence, place, gap) for place in main + subordinate)
    return next(filter(None, changed), sentence)


def _around(sentence: Sentence, place: int, *steps: int) -> list[str]:
    """Return the lower-case pieces at offsets from a position; empty beyond the ends."""
    places = [place + step for step in steps]
    return [sentence[at].low if 0 <= at < len(sentence) else "" for at in places]


def _replaced(sentence: Sentence, place: int, *new: tuple[str, str], over: int = 1) -> Sentence:
    """Replace ``over`` pieces by (gap, word) pairs; the first keeps the old gap and capitalization."""
    old, pieces = sentence[place], [Piece(gap, word) for gap, word in new]
    if pieces:
        pieces[0] = Piece(old.gap, t.like(pieces[0].text, old.text) if old.text[0].isalpha() else pieces[0].text)
    return [*sentence[:place], *pieces, *sentence[place + over :]]


def _affirmed(sentence: Sentence, place: int) -> Sentence | None:
    """Return a sentence without the negation at a position, if there is one."""
    before, word, after = _around(sentence, place, -1, 0, 1)
    if after == "n't" and word not in {"ai", "sha", "need"}:
        return _replaced(sentence, place, ("", {"ca": "can", "wo": "will"}.get(word, word)), over=2)
    if word in _JOINED:
        return _replaced(sentence, place, ("", _JOINED[word]))
    if word == "not" and (before in _SHORT or before in _W.clitics) and after != "only":
        return _replaced(sentence, place)
    if word == "never" and after != "mind":
        return _replaced(sentence, place, ("", "always"))
    return _asserted(sentence, place) if word in _W.negatives or word == "no" else None


def _asserted(sentence: Sentence, place: int) -> Sentence | None:
    """Return a sentence with "something" for "nothing", and "some", an article or nothing for "no"."""
    subject, before, word, after, second = _around(sentence, place, -2, -1, 0, 1, 2)
    clause = _clause(sentence, place)
    if after in _W.phrases or before in _W.before_phrases or not _W.negative_only.isdisjoint(clause):
        return None
    if "at all" in " ".join(clause) or (word != "no" and _is_without_verb(before, after)):
        return None
    if word in _W.negatives:
        return _replaced(sentence, place, ("", _W.negatives[word]))
    if after == "one":
        return None if _is_without_verb(before, second) else _replaced(sentence, place, ("", "someone"), over=2)
    owns = before in _W.have | {"'ve", "got"}
    if not after[:1].isalpha() or not (owns or before in _W.be | {"'s", "'m", "'re"}):
        return None
    if owns or subject in {"there", "here"}:
        return _replaced(sentence, place, ("", "some"))
    one = before in _W.singular_be or subject == "you"
    return _replaced(sentence, place, *([("", t.article("a", after))] if one else []))


def _is_without_verb(before: str, after: str) -> bool:
    """Return whether the start of a clause seems not to be a verb's subject: "Nothing much."."""
    begins = before in _OPENERS | _W.subordinate or not before[-1].isalpha()
    is_verb = after in _W.be | _W.modals | _W.have | _W.do | _W.clitics.keys()
    return begins and not (is_verb or verb_of(after, "VBD") or verb_of(after, "VBZ"))


def _clause(sentence: Sentence, place: int) -> list[str]:
    """Return the words between the punctuation and conjunctions around a position."""
    low = [piece.low for piece in sentence]
    ends = [at for at, word in enumerate(low) if word in _W.clause_marks | _W.subordinate | {"but"}]
    start = max((at + 1 for at in ends if at <= place), default=0)
    return low[start : min((at for at in ends if at > place), default=len(low))]


def _is_negative(clause: list[str]) -> bool:
    """Return whether a clause is negative without "not"; before "I", "that", "it" and the like, "no" is an answer."""
    return any(
        word in _W.negatives
        or word in _W.half_negatives
        or (word == "no" and (after not in STOP_WORDS or after in {"one", "other", "such", "more"}))
        for word, after in itertools.pairwise([*clause, ""])
    )


def _denied(sentence: Sentence, place: int, gap: str) -> Sentence | None:
    """Return a sentence with the verb at a position negated, if possible."""
    before, word, after, second = _around(sentence, place, -1, 0, 1, 2)
    if after in {"not", "never", "n't"} or word == "n't" or _is_negative(_clause(sentence, place)):
        return None
    follows = second if after in _W.adverbs else after
    if word in _W.clitics:
        return _denied_clitic(sentence, place, follows, gap)
    # Inverted word order: a question without a question mark, or a wish.
    if before in {"to", "as", "than"} or (after in _W.plural | _W.singular and before in _OPENERS):
        return None
    if word in _W.be | _W.modals or (word in _W.have and is_participle(follows)):
        short = _SHORT.get(word)
        return _replaced(sentence, place, ("", short or word), (gap, "n't") if short else (" ", "not"))
    if word in {"you", "it"} and before not in _OPENERS | _W.before_you:
        return None
    return _denied_verb(sentence, place, gap) if word in _W.plural | _W.singular else None


def _denied_clitic(sentence: Sentence, place: int, follows: str, gap: str) -> Sentence | None:
    before, word, after = _around(sentence, place, -1, 0, 1)
    if (word == "'s" and before not in _W.with_is) or (word == "'d" and after == "better"):
        return None
    # "I'd put" and "I'd come" are ambiguous: read "'d" as "would" if the verb may be a base form.
    had = word == "'d" and is_participle(follows) and not verb_of(follows, "VB")
    if short := "had" if had else _W.clitics[word]:
        return [*sentence[:place], Piece(" ", short), Piece(gap, "n't"), *sentence[place + 1 :]]
    return [*sentence[: place + 1], Piece(" ", "not"), *sentence[place + 1 :]]


def _denied_verb(sentence: Sentence, place: int, gap: str) -> Sentence | None:
    """Negate the verb after a pronoun with "do"."""
    subject, at = sentence[place].low, place + 1
    while (verb := _around(sentence, at, 0)[0]) in _W.adverbs or (verb.endswith("ly") and verb not in STOP_WORDS):
        at += 1
    after = _around(sentence, at, 1)[0]
    if not verb or not sentence[at].is_word or after in {"n't", "not", "never"}:
        return None
    if verb in _W.have and is_participle(after):
        return None
    if verb in _W.do and (after in _W.emphasised or not after[:1].isalpha()):
        return _replaced(sentence, at, ("", verb), (gap, "n't"))
    if verb in STOP_WORDS - _W.verbs:
        return None
    # "Read" is a past tense after "he"; after "I", treat it as a present.
    if (base := verb_of(verb, "VBD")) and (base != verb or subject in _W.singular or verb in _W.rather_past):
        auxiliary = "did"
    elif base := verb_of(verb, "VB" if subject in _W.plural else "VBZ"):
        auxiliary = "do" if subject in _W.plural else "does"
    else:
        return None
    return _replaced(sentence, at, ("", auxiliary), (gap, "n't"), (" ", base))
