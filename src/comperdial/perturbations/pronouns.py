"""The strategy ``pronouns``: change the gender, number or person of pronouns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.perturbations.corpus import Corpus, Turn
from comperdial.perturbations.text import Piece, is_participle, join, lemmas, like, sentences, split, words

_W = words("pronouns")
_ROLES = ("subject", "object", "determiner", "possessive", "reflexive")
# Person -> role in the sentence -> form.
_FORMS = {row.split()[0]: dict(zip(_ROLES, row.split(), strict=True)) for row in _W.forms}
# Form -> person and role, for forms with a single role.
_ONE_ROLE = {
    form: (person, role)
    for person, roles in _FORMS.items()
    for role, form in roles.items()
    if form not in {"you", "her", "his", "it", "its"}
} | {"its": ("it", "determiner"), "yourselves": ("you", "reflexive")}
# Verb -> its form, for each person.
_AGREE = {person: _W.singular if person in {"he", "she", "it"} else _W.plural for person in _FORMS}
_AGREE["i"] = _W.plural | _W.first
_VERB = {
    form: verb for forms in (_W.singular, _W.plural, _AGREE["i"]) for verb, form in forms.items() if form[0] != "'"
}
_NOT_OWNED = _W.not_owned | {""}
_HELPERS = _VERB.keys() | _W.helpers


def pronouns(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Apply one of three changes that the response's pronouns allow to all pronouns it affects.

    Gender (he, she with it, they), number (I with we, it with they, this with these), person (first with second or third).
    Forms of be, have and do next to a subject are made to agree; other verbs are kept.
    """
    groups = sentences(split(turn.response))
    persons = {pronoun[0] for group in groups for place in range(len(group)) if (pronoun := _pronoun(group, place))}
    points = any(piece.low in _W.pointing for group in groups for piece in group)
    ways = [way for way in sorted(_W.ways) if persons & _W.ways[way].keys() or (way == "number" and points)]
    if not ways:
        return None
    way = ways[random.integers(len(ways))]
    # Draw for all persons in a fixed order, so that the draws do not depend on the order of the pronouns.
    options = {person: new.split() for person, new in sorted(_W.ways[way].items())}
    targets = {person: new[random.integers(len(new))] for person, new in options.items()}
    return replaced(turn.response, targets, points=way == "number")


def replaced(text: str, targets: Mapping[str, str], *, points: bool = False) -> str:
    """Replace the pronouns of each person (``i``, ``we``, ``you``, ``he``, ...) by those of its target.

    With ``points``, the number of this, these and those changes too.
    """
    groups = sentences(split(text))
    for group in groups:
        # Look up all before replacing the first, since each is identified by its neighbours.
        for place, pronoun in enumerate([_pronoun(group, place) for place in range(len(group))]):
            if pronoun and pronoun[0] in targets:
                _replace(group, place, pronoun, targets[pronoun[0]], text == text.lower())
        for place, piece in enumerate(group if points else ()):
            if piece.low in _W.pointing:
                old, new = ("it", "they") if piece.low == "this" else ("they", "it")
                piece.text = like(_W.pointing[piece.low], piece.text)
                _make_agree(group, place, old, new)
    return join([piece for group in groups for piece in group])


def _replace(group: list[Piece], place: int, old: tuple[str, str], person: str, small: bool) -> None:
    new, model = _FORMS[person][old[1]], group[place].text
    first = not any(piece.is_word for piece in group[:place])
    if new == "i":
        new = "i" if small else "I"
    elif (first and not small) or (model.isupper() and len(model) > 1):
        new = like(new, model)
    group[place].text = new
    if old[1] == "subject":
        _make_agree(group, place, old[0], person)


def _pronoun(pieces: list[Piece], place: int) -> tuple[str, str] | None:
    """Return person (``i`` … ``they``) and role of the pronoun at a position; None for other words."""
    word, after = pieces[place].low, _word(pieces, place + 1)
    if word == "us" and _word(pieces, place - 1) == "the":
        # The country, in lower-case texts.
        return None
    if word == "her":
        return "she", "object" if after in _NOT_OWNED else "determiner"
    if word == "his":
        return "he", "possessive" if after in _NOT_OWNED else "determiner"
    if word in {"you", "it"}:
        return word, "object" if _is_object(pieces, place, after) else "subject"
    return _ONE_ROLE.get(word)


def _is_object(pieces: list[Piece], place: int, after: str) -> bool:
    """Return whether "you" or "it" at a position is an object."""
    before, second = _word(pieces, place - 1), _word(pieces, place - 2)
    if after in _HELPERS or (place + 1 < len(pieces) and pieces[place + 1].is_clitic):
        return False
    if before in {"do", "did"} and pieces[place].low == "you" and after:
        return False
    if before in _HELPERS and (place < 2 or not after or before in _VERB):
        # "do you", "how are you", but "I did it" and "can do it".
        return before in {"do", "did"} and second not in {"", "what", "where", "how", "when", "why"}
    return before != "" and (before not in _W.before_subject or not after)


def _word(pieces: list[Piece], place: int) -> str:
    """Return the word at a position, or before an "n't" there; empty for punctuation and beyond the ends."""
    if not 0 <= place < len(pieces):
        return ""
    piece = pieces[place]
    return _word(pieces, place - 1) if piece.low == "n't" else piece.low if piece.is_word else ""


def _make_agree(pieces: list[Piece], place: int, old: str, new: str) -> None:
    """Make the form of be, have or do after a subject, otherwise before it, agree with another person."""
    if _AGREE[old] == _AGREE[new] or (place + 1 < len(pieces) and _conjugate(pieces, place + 1, new)):
        return
    at = place - 1 if place and pieces[place - 1].low != "n't" else place - 2
    # It precedes its subject only in questions.
    first = at > 0 and (not pieces[at - 1].is_word or pieces[at - 1].low in _W.asking)
    if at == 0 or (at > 0 and (first or pieces[-1].text == "?")):
        _conjugate(pieces, at, new)


def _conjugate(pieces: list[Piece], at: int, person: str) -> bool:
    """Conjugate the verb at a position; return whether it is a form of be, have or do."""
    piece = pieces[at]
    if piece.low in {"'m", "'re", "'s", "'ve"}:
        after = _word(pieces, at + 1)
        # "She's tired" is, "she's eaten" has.
        perfect = after in _W.perfect or (is_participle(after) and "ADJ" not in lemmas(after))
        has = piece.low == "'ve" or (piece.low == "'s" and perfect)
        piece.text = _AGREE[person]["clitic have" if has else "clitic be"]
        return True
    if piece.low not in _VERB:
        return False
    form = _AGREE[person]["been" if piece.low in {"was", "were"} else _VERB[piece.low]]
    piece.text = like(form, piece.text)
    if form == "am" and at + 1 < len(pieces) and pieces[at + 1].low == "n't":
        # English has no "amn't".
        pieces[at + 1].gap, pieces[at + 1].text = " ", "not"
    return True
