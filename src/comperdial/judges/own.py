"""Judging a file of one's own: what is asked of whom, and what may be spent on it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config.checking import checked
from comperdial.config.registry import registered
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.data.columns import NAMES, lay_out
from comperdial.data.files import File, read_file
from comperdial.data.own_files import plain
from comperdial.data.readers.table import read_content
from comperdial.judges import prompting
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import COLUMN, Item, responses_of
from comperdial.judges.judging import Estimate, estimate, judge_items
from comperdial.judges.prices import price_of
from comperdial.judges.requests import JudgeError
from comperdial.judges.services import address
from comperdial.judges.services.openai import SERVERS
from comperdial.judges.services.rules import form_of
from comperdial.judges.tasks import DEFAULT, Judge, Judging, Task, Variant
from comperdial.metrics.score_files import read_records

NO_JUDGES = Judging({}, {}, {DEFAULT: ()}, Path("data/ledger"), Path("data/prices.yaml"), 0.0)
# Words for a scale in a template: "from 1 to 5", "(1-5)", "on a scale of 1 (worst) to 10".
_SCALE = re.compile(
    r"(?:from|between|of|scale|\()\s*(\d{1,3})(?:\s*\([^)]*\)|\s*=[^,;.]*)?\s*(?:-|–|to|and)\s*(\d{1,3})\b",
    re.IGNORECASE,
)
# The column that the file must have for a field of a prompt. Without facts the prompt says that there are none.
_NEEDED = {"history": "history", "reference": "references"}
_FIELDS = {"history": "history", "response": "response", "references": "reference", "facts": "fact"}


def judge(
    data: Any,  # noqa: ANN401 - `Data` of a room above
    *,
    prompt: str = "cpds-d",
    model: str | None = None,
    server: str = "openai",
    price: tuple[float, float] | None = None,
    budget: float | None = None,
    yes: bool = False,
    parameters: Mapping[str, Any] | None = None,
    samples: int | None = None,
    ratings: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
    columns: Mapping[str, Any] | None = None,
    sheet: str | None = None,
    key: str | None = None,
    ask_again: bool = False,
    answers: str | Path = NO_JUDGES.ledger,
) -> pd.DataFrame:
    """Have responses rated by a language model, as ``comperdial judge file`` does.

    Each answer is kept, and never paid for twice: run it again to go on after an interruption.

    Parameters
    ----------
    data
        What :func:`comperdial.read` returns, or a file or frame of any common form: a row a response.
    prompt
        A rubric (``comperdial prompts`` lists them), or the path of a template of your own with placeholders such as
        ``{{ history }}`` and ``{{ response }}``.
    model
        The model, as the server calls it.
    server
        ``openai``, ``azure``, ``ollama``, ``vllm``, ``llama.cpp``, the URL of another one, or ``rules``: a program that
        counts words, for trying things out.
    price
        US dollars per million tokens of input and of output.
    budget
        US dollars that all answers in the file may cost together.
    yes
        Spend what the estimate says at most, without a budget.
    parameters
        Sent with each request, such as ``{"max_completion_tokens": 4000}``.
    samples
        How many answers a score is the mean of; default: the rubric's, or 1.
    ratings, scale
        Of a template of your own: the names of the ratings in an answer, and the lowest and highest possible; default: those
        that the template's form and words say.
    columns, sheet
        How a file is read: our names of columns -> the file's; which sheet of a workbook.
    key
        The environment variable with the key; default: the server's usual one.
    ask_again
        Ask again what was refused, or has no rating.
    answers
        The SQLite file of answers, or its folder.

    Returns
    -------
    DataFrame
        Table ``scores``: ``item_id`` (the context), ``system_id``, ``metric``, ``output`` (the rating), ``value``, …; a
        response without a readable answer has no score.

    Raises
    ------
    ComperdialError
        When the data cannot be read, the judge cannot be asked, asking costs money and there is neither ``budget`` nor
        ``yes``, or no answer has a rating.

    Examples
    --------
    >>> import comperdial, pandas as pd, tempfile
    >>> tea = pd.DataFrame({"system": ["a", "b"], "response": ["Green tea, every morning. And you?", "Yes yes yes."]})
    >>> tea["history"] = [["Do you like tea?"]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = comperdial.judge(tea, prompt="cpds-d", server="rules", answers=folder)
    >>> scores[["system_id", "output", "value"]].to_dict("records")
    [{'system_id': 'a', 'output': 'humanness', 'value': 4.5}, {'system_id': 'b', 'output': 'humanness', 'value': 1.0}]
    """
    who = own_judge(server, model, price=price, parameters=parameters, key=key)
    read = read_own(data, columns, sheet)
    task, items = own_task(
        replace(NO_JUDGES, ledger=Path(answers)), who, read, prompt, ratings=ratings, scale=scale, samples=samples
    )
    planned = estimate(task, items, dataset=read.dataset, ask_again=ask_again)
    task = allowed(task, planned, budget, yes=yes)
    return judge_items(task, items, dataset=read.dataset, ask_again=ask_again).scores


# Who is asked


def own_judge(
    server: str,
    model: str | None,
    *,
    price: tuple[float, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
    key: str | None = None,
    **settings: Any,  # noqa: ANN401 - more of an entry
) -> Judge:
    """Return a judge that has no entry in ``params.yaml``; arguments as those of :func:`judge`.

    Its name is the model's, with hyphens for what a judge's name cannot hold, unless ``name`` is given; ``settings`` are more
    of a judge's entry.

    Raises
    ------
    ConfigError, UnknownNameError
        When there is no such server, or a setting is not valid.
    """
    if server == "rules":
        return checked(Judge, {"name": "rules", "service": "rules"}, "--server")
    if not model:
        raise ConfigError("no model is named", where="--server", expected="--model, as the server calls it")
    entry = {name: value for name, value in settings.items() if value is not None}
    entry.setdefault("name", re.sub("[^a-z0-9.-]+", "-", model.lower()).strip(".-"))
    known = SERVERS.get(server)
    url = known.url if known else server
    if not known and "://" not in url:
        raise UnknownNameError("server", server, [*SERVERS, "rules", "a URL"], where="--server")
    variable, slash, path = url.removeprefix("$").partition("/")
    if url.startswith("$"):
        if not (endpoint := os.environ.get(variable, "").strip().rstrip("/")):
            expected = "the URL of your resource, such as https://NAME.openai.azure.com"
            raise ConfigError(
                f"the environment variable {variable} is not set", where=f"--server {server}", expected=expected
            )
        url = endpoint if endpoint.endswith(path) else endpoint + slash + path
    if re.search("[@?#]", url):
        # They would be left out of the URL that identifies the judge, and a password be seen by who lists processes.
        expected = f"{address(url)}, and a key in the variable that --key names"
        raise ConfigError("the URL has a user, a query or a fragment", where="--server", expected=expected)
    if known and not key and (known.paid or os.environ.get(known.key)):
        key = known.key
    own = dict(parameters or {})
    if "max_tokens" not in own and "max_completion_tokens" not in own:
        own[known.limit if known else "max_tokens"] = 512
    if price is not None:
        entry |= {"price": price_of(*price), "free": not any(price)}
    # A model on a machine of one's own may have many requests before this one.
    shared = {"service": "openai", "model": model, "base_url": address(url), "own_server": True, "timeout": 300.0}
    return checked(Judge, {**shared, "parameters": own, **({"key": key} if key else {}), **entry}, "--model")


# What is asked


@dataclass(frozen=True)
class Responses:
    """Responses of one's own, each once."""

    rows: pd.DataFrame  # as `items.responses_of` takes them
    columns: Mapping[str, Any]  # our names of columns -> the file's
    cells: pd.DataFrame  # context_id, system_id, and all columns of the file
    where: str

    @property
    def dataset(self) -> str:
        """Return the data set's name."""
        return str(self.rows["dataset"].iloc[0])


def read_own(data: Any, columns: Mapping[str, Any] | None = None, sheet: str | None = None) -> Responses:  # noqa: ANN401
    """Read responses as ``comperdial compare`` does, so that names of contexts are the same.

    Parameters
    ----------
    data
        A file, a frame, or what :func:`comperdial.read` returns.
    columns, sheet
        How a file is read.

    Raises
    ------
    SchemaError
        When the file breaks a rule, or names several data sets.
    """
    units = ["context_id", "system_id"]
    if hasattr(data, "batch"):
        lists = {"history": data.batch.histories, "references": data.batch.references, "facts": data.batch.facts}
        rows = _with_lists(data.responses, lists)
        cells = rows[units] if data.attributes is None else data.attributes.rename(columns={"item_id": "context_id"})
        return Responses(rows, {name: name for name, values in lists.items() if any(map(len, values))}, cells, "data")
    if isinstance(data, pd.DataFrame):
        path, file = Path("data"), File(data.reset_index(drop=True), range(1, len(data) + 1))
    elif Path(data).is_dir():
        raise FileError("a folder", where=str(data), expected="a file", hint=f"Of tables: comperdial judge run {data}")
    else:
        path, file = Path(data), read_file(data, sheet)
    try:
        lay_out(file, path, columns)
    except SchemaError:
        # Nobody has rated it yet, or it is not clear which columns are ratings; a response may have several records.
        theirs = lay_out(file, path, columns, ratings=False).columns
        keys = [theirs.get(name) for name in (*units, "response") if theirs.get(name) in file.frame]
        if theirs.get("context_id") in keys:
            first = ~file.frame.duplicated(keys)
            numbers = [number for number, kept in zip(file.rows, first, strict=True) if kept]
            file = replace(file, frame=file.frame[first].reset_index(drop=True), rows=numbers)
        records = read_records(path, file, columns)
        batch, layout, named = records.batch(), records.layout, records.responses[units]
        for number, history in enumerate(batch.histories, start=1):
            for utterance in history:
                if not str(utterance.get("speaker") or "").strip():
                    where = f"{path}, record {number}"
                    problem = f"one of its history is {utterance!r}"
                    raise SchemaError(problem, where=where, expected="a text, or {speaker, text}") from None
        lists = {"history": batch.histories, "references": batch.references, "facts": batch.facts}
        rows = _with_lists(records.responses, lists)
    else:
        content = read_content(path.stem, path, {"columns": columns} if columns else {}, file)
        tables, layout = content.tables, content.layout
        kinds = tables["responses"]["system_id"].map(tables["systems"].set_index("system_id")["kind"])
        rows = tables["responses"][kinds != "reference"].merge(tables["contexts"], on=["dataset", "context_id"])
        named = content.units[["item_id", "system_id"]].set_axis(units, axis=1)
    if len(names := list(rows["dataset"].unique())) > 1:
        problem = f"{len(names)} data sets, among them {names[0]!r} and {names[1]!r}"
        raise SchemaError(problem, where=f"{path}, column 'dataset'", expected="one")
    others = layout.frame.drop(columns=units, errors="ignore").reset_index(drop=True)
    return Responses(rows, layout.columns, named.reset_index(drop=True).join(others), str(path))


def _with_lists(responses: pd.DataFrame, lists: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    rows = responses.reset_index(drop=True)
    return rows.assign(**{name: pd.Series(list(values), dtype=object) for name, values in lists.items()})


def own_task(
    judging: Judging,
    who: Judge,
    read: Responses,
    prompt: str,
    *,
    ratings: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
    samples: int | None = None,
) -> tuple[Task, list[Item]]:
    """Return the task that asks a judge about responses, and what it judges; arguments are those of :func:`judge`.

    A history of plain texts is by two speakers who take turns: the last utterance before the response is A's, the one before
    that B's.

    Raises
    ------
    SchemaError
        When a column that the prompt needs is missing.
    UnknownNameError, ConfigError
        When there is no such rubric or placeholder, it rates dialogues, or the judge gives no probabilities of labels.
    """
    if prompting.is_file(prompt):
        variant = _own_variant(prompt, read, ratings, scale)
    else:
        if ratings or scale:
            where = "--ratings" if ratings else "--scale"
            raise ConfigError("given with a rubric, which has its own", where=where, expected="a template of your own")
        variant = _rubric(prompt, judging)
    if samples:
        variant = variant.model_copy(update={"samples": samples})
    if why := variant.unasked(who, any_role=True):
        raise ConfigError(f"{who.name} is not asked {prompt}: {why}", where="--prompt", expected="another judge")
    judging = replace(judging, judges={**judging.judges, who.name: who})
    task = Task(judging, who, variant, variant.counts(who)[0])
    for field, column in _NEEDED.items():
        if field in task.prompt.fields and column not in read.columns:
            expected = f"one: the prompt {task.prompt.name} shows the {field}"
            hint = f'Name it: --columns \'{{"{column}": "FILL_IN"}}\'; or use a prompt without it'
            raise SchemaError(f"no column {column!r}", where=read.where, expected=expected, hint=hint)
    rows, keys = read.rows, ["context_id", "system_id"]
    if others := [field for field in task.prompt.fields if field.startswith(COLUMN)]:
        cells = read.cells[[*keys, *(name.removeprefix(COLUMN) for name in others)]].set_axis([*keys, *others], axis=1)
        rows = rows.merge(cells.drop_duplicates(keys), on=keys, how="left")
    return task, list(responses_of(rows, task.prompt))


def rubrics(judging: Judging = NO_JUDGES) -> dict[str, Variant]:
    """Return the variants of the package, and of a configuration, by name."""
    entries = registered("judging", "variants")
    return {name: checked(Variant, {"name": name, **entry}) for name, entry in entries.items()} | dict(judging.variants)


def _rubric(name: str, judging: Judging) -> Variant:
    known = {name: variant for name, variant in rubrics(judging).items() if variant.level == "turn"}
    # By the name of its prompt too.
    named = {variant.prompt: variant for variant in known.values() if not variant.question} | known
    if name not in named:
        if Path(name).is_file():
            raise ConfigError(f"no rubric {name!r}", where="--prompt", expected=f"./{name}, if you mean the file")
        raise UnknownNameError("rubric for responses", name, known, where="--prompt")
    return named[name]


def _own_variant(path: str, read: Responses, ratings: Sequence[str], scale: tuple[float, float] | None) -> Variant:
    """Return what a template of the user's asks."""
    prompt = prompting.own_template(path)
    renamed = tuple((name, _field(name, read, prompt.where)) for name in sorted(prompt.placeholders))
    fields = sorted({field for _, field in renamed})
    names = [name.lower() for name in ratings or form_of(prompt.template) or ["rating"]]
    if scale is None:
        ends = {(int(low), int(high)) for low, high in _SCALE.findall(prompt.template) if int(low) < int(high)}
        if len(ends) != 1:
            problem = (
                "several scales: " + ", ".join(f"{low}-{high}" for low, high in sorted(ends)) if ends else "no scale"
            )
            raise ConfigError(f"the template names {problem}", where=prompt.where, expected="--scale LOW HIGH")
        scale = ends.pop()
    name = re.sub("[^a-z0-9]+", "-", prompt.name.lower()).strip("-") or "own"
    main = "overall" if "overall" in names else names[-1]
    return Variant.model_construct(
        name=name, prompt=path, fields=fields, dimensions=names, main=main, scale=[*scale], renamed=renamed
    )


def _field(name: str, read: Responses, where: str) -> str:
    """Return what a placeholder refers to: one of our fields, a column of the file, or another name of a field."""
    if name in _FIELDS.values():
        return name
    ours = next(
        (ours for ours, theirs in read.columns.items() if isinstance(theirs, str) and plain(theirs) == plain(name)), ""
    )
    if ours in _FIELDS:
        return _FIELDS[ours]
    column = next((column for column in read.cells if plain(str(column)) == plain(name)), None)
    if column is not None or ours:
        return COLUMN + str(ours or column)
    for field, names in NAMES.items():
        if field in _FIELDS and plain(name) in names:
            return _FIELDS[field]
    raise UnknownNameError("placeholder", name, {*_FIELDS.values(), *map(str, read.cells)}, where=where)


# What it may cost


def allowed(task: Task, planned: Estimate, budget: float | None, *, yes: bool) -> Task:
    """Return a task that may spend the budget, or with ``yes`` what the estimate says at most.

    Raises
    ------
    JudgeError
        When the judge cannot be asked here.
    ConfigError
        When it costs money, and neither is given, or its price is not known.
    """
    if not planned.requests:
        return task
    if why := task.service.unavailable():
        raise JudgeError(f"{task.judge.name} cannot be asked: {why}", where=task.name)
    if planned.free:
        return task
    budget = task.judging.budget or None if budget is None else budget
    if budget is None and not yes:
        raise ConfigError(f"this costs money: {planned}", where=task.name, expected="--yes, or --budget DOLLARS")
    task.price  # noqa: B018 - an error if it is not known
    if budget is None:
        with AnswerFile(task.judging.ledger) as answers:
            budget = answers.spent + planned.worst
    return replace(task, judging=replace(task.judging, budget=budget))
