"""A store of token vectors on disk, addressed by what was encoded: text by text, whole or not at all.

A shard is two files: rows of float32 (``<name>.vectors``) and an index (``<name>.npy``). The index gets its name last,
so a shard without one was not finished and does not count. Any number of processes may read and write: a writer makes
shards of its own, and a text that two of them encode is held twice, which costs room and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

log = logging.getLogger(__name__)

_ENTRY = np.dtype(
    [
        ("high", "<u8"),
        ("low", "<u8"),
        ("start", "<i8"),
        ("rows", "<i4"),
        ("cut", "<i4"),
        ("check", "<u4"),
        ("shard", "<i4"),
    ]
)
# A run that is stopped loses at most this much work.
_SHARD_BYTES = 1 << 28


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


def key(text: str) -> tuple[int, int]:
    """Return the 128 bits that a text is found by."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


class VectorStore:
    """What one encoder made of texts.

    Parameters
    ----------
    folder
        Its own: another model, layer, precision or version of the code has another (:meth:`Encoder.namespace`).
    dimensions
        Length of a vector.
    """

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.folder = folder
        self.dimensions = dimensions
        self._files: list[int] = []
        self._shards: list[Path] = []
        self._index = np.empty(0, dtype=_ENTRY)
        self.refresh()

    def refresh(self) -> None:
        """Take in the shards that have come since."""
        self.close()
        parts = []
        for path in sorted(self.folder.glob("*.npy")):
            part = self._read_index(path)
            if part is not None:
                part["shard"] = len(self._shards)
                self._shards.append(path.with_suffix(".vectors"))
                self._files.append(os.open(self._shards[-1], os.O_RDONLY))
                parts.append(part)
        joined = np.concatenate(parts) if parts else np.empty(0, dtype=_ENTRY)
        self._index = joined[np.argsort(joined["high"], kind="stable")]

    def close(self) -> None:
        """Let go of the files."""
        for handle in self._files:
            os.close(handle)
        self._files, self._shards = [], []
        self._index = np.empty(0, dtype=_ENTRY)

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, text: str) -> bool:
        return self._find(text) is not None

    def missing(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts that are not in the store, each once, in their order."""
        seen: set[tuple[int, int]] = set()
        for text in texts:
            name = key(text)
            if name not in seen and self._find(text) is None:
                seen.add(name)
                yield text

    def get(self, text: str) -> Encoded | None:
        """Return what the store holds of a text; None when it holds nothing, or nothing that is intact."""
        entry = self._find(text)
        if entry is None:
            return None
        rows, width = int(entry["rows"]), self.dimensions * 4
        data = os.pread(self._files[entry["shard"]], rows * (width + 1), int(entry["start"]))
        if zlib.crc32(data) != entry["check"]:
            log.warning("%s: damaged at byte %d; encoding anew", self._shards[entry["shard"]], entry["start"])
            return None
        vectors = np.frombuffer(data, dtype="<f4", count=rows * self.dimensions).reshape(rows, self.dimensions)
        return Encoded(vectors, np.frombuffer(data, dtype=np.bool_, offset=rows * width), int(entry["cut"]))

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Give something to add texts to; they are in the store once the block has ended, whether well or not."""
        writer = Writer(self.folder, self.dimensions)
        try:
            yield writer
        finally:
            writer.finish()
            self.refresh()

    def _find(self, text: str) -> np.void | None:
        high, low = key(text)
        start = int(np.searchsorted(self._index["high"], np.uint64(high)))
        found = None
        while start < len(self._index) and self._index[start]["high"] == high:
            if self._index[start]["low"] == low:
                # The newest copy: an older one may be damaged.
                found = self._index[start]
            start += 1
        return found

    def _read_index(self, path: Path) -> npt.NDArray[np.void] | None:
        try:
            part: npt.NDArray[np.void] = np.load(path, allow_pickle=False)
            size = path.with_suffix(".vectors").stat().st_size
        except (OSError, ValueError, EOFError) as error:
            log.warning("%s: not readable (%s); its texts are encoded anew", path, error)
            return None
        needed = max((int(e["start"]) + int(e["rows"]) * (self.dimensions * 4 + 1) for e in part), default=0)
        if part.dtype != _ENTRY or size < needed:
            log.warning("%s: not whole; its texts are encoded anew", path)
            return None
        return part


class Writer:
    """Adds texts to a store's folder, a shard at a time."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.added = 0
        self._folder = folder
        self._dimensions = dimensions
        self._entries: list[tuple[int, int, int, int, int, int, int]] = []
        self._path: Path | None = None
        self._position = 0

    def add(self, text: str, encoded: Encoded) -> None:
        """Write one text."""
        if encoded.vectors.shape != (len(encoded.special), self._dimensions):
            raise ValueError(f"vectors of shape {encoded.vectors.shape}, expected (rows, {self._dimensions})")
        data = encoded.vectors.astype("<f4", copy=False).tobytes() + encoded.special.tobytes()
        if self._path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Later shards sort after earlier ones, so that the newest copy of a text is the last one found.
            number = len(list(self._folder.glob("*.npy")))
            self._path = self._folder / f"{number:06d}-{uuid.uuid4().hex[:12]}.vectors"
            self._file = self._path.open("wb")
        self._file.write(data)
        high, low = key(text)
        rows = len(encoded.special)
        self._entries.append((high, low, self._position, rows, encoded.cut, zlib.crc32(data), 0))
        self._position += len(data)
        self.added += 1
        if self._position >= _SHARD_BYTES:
            self.finish()

    def finish(self) -> None:
        """Complete the shard that is being written."""
        if self._path is None:
            return
        self._file.close()
        temporary = self._path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.save(file, np.array(self._entries, dtype=_ENTRY), allow_pickle=False)
        temporary.replace(self._path.with_suffix(".npy"))
        self._path, self._entries, self._position = None, [], 0
