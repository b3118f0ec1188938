"""Read and write tables, checked both ways."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import FileError, SchemaError
from comperdial.files import parse_json, read_table, replacing, write_table
from comperdial.schema.check import validate
from comperdial.schema.parts import readable, storage, to_arrow, to_frame
from comperdial.schema.tables import table


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Validate a frame as table ``name``, sort it by its key and write it (Parquet, CSV or JSONL by suffix)."""
    spec = table(name)
    checked = validate(frame, name, where=str(path)).sort_values(list(spec.key), kind="stable")
    if Path(path).suffix == ".parquet":
        # With the schema given, an empty list keeps its type and equal content gives equal bytes.
        content = to_arrow(checked, spec)
        with replacing(path) as temporary:
            pq.write_table(content, temporary, **storage(content))
    else:
        if Path(path).suffix == ".csv":
            for field in spec.fields:
                if pa.types.is_list(field.type):
                    checked[field.name] = [json.dumps(v, ensure_ascii=False) for v in checked[field.name]]
        write_table(path, checked)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a table from Parquet, CSV or JSONL and validate it; lists come back as Python lists."""
    spec = table(name)
    path = Path(path)
    if path.suffix == ".parquet":
        with readable(path, name):
            content = pq.read_table(path)
        frame = to_frame(content, spec)
    else:
        frame = read_table(path)
        if path.suffix == ".csv":
            frame = parse_cells(frame, name, path)
    return validate(frame, name, where=str(path))


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
