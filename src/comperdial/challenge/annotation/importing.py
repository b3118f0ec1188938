"""Label Studio's export in, tables of ratings out.

Both of its JSON forms are read. "JSON" holds tasks with their annotations; "JSON-MIN" one flat record an annotation, in
which a control with one choice holds a text, one with several an object, and no skipped task is left.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation.terms import OVERALL_TAG, REASONS_TAG, SCORES, Level, get_level
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, read_table
from comperdial.schema.dimensions import AXES, OVERALL

log = logging.getLogger(__name__)

_FORMS = "a list of tasks, as Label Studio exports it as JSON or JSON-MIN"


@dataclass(frozen=True)
class _Annotation:
    """What one person gave for one task: the choices by the name of their tag."""

    id: str
    annotator: str
    choices: Mapping[str, list[str]]


@dataclass(frozen=True)
class _Record:
    """A task, or a task's annotation in JSON-MIN: the item, and the annotations that were not skipped."""

    where: str
    item: str
    annotations: list[_Annotation]
    skipped: int


def read_ratings(exports: Sequence[str | Path], key: str | Path, level: str) -> pd.DataFrame:
    """Read the ratings in exports of Label Studio.

    Parameters
    ----------
    exports
        Files exported from one or several projects with the same tasks, as JSON or JSON-MIN.
    key
        The ``key.csv`` that was written with the tasks.
    level
        ``turn`` or ``dialogue``.

    Returns
    -------
    pandas.DataFrame
        Table ``turn_ratings`` or ``dialogue_ratings``: the dimension ``Overall`` from 1 to 5 and, for dialogues, the
        six of :data:`comperdial.challenge.annotation.AXES`: 0 where the annotator marked a problem, 1 where not.

    Raises
    ------
    ComperdialError
        Names the task and the annotation at fault. Skipped tasks are no fault; they are counted in the log.
    """
    wanted = get_level(level)
    items = _read_key(Path(key), wanted)
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[str, str], str] = {}
    for export in exports:
        records = _read_export(export)
        for record in records:
            if record.item not in items:
                raise SchemaError(
                    f"item {record.item!r} is not in {key}",
                    where=record.where,
                    expected="the items of this key",
                    hint="Give the key.csv that was exported together with these tasks, and its level",
                )
            for annotation in record.annotations:
                _check_once(seen, record, annotation)
                rows += [items[record.item] | rating for rating in _ratings(record, annotation, wanted)]
        _report(export, records)
    if not rows:
        raise SchemaError(
            "no task was rated", where=", ".join(map(str, exports)), expected="annotations", hint="Export again later"
        )
    return schema.validate(pd.DataFrame(rows, columns=schema.table(wanted.table).columns), wanted.table)


def _read_export(path: str | Path) -> list[_Record]:
    content = read_json(path)
    if not isinstance(content, list) or not content:
        problem = "holds no tasks" if content == [] else f"holds {type(content).__name__}"
        raise SchemaError(problem, where=str(path), expected=_FORMS)
    return [_record(value, f"{path}, record {number}") for number, value in enumerate(content, start=1)]


def _read_key(path: Path, level: Level) -> dict[str, dict[str, Any]]:
    """Return the ids of each item."""
    frame = read_table(path)
    if list(frame.columns) != level.key:
        raise SchemaError(
            f"the columns are {', '.join(map(str, frame.columns))}",
            where=str(path),
            expected=f"the key.csv of an export at level {level.name!r}: {', '.join(level.key)}",
        )
    items: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(frame.to_dict("records"), start=1):
        ids = {str(name): value for name, value in row.items()}
        where = f"{path}, record {number}"
        for name, value in ids.items():
            if not isinstance(value, str) or not value.strip():
                raise SchemaError(f"column {name!r} holds {value!r}", where=where, expected="a name")
        item = ids.pop("item")
        if item in items:
            raise SchemaError(f"item {item!r} a second time", where=where, expected="each item once")
        items[item] = ids
    return items


def _record(value: Any, where: str) -> _Record:  # noqa: ANN401
    if not isinstance(value, dict):
        raise SchemaError(f"holds {type(value).__name__}", where=where, expected="a JSON object")
    where = f"{where} (task {value['id']})" if "id" in value else where
    if "annotations" in value:
        return _task(value, where)
    if "annotator" in value:
        return _flat(value, where)
    raise SchemaError("neither 'annotations' nor 'annotator' is in it", where=where, expected=_FORMS)


def _task(task: dict[str, Any], where: str) -> _Record:
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
            # What other tags hold, such as a field for comments that an organiser added, is not our business.
            if tag in (OVERALL_TAG, REASONS_TAG):
                given = _get(_get(result, "value", dict, place), "choices", list, f"{place}, tag {tag!r}")
                choices[tag] = _texts(given, tag, place)
        annotations.append(_Annotation(name, _annotator(value, "completed_by", place), choices))
    return _Record(where, item, annotations, skipped)


def _flat(record: dict[str, Any], where: str) -> _Record:
    """Read a record of the JSON-MIN form; a task that nobody rated has neither annotator nor annotation."""
    item = _get(record, "item", str, where)
    if record["annotator"] is None and record.get("annotation_id") is None:
        return _Record(where, item, [], 0)
    name = _annotation_id(record, "annotation_id", where)
    place = f"{where}, annotation {name}"
    choices = {}
    for tag in (OVERALL_TAG, REASONS_TAG):
        if tag in record:
            value = record[tag]
            given = value.get("choices") if isinstance(value, dict) else [value]
            choices[tag] = _texts(given, tag, place)
    return _Record(where, item, [_Annotation(name, _annotator(record, "annotator", place), choices)], 0)


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


def _is_name(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int) and not isinstance(value, bool)


def _check_once(seen: dict[tuple[str, str], str], record: _Record, annotation: _Annotation) -> None:
    key = (record.item, annotation.annotator)
    if key in seen:
        raise SchemaError(
            f"annotations {seen[key]} and {annotation.id} are both by annotator {annotation.annotator!r}",
            where=f"{record.where}, item {record.item!r}",
            expected="one rating a person",
            hint="Delete one of them in Label Studio and export again; do not mix exports of several servers",
        )
    seen[key] = annotation.id


def _ratings(record: _Record, annotation: _Annotation, level: Level) -> Iterator[dict[str, Any]]:
    where = f"{record.where}, annotation {annotation.id} by annotator {annotation.annotator!r}"
    common = {"annotator_id": annotation.annotator, "position": None, "source": "human"}
    score = _score(annotation.choices.get(OVERALL_TAG), where)
    yield common | {"dimension": OVERALL, "rating": score, "scale_min": min(SCORES), "scale_max": max(SCORES)}
    if level.name == "dialogue":
        marked = annotation.choices.get(REASONS_TAG, [])
        for axis in marked:
            if axis not in AXES:
                raise SchemaError(f"reason {axis!r}", where=where, expected="some of " + ", ".join(AXES))
        for axis in AXES:
            yield common | {"dimension": axis, "rating": int(axis not in marked), "scale_min": 0, "scale_max": 1}


def _score(choices: list[str] | None, where: str) -> int:
    if not choices:
        raise SchemaError(
            "no overall score",
            where=where,
            expected="a score from 1 to 5",
            hint="Have the task rated or skipped in Label Studio and export again",
        )
    scores = {str(score): score for score in SCORES}
    if len(choices) != 1 or choices[0] not in scores:
        raise SchemaError(f"overall score {', '.join(map(repr, choices))}", where=where, expected="one from '1' to '5'")
    return scores[choices[0]]


def _report(export: str | Path, records: list[_Record]) -> None:
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
