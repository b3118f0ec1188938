"""PeaCoK's files: both layouts of ``peacok_kg.json``, and triples; what a file does not say is sniffed and told.

A relation names one of eight aspects: characteristic, routine or habit, goal or plan, experience, each with or without
a relationship to other people (Gao et al. 2023, PeaCoK).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_text

log = logging.getLogger(__name__)

# In the order in which the sentences of a profile stand.
ASPECTS = (
    "experience",
    "experience_relationship",
    "characteristic",
    "characteristic_relationship",
    "routine_habit",
    "routine_habit_relationship",
    "goal_plan",
    "goal_plan_relationship",
)
_BASES = {
    "characteristic": "characteristic",
    "routinehabit": "routine_habit",
    "routine": "routine_habit",
    "habit": "routine_habit",
    "goalplan": "goal_plan",
    "goal": "goal_plan",
    "plan": "goal_plan",
    "experience": "experience",
}
_FILLERS = {"or", "a", "and", "with", "without", "no", "not", "relationship", "relation", "has"}
_WITHOUT = {"without", "no", "not"}
# Values that say of a relation kept in another field whether it has to do with other people.
_INTERACTIVE = {"relationship", "with_relationship", "interactive"}
_VOTE = {"final", "majority"}


@dataclass
class Graph:
    """Heads in the order of the file, each with its tails by aspect; and what reading it found.

    Attributes
    ----------
    heads
        Head persona as "i am …" -> aspect -> tails in the first person.
    report
        The layout, the field that names the relation, and counts of what was left out and why.
    """

    heads: dict[str, dict[str, list[str]]]
    report: dict[str, Any] = field(default_factory=dict)


def read_graph(path: str | Path) -> Graph:
    """Read a graph in any of PeaCoK's published layouts.

    Parameters
    ----------
    path
        ``.json``: {head: {head_person, attributes: {attribute: {attr_person, …}}}}, or the older {persona: {phrases:
        {attribute: {final: {majority: [relation, …]}, source_relation}}}}, or a list of "head<TAB>relation<TAB>tail".
        ``.txt`` or ``.tsv``: one triple a line.

    Raises
    ------
    SchemaError
        When the file has none of these layouts, or no field of an attribute names a relation: says what is there.
    """
    path = Path(path)
    if path.suffix in (".txt", ".tsv"):
        return _from_triples(read_text(path).splitlines(), str(path))
    content = read_json(path)
    if isinstance(content, list):
        return _from_triples(content, str(path))
    if isinstance(content, dict) and content:
        entries = list(content.values())
        for layout, key in (("attributes", "attributes"), ("phrases", "phrases")):
            if all(isinstance(e, dict) and isinstance(e.get(key), dict) for e in entries):
                return _from_mapping(content, layout, str(path))
    raise SchemaError(
        "not a layout of PeaCoK that we know",
        where=str(path),
        expected="{head: {attributes: …}}, {persona: {phrases: …}}, or a list of head<TAB>relation<TAB>tail",
        hint=f"It starts with {str(content)[:200]}",
    )


def aspect_of(relation: str) -> str | None:
    """Return the aspect that a relation means, or None: "Goal or Plan (relationship)" is goal_plan_relationship."""
    words = [word for word in re.split(r"[^a-z]+", _split_camel(relation).lower()) if word]
    base = _BASES.get("".join(w for w in words if w not in _FILLERS))
    if base is None:
        return None
    with_others = "relationship" in words and not _WITHOUT & set(words)
    return f"{base}_relationship" if with_others else base


def _split_camel(text: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)


def head_sentence(text: str) -> str:
    """Return a head persona as a sentence without its full stop: "a rancher" becomes "i am a rancher"."""
    text = " ".join(text.lower().split()).rstrip(" .")
    text = re.sub(r"^i['’]m ", "i am ", text)
    return text if re.match(r"i\b", text) else f"i am {text}"


def _clean(text: str) -> str:
    return re.sub(r"^i (?!intend|regularly|am|was|will)", "", " ".join(text.lower().split()).rstrip(" ."))


def _from_triples(lines: Iterable[Any], where: str) -> Graph:
    heads: dict[str, dict[str, list[str]]] = {}
    unknown: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str) and not line.strip():
            continue
        parts = line.split("\t") if isinstance(line, str) else line
        if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(p, str) and p.strip() for p in parts):
            raise SchemaError(
                f"holds {str(line)[:80]!r}", where=f"{where}, line {number}", expected="head<TAB>relation<TAB>tail"
            )
        _add(heads, unknown, head_sentence(parts[0]), aspect_of(parts[1]), parts[2], parts[1])
    return _graph(heads, unknown, {"layout": "triples", "relation": "second column"}, where)


def _from_mapping(content: Mapping[str, Any], layout: str, where: str) -> Graph:
    attributes = list(_attributes(content, layout, where))
    names = {
        key: head_sentence(_text(entry, "head_person", key, f"{where}, head {key!r}")) for key, entry in content.items()
    }
    finder = _sniff([entry for _, _, entry in attributes], where)
    heads: dict[str, dict[str, list[str]]] = {}
    unknown: Counter[str] = Counter()
    for key, tail, entry in attributes:
        head = names[key]
        relation = finder.text(entry)
        text = _text(entry, "attr_person", tail, f"{where}, head {key!r}, attribute {tail!r}")
        _add(heads, unknown, head, finder.aspect(entry), text, relation)
    for name in names.values():
        heads.setdefault(name, {})
    return _graph(heads, unknown, {"layout": layout, "relation": finder.describe()}, where)


def _attributes(content: Mapping[str, Any], layout: str, where: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for key, entry in content.items():
        for tail, attribute in entry[layout].items():
            if not isinstance(attribute, dict):
                raise SchemaError(
                    f"attribute {tail!r} holds {repr(attribute)[:80]}",
                    where=f"{where}, head {key!r}",
                    expected="a JSON object",
                )
            yield key, tail, attribute


def _text(entry: Mapping[str, Any], name: str, default: str, where: str) -> str:
    value = entry.get(name) or default
    if not isinstance(value, str):
        raise SchemaError(f"`{name}` is {repr(value)[:80]}", where=where, expected="a text")
    return value


def _add(
    heads: dict[str, dict[str, list[str]]],
    unknown: Counter[str],
    head: str,
    aspect: str | None,
    tail: str,
    relation: str,
) -> None:
    tails = heads.setdefault(head, {})
    if aspect is None:
        unknown[relation] += 1
    elif (text := _clean(tail)) and text not in tails.setdefault(aspect, []):
        tails[aspect].append(text)


def _graph(heads: dict[str, dict[str, list[str]]], unknown: Counter[str], report: dict[str, Any], where: str) -> Graph:
    found = sum(len(tails) for aspects in heads.values() for tails in aspects.values())
    if not found:
        raise SchemaError("no head with a tail", where=where, expected="a knowledge graph with at least one")
    report |= {"heads": len(heads), "tails": found, "left_out": dict(sorted(unknown.items()))}
    log.info("%s: %s", where, report)
    return Graph(heads, report)


@dataclass(frozen=True)
class _Field:
    """Where an attribute's relation stands: a path of keys and list positions, and maybe another for "relationship"."""

    relation: tuple[str | int, ...]
    other: tuple[str | int, ...] | None

    def text(self, entry: Mapping[str, Any]) -> str:
        value = dict(_texts(entry)).get(self.relation)
        return "(none)" if value is None else value

    def aspect(self, entry: Mapping[str, Any]) -> str | None:
        texts = dict(_texts(entry))
        aspect = aspect_of(texts.get(self.relation, ""))
        if aspect and not aspect.endswith("_relationship") and self.other:
            value = texts.get(self.other, "").strip().lower().replace(" ", "_")
            return f"{aspect}_relationship" if value in _INTERACTIVE else aspect
        return aspect

    def describe(self) -> str:
        parts = [".".join(map(str, path)) for path in (self.relation, self.other) if path]
        return " with ".join(parts)


def _texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:  # noqa: ANN401
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list | dict):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(part, (*path, key))


def _sniff(entries: list[dict[str, Any]], where: str) -> _Field:
    """Find the field whose texts name aspects; the vote of the annotators goes before what a model proposed."""
    seen: dict[tuple[str | int, ...], Counter[str]] = {}
    for entry in entries:
        for path, text in _texts(entry):
            seen.setdefault(path, Counter())[text] += 1
    scores = {
        path: sum(n for text, n in texts.items() if aspect_of(text)) / len(entries) for path, texts in seen.items()
    }
    named = [path for path, score in scores.items() if score >= 0.5]
    # The annotators' vote counts before what a model proposed, even where some votes reject the tail.
    best = max(named, key=lambda path: (bool(_VOTE & set(path)), scores[path]), default=None)
    if best is None:
        shown = "; ".join(f"{'.'.join(map(str, path))}: {', '.join(list(texts)[:3])}" for path, texts in seen.items())
        raise SchemaError(
            "no field of the attributes names a relation",
            where=where,
            expected="a field with characteristic, routine_habit, goal_plan or experience (…_relationship)",
            hint=f"The fields and some of their values: {shown[:800] or '(none)'}",
        )
    other = next(
        (
            path
            for path, texts in seen.items()
            if path != best and any(text.strip().lower().replace(" ", "_") in _INTERACTIVE for text in texts)
        ),
        None,
    )
    return _Field(best, other)
