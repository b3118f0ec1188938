"""The cache of token vectors: one SQLite file for each encoder, where texts are keyed by their hash."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import FileError

# Large pages, since most rows have tens of kB. No waiting for the disk: a loss of power may cost the cache.
_CREATE = """
PRAGMA page_size = 32768;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, cut INTEGER, data BLOB, checksum INTEGER)
"""
_LOOKED_UP = 256
_PATIENCE_S = 600


@dataclass(frozen=True)
class Encoded:
    """One text as a model sees it.

    Attributes
    ----------
    vectors
        float32 of shape (rows, dimensions).
    special
        bool of shape (rows,): True for rows of tokens that the model adds, such as [CLS].
    cut
        How many tokens of the text did not fit.
    """

    vectors: npt.NDArray[np.float32]
    special: npt.NDArray[np.bool_]
    cut: int


class VectorStore:
    """The vectors of one encoder. Several processes may read and write a file at once.

    Parameters
    ----------
    path
        The file; None: a temporary one.
    dimensions
        Length of a vector.

    Raises
    ------
    FileError
        From all methods: the file is damaged, or cannot be read or written.
    """

    def __init__(self, path: Path | None, dimensions: int) -> None:
        self._path, self._dimensions = path, dimensions
        with self._errors():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path or "", timeout=_PATIENCE_S)
            self._connection.executescript(_CREATE)

    def missing(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts that are not in the store, each once, in their order."""
        remaining = iter(dict.fromkeys(texts))
        while block := {_key(text): text for text in islice(remaining, _LOOKED_UP)}:
            places = ", ".join("?" * len(block))
            query = f"SELECT hash FROM vectors WHERE hash IN ({places})"  # noqa: S608
            with self._errors():
                present = {key for (key,) in self._connection.execute(query, list(block))}
            yield from (text for key, text in block.items() if key not in present)

    def get(self, text: str) -> Encoded | None:
        """Return a text's vectors; None if they are missing or their checksum is wrong."""
        with self._errors():
            row = self._connection.execute(
                "SELECT cut, data, checksum FROM vectors WHERE hash = ?", [_key(text)]
            ).fetchone()
        if row is None or _checksum(_key(text), *row[:2]) != row[2]:
            return None
        cut, data, _ = row
        size = self._dimensions
        rows = len(data) // (size * 4 + 1)
        vectors = np.frombuffer(data, dtype="<f4", count=rows * size).reshape(rows, size)
        return Encoded(vectors, np.frombuffer(data, dtype=np.bool_, offset=rows * size * 4), cut)

    def put(self, encoded: Iterable[tuple[str, Encoded]]) -> None:
        """Add texts in one transaction, or replace them."""
        rows = []
        for text, one in encoded:
            key, data = _key(text), one.vectors.astype("<f4", copy=False).tobytes() + one.special.tobytes()
            rows.append((key, one.cut, data, _checksum(key, one.cut, data)))
        with self._errors(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            hint = "It is a cache: delete the file, and vectors are computed again"
            raise FileError(f"vectors cannot be kept ({error})", where=str(self._path), hint=hint) from error


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checksum(key: bytes, cut: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key + cut.to_bytes(8, "little", signed=True)))
