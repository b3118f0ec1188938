"""Read and write tables, checked both ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import FileError, SchemaError
from comperdial.files import read_table, replacing, write_table
from comperdial.schema.check import validate
from comperdial.schema.tables import table


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Validate a frame as table ``name``, sort it by its key and write it (Parquet, CSV or JSONL by suffix)."""
    spec = table(name)
    checked = validate(frame, name, where=str(path)).sort_values(list(spec.key), kind="stable")
    if Path(path).suffix == ".parquet":
        # With the schema given, an empty list keeps its type and equal content gives equal bytes.
        content = pa.Table.from_pandas(checked, schema=spec.arrow(), preserve_index=False)
        with replacing(path) as temporary:
            pq.write_table(content.replace_schema_metadata(None), temporary, **_storage(content))
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
        try:
            content = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            reason = "no such file" if not path.exists() else "not a readable Parquet file"
            raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error
        frame = content.to_pandas()
        for field in spec.fields:
            if pa.types.is_list(field.type) and field.name in frame:
                frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object)
    else:
        frame = read_table(path)
        if path.suffix == ".csv":
            frame = parse_cells(frame, name, path)
    return validate(frame, name, where=str(path))


def read_parts(path: str | Path, name: str, rows: int) -> Iterator[pd.DataFrame]:
    """Read a Parquet table without lists part by part, each validated, so that memory does not grow with the table.

    Parameters
    ----------
    path
        A Parquet file.
    name
        The table.
    rows
        The most rows of a part.

    Raises
    ------
    SchemaError
        As :func:`read` does; a key that stands in two parts is found when the last part has been read.
    """
    spec = table(name)
    path = Path(path)
    keys = []
    before = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                part = validate(batch.to_pandas(), name, where=str(path), before=before)
                before += len(part)
                keys.append(pd.util.hash_pandas_object(part[list(spec.key)], index=False).to_numpy())
                yield part
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not path.exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error
    found = np.concatenate(keys) if keys else np.empty(0)
    if len(np.unique(found)) < len(found):
        # Names the record, in the rare case that it is not the hashes that are equal.
        read(path, name)


@contextmanager
def writing_parts(path: str | Path, name: str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that adds validated rows to a Parquet table, which gets its name when the block ends well.

    Parts are sorted by the table's key; the whole is, if they come in order.
    """
    spec = table(name)
    waiting: list[pa.Table] = []
    with replacing(path) as temporary, ExitStack() as stack:
        writer: pq.ParquetWriter | None = None

        def flush() -> None:
            nonlocal writer
            content = pa.concat_tables(waiting) if waiting else spec.arrow().empty_table()
            waiting.clear()
            if writer is None:
                # How to store is seen from the first rows.
                writer = stack.enter_context(pq.ParquetWriter(temporary, spec.arrow(), **_storage(content)))
            writer.write_table(content)

        def add(frame: pd.DataFrame) -> None:
            ordered = frame.sort_values(list(spec.key), kind="stable")
            content = pa.Table.from_pandas(ordered, schema=spec.arrow(), preserve_index=False)
            waiting.append(content.replace_schema_metadata(None))
            if sum(part.num_rows for part in waiting) >= _GROUP:
                flush()

        yield add
        if waiting or writer is None:
            flush()


# Rows that are stored together: more compress better, fewer keep memory flat.
_GROUP = 65_536
# A column of text with more values than these is stored as it is: a dictionary would hold nearly all of it.
_FEW = 256


def _storage(content: pa.Table) -> dict[str, Any]:
    """Return the options that make a table's file small: a third less than as pyarrow does, in some milliseconds more.

    Numbers compress better as they are than through a dictionary. What is left out, statistics of columns and a second
    copy of the schema, no reader of these tables needs.
    """
    texts = [field.name for field in content.schema if pa.types.is_string(field.type)]
    return {
        "compression": "zstd",
        "compression_level": 15,
        "use_dictionary": [name for name in texts if len(content[name].unique()) <= _FEW],
        "write_statistics": False,
        "store_schema": False,
    }


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
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise SchemaError(f"column {column!r} holds {cell!r}", where=where, expected='a JSON list, such as ["a text"]')
    return value
