"""What asking would cost, before anything is sent: calls, tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from comperdial.core.errors import ConfigError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import items_of
from comperdial.judges.judging import Judgements, turn_scores
from comperdial.judges.prices import FREE, estimate_input, find_price
from comperdial.judges.requests import MissingAnswersError
from comperdial.judges.tasks import Task, slug

# Tokens that a rating takes in an answer, and that a rationale takes: estimates.
_A_RATING, _A_RATIONALE = 6, 60


Plan = tuple[dict[str, object], list[str]]
"""A row of the table that is printed, and notes."""


def plan(task: Task, folder: Path, *, dataset: str) -> Plan:
    """Count and price what a task would ask about a data set: the calls that have no answer yet.

    Fresh samples for answers that cannot be read come on top. "US dollars" is an estimate, "at most" what the budget sets
    aside: a token a byte, answers as long as they may be. Both are None if no price is known. Of a task at dialogue level
    whose turns are not all judged yet, each counts as the middle of the scale: the prompts are as long.
    """
    notes: list[str] = []
    turns: pd.DataFrame | None = None
    if task.variant.turns:
        try:
            turns = turn_scores(task, folder, dataset)
        except MissingAnswersError:
            turns = _middle(task.turn_task, folder)
            notes.append(f"{task.name}: its turns are not all judged yet: counted as if they were")
    with AnswerFile(task.judging.ledger, dataset) as answers:
        missing = list(Judgements(task, answers).missing(items_of(task, folder, turns)))
    chats = [requests[0].chat for requests in missing if requests]
    read = sum(map(estimate_input, chats))
    written = (1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain) * len(chats)
    cost = worst = None
    try:
        price = find_price(task.judging.prices, task.judge.model or "") if task.service.paid else FREE
        cost, worst = price.of(read, written), sum(price.at_worst(chat, task.judge.parameters) for chat in chats)
    except ConfigError as error:
        notes.append(f"{task.name}: {error.problem}")
    return {
        "data set": dataset,
        "metric": task.name,
        "model": task.judge.model or task.judge.service,
        "judgements": len(missing),
        "calls": len(chats),
        "tokens in": read,
        "tokens out": written,
        "US dollars": cost,
        "at most": worst,
    }, notes


def _middle(task: Task, folder: Path) -> pd.DataFrame:
    """Return scores in the middle of the scale for all turns that a task judges."""
    names = [(item.dataset, item.item_id, item.system_id) for item in items_of(task, folder) if item.messages]
    frame = pd.DataFrame(names, columns=["dataset", "item_id", "system_id"])
    form = task.variant.form
    return frame.assign(level="turn", output=slug(form.main), value=(form.low + form.high) / 2)


def as_text(plans: Sequence[Plan]) -> str:
    """Return plans as a table for a terminal, with a total for each model."""
    frame = pd.DataFrame([row for row, _ in plans])
    counts, costs = ["judgements", "calls", "tokens in", "tokens out"], ["US dollars", "at most"]
    totals = frame.groupby("model", sort=False)[[*counts, *costs]].sum(min_count=1).reset_index()
    frame = pd.concat([frame, totals.assign(**{"data set": "all", "metric": ""})], ignore_index=True)
    for name in counts:
        frame[name] = [f"{number:,}" for number in frame[name]]
    for name in costs:
        frame[name] = ["no price" if pd.isna(value) else money(value) for value in frame[name].astype(float)]
    return "\n".join([frame.to_string(index=False), *(note for _, notes in plans for note in notes)])
