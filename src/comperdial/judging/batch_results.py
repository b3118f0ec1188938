"""What came of a batch: answers into the ledger, everything else into a report."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from comperdial.judges import batch_files
from comperdial.judges._answers import FOR_GOOD
from comperdial.judges._refusals import refusal
from comperdial.judges.base import Answer, Completion, Parsed
from comperdial.judges.batch_files import BATCHES, COLLECTED, SUBMITTED, State
from comperdial.judges.batch_lines import BrokenLineError, Result, read_result
from comperdial.judges.batches import Batch, Batches
from comperdial.judges.ledger import Ledger, Shelf
from comperdial.judges.prices import FREE, Price, Prices, most_input, most_output
from comperdial.judges.services.base import Service
from comperdial.judging.base import Judging
from comperdial.judging.batch import Connect
from comperdial.judging.batch_tasks import service_for, task_of
from comperdial.judging.reading import reader

# Answers that reach the disk together.
_GROUP = 1000


@dataclass
class Outcome:
    """What came of a file of requests.

    Attributes
    ----------
    name, requests
        The file's name, and how many requests it holds.
    status
        The batch's, as the service names it.
    ended
        Whether nothing more will come.
    done, failed_so_far
        Requests, as the service counts them while it works; None where it does not.
    answers, known
        Answers that came; of these, those to what the ledger had answered already, which it keeps.
    unparsed
        Answers that hold no rating: fresh samples are drawn for them when the next file is written.
    refused
        Requests that the service refused for good, kept as such: nobody asks them again.
    failures
        Requests without an answer, by the service's word for it: ``batch_expired``, ``400``, ….
    reasons
        To each such word what the service said first.
    missing
        Requests of which it says nothing.
    broken
        Lines of its files that nobody can read, and why.
    cost, unpriced
        US dollars of the answers that are new, and how many have no known price.
    models
        The model versions that it reports.
    problem
        What is wrong with the batch as a whole.
    """

    name: str
    requests: int
    status: str
    ended: bool = False
    done: int | None = None
    failed_so_far: int | None = None
    answers: int = 0
    known: int = 0
    unparsed: int = 0
    refused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    broken: list[str] = field(default_factory=list)
    cost: float = 0.0
    unpriced: int = 0
    models: Counter[str] = field(default_factory=Counter)
    problem: str | None = None

    def record(self) -> dict[str, Any]:
        """Return what the state keeps."""
        names = (
            "status",
            "answers",
            "known",
            "unparsed",
            "refused",
            "reasons",
            "missing",
            "broken",
            "cost",
            "unpriced",
            "problem",
        )
        counts = {"failures": dict(self.failures), "models": dict(self.models)}
        return {name: getattr(self, name) for name in names} | counts

    def __str__(self) -> str:
        if not self.ended:
            so_far = f", {self.done:,} of {self.requests:,} requests done" if self.done is not None else ""
            failed = f", {self.failed_so_far:,} failed" if self.failed_so_far else ""
            return f"{self.name}: {self.status}{so_far}{failed}"
        unpriced = f" and {self.unpriced:,} of unknown price" if self.unpriced else ""
        lines = [
            f"{self.name}: {self.status}; {self.answers:,} of {self.requests:,} requests answered, "
            f"${self.cost:,.4f}{unpriced}"
        ]
        if self.problem:
            lines.append(f"the service says: {self.problem}")
        if self.known:
            lines.append(f"{self.known:,} of them the ledger had answered already; it keeps what it has")
        if self.unparsed:
            lines.append(
                f"{self.unparsed:,} answers without a rating; the next file asks again, as far as `retries` allows"
            )
        if self.refused:
            said = "; ".join(text for kind, text in self.reasons.items() if kind in FOR_GOOD and text)
            lines.append(f"{self.refused:,} refused for good" + (f": {said}" if said else ""))
        for kind, count in self.failures.most_common():
            lines.append(f"{count:,} x {kind}" + (f": {self.reasons[kind]}" if self.reasons.get(kind) else ""))
        if self.missing:
            lines.append(f"{self.missing:,} of which it says nothing")
        if self.failures or self.missing:
            lines.append("what has no answer can be written again")
        return "\n  ".join(lines)


def collect(
    judging: Judging, state: State, *, root: Path = BATCHES, skip_broken: bool = False, connect: Connect = Batches
) -> Outcome:
    """Ask once how far a batch is; if it has ended, put its answers into the ledger.

    Nothing happens to a file that was not submitted, or is collected. A batch with lines that nobody can read is not
    done with: what the others say is in the ledger, and it can be collected again. Requests that are refused for good
    reach the ledger as such, if the service ever answered one of their family.

    Parameters
    ----------
    skip_broken
        Take such lines for requests without an answer.

    Raises
    ------
    ComperdialError
        When the service cannot be asked, the file of requests is not what it was, or the disk does not take it.
    """
    service = service_for(judging, state)
    with batch_files.holding(root):
        state = batch_files.read_state(state.path)
        if state.status != SUBMITTED:
            return Outcome(state.name, state.requests, state.status)
        batch, files, clean = asyncio.run(_fetch(service, state, connect))
    outcome = Outcome(
        state.name, state.requests, batch.status, batch.ended, batch.done, batch.failed, problem=batch.problem
    )
    if not batch.ended:
        return outcome
    # What the batch can cost becomes what it did cost: who looks at the money in between counts it twice (`committed`).
    with Ledger(judging.ledger).writing(state.dataset, state.family) as shelf, batch_files.holding(root):
        now = batch_files.read_state(state.path)
        if now != state:
            return Outcome(now.name, now.requests, now.status)
        _keep(judging, service, state, shelf, files, clean, outcome)
        if skip_broken or not outcome.broken:
            replace(state, status=COLLECTED, time=int(time.time()), outcome=outcome.record()).save()
    return outcome


async def _fetch(service: Service, state: State, connect: Connect) -> tuple[Batch, list[Path], Callable[[str], str]]:
    """Return what the service says of a batch, its files on our disk, and what cleans their texts."""
    async with connect(service) as api:
        batch = await api.retrieve(str(state.batch))
        files = []
        for suffix, file in ((".output.jsonl", batch.output), (".errors.jsonl", batch.errors)):
            if batch.ended and file:
                files.append(state.file(suffix))
                batch_files.save_file(files[-1], await api.download(file))
        return batch, files, api.clean


def _keep(
    judging: Judging,
    service: Service,
    state: State,
    shelf: Shelf,
    files: list[Path],
    clean: Callable[[str], str],
    outcome: Outcome,
) -> None:
    slots = state.slots()
    answered: set[str] = set()
    failed: dict[str, str] = {}
    refused: dict[str, Answer] = {}
    day = datetime.datetime.fromtimestamp(state.time, datetime.UTC).date()
    price = Prices.read(judging.prices).find(state.family.model, day) if service.paid else FREE
    task = task_of(judging, state)
    read = reader(task) if task else None
    results = _results(files, slots, outcome.broken)
    while group := list(itertools.islice(results, _GROUP)):
        new = []
        for result in group:
            if result.completion is None:
                failed[result.key], said = result.kind, clean(result.problem)
                outcome.reasons.setdefault(result.kind, said)
                if result.refused:
                    reason = f"status {result.kind}: {said}" if said else f"status {result.kind}"
                    refused[result.key] = refusal(*slots[result.key], reason, result.created)
            elif result.key not in answered:
                answered.add(result.key)
                known = result.key in shelf
                answer = _answer(result, result.completion, slots[result.key], price, state)
                _count(outcome, answer, known, read(result.completion) if read else None)
                if not known:
                    new.append(answer)
        shelf.add(new)
    # Where nothing at all was ever answered, something else than the requests may be wrong.
    kept = refused.keys() - answered if len(shelf) else set[str]()
    shelf.add([refused[name] for name in refused if name in kept])
    outcome.refused = len(kept)
    outcome.failures.update(kind for name, kind in failed.items() if name not in answered | kept)
    outcome.missing = len(slots.keys() - answered - failed.keys())


def _results(files: list[Path], slots: Mapping[str, Any], broken: list[str]) -> Iterator[Result]:
    """Yield what files say of requests; note the lines that cannot be read."""
    for path in files:
        # Not text: a line may hold any character that Python takes for the end of one.
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                result = read_result(line)
                if result.key not in slots:
                    raise BrokenLineError(f"{result.key!r:.60} is none of the file's requests")
                yield result
            except BrokenLineError as error:
                broken.append(f"{path.name}, line {number}: {error}")


def _answer(result: Result, completion: Completion, slot: tuple[str, int], price: Price | None, state: State) -> Answer:
    """Lay out an answer. Nobody knows how long it took."""
    return Answer(*slot, completion, _cost(price, slot[0], completion, state), None, result.created)


def _cost(price: Price | None, messages: str, completion: Completion, state: State) -> float | None:
    """Return what an answer cost; the most it can have cost, if the service does not count."""
    if price is None or price is FREE:
        return None if price is None else 0.0
    read, written = completion.input_tokens, completion.output_tokens
    if read is None or written is None:
        read, written = most_input(json.loads(messages)), most_output(state.family.parameters)
    # Without a price for batches, the full one is the most that it can be.
    return None if written is None else price.of(read, written, batch=price.batch is not None)


def _count(outcome: Outcome, answer: Answer, known: bool, parsed: Parsed | None) -> None:
    outcome.answers += 1
    outcome.known += known
    outcome.unparsed += parsed is not None and parsed.failure is not None
    if not known:
        outcome.cost += answer.cost or 0.0
        outcome.unpriced += answer.cost is None
    if answer.completion.model:
        outcome.models[answer.completion.model] += 1
