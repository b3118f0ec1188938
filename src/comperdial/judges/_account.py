"""What a ledger's payers share: how much is spent, and what each of them has set aside.

A file holds both, and nobody looks at it without a lock. At every moment

    what calls have cost or may cost <= spent + all that is set aside <= limit

because a call's worst case is set aside before it is sent, and is given back only when what the call cost is on the
ledger's disk. What a payer that is gone left set aside (each holds the lock of a file of its own, which the kernel
frees) becomes a charge in the ledger, and is spent. When nobody else pays, what is spent is read from the ledger anew.
An answer that was kept just before its process was killed counts twice then: too much, and never too little.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.judges._disk import make_folder, writing_errors
from comperdial.judges._locks import opened, release, take
from comperdial.judges.prices import Budget

log = logging.getLogger(__name__)

# Parts of a US dollar: sums of whole numbers are exact, however many calls there are.
_DOLLAR = 10**12
_MOST_BYTES = 1 << 20
# Seconds between two looks at whether the other payers are there still.
_LOOK = 1.0


@dataclass
class _State:
    """What the file says: spent, and of each payer how much is set aside for how many calls; None if it is no state."""

    spent: int = 0
    payers: dict[str, list[int]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        return sum(amount for amount, _ in self.payers.values())

    @property
    def pending(self) -> int:
        return sum(calls for _, calls in self.payers.values())

    def encode(self) -> bytes:
        content = json.dumps([self.spent, self.payers]).encode()
        return b"%08x %s\n" % (zlib.crc32(content), content)

    @classmethod
    def decode(cls, data: bytes) -> _State | None:
        """Read a state; what follows its line is left of a longer one."""
        checksum, _, content = data.partition(b"\n")[0].partition(b" ")
        if checksum != b"%08x" % zlib.crc32(content):
            return None
        spent, payers = json.loads(content)
        return cls(spent, payers)


class Account(Budget):
    """The budget of one of several payers; made by :meth:`comperdial.judges.ledger.Ledger.account`.

    ``spent`` and ``pending`` are everybody's, as they were when this payer last looked.

    Parameters
    ----------
    folder
        Of the account's files.
    limit
        US dollars that all may spend together; None: there is no limit.
    committed
        Says what is spent, in US dollars; asked when nobody else pays.
    charge
        Keeps durably what a payer that is gone may have spent, in US dollars.
    """

    def __init__(
        self,
        folder: Path,
        limit: float | None,
        committed: Callable[[], float],
        charge: Callable[[float], None],
    ) -> None:
        super().__init__(limit)
        self._most = None if limit is None else round(limit * _DOLLAR)
        self._folder = folder
        self._path = folder / "account"
        self._committed = committed
        self._charge = charge
        self._name = secrets.token_hex(8)
        self._guard = threading.Lock()
        self._looked = -_LOOK

    @contextmanager
    def joined(self) -> Iterator[Account]:
        """Be one of the payers."""
        make_folder(self._folder)
        self._handle = opened(self._path)
        own: list[int] = []
        try:
            self._join(own)
            try:
                yield self
            finally:
                self._leave()
        finally:
            # What could not be charged is left to the next payer, who finds our lock free.
            for handle in (*own, self._handle):
                os.close(handle)

    def reserve(self, worst: float) -> bool:
        """Set aside what a call can cost at worst; return False if all together might pass the limit."""
        amount = round(worst * _DOLLAR)
        with self._open() as state:
            own = self._own(state)
            fits = self._most is None or state.spent + state.reserved + amount <= self._most
            if fits:
                own[0] += amount
                own[1] += 1
            elif state.pending > own[1] and time.monotonic() - self._looked >= _LOOK:
                # There is no more room without them, but it may be nobody's any more to wait for.
                self._looked = time.monotonic()
                self._bury(state)
            return fits

    def settle(self, worst: float, charge: float) -> None:
        """Give back what was set aside for a call, and count what it cost."""
        with self._open() as state:
            own = self._own(state)
            own[0] -= round(worst * _DOLLAR)
            own[1] -= 1
            state.spent += round(charge * _DOLLAR)

    def _join(self, own: list[int]) -> None:
        with self._open(starting=True) as state:
            self._bury(state)
            if not state.payers:
                self._sweep()
                state.spent = round(self._committed() * _DOLLAR)
            path = self._payer(self._name)
            own.append(opened(path))
            take(own[0], path, wait=False)
            state.payers[self._name] = [0, 0]

    def _leave(self) -> None:
        with self._open() as state:
            amount, _ = self._own(state)
            if amount:
                # Calls whose answers could not be kept.
                self._charge(amount / _DOLLAR)
                state.spent += amount
            del state.payers[self._name]
        with suppress(FileNotFoundError):
            self._payer(self._name).unlink()

    def _bury(self, state: _State) -> None:
        """Charge what payers that are gone have set aside."""
        for name in [name for name in state.payers if name != self._name and self._gone(name)]:
            amount, calls = state.payers[name]
            if amount:
                log.warning(
                    "a process was stopped while %d calls were under way: they count as $%.4f", calls, amount / _DOLLAR
                )
                # On the disk before it is taken off: an end in between counts it twice, and never not at all.
                self._charge(amount / _DOLLAR)
                state.spent += amount
            del state.payers[name]
            self._write(state)
            with suppress(FileNotFoundError):
                self._payer(name).unlink()

    def _gone(self, name: str) -> bool:
        try:
            handle = os.open(self._payer(name), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            return take(handle, self._payer(name), wait=False)
        finally:
            os.close(handle)

    def _own(self, state: _State) -> list[int]:
        try:
            return state.payers[self._name]
        except KeyError:
            raise FileError(
                "this process was taken out of the account by another one while it was paying",
                where=str(self._path),
                expected="locks that hold for all processes and nodes, and nobody who deletes files of a running judge",
                hint="See docs/judges.md on judging from several machines",
            ) from None

    @contextmanager
    def _open(self, *, starting: bool = False) -> Iterator[_State]:
        """Give the state, which nobody else sees meanwhile; it is written in the end, unless there is an error."""
        with self._guard, writing_errors(self._path):
            take(self._handle, self._path)
            try:
                state = self._read(starting=starting)
                yield state
                self._write(state)
            finally:
                release(self._handle)

    def _read(self, *, starting: bool) -> _State:
        data = os.pread(self._handle, _MOST_BYTES, 0)
        state = _State.decode(data) if data else _State()
        deleted = os.fstat(self._handle).st_nlink == 0
        if state is None and starting and not deleted and all(map(self._gone, self._names())):
            log.warning("%s cannot be read; nobody uses it, so it is started anew", self._path)
            state = _State()
        if state is None or deleted:
            raise FileError(
                "the account of those who pay cannot be read",
                where=str(self._path),
                hint=f"Delete {self._folder} when nobody judges, and run again: what is in the ledger stays",
            )
        return state

    def _names(self) -> list[str]:
        """Return the names of all who left a file."""
        return [path.name.removeprefix("payer-") for path in self._folder.glob("payer-*")]

    def _sweep(self) -> None:
        """Remove the files of processes that were stopped while they came or went: nobody pays."""
        for name in self._names():
            self._payer(name).unlink(missing_ok=True)

    def _write(self, state: _State) -> None:
        data = state.encode()
        if len(data) > _MOST_BYTES or os.pwrite(self._handle, data, 0) != len(data):
            raise FileError("the account of those who pay cannot be written", where=str(self._path))
        self.spent = state.spent / _DOLLAR
        self.pending = state.pending

    def _payer(self, name: str) -> Path:
        return self._folder / f"payer-{name}"
