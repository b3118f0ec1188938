"""From the ledger's answers to scores, and the record of how each came about."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ComperdialError
from comperdial.judges.base import Answer, Completion, Parsed, key
from comperdial.judges.ledger import Shelf
from comperdial.judges.running import Report, attempts, settled
from comperdial.judging.base import Task
from comperdial.judging.items import Item

# The most missing judgements that a message names.
_NAMED = 3
# Characters of an answer's key: enough to find it in its family; a whole key would be most of what is kept.
_KEY = 10
# Items whose rows are made at once.
_PART = 4096

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


@dataclass
class Tally:
    """What came of a task so far; of tables that are made in parts.

    Attributes
    ----------
    scores, judgements
        How many rows there are.
    missing, named
        How many judgements the ledger lacks, and the first of them.
    failures
        How many answers could not be read, for which reasons.
    lacking, report
        As in :class:`Judged`.
    """

    scores: int = 0
    judgements: int = 0
    missing: int = 0
    named: list[str] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    report: Report | None = None


def slug(dimension: str) -> str:
    """Return a rating's name as the output of a metric: ``final score`` is ``final-score``."""
    return dimension.replace(" ", "-")


def replay(
    task: Task, items: Iterable[Item], shelf: Shelf, read: Callable[[Completion], Parsed], *, signature: str
) -> Judged:
    """Make scores out of a ledger alone, as :func:`replay_parts` does, all in memory."""
    tally = Tally()
    return joined(list(replay_parts(task, items, shelf, read, tally, signature=signature)), tally)


def joined(made: Sequence[tuple[pd.DataFrame, pd.DataFrame]], tally: Tally) -> Judged:
    """Put parts of the tables together."""
    scores = _concatenated([rated for rated, _ in made], "scores")
    return Judged(scores, _concatenated([how for _, how in made], "judgements"), dict(tally.lacking), tally.report)


def _concatenated(parts: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else schema.empty(name)


def replay_parts(
    task: Task,
    items: Iterable[Item],
    shelf: Shelf,
    read: Callable[[Completion], Parsed],
    tally: Tally,
    *,
    signature: str,
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Make scores out of a ledger alone: yield tables ``scores`` and ``judgements`` of some thousand items at a time.

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
    tally
        Counts.
    signature
        Stands in the scores.

    Raises
    ------
    MissingJudgementsError
        In the end, when the ledger lacks a judgement; names the first ones.
    """
    rest = iter(items)
    while some := list(itertools.islice(rest, _PART)):
        rows: list[dict[str, Any]] = []
        values: list[tuple[Item, Mapping[str, float]]] = []
        for item in some:
            if item.messages is None:
                tally.lacking[str(item.lacks)] += 1
                continue
            of_item, rating = _replay_item(task, item, shelf, read, tally)
            rows += of_item
            values.append((item, rating))
        # What there is would be no table without the rest.
        if not tally.missing:
            scores = scores_frame(task, values, signature)
            judgements = schema.validate(pd.DataFrame(rows, columns=schema.table("judgements").columns), "judgements")
            tally.scores += len(scores)
            tally.judgements += len(judgements)
            yield scores, judgements
    if tally.missing:
        raise MissingJudgementsError(
            f"{tally.missing} judgements are missing, the first: {'; '.join(tally.named)}",
            where=str(shelf.path),
            expected=f"an answer of {task.judge.name} to {task.variant.name} for each",
            hint="`comperdial judge plan` tells what they cost, `comperdial judge run` asks for them",
        )


def _replay_item(
    task: Task, item: Item, shelf: Shelf, read: Callable[[Completion], Parsed], tally: Tally
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return an item's judgements, and its ratings."""
    rows: list[dict[str, Any]] = []
    found: list[Mapping[str, float]] = []
    for sample in range(task.samples):
        tried = attempts(shelf, str(item.messages), sample, task.stride, task.retries, read)
        answer, parsed = settled(tried, task.retries)
        if answer is None or parsed is None:
            tally.missing += 1
            if tally.missing <= _NAMED:
                tally.named.append(f"{item.item_id}, {item.system_id}, sample {sample}")
            continue
        if parsed.failure is None:
            found.append(parsed.values)
        else:
            tally.failures[parsed.failure] += 1
        rows.append(_row(task, item, sample, [each for each, _ in tried], shelf, answer, parsed))
    return rows, _means(found)


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
