"""The disk: what has to be on it before somebody goes on, and who may write."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comperdial.errors import FileError
from comperdial.files import replacing

log = logging.getLogger(__name__)

# Locks that this process holds. To wait for one of them would be to wait for ever.
_held: set[tuple[int, Path]] = set()


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel frees it when the process ends, however it ends."""
    make_folder(path.parent)
    mark = (os.getpid(), path.resolve())
    if mark in _held:
        raise RuntimeError(f"{path} is locked by this process already")
    with writing_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with writing_errors(path):
            _wait(handle, waiting)
        _held.add(mark)
        try:
            yield
        finally:
            _held.discard(mark)
    finally:
        os.close(handle)


def _wait(handle: int, waiting: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.warning("%s", waiting)
        fcntl.flock(handle, fcntl.LOCK_EX)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing_errors(folder):
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a file's own fsync does not."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file atomically; it is on the disk when this returns.

    Raises
    ------
    FileError
        When it cannot be written.
    """
    with writing_errors(path):
        with replacing(path) as temporary, temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)


@contextmanager
def writing_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk into one that says that no answer is lost."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"cannot be written ({error.strerror or error})",
            where=str(path),
            hint="Free some space, or correct the permissions, and run again: what is in the ledger stays",
        ) from error
