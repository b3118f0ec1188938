"""ComperDial's own form: dialogues with personas, and two files of rated records whose fields a column map names.

The published files' field names are not known to us (docs/comperdial-format.md), so nothing is guessed: a map that does
not fit is one message that shows the fields there are and a map to paste.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from comperdial.challenge.dialogues import Dialogue, context_id, make_tables, read_dialogues
from comperdial.challenge.records import checked as checked_record
from comperdial.config.checking import Distinct, Expected, Strict, checked, rule, unknown
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.own_files import shown
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Row, Tables
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

T = TypeVar("T")

# In a record of ours: whose ratings it holds, if they are not people's. So simulated ratings are known as such without the
# file of systems too.
SOURCE_FIELD = "ratings_source"
# What a mark of an axis is written as (A.7.2 has "n"), in lower case; and what says that there is none.
_MARKED, _UNMARKED = {"n", "no", "x", "true", "1"}, {"", "y", "yes", "false", "0"}
# How many fields a message shows, from how many records a map is proposed, and how deep fields are looked for.
_SHOWN, _SAMPLE, _DEEP = 40, 500, 8
_GAP = "???"

Record = dict[str, Any]
"""A record's fields; those inside others have names with dots."""


# Column maps: our name -> the file's field

_Name = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    Field(pattern=r"\S"),
    Expected("the name of a field"),
]
_Names = Annotated[Distinct[_Name], Field(min_length=1)]


class _Columns(Strict):
    dialogue_id: _Name
    system_id: _Name
    ratings: Annotated[_Name | _Names, Expected("a field, or a list of fields")]
    records: Annotated[_Name | None, Expected("the name of a field")] = None

    def fields(self) -> dict[str, list[str]]:
        """Return the fields that the map names for each of our names."""
        fields = {}
        for name, value in _ordered(self.model_dump(exclude={"records", "first_turn"})).items():
            values = value.values() if isinstance(value, dict) else [value]
            fields[name] = [field for one in values for field in ([one] if isinstance(one, str) else one)]
        return fields


class _TurnColumns(_Columns):
    turn: _Name
    first_turn: Annotated[Literal[0, 1], Expected("0 or 1")] = 0
    response: _Name


class _DialogueColumns(_Columns):
    marks: Annotated[
        _Name | Annotated[dict[str, _Name | _Names], Field(min_length=1)] | None,
        Expected("a field, or a field or a list of fields for each axis"),
    ] = None

    @model_validator(mode="after")
    def _marks_fit_ratings(self) -> _DialogueColumns:
        for axis, fields in self.marks.items() if isinstance(self.marks, dict) else ():
            if axis not in AXES:
                raise unknown("axis", axis, AXES, "marks", axis)
            if not isinstance(fields, str) and (isinstance(self.ratings, str) or len(fields) != len(self.ratings)):
                raise rule(f"{len(fields)} fields", "a field, or as many fields as `ratings` lists", "marks", axis)
        return self


class _Maps(Strict):
    turn: _TurnColumns
    dialogue: _DialogueColumns


class _System(BaseModel):
    system_id: str
    kind: str
    track: str | None = None
    description: str


class _About(BaseModel):
    """The file of systems: whose ratings they are, how the rated files call things, and the systems."""

    source: str
    columns: dict[str, Any] | None = None
    systems: list[_System]


def read(dataset: str, files: Files, options: Mapping[str, Any] = MappingProxyType({})) -> Tables:
    """Read the published four files, or anybody's own set written by ``comperdial export``.

    Files: ``data`` and ``dialogue_data`` (dialogues), ``turn_level`` and ``dialogue_level`` (rated records);
    ``systems`` (ours) if there is one. Options: ``columns`` with a map for ``turn`` and one for ``dialogue``, unless
    ``systems`` has them; ``counts``, what the paper counts. Contexts and personas are those of the dialogues that were
    answered.
    """
    about: _About | None = None
    if "systems" in files:
        about = checked_record(_About, read_json(files["systems"]), str(files["systems"]))
    known = _dialogues(files)
    maps, turns, whole = _rated(files, about, options, {name: dialogue.turns for name, dialogue in known.items()})
    source = about.source if about else None
    responses: dict[str, dict[tuple[str, int], str]] = {}
    ratings: list[Row] = []
    for where, record in turns:
        dialogue, system = _key(record, maps.turn, where)
        turn = _turn(record, maps.turn, dialogue, known, where)
        answers = responses.setdefault(system, {})
        if (dialogue, turn) in answers:
            problem = f"dialogue {dialogue!r}, turn {record[maps.turn.turn]}, system {system!r} twice"
            raise SchemaError(problem, where=where, expected="once")
        answers[dialogue, turn] = _take(record, maps.turn.response, where, _text, "a text")
        ratings += _ratings(record, maps.turn, ("turn", context_id(dialogue, turn), system), source, where)
    answered = {(dialogue, system) for system, answers in responses.items() for dialogue, _ in answers}
    seen = set()
    for where, record in whole:
        key = dialogue, system = _key(record, maps.dialogue, where)
        named = f"dialogue {dialogue!r}, system {system!r}"
        if key not in answered:
            raise SchemaError(named, where=where, expected="one that has responses in the turn-level file")
        if key in seen:
            raise SchemaError(f"{named} twice", where=where, expected="once")
        seen.add(key)
        ratings += _ratings(record, maps.dialogue, ("dialogue", *key), source, where)
    systems = {name: {"kind": "agent", "track": None, "description": ""} for name in responses}
    systems |= {one.system_id: one.model_dump(exclude={"system_id"}) for one in about.systems} if about else {}
    names = {dialogue for dialogue, _ in answered}
    dialogues = [dialogue for name, dialogue in known.items() if name in names]
    tables = make_tables(dataset, dialogues, systems, responses, where=str(files["turn_level"]))
    tables |= base.make_tables(dataset, {"turn_level": files["turn_level"]}, ratings=ratings)
    _report_counts(dataset, tables, options.get("counts", {}))
    return tables


def _dialogues(files: Files) -> dict[str, Dialogue]:
    dialogues: dict[str, Dialogue] = {}
    for role in ("data", "dialogue_data"):
        for dialogue in read_dialogues(files[role]) if role in files else []:
            name = dialogue.dialogue_id
            if dialogues.setdefault(name, dialogue) != dialogue:
                problem = "%s: dialogue %r is another one than in %s; this one is taken"
                log.warning(problem, files[role], name, files["data"])
            dialogues[name] = dialogue
    return dialogues


def _report_counts(dataset: str, tables: Tables, counts: Mapping[str, int]) -> None:
    """Log how the counts differ from the paper's, if the options have these."""
    rated = tables["ratings"].query("level == 'dialogue'")
    counted = {
        "systems": len(tables["systems"]),
        "dialogues": tables["contexts"]["dialogue_id"].nunique(),
        "turns": len(tables["responses"]),
        "rated_dialogues": len(rated[["item_id", "system_id"]].drop_duplicates()),
    }
    for name, expected in counts.items():
        level = logging.INFO if counted[name] == expected else logging.WARNING
        log.log(level, "%s: %d %s, the paper counts %d", dataset, counted[name], name.replace("_", " "), expected)


# What a record holds


def _take(record: Record, field: str, where: str, parse: Callable[[Any], T | None], expected: str) -> T:
    value = parse(record.get(field))
    if value is None:
        raise SchemaError(f"{field!r} holds {_held(record.get(field))}", where=where, expected=expected)
    return value


def _key(record: Record, columns: _Columns, where: str) -> tuple[str, str]:
    """Return the names of dialogue and system."""
    dialogue = _take(record, columns.dialogue_id, where, _name, "a name")
    return dialogue, _take(record, columns.system_id, where, _name, "a name")


def _turn(record: Record, columns: _TurnColumns, dialogue: str, known: Mapping[str, Dialogue], where: str) -> int:
    """Return the turn, counted from 0."""
    written = _take(record, columns.turn, where, _whole, "a whole number")
    turn, turns = written - columns.first_turn, known[dialogue].turns if dialogue in known else 0
    if not 0 <= turn < turns:
        from_one = "If turns are counted from 1, say so: `first_turn: 1` in the column map"
        raise SchemaError(
            f"dialogue {dialogue!r}, turn {written}",
            where=where,
            expected=f"a dialogue of the dialogue files and a turn counted from {columns.first_turn}",
            hint=from_one if turns and turn == turns else None,
        )
    return turn


def _ratings(record: Record, columns: _Columns, item: base.Item, source: str | None, where: str) -> Iterator[Row]:
    """Yield the overall ratings of a record, and a dialogue's marks on axes."""
    # Simulated ratings must never be read as people's.
    whose = record.get(SOURCE_FIELD) or source or "human"
    if not isinstance(whose, str) or source not in (None, whose):
        expected = f"{source!r}, as in the file of systems"
        raise SchemaError(f"{SOURCE_FIELD} is {whose!r}", where=where, expected=expected)
    named, raters = _raters(record, columns.ratings)
    places = {name: None if named else place for place, name in enumerate(raters)}
    raters = {name: value for name, value in raters.items() if not _is_missing(value)}
    for name, value in raters.items():
        if (rating := _rating(value)) is None:
            expected = "a number from {:g} to {:g}".format(*OVERALL_SCALE)
            raise SchemaError(f"rating {_held(value)}", where=where, expected=expected)
        yield base.rating(item, name, OVERALL, rating, OVERALL_SCALE, position=places[name], source=whose)
    marks = getattr(columns, "marks", None) or {}
    marked_by = (
        _listed(record.get(marks), where) if isinstance(marks, str) else _marked(record, marks, places, raters, where)
    )
    for name, axis, marked in marked_by:
        mark = 0.0 if marked else 1.0
        yield base.rating(item, name, axis, mark, AXIS_SCALE, position=places.get(name), source=whose)


def _raters(record: Record, field: str | list[str]) -> tuple[bool, dict[str, Any]]:
    """Return whether annotators have names, and what each gave, missing values among them."""
    if isinstance(field, list):
        return True, {name: record.get(name) for name in field}
    value = record.get(field)
    if isinstance(value, dict):
        return True, value
    return False, {
        str(number): one for number, one in enumerate(value if isinstance(value, list) else [value], start=1)
    }


def _listed(value: Any, where: str) -> Iterator[tuple[str, str, bool]]:  # noqa: ANN401
    """Yield annotator, axis and whether it is marked, of ``{annotator: [axis, …]}``."""
    if _is_missing(value):
        return
    if not isinstance(value, dict):
        raise SchemaError(f"marks are {_held(value)}", where=where, expected='{"annotator": ["Fluency", …], …}')
    axes = {axis.lower() for axis in AXES}
    for name, marks in value.items():
        if marks is None:
            continue
        if not isinstance(marks, list):
            raise SchemaError(f"marks of {name!r} are {_held(marks)}", where=where, expected="a list of axes")
        marked = {str(mark).lower() for mark in marks}
        if unknown := [mark for mark in marks if str(mark).lower() not in axes]:
            raise SchemaError(f"axis {unknown[0]!r}", where=where, expected=", ".join(AXES))
        yield from ((name, axis, axis.lower() in marked) for axis in AXES)


def _marked(
    record: Record,
    marks: Mapping[str, str | list[str]],
    names: Collection[str],
    rated: Collection[str],
    where: str,
) -> Iterator[tuple[str, str, bool]]:
    """Yield the same of fields for each axis, which hold a mark, or one for each of ``names``; of those who rated."""
    for axis, fields in marks.items():
        at = f"{where}, {axis}"
        value = record.get(fields) if isinstance(fields, str) else [record.get(field) for field in fields]
        if isinstance(value, list):
            if len(value) != len(names):
                raise SchemaError(f"{len(value)} marks", where=at, expected=f"{len(names)}, one a rating")
            value = dict(zip(names, value, strict=True))
        elif not isinstance(value, dict):
            if len(rated) > 1 and not _is_missing(value):
                problem = f"one mark, {_held(value)}, for {len(rated)} ratings"
                raise SchemaError(problem, where=at, expected="one a rating")
            value = dict.fromkeys(names, value)
        for name in rated:
            if not _is_mark(value.get(name)):
                raise SchemaError(f"the mark {_held(value[name])}", where=at, expected='"n" or nothing')
            yield name, axis, str(value.get(name)).strip().lower() in _MARKED


# Values; None for what is none of the kind


def _held(value: object) -> str:
    return "nothing" if value is None else shown(value)


def _is_missing(value: object) -> bool:
    # Not a number: what pandas writes for a missing one.
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _is_mark(value: object) -> bool:
    return _is_missing(value) or str(value).strip().lower() in _MARKED | _UNMARKED


def _name(value: object) -> str | None:
    is_one = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip()
    return str(value) if is_one else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _whole(value: object) -> int | None:
    """Return a whole number, which may be written as text or as 3.0."""
    is_one = not isinstance(value, bool) and re.fullmatch(r"-?[0-9]{1,9}(\.0)?", str(value))
    return int(float(str(value))) if is_one else None


def _rating(value: Any) -> float | None:  # noqa: ANN401
    """Return a rating; a text that spells a number is one."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if OVERALL_SCALE[0] <= number <= OVERALL_SCALE[1] else None


# Files of records, and a map to paste if theirs does not fit


@dataclass
class _File:
    """A file of rated records, the field that lists them, what is wrong with its map, and which names of it are."""

    path: Path
    columns: _Columns
    place: str | None
    records: list[Record]
    problem: str
    missing: set[str]

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        """Yield where each record is, and the record."""
        return ((f"{self.path}, record {number}", record) for number, record in enumerate(self.records, start=1))

    def examples(self) -> dict[str, Any]:
        """Return each field with its first value that is not missing."""
        examples: dict[str, Any] = {}
        for record in self.records:
            examples |= {name: value for name, value in record.items() if _is_missing(examples.get(name))}
        return examples


def _rated(
    files: Files, about: _About | None, options: Mapping[str, Any], turns: Mapping[str, int]
) -> tuple[_Maps, _File, _File]:
    """Read both files of records; ``turns`` says how many each dialogue has.

    Raises
    ------
    SchemaError
        One for both, when a field that a map names is in no record: what is missing, the fields there are, a map to paste.
    """
    own = about.columns if about else None
    maps = checked(_Maps, own or options.get("columns", {}), "params.yaml, comperdial.columns")
    loaded = {"turn": _load(files["turn_level"], maps.turn), "dialogue": _load(files["dialogue_level"], maps.dialogue)}
    wrong = [level for level, file in loaded.items() if file.problem]
    if not wrong:
        return maps, loaded["turn"], loaded["dialogue"]
    text = ""
    for file in (loaded[level] for level in wrong):
        examples = file.examples()
        lines = [f"  {name}: {_held(value)}" for name, value in list(examples.items())[:_SHOWN]] or ["  (none)"]
        more = [f"  … and {len(examples) - _SHOWN} more"] if len(examples) > _SHOWN else []
        text += "\n".join([f"{file.path.name}, each field with an example:", *lines, *more, ""])
    counts = {"counts": dict(options["counts"])} if options.get("counts") else {}
    block = {"comperdial": {"columns": {level: _proposal(file, turns) for level, file in loaded.items()}, **counts}}
    problems = [f"{loaded[level].path}: {loaded[level].problem}" for level in wrong]
    raise SchemaError(
        "; ".join([loaded[wrong[0]].problem, *problems[1:]]),
        where=str(loaded[wrong[0]].path),
        expected="the fields that "
        + ("`columns` in the file of systems" if own else f"comperdial.columns.{'/'.join(wrong)} in params.yaml")
        + " names",
        hint=f"What there is:\n{text}"
        "This map is made from names and values alone. Put it in place of `comperdial` in params.yaml, check it, "
        f"and fill in each {_GAP}{', and take `columns` out of the file of systems' if own else ''}:\n"
        + yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10_000),
    )


def _load(path: Path, columns: _Columns) -> _File:
    """Return the records of a file; without a list where the map has it, those of the longest list."""
    content, place = read_json(path), columns.records
    inside = _flat(content) if isinstance(content, dict) else {}
    listed, problems = content if place is None else inside.get(place), []
    if not isinstance(listed, list):
        kind = "an object" if isinstance(content, dict) else _held(content)
        problems = [f"{kind} and no list of records, and the map names no `records`"]
        if place is not None:
            problems = [f"no list of records in {place!r}"]
        lists = {name: value for name, value in inside.items() if _are_records(value)}
        place = max(lists, key=lambda name: len(lists[name]), default=None)
        listed = lists[place] if place else content if _are_records(content) else [content] if inside else []
    elif not listed:
        raise SchemaError("no records", where=str(path), expected="a list of records")
    for number, record in enumerate(listed, start=1):
        if not isinstance(record, dict):
            raise SchemaError(f"holds {_held(record)}", where=f"{path}, record {number}", expected="a JSON object")
    records = [_flat(record) for record in listed]
    there = set().union(*records)
    missing = {
        name: lost for name, fields in columns.fields().items() if (lost := [f for f in fields if f not in there])
    }
    if missing:
        problems.append("no field " + ", ".join(repr(field) for lost in missing.values() for field in lost))
    return _File(path, columns, place, records, "; ".join(problems), set(missing))


def _are_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(record, dict) for record in value)


def _flat(record: Mapping[str, Any], deep: int = _DEEP) -> Record:
    """Return all fields of a record; one whose own name has dots goes before one inside another."""
    result: Record = {}
    for key, value in record.items():
        result[key] = value
        if isinstance(value, dict) and deep:
            for name, inner in _flat(value, deep - 1).items():
                result.setdefault(f"{key}.{name}", inner)
    return result


_HINTS = {
    "dialogue_id": ("dialogue", "dialog", "conversation", "conv"),
    "turn": ("turn",),
    "system_id": ("system", "model", "agent", "submission", "bot"),
    "response": ("response", "output", "prediction", "answer", "reply", "text", "utterance"),
    "ratings": ("ratings", "rating", "score", "scores", "overall", "annotations", "annotation", "label"),
    "marks": ("marks", "mark", "aspects", "axes", "criteria", "problems", "reasons"),
}


def _proposal(file: _File, turns: Mapping[str, int]) -> dict[str, Any]:
    """Return what fits of a file's map, and for the rest the fields whose names are nearest and whose values fit."""
    given = file.columns.model_dump(exclude_none=True)
    proposal: dict[str, Any] = {**dict.fromkeys(type(file.columns).model_fields), **given, "records": file.place}
    if not file.missing:
        return _ordered(proposal)
    sample = file.records[:_SAMPLE]
    values = {field: [v for r in sample if not _is_missing(v := r.get(field))] for field in file.examples()}
    values = {field: cells for field, cells in values.items() if cells}
    taken = {field for name, fields in file.columns.fields().items() if name not in file.missing for field in fields}
    near = [
        (_nearness(name, field) + (name == "dialogue_id" and bool(turns)), -place, name, field)
        for name in file.missing
        for place, (field, cells) in enumerate(values.items())
        if _fits(name, cells, turns)
    ]
    proposal |= dict.fromkeys(file.missing, _GAP)
    for score, _, name, field in sorted(near, reverse=True):
        # What is inside a field that is taken is taken too.
        inside = any(f"{field}.".startswith(f"{other}.") or other.startswith(f"{field}.") for other in taken)
        if score >= 0.7 and proposal[name] == _GAP and not inside:
            proposal[name] = field
            taken.add(field)
    if "ratings" in file.missing:
        # The fields of all annotators, such as score_1 and score_2.
        form = re.sub(r"\d+", "0", proposal["ratings"])
        alike = [f for f in values if re.sub(r"\d+", "0", f) == form and (f == proposal["ratings"] or f not in taken)]
        alike = [field for field in alike if _fits("ratings", values[field], turns)]
        proposal["ratings"] = alike if len(alike) > 1 else proposal["ratings"]
    if proposal.get("marks") == _GAP:
        axes = {
            axis: next((field for field in values if _is_axis(axis, field, values[field], proposal["ratings"])), None)
            for axis in AXES
        }
        proposal["marks"] = {axis: field for axis, field in axes.items() if field} or None
    if "turn" in proposal and (
        numbers := [n for cell in values.get(proposal["turn"], []) if (n := _whole(cell)) is not None]
    ):
        proposal["first_turn"] = int(min(numbers) >= 1 and max(numbers) >= max(turns.values(), default=0))
    return _ordered(proposal)


def _ordered(columns: Mapping[str, Any]) -> dict[str, Any]:
    order = ("records", "dialogue_id", "turn", "first_turn", "system_id", "response", "ratings", "marks")
    return {name: columns[name] for name in order if columns.get(name) is not None}


def _words(field: str) -> list[str]:
    """Return the words of a field's own name, without the names of what it is inside."""
    return re.findall("[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", field.rsplit(".", 1)[-1]).lower())


def _nearness(name: str, field: str) -> float:
    words = [word for word in _words(field) if word not in ("id", "index", "idx", "number", "no", "name")] or ["id"]

    def near(hint: str) -> float:
        return (hint in words[-1:]) / 2 + (hint in words) / 4 + SequenceMatcher(None, "".join(words), hint).ratio()

    return max(near(hint) - place / 1000 for place, hint in enumerate(_HINTS[name]))


def _is_axis(axis: str, field: str, values: list[Any], ratings: object) -> bool:
    marks = [mark for value in values for mark in _inside(value)]
    words = axis.lower().split()
    return _words(field)[-len(words) :] == words and field != ratings and all(map(_is_mark, marks))


def _inside(value: Any) -> list[Any]:  # noqa: ANN401
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]


def _fits(name: str, values: list[Any], turns: Mapping[str, int]) -> bool:
    """Return whether all values of a field can be what one of our names is."""
    if name == "marks":
        axes = {axis.lower() for axis in AXES}
        given = [marks for value in values if isinstance(value, dict) for marks in value.values() if marks is not None]
        lists = all(isinstance(marks, list) and {str(mark).lower() for mark in marks} <= axes for marks in given)
        return lists and all(isinstance(value, dict) for value in values)
    if name == "ratings":
        values = [rating for value in values for rating in _inside(value) if not _is_missing(rating)]
    parsed = [_PARSERS[name](value) for value in values]
    if not parsed or None in parsed:
        return False
    if name == "turn":
        return min(parsed) >= 0 and max(parsed) <= max(turns.values(), default=1_000)
    return name != "dialogue_id" or not turns or {*parsed} <= turns.keys()


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "dialogue_id": _name,
    "turn": _whole,
    "system_id": _name,
    "response": _text,
    "ratings": _rating,
}
