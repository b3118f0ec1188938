"""What tables and figures are made of, read: ratings, correlations, and values that a paper reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import read_table

REPORTED_COLUMNS = ("source", "dataset", "level", "target", "metric", "coefficient", "starred")


def read_ratings(path: Path, source: str) -> pd.DataFrame:
    """Return the ratings by a source."""
    found = schema.read(path, "ratings")
    return found[found["source"] == source]


def read_correlations(paths: Sequence[str | Path]) -> pd.DataFrame:
    """Read and join tables ``correlations``; without any row there is nothing to show."""
    found = pd.concat([schema.read(path, "correlations") for path in paths], ignore_index=True)
    if found.empty:
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    return found


def read_reported(
    path: str | Path, columns: Sequence[str], numbers: Sequence[str] = (), *, given: Sequence[str] = ()
) -> pd.DataFrame:
    """Read values that a paper reports, or that a command of ours wrote, from a CSV; the one check that they get.

    Parameters
    ----------
    path
        The file. A column ``starred`` in it becomes True, False or missing.
    columns
        The columns of text that must be there.
    numbers, given
        The columns of numbers that must be there: an empty cell is missing in ``numbers`` and an error in ``given``.

    Raises
    ------
    FileError, SchemaError
        When it is no CSV, a column is missing, a cell is not what its column holds, or a row stands there twice.
    """
    frame = read_table(path)
    need(frame, (*columns, *numbers, *given), str(path))
    values = dict.fromkeys((*numbers, *given), "a number")
    twice = frame[[name for name in frame if name not in values]].astype(str).duplicated()
    if twice.any():
        raise _wrong(path, twice, "the row stands there a second time", "each once")
    for name, expected in (values | ({"starred": "true or false"} if "starred" in frame else {})).items():
        # Texts in a CSV, whatever in other files.
        cells = frame[name].astype(str).replace("", None)
        found = pd.to_numeric(cells, errors="coerce") if name in values else cells.str.lower().map(_FLAGS)
        wrong = found.isna() & (cells.notna() | (name in given))
        if wrong.any():
            raise _wrong(path, wrong, f"column {name!r} holds {cells.fillna('')[wrong].iloc[0]!r}", expected)
        frame[name] = found
    return frame


_FLAGS = {"true": True, "false": False}


def need(frame: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise :class:`SchemaError` unless the frame has the columns."""
    if missing := [column for column in columns if column not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=where, expected=", ".join(columns))


def _wrong(path: str | Path, rows: pd.Series, what: str, expected: str) -> SchemaError:
    return SchemaError(what, where=f"{path}, line {int(rows.to_numpy().argmax()) + 2}", expected=expected)
