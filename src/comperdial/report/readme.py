"""The tables of docs/results.md, each written between two marks from the published results."""

from __future__ import annotations

from collections.abc import Mapping
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
    cells = records_by(frame[frame["level"] == "turn"], ["label", "dataset", "coefficient"])
    columns = {
        f"{titles.get(dataset, dataset)} {coefficient.title()}": (dataset, coefficient)
        for dataset in dict.fromkeys(frame["dataset"])
        for coefficient in ("pearson", "spearman")
    }
    rows = {
        label: [_beside(cells[label, *key]) for key in columns.values()]
        for label in dict.fromkeys(frame.loc[frame["ours"].notna(), "label"])
    }
    _put(page, MARKS, ["Turn level: ours (reported)", *columns], rows)


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
    datasets, cells = dict.fromkeys(frame["dataset"]), records_by(shown, ["label", "dataset"])
    rows = {}
    for label, own in shown.drop_duplicates("label").set_index("label").iterrows():
        values = [_marked(cells.get((str(label), dataset)), "value") for dataset in datasets]
        rows[str(label)] = [*values, number(own["seconds"], digits=1), number(own["usd"], digits=2)]
    names = [titles.get(dataset, dataset) for dataset in datasets]
    _put(page, LOCAL_MARKS, ["Spearman, turn level", *names, "s / 1,000", "$ / 1,000"], rows)


def _beside(cell: Mapping[str, Any]) -> str:
    star = r"\*" if pd.notna(cell["ours"]) and is_starred(cell["p"]) else ""
    theirs = r"\*" if str(cell["reported_starred"]) == "True" else ""
    reported = f" ({number(cell['reported'])}{theirs})" if pd.notna(cell["reported"]) else ""
    return _marked(cell, "ours", star) + reported


def _marked(cell: Mapping[str, Any] | None, value: str, star: str = "") -> str:
    return (
        "–" if cell is None else number(cell[value]) + star + (MARK if str(cell.get("loso_halved")) == "True" else "")
    )


def _put(page: str | Path, marks: tuple[str, str], heads: list[str], rows: Mapping[str, list[str]]) -> None:
    """Write a table between two marks, in place of what is there."""
    text = read_text(page)
    if any(text.count(mark) != 1 for mark in marks):
        raise FileError("the marks of the table are not there once each", where=str(page), expected=" and ".join(marks))
    before, rest = text.split(marks[0])
    lines = [f"| {' | '.join(line)} |" for line in (heads, *([label, *cells] for label, cells in rows.items()))]
    table = "\n".join([lines[0], "|:--|" + "--:|" * (len(heads) - 1), *lines[1:]])
    write_text(page, f"{before}{marks[0]}\n{table}\n{marks[1]}{rest.split(marks[1])[1]}")
