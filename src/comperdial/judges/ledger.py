"""The ledger: every answer of every judge kept once, on the disk before it is used.

A family of requests (:class:`~comperdial.judges.base.Family`) has a folder, ``<dataset>/<judge>/<family id>``::

    family.json                 what the answers depend on
    part-0001-<hash>.parquet    answers; written once, never again
    journal-<random>.jsonl      answers that a running or a killed process appended; the next to end makes them a part

Beside them, ``<root>/charges.jsonl`` keeps what calls may have cost whose answers never came.

Any of the Parquet files can be read with :func:`pandas.read_parquet`. Keys are not stored: they follow from the
family's id, messages and sample.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from comperdial.errors import ComperdialError, ConfigError
from comperdial.judges import _parts
from comperdial.judges._charges import Charges
from comperdial.judges._disk import locked
from comperdial.judges._families import in_use, read_family, refuse_secrets, settle
from comperdial.judges._journal import Journal, Place, Row, flatten, unflatten
from comperdial.judges.base import Answer, Family, key

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

LEDGER = Path("data/ledger")

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

    def shelf(self, dataset: str, family: Family) -> Shelf:
        """Return a family's answers, for reading; empty when there are none yet.

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
        return Shelf(folder, family, self._charges)

    @contextmanager
    def writing(self, dataset: str, family: Family) -> Iterator[Shelf]:
        """Give a family's answers, for reading and adding, to one process at a time; another one waits.

        In the end, also after an error, all journals of the family become one new part.

        Raises
        ------
        ConfigError
            When the names of dataset or judge are no plain names, or a parameter looks like a secret.
        FileError
            When a file is altered or broken, or cannot be written.
        """
        folder = self._folder(dataset, family)
        refuse_secrets(family.parameters, f"parameters of judge {family.judge!r}")
        with locked(folder / ".lock", f"{dataset}/{family.judge}: another process is judging this; waiting"):
            settle(folder, family)
            shelf = Shelf(folder, family, self._charges, writable=True)
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
        answers = (_parts.spent(folder, family.id) for _, folder, family in self._families())
        return fsum([*answers, self._charges.total()])

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Let one process at a time pay for answers, so that two cannot pass one budget; another one waits."""
        with locked(self.root / ".spending.lock", f"{self.root}: another process pays for answers; waiting"):
            yield

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
            if not folder.is_dir() or (dataset is not None and name != dataset):
                continue
            if in_use(folder):
                yield name, folder, read_family(folder)


class Shelf:
    """The answers of one family; made by :meth:`Ledger.shelf` and :meth:`Ledger.writing`.

    Attributes
    ----------
    path
        The family's folder.
    family
        What the answers depend on.
    """

    def __init__(self, path: Path, family: Family, charges: Charges, *, writable: bool = False) -> None:
        self.path = path
        self.family = family
        self._charges = charges
        self._id = family.id
        self._writable = writable
        self._guard = threading.Lock()
        self._warned = False
        self._journals: list[Journal] = []
        self._added: dict[str, Place] = {}
        self._open()

    def _open(self) -> None:
        self._content = _parts.load(self.path, self._id)
        models = self._content.table.column("model").to_pylist()
        self._versions = Counter(model for model in models if model is not None)

    def __contains__(self, key: str) -> bool:
        """Say whether the request with this key is answered."""
        return key in self._content.rows or key in self._added

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._content.rows) + len(self._added)

    def get(self, key: str) -> Answer | None:
        """Return the answer to the request with this key, or None."""
        if key in self._content.rows:
            return unflatten(self._content.row(key))
        place = self._added.get(key)
        return None if place is None else unflatten(place.read())

    def add(self, answers: Sequence[Answer]) -> None:
        r"""Keep answers; they are on the disk when this returns. A request that is answered already is ignored.

        Halves of surrogate pairs, which no file can hold, are spelled out (``\ud800``).

        Raises
        ------
        SchemaError
            When a value has the wrong type.
        FileError
            When the disk does not take them. None of them is in the shelf then.
        """
        self._check()
        with self._guard:
            new: dict[str, Row] = {}
            for answer in answers:
                row = flatten(answer)
                digest = key(self._id, row["messages"], row["sample"])
                if digest not in self:
                    new.setdefault(digest, row)
            if not new:
                return
            if not self._journals or self._journals[-1].broken:
                self._journals.append(Journal(self.path))
            places = self._journals[-1].append(new.values())
            self._added.update(zip(new, places, strict=True))
            for row in new.values():
                self._count(row["model"])

    def charge(self, cost: float, kind: str) -> None:
        """Keep what a call may have cost whose answer never came; it is on the disk when this returns.

        Parameters
        ----------
        cost
            US dollars, at worst.
        kind
            What happened: ``timed out``, ``cut``, ….

        Raises
        ------
        FileError
            When the disk does not take it.
        """
        self._check()
        self._charges.add(self.path.parents[1].name, self._id, cost, kind)

    def _check(self) -> None:
        if not self._writable:
            raise RuntimeError(f"{self.path} is open for reading: add to it inside Ledger.writing()")

    @property
    def versions(self) -> dict[str, int]:
        """Return the model versions that the server reported, with how many answers each gave."""
        return dict(self._versions)

    def frame(self) -> pd.DataFrame:
        """Return all answers, one a row: ``key`` and the columns of the Parquet files; ``messages`` is categorical."""
        with self._guard:
            added = [place.read() for place in self._added.values()]
        tables = [self._content.table, _parts.to_table(added)]
        frame: pd.DataFrame = _parts.joined(tables).to_pandas()
        requests = zip(frame["messages"], frame["sample"], strict=True)
        frame.insert(0, "key", [key(self.family.id, messages, int(sample)) for messages, sample in requests])
        return frame

    def _count(self, model: str | None) -> None:
        """Count a model version; warn of the first one that differs from those that are there."""
        if model is None:
            return
        if self._versions and model not in self._versions and not self._warned:
            self._warned = True
            log.warning(
                "%s: the server now says that it runs %s, but the ledger holds answers of %s. Judges drift: "
                "scores of both are not comparable",
                self.path,
                model,
                ", ".join(sorted(self._versions)),
            )
        self._versions[model] += 1

    def _close(self) -> None:
        """Make all journals a part; afterwards the shelf is for reading."""
        with self._guard:
            self._writable = False
            # Where the disk failed, a journal may end in answers that were asked for again: the later ones were used.
            own = [journal.path for journal in reversed(self._journals)]
            _parts.fold(self.path, self._id, self._content.folded, own)
            if self._added:
                self._open()
                self._added = {}
            for journal in self._journals:
                journal.close()
