"""What calls without an answer may have cost: a file of the ledger to which all processes append."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Iterator
from math import fsum
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.judges._disk import make_folder, sync_folder, writing_errors
from comperdial.judges._locks import take

log = logging.getLogger(__name__)

_TYPES = {"time": int, "dataset": str, "family": str, "cost": float, "kind": str}


class Charges:
    """A file of charges, one a line: when, for which family of which data set, US dollars, and what happened.

    Parameters
    ----------
    path
        The file; it is made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, dataset: str, family: str, cost: float, kind: str) -> None:
        """Keep what a call may have cost; it is on the disk when this returns.

        Raises
        ------
        FileError
            When the disk does not take it.
        """
        row = {"time": int(time.time()), "dataset": dataset, "family": family, "cost": float(cost), "kind": kind}
        line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
        make_folder(self.path.parent)
        new = not self.path.exists()
        with writing_errors(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                # Of the open file, not of the process: threads wait for one another too.
                take(handle, self.path)
                _mend(handle)
                while line:
                    line = line[os.write(handle, line) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            if new:
                sync_folder(self.path.parent)

    def total(self) -> float:
        """Return US dollars.

        Raises
        ------
        FileError
            When a line is broken; half a last one, which a killed process leaves, is ignored with a warning.
        """
        return fsum(self._costs())

    def _costs(self) -> Iterator[float]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            take(file.fileno(), self.path, shared=True)
            for number, line in enumerate(file, start=1):
                where = f"{self.path}, line {number}"
                if not line.endswith(b"\n"):
                    log.warning("%s: ignored, as it ends in the middle: its process was stopped", where)
                    return
                yield _cost(line, where)


def _mend(handle: int) -> None:
    """Cut half a last line off; who wrote it is gone, as the lock is ours."""
    content = os.pread(handle, os.fstat(handle).st_size, 0)
    if not content.endswith(b"\n"):
        os.ftruncate(handle, content.rfind(b"\n") + 1)


def _cost(line: bytes, where: str) -> float:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    right = isinstance(row, dict) and row.keys() == _TYPES.keys()
    if (
        not right
        or any(type(row[name]) is not kind for name, kind in _TYPES.items())
        or not 0 <= row["cost"] < math.inf
    ):
        raise FileError(
            "the line is no charge",
            where=where,
            expected="a JSON object with " + ", ".join(_TYPES),
            hint="Somebody altered this file: restore it",
        )
    cost: float = row["cost"]
    return cost
