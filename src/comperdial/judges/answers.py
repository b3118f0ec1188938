"""One SQLite file with every answer, and with every charge of a call that has none (yet).

Answers that were exported to Parquet, such as those that ``dvc pull`` brings, are read where they are: in the folder of the
SQLite file. Prompts hold a data set's texts, which may not be ours to pass on: exported answers have keys in their place.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import pandas as pd
from filelock import FileLock, Timeout

from comperdial.core.errors import FileError
from comperdial.core.files import replacing
from comperdial.judges.requests import Answer, JudgeError, Request

COLUMNS = (
    "dataset", "family", "key", "sample", "answer", "finish", "input_tokens", "output_tokens", "model", "logprobs",
    "cost", "time",
)  # fmt: skip
"""Of an answer in Parquet; in SQLite, ``messages`` too."""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS answers ({", ".join(COLUMNS).replace("key", "key TEXT PRIMARY KEY")}, messages);
CREATE INDEX IF NOT EXISTS families ON answers (dataset, family);
CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, key TEXT NOT NULL, amount REAL NOT NULL, why TEXT NOT NULL);
"""
_INSERT = f"INTO answers VALUES (?{', ?' * len(COLUMNS)})"
# The fields of `Answer`.
_ANSWER = slice(4, 11)
_GET = f"SELECT {', '.join(COLUMNS[_ANSWER])} FROM answers WHERE key = ?"  # noqa: S608
_CHARGE = "INSERT INTO charges (key, amount, why) "
_UNDER_WAY = "under way"
Row = tuple[Any, ...]


class AnswerFile:
    """The answers in a file; a context manager. Changes are on the disk when :meth:`committed` returns.

    Parameters
    ----------
    path
        The SQLite file, or the folder of one called ``answers.sqlite``.
    dataset
        Which data set new answers are about.
    """

    def __init__(self, path: Path, dataset: str = "") -> None:
        self.path = path if path.suffix == ".sqlite" else path / "answers.sqlite"
        self.dataset = dataset
        self._commit: asyncio.Task[None] | None = None
        # A file is made when something is kept: reading leaves no traces.
        self._connect(str(self.path) if self.path.exists() else ":memory:")

    def _connect(self, name: str) -> None:
        try:
            self._database = sqlite3.connect(name, timeout=60)
            self._database.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_SCHEMA}")
            self.__dict__.pop("spent", None)
        except sqlite3.Error as error:
            problem = f"cannot be used ({error})"
            raise FileError(problem, where=name, expected="an SQLite file of answers") from error

    @cached_property
    def spent(self) -> float:
        """US dollars: of all answers, and of calls that were or may have been billed without one."""
        # Counted when it is first asked for: a plan opens the file hundreds of times.
        query = "SELECT (SELECT TOTAL(cost) FROM answers) + (SELECT TOTAL(amount) FROM charges)"
        return float(self._database.execute(query).fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.commit()
        self._database.close()

    def __len__(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM answers").fetchone()[0])

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Open the file for new answers; JudgeError if another process does, since one at a time may."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            problem, hint = (
                "another process is asking for answers and keeps them here",
                "Wait for it, or name another file",
            )
            raise JudgeError(problem, where=str(self.path), hint=f"{hint} by --answers") from None
        with lock:
            self._database.close()
            self._connect(str(self.path))
            # Of a process that was killed: it is not known what was billed.
            self._database.execute("UPDATE charges SET why = 'killed' WHERE why = ?", (_UNDER_WAY,))
            try:
                yield
            finally:
                self._database.commit()

    def get(self, key: str) -> Answer | None:
        """Return the answer to a request; None if it has none."""
        row = self._database.execute(_GET, (key,)).fetchone()
        row = row or next((rows[key][_ANSWER] for rows, _ in self._exported if key in rows), None)
        if row is None:
            return None
        text, finish, read, written, model, logprobs, cost = row
        return Answer(text, finish, read, written, model, json.loads(logprobs) if logprobs else None, cost)

    def has(self, dataset: str, family: str) -> bool:
        """Return whether there is any answer of a family about a data set."""
        query = "SELECT 1 FROM answers WHERE dataset = ? AND family = ? LIMIT 1"
        if self._database.execute(query, (dataset, family)).fetchone():
            return True
        return any((dataset, family) in families for _, families in self._exported)

    @cached_property
    def _exported(self) -> list[tuple[dict[str, Row], set[tuple[str, str]]]]:
        return [_read_once(file, file.stat().st_mtime_ns) for file in sorted(self.path.parent.glob("*.parquet"))]

    # A call: reserve, then keep or release

    def reserve(self, key: str, worst: float) -> int | None:
        """Set aside what a call may cost at worst; return the number of the charge, None of a free call."""
        if not worst:
            return None
        self.spent += worst
        return self._database.execute(f"{_CHARGE} VALUES (?, ?, ?)", (key, worst, _UNDER_WAY)).lastrowid

    def keep(self, request: Request, answer: Answer, charge: int | None = None) -> None:
        """Keep an answer, which may replace an older one, and settle the charge of its call."""
        self.release(charge)
        self.spent += answer.cost or 0.0
        # What the older one cost is spent all the same.
        replaced = f"{_CHARGE} SELECT key, cost, 'replaced' FROM answers WHERE key = ? AND cost > 0"  # noqa: S608
        self._database.execute(replaced, (request.key,))
        logprobs = None if answer.logprobs is None else json.dumps(dict(answer.logprobs))
        names = (self.dataset, request.family, request.key, request.sample)
        usage = (answer.finish, answer.input_tokens, answer.output_tokens, answer.model)
        row = (*names, answer.text, *usage, logprobs, answer.cost, int(time.time()), request.messages)
        self._database.execute(f"INSERT OR REPLACE {_INSERT}", row)

    def release(self, charge: int | None, *, billed: str | None = None) -> None:
        """Settle the charge of a call without an answer; ``billed`` says why it may have been billed all the same."""
        if charge is None:
            return
        if billed:
            self._database.execute("UPDATE charges SET why = ? WHERE id = ?", (billed, charge))
        else:
            delete = "DELETE FROM charges WHERE id = ? RETURNING amount"
            self.spent -= self._database.execute(delete, (charge,)).fetchone()[0]

    async def committed(self) -> None:
        """Wait until what was changed is on the disk: all that wait share one commit."""
        if self._commit is None:
            self._commit = asyncio.create_task(self._commit_soon())
        # Who waits may be cancelled; the commit is also the others'.
        await asyncio.shield(self._commit)

    async def _commit_soon(self) -> None:
        await asyncio.sleep(0)  # for all that have something to keep in this turn of the loop
        self._commit = None
        self._database.commit()

    # Other files

    def export(self, path: Path, *, texts: bool = False, dataset: str | None = None) -> int:
        """Write answers to a Parquet file, beside those that it has already; return how many it has then.

        Answers that a model wrote may repeat the texts that it was given. They are left out, unless ``texts``: only
        labels with their probabilities are exported. ``dataset`` is the data set that they are about; None: all.
        """
        where = " WHERE (? IS NULL OR dataset = ?)" + ("" if texts else " AND logprobs IS NOT NULL")
        query = f"SELECT {', '.join(COLUMNS)} FROM answers{where}"  # noqa: S608
        rows = _read(path) if path.exists() else {}
        rows |= {row[2]: row for row in self._database.execute(query, (dataset, dataset))}
        frame = pd.DataFrame(list(rows.values()), columns=[*COLUMNS]).sort_values([*COLUMNS[:3]], ignore_index=True)
        types = dict.fromkeys(("sample", "input_tokens", "output_tokens", "time"), "Int64") | {"cost": "float64"}
        with replacing(path) as temporary:
            frame.astype(types).to_parquet(temporary, index=False, compression="zstd")
        return len(frame)

    def add(self, path: Path) -> int:
        """Take over the answers of a Parquet file; return how many are new."""
        rows = [(*row, None) for row in _read(path).values()]
        with self.asking():
            before = len(self)
            self._database.executemany(f"INSERT OR IGNORE {_INSERT}", rows)
            self.__dict__.pop("spent", None)
            return len(self) - before


def _read(path: Path) -> dict[str, Row]:
    """Return the answers of a Parquet file by key, as :data:`COLUMNS` has them."""
    try:
        frame = pd.read_parquet(path, columns=[*COLUMNS])
    except (OSError, ValueError) as error:
        raise FileError(f"no answers ({error})", where=str(path), expected=f"columns {', '.join(COLUMNS)}") from error
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return {row[2]: row for row in rows}


@lru_cache(maxsize=16)
def _read_once(path: Path, _changed: int) -> tuple[dict[str, Row], set[tuple[str, str]]]:
    """Return the answers of a Parquet file by key, and which data sets and families they are of."""
    rows = _read(path)
    return rows, {row[:2] for row in rows.values()}
