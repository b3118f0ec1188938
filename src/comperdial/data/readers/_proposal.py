"""A column map made from names and values alone, for a person to check."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.data.readers._columns import (
    MARKED,
    NEEDED,
    UNMARKED,
    ColumnMap,
    Record,
    find,
    is_missing,
    rating_of,
    whole_of,
)
from comperdial.schema.dimensions import AXES

_ORDER = ("records", "dialogue_id", "turn", "first_turn", "system_id", "response", "ratings", "marks")
_SAMPLE = 500
_DEEP = 3
_HINTS = {
    "dialogue_id": ("dialogue id", "dialogue", "dialog id", "dialog", "conversation id", "conversation", "conv"),
    "turn": ("turn", "turn id", "turn index", "turn number"),
    "system_id": ("system id", "system", "model", "agent", "submission", "bot"),
    "response": ("response", "generated response", "output", "prediction", "answer", "reply", "text", "utterance"),
    "ratings": ("ratings", "rating", "score", "scores", "human score", "overall", "annotations", "annotation", "label"),
    "marks": ("marks", "mark", "aspects", "axes", "criteria", "problems", "reasons"),
}
# Words at the end of a field's name that say little.
_PALE = {"id", "ids", "index", "idx", "no", "number", "num", "name", "key", "level"}


class Content:
    """A file's records as far as they can be told, where they are, and what is wrong with the map."""

    def __init__(self, records: list[Record], place: str | None, problem: str, missing: set[str]) -> None:
        self.records, self.place, self.problem, self.missing = records, place, problem, missing


def flat(record: Record, prefix: str = "", deep: int = 1) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict) and deep < _DEEP:
            yield from flat(value, f"{prefix}{key}.", deep + 1)


def examples_of(records: list[Record]) -> dict[str, Any]:
    """Return each field with its first value that is not missing."""
    found: dict[str, Any] = {}
    for record in records:
        for name, value in flat(record):
            if name not in found or (is_missing(found[name]) and not is_missing(value)):
                found[name] = value
    return found


def ordered(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in _ORDER if columns.get(name) is not None}


def propose(content: Content, columns: ColumnMap, turns: Mapping[str, int]) -> dict[str, Any]:
    """Return a map: what fits of the present one, and else the fields whose names are nearest and whose values fit."""
    records = content.records[:_SAMPLE]
    examples = examples_of(records)
    found = {name: value for name, value in columns.columns.items() if name not in content.missing}
    found |= {"records": content.place}
    taken = {field for name, fields in columns.named().items() if name not in content.missing for field in fields}
    wanted = [name for name in (*NEEDED[columns.level], "marks") if name in content.missing]
    values = {field: [v for r in records if not is_missing(v := find(r, field))] for field in examples}
    near = [
        (_nearness(name, field, dialogues_known=bool(turns)), -place, name, field)
        for name in wanted
        for place, field in enumerate(examples)
        if field not in taken and values[field] and _FITS[name](values[field], turns)
    ]
    for name in wanted:
        found[name] = "???"
    for score, _, name, field in sorted(near, reverse=True):
        # What stands inside a field that is taken is taken too.
        inside = any(field.startswith(f"{other}.") or other.startswith(f"{field}.") for other in taken)
        if score >= 0.6 and found[name] == "???" and field not in taken and not inside:
            found[name] = field
            taken.add(field)
    found |= _several(found, values, turns, taken) if "ratings" in wanted else {}
    if "marks" in wanted and found["marks"] == "???":
        found["marks"] = _axes(examples, values, found["ratings"])
    if columns.level == "turn":
        numbers = [n for v in values.get(str(found["turn"]), []) if (n := whole_of(v)) is not None]
        last = max(turns.values(), default=0)
        found["first_turn"] = int(min(numbers) >= 1 and max(numbers) >= last) if numbers else columns.first_turn
    return ordered(found)


def _several(
    found: Mapping[str, Any], values: Mapping[str, list[Any]], turns: Mapping[str, int], taken: set[str]
) -> dict[str, Any]:
    """Return the fields of all annotators, such as score_1 and score_2, if the one that was found is such a field."""

    def form(field: str) -> str:
        return re.sub(r"\d+", "0", field)

    one = found["ratings"]
    alike = [f for f in values if form(f) == form(one) and (f == one or f not in taken)]
    good = [f for f in alike if values[f] and _FITS["ratings"](values[f], turns)]
    return {"ratings": good} if len(good) > 1 else {}


def _axes(examples: Mapping[str, Any], values: Mapping[str, list[Any]], ratings: Any) -> dict[str, str] | None:  # noqa: ANN401
    """Return the fields named as axes, if their values are marks."""
    found: dict[str, str] = {}
    for axis in AXES:
        for field in examples:
            marks = [m for value in values[field] for m in (_inside(value) or [value])]
            same = _words(field)[-len(axis.split()) :] == axis.lower().split()
            if same and field != ratings and all(str(m).strip().lower() in MARKED | UNMARKED for m in marks):
                found.setdefault(axis, field)
    return found or None


def _words(field: str) -> list[str]:
    """Return the words of a field's own name, without the names of what it stands in."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", field.rsplit(".", 1)[-1])
    return re.findall(r"[a-z]+|[0-9]+", spaced.lower())


def _nearness(name: str, field: str, *, dialogues_known: bool) -> float:
    words = [word for word in _words(field) if not word.isdigit()]
    strong = [word for word in words if word not in _PALE] or words
    best = 0.0
    for order, hint in enumerate(_HINTS[name]):
        parts = hint.split()
        core = [part for part in parts if part not in _PALE]
        if words == parts:
            score = 1.0
        elif strong[-len(core) :] == core:
            score = 0.95
        elif set(core) <= set(words):
            score = 0.8
        else:
            score = 0.85 * difflib.SequenceMatcher(None, "".join(strong), "".join(core)).ratio()
        best = max(best, score - order / 1000)
    # Only the names of dialogues fit as these: the values say more than the field's name.
    return best + 1 if name == "dialogue_id" and dialogues_known else best


def _inside(value: Any) -> list[Any]:  # noqa: ANN401
    return list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []


def _are_names(values: list[Any], _: Mapping[str, int]) -> bool:
    return all(isinstance(v, str | int) and not isinstance(v, bool) for v in values)


def _are_dialogues(values: list[Any], turns: Mapping[str, int]) -> bool:
    return _are_names(values, turns) and (not turns or {str(v) for v in values} <= set(turns))


def _are_turns(values: list[Any], turns: Mapping[str, int]) -> bool:
    last = max(turns.values(), default=1_000)
    return all((number := whole_of(value)) is not None and 0 <= number <= last for value in values)


def _are_texts(values: list[Any], _: Mapping[str, int]) -> bool:
    return all(isinstance(v, str) and v.strip() for v in values)


def _are_ratings(values: list[Any], _: Mapping[str, int]) -> bool:
    def number(value: Any) -> bool:  # noqa: ANN401
        try:
            rating_of(value, "")
        except SchemaError:
            return False
        return True

    given = [[v for v in _inside(value) if not is_missing(v)] or [value] for value in values if value not in ([], {})]
    return any(given) and all(number(rating) for ratings in given for rating in ratings)


def _are_marks(values: list[Any], _: Mapping[str, int]) -> bool:
    axes = {axis.lower() for axis in AXES}
    given = [marks for value in values if isinstance(value, Mapping) for marks in value.values() if marks is not None]
    return all(isinstance(value, Mapping) for value in values) and all(
        isinstance(marks, list) and {str(m).lower() for m in marks} <= axes for marks in given
    )


_FITS: dict[str, Callable[[list[Any], Mapping[str, int]], bool]] = {
    "dialogue_id": _are_dialogues,
    "turn": _are_turns,
    "system_id": _are_names,
    "response": _are_texts,
    "ratings": _are_ratings,
    "marks": _are_marks,
}
