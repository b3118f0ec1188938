"""Answers as flat rows, and the files to which running judges append them."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.errors import FileError, SchemaError
from comperdial.core.files import printable
from comperdial.judges._disk import sync_folder, writing_errors
from comperdial.judges._locks import take
from comperdial.judges.base import Answer, Completion, canonical

log = logging.getLogger(__name__)

Row = dict[str, Any]

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
"""What a row holds, in order: the type of each column and whether it may be None."""

PATTERN = "journal-*.jsonl"

_MOST = 2**63


def flatten(answer: Answer) -> Row:
    """Return an answer as a row that JSON and Parquet can hold: halves of surrogate pairs are spelled out.

    Raises
    ------
    SchemaError
        When a value is not of its column's type. One that got into a journal could not be folded later.
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
    if problem := _problem(row):
        raise SchemaError(problem, where="an answer for the ledger")
    return {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}


def unflatten(row: Mapping[str, Any]) -> Answer:
    """Return the answer that a row holds."""
    completion = Completion(
        text=row["answer"],
        finish=row["finish"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        model=row["model"],
        logprobs=None if row["logprobs"] is None else json.loads(row["logprobs"]),
    )
    return Answer(row["messages"], row["sample"], completion, row["cost"], row["latency"], row["time"], row["origin"])


def _problem(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a row."""
    for name, (kind, optional) in COLUMNS.items():
        value = row[name]
        if value is None and optional:
            continue
        if type(value) is not kind:
            return f"{name} is {value!r}, which is no {kind.__name__}"
        if isinstance(value, int) and not -_MOST <= value < _MOST:
            return f"{name} is {value!r}, which has too many digits"
    return None


class Place(NamedTuple):
    """Where a row lies."""

    journal: Journal
    offset: int
    length: int

    def read(self) -> Row:
        """Return the row."""
        return self.journal.read(self.offset, self.length)


class Journal:
    """The file of one process; nobody else writes to it. Its lock says that the process is there."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"journal-{secrets.token_hex(8)}.jsonl"
        self.broken = False
        self._size = 0
        with writing_errors(self.path):
            # Locked before it has its name: nobody is to take it for one that was left.
            hidden = self.path.with_name(f".{self.path.name}")
            self._file = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            take(self._file, self.path, wait=False)
            hidden.rename(self.path)
            sync_folder(folder)

    def append(self, rows: Iterable[Row]) -> list[Place]:
        """Append rows; return where each lies, once all of them are on the disk.

        Raises
        ------
        FileError
            When they cannot be written. The file may then end in half a line, so nothing more may be appended to it.
        """
        lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
        try:
            with writing_errors(self.path):
                rest = memoryview(b"".join(lines))
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                os.fsync(self._file)
        except BaseException:
            self.broken = True
            raise
        places = []
        for line in lines:
            places.append(Place(self, self._size, len(line)))
            self._size += len(line)
        return places

    def read(self, offset: int, length: int) -> Row:
        """Return the row that was appended there."""
        row: Row = json.loads(os.pread(self._file, length, offset))
        return row

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


@contextmanager
def left(path: Path) -> Iterator[bool]:
    """Say whether a journal was left by a process that is gone; nobody else is told so meanwhile."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        # Somebody may have made a part of it, and removed it, between the two.
        yield take(file, path, wait=False) and _is(path, file)
    finally:
        os.close(file)


def _is(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def read_journal(path: Path, *, warn: bool) -> Iterator[Row]:
    """Yield the rows of a journal; a last line without its end, which a killed process leaves, is no row.

    Raises
    ------
    FileError
        When another line is broken; names the line.
    FileNotFoundError
        When the journal was folded into a part meanwhile.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                if warn:
                    log.warning(
                        "%s, line %d: ignored, as it ends in the middle: its process was stopped, or writes it now",
                        path,
                        number,
                    )
                return
            yield _parse(line, f"{path}, line {number}")


def _parse(line: bytes, where: str) -> Row:
    expected = "a JSON object with " + ", ".join(COLUMNS)
    hint = "Somebody altered this file: restore it, or delete the line to have the request asked again"
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FileError("the line is broken", where=where, expected=expected, hint=hint) from error
    if not isinstance(row, dict) or row.keys() != COLUMNS.keys():
        raise FileError("the line is no answer", where=where, expected=expected, hint=hint)
    if problem := _problem(row):
        raise FileError(problem, where=where, hint=hint)
    return row
