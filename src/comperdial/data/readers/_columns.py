"""The column map of a file of rated records: our name -> the file's field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from comperdial.core.errors import ConfigError, SchemaError
from comperdial.schema.dimensions import AXES, OVERALL_SCALE

NOTHING = object()
Record = Mapping[str, Any]

NEEDED = {
    "turn": ("dialogue_id", "turn", "system_id", "response", "ratings"),
    "dialogue": ("dialogue_id", "system_id", "ratings"),
}
_OPTIONAL = {"turn": ("first_turn", "records"), "dialogue": ("marks", "records")}
# What a mark of an axis is written as (A.7.2 has "n"), in lower case; and what says that there is none.
MARKED = {"n", "no", "x", "true", "1"}
UNMARKED = {"", "y", "yes", "false", "0"}

# How much of a value a message shows.
_WIDTH = 60


class ColumnMap:
    """One column map of ``params.yaml``: our name -> the file's field, with dots into nested objects.

    Parameters
    ----------
    level
        ``turn`` or ``dialogue``.
    columns
        The map. ``ratings`` names a field with a number, a list of numbers or {annotator: number}, or lists one field
        an annotator. ``marks`` (dialogue level) names a field with {annotator: [axis, …]}, or maps each axis to a field
        with "n", to one with a list or {annotator: "n"}, or to a list of fields in the order of ``ratings``.
        ``first_turn`` (turn level) is 0 or 1. ``records`` names the field that holds the list, if the file is no list.

    Raises
    ------
    ConfigError
        When the map lacks a name, has an unknown one, or has a value that is no field.
    """

    def __init__(self, level: str, columns: Any) -> None:  # noqa: ANN401
        self.level, self.where = level, f"params.yaml, comperdial.columns.{level}"
        needed, optional = NEEDED[level], _OPTIONAL[level]
        if not isinstance(columns, Mapping) or set(columns) - {*needed, *optional} or set(needed) - set(columns):
            has = ", ".join(map(str, columns)) if isinstance(columns, Mapping) else repr(columns)
            raise ConfigError(
                f"the map has {has or 'nothing'}",
                where=self.where,
                expected=f"{', '.join(needed)}, and maybe {' or '.join(optional)}",
            )
        self.columns = dict(columns)
        self.first_turn: int = columns.get("first_turn", 0)
        self.records: str | None = columns.get("records")
        self.marks: str | dict[str, str | list[str]] | None = columns.get("marks")
        self._check()

    def _check(self) -> None:
        if isinstance(self.first_turn, bool) or self.first_turn not in (0, 1):
            raise ConfigError(f"first_turn is {self.first_turn!r}", where=self.where, expected="0 or 1")
        for name in set(self.columns) - {"first_turn", "marks", "ratings"}:
            if not _is_field(self.columns[name]) and not (name == "records" and self.records is None):
                raise ConfigError(f"{name} is {self.columns[name]!r}", where=self.where, expected="the name of a field")
        ratings = self.columns["ratings"]
        if not _is_field(ratings) and not _are_fields(ratings):
            raise ConfigError(f"ratings is {ratings!r}", where=self.where, expected="a field, or a list of fields")
        if self.marks is None or _is_field(self.marks):
            return
        if not isinstance(self.marks, Mapping) or not self.marks or set(self.marks) - set(AXES):
            raise ConfigError(
                f"marks is {self.marks!r}", where=self.where, expected=f"a field, or a field for each of {_list(AXES)}"
            )
        for axis, fields in self.marks.items():
            aligned = _are_fields(fields) and isinstance(ratings, list) and len(fields) == len(ratings)
            if not _is_field(fields) and not aligned:
                raise ConfigError(
                    f"{axis} of marks is {fields!r}",
                    where=self.where,
                    expected="a field, or as many fields as `ratings` lists",
                )

    def named(self) -> dict[str, list[str]]:
        """Return our name -> every field of the file that the map names for it."""
        found = {}
        for name in (*NEEDED[self.level], *(["marks"] if self.marks is not None else [])):
            value = self.columns[name]
            values = list(value.values()) if isinstance(value, Mapping) else [value]
            found[name] = [str(f) for v in values for f in (v if isinstance(v, list) else [v])]
        return found

    def name(self, record: Record, column: str, where: str) -> str:
        """Return a name, written as text or as a whole number."""
        value = find(record, self.columns[column])
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise SchemaError(f"{self.columns[column]!r} holds {said(value)}", where=where, expected="a name")
        return str(value)

    def whole(self, record: Record, column: str, where: str) -> int:
        """Return a whole number, which may be written as text or as 3.0."""
        number = whole_of(find(record, self.columns[column]))
        if number is None:
            value = said(find(record, self.columns[column]))
            raise SchemaError(f"{self.columns[column]!r} holds {value}", where=where, expected="a whole number")
        return number

    def text(self, record: Record, column: str, where: str) -> str:
        """Return a text that is not empty."""
        value = find(record, self.columns[column])
        if not isinstance(value, str) or not value.strip():
            raise SchemaError(f"{self.columns[column]!r} holds {said(value)}", where=where, expected="a text")
        return value

    def ratings(self, record: Record, where: str) -> list[tuple[str, int | None, float]]:
        """Return annotator, position (None where annotators have names) and rating, of those who rated."""
        named, pairs = self._raters(record)
        return [
            (annotator, None if named else place, rating_of(value, where))
            for place, (annotator, value) in enumerate(pairs)
            if not is_missing(value)
        ]

    def marked(self, record: Record, where: str) -> list[tuple[str, int | None, str, bool]]:
        """Return annotator, position, axis and whether the annotator marked it, as far as the file says so."""
        if self.marks is None:
            return []
        named, pairs = self._raters(record)
        if not isinstance(self.marks, Mapping):
            known = {annotator: None if named else place for place, (annotator, _) in enumerate(pairs)}
            return self._listed(find(record, self.marks), known, where)
        raters = [(place, annotator) for place, (annotator, value) in enumerate(pairs) if not is_missing(value)]
        found = []
        for axis, fields in self.marks.items():
            if isinstance(fields, list):
                value: Any = [find(record, field) for field in fields]
            else:
                value = find(record, fields)
            for place, annotator in raters:
                mark = _mark_of(value, annotator, place, len(pairs), len(raters), f"{where}, {axis}")
                found.append((annotator, None if named else place, axis, mark))
        return found

    def _raters(self, record: Record) -> tuple[bool, list[tuple[str, Any]]]:
        """Return whether annotators have names, and (annotator, value) pairs, missing values among them."""
        field = self.columns["ratings"]
        if isinstance(field, list):
            return True, [(str(name), find(record, name)) for name in field]
        value = find(record, field)
        if isinstance(value, Mapping):
            return True, list(value.items())
        values = value if isinstance(value, list) else [value]
        return False, [(str(number), rating) for number, rating in enumerate(values, start=1)]

    def _listed(
        self, value: Any, known: Mapping[str, int | None], where: str  # noqa: ANN401
    ) -> list[tuple[str, int | None, str, bool]]:  # fmt: skip
        if is_missing(value):
            return []
        if not isinstance(value, Mapping):
            raise SchemaError(f"marks are {said(value)}", where=where, expected='{"annotator": ["Fluency", …], …}')
        axes = {axis.lower(): axis for axis in AXES}
        found = []
        for annotator, marks in value.items():
            if marks is None:
                continue
            if not isinstance(marks, list):
                raise SchemaError(f"marks of {annotator!r} are {said(marks)}", where=where, expected="a list of axes")
            if unknown := [axis for axis in marks if str(axis).lower() not in axes]:
                raise SchemaError(f"axis {unknown[0]!r}", where=where, expected=_list(AXES))
            chosen = {axes[axis.lower()] for axis in marks}
            found += [(annotator, known.get(annotator), axis, axis in chosen) for axis in AXES]
        return found


def find(record: Any, field: Any) -> Any:  # noqa: ANN401
    """Return a field of a record, or :data:`NOTHING`; a field may be ``a.b`` for b inside a."""
    return _find(record, str(field).split("."))


def _find(found: Any, parts: list[str]) -> Any:  # noqa: ANN401
    if not parts:
        return found
    # The longest first: a field whose own name has a dot goes before a nested one.
    for size in range(len(parts), 0, -1):
        field = ".".join(parts[:size])
        if isinstance(found, Mapping) and field in found:
            inner = _find(found[field], parts[size:])
            if inner is not NOTHING:
                return inner
    return NOTHING


def _is_field(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str | int) and not isinstance(value, bool) and bool(str(value).strip())


def _are_fields(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and bool(value) and all(map(_is_field, value)) and len({*value}) == len(value)


def is_missing(value: Any) -> bool:  # noqa: ANN401
    # Not a number: what pandas writes for a missing one.
    return value is None or value is NOTHING or value == "" or (isinstance(value, float) and math.isnan(value))


def whole_of(value: Any) -> int | None:  # noqa: ANN401
    if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,9}(\.0)?", str(value)):
        return None
    return int(float(value))


def rating_of(value: Any, where: str) -> float:  # noqa: ANN401
    """Return a rating; a text that spells a number is one."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    low, high = OVERALL_SCALE
    if not low <= number <= high:
        raise SchemaError(f"rating {said(value)}", where=where, expected=f"a number from {low:g} to {high:g}")
    return number


def _mark_of(value: Any, annotator: str, place: int, columns: int, raters: int, where: str) -> bool:  # noqa: ANN401
    if isinstance(value, Mapping):
        value = value.get(annotator)
    elif isinstance(value, list):
        if len(value) != columns:
            raise SchemaError(f"{len(value)} marks", where=where, expected=f"{columns}, one a rating")
        value = value[place]
    elif raters > 1 and not is_missing(value):
        raise SchemaError(f"one mark, {said(value)}, for {raters} ratings", where=where, expected="one a rating")
    text = "" if is_missing(value) else str(value).strip().lower()
    if text not in MARKED | UNMARKED:
        raise SchemaError(f"the mark {said(value)}", where=where, expected='"n" or nothing')
    return text in MARKED


def said(value: Any) -> str:  # noqa: ANN401
    text = "nothing" if value is NOTHING else repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
