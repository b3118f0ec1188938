"""The ledger: every answer of every judge kept once, on the disk before it is used, and every call that may cost money.

What runs here is kept in SQLite, ``<root>/ledger.sqlite``, which any number of processes of one machine share::

    calls     requests that are under way, each with the most that it can cost; one that never ended stays as a charge
    answers   raw answers; keeping one deletes its call in the same transaction

so that at every moment what was paid <= answers + calls <= the budget. Processes on several machines each have a shard
and write ``<root>/3-of-16.sqlite``, which nobody else writes.

For DVC and for readers, ``comperdial ledger export`` moves answers into Parquet, one family (a judge, a model and a
prompt) a folder, ``<root>/<dataset>/<judge>/<family id>``::

    family.json                 what the answers depend on, and the names of its parts
    part-0001-<hash>.parquet    answers, sorted; never changed

They are read back wherever they lie. Any part can be read with :func:`pandas.read_parquet`. Keys are not stored there:
they follow from the family's id, messages and sample.

Prompts hold the texts of a data set, which may not be ours to pass on. ``<root>/published.parquet``, which ``comperdial
ledger publish`` writes, has keys in place of prompts: whoever has the texts finds the answers by them, and needs no model.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
import platform
import re
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock, Timeout

from comperdial.config.secrets import refuse_secrets
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.files import printable, read_json, replacing, write_text
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.base import REFUSED, Answer, Completion, Family, canonical, key

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger(__name__)

LEDGER = Path("data/ledger")
PUBLISHED = "published.parquet"
"""Answers without their prompts, of all data sets."""

VERSION = 2
"""Of the files' layout; 1 had journals beside its parts, and no list of them."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_PART = re.compile(r"part-(\d+)-([0-9a-f]{8})\.parquet")
_SHARD = re.compile(r"(\d+)-of-(\d+)\.sqlite")
_FAMILY = {field.name: dict if field.name == "parameters" else str for field in dataclasses.fields(Family)}
# Parts of a US dollar: sums of whole numbers are exact, however many calls there are.
_DOLLAR = 10**12
_MOST = 2**63
# US dollars of one answer: sums of such must fit too.
_DEAREST = 100_000
_SECONDS_TO_WAIT = 120.0
# Bytes that each process keeps for the answers that are on their way when the disk is full.
_SPARE = 1 << 20

COLUMNS: Mapping[str, tuple[type, bool]] = {
    "messages": (str, False),
    "sample": (int, False),
    "answer": (str, False),
    "finish": (str, True),
    "input_tokens": (int, True),
    "output_tokens": (int, True),
    "model": (str, True),
    "logprobs": (str, True),
    "cost": (float, True),
    "latency": (int, True),
    "time": (int, True),
    "origin": (str, True),
}
"""What an answer holds, in order: the type of each column and whether it may be None."""
_FINISH, _COST = list(COLUMNS).index("finish"), list(COLUMNS).index("cost")

_SCHEMA = f"""
CREATE TABLE families (number INTEGER PRIMARY KEY, dataset TEXT, id TEXT, content TEXT, UNIQUE (dataset, id));
CREATE TABLE answers (family INTEGER, key TEXT, {", ".join(COLUMNS)});
CREATE UNIQUE INDEX answer ON answers (family, key);
CREATE INDEX version ON answers (family, model);
CREATE TABLE calls (
  number INTEGER PRIMARY KEY, family INTEGER, key TEXT, owner TEXT, worst INTEGER, time INTEGER, ended TEXT,
  batch TEXT, sample INTEGER, messages TEXT
);
CREATE INDEX call ON calls (family, key);
CREATE INDEX live ON calls (worst, ended, owner) WHERE batch IS NULL;
CREATE INDEX batched ON calls (batch) WHERE batch IS NOT NULL;
CREATE TABLE batches (
  name TEXT PRIMARY KEY, family INTEGER, variant TEXT, owner TEXT, requests INTEGER, worst INTEGER, tried INTEGER, id TEXT
);
CREATE TABLE pace (
  name TEXT PRIMARY KEY, requests REAL, tokens REAL, filled REAL, paused REAL, pauses INTEGER
);
CREATE TABLE spent (amount INTEGER);
INSERT INTO spent VALUES (0);
PRAGMA user_version = {VERSION};
"""  # noqa: S608


_UNDER_WAY = "SELECT DISTINCT owner FROM calls WHERE ended IS NULL AND batch IS NULL"
# A refusal gives way to an answer.
_INSERT = (
    f"INSERT INTO answers VALUES (?, ?{', ?' * len(COLUMNS)}) ON CONFLICT (family, key) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS)
    + f" WHERE answers.finish = '{REFUSED}'"
)


def pico(dollars: float) -> int:
    """Return US dollars as the ledger counts them, rounded up."""
    return math.ceil(round(dollars * _DOLLAR, 3))


def flatten(answer: Answer) -> dict[str, Any]:
    r"""Return an answer as a row that SQLite and Parquet can hold; halves of surrogate pairs are spelled out (``\ud800``).

    Raises
    ------
    SchemaError
        When a value is not of its column's type.
    """
    completion = answer.completion
    row = {
        "messages": answer.messages,
        "sample": answer.sample,
        "answer": completion.text,
        "finish": completion.finish,
        "input_tokens": completion.input_tokens,
        "output_tokens": completion.output_tokens,
        "model": completion.model,
        "logprobs": None if completion.logprobs is None else canonical(dict(completion.logprobs)),
        "cost": float(answer.cost) if isinstance(answer.cost, int) else answer.cost,
        "latency": answer.latency,
        "time": answer.time,
        "origin": answer.origin,
    }
    for name, (kind, optional) in COLUMNS.items():
        value = row[name]
        if value is None and optional:
            continue
        if type(value) is not kind:
            raise SchemaError(f"{name} is {value!r}, which is no {kind.__name__}", where="an answer for the ledger")
        if isinstance(value, str):
            if not value.isascii():
                row[name] = printable(value)
        elif not abs(value) < (_DEAREST if name == "cost" else _MOST):  # type: ignore[arg-type]
            raise SchemaError(f"{name} is {value!r:.30}", where="an answer for the ledger", expected="a smaller number")
    return row


def unflatten(row: Sequence[Any]) -> Answer:
    """Return the answer that a row holds, its values in the order of :data:`COLUMNS`."""
    messages, sample, text, finish, read, written, model, logprobs, cost, latency, when, origin = row
    probabilities = None if logprobs is None else json.loads(logprobs)
    completion = Completion(text, finish, read, written, model, probabilities)
    return Answer(messages, sample, completion, cost, latency, when, origin)


class Rates(NamedTuple):
    """How fast a service may be asked: requests and tokens a minute, None without a limit."""

    name: str
    requests: float | None = None
    tokens: float | None = None


class Claimed(NamedTuple):
    """A call is reserved under this number: ask."""

    call: int


class Wait(NamedTuple):
    """Nothing is reserved: ask for it again after so many seconds.

    ``why`` is ``pace``, ``busy`` (another process asks this), ``batch`` (one that was submitted does), ``own`` or
    ``money`` (our own calls, or those of others, have reserved the rest of the budget).
    """

    seconds: float
    why: str


class Broke(NamedTuple):
    """Nothing is reserved: the budget would be passed. US dollars."""

    spent: float
    limit: float


class Submission(NamedTuple):
    """A batch whose answers are not in the ledger yet.

    Attributes
    ----------
    name
        Ours; the service keeps it with the batch.
    variant
        In which way is asked.
    requests, worst
        How many requests it had at first, and US dollars that those without an answer can cost at most.
    tried
        When the service was asked to make it: seconds since 1970, UTC; None: it was not yet.
    id
        The service's name for it; None: nobody knows whether it was made.
    """

    name: str
    dataset: str
    family: Family
    variant: str
    requests: int
    worst: float
    tried: int | None
    id: str | None


class Ledger:
    """All answers below a folder.

    Parameters
    ----------
    root
        The folder; it is made when something is written. None: a ledger in memory.
    shard
        Whose requests this process asks: several machines may do so at the same time, each with a shard.
    """

    def __init__(self, root: str | Path | None = LEDGER, shard: Shard = WHOLE) -> None:
        self.root = None if root is None else Path(root)
        self.shard = shard

    # --- what is where ---------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """Return the file that this process writes."""
        name = "ledger.sqlite" if self.shard.count == 1 else f"{self.shard.number}-of-{self.shard.count}.sqlite"
        return (self.root or Path()) / name

    def folder(self, dataset: str, family: Family) -> Path:
        """Return the folder of a family's parts."""
        for kind, name in (("data set", dataset), ("judge", family.judge)):
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} cannot name a {kind} in the ledger",
                    expected="letters, digits, '.', '_' and '-', and no '.' at the start",
                )
        return (self.root or Path()) / dataset / family.judge / family.id

    def _databases(self) -> list[Path]:
        """Return the files of answers that are not exported, ours first."""
        if self.root is None:
            return []
        others = [self.root / "ledger.sqlite", *sorted(self.root.glob("*-of-*.sqlite"))]
        return [path for path in dict.fromkeys([self.path, *others]) if path.is_file()]

    def _exported(self, dataset: str | None = None) -> Iterator[tuple[str, Path]]:
        """Yield data set and folder of each family that was exported."""
        for path in sorted(self.root.glob("*/*/*/family.json")) if self.root else ():
            name = path.relative_to(self.root).parts[0]  # type: ignore[arg-type]
            if dataset in (None, name):
                yield name, path.parent

    # --- reading ---------------------------------------------------------------------------------------------------

    def answers(self, dataset: str, family: Family) -> Answers:
        """Return a family's answers, for reading; empty when there are none yet.

        Raises
        ------
        ConfigError
            When the names of data set or judge are no plain names.
        FileError
            When a file is missing, altered or of another version.
        """
        return Answers(self, dataset, family)

    def holds(self, dataset: str, family: Family) -> bool:
        """Say whether there is any answer of a family."""
        if any(self.folder(dataset, family).glob("part-*.parquet")) or self._published(dataset, family):
            return True
        query = (
            "SELECT 1 FROM answers WHERE family = (SELECT number FROM families WHERE dataset = ? AND id = ?) LIMIT 1"
        )
        for path in self._databases():
            with opened(path, write=False) as base:
                if base.execute(query, (dataset, family.id)).fetchone():
                    return True
        return False

    def _published(self, dataset: str, family: Family) -> Mapping[str, Answer]:
        """Return the answers of a family that are kept without their prompts, by key; their messages are empty."""
        path = (self.root or Path()) / PUBLISHED
        if self.root is None or not path.is_file():
            return {}
        return _read_published(path, path.stat().st_mtime_ns).get((dataset, family.id), {})

    def families(self, dataset: str | None = None) -> list[tuple[str, Family]]:
        """Return what the ledger holds answers of: pairs of data set and family, sorted."""
        found = {(name, folder.name): _read_family(folder)[0] for name, folder in self._exported(dataset)}
        for path in self._databases():
            with opened(path, write=False) as base:
                for name, family_id, content in base.execute("SELECT dataset, id, content FROM families"):
                    if dataset in (None, name):
                        found.setdefault((name, family_id), Family(**json.loads(content)))
        return [
            (name, family)
            for (name, _), family in sorted(found.items(), key=lambda pair: (pair[0][0], pair[1].judge, pair[0][1]))
        ]

    def submissions(self) -> list[Submission]:
        """Return the batches that are under way, the oldest first."""
        if not self.path.is_file():
            return []
        with opened(self.path, write=False) as base:
            rows = base.execute(
                "SELECT name, dataset, content, variant, requests, worst, tried, batches.id "
                "FROM batches JOIN families ON number = family ORDER BY batches.rowid"
            ).fetchall()
        return [
            Submission(name, dataset, Family(**json.loads(text)), variant, requests, worst / _DOLLAR, tried, batch)
            for name, dataset, text, variant, requests, worst, tried, batch in rows
        ]

    def spent(self) -> float:
        """Return what all answers cost together, and calls may have cost whose answers never came, in US dollars."""
        return math.fsum([self._exported_cost(), *(_total(path) / _DOLLAR for path in self._databases())])

    def _exported_cost(self) -> float:
        costs = [_read_family(folder)[2] for _, folder in self._exported()]
        # Version 1 kept what calls without an answer may have cost in a file of lines.
        if self.root is not None:
            costs += [row["cost"] for row in _lines(self.root / "charges.jsonl", {"cost"})]
        return math.fsum(costs)

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def open(
        self, dataset: str, family: Family, *, budget: float | None = None, paid: bool = False
    ) -> Iterator[Writer]:
        """Give a family's answers for reading and adding; other processes may do so at the same time.

        Parameters
        ----------
        budget
            US dollars that all answers of the ledger may cost together; None: there is no limit. Of a shard it is an
            equal part.
        paid
            Whether calls cost money.

        Raises
        ------
        ConfigError
            When the names of data set or judge are no plain names, a parameter looks like a secret, the budget is none,
            or others judge now in another number of shards.
        FileError
            When a file is missing, altered or of another version, or cannot be written.
        """
        if budget is not None and not 0 < budget < math.inf:
            raise ConfigError(f"the budget is {budget!r}", expected="US dollars above 0, or no budget")
        folder = self.folder(dataset, family)
        refuse_secrets(family.parameters, f"parameters of judge {family.judge!r}")
        with ExitStack() as stack:
            owner = stack.enter_context(self._joined(f"{dataset}/{folder.parent.name}/{folder.name}", paid=paid))
            limit = (None, 0) if budget is None else self._share(budget)
            writer = Writer(self, dataset, family, owner, *limit)
            stack.callback(writer.close)
            yield writer

    def _share(self, budget: float) -> tuple[int, int]:
        """Return how much the file that this process writes may hold, and what its share of all other files is."""
        others = [
            path
            for path in self._databases()
            if path != self.path
            # Those of as many shards have a share of their own.
            and not (
                self.shard.count > 1 and (found := _SHARD.fullmatch(path.name)) and int(found[2]) == self.shard.count
            )
        ]
        elsewhere = -(-(pico(self._exported_cost()) + sum(map(_total, others))) // self.shard.count)
        return pico(budget) // self.shard.count - elsewhere, elsewhere

    @contextmanager
    def _joined(self, what: str, *, paid: bool) -> Iterator[str]:
        """Be one of those who judge; give the name under which our calls are.

        Each holds the lock of a file of its own, which the kernel frees when its process ends, however that happens.
        """
        if self.root is None:
            yield "memory"
            return
        folder = self.root / ".running"
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        # Which machine this is, too: what processes share in SQLite does not cross machines.
        here = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
        owner = f"{here}-{secrets.token_hex(8)}"
        name = (
            f"{self.shard.count}.{'paid' if paid else 'free'}.{hashlib.sha256(what.encode()).hexdigest()[:8]}.{owner}"
        )
        with ExitStack() as stack:
            if self.shard.count > 1:
                # Nobody else writes a shard's file.
                stack.enter_context(
                    _patiently(folder / f"{self.path.name}.lock", f"another process has shard {self.shard}")
                )
            with _writing(folder), FileLock(folder / "join.lock"):
                for path in folder.glob("*.*.*.*.owner"):
                    count, kind, other, whose, _ = path.name.split(".")
                    if alive(path):
                        if self.shard.count == int(count) == 1 and not whose.startswith(f"{here}-"):
                            raise ConfigError(
                                "another machine judges now, and this ledger is for the processes of one",
                                where=str(self.path),
                                expected="a shard for each machine: `shards` in params.yaml, or --shard 1/2",
                                hint="Or wait until it has ended",
                            )
                        if int(count) != self.shard.count and (
                            other == name.split(".")[2] or kind == "paid" == name.split(".")[1]
                        ):
                            raise ConfigError(
                                f"others judge now in {count} shards, and this would be {self.shard.count}",
                                where=str(self.root),
                                expected="the same number of shards at the same time: a budget and a rate are divided by it",
                                hint="Wait until they have ended",
                            )
                    else:
                        path.unlink(missing_ok=True)
                        path.with_suffix(".spare").unlink(missing_ok=True)
                lock = FileLock(folder / f"{name}.owner")
                lock.acquire()
            try:
                with _writing(folder):
                    (folder / f"{name}.spare").write_bytes(bytes(_SPARE))
                yield owner
            finally:
                (folder / f"{name}.spare").unlink(missing_ok=True)
                (folder / f"{name}.owner").unlink(missing_ok=True)
                lock.release()

    def add(self, dataset: str, family: Family, answers: Iterable[Answer]) -> int:
        """Keep answers made elsewhere; those to requests that are answered already are ignored. Return how many are new."""
        with self.open(dataset, family) as writer:
            return writer.add(answers)

    # --- Parquet ---------------------------------------------------------------------------------------------------

    def export(self) -> list[tuple[str, Family, int]]:
        """Move all answers into Parquet, one part a family; return data set, family and how many were new of each.

        Calls that never ended stay where they are: nobody but this copy of the ledger pays for them.

        Raises
        ------
        ConfigError
            When somebody judges.
        FileError
            When a file is missing, altered or of another version, or cannot be written.
        """
        if self.root is None or self.shard.count > 1:
            raise RuntimeError("only a whole ledger with files is exported")
        if not self.root.is_dir():
            raise FileError("no such folder", where=str(self.root), expected="a ledger", hint="Name it by --ledger")
        made: list[tuple[str, Family, int]] = []
        running = self.root / ".running"
        with _writing(self.root):
            running.mkdir(parents=True, exist_ok=True)
        with _writing(running), FileLock(running / "join.lock"):
            if any(map(alive, running.glob("*.owner"))):
                raise ConfigError("somebody judges", where=str(self.root), hint="Export when it has ended")
            found: dict[tuple[str, str], Family] = {}
            for path in self._databases():
                with opened(path, write=False) as base:
                    rows = base.execute(
                        "SELECT dataset, id, content FROM families WHERE number IN (SELECT family FROM answers)"
                    )
                    found |= {(dataset, family_id): Family(**json.loads(text)) for dataset, family_id, text in rows}
            for (dataset, _), family in sorted(found.items(), key=lambda pair: pair[0]):
                made.append((dataset, family, self._export(dataset, family)))
            moved = Counter[Path]()
            for (dataset, _), family in found.items():
                with closing(self.answers(dataset, family)) as answers:
                    moved.update(answers.moved())
            for path in self._databases():
                with opened(path, write=True) as base:
                    base.execute("BEGIN IMMEDIATE")
                    base.execute("DELETE FROM answers")
                    base.execute("UPDATE spent SET amount = amount - ?", (moved[path],))
                    base.execute("COMMIT")
                    base.execute("VACUUM")
        return made

    def publish(self) -> int:
        """Write all answers that are one of some labels into one file, with keys in place of prompts; return how many.

        Answers that a judge wrote may repeat the texts that it was given, and are left out. What the file has already stays.

        Raises
        ------
        FileError
            When a file is missing, altered or of another version, or cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self.root is None or not self.root.is_dir():
            raise FileError("no such folder", where=str(self.root), expected="a ledger", hint="Name it by --ledger")
        path = self.root / PUBLISHED
        found: dict[tuple[str, str], dict[str, Answer]] = {}
        for place, kept in (_read_published(path, path.stat().st_mtime_ns) if path.is_file() else {}).items():
            found[place] = dict(kept)
        for dataset, family in self.families():
            if "labels" in family.parameters:
                with closing(self.answers(dataset, family)) as answers:
                    rows = answers.merged()[0].to_pylist()
                new = {key(family.id, row["messages"], row["sample"]): unflatten([*row.values()]) for row in rows}
                found.setdefault((dataset, family.id), {}).update(new)
        lines = [
            {"dataset": dataset, "family": family, "key": name, **flatten(found[dataset, family][name])}
            for dataset, family in sorted(found)
            for name in sorted(found[dataset, family])
        ]
        if not lines:
            return 0
        columns = {name: [line[name] for line in lines] for name in _PUBLISHED}
        types = [pa.field(name, pa.string()) for name in ("dataset", "family", "key")]
        types += [field for field in _arrow() if field.name in _PUBLISHED]
        with _writing(self.root), replacing(path) as temporary:
            pq.write_table(pa.table(columns, schema=pa.schema(types)), temporary, compression="zstd")
        return len(lines)

    def _export(self, dataset: str, family: Family) -> int:
        """Write a family's part anew, with the answers that the databases hold."""
        folder = self.folder(dataset, family)
        answers = self.answers(dataset, family)
        table, added, cost = answers.merged()
        answers.close()
        if not added:
            _sync(folder)
            return 0
        old = [path for paths in _parts(folder) for path in paths]
        number = 1 + max((int(match[1]) for path in old if (match := _PART.fullmatch(path.name))), default=0)
        cost += _read_family(folder)[2] if (folder / "family.json").is_file() else 0.0
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            name = _write_part(folder, number, table)
            content = {field: getattr(family, field) for field in _FAMILY} | {"parameters": dict(family.parameters)}
            content |= {"id": family.id, "version": VERSION, "parts": [name], "answers": table.num_rows, "cost": cost}
            text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
            write_text(folder / "family.json", text)
            _sync(folder)
            for path in [*old, *folder.glob("journal-*.jsonl")]:
                if path.name != name:
                    path.unlink(missing_ok=True)
        return added


class Answers:
    """The answers of one family, for reading; made by :meth:`Ledger.answers`.

    Attributes
    ----------
    path
        The family's folder.
    family
        What the answers depend on.
    """

    def __init__(self, ledger: Ledger, dataset: str, family: Family) -> None:
        self.path = ledger.folder(dataset, family)
        self.family = family
        self.shard = ledger.shard
        self._id = family.id
        self._dataset = dataset
        self._published = ledger._published(dataset, family)
        self._guard = threading.Lock()
        self._own: tuple[sqlite3.Connection, int] | None = None
        # Of files that nobody writes now: where each answer is, and each refusal.
        self._others: dict[str, tuple[sqlite3.Connection, int]] = {}
        # What batches ask, of a shard: nobody submits one while there are shards.
        self._batched: set[str] = set()
        self._refusals: dict[str, tuple[sqlite3.Connection, int]] = {}
        self._connections: dict[sqlite3.Connection, Path] = {}
        for path in ledger._databases():
            match = _SHARD.fullmatch(path.name)
            if path != ledger.path and match and int(match[2]) == self.shard.count:
                continue  # Another shard's requests are not ours.
            self._read(path, own=path == ledger.path)

    def _read(self, path: Path, *, own: bool) -> None:
        base = _connect(path, write=False)
        self._connections[base] = path
        with _errors(path):
            row = base.execute(
                "SELECT number FROM families WHERE dataset = ? AND id = ?", (self._dataset, self._id)
            ).fetchone()
            if row and own:
                self._own = (base, row[0])
            elif row:
                for name, finish in base.execute("SELECT key, finish FROM answers WHERE family = ?", row):
                    (self._refusals if finish == REFUSED else self._others)[name] = (base, row[0])
                keys = base.execute("SELECT key FROM calls WHERE family = ? AND batch IS NOT NULL", row)
                self._batched.update(name for (name,) in keys)

    def close(self) -> None:
        """Close the files; what was read stays."""
        for base in self._connections:
            base.close()
        self._connections, self._own, self._others, self._refusals = {}, None, {}, {}

    def get(self, key: str) -> Answer | None:
        """Return the answer to the request with this key, or None."""
        if (place := self._exported.get(key)) is not None:
            return self._at(place)
        for where in (self._others.get(key), self._own, self._refusals.get(key)):
            if where and (rows := self._select(where, f"{', '.join(COLUMNS)}", " AND key = ?", key)):
                return unflatten(rows[0])
        return self._at(self._refused[key]) if key in self._refused else self._published.get(key)

    def _select(self, where: tuple[sqlite3.Connection, int], what: str, which: str = "", *values: str) -> list[Any]:
        """Return rows of a family's answers in one of the files."""
        base, number = where
        with self._guard, _errors(self._connections.get(base, self.path)):
            query = f"SELECT {what} FROM answers WHERE family = ?{which}"  # noqa: S608
            return base.execute(query, (number, *values)).fetchall()

    def _places(self) -> list[tuple[sqlite3.Connection, int]]:
        """Return where answers are that are not exported."""
        return list(dict.fromkeys([*self._others.values(), *self._refusals.values(), *filter(None, [self._own])]))

    def _at(self, place: int) -> Answer:
        return unflatten([column[place] for column in self._columns])

    def __contains__(self, key: str) -> bool:
        """Say whether the request with this key is answered."""
        return self.get(key) is not None

    def __len__(self) -> int:
        """Return how many answers there are."""
        own = self._select(self._own, "count(*)")[0][0] if self._own else 0
        return len(self._exported) + len(self._others) + int(own)

    def models(self) -> set[str]:
        """Return the model versions that the service reported."""
        found = set(self._columns[list(COLUMNS).index("model")])
        for place in self._places():
            found |= {name for (name,) in self._select(place, "DISTINCT model")}
        return found - {None}

    def frame(self) -> pd.DataFrame:
        """Return all answers, one a row: ``key`` and the columns of the Parquet files."""
        table, _, _ = self.merged()
        frame: pd.DataFrame = table.to_pandas()
        requests = zip(frame["messages"], frame["sample"], strict=True)
        frame.insert(0, "key", [key(self._id, messages, int(sample)) for messages, sample in requests])
        return frame

    def merged(self) -> tuple[pa.Table, int, float]:
        """Return all answers as one sorted table, how many of them no part that is named holds, and what these cost."""
        import pyarrow as pa

        new: dict[str, list[Any]] = {}
        for place in self._places():
            for name, *row in self._select(place, f"key, {', '.join(COLUMNS)}"):
                # Where a request was asked again that had been refused, its answer counts.
                if name not in self._exported and (name not in new or new[name][_FINISH] == REFUSED):
                    new[name] = row
        kept = [*self._exported.values(), *(place for name, place in self._refused.items() if name not in new)]
        columns = [
            [*(old[row] for row in kept), *(row[place] for row in new.values())]
            for place, old in enumerate(self._columns)
        ]
        table = pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=_arrow())
        costs = [row[_COST] for row in new.values()] + [
            self._columns[_COST][row] for row in kept if row in self._strays
        ]
        cost = math.fsum(cost or 0.0 for cost in costs)
        return table.sort_by([("messages", "ascending"), ("sample", "ascending")]), len(costs), cost

    def moved(self) -> Counter[Path]:
        """Return what the answers of each file cost that are exported too: of a request paid twice, that is one."""
        costs = Counter[Path]()
        for place in self._places():
            for name, *row in self._select(place, f"key, {', '.join(COLUMNS)}"):
                where = self._keys.get(name)
                if where is not None and [column[where] for column in self._columns] == row:
                    costs[self._connections[place[0]]] += pico(row[_COST] or 0.0)
        return costs

    @cached_property
    def _exported(self) -> dict[str, int]:
        """Return where the exported answers are, by key: the first of each counts."""
        return {name: place for name, place in self._keys.items() if self._columns[_FINISH][place] != REFUSED}

    @cached_property
    def _refused(self) -> dict[str, int]:
        """Return the same of requests that were refused for good."""
        return {name: place for name, place in self._keys.items() if self._columns[_FINISH][place] == REFUSED}

    @cached_property
    def _keys(self) -> dict[str, int]:
        found: dict[str, int] = {}
        before, start = None, hashlib.sha256()
        for place, (text, sample) in enumerate(zip(*self._columns[:2], strict=True)):
            if text is not before:
                before, start = text, hashlib.sha256(f"{self._id}\0{text}\0".encode("utf-8", "backslashreplace"))
            digest = start.copy()
            digest.update(b"%d" % sample)
            found.setdefault(digest.hexdigest()[:32], place)
        return found

    @cached_property
    def _columns(self) -> list[list[Any]]:
        """Return the exported answers column by column."""
        import pyarrow as pa

        named, strays = ([_read_part(path, self.shard) for path in paths] for paths in _parts(self.path))
        tables = [_arrow().empty_table(), *named, *strays]
        columns: list[list[Any]] = [[] for _ in COLUMNS]
        for row in _journals(self.path):
            for column, name in zip(columns, COLUMNS, strict=True):
                column.append(row[name])
        table = pa.concat_tables(tables)
        messages = table.column("messages").to_pylist()
        # One copy of each text.
        known: dict[str, str] = {}
        first = [known.setdefault(text, text) for text in messages]
        others = [table.column(name).to_pylist() for name in list(COLUMNS)[1:]]
        self._strays = range(len(first) - sum(map(len, strays)), len(first))
        return [[*old, *more] for old, more in zip([first, *others], columns, strict=True)]


Operation = tuple[Callable[..., Any], tuple[Any, ...]]
"""A method of :class:`Writer` whose name begins with ``do_``, and its arguments."""


class Writer(Answers):
    """The answers of one family, for reading and adding; made by :meth:`Ledger.open`."""

    def __init__(
        self, ledger: Ledger, dataset: str, family: Family, owner: str, limit: int | None, elsewhere: int
    ) -> None:
        super().__init__(ledger, dataset, family)
        self._owner, self._limit, self._elsewhere = owner, limit, elsewhere
        self._folder = ledger.root
        # A file that one process has for itself is read through the connection that writes.
        alone = ledger.root is None or ledger.shard.count > 1
        self._writing = self._guard if alone else threading.RLock()
        # What answers and calls come to, within a transaction.
        self._committed: int | None = None
        self._looked: dict[str, float] = {}
        with _errors(ledger.path):
            self._base = _connect(ledger.path if ledger.root else None, write=True)
            self._connections[self._base] = ledger.path
            self._number = self.transact([(self._find, ())])[0]
            if self._own is None or alone:
                reading = self._base if alone else _connect(ledger.path, write=False)
                self._connections[reading] = ledger.path
                self._own = (reading, self._number)
        # What is broken is seen before anything is asked.
        len(self)

    def transact(self, operations: Sequence[Operation]) -> list[Any]:
        """Do operations in one transaction; what each returned is true once this returns: it is on the disk.

        An answer that holds what cannot be kept is the error that its operation returns; it has done nothing.

        Raises
        ------
        FileError
            When nothing can be written. Nothing of it was done then.
        """
        results: list[Any] = []
        with self._writing, _errors(self._connections[self._base]):
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._committed = None
                for operation, arguments in operations:
                    try:
                        results.append(operation(*arguments))
                    except SchemaError as error:
                        results.append(error)
                self._base.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")
                raise
        return results

    def add(self, answers: Iterable[Answer]) -> int:
        """Keep answers that nobody was asked for here; return how many are new.

        Raises
        ------
        SchemaError
            When a value has the wrong type; the others are kept.
        """
        results = self.transact([(self.do_keep, (None, answer)) for answer in answers])
        if error := next((result for result in results if isinstance(result, Exception)), None):
            raise error
        return sum(results)

    def make_room(self) -> None:
        """Free what was kept for the answers that come when the disk is full."""
        for path in (self._folder / ".running").glob(f"*.{self._owner}.spare") if self._folder else ():
            path.unlink(missing_ok=True)

    @property
    def budgeted(self) -> bool:
        """Return whether there is a budget."""
        return self._limit is not None

    def spent(self) -> float:
        """Return what the file's answers cost and its calls may cost, in US dollars."""
        return float(self.transact([(self._sum, ())])[0]) / _DOLLAR

    def _find(self) -> int:
        """Return the number of the family in the file."""
        content = {name: getattr(self.family, name) for name in _FAMILY} | {"parameters": dict(self.family.parameters)}
        self._base.execute(
            "INSERT OR IGNORE INTO families (dataset, id, content) VALUES (?, ?, ?)",
            (self._dataset, self._id, printable(canonical(content))),
        )
        number = self._base.execute(
            "SELECT number FROM families WHERE dataset = ? AND id = ?", (self._dataset, self._id)
        ).fetchone()
        return int(number[0])

    # --- operations ------------------------------------------------------------------------------------------------

    def do_claim(
        self, key: str, worst: float, tokens: float, rates: Rates | None, refused: bool = False
    ) -> Answer | Claimed | Wait | Broke:
        """Reserve a call, unless the request is answered, somebody asks it, or it may not be sent now.

        Parameters
        ----------
        worst
            US dollars that it can cost at most.
        tokens
            Of the request and of its longest answer, for the rate.
        refused
            Reserve it also where the answer is that the request was refused.
        """
        if (row := self._row(key)) is not None and not (refused and row[_FINISH] == REFUSED):
            return unflatten(row)
        if why := self._asked(key):
            return Wait(0.2, why)
        amount = pico(worst)
        if self._limit is not None and self._sum() + amount > self._limit:
            if self._base.execute(_UNDER_WAY + " AND owner = ?", (self._owner,)).fetchone():
                return Wait(0.05, "own")
            if self._others_pay():
                return Wait(0.5, "money")
            return self._broke(self._limit)
        if rates and (seconds := self._pace(rates, tokens)) > 0:
            return Wait(seconds, "pace")
        self._committed = self._sum() + amount
        number = self._base.execute(
            "INSERT INTO calls (family, key, owner, worst, time) VALUES (?, ?, ?, ?, ?)",
            (self._number, key, self._owner, amount, int(time.time())),
        ).lastrowid
        return Claimed(int(number or 0))

    def do_keep(self, call: int | None, answer: Answer) -> bool:
        """Keep an answer instead of its call; return whether the request had none."""
        row = flatten(answer)
        digest = key(self._id, row["messages"], row["sample"])
        if self.shard.count > 1 and not self.shard.holds(answer.messages):
            raise RuntimeError(f"{self.path}: a request of another shard than {self.shard}")
        known = digest in self._exported or digest in self._others
        if row["finish"] == REFUSED:
            known = known or digest in self._refused or digest in self._refusals
        new = not known and self._base.execute(_INSERT, (self._number, digest, *row.values())).rowcount == 1
        if new or call is not None:
            self._base.execute("UPDATE spent SET amount = amount + ?", (pico(row["cost"] or 0.0),))
        if call is not None:
            self._base.execute("DELETE FROM calls WHERE number = ?", (call,))
        self._committed = None
        return new

    def do_lose(self, call: int, charge: float, kind: str) -> None:
        """End a call without an answer: what it may have cost, in US dollars, is a charge."""
        if charge:
            self._base.execute("UPDATE calls SET ended = ?, worst = ? WHERE number = ?", (kind, pico(charge), call))
        else:
            self._base.execute("DELETE FROM calls WHERE number = ?", (call,))
        self._committed = None

    def do_hold(self, rates: Rates, after: float | None, backoff: Callable[[int], float]) -> None:
        """Pause all calls to a service, which says that there are too many.

        Calls that were on their way when a pause began are no reason to make it longer, unless the service says so.
        """
        self._base.execute("INSERT OR IGNORE INTO pace VALUES (?, 0, 0, 0, 0, 0)", (rates.name,))
        paused, pauses = self._base.execute("SELECT paused, pauses FROM pace WHERE name = ?", (rates.name,)).fetchone()
        now = time.time()
        if paused <= now:
            pauses = pauses + 1 if now - paused <= 60 else 1
            paused = now + backoff(pauses) + (after or 0.0)
        elif after is not None:
            paused = max(paused, now + after)
        self._base.execute(
            "UPDATE pace SET paused = ?, pauses = ?, filled = ? WHERE name = ?", (paused, pauses, now, rates.name)
        )

    def do_pass(self, rates: Rates) -> None:
        """Note that a call went through after a pause: the next pause is a short one again."""
        self._base.execute("UPDATE pace SET pauses = 0 WHERE name = ?", (rates.name,))

    # --- batches ---------------------------------------------------------------------------------------------------

    def do_reserve(self, name: str, variant: str, requests: Sequence[tuple[str, str, int, float]]) -> list[str] | Broke:
        """Reserve the calls of a batch: of those that nobody has answered or asks now; return their keys.

        Parameters
        ----------
        requests
            Key, messages, sample, and US dollars that each can cost at most.
        """
        free = [
            (key, messages, sample, pico(worst))
            for key, messages, sample, worst in requests
            if self._row(key) is None and not self._asked(key)
        ]
        amount = sum(worst for *_, worst in free)
        if self._limit is not None and self._sum() + amount > self._limit:
            return self._broke(self._limit)
        if free:
            self._committed = self._sum() + amount
            now = int(time.time())
            self._base.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
                (name, self._number, variant, self._owner, len(free), amount),
            )
            self._base.executemany(
                "INSERT INTO calls (family, key, owner, worst, time, batch, sample, messages) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(self._number, key, self._owner, cost, now, name, n, printable(text)) for key, text, n, cost in free],
            )
        return [key for key, *_ in free]

    def do_adopt(self, name: str) -> bool:
        """Take over a batch that nobody has an id of; return False if its process runs still, or it is gone."""
        row = self._base.execute("SELECT owner FROM batches WHERE name = ? AND id IS NULL", (name,)).fetchone()
        if row is None or (row[0] != self._owner and self._runs(row[0])):
            return False
        self._base.execute("UPDATE batches SET owner = ? WHERE name = ?", (self._owner, name))
        return True

    def do_note(self, name: str, tried: int, batch: str | None) -> None:
        """Note when the service was asked to make a batch, and its id once that is known."""
        self._base.execute("UPDATE batches SET tried = ?, id = ? WHERE name = ?", (tried, batch, name))

    def do_collect(self, name: str, key: str, answer: Answer) -> bool:
        """Keep an answer to a request of a batch instead of its call; return False if somebody else did."""
        call = self._base.execute(
            # By the batch alone, each answer would look at all of its calls.
            "SELECT number, worst FROM calls INDEXED BY call WHERE family = ? AND key = ? AND batch = ?",
            (self._number, key, name),
        ).fetchone()
        if call is not None:
            self.do_keep(call[0], answer)
            self._base.execute("UPDATE batches SET worst = worst - ? WHERE name = ?", (call[1], name))
        return call is not None

    def do_end(self, name: str) -> None:
        """Forget a batch; those of its requests that have no answer cost nothing."""
        self._base.execute("DELETE FROM calls WHERE batch = ?", (name,))
        self._base.execute("DELETE FROM batches WHERE name = ?", (name,))
        self._committed = None

    def asked_in(self, name: str) -> dict[str, tuple[str, int, float]]:
        """Return the requests of a batch that have no answer yet: key -> messages, sample and the most it can cost."""
        with self._writing:
            rows = self._base.execute("SELECT key, messages, sample, worst FROM calls WHERE batch = ?", (name,))
            return {key: (messages, sample, worst / _DOLLAR) for key, messages, sample, worst in rows}

    def _row(self, key: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._base.execute(
            f"SELECT {', '.join(COLUMNS)} FROM answers WHERE family = ? AND key = ?",  # noqa: S608
            (self._number, key),
        ).fetchone()
        return found

    def _asked(self, key: str) -> str | None:
        """Return who asks a request now: ``busy``, ``batch``, or None. A call whose process is gone stays as a charge."""
        if key in self._batched:
            return "batch"
        for owner, batch in self._base.execute(
            "SELECT owner, batch FROM calls WHERE family = ? AND key = ? AND ended IS NULL", (self._number, key)
        ).fetchall():
            if batch:
                return "batch"
            if owner == self._owner or self._runs(owner):
                return "busy"
        return None

    def _runs(self, owner: str) -> bool:
        """Say whether another process is there still, looked up once a second; the calls of one that is gone end."""
        now = time.monotonic()
        if now - self._looked.get(owner, -math.inf) >= 1.0:
            self._looked[owner] = now
            if not self._folder or not any(map(alive, (self._folder / ".running").glob(f"*.{owner}.owner"))):
                del self._looked[owner]
                self._base.execute(
                    "UPDATE calls SET ended = 'killed' WHERE owner = ? AND ended IS NULL AND batch IS NULL", (owner,)
                )
                return False
        return True

    def _others_pay(self) -> bool:
        """Say whether other processes have reserved some of the budget."""
        return any(self._runs(owner) for (owner,) in self._base.execute(_UNDER_WAY).fetchall())

    def _broke(self, limit: int) -> Broke:
        return Broke((self._sum() + self._elsewhere) / _DOLLAR, (limit + self._elsewhere) / _DOLLAR)

    def _sum(self) -> int:
        if self._committed is None:
            self._committed = _committed(self._base)
        return self._committed

    def _pace(self, rates: Rates, tokens: float) -> float:
        """Take what a call needs of a service's rates; return the seconds to wait if it is not there.

        In any t seconds no more passes than rate x (t + 1) / 60, or one call if that is more.
        """
        now = time.time()
        row = self._base.execute(
            "SELECT requests, tokens, filled, paused FROM pace WHERE name = ?", (rates.name,)
        ).fetchone()
        levels, filled, paused = ([row[0], row[1]], row[2], row[3]) if row else ([0.0, 0.0], 0.0, 0.0)
        if filled > now + 1:
            # The clock was put back: neither a pause nor an empty rate lasts until it has caught up.
            filled, paused = now, 0.0
            self._base.execute("UPDATE pace SET filled = ?, paused = 0 WHERE name = ?", (now, rates.name))
        if paused > now:
            return float(paused - now)
        wait = 0.0
        wanted = []
        for place, (rate, amount) in enumerate(((rates.requests, 1.0), (rates.tokens, tokens))):
            if rate is None:
                wanted.append(levels[place])
                continue
            second = rate / self.shard.count / 60
            full = max(1.0, second)
            level = min(full, levels[place] + max(0.0, now - filled) * second)
            wait = max(wait, (min(amount, full) - level) / second)
            wanted.append(level - amount)
        if wait <= 0 and (rates.requests or rates.tokens):
            self._base.execute(
                "INSERT INTO pace VALUES (?, ?, ?, ?, 0, 0) ON CONFLICT (name) DO UPDATE "
                "SET requests = excluded.requests, tokens = excluded.tokens, filled = excluded.filled",
                (rates.name, *wanted, now),
            )
        return wait


def alive(path: Path) -> bool:
    """Say whether the process that holds a lock is there still."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


@contextmanager
def opened(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    """Give a connection to a ledger's file, and close it."""
    with _errors(path):
        base = _connect(path, write=write)
        try:
            yield base
        finally:
            base.close()


def _connect(path: Path | None, *, write: bool) -> sqlite3.Connection:
    """Connect to a ledger's file, or to one in memory; a new one is laid out, or empty for readers."""
    with _errors(path or Path("memory")):
        if path is not None and write:
            path.parent.mkdir(parents=True, exist_ok=True)
        # Readers may have to roll back what a killed process left.
        mode = "rwc" if write else "rw"
        if path is not None and not (
            write or os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists()
        ):
            # Nobody writes here; to read a file in WAL mode would take a file beside it.
            mode = "ro&immutable=1"
        where = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode={mode}"
        base = sqlite3.connect(
            where, timeout=_SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False, uri=path is not None
        )
        if write:
            # WAL needs memory that processes share, which a network's file system has not.
            shared = path is None or not _SHARD.fullmatch(path.name)
            base.execute(f"PRAGMA journal_mode = {'WAL' if shared else 'TRUNCATE'}")
            base.execute("PRAGMA synchronous = FULL")
            base.execute("BEGIN IMMEDIATE")
            if base.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _SCHEMA.split(";"):
                    base.execute(statement)
            base.execute("COMMIT")
        found = base.execute("PRAGMA user_version").fetchone()[0]
        if found != VERSION:
            base.close()
            if found == 0:
                return _connect(None, write=True)
            raise FileError(
                f"the ledger is of version {found}",
                where=str(path),
                expected=f"version {VERSION}",
                hint="Use the version of comperdial that wrote it",
            )
        return base


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says into a :class:`FileError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        hint = "Free some space, and run again: what was answered is kept" if "full" in str(error) else None
        raise FileError(f"the ledger cannot be used: {error}", where=str(path), hint=hint) from error
    except sqlite3.DatabaseError as error:
        raise FileError(
            f"the ledger is damaged: {error}",
            where=str(path),
            expected="a file that only comperdial writes",
            hint="Restore it from a copy; `sqlite3 FILE .recover` saves what can be read",
        ) from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror})", where=str(error.filename or path)) from error


def _sync(folder: Path) -> None:
    """Return once a family is on the disk, which is nowhere else from then on: files, and the names of all folders."""
    for path in (*folder.iterdir(), folder, *folder.parents[:3]):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _patiently(path: Path, why: str) -> Iterator[None]:
    """Hold a lock; say so when that means to wait."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.warning("%s; waiting", why)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _committed(base: sqlite3.Connection) -> int:
    # What batches may cost stands once for all of their calls, which are many.
    amount = base.execute(
        "SELECT (SELECT amount FROM spent) + (SELECT coalesce(sum(worst), 0) FROM calls WHERE batch IS NULL) "
        "+ (SELECT coalesce(sum(worst), 0) FROM batches)"
    ).fetchone()[0]
    return int(amount)


def _total(path: Path) -> int:
    """Return what a file's answers and calls come to."""
    with opened(path, write=False) as base:
        return _committed(base)


def _read_family(folder: Path) -> tuple[Family, list[str] | None, float]:
    """Return what a folder is for, which parts it has (None: nobody wrote that down), and what its answers cost.

    Raises
    ------
    FileError
        When the file is not what the folder's name says.
    """
    path = folder / "family.json"
    content = read_json(path)
    if not isinstance(content, dict) or not {"id", *_FAMILY} <= content.keys():
        raise FileError("not the description of a family", where=str(path), expected="id, " + ", ".join(_FAMILY))
    if (version := content.get("version", 1)) not in (1, VERSION):
        raise FileError(
            f"the ledger is of version {version!r}",
            where=str(path),
            expected=f"version 1 or {VERSION}",
            hint="Use the version of comperdial that wrote it",
        )
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
    if version == VERSION:
        parts, cost = content.get("parts"), content.get("cost")
        if (
            not isinstance(parts, list)
            or not all(isinstance(name, str) and _PART.fullmatch(name) for name in parts)
            or not isinstance(cost, int | float)
        ):
            raise FileError("the parts are not named", where=str(path), expected="parts, a list of names, and cost")
        return family, parts, float(cost)
    import pyarrow.parquet as pq

    costs = [pq.read_table(part, columns=["cost"]).column(0).to_pylist() for part in folder.glob("part-*.parquet")]
    costs.append([row["cost"] for row in _journals(folder)])
    return family, None, math.fsum(cost or 0.0 for column in costs for cost in column)


def _journals(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the answers that version 1 left beside the parts where its process was killed."""
    for path in sorted(folder.glob("journal-*.jsonl")):
        yield from _lines(path, COLUMNS.keys())


def _lines(path: Path, fields: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of version 1, if there is one; half a last line, which a killed process left, is none.

    Raises
    ------
    FileError
        When another line is broken.
    """
    content = path.read_bytes() if path.is_file() else b""
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and row.keys() >= set(fields):
                yield row
                continue
        raise FileError(
            "the line is broken",
            where=f"{path}, line {number}",
            expected="a JSON object with " + ", ".join(fields),
            hint="Restore the file, or delete the line: what it says is asked again",
        )


_PUBLISHED = ("dataset", "family", "key", *(name for name in COLUMNS if name not in ("messages", "latency", "origin")))


@lru_cache(maxsize=2)
def _read_published(path: Path, _: int) -> dict[tuple[str, str], dict[str, Answer]]:
    """Return answers without prompts, by data set and family, then by key; anew when the file was written since."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(_PUBLISHED))
        rows = table.to_pylist() if table.column_names == list(_PUBLISHED) else None
    except (OSError, pa.ArrowException) as error:
        raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error
    if rows is None:
        raise FileError("the file holds no answers", where=str(path), expected="columns " + ", ".join(_PUBLISHED))
    found: dict[tuple[str, str], dict[str, Answer]] = {}
    for row in rows:
        values = [row.get(name, "" if name == "messages" else None) for name in COLUMNS]
        found.setdefault((row["dataset"], row["family"]), {})[row["key"]] = unflatten(values)
    return found


def _parts(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return a family's parts, and those that nothing names: an export that was killed left them, or a merge.

    Raises
    ------
    FileError
        When one is missing, or there is one without the file that says what it is.
    """
    there = sorted(path for path in folder.glob("part-*.parquet") if _PART.fullmatch(path.name))
    if not (folder / "family.json").is_file():
        if there:
            raise FileError(
                "no such file", where=str(folder / "family.json"), hint="Run `dvc checkout` or copy it again"
            )
        return [], []
    _, names, _ = _read_family(folder)
    if names is None:
        return there, []
    for name in names:
        if not (folder / name).is_file():
            raise FileError(
                "the part is missing",
                where=str(folder / name),
                expected="every part that family.json names",
                hint="Run `dvc checkout` or copy it again; to ask everything in it anew, delete the folder",
            )
    return [folder / name for name in names], [path for path in there if path.name not in names]


def _arrow() -> pa.Schema:
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema([pa.field(name, types[kind], nullable=null) for name, (kind, null) in COLUMNS.items()])


def _read_part(path: Path, shard: Shard) -> pa.Table:
    """Read a part, or the answers in it that are a shard's: of the others, a row group at a time is in memory.

    Raises
    ------
    FileError
        When the bytes are not those that were written once, or are no answers.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = _PART.fullmatch(path.name)
    try:
        # Not a file of Python's: Arrow lets go of it in threads of its own, which may outlive the interpreter.
        with pa.OSFile(str(path)) as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()[:8]
            if name is None or digest != name[2]:
                raise FileError(
                    f"the file is altered or cut: its sha256 begins with {digest}",
                    where=str(path),
                    expected="the digits in its name, as parts are never rewritten",
                    hint="Run `dvc checkout` or copy it again",
                )
            data.seek(0)
            file = pq.ParquetFile(data)
            if file.schema_arrow.names != list(COLUMNS):
                raise FileError("the file holds no answers", where=str(path), expected="columns " + ", ".join(COLUMNS))
            if shard.count == 1:
                return file.read().cast(_arrow())
            groups = [_arrow().empty_table()]
            for number in range(file.num_row_groups):
                table = file.read_row_group(number).cast(_arrow())
                mine = [shard.holds(text) for text in table.column("messages").to_pylist()]
                groups.append(table.filter(pa.array(mine)))
            return pa.concat_tables(groups)
    except (OSError, pa.ArrowException) as error:
        raise FileError("not a readable Parquet file", where=str(path), expected="Parquet") from error


def _write_part(folder: Path, number: int, table: pa.Table) -> str:
    """Write a part; return its name."""
    import pyarrow.parquet as pq

    with replacing(folder / "part.parquet") as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=12, row_group_size=65_536)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()[:8]
    name = f"part-{number:04d}-{digest}.parquet"
    (folder / "part.parquet").rename(folder / name)
    return name
