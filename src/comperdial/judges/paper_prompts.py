"""The paper's own prompts, taken from its text or HTML (appendix B) and made templates of.

The licence of the paper's text is its publisher's: what is imported stays on the user's machine.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from comperdial.core.errors import FileError
from comperdial.core.files import read_text, sha256, write_json, write_text
from comperdial.judges._guard import escape
from comperdial.judges._markup import to_text
from comperdial.judges.prompting import NAMES, Prompt


class _Section(NamedTuple):
    number: str
    title: str

    def __str__(self) -> str:
        return f"{self.number} {self.title}"


class _Mark(NamedTuple):
    """A line that a prompt must have: how to name it, and how to know it."""

    about: str
    pattern: re.Pattern[str]


SECTIONS = {
    "original_simple": _Section("B.1.1", "Original simple prompt"),
    "cpds_simple_ref": _Section("B.1.2", "CPDScore-Simple with reference"),
    "cpds_simple": _Section("B.1.3", "CPDScore-Simple without reference"),
    "original_detail": _Section("B.2.1", "Original detailed prompt"),
    "cpds_detail_ref": _Section("B.2.2", "CPDScore-Detail with reference"),
    "cpds_detail": _Section("B.2.3", "CPDScore-Detail without reference"),
    "cpds_dialogue": _Section("B.3", "CPDScore-Dialogue"),
}

_DASH = "[-\u2010-\u2015\u2212]"
_LIST = r"{first}(?:(?!#).)*?{last}"
_PLACEHOLDERS = {
    "history": r"\[\s*Here\s+is\s+history\s+information\s*\]",
    "reference": r"\[\s*Here\s+is\s+reference\s+response\s+information\s*\]",
    "response": r"\[\s*Here\s+is\s+response\s+information\s*\]",
    "fact": r"\[\s*Here\s+is\s+fact\s+information\s*\]",
    "turn_scores": _LIST.format(
        first=rf"Turn\s*1\s+Score\s*{_DASH}\s*\[\s*score[\s_]*1\s*\]",
        last=rf"Turn\s*7\s+Score\s*{_DASH}\s*\[\s*score[\s_]*7\s*\]",
    ),
    "responses": _LIST.format(
        first=r"Turn\s*1\s*:\s*\[\s*turn[\s_]*1\s*\]", last=r"Turn\s*7\s*:\s*\[\s*turn[\s_]*7\s*\]"
    ),
}
_UNMAPPED = re.compile(
    r"\[\s*(?:here\s+is|score|turn)\b[^\]\n]*\]?|\[\s*(?:score|turn)[\s_]*\d[^\]\n]*\]?", re.IGNORECASE
)


def _line(text: str) -> _Mark:
    words = r"\s*".join(_DASH if word == "-" else re.escape(word) for word in re.findall(r"\w+|[^\w\s]+", text))
    return _Mark(f"the line {text!r}", re.compile(rf"{words}$", re.IGNORECASE))


def _field(name: str) -> _Mark:
    return _Mark(f"the place for `{name}`", re.compile(re.escape(_placeholder(name)) + "$"))


def _numbered(what: str, pattern: str, last: int) -> tuple[_Mark, ...]:
    return tuple(
        _Mark(f"{what} {number}", re.compile(pattern.format(number), re.IGNORECASE)) for number in range(1, last + 1)
    )


def _placeholder(name: str) -> str:
    return f"{{{{ {name} }}}}"


def _shown(*fields: tuple[str, str]) -> tuple[_Mark, ...]:
    return tuple(mark for header, name in fields for mark in (_line(header), _field(name)))


_TEXT = _Mark("a line of text", re.compile(r"[^#\s]"))
_STEP, _GRADE = r"{}\s*\.\s*\w", r"-.*\b{}\s*\("
_CONTEXT, _RESPONSE = ("### Context:", "history"), ("### Response:", "response")
_HISTORY, _FACT = ("### Conversation History:", "history"), ("### Corresponding Fact:", "fact")


def _simple(*dimensions: str) -> tuple[_Mark, ...]:
    form = (_line(f"{dimension} - x") for dimension in dimensions)
    return _line("### Instruction:"), _TEXT, _line("### Output Format:"), *form, _line("### Your Response:")


_QUALITIES = _simple("humanness", "fluency", "coherency", "consistency", "engagingness", "overall")
_DETAIL = (
    *(_line("### Instructions:"), _TEXT, _line("### Evaluation Criteria:"), _TEXT),
    *_numbered("grade", _GRADE, 5),
    _line("### Evaluation Steps:"),
    *_numbered("step", _STEP, 3),
)
_HUMANNESS = (_line("### Evaluation Form (scores ONLY):"), _line("- Humanness:"))
# What each prompt holds, in this order; the last mark is its last line.
_OUTLINES: dict[str, tuple[_Mark, ...]] = {
    "original_simple": (
        *_shown(_CONTEXT, _RESPONSE),
        *_simple("relevance", "specificity", "interestingness", "understandability", "overall"),
    ),
    "cpds_simple_ref": (*_shown(_CONTEXT, ("### Reference response:", "reference"), _RESPONSE), *_QUALITIES),
    "cpds_simple": (*_shown(_CONTEXT, _RESPONSE), *_QUALITIES),
    "original_detail": (
        *(_TEXT, _Mark("the line 'Engagingness (1-3) ...'", re.compile(rf"Engagingness\s*\(1\s*{_DASH}\s*3\)"))),
        *_numbered("grade", _GRADE, 3),
        _line("Evaluation Steps:"),
        *_numbered("step", _STEP, 3),
        *_shown(("Conversation History:", "history"), ("Corresponding Fact:", "fact"), ("Response:", "response")),
        *(_line("Evaluation Form (scores ONLY):"), _line("- Engagingness:")),
    ),
    "cpds_detail_ref": (
        *_DETAIL,
        *_shown(_HISTORY, ("### Corresponding Reference Response:", "reference"), _FACT, _RESPONSE),
        *_HUMANNESS,
    ),
    "cpds_detail": (*_DETAIL, *_shown(_HISTORY, _FACT, _RESPONSE), *_HUMANNESS),
    "cpds_dialogue": (
        *(_line("### Instructions:"), _TEXT, _line("### Evaluation Steps:")),
        *_numbered("step", _STEP, 6),
        *_shown(("### Dialogue Turn Scores:", "turn_scores")),
        *(_line("### Dialogue Interaction Evaluation Criteria:"), _TEXT),
        *_numbered("grade", r"score\s*{}\s*:", 5),
        *_shown(("### Responses:", "responses")),
        _line("### Evaluation Form:"),
        *(_line("Overall Dialogue Turn Score - x"), _line("Dialogue Interaction Score - x"), _line("Final Score - x")),
    ),
}


def import_paper(paper: str | Path, folder: str | Path) -> dict[str, Prompt]:
    """Write the paper's seven prompts as templates; none unless all are found whole.

    Parameters
    ----------
    paper
        The paper as plain text, or as HTML such as LaTeXML makes of it (arXiv, ar5iv).
    folder
        Where to write ``<name>.md`` and ``source.json``: the paper's file name and sha256, and the hashes of prompts.

    Returns
    -------
    dict
        The prompts by name.

    Raises
    ------
    FileError
        When a section is missing, or a prompt lacks a line or a placeholder: names section and line.
    """
    paper, folder = Path(paper), Path(folder)
    prompts = {name: Prompt(name, text, "paper") for name, text in extract(read_paper(paper), str(paper)).items()}
    for name, prompt in prompts.items():
        write_text(folder / f"{name}.md", prompt.template)
    hashes = {name: prompt.hash for name, prompt in prompts.items()}
    write_json(folder / "source.json", {"file": paper.name, "sha256": sha256(paper), "prompts": hashes})
    return prompts


def read_paper(path: str | Path) -> str:
    """Return a paper's text; HTML is known by its first kilobyte or its suffix."""
    path = Path(path)
    try:
        text = read_text(path)
    except FileError as error:
        if path.is_file() and path.read_bytes()[:5] == b"%PDF-":
            raise FileError(
                "a PDF", where=str(path), expected="text or HTML", hint="Convert it, for example with `pdftotext`"
            ) from error
        raise
    is_html = path.suffix.lower() in (".html", ".htm", ".xhtml") or re.search("<html|<!doctype html", text[:1000], re.I)
    return to_text(text) if is_html else text


def extract(text: str, where: str) -> dict[str, str]:
    """Return the templates of the seven prompts in a paper's text; ``where`` names it in errors."""
    bodies = _bodies(text)
    if missing := [str(SECTIONS[name]) for name in NAMES if not bodies.get(name)]:
        raise FileError(
            "no section " + ", no section ".join(missing),
            where=where,
            expected="the seven prompts of appendix B, from B.1.1 to B.3, each below its heading",
            hint="Give the whole paper, appendices included",
        )
    return {name: _template(name, bodies[name], f"{where}, section {SECTIONS[name]}") for name in NAMES}


def _bodies(text: str) -> dict[str, str]:
    """Return what stands below each heading, in the last place where that is more than nothing.

    A table of contents has the same headings, with nothing or a page's number below.
    """
    own = [(name, found) for name, section in SECTIONS.items() for found in _heading(section).finditer(text)]
    ends = sorted(found.start() for found in [*_OTHER_HEADING.finditer(text), *(found for _, found in own)])
    bodies: dict[str, str] = {}
    for name, heading in own:
        until = next((end for end in ends if end >= heading.end()), len(text))
        if body := _lines(text[heading.end() : until]):
            bodies[name] = body
    return bodies


_OTHER_HEADING = re.compile(
    r"^[^\S\n]*(?:Appendix\s+[A-Z](?![a-z])|[A-Z]\s?\.\s?\d+(?:\s?\.\s?\d+)*\.?\s+[A-Z])", re.MULTILINE
)


def _heading(section: _Section) -> re.Pattern[str]:
    number = r"\s*\.\s*".join(re.escape(part) for part in section.number.split("."))
    words = re.findall(r"\w+|-", section.title)
    title = "".join(
        rf"\s*{_DASH}\s*" if word == "-" else word + (r"\s+" if after not in ("-", "") else "")
        for word, after in zip(words, [*words[1:], ""], strict=True)
    )
    return re.compile(rf"^[^\S\n]*{number}\.?\s*{title}[^\S\n]*[.:]?[^\S\n]*$", re.MULTILINE | re.IGNORECASE)


def _lines(text: str) -> str:
    """Return a section's lines without empty ones, page numbers and notes that it goes on."""
    lines = []
    for raw in text.split("\n"):
        line = " ".join("".join(c for c in raw if unicodedata.category(c) != "Cf").split())
        line = re.sub("^[\u2022\u2023\u25aa\u00b7\u2013\u2014\u2212]\\s*", "- ", line)
        line = re.sub(r"\s*\(\s*continued?\s+(?:on\s+|from\s+)?(?:the\s+)?\w+\s+page\s*\)", "", line, flags=re.I)
        if line and not line.isdigit():
            lines.append(line)
    return "\n".join(lines)


def _template(name: str, body: str, where: str) -> str:
    template = escape(body)
    for field, pattern in _PLACEHOLDERS.items():
        template = re.sub(pattern, _placeholder(field), template, flags=re.I | re.S)
    if unknown := _UNMAPPED.search(template):
        raise FileError(
            f"the placeholder {unknown[0]!r} is not known", where=where, expected="history, response, turn scores, …"
        )
    _check(_OUTLINES[name], template.split("\n"), where)
    return template + "\n"


def _check(outline: tuple[_Mark, ...], lines: list[str], where: str) -> None:
    """Raise :class:`FileError` when a prompt lacks a line of its outline, or has lines after the last."""
    position, before = 0, "at the start"
    for mark in outline:
        until = position + 1 if mark is _TEXT else len(lines)
        found = next((i for i in range(position, min(until, len(lines))) if mark.pattern.match(lines[i])), None)
        if found is None:
            raise FileError(
                f"{mark.about} is missing",
                where=where,
                expected=f"it {before}",
                hint="The text is cut short or altered there: give a complete copy of the paper",
            )
        position, before = found + 1, f"after {mark.about}"
    if rest := lines[position:]:
        raise FileError(f"text after the prompt's end: {rest[0][:60]!r}", where=where, expected=f"none {before}")
    for field in _PLACEHOLDERS:
        if sum(line.count(_placeholder(field)) for line in lines) > 1:
            raise FileError(f"the place for `{field}` stands twice", where=where, expected="it once")
