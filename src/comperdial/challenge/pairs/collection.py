"""A design as files: a page an annotator, projects for Label Studio, and the key that reads the answers."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd

from comperdial.challenge.annotation.labeling import guideline_lines
from comperdial.challenge.pairs.design import Design, Task
from comperdial.challenge.pairs.dialogues import Dialogue, write_dialogues
from comperdial.challenge.pairs.page import page, sides
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
TIE = "No difference"

_README = """\
# Pairs of dialogues to compare

{annotators} annotators, {tasks} tasks. Collect the answers in one of two ways, the same for all:

- **Pages**: send each annotator one file of `pages/`. It opens in any browser, without a network. At the end the
  annotator saves a file, such as `{example}.json`, and sends it back.
- **Label Studio**: for each annotator, one project: paste `config.xml` of the question's folder under *Settings, Labeling
  Interface, Code*, import the annotator's file of tasks, have it done *in the order of the tasks*, export as JSON.

Then:

`comperdial annotate import ANSWERS.json ... --key key.csv --level pair --output preferences.parquet`

Keep `key.csv`, `dialogues.jsonl` and the seed to yourself: they say which system a speaker is, and which tasks are controls.
Without `key.csv` the answers cannot be read.
"""


def write_collection(output: str | Path, design: Design, *, name: str, ties: bool = False, seed: int = 0) -> None:
    """Write a design for annotators, on pages and for Label Studio.

    Parameters
    ----------
    output
        A folder; gets ``pages/ANNOTATOR.html``, ``label_studio/QUESTION/config.xml`` and ``ANNOTATOR.json``, and for the
        organiser ``key.csv``, ``dialogues.jsonl`` (those that are shown) and ``README.md``.
    design
        The tasks.
    name
        The data set's name in table ``preferences``.
    ties
        Whether "no difference" may be chosen. In the paper it may not.
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
    items = [_item(task, seed) for task in design.tasks]
    if len(set(items)) < len(items):
        raise ConfigError(f"two tasks get the same name with seed {seed}", hint="Choose another seed")
    item_of = dict(zip(((t.annotator, t.pair.id) for t in design.tasks), items, strict=True))
    annotators = design.annotators()
    rows = [
        (
            item_of[annotator, task.pair.id], name, task.pair.id,
            task.pair.first.dialogue_id, task.pair.first.system_id,
            task.pair.second.dialogue_id, task.pair.second.system_id,
            annotator, str(position), task.question.name, task.left, task.control or "",
        )
        for annotator, tasks in annotators.items()
        for position, task in enumerate(tasks, start=1)
    ]  # fmt: skip
    # The key comes first: answers to tasks without their key would be given in vain.
    write_table(output / "key.csv", pd.DataFrame(rows, columns=KEY_COLUMNS))
    write_dialogues(output / "dialogues.jsonl", design.dialogues())
    guidelines = files(__package__).joinpath("guidelines.md").read_text(encoding="utf-8")
    lines = [text for text, _ in guideline_lines(guidelines)]
    name_of_design = hashlib.sha256("".join(items).encode()).hexdigest()[:12]
    for annotator, tasks in annotators.items():
        named = [(item_of[annotator, task.pair.id], task) for task in tasks]
        write_text(output / "pages" / f"{annotator}.html", page(name_of_design, named, lines, ties=ties))
        folder = output / "label_studio" / tasks[0].question.name
        if not (folder / "config.xml").exists():
            write_text(folder / "config.xml", _config(tasks[0].question, guidelines, ties=ties))
        write_json(folder / f"{annotator}.json", [{"data": {"item": item, **_html(task)}} for item, task in named])
    example = next(iter(annotators))
    write_text(
        output / "README.md", _README.format(annotators=len(annotators), tasks=len(design.tasks), example=example)
    )


def _item(task: Task, seed: int) -> str:
    ids = json.dumps(["pair", task.pair.id, task.question.name, task.annotator, seed])
    return hashlib.sha256(ids.encode()).hexdigest()[:12]


def _config(question: Question, guidelines: str, *, ties: bool) -> str:
    """Return the labeling configuration of a question as XML; texts are HTML in ``HyperText`` tags, escaped."""
    view = ET.Element("View")
    panel = ET.SubElement(ET.SubElement(view, "Collapse"), "Panel", value="Guidelines")
    for text, style in guideline_lines(guidelines):
        ET.SubElement(panel, "Header", value=text, style=style)
    panes = ET.SubElement(view, "View", style="display: grid; grid-template-columns: 1fr 1fr; gap: 1.5em")
    for side, title in (("left", "Speaker 1"), ("right", "Speaker 2")):
        pane = ET.SubElement(panes, "View")
        ET.SubElement(pane, "Header", value=title, size="4")
        attributes = {"name": side, "value": f"${side}", "valueType": "text"}
        ET.SubElement(pane, "HyperText", attributes | {"inline": "true", "selectionEnabled": "false"})
    ET.SubElement(view, "Header", value=question.text, size="4")
    choices = ET.SubElement(
        view,
        "Choices",
        {"name": CHOICE_TAG, "toName": "left", "choice": "single-radio", "showInline": "true", "required": "true"},
        requiredMessage="Choose one of the two, or skip the task",
    )
    given = [("left", question.left), ("right", question.right), *([("tie", TIE)] if ties else [])]
    for alias, text in given:
        # The alias is what the export holds.
        ET.SubElement(choices, "Choice", value=text, alias=alias)
    ET.SubElement(view, "Header", value="Why? A few words (please)", size="4")
    ET.SubElement(
        view,
        "TextArea",
        {"name": REASON_TAG, "toName": "left", "rows": "2", "maxSubmissions": "1", "editable": "true"},
    )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _html(task: Task) -> dict[str, str]:
    styles: dict[str, Sequence[str]] = {"left": ("#e3effb", "#0b5cad"), "right": ("#fdeedf", "#a14a00")}
    return {side: _pane(dialogue, *styles[side]) for side, dialogue in sides(task).items()}


def _pane(dialogue: Dialogue, background: str, border: str) -> str:
    """Return a dialogue as HTML: the judged speaker in colour, the partner grey."""
    look = "white-space: pre-wrap; margin: 0 0 .5em; padding: .4em .6em; "
    judged = f"{look}background: {background}; color: #1b1b1b; border-left: 4px solid {border}"
    partner = f"{look}background: #f3f3f3; color: #666"
    return "".join(
        f'<p style="{judged if speaker == dialogue.judged else partner}">{html.escape(text)}</p>'
        for speaker, text in dialogue.utterances
    )
