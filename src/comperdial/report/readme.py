"""The README's table, written between two marks from the published results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from comperdial.errors import FileError
from comperdial.files import read_text, write_text
from comperdial.report.document import number, records_by

MARKS = ("<!-- usr-table -->", "<!-- /usr-table -->")
_COLUMNS = [
    ("usr_topical", "pearson"),
    ("usr_topical", "spearman"),
    ("usr_persona", "pearson"),
    ("usr_persona", "spearman"),
]
_HEADER = (
    "| Turn level: ours (reported) | USR-Topical Pearson | USR-Topical Spearman | USR-Persona Pearson "
    "| USR-Persona Spearman |\n|:--|--:|--:|--:|--:|"
)


def update(page: str | Path, frame: pd.DataFrame) -> None:
    """Put the turn-level values of the USR table between the marks of a page; rows that were not run stay out.

    Parameters
    ----------
    page
        A Markdown file with both marks.
    frame
        ``results/tables/usr.csv``, of both USR sets.
    """
    text = read_text(page)
    if any(text.count(mark) != 1 for mark in MARKS):
        raise FileError("the marks of the table are not there once each", where=str(page), expected=" and ".join(MARKS))
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    turn = records_by(frame[frame["level"] == "turn"], ["label", "dataset", "coefficient"])
    lines = []
    for label in dict.fromkeys(frame.loc[frame["ours"].notna(), "label"]):
        cells = []
        for dataset, coefficient in _COLUMNS:
            cell = turn[label, dataset, coefficient]
            reported = f" ({number(cell['reported'])})" if pd.notna(cell["reported"]) else ""
            cells.append(number(cell["ours"]) + reported)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    write_text(page, f"{before}{MARKS[0]}\n{_HEADER}\n" + "\n".join(lines) + f"\n{MARKS[1]}{after}")
