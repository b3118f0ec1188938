"""A cache of token vectors, one SQLite file an encoder, where a text's vectors are found by the hash of the text.

Any number of processes may read and write, on one machine or on several that share a file system: SQLite locks the
file, for as long as some rows take to write. So it keeps a rollback journal and no write-ahead log, which holds for the
processes of one machine only. It does not wait for the disk: what a loss of power may cost is a cache.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import FileError

log = logging.getLogger(__name__)

# Texts that are looked up together.
_BLOCK = 256
# Bytes that wait to be written together: others are locked out only while they are.
_BUFFER = 1 << 24
# Seconds to wait while others write.
_PATIENCE = 600
# Most texts have some tens of kB of vectors: large pages are read faster, and larger ones leave more of the file empty.
_CREATE = """
PRAGMA page_size = 32768;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, cut INTEGER, data BLOB, checksum INTEGER)
"""
# What is wrong with the surroundings. Any other error is the file's: whatever SQLite makes of altered bytes.
_NOT_THE_FILE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
}  # fmt: skip
# A message that quotes altered bytes is no text.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


@dataclass(frozen=True)
class Encoded:
    """One text as a model sees it.

    Attributes
    ----------
    vectors
        float32 of shape (rows, dimensions).
    special
        bool of shape (rows,): which rows are of tokens that the model adds, such as [CLS], and not of the text's own.
    cut
        How many tokens of the text did not fit.
    """

    vectors: npt.NDArray[np.float32]
    special: npt.NDArray[np.bool_]
    cut: int


def key(text: str) -> bytes:
    """Return the 128 bits that a text is found by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class VectorStore:
    """What one encoder made of texts.

    Parameters
    ----------
    path
        A file of its own: another model, layer, precision or version of the code has another
        (:meth:`Encoder.namespace`). None keeps vectors for as long as the store is open.
    dimensions
        Length of a vector.
    """

    def __init__(self, path: Path | None, dimensions: int) -> None:
        self.path = path
        self.dimensions = dimensions
        self._lock = threading.Lock()
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connect()
        except _ERRORS as error:
            self._mend(error)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __len__(self) -> int:
        return int(self._run("SELECT count(*) FROM vectors")[0][0])

    def missing(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts that are not in the store, each once, in their order."""
        seen: set[bytes] = set()
        remaining = iter(texts)
        while block := {key(text): text for text in islice(remaining, _BLOCK)}:
            places = ", ".join("?" * len(block))
            found = self._run(f"SELECT hash FROM vectors WHERE hash IN ({places})", *block)  # noqa: S608
            seen.update(name for (name,) in found)
            yield from (text for name, text in block.items() if name not in seen)
            seen.update(block)

    def get(self, text: str) -> Encoded | None:
        """Return what the store holds of a text; None when it holds nothing, or nothing that is intact."""
        name = key(text)
        found = self._run("SELECT cut, data, checksum FROM vectors WHERE hash = ?", name)
        if not found:
            return None
        cut, data, checksum = found[0]
        if not isinstance(data, bytes) or not isinstance(cut, int) or _checksum(name, cut, data) != checksum:
            self._begin_anew("a checksum does not fit")
            return None
        rows, width = len(data) // (self.dimensions * 4 + 1), self.dimensions
        vectors = np.frombuffer(data, dtype="<f4", count=rows * width).reshape(rows, width)
        return Encoded(vectors, np.frombuffer(data, dtype=np.bool_, offset=rows * width * 4), cut)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Give something to add texts to; they are in the store once the block has ended, whether well or not."""
        writer = Writer(self)
        try:
            yield writer
        finally:
            writer.flush()

    def write(self, rows: list[tuple[bytes, int, bytes, int]]) -> None:
        """Add rows of the table, all at once; of two of a text, the later one counts."""
        self._run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows=rows)

    def _connect(self) -> None:
        # Without a name, SQLite makes a file that goes when it is closed.
        self._connection = sqlite3.connect(
            self.path or "", timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        # Which of the files of this name it is that is open: see _begin_anew.
        self._inode = self.path.stat().st_ino if self.path else 0
        self._connection.executescript(_CREATE)

    def _run(self, statement: str, *values: Any, rows: list[Any] | None = None) -> list[tuple[Any, ...]]:  # noqa: ANN401
        """Run a statement, once or for all rows in one transaction; for a second time if the file was damaged."""
        with self._lock:
            for _ in range(2):
                try:
                    if rows is None:
                        return self._connection.execute(statement, values).fetchall()
                    with self._connection:
                        self._connection.execute("BEGIN IMMEDIATE")
                        self._connection.executemany(statement, rows)
                    return []
                except _ERRORS as error:
                    self._mend(error)
        return []

    def _mend(self, error: Exception) -> None:
        """Begin anew where the file is damaged; raise what else is wrong."""
        if isinstance(error, sqlite3.ProgrammingError):
            # Ours, such as using what is closed.
            raise error
        # The low byte says what kind of error it is. An altered file, too, can say that it is not to be written.
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        writable = self.path is not None and os.access(self.path, os.W_OK)
        if kind in _NOT_THE_FILE and not (kind == sqlite3.SQLITE_READONLY and writable):
            raise FileError(f"the vectors cannot be kept ({error})", where=str(self.path)) from error
        self._begin_anew(str(error))

    def _begin_anew(self, reason: str) -> None:
        log.warning("%s is damaged (%s): vectors are encoded anew", self.path, reason)
        self._connection.close()
        if self.path:
            # Unless another process was faster.
            with suppress(FileNotFoundError):
                if self.path.stat().st_ino == self._inode:
                    self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
                    self.path.unlink()
        self._connect()


class Writer:
    """Adds texts to a store, some at a time."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._rows: list[tuple[bytes, int, bytes, int]] = []
        self._bytes = 0

    def add(self, text: str, encoded: Encoded) -> None:
        """Add one text."""
        if encoded.vectors.shape != (len(encoded.special), self._store.dimensions):
            raise ValueError(f"vectors of shape {encoded.vectors.shape}, expected (rows, {self._store.dimensions})")
        data = encoded.vectors.astype("<f4", copy=False).tobytes() + encoded.special.tobytes()
        name = key(text)
        self._rows.append((name, encoded.cut, data, _checksum(name, encoded.cut, data)))
        self._bytes += len(data)
        if self._bytes >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        rows, self._rows, self._bytes = self._rows, [], 0
        if rows:
            self._store.write(rows)


def _checksum(name: bytes, cut: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(name + cut.to_bytes(8, "little", signed=True)))
