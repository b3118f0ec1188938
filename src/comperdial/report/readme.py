"""The tables of docs/results.md, each written between two marks from the published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import FileError
from comperdial.core.files import read_text, write_text
from comperdial.report.correlations import MARK
from comperdial.report.render import number, records_by
from comperdial.stats.correlation import is_starred

MARKS = ("<!-- usr-table -->", "<!-- /usr-table -->")
LOCAL_MARKS = ("<!-- local-metrics-table -->", "<!-- /local-metrics-table -->")


def update(page: str | Path, frame: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Put the turn-level values of the USR table between the marks of a page; rows that were not run stay out.

    Parameters
    ----------
    page
        A Markdown file with both marks.
    frame
        ``results/studies/usr/tables/usr.csv``.
    titles
        A title for each data set.
    """
    turn = records_by(frame[frame["level"] == "turn"], ["label", "dataset", "coefficient"])
    columns = [(dataset, c) for dataset in dict.fromkeys(frame["dataset"]) for c in ("pearson", "spearman")]
    names = [f"{titles.get(dataset, dataset)} {coefficient.title()}" for dataset, coefficient in columns]
    lines = ["| Turn level: ours (reported) | " + " | ".join(names) + " |", "|:--|" + "--:|" * len(names)]
    for label in dict.fromkeys(frame.loc[frame["ours"].notna(), "label"]):
        cells = []
        for dataset, coefficient in columns:
            cell = turn[label, dataset, coefficient]
            ours = number(cell["ours"]) + _star(pd.notna(cell["ours"]) and is_starred(cell["p"]))
            ours += MARK if str(cell.get("loso_halved")) == "True" else ""
            reported = number(cell["reported"]) + _star(str(cell["reported_starred"]) == "True")
            cells.append(f"{ours} ({reported})" if pd.notna(cell["reported"]) else ours)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    _put(page, MARKS, lines)


def update_local(page: str | Path, frame: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Put Spearman's coefficients of the rows of local metrics that the figure shows between the marks of a page.

    Parameters
    ----------
    page
        A Markdown file with both marks.
    frame
        ``results/studies/local_metrics/tables/local_metrics.csv``.
    titles
        A title for each data set.
    """
    shown = frame[(frame["coefficient"] == "spearman") & (frame["figure"].astype(str) == "True")]
    datasets = list(dict.fromkeys(frame["dataset"]))
    cells = records_by(shown, ["label", "dataset"])
    names = [titles.get(dataset, dataset) for dataset in datasets]
    lines = [
        "| Spearman, turn level | " + " | ".join(names) + " | s / 1,000 | $ / 1,000 |",
        "|:--|" + "--:|" * (len(names) + 2),
    ]
    for label in map(str, dict.fromkeys(shown["label"])):
        own = shown[shown["label"] == label]
        values = [_marked(cells.get((label, dataset))) for dataset in datasets]
        cost = [number(own["seconds"].iloc[0], digits=1), number(own["usd"].iloc[0], digits=2)]
        lines.append(f"| {label} | " + " | ".join([*values, *cost]) + " |")
    _put(page, LOCAL_MARKS, lines)


def _marked(cell: Mapping[str, Any] | None) -> str:
    return "–" if cell is None else number(cell["value"]) + (MARK if str(cell.get("loso_halved")) == "True" else "")


def _put(page: str | Path, marks: tuple[str, str], lines: Sequence[str]) -> None:
    """Write lines between two marks, in place of what stands there."""
    text = read_text(page)
    if any(text.count(mark) != 1 for mark in marks):
        raise FileError("the marks of the table are not there once each", where=str(page), expected=" and ".join(marks))
    before, rest = text.split(marks[0])
    after = rest.split(marks[1])[1]
    write_text(page, f"{before}{marks[0]}\n" + "\n".join(lines) + f"\n{marks[1]}{after}")


def _star(marked: bool) -> str:
    return r"\*" if marked else ""
