"""Read, write and validate the tables: tidy, one fact per row.

A table is defined once (:mod:`comperdial.schema.tables`); the Parquet types and the checks are derived from it.
That module's docstring describes rows and columns; the site's page of tables is generated from it.

A table is validated, sorted by its key and tagged with its name when it is written as Parquet. Tagged files are trusted when
read: only their schema and page checksums are checked. Other files are validated value by value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import check_input, parse_json, read_table, replacing, write_table
from comperdial.schema.tables import DTYPES, Table
from comperdial.schema.tables import TABLES as TABLES
from comperdial.schema.tables import table as table
from comperdial.schema.tables import validate as validate

# Rows per row group.
_GROUP = 65_536
# Text columns with more distinct values than this are not dictionary-encoded.
_FEW = 256
# Metadata keys of a file: the table's name, and the number of a part.
_TABLE, _PART = b"comperdial.table", b"comperdial.part"
Part = tuple[int, int]
"""The number of a part, from 1, and how many there are."""
WHOLE: Part = (1, 1)


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Validate a frame as table ``name``, sort it by key and write it (Parquet, CSV or JSONL, by suffix)."""
    spec = table(name)
    checked = validate(frame, name, where=str(path))
    if Path(path).suffix == ".parquet":
        _store(path, checked, spec)
        return
    checked = checked.sort_values(list(spec.key), kind="stable")
    if Path(path).suffix == ".csv":
        lists = [field.name for field in spec.fields if pa.types.is_list(field.type)]
        checked[lists] = checked[lists].map(lambda value: json.dumps(value, ensure_ascii=False))
    write_table(path, checked)


@contextmanager
def writing(path: str | Path, name: str, part: Part = WHOLE) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a Parquet table, or to a ``part`` for :func:`merge`.

    The table is validated, sorted and written if the block succeeds. The bytes do not depend on the order of the rows. Raises
    as :func:`validate`.
    """
    added = [pd.DataFrame(columns=table(name).columns)]
    yield added.append
    frame = pd.concat([frame for frame in added if len(frame)] or added, ignore_index=True)
    _store(path, validate(frame, name, where=str(path)), table(name), part)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a table from Parquet, CSV or JSONL, with lists as Python lists.

    Parquet files written by this package were validated then; all others are validated now.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return _to_frame(_content(path, table(name)), table(name))
    frame = read_table(path)
    if path.suffix == ".csv":
        frame = parse_cells(frame, name, path)
    return validate(frame, name, where=str(path))


def read_parts(
    path: str | Path, name: str, rows: int, start: int = 0, stop: int | None = None
) -> Iterator[pd.DataFrame]:
    """Yield rows ``start`` to ``stop`` of a Parquet table, sorted by key, at most ``rows`` at a time."""
    content = _content(path, table(name))[start:stop]
    for first in range(0, content.num_rows, rows):
        yield _to_frame(content[first : first + rows], table(name))


def merge(paths: Sequence[str | Path], output: str | Path) -> None:
    """Merge all parts of a table, in any order, into the file that an undivided run would write.

    Raises
    ------
    SchemaError
        If the files are not the complete parts of one table.
    """
    contents: list[pa.Table] = []
    parts: list[tuple[str, int, int]] = []
    for path in paths:
        with _readable(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not (name := _marked(file)):
                raise SchemaError("not a part", where=str(path), expected="a file of `comperdial score --part`")
            number, _, of = (file.metadata.metadata or {}).get(_PART, b"1-of-1").decode().partition("-of-")
            parts.append((name, int(of), int(number)))
            contents.append(file.read())
    if not parts or sorted(parts) != [(parts[0][0], len(parts), number) for number in range(1, len(parts) + 1)]:
        there = ", ".join(sorted(f"part {number} of {of} of table {name}" for name, of, number in parts)) or "none"
        raise SchemaError(f"these parts cannot be merged: {there}", expected="all parts of one table, each once")
    whole = parts[0][0]
    write(output, _to_frame(pa.concat_tables(contents), table(whole)), whole)


def ratings_in(folder: str | Path) -> pd.DataFrame:
    """Return table ``ratings`` of a folder; empty if nothing was rated."""
    path = Path(folder) / "ratings.parquet"
    return read(path, "ratings") if path.is_file() else empty("ratings")


def empty(name: str) -> pd.DataFrame:
    """Return an empty table ``name`` with its types."""
    return table(name).arrow().empty_table().to_pandas()


def count(path: str | Path, name: str) -> int:
    """Return the number of rows from a Parquet file's metadata."""
    with _readable(path, name):
        return int(pq.read_metadata(path).num_rows)


def column_names(path: str | Path) -> list[str]:
    """Return the names of a Parquet file's columns."""
    with _readable(path):
        return list(pq.read_schema(path).names)


def parse_cells(frame: pd.DataFrame, name: str, path: str | Path) -> pd.DataFrame:
    """Parse lists and missing values in the cells of a CSV; :func:`validate` handles numbers and mistakes.

    Raises
    ------
    FileError
        If a list is not valid JSON.
    """
    made = {}
    for field in table(name).fields:
        if field.name in frame and pa.types.is_list(field.type):
            where, cells = f"column {field.name!r}", enumerate(frame[field.name], 1)
            lists = [parse_json(cell, f"{path}, record {row}, {where}", expected="a JSON list") for row, cell in cells]
            made[field.name] = pd.Series(lists, dtype=object, index=frame.index)
        elif field.name in frame and field.nullable:
            made[field.name] = frame[field.name].astype(object).where(frame[field.name] != "", None)
    return frame.assign(**made)


@contextmanager
def _readable(path: str | Path, name: str = "scores") -> Iterator[None]:
    """Convert errors of reading Parquet to a :class:`FileError`."""
    check_input(path)
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not Path(path).exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error


def _marked(file: pq.ParquetFile) -> str | None:
    """Return the table name in the file's tag; None if another program has written the file since."""
    marks = file.metadata.metadata or {}
    name: str = marks.get(_TABLE, b"").decode()
    # Other programs store a copy of the Arrow schema, which ours omit.
    ours = name in TABLES and b"ARROW:schema" not in marks
    return name if ours and file.schema_arrow.equals(TABLES[name].arrow(), check_metadata=False) else None


def _content(path: str | Path, spec: Table) -> pa.Table:
    """Return the validated and sorted rows of a Parquet file."""
    with _readable(path, spec.name), pq.ParquetFile(path, page_checksum_verification=True) as file:
        content = file.read().replace_schema_metadata(None)
        if _marked(file) == spec.name:
            return content
    return _sorted(validate(_to_frame(content, spec), spec.name, where=str(path)), spec)


def _sorted(frame: pd.DataFrame, spec: Table) -> pa.Table:
    """Convert a validated frame to its stored form, sorted by key."""
    content = pa.Table.from_pandas(frame, schema=spec.arrow(), preserve_index=False).replace_schema_metadata(None)
    return content.take(pc.sort_indices(content, [(name, "ascending") for name in spec.key]))


def _to_frame(content: pa.Table, spec: Table) -> pd.DataFrame:
    """Convert stored data to a frame with the table's types, and lists as Python lists."""
    frame: pd.DataFrame = content.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    for field in spec.fields:
        # `validate` rejects duplicate column names.
        if field.type not in DTYPES and content.schema.names.count(field.name) == 1:
            frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object, index=frame.index)
    return frame


def _store(path: str | Path, checked: pd.DataFrame, spec: Table, part: Part = WHOLE) -> None:
    """Write rows without dictionaries for numbers, which compress better plain, and without unused statistics."""
    content = _sorted(checked, spec)
    # Otherwise chunk boundaries would affect the bytes of the file.
    groups = [content[start : start + _GROUP].combine_chunks() for start in range(0, max(1, content.num_rows), _GROUP)]
    texts = [field.name for field in spec.arrow() if pa.types.is_string(field.type)]
    of = {} if part == WHOLE else {_PART: "-of-".join(map(str, part)).encode()}
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
        file.add_key_value_metadata({_TABLE: spec.name.encode(), **of})
        for group in groups:
            file.write_table(group, row_group_size=_GROUP)
