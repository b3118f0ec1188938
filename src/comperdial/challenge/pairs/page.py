"""One annotator's page: an HTML file with everything inside, which loads nothing and needs no server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

from comperdial.challenge.pairs.design import Task
from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import FileError

FORMAT = "comperdial votes 1"
"""What the file that a page saves says of itself."""
_DATA = re.compile(r'<script type="application/json" id="data">([^<]*)</script>')


def page(design: str, tasks: Sequence[tuple[str, Task]], guidelines: Sequence[str], *, ties: bool) -> str:
    """Return the page of one annotator.

    Parameters
    ----------
    design
        The design's name: answers to another design are not taken for answers to this one.
    tasks
        The annotator's tasks, each with the name that the answer gives it. Nothing in the page says which system a
        speaker is, or which tasks are controls.
    guidelines
        Paragraphs that say what to do.
    ties
        Whether "no difference" may be chosen.
    """
    first = tasks[0][1]
    data = {
        "design": design,
        "annotator": first.annotator,
        "question": {"text": first.question.text, "left": first.question.left, "right": first.question.right},
        "ties": ties,
        "guidelines": list(guidelines),
        "tasks": [{"item": item, **{side: _shown(d) for side, d in sides(task).items()}} for item, task in tasks],
    }
    code = f'"use strict";\n(() => {{\n{_part("page.js")}}})();\n'
    style = _part("page.css")
    return Template(_part("page.html")).substitute(
        annotator=html.escape(first.annotator),
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        script=code,
        # So that no text can end the element that holds it.
        data=json.dumps(data).replace("<", "\\u003c"),
    )


def page_data(text: str) -> dict[str, Any]:
    """Return what a page shows, for programs that fill it in; :class:`FileError` when the text is no such page."""
    if not (found := _DATA.search(text)):
        raise FileError("no tasks in the page", expected="a page that `comperdial annotate pairs` wrote")
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def sides(task: Task) -> dict[str, Dialogue]:
    """Return which dialogue stands ``left`` and which ``right``."""
    first, second = task.pair.first, task.pair.second
    return {"left": first, "right": second} if task.left == "first" else {"left": second, "right": first}


def _shown(dialogue: Dialogue) -> list[tuple[bool, str]]:
    return [(speaker == dialogue.judged, text) for speaker, text in dialogue.utterances]


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
