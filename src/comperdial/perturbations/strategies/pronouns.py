"""Pronouns change gender, number or person."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.perturbations._pronouns import ROLES, Pronoun, agreed, role_of
from comperdial.perturbations._text import Piece, is_lower, join, like, sentences, split
from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.pool import Pool

# Person -> those that it may become.
_WAYS: dict[str, dict[str, tuple[str, ...]]] = {
    "gender": {"he": ("it", "they"), "she": ("it", "they"), "it": ("he", "she"), "they": ("he", "she")},
    "number": {"i": ("we",), "we": ("i",), "it": ("they",), "they": ("it",), "he": ("they",), "she": ("they",)},
    "person": {
        **{"i": ("you", "he", "she", "they"), "we": ("you", "they")},
        **{"you": ("i", "we"), "he": ("i", "you"), "she": ("i", "you"), "it": ("i", "you"), "they": ("i", "we", "you")},
    },
}
_POINTING = {"this": "these", "these": "this", "those": "that"}


class Pronouns(TurnStrategy):
    """One of three changes, whichever the response's pronouns allow, for all pronouns that it concerns.

    Gender (he, she with it, they), number (I with we, it with they, this with these), person (first with second or
    third). The forms of be, have and do beside a subject are made to agree; other verbs stay as they are.
    """

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the response with other pronouns."""
        groups = sentences(split(turn.response))
        persons = {pronoun.person for pronoun in _found(groups).values()}
        points = any(piece.low in _POINTING for group in groups for piece in group)
        ways = [way for way in sorted(_WAYS) if persons & _WAYS[way].keys() or (way == "number" and points)]
        if not ways:
            return None
        way = ways[random.integers(len(ways))]
        # Drawn for all persons in a fixed order, so that one text's draw does not hang on where they stand.
        targets = {person: new[random.integers(len(new))] for person, new in sorted(_WAYS[way].items())}
        return rewritten(turn.response, targets, points=way == "number")


def rewritten(text: str, targets: Mapping[str, str], *, points: bool = False) -> str:
    """Return a text with each person's pronouns made those of another.

    Parameters
    ----------
    text
        The text.
    targets
        Person (``i``, ``we``, ``you``, ``he``, ``she``, ``it``, ``they``) -> person.
    points
        Change the number of this, these and those too.
    """
    groups = sentences(split(text))
    for (number, place), pronoun in sorted(_found(groups).items()):
        if pronoun.person in targets:
            _put(groups[number], place, pronoun, targets[pronoun.person], is_lower(text))
    if points:
        _point(groups)
    return join([piece for group in groups for piece in group])


def _found(groups: list[list[Piece]]) -> dict[tuple[int, int], Pronoun]:
    return {
        (number, place): pronoun
        for number, group in enumerate(groups)
        for place in range(len(group))
        if (pronoun := role_of(group, place))
    }


def _put(group: list[Piece], place: int, old: Pronoun, person: str, small: bool) -> None:
    new = ROLES[person][old.role]
    model = group[place].text
    first = not any(piece.is_word for piece in group[:place])
    if new == "i":
        new = "i" if small else "I"
    elif (first and not small) or (model.isupper() and len(model) > 1):
        new = like(new, model)
    group[place].text = new
    if old.role == "subject":
        agreed(group, place, old.person, person)


def _point(groups: list[list[Piece]]) -> None:
    for group in groups:
        for place, piece in enumerate(group):
            if piece.low in _POINTING:
                plural = piece.low == "this"
                piece.text = like(_POINTING[piece.low], piece.text)
                agreed(group, place, "it" if plural else "they", "they" if plural else "it")
