"""The ledger's Parquet files: many answers in little space, written once and never again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.errors import FileError
from comperdial.judges._disk import sync_folder, write_durably, writing_errors
from comperdial.judges._journal import COLUMNS, PATTERN, Row, read_journal
from comperdial.judges.base import key

T = TypeVar("T")

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], nullable=null) for name, (kind, null) in COLUMNS.items()])
_TABLE = SCHEMA.set(0, SCHEMA.field(0).with_type(pa.dictionary(pa.int32(), pa.string())))
"""The same in memory, where each of the long texts stands once."""

_PART = re.compile(r"part-(\d+)-([0-9a-f]{8})\.parquet")
_ATTEMPTS = 50

# One dictionary page holds all messages, so that zstd sees the template and each context once. A key would cost 16
# bytes a row whatever one does, and statistics repeat whole messages.
_LAYOUT = {
    "compression": "zstd",
    "compression_level": 19,
    "use_dictionary": True,
    "dictionary_pagesize_limit": 1 << 30,
    "data_page_size": 1 << 24,
    "row_group_size": 1 << 26,
    "write_statistics": False,
    "store_schema": False,
}


class Listing(NamedTuple):
    """The files of a family that hold answers, in the order in which they count."""

    parts: list[Path]
    journals: list[Path]


def listing(folder: Path) -> Listing:
    """Return a family's files; none when there is no such folder."""
    parts = {path: match for path in folder.glob("part-*.parquet") if (match := _PART.fullmatch(path.name))}
    return Listing(sorted(parts, key=lambda path: (int(parts[path][1]), path.name)), sorted(folder.glob(PATTERN)))


def steadily(folder: Path, read: Callable[[Listing], T]) -> T:
    """Read a family's files although another process may fold journals into a part at the same time.

    A listing made meanwhile may lack both the new part and a journal that is already gone, so what was read counts
    only when the folder looks the same afterwards.

    Raises
    ------
    FileError
        When the folder never stays the same.
    """
    found = listing(folder)
    for _ in range(_ATTEMPTS):
        try:
            result = read(found)
        except FileNotFoundError:
            found = listing(folder)
            continue
        again = listing(folder)
        if again == found:
            return result
        found = again
    raise FileError("the files keep changing", where=str(folder), hint="Wait for the other process, and run again")


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table, sorted by messages and sample."""
    kept = list(rows)
    texts = sorted({row["messages"] for row in kept})
    codes = {text: code for code, text in enumerate(texts)}
    kept.sort(key=lambda row: (codes[row["messages"]], row["sample"]))
    messages = pa.DictionaryArray.from_arrays(
        pa.array([codes[row["messages"]] for row in kept], pa.int32()), pa.array(texts, pa.string())
    )
    others = [pa.array([row[field.name] for row in kept], field.type) for field in list(_TABLE)[1:]]
    return pa.table([messages, *others], schema=_TABLE)


def write_part(folder: Path, rows: Iterable[Row]) -> Path:
    """Write the next part of a family. Its bytes depend on the rows alone, not on their order."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(rows), sink, **_LAYOUT)
    data = sink.getvalue().to_pybytes()
    parts = listing(folder).parts
    last = _PART.fullmatch(parts[-1].name) if parts else None
    number = int(last[1]) + 1 if last else 1
    path = folder / f"part-{number:04d}-{hashlib.sha256(data).hexdigest()[:8]}.parquet"
    write_durably(path, data)
    return path


def read_part(path: Path) -> pa.Table:
    """Read a part.

    Raises
    ------
    FileError
        When the bytes are not those that were written once, or are no answers.
    """
    data = path.read_bytes()
    name = _PART.fullmatch(path.name)
    digest = hashlib.sha256(data).hexdigest()[:8]
    if name is None or digest != name[2]:
        raise FileError(
            f"the file is altered or cut: its sha256 begins with {digest}",
            where=str(path),
            expected="the digits in its name, as parts are never rewritten",
            hint="Run `dvc checkout` or copy it again",
        )
    with _reading(path):
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=["messages"])
        if file.schema_arrow != _TABLE:
            raise FileError("the file holds no answers", where=str(path), expected="columns " + ", ".join(SCHEMA.names))
        return file.read()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error


class Content:
    """All answers of a family that lie in files, each key once."""

    def __init__(self, family_id: str, tables: list[pa.Table], journals: pa.Table) -> None:
        table = joined([*tables, journals])
        found = keys(family_id, table)
        self.rows: dict[str, int] = {}
        kept = []
        in_parts = sum(part.num_rows for part in tables)
        for row, digest in enumerate(found):
            if digest not in self.rows:
                self.rows[digest] = len(self.rows)
                kept.append(row)
        self.in_parts = sum(row < in_parts for row in kept)
        self.table = table.take(kept) if len(kept) < len(found) else table
        # What two parts both hold was paid twice; what a part and a journal both hold was not.
        self.cost = fsum([*map(costs, tables), costs(self.table.slice(self.in_parts))])

    def folded(self, digest: str) -> bool:
        """Say whether a part holds the answer."""
        return self.rows.get(digest, self.in_parts) < self.in_parts

    def row(self, digest: str) -> Row:
        """Return the answer as a row."""
        place = self.rows[digest]
        code, *others = (values[place] for values in self._values)
        return {"messages": self._messages.dictionary[code].as_py(), **dict(zip(SCHEMA.names[1:], others, strict=True))}

    @cached_property
    def _messages(self) -> pa.DictionaryArray:
        return _whole(self.table)

    @cached_property
    def _values(self) -> list[list[Any]]:
        """Return the columns as lists, and of the messages their numbers: a cell of an Arrow column is slow to get."""
        others = [self.table.column(name).to_pylist() for name in SCHEMA.names[1:]]
        return [self._messages.indices.to_pylist(), *others]


def joined(tables: list[pa.Table]) -> pa.Table:
    """Return tables one below the other, in which each text still stands once."""
    return pa.concat_tables(tables).unify_dictionaries()


def keys(family_id: str, table: pa.Table) -> list[str]:
    """Return each row's key, as :func:`comperdial.judges.base.key` makes it; a message is hashed once."""
    messages = _whole(table)
    starts = [hashlib.sha256(f"{family_id}\0{text}\0".encode()) for text in messages.dictionary.to_pylist()]
    found = []
    for code, sample in zip(messages.indices.to_pylist(), table.column("sample").to_pylist(), strict=True):
        digest = starts[code].copy()
        digest.update(b"%d" % sample)
        found.append(digest.hexdigest()[:32])
    return found


def _whole(table: pa.Table) -> pa.DictionaryArray:
    """Return the messages in one piece."""
    return table.column("messages").unify_dictionaries().combine_chunks()


def costs(table: pa.Table) -> float:
    """Return US dollars."""
    return fsum(cost for cost in table.column("cost").to_pylist() if cost is not None)


def load(folder: Path, family_id: str) -> Content:
    """Read what a family's files hold; a key that stands twice counts once, the first time.

    Raises
    ------
    FileError
        When a file is altered or broken.
    """

    def read(found: Listing) -> Content:
        rows: dict[tuple[str, int], Row] = {}
        for row in _appended(found.journals, warn=True):
            rows.setdefault((row["messages"], row["sample"]), row)
        return Content(family_id, [read_part(path) for path in found.parts], to_table(rows.values()))

    return steadily(folder, read)


def _appended(journals: list[Path], *, warn: bool) -> Iterator[Row]:
    """Yield the rows of journals; all samples of a request share one copy of its text."""
    texts: dict[str, str] = {}
    for path in journals:
        for row in read_journal(path, warn=warn):
            row["messages"] = texts.setdefault(row["messages"], row["messages"])
            yield row


def spent(folder: Path, family_id: str) -> float:
    """Return what a family's answers cost in US dollars; reads only the costs where all answers lie in parts."""

    def read(found: Listing) -> float | None:
        if found.journals:
            return None
        return fsum(map(_cost_of, found.parts))

    cost = steadily(folder, read)
    return load(folder, family_id).cost if cost is None else cost


def _cost_of(path: Path) -> float:
    with _reading(path), path.open("rb") as file:
        return costs(pq.read_table(file, columns=["cost"]))


def fold(folder: Path, family_id: str, folded: Callable[[str], bool], own: list[Path]) -> None:
    """Move the answers of all journals to a new part; the caller holds the family's lock.

    The journals go only when the part is on the disk. When the process ends in between, answers stand twice, and
    reading drops the second.

    Parameters
    ----------
    folder, family_id
        The family.
    folded
        Says whether a part holds a key already.
    own
        The journals that count before those of other processes, in order.

    Raises
    ------
    FileError
        When the part cannot be written; the journals stay.
    """
    journals = [*own, *(path for path in listing(folder).journals if path not in own)]
    rows: dict[str, Row] = {}
    for row in _appended(journals, warn=False):
        digest = key(family_id, row["messages"], row["sample"])
        if not folded(digest):
            rows.setdefault(digest, row)
    if rows:
        write_part(folder, rows.values())
    with writing_errors(folder):
        for path in journals:
            path.unlink()
        sync_folder(folder)
