"""Ask a judge what the ledger does not know yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from comperdial.core.errors import ConfigError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.base import Family
from comperdial.judges.batch_files import BATCHES, committed, read_states
from comperdial.judges.client import Client
from comperdial.judges.ledger import Ledger
from comperdial.judges.limits import Limits
from comperdial.judges.prices import FREE, Price, Prices
from comperdial.judges.running import Report, Slot, run
from comperdial.judges.services.base import Service
from comperdial.judging.base import Judging, Task
from comperdial.judging.items import Item
from comperdial.judging.reading import reader
from comperdial.judging.tasks import family_of, service_of, to_pay, unpaid

CONCURRENCY = 16
"""Calls under way at a time, of a judge that does not say."""


def slots(items: Iterable[Item], samples: int) -> Iterator[Slot]:
    """Yield the judgements that items need; those that lack something need none."""
    for item in items:
        if item.messages is not None:
            for index in range(samples):
                yield Slot(item.messages, index)


def ask_items(
    judging: Judging, task: Task, items: Callable[[], Iterable[Item]], *, dataset: str, shard: Shard = WHOLE
) -> Report:
    """Ask as :func:`comperdial.judging.running.ask` does, about the items of a shard that a function makes.

    It is called more than once.
    """
    service, family = service_of(task), family_of(judging, task)
    if why := unpaid(judging, task):
        raise ConfigError(why, where=task.judge.name, hint=to_pay(judging, task))
    price: Price | None = FREE
    if service.paid:
        price = Prices.read(judging.prices).find(task.judge.model) if judging.prices.exists() else None
    if price is None:
        raise ConfigError(
            f"the price of {task.judge.model} is not known", where=task.judge.name, hint=to_pay(judging, task)
        )
    ledger, reached = Ledger(judging.ledger), task.judge.connection
    total = sum(item.messages is not None for item in items()) * task.samples
    with ExitStack() as stack:
        shelf = stack.enter_context(ledger.writing(dataset, family, shard))
        budget = None
        if service.paid:
            _refuse_open(dataset, family)
            budget = stack.enter_context(ledger.account(judging.budget, lambda: committed(ledger)))
        report = run(
            slots(items(), task.samples),
            shelf=shelf,
            client=Client(service),
            samples=task.stride,
            retries=task.retries,
            parse=reader(task),
            parameters=family.parameters,
            concurrency=reached.get("concurrency", CONCURRENCY),
            limits=_limits(reached),
            pace=ledger.pace(service.connection) if _is_elsewhere(service) else None,
            price=price,
            budget=budget,
            total=total,
            progress=task.name,
        )
    report.check(task.name)
    return report


def _is_elsewhere(service: Service) -> bool:
    """Say whether a service has an address, where others ask it too. To make its transport would load its model."""
    return type(service).transport is Service.transport


def _refuse_open(dataset: str, family: Family) -> None:
    """Refuse to ask what a batch that was submitted asks already: it would be paid twice."""
    for state in read_states(BATCHES):
        if state.open and state.dataset == dataset and state.family.id == family.id:
            raise ConfigError(
                f"a batch of these requests is under way ({state.name})",
                where=str(BATCHES),
                expected="its answers before anything else is asked",
                hint="`comperdial judge batch collect`",
            )


def _limits(reached: Mapping[str, Any]) -> Limits:
    given = {"requests": "requests_per_minute", "tokens": "tokens_per_minute", "attempts": "attempts"}
    return Limits(**{name: reached[key] for name, key in given.items() if key in reached})
