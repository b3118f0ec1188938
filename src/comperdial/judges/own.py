"""Judge a user's own file: choose the judge and the prompt, and limit the cost."""

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
# A scale in the words of a template: "from 1 to 5", "(1-5)", "on a scale of 1 (worst) to 10".
_SCALE = re.compile(
    r"(?:from|between|of|scale|\()\s*(\d{1,3})(?:\s*\([^)]*\)|\s*=[^,;.]*)?\s*(?:-|–|to|and)\s*(\d{1,3})\b",
    re.IGNORECASE,
)
# Columns that a prompt's fields require. Missing facts are not required: the prompt then says that there are none.
_NEEDED = {"history": "history", "reference": "references"}
_FIELDS = {"history": "history", "response": "response", "references": "reference", "facts": "fact"}


def judge(
    data: Any,  # noqa: ANN401 - `Data` of a higher layer
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
    """Rate responses with a language model, like ``comperdial judge file``.

    Answers are stored and never paid for twice; after an interruption, run it again to continue.

    Parameters
    ----------
    data
        The result of :func:`comperdial.read`, or a file or frame in any common format with one row per response.
    prompt
        A rubric (listed by ``comperdial prompts``), or the path of your own template with placeholders such as ``{{ history
        }}`` and ``{{ response }}``.
    model
        The model's name on the server.
    server
        ``openai``, ``azure``, ``ollama``, ``vllm``, ``llama.cpp``, a URL, or ``rules``: a word-counting program for
        trial runs.
    price
        US dollars per million input and output tokens.
    budget
        Limit in US dollars for all answers in the file.
    yes
        Spend up to the estimated maximum, without a budget.
    parameters
        Sent with each request, such as ``{"max_completion_tokens": 4000}``.
    samples
        Number of answers averaged in a score; default: the rubric's, or 1.
    ratings, scale
        For your own template: the names of the ratings in an answer, and the lowest and highest rating; default: those in the
        template.
    columns, sheet
        As in :func:`comperdial.read`.
    key
        Environment variable with the API key; default: the server's usual one.
    ask_again
        Retry refusals and answers without a rating.
    answers
        The SQLite file of answers, or its folder.

    Returns
    -------
    DataFrame
        Table ``scores``: ``item_id`` (the context), ``system_id``, ``metric``, ``output`` (the rating), ``value``, …; responses
        without a readable answer have no score.

    Raises
    ------
    ComperdialError
        If the data cannot be read, the judge cannot be asked, it costs money and neither ``budget`` nor ``yes`` is given, or no
        answer has a rating.

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


# The judge


def own_judge(
    server: str,
    model: str | None,
    *,
    price: tuple[float, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
    key: str | None = None,
    **settings: Any,  # noqa: ANN401 - other keys of an entry
) -> Judge:
    """Return a judge without an entry in ``params.yaml``; arguments as in :func:`judge`.

    It is named after the model, with invalid characters replaced by hyphens, unless ``name`` is given; ``settings`` are further
    keys of a judge's entry.

    Raises
    ------
    ConfigError, UnknownNameError
        If the server does not exist, or a setting is invalid.
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
        # They would be dropped from the URL that identifies the judge, and a password would be visible in process lists.
        expected = f"{address(url)}, and a key in the variable that --key names"
        raise ConfigError("the URL has a user, a query or a fragment", where="--server", expected=expected)
    if known and not key and (known.paid or os.environ.get(known.key)):
        key = known.key
    own = dict(parameters or {})
    if "max_tokens" not in own and "max_completion_tokens" not in own:
        own[known.limit if known else "max_tokens"] = 512
    if price is not None:
        entry |= {"price": price_of(*price), "free": not any(price)}
    # A local model may have many requests queued before this one.
    shared = {"service": "openai", "model": model, "base_url": address(url), "own_server": True, "timeout": 300.0}
    return checked(Judge, {**shared, "parameters": own, **({"key": key} if key else {}), **entry}, "--model")


# The items and the prompt


@dataclass(frozen=True)
class Responses:
    """A user's own responses, one row each."""

    rows: pd.DataFrame  # input of `items.responses_of`
    columns: Mapping[str, Any]  # our column names -> the file's
    cells: pd.DataFrame  # context_id, system_id, and all columns of the file
    where: str

    @property
    def dataset(self) -> str:
        """Return the data set's name."""
        return str(self.rows["dataset"].iloc[0])


def read_own(data: Any, columns: Mapping[str, Any] | None = None, sheet: str | None = None) -> Responses:  # noqa: ANN401
    """Read responses like ``comperdial compare``, so that context ids match.

    Parameters
    ----------
    data
        A file, a frame, or the result of :func:`comperdial.read`.
    columns, sheet
        As in :func:`comperdial.read`.

    Raises
    ------
    SchemaError
        If the file is invalid, or contains several data sets.
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
        # There are no ratings yet, or it is unclear which columns they are; a response may have several records.
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
    """Return the task and its items; arguments as in :func:`judge`.

    Plain-text histories alternate between two speakers: the last utterance before the response is A's, the one before it B's.

    Raises
    ------
    SchemaError
        If a column that the prompt needs is missing.
    UnknownNameError, ConfigError
        If the rubric or a placeholder does not exist, the prompt rates dialogues, or the judge gives no label probabilities.
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
    """Return the built-in variants and those of a configuration, by name."""
    entries = registered("judging", "variants")
    return {name: checked(Variant, {"name": name, **entry}) for name, entry in entries.items()} | dict(judging.variants)


def _rubric(name: str, judging: Judging) -> Variant:
    known = {name: variant for name, variant in rubrics(judging).items() if variant.level == "turn"}
    # Variants can also be named by their prompt.
    named = {variant.prompt: variant for variant in known.values() if not variant.question} | known
    if name not in named:
        if Path(name).is_file():
            raise ConfigError(f"no rubric {name!r}", where="--prompt", expected=f"./{name}, if you mean the file")
        raise UnknownNameError("rubric for responses", name, known, where="--prompt")
    return named[name]


def _own_variant(path: str, read: Responses, ratings: Sequence[str], scale: tuple[float, float] | None) -> Variant:
    """Return a variant for the user's template."""
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
    """Resolve a placeholder: a field, a column of the file, or an alias of a field."""
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


# The cost


def allowed(task: Task, planned: Estimate, budget: float | None, *, yes: bool) -> Task:
    """Return a task limited to the budget, or with ``yes`` to the estimated maximum.

    Raises
    ------
    JudgeError
        If the judge cannot be asked here.
    ConfigError
        If it costs money and neither is given, or its price is unknown.
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
    task.price  # noqa: B018 - raises an error if unknown
    if budget is None:
        with AnswerFile(task.judging.ledger) as answers:
            budget = answers.spent + planned.worst
    return replace(task, judging=replace(task.judging, budget=budget))
