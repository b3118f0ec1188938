"""Asking a service: each request once, within the budget, as fast as allowed, and again after faults."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from comperdial.core.errors import ComperdialError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.prices import FREE, Price, is_impossible, least_input
from comperdial.judges.requests import (
    REFUSED,
    Answer,
    JudgeError,
    Message,
    RefusedError,
    Request,
    TransientError,
)
from comperdial.judges.tasks import Task

log = logging.getLogger(__name__)

ATTEMPTS = 8
# So many failures and no answer between them: it will not get better.
_HOPELESS = 10
# The share of the fewest tokens of a prompt that a server counts at least, unless it cuts the prompt.
_READ = 0.75
# Seconds: a service that asks to wait longer ends the run.
_PATIENCE = 600.0

Job = Callable[[], Awaitable[bool]]
"""Asks for what one judgement needs; returns whether it was refused and is to be done again at the end of the run."""


@dataclass
class Report:
    """What a run did.

    Attributes
    ----------
    calls
        Calls sent, every attempt counted.
    answered, refused
        Answers and refusals that were kept.
    failures
        Requests without an answer after all attempts, by reason.
    cost
        US dollars of the answers.
    charged
        US dollars of calls without an answer that may have been billed.
    shortened
        Answers to prompts of which the service read less than there is.
    stopped
        Why the run ended early; None if it did not.
    """

    calls: int = 0
    answered: int = 0
    refused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    charged: float = 0.0
    seconds: float = 0.0
    shortened: int = 0
    stopped: ComperdialError | None = None

    def check(self, name: str) -> None:
        """Raise an error if the run stopped, or if a request has no answer."""
        kept = f"{self.answered:,} answers were kept ({money(self.cost, 4)}): run it again to go on"
        if why := self.stopped:
            hint = f"{why.hint}. {kept}" if why.hint else kept
            raise JudgeError(why.problem, where=why.where or name, expected=why.expected, hint=hint)
        if self.failures:
            failed = "; ".join(f"{count} x {reason}" for reason, count in self.failures.most_common(3))
            raise JudgeError(f"{self.failures.total():,} requests have no answer: {failed}", where=name, hint=kept)

    def __str__(self) -> str:
        charged = f" and {money(self.charged, 4)} for calls without an answer" if self.charged else ""
        text = (
            f"{self.answered:,} answers to {self.calls:,} calls in {self.seconds:.1f} s, {money(self.cost, 4)}{charged}"
        )
        text += f"; {self.refused:,} requests were refused" if self.refused else ""
        return f"{text}; {self.shortened:,} prompts were cut by the server" if self.shortened else text


class _Stopped(Exception):
    """The run has stopped; the report says why."""


class Asker:
    """Asks the service of a task, and keeps what it answers.

    Parameters
    ----------
    answers
        Open for asking.
    price, budget
        Of the service's model, and US dollars that all answers in the file may cost together; None of a free service.
    accept_refused
        Whether refusals are kept however many there are, and at once.
    """

    def __init__(
        self,
        task: Task,
        answers: AnswerFile,
        *,
        price: Price = FREE,
        budget: float | None = None,
        accept_refused: bool = False,
    ) -> None:
        self.report = Report()
        self._task, self._service, self._answers = task, task.service, answers
        self._price, self._budget, self._accept = price, budget, accept_refused
        self._slots = asyncio.Semaphore(task.judge.concurrency or self._service.concurrency)
        self._gap = 60 / task.judge.requests_per_minute if task.judge.requests_per_minute else 0.0
        # When the next call may be sent.
        self._next = 0.0
        self._last_round = False
        self._under_way = self._in_a_row = self._unreadable = 0
        self._stopping = asyncio.Event()
        self._settled = asyncio.Event()

    async def run(self, jobs: Iterable[Job]) -> None:
        """Do jobs, many at a time; SIGTERM ends the run as Ctrl-C does."""
        start, again = time.monotonic(), list[Job]()
        if task := asyncio.current_task():
            with suppress(RuntimeError):  # outside of the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)

        async def do(job: Job) -> None:
            try:
                if await job():
                    again.append(job)
            finally:
                self._slots.release()

        async def round_of(jobs: Iterable[Job]) -> None:
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    await self._slots.acquire()
                    if self._stopping.is_set():
                        self._slots.release()
                        break
                    group.create_task(do(job))

        try:
            await round_of(jobs)
            # A refusal is the request's fault if it is refused again after others were answered; else it was the service's.
            self._last_round = True
            await round_of(list(again))
        finally:
            self.report.seconds += time.monotonic() - start
            await self._service.close()

    async def ask(self, request: Request) -> Answer | None:
        """Have a request answered and kept; None if it failed, if it was refused for now, or if the run stopped.

        Raises
        ------
        RefusedError
            When it was refused for the first time.
        """
        try:
            for attempt in range((self._task.judge.attempts or ATTEMPTS) - 1):
                try:
                    return await self._attempt(request)
                except TransientError as error:
                    await self._sleep((error.retry_after or 0.0) + _backoff(attempt))
            return await self._attempt(request)
        except _Stopped:
            return None
        except ComperdialError as error:
            self._stop(error)
        except TransientError as error:
            self.report.failures[str(error)] += 1
            self._failed(str(error))
        except RefusedError as error:
            if not self._accept:
                self._failed(f"refused: {error}")
                if self._stopping.is_set():
                    return None
                if not self._last_round:
                    raise
            if self.report.answered or self._accept:
                answer = Answer(str(error), REFUSED, cost=0.0)
                self._answers.keep(request, answer)
                self.report.refused += 1
                await self._answers.committed()
                return answer
            self.report.failures[f"refused, and nothing else was answered: {error}"] += 1
        return None

    def note(self, *, readable: bool) -> None:
        """Count answers without a rating: many in a row are no answers of a judge."""
        self._unreadable = 0 if readable else self._unreadable + 1
        if self._unreadable >= _HOPELESS and self._service.remote:
            self._stop(
                JudgeError(
                    f"no rating in the last {_HOPELESS} answers",
                    expected="a judge that answers as the prompt asks",
                    hint="See them with `comperdial judge show`; ask for them again with --ask-again unreadable",
                )
            )

    def _sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters that are sent with a request."""
        parameters = dict(self._task.parameters)
        for name in self._service.identity():
            del parameters[name]
        seed = parameters.get("seed")
        if isinstance(seed, int) and seed >= 0:
            # Each sample has its own seed, or all would be one answer.
            parameters["seed"] = seed + request.sample
        if self._service.needs_seed:
            parameters["seed"] = int(request.key[:8], 16)
        return parameters

    async def _attempt(self, request: Request) -> Answer:
        """Send a request once, when it may be sent; keep the answer before it is used."""
        now = time.monotonic()
        start = max(self._next, now)
        self._next = start + self._gap
        await self._sleep(start - now)
        chat, sent = request.chat, self._sent(request)
        worst = self._price.at_worst(chat, sent)
        charge = await self._reserve(request, worst)
        answer: Answer | None = None
        billed: str | None = None
        try:
            if charge is not None:
                await self._answers.committed()
            self.report.calls += 1
            billed = "interrupted"
            answer = await self._service.complete(chat, sent)
        except TransientError as error:
            billed = str(error) if error.charged else None
            self._note_fault(error)
            raise
        except (RefusedError, ComperdialError):
            billed = None
            raise
        finally:
            self._under_way -= 1
            if answer is None:
                self._answers.release(charge, billed=billed)
                self.report.charged += worst if billed else 0.0
            self._settled.set()
        answer = replace(answer, cost=self._price.of_answer(answer, chat, sent) if worst else 0.0)
        self._answers.keep(request, answer, charge)
        self._settled.set()
        await self._answers.committed()
        self.report.answered += 1
        self.report.cost += answer.cost or 0.0
        self._in_a_row = 0
        self._check_length(answer, chat)
        if worst and is_impossible(answer, chat, sent):
            problem = f"the service counts {answer.input_tokens} tokens in and {answer.output_tokens} out"
            self._stop(JudgeError(f"{problem}, more than there can be", expected="usage that can be priced"))
        return answer

    def _check_length(self, answer: Answer, chat: Sequence[Message]) -> None:
        """Warn of a server that reads less of a prompt than there is."""
        read = answer.input_tokens
        if not self._service.remote or not read or read >= _READ * (least := least_input(chat)):
            return
        if not self.report.shortened:
            log.warning(
                "the server counts %d tokens of a prompt that has %d or more: it may have cut it. Give it a longer "
                "context (Ollama: OLLAMA_CONTEXT_LENGTH)",
                *(read, least),
            )
        self.report.shortened += 1

    async def _reserve(self, request: Request, worst: float) -> int | None:
        """Set aside the most that a call can cost, once the budget has room for it."""
        while worst and self._budget is not None and self._answers.spent + worst > self._budget:
            if not self._under_way:
                spent = f"{money(self._answers.spent, 4)} of the budget of {money(self._budget)} is spent"
                self._stop(JudgeError(f"{spent}, and one more call can cost {money(worst, 4)}", hint="Raise --budget"))
            if self._stopping.is_set():
                raise _Stopped
            self._settled.clear()
            await self._settled.wait()
        self._under_way += 1
        return self._answers.reserve(request.key, worst)

    def _note_fault(self, error: TransientError) -> None:
        """Draw the conclusions of a fault that concern all calls."""
        if error.retry_after is not None:
            if error.retry_after > _PATIENCE:
                self._stop(JudgeError(f"the service asks to wait {error.retry_after:,.0f} s ({error})"))
            self._next = max(self._next, time.monotonic() + error.retry_after)
        if error.unreachable and not self.report.answered:
            self._failed(str(error))

    def _failed(self, problem: str) -> None:
        self._in_a_row += 1
        if self._in_a_row >= _HOPELESS:
            self._stop(JudgeError(f"{_HOPELESS} failures in a row and no answer between them, the last: {problem}"))

    def _stop(self, error: ComperdialError) -> None:
        """Send nothing more; what is under way may come."""
        self.report.stopped = self.report.stopped or error
        self._stopping.set()
        self._settled.set()

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)
        if self._stopping.is_set():
            raise _Stopped


def _backoff(attempt: int) -> float:
    """Return the seconds to wait after an attempt, counted from 0: random and growing."""
    return random.uniform(0, min(60.0, 0.5 * 2**attempt))  # noqa: S311
