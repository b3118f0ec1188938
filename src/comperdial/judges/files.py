"""Have a user's own file of responses judged, as :func:`comperdial.metrics.score_files.score_file` scores one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from comperdial.config.checking import VariableName, checked
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data.own_files import spoken
from comperdial.judges.items import Item, context_values, turn_item
from comperdial.judges.prompting import Prompt
from comperdial.judges.scores import Judged, judge_items
from comperdial.judges.services import address
from comperdial.judges.tasks import ANY_ROLE, Judge, Judging, Task, sample_counts, unasked
from comperdial.metrics.score_files import Records, read_records

_NAME = re.compile("[a-z0-9][a-z0-9.-]*")


def server_judge(
    base_url: str, model: str, *, name: str | None = None, parameters: Mapping[str, Any], connection: Mapping[str, Any]
) -> Judge:
    """Return a judge that has no entry in ``params.yaml``: a model behind a server that speaks OpenAI's protocol.

    Its answers are those of this URL and model, whatever its name.

    Parameters
    ----------
    base_url, model
        Where the server listens, and what it calls the model.
    name
        What to call the judge; default: the model's name, with hyphens for what a judge's name cannot hold.
    parameters, connection
        As :class:`comperdial.judges.tasks.Judge` has them.

    Raises
    ------
    ConfigError
        When the URL or the name is not valid.
    """
    url = address(base_url)
    # Left out of the URL that identifies the judge, and a password would be seen by who lists processes.
    if re.search("[@?#]", base_url):
        raise ConfigError(
            "base_url has a user, a query or a fragment", expected=f"{url}, and a key in the variable that --key names"
        )
    made = name or re.sub("[^a-z0-9.-]+", "-", model.lower()).strip(".-")
    if not _NAME.fullmatch(made):
        raise ConfigError(
            f"{made!r} cannot name a judge" if name else f"no name can be made of the model's, {model!r}",
            where="--name",
            expected="lower-case letters, digits, dots and hyphens, beginning with a letter or a digit",
        )
    if (key := connection.get("key")) is not None:
        checked(VariableName, key, "--key")
    reached = {"base_url": url, **connection}
    return Judge(made, "openai", model, ANY_ROLE, "generate", parameters, None, reached, identity={"base_url": url})


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
    if variant not in judging.variants:
        known = [name for name, entry in judging.variants.items() if entry.level == "turn"]
        raise UnknownNameError("variant", variant, known, where="--variant")
    if judge not in judging.judges:
        raise UnknownNameError("judge", judge, judging.judges, where="--judge")
    asked, who = judging.variants[variant], judging.judges[judge]
    if asked.level != "turn":
        turns = ", ".join(name for name, known in judging.variants.items() if known.level == "turn")
        raise ConfigError(
            f"{variant!r} rates whole dialogues, and a file holds single responses",
            where="--variant",
            expected=f"a variant at turn level: {turns}",
            hint="`comperdial judge run` rates the dialogues of a folder of tables",
        )
    if asked.labels and (why := unasked(replace(asked, roles=()), who)):
        raise ConfigError(
            f"{variant!r} is answered by a label",
            where="--judge",
            expected="a judge in mode probabilities",
            hint=why,
        )
    return Task(who, asked, sample_counts(asked, who)[0])


def judge_file(
    judging: Judging,
    task: Task,
    path: str | Path,
    *,
    ask_again: Collection[str] = (),
    accept_refused: bool = False,
) -> Judged:
    """Have the responses of a JSONL, CSV or Parquet file judged.

    Its columns are those of :func:`comperdial.metrics.score_files.read_records`. A history of plain texts is by two speakers
    who take turns: the last utterance before the response is A's, the one before that B's. Of several references the
    prompt is given the first. A record without the reference that the prompt needs is not judged, and counted in
    ``lacking``; without history or facts the prompt says that there are none. The file's column ``dataset``, or else its
    name, names the data set.

    Raises
    ------
    SchemaError
        When the file breaks a rule, lacks a column that the prompt needs, or names several data sets.
    ComperdialError
        As in :func:`comperdial.judges.scores.judge_items`.
    """
    path = Path(path)
    prompt = judging.prompt(task)
    records = read_records(path)
    _check_entries(records, path)
    # Without facts the prompt says that there are none; without these two a whole file is more likely a mistake.
    needed = {"history": ("history", records.histories), "reference": ("references", records.references)}
    for field, (column, values) in needed.items():
        if field in prompt.fields and values is None:
            raise SchemaError(
                f"no column {column!r}", where=str(path), expected=f"one: the prompt {prompt.name} shows the {field}"
            )
    names = list(records.responses["dataset"].unique())
    if len(names) > 1:
        raise SchemaError(
            f"{len(names)} data sets, among them {names[0]!r} and {names[1]!r}",
            where=f"{path}, column 'dataset'",
            expected="one",
        )
    items = list(_items(records, prompt))
    return judge_items(judging, task, items, dataset=str(names[0]), ask_again=ask_again, accept_refused=accept_refused)


def _items(records: Records, prompt: Prompt) -> Iterator[Item]:
    responses = records.responses
    names = zip(responses["dataset"], responses["context_id"], responses["system_id"], strict=True)
    for row, (key, response) in enumerate(zip(names, responses["response"], strict=True)):
        history, references, facts = (
            [] if column is None else column[row] for column in (records.histories, records.references, records.facts)
        )
        yield turn_item(prompt, key, context_values(spoken(history), references, facts), response)


def _check_entries(records: Records, path: Path) -> None:
    """Refuse what is no text, in columns that the prompt does not use too: the same file holds for all variants."""
    columns = {"references": records.references, "history": records.histories, "facts": records.facts}
    for column, values in columns.items():
        for number, entries in enumerate(values or (), start=1):
            for entry in entries:
                said = [entry]
                if column == "history" and isinstance(entry, Mapping):
                    said = [entry.get("speaker"), entry.get("text")]
                if not all(isinstance(text, str) and text.strip() for text in said):
                    expected = "a text that is not empty" + (", or {speaker, text}" if column == "history" else "")
                    raise SchemaError(
                        f"one of its {column} is {entry!r}", where=f"{path}, record {number}", expected=expected
                    )
