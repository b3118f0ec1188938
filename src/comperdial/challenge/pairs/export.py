"""A design as projects for Label Studio, and the key that reads the answers."""

from __future__ import annotations

import hashlib
import html
import json
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd

from comperdial.challenge.annotation.labeling import guideline_view
from comperdial.challenge.pairs.design import Design, Task
from comperdial.challenge.pairs.dialogues import Dialogue, write_dialogues
from comperdial.challenge.pairs.questions import Question
from comperdial.core.errors import ConfigError, FileError
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
CHOICE_TAG, REASON_TAG = "choice", "reason"
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
        A folder; gets ``QUESTION/config.xml`` and ``QUESTION/ANNOTATOR.json`` (tasks that do not name the systems), and
        for the organiser ``key.csv``, ``dialogues.jsonl`` and ``README.md``.
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
        When the folder holds a key already: without it, the answers to its tasks could not be read.
    """
    output = Path(output)
    if (output / "key.csv").exists():
        raise FileError(
            "there is a key already",
            where=str(output / "key.csv"),
            expected="a folder without one",
            hint="Write into another folder: without this key the answers to its tasks cannot be read",
        )
    rows: list[tuple[str, ...]] = []
    projects: dict[str, list[dict[str, dict[str, str]]]] = {}
    for annotator, tasks in design.annotators().items():
        projects[f"{tasks[0].question.name}/{annotator}.json"] = found = []
        for position, task in enumerate(tasks, start=1):
            item, pair = _item(task, seed), task.pair
            found.append({"data": {"item": item, **_shown(task)}})
            ids = (item, name, pair.id, *pair.first.key, *pair.second.key, annotator, str(position))
            rows.append((*ids, task.question.name, task.left, task.control or ""))
    if len({row[0] for row in rows}) < len(rows):
        raise ConfigError(f"two tasks get the same name with seed {seed}", hint="Choose another seed")
    # The key comes first: answers to tasks without their key would be useless.
    write_table(output / "key.csv", pd.DataFrame(rows, columns=KEY_COLUMNS))
    write_dialogues(output / "dialogues.jsonl", design.dialogues())
    for question in {task.question.name: task.question for task in design.tasks}.values():
        write_text(output / question.name / "config.xml", _config(question, ties=ties))
    for path, found in projects.items():
        write_json(output / path, found)
    readme = _README.format(annotators=len(projects), tasks=len(rows), example=next(iter(projects)))
    write_text(output / "README.md", readme)


def _item(task: Task, seed: int) -> str:
    ids = json.dumps(["pair", task.pair.id, task.question.name, task.annotator, seed])
    return hashlib.sha256(ids.encode()).hexdigest()[:12]


def _config(question: Question, *, ties: bool) -> str:
    """Return the labeling configuration of a question as XML."""
    view = guideline_view(files(__package__).joinpath("guidelines.md").read_text(encoding="utf-8"))
    panes = ET.SubElement(view, "View", style="display: grid; grid-template-columns: 1fr 1fr; gap: 1.5em")
    for side, title in (("left", "Speaker 1"), ("right", "Speaker 2")):
        pane = ET.SubElement(panes, "View")
        ET.SubElement(pane, "Header", value=title, size="4")
        attributes = {"name": side, "value": f"${side}", "valueType": "text"}
        ET.SubElement(pane, "HyperText", attributes | {"inline": "true", "selectionEnabled": "false"})
    ET.SubElement(view, "Header", value=question.text, size="4")
    required = {"required": "true", "requiredMessage": "Choose one of the two, or skip the task"}
    attributes = {"name": CHOICE_TAG, "toName": "left", "choice": "single-radio", "showInline": "true"}
    choices = ET.SubElement(view, "Choices", attributes | required)
    # The alias is what Label Studio exports.
    for alias, text in (("left", question.left), ("right", question.right), ("tie", "No difference"))[
        : 3 if ties else 2
    ]:
        ET.SubElement(choices, "Choice", value=text, alias=alias)
    ET.SubElement(view, "Header", value="Why? A few words (please)", size="4")
    attributes = {"name": REASON_TAG, "toName": "left", "rows": "2", "maxSubmissions": "1", "editable": "true"}
    ET.SubElement(view, "TextArea", attributes)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _shown(task: Task) -> dict[str, str]:
    first, second = task.pair.first, task.pair.second
    left, right = (first, second) if task.left == "first" else (second, first)
    return {"left": _html(left, *_COLOURS["left"]), "right": _html(right, *_COLOURS["right"])}


def _html(dialogue: Dialogue, background: str, border: str) -> str:
    """Return a dialogue as HTML: the judged speaker in colour, the partner grey."""
    look = "white-space: pre-wrap; margin: 0 0 .5em; padding: .4em .6em; "
    judged = f"{look}background: {background}; color: #1b1b1b; border-left: 4px solid {border}"
    partner = f"{look}background: #f3f3f3; color: #666"
    return "".join(
        f'<p style="{judged if speaker == dialogue.judged else partner}">{html.escape(text)}</p>'
        for speaker, text in dialogue.utterances
    )
