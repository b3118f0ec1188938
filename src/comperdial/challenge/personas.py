"""Draw personas from PeaCoK as in ComperDial (3.1 and A.3): two profiles each, with fictional personal information.

PeaCoK's relations have eight aspects: characteristic, routine or habit, goal or plan, experience, each with or without a
relationship to other people (Gao et al. 2023).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, NonNegativeInt, create_model

from comperdial.challenge.records import Filled, checked
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import read_json, read_table, write_json

log = logging.getLogger(__name__)
T = TypeVar("T")
Heads = dict[str, dict[str, list[str]]]
"""Head persona as "i am …" -> aspect -> tails in the first person, in the order of the file."""
GENDERS = ("female", "male")
_W = load_yaml(Path(__file__).with_name("personas.yaml"))
_NOT_OWNED = {"", *_W["not_owned"].split()}
ASPECTS = tuple(f"{form}{others}" for form in _W["forms"] for others in ("", "_relationship"))
# Minimum age at which somebody starts what they have done "for N years".
_STARTED_AT = 14


# The graph


class _Head(BaseModel):
    head_person: Filled | None = None
    attributes: dict[str, dict[str, Any]]


def read_graph(path: str | Path) -> Heads:
    """Read PeaCoK's ``peacok_kg.json``: {head: {head_person, attributes: {attribute: {attr_person, …}}}}.

    The field of an attribute's relation is unknown to us: the first text that names an aspect is used. Raises a
    :class:`SchemaError` if the file has another layout, or no such text.
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


_WITHOUT = {"without", "no", "not"}
_FILLERS = _WITHOUT | {"or", "a", "and", "with", "relationship", "relation", "has"}
# Also "routine", "habit", "goal" and "plan" alone.
_BASES = {name: form for form in _W["forms"] for name in (form.replace("_", ""), *form.split("_"))}


def aspect_of(relation: str) -> str | None:
    """Return the aspect of a relation, or None: "Goal or Plan (relationship)" is goal_plan_relationship."""
    words = re.findall("[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", relation).lower())
    base = _BASES.get("".join(word for word in words if word not in _FILLERS))
    return f"{base}_relationship" if base and "relationship" in words and _WITHOUT.isdisjoint(words) else base


def head_sentence(text: str) -> str:
    """Return a head persona as a sentence without full stop: "a rancher" becomes "i am a rancher"."""
    text = re.sub(r"^i['’]m ", "i am ", _plain(text))
    return text if re.match(r"i\b", text) else f"i am {text}"


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .")


# The constraints


@dataclass(frozen=True)
class Constraints:
    """Constraints on personas; each attribute is a file in ``data/personas``."""

    # Generation (0, 10, … 50, the age of people named in that decade) and gender -> names (Table 9).
    names: dict[tuple[int, str], list[str]]
    # Sentence, with <n> for a number -> ages (Table 10).
    family: dict[str, range]
    # Head persona -> ages (Table 11), and those of all other heads.
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
        phrase = re.sub(_W["phrase_end"], "", head.lower()).strip()
        return bool(adjective.search(head.lower()) or noun.search(phrase))

    def neutralise(self, text: str) -> str:
        """Replace gendered words by neutral ones; words without a neutral alternative, such as "king", are kept."""
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
    # Without words, a group that never matches; an empty one always would.
    return f"({'|'.join(map(re.escape, words)) or '(?!)'})"


_AGES = {"start_age": (NonNegativeInt, ...), "end_age": (int, ...)}
# The files in a folder of constraints, and the content of each column.
_FILES: dict[str, dict[str, Any]] = {
    "names": {"generation": (int, ...), "gender": (Literal["female", "male"], ...), "name": (Filled, ...)},
    "family": {"family_info": (Filled, ...), **_AGES},
    "ages": {"head": (Filled, ...), **_AGES},
    "negative": {"word": (Filled, ...), "kind": (str, ...)},
    "gender_neutral": {"gendered": (Filled, ...), "neutral": (str, ...)},
}


def read_constraints(folder: str | Path, *, default_ages: tuple[int, int] = (20, 50)) -> Constraints:
    """Read the CSV files of a folder; a :class:`SchemaError` gives the invalid line."""

    def rows(name: str) -> Iterator[Any]:
        path, model = Path(folder) / f"{name}.csv", create_model(name, **_FILES[name])
        for line, record in enumerate(read_table(path).to_dict("records"), start=2):
            row = checked(model, record, where := f"{path}, line {line}")
            if "start_age" in _FILES[name] and row.start_age > row.end_age:
                raise SchemaError(
                    f"ages from {row.start_age} to {row.end_age}", where=where, expected="the younger first"
                )
            yield row

    names: dict[tuple[int, str], list[str]] = {}
    for row in rows("names"):
        names.setdefault((row.generation, row.gender), []).append(row.name)
    if not names:
        raise SchemaError("no names", where=f"{folder}/names.csv", expected="names by generation and gender")
    return Constraints(
        names=names,
        family={row.family_info: range(row.start_age, row.end_age + 1) for row in rows("family")},
        ages={head_sentence(row.head): range(row.start_age, row.end_age + 1) for row in rows("ages")},
        negative={row.word: row.kind for row in rows("negative")},
        neutral={row.gendered: row.neutral for row in rows("gender_neutral")},
        default_ages=range(default_ages[0], default_ages[1] + 1),
    )


def fitting_age(sentence: str, age: int, *, goal: bool = False) -> int:
    """Return the closest age in years that agrees with a lower-case sentence; ages in a ``goal`` are in the future."""

    def numbers(name: str) -> list[int]:
        matches = re.finditer(_W[name], sentence)
        return [int(group) for match in matches for group in match.groups() if group]

    if goal:
        return next((number - 1 for number in numbers("ahead") if number <= age), age)
    least = [_STARTED_AT + max(numbers("years"), default=-_STARTED_AT), max(numbers("reached"), default=0)]
    least += [years for years, pattern in _W["from_age"] if re.search(pattern, sentence)]
    return next((years for years in least if age < years), age)


# Drawing


@dataclass
class Persona:
    """A persona; its gender is hidden: no sentence states it (A.3)."""

    persona_id: str
    name: str
    age: int
    gender: str
    heads: list[str]
    # In lower case, with the kind of each: name, age, family, head or an aspect of PeaCoK.
    sentences: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def write_personas(heads: Heads, constraints: Constraints, path: str | Path, *, count: int, seed: int) -> None:
    """Draw personas and write them as JSON."""
    write_json(path, {"personas": [asdict(one) for one in generate(heads, constraints, count=count, seed=seed)]})


def generate(heads: Heads, constraints: Constraints, *, count: int, seed: int) -> list[Persona]:
    """Draw personas; persona k depends only on the seed and k, so that drawing more keeps the first ones.

    Raises a :class:`ConfigError` if no two heads, or no name or family information are compatible.
    """
    usable = [head for head, tails in heads.items() if tails and not constraints.is_negative(head)]
    apart = len({*usable} - {*constraints.ages})
    log.info("%d of %d heads are usable, %d have no range of ages of their own", len(usable), len(heads), apart)
    return [_draw(n, usable, heads, constraints, np.random.default_rng([seed, n])) for n in range(count)]


def _draw(number: int, usable: list[str], heads: Heads, constraints: Constraints, rng: np.random.Generator) -> Persona:
    """Draw heads, age and gender, a profile for each head, and a matching name and family information."""
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
    """Return two heads with ages in common, and those ages."""
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
    before, after = _W["forms"][aspect.removesuffix("_relationship")]
    if tail.startswith(before.strip()) and len(before) > 2:
        # PeaCoK's own first-person sentence, unchanged.
        return f"{tail}."
    return f"{before}{tail.removeprefix('to ') if 'goal' in aspect else tail}{after}"


def _fits(persona: Persona, sentence: str, aspect: str, ages: range) -> bool:
    """Return whether a sentence agrees with a persona's age, which is adjusted if all sentences then agree."""
    better = fitting_age(sentence, persona.age, goal=aspect.startswith("goal"))
    before = zip(persona.sentences, persona.kinds, strict=True)
    if better != persona.age and (
        better not in ages or any(fitting_age(s, better, goal=k.startswith("goal")) != better for s, k in before)
    ):
        return False
    persona.age = better
    return True
