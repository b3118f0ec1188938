"""Judgements of a task: their requests, what the answers say, and asking for what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from tqdm import tqdm

from comperdial.core.errors import ConfigError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Asker, Job, Report, check_budget, interruptible
from comperdial.judges.items import Item
from comperdial.judges.parsing import Parsed, parse, without_thoughts
from comperdial.judges.prices import FREE, find_price, most_output
from comperdial.judges.probabilities import expected_value
from comperdial.judges.requests import CUT, Answer, RefusedError, Request, unfinished
from comperdial.judges.tasks import Judging, Task, family_of, labels, service_of, silent, to_pay

UNREADABLE = "unreadable"
"""Answers without a rating; they and refusals are asked for again on demand only."""
OUTSIDE = "outside"
"""The output that says how much of the probability was on no label."""
# With more of the probability outside the scale, an answer was about to be no rating.
_MOST_OUTSIDE = 0.5


@dataclass(frozen=True)
class Try:
    """One answer, and what was read in it."""

    request: Request
    answer: Answer
    parsed: Parsed

    @property
    def last(self) -> bool:
        """Return whether no fresh sample is wanted after it."""
        return self.parsed.failure is None or self.answer.refused


@dataclass(frozen=True)
class Judgement:
    """The answers to one request and to its fresh samples, up to the first with a rating, or to a refusal.

    ``ended`` says that there is nothing more to ask.
    """

    tries: Sequence[Try]
    ended: bool

    @property
    def problem(self) -> str | None:
        """Return why a judgement that has ended has no rating."""
        last = self.tries[-1]
        return "refused" if last.answer.refused else UNREADABLE if last.parsed.failure else None


class Judgements:
    """The judgements of a task, as far as there are answers."""

    def __init__(self, judging: Judging, task: Task) -> None:
        self.task = task
        self.family = family_of(judging, task)
        self._read = reader(task)

    def get(self, answers: AnswerFile, messages: str, index: int) -> Judgement:
        """Return the ``index``-th judgement of a chat."""
        tries: list[Try] = []
        for request in self._requests(messages, index):
            if (answer := answers.get(request.key)) is None:
                return Judgement(tries, ended=False)
            tries.append(Try(request, answer, self._read(answer)))
            if tries[-1].last:
                break
        return Judgement(tries, ended=True)

    def missing(
        self, answers: AnswerFile, items: Iterable[Item], ask_again: Collection[str] = ()
    ) -> Iterator[list[Request]]:
        """Yield for each judgement what is to be asked until there is a rating; nothing if it has ended.

        What several systems answered alike is asked once: later judgements have nothing to ask.
        """
        seen: set[str] = set()
        for item in items:
            for index in range(self.task.samples if item.messages is not None else 0):
                requests = list(self._requests(str(item.messages), index))
                known = self.get(answers, str(item.messages), index)
                left = requests[len(known.tries) :]
                if known.ended:
                    left = requests if known.problem in ask_again else []
                yield [] if requests[0].key in seen else left
                seen.add(requests[0].key)

    async def ask(self, asker: Asker, requests: Iterable[Request]) -> bool:
        """Ask until an answer has a rating, no fresh sample is left, or nothing is answered.

        Returns whether a request was refused for the first time.
        """
        for request in requests:
            try:
                answer = await asker.ask(request)
            except RefusedError:
                return True
            if answer is None:
                break
            tried = Try(request, answer, self._read(answer))
            if not answer.refused:
                asker.note(readable=tried.parsed.failure is None)
            if tried.last:
                break
        return False

    def _requests(self, messages: str, index: int) -> Iterator[Request]:
        for number in range(self.task.retries + 1):
            yield Request(self.family, messages, index + number * self.task.stride)


def reader(task: Task) -> Callable[[Answer], Parsed]:
    """Return what reads a task's answers: the text, or the probabilities of the labels."""
    form = task.variant.form
    if task.judge.mode == "probabilities":
        scale = labels(task)
        # The paper's value is relative to its labels, however probable they are; a rating has to be about to come.
        most_outside = 1.0 if task.variant.labels else _MOST_OUTSIDE

        def read(answer: Answer) -> Parsed:
            # No limit cuts what the first token says.
            if (why := _not_whole(answer)) not in (None, CUT):
                return Parsed({}, why)
            if not answer.text:
                return Parsed({}, "an empty answer")
            if without_thoughts(answer.text) != (answer.text.strip(), None):
                return Parsed({}, "the first token is of thoughts, not of an answer")
            try:
                found = expected_value(answer.logprobs or {}, scale)
            except ValueError as error:
                return Parsed({}, str(error))
            if found.outside > most_outside:
                return Parsed({}, f"{found.outside:.0%} of the probability is outside the scale")
            return Parsed({form.main: found.value, OUTSIDE: found.outside})

        return read
    # Judges answer few different texts to thousands of prompts.
    cached = lru_cache(maxsize=1 << 16)(partial(parse, form=form))
    most = most_output(task.judge.parameters)

    def read_text(answer: Answer) -> Parsed:
        why = _not_whole(answer)
        if not answer.finish and most is not None and (answer.output_tokens or 0) >= most:
            why = CUT
        return Parsed({}, why) if why else cached(answer.text)

    return read_text


def _not_whole(answer: Answer) -> str | None:
    return f"refused: {answer.text}" if answer.refused else unfinished(answer.finish)


def ask(
    judging: Judging,
    task: Task,
    items: Sequence[Item],
    answers: AnswerFile,
    *,
    ask_again: Collection[str] = (),
    accept_refused: bool = False,
) -> Report | None:
    """Ask for the answers that a task lacks; None if it lacks nothing, or if the judge cannot be asked here.

    Raises
    ------
    JudgeError
        When requests have no answer in the end; what came is kept.
    ConfigError
        When a paid judge has no price, or no limit of an answer's length.
    """
    judgements = Judgements(judging, task)
    missing = list(filter(None, judgements.missing(answers, items, ask_again)))
    if not missing or silent(judging, task):
        return None
    service, price = service_of(task), FREE
    if service.paid:
        check_budget(service, judgements.family.parameters)
        try:
            price = find_price(judging.prices, task.judge.model)
        except ConfigError as error:
            raise ConfigError(error.problem, where=error.where, hint=to_pay(judging, task)) from error

    async def run() -> Report:
        asker = Asker(
            service,
            answers,
            task.judge.connection,
            price=price,
            budget=judging.budget if service.paid else None,
            accept_refused=accept_refused,
        )
        with tqdm(missing, desc=task.name, unit="judgement", disable=None) as progress:
            jobs: Iterator[Job] = (partial(judgements.ask, asker, requests) for requests in progress)
            await asker.run(jobs)
        return asker.report

    with answers.asking(), interruptible():
        report = asyncio.run(run())
    report.check(task.name)
    return report
