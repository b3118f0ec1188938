"""Label Studio's exports of pairs in, table ``preferences`` out; annotators who fail their control are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation.key import read_key
from comperdial.challenge.annotation.label_studio import Annotation, check_once, read_export, report
from comperdial.challenge.pairs.export import CHOICE_TAG, KEY_COLUMNS, REASON_TAG
from comperdial.core.errors import SchemaError

Task = Mapping[str, str]
"""A row of the key."""


@dataclass(frozen=True)
class Votes:
    """What annotators answered.

    Attributes
    ----------
    kept
        Table ``preferences``, controls included, of the annotators who are kept.
    removed
        The same of the others, with the reason in a further column ``removed``.
    notes
        Sentences for people: who was removed, and why; whose answers are incomplete or without reasons.
    """

    kept: pd.DataFrame
    removed: pd.DataFrame
    notes: list[str]


def read_votes(exports: Sequence[str | Path], key: str | Path, *, need_reasons: bool = False) -> Votes:
    """Read the answers to a design's tasks.

    All votes of annotators who chose the worse dialogue of a control, or did not answer it, are removed (Li, Weston and
    Roller 2019, "Annotation Quality").

    Parameters
    ----------
    exports
        Files that Label Studio exported, as JSON or JSON-MIN.
    key
        The ``key.csv`` that was written with the tasks.
    need_reasons
        Remove annotators who never gave a reason, as the paper does. Default: a note names them.

    Raises
    ------
    ComperdialError
        Names the file and the annotation at fault: an item that is not in the key, a second vote, a vote without a choice.
    """
    tasks = read_key(Path(key), KEY_COLUMNS, "`comperdial annotate pairs`", may_be_empty=("control",))
    rows: dict[str, dict[str, Any]] = {}
    seen: dict[tuple[str, str], str] = {}
    users: dict[str, str] = {}
    for export in exports:
        records = read_export(export, (CHOICE_TAG, REASON_TAG))
        for record in records:
            if record.item not in tasks:
                raise SchemaError(
                    f"item {record.item!r} is not in {key}",
                    where=record.where,
                    expected="the items of this key",
                    hint="Give the key.csv that was written together with these tasks",
                )
            task = tasks[record.item]
            for annotation in record.annotations:
                check_once(seen, record, annotation)
                where = f"{record.where}, annotation {annotation.id} by annotator {annotation.annotator!r}"
                user = users.setdefault(task["annotator_id"], annotation.annotator)
                if user != annotation.annotator:
                    raise SchemaError(
                        f"the tasks of {task['annotator_id']!r} were done by {user!r} and {annotation.annotator!r}",
                        where=where,
                        expected="one person for each file of tasks",
                    )
                rows[record.item] = _row(task, annotation, where)
        report(export, records)
    if not rows:
        raise SchemaError("no vote", where=", ".join(map(str, exports)), expected="answers to the tasks of the key")
    frame = schema.validate(
        pd.DataFrame(list(rows.values()), columns=schema.table("preferences").columns), "preferences"
    )
    return _screened(tasks, frame, need_reasons=need_reasons)


def _row(task: Task, annotation: Annotation, where: str) -> dict[str, Any]:
    choices = annotation.choices.get(CHOICE_TAG, [])
    if len(choices) != 1 or choices[0] not in ("left", "right", "tie"):
        problem = f"the choice is {' and '.join(map(repr, choices))}" if choices else "a vote without a choice"
        raise SchemaError(problem, where=where, expected="left, right or tie")
    sides = {"left": task["left"], "right": "second" if task["left"] == "first" else "first", "tie": "tie"}
    ids = {name: value for name, value in task.items() if name not in ("item", "position")}
    return ids | {
        "choice": sides[choices[0]],
        "control": task["control"] or None,
        "reason": "\n".join(annotation.choices.get(REASON_TAG, [])).strip() or None,
        "seconds": annotation.seconds,
        "source": "human",
    }


def _screened(tasks: Mapping[str, Task], frame: pd.DataFrame, *, need_reasons: bool) -> Votes:
    notes: list[str] = []
    why: dict[str, str] = {}
    every = pd.DataFrame(list(tasks.values()))
    for annotator in sorted(frame["annotator_id"].unique()):
        mine, given = frame[frame["annotator_id"] == annotator], every[every["annotator_id"] == annotator]
        if len(mine) < len(given):
            notes.append(f"{annotator}: {len(mine)} of {len(given)} pairs answered")
        controls = mine[mine["control"].notna()]
        failed = controls[controls["choice"] != controls["control"]]
        if len(failed):
            row = failed.iloc[0]
            chosen, expected = (row.get(f"{row[side]}_system_id", "tie") for side in ("choice", "control"))
            why[annotator] = f"failed the control {row['pair_id']} (chose {chosen}, expected {expected})"
        elif len(controls) < (given["control"] != "").sum():
            why[annotator] = "did not answer the control"
        elif mine["reason"].isna().all():
            if need_reasons:
                why[annotator] = "never gave a reason"
            else:
                notes.append(f"{annotator}: never gave a reason (kept)")
        if annotator in why:
            notes.append(f"{annotator}: removed with {len(mine)} votes: {why[annotator]}")
    if silent := sorted(set(every["annotator_id"]) - set(frame["annotator_id"])):
        notes.append(f"no answers of {', '.join(silent)}")
    out = frame["annotator_id"].isin(why)
    removed = frame[out].assign(removed=frame.loc[out, "annotator_id"].map(why))
    return Votes(frame[~out].reset_index(drop=True), removed.reset_index(drop=True), notes)
