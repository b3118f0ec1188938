"""Draw personas: two profiles and one fictional personal information each (ComperDial, 3.1 and A.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from comperdial.challenge.personas.contradictions import (
    Contradiction,
    age_contradiction,
    family_contradiction,
    opposite,
)
from comperdial.challenge.personas.graph import ASPECTS, Heads
from comperdial.challenge.personas.rules import GENDERS, Constraints
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_json

_FORMS = {
    "characteristic": ("my character trait: ", "."),
    "routine_habit": ("i regularly or consistently ", "."),
    "goal_plan": ("i intend to ", " in the future."),
    "experience": ("i ", " in the past."),
}


@dataclass
class Persona:
    """One persona.

    Attributes
    ----------
    persona_id
        "P0001" and so on, by the order of drawing.
    sentences, kinds
        The persona's sentences in lower case, and for each what it is: name, age, family, head or an aspect of PeaCoK.
    name, age, gender, heads
        What the sentences are made of; gender is not in them (A.3 keeps it as hidden information).
    corrections
        Contradictions that came up while drawing, and what was done about each.
    neutralised
        Gendered words that were replaced, or kept for want of a neutral one.
    """

    persona_id: str
    sentences: list[str]
    kinds: list[str]
    name: str
    age: int
    gender: str
    heads: list[str]
    corrections: list[dict[str, Any]] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)


def write_personas(heads: Heads, constraints: Constraints, path: str | Path, *, count: int, seed: int) -> None:
    """Draw personas, and write them as JSON with a report of what was skipped, neutralised and corrected."""
    personas = generate(heads, constraints, count=count, seed=seed)
    usable = _usable(heads, constraints)
    report = {
        "personas": len(personas),
        "negative_heads_skipped": {head: word for head in heads if (word := constraints.is_negative(head))},
        "heads_without_an_age_range": [head for head in usable if head not in constraints.ages],
        "contradictions": [{"persona_id": p.persona_id, **c} for p in personas for c in p.corrections],
        "gendered_words": [{"persona_id": p.persona_id, "word": w} for p in personas for w in p.neutralised],
    }
    write_json(path, {"personas": [asdict(persona) for persona in personas], "report": report})


def generate(heads: Heads, constraints: Constraints, *, count: int, seed: int) -> list[Persona]:
    """Draw personas.

    Persona k depends on the seed and on k alone, so that drawing more leaves the first ones as they were.

    Raises
    ------
    ConfigError
        When the graph has no two heads that fit together, or no name or family information fits an age.
    """
    usable = _usable(heads, constraints)
    if len(usable) < 2:
        problem = f"{len(usable)} of {len(heads)} heads are usable"
        raise ConfigError(problem, where="personas", expected="2 or more heads with tails and without a negative word")
    return [
        _Drawing(heads, constraints, np.random.default_rng([seed, number])).persona(usable, number)
        for number in range(count)
    ]


def _usable(heads: Heads, constraints: Constraints) -> list[str]:
    return [head for head, tails in heads.items() if tails and not constraints.is_negative(head)]


class _Drawing:
    """One persona being drawn."""

    def __init__(self, heads: Heads, constraints: Constraints, rng: np.random.Generator) -> None:
        self.heads, self.constraints, self.rng = heads, constraints, rng
        self.profile: list[tuple[str, str]] = []
        self.corrections: list[dict[str, Any]] = []
        self.neutralised: list[str] = []

    def persona(self, usable: Sequence[str], number: int) -> Persona:
        """Draw heads, age and gender, a profile of each head, and a name and family that fit."""
        heads, ages = self._two_heads(usable)
        age = int(self.rng.integers(ages.start, ages.stop))
        gender = self._pick(GENDERS, "gender")
        for head in heads:
            self.profile.append((self._neutral(f"{head}."), "head"))
            for aspect in ASPECTS:
                if tails := self.heads[head].get(aspect):
                    age = self._add(aspect, self._neutral(_sentence(aspect, self._pick(tails, aspect))), age, ages)
        name = self._pick(self.constraints.names_for(age, gender), f"name for age {age}, {gender}")
        family = self._family(age)
        facts = [(f"my name is {name.lower()}.", "name"), (f"i'm {age} years old.", "age"), (family.lower(), "family")]
        sentences, kinds = map(list, zip(*facts, *self.profile, strict=True))
        drawn = (name, age, gender, heads, self.corrections, self.neutralised)
        return Persona(f"P{number + 1:04d}", sentences, kinds, *drawn)

    def _two_heads(self, usable: Sequence[str]) -> tuple[list[str], range]:
        order = [usable[i] for i in self.rng.permutation(len(usable))]
        for first, second in permutations(order, 2):
            one, other = self.constraints.ages_of(first), self.constraints.ages_of(second)
            if ages := range(max(one.start, other.start), min(one.stop, other.stop)):
                return [first, second], ages
        expected = "age ranges that overlap in ages.csv"
        raise ConfigError("no two heads have an age in common", where="personas", expected=expected)

    def _add(self, aspect: str, sentence: str, age: int, ages: range) -> int:
        """Add a sentence unless it contradicts the others; return the age, changed if all sentences then agree."""
        problem = opposite(sentence, [other for other, _ in self.profile], self.constraints)
        problem = problem or age_contradiction(sentence, age, goal=aspect.startswith("goal"))
        if problem:
            better = problem.true_at
            if (
                better is None
                or better not in ages
                or any(age_contradiction(other, better, goal=kind.startswith("goal")) for other, kind in self.profile)
            ):
                self._correct(problem, "the sentence was left out")
                return age
            age = better
            self._correct(problem, f"the age became {age}")
        self.profile.append((sentence, aspect))
        return age

    def _family(self, age: int) -> str:
        fitting = [info for info, ages in self.constraints.family.items() if age in ages]
        while fitting:
            info = self._pick(fitting, "family information")
            text = info.replace("<n>", ("two", "three")[int(self.rng.integers(2))])
            problem = next((c for other, _ in self.profile if (c := family_contradiction(other, text))), None)
            if not problem:
                return text
            self._correct(problem, "other family information was drawn")
            fitting.remove(info)
        raise ConfigError(f"no family information fits age {age}", where="family.csv", expected="a row for that age")

    def _pick(self, choices: Sequence[str], what: str) -> str:
        if not choices:
            raise ConfigError(f"no {what}", where="personas", expected="a row for it in names.csv")
        return choices[int(self.rng.integers(len(choices)))]

    def _neutral(self, sentence: str) -> str:
        text, done = self.constraints.neutralise(sentence)
        self.neutralised += done
        return text

    def _correct(self, problem: Contradiction, done: str) -> None:
        entry = {"sentence": problem.sentence, "contradicts": problem.other, "rule": problem.rule, "done": done}
        self.corrections.append(entry)


def _sentence(aspect: str, tail: str) -> str:
    before, after = _FORMS[aspect.removesuffix("_relationship")]
    if tail.startswith(before.strip()) and len(before) > 2:
        # PeaCoK's own first-person form, whole.
        return f"{tail}."
    return f"{before}{tail.removeprefix('to ') if 'goal' in aspect else tail}{after}"
