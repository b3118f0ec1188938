"""A store of token vectors on disk, addressed by what was encoded: text by text, whole or not at all.

A shard is two files: rows of float32 (``<name>.vectors``) and an index (``<name>.npy``), which is written after the
rows that it names: rows without an entry do not count. Any number of processes may read and write: each writes a shard
of its own, and a text that two of them encode is held twice, which costs room and nothing else. A shard is locked for
as long as it is written, so that what a process leaves that is killed can be told apart, and is removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import struct
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

import numpy as np
import numpy.typing as npt

log = logging.getLogger(__name__)

_FIELDS = [("high", "<u8"), ("low", "<u8"), ("start", "<i8"), ("rows", "<i4"), ("cut", "<i4")]
_ENTRY = np.dtype([*_FIELDS, ("sum", "<u4"), ("shard", "<i4")])
# Until 0.7: a checksum of the rows alone, which says nothing of how many tokens were cut.
_UNVERIFIED = np.dtype([*_FIELDS, ("check", "<u4"), ("shard", "<i4")])
# A shard's index is written anew as it grows, so a shard does not grow for ever.
_SHARD_BYTES = 1 << 28
_FILES = 32


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


def _checksum(said: Iterable[int], data: bytes) -> int:
    """Return the checksum of all that an entry says, in the fields' order, and of the rows that it names."""
    return zlib.crc32(data, zlib.crc32(struct.pack("<QQqii", *said)))


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
        self._shards: list[Path] = []
        self._open: OrderedDict[int, int] = OrderedDict()
        self._index = np.empty(0, dtype=_ENTRY)
        self._writer = Writer(folder, dimensions)
        _sweep(folder)
        self.refresh()

    def refresh(self) -> None:
        """Take in the shards that other processes have finished since."""
        known = set(self._shards)
        for path in sorted(self.folder.glob("*.npy")):
            if path.with_suffix(".vectors") not in known:
                part = self._read_index(path)
                if part is not None:
                    self._take(path.with_suffix(".vectors"), part)

    def close(self) -> None:
        """Let go of the files."""
        while self._open:
            os.close(self._open.popitem()[1])
        self._writer.close()

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
        shard = int(entry["shard"])
        try:
            data = os.pread(self._file(shard), rows * (width + 1), int(entry["start"]))
        except FileNotFoundError:
            log.warning("%s: gone; encoding anew", self._shards[shard])
            return None
        if _checksum((int(entry[name]) for name, _ in _FIELDS), data) != entry["sum"]:
            log.warning("%s: damaged at byte %d; encoding anew", self._shards[shard], entry["start"])
            return None
        vectors = np.frombuffer(data, dtype="<f4", count=rows * self.dimensions).reshape(rows, self.dimensions)
        return Encoded(vectors, np.frombuffer(data, dtype=np.bool_, offset=rows * width), int(entry["cut"]))

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """Give something to add texts to; they are in the store once the block has ended, whether well or not."""
        try:
            yield self._writer
        finally:
            for path, part in self._writer.commit():
                self._take(path, part)

    def _take(self, path: Path, part: npt.NDArray[np.void]) -> None:
        """Add entries of a shard to the index, which stays sorted; of two of a text, the one that came last counts."""
        if path not in self._shards:
            self._shards.append(path)
        part["shard"] = self._shards.index(path)
        joined = np.concatenate([self._index, part])
        self._index = joined[np.argsort(joined["high"], kind="stable")]

    def _file(self, shard: int) -> int:
        """Return an open file of a shard; only the last ones used stay open."""
        if shard not in self._open:
            if len(self._open) >= _FILES:
                os.close(self._open.popitem(last=False)[1])
            self._open[shard] = os.open(self._shards[shard], os.O_RDONLY)
        self._open.move_to_end(shard)
        return self._open[shard]

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
            size = path.with_suffix(".vectors").stat().st_size
            part: npt.NDArray[np.void] = np.load(path, allow_pickle=False)
        # An altered header may say anything, such as a size beyond all memory or a type that numpy does not know.
        except Exception as error:
            log.warning("%s: not readable (%s); its texts are encoded anew", path, error)
            return None
        if part.dtype == _UNVERIFIED:
            log.info("%s: of an older version, and not to be verified; its texts are encoded anew", path)
            with suppress(OSError):
                path.unlink()
                path.with_suffix(".vectors").unlink()
            return None
        if part.dtype != _ENTRY or part.ndim != 1 or not self._within(part, size):
            log.warning("%s: not whole; its texts are encoded anew", path)
            return None
        return part

    def _within(self, part: npt.NDArray[np.void], size: int) -> bool:
        """Say whether a shard of so many bytes has room for what its entries name."""
        width = self.dimensions * 4 + 1
        start, rows = part["start"], part["rows"].astype(np.int64)
        # The second subtraction cannot overflow once the first comparisons hold.
        return bool(((start >= 0) & (start <= size) & (rows >= 0)).all() and (rows * width <= size - start).all())


def _sweep(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote: rows without an index, half an index."""
    unfinished = {path.with_suffix(".vectors") for path in folder.glob("*.tmp")}
    unfinished.update(path for path in folder.glob("*.vectors") if not path.with_suffix(".npy").exists())
    for path in unfinished:
        # Not where another writes it, the file system has no locks or this process may not write.
        with suppress(OSError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.with_suffix(".tmp").unlink(missing_ok=True)
            if not path.with_suffix(".npy").exists():
                path.unlink()


def _locked(path: Path) -> BufferedWriter | None:
    """Make a shard's file and lock it; None when it was swept away in between."""
    file = path.open("xb")
    # Where there are no locks, nobody sweeps.
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    if os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


class Writer:
    """Adds texts to a store's folder: to one shard of its own, and to another once that is large."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._folder = folder
        self._dimensions = dimensions
        self._path: Path | None = None
        self._file: BufferedWriter | None = None
        self._position = 0
        self._entries: list[tuple[int, int, int, int, int, int, int]] = []
        # How many entries of the shard are in its index already; shards that are complete and not handed out yet.
        self._committed = 0
        self._done: list[tuple[Path, npt.NDArray[np.void]]] = []

    def add(self, text: str, encoded: Encoded) -> None:
        """Write one text."""
        if encoded.vectors.shape != (len(encoded.special), self._dimensions):
            raise ValueError(f"vectors of shape {encoded.vectors.shape}, expected (rows, {self._dimensions})")
        data = encoded.vectors.astype("<f4", copy=False).tobytes() + encoded.special.tobytes()
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Later shards sort after earlier ones, so that the newest copy of a text is the last one found.
            number = len(list(self._folder.glob("*.npy")))
            while self._file is None:
                self._path = self._folder / f"{number:06d}-{uuid.uuid4().hex[:12]}.vectors"
                self._file = _locked(self._path)
        self._file.write(data)
        high, low = key(text)
        rows = len(encoded.special)
        said = (high, low, self._position, rows, encoded.cut)
        self._entries.append((*said, _checksum(said, data), 0))
        self._position += len(data)
        if self._position >= _SHARD_BYTES:
            self._write_index()
            self.close()

    def commit(self) -> list[tuple[Path, npt.NDArray[np.void]]]:
        """Make what was added last, and return the new entries of each shard."""
        self._write_index()
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """End the shard that is being written."""
        if self._file is not None:
            self._file.close()
        self._file, self._path, self._entries, self._position, self._committed = None, None, [], 0, 0

    def _write_index(self) -> None:
        if self._file is None or self._path is None or self._committed == len(self._entries):
            return
        self._file.flush()
        temporary = self._path.with_suffix(".tmp")
        entries = np.array(self._entries, dtype=_ENTRY)
        with temporary.open("wb") as file:
            np.save(file, entries, allow_pickle=False)
        temporary.replace(self._path.with_suffix(".npy"))
        self._done.append((self._path, entries[self._committed :]))
        self._committed = len(self._entries)
