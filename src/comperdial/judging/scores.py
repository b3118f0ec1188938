"""From the ledger's answers to scores, and the record of how each came about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.errors import ComperdialError
from comperdial.judges.base import Answer, Completion, Parsed, key
from comperdial.judges.ledger import Shelf
from comperdial.judges.running import Report, attempts, settled
from comperdial.judging.base import Task
from comperdial.judging.items import Item

# The most missing judgements that a message names.
_NAMED = 3
# Characters of an answer's key: enough to find it in its family; a whole key would be most of what is kept.
_KEY = 10

OUTSIDE = "outside"
"""The output that says how much probability the judge gave to what is not on the scale."""


class MissingJudgementsError(ComperdialError):
    """The ledger lacks judgements, and nothing may be asked."""


@dataclass(frozen=True)
class Judged:
    """Tables ``scores`` and ``judgements`` of one task.

    ``lacking`` counts items that lack what the prompt needs; ``report`` tells of the run, None where nothing was asked.
    """

    scores: pd.DataFrame
    judgements: pd.DataFrame
    lacking: Mapping[str, int]
    report: Report | None = None


def slug(dimension: str) -> str:
    """Return a rating's name as the output of a metric: ``final score`` is ``final-score``."""
    return dimension.replace(" ", "-")


def replay(
    task: Task, items: Iterable[Item], shelf: Shelf, read: Callable[[Completion], Parsed], *, signature: str
) -> Judged:
    """Make scores out of a ledger alone.

    A score is the mean of an item's judgements that could be read. One that could not, after the fresh samples that the
    variant allows, is left out and counted; an item without any has no score.

    Parameters
    ----------
    task
        What was asked.
    items
        What was judged.
    shelf
        The answers.
    read
        Reads an answer.
    signature
        Stands in the scores.

    Raises
    ------
    MissingJudgementsError
        When the ledger lacks a judgement; names the first ones.
    """
    rows: list[dict[str, Any]] = []
    values: list[tuple[Item, Mapping[str, float]]] = []
    missing: list[str] = []
    lacking: dict[str, int] = {}
    stride, retries = task.stride, task.retries
    for item in items:
        if item.messages is None:
            lacking[str(item.lacks)] = lacking.get(str(item.lacks), 0) + 1
            continue
        found: list[Mapping[str, float]] = []
        for sample in range(task.samples):
            tried = attempts(shelf, item.messages, sample, stride, retries, read)
            answer, parsed = settled(tried, retries)
            if answer is None or parsed is None:
                missing.append(f"{item.item_id}, {item.system_id}, sample {sample}")
                continue
            if parsed.failure is None:
                found.append(parsed.values)
            rows.append(_row(task, item, sample, [each for each, _ in tried], shelf, answer, parsed))
        values.append((item, _means(found)))
    if missing:
        raise MissingJudgementsError(
            f"{len(missing)} judgements are missing, the first: {'; '.join(missing[:_NAMED])}",
            where=str(shelf.path),
            expected=f"an answer of {task.judge.name} to {task.variant.name} for each",
            hint="`comperdial judge plan` tells what they cost, `comperdial judge run` asks for them",
        )
    scores = scores_frame(task, values, signature)
    judgements = pd.DataFrame(rows, columns=schema.table("judgements").columns)
    return Judged(scores, schema.validate(judgements, "judgements"), lacking)


def _means(found: list[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for values in found for name in values)
    return {name: float(np.mean([values[name] for values in found if name in values])) for name in names}


def _row(
    task: Task, item: Item, sample: int, tried: list[Answer], shelf: Shelf, answer: Answer, parsed: Parsed
) -> dict[str, Any]:
    return {
        "dataset": item.dataset,
        "level": task.variant.level,
        "item_id": item.item_id,
        "system_id": item.system_id,
        "metric": task.name,
        "output": slug(task.variant.form.main),
        "sample": sample,
        "key": key(shelf.family.id, answer.messages, answer.sample)[:_KEY],
        "tries": len(tried),
        "value": parsed.values.get(task.variant.form.main) if parsed.failure is None else None,
        "failure": parsed.failure,
        "rationale": parsed.rationale or None,
        "input_tokens": _sum([each.completion.input_tokens for each in tried]),
        "output_tokens": _sum([each.completion.output_tokens for each in tried]),
        "cost": _sum([each.cost for each in tried]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum over all tries, those that could not be read too: they were paid for as well."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def scores_frame(task: Task, values: Sequence[tuple[Item, Mapping[str, float]]], signature: str) -> pd.DataFrame:
    """Lay out what each item was rated as table ``scores``, one output a rating."""
    names = [*task.variant.form.dimensions, *([OUTSIDE] if task.judge.mode == "probabilities" else [])]
    frames = []
    for name in names:
        having = [(item, of_item[name]) for item, of_item in values if name in of_item]
        if having:
            frames.append(
                pd.DataFrame(
                    {
                        "dataset": [item.dataset for item, _ in having],
                        "level": task.variant.level,
                        "item_id": [item.item_id for item, _ in having],
                        "system_id": [item.system_id for item, _ in having],
                        "metric": task.name,
                        "output": slug(name),
                        "value": np.array([value for _, value in having], dtype=np.float32),
                        "cut": 0,
                        "signature": signature,
                    }
                )
            )
    if not frames:
        return schema.empty("scores")
    return schema.validate(pd.concat(frames, ignore_index=True), "scores")
