"""Submissions: a system's responses to all turns, one JSON object per line, and their conversion to tables.

A line is {"dialogue_id": …, "turn": 0, "response": …}. The system is the file's name without ``.jsonl`` or ``.jsonl.gz``, or
``system_id`` in each line if a file has several systems. An optional ``systems.csv`` next to the files gives the kind, track
and description of each system.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, make_tables, read_dialogues
from comperdial.challenge.records import Filled, Name, checked
from comperdial.core.errors import ComperdialError, FileError, SchemaError
from comperdial.core.files import check_input, parse_json, printable, read_table, write_json, write_text

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ALLOWED = "letters, digits, dots, - and _"
Item = tuple[str, int]
"""Dialogue and turn."""


@dataclass
class Submissions:
    """The validated submissions of a challenge."""

    # System -> dialogue and turn -> response, for every turn, in the order of the dialogues.
    responses: dict[str, dict[Item, str]] = field(default_factory=dict)
    # System -> kind, track, description.
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    # System or file -> reason why it was left out.
    problems: dict[str, str] = field(default_factory=dict)


class _Record(BaseModel):
    dialogue_id: Name
    turn: Annotated[int, Field(ge=0)]
    response: Filled


class _System(BaseModel):
    system_id: Name
    kind: Literal["agent", "human"]
    track: str
    description: str


def write_submission(path: str | Path, responses: Mapping[Item, str]) -> None:
    """Write the responses of a system, which is the file's name without ``.jsonl``."""
    records = ({"dialogue_id": name, "turn": turn, "response": text} for (name, turn), text in responses.items())
    write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def read_submissions(paths: Sequence[str | Path], dialogues: Sequence[Dialogue]) -> Submissions:
    """Read files and folders of submissions; invalid ones are left out with a reason.

    A folder provides all files (``.jsonl``, ``.jsonl.gz``) directly in it, sorted by name, and ``systems.csv``. The first of
    two submissions by the same system counts. An invalid ``systems.csv``, which the organiser writes, raises a
    :class:`SchemaError`.
    """
    items = [(dialogue.dialogue_id, turn) for dialogue in dialogues for turn in range(dialogue.turns)]
    read = Submissions()

    def leave_out(system: str, file: Path, error: ComperdialError) -> None:
        # Named by its file, too, if that system was already read or left out.
        known = system in read.responses or system in read.problems
        name = printable(f"{system} ({file.name})" if known else system)
        read.problems[name] = printable(str(error))
        log.warning("submission %s was left out: %s", name, read.problems[name])

    for file in _files(paths):
        if file.name == "systems.csv":
            for number, record in enumerate(read_table(file).to_dict("records"), start=2):
                row = checked(_System, record, f"{file}, line {number}")
                about = {"kind": row.kind, "track": row.track or None, "description": row.description}
                read.systems[row.system_id] = about
            continue
        stem = file.name.removesuffix(".gz").removesuffix(".jsonl")
        try:
            by_system = _by_system(file, stem)
        except ComperdialError as error:
            leave_out(stem, file, error)
            continue
        for system, lines in by_system.items():
            try:
                if system in read.responses:
                    raise SchemaError(f"system {system!r} a second time", where=str(file), expected="each in one file")
                read.responses[system] = _responses(lines, items, file)
            except SchemaError as error:
                leave_out(system, file, error)
    for system in sorted({*read.systems} - {*read.responses, *read.problems}):
        log.warning("systems.csv names %s, which has no submission", system)
    for system in read.responses:
        read.systems.setdefault(system, {"kind": "agent", "track": None, "description": ""})
    return read


def is_submission(path: Path) -> bool:
    """Return whether a file is named like a submission or ``systems.csv``."""
    return path.name.endswith((".jsonl", ".jsonl.gz")) or path.name == "systems.csv"


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if is_submission(file))
            for file in sorted(path.iterdir()):
                if not is_submission(file) and file.suffix in (".json", ".txt", ".csv", ".parquet"):
                    log.warning("%s is no submission: its name does not end in .jsonl", printable(str(file)))
        elif path.is_file():
            yield path
        else:
            raise SchemaError("no such file or folder", where=str(path), expected="submissions: .jsonl files")


def _by_system(file: Path, stem: str) -> dict[str, list[tuple[str, Any]]]:
    """Return the lines of a file by system, with their locations."""
    if not is_submission(file) or not NAME.fullmatch(stem):
        expected = f"{_ALLOWED}, and .jsonl or .jsonl.gz at the end"
        raise SchemaError(f"the name {file.name!r}", where=str(file), expected=expected)
    systems: dict[str, list[tuple[str, Any]]] = {}
    named = None
    # Not splitlines(), which also breaks at characters such as U+2028 that JSON strings may contain.
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(check_input(file), "rt", encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                where = f"{file}, line {number}"
                record = parse_json(line, str(file), expected="a JSON object", line=number)
                given = checked(dict[str, Any], record, where)
                named = "system_id" in given if named is None else named
                if ("system_id" in given) != named:
                    raise SchemaError(
                        "system_id in some lines only", where=where, expected="it in every line or in none"
                    )
                system = checked(Name, given.get("system_id", stem), f"{where}, system_id")
                if not NAME.fullmatch(system):
                    raise SchemaError(f"system_id {system!r}", where=where, expected=_ALLOWED)
                systems.setdefault(system, []).append((where, given))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read ({error})", where=str(file), expected="UTF-8 text") from error
    if not systems:
        raise FileError("no records", where=str(file), expected="one JSON object a line")
    return systems


def _responses(records: Iterable[tuple[str, Any]], items: Sequence[Item], file: Path) -> dict[Item, str]:
    """Return a system's single response to each item, in order."""
    answers: dict[Item, str] = dict.fromkeys(items, "")
    for where, record in records:
        answer = checked(_Record, record, where)
        item, name = (answer.dialogue_id, answer.turn), f"dialogue {answer.dialogue_id!r}, turn {answer.turn}"
        if item not in answers:
            raise SchemaError(name, where=where, expected="a dialogue and a turn (from 0) of this challenge")
        if answers[item]:
            raise SchemaError(f"{name} a second time", where=where, expected="it once")
        answers[item] = answer.response
    if missing := [item for item, response in answers.items() if not response]:
        first = f"dialogue {missing[0][0]!r}, turn {missing[0][1]}"
        problem = f"{len(missing)} of {len(items)} responses are missing, the first: {first}"
        raise SchemaError(problem, where=str(file), expected="a response to every turn")
    return answers


def read_challenge(
    name: str, dialogues: str | Path, submissions: Sequence[str | Path], folder: str | Path
) -> dict[str, str]:
    """Read a challenge as data set ``name``; return the systems or files left out, with the reason.

    Writes the tables systems, contexts, personas and responses to ``folder``, and ``submissions.json`` with what was left out.
    Raises a :class:`SchemaError` if no submission is complete.
    """
    gold = read_dialogues(dialogues)
    read = read_submissions(submissions, gold)
    where = ", ".join(map(str, submissions))
    if not read.responses:
        problems = "; ".join(read.problems.values())
        raise SchemaError("no submission that is complete", where=where, expected="at least one", hint=problems or None)
    systems = {system: read.systems[system] for system in read.responses}
    for table, frame in make_tables(name, gold, systems, read.responses, where=where).items():
        schema.write(Path(folder) / f"{table}.parquet", frame, table)
    write_json(Path(folder) / "submissions.json", {"systems": len(systems), "failed": read.problems})
    return read.problems
