"""The judgements of a task: build requests, parse answers, ask for missing ones, and make the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.terminal import money
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Report, ask
from comperdial.judges.items import Item, items_of
from comperdial.judges.parsing import Parsed, parse, without_thoughts
from comperdial.judges.prices import estimate_input, most_output
from comperdial.judges.probabilities import expected_value
from comperdial.judges.requests import CUT, Answer, MissingAnswersError, Request
from comperdial.judges.tasks import Task, slug

OUTSIDE = "outside"
"""The output that says how much of the probability was on no label."""
# Above this mass outside the scale, the answer is treated as not a rating.
_MOST_OUTSIDE = 0.5
# Length of an answer's key in a table, enough to find it.
_KEY = 10
# Estimated output tokens of a rating, and of a rationale.
_A_RATING, _A_RATIONALE = 6, 60


@dataclass(frozen=True)
class Judgement:
    """The answers to a request and its fresh samples, up to the first rating or refusal."""

    answers: Sequence[Answer]
    parsed: Parsed  # the last answer, parsed
    key: str  # key of the last answer's request
    left: Sequence[Request] = ()  # requests still to try for a rating


class Judgements:
    """The judgements of a task whose answers are in a file."""

    def __init__(self, task: Task, answers: AnswerFile) -> None:
        self.task, self._answers = task, answers
        # Judges give few distinct answers to thousands of prompts.
        self._parse = lru_cache(maxsize=1 << 16)(lambda text: parse(text, task.variant.form))

    def get(self, messages: str, index: int) -> Judgement:
        """Return judgement number ``index`` of a chat."""
        requests, given, parsed = self._requests(messages, index), list[Answer](), Parsed({})
        for number, request in enumerate(requests):
            if (answer := self._answers.get(request.key)) is None:
                return Judgement(given, parsed, request.key, requests[number:])
            given.append(answer)
            parsed = self.read(answer)
            if parsed.failure is None or answer.refused:
                break
        return Judgement(given, parsed, requests[len(given) - 1].key)

    def missing(self, items: Iterable[Item], *, ask_again: bool = False) -> list[Sequence[Request]]:
        """Return the remaining requests of each unfinished judgement.

        ``ask_again`` includes judgements that ended without a rating. Identical responses of several systems are asked about
        once.
        """
        seen: dict[tuple[str, int], Sequence[Request]] = {}
        for item in items:
            for index in range(self.task.samples if item.messages is not None else 0):
                chat = (str(item.messages), index)
                if chat not in seen:
                    known = self.get(*chat)
                    again = ask_again and not known.left and known.parsed.failure
                    seen[chat] = self._requests(*chat) if again else known.left
        return [requests for requests in seen.values() if requests]

    def read(self, answer: Answer) -> Parsed:
        """Parse an answer."""
        if self.task.judge.mode == "probabilities":
            return self._read_probabilities(answer)
        why, most = answer.unfinished, most_output(self.task.judge.parameters)
        if not answer.finish and most is not None and (answer.output_tokens or 0) >= most:
            why = CUT
        return Parsed({}, why) if why else self._parse(answer.text)

    def _read_probabilities(self, answer: Answer) -> Parsed:
        # The token limit does not affect the first token.
        if (why := answer.unfinished) not in (None, CUT):
            return Parsed({}, why)
        if not answer.text:
            return Parsed({}, "an empty answer")
        if without_thoughts(answer.text) != (answer.text.strip(), None):
            return Parsed({}, "the first token is of thoughts, not of an answer")
        try:
            value, outside = expected_value(answer.logprobs or {}, self.task.labels)
        except ValueError as error:
            return Parsed({}, str(error))
        # Zhang et al. normalise over the labels, however improbable; other variants require a likely rating.
        if outside > _MOST_OUTSIDE and not self.task.variant.labels:
            return Parsed({}, f"{outside:.0%} of the probability is outside the scale")
        return Parsed({self.task.variant.form.main: value, OUTSIDE: outside})

    def _requests(self, messages: str, index: int) -> list[Request]:
        # With the largest count as stride, scores of fewer answers reuse these requests.
        stride = self.task.wanted[0]
        numbers = range(index, index + (self.task.retries + 1) * stride, stride)
        return [Request(self.task.family, messages, number) for number in numbers]


@dataclass
class Judged:
    """A judge's ratings of items."""

    scores: pd.DataFrame  # table ``scores``
    judgements: pd.DataFrame  # table ``judgements``
    failures: Counter[str] = field(default_factory=Counter)  # reasons for answers without a rating
    lacking: Counter[str] = field(default_factory=Counter)  # missing fields that the prompt needs
    report: Report | None = None  # report of the run; None if no request was needed

    def __str__(self) -> str:
        keys = ["item_id", "system_id"]
        asked, scored = (len(table[keys].drop_duplicates()) for table in (self.judgements, self.scores))
        parts = [f"{scored:,} of {asked + self.lacking.total():,} items have scores"]
        parts += [f"{count:,} were not judged: {lacks}" for lacks, count in self.lacking.items()]
        if self.failures:
            reasons = "; ".join(f"{count:,} x {why}" for why, count in self.failures.most_common(3))
            parts.append(f"judgements without a rating: {reasons} (asked for again with --ask-again)")
        return f"{self.report or 'nothing was asked'}; {', '.join(parts)}"


def judge_items(task: Task, items: Sequence[Item], *, dataset: str, ask_again: bool = False) -> Judged:
    """Judge items and compute scores.

    A paid judge is asked only within the budget; without a budget, or if the judge cannot be reached, all answers must already
    be stored. A score is the mean of an item's judgements that have a rating; without any, the item has no score. ``ask_again``
    retries refusals and answers without a rating.

    Raises
    ------
    MissingAnswersError
        If answers are missing and the judge cannot be asked.
    ComperdialError
        If requests still fail after all retries, or no answer has a rating; the answers received are kept.
    """
    with AnswerFile(task.judging.ledger, dataset) as answers:
        judgements, report = Judgements(task, answers), None
        missing = judgements.missing(items, ask_again=ask_again)
        if missing and not task.why_not_asked:
            with answers.asking():
                report = ask(task, answers, lambda answer: judgements.read(answer).failure is None, missing)
        return replace(_tables(judgements, items), report=report)


def judge_tables(task: Task, folder: Path, *, dataset: str, ask_again: bool = False) -> Judged:
    """Judge a data set's tables; see :func:`judge_items`.

    A dialogue-level task uses the turn scores from the stored answers.
    """
    return judge_items(task, table_items(task, folder, dataset), dataset=dataset, ask_again=ask_again)


def table_items(task: Task, folder: Path, dataset: str) -> list[Item]:
    """Return a task's items of a data set; raise MissingAnswersError if it needs turn scores that do not exist yet."""
    if not task.variant.turns:
        return items_of(task, folder)
    with AnswerFile(task.judging.ledger, dataset) as answers:
        turns = _tables(Judgements(task.turn_task, answers), items_of(task.turn_task, folder))
    return items_of(task, folder, turns.scores)


class Estimate(NamedTuple):
    """The requests of a task without an answer, and their cost; retries of unreadable answers are extra."""

    requests: int
    read: int = 0  # input tokens
    written: int = 0
    cost: float = 0.0  # US dollars
    worst: float = 0.0  # amount reserved in the budget: a token per byte, and answers of maximum length
    unpriced: str | None = None  # why the cost is unknown
    free: bool = True

    def __str__(self) -> str:
        text = f"{self.requests:,} requests, about {self.read:,} tokens in and {self.written:,} out"
        if self.free or self.unpriced:
            return f"{text}, {self.unpriced or 'free'}"
        return f"{text}: {money(self.cost)}, at most {money(self.worst)}"


def estimate(task: Task, items: Iterable[Item], *, dataset: str, ask_again: bool = False) -> Estimate:
    """Count and price a task's unanswered requests without asking."""
    with AnswerFile(task.judging.ledger, dataset) as answers:
        missing = Judgements(task, answers).missing(items, ask_again=ask_again)
    chats = [requests[0].chat for requests in missing]
    read = sum(map(estimate_input, chats))
    written = (1 + _A_RATING * len(task.variant.form.dimensions) + _A_RATIONALE * task.explain) * len(chats)
    if not task.service.paid:
        return Estimate(len(chats), read, written)
    try:
        price = task.price
    except ConfigError as error:
        return Estimate(len(chats), read, written, unpriced=error.problem, free=False)
    worst = sum(price.at_worst(chat, task.judge.parameters) for chat in chats)
    return Estimate(len(chats), read, written, price.of(read, written), worst, free=False)


def _tables(judgements: Judgements, items: Iterable[Item]) -> Judged:
    """Return the tables of items with stored answers; raises the same errors as :func:`judge_items`."""
    task, form = judgements.task, judgements.task.variant.form
    failures, lacking = Counter[str](), Counter[str]()
    rows: list[dict[str, Any]] = []
    rated: list[tuple[Item, Mapping[str, float]]] = []
    missing: list[str] = []
    first = ""
    for item in items:
        if item.messages is None:
            lacking[str(item.lacks)] += 1
            continue
        made = [judgements.get(item.messages, index) for index in range(task.samples)]
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
            hint=f"Nothing was asked: {task.why_not_asked or 'see `comperdial judge run`'}",
        )
    scores = [
        (item.dataset, item.item_id, item.system_id, slug(name), values[name])
        for name in (*form.dimensions, OUTSIDE)
        for item, values in rated
        if name in values
    ]
    if rows and not scores:
        longer = ". Let answers be longer: `max_tokens` or `max_completion_tokens` (--parameter)"
        raise ComperdialError(
            f"none of {len(rows):,} answers has a rating, most for this reason: {failures.most_common(1)[0][0]}",
            where=task.name,
            expected=f"{form.main!r} from {form.low:g} to {form.high:g} in each",
            hint=f"The first answer: {first!r}{longer if CUT in failures else ''}. Ask for them again with --ask-again",
        )
    frame = pd.DataFrame(scores, columns=["dataset", "item_id", "system_id", "output", "value"])
    shared: dict[str, Any] = {"level": task.variant.level, "metric": task.name, "cut": 0, "signature": task.signature}
    frame = frame.astype({"value": np.float32}).assign(**shared)
    return Judged(_checked(frame, "scores"), _checked(pd.DataFrame(rows), "judgements"), failures, lacking)


def _row(task: Task, item: Item, judgement: Judgement, sample: int) -> dict[str, Any]:
    """Return a row of table ``judgements``: the last answer's content, and the tokens and cost of all answers."""
    parsed, answers, main = judgement.parsed, judgement.answers, task.variant.form.main
    used = {}
    for name in ("input_tokens", "output_tokens", "cost"):
        values = [getattr(answer, name) for answer in answers]
        used[name] = None if None in values else sum(values)
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
        **used,
    }


def _means(ratings: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    if len(ratings) == 1:
        return ratings[0]
    names = dict.fromkeys(name for values in ratings for name in values)
    return {name: float(np.mean([values[name] for values in ratings if name in values])) for name in names}


def _checked(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a frame as a table, with its column order."""
    return schema.validate(frame[schema.table(name).columns], name) if len(frame) else schema.empty(name)
