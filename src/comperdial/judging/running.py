"""Ask a judge what the ledger does not know yet, then make scores out of the ledger."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.base import key
from comperdial.judges.ledger import Ledger, Shelf
from comperdial.judges.running import Report
from comperdial.judging.asking import ask_items
from comperdial.judging.base import Judging, Task
from comperdial.judging.items import Item, dialogue_items, of_shard, turn_items, whole_items
from comperdial.judging.merging import unread
from comperdial.judging.reading import reader
from comperdial.judging.scores import (
    Judged,
    MissingJudgementsError,
    Tally,
    joined,
    replay,
    replay_parts,
    scores_frame,
    slug,
)
from comperdial.judging.tasks import family_of, service_of, signature, step_of, unpaid
from comperdial.schema.parquet import writing

log = logging.getLogger(__name__)

Turns = pd.DataFrame | str | Path
"""Table ``scores`` of the turns that a dialogue is judged after, or a file with it."""


def items_of(
    judging: Judging, task: Task, folder: str | Path, turns: Turns | None = None, shard: Shard = WHOLE
) -> Iterator[Item]:
    """Yield what a task judges.

    Parameters
    ----------
    folder
        The data set's tables.
    turns
        The scores of the task's turns, which a task at dialogue level needs.
    shard
        Which requests: only their items.
    """
    prompt = judging.prompt(task)
    if task.variant.turns is None:
        make = whole_items if task.variant.level == "dialogue" else turn_items
        return of_shard(make(folder, prompt), shard)
    if turns is None:
        raise ConfigError(f"{task.name} needs the scores of {task.turns}", expected="--turns FILE")
    output = slug(judging.variants[task.variant.turns].form.main)
    return of_shard(dialogue_items(folder, prompt, turns, output), shard)


def ask(
    judging: Judging,
    task: Task,
    folder: str | Path,
    *,
    dataset: str,
    turns: Turns | None = None,
    shard: Shard = WHOLE,
) -> Report:
    """Ask a judge for every judgement of a task that the ledger does not hold.

    Parameters
    ----------
    folder, dataset, turns, shard
        As in :func:`judge`.

    Raises
    ------
    ComperdialError
        When the judge cannot answer here, there is no budget for one that costs money, or judgements are missing in the
        end: says why, and keeps what came.
    """
    return ask_items(judging, task, lambda: items_of(judging, task, folder, turns, shard), dataset=dataset, shard=shard)


def ask_or_skip(
    judging: Judging, task: Task, folder: str | Path, *, dataset: str, shard: Shard = WHOLE
) -> tuple[str, str]:
    """Ask as :func:`ask` does, unless the judge cannot be asked here and the ledger does not hold all of it.

    Dialogues that are judged after their turns wait, in a shard, until the ledger holds those of all shards.

    Returns
    -------
    why, said
        Why it is not run, a word of which is enough; else what came of it. One of the two is empty.

    Raises
    ------
    ComperdialError
        As :func:`ask`; and when the scores of turns that a dialogue is judged after are not there, without shards.
    """
    try:
        family = family_of(judging, task)
    except ComperdialError as error:
        return str(error), ""
    costs = unpaid(judging, task)
    why = f"not asked: {costs}" if costs else service_of(task).unavailable()
    with ExitStack() as stack:
        turns = None
        if task.variant.turns:
            turns = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "turns.parquet"
            try:
                _write_turns(judging, task, folder, turns, dataset=dataset)
            except MissingJudgementsError as error:
                if why is None and shard.count == 1:
                    raise
                return why or f"its turns are not all judged yet ({error.problem}); run it again then", ""
        if why is None:
            return "", str(ask(judging, task, folder, dataset=dataset, turns=turns, shard=shard))
        try:
            shelf = Ledger(judging.ledger).shelf(dataset, family, shard)
            items = items_of(judging, task, folder, turns, shard)
            for _ in replay_parts(task, items, shelf, reader(task), Tally(), signature=signature(judging, task)):
                pass
        except MissingJudgementsError:
            return why, ""
    return "", f"all from the ledger; nothing was asked: {why}"


def _write_turns(judging: Judging, task: Task, folder: str | Path, path: Path, *, dataset: str) -> None:
    """Write the scores of a task's turns as the ledger has them, as :func:`judged_turns` returns them."""
    step = step_of(judging, task)
    shelf = Ledger(judging.ledger).shelf(dataset, family_of(judging, step))
    items = items_of(judging, step, folder)
    with writing(path, "scores") as add:
        for scores, _ in replay_parts(step, items, shelf, reader(step), Tally(), signature=signature(judging, step)):
            add(scores)


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
    turns: Turns | None = None,
    shard: Shard = WHOLE,
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
        The scores of the task's turns, at dialogue level.
    shard
        Which requests.

    Raises
    ------
    ComperdialError
        When judgements are missing: names the first, and what to do.
    """
    return judge_items(
        judging, task, lambda: items_of(judging, task, folder, turns, shard), dataset=dataset, shard=shard
    )


def judge_items(
    judging: Judging, task: Task, items: Callable[[], Iterable[Item]], *, dataset: str, shard: Shard = WHOLE
) -> Judged:
    """Judge as :func:`judge` does, the items that a function makes; it is called more than once."""
    tally = Tally()
    return joined(list(_judged(judging, task, items, tally, dataset=dataset, shard=shard)), tally)


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
    """Judge as :func:`judge` does, into two Parquet files, in memory that does not grow with the responses.

    In a shard none of whose answers can be read that is a warning; it is an error where all shards are merged
    (:func:`comperdial.judging.merging.merge_judged`), as it is without shards.
    """
    tally = Tally()

    def items() -> Iterator[Item]:
        return items_of(judging, task, folder, turns, shard)

    made = f"{task.name} ({signature(judging, task)})"
    with (
        writing(scores, "scores", shard, made) as add,
        writing(judgements, "judgements", shard, made) as add_how,
    ):
        for rated, how in _judged(judging, task, items, tally, dataset=dataset, shard=shard):
            add(rated)
            add_how(how)
    return tally


def _judged(
    judging: Judging, task: Task, items: Callable[[], Iterable[Item]], tally: Tally, *, dataset: str, shard: Shard
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Ask, then yield tables ``scores`` and ``judgements`` part by part."""
    family = family_of(judging, task)
    if service_of(task).unavailable() is None and unpaid(judging, task) is None:
        tally.report = ask_items(judging, task, items, dataset=dataset, shard=shard)
    shelf = Ledger(judging.ledger).shelf(dataset, family, shard)
    yield from replay_parts(task, items(), shelf, reader(task), tally, signature=signature(judging, task))
    if tally.judgements and not tally.scores:
        error = _nothing_read(task, items(), shelf, tally)
        if shard.count == 1:
            raise error
        log.warning("shard %s: %s", shard, error)


def _nothing_read(task: Task, items: Iterable[Item], shelf: Shelf, tally: Tally) -> ComperdialError:
    example = shelf.get(key(shelf.family.id, next(i.messages for i in items if i.messages), 0))
    return ComperdialError(
        unread(tally.judgements, tally.failures),
        where=str(shelf.path),
        expected=f"{task.variant.form.main!r} from {task.variant.form.low:g} to {task.variant.form.high:g} in each",
        hint=f"The first answer: {example.completion.text[:200]!r}" if example else None,
    )
