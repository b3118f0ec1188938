"""Judgements of a task: their requests, what the answers say, asking for what is missing, and tables of it all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from comperdial import schema
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Asker, Job, Report
from comperdial.judges.items import Item, Turns, items_of
from comperdial.judges.parsing import Parsed, parse, without_thoughts
from comperdial.judges.prices import FREE, find_price, most_output
from comperdial.judges.probabilities import expected_value
from comperdial.judges.requests import CUT, Answer, InterruptedRunError, MissingAnswersError, RefusedError, Request
from comperdial.judges.tasks import Task, slug

OUTSIDE = "outside"
"""The output that says how much of the probability was on no label."""
# With more of the probability outside the scale, an answer was about to be no rating.
_MOST_OUTSIDE = 0.5
# Characters of an answer's key in a table: enough to find it.
_KEY = 10


@dataclass(frozen=True)
class Judgement:
    """The answers to one request and to its fresh samples, up to the first with a rating, or to a refusal.

    Attributes
    ----------
    answers
        In the order of the requests.
    parsed
        What the last answer says.
    key
        Of the request of the last answer.
    left
        What is still to be asked until there is a rating; empty if the judgement has ended.
    """

    answers: Sequence[Answer]
    parsed: Parsed
    key: str
    left: Sequence[Request] = ()

    @property
    def problem(self) -> str | None:
        """Return why a judgement that has ended has no rating."""
        if self.left or not self.parsed.failure:
            return None
        return "refused" if self.answers[-1].refused else "unreadable"


class Judgements:
    """The judgements of a task, as far as there are answers."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._read = _probabilities_reader(task) if task.judge.mode == "probabilities" else _text_reader(task)

    def get(self, answers: AnswerFile, messages: str, index: int) -> Judgement:
        """Return the ``index``-th judgement of a chat."""
        requests, given, parsed = self._requests(messages, index), list[Answer](), Parsed({})
        for number, request in enumerate(requests):
            if (answer := answers.get(request.key)) is None:
                return Judgement(given, parsed, request.key, requests[number:])
            given.append(answer)
            parsed = self._read(answer)
            if parsed.failure is None or answer.refused:
                break
        return Judgement(given, parsed, requests[len(given) - 1].key)

    def missing(
        self, answers: AnswerFile, items: Iterable[Item], ask_again: Collection[str] = ()
    ) -> Iterator[Sequence[Request]]:
        """Yield for each judgement what is to be asked until there is a rating; nothing if it has ended.

        What several systems answered alike is asked once: later judgements have nothing to ask.
        """
        seen: set[tuple[str, int]] = set()
        for item in items:
            for index in range(self.task.samples if item.messages is not None else 0):
                chat = (str(item.messages), index)
                known = self.get(answers, *chat)
                left = self._requests(*chat) if known.problem in ask_again else known.left
                yield [] if chat in seen else left
                seen.add(chat)

    async def ask(self, asker: Asker, requests: Iterable[Request]) -> bool:
        """Ask until an answer has a rating, no fresh sample is left, or nothing is answered.

        Returns whether a request was refused for the first time.
        """
        for request in requests:
            try:
                answer = await asker.ask(request)
            except RefusedError:
                return True
            if answer is None or answer.refused:
                break
            readable = self._read(answer).failure is None
            asker.note(readable=readable)
            if readable:
                break
        return False

    def _requests(self, messages: str, index: int) -> list[Request]:
        # Scores of fewer answers are made of the same ones.
        numbers = range(index, index + (self.task.retries + 1) * self.task.wanted[0], self.task.wanted[0])
        return [Request(self.task.family, messages, number) for number in numbers]


def _text_reader(task: Task) -> Callable[[Answer], Parsed]:
    # Judges answer few different texts to thousands of prompts.
    cached = lru_cache(maxsize=1 << 16)(partial(parse, form=task.variant.form))
    most = most_output(task.judge.parameters)

    def read(answer: Answer) -> Parsed:
        why = answer.unfinished
        if not answer.finish and most is not None and (answer.output_tokens or 0) >= most:
            why = CUT
        return Parsed({}, why) if why else cached(answer.text)

    return read


def _probabilities_reader(task: Task) -> Callable[[Answer], Parsed]:
    labels, main = task.labels, task.variant.form.main
    # The paper's value is relative to its labels, however probable they are; a rating has to be about to come.
    most_outside = 1.0 if task.variant.labels else _MOST_OUTSIDE

    def read(answer: Answer) -> Parsed:
        # No limit cuts what the first token says.
        if (why := answer.unfinished) not in (None, CUT):
            return Parsed({}, why)
        if not answer.text:
            return Parsed({}, "an empty answer")
        if without_thoughts(answer.text) != (answer.text.strip(), None):
            return Parsed({}, "the first token is of thoughts, not of an answer")
        try:
            value, outside = expected_value(answer.logprobs or {}, labels)
        except ValueError as error:
            return Parsed({}, str(error))
        if outside > most_outside:
            return Parsed({}, f"{outside:.0%} of the probability is outside the scale")
        return Parsed({main: value, OUTSIDE: outside})

    return read


def ask(
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
    judgements = Judgements(task)
    missing = list(filter(None, judgements.missing(answers, items, ask_again)))
    if not missing or task.silent:
        return None
    price, budget = FREE, None
    if task.service.paid:
        if most_output(task.judge.parameters) is None:
            raise ConfigError(
                "the length of answers has no limit, so that no budget can be kept",
                where=task.judge.name,
                expected="`max_tokens` or `max_completion_tokens` among the judge's parameters",
            )
        price, budget = find_price(task.judging.prices, task.judge.model or ""), task.judging.budget

    async def run() -> Report:
        asker = Asker(task, answers, price=price, budget=budget, accept_refused=accept_refused)
        with tqdm(missing, desc=task.name, unit="judgement", disable=None) as progress:
            jobs: Iterator[Job] = (partial(judgements.ask, asker, requests) for requests in progress)
            await asker.run(jobs)
        return asker.report

    with answers.asking():
        try:
            report = asyncio.run(run())
        except (KeyboardInterrupt, asyncio.CancelledError):
            hint = "All answers so far were kept: run it again to go on"
            raise InterruptedRunError("interrupted", hint=hint) from None
    report.check(task.name)
    return report


# --- tables ----------------------------------------------------------------------------------------------------------


@dataclass
class Judged:
    """How a judge rates items.

    Attributes
    ----------
    scores, judgements
        The tables.
    failures
        Why answers have no rating, with their number.
    lacking
        What items lack that the prompt needs, with their number.
    report
        Of the run; None if nothing was asked.
    """

    scores: pd.DataFrame
    judgements: pd.DataFrame
    failures: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    report: Report | None = None

    def __str__(self) -> str:
        keys = ["item_id", "system_id"]
        asked, scored = (len(table[keys].drop_duplicates()) for table in (self.judgements, self.scores))
        parts = [f"{scored:,} of {asked + self.lacking.total():,} items have scores"]
        parts += [f"{count:,} were not judged: {lacks}" for lacks, count in self.lacking.items()]
        if self.failures:
            reasons = "; ".join(f"{count:,} x {why}" for why, count in self.failures.most_common(3))
            parts.append(f"judgements without a rating: {reasons} (asked for again with --ask-again)")
        return f"{self.report or 'nothing was asked'}; {', '.join(parts)}"


def judge_items(
    task: Task,
    items: Sequence[Item],
    *,
    dataset: str,
    ask_again: Collection[str] = (),
    accept_refused: bool = False,
) -> Judged:
    """Have items judged, and make scores of it.

    A judge that costs money is asked only within the budget; without one, and of a judge that cannot be reached here, the
    answers must be there. A score is the mean of an item's judgements with a rating; an item without any has no score.

    Raises
    ------
    MissingAnswersError
        When answers are missing and the judge cannot be asked.
    ComperdialError
        When requests have no answer in the end, or no answer has a rating; all that came is kept.
    """
    with AnswerFile(task.judging.ledger, dataset) as answers:
        report = ask(task, items, answers, ask_again=ask_again, accept_refused=accept_refused)
        return replace(tables(task, items, answers), report=report)


def judge_tables(
    task: Task,
    folder: Path,
    *,
    dataset: str,
    turns: Turns | None = None,
    **asking: Any,  # noqa: ANN401
) -> Judged:
    """Have a data set's tables judged, as :func:`judge_items` judges items, and with its options.

    A task at dialogue level is given the scores of its turns: ``turns``, or those that the answers give.
    """
    if task.variant.turns and turns is None:
        turns = turn_scores(task, folder, dataset)
    items = items_of(task, folder, turns)
    return judge_items(task, items, dataset=dataset, **asking)


def turn_scores(task: Task, folder: Path, dataset: str) -> pd.DataFrame:
    """Return the scores of the turns that a task is given, from the answers that there are."""
    with AnswerFile(task.judging.ledger, dataset) as answers:
        return tables(task.turn_task, items_of(task.turn_task, folder), answers).scores


def tables(task: Task, items: Iterable[Item], answers: AnswerFile) -> Judged:
    """Return the tables of items whose answers are there; raises as :func:`judge_items`."""
    judgements, form = Judgements(task), task.variant.form
    failures, lacking = Counter[str](), Counter[str]()
    rows: list[dict[str, Any]] = []
    rated: list[tuple[Item, Mapping[str, float]]] = []
    missing: list[str] = []
    first = ""
    for item in items:
        if item.messages is None:
            lacking[str(item.lacks)] += 1
            continue
        made = [judgements.get(answers, item.messages, index) for index in range(task.samples)]
        missing += [f"{item.item_id}, {item.system_id}" for judgement in made if judgement.left]
        if missing:
            continue
        first = first or made[0].answers[0].text[:200]
        rows += [_row(task, item, judgement, sample) for sample, judgement in enumerate(made)]
        failures.update(judgement.parsed.failure for judgement in made if judgement.parsed.failure)
        rated.append((item, _means([judgement.parsed.values for judgement in made])))
    if missing:
        raise MissingAnswersError(
            f"{len(missing):,} judgements are missing, the first: {missing[0]}",
            where=task.name,
            expected="an answer for each",
            hint=f"Nothing was asked: {task.silent or 'see `comperdial judge run`'}",
        )
    scores = [
        (item.dataset, item.item_id, item.system_id, slug(name), values[name])
        for name in (*form.dimensions, OUTSIDE)
        for item, values in rated
        if name in values
    ]
    if rows and not scores:
        longer = ". Let answers be longer: `max_tokens` or `max_completion_tokens` (--max-tokens)"
        raise ComperdialError(
            f"none of {len(rows):,} answers has a rating, most for this reason: {failures.most_common(1)[0][0]}",
            where=task.name,
            expected=f"{form.main!r} from {form.low:g} to {form.high:g} in each",
            hint=f"The first answer: {first!r}{longer if CUT in failures else ''}. Ask for them again with "
            "--ask-again unreadable",
        )
    frame = pd.DataFrame(scores, columns=["dataset", "item_id", "system_id", "output", "value"])
    level, signature = task.variant.level, task.signature
    frame = frame.astype({"value": np.float32}).assign(level=level, metric=task.name, cut=0, signature=signature)
    return Judged(_checked(frame, "scores"), _checked(pd.DataFrame(rows), "judgements"), failures, lacking)


def _row(task: Task, item: Item, judgement: Judgement, sample: int) -> dict[str, Any]:
    """Return a row of table ``judgements``: what the last answer says, and what all of them took."""
    parsed, answers, main = judgement.parsed, judgement.answers, task.variant.form.main
    return {
        "dataset": item.dataset,
        "level": task.variant.level,
        "item_id": item.item_id,
        "system_id": item.system_id,
        "metric": task.name,
        "output": slug(main),
        "sample": sample,
        "key": judgement.key[:_KEY],
        "tries": len(answers),
        "value": parsed.values.get(main),
        "failure": parsed.failure,
        "rationale": parsed.rationale or None,
        "input_tokens": _sum([answer.input_tokens for answer in answers]),
        "output_tokens": _sum([answer.output_tokens for answer in answers]),
        "cost": _sum([answer.cost for answer in answers]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _means(ratings: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    if len(ratings) == 1:
        return ratings[0]
    names = dict.fromkeys(name for values in ratings for name in values)
    return {name: float(np.mean([values[name] for values in ratings if name in values])) for name in names}


def _checked(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a frame as a table, in the table's order of columns."""
    return schema.validate(frame[schema.table(name).columns], name) if len(frame) else schema.empty(name)
