"""A table for readers, in forms made from one content: plain text, Markdown, LaTeX (booktabs), HTML and CSV."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, Self

import pandas as pd

from comperdial.core.files import form_path, write_text
from comperdial.report.captions import SIMULATED

_LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "−": r"$-$", "–": "--", "—": "---",
    "‡": r"\ddag{}",
}  # fmt: skip

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; }
p, ul { max-width: 60rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
caption { caption-side: top; text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { font-size: 13px; padding: .12rem .5rem; white-space: nowrap; }
th, td { text-align: right; font-variant-numeric: tabular-nums; }
th.words, caption { text-align: left; }
tr > :first-child { position: sticky; left: 0; z-index: 1; background: Canvas; }
thead tr:first-child th { border-top: 2px solid; }
thead tr:last-child th { border-bottom: 1px solid; }
tbody tr:last-child td { border-bottom: 2px solid; }
tbody tr:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
th.group { text-align: center; border-bottom: 1px solid; }
.scroll { overflow-x: auto; max-width: 100%; }
h1, p, li { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { margin: .8rem; }
  h1 { font-size: 1.4rem; line-height: 1.25; }
  caption { position: sticky; left: 0; max-width: calc(100vw - 1.6rem); }
  tr > :first-child { min-width: 7rem; max-width: 42vw; white-space: normal; overflow-wrap: break-word; }
}
"""


class Ranked(str):
    """A cell with its rank; the first rank is set in bold, where a column has others too (:func:`pivot`)."""

    __slots__ = ("rank",)
    rank: int

    def __new__(cls, text: str, rank: int) -> Self:
        """Return the text with its rank."""
        made = super().__new__(cls, text)
        made.rank = rank
        return made


def is_best(cell: str) -> bool:
    """Say whether a cell is set in bold: it is of the first rank."""
    return isinstance(cell, Ranked) and cell.rank == 1


# What begins as a number does, and what stands where a number is missing or cannot be.
_NUMBER = re.compile(r"[#<=>~$]?\s?[+\-−]?\d*\.?\d")
_NO_NUMBER = frozenset({"", "–", "—", "−", "+", "o", "not run", "not recorded", "not rated", "not computed"})


@dataclass(frozen=True)
class Section:
    """One block of a table: columns as (group, name), rows of text; the columns without a group are labels."""

    title: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]

    @property
    def labels(self) -> int:
        """Return how many columns hold labels: those before the first group, and at least one."""
        return max(1, sum(1 for _ in takewhile(lambda column: not column[0], self.columns)))

    @cached_property
    def words(self) -> list[bool]:
        """Say of each column whether it holds words, which stand to the left; numbers stand to the right."""
        return [self._holds_words(place) for place in range(len(self.columns))]

    def _holds_words(self, place: int) -> bool:
        said = [row[place] for row in self.rows if row[place] not in _NO_NUMBER]
        # Without anything that says what it holds: a label, or a column that has no number yet.
        return 2 * sum(map(bool, map(_NUMBER.match, said))) <= len(said) if said else place < self.labels

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Return each group of columns with its width, in order."""
        return [(group, len(list(columns))) for group, columns in groupby(self.columns, key=lambda column: column[0])]


@dataclass(frozen=True)
class Document:
    """A table with what stands around it, and the tidy frame that it was made from."""

    title: str
    caption: str
    sections: Sequence[Section]
    tidy: pd.DataFrame
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Column:
    """A column of cells: its group and name, how a record is written in it, and the key of its records in a row."""

    group: str
    name: str
    write: Callable[[Mapping[Any, Any]], str]
    key: tuple[str, ...] = ()


def value_of(name: str, *, digits: int = 3, sign: bool = False) -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a column's value in a record as :func:`number` does."""
    return lambda record: number(record[name], digits=digits, sign=sign)


def count_of(name: str) -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a column's count in a record, with commas between thousands; a dash when it is missing."""
    return lambda record: "–" if pd.isna(record[name]) else f"{record[name]:,.0f}"


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: 1 vote, 1,200 votes."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(title: str, frame: pd.DataFrame, columns: Sequence[Column]) -> Section:
    """Return a section with a row for each record of a frame."""
    rows = [[column.write(record) for column in columns] for record in frame.to_dict("records")]
    return Section(title, [(column.group, column.name) for column in columns], rows)


def pivot(
    title: str,
    cells: Mapping[tuple[str, ...], Mapping[Any, Any]],
    rows: Mapping[Any, Sequence[str]],
    labels: Sequence[str],
    columns: Sequence[Column],
    *,
    first: Sequence[Sequence[str]] = (),
    empty: Collection[str] = (),
) -> Section:
    """Return a section of tidy records: a row for each key of ``rows``, in each column a record or a dash.

    Parameters
    ----------
    title
        The section's heading.
    cells
        The records by the key of their row, then that of their column (:func:`records_by`).
    rows
        What stands in the columns of labels, by the row's key, in order.
    labels, columns
        The names of the columns of labels, and the columns of cells.
    first
        Rows of text that come before the others.
    empty
        A row is left out if its cells say nothing but these.
    """
    made = []
    for key, texts in rows.items():
        found = [(column, cells.get((*key, *column.key))) for column in columns]
        written = ["–" if record is None else column.write(record) for column, record in found]
        if not empty or not set(written) <= set(empty):
            made.append([*texts, *written])
    heads = [*(("", label) for label in labels), *((column.group, column.name) for column in columns)]
    return Section(title, heads, [*first, *_told_apart(made)])


def _told_apart(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Take the ranks out of columns in which all share one: bold would say nothing there."""
    ranks: dict[int, set[int]] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if isinstance(cell, Ranked):
                ranks.setdefault(place, set()).add(cell.rank)
    return [[str(cell) if len(ranks.get(place, ())) == 1 else cell for place, cell in enumerate(row)] for row in rows]


def interval(low: float, high: float) -> str:
    """Write an interval after its value, with a space before it; nothing where there is none."""
    return "" if pd.isna(low) or pd.isna(high) else f" [{number(low, digits=2)}, {number(high, digits=2)}]"


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
    """Write ``stem.md``, ``stem.tex``, ``stem.html`` and ``stem.csv`` (the tidy frame, to the digits that hold)."""
    write_text(form_path(stem, ".md"), markdown(document))
    write_text(form_path(stem, ".tex"), latex(document, label=f"tab:{Path(stem).name}"))
    write_text(form_path(stem, ".html"), html_page(document))
    tidy = document.tidy.assign(**{name: _held(document.tidy[name]) for name in _measured(document.tidy)})
    # Who reads the CSV alone must see it too.
    tidy = tidy.assign(simulated=True) if SIMULATED in document.caption else tidy
    write_text(form_path(stem, ".csv"), tidy.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


FORMATS = {"text": ".txt", "markdown": ".md", "latex": ".tex", "csv": ".csv"}
"""What :func:`rendered` makes, with the suffix of a file of it."""


def rendered(document: Document, form: str, *, label: str) -> str:
    """Return the document in one of :data:`FORMATS`; ``label`` is LaTeX's name for it."""
    if form == "csv":
        return document.tidy.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    if form == "latex":
        return latex(document, label=label)
    return {"text": text, "markdown": markdown}[form](document)


def text(document: Document) -> str:
    """Return the document as plain text, its columns aligned."""
    lines = [document.title, "", document.caption, ""]
    for section in document.sections:
        lines += [section.title, "", *_text_table(section), ""]
    return "\n".join([*lines, *(f"- {note}" for note in document.notes), ""])


def _text_table(section: Section) -> list[str]:
    groups = [name if place == 0 else "" for name, width in section.groups for place in range(width)]
    table = [[name for _, name in section.columns], *section.rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(section.columns))]
    starts = [place for place, name in enumerate(groups) if name]
    for start in starts:
        # A group's name may be longer than what stands below it.
        inside = range(start, start + next(width for name, width in section.groups if name == groups[start]))
        widths[inside[-1]] += max(0, len(groups[start]) - sum(widths[place] + 2 for place in inside) + 2)

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if words else cell.rjust(width)
            for cell, width, words in zip(cells, widths, section.words, strict=True)
        ]
        return "  ".join(padded).rstrip()

    above = ""
    for start in starts:
        above = above.ljust(sum(width + 2 for width in widths[:start])) + groups[start]
    body = [line(row) for row in table]
    return [*([above] if starts else []), body[0], "-" * max(map(len, body)), *body[1:]]


def _measured(frame: pd.DataFrame) -> list[Any]:
    return [name for name in frame.columns if pd.api.types.is_float_dtype(frame[name])]


def _held(values: pd.Series) -> pd.Series:
    """Round to the digits that hold where a processor's arithmetic moves a model's scores in the seventh digit.

    Correlations hold to six. A difference of two that are nearly the same has fewer, and so has a small p-value, which
    is the tail of a distribution.
    """
    name = str(values.name)
    if name == "p" or name.endswith("_p"):
        return values.map(lambda p: float(f"{p:.2g}") if p < 0.01 else round(p, 4), na_action="ignore")
    return values.round(6) if name.endswith("difference") else values


def markdown(document: Document) -> str:
    """Return the document as GitHub Markdown, whose one header row takes a column's group before its name."""
    lines = [f"# {document.title}", "", document.caption, ""]
    for section in document.sections:
        lines += [f"## {section.title}", "", *_markdown_table(section), ""]
    if document.notes:
        lines += [*(f"- {note}" for note in document.notes), ""]
    return "\n".join(lines)


def _markdown_table(section: Section) -> list[str]:
    def escaped(cell: str) -> str:
        text = cell.replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")
        return f"**{text}**" if is_best(cell) else text

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(escaped, cells)) + " |"

    rule = "|" + "|".join(":--" if words else "--:" for words in section.words) + "|"
    header = [f"{group} {name}".strip() for group, name in section.columns]
    return [row(header), rule, *(row(cells) for cells in section.rows)]


def latex(document: Document, *, label: str) -> str:
    """Return the document as LaTeX, one table a section (packages booktabs and graphicx), specials escaped."""
    lines = [r"% Needs \usepackage{booktabs,graphicx}."]
    if not document.sections:
        lines += [_tex(document.caption), ""]
    for count, section in enumerate(document.sections):
        top, rules, at = [], [], 1
        for group, width in section.groups:
            top += [rf"\multicolumn{{{width}}}{{c}}{{{_tex(group)}}}"] if group else [""] * width
            if group:
                rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(section.title)}. {_tex(document.caption)}}}",
            rf"\label{{{label}{f'-{count + 1}' if len(document.sections) > 1 else ''}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{''.join('l' if words else 'r' for words in section.words)}}}",
            r"\toprule",
        ]
        if rules:
            lines += [" & ".join(top) + r" \\", "".join(rules)]
        lines += [" & ".join(_tex(name) for _, name in section.columns) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_tex_cell, row)) + r" \\" for row in section.rows]
        lines += [r"\bottomrule", r"\end{tabular}}"]
        if document.notes and count == len(document.sections) - 1:
            lines.append(r"\par\smallskip\footnotesize " + " ".join(_tex(note) + "." for note in document.notes))
        lines += [r"\end{table}", ""]
    return "\n".join(lines)


def _tex_cell(cell: str) -> str:
    return rf"\textbf{{{_tex(cell)}}}" if is_best(cell) else _tex(cell)


def _tex(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda match: _LATEX[match.group()], text)


def html_page(document: Document) -> str:
    """Return the document as one page that needs nothing from the network."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(document.title)}</title><style>{_STYLE}{_left(document.sections)}</style></head><body>",
        f"<h1>{html.escape(document.title)}</h1><p>{html.escape(document.caption)}</p>",
        *map(_html_table, document.sections),
    ]
    if document.notes:
        parts.append("<ul>" + "".join(f"<li>{html.escape(note)}</li>" for note in document.notes) + "</ul>")
    return "\n".join([*parts, "</body></html>", ""])


def _left(sections: Sequence[Section]) -> str:
    """Return the style of the columns of words: said once here and not in each of their cells."""
    places = sorted({place for section in sections for place, words in enumerate(section.words) if words})
    rules = [f".w{place + 1} td:nth-child({place + 1})" for place in places]
    return f"{', '.join(rules)} {{ text-align: left; }}\n" if rules else ""


def _html_table(section: Section) -> str:
    # The first column stays in view, so that it has a head of its own.
    groups = "".join(
        f'<th colspan="{width}" class="group">{html.escape(group)}</th>'
        if group
        else f'<th></th><th colspan="{width - 1}"></th>'
        if width > 1
        else "<th></th>"
        for group, width in section.groups
    )
    names = "".join(
        f'<th scope="col"{" class=words" if words else ""}>{html.escape(name)}</th>'
        for words, (_, name) in zip(section.words, section.columns, strict=True)
    )
    # HTML needs no end of a cell or a row, nor of a table's parts; they would be a third of a page.
    rows = "\n".join("<tr>" + "".join(map(_html_cell, row)) for row in section.rows)
    kind = " ".join(f"w{place}" for place, words in enumerate(section.words, start=1) if words)
    head = (f"<tr>{groups}</tr>" if any(group for group, _ in section.groups) else "") + f"<tr>{names}</tr>"
    return (
        f'<div class="scroll"><table class="{kind}"><caption>{html.escape(section.title)}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n{rows}\n</table></div>"
    )


def _html_cell(cell: str) -> str:
    text = html.escape(cell, quote=False)
    return f"<td><b>{text}</b>" if is_best(cell) else f"<td>{text}"
