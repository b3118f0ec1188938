"""How fast a service is asked, by one process or by all: what may be sent now, and until when nobody may send."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path
from typing import Protocol

from comperdial.core.errors import FileError
from comperdial.judges._disk import make_folder, writing_errors
from comperdial.judges._locks import opened, release, take

_FORM = struct.Struct("<6dI")


@dataclass
class Level:
    """What a bucket holds, and when that was so; at the start it fills up at once."""

    amount: float = 0.0
    then: float = -inf


@dataclass
class Pace:
    """The state of a service.

    Attributes
    ----------
    requests, tokens
        What may be sent.
    paused_until
        When the pause ends that the service asked for.
    slowed
        Pauses in a row.
    """

    requests: Level
    tokens: Level
    paused_until: float = -inf
    slowed: int = 0


class Store(Protocol):
    """Where a pace is kept."""

    @contextmanager
    def open(self) -> Iterator[Pace]:
        """Give the pace; nobody else changes it meanwhile, and what is changed stays changed."""


class Memory:
    """The pace of a process that has a service for itself."""

    def __init__(self) -> None:
        self._pace = Pace(Level(), Level())

    @contextmanager
    def open(self) -> Iterator[Pace]:
        """Give the pace."""
        yield self._pace


class Shared:
    """The pace of all processes that ask a service, in a file.

    Nothing in it matters for long, so a file that cannot be read, or that somebody deletes, is one without a past.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._handle: int | None = None

    @contextmanager
    def open(self) -> Iterator[Pace]:
        """Give the pace.

        Raises
        ------
        FileError
            When the file cannot be locked or written.
        """
        with self._guard, writing_errors(self._path):
            handle = self._open()
            take(handle, self._path)
            try:
                pace = _decode(os.pread(handle, _FORM.size, 0))
                yield pace
                data = _encode(pace)
                if os.pwrite(handle, data, 0) != len(data):
                    raise FileError("cannot be written", where=str(self._path), hint="Free some space, and run again")
            finally:
                release(handle)

    def _open(self) -> int:
        if self._handle is None:
            make_folder(self._path.parent)
            self._handle = opened(self._path)
        return self._handle

    def __del__(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)


def _encode(pace: Pace) -> bytes:
    levels = (value for level in (pace.requests, pace.tokens) for value in (level.amount, level.then))
    values = (*levels, pace.paused_until, float(pace.slowed))
    return _FORM.pack(*values, zlib.crc32(struct.pack("<6d", *values)))


def _decode(data: bytes) -> Pace:
    if len(data) == _FORM.size:
        *values, checksum = _FORM.unpack(data)
        if checksum == zlib.crc32(data[:-4]) and not any(map(isnan, values)):
            requests, tokens = Level(*values[:2]), Level(*values[2:4])
            return Pace(requests, tokens, values[4], int(values[5]))
    return Pace(Level(), Level())
