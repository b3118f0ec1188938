"""ComperDial's own format: dialogues with personas, and two files of rated records whose fields a column map names.

The published files' field names are unknown to us (docs/comperdial-format.md), so nothing is guessed: a map that does not fit
gives one error with the existing fields and a map to fill in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from comperdial.challenge.dialogues import Dialogue, context_id, make_tables, read_dialogues
from comperdial.challenge.records import checked as checked_record
from comperdial.config.checking import Distinct, Expected, Strict, checked, rule, unknown
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.own_files import is_missing, number, shown
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Row, Tables
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# Field in our own records for the source of non-human ratings, so that simulated ratings are recognized even without the file
# of systems.
SOURCE_FIELD = "ratings_source"
# Lower-case values that mark an axis (A.7.2 has "n"), and those that do not.
_MARKED, _UNMARKED = {"n", "no", "x", "true", "1"}, {"", "y", "yes", "false", "0"}
# Fields shown in a message, and maximum depth of fields.
_SHOWN, _DEEP = 40, 8
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
    records: Annotated[_Name | None, Expected("the name of a field")] = None
    dialogue_id: _Name
    system_id: _Name
    ratings: Annotated[_Name | _Names, Expected("a field, or a list of fields")]

    def fields(self) -> dict[str, list[str]]:
        """Return the file's fields for each of our names."""
        fields = {}
        for name, value in self.model_dump(exclude={"records", "first_turn"}, exclude_none=True).items():
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
    """The file of systems: source of the ratings, column maps, and the systems."""

    source: str | None
    columns: dict[str, Any] | None = None
    systems: list[_System]


# Values of fields; None if the type does not match


def _name(value: object) -> str | None:
    is_one = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip()
    return str(value) if is_one else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _whole(value: object) -> int | None:
    """Return an integer, also from text or 3.0."""
    whole = number(value)
    return int(whole) if isinstance(whole, float) and whole.is_integer() else None


def _rating(value: object) -> float | None:
    """Return a rating, also from text."""
    rating = number(value)
    return rating if isinstance(rating, float) and OVERALL_SCALE[0] <= rating <= OVERALL_SCALE[1] else None


_FIELDS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "dialogue_id": (_name, "a name"),
    "turn": (_whole, "a whole number"),
    "system_id": (_name, "a name"),
    "response": (_text, "a text"),
}
"""How to read a field, and what is expected."""
_A_RATING = "a number from {:g} to {:g}".format(*OVERALL_SCALE)


def _held(value: object) -> str:
    return "nothing" if value is None else shown(value)


def _take(record: Record, columns: _Columns, name: str, where: str) -> Any:  # noqa: ANN401
    """Return a record's value for one of our names; raise a :class:`SchemaError` if it is missing or invalid."""
    field: str = getattr(columns, name)
    parse, expected = _FIELDS[name]
    value = parse(record.get(field))
    if value is None:
        raise SchemaError(f"{field!r} holds {_held(record.get(field))}", where=where, expected=expected)
    return value


def read(dataset: str, files: Files, options: Mapping[str, Any] = MappingProxyType({})) -> Tables:
    """Read the four published files, or a data set written by ``comperdial export``.

    Files: ``data`` and ``dialogue_data`` (dialogues), ``turn_level`` and ``dialogue_level`` (rated records); optionally
    ``systems`` (ours). Options: ``columns`` with a map for ``turn`` and one for ``dialogue``, unless ``systems`` has them;
    ``counts``, those of the paper. Contexts and personas of unanswered dialogues are left out.
    """
    about = _About(source=None, systems=[])
    if "systems" in files:
        about = checked_record(_About, read_json(files["systems"]), str(files["systems"]))
    known = _dialogues(files)
    turns, whole = _rated(files, about, options)
    responses: dict[str, dict[tuple[str, int], str]] = {}
    ratings: list[Row] = []
    for where, record in turns:
        dialogue, system = (_take(record, turns.columns, name, where) for name in ("dialogue_id", "system_id"))
        turn = _turn(record, turns.columns, dialogue, known, where)
        answers = responses.setdefault(system, {})
        if (dialogue, turn) in answers:
            problem = f"dialogue {dialogue!r}, turn {record[turns.columns.turn]}, system {system!r} twice"
            raise SchemaError(problem, where=where, expected="once")
        answers[dialogue, turn] = _take(record, turns.columns, "response", where)
        ratings += _ratings(record, turns.columns, ("turn", context_id(dialogue, turn), system), about.source, where)
    answered = {(dialogue, system) for system, answers in responses.items() for dialogue, _ in answers}
    seen = set()
    for where, record in whole:
        dialogue, system = key = tuple(
            _take(record, whole.columns, name, where) for name in ("dialogue_id", "system_id")
        )
        if key not in answered or key in seen:
            expected = "it once" if key in answered else "one that has responses in the turn-level file"
            problem = f"dialogue {dialogue!r}, system {system!r}" + " twice" * (key in seen)
            raise SchemaError(problem, where=where, expected=expected)
        seen.add(key)
        ratings += _ratings(record, whole.columns, ("dialogue", dialogue, system), about.source, where)
    systems = {name: {"kind": "agent", "track": None, "description": ""} for name in responses}
    systems |= {one.system_id: one.model_dump(exclude={"system_id"}) for one in about.systems}
    names = {dialogue for dialogue, _ in answered}
    dialogues = [dialogue for name, dialogue in known.items() if name in names]
    tables = make_tables(dataset, dialogues, systems, responses, where=str(files["turn_level"]))
    tables |= base.make_tables(dataset, {"turn_level": files["turn_level"]}, ratings=ratings)
    counted = {
        "systems": len(tables["systems"]),
        "dialogues": len(dialogues),
        "turns": len(tables["responses"]),
        "rated_dialogues": len({(row["item_id"], row["system_id"]) for row in ratings if row["level"] == "dialogue"}),
    }
    for name, expected in options.get("counts", {}).items():
        level = logging.INFO if counted[name] == expected else logging.WARNING
        log.log(level, "%s: %d %s, the paper counts %d", dataset, counted[name], name.replace("_", " "), expected)
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


def _turn(record: Record, columns: _TurnColumns, dialogue: str, known: Mapping[str, Dialogue], where: str) -> int:
    """Return the turn, from 0."""
    written = _take(record, columns, "turn", where)
    turn, turns = written - columns.first_turn, known[dialogue].turns if dialogue in known else 0
    if not 0 <= turn < turns:
        from_one = "If turns are counted from 1, say so: `first_turn: 1` in the column map"
        raise SchemaError(
            f"dialogue {dialogue!r}, turn {written}",
            where=where,
            expected=f"a dialogue of the dialogue files and a turn counted from {columns.first_turn}",
            hint=from_one if turns and turn == turns else None,
        )
    return int(turn)


def _ratings(record: Record, columns: _Columns, item: base.Item, source: str | None, where: str) -> Iterator[Row]:
    """Yield a record's overall ratings, and a dialogue's marks on axes."""
    # Never read simulated ratings as human.
    whose = record.get(SOURCE_FIELD) or source or "human"
    if not isinstance(whose, str) or source not in (None, whose):
        expected = f"{source!r}, as in the file of systems"
        raise SchemaError(f"{SOURCE_FIELD} is {whose!r}", where=where, expected=expected)
    given = (
        record.get(columns.ratings) if isinstance(columns.ratings, str) else {f: record.get(f) for f in columns.ratings}
    )
    # Number annotators without names.
    places: dict[str, int | None] = dict.fromkeys(given) if isinstance(given, dict) else {}
    if not isinstance(given, dict):
        given = {str(place + 1): value for place, value in enumerate(given if isinstance(given, list) else [given])}
        places = {name: place for place, name in enumerate(given)}
    rated = {name: value for name, value in given.items() if not is_missing(value)}
    for name, value in rated.items():
        if (rating := _rating(value)) is None:
            raise SchemaError(f"rating {_held(value)}", where=where, expected=_A_RATING)
        yield base.rating(item, name, OVERALL, rating, OVERALL_SCALE, position=places[name], source=whose)
    marks = getattr(columns, "marks", None) or {}
    listed = (
        _listed(record.get(marks), where)
        if isinstance(marks, str)
        else _marked(record, marks, [*given], [*rated], where)
    )
    for name, axis, marked in listed:
        yield base.rating(item, name, axis, 1 - marked, AXIS_SCALE, position=places.get(name), source=whose)


def _listed(value: Any, where: str) -> Iterator[tuple[str, str, bool]]:  # noqa: ANN401
    """Yield annotator, axis and whether it is marked, from ``{annotator: [axis, …]}``."""
    if not is_missing(value) and not isinstance(value, dict):
        raise SchemaError(f"marks are {_held(value)}", where=where, expected='{"annotator": ["Fluency", …], …}')
    axes = {axis.lower(): axis for axis in AXES}
    for name, marks in (value or {}).items():
        if marks is None:
            continue
        if not isinstance(marks, list):
            raise SchemaError(f"marks of {name!r} are {_held(marks)}", where=where, expected="a list of axes")
        marked = {str(mark).lower(): mark for mark in marks}
        if unknown := [mark for lower, mark in marked.items() if lower not in axes]:
            raise SchemaError(f"axis {unknown[0]!r}", where=where, expected=", ".join(AXES))
        yield from ((name, axis, lower in marked) for lower, axis in axes.items())


def _marked(
    record: Record, marks: Mapping[str, str | list[str]], names: list[str], rated: list[str], where: str
) -> Iterator[tuple[str, str, bool]]:
    """Yield the same for those who rated, from one field per axis with one mark or one per name in ``names``."""
    for axis, fields in marks.items():
        at, problem = f"{where}, {axis}", ""
        value = record.get(fields) if isinstance(fields, str) else [record.get(field) for field in fields]
        if isinstance(value, list) and len(value) == len(names):
            value = dict(zip(names, value, strict=True))
        elif isinstance(value, list):
            raise SchemaError(f"{len(value)} marks", where=at, expected=f"{len(names)}, one a rating")
        elif not isinstance(value, dict):
            if len(rated) > 1 and not is_missing(value):
                problem = f"one mark, {_held(value)}, for {len(rated)} ratings"
                raise SchemaError(problem, where=at, expected="one a rating")
            value = dict.fromkeys(names, value)
        for name in rated:
            mark = "" if is_missing(value.get(name)) else str(value[name]).strip().lower()
            if mark not in _MARKED | _UNMARKED:
                raise SchemaError(f"the mark {_held(value[name])}", where=at, expected='"n" or nothing')
            yield name, axis, mark in _MARKED


# Files of records, and the map to fill in if theirs does not fit

C = TypeVar("C", bound=_Columns)


@dataclass
class _File(Generic[C]):
    """A file of rated records, its map, what is wrong with the map, and the map to fill in."""

    path: Path
    columns: C
    records: list[Record]
    problem: str
    to_fill_in: dict[str, Any]

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        """Yield each record with its location."""
        return ((f"{self.path}, record {number}", record) for number, record in enumerate(self.records, start=1))

    def examples(self) -> str:
        """Return a line per field with its first non-missing value."""
        examples: dict[str, Any] = {}
        for record in self.records:
            examples |= {name: value for name, value in record.items() if is_missing(examples.get(name))}
        lines = [f"  {name}: {_held(value)}\n" for name, value in examples.items()] or ["  (none)\n"]
        more = f"  … and {len(lines) - _SHOWN} more\n" if len(lines) > _SHOWN else ""
        return f"{self.path.name}, each field with an example:\n{''.join(lines[:_SHOWN])}{more}"


def _rated(
    files: Files, about: _About, options: Mapping[str, Any]
) -> tuple[_File[_TurnColumns], _File[_DialogueColumns]]:
    """Read both files of records.

    Raises
    ------
    SchemaError
        One error for both files if a mapped field is in no record: the missing fields, the existing ones, a map to fill in.
    """
    maps = checked(_Maps, about.columns or options.get("columns", {}), "params.yaml, comperdial.columns")
    loaded = _load(files["turn_level"], maps.turn), _load(files["dialogue_level"], maps.dialogue)
    levels: dict[str, _File[Any]] = {"turn": loaded[0], "dialogue": loaded[1]}
    wrong = [file for file in levels.values() if file.problem]
    if not wrong:
        return loaded
    block: dict[str, Any] = {"columns": {level: file.to_fill_in for level, file in levels.items()}}
    block |= {"counts": dict(options["counts"])} if options.get("counts") else {}
    named = "/".join(level for level, file in levels.items() if file.problem)
    place = "`columns` in the file of systems" if about.columns else f"comperdial.columns.{named} in params.yaml"
    raise SchemaError(
        "; ".join([wrong[0].problem, *(f"{file.path}: {file.problem}" for file in wrong[1:])]),
        where=str(wrong[0].path),
        expected=f"the fields that {place} names",
        hint=f"What there is:\n{''.join(file.examples() for file in wrong)}"
        f"Put this map in place of `comperdial` in params.yaml, and fill in each {_GAP}"
        f"{', and take `columns` out of the file of systems' if about.columns else ''}:\n"
        + yaml.safe_dump({"comperdial": block}, sort_keys=False, allow_unicode=True, width=10_000),
    )


def _load(path: Path, columns: C) -> _File[C]:
    """Return the records of a file; if the map's list is missing, those of the longest list."""
    content, place, problems = read_json(path), columns.records, []
    inside = _flat(content) if isinstance(content, dict) else {}
    listed = content if place is None else inside.get(place)
    if not isinstance(listed, list):
        kind = "an object" if isinstance(content, dict) else _held(content)
        unnamed = f"{kind} and no list of records, and the map names no `records`"
        problems = [f"no list of records in {place!r}" if place else unnamed]
        lists = {
            name: value
            for name, value in {"": content, **inside}.items()
            if isinstance(value, list) and value and all(isinstance(record, dict) for record in value)
        }
        place = max(lists, key=lambda name: len(lists[name]), default="") or None
        listed = lists[place or ""] if lists else [content] if inside else []
    elif not listed:
        raise SchemaError("no records", where=str(path), expected="a list of records")
    for row, record in enumerate(listed, start=1):
        if not isinstance(record, dict):
            raise SchemaError(f"holds {_held(record)}", where=f"{path}, record {row}", expected="a JSON object")
    records = [_flat(record) for record in listed]
    there = set().union(*records)
    missing = {
        name: lost for name, fields in columns.fields().items() if (lost := [f for f in fields if f not in there])
    }
    if missing:
        problems.append("no field " + ", ".join(repr(field) for lost in missing.values() for field in lost))
    to_fill_in = columns.model_dump(exclude_none=True) | ({"records": place} if place else {})
    to_fill_in |= dict.fromkeys(missing, _GAP)
    return _File(path, columns, records, "; ".join(problems), to_fill_in)


def _flat(record: Mapping[str, Any], deep: int = _DEEP) -> Record:
    """Return all fields of a record; a field whose own name has dots takes precedence over a nested one."""
    result: Record = {}
    for key, value in record.items():
        result[key] = value
        if isinstance(value, dict) and deep:
            for name, inner in _flat(value, deep - 1).items():
                result.setdefault(f"{key}.{name}", inner)
    return result
