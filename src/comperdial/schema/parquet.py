"""Tables as Parquet files, read and written part by part, so that memory does not grow with the table.

What is written is checked, sorted by the table's key and marked with the table's name. A file with that mark is taken
as it is when it is read: only its schema and the checksums of its pages are looked at. Any other is checked value by
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.files import check_input, replacing
from comperdial.core.names import RATED_LEVELS
from comperdial.schema.check import DTYPES, validate
from comperdial.schema.fields import Table
from comperdial.schema.tables import table

Key = tuple[Any, ...]

# Rows that are stored together: more compress better, fewer keep memory flat.
_GROUP = 65_536
# A column of text with more values than these is stored as it is: a dictionary would hold nearly all of it.
_FEW = 256
# What a file's metadata say: which table it is, and of a part of one, which part.
_TABLE, _PART = b"comperdial.table", b"comperdial.part"
Part = tuple[int, int]
"""The number of a part, from 1, and how many there are."""
WHOLE: Part = (1, 1)
# The most missing parts that a message names.
_NAMED = 10


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
    with readable(path, name), pq.ParquetFile(path, page_checksum_verification=True) as file:
        ours, content = _is_ours(file, spec), file.read()
    frame = _to_frame(content, spec)
    return frame if ours else validate(frame, name, where=str(path))


def read_parts(
    path: str | Path, name: str, rows: int, start: int = 0, stop: int | None = None
) -> Iterator[pd.DataFrame]:
    """Read a Parquet table part by part, sorted by its key.

    Parameters
    ----------
    path
        A Parquet file. One that is not ours is read and checked whole, and sorted.
    name
        The table.
    rows
        How many rows a part has; the last may have fewer.
    start, stop
        Which rows are read: from the ``start``-th, counted from 0, to the one before the ``stop``-th; default: all. Row
        groups without any of them are not read.

    Raises
    ------
    SchemaError
        As :func:`read` does.
    """
    spec = table(name)
    with readable(path, name), pq.ParquetFile(path, page_checksum_verification=True) as file:
        if _is_ours(file, spec):
            for content in _contents(file, rows, start, stop):
                yield _to_frame(content, spec)
            return
    frame = read_whole(path, name).sort_values(list(spec.key), kind="stable", ignore_index=True)[start:stop]
    for first in range(0, len(frame), rows):
        yield frame[first : first + rows].reset_index(drop=True)


@contextmanager
def writing(path: str | Path, name: str, part: Part = WHOLE) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that checks rows and adds them to a Parquet table, which is sorted by its key at the end.

    Memory does not grow with the table as long as each part comes after the one before it; otherwise all rows are
    sorted in memory. The bytes depend on the rows alone, not on the parts or their order. The file gets its name when
    the block ends well.

    Parameters
    ----------
    path
        The file to write.
    name
        The table.
    part
        Which part of the table it is, by which :func:`merge` knows whether all are there.

    Raises
    ------
    SchemaError
        When rows break the table's rules, or a key is added twice; that may show at the end.
    """
    spec = table(name)
    marks = {_PART: "-of-".join(map(str, part)).encode()} if part != WHOLE else {}
    with replacing(path) as temporary, _Writer(temporary, spec, str(path), marks) as writer:

        def add(frame: pd.DataFrame) -> None:
            checked = validate(frame, name, where=str(path)).sort_values(list(spec.key), kind="stable")
            content = pa.Table.from_pandas(checked, schema=spec.arrow(), preserve_index=False)
            writer.add(content.replace_schema_metadata(None))

        yield add
        writer.end()


def merge(paths: Sequence[str | Path], output: str | Path) -> None:
    """Merge the parts of a table, all of them in any order, into the file that is written in one piece.

    Raises
    ------
    SchemaError
        When the files are not all parts of one table, each once.
    """
    name, ordered = _complete([Path(path) for path in paths])
    spec = table(name)
    with replacing(output) as temporary, _Writer(temporary, spec, str(output), {}) as writer:
        for path in ordered:
            with readable(path, name), pq.ParquetFile(path, page_checksum_verification=True) as file:
                for content in _contents(file, _GROUP, 0, None):
                    writer.add(content.replace_schema_metadata(None))
        writer.end()


class _Writer:
    """A Parquet file written in place: sorted rows as they come, in groups of equal size."""

    def __init__(self, path: Path, spec: Table, where: str, marks: Mapping[bytes, bytes]) -> None:
        self._path = path
        self._spec = spec
        self._where = where
        self._marks = {_TABLE: spec.name.encode(), **marks}
        self._waiting: list[pa.Table] = []
        self._held = 0
        self._last: Key | None = None
        self._mixed = False
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def add(self, content: pa.Table) -> None:
        """Add sorted rows."""
        if not content.num_rows:
            return
        self._mixed |= self._last is not None and _key(content, 0, self._spec) <= self._last
        self._last = _key(content, -1, self._spec)
        self._waiting.append(content)
        self._held += content.num_rows
        if self._held >= _GROUP and not self._mixed:
            rows = pa.concat_tables(self._waiting)
            self._held %= _GROUP
            self._store(rows[: rows.num_rows - self._held])
            self._waiting = [rows[rows.num_rows - self._held :]]

    def end(self) -> None:
        """Store what waits."""
        rows = pa.concat_tables([self._spec.arrow().empty_table(), *self._waiting])
        if self._mixed:
            if self._file:
                self._close()
                rows = pa.concat_tables([pq.read_table(self._path).replace_schema_metadata(None), rows])
            rows = _sorted(rows, self._spec, self._where)
        if rows.num_rows or self._file is None:
            self._store(rows)

    def _store(self, rows: pa.Table) -> None:
        for start in range(0, max(1, rows.num_rows), _GROUP):
            # Where a column's pieces meet would be seen in the file.
            group = rows[start : start + _GROUP].combine_chunks()
            if self._file is None:
                # How to store is seen from the first rows.
                self._file = pq.ParquetWriter(self._path, self._spec.arrow(), **_storage(group))
                self._file.add_key_value_metadata(self._marks)
            self._file.write_table(group, row_group_size=_GROUP)

    def _close(self) -> None:
        if self._file:
            self._file.close()
        self._file = None


def _storage(content: pa.Table) -> dict[str, Any]:
    """Return the options that make a table's file small: a third less than as pyarrow does, in some milliseconds more.

    Numbers compress better as they are than through a dictionary. What is left out, statistics of columns and a second
    copy of the schema, no reader of these tables needs; others write that copy, which tells their files from ours.
    """
    texts = [field.name for field in content.schema if pa.types.is_string(field.type)]
    return {
        "compression": "zstd",
        "compression_level": 15,
        "use_dictionary": [name for name in texts if len(content[name].unique()) <= _FEW],
        "write_statistics": False,
        "write_page_checksum": True,
        "store_schema": False,
    }


@contextmanager
def readable(path: str | Path, name: str) -> Iterator[None]:
    """Turn what goes wrong when a Parquet file is read into a :class:`FileError`."""
    check_version(Path(path))
    check_input(path)
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = "no such file" if not Path(path).exists() else "not a readable Parquet file"
        raise FileError(reason, where=str(path), expected=f"table {name!r} as Parquet") from error


def check_version(path: Path) -> None:
    """Refuse a folder that has the tables of ratings of earlier versions, and not the one of today."""
    old = [path.with_name(f"{level}_ratings.parquet") for level in RATED_LEVELS]
    if path.name == "ratings.parquet" and not path.exists() and any(one.exists() for one in old):
        raise FileError(
            "the ratings are in turn_ratings.parquet and dialogue_ratings.parquet, as earlier versions wrote them",
            where=str(path.parent),
            expected="one table, ratings.parquet",
            hint="Read the data set again, with `snakemake` or `comperdial read`",
        )


def _is_ours(file: pq.ParquetFile, spec: Table) -> bool:
    """Say whether we wrote a file of this table, and nobody since."""
    said = file.metadata.metadata or {}
    written = said.get(_TABLE) == spec.name.encode() and b"ARROW:schema" not in said
    return written and file.schema_arrow.equals(spec.arrow(), check_metadata=False)


def _contents(file: pq.ParquetFile, rows: int, start: int, stop: int | None) -> Iterator[pa.Table]:
    """Read a range of an open file in parts of ``rows`` rows, as they are."""
    ends = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))])
    stop = int(ends[-1]) if stop is None else min(stop, int(ends[-1]))
    waiting = file.schema_arrow.empty_table()
    for group in range(file.num_row_groups):
        if ends[group] < stop and ends[group + 1] > start:
            found = file.read_row_group(group)[max(0, start - ends[group]) : stop - ends[group]]
            waiting = pa.concat_tables([waiting, found])
            whole = waiting.num_rows - waiting.num_rows % rows
            for place in range(0, whole, rows):
                yield waiting[place : place + rows]
            waiting = waiting[whole:]
    if waiting.num_rows:
        yield waiting


def _to_frame(content: pa.Table, spec: Table) -> pd.DataFrame:
    """Return what is stored as a frame with the table's types, and with lists as Python lists."""
    frame: pd.DataFrame = content.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    for field in spec.fields:
        # A name that stands twice is for `validate` to refuse.
        if field.type not in DTYPES and content.schema.names.count(field.name) == 1:
            frame[field.name] = pd.Series(content[field.name].to_pylist(), dtype=object, index=frame.index)
    return frame


def _complete(paths: Sequence[Path]) -> tuple[str, list[Path]]:
    """Return the table that files are parts of, and the files in the parts' order; raise unless all are there."""
    if not paths:
        raise ConfigError("no parts to merge", expected="one or more")
    found: dict[int, Path] = {}
    first: tuple[str, int] | None = None
    for path in paths:
        with readable(path, "scores"), pq.ParquetFile(path) as file:
            marks = file.metadata.metadata or {}
            name = marks.get(_TABLE, b"").decode()
            if not name or not _is_ours(file, table(name)):
                raise SchemaError("not a part", where=str(path), expected="a file of `comperdial score --part`")
        number, count = map(int, marks.get(_PART, b"1-of-1").split(b"-of-"))
        first = first or (name, count)
        if (name, count) != first or number in found:
            raise SchemaError(
                f"part {number} of {count} of table {name}",
                where=str(path),
                expected=f"each of the {first[1]} parts of table {first[0]} once",
            )
        found[number] = path
    name, count = first or ("", 0)
    if missing := [number for number in range(1, count + 1) if number not in found]:
        named = ", ".join(map(str, missing[:_NAMED])) + (", …" if len(missing) > _NAMED else "")
        raise SchemaError(
            f"{len(missing)} of {count} parts missing: {named}", where=str(paths[0]), expected="all parts"
        )
    return name, [found[number] for number in sorted(found)]


def _key(content: pa.Table, row: int, spec: Table) -> Key:
    return tuple(content[name][row].as_py() for name in spec.key)


def _sorted(content: pa.Table, spec: Table, where: str) -> pa.Table:
    """Return rows sorted by their key, as pandas sorts them, after a look for keys that stand twice."""
    content = content.combine_chunks()
    content = content.take(pc.sort_indices(content, [(name, "ascending") for name in spec.key]))
    same = np.ones(max(0, content.num_rows - 1), dtype=bool)
    for name in spec.key:
        same &= pc.equal(content[name][:-1], content[name][1:]).to_numpy()
    if same.any():
        twice = _key(content, int(same.argmax()), spec)
        named = ", ".join(f"{column}={value}" for column, value in zip(spec.key, twice, strict=True))
        raise SchemaError(
            f"the same key a second time ({named})", where=where, expected="each (" + ", ".join(spec.key) + ") once"
        )
    return content
