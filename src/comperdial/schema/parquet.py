"""Tables as Parquet files.

What is written is checked, sorted by the table's key and marked with the table's name. A file with that mark is taken
as it is when it is read: only its schema and the checksums of its pages are looked at. Any other is checked value by
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import check_input, replacing
from comperdial.schema.check import DTYPES, validate
from comperdial.schema.tables import Table, table

# Rows that are stored together.
_GROUP = 65_536
# A column of text with more values than these is stored as it is: a dictionary would hold nearly all of it.
_FEW = 256
# Keys of a file's metadata: which table it is, and of a part of one, which part.
_TABLE, _PART = b"comperdial.table", b"comperdial.part"
Part = tuple[int, int]
"""The number of a part, from 1, and how many there are."""
WHOLE: Part = (1, 1)


@contextmanager
def readable(path: str | Path, name: str) -> Iterator[None]:
    """Turn what goes wrong when a Parquet file is read into a :class:`FileError`."""
    check_input(path)
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not Path(path).exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error


def count(path: str | Path, name: str) -> int:
    """Return how many rows the Parquet file of table ``name`` says that it has; no row is read."""
    with readable(path, name):
        rows: int = pq.read_metadata(path).num_rows
    return rows


def column_names(path: str | Path) -> list[str]:
    """Return the names of a Parquet file's columns; none of a file that is no Parquet."""
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowInvalid):
        return []


def read_whole(path: str | Path, name: str) -> pd.DataFrame:
    """Read a Parquet file; one that is not ours is checked."""
    spec = table(name)
    content, ours = _content(path, spec)
    frame = _to_frame(content, spec)
    return frame if ours else validate(frame, name, where=str(path))


def read_parts(
    path: str | Path, name: str, rows: int, start: int = 0, stop: int | None = None
) -> Iterator[pd.DataFrame]:
    """Read a Parquet table part by part, sorted by its key.

    Parameters
    ----------
    path, name
        A Parquet file and its table. One that is not ours is checked and sorted.
    rows
        How many rows a part has; the last may have fewer.
    start, stop
        Which rows are read: from the ``start``-th, counted from 0, to the one before the ``stop``-th; default: all.

    Raises
    ------
    SchemaError
        As :func:`read` does.
    """
    spec = table(name)
    content, ours = _content(path, spec)
    if not ours:
        content = _sorted(_to_arrow(validate(_to_frame(content, spec), name, where=str(path)), spec), spec, str(path))
    content = content[start:stop]
    for first in range(0, content.num_rows, rows):
        yield _to_frame(content[first : first + rows], spec)


@contextmanager
def writing(path: str | Path, name: str, part: Part = WHOLE) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that checks rows and adds them to a Parquet table, which is sorted by its key at the end.

    The bytes depend on the rows alone, not on their order. The file is written when the block ends well.

    Parameters
    ----------
    path, name
        The file to write, and its table.
    part
        Which part of the table it is, by which :func:`merge` knows whether all are there.

    Raises
    ------
    SchemaError
        When rows break the table's rules, or a key is added twice; that may show at the end.
    """
    spec = table(name)
    added = [spec.arrow().empty_table()]
    yield lambda frame: added.append(_to_arrow(validate(frame, name, where=str(path)), spec))
    _store(path, _sorted(pa.concat_tables(added), spec, str(path)), spec, part)


def merge(paths: Sequence[str | Path], output: str | Path) -> None:
    """Merge the parts of a table, all of them in any order, into the file that is written in one piece.

    Raises
    ------
    SchemaError
        When the files are not all parts of one table, each once.
    """
    parts = []
    for path in map(Path, paths):
        with readable(path, "scores"):
            marks = pq.read_metadata(path).metadata or {}
        if _TABLE not in marks:
            raise SchemaError("not a part", where=str(path), expected="a file of `comperdial score --part`")
        number, _, of = marks.get(_PART, b"1-of-1").decode().partition("-of-")
        parts.append((marks[_TABLE].decode(), int(of), int(number), path))
    names, counts = {part[0] for part in parts}, {part[1] for part in parts}
    numbers = sorted(part[2] for part in parts)
    if len(names) != 1 or len(counts) != 1 or numbers != list(range(1, max(counts) + 1)):
        there = ", ".join(f"part {number} of {of} of table {name}" for name, of, number, _ in sorted(parts)) or "none"
        raise SchemaError(f"these parts cannot be merged: {there}", expected="all parts of one table, each once")
    spec = table(names.pop())
    contents = [spec.arrow().empty_table()]
    for *_, path in sorted(parts):
        content, ours = _content(path, spec)
        if not ours:
            raise SchemaError("not a part", where=str(path), expected="a file of `comperdial score --part`")
        contents.append(content)
    _store(output, _sorted(pa.concat_tables(contents), spec, str(output)), spec, WHOLE)


def _content(path: str | Path, spec: Table) -> tuple[pa.Table, bool]:
    """Return what is in a file, and whether we wrote it, and nobody since."""
    with readable(path, spec.name), pq.ParquetFile(path, page_checksum_verification=True) as file:
        marks = file.metadata.metadata or {}
        # Other programs store a copy of the schema, by which their files differ from ours.
        written = marks.get(_TABLE) == spec.name.encode() and b"ARROW:schema" not in marks
        ours = written and file.schema_arrow.equals(spec.arrow(), check_metadata=False)
        return file.read().replace_schema_metadata(None), ours


def _to_arrow(frame: pd.DataFrame, spec: Table) -> pa.Table:
    return pa.Table.from_pandas(frame, schema=spec.arrow(), preserve_index=False).replace_schema_metadata(None)


def _to_frame(content: pa.Table, spec: Table) -> pd.DataFrame:
    """Return what is stored as a frame with the table's types, and with lists as Python lists."""
    frame: pd.DataFrame = content.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    for field in spec.fields:
        # Two columns with one name are refused by `validate`.
        if field.type not in DTYPES and content.schema.names.count(field.name) == 1:
            frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object, index=frame.index)
    return frame


def _sorted(content: pa.Table, spec: Table, where: str) -> pa.Table:
    """Return rows sorted by their key; raise if two have the same."""
    content = content.combine_chunks()
    content = content.take(pc.sort_indices(content, [(name, "ascending") for name in spec.key]))
    same = np.ones(max(0, content.num_rows - 1), dtype=bool)
    for name in spec.key:
        same &= pc.equal(content[name][:-1], content[name][1:]).to_numpy()
    if same.any():
        key = content.select(list(spec.key))[int(same.argmax()) :][:1].to_pylist()[0]
        named = ", ".join(f"{column}={value}" for column, value in key.items())
        expected = "each (" + ", ".join(spec.key) + ") once"
        raise SchemaError(f"the same key a second time ({named})", where=where, expected=expected)
    return content


def _store(path: str | Path, content: pa.Table, spec: Table, part: Part) -> None:
    """Write rows, small: numbers compress better as they are than through a dictionary; no reader needs statistics."""
    # Where the columns' pieces meet would be seen in the file.
    groups = [content[start : start + _GROUP].combine_chunks() for start in range(0, max(1, content.num_rows), _GROUP)]
    texts = [field.name for field in spec.arrow() if pa.types.is_string(field.type)]
    marks = {_TABLE: spec.name.encode()}
    if part != WHOLE:
        marks[_PART] = "-of-".join(map(str, part)).encode()
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary,
            spec.arrow(),
            compression="zstd",
            compression_level=15,
            use_dictionary=[name for name in texts if len(groups[0][name].unique()) <= _FEW],
            write_statistics=False,
            write_page_checksum=True,
            store_schema=False,
        ) as file,
    ):
        file.add_key_value_metadata(marks)
        for group in groups:
            file.write_table(group, row_group_size=_GROUP)
