"""Draw personas: two profiles and one fictional personal information each (ComperDial, 3.1 and A.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from comperdial.challenge.personas.contradictions import (
    Contradiction,
    age_contradiction,
    family_contradiction,
    opposite,
)
from comperdial.challenge.personas.graph import ASPECTS, Graph
from comperdial.challenge.personas.rules import GENDERS, Constraints, Range
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_json

_FORMS = {
    "characteristic": ("my character trait: ", "."),
    "routine_habit": ("i regularly or consistently ", "."),
    "goal_plan": ("i intend to ", " in the future."),
    "experience": ("i ", " in the past."),
}
_PROFILES = 2
_NUMBERS = {2: "two", 3: "three"}


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
        What the sentences say; gender is not in them (A.3 keeps it as hidden information).
    corrections
        Contradictions that were found while drawing, and what was done about each.
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


@dataclass
class Drawn:
    """Personas, and what drawing them met: heads skipped for a word, heads that lack an age range."""

    personas: list[Persona]
    skipped: dict[str, str]
    without_ages: list[str]

    def report(self) -> dict[str, Any]:
        """Return what a reader of the results should know, as plain values."""
        return {
            "personas": len(self.personas),
            "negative_heads_skipped": self.skipped,
            "heads_without_an_age_range": self.without_ages,
            "contradictions": [{"persona_id": p.persona_id, **c} for p in self.personas for c in p.corrections],
            "gendered_words": [{"persona_id": p.persona_id, "word": w} for p in self.personas for w in p.neutralised],
        }


def generate(graph: Graph, constraints: Constraints, *, count: int, seed: int) -> Drawn:
    """Draw personas.

    Persona k depends on the seed and on k alone, so that drawing more leaves the first ones as they were.

    Raises
    ------
    ConfigError
        When the graph has no two heads that fit together, or no name or family information fits an age.
    """
    skipped = {head: word for head in graph.heads if (word := constraints.is_negative(head))}
    heads = [head for head, tails in graph.heads.items() if head not in skipped and tails]
    if len(heads) < _PROFILES:
        raise ConfigError(
            f"{len(heads)} of {len(graph.heads)} heads are usable",
            where="personas",
            expected=f"{_PROFILES} or more heads with tails and without a negative word",
        )
    personas = [
        _draw(graph, constraints, heads, number, np.random.default_rng([seed, number])) for number in range(count)
    ]
    return Drawn(personas, skipped, [head for head in heads if head not in constraints.ages])


def write_personas(drawn: Drawn, path: str | Path) -> None:
    """Write personas and the report as one JSON file."""
    write_json(path, {"personas": [asdict(p) for p in drawn.personas], "report": drawn.report()})


def _draw(graph: Graph, constraints: Constraints, heads: list[str], number: int, rng: np.random.Generator) -> Persona:
    chosen, ages = _two_heads(constraints, heads, rng)
    age = int(rng.integers(ages.start, ages.end + 1))
    gender = GENDERS[int(rng.integers(len(GENDERS)))]
    neutralised: list[str] = []
    corrections: list[dict[str, Any]] = []
    profile: list[tuple[str, str]] = []
    for head in chosen:
        profile.append((_neutral(f"{head}.", constraints, neutralised), "head"))
        for aspect in ASPECTS:
            tails = graph.heads[head].get(aspect, [])
            if not tails:
                continue
            sentence = _neutral(_sentence(aspect, tails[int(rng.integers(len(tails)))]), constraints, neutralised)
            found = opposite(sentence, [s for s, _ in profile], constraints)
            if found:
                corrections.append(_correction(found, "the sentence was left out"))
                continue
            age, kept = _fit_age(sentence, aspect, age, ages, profile, corrections)
            if kept:
                profile.append((sentence, aspect))
    name = _pick(constraints.names_for(age, gender), rng, f"name for age {age}, {gender}")
    family = _family(constraints, age, [s for s, _ in profile], corrections, rng)
    facts = [(f"my name is {name.lower()}.", "name"), (f"i'm {age} years old.", "age"), (family.lower(), "family")]
    return Persona(
        persona_id=f"P{number + 1:04d}",
        sentences=[sentence for sentence, _ in facts + profile],
        kinds=[kind for _, kind in facts + profile],
        name=name,
        age=age,
        gender=gender,
        heads=chosen,
        corrections=corrections,
        neutralised=neutralised,
    )


def _two_heads(constraints: Constraints, heads: Sequence[str], rng: np.random.Generator) -> tuple[list[str], Range]:
    order = [heads[i] for i in rng.permutation(len(heads))]
    for first in order:
        for second in order:
            ages = constraints.ages_of(first) & constraints.ages_of(second)
            if second != first and ages:
                return [first, second], ages
    raise ConfigError(
        "no two heads have an age in common", where="personas", expected="age ranges that overlap in ages.csv"
    )


def _sentence(aspect: str, tail: str) -> str:
    before, after = _FORMS[aspect.removesuffix("_relationship")]
    if tail.startswith(before.strip()) and len(before) > 2:
        # PeaCoK's own first-person form, whole.
        return f"{tail}."
    return f"{before}{tail.removeprefix('to ') if 'goal' in aspect else tail}{after}"


def _neutral(sentence: str, constraints: Constraints, neutralised: list[str]) -> str:
    text, done = constraints.neutralise(sentence)
    neutralised += done
    return text


def _fit_age(
    sentence: str,
    aspect: str,
    age: int,
    ages: Range,
    profile: Sequence[tuple[str, str]],
    corrections: list[dict[str, Any]],
) -> tuple[int, bool]:
    """Return the age, changed if the sentence and all before it then agree, and whether the sentence may stay."""
    found = age_contradiction(sentence, age, goal=aspect.startswith("goal"))
    if not found:
        return age, True
    better = found.least_age if found.least_age is not None else found.most_age
    if better in ages and not any(age_contradiction(s, better, goal=k.startswith("goal")) for s, k in profile):  # type: ignore[arg-type]
        corrections.append(_correction(found, f"the age became {better}"))
        return int(better), True  # type: ignore[arg-type]
    corrections.append(_correction(found, "the sentence was left out"))
    return age, False


def _family(
    constraints: Constraints,
    age: int,
    profile: Sequence[str],
    corrections: list[dict[str, Any]],
    rng: np.random.Generator,
) -> str:
    fitting = [info for info, ages in constraints.family.items() if age in ages]
    while fitting:
        info = _pick(fitting, rng, f"family information for age {age}")
        text = info.replace("<n>", _NUMBERS[int(rng.integers(2, 4))])
        found = next((c for s in profile if (c := family_contradiction(s, text))), None)
        if not found:
            return text
        corrections.append(_correction(found, "other family information was drawn"))
        fitting.remove(info)
    raise ConfigError(f"no family information fits age {age}", where="family.csv", expected="a row for that age")


def _pick(choices: Sequence[str], rng: np.random.Generator, what: str) -> str:
    if not choices:
        raise ConfigError(f"no {what}", where="personas", expected="a row for it in names.csv or family.csv")
    return choices[int(rng.integers(len(choices)))]


def _correction(found: Contradiction, done: str) -> dict[str, Any]:
    return {"sentence": found.sentence, "contradicts": found.other, "rule": found.rule, "done": done}
