"""Answers in, table ``preferences`` out: files of the pages and exports of Label Studio, and who is left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation.key import read_key
from comperdial.challenge.annotation.label_studio import check_once, read_export, report
from comperdial.challenge.pairs.collection import CHOICE_TAG, KEY_COLUMNS, REASON_TAG
from comperdial.challenge.pairs.page import FORMAT
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json


@dataclass
class Votes:
    """What annotators answered.

    Attributes
    ----------
    kept
        Table ``preferences``, controls included, of the annotators that are not left out.
    removed
        The same of those that are, and why in a further column ``removed``. Nothing else is dropped.
    said
        Sentences for people: who was left out or is to be looked at, and why; whose answers are incomplete.
    """

    kept: pd.DataFrame
    removed: pd.DataFrame
    said: list[str] = field(default_factory=list)


def read_votes(answers: Sequence[str | Path], key: str | Path, *, need_reasons: bool = False) -> Votes:
    """Read the answers to a design's tasks.

    Who chose the worse dialogue of a control, or did not answer it, is left out with all votes (Li, Weston and Roller
    2019, "Annotation Quality").

    Parameters
    ----------
    answers
        Files that pages saved, and exports of Label Studio (JSON or JSON-MIN).
    key
        The ``key.csv`` that was written with the tasks.
    need_reasons
        Leave out who never gave a reason, as the paper does. Default: they are kept and named.

    Raises
    ------
    ComperdialError
        Names the file and the answer at fault: a vote on a pair that is not in the key, a second vote, a truncated file.
    """
    tasks = _read_tasks(Path(key))
    given: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for path in answers:
        content = read_json(path)
        found = _of_page(content, str(path), tasks) if isinstance(content, dict) else _of_label_studio(path, tasks)
        for where, item, vote in found:
            if item not in tasks:
                raise SchemaError(
                    f"a vote on the pair {item!r}, which does not exist",
                    where=where,
                    expected=f"the pairs of {key}",
                    hint="Give the key.csv that was written together with these tasks",
                )
            if item in given:
                raise SchemaError(
                    f"a second vote on the pair {item!r} by annotator {tasks[item]['annotator_id']!r}",
                    where=where,
                    expected=f"one vote on each pair; the first is in {places[item]}",
                    hint="Of two files of one annotator, give the one with more votes",
                )
            given[item], places[item] = vote, where
    if not given:
        raise SchemaError("no vote", where=", ".join(map(str, answers)), expected="answers to the tasks of the key")
    return _screened(tasks, given, need_reasons=need_reasons)


def _read_tasks(path: Path) -> dict[str, dict[str, str]]:
    tasks = read_key(path, KEY_COLUMNS, "`comperdial annotate pairs`", may_be_empty=("control",))
    for number, task in enumerate(tasks.values(), start=1):
        for name, allowed in (("left", ("first", "second")), ("control", ("first", "second", ""))):
            if task[name] not in allowed:
                raise SchemaError(
                    f"column {name!r} holds {task[name]!r}",
                    where=f"{path}, record {number}",
                    expected=" or ".join(allowed),
                )
    return tasks


def _of_page(
    content: Mapping[str, Any], where: str, tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, item and vote of a file that a page saved."""
    votes, who = content.get("votes"), content.get("annotator")
    if content.get("format") != FORMAT or not isinstance(votes, list) or not isinstance(who, str):
        raise SchemaError(
            "no file of answers", where=where, expected="what a page saved, or an export of Label Studio as JSON"
        )
    for number, vote in enumerate(votes, start=1):
        place = f"{where}, vote {number}"
        if not isinstance(vote, dict) or not isinstance(vote.get("item"), str):
            raise SchemaError("no item", where=place, expected="item, choice, reason, seconds")
        item, seconds, reason = vote["item"], vote.get("seconds"), vote.get("reason")
        if item in tasks and tasks[item]["annotator_id"] != who:
            raise SchemaError(
                f"a task of {tasks[item]['annotator_id']!r} in the file of {who!r}", where=place, expected="own tasks"
            )
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf
        ):
            raise SchemaError(f"'seconds' is {seconds!r}", where=place, expected="a number of 0 or more")
        if reason is not None and not isinstance(reason, str):
            raise SchemaError(f"'reason' is {reason!r}", where=place, expected="a text")
        yield place, item, _vote(vote.get("choice"), reason, seconds, place)


def _of_label_studio(
    path: str | Path, tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, item and vote of an export; each annotator of the design must be one user, with tasks of one."""
    records = read_export(path, (CHOICE_TAG, REASON_TAG))
    seen: dict[tuple[str, str], str] = {}
    users: dict[str, str] = {}
    for record in records:
        for annotation in record.annotations:
            check_once(seen, record, annotation)
            where = f"{record.where}, annotation {annotation.id} by annotator {annotation.annotator!r}"
            if (task := tasks.get(record.item)) is not None:
                user = users.setdefault(task["annotator_id"], annotation.annotator)
                if user != annotation.annotator:
                    raise SchemaError(
                        f"the tasks of {task['annotator_id']!r} were done by {user!r} and {annotation.annotator!r}",
                        where=where,
                        expected="one person for each file of tasks",
                    )
            choices = annotation.choices.get(CHOICE_TAG, [])
            reason = "\n".join(annotation.choices.get(REASON_TAG, []))
            choice = " and ".join(choices) or None
            yield where, record.item, _vote(choice, reason, annotation.seconds, where)
    report(path, records)


def _vote(choice: Any, reason: str | None, seconds: float | None, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(choice, str) or choice not in ("left", "right", "tie"):
        raise SchemaError(
            "a vote without a choice" if choice is None else f"the choice is {choice!r}",
            where=where,
            expected="left, right or tie",
        )
    return {"choice": choice, "reason": (reason or "").strip() or None, "seconds": seconds}


def _screened(
    tasks: Mapping[str, Mapping[str, Any]], given: Mapping[str, Mapping[str, Any]], *, need_reasons: bool
) -> Votes:
    rows = []
    for item, vote in given.items():
        task = tasks[item]
        right = "second" if task["left"] == "first" else "first"
        choice = {"left": task["left"], "right": right, "tie": "tie"}[vote["choice"]]
        ids = {name: value for name, value in task.items() if name not in ("item", "position")}
        rows.append({**ids, **vote, "choice": choice, "control": task["control"] or None, "source": "human"})
    frame = schema.validate(pd.DataFrame(rows, columns=schema.table("preferences").columns), "preferences")
    said: list[str] = []
    why: dict[str, str] = {}
    for annotator in sorted(frame["annotator_id"].unique()):
        mine = frame[frame["annotator_id"] == annotator]
        all_tasks = [item for item, task in tasks.items() if task["annotator_id"] == annotator]
        controls = [item for item in all_tasks if tasks[item]["control"]]
        if len(mine) < len(all_tasks):
            said.append(f"{annotator}: {len(mine)} of {len(all_tasks)} pairs answered")
        failed = mine[mine["control"].notna() & (mine["choice"] != mine["control"])]
        if len(failed):
            row = failed.iloc[0]
            why[annotator] = (
                f"failed the control {row['pair_id']} (chose {_named(row, row['choice'])}, "
                f"expected {_named(row, row['control'])})"
            )
        elif any(item not in given for item in controls):
            why[annotator] = "did not answer the control"
        elif mine["reason"].isna().all():
            if need_reasons:
                why[annotator] = "never gave a reason"
            else:
                said.append(f"{annotator}: never gave a reason (kept)")
        if annotator in why:
            said.append(f"{annotator}: removed with {len(mine)} votes: {why[annotator]}")
    silent = sorted({task["annotator_id"] for task in tasks.values()} - set(frame["annotator_id"]))
    if silent:
        said.append(f"no answers of {', '.join(silent)}")
    out = frame["annotator_id"].isin(why)
    removed = frame[out].assign(removed=frame.loc[out, "annotator_id"].map(why))
    return Votes(frame[~out].reset_index(drop=True), removed.reset_index(drop=True), said)


def _named(row: pd.Series, choice: str) -> str:
    return choice if choice == "tie" else str(row[f"{choice}_system_id"])
