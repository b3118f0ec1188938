"""A table for readers, in four forms made from one content: Markdown, LaTeX (booktabs), HTML and CSV."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.files import write_text

_LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "−": r"$-$", "–": "--", "—": "---",
}  # fmt: skip

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
caption { caption-side: top; text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .15rem .7rem; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead tr:first-child th { border-top: 2px solid; }
thead tr:last-child th { border-bottom: 1px solid; }
tbody tr:last-child td { border-bottom: 2px solid; }
tbody tr:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
th.group { text-align: center; border-bottom: 1px solid; }
.scroll { overflow-x: auto; }
"""


@dataclass(frozen=True)
class Section:
    """One block of a table: columns as (group, name), rows of text, the first column a label without a group."""

    title: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Document:
    """A table with what stands around it, and the tidy frame that it was made from."""

    title: str
    caption: str
    sections: Sequence[Section]
    tidy: pd.DataFrame
    notes: Sequence[str] = field(default_factory=tuple)


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """Write a number with a fixed count of digits, or a dash when it is missing; never "-0.000"."""
    if value is None or pd.isna(value):
        return "–"
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:+.{digits}f}" if sign and rounded else f"{rounded:.{digits}f}"


def records_by(frame: pd.DataFrame, key: list[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows of a frame by their key, as plain dictionaries."""
    names = [str(column) for column in frame.columns]
    records = (dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None))
    return {tuple(record[name] for name in key): record for record in records}


def write(document: Document, stem: str | Path) -> None:
    """Write ``stem.md``, ``stem.tex``, ``stem.html`` and ``stem.csv`` (the tidy frame, numbers to 6 digits)."""
    stem = Path(stem)
    write_text(stem.with_suffix(".md"), markdown(document))
    write_text(stem.with_suffix(".tex"), latex(document, label=f"tab:{stem.name}"))
    write_text(stem.with_suffix(".html"), html_page(document))
    # Six digits: more would differ between processors' arithmetic, and the study has no use for them.
    write_text(stem.with_suffix(".csv"), document.tidy.to_csv(index=False, float_format="%.6f", lineterminator="\n"))


def markdown(document: Document) -> str:
    """Return the document as GitHub Markdown, whose one header row takes a column's group before its name."""
    lines = [f"# {document.title}", "", document.caption, ""]
    for section in document.sections:
        lines += [f"## {section.title}", "", *_markdown_table(section), ""]
    if document.notes:
        lines += [*(f"- {note}" for note in document.notes), ""]
    return "\n".join(lines)


def _markdown_table(section: Section) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", r"\|").replace("*", r"\*") for cell in cells) + " |"

    rule = "|" + "|".join(":--" if i == 0 else "--:" for i in range(len(section.columns))) + "|"
    header = [f"{group} {name}".strip() for group, name in section.columns]
    return [row(header), rule, *(row(cells) for cells in section.rows)]


def latex(document: Document, *, label: str) -> str:
    """Return the document as a LaTeX table (packages booktabs and graphicx); escapes every special character."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(document.caption)}}}", rf"\label{{{label}}}"]
    for section in document.sections:
        runs = [(group, len(list(columns))) for group, columns in groupby(section.columns, key=lambda c: c[0])]
        top, rules, at = [], [], 1
        for group, width in runs:
            top.append(rf"\multicolumn{{{width}}}{{c}}{{{_tex(group)}}}" if group else "")
            if group:
                rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines += [
            rf"\par\smallskip {_tex(section.title)}\par",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * (len(section.columns) - 1)}}}",
            r"\toprule",
        ]
        if rules:
            lines += [" & ".join(top) + r" \\", "".join(rules)]
        lines += [" & ".join(_tex(name) for _, name in section.columns) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_tex, row)) + r" \\" for row in section.rows]
        lines += [r"\bottomrule", r"\end{tabular}}"]
    if document.notes:
        lines.append(r"\par\smallskip\footnotesize " + " ".join(_tex(note) + "." for note in document.notes))
    return "\n".join([*lines, r"\end{table}", ""])


def _tex(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda match: _LATEX[match.group()], text)


def html_page(document: Document) -> str:
    """Return the document as one page that needs nothing from the network."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(document.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{html.escape(document.title)}</h1><p>{html.escape(document.caption)}</p>",
        *map(_html_table, document.sections),
    ]
    if document.notes:
        parts.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in document.notes) + "</ul>")
    return "\n".join([*parts, "</body></html>", ""])


def _html_table(section: Section) -> str:
    runs = [(group, len(list(columns))) for group, columns in groupby(section.columns, key=lambda c: c[0])]
    groups = "".join(
        f'<th colspan="{width}" class="group">{html.escape(group)}</th>' if group else f'<th colspan="{width}"></th>'
        for group, width in runs
    )
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for _, name in section.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows
    )
    head = (f"<tr>{groups}</tr>" if any(group for group, _ in runs) else "") + f"<tr>{names}</tr>"
    return (
        f'<div class="scroll"><table><caption>{html.escape(section.title)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )
