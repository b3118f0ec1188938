"""Tables for readers: one :class:`Table`, written as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, Self

import pandas as pd

from comperdial.config import load_yaml
from comperdial.core.files import form_path, read_text, write_text

SIMULATED = (
    "SIMULATED: the systems, the raters and their ratings are programs; nothing here is a finding about people, "
    "systems or metrics."
)
"""Ends every caption of the embedded benchmark."""

NOTES: Mapping[str, Any] = load_yaml(Path(__file__).with_name("notes.yaml"))
"""How to read what several tables show."""

FORMATS = {"text": ".txt", "markdown": ".md", "latex": ".tex", "csv": ".csv"}
"""The forms that :func:`rendered` makes, with the suffix of a file of each."""

# A LaTeX table of more rows does not fit on a page.
_LONG = 45
_LATEX = str.maketrans({
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "“": "``", "”": "''", "‘": "`", "’": "'",
    "−": "$-$", "–": "--", "—": "---", "‡": r"\ddag{}", "…": r"\ldots{}", "\u00a0": "~",
    "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$",
    "α": r"$\alpha$", "δ": r"$\delta$", "κ": r"$\kappa$", "ρ": r"$\rho$", "τ": r"$\tau$",
})  # fmt: skip


@dataclass(frozen=True)
class Section:
    """One block of a table: its heading, and a frame of texts, in which a missing one is written as a dash.

    Columns are names, or pairs of a group and a name. Named levels of the index are columns of labels; an index without a name is
    not shown. A cell that ends with a rank, ``0.41 #1``, is bold if it is the first and its column has others.
    """

    title: str
    frame: pd.DataFrame


@dataclass(frozen=True)
class Table:
    """A table: the tidy frame of the CSV file, and the sections, caption and notes that people read."""

    title: str
    caption: str
    frame: pd.DataFrame
    sections: Sequence[Section]
    notes: Sequence[str] = ()


def nothing(title: str, why: str, *, simulated: bool = False) -> Table:
    """Return the table that says why there is none."""
    text = f"Nothing to show: {why}"
    caption = f"{text}. {SIMULATED}" if simulated else f"{text}."
    return Table(title, caption, pd.DataFrame({"note": [text]}), [])


def described(
    study: Mapping[str, Any],
    frame: pd.DataFrame,
    sections: Sequence[Section],
    *notes: str,
    **values: Any,  # noqa: ANN401
) -> Table:
    """Return a table with the title, caption and first notes of its entry in ``study.yaml``, with ``values`` filled in."""
    entry = study["entry"]
    first = [note.format(**values) for note in entry.get("notes", ())]
    return Table(entry["title"].format(**values), entry["caption"].format(**values), frame, sections, [*first, *notes])


def ending(source: str) -> str:
    """Return what a caption ends with, given who rated: nothing if people did."""
    if source == "human":
        return ""
    return SIMULATED if source == "simulated" else f"The ratings are those of {source}, not people's."


# Cells


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """Write a number with a fixed count of digits, or a dash when it is missing; never "-0.000"."""
    if value is None or pd.isna(value):
        return "–"
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:+.{digits}f}" if sign and rounded else f"{rounded:.{digits}f}"


def count(value: float | None, noun: str = "") -> str:
    """Write a whole number with commas, or a dash when it is missing; with its noun: 1 vote, 1,200 votes."""
    text = "–" if value is None or pd.isna(value) else f"{value:,.0f}"
    return text if not noun else f"{text} {noun}" + ("" if value == 1 else "s")


def interval(low: float, high: float, *, digits: int = 2) -> str:
    """Write an interval with a space before it; nothing when it is missing."""
    return "" if pd.isna(low) or pd.isna(high) else f" [{number(low, digits=digits)}, {number(high, digits=digits)}]"


def p_value(p: float) -> str:
    """Write a p-value, or a dash when it is missing; rounding makes it neither 0 nor 0.05."""
    text = number(p)
    return "< 0.001" if p < 0.001 else "< 0.050" if p < 0.05 and text == "0.050" else text


def estimate(row: Mapping[Any, Any], name: str = "value", *, sign: bool = False, ends: int = 2) -> str:
    """Write a value of a record with its interval, the columns ``low`` and ``high`` or ``NAME_low`` and ``NAME_high``."""
    low, high = ("low", "high") if "low" in row else (f"{name}_low", f"{name}_high")
    return number(row[name], sign=sign) + interval(row[low], row[high], digits=ends)


def as_number(name: str, **how: Any) -> Callable[[Mapping[Any, Any]], str]:  # noqa: ANN401
    """Return what writes a number of a record, as :func:`number` does."""
    return lambda record: number(record[name], **how)


def small_p(name: str = "p") -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a p-value of a record, as :func:`p_value` does."""
    return lambda record: p_value(record[name])


# Frames of sections, and notes


def spread(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    group: str,
    cells: Mapping[str, Callable[[Mapping[Any, Any]], str]],
) -> pd.DataFrame:
    """Return a section's frame of tidy records: one row per label, one group of columns per value of a column.

    ``frame`` has the records in the order in which rows and groups are shown; ``labels`` which columns are labels, and their
    headings; ``group`` is the column whose texts head the groups; ``cells`` has what writes a record in each column of a group.
    """
    records = frame.to_dict("records")
    parts = [frame.assign(_head=head, text=list(map(write, records))) for head, write in cells.items()]
    order = [(name, head) for name in frame[group].unique() for head in cells]
    return arranged(pd.concat(parts), labels, [group, "_head"], order=order)


def arranged(
    frame: pd.DataFrame, labels: Mapping[str, str], columns: Sequence[str], *, order: Iterable[Any] | None = None
) -> pd.DataFrame:
    """Return a section's frame of tidy records: their ``text``, one row per label, one column per pair of values of ``columns``.

    ``order`` has the columns that are shown; by default all, as they appear.
    """
    rows, heads = (list(frame[[*names]].itertuples(index=False, name=None)) for names in (labels, columns))
    cells = dict(zip(zip(rows, heads, strict=True), frame["text"], strict=True))
    shown = list(dict.fromkeys(heads) if order is None else order)
    texts = [[cells.get((row, head)) for head in shown] for row in dict.fromkeys(rows)]
    index = pd.MultiIndex.from_tuples(dict.fromkeys(rows), names=list(labels.values()))
    made = pd.DataFrame(texts, columns=pd.MultiIndex.from_tuples(shown), index=index, dtype=object)
    return made if len(labels) > 1 else made.set_axis(index.get_level_values(0))


def rows_frame(columns: Sequence[str | tuple[str, str]], rows: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Return a section's frame of rows of texts; columns are names, or pairs of a group and a name."""
    pairs = [column for column in columns if isinstance(column, tuple)]
    names: Any = pd.MultiIndex.from_tuples(pairs) if pairs else list(columns)
    return pd.DataFrame([list(row) for row in rows], columns=names, dtype=object)


def grouped_notes(pairs: Iterable[tuple[Any, Any]], start: str = "Not run: ") -> list[str]:
    """Return a note for each reason, given names with their reasons: ``Not run: a; b: needs a model``."""
    names: dict[str, list[str]] = {}
    for name, why in pairs:
        names.setdefault(why, []).append(name)
    return [f"{start}{'; '.join(dict.fromkeys(of_one))}: {why}" for why, of_one in names.items()]


# The four forms


def write(table: Table, stem: str | Path) -> None:
    """Write ``stem.csv``, ``stem.md``, ``stem.tex`` and ``stem.html``."""
    write_text(form_path(stem, ".csv"), csv(table))
    write_text(form_path(stem, ".md"), markdown(table))
    write_text(form_path(stem, ".tex"), latex(table, f"tab:{Path(stem).name}"))
    write_text(form_path(stem, ".html"), page(table))


def rendered(table: Table, form: str, *, label: str) -> str:
    """Return the table in one of :data:`FORMATS`; ``label`` is LaTeX's name for it."""
    if form == "csv":
        return _csv(table.frame)
    return latex(table, label) if form == "latex" else {"text": text, "markdown": markdown}[form](table)


def csv(table: Table) -> str:
    """Return the tidy frame, rounded to the digits that are the same on every processor."""
    frame = table.frame.copy(deep=False)
    for name in [str(name) for name in frame if pd.api.types.is_float_dtype(frame[name])]:
        # Scores move in the seventh digit. A small p and a difference of near values have fewer digits that hold.
        if name == "p" or name.endswith("_p"):
            frame[name] = frame[name].map(lambda p: float(f"{p:.2g}") if p < 0.01 else round(p, 4), na_action="ignore")
        elif name.endswith("difference"):
            frame[name] = frame[name].round(6)
    if SIMULATED in table.caption:
        frame["simulated"] = True
    return _csv(frame)


def _csv(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def markdown(table: Table) -> str:
    """Return the table as GitHub Markdown; its one header row joins the group and the name of a column."""
    lines = [f"# {table.title}", "", table.caption, ""]
    for grid in map(_Grid.of, table.sections):
        heads = [_markdown(" ".join(head).strip()) for head in grid.heads]
        rule = "|".join(":--" if left else "--:" for left in grid.left)
        rows = [f"| {' | '.join(cells)} |" for cells in [heads, *grid.marked(_markdown, "**{}**")]]
        lines += [f"## {grid.title}", "", rows[0], f"|{rule}|", *rows[1:], ""]
    return "\n".join([*lines, *(f"- {note}" for note in table.notes), *([""] if table.notes else [])])


def text(table: Table) -> str:
    """Return the table as plain text with aligned columns."""
    lines = [table.title, "", table.caption, ""]
    for grid in map(_Grid.of, table.sections):
        columns: list[list[str]] = []
        for (_, name), left, *cells in zip(grid.heads, grid.left, *grid.rows, strict=True):
            width = max(map(len, [name, *cells]))
            texts = [name, "-" * width, *cells]
            # pandas sets columns one space apart.
            apart = " " if columns else ""
            columns.append([apart + (text.ljust(width) if left else text.rjust(width)) for text in texts])
        names, *rows = zip(*columns, strict=True)
        groups = [group for group, _ in grid.heads]
        heads: Any = pd.MultiIndex.from_arrays([groups, names]) if any(groups) else names
        made = pd.DataFrame(rows, columns=heads).to_string(index=False)
        lines += [grid.title, "", *map(str.rstrip, made.splitlines()), ""]
    return "\n".join([*lines, *(f"- {note}" for note in table.notes), ""])


def latex(table: Table, label: str) -> str:
    """Return the table as LaTeX: one table per section, a ``longtable`` where it does not fit on a page."""
    lines = [r"% Needs \usepackage{booktabs,graphicx,longtable}."]
    if not table.sections:
        lines += [_tex(table.caption), ""]
    for place, grid in enumerate(map(_Grid.of, table.sections), start=1):
        name = rf"\label{{{label}-{place}}}" if len(table.sections) > 1 else rf"\label{{{label}}}"
        caption = f"{{{_tex(f'{grid.title}. {table.caption}')}}}"
        columns = "".join("l" if left else "r" for left in grid.left)
        head = [r"\toprule", " & ".join(_tex(name) for _, name in grid.heads) + r" \\", r"\midrule"]
        if grid.is_grouped:
            groups = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(group)}}}" if group else "" for group, n in grid.groups]
            ends = [*accumulate(n for _, n in grid.groups)]
            spans = [(end - n + 1, end) for (group, n), end in zip(grid.groups, ends, strict=True) if group]
            head[1:1] = [" & ".join(groups) + r" \\", "".join(rf"\cmidrule(lr){{{a}-{b}}}" for a, b in spans)]
        body = [" & ".join(cells) + r" \\" for cells in grid.marked(_tex, r"\textbf{{{}}}")]
        notes = " ".join(f"{_tex(note)}." for note in table.notes if place == len(table.sections))
        below = [rf"\par\smallskip\footnotesize {notes}"] if notes else []
        if len(body) > _LONG:
            more = rf"\multicolumn{{{len(columns)}}}{{r}}{{Continued on next page}} \\"
            lines += [r"{\scriptsize\setlength{\tabcolsep}{3pt}", rf"\begin{{longtable}}{{{columns}}}"]
            lines += [rf"\caption{caption} {name} \\", *head, r"\endfirsthead"]
            lines += [rf"\caption[]{caption} \\", *head, r"\endhead", r"\midrule", more, r"\midrule", r"\endfoot"]
            lines += [r"\bottomrule", r"\endlastfoot", *body, r"\end{longtable}", *below, r"\par}", ""]
        else:
            scaled = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
            lines += [r"\begin{table}", r"\centering", rf"\caption{caption}", name, scaled]
            lines += [rf"\begin{{tabular}}{{{columns}}}", *head, *body, r"\bottomrule", r"\end{tabular}}"]
            lines += [*below, r"\end{table}", ""]
    return "\n".join(lines)


def page(table: Table) -> str:
    """Return the table as one HTML page that needs nothing from the network."""
    made, left = [], []
    for place, grid in enumerate(map(_Grid.of, table.sections)):
        left += [f"#t{place} tr > :nth-child({at}):not([colspan])" for at, words in enumerate(grid.left, 1) if words]
        spans = [(f' colspan="{n}"' if n > 1 else "", group) for group, n in grid.groups]
        groups = "".join(f"<th{span}>{_html(group)}</th>" for span, group in spans)
        heads = [groups] if grid.is_grouped else []
        heads.append("".join(f"<th>{_html(name)}</th>" for _, name in grid.heads))
        rows = ["".join(f"<td>{cell}</td>" for cell in cells) for cells in grid.marked(_html, "<b>{}</b>")]
        head, body = ("".join(f"<tr>{row}</tr>\n" for row in part) for part in (heads, rows))
        caption = f"<caption>{_html(grid.title)}</caption>"
        made.append(
            f'<div class="scroll" id="t{place}"><table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table></div>'
        )
    style = read_text(Path(__file__).with_name("table.css"))
    style += f"{', '.join(left)} {{ text-align: left; }}\n" if left else ""
    notes = "".join(f"<li>{_html(note)}</li>" for note in table.notes)
    lines = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_html(table.title)}</title><style>\n{style}</style></head><body>",
        f"<h1>{_html(table.title)}</h1><p>{_html(table.caption)}</p>",
        *made,
        *([f"<ul>{notes}</ul>"] if notes else []),
        "</body></html>\n",
    ]
    return "\n".join(lines)


# A cell that starts as a number does, one whose number is missing, and one that ends with a rank.
_NUMBER = re.compile(r"[#<=>~$]?\s?[+\-−]?\d*\.?\d")
_NO_NUMBER = frozenset({"", "–", "—", "−", "+", "o", "not run", "not rated", "not computed"})
_RANK = re.compile(r"(?:-?\d.* )?#(\d+)")


@dataclass(frozen=True)
class _Grid:
    """A section with its labels as columns: the heads (group, name), the rows of texts, and which columns are words."""

    title: str
    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    left: Sequence[bool]

    @classmethod
    def of(cls, section: Section) -> Self:
        frame = section.frame
        labels = [name for name in frame.index.names if name is not None]
        heads = [("", str(name)) for name in labels]
        heads += [(str(one[0]), str(one[1])) if isinstance(one, tuple) else ("", str(one)) for one in frame]
        cells = frame.reset_index(allow_duplicates=True) if labels else frame
        rows = cells.astype(object).where(cells.notna(), "–").to_numpy().tolist()
        columns = zip(*rows, strict=True) if rows else [()] * len(heads)
        left = [_holds_words(texts, at < max(1, len(labels))) for at, texts in enumerate(columns)]
        return cls(section.title, heads, rows, left)

    @property
    def is_grouped(self) -> bool:
        return any(group for group, _ in self.heads)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Return each group with the number of its columns; a column without a group stands alone."""
        runs = groupby(enumerate(self.heads), key=lambda head: head[1][0] or head[0])
        return [(str(group) if isinstance(group, str) else "", len([*run])) for group, run in runs]

    def marked(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """Return the rows escaped, and bold for the first rank of a column that has several."""
        ranks = [[match and match[1] for match in map(_RANK.fullmatch, row)] for row in self.rows]
        several = [len({*of} - {None}) > 1 for of in zip(*ranks, strict=True)]
        return [
            [
                bold.format(escape(text)) if rank == "1" and many else escape(text)
                for text, rank, many in zip(row, of, several, strict=True)
            ]
            for row, of in zip(self.rows, ranks, strict=True)
        ]


def _holds_words(texts: Sequence[str], label: bool) -> bool:
    """Say whether a column is mostly words, which are set to the left."""
    filled = [text for text in texts if text not in _NO_NUMBER]
    return 2 * sum(map(bool, map(_NUMBER.match, filled))) <= len(filled) if filled else label


def _html(text: str) -> str:
    return html.escape(str(text), quote=False)


def _markdown(text: str) -> str:
    return re.sub(r"[|*<]", r"\\\g<0>", text)


def _tex(text: str) -> str:
    return str(text).translate(_LATEX)
