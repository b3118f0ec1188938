"""Label Studio's exports, in both of their JSON forms.

"JSON" holds tasks with their annotations; "JSON-MIN" one flat record an annotation, in which a control with one choice or
one text holds that, one with several an object, and no skipped task is left.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json

log = logging.getLogger(__name__)

_FORMS = "a list of tasks, as Label Studio exports it as JSON or JSON-MIN"


@dataclass(frozen=True)
class Annotation:
    """What one person gave for one task: choices and texts by the name of their tag, and how long it took, if known."""

    id: str
    annotator: str
    choices: Mapping[str, list[str]]
    seconds: float | None = None


@dataclass(frozen=True)
class Record:
    """A task, or a task's annotation in JSON-MIN: the item, and the annotations that were not skipped."""

    where: str
    item: str
    annotations: list[Annotation]
    skipped: int


def read_export(path: str | Path, tags: Collection[str]) -> list[Record]:
    """Read a project's export.

    Parameters
    ----------
    path
        The file.
    tags
        The names of our tags. What others hold, such as a field for comments that an organiser added, is not read.

    Raises
    ------
    ComperdialError
        Names the task and the annotation at fault.
    """
    content = read_json(path)
    if not isinstance(content, list) or not content:
        problem = "holds no tasks" if content == [] else f"holds {type(content).__name__}"
        raise SchemaError(problem, where=str(path), expected=_FORMS)
    return [_record(value, f"{path}, record {number}", tags) for number, value in enumerate(content, start=1)]


def _record(value: Any, where: str, tags: Collection[str]) -> Record:  # noqa: ANN401
    if not isinstance(value, dict):
        raise SchemaError(f"holds {type(value).__name__}", where=where, expected="a JSON object")
    where = f"{where} (task {value['id']})" if "id" in value else where
    if "annotations" in value:
        return _task(value, where, tags)
    if "annotator" in value:
        return _flat(value, where, tags)
    raise SchemaError("neither 'annotations' nor 'annotator' is in it", where=where, expected=_FORMS)


def _task(task: dict[str, Any], where: str, tags: Collection[str]) -> Record:
    """Read a task of the JSON form; its predictions and drafts are no ratings and are not looked at."""
    item = _get(_get(task, "data", dict, where), "item", str, f"{where}, data")
    annotations = []
    skipped = 0
    for number, value in enumerate(_get(task, "annotations", list, where), start=1):
        place = f"{where}, annotation {number}"
        if not isinstance(value, dict):
            raise SchemaError(f"holds {type(value).__name__}", where=place, expected="a JSON object")
        if "was_cancelled" in value and _get(value, "was_cancelled", bool, place):
            skipped += 1
            continue
        name = _annotation_id(value, "id", place)
        place = f"{where}, annotation {name}"
        choices: dict[str, list[str]] = {}
        for result in _get(value, "result", list, place):
            tag = _get(result, "from_name", str, place)
            if tag in choices:
                raise SchemaError(f"tag {tag!r} a second time", where=place, expected="each tag once")
            if tag in tags:
                value_of = _get(result, "value", dict, place)
                kind = "text" if "text" in value_of else "choices"
                choices[tag] = _texts(_get(value_of, kind, list, f"{place}, tag {tag!r}"), tag, place)
        annotations.append(Annotation(name, _annotator(value, "completed_by", place), choices, _seconds(value, place)))
    return Record(where, item, annotations, skipped)


def _flat(record: dict[str, Any], where: str, tags: Collection[str]) -> Record:
    """Read a record of the JSON-MIN form; a task that nobody rated has neither annotator nor annotation."""
    item = _get(record, "item", str, where)
    if record["annotator"] is None and record.get("annotation_id") is None:
        return Record(where, item, [], 0)
    name = _annotation_id(record, "annotation_id", where)
    place = f"{where}, annotation {name}"
    choices = {}
    for tag in tags:
        if tag in record:
            value = record[tag]
            given = value.get("choices", value.get("text")) if isinstance(value, dict) else [value]
            choices[tag] = _texts(given, tag, place)
    return Record(
        where, item, [Annotation(name, _annotator(record, "annotator", place), choices, _seconds(record, place))], 0
    )


def _get(record: Any, field: str, kind: type, where: str) -> Any:  # noqa: ANN401
    if not isinstance(record, dict):
        raise SchemaError(f"holds {type(record).__name__}", where=where, expected="a JSON object")
    if field not in record:
        raise SchemaError(f"no field {field!r}", where=where, expected=f"it, as in {_FORMS.removeprefix('a list of ')}")
    if not isinstance(record[field], kind):
        raise SchemaError(f"field {field!r} holds {record[field]!r}", where=where, expected=f"a {kind.__name__}")
    return record[field]


def _texts(value: Any, tag: str, where: str) -> list[str]:  # noqa: ANN401
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SchemaError(f"tag {tag!r} holds {value!r}", where=where, expected="choices, each a text")
    return value


def _annotation_id(record: dict[str, Any], field: str, where: str) -> str:
    value = record.get(field)
    if not _is_name(value):
        raise SchemaError(f"field {field!r} holds {value!r}", where=where, expected="the annotation's number")
    return str(value)


def _annotator(record: dict[str, Any], field: str, where: str) -> str:
    """Return who annotated: of an object the number, which the plain form of the export has, before the address."""
    value = record.get(field)
    names = [value.get("id"), value.get("email")] if isinstance(value, dict) else [value]
    for name in names:
        if _is_name(name):
            return str(name).strip()
    raise SchemaError(
        f"field {field!r} holds {value!r}", where=where, expected="a number, an address, or an object with one of them"
    )


def _seconds(record: dict[str, Any], where: str) -> float | None:
    value = record.get("lead_time")
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf):
        return None if value is None else float(value)
    raise SchemaError(f"field 'lead_time' holds {value!r}", where=where, expected="seconds")


def _is_name(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int) and not isinstance(value, bool)


def check_once(seen: dict[tuple[str, str], str], record: Record, annotation: Annotation) -> None:
    """Refuse a person's second answer to an item; ``seen`` holds the annotation of each item and person so far."""
    key = (record.item, annotation.annotator)
    if key in seen:
        raise SchemaError(
            f"annotations {seen[key]} and {annotation.id} are both by annotator {annotation.annotator!r}",
            where=f"{record.where}, item {record.item!r}",
            expected="one rating a person",
            hint="Delete one of them in Label Studio and export again; do not mix exports of several servers",
        )
    seen[key] = annotation.id


def report(export: str | Path, records: list[Record]) -> None:
    """Log what an export holds."""
    by_annotator = Counter(annotation.annotator for record in records for annotation in record.annotations)
    log.info(
        "%s: %d tasks, %d of them without a rating; %d ratings by %d annotators; %d skipped",
        export,
        len({record.item for record in records}),
        len({r.item for r in records} - {r.item for r in records if r.annotations}),
        by_annotator.total(),
        len(by_annotator),
        sum(record.skipped for record in records),
    )
