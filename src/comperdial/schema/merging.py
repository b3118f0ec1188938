"""Make one sorted Parquet table of several, or of rows that come in any order, in memory that does not grow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import ConfigError, SchemaError
from comperdial.files import replacing
from comperdial.schema.check import sound, validate
from comperdial.schema.fields import Table
from comperdial.schema.marks import check_complete, mark
from comperdial.schema.ordering import Key, in_order, key, rising
from comperdial.schema.parts import contents, readable, to_arrow, to_frame, writing
from comperdial.schema.tables import table
from comperdial.sharding import WHOLE, Shard

# Rows of all tables together that are held while they are merged, and the least of one table that are worth a reading.
_HELD = 262_144
_LEAST = 1024
# Tables that are read at once; more are merged in two steps or more.
_OPEN = 128
# Rows that are sorted in memory.
_RUN = 262_144


def merge(paths: Sequence[str | Path], output: str | Path, name: str) -> None:
    """Merge Parquet tables that are sorted by their key, such as the shards of one, into one that is sorted.

    Memory does not grow with the tables. The bytes of the file depend on the rows alone, not on how they were cut: they
    are those that :func:`writing_parts` makes of the rows in order.

    Parameters
    ----------
    paths
        One table or more; some may be without rows.
    output
        The file to write.
    name
        The table.

    Raises
    ------
    SchemaError
        When a table breaks its rules or is not sorted, or a key stands in two tables; when tables say that they are
        shards, and are not all of one thing.
    """
    if not paths:
        raise ConfigError("no tables to merge", expected="one or more")
    check_complete([Path(path) for path in paths], name)
    spec = table(name)
    with replacing(output) as temporary, writing(temporary, spec) as add, _scratch(output) as scratch:
        for content in _merged([_Source(Path(path), str(path)) for path in paths], spec, scratch):
            add(content)


@contextmanager
def writing_sorted(
    path: str | Path, name: str, shard: Shard = WHOLE, made: str = ""
) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that adds validated rows in any order to a Parquet table, which is sorted by its key at the end.

    Memory does not grow with the table: what is too much waits, sorted, in temporary files beside it. Rows that come in
    order take no longer than through :func:`writing_parts`, and the bytes are the same. The file of a shard also says
    which one it is and what made it, by which :func:`merge` knows what is missing.

    Raises
    ------
    SchemaError
        When a key is added twice; at the end at the latest.
    """
    spec = table(name)
    with replacing(path) as temporary, _scratch(path) as scratch:
        marks = mark(shard, made)
        with _Runs(spec, str(path), scratch, marks) as runs:
            yield lambda frame: runs.add(to_arrow(frame, spec))
            runs.flush()
        if len(runs.paths) == 1:
            runs.paths[0].replace(temporary)
            return
        with writing(temporary, spec, marks) as add:
            for content in _merged([_Source(run, str(path), checked=True) for run in runs.paths], spec, scratch):
                add(content)


class _Runs:
    """Rows in any order, written as sorted files: as few as the order allows."""

    def __init__(self, spec: Table, where: str, scratch: Callable[[], Path], marks: Mapping[bytes, bytes]) -> None:
        self.paths: list[Path] = []
        self._marks = marks
        self._spec = spec
        self._where = where
        self._scratch = scratch
        self._waiting: list[pa.Table] = []
        self._held = 0
        self._last: Key | None = None
        self._stack = ExitStack()
        self._write: Callable[[pa.Table], None]

    def __enter__(self) -> _Runs:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, content: pa.Table) -> None:
        self._waiting.append(content)
        self._held += content.num_rows
        if self._held >= _RUN:
            self.flush()

    def flush(self) -> None:
        content = pa.concat_tables([self._spec.arrow().empty_table(), *self._waiting])
        self._waiting.clear()
        self._held = 0
        content = in_order([(self._where, content)], self._spec)
        if not self.paths or (content.num_rows and self._last and key(content, 0, self._spec) <= self._last):
            self._stack.close()
            self.paths.append(self._scratch())
            self._write = self._stack.enter_context(writing(self.paths[-1], self._spec, self._marks))
        if content.num_rows:
            self._last = key(content, -1, self._spec)
            self._write(content)


@contextmanager
def _scratch(path: str | Path) -> Iterator[Callable[[], Path]]:
    """Give a function that returns a new name in a folder beside a file; the folder is there only if one is needed."""
    with ExitStack() as stack:
        names: list[Path] = []

        def new() -> Path:
            if not names:
                prefix = f".{Path(path).stem}-"
                names.append(Path(stack.enter_context(TemporaryDirectory(prefix=prefix, dir=Path(path).parent))))
            names.append(names[0] / f"{len(names)}.parquet")
            return names[-1]

        yield new


@dataclass(frozen=True)
class _Source:
    """A sorted table: its file, how messages call it, and whether it has been checked, as what we wrote has."""

    path: Path
    where: str
    checked: bool = False

    def first(self, spec: Table) -> Key | None:
        """Return the first key, or None for a table without rows."""
        with readable(self.path, spec.name), pq.ParquetFile(self.path) as file:
            if file.metadata.num_rows:
                return key(next(self.rows(spec, 1)), 0, spec)
            validate(to_frame(file.schema_arrow.empty_table(), spec), spec.name, where=self.where)
        return None

    def rows(self, spec: Table, rows: int) -> Iterator[pa.Table]:
        """Read the table in parts of some rows."""
        before = 0
        last: pa.Table | None = None
        for content in contents(self.path, spec, rows):
            if self.checked:
                yield content.combine_chunks()
                continue
            if sound(content, spec):
                found = pa.Table.from_arrays(content.columns, schema=spec.arrow())
            else:
                frame = validate(to_frame(content, spec), spec.name, where=self.where, before=before)
                found = to_arrow(frame, spec)
            # With the row before it: the order must hold from part to part.
            after = rising(found if last is None else pa.concat_tables([last, found]), spec)
            if not after.all():
                record = before + int(after.argmin()) + (2 if last is None else 1)
                raise SchemaError(
                    "not after the record before it",
                    where=f"{self.where}, record {record}",
                    expected=f"records sorted by ({', '.join(spec.key)}), each key once",
                )
            before += found.num_rows
            last = found[-1:]
            yield found.combine_chunks()


class _Stream:
    """What has been read of a source and not been taken yet."""

    def __init__(self, source: _Source, spec: Table, rows: int) -> None:
        self.source = source
        self._spec = spec
        self._rows = rows
        self._parts = source.rows(spec, rows)
        self._content = next(self._parts)
        self.last = key(self._content, -1, spec)

    def take(self, bound: Key) -> pa.Table:
        """Return the rows up to a key and forget them."""
        found = self._content
        upto = found.num_rows
        if self.last > bound:
            upto = bisect_right(range(upto), bound, key=lambda place: key(found, place, self._spec))
        self._content = found[upto:]
        # Not only when nothing is left: of many streams, one would run out after each few rows.
        if self._content.num_rows <= self._rows // 2 and (more := next(self._parts, None)) is not None:
            self._content = pa.concat_tables([self._content, more]).combine_chunks()
            self.last = key(self._content, -1, self._spec)
        return found[:upto]

    @property
    def ended(self) -> bool:
        """Say whether there are no more rows."""
        return not self._content.num_rows


def _merged(sources: Sequence[_Source], spec: Table, scratch: Callable[[], Path]) -> Iterator[pa.Table]:
    """Yield the rows of all sources in order, some thousand at a time."""
    while len(sources) > _OPEN:
        sources = [_stored(sources[start : start + _OPEN], spec, scratch) for start in range(0, len(sources), _OPEN)]
    firsts = [(first, place) for place, source in enumerate(sources) if (first := source.first(spec)) is not None]
    # The one that begins first stands last. A table is opened when its turn comes: of shards that follow one another,
    # one is held at a time.
    waiting = sorted(firsts, reverse=True)
    rows = max(_LEAST, _HELD // max(1, len(sources)))
    streams: list[_Stream] = []
    while waiting or streams:
        # Up to here every stream has been read.
        bound = min((stream.last for stream in streams), default=None)
        if waiting and (bound is None or waiting[-1][0] <= bound):
            streams.append(_Stream(sources[waiting.pop()[1]], spec, rows))
            continue
        assert bound is not None  # noqa: S101 - for the type checker: something waits or is open
        yield in_order([(stream.source.where, stream.take(bound)) for stream in streams], spec)
        streams = [stream for stream in streams if not stream.ended]


def _stored(sources: Sequence[_Source], spec: Table, scratch: Callable[[], Path]) -> _Source:
    """Merge some sources into a temporary file."""
    path = scratch()
    with writing(path, spec) as add:
        for content in _merged(sources, spec, scratch):
            add(content)
    return _Source(path, f"{sources[0].where} to {sources[-1].where}", checked=True)
