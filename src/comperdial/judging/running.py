"""Ask a judge what the ledger does not know yet, then make scores out of the ledger."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.errors import ComperdialError, ConfigError
from comperdial.judges.base import Completion, Family, Form, Parsed, key
from comperdial.judges.batch_files import BATCHES, committed, read_states
from comperdial.judges.client import Client
from comperdial.judges.ledger import Ledger
from comperdial.judges.limits import Limits
from comperdial.judges.parse import parse
from comperdial.judges.prices import Budget, Prices
from comperdial.judges.running import Report, Slot, run
from comperdial.judges.weighting import UnweightedError, expected_score_of_logs
from comperdial.judging.base import Judging, Task
from comperdial.judging.items import Item, dialogue_items, turn_items, whole_items
from comperdial.judging.scores import OUTSIDE, Judged, MissingJudgementsError, replay, scores_frame, slug
from comperdial.judging.tasks import family_of, labels, service_of, signature, step_of

MOST_OUTSIDE = 0.5
"""With more of the probability than this outside the scale, an answer was about to be no rating."""

CONCURRENCY = 16
"""Calls under way at a time, of a judge that does not say."""


def items_of(judging: Judging, task: Task, folder: str | Path, turns: pd.DataFrame | None = None) -> Iterator[Item]:
    """Yield what a task judges.

    Parameters
    ----------
    folder
        The data set's tables.
    turns
        Table ``scores`` of the task's turns, which a task at dialogue level needs.
    """
    prompt = judging.prompt(task)
    if task.variant.turns is None:
        make = whole_items if task.variant.level == "dialogue" else turn_items
        return make(folder, prompt)
    if turns is None:
        raise ConfigError(f"{task.name} needs the scores of {task.turns}", expected="--turns FILE")
    output = slug(judging.variants[task.variant.turns].form.main)
    return dialogue_items(folder, prompt, turns, output)


def reader(task: Task) -> Callable[[Completion], Parsed]:
    """Return what reads a task's answers: the text, or the probabilities of the scale's or the variant's labels."""
    form = task.variant.form
    if worth := task.variant.labels:
        # The paper's value is relative to the labels, however probable they are: how much is beside them is told apart.
        return functools.partial(_weighted, form=form, scale=worth, most_outside=1.0)
    if task.judge.mode == "probabilities":
        scale = {text: float(text) for text in labels(task)}
        return functools.partial(_weighted, form=form, scale=scale, most_outside=MOST_OUTSIDE)
    # Judges answer few different texts to thousands of prompts.
    cached = functools.lru_cache(maxsize=1 << 16)(functools.partial(parse, form=form))
    return lambda completion: cached(completion.text)


def slots(items: Iterable[Item], samples: int) -> Iterator[Slot]:
    """Yield the judgements that items need; those that lack something need none."""
    for item in items:
        if item.messages is not None:
            for index in range(samples):
                yield Slot(item.messages, index)


def ask(judging: Judging, task: Task, folder: str | Path, *, dataset: str, turns: pd.DataFrame | None = None) -> Report:
    """Ask a judge for every judgement of a task that the ledger does not hold.

    Parameters
    ----------
    folder, dataset, turns
        As in :func:`judge`.

    Raises
    ------
    ComperdialError
        When the judge cannot answer here, there is no budget for one that costs money, or judgements are missing in the
        end: says why, and keeps what came.
    """
    return ask_items(judging, task, lambda: items_of(judging, task, folder, turns), dataset=dataset)


def ask_or_skip(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> tuple[str, str]:
    """Ask as :func:`ask` does, unless the judge cannot be asked here and the ledger does not hold all of it.

    Returns
    -------
    why, said
        Why it is not run, a word of which is enough; else what came of it. One of the two is empty.

    Raises
    ------
    ComperdialError
        As :func:`ask`; and when the scores of turns that a dialogue is judged after are not there.
    """
    try:
        family = family_of(judging, task)
    except ComperdialError as error:
        return str(error), ""
    service = service_of(task)
    costs = f"not asked: {task.judge.model} costs money, and the budget is 0"
    why = costs if service.paid and not judging.budget else service.unavailable()
    turns = None
    if task.variant.turns:
        try:
            turns = judged_turns(judging, task, folder, dataset=dataset)
        except MissingJudgementsError:
            if why is None:
                raise
            return why, ""
    if why is None:
        return "", str(ask(judging, task, folder, dataset=dataset, turns=turns))
    try:
        shelf = Ledger(judging.ledger).shelf(dataset, family)
        replay(task, items_of(judging, task, folder, turns), shelf, reader(task), signature=signature(judging, task))
    except MissingJudgementsError:
        return why, ""
    return "", f"all from the ledger; nothing was asked: {why}"


def ask_items(judging: Judging, task: Task, items: Callable[[], Iterable[Item]], *, dataset: str) -> Report:
    """Ask as :func:`ask` does, about the items that a function makes; it is called more than once."""
    service, family = service_of(task), family_of(judging, task)
    if service.paid and not judging.budget:
        raise ConfigError(
            f"{task.judge.name} costs money, and the budget is 0",
            where="params.yaml, judging.budget",
            expected="US dollars that all answers in the ledger may cost together",
            hint="`comperdial judge plan` tells what this run would cost",
        )
    ledger, reached = Ledger(judging.ledger), task.judge.connection
    total = sum(item.messages is not None for item in items()) * task.samples
    with ExitStack() as stack:
        if service.paid:
            stack.enter_context(ledger.spending())
            _refuse_open(dataset, family)
        shelf = stack.enter_context(ledger.writing(dataset, family))
        report = run(
            slots(items(), task.samples),
            shelf=shelf,
            client=Client(service),
            samples=task.stride,
            retries=task.retries,
            parse=reader(task),
            parameters=family.parameters,
            concurrency=reached.get("concurrency", CONCURRENCY),
            limits=_limits(reached),
            price=Prices.read(judging.prices).find(task.judge.model) if service.paid else None,
            budget=Budget(judging.budget, committed(ledger)) if service.paid else None,
            total=total,
            progress=task.name,
        )
    report.check(task.name)
    return report


def _refuse_open(dataset: str, family: Family) -> None:
    """Refuse to ask what a batch that was submitted asks already: it would be paid twice."""
    for state in read_states(BATCHES):
        if state.open and state.dataset == dataset and state.family.id == family.id:
            raise ConfigError(
                f"a batch of these requests is under way ({state.name})",
                where=str(BATCHES),
                expected="its answers before anything else is asked",
                hint="`comperdial judge batch collect`",
            )


def _limits(reached: Mapping[str, Any]) -> Limits:
    given = {"requests": "requests_per_minute", "tokens": "tokens_per_minute", "attempts": "attempts"}
    return Limits(**{name: reached[key] for name, key in given.items() if key in reached})


def judged_turns(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> pd.DataFrame:
    """Return the scores of a task's turns as the ledger has them.

    Raises
    ------
    MissingJudgementsError
        When they are not all there: a dialogue is judged after its turns.
    """
    step = step_of(judging, task)
    shelf = Ledger(judging.ledger).shelf(dataset, family_of(judging, step))
    items = items_of(judging, step, folder)
    return replay(step, items, shelf, reader(step), signature=signature(judging, step)).scores


def turns_to_count(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> tuple[pd.DataFrame, bool]:
    """Return the scores of a task's turns for counting, and whether they are what the ledger has.

    Where it does not have them all, every turn counts as the middle of the scale: never to be judged by.
    """
    try:
        return judged_turns(judging, task, folder, dataset=dataset), True
    except MissingJudgementsError:
        step = step_of(judging, task)
        form = step.variant.form
        middle = {form.main: (form.low + form.high) / 2}
        stated = [(item, middle) for item in items_of(judging, step, folder) if item.messages]
        return scores_frame(step, stated, signature(judging, step)), False


def judge(
    judging: Judging,
    task: Task,
    folder: str | Path,
    *,
    dataset: str,
    turns: pd.DataFrame | None = None,
) -> Judged:
    """Ask for what the ledger lacks, as far as that is allowed, and make scores out of the ledger.

    A service that costs money is asked only within the budget; without one, and of a judge that cannot be reached here,
    the ledger must hold every judgement.

    Parameters
    ----------
    folder
        The data set's tables.
    dataset
        The data set's name: its part of the ledger.
    turns
        Table ``scores`` of the task's turns, at dialogue level.

    Raises
    ------
    ComperdialError
        When judgements are missing: names the first, and what to do.
    """
    return judge_items(judging, task, lambda: items_of(judging, task, folder, turns), dataset=dataset)


def judge_items(judging: Judging, task: Task, items: Callable[[], Iterable[Item]], *, dataset: str) -> Judged:
    """Judge as :func:`judge` does, the items that a function makes; it is called more than once."""
    read, family = reader(task), family_of(judging, task)
    service = service_of(task)
    may_ask = service.unavailable() is None and (not service.paid or judging.budget > 0)
    report = ask_items(judging, task, items, dataset=dataset) if may_ask else None
    shelf = Ledger(judging.ledger).shelf(dataset, family)
    made = replay(task, items(), shelf, read, signature=signature(judging, task))
    if made.scores.empty and len(made.judgements):
        reasons = made.judgements["failure"].value_counts()
        example = shelf.get(key(family.id, next(i.messages for i in items() if i.messages), 0))
        raise ComperdialError(
            f"none of {len(made.judgements)} answers can be read, most of them for this reason: {reasons.index[0]}",
            where=str(shelf.path),
            expected=f"{task.variant.form.main!r} from {task.variant.form.low:g} to {task.variant.form.high:g} in each",
            hint=f"The first answer: {example.completion.text[:200]!r}" if example else None,
        )
    return dataclasses.replace(made, report=report)


def _weighted(completion: Completion, form: Form, scale: Mapping[str, float], most_outside: float) -> Parsed:
    try:
        found = expected_score_of_logs(completion.logprobs or {}, scale)
    except UnweightedError as error:
        return Parsed({}, failure=error.problem)
    if found.outside > most_outside:
        return Parsed({}, failure=f"{found.outside:.0%} of the probability is outside the scale")
    return Parsed({form.main: found.value, OUTSIDE: found.outside})
