"""Label Studio: the parts of a labeling interface, and its exports in both JSON forms.

"JSON" holds tasks with their annotations; "JSON-MIN" one flat record an annotation, in which a control with one choice or one
text holds that, one with several an object, and no skipped task is left.

Everything shown is HTML in ``HyperText`` tags, with the texts escaped. The plainer tags are not safe for any text that may come:
``Text`` treats it as HTML unless a feature flag is set, so that ``<3`` could be lost, and ``Paragraphs`` fails on an empty
history (read in the front end of Label Studio 1.23.2).
"""

from __future__ import annotations

import hashlib
import html
import json
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree as ET

from pydantic import BaseModel, Field

from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import read_json, read_table

log = logging.getLogger(__name__)

_FORMS = "a list of tasks, as Label Studio exports it as JSON or JSON-MIN"
# Label Studio's own sizes of Header end at that of a section's title.
_TITLE_STYLE = "font-size: 16px; font-weight: 600; margin: 8px 0 2px"
_TEXT_STYLE = "font-size: 14px; font-weight: 400; line-height: 1.4; margin: 0 0 4px"


def guideline_view(markdown: str) -> ET.Element:
    """Return the root of a labeling configuration, with guidelines that unfold above the task."""
    view = ET.Element("View")
    panel = ET.SubElement(ET.SubElement(view, "Collapse"), "Panel", value="Guidelines")
    for block in markdown.strip().split("\n\n"):
        # Lines that were wrapped are joined.
        for text in re.sub(r"\n(?!- )", " ", block).split("\n"):
            line, style = " ".join(text.lstrip("#").split()), _TITLE_STYLE
            if not text.startswith("#"):
                line, style = "• " + line[2:] if text.startswith("- ") else line, _TEXT_STYLE
            ET.SubElement(panel, "Header", value=line, style=style)
    return view


def add_text(view: ET.Element, name: str, title: str) -> None:
    """Add the text that a task has under ``name``, with a title."""
    ET.SubElement(view, "Header", value=title, size="4")
    attributes = {"name": name, "value": f"${name}", "valueType": "text", "inline": "true", "selectionEnabled": "false"}
    ET.SubElement(view, "HyperText", attributes)


def add_choices(
    view: ET.Element, title: str, choices: Iterable[tuple[str, str | None]], message: str = "", **attributes: str
) -> None:
    """Add a question with choices, each with its alias, which is what the export holds; a message makes it required."""
    ET.SubElement(view, "Header", value=title, size="4")
    required = {"required": "true", "requiredMessage": message} if message else {}
    question = ET.SubElement(view, "Choices", attributes | {"showInline": "true"} | required)
    for text, alias in choices:
        ET.SubElement(question, "Choice", {"value": text} | ({"alias": alias} if alias else {}))


def to_xml(view: ET.Element) -> str:
    """Return a labeling configuration as text."""
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def paragraph(style: str, text: str, speaker: str = "") -> str:
    """Return an utterance as HTML, after its speaker's name if that is shown."""
    name = f"<b>{html.escape(speaker)}:</b> " if speaker else ""
    return f'<p style="white-space: pre-wrap; margin: 0 0 .5em{style}">{name}{html.escape(text)}</p>'


def bullets(texts: Iterable[str]) -> str:
    """Return a list as HTML."""
    entries = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f'<ul style="list-style: disc; padding-left: 1.5em">{entries}</ul>'


def item_name(*ids: str | int) -> str:
    """Return the name of an item in tasks: a hash, so that nothing in a task says which system answered."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:12]


def refuse_used(folder: Path) -> None:
    """Refuse to write into a folder that holds something: without the key that is there its tasks could not be read."""
    if folder.exists() and any(folder.iterdir()):
        raise FileError(
            "holds files already",
            where=str(folder),
            expected="a new or an empty folder",
            hint="Export into another folder: without their key.csv the answers to earlier tasks cannot be read",
        )


def read_key(
    path: str | Path, columns: Sequence[str], *, may_be_empty: Collection[str] = ()
) -> dict[str, dict[str, str]]:
    """Return the rows of the ``key.csv`` that was written with tasks, by their ``item``.

    Raises
    ------
    SchemaError
        When it has other columns, or names the record at fault: a cell without a name, an item that is there twice.
    """
    frame = read_table(path)
    if list(frame.columns) != list(columns):
        problem = f"the columns are {', '.join(map(str, frame.columns))}"
        raise SchemaError(problem, where=str(path), expected=f"the key.csv of these tasks: {', '.join(columns)}")
    items: dict[str, dict[str, str]] = {}
    for number, record in enumerate(frame.to_dict("records"), start=1):
        row = {str(name): str(value) for name, value in record.items()}
        empty = [name for name, value in row.items() if not value.strip() and name not in may_be_empty]
        if empty or row["item"] in items:
            problem = f"column {empty[0]!r} is empty" if empty else f"item {row['item']!r} a second time"
            where = f"{path}, record {number}"
            raise SchemaError(problem, where=where, expected="a name in each column, each item once")
        items[row["item"]] = row
    return items


@dataclass(frozen=True)
class Annotation:
    """What one person gave for one task: choices and texts by the name of their tag, and how long it took, if known."""

    where: str
    item: str
    annotator: str
    choices: Mapping[str, list[str]]
    seconds: float | None


class _User(BaseModel):
    id: int | Filled | None = None
    email: Filled | None = None


class _Value(BaseModel):
    choices: list[str] = []
    text: list[str] = []


class _Result(BaseModel):
    from_name: str
    value: Any


class _Annotation(BaseModel):
    id: int | Filled
    completed_by: int | Filled | _User | None = None
    was_cancelled: bool = False
    lead_time: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    result: list[_Result]


class _Data(BaseModel):
    item: str


class _Task(BaseModel):
    data: _Data
    annotations: list[_Annotation]


def read_exports(
    paths: Sequence[str | Path], tags: Collection[str], key: Collection[str], key_path: str | Path
) -> list[Annotation]:
    """Read exports of one or several projects; skipped tasks are counted in the log.

    Parameters
    ----------
    paths
        The files.
    tags
        The names of our tags. What others hold, such as a field for comments that an organiser added, is not read;
        predictions and drafts are not, either.
    key, key_path
        The items that there are, and the file that names them.

    Raises
    ------
    SchemaError
        Names the task and the annotation at fault: another form, an item that is not in the key, a person's second answer.
    """
    seen: dict[tuple[str, str], Annotation] = {}
    for path in paths:
        skipped, people = 0, Counter[str]()
        for number, record in enumerate(checked(list[dict[str, Any]], read_json(path), str(path)), start=1):
            where = f"{path}, record {number}" + (f" (task {record['id']})" if "id" in record else "")
            task = checked(_Task, record if "annotations" in record else _as_task(record, where, tags), where)
            for given in task.annotations:
                if given.was_cancelled:
                    skipped += 1
                    continue
                one = _annotation(task.data.item, given, f"{where}, annotation {given.id}", tags)
                if one.item not in key:
                    raise SchemaError(
                        f"item {one.item!r} is not in {key_path}",
                        where=one.where,
                        expected="the items of this key",
                        hint="Give the key.csv that was written together with these tasks, and its level",
                    )
                if first := seen.get((one.item, one.annotator)):
                    raise SchemaError(
                        f"a second annotation of item {one.item!r} by annotator {one.annotator!r}",
                        where=one.where,
                        expected=f"one, as in {first.where}",
                        hint="Delete one of them in Label Studio and export again; do not mix exports of several servers",
                    )
                seen[one.item, one.annotator] = one
                people[one.annotator] += 1
        log.info("%s: %d annotations by %d annotators; %d skipped", path, people.total(), len(people), skipped)
    if not seen:
        raise SchemaError("no task was answered", where=", ".join(map(str, paths)), expected="annotations of tasks")
    return [*seen.values()]


def _as_task(record: dict[str, Any], where: str, tags: Collection[str]) -> dict[str, Any]:
    """Return a record of the JSON-MIN form in the JSON form; a task that nobody answered has no annotation."""
    if "annotator" not in record:
        raise SchemaError("neither 'annotations' nor 'annotator' is in it", where=where, expected=_FORMS)
    annotation = {
        "id": record.get("annotation_id"),
        "completed_by": record["annotator"],
        "lead_time": record.get("lead_time"),
        "result": [{"from_name": tag, "value": record[tag]} for tag in tags if tag in record],
    }
    answered = annotation["id"] is not None or annotation["completed_by"] is not None
    return {"data": record, "annotations": [annotation] if answered else []}


def _annotation(item: str, given: _Annotation, where: str, tags: Collection[str]) -> Annotation:
    choices: dict[str, list[str]] = {}
    for name, value in ((result.from_name, result.value) for result in given.result if result.from_name in tags):
        if name in choices:
            raise SchemaError(f"tag {name!r} a second time", where=where, expected="each tag once")
        read = _Value(text=[value]) if isinstance(value, str) else checked(_Value, value, f"{where}, tag {name!r}")
        choices[name] = read.text or read.choices
    user = given.completed_by
    # Of an object the number, which the plain form of the export has, before the address.
    who = (user.email if user.id is None else user.id) if isinstance(user, _User) else user
    if who is None:
        raise SchemaError("no annotator", where=where, expected="a number, an address, or an object with one of them")
    return Annotation(where, item, str(who).strip(), choices, given.lead_time)
