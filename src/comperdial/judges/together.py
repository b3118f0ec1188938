"""Several ways of asking one judge about the same items at the same time, for services that are quicker so."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tqdm import tqdm

from comperdial.judges.ask import signals
from comperdial.judges.base import Answer, Completion, InterruptedRunError, Refused, key
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Ledger, Writer
from comperdial.judges.services.base import Service
from comperdial.judges.tasks import Judging, Task, family_of, known_signature, service_of, unpaid

# Items of which all is asked at the same time: neighbours often have a context in common.
_ITEMS = 16


def groups(judging: Judging, tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield the tasks, where there are several at a level, of each judge who can be asked here and is quicker so."""
    found: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        if task.variant.turns is not None or known_signature(judging, task) is None or unpaid(judging, task):
            continue
        service = service_of(task)
        if service.shares_prompts and service.unavailable() is None:
            found.setdefault((task.judge.name, task.variant.level), []).append(task)
    yield from (group for group in found.values() if len(group) > 1)


def ask_together(judging: Judging, tasks: Sequence[Task], folder: str | Path, *, dataset: str) -> int:
    """Ask, item by item, what the ledger lacks of several tasks of a judge; return how many answers are new.

    Nothing is made of the answers: whoever asks one of the tasks finds them in the ledger. Requests that the service refuses
    are left to them. After Ctrl-C what is under way is still kept.
    """
    service = service_of(tasks[0])
    with ExitStack() as stack:
        ledger = Ledger(judging.ledger)
        writers = [stack.enter_context(ledger.open(dataset, family_of(judging, task))) for task in tasks]
        every = itertools.zip_longest(*(items_of(judging, task, folder) for task in tasks))
        requests = (
            [(w, item.messages) for w, item in zip(writers, items, strict=True) if item and item.messages]
            for items in every
        )
        total = tasks[0].judge.items
        with tqdm(requests, f"{dataset}, {tasks[0].judge.name}", total, unit="item", disable=None) as progress:
            return asyncio.run(_ask(service, iter(progress)))


async def _ask(service: Service, items: Iterator[list[tuple[Writer, str]]]) -> int:
    new, stopped = 0, asyncio.Event()
    own = service.identity()
    async with service:
        with signals(stopped.set):
            while not stopped.is_set() and (some := list(itertools.islice(items, _ITEMS))):
                # What several systems said alike is asked once.
                missing = {
                    (writer.family.id, messages): writer
                    for item in some
                    for writer, messages in item
                    if key(writer.family.id, messages, 0) not in writer
                }
                calls = (_answer(service, writer, messages, own) for (_, messages), writer in missing.items())
                for writer, answer in zip(missing.values(), await asyncio.gather(*calls), strict=True):
                    new += writer.add([answer]) if answer else 0
    if stopped.is_set():
        raise InterruptedRunError("it was interrupted", hint=f"{new:,} new answers are kept: run again to go on")
    return new


async def _answer(service: Service, writer: Writer, messages: str, own: Collection[str]) -> Answer | None:
    parameters = {name: value for name, value in writer.family.parameters.items() if name not in own}
    start = time.perf_counter()
    try:
        completion: Completion = await service.complete(json.loads(messages), parameters)
    except Refused:
        return None
    return Answer(messages, 0, completion, 0.0, round((time.perf_counter() - start) * 1000), int(time.time()))
