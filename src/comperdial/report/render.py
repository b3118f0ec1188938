"""Tables for readers: one :class:`Table`, written as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
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
_LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "“": "``", "”": "''", "‘": "`", "’": "'",
    "−": "$-$", "–": "--", "—": "---", "‡": r"\ddag{}", "…": r"\ldots{}", "\u00a0": "~",
    "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$",
    "α": r"$\alpha$", "δ": r"$\delta$", "κ": r"$\kappa$", "ρ": r"$\rho$", "τ": r"$\tau$",
}  # fmt: skip


class Ranked(str):
    """A cell with its rank; the first rank is bold where its column has other ranks too."""

    __slots__ = ("rank",)
    rank: int

    def __new__(cls, text: str, rank: int) -> Self:
        """Return the text with its rank."""
        made = super().__new__(cls, text)
        made.rank = rank
        return made


@dataclass(frozen=True)
class Section:
    """One block of a table: its heading, and a frame of texts, in which a missing one is written as a dash.

    Columns are names, or pairs of a group and a name. Named levels of the index are columns of labels; an index without a name is
    not shown.
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


def estimate(row: Mapping[Any, Any], name: str = "value", *, sign: bool = False, ends: int = 2) -> str:
    """Write a value of a record with its interval, the columns ``low`` and ``high`` or ``NAME_low`` and ``NAME_high``."""
    low, high = ("low", "high") if "low" in row else (f"{name}_low", f"{name}_high")
    return number(row[name], sign=sign) + interval(row[low], row[high], digits=ends)


def as_number(name: str, **how: Any) -> Callable[[Mapping[Any, Any]], str]:  # noqa: ANN401
    """Return what writes a number of a record, as :func:`number` does."""
    return lambda record: number(record[name], **how)


def small_p(name: str = "p") -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a p-value of a record, which is never 0."""
    return lambda record: "< 0.001" if record[name] < 0.001 else number(record[name])


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
    parts = [
        frame.assign(_head=head, text=pd.Series(map(write, records), frame.index, dtype=object))
        for head, write in cells.items()
    ]
    order = [(name, head) for name in frame[group].unique() for head in cells]
    return arranged(pd.concat(parts), labels, [group, "_head"], order=order)


def arranged(
    frame: pd.DataFrame, labels: Mapping[str, str], columns: Sequence[str], *, order: Iterable[Any] | None = None
) -> pd.DataFrame:
    """Return a section's frame of tidy records: their ``text``, one row per label, one column per pair of values of ``columns``.

    ``order`` has the columns that are shown; by default all, as they appear.
    """
    rows, heads = (list(frame[[*names]].itertuples(index=False, name=None)) for names in (labels, columns))
    # By hand, as pandas makes plain texts of Ranked ones.
    cells = dict(zip(zip(rows, heads, strict=True), frame["text"], strict=True))
    shown = list(dict.fromkeys(heads) if order is None else order)
    texts = [[cells.get((row, head)) for head in shown] for row in dict.fromkeys(rows)]
    index = pd.MultiIndex.from_tuples(dict.fromkeys(rows), names=list(labels.values()))
    made = pd.DataFrame(texts, columns=pd.MultiIndex.from_tuples(shown), index=index, dtype=object)
    return made if len(labels) > 1 else made.set_axis(index.get_level_values(0))


def records_by(frame: pd.DataFrame, key: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows of a frame by their key, as dictionaries."""
    records = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
    return {tuple(record[name] for name in key): record for record in records}


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


def write(table: Table, stem: str | Path) -> None:
    """Write ``stem.csv``, ``stem.md``, ``stem.tex`` and ``stem.html``."""
    label = f"tab:{Path(stem).name}"
    for suffix, text in {
        ".csv": csv(table),
        ".md": markdown(table),
        ".tex": latex(table, label),
        ".html": page(table),
    }.items():
        write_text(form_path(stem, suffix), text)


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

    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def escaped(cell: str) -> str:
        return re.sub(r"[|*<]", r"\\\g<0>", cell)

    lines = [f"# {table.title}", "", table.caption, ""]
    for section in map(_Flat.of, table.sections):
        header = [escaped(f"{group} {name}".strip()) for group, name in section.heads]
        rule = "|" + "|".join(":--" if left else "--:" for left in section.words) + "|"
        body = map(row, section.marked("**{}**", escaped).to_numpy().tolist())
        lines += [f"## {section.title}", "", row(header), rule, *body, ""]
    return "\n".join([*lines, *(f"- {note}" for note in table.notes), *([""] if table.notes else [])])


def text(table: Table) -> str:
    """Return the table as plain text with aligned columns."""
    lines = [table.title, "", table.caption, ""]
    for section in map(_Flat.of, table.sections):
        body = [[name for _, name in section.heads], *zip(*section.columns, strict=True)]
        widths = [max(len(row[at]) for row in body) for at in range(len(section.heads))]
        above = ""
        for group, start, end in section.groups:
            # A group's name may be longer than its columns.
            widths[end - 1] += max(0, len(group) - sum(widths[start:end]) - 2 * (end - start - 1))
            above = above.ljust(sum(widths[:start]) + 2 * start) + group
        made = [
            "  ".join(c.ljust(w) if left else c.rjust(w) for c, w, left in zip(row, widths, section.words, strict=True))
            for row in body
        ]
        head = [above] if above else []
        lines += [section.title, "", *head, made[0].rstrip(), "-" * len(made[0]), *map(str.rstrip, made[1:]), ""]
    return "\n".join([*lines, *(f"- {note}" for note in table.notes), ""])


def latex(table: Table, label: str) -> str:
    """Return the table as LaTeX: one table per section, a ``longtable`` where it does not fit on a page."""
    lines = [r"% Needs \usepackage{booktabs,graphicx,longtable}."]
    if not table.sections:
        lines += [_tex(table.caption), ""]
    for place, section in enumerate(map(_Flat.of, table.sections), start=1):
        long, last = len(section.columns[0]) > _LONG, place == len(table.sections)
        caption = _tex(f"{section.title}. {table.caption}")
        name = f"{label}-{place}" if len(table.sections) > 1 else label
        body = section.marked(r"\textbf{{{}}}", _tex).style.hide(axis="index").format_index(_tex, axis=1)
        made = body.to_latex(
            column_format="".join("l" if left else "r" for left in section.words),
            hrules=True,
            multicol_align="c",
            environment="longtable" if long else None,
            caption=caption if long else None,
            label=name if long else None,
        )
        # A rule below each group; without groups their row is empty.
        groups = next(line for line in made.splitlines(keepends=True) if "&" in line or "multicolumn" in line)
        rules = "".join(rf"\cmidrule(lr){{{start + 1}-{end}}}" for _, start, end in section.groups)
        made = made.replace(groups, f"{groups}{rules}\n" if rules else "").rstrip()
        notes = [_tex(note) + "." for note in table.notes if last]
        below = [r"\par\smallskip\footnotesize " + " ".join(notes)] if notes else []
        if long:
            lines += [r"{\scriptsize\setlength{\tabcolsep}{3pt}", made, *below, r"\par}", ""]
        else:
            scaled = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
            lines += [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{{name}}}"]
            lines += [scaled, made + "}", *below, r"\end{table}", ""]
    return "\n".join(lines)


def page(table: Table) -> str:
    """Return the table as one HTML page that needs nothing from the network."""

    def escaped(cell: object) -> str:
        return html.escape(str(cell), quote=False)

    made, left = [], []
    for place, section in enumerate(map(_Flat.of, table.sections)):
        left += [f"#t{place} tr > :nth-child({at}):not([colspan])" for at, word in enumerate(section.words, 1) if word]
        styler = section.marked("<b>{}</b>", escaped).style.hide(axis="index").format_index(escaped, axis=1)
        text = styler.to_html(exclude_styles=True, caption=escaped(section.title))
        # Without the layout, which is half of a page.
        text = re.sub(r" ?>\n *<", "><", text).replace(" >", ">").replace("</tr>", "</tr>\n")
        made.append(f'<div class="scroll" id="t{place}">{text}</div>')
    style = (
        "\n"
        + read_text(Path(__file__).with_name("table.css"))
        + (f"{', '.join(left)} {{ text-align: left; }}\n" if left else "")
    )
    notes = "".join(f"<li>{escaped(note)}</li>" for note in table.notes)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escaped(table.title)}</title><style>{style}</style></head><body>",
            f"<h1>{escaped(table.title)}</h1><p>{escaped(table.caption)}</p>",
            *made,
            *([f"<ul>{notes}</ul>"] if notes else []),
            "</body></html>\n",
        ]
    )


# A cell that starts as a number does, and one whose number is missing.
_NUMBER = re.compile(r"[#<=>~$]?\s?[+\-−]?\d*\.?\d")
_NO_NUMBER = frozenset({"", "–", "—", "−", "+", "o", "not run", "not recorded", "not rated", "not computed"})


@dataclass(frozen=True)
class _Flat:
    """A section with its labels as columns: the heads (group, name), the texts, and which columns are words."""

    title: str
    heads: Sequence[tuple[str, str]]
    columns: Sequence[Sequence[str]]
    words: Sequence[bool]

    @classmethod
    def of(cls, section: Section) -> Self:
        frame = section.frame
        labels = {str(n): frame.index.get_level_values(i) for i, n in enumerate(frame.index.names) if n is not None}
        heads = [("", name) for name in labels]
        heads += [("", str(c)) if frame.columns.nlevels == 1 else (str(c[0]), str(c[1])) for c in frame.columns]
        # Blanks of different lengths: the first column, which stays in view, is not merged with those that follow.
        heads = [(group or " " * (at > 0), name) for at, (group, name) in enumerate(heads)]
        values = [*labels.values(), *(frame.iloc[:, at] for at in range(len(frame.columns)))]
        columns = [["–" if pd.isna(cell) else cell for cell in column] for column in values]
        words = [_holds_words(texts, at < max(1, len(labels))) for at, texts in enumerate(columns)]
        return cls(section.title, heads, columns, words)

    @property
    def groups(self) -> list[tuple[str, int, int]]:
        """Return each group with its first column and the one after its last."""
        runs = [[at for at, _ in run] for _, run in groupby(enumerate(self.heads), key=lambda head: head[1][0])]
        return [(self.heads[run[0]][0], run[0], run[-1] + 1) for run in runs if self.heads[run[0]][0].strip()]

    def marked(self, bold: str, escape: Callable[[str], str]) -> pd.DataFrame:
        """Return the texts escaped, and bold for the first rank of a column that has several."""
        made = {}
        for at, cells in enumerate(self.columns):
            ranks = [cell.rank if isinstance(cell, Ranked) else None for cell in cells]
            several = len({*ranks} - {None}) > 1
            texts = zip(map(escape, cells), ranks, strict=True)
            made[at] = [bold.format(text) if several and rank == 1 else text for text, rank in texts]
        return pd.DataFrame(made, dtype=object).set_axis(pd.MultiIndex.from_tuples(self.heads), axis=1)


def _holds_words(texts: Sequence[str], label: bool) -> bool:
    """Say whether a column is mostly words, which are set to the left."""
    filled = [text for text in texts if text not in _NO_NUMBER]
    return 2 * sum(map(bool, map(_NUMBER.match, filled))) <= len(filled) if filled else label


def _tex(text: object) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda match: _LATEX[match.group()], str(text))
