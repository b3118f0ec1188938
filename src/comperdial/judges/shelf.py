"""The answers of one family, or of a shard of its requests: for reading, or for adding too."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges import _parts
from comperdial.judges._charges import Charges
from comperdial.judges._content import Content, load
from comperdial.judges._folding import fold
from comperdial.judges._journal import Journal, Place, Row, flatten, unflatten
from comperdial.judges.base import Answer, Family, key

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


class Shelf:
    """The answers of one family; made by :meth:`Ledger.shelf` and :meth:`Ledger.writing`.

    Attributes
    ----------
    path
        The family's folder.
    family
        What the answers depend on.
    shard
        Whose requests' answers it has.
    """

    def __init__(
        self, path: Path, family: Family, charges: Charges, shard: Shard = WHOLE, lock: Path | None = None
    ) -> None:
        """Open it; for writing, ``lock`` is the file that is locked to choose a part's number."""
        self.path = path
        self.family = family
        self.shard = shard
        self._charges = charges
        self._id = family.id
        self._lock = lock
        self._guard = threading.Lock()
        self._warned = False
        self._journals: list[Journal] = []
        self._added: dict[str, Place] = {}
        self._content = self._load()

    def _load(self) -> Content:
        content = load(self.path, self._id, self.shard)
        models = content.table.column("model").to_pylist()
        self._versions = Counter(model for model in models if model is not None)
        return content

    def __contains__(self, key: str) -> bool:
        """Say whether the request with this key is answered."""
        return key in self._content.rows or key in self._added

    def __len__(self) -> int:
        """Return how many answers there are."""
        return len(self._content.rows) + len(self._added)

    @property
    def answered(self) -> bool:
        """Say whether there is an answer to any request of the family, also to another shard's."""
        if len(self):
            return True
        parts, journals = _parts.listing(self.path)
        return self.shard.count > 1 and (bool(parts) or any(map(_has_content, journals)))

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
        RuntimeError
            When the shelf is for reading, or a request is another shard's.
        """
        self._check()
        with self._guard:
            new: dict[str, Row] = {}
            for answer in answers:
                row = flatten(answer)
                digest = key(self._id, row["messages"], row["sample"])
                if self.shard.count > 1 and not self.shard.holds(row["messages"]):
                    raise RuntimeError(f"{self.path}: a request of another shard than {self.shard}")
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
        if self._lock is None:
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
        """Make our journals a part; afterwards the shelf is for reading."""
        with self._guard:
            lock, self._lock = self._lock, None
            if lock is None:
                return
            try:
                # Where the disk failed, a journal may end in answers that were asked for again: the later ones count.
                fold(self.path, lock, [journal.path for journal in reversed(self._journals)])
                if self._added:
                    self._content, self._added = self._load(), {}
            finally:
                for journal in self._journals:
                    journal.close()


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        # It became a part.
        return True
