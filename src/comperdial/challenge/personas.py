"""Personas out of PeaCoK as ComperDial draws them (3.1 and A.3): two profiles and fictional personal information each.

PeaCoK's relations name eight aspects: characteristic, routine or habit, goal or plan, experience, each with or without a
relationship to other people (Gao et al. 2023).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, NonNegativeInt, model_validator

from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import read_json, read_table, write_json

log = logging.getLogger(__name__)
T = TypeVar("T")
Heads = dict[str, dict[str, list[str]]]
"""Head persona as "i am …" -> aspect -> tails in the first person, in the order of the file."""
GENDERS = ("female", "male")
# How a tail becomes a sentence, in the order of a profile.
_FORMS = {
    "experience": ("i ", " in the past."),
    "characteristic": ("my character trait: ", "."),
    "routine_habit": ("i regularly or consistently ", "."),
    "goal_plan": ("i intend to ", " in the future."),
}
ASPECTS = tuple(f"{form}{others}" for form in _FORMS for others in ("", "_relationship"))


# The graph


class _Head(BaseModel):
    head_person: Filled | None = None
    attributes: dict[str, dict[str, Any]]


def read_graph(path: str | Path) -> Heads:
    """Read PeaCoK's ``peacok_kg.json``: {head: {head_person, attributes: {attribute: {attr_person, …}}}}.

    The field of an attribute's relation is not known to us: it is the attribute's first text that names an aspect. A file of
    another layout, or without any such text, is a :class:`SchemaError`.
    """
    heads: Heads = {}
    unknown: Counter[str] = Counter()
    for key, entry in checked(dict[str, _Head], read_json(path), str(path)).items():
        tails = heads.setdefault(head_sentence(entry.head_person or key), {})
        for name, attribute in entry.attributes.items():
            where = f"{path}, head {key!r}, attribute {name!r}, attr_person"
            tail = _plain(checked(Filled, attribute.get("attr_person") or name, where))
            tail = re.sub("^i (?!intend|regularly|am|was|will)", "", tail)
            fields = [value for place, value in attribute.items() if not place.startswith("attr_")]
            texts = [text for value in fields for text in (value if isinstance(value, list) else [value])]
            aspect = next((aspect for text in texts if isinstance(text, str) and (aspect := aspect_of(text))), None)
            if aspect is None:
                unknown[", ".join(map(str, texts)) or "(none)"] += 1
            elif tail and tail not in tails.setdefault(aspect, []):
                tails[aspect].append(tail)
    count = sum(len(tails) for aspects in heads.values() for tails in aspects.values())
    if not count:
        hint = f"The texts in the places of relations are: {', '.join(text for text, _ in unknown.most_common(9)):.800}"
        expected = f"relations such as {', '.join(ASPECTS)}"
        raise SchemaError("no head with a tail", where=str(path), expected=expected, hint=hint if unknown else None)
    log.info("%s: %d heads, %d tails; relations that name no aspect: %s", path, len(heads), count, dict(unknown))
    return heads


_BASES = {form.replace("_", ""): form for form in _FORMS}
_BASES |= {"routine": "routine_habit", "habit": "routine_habit", "goal": "goal_plan", "plan": "goal_plan"}
_FILLERS = {"or", "a", "and", "with", "without", "no", "not", "relationship", "relation", "has"}


def aspect_of(relation: str) -> str | None:
    """Return the aspect that a relation means, or None: "Goal or Plan (relationship)" is goal_plan_relationship."""
    words = re.findall("[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", relation).lower())
    base = _BASES.get("".join(word for word in words if word not in _FILLERS))
    with_others = "relationship" in words and not {"without", "no", "not"} & {*words}
    return f"{base}_relationship" if base and with_others else base


def head_sentence(text: str) -> str:
    """Return a head persona as a sentence without its full stop: "a rancher" becomes "i am a rancher"."""
    text = re.sub(r"^i['’]m ", "i am ", _plain(text))
    return text if re.match(r"i\b", text) else f"i am {text}"


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .")


# The constraints

# A noun phrase ends where one of these begins: "a lawyer who fights fraudsters" is no fraudster.
_PHRASE_END = r"\b(?:who|that|which|with|in|on|at|for|of|from|to|and|,)\b.*"
# After "her", these say that it was an object and not a possessive: "help her with", "thank her".
_NOT_OWNED = {
    "", "with", "to", "in", "on", "at", "for", "of", "from", "and", "or", "but", "as", "when", "how", "every", "by",
    "a", "the", "about", "into", "up", "out", "through", "before", "after", "during", "each", "again", "home", "while",
}  # fmt: skip


@dataclass(frozen=True)
class Constraints:
    """What a persona may hold; each attribute is one file of ``data/personas``."""

    # Generation (0, 10, … 50, the age of who was named in that decade) and gender -> names (Table 9).
    names: dict[tuple[int, str], list[str]]
    # Sentence, with <n> for a number -> ages (Table 10).
    family: dict[str, range]
    # Head persona -> ages (Table 11), and those of any other head.
    ages: dict[str, range]
    default_ages: range
    # Words of heads that give a negative impression -> noun or adjective.
    negative: dict[str, str]
    # Gendered word -> neutral word, or "" if there is none.
    neutral: dict[str, str]

    def ages_of(self, head: str) -> range:
        """Return the ages of a head persona, given as "i am …"."""
        return self.ages.get(head, self.default_ages)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        adjectives, nouns = (
            _any_of(w for w, k in self.negative.items() if k == kind) for kind in ("adjective", "noun")
        )
        gendered = re.compile(rf"\b{_any_of(sorted(self.neutral, key=len, reverse=True))}\b", re.IGNORECASE)
        return re.compile(rf"\b{adjectives}\b"), re.compile(rf"\b{nouns}s?$"), gendered

    def is_negative(self, head: str) -> bool:
        """Return whether a word makes a head negative."""
        adjective, noun, _ = self._patterns
        phrase = re.sub(_PHRASE_END, "", head.lower()).strip()
        return bool(adjective.search(head.lower()) or noun.search(phrase))

    def neutralise(self, text: str) -> str:
        """Put neutral words for gendered ones; a word without a neutral alternative, such as "king", stays."""
        done: list[str] = []

        def replace(match: re.Match[str]) -> str:
            word = match.group().lower()
            neutral = self.neutral[word]
            if word == "her":
                following = re.match(r"\s+([a-z'-]+)", text[match.end() :].lower())
                neutral = "them" if (following.group(1) if following else "") in _NOT_OWNED else neutral
            done.extend([word] * bool(neutral))
            return neutral or match.group()

        result = self._patterns[2].sub(replace, text)
        if {"he", "she"} & {*done}:
            for wrong, right in (("is", "are"), ("was", "were"), ("has", "have"), ("does", "do")):
                result = re.sub(rf"\bthey {wrong}\b", f"they {right}", result)
        if done:
            result = re.sub(r"\ba (?=[aeio])", "an ", re.sub(r"\ban (?=[^aeiou\W])", "a ", result))
        return result


def _any_of(words: Iterable[str]) -> str:
    # Of no words a group that never matches: an empty one always would.
    return f"({'|'.join(map(re.escape, words)) or '(?!)'})"


class _Name(BaseModel):
    generation: int
    gender: Literal[GENDERS]  # type: ignore[valid-type]
    name: Filled


class _Ages(BaseModel):
    start_age: NonNegativeInt
    end_age: int

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.start_age > self.end_age:
            raise ValueError(f"ages from {self.start_age} to {self.end_age}")
        return self


class _HeadAges(_Ages):
    head: Filled


class _FamilyAges(_Ages):
    family_info: Filled


class _Negative(BaseModel):
    word: Filled
    kind: str


class _Neutral(BaseModel):
    gendered: Filled
    neutral: str


def read_constraints(folder: str | Path, *, default_ages: tuple[int, int] = (20, 50)) -> Constraints:
    """Read the CSV files of a folder; a :class:`SchemaError` names the line at fault."""

    def rows(name: str, kind: type[BaseModel]) -> list[tuple[dict[Any, Any], Any]]:
        path = Path(folder) / f"{name}.csv"
        records = read_table(path).to_dict("records")
        return [(row, checked(kind, row, f"{path}, line {line}")) for line, row in enumerate(records, start=2)]

    def ages(name: str, column: str, kind: type[_Ages]) -> dict[str, range]:
        return {getattr(of, column): range(of.start_age, of.end_age + 1) for _, of in rows(name, kind)}

    names: dict[tuple[int, str], list[str]] = {}
    for _, row in rows("names", _Name):
        names.setdefault((row.generation, row.gender), []).append(row.name)
    if not names:
        raise SchemaError("no names", where=f"{folder}/names.csv", expected="names by generation and gender")
    return Constraints(
        names=names,
        family=ages("family", "family_info", _FamilyAges),
        ages={head_sentence(head): of for head, of in ages("ages", "head", _HeadAges).items()},
        negative={row.word: row.kind for _, row in rows("negative", _Negative)},
        neutral={row.gendered: row.neutral for _, row in rows("gender_neutral", _Neutral)},
        default_ages=range(default_ages[0], default_ages[1] + 1),
    )


# The youngest age at which somebody starts what they have then done "for N years".
_STARTED_AT = 14
_YEARS = r"\b(?:for|after|over) (?:more than |over |almost |nearly )?(\d+) years\b|\b(\d+) years (?:of|in)\b"
_REACHED = r"\b(?:turned|at the age of|at age|when i was|my) (\d+)(?:st|nd|rd|th)?\b(?! years)"
_WILL_REACH = r"\b(?:turn|before|by|on my|my) (\d+)(?:st|nd|rd|th)?\b(?: birthday)?"
# Sentences that are true from an age on.
_RETIRED = r"\bretired from\b|\b(?:am|as) (?:a )?retired\b"
_GRANDPARENT = r"\bgrand(?:mother|father|parent) of\b|\bmy grand(?:child|son|daughter)"


def fitting_age(sentence: str, age: int, *, goal: bool = False) -> int:
    """Return the nearest age in years that agrees with a sentence, in lower case; the ages of a ``goal`` lie ahead."""
    if goal:
        return next((number - 1 for number in _numbers(_WILL_REACH, sentence) if number <= age), age)
    least = (
        max((_STARTED_AT + n for n in _numbers(_YEARS, sentence)), default=0),
        max(_numbers(_REACHED, sentence), default=0),
        40 if re.search(_RETIRED, sentence) else 0,
        38 if re.search(_GRANDPARENT, sentence) else 0,
    )
    return next((years for years in least if age < years), age)


def _numbers(pattern: str, sentence: str) -> list[int]:
    return [int(group) for match in re.finditer(pattern, sentence) for group in match.groups() if group]


# Drawing


@dataclass
class Persona:
    """One persona; gender is hidden information, which no sentence has (A.3)."""

    persona_id: str
    name: str
    age: int
    gender: str
    heads: list[str]
    # In lower case, and for each what it is: name, age, family, head or an aspect of PeaCoK.
    sentences: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def write_personas(heads: Heads, constraints: Constraints, path: str | Path, *, count: int, seed: int) -> None:
    """Draw personas, and write them as JSON."""
    write_json(path, {"personas": [asdict(one) for one in generate(heads, constraints, count=count, seed=seed)]})


def generate(heads: Heads, constraints: Constraints, *, count: int, seed: int) -> list[Persona]:
    """Draw personas; persona k depends on the seed and on k alone, so that drawing more leaves the first ones as they were.

    If no two heads, or no name or family information fit together, that is a :class:`ConfigError`.
    """
    usable = [head for head, tails in heads.items() if tails and not constraints.is_negative(head)]
    log.info("%d of %d heads are usable, %d have no range of ages of their own", len(usable), len(heads),
             len({*usable} - {*constraints.ages}))  # fmt: skip
    return [_draw(n, usable, heads, constraints, np.random.default_rng([seed, n])) for n in range(count)]


def _draw(number: int, usable: list[str], heads: Heads, constraints: Constraints, rng: np.random.Generator) -> Persona:
    """Draw heads, age and gender, a profile of each head, and a name and family information that fit."""
    chosen, ages = _two_heads(usable, constraints, rng)
    age = int(rng.integers(ages.start, ages.stop))
    persona = Persona(f"P{number + 1:04d}", "", age, _pick(rng, GENDERS, "gender"), chosen)
    for head in chosen:
        tails = heads[head]
        drawn = [(one, _sentence(one, _pick(rng, tails[one], "tail"))) for one in ASPECTS if tails.get(one)]
        for kind, text in [("head", f"{head}."), *drawn]:
            sentence = constraints.neutralise(text)
            if kind == "head" or _fits(persona, sentence, kind, ages):
                persona.sentences.append(sentence)
                persona.kinds.append(kind)
    oldest = max((generation for generation, _ in constraints.names), default=0)
    names = constraints.names.get((min(persona.age // 10 * 10, oldest), persona.gender), [])
    persona.name = _pick(rng, names, f"name for age {persona.age}, {persona.gender}")
    fitting = [info for info, range_ in constraints.family.items() if persona.age in range_]
    family = _pick(rng, fitting, f"family information for age {persona.age}")
    family = family.replace("<n>", _pick(rng, ("two", "three"), "number"))
    persona.sentences[:0] = [f"my name is {persona.name.lower()}.", f"i'm {persona.age} years old.", family.lower()]
    persona.kinds[:0] = ["name", "age", "family"]
    return persona


def _two_heads(usable: list[str], constraints: Constraints, rng: np.random.Generator) -> tuple[list[str], range]:
    """Return two heads that have ages in common, and those."""
    for heads in permutations([usable[i] for i in rng.permutation(len(usable))], 2):
        one, other = map(constraints.ages_of, heads)
        if ages := range(max(one.start, other.start), min(one.stop, other.stop)):
            return [*heads], ages
    expected = "two heads with tails, without a negative word and with ages in common (ages.csv)"
    raise ConfigError(f"none of {len(usable)} heads fit together", where="personas", expected=expected)


def _pick(rng: np.random.Generator, choices: Sequence[T], what: str) -> T:
    if not choices:
        raise ConfigError(f"no {what}", where="personas", expected="a row for it among the constraints")
    return choices[int(rng.integers(len(choices)))]


def _sentence(aspect: str, tail: str) -> str:
    before, after = _FORMS[aspect.removesuffix("_relationship")]
    if tail.startswith(before.strip()) and len(before) > 2:
        # PeaCoK's own first-person form, whole.
        return f"{tail}."
    return f"{before}{tail.removeprefix('to ') if 'goal' in aspect else tail}{after}"


def _fits(persona: Persona, sentence: str, aspect: str, ages: range) -> bool:
    """Return whether a sentence agrees with a persona's age, which is changed if all sentences then agree."""
    better = fitting_age(sentence, persona.age, goal=aspect.startswith("goal"))
    before = zip(persona.sentences, persona.kinds, strict=True)
    if better != persona.age and (
        better not in ages or any(fitting_age(s, better, goal=k.startswith("goal")) != better for s, k in before)
    ):
        return False
    persona.age = better
    return True
