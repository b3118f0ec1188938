"""Read and write tables as files of any kind."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa

from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import parse_json, read_table, write_table
from comperdial.schema.check import validate
from comperdial.schema.parquet import check_version, read_whole, writing
from comperdial.schema.tables import table


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Check a frame as table ``name``, sort it by its key and write it (Parquet, CSV or JSONL by suffix)."""
    if Path(path).suffix == ".parquet":
        with writing(path, name) as add:
            add(frame)
        return
    spec = table(name)
    checked = validate(frame, name, where=str(path)).sort_values(list(spec.key), kind="stable")
    if Path(path).suffix == ".csv":
        for field in spec.fields:
            if pa.types.is_list(field.type):
                checked[field.name] = [json.dumps(v, ensure_ascii=False) for v in checked[field.name]]
    write_table(path, checked)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a table from Parquet, CSV or JSONL; lists come back as Python lists.

    What we wrote as Parquet was checked then, and is not checked again; anything else is.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return read_whole(path, name)
    frame = read_table(path)
    if path.suffix == ".csv":
        frame = parse_cells(frame, name, path)
    return validate(frame, name, where=str(path))


def ratings_in(folder: str | Path) -> pd.DataFrame:
    """Return table ``ratings`` of a folder of tables; without records if nothing in it was rated.

    Raises
    ------
    FileError
        When an earlier version wrote the folder, with one table of ratings for each level.
    """
    path = Path(folder) / "ratings.parquet"
    if path.is_file():
        return read(path, "ratings")
    check_version(path)
    return empty("ratings")


def empty(name: str) -> pd.DataFrame:
    """Return table ``name`` without records, with its types."""
    return table(name).arrow().empty_table().to_pandas()


def parse_cells(frame: pd.DataFrame, name: str, path: str | Path) -> pd.DataFrame:
    """Turn the texts of a CSV's cells into what the table's columns hold: lists, numbers, missing values.

    A cell that does not spell what it should is left as it is, for :func:`validate` to name.
    """
    frame = frame.copy()
    for field in table(name).fields:
        if field.name not in frame:
            continue
        if pa.types.is_list(field.type):
            lists = [
                _list(cell, f"{path}, record {row}", field.name) for row, cell in enumerate(frame[field.name], start=1)
            ]
            frame[field.name] = pd.Series(lists, dtype=object, index=frame.index)
            continue
        cells = frame[field.name].astype(object)
        if field.nullable:
            cells = cells.where(cells != "", None)
        if field.type != pa.string():
            numbers = pd.to_numeric(cells, errors="coerce")
            cells = cells.where(numbers.isna(), numbers.astype(object))
        frame[field.name] = cells
    return frame


def _list(cell: str, where: str, column: str) -> list[object]:
    expected, why = 'a JSON list, such as ["a text"]', ""
    try:
        value = parse_json(cell, where, expected=expected)
    except FileError as error:
        value, why = None, f" ({error.problem})"
    if not isinstance(value, list):
        raise SchemaError(f"column {column!r} holds {cell!r}{why}", where=where, expected=expected)
    return value
