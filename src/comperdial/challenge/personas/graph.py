"""PeaCoK's files: both layouts of ``peacok_kg.json``, and triples; which field names a relation is inferred from the values.

A relation names one of eight aspects: characteristic, routine or habit, goal or plan, experience, each with or without a
relationship to other people (Gao et al. 2023, PeaCoK).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_text

log = logging.getLogger(__name__)

# In the order of the sentences of a profile.
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
_BASES = {"characteristic": "characteristic", "experience": "experience"}
_BASES |= dict.fromkeys(("routinehabit", "routine", "habit"), "routine_habit")
_BASES |= dict.fromkeys(("goalplan", "goal", "plan"), "goal_plan")
_FILLERS = {"or", "a", "and", "with", "without", "no", "not", "relationship", "relation", "has"}
# Values of another field than the relation's that say whether it has to do with other people.
_INTERACTIVE = {"relationship", "with_relationship", "interactive"}

Heads = dict[str, dict[str, list[str]]]
"""Head persona as "i am …" -> aspect -> tails in the first person, in the order of the file."""
_Path = tuple[str | int, ...]
"""Keys and list positions that lead to a text in an attribute."""


class _Entry(BaseModel):
    head_person: Filled | None = None
    attributes: dict[str, dict[str, Any]] | None = None
    phrases: dict[str, dict[str, Any]] | None = None


def read_graph(path: str | Path) -> Heads:
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
    text = path.suffix in (".txt", ".tsv")
    content: Any = [line for line in read_text(path).splitlines() if line.strip()] if text else read_json(path)
    heads: Heads
    if isinstance(content, list):
        heads, triples = {}, list(_triples(content, str(path)))
    else:
        heads, triples = _nested(checked(dict[str, _Entry], content, str(path)), str(path))
    unknown: Counter[str] = Counter()
    for head, relation, aspect, tail in triples:
        tails = heads.setdefault(head_sentence(head), {})
        if aspect is None:
            unknown[relation] += 1
        elif (sentence := _clean(tail)) and sentence not in tails.setdefault(aspect, []):
            tails[aspect].append(sentence)
    count = sum(len(tails) for aspects in heads.values() for tails in aspects.values())
    if not count:
        raise SchemaError("no head with a tail", where=str(path), expected="a knowledge graph with at least one")
    log.info("%s: %d heads, %d tails; relations that name no aspect: %s", path, len(heads), count, dict(unknown))
    return heads


def aspect_of(relation: str) -> str | None:
    """Return the aspect that a relation means, or None: "Goal or Plan (relationship)" is goal_plan_relationship."""
    words = [word for word in re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", relation).lower()) if word]
    base = _BASES.get("".join(word for word in words if word not in _FILLERS))
    with_others = "relationship" in words and not {"without", "no", "not"} & {*words}
    return f"{base}_relationship" if base and with_others else base


def head_sentence(text: str) -> str:
    """Return a head persona as a sentence without its full stop: "a rancher" becomes "i am a rancher"."""
    text = " ".join(text.lower().split()).rstrip(" .")
    text = re.sub(r"^i['’]m ", "i am ", text)
    return text if re.match(r"i\b", text) else f"i am {text}"


def _clean(text: str) -> str:
    return re.sub(r"^i (?!intend|regularly|am|was|will)", "", " ".join(text.lower().split()).rstrip(" ."))


_Triple = tuple[str, str, str | None, str]
"""Head, relation, the aspect that it means if any, and tail."""


def _triples(lines: list[Any], where: str) -> Iterator[_Triple]:
    for number, line in enumerate(lines, start=1):
        place = f"{where}, line {number}"
        parts = line.split("\t") if isinstance(line, str) else line
        head, relation, tail = checked(tuple[Filled, Filled, Filled], parts, place)
        yield head, relation, aspect_of(relation), tail


def _nested(content: Mapping[str, _Entry], where: str) -> tuple[Heads, list[_Triple]]:
    """Return the heads of a JSON object, and its triples."""
    attributes = []
    for key, entry in content.items():
        tails = entry.attributes if entry.attributes is not None else entry.phrases
        if tails is None:
            expected = "{head: {attributes: …}}, {persona: {phrases: …}}, or a list of head<TAB>relation<TAB>tail"
            raise SchemaError("not a layout of PeaCoK that we know", where=f"{where}, head {key!r}", expected=expected)
        for tail, attribute in tails.items():
            place = f"{where}, head {key!r}, attribute {tail!r}, attr_person"
            person = checked(Filled, attribute.get("attr_person") or tail, place)
            attributes.append((entry.head_person or key, person, dict(_texts(attribute))))
    relation, other = _relation_fields([texts for _, _, texts in attributes], where)
    triples = []
    for head, tail, texts in attributes:
        named = texts.get(relation, "(none)")
        aspect = aspect_of(named)
        if aspect and not aspect.endswith("_relationship") and other and _is_interactive(texts.get(other, "")):
            aspect += "_relationship"
        triples.append((head, named, aspect, tail))
    return {head_sentence(entry.head_person or key): {} for key, entry in content.items()}, triples


def _is_interactive(text: str) -> bool:
    return text.strip().lower().replace(" ", "_") in _INTERACTIVE


def _texts(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, str]]:  # noqa: ANN401
    """Yield each text inside a JSON value, with the way to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list | dict):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(part, (*path, key))


def _relation_fields(attributes: list[dict[_Path, str]], where: str) -> tuple[_Path, _Path | None]:
    """Return the field that names the relation, and maybe another that says whether it has to do with other people."""
    values: dict[_Path, list[str]] = {}
    for texts in attributes:
        for path, text in texts.items():
            values.setdefault(path, []).append(text)
    shares = {path: sum(aspect_of(t) is not None for t in texts) / len(attributes) for path, texts in values.items()}
    # The annotators' vote counts before what a model proposed, even where some votes reject the tail.
    ranks = {path: (bool({"final", "majority"} & {*path}), share) for path, share in shares.items() if share >= 0.5}
    if not ranks:
        fields = (
            f"{'.'.join(map(str, path))}: {', '.join(dict.fromkeys(texts[:3]))}" for path, texts in values.items()
        )
        raise SchemaError(
            "no field of the attributes names a relation",
            where=where,
            expected="a field with characteristic, routine_habit, goal_plan or experience (…_relationship)",
            hint=f"The fields and some of their values: {'; '.join(fields)[:800] or '(none)'}",
        )
    relation = max(ranks, key=lambda path: ranks[path])
    others = (path for path, texts in values.items() if path != relation and any(map(_is_interactive, texts)))
    other = next(others, None)
    log.info("%s: relations are in %s", where, " and ".join(".".join(map(str, p)) for p in (relation, other) if p))
    return relation, other
