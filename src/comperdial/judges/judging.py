"""Judgements of a task: their requests, what the answers say, asking for what is missing, and tables of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ComperdialError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Asker, Report
from comperdial.judges.items import Item, items_of
from comperdial.judges.parsing import Parsed, parse, without_thoughts
from comperdial.judges.prices import most_output
from comperdial.judges.probabilities import expected_value
from comperdial.judges.requests import CUT, Answer, MissingAnswersError, Request
from comperdial.judges.tasks import Task, slug

OUTSIDE = "outside"
"""The output that says how much of the probability was on no label."""
# With more of the probability outside the scale, an answer was about to be no rating.
_MOST_OUTSIDE = 0.5
# Characters of an answer's key in a table: enough to find it.
_KEY = 10


@dataclass(frozen=True)
class Judgement:
    """The answers to one request and to its fresh samples, up to the first with a rating, or to a refusal."""

    answers: Sequence[Answer]
    parsed: Parsed  # what the last answer says
    key: str  # of the request of the last answer
    left: Sequence[Request] = ()  # what is still to be asked until there is a rating


class Judgements:
    """The judgements of a task, as far as a file has their answers."""

    def __init__(self, task: Task, answers: AnswerFile) -> None:
        self.task, self._answers = task, answers
        # Judges answer few different texts to thousands of prompts.
        self._parse = lru_cache(maxsize=1 << 16)(lambda text: parse(text, task.variant.form))

    def get(self, messages: str, index: int) -> Judgement:
        """Return the ``index``-th judgement of a chat."""
        requests, given, parsed = self._requests(messages, index), list[Answer](), Parsed({})
        for number, request in enumerate(requests):
            if (answer := self._answers.get(request.key)) is None:
                return Judgement(given, parsed, request.key, requests[number:])
            given.append(answer)
            parsed = self.read(answer)
            if parsed.failure is None or answer.refused:
                break
        return Judgement(given, parsed, requests[len(given) - 1].key)

    def missing(self, items: Iterable[Item], *, ask_again: bool = False) -> Iterator[Sequence[Request]]:
        """Yield for each judgement what is to be asked until there is a rating; nothing if it has ended.

        ``ask_again`` asks again for what ended without a rating. What several systems answered alike is asked once.
        """
        seen: set[tuple[str, int]] = set()
        for item in items:
            for index in range(self.task.samples if item.messages is not None else 0):
                chat = (str(item.messages), index)
                known = self.get(*chat)
                ended = not known.left and known.parsed.failure
                left = self._requests(*chat) if ask_again and ended else known.left
                yield [] if chat in seen else left
                seen.add(chat)

    def read(self, answer: Answer) -> Parsed:
        """Return what an answer says."""
        if self.task.judge.mode == "probabilities":
            return self._read_probabilities(answer)
        why, most = answer.unfinished, most_output(self.task.judge.parameters)
        if not answer.finish and most is not None and (answer.output_tokens or 0) >= most:
            why = CUT
        return Parsed({}, why) if why else self._parse(answer.text)

    def _read_probabilities(self, answer: Answer) -> Parsed:
        # No limit cuts what the first token says.
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
        # Zhang et al.'s value is relative to its labels, however probable they are; a rating has to be about to come.
        if outside > _MOST_OUTSIDE and not self.task.variant.labels:
            return Parsed({}, f"{outside:.0%} of the probability is outside the scale")
        return Parsed({self.task.variant.form.main: value, OUTSIDE: outside})

    def _requests(self, messages: str, index: int) -> list[Request]:
        # Scores of fewer answers are made of the same ones.
        stride = self.task.wanted[0]
        numbers = range(index, index + (self.task.retries + 1) * stride, stride)
        return [Request(self.task.family, messages, number) for number in numbers]


@dataclass
class Judged:
    """How a judge rates items."""

    scores: pd.DataFrame  # the table
    judgements: pd.DataFrame  # the table
    failures: Counter[str] = field(default_factory=Counter)  # why answers have no rating
    lacking: Counter[str] = field(default_factory=Counter)  # what items lack that the prompt needs
    report: Report | None = None  # of the run; None if nothing was asked

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
    """Have items judged, and make scores of it.

    A judge that costs money is asked only within the budget; without one, and of a judge that cannot be reached here, the
    answers must be there. A score is the mean of an item's judgements with a rating; an item without any has no score.
    ``ask_again`` asks again for what was refused or has no rating.

    Raises
    ------
    MissingAnswersError
        When answers are missing and the judge cannot be asked.
    ComperdialError
        When requests have no answer in the end, or no answer has a rating; all that came is kept.
    """
    with AnswerFile(task.judging.ledger, dataset) as answers:
        judgements, report = Judgements(task, answers), None
        missing = list(filter(None, judgements.missing(items, ask_again=ask_again)))
        if missing and not task.why_not_asked:
            with answers.asking():
                asker = Asker(task, answers, lambda answer: judgements.read(answer).failure is None)
                report = asker.run(missing)
        return replace(_tables(judgements, items), report=report)


def judge_tables(task: Task, folder: Path, *, dataset: str, ask_again: bool = False) -> Judged:
    """Have a data set's tables judged, as :func:`judge_items` judges items.

    A task at dialogue level is given the scores of its turns that the answers give.
    """
    turns = turn_scores(task, folder, dataset) if task.variant.turns else None
    return judge_items(task, items_of(task, folder, turns), dataset=dataset, ask_again=ask_again)


def turn_scores(task: Task, folder: Path, dataset: str) -> pd.DataFrame:
    """Return the scores of the turns that a task is given, from the answers that there are."""
    with AnswerFile(task.judging.ledger, dataset) as answers:
        return _tables(Judgements(task.turn_task, answers), items_of(task.turn_task, folder)).scores


def _tables(judgements: Judgements, items: Iterable[Item]) -> Judged:
    """Return the tables of items whose answers are there; raises as :func:`judge_items`."""
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
