"""The ledger: every answer of every judge kept once, on the disk before it is used.

A family of requests (:class:`~comperdial.judges.base.Family`) has a folder, ``<dataset>/<judge>/<family id>``::

    family.json                 what the answers depend on
    part-0001-<hash>.parquet    answers; written once, never again
    journal-<random>.jsonl      answers that a running or a killed process appended; they become a part

Beside them, ``<root>/charges.jsonl`` keeps what calls may have cost whose answers never came, and ``<root>/.running``
what processes that run now share: locks, the account of those who pay, and how fast services are asked.

Any of the Parquet files can be read with :func:`pandas.read_parquet`. Keys are not stored: they follow from the
family's id, messages and sample.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from comperdial.config.secrets import refuse_secrets
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges import _parts
from comperdial.judges._account import Account
from comperdial.judges._charges import Charges
from comperdial.judges._disk import make_folder
from comperdial.judges._families import in_use, read_family, settle
from comperdial.judges._locks import claimed
from comperdial.judges.base import Family
from comperdial.judges.shelf import Shelf

if TYPE_CHECKING:
    from comperdial.judges.services.base import Connection

__all__ = ["LEDGER", "Ledger", "Shelf"]

log = logging.getLogger(__name__)

LEDGER = Path("data/ledger")
RUNNING = ".running"

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


class Ledger:
    """All families of answers below a folder.

    Parameters
    ----------
    root
        The folder; it is made when something is written.
    """

    def __init__(self, root: str | Path = LEDGER) -> None:
        self.root = Path(root)
        self._charges = Charges(self.root / "charges.jsonl")
        self._running = self.root / RUNNING

    def shelf(self, dataset: str, family: Family, shard: Shard = WHOLE) -> Shelf:
        """Return a family's answers, for reading; empty when there are none yet.

        Parameters
        ----------
        shard
            Have only the answers to this shard's requests.

        Raises
        ------
        ConfigError
            When the names of dataset or judge are no plain names.
        FileError
            When a file is altered or broken.
        """
        folder = self._folder(dataset, family)
        if in_use(folder):
            read_family(folder)
        return Shelf(folder, family, self._charges, shard)

    @contextmanager
    def writing(self, dataset: str, family: Family, shard: Shard = WHOLE) -> Iterator[Shelf]:
        """Give a family's answers, or those of a shard of its requests, for reading and adding.

        Shards of one count can be had at the same time, each by one process. Another process that wants the same shard
        waits; and so does one that wants all, or a shard of another count, until nobody holds any.

        In the end, also after an error, what was added becomes a part, with what processes that are gone had added.

        Raises
        ------
        ConfigError
            When the names of dataset or judge are no plain names, or a parameter looks like a secret.
        FileError
            When a file is altered or broken, or cannot be written.
        """
        folder = self._folder(dataset, family)
        refuse_secrets(family.parameters, f"parameters of judge {family.judge!r}")
        waiting = f"{dataset}/{family.judge}: another process is judging this; waiting"
        locks = self._running / "locks" / folder.relative_to(self.root)

        def prepare(alone: bool) -> None:
            make_folder(folder)
            settle(folder, family, alone=alone)

        with claimed(locks, shard, prepare, waiting):
            shelf = Shelf(folder, family, self._charges, shard, locks / "parts")
            try:
                yield shelf
            except BaseException:
                try:
                    shelf._close()
                except ComperdialError as error:
                    # The first error is the one to report; the journals are as good as a part.
                    log.warning("%s", error)
                raise
            shelf._close()

    def families(self, dataset: str | None = None) -> list[tuple[str, Family]]:
        """Return what the ledger holds: pairs of data set and family, sorted.

        Raises
        ------
        FileError
            When a folder is no family's, or not the one that its name says.
        """
        return [(name, family) for name, _, family in self._families(dataset)]

    def spent(self) -> float:
        """Return what all answers cost together, in US dollars; those without a known price count nothing.

        What calls may have cost whose answers never came is part of it.
        """
        answers = (_parts.spent(folder) for _, folder, _ in self._families())
        return fsum([*answers, self._charges.total()])

    def account(
        self, limit: float | None, committed: Callable[[], float] | None = None
    ) -> AbstractContextManager[Account]:
        """Give a budget that all share who pay for answers of this ledger at the same time.

        What is set aside and not settled in the end counts as spent, now and later: as a charge.

        Parameters
        ----------
        limit
            US dollars that all answers may cost together; None: there is no limit.
        committed
            Says what is spent, in US dollars; asked when nobody else pays. Default: :meth:`spent`.

        Raises
        ------
        ConfigError
            When the limit is none.
        FileError
            When a file is altered or broken, or cannot be written.
        """

        def charge(cost: float) -> None:
            self._charges.add("", "", cost, "killed")

        return Account(self._running / "account", limit, committed or self.spent, charge).joined()

    def pace(self, connection: Connection) -> Path:
        """Return the file with which all processes keep the limits of a service's model together."""
        name = "\0".join(
            (connection.service, connection.base_url or "", connection.model, connection.key_variable or "")
        )
        return self._running / "pace" / hashlib.sha256(name.encode()).hexdigest()[:16]

    def _folder(self, dataset: str, family: Family) -> Path:
        for kind, name in (("data set", dataset), ("judge", family.judge)):
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} cannot name a {kind} in the ledger",
                    expected="letters, digits, '.', '_' and '-', and no '.' at the start",
                )
        return self.root / dataset / family.judge / family.id

    def _families(self, dataset: str | None = None) -> Iterator[tuple[str, Path, Family]]:
        for folder in sorted(self.root.glob("*/*/*")):
            name = folder.relative_to(self.root).parts[0]
            if name == RUNNING or not folder.is_dir() or (dataset is not None and name != dataset):
                continue
            if in_use(folder):
                yield name, folder, read_family(folder)
