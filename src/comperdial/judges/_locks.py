"""Locks that the kernel frees when a process ends, however it ends; on a shared file system they hold for all nodes."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.core.sharding import Shard
from comperdial.judges._disk import make_folder, writing_errors

log = logging.getLogger(__name__)

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})

# Seconds between two looks at whether those who work on another cut of a family are gone.
_LOOK = 0.05
_LOOK_MOST = 1.0

# Locks that this process holds. To wait for one of them would be to wait for ever.
_held: set[tuple[int, Path]] = set()
# Shards of families that it works on, by folder.
_claimed: dict[tuple[int, Path], list[Shard]] = {}


def opened(path: Path) -> int:
    """Open a file that is locked, made if need be; return its handle."""
    with writing_errors(path):
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


def take(handle: int, path: Path, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file; return False if another holds it and nobody is to wait.

    Raises
    ------
    FileError
        When the file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise FileError(
            f"the file system has no locks ({error.strerror})",
            where=str(path),
            expected="one with flock: a local disk, NFS 4, Lustre mounted with -o flock, GPFS",
            hint="Put the ledger on another file system, or have this one mounted with locks",
        ) from error
    return True


def release(handle: int) -> None:
    """Unlock an open file."""
    fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel frees it when the process ends, however it ends."""
    make_folder(path.parent)
    # Not the path resolved: a link that leads to itself has no end. Opening it says so.
    mark = (os.getpid(), path.parent.resolve() / path.name)
    if mark in _held:
        raise RuntimeError(f"{path} is locked by this process already")
    handle = opened(path)
    try:
        with writing_errors(path):
            if not take(handle, path, wait=False):
                log.warning("%s", waiting)
                take(handle, path)
        _held.add(mark)
        try:
            yield
        finally:
            _held.discard(mark)
    finally:
        os.close(handle)


@contextmanager
def briefly(path: Path) -> Iterator[int]:
    """Hold a lock that nobody holds for long; gives the file's handle. Threads of one process wait for one another."""
    handle = opened(path)
    try:
        with writing_errors(path):
            take(handle, path)
        yield handle
    finally:
        os.close(handle)


@contextmanager
def claimed(folder: Path, shard: Shard, prepare: Callable[[bool], None], waiting: str) -> Iterator[None]:
    """Hold one shard of something, beside those who hold other shards of the same cut.

    Another process waits while it wants the same shard; and while it wants one of another cut, as long as anybody holds
    any, since the two may have a request in common.

    Parameters
    ----------
    folder
        Of the locks' files: one a shard, ``members``, which all lock together and which says how many shards there are,
        and ``gate``, which is held while somebody comes in.
    prepare
        Called while nobody else can come in; with True if nobody else is in.
    waiting
        What to say when there is somebody to wait for.
    """
    make_folder(folder)
    mark = (os.getpid(), folder.resolve())
    ours = _claimed.setdefault(mark, [])
    if any(other.count != shard.count or other == shard for other in ours):
        raise RuntimeError(f"{folder} is locked by this process already")
    ours.append(shard)
    try:
        with locked(folder / f"shard-{shard.number}-of-{shard.count}", waiting):
            members = opened(folder / "members")
            try:
                _come_in(folder, members, shard.count, prepare, waiting)
                yield
            finally:
                os.close(members)
    finally:
        ours.remove(shard)


def _come_in(folder: Path, members: int, count: int, prepare: Callable[[bool], None], waiting: str) -> None:
    look, told = _LOOK, False
    while not _admitted(folder, members, count, prepare):
        if not told:
            log.warning("%s", waiting)
            told = True
        time.sleep(look)
        look = min(2 * look, _LOOK_MOST)


def _admitted(folder: Path, members: int, count: int, prepare: Callable[[bool], None]) -> bool:
    """Join those who hold shards of the same cut, or be the first; return False if those of another cut are there."""
    path, cut = folder / "members", b"%9d" % count
    with briefly(folder / "gate"):
        with writing_errors(path):
            # The two steps from one kind of lock to the other are no danger: who comes in holds the gate.
            if alone := take(members, path, wait=False):
                os.pwrite(members, cut, 0)
            take(members, path, shared=True)
            if os.pread(members, len(cut), 0) != cut:
                release(members)
                return False
        prepare(alone)
    return True
