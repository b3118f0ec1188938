"""An SQLite file with every answer, and charges for calls without an answer.

Answers exported to Parquet, for example by ``dvc pull``, are read from the folder of the SQLite file. Prompts contain a data
set's texts, which we may not be allowed to redistribute: exported answers have only their keys.
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
    """The answers in a file; a context manager. Changes are on disk when :meth:`committed` returns.

    Parameters
    ----------
    path
        The SQLite file, or the folder with ``answers.sqlite``.
    dataset
        The data set of new answers.
    """

    def __init__(self, path: Path, dataset: str = "") -> None:
        self.path = path if path.suffix == ".sqlite" else path / "answers.sqlite"
        self.dataset = dataset
        self._commit: asyncio.Task[None] | None = None
        # The file is created on the first write; reading leaves no trace.
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
        """Return US dollars spent: on all answers, and on calls without one that were or may have been billed."""
        # Computed on first use: a plan opens the file hundreds of times.
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
        """Open the file for new answers; raise a JudgeError if another process has it open."""
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
            # Left by a killed process: what was billed is unknown.
            self._database.execute("UPDATE charges SET why = 'killed' WHERE why = ?", (_UNDER_WAY,))
            try:
                yield
            finally:
                self._database.commit()

    def get(self, key: str) -> Answer | None:
        """Return the answer to a request; None if there is none."""
        row = self._database.execute(_GET, (key,)).fetchone()
        row = row or next((rows[key][_ANSWER] for rows, _ in self._exported if key in rows), None)
        if row is None:
            return None
        text, finish, read, written, model, logprobs, cost = row
        return Answer(text, finish, read, written, model, json.loads(logprobs) if logprobs else None, cost)

    def has(self, dataset: str, family: str) -> bool:
        """Return whether there is any answer of a family for a data set."""
        query = "SELECT 1 FROM answers WHERE dataset = ? AND family = ? LIMIT 1"
        if self._database.execute(query, (dataset, family)).fetchone():
            return True
        return any((dataset, family) in families for _, families in self._exported)

    @cached_property
    def _exported(self) -> list[tuple[dict[str, Row], set[tuple[str, str]]]]:
        return [_read_once(file, file.stat().st_mtime_ns) for file in sorted(self.path.parent.glob("*.parquet"))]

    # A call: reserve, then keep or release

    def reserve(self, key: str, worst: float) -> int | None:
        """Reserve the maximum cost of a call; return the charge's id, or None for a free call."""
        if not worst:
            return None
        self.spent += worst
        return self._database.execute(f"{_CHARGE} VALUES (?, ?, ?)", (key, worst, _UNDER_WAY)).lastrowid

    def keep(self, request: Request, answer: Answer, charge: int | None = None) -> None:
        """Store an answer, replacing an older one, and settle the charge of its call."""
        self.release(charge)
        self.spent += answer.cost or 0.0
        # The cost of the replaced answer stays spent.
        replaced = f"{_CHARGE} SELECT key, cost, 'replaced' FROM answers WHERE key = ? AND cost > 0"  # noqa: S608
        self._database.execute(replaced, (request.key,))
        logprobs = None if answer.logprobs is None else json.dumps(dict(answer.logprobs))
        names = (self.dataset, request.family, request.key, request.sample)
        usage = (answer.finish, answer.input_tokens, answer.output_tokens, answer.model)
        row = (*names, answer.text, *usage, logprobs, answer.cost, int(time.time()), request.messages)
        self._database.execute(f"INSERT OR REPLACE {_INSERT}", row)

    def release(self, charge: int | None, *, billed: str | None = None) -> None:
        """Settle the charge of a failed call; ``billed`` gives the reason why it may still have been billed."""
        if charge is None:
            return
        if billed:
            self._database.execute("UPDATE charges SET why = ? WHERE id = ?", (billed, charge))
        else:
            delete = "DELETE FROM charges WHERE id = ? RETURNING amount"
            self.spent -= self._database.execute(delete, (charge,)).fetchone()[0]

    async def committed(self) -> None:
        """Wait until changes are on disk; concurrent callers share one commit."""
        if self._commit is None:
            self._commit = asyncio.create_task(self._commit_soon())
        # A waiter may be cancelled, but others wait for the same commit.
        await asyncio.shield(self._commit)

    async def _commit_soon(self) -> None:
        await asyncio.sleep(0)  # let others in this turn of the event loop join the commit
        self._commit = None
        self._database.commit()

    # Other files

    def export(self, path: Path, *, texts: bool = False, dataset: str | None = None) -> int:
        """Add answers to a Parquet file; return how many it then contains.

        Model-written answers may quote the texts of their prompts. They are left out unless ``texts`` is set: by default only
        labels with probabilities are exported. ``dataset`` restricts the export to one data set.
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
        """Import the answers of a Parquet file; return how many are new."""
        rows = [(*row, None) for row in _read(path).values()]
        with self.asking():
            before = len(self)
            self._database.executemany(f"INSERT OR IGNORE {_INSERT}", rows)
            self.__dict__.pop("spent", None)
            return len(self) - before


def _read(path: Path) -> dict[str, Row]:
    """Return the answers of a Parquet file by key, with :data:`COLUMNS`."""
    try:
        frame = pd.read_parquet(path, columns=[*COLUMNS])
    except (OSError, ValueError) as error:
        raise FileError(f"no answers ({error})", where=str(path), expected=f"columns {', '.join(COLUMNS)}") from error
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return {row[2]: row for row in rows}


@lru_cache(maxsize=16)
def _read_once(path: Path, _changed: int) -> tuple[dict[str, Row], set[tuple[str, str]]]:
    """Return the answers of a Parquet file by key, and their data sets and families."""
    rows = _read(path)
    return rows, {row[:2] for row in rows.values()}
