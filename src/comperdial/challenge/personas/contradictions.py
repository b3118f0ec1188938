"""Contradictions inside a persona, found by rule: years against the age, family against family, opposites."""

from __future__ import annotations

import re
from dataclasses import dataclass

from comperdial.challenge.personas.rules import Constraints

# The youngest age at which somebody starts what they have then done "for N years".
_STARTED_AT = 14
_YEARS = re.compile(
    r"\b(?:for|after|over) (?:more than |over |almost |nearly )?(\d+) years\b|\b(\d+) years (?:of|in)\b"
)
_REACHED = re.compile(r"\b(?:turned|at the age of|at age|when i was|my) (\d+)(?:st|nd|rd|th)?\b(?! years)")
_WILL_REACH = re.compile(r"\b(?:turn|before|by|on my|my) (\d+)(?:st|nd|rd|th)?\b(?: birthday)?")
_RETIRED = re.compile(r"\bretired from\b|\b(?:am|as) (?:a )?retired\b")
_RETIREMENT_AGE = 40
_GRANDPARENT = re.compile(r"\bgrand(?:mother|father|parent) of\b|\bmy grand(?:child|son|daughter)")
_GRANDPARENT_AGE = 38

# What family information rules out in the other sentences.
_ALONE = re.compile(r"\blive on my own\b|\blive alone\b")
_LIVES_WITH = re.compile(r"\b(?:live|living|share a (?:flat|room|house)) with\b|\bmy (?:spouse|roommate|flatmate)s?\b")
_ONLY_CHILD = re.compile(r"\bonly child\b")
_SIBLING = re.compile(r"\bmy (?:\w+ )?(?:siblings?|brothers?|sisters?|twin)\b")
_PARENT = re.compile(r"\bhave \w+ (?:sons|daughters|children)\b|\bmy (?:son|daughter) \b")
_CHILDLESS = re.compile(r"\bno (?:children|kids)\b|\bchildless\b|\bmy first (?:child|baby)\b")


@dataclass(frozen=True)
class Contradiction:
    """Two sentences of one persona that cannot both be true, and which rule says so.

    ``least_age`` and ``most_age`` are the ages at which the sentence would be true, where it is about age.
    """

    sentence: str
    other: str
    rule: str
    least_age: int | None = None
    most_age: int | None = None


def age_contradiction(sentence: str, age: int, *, goal: bool = False) -> Contradiction | None:
    """Return how a sentence contradicts an age in years, or None.

    Parameters
    ----------
    sentence
        A sentence of a profile, in lower case.
    age
        Of the fictional personal information.
    goal
        The sentence is a goal or plan: what it says of ages lies ahead.
    """
    said = f"i'm {age} years old."
    if goal:
        for number in _numbers(_WILL_REACH, sentence):
            if number <= age:
                return Contradiction(sentence, said, "already older than planned", most_age=number - 1)
        return None
    for rule, least in (
        (
            "more years than lived since childhood",
            max((n + _STARTED_AT for n in _numbers(_YEARS, sentence)), default=0),
        ),
        ("an age not reached yet", max(_numbers(_REACHED, sentence), default=0)),
        ("too young to be retired", _RETIREMENT_AGE if _RETIRED.search(sentence) else 0),
        ("too young to be a grandparent", _GRANDPARENT_AGE if _GRANDPARENT.search(sentence) else 0),
    ):
        if age < least:
            return Contradiction(sentence, said, rule, least_age=least)
    return None


def _numbers(pattern: re.Pattern[str], sentence: str) -> list[int]:
    return [int(group) for match in pattern.finditer(sentence) for group in match.groups() if group]


def family_contradiction(sentence: str, family: str) -> Contradiction | None:
    """Return how a sentence contradicts the family sentence, or None."""
    sentence, family = sentence.lower(), family.lower()
    for ruled_out_by, ruled_out, rule in (
        (_ALONE, _LIVES_WITH, "lives alone and with somebody"),
        (_ONLY_CHILD, _SIBLING, "an only child with a sibling"),
        (_PARENT, _CHILDLESS, "a parent without children"),
    ):
        if (ruled_out_by.search(family) and ruled_out.search(sentence)) or (
            ruled_out.search(family) and ruled_out_by.search(sentence)
        ):
            return Contradiction(sentence, family, rule)
    return None


def opposite(sentence: str, others: list[str], constraints: Constraints) -> Contradiction | None:
    """Return the first of the other sentences that says the opposite, or None."""
    for here, there in constraints.opposite_patterns:
        if here.search(sentence):
            other = next((other for other in others if there.search(other)), None)
            if other is not None:
                return Contradiction(sentence, other, "opposites")
    return None
