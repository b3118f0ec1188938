"""The README's table, written between two marks from the published results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from comperdial.core.errors import FileError
from comperdial.core.files import read_text, write_text
from comperdial.report.document import number, records_by
from comperdial.report.leave_out import MARK
from comperdial.stats.correlation import is_starred

MARKS = ("<!-- usr-table -->", "<!-- /usr-table -->")


def update(page: str | Path, frame: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Put the turn-level values of the USR table between the marks of a page; rows that were not run stay out.

    Parameters
    ----------
    page
        A Markdown file with both marks.
    frame
        ``results/tables/usr.csv``.
    titles
        A title for each data set.
    """
    text = read_text(page)
    if any(text.count(mark) != 1 for mark in MARKS):
        raise FileError("the marks of the table are not there once each", where=str(page), expected=" and ".join(MARKS))
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
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
    write_text(page, f"{before}{MARKS[0]}\n" + "\n".join(lines) + f"\n{MARKS[1]}{after}")


def _star(marked: bool) -> str:
    return r"\*" if marked else ""
