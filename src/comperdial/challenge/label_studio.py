"""Label Studio projects for ratings of responses and dialogues and for choices between dialogues; import of their exports.

Ratings follow ComperDial's procedure (3.2.3, A.7.1 and A.7.2), choices ACUTE-Eval's (Li, Weston and Roller 2019).
``docs/annotation.md`` is for organisers. ``projects`` has the labeling interfaces and the guidelines.

Everything is shown as HTML in ``HyperText`` tags, with escaped texts. The plainer tags are unsafe for arbitrary text:
``Text`` treats it as HTML unless a feature flag is set, so ``<3`` could be lost, and ``Paragraphs`` fails on an empty
history (as of the front end of Label Studio 1.23.2).
"""

from __future__ import annotations

import hashlib
import html
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.sax.saxutils import quoteattr

import jinja2
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from comperdial import schema
from comperdial.challenge.dialogues import read_answers
from comperdial.challenge.pairs import Design, write_dialogues
from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import read_json, read_table, write_json, write_table, write_text
from comperdial.core.names import RATED_LEVELS
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# Columns of key.csv, which identify an item.
_KEYS = {
    "turn": ["item", "dataset", "context_id", "system_id"],
    "dialogue": ["item", "dataset", "dialogue_id", "system_id"],
    "pair": [
        "item", "dataset", "pair_id", "first_dialogue_id", "first_system_id", "second_dialogue_id", "second_system_id",
        "annotator_id", "question", "left", "control",
    ],
}  # fmt: skip
_Personas = dict[tuple[str, str], dict[str, list[str]]]
"""Data set and dialogue -> speaker -> sentences."""
_Item = tuple[tuple[str, ...], dict[str, str]]
"""Columns that identify an item in the key, after its name; and what the annotator sees."""


# Tasks


def export_ratings(
    folder: str | Path,
    output: str | Path,
    *,
    levels: Iterable[str] = RATED_LEVELS,
    systems: Sequence[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> dict[str, int]:
    """Write a folder of tables as rating tasks, one project per level (turn, dialogue); return their numbers of tasks.

    ``sample`` is the number of dialogues to draw: the ``systems``, by default all except references, are rated on the same
    ones at both levels (paper, 3.2.3: 15 of 250). Equal tables and options give equal files.

    Raises an error if tables are inconsistent, there is nothing to rate, or the folder of a level is not empty.
    """
    folder, output, levels = Path(folder), Path(output), list(dict.fromkeys(levels))
    for level in levels:
        _refuse_used(output / level)
    responses = read_answers(folder)
    for name in systems or ():
        if name not in {*responses["system_id"]}:
            raise UnknownNameError("system", name, {*responses["system_id"]}, where=str(folder / "responses.parquet"))
    responses = responses[responses["system_id"].isin(systems) if systems else responses["kind"] != "reference"]
    responses = responses.sort_values(["dataset", "dialogue_id", "system_id", "turn", "context_id"])
    if sample is not None:
        dialogues = responses[["dataset", "dialogue_id"]].drop_duplicates(ignore_index=True)
        if not 1 <= sample <= len(dialogues):
            expected = f"1 to {len(dialogues)}, the number answered by the chosen systems"
            raise ConfigError(f"a sample of {sample} dialogues", where=str(folder), expected=expected)
        drawn = _generator(seed, "sample").choice(len(dialogues), size=sample, replace=False)
        responses = responses.merge(dialogues.loc[drawn])
    personas: _Personas = {}
    if (folder / "personas.parquet").exists():
        for row in schema.read(folder / "personas.parquet", "personas").to_dict("records"):
            personas.setdefault((row["dataset"], row["dialogue_id"]), {})[row["speaker"]] = row["sentences"]
    # Make everything before writing the first file.
    projects = {level: list((_turns if level == "turn" else _dialogues)(responses, personas)) for level in levels}
    if empty := [level for level, items in projects.items() if not items]:
        raise SchemaError(f"nothing to rate at level {empty[0]!r}", where=str(folder), expected="responses")
    for level, items in projects.items():
        order = [items[i] for i in _generator(seed, level).permutation(len(items))]
        tasks = [{"data": {"item": _name(level, *ids, seed), **shown}} for ids, shown in order]
        # The key is written first, since answers would be useless without it, and sorted by name, not in task order.
        rows = sorted((task["data"]["item"], *ids) for task, (ids, _) in zip(tasks, order, strict=True))
        write_table(output / level / "key.csv", pd.DataFrame(rows, columns=_KEYS[level]))
        for name, file in (("guidelines.md", f"{level}.md"), ("config.xml", f"{level}.xml")):
            write_text(output / level / name, _text(file))
        write_json(output / level / "tasks.json", tasks)
    return {level: len(items) for level, items in projects.items()}


def export_pairs(output: str | Path, design: Design, *, name: str, ties: bool = False, seed: int = 0) -> None:
    """Write a design as projects: ``QUESTION/config.xml`` and ``QUESTION/ANNOTATOR.json``.

    ``key.csv`` and ``dialogues.jsonl`` are for the organiser only. ``name`` is the data set's name in table ``preferences``.
    ``ties`` allows "no difference", which the paper does not. Raises a :class:`FileError` if a folder is not empty.
    """
    output = Path(output)
    _refuse_used(output)
    rows: list[tuple[str, ...]] = []
    projects: dict[str, list[dict[str, dict[str, str]]]] = {}
    interfaces = {}
    for annotator, question, pair, left in design.tasks:
        item = _name("pair", pair.id, question.name, annotator, seed)
        sides = (pair.first, pair.second) if left == "first" else (pair.second, pair.first)
        shown = {side: _shown().chat(of, side) for side, of in zip(("left", "right"), sides, strict=True)}
        projects.setdefault(f"{question.name}/{annotator}.json", []).append({"data": {"item": item, **shown}})
        ids = (item, name, pair.id, *pair.first.key, *pair.second.key, annotator)
        rows.append((*ids, question.name, left, pair.answer or ""))
        interfaces[question.name] = {"question": question.text, "left": question.left, "right": question.right}
    write_table(output / "key.csv", pd.DataFrame(rows, columns=_KEYS["pair"]))
    compared = {d.key: d for task in design.tasks for d in (task.pair.first, task.pair.second)}
    write_dialogues(output / "dialogues.jsonl", (compared[key] for key in sorted(compared, key=lambda key: key[::-1])))
    write_text(output / "guidelines.md", _text("pair.md"))
    tie = '    <Choice value="No difference" alias="tie" />\n' if ties else ""
    for asked, texts in interfaces.items():
        quoted = {key: quoteattr(text) for key, text in texts.items()}
        write_text(output / asked / "config.xml", _text("pair.xml").format(tie=tie, **quoted))
    for path, tasks in projects.items():
        write_json(output / path, tasks)


def _refuse_used(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        hint = "Export to another folder: answers to earlier tasks cannot be read without their key.csv"
        raise FileError("holds files already", where=str(folder), expected="a new or empty folder", hint=hint)


def _generator(seed: int, use: str) -> np.random.Generator:
    """Return a generator for one purpose, so that draws are independent of other purposes."""
    return np.random.default_rng([seed, *use.encode()])


def _name(*ids: str | int) -> str:
    """Return an item's name in tasks: a hash, so that tasks do not reveal the system."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:12]


def _text(name: str) -> str:
    return (resources.files(__package__) / "projects" / name).read_text(encoding="utf-8")


# What annotators see


@cache
def _shown() -> Any:  # noqa: ANN401 - the macros of a template
    environment = jinja2.Environment(autoescape=False)  # noqa: S701 - each text goes through our own filter
    environment.filters["e"] = html.escape
    return environment.from_string(_text("shown.jinja")).module


def _turns(responses: pd.DataFrame, personas: _Personas) -> Iterator[_Item]:
    for row in responses.sort_values(["dataset", "context_id", "system_id"]).to_dict("records"):
        shown = {
            "personas": _about(personas.get((row["dataset"], row["dialogue_id"]), {}), row["facts"]),
            "history": _shown().history(row["history"]),
            "response": _shown().response(row["response"]),
        }
        yield (row["dataset"], row["context_id"], row["system_id"]), shown


def _dialogues(responses: pd.DataFrame, personas: _Personas) -> Iterator[_Item]:
    incomplete = []
    for ids, rows in responses.groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        dataset, dialogue, system = map(str, ids)
        if rows["turn"].nunique() < rows["turns"].iloc[0]:
            incomplete.append(f"{dialogue} by {system}")
            continue
        facts = dict.fromkeys(fact for facts in rows["facts"] for fact in facts)
        about = _about(personas.get((dataset, dialogue), {}), facts)
        flows = _shown().flows([*zip(rows["history"], rows["response"], strict=True)])
        yield (dataset, dialogue, system), {"personas": about, "flows": flows}
    if incomplete:
        message = "%d dialogues left out, because responses to some of their turns are missing (the first: %s)"
        log.warning(message, len(incomplete), incomplete[0])


def _about(personas: Mapping[str, Sequence[str]], facts: Iterable[str]) -> str:
    """Return the personas by speaker, and facts that are not persona sentences."""
    known = {sentence for sentences in personas.values() for sentence in sentences}
    parts = {who + " (rated)" * (who == "B"): sentences for who, sentences in sorted(personas.items())}
    if others := [fact for fact in facts if fact not in known]:
        parts["Facts that B may draw on"] = others
    return str(_shown().about(parts))


# Answers


class _Given(BaseModel):
    choices: list[str] = []
    text: list[str] = []


class _Result(BaseModel):
    from_name: str
    value: Any


class _User(BaseModel):
    id: int | Filled


class _Annotation(BaseModel):
    id: int | Filled
    completed_by: int | Filled | _User
    lead_time: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    result: list[_Result]


class _Data(BaseModel):
    item: str


class _Task(BaseModel):
    data: _Data
    annotations: list[dict[str, Any]]


class _Answer(NamedTuple):
    """One person's answer to a task described by the key: choices or texts by tag, and the time taken."""

    where: str
    task: dict[str, str]
    annotator: str
    given: dict[str, list[str]]
    seconds: float | None

    def choice(self, tag: str, what: str, *allowed: str, expected: str) -> str:
        """Return the single choice of a tag."""
        choices = self.given.get(tag, [])
        if len(choices) != 1 or choices[0] not in allowed:
            problem = f"{what} {' and '.join(map(repr, choices)) or 'missing'}"
            hint = "Answer or skip the task in Label Studio and export again"
            raise SchemaError(problem, where=self.where, expected=expected, hint=hint)
        return choices[0]


def read_ratings(exports: Sequence[str | Path], key: str | Path, level: str) -> pd.DataFrame:
    """Read Label Studio's exports (JSON) of rating tasks, with their ``key.csv``, as table ``ratings``.

    Dimensions are ``Overall`` from 1 to 5 and, for dialogues, the six axes: 0 if the annotator marked a problem, otherwise
    1. A :class:`SchemaError` gives the invalid task and annotation; annotators who skipped every task are logged.
    """
    rows: list[tuple[Any, ...]] = []
    for answer in _answers(exports, _read_key(key, level), key, ("overall", "reasons")):
        score = answer.choice("overall", "overall score", *"12345", expected="a score from 1 to 5")
        marked = answer.given.get("reasons", [])
        if unknown := [axis for axis in marked if axis not in AXES]:
            raise SchemaError(f"reason {unknown[0]!r}", where=answer.where, expected="some of " + ", ".join(AXES))
        _, *ids = answer.task.values()
        about = (*ids, level, answer.annotator, "human")
        rows.append((*about, OVERALL, int(score), *OVERALL_SCALE))
        if level == "dialogue":
            rows += [(*about, axis, int(axis not in marked), *AXIS_SCALE) for axis in AXES]
    columns = ["dataset", "item_id", "system_id", "level", "annotator_id", "source"]
    columns += ["dimension", "rating", "scale_min", "scale_max"]
    return schema.validate(pd.DataFrame(rows, columns=columns), "ratings")


class Votes(NamedTuple):
    """The answers of annotators, including controls.

    ``kept`` is table ``preferences``, ``removed`` the same for excluded annotators, with a column ``removed`` for the
    reason. ``notes`` are sentences on incomplete or missing answers and excluded annotators.
    """

    kept: pd.DataFrame
    removed: pd.DataFrame
    notes: list[str]


def read_votes(exports: Sequence[str | Path], key: str | Path, *, need_reasons: bool = False) -> Votes:
    """Read Label Studio's exports (JSON) of a design's tasks, with their ``key.csv``.

    Annotators who chose the worse dialogue of a control, or did not answer it, are excluded; with ``need_reasons``, also
    those who never gave a reason (Li, Weston and Roller 2019, "Annotation Quality"). A :class:`SchemaError` gives the
    invalid file and annotation.
    """
    tasks = _read_key(key, "pair")
    rows: list[dict[str, Any]] = []
    users: dict[str, str] = {}
    for answer in _answers(exports, tasks, key, ("choice", "reason")):
        task, user = answer.task, users.setdefault(answer.task["annotator_id"], answer.annotator)
        if user != answer.annotator:
            problem = f"the tasks of {task['annotator_id']!r} were done by {user!r} and {answer.annotator!r}"
            raise SchemaError(problem, where=answer.where, expected="one person per file of tasks")
        side = answer.choice("choice", "the choice is", "left", "right", "tie", expected="left, right or tie")
        sides = {"left": task["left"], "right": "second" if task["left"] == "first" else "first", "tie": "tie"}
        vote = {"choice": sides[side], "control": task["control"] or None, "seconds": answer.seconds, "source": "human"}
        rows.append(task | vote | {"reason": "\n".join(answer.given.get("reason", [])).strip() or None})
    votes = schema.validate(pd.DataFrame(rows, columns=schema.table("preferences").columns), "preferences")
    notes: list[str] = []
    removed: dict[str, str] = {}
    for who, own in pd.DataFrame([*tasks.values()]).groupby("annotator_id", sort=True):
        mine = votes[votes["annotator_id"] == who]
        if mine.empty:
            notes.append(f"{who}: answered nothing")
            continue
        if len(mine) < len(own):
            notes.append(f"{who}: {len(mine)} of {len(own)} pairs answered")
        controls = mine[mine["control"].notna()]
        failed = controls[controls["choice"] != controls["control"]]
        if len(failed):
            removed[str(who)] = f"failed the control {failed['pair_id'].iloc[0]}"
        elif len(controls) < (own["control"] != "").sum():
            removed[str(who)] = "did not answer the control"
        elif need_reasons and mine["reason"].isna().all():
            removed[str(who)] = "never gave a reason"
    notes += [f"{who}: removed: {why}" for who, why in removed.items()]
    why = votes["annotator_id"].map(removed)
    kept, others = votes[why.isna()], votes[why.notna()].assign(removed=why.dropna())
    return Votes(kept.reset_index(drop=True), others.reset_index(drop=True), notes)


def _read_key(path: str | Path, level: str) -> dict[str, dict[str, str]]:
    """Return the rows of the tasks' ``key.csv`` by ``item``."""
    frame = read_table(path)
    if list(frame.columns) != _KEYS[level]:
        problem = f"the columns are {', '.join(map(str, frame.columns))}"
        raise SchemaError(
            problem, where=str(path), expected=f"the key.csv of these tasks, with columns {', '.join(_KEYS[level])}"
        )
    needed = frame.drop(columns="control", errors="ignore")
    if (wrong := needed["item"].duplicated() | (needed == "").any(axis=1)).any():
        problem, where = "an empty cell, or a duplicate item", f"{path}, record {wrong.argmax() + 1}"
        raise SchemaError(problem, where=where, expected="no empty cells, and each item once")
    return {row["item"]: row for row in frame.to_dict("records")}  # type: ignore[misc]


def _answers(
    exports: Sequence[str | Path], key: dict[str, dict[str, str]], key_path: str | Path, tags: Sequence[str]
) -> list[_Answer]:
    """Read exports of one or more projects: the values of our ``tags``, once per task and person.

    Other tags, such as a comment field added by an organiser, predictions, drafts and skipped tasks are ignored.
    """
    read: dict[tuple[str, str], _Answer] = {}
    skipped = set()
    for path in exports:
        for number, record in enumerate(checked(list[Any], read_json(path), str(path)), start=1):
            task = checked(_Task, record, f"{path}, record {number}")
            item = task.data.item
            for annotation in task.annotations:
                if annotation.get("was_cancelled"):
                    skipped.add(_annotator(annotation.get("completed_by")))
                    continue
                given = checked(_Annotation, annotation, f"{path}, record {number}")
                annotator = _annotator(annotation["completed_by"])
                where = f"{path}, record {number}, annotation {given.id} by annotator {annotator!r}"
                if item not in key:
                    hint = "Use the key.csv written with these tasks, and its level"
                    problem = f"item {item!r} is not in {key_path}"
                    raise SchemaError(problem, where=where, expected="the items of this key", hint=hint)
                if first := read.get((item, annotator)):
                    hint = "Delete one of them in Label Studio and export again; do not mix exports of several servers"
                    problem = f"duplicate annotation of item {item!r}"
                    raise SchemaError(problem, where=where, expected=f"one, as in {first.where}", hint=hint)
                texts: dict[str, list[str]] = {}
                for result in (result for result in given.result if result.from_name in tags):
                    value = checked(_Given, result.value, f"{where}, tag {result.from_name!r}")
                    texts.setdefault(result.from_name, []).extend(value.text or value.choices)
                read[item, annotator] = _Answer(where, key[item], annotator, texts, given.lead_time)
    if not read:
        raise SchemaError("no task was answered", where=", ".join(map(str, exports)), expected="annotations of tasks")
    if nothing := sorted(skipped - {annotator for _, annotator in read} - {"None"}):
        log.warning("annotators who skipped all of their tasks: %s", ", ".join(nothing))
    return [*read.values()]


def _annotator(user: object) -> str:
    """Return a user's name: the number itself, or the one in an object."""
    return str(user.get("id") if isinstance(user, dict) else user).strip()
