"""Read and write tables as files of any kind."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa

from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import parse_json, read_table, write_table
from comperdial.schema.check import validate
from comperdial.schema.parquet import read_whole, writing
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
        lists = [field.name for field in spec.fields if pa.types.is_list(field.type)]
        checked[lists] = checked[lists].map(lambda value: json.dumps(value, ensure_ascii=False))
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
    """Return table ``ratings`` of a folder of tables; without records if nothing in it was rated."""
    path = Path(folder) / "ratings.parquet"
    return read(path, "ratings") if path.is_file() else empty("ratings")


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
        cells = frame[field.name].astype(object)
        if pa.types.is_list(field.type):
            lists = [_list(cell, f"{path}, record {row}", field.name) for row, cell in enumerate(cells, start=1)]
            cells = pd.Series(lists, dtype=object, index=frame.index)
        if field.nullable:
            cells = cells.where(cells != "", None)
        if field.is_number:
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
