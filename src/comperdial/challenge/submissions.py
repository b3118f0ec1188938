"""Submissions: a system's responses to all turns, one JSON object a line.

A line is {"dialogue_id": …, "turn": 0, "response": …}. The system is the file's name without ``.jsonl`` or ``.jsonl.gz``, or
what each line has under ``system_id``, in one file for many systems. ``systems.csv`` beside the files may give the kind, track
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

from comperdial.challenge.dialogues import Dialogue
from comperdial.challenge.records import Filled, Name, checked
from comperdial.core.errors import ComperdialError, FileError, SchemaError
from comperdial.core.files import check_input, parse_json, printable, read_table, write_text

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
SUFFIXES = (".jsonl", ".jsonl.gz")
Item = tuple[str, int]
"""Dialogue and turn."""
_Line = tuple[str, dict[str, Any]]
"""File and line, and the record there."""


@dataclass
class Submissions:
    """The submissions of a challenge, checked.

    Attributes
    ----------
    responses
        system -> (dialogue_id, turn) -> response, to every turn, in the order of the dialogues.
    systems
        system -> kind, track, description.
    problems
        system or file -> why it was left out.
    """

    responses: dict[str, dict[Item, str]] = field(default_factory=dict)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
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
    """Write the responses of one system; the file's name without ``.jsonl`` is the system's."""
    records = ({"dialogue_id": name, "turn": turn, "response": text} for (name, turn), text in responses.items())
    write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def read_submissions(paths: Sequence[str | Path], dialogues: Sequence[Dialogue]) -> Submissions:
    """Read files and folders of submissions; one that is wrong is left out and named, the others are taken.

    Of two submissions by the same system the first counts: files in the order given, those of a folder by name.

    Parameters
    ----------
    paths
        Files (``.jsonl``, ``.jsonl.gz``) and folders; of a folder, every such file directly in it, and ``systems.csv``.
    dialogues
        What has to be answered: each turn of each dialogue, once.

    Raises
    ------
    SchemaError
        When ``systems.csv``, which is the organiser's and no submission, is wrong.
    """
    items = [(dialogue.dialogue_id, turn) for dialogue in dialogues for turn in range(dialogue.turns)]
    read = Submissions()

    def leave_out(system: str, file: Path, error: ComperdialError) -> None:
        # By its file too, if that system was taken or left out already.
        known = system in read.responses or system in read.problems
        name = printable(f"{system} ({file.name})" if known else system)
        read.problems[name] = printable(str(error))
        log.warning("submission %s was left out: %s", name, read.problems[name])

    for file in _files(paths):
        if file.name == "systems.csv":
            read.systems |= _read_systems(file)
            continue
        try:
            records = _by_system(file)
        except ComperdialError as error:
            leave_out(_stem(file), file, error)
            continue
        for system, lines in records.items():
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
    """Return whether a file's name is that of a submission or of ``systems.csv``."""
    return path.name.endswith(SUFFIXES) or path.name == "systems.csv"


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if is_submission(file):
                    yield file
                elif file.suffix in (".json", ".txt", ".csv", ".parquet"):
                    log.warning("%s is no submission: its name does not end in .jsonl", printable(str(file)))
        elif path.is_file():
            yield path
        else:
            raise SchemaError("no such file or folder", where=str(path), expected="submissions: .jsonl files")


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".jsonl")


def _by_system(file: Path) -> dict[str, list[_Line]]:
    """Return the records of a file by system; what is no record spoils the file."""
    if not file.name.endswith(SUFFIXES) or not NAME.fullmatch(_stem(file)):
        expected = "letters, digits, dots, - and _, and .jsonl or .jsonl.gz at the end"
        raise SchemaError(f"the name {file.name!r}", where=str(file), expected=expected)
    lines = list(_lines(file))
    if not lines:
        raise FileError("no records", where=str(file), expected="one JSON object a line")
    systems: dict[str, list[_Line]] = {}
    for where, record in lines:
        if ("system_id" in record) != ("system_id" in lines[0][1]):
            raise SchemaError("system_id in some lines only", where=where, expected="it in every line or in none")
        system = str(checked(Name, record.get("system_id", _stem(file)), f"{where}, system_id"))
        if not NAME.fullmatch(system):
            raise SchemaError(f"system_id {system!r}", where=where, expected="letters, digits, dots, - and _")
        systems.setdefault(system, []).append((where, record))
    return systems


def _lines(file: Path) -> Iterator[_Line]:
    # Not splitlines(): it also breaks at characters such as U+2028, which JSON strings may hold.
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(check_input(file), "rt", encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    record = parse_json(line, str(file), expected="a JSON object", line=number)
                    yield f"{file}, line {number}", checked(dict[str, Any], record, f"{file}, line {number}")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read ({error})", where=str(file), expected="UTF-8 text") from error


def _responses(records: Iterable[_Line], items: Sequence[Item], file: Path) -> dict[Item, str]:
    """Return a system's responses, in the order of the items; one for each."""
    answers: dict[Item, str] = dict.fromkeys(items, "")
    for where, record in records:
        answer = checked(_Record, record, where)
        item = (str(answer.dialogue_id), answer.turn)
        if item not in answers:
            expected = "a dialogue and a turn (from 0) of this challenge"
            raise SchemaError(f"dialogue {item[0]!r}, turn {item[1]}", where=where, expected=expected)
        if answers[item]:
            raise SchemaError(f"dialogue {item[0]!r}, turn {item[1]} a second time", where=where, expected="it once")
        answers[item] = answer.response
    if missing := [item for item, response in answers.items() if not response]:
        first = f"dialogue {missing[0][0]!r}, turn {missing[0][1]}"
        problem = f"{len(missing)} of {len(items)} responses are missing, the first: {first}"
        raise SchemaError(problem, where=str(file), expected="a response to every turn")
    return answers


def _read_systems(path: Path) -> dict[str, dict[str, Any]]:
    systems: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(read_table(path).to_dict("records"), start=2):
        row = checked(_System, record, f"{path}, line {number}")
        systems[row.system_id] = {"kind": row.kind, "track": row.track or None, "description": row.description}
    return systems
