"""Read rated records through a column map; when it does not fit, show the fields there are and a map to paste."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from comperdial.errors import ConfigError, SchemaError
from comperdial.files import read_json

NOTHING = object()
_NEEDED = {
    "turn": ("dialogue_id", "turn", "system_id", "response", "ratings"),
    "dialogue": ("dialogue_id", "system_id", "ratings"),
}
_OPTIONAL = ("first_turn", "records", "marks")
_HINTS = {
    "dialogue_id": ("dialogue_id", "dialog_id", "conversation_id", "dialogue"),
    "turn": ("turn", "turn_id", "turn_index", "turn_no"),
    "system_id": ("system_id", "system", "model", "agent", "submission_id", "model_id"),
    "response": ("response", "generated_response", "output", "text", "prediction"),
    "ratings": ("ratings", "rating", "score", "scores", "human_score", "overall", "annotations"),
}
_SHOWN = 40


class ColumnMap:
    """One column map of ``params.yaml``: our name -> the file's field, with dots into nested objects.

    Parameters
    ----------
    level
        ``turn`` or ``dialogue``.
    columns
        The map. ``ratings`` names a field with a number, a list of numbers or
        {annotator: number}, or lists one field an annotator.
        ``marks`` (dialogue level) names a field with {annotator: [axis, …]}, or maps each axis to a field with "n".
        ``first_turn`` is 0 or 1. ``records`` names the field that holds the list, if the file is no list.
    dialogues
        The names of the dialogues, by which a field with such names is recognised for the proposed map.
    """

    def __init__(self, level: str, columns: Mapping[str, Any], *, dialogues: Iterable[str] = ()) -> None:
        where = f"params.yaml, comperdial.columns.{level}"
        self.level, self.columns, self.dialogues = level, dict(columns), set(dialogues)
        unknown = set(columns) - {*_NEEDED[level], *_OPTIONAL}
        if unknown or not set(_NEEDED[level]) <= set(columns):
            raise ConfigError(
                f"the map has {', '.join(columns) or 'nothing'}",
                where=where,
                expected=f"{', '.join(_NEEDED[level])}, and maybe {', '.join(_OPTIONAL)}",
            )
        self.first_turn = columns.get("first_turn", 0)
        self.records = columns.get("records")
        self.marks: str | dict[str, str] | None = columns.get("marks")
        self.named_annotators = False

    def fields(self) -> list[str]:
        """Return every field of the file that the map names."""
        named: list[str] = []
        for name in _NEEDED[self.level]:
            value = self.columns[name]
            named += value if isinstance(value, list) else [value]
        if self.marks is not None:
            named += [self.marks] if isinstance(self.marks, str) else list(self.marks.values())
        return named

    def value(self, record: Mapping[str, Any], field: str) -> Any:  # noqa: ANN401
        """Return a field of a record, or :data:`NOTHING`; a field may be ``a.b`` for b inside a."""
        if field in record:
            return record[field]
        found: Any = record
        for part in str(field).split("."):
            if not isinstance(found, Mapping) or part not in found:
                return NOTHING
            found = found[part]
        return found

    def name(self, record: Mapping[str, Any], column: str, where: str) -> str:
        """Return a name, written as text or as a whole number."""
        value = self.value(record, self.columns[column])
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise SchemaError(f"{self.columns[column]!r} holds {_said(value)}", where=where, expected="a name")
        return str(value)

    def whole(self, record: Mapping[str, Any], column: str, where: str) -> int:
        """Return a whole number, which may be written as text."""
        value = self.value(record, self.columns[column])
        text = str(value)
        if isinstance(value, bool) or not isinstance(value, int | str) or not text.lstrip("-").isdecimal():
            raise SchemaError(f"{self.columns[column]!r} holds {_said(value)}", where=where, expected="a whole number")
        return int(text)

    def text(self, record: Mapping[str, Any], column: str, where: str) -> str:
        """Return a text that is not empty."""
        value = self.value(record, self.columns[column])
        if not isinstance(value, str) or not value.strip():
            raise SchemaError(f"{self.columns[column]!r} holds {_said(value)}", where=where, expected="a text")
        return value

    def number(self, value: Any, where: str) -> float:  # noqa: ANN401
        """Return a rating; a text that spells a number is one."""
        try:
            if isinstance(value, bool):
                raise ValueError
            return float(value)
        except (TypeError, ValueError):
            raise SchemaError(f"rating {_said(value)}", where=where, expected="a number from 1 to 5") from None

    def by_annotator(self, record: Mapping[str, Any], column: str, where: str) -> list[tuple[str, Any]]:
        """Return (annotator, value) pairs, without values that are missing (null or empty)."""
        field = self.columns[column]
        if isinstance(field, list):
            self.named_annotators = True
            pairs = [(str(name), self.value(record, name)) for name in field]
        else:
            value = self.value(record, field)
            if isinstance(value, Mapping):
                self.named_annotators = True
                pairs = [(str(name), rating) for name, rating in value.items()]
            elif isinstance(value, list):
                pairs = [(str(number), rating) for number, rating in enumerate(value, start=1)]
            else:
                pairs = [("1", value)]
        return [(name, value) for name, value in pairs if value is not None and value != "" and value is not NOTHING]


def _said(value: Any) -> str:  # noqa: ANN401
    return "nothing" if value is NOTHING else f"{value!r:.60}"


def read_records(path: Path, columns: ColumnMap) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (where, record) of a file of rated records, after checking that the map fits the file.

    Raises
    ------
    SchemaError
        When a field that the map names is in no record: lists what is missing, the fields there are and a map to paste.
    """
    content = read_json(path)
    if columns.records is not None:
        content = columns.value(content, columns.records) if isinstance(content, dict) else NOTHING
    if not isinstance(content, list) or not content or not all(isinstance(record, dict) for record in content):
        fields = ", ".join(map(repr, list(content)[:_SHOWN])) if isinstance(content, dict) else ""
        keys = f"an object with {fields}" if fields else "no list of objects"
        raise SchemaError(
            f"holds {keys}",
            where=str(path),
            expected="a list of records",
            hint=f"If one of its fields holds the list, say `records: FIELD` in comperdial.columns.{columns.level}",
        )
    missing = [f for f in columns.fields() if all(columns.value(record, f) is NOTHING for record in content)]
    if missing:
        raise SchemaError(
            f"no field {', '.join(map(repr, missing))}",
            where=str(path),
            expected=f"the fields that comperdial.columns.{columns.level} in params.yaml names",
            hint=_explain(content, columns),
        )
    for number, record in enumerate(content, start=1):
        yield f"{path}, record {number}", record


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict) and not prefix:
            yield from _flat(value, f"{key}.")


def _explain(records: list[dict[str, Any]], columns: ColumnMap) -> str:
    examples: dict[str, Any] = {}
    for record in records[:200]:
        for name, value in _flat(record):
            examples.setdefault(name, value)
    shown = "\n".join(f"  {name}: {_said(value)}" for name, value in list(examples.items())[:_SHOWN])
    proposal = "\n".join(
        f"      {name}: {_propose(name, records, examples, columns)}" for name in _NEEDED[columns.level]
    )
    return (
        f"The file's fields, each with an example:\n{shown}\n"
        "A map to paste into params.yaml, made from names and values alone; check it, and fill in each ???:\n"
        f"  comperdial:\n    columns:\n     {columns.level}:\n{proposal}"
    )


def _propose(name: str, records: list[dict[str, Any]], examples: Mapping[str, Any], columns: ColumnMap) -> str:
    """Return the field whose name is nearest and whose values fit; ??? when there is none."""
    best, score = "???", 0.55
    for field, value in examples.items():
        if not _fits(name, value, field, records, columns):
            continue
        last = field.rsplit(".", 1)[-1].lower()
        near = max(difflib.SequenceMatcher(None, last, hint).ratio() for hint in _HINTS[name])
        if near > score:
            best, score = field, near
    return best


def _fits(name: str, value: Any, field: str, records: list[dict[str, Any]], columns: ColumnMap) -> bool:  # noqa: ANN401
    if name == "dialogue_id":
        found = {str(columns.value(record, field)) for record in records[:200]}
        return not columns.dialogues or found <= columns.dialogues
    if name == "turn":
        return not isinstance(value, bool) and isinstance(value, int | str) and str(value).isdecimal()
    if name == "ratings":
        return isinstance(value, int | float | list | dict) and not isinstance(value, bool)
    return isinstance(value, str) or (name == "system_id" and isinstance(value, int))
