"""The workers of a run: each takes a slot, asks until it has a rating, and sees its answers on the disk."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import ComperdialError
from comperdial.judges._answers import FOR_GOOD, REFUSED, JudgeError, Refused, Transient
from comperdial.judges._costs import cost_of, worst_cost
from comperdial.judges._job import Job
from comperdial.judges._refusals import Refusals, rating
from comperdial.judges._report import INTERRUPTED, Report
from comperdial.judges._signals import signals
from comperdial.judges._writing import Writer
from comperdial.judges.base import Answer, Message, key
from comperdial.judges.prices import estimate_input, most_output

if TYPE_CHECKING:
    from comperdial.judges.running import Slot

log = logging.getLogger(__name__)

# So many failures for one reason, and not one answer: it will not get better.
_HOPELESS = 10
_NOT_REACHED = "not reached"
_TOO_MANY = "429"
# So many judgements from the ledger before signals and the progress bar get their turn.
_TURN = 256
# Seconds between two looks at what other processes leave of a budget.
_LOOK = 1.0


class _Stopped(Exception):
    """The run ends here; why, its report says."""


class Workers:
    """All workers of a run, and what they share."""

    def __init__(self, job: Job, report: Report) -> None:
        self._job = job
        self._report = report
        self._family = job.shelf.family.id
        self._longest = most_output(job.parameters)
        self._writer = Writer(job.shelf, report.keep)
        self._tasks: list[asyncio.Task[None]] = []
        # Those with a call under way or an answer on its way to the disk.
        self._flying: set[asyncio.Task[None] | None] = set()
        self._asking: dict[str, asyncio.Event] = {}
        self._failed: set[str] = set()
        self._refusals = Refusals()
        self._settled = asyncio.Event()
        self._owed: list[tuple[float, float]] = []
        self._waited = False
        self._row = ("", 0)

    async def run(self, slots: Iterator[Slot], concurrency: int) -> None:
        """Work until nothing is left or there is a reason to stop; what came by then is kept."""
        start = time.monotonic()
        writing = asyncio.create_task(self._writer.serve())
        self._tasks = [asyncio.create_task(self._work(slots)) for _ in range(concurrency)]
        try:
            with signals(self._interrupt):
                _, rest = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
                if rest:
                    self._stop("an error")
                    await asyncio.wait(rest)
        finally:
            for task in self._tasks:
                task.cancel()
            self._writer.close()
            await writing
            while self._owed:
                self._settle(*self._owed.pop())
            judged = await asyncio.to_thread(self._refusals.settle, self._job.shelf, self._report)
            if self._job.bar is not None:
                self._job.bar.update(judged)
            self._report.seconds += time.monotonic() - start
        for task in self._tasks:
            if not task.cancelled():
                task.result()

    def _interrupt(self) -> None:
        self._report.stopped = INTERRUPTED
        for task in self._tasks:
            task.cancel()

    def _stop(self, reason: str) -> None:
        """Take and send nothing more; what is on its way may come."""
        self._report.stopped = self._report.stopped or reason
        for task in self._tasks:
            if task not in self._flying and task is not asyncio.current_task():
                task.cancel()

    async def _work(self, slots: Iterator[Slot]) -> None:
        try:
            for slot in slots:
                await self._judge(slot)
                if self._report.done % _TURN == 0:
                    await asyncio.sleep(0)
                self._check()
        except _Stopped:
            return

    def _check(self) -> None:
        if self._report.stopped is not None:
            raise _Stopped

    async def _judge(self, slot: Slot) -> None:
        """Bring one slot to its end: a rating, no rating after all retries, or a call that failed."""
        job, report, asked = self._job, self._report, False
        for number in range(job.retries + 1):
            sample = slot.index + number * job.samples
            name = key(self._family, slot.messages, sample)
            if name in self._asking:
                await self._asking[name].wait()
            answer = job.shelf.get(name)
            fresh = answer is None
            if answer is None:
                answer = await self._ask_once(name, slot.messages, sample)
            if answer is None:
                self._refusals.end(name)
                return
            asked = asked or fresh
            parsed = rating(answer.completion, job.parse)
            if parsed.failure is None or answer.completion.finish == REFUSED:
                break
            report.parse_failures += fresh
        report.unparsed += parsed.failure is not None
        report.done += 1
        report.from_ledger += not asked
        if job.bar is not None:
            failed = f", {len(report.failed):,} failed" if report.failed else ""
            job.bar.set_postfix_str(report.price + failed, refresh=False)
            job.bar.update()

    async def _ask_once(self, name: str, messages: str, sample: int) -> Answer | None:
        """Have a request answered and kept while others that want it wait; None if it fails, or failed before."""
        if name in self._failed:
            return None
        self._asking[name] = asyncio.Event()
        try:
            return await self._ask(name, messages, sample)
        finally:
            self._asking.pop(name).set()

    async def _ask(self, name: str, messages: str, sample: int) -> Answer | None:
        """Try a request until there is an answer, or no hope of one."""
        limits = self._job.throttle.limits
        chat = json.loads(messages)
        for attempt in range(1, limits.attempts + 1):
            try:
                return await self._try(chat, messages, sample, again=attempt > 1)
            except JudgeError as error:
                self._stop(str(error))
            except Refused as refusal:
                if refusal.kind in FOR_GOOD:
                    self._refuse(name, messages, sample, refusal)
                else:
                    self._give_up(name, refusal.kind, str(refusal))
                return None
            except Transient as fault:
                self._note(fault)
                if attempt == limits.attempts:
                    self._give_up(name, fault.kind, str(fault))
                    return None
                self._check()
                await self._job.throttle.rest(attempt, fault.after)
            self._check()
        return None

    def _note(self, fault: Transient) -> None:
        """Count a fault, and draw what conclusions are everybody's."""
        self._report.faults[fault.kind] += 1
        if self._row[0] != fault.kind:
            self._row = (fault.kind, 0)
        throttle = self._job.throttle
        if fault.after is not None and fault.after > throttle.limits.patience:
            self._stop(f"the service asks to wait {fault.after:,.0f} s ({fault})")
        if fault.kind == _TOO_MANY or fault.after is not None:
            throttle.hold(fault.after)
        if fault.kind == _NOT_REACHED:
            self._despair(fault.kind, str(fault))

    def _give_up(self, name: str, kind: str, reason: str) -> None:
        self._report.failed.append((name, reason))
        self._failed.add(name)
        if kind != _NOT_REACHED:
            self._despair(kind, reason)

    def _refuse(self, name: str, messages: str, sample: int, refusal: Refused) -> None:
        self._refusals.add(name, messages, sample, str(refusal))
        self._failed.add(name)
        # Where the service answered in an earlier run, these may be the last prompts of all.
        if not self._job.shelf.answered:
            self._despair(refusal.kind, str(refusal))

    def _despair(self, kind: str, reason: str) -> None:
        """Stop when the same happens again and again, and nothing else ever did."""
        self._row = (kind, self._row[1] + 1 if self._row[0] == kind else 1)
        if self._row[1] >= _HOPELESS and not self._report.answered:
            self._stop(f"nothing is answered; {_HOPELESS} times in a row: {reason}")

    def _parameters(self, messages: str, sample: int) -> Mapping[str, Any]:
        """Return what is sent with a request: to a service of ours that draws, a seed made of the request."""
        if not self._job.client.service.needs_seed:
            return self._job.parameters
        return {**self._job.parameters, "seed": int(key(self._family, messages, sample)[:8], 16)}

    async def _try(self, chat: list[Message], messages: str, sample: int, *, again: bool) -> Answer:
        """Send a request once; keep the answer."""
        job, report = self._job, self._report
        tokens = estimate_input(chat) + (self._longest or 0) if job.throttle.limits.tokens else 0
        await job.throttle.ready(tokens)
        worst = await self._reserve(chat)
        task = asyncio.current_task()
        self._flying.add(task)
        try:
            report.asked += 1
            report.repeated += again
            start = time.perf_counter()
            charge, lost = worst, "interrupted"
            try:
                completion = await job.client.complete(chat, self._parameters(messages, sample))
            except Transient as fault:
                charge, lost = worst if fault.charged else 0.0, fault.kind
                raise
            except (Refused, ComperdialError):
                charge = 0.0
                raise
            else:
                cost = cost_of(job.price, self._longest, chat, completion)
                charge, lost = cost or 0.0, ""
            finally:
                if lost:
                    self._lose(worst, charge, lost)
            self._row = ("", 0)
            latency = round((time.perf_counter() - start) * 1000)
            answer = Answer(messages, sample, completion, cost, latency, int(time.time()))
            try:
                await self._writer.put(answer)
            except asyncio.CancelledError:
                # It gets to the disk all the same.
                self._owed.append((worst, charge))
                raise
            self._settle(worst, charge)
            # Not before the answer is kept: what others share may fail.
            job.throttle.passed()
            return answer
        finally:
            self._flying.discard(task)

    def _settle(self, worst: float, charge: float) -> None:
        """Count what a call cost. The ledger has it by then: a process that ends in between has paid for no less."""
        self._job.budget.settle(worst, charge)
        self._settled.set()

    def _lose(self, worst: float, charge: float, kind: str) -> None:
        """Keep what a call without an answer may have cost. Not in a thread: one that is cancelled could not wait."""
        if charge:
            self._job.shelf.charge(charge, kind)
            self._report.charged += charge
        self._settle(worst, charge)

    async def _reserve(self, chat: list[Message]) -> float:
        """Set a call's worst case aside, when there is room; stop if there never will be."""
        budget = self._job.budget
        worst = worst_cost(self._job.price, self._longest, chat)
        while not budget.reserve(worst):
            if not budget.pending:
                spent = f"${budget.spent:,.4f} of the budget of ${budget.limit:,.2f} is spent"
                self._stop(f"{spent}, and one more call can cost ${worst:,.4f}")
                raise _Stopped
            if not self._flying and not self._waited:
                self._waited = True
                log.warning("other processes have set the rest of the budget aside; waiting for what they leave")
            self._settled.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), _LOOK)
        return worst
