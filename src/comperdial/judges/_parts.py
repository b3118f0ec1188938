"""The ledger's Parquet files: many answers in little space, written once and never again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import fsum
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from comperdial.core.errors import FileError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges._journal import COLUMNS, PATTERN, Row, read_journal

T = TypeVar("T")

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], nullable=null) for name, (kind, null) in COLUMNS.items()])
TABLE = SCHEMA.set(0, SCHEMA.field(0).with_type(pa.dictionary(pa.int32(), pa.string())))
"""The same in memory, where each of the long texts stands once."""

_PART = re.compile(r"part-(\d+)-([0-9a-f]{8})\.parquet")
_ATTEMPTS = 50


class Listing(NamedTuple):
    """The files of a family that hold answers, in the order in which they count."""

    parts: list[Path]
    journals: list[Path]


def listing(folder: Path) -> Listing:
    """Return a family's files; none when there is no such folder.

    A journal goes once its part is there, so whatever is no journal any more when journals are listed is a part then.
    """
    journals = sorted(folder.glob(PATTERN))
    parts = {path: match for path in folder.glob("part-*.parquet") if (match := _PART.fullmatch(path.name))}
    return Listing(sorted(parts, key=lambda path: (int(parts[path][1]), path.name)), journals)


def last(folder: Path) -> int:
    """Return the number of a family's last part; 0 without any."""
    numbers = [int(match[1]) for path in listing(folder).parts if (match := _PART.fullmatch(path.name))]
    return max(numbers, default=0)


def steadily(folder: Path, read: Callable[[Listing], T]) -> T:
    """Read a family's files although others may fold journals into parts at the same time.

    Where a journal went before it was read, its part is to be looked for. That others make more of both is no reason to
    read again: with hundreds of shards they always do.

    Raises
    ------
    FileError
        When journals go again and again.
    """
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            return read(listing(folder))
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
    others = [pa.array([row[field.name] for row in kept], field.type) for field in list(TABLE)[1:]]
    return pa.table([messages, *others], schema=TABLE)


def read_part(path: Path, shard: Shard = WHOLE) -> pa.Table:
    """Read a part, or the answers in it that are a shard's: of the others, a row group at a time is in memory.

    Raises
    ------
    FileError
        When the bytes are not those that were written once, or are no answers.
    """
    name = _PART.fullmatch(path.name)
    with _opened(path) as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()[:8]
        if name is None or digest != name[2]:
            raise FileError(
                f"the file is altered or cut: its sha256 begins with {digest}",
                where=str(path),
                expected="the digits in its name, as parts are never rewritten",
                hint="Run `dvc checkout` or copy it again",
            )
        data.seek(0)
        file = pq.ParquetFile(data, read_dictionary=["messages"])
        if file.schema_arrow != TABLE:
            raise FileError("the file holds no answers", where=str(path), expected="columns " + ", ".join(SCHEMA.names))
        if shard.count == 1:
            return file.read()
        groups = [_only(file.read_row_group(number), shard) for number in range(file.num_row_groups)]
        return pa.concat_tables([TABLE.empty_table(), *groups])


def _only(table: pa.Table, shard: Shard) -> pa.Table:
    """Return a shard's rows, with no text that only others have."""
    messages = whole(table)
    mine = np.fromiter(map(shard.holds, messages.dictionary.to_pylist()), bool, len(messages.dictionary))
    codes = messages.indices.to_numpy()
    rows = mine[codes]
    renumbered = (np.cumsum(mine, dtype=np.int32) - 1)[codes[rows]].astype(np.int32)
    texts = pa.DictionaryArray.from_arrays(pa.array(renumbered), messages.dictionary.filter(pa.array(mine)))
    return table.filter(pa.array(rows)).set_column(0, TABLE.field(0), texts)


def held(path: Path, wanted: Mapping[str, set[int]]) -> Iterator[tuple[str, int]]:
    """Yield which of some answers, samples of messages, are in a part."""
    with _opened(path) as data:
        file = pq.ParquetFile(data, read_dictionary=["messages"])
        for number in range(file.num_row_groups):
            table = file.read_row_group(number, columns=["messages", "sample"])
            messages = whole(table)
            texts = messages.dictionary.to_pylist()
            known = np.fromiter((text in wanted for text in texts), bool, len(texts))
            codes, samples = messages.indices.to_numpy(), table.column("sample").to_numpy()
            rows = known[codes]
            found = zip(codes[rows].tolist(), samples[rows].tolist(), strict=True)
            yield from ((texts[code], sample) for code, sample in found if sample in wanted[texts[code]])


@contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    """Open a part by Arrow's own means, and turn what goes wrong into a :class:`FileError`.

    A file of Python's would be read, and its bytes let go, in threads of Arrow's that go on after the result is there.
    One that comes to Python while the interpreter ends takes the process down with it (status 134).
    """
    try:
        with pa.OSFile(str(path)) as file:
            yield file
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error


def joined(tables: list[pa.Table]) -> pa.Table:
    """Return tables one below the other, in which each text still stands once."""
    return pa.concat_tables(tables).unify_dictionaries()


def keys(family_id: str, table: pa.Table) -> list[str]:
    """Return each row's key, as :func:`comperdial.judges.base.key` makes it; a message is hashed once."""
    messages = whole(table)
    starts = [hashlib.sha256(f"{family_id}\0{text}\0".encode()) for text in messages.dictionary.to_pylist()]
    found = []
    for code, sample in zip(messages.indices.to_pylist(), table.column("sample").to_pylist(), strict=True):
        digest = starts[code].copy()
        digest.update(b"%d" % sample)
        found.append(digest.hexdigest()[:32])
    return found


def whole(table: pa.Table) -> pa.DictionaryArray:
    """Return a table's messages in one piece."""
    return table.column("messages").unify_dictionaries().combine_chunks()


def costs(table: pa.Table) -> float:
    """Return US dollars."""
    return fsum(cost for cost in table.column("cost").to_pylist() if cost is not None)


def appended(journals: list[Path], *, warn: bool, shard: Shard = WHOLE) -> dict[tuple[str, int], Row]:
    """Return the rows of journals by messages and sample: the first of each, and one copy of each text."""
    rows: dict[tuple[str, int], Row] = {}
    texts: dict[str, str] = {}
    for path in journals:
        for row in read_journal(path, warn=warn):
            row["messages"] = texts.setdefault(row["messages"], row["messages"])
            if shard.count == 1 or shard.holds(row["messages"]):
                rows.setdefault((row["messages"], row["sample"]), row)
    return rows


def drop_held(rows: dict[tuple[str, int], Row], parts: list[Path]) -> None:
    """Take away the rows that parts hold."""
    wanted: dict[str, set[int]] = {}
    for messages, sample in rows:
        wanted.setdefault(messages, set()).add(sample)
    for path in parts if wanted else []:
        for name in held(path, wanted):
            rows.pop(name, None)


def spent(folder: Path) -> float:
    """Return what a family's answers cost in US dollars; of those that lie in parts only the costs are read.

    What two parts both hold was paid twice; what a part and a journal both hold was not.
    """

    def read(found: Listing) -> float:
        rows = appended(found.journals, warn=False)
        drop_held(rows, found.parts)
        return fsum([*map(_cost_of, found.parts), *(row["cost"] or 0.0 for row in rows.values())])

    return steadily(folder, read)


def _cost_of(path: Path) -> float:
    with _opened(path) as file:
        return costs(pq.read_table(file, columns=["cost"]))
