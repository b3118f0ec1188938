"""Label Studio's export in, tables of ratings out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation.key import read_key
from comperdial.challenge.annotation.label_studio import Annotation, Record, check_once, read_export, report
from comperdial.challenge.annotation.terms import OVERALL_TAG, REASONS_TAG, SCORES, Level, get_level
from comperdial.core.errors import SchemaError
from comperdial.schema.dimensions import AXES, OVERALL


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
        Table ``ratings``, of one level: the dimension ``Overall`` from 1 to 5 and, for dialogues, the
        six of :data:`comperdial.challenge.annotation.AXES`: 0 where the annotator marked a problem, 1 where not.

    Raises
    ------
    ComperdialError
        Names the task and the annotation at fault. Skipped tasks are no fault; they are counted in the log.
    """
    wanted = get_level(level)
    items = {
        item: {"dataset": row["dataset"], "level": level, "item_id": row[wanted.item], "system_id": row["system_id"]}
        for item, row in read_key(Path(key), wanted.key, f"an export at level {level!r}").items()
    }
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[str, str], str] = {}
    for export in exports:
        records = read_export(export, (OVERALL_TAG, REASONS_TAG))
        for record in records:
            if record.item not in items:
                raise SchemaError(
                    f"item {record.item!r} is not in {key}",
                    where=record.where,
                    expected="the items of this key",
                    hint="Give the key.csv that was exported together with these tasks, and its level",
                )
            for annotation in record.annotations:
                check_once(seen, record, annotation)
                rows += [items[record.item] | rating for rating in _ratings(record, annotation, wanted)]
        report(export, records)
    if not rows:
        raise SchemaError(
            "no task was rated", where=", ".join(map(str, exports)), expected="annotations", hint="Export again later"
        )
    return schema.validate(pd.DataFrame(rows, columns=schema.table("ratings").columns), "ratings")


def _ratings(record: Record, annotation: Annotation, level: Level) -> Iterator[dict[str, Any]]:
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
