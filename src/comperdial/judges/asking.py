"""Send requests to a service: each once, within the budget, as fast as allowed, with retries."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tqdm import tqdm

from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.prices import is_impossible, least_input, most_output
from comperdial.judges.requests import (
    REFUSED,
    Answer,
    InterruptedRunError,
    JudgeError,
    Message,
    RefusedError,
    Request,
    TransientError,
)
from comperdial.judges.tasks import Task

log = logging.getLogger(__name__)

ATTEMPTS = 8
# Consecutive failures after which a run gives up.
_HOPELESS = 10
# Lower bound of the input tokens that a server reports, relative to our minimum estimate; below it, the prompt was cut.
_READ = 0.75
# Seconds; a longer retry-after ends the run.
_PATIENCE = 600.0


@dataclass
class Report:
    """Summary of a run."""

    calls: int = 0  # every attempt counts
    answered: int = 0  # number of stored answers
    refused: int = 0  # number of stored refusals
    failures: Counter[str] = field(default_factory=Counter)  # requests that finally failed, by reason
    cost: float = 0.0  # US dollars of the answers
    charged: float = 0.0  # US dollars of failed calls that may have been billed
    seconds: float = 0.0
    shortened: int = 0  # answers to prompts that the service truncated
    stopped: ComperdialError | None = None  # why the run ended early

    def check(self, name: str) -> None:
        """Raise an error if the run stopped early or a request has no answer."""
        kept = f"{self.answered:,} answers were kept ({money(self.cost, 4)}): run it again to go on"
        if why := self.stopped:
            hint = f"{why.hint}. {kept}" if why.hint else kept
            raise JudgeError(why.problem, where=why.where or name, expected=why.expected, hint=hint)
        if self.failures:
            failed = "; ".join(f"{count} x {reason}" for reason, count in self.failures.most_common(3))
            raise JudgeError(f"{self.failures.total():,} requests have no answer: {failed}", where=name, hint=kept)

    def __str__(self) -> str:
        text = f"{self.answered:,} answers to {self.calls:,} calls in {self.seconds:.1f} s, {money(self.cost, 4)}"
        text += f" and {money(self.charged, 4)} for calls without an answer" if self.charged else ""
        text += f"; {self.refused:,} requests were refused" if self.refused else ""
        return f"{text}; {self.shortened:,} prompts were cut by the server" if self.shortened else text


class _Stopped(Exception):
    """The run has stopped; the report gives the reason."""


def ask(
    task: Task, answers: AnswerFile, readable: Callable[[Answer], bool], judgements: Sequence[Sequence[Request]]
) -> Report:
    """Send the requests of each judgement until an answer is readable; process judgements concurrently.

    Parameters
    ----------
    answers
        Open for asking; stores the answers.
    readable
        Returns whether an answer has a rating.

    Raises
    ------
    ConfigError
        If a paid judge has no price, or no limit on the length of answers.
    InterruptedRunError
        After Ctrl-C or SIGTERM.
    JudgeError
        If requests still have no answer after all retries; the answers received are kept.
    """
    if task.service.paid and most_output(task.judge.parameters) is None:
        raise ConfigError(
            "the length of answers has no limit, so that no budget can be kept",
            where=task.judge.name,
            expected="`max_tokens` or `max_completion_tokens` among the judge's parameters",
        )
    run = _Run(task, answers, readable)
    try:
        asyncio.run(run.ask(judgements))
    except (KeyboardInterrupt, asyncio.CancelledError):
        hint = "All answers so far were kept: run it again to go on"
        raise InterruptedRunError("interrupted", hint=hint) from None
    run.report.check(task.name)
    return run.report


class _Run:
    def __init__(self, task: Task, answers: AnswerFile, readable: Callable[[Answer], bool]) -> None:
        self.report = Report()
        self._task, self._service, self._answers, self._readable = task, task.service, answers, readable
        self._price = task.price
        self._slots = asyncio.Semaphore(task.judge.concurrency or task.service.concurrency)
        self._gap = 60 / task.judge.requests_per_minute if task.judge.requests_per_minute else 0.0
        self._next = 0.0  # earliest time of the next call
        # A request that is refused again after others were answered is at fault; otherwise the service is.
        self._refused: list[Sequence[Request]] | None = []
        self._answers_before = answers.has(answers.dataset, task.family)
        self._under_way = self._failed_in_a_row = self._unreadable_in_a_row = 0
        self._stopping, self._settled = asyncio.Event(), asyncio.Event()
        identity = self._service.identity()
        self._sent = {name: value for name, value in task.parameters.items() if name not in identity}

    async def ask(self, judgements: Sequence[Sequence[Request]]) -> None:
        start = time.monotonic()
        if task := asyncio.current_task():
            with suppress(RuntimeError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            with tqdm(judgements, desc=self._task.name, unit="judgement", disable=None) as progress:
                await self._ask_all(progress)
            again, self._refused = self._refused or [], None
            await self._ask_all(again)
        finally:
            self.report.seconds += time.monotonic() - start
            await self._service.close()

    async def _ask_all(self, judgements: Iterable[Sequence[Request]]) -> None:
        async with asyncio.TaskGroup() as group:
            for requests in judgements:
                await self._slots.acquire()
                if self._stopping.is_set():
                    self._slots.release()
                    break
                group.create_task(self._judge(requests))

    async def _judge(self, requests: Sequence[Request]) -> None:
        """Ask until an answer has a rating, no fresh samples are left, or a request fails."""
        try:
            for number, request in enumerate(requests):
                try:
                    answer = await self._answer(request)
                except RefusedError as error:
                    await self._note_refusal(requests[number:], str(error))
                    break
                if answer is None or self._has_rating(answer):
                    break
        except ComperdialError as error:
            self._stop(error)
        except _Stopped:
            pass
        finally:
            self._slots.release()

    async def _answer(self, request: Request) -> Answer | None:
        """Get and store the answer to a request; return None if it failed."""
        attempts = self._task.judge.attempts or ATTEMPTS
        for attempt in range(attempts):
            try:
                return await self._attempt(request)
            except TransientError as error:
                if attempt + 1 < attempts:
                    await self._sleep((error.retry_after or 0.0) + _backoff(attempt))
                    continue
                self.report.failures[str(error)] += 1
                self._note_failure(str(error))
        return None

    async def _attempt(self, request: Request) -> Answer:
        """Send a request once, respecting the rate limit; store the answer before it is used."""
        now = time.monotonic()
        start = max(self._next, now)
        self._next = start + self._gap
        await self._sleep(start - now)
        chat, sent = request.chat, dict(self._sent)
        if isinstance(seed := sent.get("seed"), int) and seed >= 0:
            # Each sample needs its own seed, or all answers would be the same.
            sent["seed"] = seed + request.sample
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
        self._failed_in_a_row = 0
        self._check_length(answer, chat)
        if worst and is_impossible(answer, chat, sent):
            problem = f"the service counts {answer.input_tokens} tokens in and {answer.output_tokens} out"
            self._stop(JudgeError(f"{problem}, more than there can be", expected="usage that can be priced"))
        return answer

    async def _reserve(self, request: Request, worst: float) -> int | None:
        """Wait until the budget has room for the maximum cost of a call, and reserve it."""
        budget = self._task.judging.budget
        while worst and self._answers.spent + worst > budget:
            if not self._under_way:
                spent = f"{money(self._answers.spent, 4)} of the budget of {money(budget)} is spent"
                self._stop(JudgeError(f"{spent}, and one more call can cost {money(worst, 4)}", hint="Raise --budget"))
            if self._stopping.is_set():
                raise _Stopped
            self._settled.clear()
            await self._settled.wait()
        self._under_way += 1
        return self._answers.reserve(request.key, worst)

    # Responses and errors

    async def _note_refusal(self, requests: Sequence[Request], problem: str) -> None:
        """Retry at the end of the run, and store a repeated refusal."""
        if self._refused is not None:
            self._refused.append(requests)
            self._note_failure(f"refused: {problem}")
        elif self.report.answered or self._answers_before:
            self._answers.keep(requests[0], Answer(problem, REFUSED, cost=0.0))
            self.report.refused += 1
            await self._answers.committed()
        else:
            self.report.failures[f"refused, and nothing else was answered: {problem}"] += 1

    def _note_fault(self, error: TransientError) -> None:
        if error.retry_after is not None:
            if error.retry_after > _PATIENCE:
                self._stop(JudgeError(f"the service asks to wait {error.retry_after:,.0f} s ({error})"))
            self._next = max(self._next, time.monotonic() + error.retry_after)
        if error.unreachable and not self.report.answered:
            self._note_failure(str(error))

    def _note_failure(self, problem: str) -> None:
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _HOPELESS:
            self._stop(JudgeError(f"{_HOPELESS} failures in a row and no answer between them, the last: {problem}"))

    def _has_rating(self, answer: Answer) -> bool:
        readable = self._readable(answer)
        self._unreadable_in_a_row = 0 if readable else self._unreadable_in_a_row + 1
        if self._unreadable_in_a_row >= _HOPELESS and self._service.remote:
            self._stop(
                JudgeError(
                    f"no rating in the last {_HOPELESS} answers",
                    expected="a judge that answers as the prompt asks",
                    hint="They are in the file of answers; ask for them again with --ask-again",
                )
            )
        return readable

    def _check_length(self, answer: Answer, chat: Sequence[Message]) -> None:
        """Warn if the server read only part of a prompt."""
        read = answer.input_tokens
        if not self._service.remote or not read or read >= _READ * (least := least_input(chat)):
            return
        if not self.report.shortened:
            log.warning(
                "the server counts %d tokens of a prompt that has %d or more: it may have cut it. Give it a longer "
                "context (docs/judge-servers.md)",
                *(read, least),
            )
        self.report.shortened += 1

    def _stop(self, error: ComperdialError) -> None:
        """Send no more requests; those in flight may finish."""
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
    """Return the randomized, growing delay in seconds after an attempt, counted from 0."""
    return random.uniform(0, min(60.0, 0.5 * 2**attempt))  # noqa: S311
