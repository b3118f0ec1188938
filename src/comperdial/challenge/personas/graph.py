"""PeaCoK's files: both layouts of ``peacok_kg.json``, and triples.

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
# Texts of an attribute, besides its relation, by which it has to do with other people.
_INTERACTIVE = {"relationship", "with_relationship", "interactive"}

Heads = dict[str, dict[str, list[str]]]
"""Head persona as "i am …" -> aspect -> tails in the first person, in the order of the file."""
_Triple = tuple[str, str, str | None, str]
"""Head, relation, the aspect that it means if any, and tail."""


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
        When the file has none of these layouts, or no relation names an aspect.
    """
    path = Path(path)
    heads: Heads = {}
    if path.suffix in (".txt", ".tsv"):
        triples = _from_lines([line for line in read_text(path).splitlines() if line.strip()], str(path))
    elif isinstance(content := read_json(path), list):
        triples = _from_lines(content, str(path))
    else:
        entries: dict[str, _Entry] = checked(dict[str, _Entry], content, str(path))
        heads = {head_sentence(entry.head_person or key): {} for key, entry in entries.items()}
        triples = _from_entries(entries, str(path))
    unknown: Counter[str] = Counter()
    for head, relation, aspect, tail in triples:
        tails = heads.setdefault(head_sentence(head), {})
        if aspect is None:
            unknown[relation] += 1
        elif (sentence := _clean(tail)) and sentence not in tails.setdefault(aspect, []):
            tails[aspect].append(sentence)
    count = sum(len(tails) for aspects in heads.values() for tails in aspects.values())
    if not count:
        texts = ", ".join(relation for relation, _ in unknown.most_common(9))
        hint = f"No relation names an aspect; the texts in their places are: {texts:.800}" if texts else None
        raise SchemaError(
            "no head with a tail", where=str(path), expected=f"relations such as {', '.join(ASPECTS)}", hint=hint
        )
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


def _from_lines(lines: list[Any], where: str) -> Iterator[_Triple]:
    for number, line in enumerate(lines, start=1):
        parts = line.split("\t") if isinstance(line, str) else line
        head, relation, tail = checked(tuple[Filled, Filled, Filled], parts, f"{where}, line {number}")
        yield head, relation, aspect_of(relation), tail


def _from_entries(entries: Mapping[str, _Entry], where: str) -> Iterator[_Triple]:
    for key, entry in entries.items():
        tails = entry.attributes if entry.attributes is not None else entry.phrases
        if tails is None:
            expected = "{head: {attributes: …}}, {persona: {phrases: …}}, or a list of head<TAB>relation<TAB>tail"
            raise SchemaError("not a layout of PeaCoK that we know", where=f"{where}, head {key!r}", expected=expected)
        for tail, attribute in tails.items():
            place = f"{where}, head {key!r}, attribute {tail!r}, attr_person"
            person = checked(Filled, attribute.get("attr_person") or tail, place)
            yield entry.head_person or key, *_relation(attribute), person


def _relation(attribute: dict[str, Any]) -> tuple[str, str | None]:
    """Return the first text of an attribute that names an aspect, and that aspect; of none, its texts and None."""
    # The annotators' vote, where there is one, and not what a model proposed.
    other = {name: part for name, part in attribute.items() if name not in ("attr_person", "attr_third")}
    texts = [*_texts(attribute.get("final", other))]
    relation = next((text for text in texts if aspect_of(text)), None)
    if relation is None:
        return ", ".join(texts) or "(none)", None
    aspect = str(aspect_of(relation)).removesuffix("_relationship")
    others = aspect_of(relation) != aspect or any(t.strip().lower().replace(" ", "_") in _INTERACTIVE for t in texts)
    return relation, f"{aspect}_relationship" if others else aspect


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield each text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
