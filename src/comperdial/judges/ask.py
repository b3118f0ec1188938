"""Ask a judge for everything that the ledger does not hold yet: many calls at a time, none lost, none paid twice.

An answer counts once it is on the disk, and a worker asks for the next only then, so that a process that is killed
repeats no more calls than it has workers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import tenacity
from tqdm import tqdm

from comperdial.core.errors import ComperdialError, ConfigError, FileError, SchemaError, shown
from comperdial.core.terminal import money
from comperdial.judges.base import (
    FOR_GOOD,
    REFUSED,
    Answer,
    Completion,
    InterruptedRunError,
    JudgeError,
    Message,
    Parsed,
    Refused,
    Transient,
    key,
    refusal,
)
from comperdial.judges.ledger import Answers, Broke, Claimed, Operation, Rates, Writer
from comperdial.judges.prices import FREE, Price, estimate_input, least_input, most_input, most_output
from comperdial.judges.services.base import Service

log = logging.getLogger(__name__)

INTERRUPTED = "it was interrupted"
INSIDE = "the service cancelled a call of its own"
DRIFT = (
    "%s: the service now says that it runs %s, but the ledger holds answers of %s. Judges drift: scores of both are not "
    "comparable"
)
"""A warning: the family's folder, the new version, the old ones."""

SHORTENED = (
    "%s: the server counts %s tokens of a prompt of about %s; it may have cut the prompt to its context, and judged the rest. "
    "Give it a longer context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), and ask again into another ledger (--ledger)"
)
"""A warning: the model, the tokens that the service counts, and our estimate."""

# The share of the fewest tokens that a prompt can have below which it was cut.
_READ = 0.75
# Of a prompt: a token has as many letters in texts of people, or fewer.
_LETTERS = 3
# So many failures for one reason in a row, and not one answer between: it will not get better.
_HOPELESS = 10
# Of more calls than this, no larger share may be refused: something else than the requests is wrong.
_ENOUGH, _SHARE = 100, 0.2
# Items that are handed on at once.
_PART = 4096
# So many judgements from the ledger before signals and the progress bar get their turn.
_TURN = 256
_SHOWN = 5


@dataclass(frozen=True)
class Limits:
    """What a service allows, and how patient a run is.

    Attributes
    ----------
    requests, tokens
        So many a minute, of all processes of this machine together; None: no limit. Tokens are those of a request,
        estimated, and of its longest answer: what OpenAI counts against its limit.
    attempts
        How often one call is tried before it is given up.
    backoff, most
        Seconds: a pause after the n-th fault is drawn evenly from 0 to backoff x 2^(n-1), ``most`` at most.
    patience
        Seconds: a service that asks to wait longer than this ends the run.
    """

    requests: float | None = None
    tokens: float | None = None
    attempts: int = 8
    backoff: float = 0.5
    most: float = 60.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"a judge's limit of {name} a minute is {value!r}", expected="a number above 0")
        if self.attempts < 1:
            raise ConfigError(f"a judge's attempts are {self.attempts!r}", expected="1 or more")

    def pause(self, faults: int) -> float:
        """Draw the seconds to wait after so many faults: exponential, with full jitter."""
        return random.uniform(0, min(self.most, self.backoff * 2.0 ** min(faults - 1, 30)))  # noqa: S311


class Wanted(Protocol):
    """What is to be judged: a request's messages, encoded; None where nothing is to be asked."""

    @property
    def messages(self) -> str | None:
        """Return the request."""


W = TypeVar("W", bound=Wanted)


class Judgement(NamedTuple):
    """What the attempts at one judgement came to.

    ``tries`` are its answers, each with what was read in it: up to the first that has a rating or is a refusal. What the
    judgement cost, all of them cost together. ``ended`` says that there is nothing more to ask.
    """

    tries: list[tuple[Answer, Parsed]]
    ended: bool


def look(
    answers: Answers, messages: str, index: int, stride: int, retries: int, read: Callable[[Completion], Parsed]
) -> Judgement:
    """Return the ``index``-th judgement of a request, as far as the ledger has it.

    Its answers are the samples ``index``, ``index + stride``, ``index + 2 * stride``, …: fresh ones are drawn, up to
    ``retries``, for an answer without a rating.
    """
    tries: list[tuple[Answer, Parsed]] = []
    for number in range(retries + 1):
        answer = answers.get(key(answers.family.id, messages, index + number * stride))
        if answer is None:
            return Judgement(tries, False)
        tries.append((answer, _read(answer, read)))
        if _ends(tries[-1]):
            break
    return Judgement(tries, True)


def _read(answer: Answer, read: Callable[[Completion], Parsed]) -> Parsed:
    if answer.completion.finish == REFUSED:
        return Parsed({}, failure=f"{REFUSED}: {answer.completion.text}")
    return read(answer.completion)


def _ends(tried: tuple[Answer, Parsed]) -> bool:
    return tried[1].failure is None or tried[0].completion.finish == REFUSED


@dataclass
class Report:
    """What a run did.

    Attributes
    ----------
    total
        How many judgements are wanted; None if that is not known.
    done
        Those that are there now, with or without a rating; ``from_ledger`` of them needed no call.
    asked, repeated
        Calls sent, every try counted, and calls sent again after a fault.
    answered
        Answers kept.
    faults
        Faults by kind: ``429``, ``timed out``, ….
    unread
        Answers kept that hold no rating; each had a fresh sample drawn, as far as there were retries.
    why
        The reasons of ``unread``, with their number.
    unparsed
        Judgements without a rating after all retries, in the ledger or now.
    shortened
        Answers to a prompt of which the service seems to have read a part only.
    refused
        Requests that the service refused for good, kept as such.
    failed
        Calls given up: key and reason.
    input_tokens, output_tokens, cost
        Of the answers kept, as the service counted; cost in US dollars.
    charged
        US dollars that calls without an answer may have cost.
    unpriced
        Answers kept whose cost is not known.
    seconds
        From the first call to the last answer kept.
    stopped
        Why the run ended early; None if it did not.
    """

    total: int | None = None
    done: int = 0
    from_ledger: int = 0
    asked: int = 0
    repeated: int = 0
    answered: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    why: Counter[str] = field(default_factory=Counter)
    unparsed: int = 0
    shortened: int = 0
    refused: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    charged: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    stopped: str | None = None

    @property
    def price(self) -> str:
        """Return the price so far, as a person reads it."""
        cost = _price(self.cost)
        return f"{cost} and {self.unpriced} answers of unknown price" if self.unpriced else cost

    @property
    def paid(self) -> float:
        """Return what the run has cost, calls without an answer included, in US dollars."""
        return self.cost + self.charged

    @property
    def missing(self) -> int | None:
        """Return how many judgements are missing; None if it is not known."""
        if self.total is not None:
            return max(0, self.total - self.done)
        return len(self.failed) if self.stopped is None else None

    def check(self, judge: str | None = None) -> None:
        """Raise an error if not everything is judged.

        Raises
        ------
        JudgeError
            Says how many judgements are missing, why, and what to do.
        """
        if self.stopped is None and not self.failed:
            return
        missing = "some" if self.missing is None else f"{self.missing:,}"
        raise (InterruptedRunError if self.stopped == INTERRUPTED else JudgeError)(
            f"{missing} judgements are missing: {self._why()}", where=judge, hint=self._advice()
        )

    def _advice(self) -> str:
        if self.stopped is not None and "of the budget" in self.stopped:
            return f"What came is kept ({self.answered:,} answers, {self.price}): raise the budget (--budget) to go on"
        if self.answered or self.charged:
            return f"What came is kept ({self.answered:,} answers, {self.price}): run again to go on"
        if self.faults["not reached"]:
            return "Is the server running, and are host and port of the judge's base_url right?"
        return "Nothing was answered: run again when this is mended"

    def _why(self) -> str:
        if self.stopped is not None:
            return self.stopped
        reasons = Counter(reason for _, reason in self.failed).most_common()
        shown = "; ".join(f"{count:,} x {reason}" for reason, count in reasons[:_SHOWN])
        more = f"; and {len(reasons) - _SHOWN:,} other reasons" if len(reasons) > _SHOWN else ""
        keys = ", ".join(key for key, _ in self.failed[:_SHOWN]) + (", …" if len(self.failed) > _SHOWN else "")
        return f"{len(self.failed):,} calls failed ({shown}{more}); keys {keys}"

    def __str__(self) -> str:
        faults = ", ".join(f"{count:,} x {kind}" for kind, count in sorted(self.faults.items()))
        lines = [
            f"{self.done:,} judged, {self.from_ledger:,} of them from the ledger; {self.answered:,} new answers for "
            f"{self.asked:,} calls in {self.seconds:.1f} s; {self.price}"
        ]
        if faults:
            lines.append(f"{self.repeated:,} calls sent again after faults: {faults}")
        if self.unread or self.unparsed:
            reasons = "; ".join(f"{count:,} x {shown(why)}" for why, count in self.why.most_common(_SHOWN))
            reasons = f" ({reasons})" if reasons else ""
            lines.append(
                f"{self.unread:,} new answers without a rating{reasons}; {self.unparsed:,} judgements have none"
            )
        if self.shortened:
            lines.append(f"{self.shortened:,} answers to prompts that the server may have cut")
        if self.refused:
            lines.append(f"{self.refused:,} requests refused for good; --retry-refused asks them again")
        if self.charged:
            lines.append(f"{money(self.charged, 4)} may have been charged for calls without an answer")
        if self.stopped is not None or self.failed:
            lines.append(f"not complete: {self._why()}")
        return "\n".join(lines)


def _price(dollars: float) -> str:
    return money(dollars, 2 if dollars >= 1 or not dollars else 4)


class _Stopped(Exception):
    """The run ends here; why, its report says."""


@dataclass
class _Part(Generic[W]):
    """Items that are handed on together, and how many of their judgements are being asked for."""

    items: list[tuple[W, list[Judgement]]] = field(default_factory=list)
    open: int = 0


@dataclass(frozen=True)
class _Slot:
    """A judgement to ask for, and where it goes."""

    part: _Part[Any]
    judgements: list[Judgement]
    index: int
    messages: str


class Asker:
    """Asks a service, and keeps what it answers in the ledger.

    Parameters
    ----------
    service
        Who answers; not yet entered.
    writer
        The family's answers, open for adding.
    parameters
        Of the requests, those by which the service identifies itself included.
    read
        Finds the rating in an answer.
    samples, stride, retries
        How many judgements of each request are wanted, how far apart the samples of one lie (default: as many), and how
        many fresh ones may be drawn for an answer without a rating: see :func:`look`.
    concurrency
        How many calls are under way at most; None: as many as suit the service.
    price
        Of the model; None where it is not known. A service that is not paid is free whatever this is.
    total, progress
        About how many judgements are wanted, and what to call the progress bar; None for none.
    retry_refused
        Ask again what the service refused for good in an earlier run.
    accept_refused
        Keep refusals however many there are.
    budget
        US dollars that this run may cost, whatever else the ledger holds; None: only the ledger's own budget counts.

    Raises
    ------
    ConfigError
        When there is a budget and no price, or no limit to an answer's length.
    """

    def __init__(
        self,
        service: Service,
        writer: Writer,
        *,
        parameters: Mapping[str, Any],
        read: Callable[[Completion], Parsed],
        samples: int = 1,
        stride: int | None = None,
        retries: int = 0,
        concurrency: int | None = None,
        limits: Limits | None = None,
        price: Price | None = None,
        total: int | None = None,
        progress: str | None = None,
        retry_refused: bool = False,
        accept_refused: bool = False,
        budget: float | None = None,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise ConfigError(f"a judge's concurrency is {concurrency!r}", expected="1 or more")
        self.report = Report()
        self._total = total
        self._service, self._writer, self._read = service, writer, read
        self._price = price if service.paid else FREE
        self._longest = most_output(parameters)
        self._budget, self._freed = budget, asyncio.Event()
        self._reserved: list[float] = []
        if writer.budgeted or budget is not None:
            check_budget(self._price, parameters, service.connection.model)
        self._sent = {name: value for name, value in parameters.items() if name not in service.identity()}
        self._samples, self._stride, self._retries = samples, stride or samples, retries
        self._concurrency = concurrency or service.concurrency
        self._limits = limits or Limits()
        name = service.pace_name
        self._rates = None if name is None else Rates(name, self._limits.requests, self._limits.tokens)
        self._retry_refused, self._accept_refused = retry_refused, accept_refused
        self._progress = progress
        self._bar: tqdm[Any] | None = None
        self._family = writer.family.id
        self._asking: dict[str, asyncio.Future[Answer | None]] = {}
        self._given_up: dict[str, str] = {}
        self._refusals: dict[str, Answer] = {}
        self._missing: list[_Slot] = []
        self._wanted = 0
        self._row = ("", 0)
        self._lost_in_a_row = 0
        self._unkept: list[tuple[int | None, Answer]] = []
        self._versions: set[str] = set()
        self._stopping = asyncio.Event()
        self._slowed = False
        self._warned: set[str] = set()
        self._calls: set[asyncio.Future[Completion]] = set()
        self._pending: list[tuple[Operation, asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    # --- a run -----------------------------------------------------------------------------------------------------

    def run(self, items: Iterable[W], done: Callable[[list[tuple[W, list[Judgement]]]], None] | None = None) -> Report:
        """Have every judgement of every item; what is in the ledger is not asked again.

        Parameters
        ----------
        items
            Taken one by one as there is room.
        done
            Is handed the items in order, some thousand at a time, each with its judgements.

        Returns
        -------
        Report
            Also where the run had to stop, or was stopped by Ctrl-C or SIGTERM; its ``check`` makes an error of that.

        Raises
        ------
        ComperdialError
            When an answer cannot be kept; and whatever the items raise. What came before is kept.
        """
        with tqdm(
            total=self._total, desc=self._progress, unit="judgement", disable=None if self._progress else True
        ) as self._bar:
            asyncio.run(self._run(iter(items), done or (lambda part: None)))
        return self.report

    async def _run(self, items: Iterator[W], done: Callable[[list[tuple[W, list[Judgement]]]], None]) -> None:
        start = time.monotonic()
        async with self._service:
            queue: asyncio.Queue[_Slot | None] = asyncio.Queue(2 * self._concurrency)
            workers = [asyncio.create_task(self._work(queue)) for _ in range(self._concurrency)]
            parts: deque[_Part[W]] = deque()
            try:
                with signals(self._interrupt):
                    try:
                        await self._feed(items, queue, parts, done)
                    except Exception as error:
                        self._fail(error)
                    for _ in workers:
                        await queue.put(None)
                    await asyncio.wait(workers)
                    if self._unkept:
                        self._error = await self._rescue(self._error)
                    if self._error is None:
                        await self._settle_refusals()
                        self._count_wanted(items)
            finally:
                for worker in workers:
                    worker.cancel()
                while self._committing:
                    await self._committing
                self.report.seconds += time.monotonic() - start
        if self._error is not None:
            raise self._error
        if self.report.stopped is None and not self.report.failed:
            for part in parts:
                done(part.items)

    async def _feed(
        self,
        items: Iterator[W],
        queue: asyncio.Queue[_Slot | None],
        parts: deque[_Part[W]],
        done: Callable[[list[tuple[W, list[Judgement]]]], None],
    ) -> None:
        """Look each judgement up, and have workers ask for what is missing."""
        while self.report.stopped is None and (item := next(items, None)) is not None:
            if not parts or len(parts[-1].items) >= _PART:
                parts.append(_Part())
                # Those between answers are the requests' own; what waits for them can go.
                if len(parts) > 2 and self.report.answered >= _ENOUGH and not self._row[1]:
                    await self._settle_refusals()
                while len(parts) > 1 and (self.report.failed or not parts[0].open):
                    part = parts.popleft()
                    # What would be incomplete is not handed on, and not held.
                    if not self.report.failed:
                        done(part.items)
            part, judgements = parts[-1], list[Judgement]()
            part.items.append((item, judgements))
            for index in range(self._samples if item.messages is not None else 0):
                messages = str(item.messages)
                known = look(self._writer, messages, index, self._stride, self._retries, self._read)
                if self._retry_refused and known.tries and known.tries[-1][0].completion.finish == REFUSED:
                    known = Judgement(known.tries[:-1], False)
                judgements.append(known)
                self._wanted += 1
                for answer, _ in known.tries:
                    self._measure(answer)
                if known.ended:
                    self._count(known, asked=False)
                else:
                    part.open += 1
                    await queue.put(_Slot(part, judgements, index, messages))
            if self.report.done % _TURN == 0:
                await asyncio.sleep(0)

    def _count_wanted(self, rest: Iterator[W]) -> None:
        """Say how many judgements were wanted, those that were not looked at included."""
        if self.report.stopped != INTERRUPTED:
            self._wanted += self._samples * sum(item.messages is not None for item in rest)
            self.report.total = self._wanted

    async def _work(self, queue: asyncio.Queue[_Slot | None]) -> None:
        while (slot := await queue.get()) is not None:
            if self.report.stopped is not None:
                continue
            try:
                if judgement := await self._judge(slot.messages, slot.index, slot.judgements[slot.index]):
                    slot.judgements[slot.index] = judgement
                    slot.part.open -= 1
                else:
                    self._missing.append(slot)
            except _Stopped:
                # Nobody stopped it: without this, what is missing would pass for done.
                self._stop(INSIDE)
            except Exception as error:
                self._fail(error)

    async def _judge(self, messages: str, index: int, known: Judgement) -> Judgement | None:
        """Bring one judgement to its end: a rating, no rating after all retries; None where a call failed."""
        tries, asked = list(known.tries), False
        for number in range(len(tries), self._retries + 1):
            sample = index + number * self._stride
            answer, fresh = await self.answer(messages, sample)
            if answer is None:
                return None
            asked = asked or fresh
            tries.append((answer, _read(answer, self._read)))
            if _ends(tries[-1]):
                break
            if fresh:
                self.report.unread += 1
                self.report.why[str(tries[-1][1].failure)] += 1
        judgement = Judgement(tries, True)
        self._count(judgement, asked=asked)
        return judgement

    def _count(self, judgement: Judgement, *, asked: bool) -> None:
        report = self.report
        report.unparsed += judgement.tries[-1][1].failure is not None
        report.done += 1
        report.from_ledger += not asked
        if self._bar is not None and not self._bar.disable:
            expected = f" of {_price(report.cost / report.done * self._total)}" if report.cost and self._total else ""
            failed = f", {len(report.failed):,} failed" if report.failed else ""
            self._bar.set_postfix_str(report.price + expected + failed, refresh=False)
            self._bar.update()

    # --- reasons to stop -------------------------------------------------------------------------------------------

    def _stop(self, reason: str) -> None:
        """Take and send nothing more; what is on its way may come."""
        self.report.stopped = self.report.stopped or reason
        self._stopping.set()

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._stop("an error")

    def _interrupt(self) -> None:
        self._stop(INTERRUPTED)
        self.report.stopped = INTERRUPTED
        for call in self._calls:
            call.cancel()

    async def _sleep(self, seconds: float) -> None:
        """Wait, unless the run stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        if self._stopping.is_set():
            raise _Stopped

    def _in_a_row(self, kind: str) -> int:
        """Count how often the same happened since the last answer."""
        self._row = (kind, self._row[1] + 1 if self._row[0] == kind else 1)
        return self._row[1]

    # --- one request -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Enter the service, for :meth:`require` and :meth:`answer` without a run."""
        async with self._service:
            try:
                yield
            finally:
                while self._committing:
                    await self._committing

    async def require(self, messages: str, sample: int) -> Answer:
        """Have a request answered and kept, as :meth:`answer` does.

        Raises
        ------
        JudgeError
            Says why there is no answer.
        """
        with suppress(_Stopped):
            answer, _ = await self.answer(messages, sample)
            if answer is not None:
                return answer
        reason = self._given_up.get(key(self._family, messages, sample), self.report.stopped)
        raise JudgeError(reason or "there is no answer")

    async def answer(self, messages: str, sample: int) -> tuple[Answer | None, bool]:
        """Have a request answered and kept: the answer, None if it fails; and whether it is a new one.

        Who wants the same one meanwhile waits for the same answer.
        """
        name = key(self._family, messages, sample)
        if name in self._given_up:
            return None, False
        if (other := self._asking.get(name)) is not None:
            return await asyncio.shield(other), False
        own: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._asking[name] = own
        found: Answer | None = None
        try:
            found, new = await self._ask(name, messages, sample)
            return found, new
        finally:
            own.set_result(found)
            del self._asking[name]

    async def _ask(self, name: str, messages: str, sample: int) -> tuple[Answer | None, bool]:
        """Try until there is an answer, or no hope of one."""
        content = json.loads(messages)
        # A request may have parameters of its own, such as its answer's length.
        own = content if isinstance(content, dict) else {}
        chat = own.pop("messages") if own else content

        longest = most_output(own) or self._longest or 0
        worst = 0.0 if self._price in (None, FREE) else self._price.of(most_input(chat), longest)

        async def once() -> tuple[Answer, bool]:
            async with self._afforded(worst):
                return await self._try(name, chat, own, messages, sample, worst, longest)

        try:
            if self._service.deterministic:
                return await once()
            return await tenacity.AsyncRetrying(
                retry=tenacity.retry_if_exception_type(Transient),
                stop=tenacity.stop_after_attempt(self._limits.attempts),
                wait=self._pause,
                before_sleep=self._again,
                sleep=self._sleep,
                reraise=True,
            )(once)
        except JudgeError as error:
            self._stop(str(error))
        except Refused as refused:
            await self._refuse(name, messages, sample, refused)
        except Transient as fault:
            self.report.failed.append((name, str(fault)))
            self._given_up[name] = f"{fault}; tried {self._limits.attempts} times"
            self._lost_in_a_row += 1
            if self._lost_in_a_row >= _HOPELESS:
                # A server that has gone does not come back by being asked for everything else too.
                self._stop(f"nothing is answered any more; {_HOPELESS} times in a row: {fault}")
        return None, False

    def _pause(self, state: tenacity.RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        after = fault.after if isinstance(fault, Transient) else None
        return self._limits.pause(state.attempt_number if after is None else 1) + (after or 0.0)

    def _again(self, state: tenacity.RetryCallState) -> None:
        self.report.repeated += 1

    async def _note(self, fault: Transient) -> None:
        """Count a fault, and draw what conclusions are everybody's."""
        self.report.faults[fault.kind] += 1
        if fault.after is not None and fault.after > self._limits.patience:
            self._stop(f"the service asks to wait {fault.after:,.0f} s ({fault})")
        elif self._rates and (fault.kind == "429" or fault.after is not None):
            self._slowed = True
            await self._commit(self._writer.do_hold, self._rates, fault.after, self._limits.pause)
        if fault.kind == "not reached":
            self._despair(fault)

    def _despair(self, fault: Transient) -> None:
        """Stop when the same happens again and again, and nothing else ever did."""
        row = self._in_a_row(fault.kind)
        if row == _HOPELESS and self.report.answered and fault.kind not in self._warned:
            self._warned.add(fault.kind)
            log.warning("no answer for %d calls in a row (%s); still trying", row, fault)
        if row >= _HOPELESS and not self.report.answered:
            self._stop(f"nothing is answered; {_HOPELESS} times in a row: {fault}")

    @asynccontextmanager
    async def _afforded(self, worst: float) -> AsyncIterator[None]:
        """Set aside what a call can cost at most, of the run's own budget, once there is room."""
        while self._budget is not None and self.report.paid + math.fsum(self._reserved) + worst > self._budget:
            if not self._reserved:
                raise Refused(
                    "budget",
                    f"{money(self.report.paid, 4)} of the budget of {money(self._budget)} is spent, and one more call can cost "
                    f"{money(worst, 4)}",
                )
            self._freed.clear()
            await self._freed.wait()
        self._reserved.append(worst)
        try:
            yield
        finally:
            self._reserved.remove(worst)
            self._freed.set()

    async def _try(
        self,
        name: str,
        chat: list[Message],
        own: Mapping[str, Any],
        messages: str,
        sample: int,
        worst: float,
        longest: int,
    ) -> tuple[Answer, bool]:
        """Send a request once, when it may be sent; keep the answer. Somebody else may have it by now."""
        report = self.report
        tokens = estimate_input(chat) + longest if self._limits.tokens else 0
        # What costs nothing and is always the same may be asked twice.
        call = None if self._service.deterministic else await self._claim(name, worst, tokens)
        if isinstance(call, Answer):
            return call, False
        if self._stopping.is_set():
            await self._lose(call, 0.0, "not sent")
            raise _Stopped
        report.asked += 1
        start = time.perf_counter()
        charge, lost = worst, "interrupted"
        completion: Completion | None = None
        try:
            completion = await self._send(chat, own, messages, sample)
        except asyncio.CancelledError:
            raise _Stopped from None
        except Transient as fault:
            charge, lost = worst if fault.charged else 0.0, fault.kind
            await self._note(fault)
            raise
        except (Refused, ComperdialError):
            charge, lost = 0.0, "refused"
            raise
        finally:
            if completion is None:
                await self._lose(call, charge, lost)
        cost = self._cost(completion, worst)
        latency = round((time.perf_counter() - start) * 1000)
        answer = Answer(messages, sample, completion, cost, latency, int(time.time()))
        if not report.answered and not self._versions:
            self._versions = self._writer.models()
        try:
            await self._commit(self._writer.do_keep, call, answer)
        except SchemaError as error:
            invalid = Transient("invalid answer", f"invalid answer: {error.problem}", charged=True)
            await self._lose(call, worst, invalid.kind)
            await self._note(invalid)
            raise invalid from error
        except FileError:
            self._unkept.append((call, answer))
            raise
        self._count_answer(answer)
        self._measure(answer)
        if worst and cost is not None and cost > worst * (1 + 1e-9):
            self._stop(
                f"the service billed {money(cost, 4)} for a call that can cost {money(worst, 4)} at most: "
                f"{completion.input_tokens} tokens in, {completion.output_tokens} out, of at most {longest}. "
                "A budget holds only for a service that keeps to the length that it is asked for"
            )
        if self._slowed and self._rates:
            self._slowed = False
            await self._commit(self._writer.do_pass, self._rates)
        return answer, True

    def _count_answer(self, answer: Answer) -> None:
        report, completion = self.report, answer.completion
        self._row = ("", 0)
        self._lost_in_a_row = 0
        report.answered += 1
        report.input_tokens += completion.input_tokens or 0
        report.output_tokens += completion.output_tokens or 0
        report.cost += answer.cost or 0.0
        report.unpriced += answer.cost is None
        self._watch(completion)

    async def _claim(self, name: str, worst: float, tokens: float) -> int | Answer:
        """Return the number of a call that may be sent now; or the answer, where somebody else has it by now."""
        while True:
            if self._stopping.is_set():
                raise _Stopped
            found = await self._commit(self._writer.do_claim, name, worst, tokens, self._rates, self._retry_refused)
            if isinstance(found, Answer):
                return found
            if isinstance(found, Claimed):
                return found.call
            if isinstance(found, Broke):
                self._stop(
                    f"{money(found.spent, 4)} of the budget of {money(found.limit)} is spent, and one more call can cost "
                    f"{money(worst, 4)}"
                )
                raise _Stopped
            if found.why == "batch":
                raise JudgeError(
                    "a batch of these requests is under way",
                    expected="its answers before anything else is asked",
                    hint="`comperdial judge batch collect`",
                )
            if found.why in _WAITING and found.why not in self._warned:
                self._warned.add(found.why)
                log.warning(_WAITING[found.why])
            # Not all at the same moment.
            await self._sleep(found.seconds * random.uniform(1.0, 1.2))  # noqa: S311

    async def _send(self, chat: list[Message], own: Mapping[str, Any], messages: str, sample: int) -> Completion:
        sent = seeded({**self._sent, **own}, sample)
        if self._service.needs_seed:
            # The same request has the same answer again.
            sent = {**sent, "seed": int(key(self._family, messages, sample)[:8], 16)}
        if self._service.deterministic:
            return await self._service.complete(chat, sent)
        call = asyncio.ensure_future(self._service.complete(chat, sent))
        self._calls.add(call)
        try:
            return await call
        finally:
            self._calls.discard(call)

    async def _lose(self, call: int | None, charge: float, kind: str) -> None:
        if call is None:
            return
        self.report.charged += charge
        await self._commit(self._writer.do_lose, call, charge, kind)

    def _cost(self, completion: Completion, worst: float) -> float | None:
        """Return what an answer cost; the most it can have cost, if the service does not count; None if nobody knows."""
        if self._price is None or self._price is FREE:
            return None if self._price is None else 0.0
        if completion.input_tokens is None or completion.output_tokens is None:
            return None if self._longest is None else worst
        return self._price.of(completion.input_tokens, completion.output_tokens)

    def _watch(self, completion: Completion) -> None:
        """Warn of the first model version that differs from those that the ledger has."""
        if completion.model is None or completion.model in self._versions:
            return
        if self._versions and "version" not in self._warned:
            self._warned.add("version")
            log.warning(DRIFT, self._writer.path, completion.model, ", ".join(sorted(self._versions)))
        self._versions.add(completion.model)

    def _measure(self, answer: Answer) -> None:
        """Warn of the first prompt of which the service counts far fewer tokens than it has: it read a part."""
        counted = answer.completion.input_tokens
        # Of most prompts their length tells; those of published answers are not known.
        if not counted or counted * _LETTERS >= len(answer.messages):
            return
        content = json.loads(answer.messages)
        chat = content["messages"] if isinstance(content, dict) else content
        if counted >= _READ * least_input(chat):
            return
        self.report.shortened += 1
        if "shortened" not in self._warned:
            self._warned.add("shortened")
            log.warning(SHORTENED, self._service.connection.model, counted, estimate_input(chat))

    # --- refusals --------------------------------------------------------------------------------------------------

    async def _refuse(self, name: str, messages: str, sample: int, refused: Refused) -> None:
        """Note a refusal. It is kept if those are few: else something else than the requests is wrong."""
        reason = self._given_up[name] = str(refused)
        if refused.kind in FOR_GOOD:
            self._refusals[name] = refusal(messages, sample, reason, int(time.time()))
        else:
            self.report.failed.append((name, reason))
        if self._accept_refused:
            return
        # Whatever the reason: it may have the number of the request in it.
        row, count = self._in_a_row(refused.kind), self.report.refused + len(self._refusals)
        if row >= _HOPELESS:
            self._stop(f"the service refused {row} requests in a row, the last with: {reason}. {_ACCEPT}")
        elif too_many(count, self.report.asked):
            self._stop(
                f"the service refused {count:,} of {self.report.asked:,} requests, the last with: {reason}. {_ACCEPT}"
            )

    async def _rescue(self, error: BaseException | None) -> BaseException | None:
        """Try once more to keep what came when nothing could be written; say how many answers are lost for all that."""
        self._writer.make_room()
        lost = 0
        for call, answer in self._unkept:
            try:
                await self._commit(self._writer.do_keep, call, answer)
                self._count_answer(answer)
            except FileError:
                lost += 1
        if not lost:
            return error
        known = error if isinstance(error, ComperdialError) else FileError(str(error), where=str(self._writer.path))
        problem = f"{known.problem}; {lost:,} answers that came then are lost, and count as spent"
        return FileError(problem, where=known.where, expected=known.expected, hint=known.hint)

    async def _settle_refusals(self) -> None:
        """Keep the refusals so far, if the service answers anything else of their family; else their requests failed."""
        known = self.report.answered or self._accept_refused or len(self._writer)
        if (self.report.stopped is not None and self.report.stopped != INTERRUPTED) or not known:
            self.report.failed += [(name, answer.completion.text) for name, answer in self._refusals.items()]
            return
        refusals, self._refusals = self._refusals, {}
        for answer in refusals.values():
            await self._commit(self._writer.do_keep, None, answer)
        self.report.refused += len(refusals)
        missing, self._missing = self._missing, []
        for slot in missing:
            judgement = look(self._writer, slot.messages, slot.index, self._stride, self._retries, self._read)
            if judgement.ended:
                slot.judgements[slot.index] = judgement
                slot.part.open -= 1
                self._count(judgement, asked=True)
            else:
                self._missing.append(slot)

    # --- the ledger ------------------------------------------------------------------------------------------------

    async def _commit(self, operation: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """Do an operation of the writer; it is on the disk when this returns. Those that wait are one transaction."""
        future = asyncio.get_running_loop().create_future()
        self._pending.append(((operation, arguments), future))
        if self._committing is None:
            self._committing = asyncio.create_task(self._transact())
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    async def _transact(self) -> None:
        await asyncio.sleep(0)
        while self._pending:
            group, self._pending = self._pending, []
            try:
                results = await asyncio.to_thread(self._writer.transact, [operation for operation, _ in group])
            except Exception as error:
                results = [error] * len(group)
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)
        self._committing = None


_WAITING = {
    "busy": "another process asks the same; waiting for its answers",
    "money": "other processes have reserved the rest of the budget; waiting for what they leave",
}
_ACCEPT = "Nothing of it is kept; if these requests cannot be answered, --accept-refused keeps that"


def too_many(refused: int, asked: int) -> bool:
    """Say whether so many requests are refused that something else than their content must be wrong."""
    return asked >= _ENOUGH and refused > _SHARE * asked


@contextmanager
def signals(act: Callable[[], None]) -> Iterator[None]:
    """Act on the first Ctrl-C or SIGTERM; the second one finds things as they were, and ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        before.clear()

    def first() -> None:
        restore()
        act()

    for number in before:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        restore()


def seeded(parameters: dict[str, Any], sample: int) -> dict[str, Any]:
    """Return the parameters of a sample: where they hold a seed, each has its own, or all would be one answer.

    A seed below 0 stands, with servers that take one, for another seed each time.
    """
    seed = parameters.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int | float) or seed < 0 or seed != int(seed):
        return parameters
    return {**parameters, "seed": int(seed) + sample}


def check_budget(price: Price | None, parameters: Mapping[str, Any], model: str) -> None:
    """Refuse to start where a budget could not be kept.

    Raises
    ------
    ConfigError
        When the price or the length of answers is not known.
    """
    if price is FREE:
        return
    if price is None:
        raise ConfigError(
            f"there is a budget, and no price of model {model!r} is known",
            expected="its price in data/prices.yaml, with date and source",
        )
    if most_output(parameters) is None:
        raise ConfigError(
            f"there is a budget, and the answers of model {model!r} may be of any length",
            expected="`max_tokens` or `max_completion_tokens` among the judge's parameters",
        )
