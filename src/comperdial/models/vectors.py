"""Cache of token vectors: one SQLite file per encoder, keyed by text hash."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import FileError

# Large pages, since most rows have tens of kB. No syncing: after a power failure the cache may be lost.
_CREATE = """
PRAGMA page_size = 32768;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, cut INTEGER, data BLOB)
"""
_PATIENCE_S = 600


class Encoded(NamedTuple):
    """The encoding of one text.

    ``vectors`` are float32 of shape (rows, dimensions). ``special``, bool of shape (rows,), marks tokens added by the model,
    such as [CLS]. ``cut`` counts tokens of the text that did not fit.
    """

    vectors: npt.NDArray[np.float32]
    special: npt.NDArray[np.bool_]
    cut: int


class VectorStore:
    """The vectors of one encoder; several processes may use a file at once.

    With ``path`` None the file is temporary; vectors have ``dimensions`` numbers. All methods raise FileError if the file is
    damaged, or cannot be read or written.
    """

    def __init__(self, path: Path | None, dimensions: int) -> None:
        self._path, self._dimensions = path, dimensions
        with self._errors():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path or "", timeout=_PATIENCE_S)
            self._connection.executescript(_CREATE)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct texts that are not in the store, in order."""
        with self._errors():
            return [text for text in dict.fromkeys(texts) if not self._row("1", text)]

    def get(self, text: str) -> Encoded | None:
        """Return a text's vectors; None if missing."""
        with self._errors():
            row = self._row("cut, data", text)
        if row is None:
            return None
        cut, data = row
        rows = len(data) // (self._dimensions * 4 + 1)
        vectors = np.frombuffer(data, dtype="<f4", count=rows * self._dimensions).reshape(rows, -1)
        return Encoded(vectors, np.frombuffer(data, dtype=np.bool_, offset=vectors.nbytes), cut)

    def put(self, encoded: Iterable[tuple[str, Encoded]]) -> None:
        """Add or replace texts in one transaction."""
        rows = (
            (text_hash(text), one.cut, one.vectors.astype("<f4", copy=False).tobytes() + one.special.tobytes())
            for text, one in encoded
        )
        with self._errors(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors (hash, cut, data) VALUES (?, ?, ?)", rows)

    def _row(self, columns: str, text: str) -> tuple[int, bytes] | None:
        query = f"SELECT {columns} FROM vectors WHERE hash = ?"  # noqa: S608 - the columns are ours
        row: tuple[int, bytes] | None = self._connection.execute(query, [text_hash(text)]).fetchone()
        return row

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            hint = "It is a cache: delete the file, and vectors are computed again"
            raise FileError(f"vectors cannot be kept ({error})", where=str(self._path), hint=hint) from error


def text_hash(text: str) -> bytes:
    """Return a text's key, 16 bytes of BLAKE2b; the files contain no text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
