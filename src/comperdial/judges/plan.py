"""What judging would cost, before anything is asked: calls, tokens and money."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from comperdial.judges.base import key
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Answers, Ledger
from comperdial.judges.prices import FREE, Price, Prices, estimate_input, most_input, most_output
from comperdial.judges.scores import turns_to_count
from comperdial.judges.tasks import Judging, Task, family_of, service_of

# Estimates: tokens that one rating takes in an answer ("humanness - 4" and the line's end), and that a rationale takes.
_A_RATING = 6
_A_RATIONALE = 60


@dataclass(frozen=True)
class Plan:
    """What one task would ask.

    Attributes
    ----------
    judgements
        Ratings that the scores need.
    calls
        Requests that these come to: what several systems said alike is asked once.
    known
        Of these, those that the ledger has answered.
    input_tokens, output_tokens
        Of the remaining calls, estimated: see :func:`~comperdial.judges.prices.estimate_tokens`. Fresh samples for
        answers that cannot be read come on top.
    cost, worst
        US dollars: expected, and at worst (a token a byte, answers as long as they may be), which is what the budget
        sets aside. None where no price is known, or no limit.
    note
        What else there is to know.
    """

    dataset: str
    task: Task
    judgements: int
    calls: int
    known: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    worst: float | None
    note: str = ""


def plan(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> Plan:
    """Count what a task would ask of a data set, and price it.

    Of a task at dialogue level whose turns are not judged yet, each turn counts as 3: the prompts' length is the same.
    """
    family = family_of(judging, task)
    answers = Ledger(judging.ledger).answers(dataset, family)
    turns, note = None, ""
    if task.variant.turns:
        turns, whole = turns_to_count(judging, task, folder, dataset=dataset)
        note = "" if whole else "its turns are not all judged yet: counted as if they were"
    per_call = _output_tokens(task, answers)
    price = FREE if not service_of(task).paid else Prices.read(judging.prices).find(task.judge.model)
    seen: set[str] = set()
    judgements = calls = known = tokens = most = 0
    for item in items_of(judging, task, folder, turns):
        if item.messages is None:
            continue
        judgements += task.samples
        first = key(family.id, item.messages, 0)
        if first in seen:
            continue
        seen.add(first)
        wanted = [key(family.id, item.messages, sample) for sample in range(task.samples)]
        open_calls = sum(name not in answers for name in wanted)
        calls += task.samples
        known += task.samples - open_calls
        if open_calls:
            messages = json.loads(item.messages)
            tokens += open_calls * estimate_input(messages)
            most += open_calls * most_input(messages)
    left = calls - known
    limit = most_output(task.judge.parameters)
    return Plan(
        dataset,
        task,
        judgements,
        calls,
        known,
        tokens,
        left * per_call,
        _cost(price, tokens, left * per_call),
        None if limit is None and price is not FREE else _cost(price, most, left * (limit or 0)),
        note,
    )


def _cost(price: Price | None, input_tokens: int, output_tokens: int) -> float | None:
    return None if price is None else price.of(input_tokens, output_tokens)


def _output_tokens(task: Task, answers: Answers) -> int:
    """Return how long an answer is: as long as those in the ledger were, or else an estimate."""
    known = answers.frame()["output_tokens"].dropna()
    if len(known):
        return int(np.ceil(np.mean(known)))
    return 1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain


def as_text(plans: Iterable[Plan]) -> str:
    """Return plans as a table for a terminal, with a total for each model."""
    plans = list(plans)
    head = (
        "data set",
        "metric",
        "model",
        "calls",
        "known",
        "to ask",
        "tokens in",
        "tokens out",
        "US dollars",
        "at most",
    )
    rows = [
        (
            p.dataset, p.task.name, p.task.judge.model or p.task.judge.service, f"{p.calls:,}", f"{p.known:,}",
            f"{p.calls - p.known:,}", f"{p.input_tokens:,}", f"{p.output_tokens:,}", _money(p.cost), _money(p.worst),
        )
        for p in plans
    ]  # fmt: skip
    models = [row[2] for row in rows]
    for model in dict.fromkeys(models):
        of_model = [p for p, its in zip(plans, models, strict=True) if its == model]
        costs, worst = [p.cost for p in of_model], [p.worst for p in of_model]
        rows.append(
            (
                "all", "", model, f"{sum(p.calls for p in of_model):,}", f"{sum(p.known for p in of_model):,}",
                f"{sum(p.calls - p.known for p in of_model):,}", f"{sum(p.input_tokens for p in of_model):,}",
                f"{sum(p.output_tokens for p in of_model):,}", _money(_sum(costs)), _money(_sum(worst)),
            )
        )  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(w) if n < 3 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    notes = [f"{p.task.name}: {p.note}" for p in plans if p.note]
    return "\n".join([*(line.rstrip() for line in lines), *notes])


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _money(value: float | None) -> str:
    return "no price" if value is None else f"{value:,.2f}"
