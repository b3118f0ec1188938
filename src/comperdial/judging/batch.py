"""OpenAI's Batch API as a second road: write what the ledger lacks, submit it, put what comes back into the ledger."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from comperdial.core.errors import ConfigError
from comperdial.core.files import sha256
from comperdial.judges import batch_files
from comperdial.judges.base import Family, key
from comperdial.judges.batch_files import BATCHES, SUBMITTED, SUBMITTING, WRITTEN, State, open_cost, read_states
from comperdial.judges.batch_lines import request_line
from comperdial.judges.batches import Batch, Batches
from comperdial.judges.client import JudgeError, Refused, Transient
from comperdial.judges.ledger import Ledger, Shelf
from comperdial.judges.prices import FREE, Budget, Price, Prices, most_input, most_output
from comperdial.judges.running import usable
from comperdial.judges.services.base import Service
from comperdial.judges.services.openai import OpenAI
from comperdial.judging.base import Judging, Task
from comperdial.judging.batch_tasks import service_for, task_of
from comperdial.judging.items import Item
from comperdial.judging.reading import reader
from comperdial.judging.running import items_of, turns_to_count
from comperdial.judging.tasks import family_of, service_of

log = logging.getLogger(__name__)

# Seconds after which a batch that was made is on the service's list for certain [an assumption].
SETTLING = 30.0

# What may be spent, and what other batches can cost.
_Money = tuple[Budget | None, float]

Connect = Callable[[Service], Batches]
"""Makes the client; other than the usual in tests."""


def write(
    judging: Judging, task: Task, folder: str | Path, *, dataset: str, root: Path = BATCHES
) -> tuple[list[State], str | None]:
    """Write the requests of a task that the ledger lacks and no batch asks for already.

    Files that were written for the same task and never submitted are replaced, also those for another model, other
    parameters or another prompt.

    Parameters
    ----------
    folder, dataset
        The data set's tables, and its name.
    root
        Where files of requests lie, each in its judge's folder.

    Returns
    -------
    states, skipped
        The files written, and why there are none.
    """
    service = service_of(task)
    if not isinstance(service, OpenAI):
        return [], f"the service {service.name} has no Batch API"
    if not task.judge.model:
        return [], "no model is named"
    turns = None
    if task.variant.turns:
        turns, whole = turns_to_count(judging, task, folder, dataset=dataset)
        if not whole:
            return [], f"the ledger does not hold all answers of {task.turns} yet, whose scores the prompt is given"
    family = family_of(judging, task)
    with batch_files.holding(root):
        same = (dataset, task.judge.name, task.variant.name)
        for state in read_states(root):
            if state.status == WRITTEN and (state.dataset, state.family.judge, state.variant) == same:
                _remove(state)
        states = read_states(root)
        mine = [state for state in states if (state.dataset, state.family.id) == (dataset, family.id)]
        asked = set[str]().union(*(state.keys() for state in mine if state.status == WRITTEN or state.open))
        shelf = Ledger(judging.ledger).shelf(dataset, family)
        wanted = _wanted(task, items_of(judging, task, folder, turns), shelf, asked)
        made = list(_write(judging, task, family, dataset, wanted, root))
    if made:
        return made, None
    waiting = sum(state.requests for state in mine if state.open)
    return [], f"{waiting:,} requests are with the service already" if waiting else "the ledger lacks nothing"


def _remove(state: State) -> None:
    # The state first: without one, a file of requests is nothing.
    state.path.unlink()
    state.file().unlink(missing_ok=True)


def _wanted(task: Task, items: Iterator[Item], shelf: Shelf, asked: set[str]) -> Iterator[tuple[str, str, int]]:
    """Yield key, messages (encoded) and sample of what is to ask; fresh samples for answers that cannot be read."""
    read, seen = reader(task), set(asked)
    stride, retries = task.stride, task.retries
    for item in items:
        for index in range(task.samples if item.messages is not None else 0):
            messages = str(item.messages)
            answer, _, tried = usable(shelf, messages, index, stride, retries, read)
            sample = index + tried * stride
            name = key(shelf.family.id, messages, sample)
            if answer is None and name not in seen:
                seen.add(name)
                yield name, messages, sample


def _write(
    judging: Judging, task: Task, family: Family, dataset: str, wanted: Iterator[tuple[str, str, int]], root: Path
) -> Iterator[State]:
    service = service_of(task)
    price, longest = _price(judging, service), most_output(family.parameters)
    most = [0]

    def requests() -> Iterator[tuple[bytes, float | None]]:
        for name, messages, sample in wanted:
            chat = json.loads(messages)
            most[0] = max(most[0], sample + 1)
            worst = 0.0 if price is FREE else None
            if price and price is not FREE and price.batch is not None and longest is not None:
                worst = price.of(most_input(chat), longest, batch=True)
            yield request_line(service, name, chat, family.parameters), worst

    folder, stem = root / task.judge.name, f"{dataset}_{task.variant.name}"
    numbers = [path.stem.rpartition("_")[2] for path in folder.glob(f"{stem}_*.json")]
    first = 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)
    for path, count, size, worst in batch_files.write_requests(folder, stem, requests(), first):
        state = State(
            path.with_suffix(".json"), WRITTEN, dataset, task.variant.name, family, most[0], count, size,
            sha256(path), worst, int(time.time()),
        )  # fmt: skip
        state.save()
        yield state


def submit(judging: Judging, state: State, *, root: Path = BATCHES, connect: Connect = Batches) -> tuple[State, bool]:
    """Upload a file of requests and have a batch made of it, once.

    That it is about to be is on the disk before. Of a file that a process left like that, the next one asks the
    service whether it knows it.

    Returns
    -------
    state, found
        What is on the disk now, and whether the batch was there already.

    Raises
    ------
    ComperdialError
        When that would pass the budget, or there is none for a service that costs money; when the file was altered, or
        the ledger answers some of it by now, or it is not what is asked today; when the service does not take it.
    """
    service = service_for(judging, state)
    ledger = Ledger(judging.ledger)
    # Nobody asks for these answers meanwhile.
    with ledger.writing(state.dataset, state.family), batch_files.holding(root), ExitStack() as stack:
        state = _unchanged(state)
        if state.status not in (WRITTEN, SUBMITTING):
            return state, True
        state.check()
        # Before anything is paid for: as long as nobody knows, whoever starts to pay counts this batch as under way.
        if state.status == SUBMITTING and (state := asyncio.run(_found(service, state, connect))).status == SUBMITTED:
            return state, True
        others = open_cost([other for other in read_states(root) if other.path != state.path])
        budget = None
        if service.paid and judging.budget:
            budget = stack.enter_context(ledger.account(judging.budget, lambda: others + ledger.spent()))
        return asyncio.run(_submit(judging, service, state, ledger, (budget, others), connect)), False


def _unchanged(state: State) -> State:
    """Return how far a file is by now; refuse one of another family under its name, which others may ask."""
    now = batch_files.read_state(state.path)
    if (now.dataset, now.family.id) != (state.dataset, state.family.id):
        raise ConfigError(
            "it was written anew meanwhile, for other requests",
            where=str(state.path),
            expected="the file that was chosen",
            hint="Submit again",
        )
    return now


async def _found(service: Service, state: State, connect: Connect) -> State:
    """Ask the service whether it has the batch that a process was about to make: it is submitted then, else written."""
    async with connect(service) as api:
        if (wait := min(state.time + SETTLING - time.time(), SETTLING)) > 0:
            log.warning("%s: %d s until the service is asked whether it has this batch", state.name, wait)
            await asyncio.sleep(wait)
        if batch := await api.find(state.sha256, state.path.stem, state.time):
            return _submitted(state, batch)
        return _saved(state, status=WRITTEN, input=None)


async def _submit(
    judging: Judging, service: Service, state: State, ledger: Ledger, money: _Money, connect: Connect
) -> State:
    async with connect(service) as api:
        _wanted_still(judging, state)
        _current(state, ledger)
        _afford(judging, service, state, ledger, money)
        uploaded = await api.upload(state.file())
        state = _saved(state, status=SUBMITTING, input=uploaded, time=int(time.time()))
        try:
            return _submitted(state, await api.create(uploaded, state.sha256, state.path.stem))
        except (JudgeError, Refused) as refusal:
            _saved(state, status=WRITTEN)
            if isinstance(refusal, JudgeError):
                raise
            raise JudgeError(str(refusal), where=state.name) from None
        except Transient as fault:
            raise JudgeError(
                f"nobody knows whether the service made the batch: {fault}",
                where=state.name,
                hint="Submit it again: the service is asked whether it has it, and only then for another",
            ) from None


def _saved(state: State, **changes: Any) -> State:  # noqa: ANN401 - fields of a state
    made = dataclasses.replace(state, **changes)
    made.save()
    return made


def _submitted(state: State, batch: Batch) -> State:
    return _saved(state, status=SUBMITTED, batch=batch.id, time=batch.created or int(time.time()))


def _wanted_still(judging: Judging, state: State) -> None:
    """Refuse a file of another family than its task has today: nobody would use the answers."""
    task = task_of(judging, state)
    if task is None or family_of(judging, task).id != state.family.id:
        raise ConfigError(
            "it was written for other parameters, another prompt or another model than are asked today",
            where=str(state.file()),
            expected=f"what params.yaml says of {state.family.judge} and {state.variant}",
            hint="Write it again: `comperdial judge batch write`",
        )


def _afford(judging: Judging, service: Service, state: State, ledger: Ledger, money: _Money) -> None:
    """Refuse what might pass the budget; else it counts as spent, until nobody pays and the states are read again."""
    price = _price(judging, service)
    if not service.paid or price is FREE:
        return
    budget, waiting = money
    if budget is None:
        raise ConfigError(
            f"{state.family.judge} costs money, and the budget is 0",
            where="params.yaml, judging.budget",
            expected="US dollars that all answers in the ledger may cost together",
            hint="`comperdial judge batch write` tells what a batch can cost",
        )
    budget.check(price, state.family.parameters, state.family.model)
    if price is not None and price.batch is None:
        raise ConfigError(
            f"no batch price is known for {state.family.model}", where=str(judging.prices), expected="`batch`, a share"
        )
    if state.worst is None:
        raise ConfigError(
            "what it can cost was not known when it was written",
            where=str(state.path),
            expected="a file whose price is known",
            hint="Write it again",
        )
    if not budget.reserve(state.worst):
        raise ConfigError(
            f"the ledger's answers have cost ${ledger.spent():,.4f}, batches that are under way can cost "
            f"${waiting:,.4f}, and this one ${state.worst:,.4f}: more than the budget of ${judging.budget:,.2f}",
            where=str(state.file()),
            expected="a higher budget (params.yaml, judging.budget, or --budget), or fewer requests",
            hint="Calls that are under way may cost some of it, too" if budget.pending else None,
        )
    budget.settle(state.worst, state.worst)


def _current(state: State, ledger: Ledger) -> None:
    """Refuse a file some of whose requests were answered since it was written: they would be paid again."""
    shelf = ledger.shelf(state.dataset, state.family)
    answered = sum(name in shelf for name in state.keys())  # noqa: SIM118 - no mapping
    if answered:
        raise ConfigError(
            f"the ledger answers {answered:,} of its {state.requests:,} requests by now",
            where=str(state.file()),
            expected="requests that it lacks",
            hint="Write it again: `comperdial judge batch write`",
        )


def _price(judging: Judging, service: Service) -> Price | None:
    return Prices.read(judging.prices).find(service.connection.model) if service.paid else FREE
