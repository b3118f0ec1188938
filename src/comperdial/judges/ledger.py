"""The ledger: every answer of every judge kept once, on the disk before it is used.

A family of requests (:class:`~comperdial.judges.base.Family`) has a folder, ``<dataset>/<judge>/<family id>``::

    family.json                 what the answers depend on
    part-0001-<hash>.parquet    answers; written once, never again
    journal-<random>.jsonl      answers that a running or a killed process appended; the next to end makes them a part

Any of the Parquet files can be read with :func:`pandas.read_parquet`. Keys are not stored: they follow from the
family's id, messages and sample.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.errors import ComperdialError, ConfigError, FileError
from comperdial.files import read_json
from comperdial.judges import _parts
from comperdial.judges._disk import locked, write_durably
from comperdial.judges._journal import Journal, Place, Row, flatten, unflatten
from comperdial.judges.base import Answer, Family, key

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

LEDGER = Path("data/ledger")

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_SECRET = re.compile(r"api.?key|authori[sz]ation|secret|passw|bearer|credential", re.IGNORECASE)
_FAMILY = {field.name: dict if field.name == "parameters" else str for field in dataclasses.fields(Family)}


class Ledger:
    """All families of answers below a folder.

    Parameters
    ----------
    root
        The folder; it is made when something is written.
    """

    def __init__(self, root: str | Path = LEDGER) -> None:
        self.root = Path(root)

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
        if _in_use(folder):
            _read_family(folder)
        return Shelf(folder, family)

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
        _refuse_secrets(family.parameters, f"parameters of judge {family.judge!r}")
        with locked(folder / ".lock", f"{dataset}/{family.judge}: another process is judging this; waiting"):
            _settle(folder, family)
            shelf = Shelf(folder, family, writable=True)
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
        """Return what all answers cost together, in US dollars; those without a known price count nothing."""
        return fsum(_parts.spent(folder, family.id) for _, folder, family in self._families())

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
            if _in_use(folder):
                yield name, folder, _read_family(folder)


class Shelf:
    """The answers of one family; made by :meth:`Ledger.shelf` and :meth:`Ledger.writing`.

    Attributes
    ----------
    path
        The family's folder.
    family
        What the answers depend on.
    """

    def __init__(self, path: Path, family: Family, *, writable: bool = False) -> None:
        self.path = path
        self.family = family
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
        if not self._writable:
            raise RuntimeError(f"{self.path} is open for reading: add answers inside Ledger.writing()")
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

    @property
    def versions(self) -> dict[str, int]:
        """Return the model versions that the server reported, with how many answers each gave."""
        return dict(self._versions)

    def frame(self) -> pd.DataFrame:
        """Return all answers, one a row, with the columns of the Parquet files; ``messages`` is categorical."""
        with self._guard:
            added = [place.read() for place in self._added.values()]
        tables = [self._content.table, _parts.to_table(added)]
        frame: pd.DataFrame = _parts.joined(tables).to_pandas()
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


def _settle(folder: Path, family: Family) -> None:
    """Write down what a new folder is for, or check it; remove what a killed process left half written."""
    for path in [*folder.glob(".part-*.parquet"), *folder.glob(".family-*.json")]:
        path.unlink()
    if _in_use(folder):
        _read_family(folder)
        return
    content = {name: getattr(family, name) for name in _FAMILY} | {"parameters": dict(family.parameters)}
    text = json.dumps({"id": family.id, **content}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_durably(folder / "family.json", text.encode())


def _in_use(folder: Path) -> bool:
    """Say whether a folder is a family's; a process that was killed early leaves one with a lock and nothing else."""
    return (folder / "family.json").exists() or any(_parts.listing(folder))


def _read_family(folder: Path) -> Family:
    path = folder / "family.json"
    content = read_json(path)
    if not isinstance(content, dict) or content.keys() != {"id", *_FAMILY}:
        raise FileError("not the description of a family", where=str(path), expected="id, " + ", ".join(_FAMILY))
    for name, kind in _FAMILY.items():
        if not isinstance(content[name], kind):
            raise FileError(f"{name!r} is {content[name]!r}", where=str(path), expected=f"a {kind.__name__}")
    family = Family(**{name: content[name] for name in _FAMILY})
    if (family.judge, family.id, content["id"]) != (folder.parent.name, folder.name, folder.name):
        raise FileError(
            f"the file describes family {family.judge}/{family.id}",
            where=str(path),
            expected=f"{folder.parent.name}/{folder.name}, as the folder is named",
            hint="Restore the file; a folder of the ledger is never renamed",
        )
    return family


def _refuse_secrets(parameters: Mapping[str, Any], where: str) -> None:
    for name, value in parameters.items():
        if _SECRET.search(str(name)):
            raise ConfigError(f"{name!r} looks like a secret", where=where, expected="nothing that nobody may read")
        if isinstance(value, Mapping):
            _refuse_secrets(value, where)
