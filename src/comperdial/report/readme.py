"""The tables of docs/results.md, each written between two marks from the published results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import FileError
from comperdial.core.files import read_table, read_text, write_text
from comperdial.report.correlations import MARK, read_reported
from comperdial.report.render import number, records_by
from comperdial.stats.correlation import is_starred


def update(page: str | Path, table: str | Path, titles: Mapping[str, str]) -> None:
    """Put a study's table between its marks in a page.

    Parameters
    ----------
    page
        A Markdown file with a pair of marks.
    table
        ``results/studies/usr/tables/usr.csv``, of which the values of turns are shown, without rows that were not run; or
        ``results/studies/local_metrics/tables/local_metrics.csv``, of which Spearman's are shown, of the figure's rows.
    titles
        A title for each data set.
    """
    texts = ("level", "label", "dataset", "coefficient")
    if "seconds" in read_table(table):
        frame = read_reported([table], (*texts, "figure"), ("value", "seconds", "usd"))
        _put(page, "local-metrics-table", *_local(frame, titles))
    else:
        frame = read_reported([table], (*texts, "reported_starred"), ("ours", "p", "reported"))
        _put(page, "usr-table", *_usr(frame, titles))


def _usr(frame: pd.DataFrame, titles: Mapping[str, str]) -> tuple[list[str], dict[str, list[str]]]:
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
    return ["Turn level: ours (reported)", *columns], rows


def _local(frame: pd.DataFrame, titles: Mapping[str, str]) -> tuple[list[str], dict[str, list[str]]]:
    shown = frame[(frame["coefficient"] == "spearman") & (frame["figure"].astype(str) == "True")]
    datasets, cells = dict.fromkeys(frame["dataset"]), records_by(shown, ["label", "dataset"])
    rows = {}
    for label, own in shown.drop_duplicates("label").set_index("label").iterrows():
        values = [_marked(cells.get((str(label), dataset)), "value") for dataset in datasets]
        rows[str(label)] = [*values, number(own["seconds"], digits=1), number(own["usd"], digits=2)]
    names = [titles.get(dataset, dataset) for dataset in datasets]
    return ["Spearman, turn level", *names, "s / 1,000", "$ / 1,000"], rows


def _beside(cell: Mapping[str, Any]) -> str:
    star = r"\*" if pd.notna(cell["ours"]) and is_starred(cell["p"]) else ""
    theirs = r"\*" if str(cell["reported_starred"]) == "True" else ""
    reported = f" ({number(cell['reported'])}{theirs})" if pd.notna(cell["reported"]) else ""
    return _marked(cell, "ours", star) + reported


def _marked(cell: Mapping[str, Any] | None, value: str, star: str = "") -> str:
    return (
        "–" if cell is None else number(cell[value]) + star + (MARK if str(cell.get("loso_halved")) == "True" else "")
    )


def _put(page: str | Path, name: str, heads: list[str], rows: Mapping[str, list[str]]) -> None:
    """Write a table between two marks, in place of what is there."""
    text, marks = read_text(page), (f"<!-- {name} -->", f"<!-- /{name} -->")
    if any(text.count(mark) != 1 for mark in marks):
        raise FileError("the marks of the table are not there once each", where=str(page), expected=" and ".join(marks))
    before, rest = text.split(marks[0])
    lines = [f"| {' | '.join(line)} |" for line in (heads, *([label, *cells] for label, cells in rows.items()))]
    table = "\n".join([lines[0], "|:--|" + "--:|" * (len(heads) - 1), *lines[1:]])
    write_text(page, f"{before}{marks[0]}\n{table}\n{marks[1]}{rest.split(marks[1])[1]}")
