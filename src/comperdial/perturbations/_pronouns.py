"""Pronouns: who they stand for, what they are in a sentence, and how be, have and do agree with them."""

from __future__ import annotations

from dataclasses import dataclass

from comperdial.perturbations._text import Piece, like, word_set
from comperdial.perturbations._verbs import is_participle

_NAMES = ("subject", "object", "determiner", "possessive", "reflexive")
_TABLE = {
    "i": "i me my mine myself",
    "we": "we us our ours ourselves",
    "you": "you you your yours yourself",
    "he": "he him his his himself",
    "she": "she her her hers herself",
    "it": "it it its its itself",
    "they": "they them their theirs themselves",
}
ROLES = {person: dict(zip(_NAMES, forms.split(), strict=True)) for person, forms in _TABLE.items()}
"""Person -> role in the sentence -> form."""

_ONE_WAY = {
    form: (person, role)
    for person, roles in ROLES.items()
    for role, form in roles.items()
    if form not in {"you", "her", "his", "it", "its"}
} | {"its": ("it", "determiner"), "yourselves": ("you", "reflexive")}
# Present of be, past of be, have, do for each person; the words that stand for each of them.
_SINGULAR = {"be": "is", "been": "was", "have": "has", "do": "does", "clitic be": "'s", "clitic have": "'s"}
_PLURAL = {"be": "are", "been": "were", "have": "have", "do": "do", "clitic be": "'re", "clitic have": "'ve"}
_AGREE = {person: _SINGULAR if person in {"he", "she", "it"} else _PLURAL for person in _TABLE}
_AGREE["i"] = _PLURAL | {"be": "am", "been": "was", "clitic be": "'m"}
_VERB = {form: verb for forms in (_SINGULAR, _PLURAL, _AGREE["i"]) for verb, form in forms.items() if form[0] != "'"}
_HELPERS = frozenset(_VERB) | word_set("did can could will would should may might must had")
# After these "you" and "it" are subjects; after any other word, objects.
_BEFORE_SUBJECT = word_set(
    """
    and but or so if when because that while though although until unless since as what where how why who which whether
    once think know knew hope guess say said sure glad bet mean wish see believe maybe perhaps then now yes no well oh
    also just really sometimes usually often
    """
)
# After "her", these say that it was an object and not a possessive.
_NOT_OWNED = word_set("""
    to in on at for of from and or but as when how if because so the a an this that about with by up out all too very
    again now then here there today yesterday tomorrow last every each before after is was
    """)


@dataclass(frozen=True)
class Pronoun:
    """Whom a pronoun stands for (``i`` … ``they``) and what it is in its sentence."""

    person: str
    role: str


def role_of(pieces: list[Piece], place: int) -> Pronoun | None:
    """Return the pronoun at a place of a sentence, or None."""
    word = pieces[place].low
    if word == "us" and _word(pieces, place - 1) == "the":
        # The country, in texts without capitals.
        return None
    if word in _ONE_WAY:
        return Pronoun(*_ONE_WAY[word])
    after = _word(pieces, place + 1)
    if word == "her":
        return Pronoun("she", "object" if not after or after in _NOT_OWNED else "determiner")
    if word == "his":
        return Pronoun("he", "possessive" if not after or after in _NOT_OWNED else "determiner")
    if word in {"you", "it"}:
        return Pronoun(word, "object" if _is_object(pieces, place, after) else "subject")
    return None


def _is_object(pieces: list[Piece], place: int, after: str) -> bool:
    before = _word(pieces, place - 1)
    if after in _HELPERS or (
        place + 1 < len(pieces) and pieces[place + 1].low[0] == "'" and len(pieces[place + 1].low) > 1
    ):
        return False
    if before in {"do", "did"} and pieces[place].low == "you" and after:
        return False
    if before in _HELPERS and (place < 2 or not after or before in _VERB):
        # "do you", "how are you", but "I did it" and "can do it".
        return before in {"do", "did"} and _word(pieces, place - 2) not in {"", "what", "where", "how", "when", "why"}
    return before != "" and (before not in _BEFORE_SUBJECT or not after)


def _word(pieces: list[Piece], place: int) -> str:
    if not 0 <= place < len(pieces):
        return ""
    piece = pieces[place]
    if piece.low == "n't":
        return _word(pieces, place - 1)
    return piece.low if piece.is_word else ""


def agreed(pieces: list[Piece], place: int, old: str, new: str) -> None:
    """Make the form of be, have or do after a subject, else before it, agree with another person."""
    if _AGREE[old] == _AGREE[new]:
        return
    if place + 1 < len(pieces) and _agree(pieces, place + 1, new):
        return
    at = place - 1 if place and pieces[place - 1].low != "n't" else place - 2
    # Only in questions does it stand before its subject.
    asks = (
        at == 0 or pieces[-1].text == "?" or (at > 0 and (not pieces[at - 1].is_word or pieces[at - 1].low in _ASKING))
    )
    if at >= 0 and asks:
        _agree(pieces, at, new)


_ASKING = word_set("what where when why how who which and so but long much many often old far then")


def _agree(pieces: list[Piece], at: int, person: str) -> bool:
    piece = pieces[at]
    if piece.low in {"'m", "'re", "'s", "'ve"}:
        after = _word(pieces, at + 1)
        has = piece.low == "'ve" or (piece.low == "'s" and (after in {"been", "got", "had"} or is_participle(after)))
        piece.text = _AGREE[person]["clitic have" if has else "clitic be"]
        return True
    if piece.low not in _VERB:
        return False
    verb = "been" if piece.low in {"was", "were"} else _VERB[piece.low]
    form = _AGREE[person][verb]
    negated = at + 1 < len(pieces) and pieces[at + 1].low == "n't"
    piece.text = like(form, piece.text)
    if negated and form == "am":
        # English has no "amn't".
        pieces[at + 1].gap, pieces[at + 1].text = " ", "not"
    return True
