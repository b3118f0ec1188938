"""A design as projects for Label Studio, and its exports back into table ``preferences``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation import label_studio as ls
from comperdial.challenge.pairs.design import Design, Task
from comperdial.challenge.pairs.dialogues import Dialogue, write_dialogues
from comperdial.challenge.pairs.questions import Question
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import write_json, write_table, write_text

KEY_COLUMNS = (
    "item",
    "dataset",
    "pair_id",
    *(f"{side}_{what}" for side in ("first", "second") for what in ("dialogue_id", "system_id")),
    "annotator_id",
    "position",
    "question",
    "left",
    "control",
)
_CHOICE, _REASON = "choice", "reason"
_COLOURS = {"left": ("#e3effb", "#0b5cad"), "right": ("#fdeedf", "#a14a00")}

_README = """\
# Pairs of dialogues to compare

{annotators} annotators, {tasks} tasks, in one folder for each question. For each annotator:

1. Create a project in Label Studio. Under *Settings, Labeling Interface, Code*, paste `config.xml` of the folder.
2. Import the annotator's file of tasks, such as `{example}`, and have it done *in the order of the tasks*.
3. Export the project as JSON or JSON-MIN.

Then turn all exports into one table:

`comperdial annotate import EXPORT.json ... --key key.csv --level pair --output preferences.parquet`

Keep `key.csv`, `dialogues.jsonl` and the seed to yourself: they say which system a speaker is, and which tasks are controls.
Without `key.csv` the answers cannot be read.
"""


def export(output: str | Path, design: Design, *, name: str, ties: bool = False, seed: int = 0) -> None:
    """Write a design as projects for Label Studio.

    Parameters
    ----------
    output
        A folder; gets ``QUESTION/config.xml`` and ``QUESTION/ANNOTATOR.json`` (tasks that do not name the systems), and for
        the organiser ``key.csv``, ``dialogues.jsonl`` and ``README.md``.
    design
        The tasks.
    name
        The data set's name in table ``preferences``.
    ties
        Whether annotators may choose "no difference". In the paper they may not.
    seed
        Determines the items' names.

    Raises
    ------
    FileError
        When the folder is not empty.
    """
    output = Path(output)
    ls.refuse_used(output)
    rows: list[tuple[str, ...]] = []
    projects: dict[str, list[dict[str, dict[str, str]]]] = {}
    for task in design.tasks:
        pair, project = task.pair, projects.setdefault(f"{task.question.name}/{task.annotator}.json", [])
        item = ls.item_name("pair", pair.id, task.question.name, task.annotator, seed)
        project.append({"data": {"item": item, **_shown(task)}})
        ids = (item, name, pair.id, *pair.first.key, *pair.second.key, task.annotator, str(len(project)))
        rows.append((*ids, task.question.name, task.left, pair.answer or ""))
    if len({row[0] for row in rows}) < len(rows):
        raise ConfigError(f"two tasks get the same name with seed {seed}", hint="Choose another seed")
    # The key comes first: answers to tasks without their key would be useless.
    write_table(output / "key.csv", pd.DataFrame(rows, columns=KEY_COLUMNS))
    shown = {d.key: d for task in design.tasks for d in (task.pair.first, task.pair.second)}
    write_dialogues(output / "dialogues.jsonl", [shown[key] for key in sorted(shown, key=lambda key: (key[1], key[0]))])
    for question in {task.question.name: task.question for task in design.tasks}.values():
        write_text(output / question.name / "config.xml", _config(question, ties=ties))
    for path, tasks in projects.items():
        write_json(output / path, tasks)
    readme = _README.format(annotators=len(projects), tasks=len(rows), example=next(iter(projects)))
    write_text(output / "README.md", readme)


def _config(question: Question, *, ties: bool) -> str:
    """Return the labeling configuration of a question as XML."""
    guidelines = resources.files(__package__).joinpath("guidelines.md").read_text(encoding="utf-8")
    view = ls.guideline_view(guidelines)
    panes = ET.SubElement(view, "View", style="display: grid; grid-template-columns: 1fr 1fr; gap: 1.5em")
    for side, title in (("left", "Speaker 1"), ("right", "Speaker 2")):
        ls.add_text(ET.SubElement(panes, "View"), side, title)
    choices = [(question.left, "left"), (question.right, "right"), *([("No difference", "tie")] if ties else [])]
    message = "Choose one of the two, or skip the task"
    ls.add_choices(view, question.text, choices, message, name=_CHOICE, toName="left", choice="single-radio")
    ET.SubElement(view, "Header", value="Why? A few words (please)", size="4")
    attributes = {"name": _REASON, "toName": "left", "rows": "2", "maxSubmissions": "1", "editable": "true"}
    ET.SubElement(view, "TextArea", attributes)
    return ls.to_xml(view)


def _shown(task: Task) -> dict[str, str]:
    sides = (task.pair.first, task.pair.second)
    left, right = sides if task.left == "first" else reversed(sides)
    return {"left": _html(left, *_COLOURS["left"]), "right": _html(right, *_COLOURS["right"])}


def _html(dialogue: Dialogue, background: str, border: str) -> str:
    """Return a dialogue as HTML: the judged speaker in colour, the partner grey."""
    judged = f"; padding: .4em .6em; background: {background}; color: #1b1b1b; border-left: 4px solid {border}"
    partner = "; padding: .4em .6em; background: #f3f3f3; color: #666"
    return "".join(
        ls.paragraph(judged if speaker == dialogue.judged else partner, text) for speaker, text in dialogue.utterances
    )


class Votes(NamedTuple):
    """The answers of annotators.

    Attributes
    ----------
    kept
        Table ``preferences``, controls included, of the annotators who are kept.
    removed
        The same of the others, with the reason in a further column ``removed``.
    notes
        Sentences for people: who was removed, and why; whose answers are incomplete or without reasons.
    """

    kept: pd.DataFrame
    removed: pd.DataFrame
    notes: list[str]


def read_votes(exports: Sequence[str | Path], key: str | Path, *, need_reasons: bool = False) -> Votes:
    """Read the answers to a design's tasks.

    All votes of annotators who chose the worse dialogue of a control, or did not answer it, are removed (Li, Weston and
    Roller 2019, "Annotation Quality").

    Parameters
    ----------
    exports
        Files that Label Studio exported, as JSON or JSON-MIN.
    key
        The ``key.csv`` that was written with the tasks.
    need_reasons
        Remove annotators who never gave a reason, as the paper does. Default: a note names them.

    Raises
    ------
    ComperdialError
        Names the file and the annotation at fault.
    """
    tasks = ls.read_key(key, KEY_COLUMNS, may_be_empty=("control",))
    rows: list[dict[str, Any]] = []
    users: dict[str, str] = {}
    for annotation in ls.read_exports(exports, (_CHOICE, _REASON), tasks, key):
        task = tasks[annotation.item]
        user = users.setdefault(task["annotator_id"], annotation.annotator)
        if user != annotation.annotator:
            problem = f"the tasks of {task['annotator_id']!r} were done by {user!r} and {annotation.annotator!r}"
            raise SchemaError(problem, where=annotation.where, expected="one person for each file of tasks")
        rows.append(_row(task, annotation))
    frame = pd.DataFrame(rows, columns=schema.table("preferences").columns)
    return _screened(pd.DataFrame([*tasks.values()]), schema.validate(frame, "preferences"), need_reasons=need_reasons)


def _row(task: Mapping[str, str], annotation: ls.Annotation) -> dict[str, Any]:
    choices = annotation.choices.get(_CHOICE, [])
    if len(choices) != 1 or choices[0] not in ("left", "right", "tie"):
        problem = f"the choice is {' and '.join(map(repr, choices))}" if choices else "a vote without a choice"
        raise SchemaError(problem, where=annotation.where, expected="left, right or tie")
    sides = {"left": task["left"], "right": "second" if task["left"] == "first" else "first", "tie": "tie"}
    return {name: value for name, value in task.items() if name not in ("item", "position")} | {
        "choice": sides[choices[0]],
        "control": task["control"] or None,
        "reason": "\n".join(annotation.choices.get(_REASON, [])).strip() or None,
        "seconds": annotation.seconds,
        "source": "human",
    }


def _screened(tasks: pd.DataFrame, votes: pd.DataFrame, *, need_reasons: bool) -> Votes:
    """Remove annotators who failed or left out their control, or never gave a reason, and name them in notes."""
    notes: list[str] = []
    removed: dict[str, str] = {}
    for annotator, mine in votes.groupby("annotator_id", sort=True):
        given = tasks[tasks["annotator_id"] == annotator]
        if len(mine) < len(given):
            notes.append(f"{annotator}: {len(mine)} of {len(given)} pairs answered")
        controls = mine[mine["control"].notna()]
        failed = controls[controls["choice"] != controls["control"]]
        why = None
        if len(failed):
            row = failed.iloc[0]
            chosen, expected = (row.get(f"{row[side]}_system_id", "tie") for side in ("choice", "control"))
            why = f"failed the control {row['pair_id']} (chose {chosen}, expected {expected})"
        elif len(controls) < (given["control"] != "").sum():
            why = "did not answer the control"
        elif mine["reason"].isna().all():
            why = "never gave a reason" if need_reasons else None
            notes += [] if need_reasons else [f"{annotator}: never gave a reason (kept)"]
        if why:
            removed[str(annotator)] = why
            notes.append(f"{annotator}: removed with {len(mine)} votes: {why}")
    if silent := sorted({*tasks["annotator_id"]} - {*votes["annotator_id"]}):
        notes.append(f"no answers of {', '.join(silent)}")
    reasons = votes["annotator_id"].map(removed)
    out = reasons.notna()
    return Votes(
        votes[~out].reset_index(drop=True), votes[out].assign(removed=reasons[out]).reset_index(drop=True), notes
    )
