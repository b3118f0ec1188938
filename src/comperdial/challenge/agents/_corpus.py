"""Read the JSONL files that agents draw on, without pandas: an agent has to start quickly."""

from __future__ import annotations

from typing import NamedTuple

from comperdial.core.errors import FileError
from comperdial.core.files import parse_json, read_text


class Pair(NamedTuple):
    """An utterance and a response to it."""

    context: str
    response: str


def read_records(path: str, keys: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the records of a JSONL file, each of which holds non-empty texts under ``keys``.

    Raises
    ------
    FileError
        When the file cannot be read, holds no record, or a line is not such a record (named by its number).
    """
    expected = "an object with texts " + ", ".join(keys)
    records = []
    # Not splitlines(): it also breaks at characters such as U+2028, which JSON strings may hold.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        record = parse_json(line, str(path), expected=expected, line=number)
        if not isinstance(record, dict) or not all(isinstance(record.get(k), str) and record[k].strip() for k in keys):
            raise FileError("not a record of this file", where=where, expected=expected)
        records.append(record)
    if not records:
        raise FileError("no records", where=path, expected=expected)
    return records


def read_pairs(path: str) -> list[Pair]:
    """Return the (context, response) pairs of a corpus such as ``data/demo/corpus.jsonl``."""
    return [Pair(record["context"], record["response"]) for record in read_records(path, ("context", "response"))]
