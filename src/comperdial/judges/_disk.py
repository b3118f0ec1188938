"""The disk: what has to be on it before somebody goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.core.files import replacing


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
