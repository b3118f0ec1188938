"""Personas out of PeaCoK as ComperDial draws them (3.1 and A.3): two profiles and fictional personal information each.

PeaCoK's relations name eight aspects: characteristic, routine or habit, goal or plan, experience, each with or without a
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
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import read_json, read_table, write_json

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
            texts = [text for text in texts if isinstance(text, str)]
            aspect = next((aspect for text in texts if (aspect := aspect_of(text))), None)
            if aspect is None:
                unknown[", ".join(texts) or "(none)"] += 1
                continue
            # A text of its own may say that the attribute has to do with other people.
            if {text.strip().lower().replace(" ", "_") for text in texts} & _WITH_OTHERS:
                aspect = f"{aspect.removesuffix('_relationship')}_relationship"
            if tail and tail not in tails.setdefault(aspect, []):
                tails[aspect].append(tail)
    count = sum(len(tails) for aspects in heads.values() for tails in aspects.values())
    if not count:
        texts = [text for text, _ in unknown.most_common(9)]
        hint = f"No relation names an aspect; the texts in their places are: {', '.join(texts):.800}" if texts else None
        expected = f"relations such as {', '.join(ASPECTS)}"
        raise SchemaError("no head with a tail", where=str(path), expected=expected, hint=hint)
    log = logging.getLogger(__name__)
    log.info("%s: %d heads, %d tails; relations that name no aspect: %s", path, len(heads), count, dict(unknown))
    return heads


_WITH_OTHERS = {"relationship", "with_relationship", "interactive"}
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
    # Pairs of phrases that cannot both be true of one persona.
    opposites: list[tuple[str, str]]

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

    def is_negative(self, head: str) -> str | None:
        """Return the word that makes a head negative, or None."""
        adjective, noun, _ = self._patterns
        match = adjective.search(head.lower()) or noun.search(re.sub(_PHRASE_END, "", head.lower()).strip())
        return match.group(1) if match else None

    def neutralise(self, text: str) -> tuple[str, list[str]]:
        """Put neutral words for gendered ones, and say what was replaced, as "policeman -> police officer".

        A word without a neutral alternative stays, and is reported as "king (no neutral word)".
        """
        done: list[str] = []

        def replace(match: re.Match[str]) -> str:
            word = match.group().lower()
            neutral = self.neutral[word]
            if word == "her":
                following = re.match(r"\s+([a-z'-]+)", text[match.end() :].lower())
                neutral = "them" if (following.group(1) if following else "") in _NOT_OWNED else neutral
            done.append(f"{word} -> {neutral}" if neutral else f"{word} (no neutral word)")
            return neutral or match.group()

        result = self._patterns[2].sub(replace, text)
        if any(item.split(" ")[0] in ("he", "she") for item in done):
            for wrong, right in (("is", "are"), ("was", "were"), ("has", "have"), ("does", "do")):
                result = re.sub(rf"\bthey {wrong}\b", f"they {right}", result)
        if any("->" in item for item in done):
            result = re.sub(r"\ba (?=[aeio])", "an ", re.sub(r"\ban (?=[^aeiou\W])", "a ", result))
        return result, done

    def opposite(self, sentence: str, others: Sequence[str]) -> str | None:
        """Return the first of the other sentences that says the opposite of a sentence, or None."""
        for pair in self.opposites:
            for here, there in (pair, pair[::-1]):
                if re.search(rf"\b{re.escape(here)}", sentence):
                    other = next((other for other in others if re.search(rf"\b{re.escape(there)}", other)), None)
                    if other is not None:
                        return other
        return None


def _any_of(words: Iterable[str]) -> str:
    # Of no words a group that never matches: an empty one always would.
    return f"({'|'.join(map(re.escape, words)) or '(?!)'})"


def read_constraints(folder: str | Path, *, default_ages: tuple[int, int] = (20, 50)) -> Constraints:
    """Read the CSV files of a folder; a :class:`SchemaError` names the line with an age or a gender that is none."""
    folder = Path(folder)
    names: dict[tuple[int, str], list[str]] = {}
    for row in _rows(folder / "names.csv", generation=int, gender=Literal[GENDERS], name=Filled):
        names.setdefault((row["generation"], row["gender"]), []).append(row["name"])
    if not names:
        raise SchemaError("no names", where=str(folder / "names.csv"), expected="a row for each name")
    neutral = _rows(folder / "gender_neutral.csv", gendered=Filled, neutral=str)
    return Constraints(
        names=names,
        family=_ages(folder / "family.csv", "family_info"),
        ages={head_sentence(head): ages for head, ages in _ages(folder / "ages.csv", "head").items()},
        negative={row["word"]: row["kind"] for row in _rows(folder / "negative.csv", word=Filled, kind=str)},
        neutral={row["gendered"]: row["neutral"] for row in neutral},
        opposites=[(row["one"], row["other"]) for row in _rows(folder / "opposites.csv", one=Filled, other=str)],
        default_ages=range(default_ages[0], default_ages[1] + 1),
    )


def _ages(path: Path, name: str) -> dict[str, range]:
    """Return the ages, both ends included, of each sentence or head in a file."""
    ages = {}
    for line, row in enumerate(_rows(path, **{name: Filled}, start_age=NonNegativeInt, end_age=int), start=2):
        if row["start_age"] > row["end_age"]:
            problem = f"ages {row['start_age']} to {row['end_age']}"
            raise SchemaError(problem, where=f"{path}, line {line}", expected="start_age <= end_age")
        ages[row[name]] = range(row["start_age"], row["end_age"] + 1)
    return ages


def _rows(path: Path, **columns: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in columns.items()}
    row_type = create_model(path.stem, **fields)
    for line, row in enumerate(read_table(path).to_dict("records"), start=2):
        yield checked(row_type, row, f"{path}, line {line}").model_dump()


# Contradictions inside a persona

# The youngest age at which somebody starts what they have then done "for N years".
_STARTED_AT = 14
_YEARS = r"\b(?:for|after|over) (?:more than |over |almost |nearly )?(\d+) years\b|\b(\d+) years (?:of|in)\b"
_REACHED = r"\b(?:turned|at the age of|at age|when i was|my) (\d+)(?:st|nd|rd|th)?\b(?! years)"
_WILL_REACH = r"\b(?:turn|before|by|on my|my) (\d+)(?:st|nd|rd|th)?\b(?: birthday)?"
# Sentences that are true from an age on.
_RETIRED = r"\bretired from\b|\b(?:am|as) (?:a )?retired\b"
_GRANDPARENT = r"\bgrand(?:mother|father|parent) of\b|\bmy grand(?:child|son|daughter)"
# Two sentences that exclude each other, in family information and elsewhere.
_FAMILY = {
    "lives alone and with somebody": (
        r"\blive on my own\b|\blive alone\b",
        r"\b(?:live|living|share a (?:flat|room|house)) with\b|\bmy (?:spouse|roommate|flatmate)s?\b",
    ),
    "an only child with a sibling": (r"\bonly child\b", r"\bmy (?:\w+ )?(?:siblings?|brothers?|sisters?|twin)\b"),
    "a parent without children": (
        r"\bhave \w+ (?:sons|daughters|children)\b|\bmy (?:son|daughter) \b",
        r"\bno (?:children|kids)\b|\bchildless\b|\bmy first (?:child|baby)\b",
    ),
}


def age_contradiction(sentence: str, age: int, *, goal: bool = False) -> tuple[str, int] | None:
    """Return the rule by which a sentence contradicts an age in years, and the nearest age that it fits, or None.

    ``sentence`` is in lower case; the ages of a ``goal`` lie ahead.
    """
    if goal:
        passed = next((number for number in _numbers(_WILL_REACH, sentence) if number <= age), None)
        return None if passed is None else ("already older than planned", passed - 1)
    least = {
        "more years than lived since childhood": max((_STARTED_AT + n for n in _numbers(_YEARS, sentence)), default=0),
        "an age not reached yet": max(_numbers(_REACHED, sentence), default=0),
        "too young to be retired": 40 if re.search(_RETIRED, sentence) else 0,
        "too young to be a grandparent": 38 if re.search(_GRANDPARENT, sentence) else 0,
    }
    return next(((rule, years) for rule, years in least.items() if age < years), None)


def _numbers(pattern: str, sentence: str) -> list[int]:
    return [int(group) for match in re.finditer(pattern, sentence) for group in match.groups() if group]


def family_contradiction(sentence: str, family: str) -> str | None:
    """Return the rule by which a sentence contradicts the family sentence, or None."""
    texts = sentence.lower(), family.lower()
    for rule, patterns in _FAMILY.items():
        if any(all(map(re.search, patterns, order)) for order in (texts, texts[::-1])):
            return rule
    return None


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
    # Contradictions that came up while drawing, and gendered words, with what was done about each.
    corrections: list[dict[str, str]] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)

    def _correct(self, sentence: str, contradicts: str, rule: str, done: str = "the sentence was left out") -> None:
        self.corrections.append({"sentence": sentence, "contradicts": contradicts, "rule": rule, "done": done})


def write_personas(heads: Heads, constraints: Constraints, path: str | Path, *, count: int, seed: int) -> None:
    """Draw personas, and write them as JSON with a report of what was skipped, neutralised and corrected."""
    personas = generate(heads, constraints, count=count, seed=seed)
    report = {
        "personas": len(personas),
        "negative_heads_skipped": {head: word for head in heads if (word := constraints.is_negative(head))},
        "heads_without_an_age_range": [head for head in _usable(heads, constraints) if head not in constraints.ages],
        "contradictions": [{"persona_id": p.persona_id, **c} for p in personas for c in p.corrections],
        "gendered_words": [{"persona_id": p.persona_id, "word": w} for p in personas for w in p.neutralised],
    }
    write_json(path, {"personas": [asdict(persona) for persona in personas], "report": report})


def generate(heads: Heads, constraints: Constraints, *, count: int, seed: int) -> list[Persona]:
    """Draw personas; persona k depends on the seed and on k alone, so that drawing more leaves the first ones as they were.

    If no two heads, or no name or family information fit together, that is a :class:`ConfigError`.
    """
    usable = _usable(heads, constraints)
    if len(usable) < 2:
        problem = f"{len(usable)} of {len(heads)} heads are usable"
        raise ConfigError(problem, where="personas", expected="2 or more heads with tails and without a negative word")
    return [_draw(n, usable, heads, constraints, np.random.default_rng([seed, n])) for n in range(count)]


def _usable(heads: Heads, constraints: Constraints) -> list[str]:
    return [head for head, tails in heads.items() if tails and not constraints.is_negative(head)]


def _draw(number: int, usable: list[str], heads: Heads, constraints: Constraints, rng: np.random.Generator) -> Persona:
    """Draw heads, age and gender, a profile of each head, and a name and family information that fit."""
    chosen, ages = _two_heads(usable, constraints, rng)
    age = int(rng.integers(ages.start, ages.stop))
    persona = Persona(f"P{number + 1:04d}", "", age, _pick(rng, GENDERS), chosen)
    for head in chosen:
        tails = heads[head]
        drawn = [(aspect, _sentence(aspect, _pick(rng, tails[aspect]))) for aspect in ASPECTS if tails.get(aspect)]
        for kind, text in [("head", f"{head}."), *drawn]:
            sentence, replaced = constraints.neutralise(text)
            persona.neutralised += replaced
            if kind == "head" or _fits(persona, sentence, kind, ages, constraints):
                persona.sentences.append(sentence)
                persona.kinds.append(kind)
    oldest = max(generation for generation, _ in constraints.names)
    names = constraints.names.get((min(persona.age // 10 * 10, oldest), persona.gender), [])
    if not names:
        problem = f"no name for age {persona.age}, {persona.gender}"
        raise ConfigError(problem, where="personas", expected="a row for it in names.csv")
    persona.name = _pick(rng, names)
    family = _family(persona, constraints, rng)
    persona.sentences[:0] = [f"my name is {persona.name.lower()}.", f"i'm {persona.age} years old.", family.lower()]
    persona.kinds[:0] = ["name", "age", "family"]
    return persona


def _two_heads(usable: list[str], constraints: Constraints, rng: np.random.Generator) -> tuple[list[str], range]:
    """Return two heads that have ages in common, and those."""
    for heads in permutations([usable[i] for i in rng.permutation(len(usable))], 2):
        one, other = map(constraints.ages_of, heads)
        if ages := range(max(one.start, other.start), min(one.stop, other.stop)):
            return [*heads], ages
    expected = "age ranges that overlap in ages.csv"
    raise ConfigError("no two heads have an age in common", where="personas", expected=expected)


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


def _sentence(aspect: str, tail: str) -> str:
    before, after = _FORMS[aspect.removesuffix("_relationship")]
    if tail.startswith(before.strip()) and len(before) > 2:
        # PeaCoK's own first-person form, whole.
        return f"{tail}."
    return f"{before}{tail.removeprefix('to ') if 'goal' in aspect else tail}{after}"


def _fits(persona: Persona, sentence: str, aspect: str, ages: range, constraints: Constraints) -> bool:
    """Return whether a sentence agrees with a persona, whose age is changed if all sentences then agree."""
    if other := constraints.opposite(sentence, persona.sentences):
        persona._correct(sentence, other, "opposites")
        return False
    if problem := age_contradiction(sentence, persona.age, goal=aspect.startswith("goal")):
        rule, better = problem
        before = zip(persona.sentences, persona.kinds, strict=True)
        age = f"i'm {persona.age} years old."
        if better not in ages or any(age_contradiction(s, better, goal=k.startswith("goal")) for s, k in before):
            persona._correct(sentence, age, rule)
            return False
        persona.age = better
        persona._correct(sentence, age, rule, f"the age became {better}")
    return True


def _family(persona: Persona, constraints: Constraints, rng: np.random.Generator) -> str:
    fitting = [info for info, ages in constraints.family.items() if persona.age in ages]
    while fitting:
        info = _pick(rng, fitting)
        text = info.replace("<n>", _pick(rng, ("two", "three")))
        problem = next(((s, rule) for s in persona.sentences if (rule := family_contradiction(s, text))), None)
        if not problem:
            return text
        persona._correct(problem[0], text.lower(), problem[1], "other family information was drawn")
        fitting.remove(info)
    raise ConfigError(
        f"no family information fits age {persona.age}", where="family.csv", expected="a row for that age"
    )
