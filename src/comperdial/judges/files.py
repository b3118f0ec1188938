"""A user's own file of responses, as something to judge."""

from __future__ import annotations

from pathlib import Path

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.judges.items import Item, turn_item
from comperdial.judges.tasks import Judging, Task
from comperdial.metrics.score_files import read_records


def file_task(judging: Judging, variant: str, judge: str) -> Task:
    """Return the task that asks a variant of a judge, whatever roles the two have.

    Raises
    ------
    UnknownNameError
        When there is no such variant or judge.
    ConfigError
        When the variant rates dialogues: a file's records are responses, each by itself; or has labels, and the judge
        gives no probabilities.
    """
    turns = [name for name, entry in judging.variants.items() if entry.level == "turn"]
    if variant not in judging.variants:
        raise UnknownNameError("variant", variant, turns, where="--variant")
    if judge not in judging.judges:
        raise UnknownNameError("judge", judge, judging.judges, where="--judge")
    asked, who = judging.variants[variant], judging.judges[judge]
    if variant not in turns:
        raise ConfigError(
            f"{variant!r} rates whole dialogues, and a file holds single responses",
            where="--variant",
            expected=f"a variant at turn level: {', '.join(turns)}",
            hint="`comperdial judge run` rates the dialogues of a folder of tables",
        )
    if why := asked.unasked(who, any_role=True):
        raise ConfigError(
            f"{variant!r} is answered by a label",
            where="--judge",
            expected="a judge in mode probabilities",
            hint=why,
        )
    return Task(judging, who, asked, asked.counts(who)[0])


def file_items(task: Task, path: Path) -> list[Item]:
    """Return the responses of a JSONL, CSV or Parquet file as items of a task.

    Its columns are those of :func:`comperdial.metrics.score_files.read_records`. A history of plain texts is by two speakers
    who take turns: the last utterance before the response is A's, the one before that B's. The file's column ``dataset``,
    or else its name, names the data set.

    Raises
    ------
    SchemaError
        When the file breaks a rule, lacks a column that the prompt needs, or names several data sets.
    """
    records = read_records(path)
    # What is no text is refused in columns that the prompt does not use too: the same file holds for all variants.
    batch = records.batch()
    for number, history in enumerate(batch.histories, start=1):
        for utterance in history:
            if not str(utterance.get("speaker") or "").strip():
                problem = f"one of its history is {utterance!r}"
                raise SchemaError(problem, where=f"{path}, record {number}", expected="a text, or {speaker, text}")
    # Without facts the prompt says that there are none; without these two a whole file is more likely a mistake.
    needed = {"history": ("history", records.histories), "reference": ("references", records.references)}
    for field, (column, values) in needed.items():
        if field in task.prompt.fields and values is None:
            expected = f"one: the prompt {task.prompt.name} shows the {field}"
            raise SchemaError(f"no column {column!r}", where=str(path), expected=expected)
    responses = records.responses
    names = list(responses["dataset"].unique())
    if len(names) > 1:
        problem = f"{len(names)} data sets, among them {names[0]!r} and {names[1]!r}"
        raise SchemaError(problem, where=f"{path}, column 'dataset'", expected="one")
    keys = responses[["dataset", "context_id", "system_id", "response"]].itertuples(index=False, name=None)
    rows = zip(keys, batch.histories, batch.references, batch.facts, strict=True)
    return [
        turn_item(task.prompt, (dataset, context, system), response, history, references, facts)
        for (dataset, context, system, response), history, references, facts in rows
    ]
