"""Contradictions inside a persona, by rule: years against the age, family against family, opposites."""

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
# Sentences that are true from an age on.
_FROM_AGE = (
    ("too young to be retired", 40, re.compile(r"\bretired from\b|\b(?:am|as) (?:a )?retired\b")),
    (
        "too young to be a grandparent",
        38,
        re.compile(r"\bgrand(?:mother|father|parent) of\b|\bmy grand(?:child|son|daughter)"),
    ),
)
# Two sentences that exclude each other, in family information and elsewhere.
_FAMILY = (
    (
        "lives alone and with somebody",
        re.compile(r"\blive on my own\b|\blive alone\b"),
        re.compile(r"\b(?:live|living|share a (?:flat|room|house)) with\b|\bmy (?:spouse|roommate|flatmate)s?\b"),
    ),
    (
        "an only child with a sibling",
        re.compile(r"\bonly child\b"),
        re.compile(r"\bmy (?:\w+ )?(?:siblings?|brothers?|sisters?|twin)\b"),
    ),
    (
        "a parent without children",
        re.compile(r"\bhave \w+ (?:sons|daughters|children)\b|\bmy (?:son|daughter) \b"),
        re.compile(r"\bno (?:children|kids)\b|\bchildless\b|\bmy first (?:child|baby)\b"),
    ),
)


@dataclass(frozen=True)
class Contradiction:
    """Two sentences of one persona that cannot both be true, and by which rule.

    ``true_at`` is the age nearest to the persona's at which the sentence would be true, if it is about age.
    """

    sentence: str
    other: str
    rule: str
    true_at: int | None = None


def age_contradiction(sentence: str, age: int, *, goal: bool = False) -> Contradiction | None:
    """Return how a sentence contradicts an age in years, or None.

    Parameters
    ----------
    sentence
        A sentence of a profile, in lower case.
    age
        Of the fictional personal information.
    goal
        The sentence is a goal or plan: its ages lie ahead.
    """
    other = f"i'm {age} years old."
    if goal:
        passed = (number for number in _numbers(_WILL_REACH, sentence) if number <= age)
        number = next(passed, None)
        return None if number is None else Contradiction(sentence, other, "already older than planned", number - 1)
    years = max((n + _STARTED_AT for n in _numbers(_YEARS, sentence)), default=0)
    for rule, least in (
        ("more years than lived since childhood", years),
        ("an age not reached yet", max(_numbers(_REACHED, sentence), default=0)),
        *((rule, least if pattern.search(sentence) else 0) for rule, least, pattern in _FROM_AGE),
    ):
        if age < least:
            return Contradiction(sentence, other, rule, least)
    return None


def _numbers(pattern: re.Pattern[str], sentence: str) -> list[int]:
    return [int(group) for match in pattern.finditer(sentence) for group in match.groups() if group]


def family_contradiction(sentence: str, family: str) -> Contradiction | None:
    """Return how a sentence contradicts the family sentence, or None."""
    sentence, family = sentence.lower(), family.lower()
    for rule, one, other in _FAMILY:
        if (one.search(family) and other.search(sentence)) or (other.search(family) and one.search(sentence)):
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
