"""Ask a judge for everything that the ledger does not hold yet: many calls at a time, none lost, none paid twice.

An answer counts once it is on the disk. A worker asks for the next only then, so that a process that is killed loses
no more calls than it has workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from comperdial.core.errors import ConfigError
from comperdial.judges._answers import REFUSED, JudgeError
from comperdial.judges._job import Job
from comperdial.judges._refusals import rating
from comperdial.judges._report import INTERRUPTED, Report
from comperdial.judges._workers import Workers
from comperdial.judges.base import Answer, Completion, Parsed, key
from comperdial.judges.limits import Limits, Throttle
from comperdial.judges.prices import FREE, Budget, Price

if TYPE_CHECKING:
    from comperdial.judges.client import Client
    from comperdial.judges.ledger import Shelf

__all__ = ["INTERRUPTED", "JudgeError", "Report", "Slot", "attempts", "run", "run_async", "usable"]


@dataclass(frozen=True)
class Slot:
    """One wanted judgement: the ``index``-th, from 0, of the samples of a request (its messages, encoded)."""

    messages: str
    index: int


def usable(
    shelf: Shelf, messages: str, index: int, samples: int, retries: int, parse: Callable[[Completion], Parsed]
) -> tuple[Answer | None, Parsed | None, int]:
    """Find a slot's judgement in a shelf.

    Returns
    -------
    answer, parsed
        As :func:`settled` has them.
    tried
        How many answers were looked at.
    """
    looked = attempts(shelf, messages, index, samples, retries, parse)
    return (*settled(looked, retries), len(looked))


def settled(looked: Sequence[tuple[Answer, Parsed]], retries: int) -> tuple[Answer, Parsed] | tuple[None, None]:
    """Return what the attempts at a slot come to.

    The first answer that has a rating; the last one, with its failure, where all tries are there and none has, or the
    service refuses another; None and None where there is more to ask.
    """
    if not looked:
        return None, None
    answer, parsed = looked[-1]
    ended = parsed.failure is None or answer.completion.finish == REFUSED or len(looked) > retries
    return (answer, parsed) if ended else (None, None)


def attempts(
    shelf: Shelf, messages: str, index: int, samples: int, retries: int, parse: Callable[[Completion], Parsed]
) -> list[tuple[Answer, Parsed]]:
    """Return a slot's answers in a shelf, up to the first that has a rating or is a refusal, or that is not there.

    What the slot's judgement cost, all of them cost together.
    """
    looked: list[tuple[Answer, Parsed]] = []
    family = shelf.family.id
    for number in range(retries + 1):
        answer = shelf.get(key(family, messages, index + number * samples))
        if answer is None:
            break
        looked.append((answer, rating(answer.completion, parse)))
        if looked[-1][1].failure is None or answer.completion.finish == REFUSED:
            break
    return looked


def run(slots: Iterable[Slot], **options: Any) -> Report:  # noqa: ANN401
    """Do as :func:`run_async` from code that is not asynchronous."""
    return asyncio.run(run_async(slots, **options))


async def run_async(
    slots: Iterable[Slot],
    *,
    shelf: Shelf,
    client: Client,
    samples: int,
    retries: int,
    parse: Callable[[Completion], Parsed],
    parameters: Mapping[str, Any],
    concurrency: int = 16,
    limits: Limits | None = None,
    price: Price | None = None,
    budget: Budget | None = None,
    total: int | None = None,
    progress: str | None = None,
    throttle: Throttle | None = None,
    pace: Path | None = None,
) -> Report:
    """Have every slot judged; what is in the shelf is not asked again.

    Parameters
    ----------
    slots
        Taken one by one as there is room. Two with the same messages and index are one call.
    shelf
        Open for writing. Each answer is on its disk before it counts; and in the end requests that the service refused
        for good, if it ever answered one of their family: otherwise something else may be wrong.
    client
        Not yet entered.
    samples, retries
        How many samples a request has, and how many fresh ones may be drawn for an answer without a rating: a slot's
        tries are the samples ``index``, ``index + samples``, ``index + 2 * samples``, ….
    parse
        Finds the rating in an answer.
    parameters
        Of the requests.
    concurrency
        How many calls are under way at most.
    limits
        The service's limits, and how often to try.
    price
        Of the model; None where it is not known. A service that is not paid is free whatever this is.
    budget
        What may be spent, by this process or by all (:meth:`comperdial.judges.ledger.Ledger.account`).
    total
        How many slots there are, if it is known; for the time left, and to say how many are missing.
    progress
        What to call the progress bar; None for none.
    throttle
        Instead of one made of ``limits``, for tests.
    pace
        The file with which all processes keep the limits together, of :meth:`comperdial.judges.ledger.Ledger.pace`;
        None: this one is the only one that asks.

    Returns
    -------
    Report
        Also where the run had to stop, or was stopped by Ctrl-C or SIGTERM; its ``check`` makes an error of that.

    Raises
    ------
    ConfigError
        When there is a budget and no price, or no limit to an answer's length; or a parameter cannot be sent.
    ComperdialError
        When an answer cannot be kept; and whatever the slots raise. What came before is kept.
    """
    if concurrency < 1:
        raise ConfigError(f"a judge's concurrency is {concurrency!r}", expected="1 or more")
    price = price if client.service.paid else FREE
    budget = budget or Budget()
    budget.check(price, parameters, client.service.connection.model)
    throttle = throttle or Throttle(limits or Limits(), shared=pace)
    report = Report(total=total)
    with tqdm(total=total, desc=progress, unit="judgement", disable=None) if progress else nullcontext() as bar:
        job = Job(shelf, client, samples, retries, parse, parameters, throttle, price, budget, bar)
        async with client:
            await Workers(job, report).run(iter(slots), concurrency)
    return report
