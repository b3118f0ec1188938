"""Tables for readers: a :class:`Table`, written as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import pandas as pd
from jinja2 import Environment, FileSystemLoader, Template

from comperdial.config import load_yaml
from comperdial.core.files import form_path, write_text

SIMULATED = (
    "SIMULATED: the systems, the raters and their ratings are programs; nothing here is a finding about people, "
    "systems or metrics."
)
"""Ends every caption of the embedded benchmark."""

NOTES: Mapping[str, Any] = load_yaml(Path(__file__).with_name("notes.yaml"))
"""How to read what several tables show."""

FORMATS = {"text": ".txt", "markdown": ".md", "latex": ".tex", "csv": ".csv"}
"""The forms that :func:`rendered` makes, with the suffix of a file of each."""

# A LaTeX table with more rows does not fit on a page.
_LONG = 45
_LATEX = str.maketrans({
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "“": "``", "”": "''", "‘": "`", "’": "'",
    "−": "$-$", "–": "--", "—": "---", "‡": r"\ddag{}", "…": r"\ldots{}", "\u00a0": "~",
    "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$",
    "α": r"$\alpha$", "δ": r"$\delta$", "κ": r"$\kappa$", "ρ": r"$\rho$", "τ": r"$\tau$",
})  # fmt: skip
# Common parts of reasons that each name a model or judge.
_REASONS = (
    (r"^model .* is not present", "their model is not on this machine"),
    (r"costs? money", "they cost money, and the budget does not cover them"),
    (r"^no scores of|is no judge of", "not configured for this data set"),
    (r"^there are recorded scores of", "recorded for another data set"),
    (r" has no .* where ", "the data lack what they need"),
    (r"^no rated response", "no rated response has a score"),
    (r"^English only", "they are for English only"),
)
# A longer reason does not fit into the summary line.
_LONG_REASON = 80


@dataclass(frozen=True)
class Section:
    """A block of a table: its heading, and a frame of texts, in which missing ones become dashes.

    Columns are names, or pairs of a group and a name. Named levels of the index become columns of labels; an unnamed index is
    hidden. A cell that ends with a rank, ``0.41 #1``, is bold if it is first in a column with other ranks. ``folded`` has rows
    that Markdown and HTML fold and other formats omit; ``text`` has paragraphs that these two show instead of the frame.
    """

    title: str
    frame: pd.DataFrame
    folded: pd.DataFrame | None = None
    text: Sequence[str] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Table:
    """A table: the tidy frame of the CSV file, and the content for readers.

    ``headline`` is the result in a sentence. ``not_run`` maps missing rows to reasons: a line below the sections, and a folded
    list.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    sections: Sequence[Section]
    notes: Sequence[str] = ()
    headline: str = ""
    not_run: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """Return the lines below the sections."""
        return [*filter(None, [not_run(self.not_run)]), *self.notes]

    @property
    def reasons(self) -> list[str]:
        """Return what was not run, by reason; empty if the line below the sections is complete."""
        return grouped_notes(self.not_run.items(), "") if len(self.not_run) > 1 else []


def nothing(title: str, why: str, *, simulated: bool = False) -> Table:
    """Return an empty table with the reason."""
    text = f"Nothing to show: {why}"
    caption = f"{text}. {SIMULATED}" if simulated else f"{text}."
    return Table(title, caption, pd.DataFrame({"note": [text]}), [])


def described(
    study: Mapping[str, Any],
    frame: pd.DataFrame,
    sections: Iterable[Section],
    *notes: str,
    ending: str = "",
    **values: Any,  # noqa: ANN401
) -> Table:
    """Return a table with the title, caption and first notes of its entry in ``study.yaml``, with ``values`` filled in.

    ``ending`` ends the caption.
    """
    entry = study["entry"]
    first = [note.format(**values) for note in entry.get("notes", ())]
    caption = f"{entry['caption'].format(**values)} {ending}".strip()
    return Table(entry["title"].format(**values), caption, frame, [*sections], [*first, *notes])


def ending(source: str) -> str:
    """Return the ending of a caption for a source of ratings; empty for people."""
    if source == "human":
        return ""
    return SIMULATED if source == "simulated" else f"The ratings are those of {source}, not people's."


# Cells


def number(value: float | None, *, digits: int = 3, sign: bool = False) -> str:
    """Format a number with fixed digits, or a dash if missing; never "-0.000"."""
    if value is None or pd.isna(value):
        return "–"
    rounded = round(float(value), digits) + 0.0
    return f"{rounded:+.{digits}f}" if sign and rounded else f"{rounded:.{digits}f}"


def count(value: float | None, noun: str = "") -> str:
    """Format an integer with thousands separators, or a dash if missing; with a noun: 1 vote, 1,200 votes."""
    text = "–" if value is None or pd.isna(value) else f"{value:,.0f}"
    return text if not noun else f"{text} {noun}" + ("" if value == 1 else "s")


def interval(low: float, high: float, *, digits: int = 2) -> str:
    """Format an interval with a leading space; empty if missing."""
    return "" if pd.isna(low) or pd.isna(high) else f" [{number(low, digits=digits)}, {number(high, digits=digits)}]"


def p_value(p: float) -> str:
    """Format a p-value, or a dash if missing; rounding never gives 0 or 0.05."""
    text = number(p)
    return "< 0.001" if p < 0.001 else "< 0.050" if p < 0.05 and text == "0.050" else text


def estimate(row: Mapping[Any, Any], name: str = "value", *, sign: bool = False, ends: int = 2) -> str:
    """Format a value of a record with its interval, the columns ``low`` and ``high`` or ``NAME_low`` and ``NAME_high``."""
    low, high = ("low", "high") if "low" in row else (f"{name}_low", f"{name}_high")
    return number(row[name], sign=sign) + interval(row[low], row[high], digits=ends)


def estimates(frame: pd.DataFrame, name: str = "value", **how: Any) -> list[str]:  # noqa: ANN401
    """Apply :func:`estimate` to each row."""
    return [estimate(row, name, **how) for row in frame.to_dict("records")]


def as_number(name: str, **how: Any) -> Callable[[Mapping[Any, Any]], str]:  # noqa: ANN401
    """Return a function that formats a number of a record; see :func:`number`."""
    return lambda record: number(record[name], **how)


def small_p(name: str = "p") -> Callable[[Mapping[Any, Any]], str]:
    """Return a function that formats a p-value of a record; see :func:`p_value`."""
    return lambda record: p_value(record[name])


# Frames of sections, and notes


def spread(
    frame: pd.DataFrame,
    labels: Mapping[str, str],
    group: str,
    cells: Mapping[str, Callable[[Mapping[Any, Any]], str]],
) -> pd.DataFrame:
    """Return a section's frame from tidy records: one row per label, one group of columns per value of a column.

    ``frame`` has the records in display order; ``labels`` maps label columns to headings; ``group`` is the column with the
    groups' headings; ``cells`` formats a record for each column of a group.
    """
    records = frame.to_dict("records")
    parts = [frame.assign(_head=head, text=list(map(write, records))) for head, write in cells.items()]
    order = [(name, head) for name in frame[group].unique() for head in cells]
    return arranged(pd.concat(parts), labels, [group, "_head"], order=order)


def arranged(
    frame: pd.DataFrame, labels: Mapping[str, str], columns: Sequence[str], *, order: Iterable[Any] | None = None
) -> pd.DataFrame:
    """Return a frame of the ``text`` of tidy records: one row per label, one column per pair of values of ``columns``.

    ``order`` lists the columns to show; default: all, by first appearance.
    """
    rows, heads = (list(frame[[*names]].itertuples(index=False, name=None)) for names in (labels, columns))
    cells = dict(zip(zip(rows, heads, strict=True), frame["text"], strict=True))
    shown = list(dict.fromkeys(heads) if order is None else order)
    texts = [[cells.get((row, head)) for head in shown] for row in dict.fromkeys(rows)]
    index = pd.MultiIndex.from_tuples(dict.fromkeys(rows), names=list(labels.values()))
    made = pd.DataFrame(texts, columns=pd.MultiIndex.from_tuples(shown), index=index, dtype=object)
    return made if len(labels) > 1 else made.set_axis(index.get_level_values(0))


def rows_frame(columns: Sequence[str | tuple[str, str]], rows: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Return a section's frame from rows of texts; columns are names, or pairs of a group and a name."""
    pairs = [column for column in columns if isinstance(column, tuple)]
    names: Any = pd.MultiIndex.from_tuples(pairs) if pairs else list(columns)
    return pd.DataFrame([list(row) for row in rows], columns=names, dtype=object)


def grouped_notes(pairs: Iterable[tuple[Any, Any]], start: str = "Not run: ") -> list[str]:
    """Return a note for each reason, given names with reasons: ``Not run: a; b: needs a model``."""
    names: dict[str, list[str]] = {}
    for name, why in pairs:
        names.setdefault(why, []).append(name)
    return [f"{start}{'; '.join(dict.fromkeys(of_one))}: {why}" for why, of_one in names.items()]


def not_run(reasons: Mapping[Any, str]) -> str:
    """Return one line on what was not run, counted by reason; empty if nothing is missing.

    Reasons that differ only in a model's or judge's name count as one; long ones appear only in the full list.
    """
    if len(reasons) < 2:
        return "".join(f"Not run: {name}: {why}" for name, why in reasons.items())
    kinds = Counter(map(_kind, reasons.values())).most_common()
    return f"Not run: {len(reasons)} metrics and judges: " + ", ".join(f"{n} ({kind})" for kind, n in kinds)


def _kind(why: str) -> str:
    known = next((kind for pattern, kind in _REASONS if re.search(pattern, why)), why)
    return known if len(known) <= _LONG_REASON else "other reasons"


# The four formats


def write(table: Table, stem: str | Path) -> None:
    """Write ``stem.csv``, ``stem.md``, ``stem.tex`` and ``stem.html``."""
    write_text(form_path(stem, ".csv"), csv(table))
    write_text(form_path(stem, ".md"), markdown(table))
    write_text(form_path(stem, ".tex"), latex(table, f"tab:{Path(stem).name}"))
    write_text(form_path(stem, ".html"), page(table))


def rendered(table: Table, form: str, *, label: str) -> str:
    """Return the table in one of :data:`FORMATS`; ``label`` is its LaTeX label."""
    if form == "csv":
        return _csv(table.frame)
    return latex(table, label) if form == "latex" else {"text": text, "markdown": markdown}[form](table)


def csv(table: Table) -> str:
    """Return the tidy frame, rounded to digits that are the same on every processor."""
    frame = table.frame.copy(deep=False)
    for name in frame.select_dtypes("float"):
        # Scores vary in the seventh digit. Small p-values and differences of close values have fewer stable digits.
        if name == "p" or str(name).endswith("_p"):
            frame[name] = frame[name].map(lambda p: float(f"{p:.2g}") if p < 0.01 else round(p, 4), na_action="ignore")
        elif str(name).endswith("difference"):
            frame[name] = frame[name].round(6)
    return _csv(frame.assign(simulated=True) if SIMULATED in table.caption else frame)


def _csv(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def text(table: Table) -> str:
    """Return the table as plain text with aligned columns."""
    lines = [table.title, "", *([table.headline, ""] if table.headline else []), table.caption, ""]
    for grid in _grids(table):
        columns: list[list[str]] = []
        for (_, name), left, *cells in zip(grid.heads, grid.left, *grid.rows, strict=True):
            width = max(map(len, [name, *cells]))
            # pandas separates columns by one space.
            apart = " " if columns else ""
            texts = [name, "-" * width, *cells]
            columns.append([apart + (text.ljust(width) if left else text.rjust(width)) for text in texts])
        names, *rows = zip(*columns, strict=True)
        groups = [group for group, _ in grid.heads]
        heads: Any = pd.MultiIndex.from_arrays([groups, names]) if any(groups) else names
        made = pd.DataFrame(rows, columns=heads).to_string(index=False)
        lines += [grid.title, "", *map(str.rstrip, made.splitlines()), ""]
    return "\n".join([*lines, *(f"- {note}" for note in table.lines), ""])


def markdown(table: Table) -> str:
    """Return the table as GitHub Markdown; its single header row joins group and name of a column."""
    return _template("md").render(table=table, grids=_grids(table))


def latex(table: Table, label: str) -> str:
    """Return the table as LaTeX: one table per section, a ``longtable`` if it does not fit on a page."""
    return _template("tex").render(table=table, grids=_grids(table), label=label, long=_LONG)


def page(table: Table) -> str:
    """Return the table as a self-contained HTML page."""
    return _template("html").render(table=table, grids=_grids(table))


@cache
def _template(form: str) -> Template:
    marks: dict[str, Any] = {}
    if form == "tex":
        # LaTeX uses braces itself.
        marks = {"block_start_string": "<%", "block_end_string": "%>"}
        marks |= {"variable_start_string": "<<", "variable_end_string": ">>"}
    loader = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, **marks)  # noqa: S701
    made.filters["safe_text"] = {"html": _html, "md": _markdown, "tex": _tex}[form]
    return made.get_template(f"table.{form}.j2")


# Matches cells that start like a number, lack one, or end with a rank.
_NUMBER = re.compile(r"[#<=>~$]?\s?[+\-−]?\d*\.?\d")
_NO_NUMBER = frozenset({"", "–", "—", "−", "+", "o", "not run", "not rated", "not computed"})
_RANK = re.compile(r"(?:-?\d.* )?#(\d+)")


@dataclass(frozen=True)
class _Grid:
    """A section with its labels as columns: headings (group, name), rows of texts, and which columns contain words."""

    title: str
    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    left: Sequence[bool]
    folded: _Grid | None = None
    text: Sequence[str] = ()

    @classmethod
    def of(cls, title: str, frame: pd.DataFrame, folded: pd.DataFrame | None = None, text: Sequence[str] = ()) -> Self:
        labels = [name for name in frame.index.names if name is not None]
        heads = [("", str(name)) for name in labels]
        heads += [(str(one[0]), str(one[1])) if isinstance(one, tuple) else ("", str(one)) for one in frame]
        cells = frame.reset_index(allow_duplicates=True) if labels else frame
        rows = cells.astype(object).where(cells.notna(), "–").to_numpy().tolist()
        columns = zip(*rows, strict=True) if rows else [()] * len(heads)
        left = [_holds_words(texts, at < max(1, len(labels))) for at, texts in enumerate(columns)]
        return cls(title, heads, rows, left, None if folded is None else cls.of(title, folded), text)

    @property
    def groups(self) -> list[tuple[str, int, int]]:
        """Return each group with its first and last column, from 1; an ungrouped column is its own group."""
        runs = groupby(enumerate(self.heads, start=1), key=lambda head: head[1][0] or head[0])
        places = ((group, [at for at, _ in run]) for group, run in runs)
        made = [(group if isinstance(group, str) else "", columns[0], columns[-1]) for group, columns in places]
        return made if any(group for group, *_ in made) else []

    @property
    def marked(self) -> list[list[tuple[str, bool]]]:
        """Return the rows, with a flag for each cell that is the first of several ranks in a column."""
        ranks = [[match and match[1] for match in map(_RANK.fullmatch, row)] for row in self.rows]
        several = [len({*of} - {None}) > 1 for of in zip(*ranks, strict=True)]
        firsts = [[rank == "1" and many for rank, many in zip(of, several, strict=True)] for of in ranks]
        return [list(zip(*both, strict=True)) for both in zip(self.rows, firsts, strict=True)]


def _grids(table: Table) -> list[_Grid]:
    return [_Grid.of(section.title, section.frame, section.folded, section.text) for section in table.sections]


def _holds_words(texts: Sequence[str], label: bool) -> bool:
    """Return whether a column is mostly words, which are left-aligned."""
    filled = [text for text in texts if text not in _NO_NUMBER]
    return 2 * sum(map(bool, map(_NUMBER.match, filled))) <= len(filled) if filled else label


def _html(text: str) -> str:
    return html.escape(str(text), quote=False)


def _markdown(text: str) -> str:
    return re.sub(r"[|*<]", r"\\\g<0>", text)


def _tex(text: str) -> str:
    return str(text).translate(_LATEX)
