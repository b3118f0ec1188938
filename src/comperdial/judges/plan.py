"""What asking would cost, before anything is sent: calls, tokens and money."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from comperdial.core.errors import ConfigError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import items_of
from comperdial.judges.judging import Judgements, turn_scores
from comperdial.judges.prices import estimate_input, find_price
from comperdial.judges.requests import MissingAnswersError
from comperdial.judges.tasks import Task

# Tokens that a rating takes in an answer, and that a rationale takes: estimates.
_A_RATING, _A_RATIONALE = 6, 60


class Plan(NamedTuple):
    """What a task would ask about a data set, in words; and US dollars: an estimate, and the most that it can cost."""

    text: str
    cost: float = 0.0
    worst: float = 0.0


def plan(task: Task, folder: Path, *, dataset: str) -> Plan:
    """Count and price the calls of a task that have no answer yet; fresh samples for what cannot be read come on top.

    The most that they can cost is what the budget sets aside: a token a byte, answers as long as they may be.
    """
    try:
        turns = turn_scores(task, folder, dataset) if task.variant.turns else None
    except MissingAnswersError:
        return Plan("not counted: its turns are not all judged yet")
    with AnswerFile(task.judging.ledger, dataset) as answers:
        missing = Judgements(task, answers).missing(items_of(task, folder, turns))
        chats = [requests[0].chat for requests in missing if requests]
    read = sum(map(estimate_input, chats))
    written = (1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain) * len(chats)
    text = f"{len(chats):,} calls, about {read:,} tokens in and {written:,} out"
    if not task.service.paid:
        return Plan(f"{text}, free")
    try:
        price = find_price(task.judging.prices, task.judge.model or "")
    except ConfigError as error:
        return Plan(f"{text}, {error.problem}")
    cost, worst = price.of(read, written), sum(price.at_worst(chat, task.judge.parameters) for chat in chats)
    return Plan(f"{text}: {money(cost)}, at most {money(worst)}", cost, worst)
