"""From answers to tables: ``scores``, and ``judgements`` that record how each score came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ComperdialError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.asking import Report
from comperdial.judges.items import Item, Turns, items_of
from comperdial.judges.judging import OUTSIDE, Judgement, Judgements, ask
from comperdial.judges.requests import CUT, MissingAnswersError
from comperdial.judges.tasks import Judging, Task, signature, silent, slug, step_of

# Characters of an answer's key in a table: enough to find it.
_KEY = 10


@dataclass
class Judged:
    """What a judge says of items.

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


def judge_items(
    judging: Judging,
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
    with AnswerFile(judging.ledger, dataset) as answers:
        report = ask(judging, task, items, answers, ask_again=ask_again, accept_refused=accept_refused)
        found = tables(judging, task, items, answers)
    found.report = report
    return found


def tables(judging: Judging, task: Task, items: Iterable[Item], answers: AnswerFile) -> Judged:
    """Return the tables of items whose answers are there.

    Raises
    ------
    MissingAnswersError
        When answers are missing.
    ComperdialError
        When no answer has a rating.
    """
    judgements, form = Judgements(judging, task), task.variant.form
    failures, lacking = Counter[str](), Counter[str]()
    rows: list[dict[str, Any]] = []
    rated: list[tuple[Item, Mapping[str, float]]] = []
    missing: list[str] = []
    first = ""
    for item in items:
        if item.messages is None:
            lacking[str(item.lacks)] += 1
            continue
        found = [judgements.get(answers, item.messages, index) for index in range(task.samples)]
        missing += [f"{item.item_id}, {item.system_id}" for judgement in found if not judgement.ended]
        if missing:
            continue
        first = first or found[0].tries[0].answer.text[:200]
        rows += [_row(task, item, judgement, sample) for sample, judgement in enumerate(found)]
        failures.update(why for judgement in found if (why := judgement.tries[-1].parsed.failure))
        rated.append((item, _means([judgement.tries[-1].parsed.values for judgement in found])))
    if missing:
        raise MissingAnswersError(
            f"{len(missing):,} judgements are missing, the first: {missing[0]}",
            where=task.name,
            expected="an answer for each",
            hint=f"Nothing was asked: {silent(judging, task) or 'see `comperdial judge run`'}",
        )
    names = [*form.dimensions, *([OUTSIDE] if task.judge.mode == "probabilities" else [])]
    scores = [
        (item.dataset, item.item_id, item.system_id, slug(name), values[name])
        for name in names
        for item, values in rated
        if name in values
    ]
    if rows and not scores:
        hint = (
            ". Let answers be longer: `max_tokens` or `max_completion_tokens` (--max-tokens)" if CUT in failures else ""
        )
        raise ComperdialError(
            f"none of {len(rows):,} answers has a rating, most for this reason: {failures.most_common(1)[0][0]}",
            where=task.name,
            expected=f"{form.main!r} from {form.low:g} to {form.high:g} in each",
            hint=f"The first answer: {first!r}{hint}. Ask for them again with --ask-again unreadable",
        )
    frame = pd.DataFrame(scores, columns=["dataset", "item_id", "system_id", "output", "value"])
    shared: dict[str, Any] = {
        "level": task.variant.level,
        "metric": task.name,
        "cut": 0,
        "signature": signature(judging, task),
    }
    frame = frame.astype({"value": np.float32}).assign(**shared)
    return Judged(_checked(frame, "scores"), _checked(pd.DataFrame(rows), "judgements"), failures, lacking)


def write_judged(
    judging: Judging,
    task: Task,
    folder: Path,
    scores: Path | None,
    judgements: Path | None,
    *,
    dataset: str,
    turns: Turns | None = None,
    ask_again: Collection[str] = (),
    accept_refused: bool = False,
) -> Judged:
    """Have a data set's tables judged, and write the scores and how they came about.

    A task at dialogue level is given the scores of its turns: ``turns``, or those that the answers give.
    """
    if task.variant.turns and turns is None:
        turns = turn_scores(judging, task, folder, dataset)
    items = items_of(judging, task, folder, turns)
    found = judge_items(judging, task, items, dataset=dataset, ask_again=ask_again, accept_refused=accept_refused)
    for path, table, name in ((scores, found.scores, "scores"), (judgements, found.judgements, "judgements")):
        if path:
            schema.write(path, table, name)
    return found


def turn_scores(judging: Judging, task: Task, folder: Path, dataset: str) -> pd.DataFrame:
    """Return the scores of the turns that a task is given, from the answers that there are.

    Raises
    ------
    MissingAnswersError
        When some are missing.
    """
    step = step_of(judging, task)
    with AnswerFile(judging.ledger, dataset) as answers:
        return tables(judging, step, items_of(judging, step, folder), answers).scores


def _row(task: Task, item: Item, judgement: Judgement, sample: int) -> dict[str, Any]:
    """Return a row of table ``judgements``: the last try, and what all of them took."""
    last, tries = judgement.tries[-1], [tried.answer for tried in judgement.tries]
    return {
        "dataset": item.dataset,
        "level": task.variant.level,
        "item_id": item.item_id,
        "system_id": item.system_id,
        "metric": task.name,
        "output": slug(task.variant.form.main),
        "sample": sample,
        "key": last.request.key[:_KEY],
        "tries": len(tries),
        "value": last.parsed.values.get(task.variant.form.main),
        "failure": last.parsed.failure,
        "rationale": last.parsed.rationale or None,
        "input_tokens": _sum([answer.input_tokens for answer in tries]),
        "output_tokens": _sum([answer.output_tokens for answer in tries]),
        "cost": _sum([answer.cost for answer in tries]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _means(found: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    if len(found) == 1:
        return found[0]
    names = dict.fromkeys(name for values in found for name in values)
    return {name: float(np.mean([values[name] for values in found if name in values])) for name in names}


def _checked(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a frame as a table, in the table's order of columns."""
    return schema.validate(frame[schema.table(name).columns], name) if len(frame) else schema.empty(name)
