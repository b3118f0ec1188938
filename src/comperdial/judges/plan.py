"""What judging would cost, before anything is asked: calls, tokens and money."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from comperdial.core.terminal import money
from comperdial.judges.base import key
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Answers, Ledger
from comperdial.judges.prices import FREE, Prices, estimate_input, most_input, most_output
from comperdial.judges.scores import known_sum, turns_to_count
from comperdial.judges.tasks import Judging, Task, family_of, service_of

# Estimates: tokens that one rating takes in an answer ("humanness - 4" and the line's end), and that a rationale takes.
_A_RATING = 6
_A_RATIONALE = 60


@dataclass(frozen=True)
class Plan:
    """What one task would ask.

    Attributes
    ----------
    calls
        Requests that the scores need: what several systems said alike is asked once.
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
    calls: int
    known: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    worst: float | None
    note: str = ""


def plan(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> Plan:
    """Count what a task would ask of a data set, and price it.

    Of a task at dialogue level whose turns are not all judged yet, each counts as the middle of the scale: the prompts'
    length is the same.
    """
    family = family_of(judging, task)
    turns, note = None, ""
    if task.variant.turns:
        turns, whole = turns_to_count(judging, task, folder, dataset=dataset)
        note = "" if whole else "its turns are not all judged yet: counted as if they were"
    price = FREE if not service_of(task).paid else Prices.read(judging.prices).find(task.judge.model)
    calls = known = tokens = most = 0
    with closing(Ledger(judging.ledger).answers(dataset, family)) as answers:
        per_call = _output_tokens(task, answers)
        seen: set[str] = set()
        for item in items_of(judging, task, folder, turns):
            if item.messages is None or (first := key(family.id, item.messages, 0)) in seen:
                continue
            seen.add(first)
            answered = sum(key(family.id, item.messages, sample) in answers for sample in range(task.samples))
            calls += task.samples
            known += answered
            if left := task.samples - answered:
                chat = json.loads(item.messages)
                tokens += left * estimate_input(chat)
                most += left * most_input(chat)
    left, limit = calls - known, most_output(task.judge.parameters)
    cost = worst = None
    if price is not None:
        cost = price.of(tokens, left * per_call)
        worst = None if limit is None and price is not FREE else price.of(most, left * (limit or 0))
    return Plan(dataset, task, calls, known, tokens, left * per_call, cost, worst, note)


def _output_tokens(task: Task, answers: Answers) -> int:
    """Return how long an answer is: as long as those in the ledger were, or else an estimate."""
    known = answers.frame()["output_tokens"].dropna()
    if len(known):
        return int(np.ceil(np.mean(known)))
    return 1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain


_HEAD = (
    "data set", "metric", "model", "calls", "known", "to ask", "tokens in", "tokens out", "US dollars", "at most",
)  # fmt: skip


def as_text(plans: Iterable[Plan]) -> str:
    """Return plans as a table for a terminal, with a total for each model."""
    plans = list(plans)
    by_model: dict[str, list[Plan]] = {}
    for plan in plans:
        by_model.setdefault(_model(plan), []).append(plan)
    rows = [_HEAD, *(_cells(plan.dataset, plan.task.name, [plan]) for plan in plans)]
    rows += [_cells("all", "", of_model) for of_model in by_model.values()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(w) if n < 3 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    notes = [f"{plan.task.name}: {plan.note}" for plan in plans if plan.note]
    return "\n".join([*(line.rstrip() for line in lines), *notes])


def _model(plan: Plan) -> str:
    return plan.task.judge.model or plan.task.judge.service


def _cells(dataset: str, metric: str, plans: list[Plan]) -> tuple[str, ...]:
    calls, known, *tokens = (
        sum(getattr(plan, name) for plan in plans) for name in ("calls", "known", "input_tokens", "output_tokens")
    )
    counts = [f"{number:,}" for number in (calls, known, calls - known, *tokens)]
    sums = [known_sum([plan.cost for plan in plans]), known_sum([plan.worst for plan in plans])]
    return (
        dataset,
        metric,
        _model(plans[0]),
        *counts,
        *("no price" if m is None else money(m).lstrip("$") for m in sums),
    )
