"""What asking would cost, before anything is sent: calls, tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from comperdial.core.errors import ConfigError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import items_of
from comperdial.judges.judging import Judgements
from comperdial.judges.prices import FREE, estimate_input, find_price
from comperdial.judges.requests import MissingAnswersError
from comperdial.judges.scores import turn_scores
from comperdial.judges.tasks import Judging, Task, service_of, slug, step_of

# Tokens that a rating takes in an answer, and that a rationale takes: estimates.
_A_RATING, _A_RATIONALE = 6, 60


@dataclass
class Plan:
    """What a task would ask of a data set: the calls that have no answer yet.

    Fresh samples for answers that cannot be read come on top. ``cost`` is an estimate, ``worst`` what the budget sets
    aside: a token a byte, answers as long as they may be. Both are None if no price is known.
    """

    dataset: str
    task: Task
    judgements: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    worst: float | None = 0.0
    note: str = ""

    @property
    def model(self) -> str:
        """Return who answers."""
        return self.task.judge.model or self.task.judge.service


def plan(judging: Judging, task: Task, folder: Path, *, dataset: str) -> Plan:
    """Count and price what a task would ask of a data set.

    Of a task at dialogue level whose turns are not all judged yet, each counts as the middle of the scale: the prompts
    are as long.
    """
    found, judgements, turns = Plan(dataset, task), Judgements(judging, task), None
    if task.variant.turns:
        try:
            turns = turn_scores(judging, task, folder, dataset)
        except MissingAnswersError:
            turns = _middle(judging, task, folder)
            found.note = "its turns are not all judged yet: counted as if they were"
    price = FREE
    if service_of(task).paid:
        try:
            price = find_price(judging.prices, task.judge.model)
        except ConfigError as error:
            found.cost = found.worst = None
            found.note = error.problem
    sent = task.judge.parameters
    written = 1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain
    with AnswerFile(judging.ledger, dataset) as answers:
        for requests in judgements.missing(answers, items_of(judging, task, folder, turns)):
            found.judgements += 1
            if not requests:
                continue
            chat = requests[0].chat
            tokens = estimate_input(chat)
            found.calls += 1
            found.input_tokens += tokens
            found.output_tokens += written
            if found.cost is not None and found.worst is not None:
                found.cost += price.of(tokens, written)
                found.worst += price.at_worst(chat, sent)
    return found


def _middle(judging: Judging, task: Task, folder: Path) -> pd.DataFrame:
    """Return scores in the middle of the scale for all turns of a task."""
    step = step_of(judging, task)
    form = step.variant.form
    items = [item for item in items_of(judging, step, folder) if item.messages]
    frame = pd.DataFrame([(item.dataset, item.item_id, item.system_id) for item in items])
    frame.columns = pd.Index(["dataset", "item_id", "system_id"])
    return frame.assign(level="turn", output=slug(form.main), value=(form.low + form.high) / 2)


def as_text(plans: Sequence[Plan]) -> str:
    """Return plans as a table for a terminal, with a total for each model."""
    rows = [
        {
            "data set": plan.dataset,
            "metric": plan.task.name,
            "model": plan.model,
            "judgements": plan.judgements,
            "calls": plan.calls,
            "tokens in": plan.input_tokens,
            "tokens out": plan.output_tokens,
            "US dollars": plan.cost,
            "at most": plan.worst,
        }
        for plan in plans
    ]
    frame = pd.DataFrame(rows)
    counts = ["judgements", "calls", "tokens in", "tokens out"]
    totals = frame.groupby("model", sort=False)[[*counts, "US dollars", "at most"]].sum(min_count=1).reset_index()
    frame = pd.concat([frame, totals.assign(**{"data set": "all", "metric": ""})], ignore_index=True)
    for name in counts:
        frame[name] = [f"{number:,}" for number in frame[name]]
    for name in ("US dollars", "at most"):
        frame[name] = ["no price" if pd.isna(value) else money(value) for value in frame[name].astype(float)]
    notes = [f"{plan.task.name}: {plan.note}" for plan in plans if plan.note]
    return "\n".join([frame.to_string(index=False), *notes])
