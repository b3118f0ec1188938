"""The tables that everything flows through: tidy, one row a fact, checked when written and when foreign.

A table is described once (:mod:`comperdial.schema.tables`); the Parquet types and the checks both come from it.
The docstring of that module says what rows and columns mean; the site's page of tables is generated from it.

A Parquet table is checked, sorted by the table's key and marked with the table's name. A file with that mark is taken
as it is when it is read: only its schema and the checksums of its pages are looked at. Any other is checked value by
value.
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

# Rows that are stored together.
_GROUP = 65_536
# A column of text with more values than these is stored as it is: a dictionary would hold nearly all of it.
_FEW = 256
# Keys of a file's metadata: which table it is, and of a part of one, which part.
_TABLE, _PART = b"comperdial.table", b"comperdial.part"
Part = tuple[int, int]
"""The number of a part, from 1, and how many there are."""
WHOLE: Part = (1, 1)


def write(path: str | Path, frame: pd.DataFrame, name: str) -> None:
    """Check a frame as table ``name``, sort it by its key and write it (Parquet, CSV or JSONL by suffix)."""
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
    """Give a function that adds rows to a Parquet table, or to a ``part`` that :func:`merge` merges with the others.

    It is checked, sorted and written when the block ends well. The bytes depend on the rows alone, not on their order.
    Raises as :func:`validate`.
    """
    added = [pd.DataFrame(columns=table(name).columns)]
    yield added.append
    frame = pd.concat([frame for frame in added if len(frame)] or added, ignore_index=True)
    _store(path, validate(frame, name, where=str(path)), table(name), part)


def read(path: str | Path, name: str) -> pd.DataFrame:
    """Read a table from Parquet, CSV or JSONL; lists come back as Python lists.

    What we wrote as Parquet was checked then, and is not checked again; anything else is.
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
    """Yield the rows of a Parquet table from ``start`` to ``stop``, sorted by their key, at most ``rows`` at a time."""
    content = _content(path, table(name))[start:stop]
    for first in range(0, content.num_rows, rows):
        yield _to_frame(content[first : first + rows], table(name))


def merge(paths: Sequence[str | Path], output: str | Path) -> None:
    """Merge the parts of a table, all of them in any order, into the file that is written in one piece.

    Raises
    ------
    SchemaError
        When the files are not all parts of one table, each once.
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
    """Return table ``ratings`` of a folder of tables; without records if nothing in it was rated."""
    path = Path(folder) / "ratings.parquet"
    return read(path, "ratings") if path.is_file() else empty("ratings")


def empty(name: str) -> pd.DataFrame:
    """Return table ``name`` without records, with its types."""
    return table(name).arrow().empty_table().to_pandas()


def count(path: str | Path, name: str) -> int:
    """Return how many rows the Parquet file of table ``name`` says that it has; no row is read."""
    with _readable(path, name):
        return int(pq.read_metadata(path).num_rows)


def column_names(path: str | Path) -> list[str]:
    """Return the names of a Parquet file's columns."""
    with _readable(path):
        return list(pq.read_schema(path).names)


def parse_cells(frame: pd.DataFrame, name: str, path: str | Path) -> pd.DataFrame:
    """Turn the texts of a CSV's cells into lists and missing values, and leave numbers and mistakes to :func:`validate`.

    Raises
    ------
    FileError
        When a list is not JSON.
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
    """Turn what goes wrong when a Parquet file is read into a :class:`FileError`."""
    check_input(path)
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not Path(path).exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error


def _marked(file: pq.ParquetFile) -> str | None:
    """Return the name of the table that a file is, if we wrote it and no other program since."""
    marks = file.metadata.metadata or {}
    name: str = marks.get(_TABLE, b"").decode()
    # Other programs store a copy of the schema, by which their files differ from ours.
    ours = name in TABLES and b"ARROW:schema" not in marks
    return name if ours and file.schema_arrow.equals(TABLES[name].arrow(), check_metadata=False) else None


def _content(path: str | Path, spec: Table) -> pa.Table:
    """Return the checked and sorted rows of a Parquet file."""
    with _readable(path, spec.name), pq.ParquetFile(path, page_checksum_verification=True) as file:
        content = file.read().replace_schema_metadata(None)
        if _marked(file) == spec.name:
            return content
    return _sorted(validate(_to_frame(content, spec), spec.name, where=str(path)), spec)


def _sorted(frame: pd.DataFrame, spec: Table) -> pa.Table:
    """Return a checked frame as it is stored, sorted by its key."""
    content = pa.Table.from_pandas(frame, schema=spec.arrow(), preserve_index=False).replace_schema_metadata(None)
    return content.take(pc.sort_indices(content, [(name, "ascending") for name in spec.key]))


def _to_frame(content: pa.Table, spec: Table) -> pd.DataFrame:
    """Return what is stored as a frame with the table's types, and with lists as Python lists."""
    frame: pd.DataFrame = content.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    for field in spec.fields:
        # Two columns with one name are refused by `validate`.
        if field.type not in DTYPES and content.schema.names.count(field.name) == 1:
            frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object, index=frame.index)
    return frame


def _store(path: str | Path, checked: pd.DataFrame, spec: Table, part: Part = WHOLE) -> None:
    """Write rows, small: numbers compress better as they are than through a dictionary; no reader needs statistics."""
    content = _sorted(checked, spec)
    # Where the columns' pieces meet would be seen in the file.
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
