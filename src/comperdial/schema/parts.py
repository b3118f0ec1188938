"""Read and write Parquet tables part by part, so that memory does not grow with the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import FileError
from comperdial.files import check_input, replacing
from comperdial.schema.check import validate
from comperdial.schema.fields import Table
from comperdial.schema.tables import table

# Rows that are stored together: more compress better, fewer keep memory flat.
_GROUP = 65_536
# A column of text with more values than these is stored as it is: a dictionary would hold nearly all of it.
_FEW = 256
# Rows that are decoded at once at the least: a call for each small part would take longer than the decoding.
_DECODED = 4096


def count(path: str | Path, name: str) -> int:
    """Return how many rows the Parquet file of table ``name`` says that it has; no row is read."""
    with readable(path, name):
        rows: int = pq.read_metadata(path).num_rows
    return rows


def read_parts(
    path: str | Path, name: str, rows: int, start: int = 0, stop: int | None = None
) -> Iterator[pd.DataFrame]:
    """Read a Parquet table part by part, each validated, so that memory does not grow with the table.

    Parameters
    ----------
    path
        A Parquet file.
    name
        The table.
    rows
        How many rows a part has; the last may have fewer.
    start, stop
        Which rows of the file are read: from the ``start``-th, counted from 0, to the one before the ``stop``-th;
        default: all. Row groups without any of them are not read.

    Raises
    ------
    SchemaError
        As :func:`read` does; a key that stands in two parts is found when the last part has been read. Rows outside
        the range are not looked at.
    """
    spec = table(name)
    keys = []
    before = start
    for content in contents(path, spec, rows, start, stop):
        part = validate(to_frame(content, spec), name, where=str(path), before=before)
        before += len(part)
        keys.append(pd.util.hash_pandas_object(part[list(spec.key)], index=False).to_numpy())
        yield part
    found = np.concatenate(keys) if keys else np.empty(0)
    if len(np.unique(found)) < len(found):
        # Names the record, in the rare case that it is not the hashes that are equal.
        whole = pa.concat_tables(contents(path, spec, rows, start, stop))
        validate(to_frame(whole, spec), name, where=str(path), before=start)


def contents(path: str | Path, spec: Table, rows: int, start: int = 0, stop: int | None = None) -> Iterator[pa.Table]:
    """Read a range of a Parquet file in parts of ``rows`` rows, as they are."""
    with readable(path, spec.name), pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum([0, *sizes])
        stop = int(ends[-1]) if stop is None else min(stop, int(ends[-1]))
        groups = [group for group in range(len(sizes)) if ends[group] < stop and ends[group + 1] > start]
        at = int(ends[groups[0]]) if groups else 0
        waiting = file.schema_arrow.empty_table()
        for batch in file.iter_batches(batch_size=max(rows, _DECODED), row_groups=groups):
            first, last = max(start - at, 0), min(stop - at, batch.num_rows)
            at += batch.num_rows
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])[first : max(first, last)]])
            whole = waiting.num_rows - waiting.num_rows % rows
            for place in range(0, whole, rows):
                yield waiting[place : place + rows]
            waiting = waiting[whole:]
        if waiting.num_rows:
            yield waiting


@contextmanager
def readable(path: str | Path, name: str) -> Iterator[None]:
    """Turn what goes wrong when a Parquet file is read into a :class:`FileError`."""
    check_input(path)
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not Path(path).exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error


@contextmanager
def writing_parts(path: str | Path, name: str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that adds validated rows to a Parquet table, which gets its name when the block ends well.

    Parts are sorted by the table's key; the whole is, if they come in order (:func:`writing_sorted` takes any order).
    The file's bytes depend on the rows and their order alone, not on the parts.
    """
    spec = table(name)
    with replacing(path) as temporary, writing(temporary, spec) as add:
        yield lambda frame: add(to_arrow(frame.sort_values(list(spec.key), kind="stable"), spec))


@contextmanager
def writing(path: Path, spec: Table, mark: Mapping[bytes, bytes] | None = None) -> Iterator[Callable[[pa.Table], None]]:
    """Give a function that adds rows, as they are, to a Parquet file written in place; a mark is its metadata."""
    waiting: list[pa.Table] = []
    held = 0
    with ExitStack() as stack:
        writer: pq.ParquetWriter | None = None

        def flush(content: pa.Table) -> None:
            nonlocal writer
            # Where a column's pieces meet would be seen in the file.
            content = content.combine_chunks()
            if writer is None:
                # How to store is seen from the first rows.
                writer = stack.enter_context(pq.ParquetWriter(path, spec.arrow(), **storage(content)))
                if mark:
                    writer.add_key_value_metadata(mark)
            writer.write_table(content, row_group_size=_GROUP)

        def add(content: pa.Table) -> None:
            nonlocal held
            waiting.append(content)
            held += content.num_rows
            if held < _GROUP:
                return
            rows = pa.concat_tables(waiting)
            for start in range(0, held - held % _GROUP, _GROUP):
                flush(rows[start : start + _GROUP])
            waiting[:] = [rows[held - held % _GROUP :]]
            held %= _GROUP

        yield add
        if held or writer is None:
            flush(pa.concat_tables([spec.arrow().empty_table(), *waiting]))


def storage(content: pa.Table) -> dict[str, Any]:
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


def to_arrow(frame: pd.DataFrame, spec: Table) -> pa.Table:
    """Return a validated frame as what is stored: with the schema given, an empty list keeps its type."""
    content = pa.Table.from_pandas(frame, schema=spec.arrow(), preserve_index=False)
    return content.replace_schema_metadata(None)


def to_frame(content: pa.Table, spec: Table) -> pd.DataFrame:
    """Return what is stored as a frame, with lists as Python lists."""
    frame: pd.DataFrame = content.to_pandas()
    for field in spec.fields:
        # A name that stands twice is for `validate` to refuse.
        if pa.types.is_list(field.type) and content.schema.names.count(field.name) == 1:
            frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object, index=frame.index)
    return frame
