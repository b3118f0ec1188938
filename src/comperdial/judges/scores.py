"""From judgements to scores: ask for what the ledger lacks, as far as that is allowed, and record how each came about."""

from __future__ import annotations

import itertools
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.ask import Asker, Judgement, Limits, Report, look
from comperdial.judges.base import CUT, Family, key
from comperdial.judges.items import Item, Turns, items_of
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import FREE, Prices
from comperdial.judges.tasks import (
    OUTSIDE,
    Judging,
    Task,
    family_of,
    reader,
    service_of,
    signature,
    slug,
    step_of,
    to_pay,
    unpaid,
)
from comperdial.schema.parquet import writing

log = logging.getLogger(__name__)

Judged = list[tuple[Item, list[Judgement]]]
Sink = Callable[[pd.DataFrame, pd.DataFrame], None]
"""Is handed tables ``scores`` and ``judgements`` of some thousand items at a time."""

# The most missing judgements that a message names.
_NAMED = 3
_LONGER = ". Let answers be longer: `max_tokens` or `max_completion_tokens` (--max-tokens, --parameter)"
# Characters of an answer's key: enough to find it in its family; a whole key would be most of what is kept.
_KEY = 10
_PART = 4096
# Judgements of shards that are read at once.
_ROWS = 65_536


class MissingJudgementsError(ComperdialError):
    """The ledger lacks judgements, and nothing may be asked."""


@dataclass
class Tally:
    """What came of a task.

    Attributes
    ----------
    scores, judgements
        How many rows there are.
    failures
        How many answers could not be read, for which reasons.
    lacking
        How many items lack what the prompt needs, and what.
    first
        How the first answer begins.
    report
        Of the run; None where nothing was asked.
    """

    scores: int = 0
    judgements: int = 0
    first: str | None = None
    failures: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    report: Report | None = None


@dataclass(frozen=True)
class Refusals:
    """What is done about requests that a service refuses for good: asked again, and kept however many there are."""

    retry: bool = False
    accept: bool = False


def judge_items(
    judging: Judging,
    task: Task,
    items: Iterable[Item],
    sink: Sink | None = None,
    *,
    dataset: str,
    shard: Shard = WHOLE,
    total: int | None = None,
    refusals: Refusals = Refusals(),
) -> Tally:
    """Have items judged, and make scores of it.

    A service that costs money is asked only within the budget; without one, and of a judge that cannot be reached here,
    the ledger must hold every judgement. A score is the mean of an item's judgements that could be read. One that could
    not, after the fresh samples that the variant allows, is left out and counted; an item without any has no score.

    Parameters
    ----------
    sink
        Is handed the tables; None where only the ledger matters.
    dataset
        The data set's name: its part of the ledger.
    shard
        Which requests.
    total
        About how many items there are, for the progress bar.

    Raises
    ------
    MissingJudgementsError
        When nothing may be asked and the ledger lacks a judgement; names the first ones.
    ComperdialError
        When judgements are missing in the end, or none can be read: says why, and keeps what came.
    """
    tally, family, said = Tally(), family_of(judging, task), signature(judging, task)

    def done(part: Judged) -> None:
        if sink is not None:
            sink(*_tables(task, part, tally, family.id, said))

    ledger = Ledger(judging.ledger, shard)
    if service_of(task).unavailable() is None and unpaid(judging, task) is None:
        tally.report = _ask(judging, task, items, done, ledger, dataset, total, refusals)
    else:
        _replay(task, items, done, ledger, dataset, family)
    if tally.judgements and not tally.scores:
        form = task.variant.form
        error = ComperdialError(
            _unread(tally.judgements, tally.failures),
            where=str(ledger.folder(dataset, family)),
            expected=f"{form.main!r} from {form.low:g} to {form.high:g} in each",
            hint=f"The first answer: {tally.first!r}{_LONGER if CUT in tally.failures else ''}",
        )
        if shard.count == 1:
            raise error
        # One shard cannot tell; it is an error where all are merged.
        log.warning("shard %s: %s", shard, error)
    return tally


def _ask(
    judging: Judging,
    task: Task,
    items: Iterable[Item],
    done: Callable[[Judged], None],
    ledger: Ledger,
    dataset: str,
    total: int | None,
    refusals: Refusals,
) -> Report:
    """Ask for what the ledger lacks; raise if something is missing still."""
    service, family, reached = service_of(task), family_of(judging, task), task.judge.connection
    price = FREE if not service.paid else None
    if service.paid and judging.prices.exists():
        price = Prices.read(judging.prices).find(task.judge.model)
    if price is None:
        raise ConfigError(
            f"the price of {task.judge.model} is not known", where=task.judge.name, hint=to_pay(judging, task)
        )
    given = {"requests": "requests_per_minute", "tokens": "tokens_per_minute", "attempts": "attempts"}
    limits = Limits(**{name: reached[option] for name, option in given.items() if option in reached})
    budget = judging.budget if service.paid else None
    with ledger.open(dataset, family, budget=budget, paid=service.paid) as writer:
        report = Asker(
            service,
            writer,
            parameters=family.parameters,
            read=reader(task),
            samples=task.samples,
            stride=task.stride,
            retries=task.retries,
            concurrency=reached.get("concurrency"),
            limits=limits,
            price=price,
            total=None if total is None else total * task.samples,
            progress=task.name,
            retry_refused=refusals.retry,
            accept_refused=refusals.accept,
        ).run(items, done)
    report.check(task.name)
    return report


def _replay(
    task: Task, items: Iterable[Item], done: Callable[[Judged], None], ledger: Ledger, dataset: str, family: Family
) -> None:
    """Make judgements out of the ledger alone."""
    rest, read = iter(items), reader(task)
    missing, named = 0, list[str]()
    with closing(ledger.answers(dataset, family)) as answers:
        while part := list(itertools.islice(rest, _PART)):
            judged: Judged = []
            for item in part:
                samples = range(task.samples if item.messages is not None else 0)
                found = [look(answers, str(item.messages), n, task.stride, task.retries, read) for n in samples]
                judged.append((item, found))
                lacking = [n for n, judgement in enumerate(found) if not judgement.ended]
                named += [f"{item.item_id}, {item.system_id}, sample {n}" for n in lacking[: _NAMED - len(named)]]
                missing += len(lacking)
            # What there is would be no table without the rest.
            if not missing:
                done(judged)
    if missing:
        raise MissingJudgementsError(
            f"{missing} judgements are missing, the first: {'; '.join(named)}",
            where=str(answers.path),
            expected=f"an answer of {task.judge.name} to {task.variant.name} for each",
            hint="`comperdial judge plan` tells what they cost, `comperdial judge run` asks for them",
        )


def _unread(judgements: int, failures: Counter[str]) -> str:
    reason = failures.most_common(1)[0][0]
    return f"none of {judgements} answers can be read, most of them for this reason: {reason}"


# --- tables ------------------------------------------------------------------------------------------------------------


def _tables(task: Task, part: Judged, tally: Tally, family: str, signature: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tables ``scores`` and ``judgements`` of some items, and count."""
    rows: list[dict[str, Any]] = []
    values: list[tuple[Item, Mapping[str, float]]] = []
    main = task.variant.form.main
    shared = {"level": task.variant.level, "metric": task.name, "output": slug(main)}
    for item, judgements in part:
        if item.messages is None:
            tally.lacking[str(item.lacks)] += 1
            continue
        of_item = {"dataset": item.dataset, "item_id": item.item_id, "system_id": item.system_id, **shared}
        found = []
        for sample, judgement in enumerate(judgements):
            answer, parsed = judgement.tries[-1]
            # Tries that could not be read were paid for as well.
            tried = [each for each, _ in judgement.tries]
            tally.first = tally.first or tried[0].completion.text[:200]
            rows.append(
                {
                    **of_item,
                    "sample": sample,
                    "key": key(family, item.messages, answer.sample)[:_KEY],
                    "tries": len(tried),
                    "value": parsed.values.get(main) if parsed.failure is None else None,
                    "failure": parsed.failure,
                    "rationale": parsed.rationale or None,
                    "input_tokens": known_sum([each.completion.input_tokens for each in tried]),
                    "output_tokens": known_sum([each.completion.output_tokens for each in tried]),
                    "cost": known_sum([each.cost for each in tried]),
                }
            )
            if parsed.failure is None:
                found.append(parsed.values)
            else:
                tally.failures[parsed.failure] += 1
        values.append((item, _means(found)))
    scores = scores_frame(task, values, signature)
    judgements_table = schema.validate(pd.DataFrame(rows, columns=schema.table("judgements").columns), "judgements")
    tally.scores += len(scores)
    tally.judgements += len(judgements_table)
    return scores, judgements_table


def _means(found: list[Mapping[str, float]]) -> Mapping[str, float]:
    if len(found) == 1:
        return found[0]
    names = dict.fromkeys(name for values in found for name in values)
    return {name: float(np.mean([values[name] for values in found if name in values])) for name in names}


def known_sum(values: Sequence[float | None]) -> float | None:
    """Return a sum; None where a value is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def scores_frame(task: Task, values: Sequence[tuple[Item, Mapping[str, float]]], signature: str) -> pd.DataFrame:
    """Lay out what each item was rated as table ``scores``, one output a rating."""
    names = [*task.variant.form.dimensions, *([OUTSIDE] if task.judge.mode == "probabilities" else [])]
    rows = [
        (item.dataset, item.item_id, item.system_id, output, rated[name])
        for name, output in zip(names, map(slug, names), strict=True)
        for item, rated in values
        if name in rated
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "item_id", "system_id", "output", "value"])
    shared: dict[str, Any] = {"level": task.variant.level, "metric": task.name, "cut": 0, "signature": signature}
    frame = frame.astype({"value": np.float32}).assign(**shared)[schema.table("scores").columns]
    return schema.validate(frame, "scores") if rows else schema.empty("scores")


def in_memory(judge: Callable[[Sink], Tally]) -> tuple[pd.DataFrame, pd.DataFrame, Tally]:
    """Return tables ``scores`` and ``judgements`` of what a function hands to its sink, and what it returns."""
    parts: dict[str, list[pd.DataFrame]] = {"scores": [], "judgements": []}

    def sink(*tables: pd.DataFrame) -> None:
        for made, table in zip(parts.values(), tables, strict=True):
            made += [table] if len(table) else []

    tally = judge(sink)
    scores, judgements = (
        pd.concat(made, ignore_index=True) if made else schema.empty(name) for name, made in parts.items()
    )
    return scores, judgements, tally


def write_judged(
    judging: Judging,
    task: Task,
    folder: str | Path,
    scores: str | Path,
    judgements: str | Path,
    *,
    dataset: str,
    turns: Turns | None = None,
    shard: Shard = WHOLE,
) -> Tally:
    """Have a data set's tables judged as :func:`judge_items` does, into two Parquet files, in memory that does not grow.

    A task at dialogue level is given the scores of its turns.
    """
    made = f"{task.name} ({signature(judging, task)})"
    with (
        writing(scores, "scores", shard, made) as add,
        writing(judgements, "judgements", shard, made) as add_how,
    ):

        def sink(rated: pd.DataFrame, how: pd.DataFrame) -> None:
            add(rated)
            add_how(how)

        return judge_items(
            judging,
            task,
            items_of(judging, task, folder, turns, shard),
            sink,
            dataset=dataset,
            shard=shard,
            total=_about(task, folder, shard),
        )


def _about(task: Task, folder: str | Path, shard: Shard) -> int | None:
    """Return about how many items a data set has; None where only counting them tells."""
    if task.variant.level == "dialogue":
        return None
    count = schema.count(Path(folder) / "responses.parquet", "responses")
    return min(count, task.judge.items or count) // shard.count


def merge_judged(
    scores: Sequence[str | Path], judgements: Sequence[str | Path], output: str | Path, output_judgements: str | Path
) -> None:
    """Merge the tables of all shards as :func:`comperdial.schema.merge` does.

    Raises
    ------
    ComperdialError
        When none of all shards' answers can be read: one shard cannot tell that.
    SchemaError
        When a table breaks its rules, two shards are of the same requests, or scores and judgements are of different
        shards.
    """
    asked = sum(schema.count(path, "judgements") for path in judgements)
    if asked and not sum(schema.count(path, "scores") for path in scores):
        parts = (part for path in judgements for part in schema.read_parts(path, "judgements", _ROWS))
        failures = Counter(reason for part in parts for reason in part["failure"].dropna())
        if not failures:
            raise SchemaError(
                "no scores, and judgements with ratings", where=str(scores[0]), expected="both of the same shards"
            )
        raise ComperdialError(
            _unread(asked, failures),
            where=str(Path(judgements[0]).parent),
            expected="a rating in each",
            hint="The shards' warnings show an answer",
        )
    schema.merge(judgements, output_judgements)
    schema.merge(scores, output)


# --- asking without tables ---------------------------------------------------------------------------------------------


def ask_or_skip(
    judging: Judging,
    task: Task,
    folder: str | Path,
    *,
    dataset: str,
    shard: Shard = WHOLE,
    refusals: Refusals = Refusals(),
) -> tuple[str, str]:
    """Ask for what the ledger lacks, unless the judge cannot be asked here and the ledger does not hold all of it.

    Dialogues that are judged after their turns wait, in a shard, until the ledger holds those of all shards.

    Returns
    -------
    why, said
        Why it is not run, a word of which is enough; else what came of it. One of the two is empty.

    Raises
    ------
    ComperdialError
        As :func:`judge_items`; and when the scores of turns that a dialogue is judged after are not there, without
        shards.
    """
    try:
        family_of(judging, task)
    except ComperdialError as error:
        return str(error), ""
    costs = unpaid(judging, task)
    why = f"not asked: {costs}" if costs else service_of(task).unavailable()
    with tempfile.TemporaryDirectory() as place:
        turns = Path(place) / "turns.parquet" if task.variant.turns else None
        try:
            if turns:
                with writing(turns, "scores") as add:
                    _replay_turns(judging, task, folder, dataset, lambda scores, _: add(scores))
        except MissingJudgementsError as error:
            if why is None and shard.count == 1:
                raise
            return why or f"its turns are not all judged yet ({error.problem}); run it again then", ""
        try:
            tally = judge_items(
                judging,
                task,
                items_of(judging, task, folder, turns, shard),
                dataset=dataset,
                shard=shard,
                total=_about(task, folder, shard),
                refusals=refusals,
            )
        except MissingJudgementsError:
            return str(why), ""
    return "", str(tally.report) if tally.report else f"all from the ledger; nothing was asked: {why}"


def _replay_turns(judging: Judging, task: Task, folder: str | Path, dataset: str, sink: Sink) -> Tally:
    """Hand on what the ledger has of the turns that a task needs the scores of."""
    step, tally = step_of(judging, task), Tally()
    family, said = family_of(judging, step), signature(judging, step)
    _replay(
        step,
        items_of(judging, step, folder),
        lambda part: sink(*_tables(step, part, tally, family.id, said)),
        Ledger(judging.ledger),
        dataset,
        family,
    )
    return tally


def turns_to_count(judging: Judging, task: Task, folder: str | Path, *, dataset: str) -> tuple[pd.DataFrame, bool]:
    """Return the scores of a task's turns for counting, and whether they are what the ledger has.

    Where it does not have them all, every turn counts as the middle of the scale: never to be judged by.
    """
    try:
        return in_memory(lambda sink: _replay_turns(judging, task, folder, dataset, sink))[0], True
    except MissingJudgementsError:
        step = step_of(judging, task)
        form = step.variant.form
        middle = {form.main: (form.low + form.high) / 2}
        stated = [(item, middle) for item in items_of(judging, step, folder) if item.messages]
        return scores_frame(step, stated, signature(judging, step)), False
