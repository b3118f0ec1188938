"""What Label Studio shows: the labeling configuration (XML) and the pieces of HTML in the tasks.

Everything shown is HTML in ``HyperText`` tags, with the texts escaped. The plainer tags are not safe for any text that
may come: ``Text`` treats it as HTML unless a feature flag says otherwise, so that ``<3`` could be lost, and
``Paragraphs`` fails on an empty history (read in the front end of Label Studio 1.23.2).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from comperdial.challenge.annotation.terms import OVERALL_TAG, REASONS_TAG, SCORES, Level
from comperdial.schema.dimensions import AXES

_SHOWN = {"turn": ("personas", "history", "response"), "dialogue": ("personas", "flows")}
_TITLES = {
    "personas": "The speakers",
    "history": "The conversation so far",
    "response": "The response to rate",
    "flows": "The dialogue to rate",
}
# Label Studio's own sizes of Header end at that of a section's title.
_TITLE_STYLE = "font-size: 16px; font-weight: 600; margin: 8px 0 2px"
_TEXT_STYLE = "font-size: 14px; font-weight: 400; line-height: 1.4; margin: 0 0 4px"
_LINE = '<p style="white-space: pre-wrap; margin: 0 0 .5em">'
_MARKED = '<p style="white-space: pre-wrap; margin: 0 0 .5em; padding: .4em; border-left: 4px solid #4a7">'


def config(level: Level) -> str:
    """Return the labeling configuration of a level as XML."""
    view = guideline_view(level.guidelines())
    shown = _SHOWN[level.name]
    for name in shown:
        ET.SubElement(view, "Header", value=_TITLES[name], size="4")
        attributes = {"name": name, "value": f"${name}", "valueType": "text"}
        ET.SubElement(view, "HyperText", attributes | {"inline": "true", "selectionEnabled": "false"})
    _add_overall(view, shown[-1])
    if level.name == "dialogue":
        _add_reasons(view, shown[-1])
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _add_overall(view: ET.Element, shown: str) -> None:
    ET.SubElement(view, "Header", value="Overall score", size="4")
    # Choices, not Rating: five stars do not say what they mean, and one click too many on them takes the score back.
    choices = ET.SubElement(
        view,
        "Choices",
        name=OVERALL_TAG,
        toName=shown,
        choice="single-radio",
        showInline="true",
        required="true",
        requiredMessage="Give an overall score from 1 to 5, or skip the task",
    )
    for score, words in SCORES.items():
        # The alias is what the export holds.
        ET.SubElement(choices, "Choice", value=f"{score}: {words}", alias=str(score))


def _add_reasons(view: ET.Element, shown: str) -> None:
    ET.SubElement(view, "Header", value='If the score is low: mark each reason for it ("n")', size="4")
    choices = ET.SubElement(view, "Choices", name=REASONS_TAG, toName=shown, choice="multiple", showInline="true")
    for axis in AXES:
        ET.SubElement(choices, "Choice", value=axis)


def guideline_view(markdown: str) -> ET.Element:
    """Return the root of a labeling configuration, with guidelines that unfold above the task."""
    view = ET.Element("View")
    panel = ET.SubElement(ET.SubElement(view, "Collapse"), "Panel", value="Guidelines")
    for text, style in guideline_lines(markdown):
        ET.SubElement(panel, "Header", value=text, style=style)
    return view


def guideline_lines(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield guidelines as lines for ``Header`` tags, each with its style; joins lines that were wrapped."""
    for block in markdown.strip().split("\n\n"):
        for text in re.sub(r"\n(?!- )", " ", block).split("\n"):
            line = " ".join(text.lstrip("#").split())
            if text.startswith("#"):
                yield line, _TITLE_STYLE
            else:
                yield ("• " + line[2:] if text.startswith("- ") else line), _TEXT_STYLE


def personas_html(personas: Mapping[str, Sequence[str]], facts: Sequence[str] = ()) -> str:
    """Return the personas by speaker, and facts that B may draw on, as HTML."""
    parts = [f"<p><b>{_speaker(speaker)}</b></p>{_list(sentences)}" for speaker, sentences in sorted(personas.items())]
    if facts:
        parts.append(f"<p><b>Facts that B may draw on</b></p>{_list(facts)}")
    return "".join(parts) or "<p>Nothing is known about the speakers.</p>"


def history_html(history: Iterable[Mapping[str, str]]) -> str:
    """Return the utterances before a response as HTML."""
    lines = [f"{_LINE}<b>{html.escape(u['speaker'])}:</b> {html.escape(u['text'])}</p>" for u in history]
    return "".join(lines) or "<p>(Nothing was said before.)</p>"


def response_html(response: str) -> str:
    """Return a response as HTML, marked as what is to be rated."""
    return f"{_MARKED}<b>B:</b> {html.escape(response)}</p>"


def flow_html(number: int, total: int, history: Iterable[Mapping[str, str]], response: str) -> str:
    """Return one flow of a dialogue: the history that was really said, and the system's response to it."""
    return f"<h4>Flow {number} of {total}</h4>{history_html(history)}{response_html(response)}"


def _speaker(name: str) -> str:
    return html.escape(name) + (" (rated)" if name == "B" else "")


def _list(texts: Iterable[str]) -> str:
    return (
        '<ul style="list-style: disc; padding-left: 1.5em">'
        + "".join(f"<li>{html.escape(text)}</li>" for text in texts)
        + "</ul>"
    )
