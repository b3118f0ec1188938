"""Submissions: a system's responses to all turns, one JSON object a line; read as data and nothing else.

A line is {"dialogue_id": …, "turn": 0, "response": …}. The system is the file's name without ``.jsonl``, or what each
line says under ``system_id`` (one file for many systems, as the runner writes it). ``systems.csv`` beside the files may
say of each system what kind it is, its track and its description.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeGuard

from comperdial.challenge.dialogues import Dialogue, items
from comperdial.challenge.tables import Answer
from comperdial.core.errors import ComperdialError, FileError, SchemaError
from comperdial.core.files import printable, read_jsonl, read_table, replacing
from comperdial.core.names import plain_name

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FIELDS = ("dialogue_id", "turn", "response")
_KINDS = ("agent", "human")

Item = tuple[str, int]


@dataclass
class Submissions:
    """The submissions of a folder, checked; the responses themselves stay in their files.

    Attributes
    ----------
    files
        system -> the file that holds its responses, of which each turn has one.
    systems
        system -> kind, track, description.
    problems
        system or file -> why it was left out.
    """

    files: dict[str, Path] = field(default_factory=dict)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def answers(self) -> Iterator[Answer]:
        """Read the responses of all that is complete, line by line: file by file, in the file's order."""
        systems: dict[Path, set[str]] = {}
        for system, file in self.files.items():
            systems.setdefault(file, set()).add(system)
        for file, chosen in systems.items():
            for _, record in _records(file):
                system = str(plain_name(record.get("system_id", file.stem)))
                if system in chosen:
                    yield system, str(plain_name(record["dialogue_id"])), int(record["turn"]), record["response"]

    @property
    def responses(self) -> dict[str, dict[tuple[str, int], str]]:
        """All responses at once, for sets that fit into memory: system -> (dialogue_id, turn) -> response, in order."""
        found: dict[str, dict[tuple[str, int], str]] = {system: {} for system in self.files}
        for system, dialogue, turn, response in self.answers():
            found[system][dialogue, turn] = response
        return {system: dict(sorted(answers.items())) for system, answers in found.items()}


def is_name(text: str) -> bool:
    """Return whether a system, and the file of its submission, may be named so."""
    return bool(_NAME.fullmatch(text))


def write_submission(path: str | Path, responses: Mapping[str, Mapping[Item, str]], *, named: bool = False) -> None:
    """Write the responses of one system, or of several into one file with ``system_id`` on each line.

    ``named`` writes ``system_id`` for a single system too, whose name is then not the file's.
    """
    with writing_submission(path, named=named or len(responses) > 1) as add:
        for system, answers in responses.items():
            add(system, answers)


@contextmanager
def writing_submission(path: str | Path, *, named: bool = False) -> Iterator[Callable[[str, Mapping[Item, str]], None]]:
    """Give a function that writes the responses of a system; without one, no file is written."""
    with ExitStack() as stack:
        file: IO[str] | None = None

        def add(system: str, answers: Mapping[Item, str]) -> None:
            nonlocal file
            if file is None:
                temporary = stack.enter_context(replacing(path))
                file = stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))
            name = {"system_id": system} if named else {}
            for (dialogue_id, turn), response in answers.items():
                record = {**name, "dialogue_id": dialogue_id, "turn": turn, "response": response}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")

        yield add


def read_submissions(paths: Sequence[str | Path], dialogues: Sequence[Dialogue]) -> Submissions:
    """Read files and folders of submissions; one that is wrong is left out and named, and the others stand.

    Of two submissions by the same system the first stands: files in the order given, those of a folder by name.

    Parameters
    ----------
    paths
        Files (``.jsonl``) and folders; of a folder, every ``.jsonl`` directly in it, and ``systems.csv``.
    dialogues
        What has to be answered: each turn of each dialogue, once.

    Raises
    ------
    SchemaError
        When ``systems.csv``, which is the organiser's and no submission, is wrong.
    """
    wanted = {item: place for place, item in enumerate(sorted(items(list(dialogues))))}
    found = Submissions()
    for file in _files(paths):
        if file.name == "systems.csv":
            found.systems |= _read_systems(file)
            continue
        try:
            submitted = _check_file(file, wanted)
        except ComperdialError as error:
            _leave_out(found, file.stem, file, error)
            continue
        for system, checked in submitted.items():
            try:
                if system in found.files:
                    raise SchemaError(f"system {system!r} a second time", where=str(file), expected="each in one file")
                checked.complete()
                found.files[system] = file
            except SchemaError as error:
                _leave_out(found, system, file, error)
    for system in sorted(set(found.systems) - set(found.files) - set(found.problems)):
        log.warning("systems.csv names %s, which has no submission", system)
    for system in found.files:
        found.systems.setdefault(system, {"kind": "agent", "track": None, "description": ""})
    for system, problem in found.problems.items():
        log.warning("submission %s was left out: %s", system, problem)
    return found


def _leave_out(found: Submissions, system: str, file: Path, error: ComperdialError) -> None:
    """Name what is left out by its system; by its file too, where that system stands or was left out already."""
    known = system in found.files or system in found.problems
    found.problems[printable(f"{system} ({file.name})" if known else system)] = printable(str(error))


def _files(paths: Iterable[str | Path]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            for other in sorted(p for p in path.iterdir() if p.suffix in (".json", ".txt", ".csv", ".parquet")):
                if other.name != "systems.csv":
                    log.warning("%s is no submission: its name does not end in .jsonl", printable(str(other)))
            files += sorted(p for p in path.iterdir() if p.suffix == ".jsonl" or p.name == "systems.csv")
        elif path.is_file():
            files.append(path)
        else:
            raise SchemaError("no such file or folder", where=str(path), expected="submissions: .jsonl files")
    return files


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of each record; JSONL line by line, so that it may be larger than memory."""
    if path.suffix == ".jsonl":
        yield from enumerate((record for _, record in read_jsonl(path)), start=1)
    else:
        yield from enumerate(read_table(path).to_dict("records"), start=1)


def _check_file(path: Path, wanted: Mapping[Item, int]) -> dict[str, _Checked]:
    """Check a file, and return what each of its systems has answered; what is no record spoils the file."""
    if not _NAME.fullmatch(path.stem):
        raise SchemaError(f"the name {path.stem!r}", where=str(path), expected="letters, digits, dots, - and _")
    fields: dict[str, None] = {}
    systems: dict[str, _Checked] = {}
    problem: SchemaError | None = None
    unnamed = None
    for number, record in _records(path):
        fields |= dict.fromkeys(record)
        where = f"{path}, record {number}"
        if "system_id" not in record:
            unnamed = unnamed or where
        system: Any = plain_name(record.get("system_id", path.stem))
        if problem is None and not (isinstance(system, str) and _NAME.fullmatch(system)):
            problem = SchemaError(f"system_id {system!r}", where=where, expected="a name as a file's")
        if problem is None:
            systems.setdefault(system, _Checked(path, wanted)).add(record, where)
    if not fields:
        raise FileError("no records", where=str(path), expected="one JSON object a line")
    if missing := [name for name in _FIELDS if name not in fields]:
        raise SchemaError(
            f"no field {', '.join(missing)}",
            where=str(path),
            expected=", ".join(_FIELDS),
            hint=f"It has: {', '.join(fields)}",
        )
    if unnamed and "system_id" in fields:
        raise SchemaError("no system_id", where=unnamed, expected="it in every record, as in others of this file")
    if problem is not None:
        raise problem
    return systems


class _Checked:
    """What a system has answered in a file: a byte a turn, and the first thing that is wrong."""

    def __init__(self, path: Path, wanted: Mapping[Item, int]) -> None:
        self._path = path
        self._wanted = wanted
        self._answered = bytearray(len(wanted))
        self._problem: SchemaError | None = None

    def add(self, record: Mapping[str, Any], where: str) -> None:
        """Check a record; after the first that is wrong the others do not matter."""
        if self._problem is None:
            try:
                self._add(record, where)
            except SchemaError as error:
                self._problem = error

    def _add(self, record: Mapping[str, Any], where: str) -> None:
        dialogue, turn, response = (record.get(name) for name in _FIELDS)
        key = (str(plain_name(dialogue)), int(turn) if _is_whole(turn) else -1)
        place = self._wanted.get(key)
        if place is None:
            raise SchemaError(
                f"dialogue {dialogue!r}, turn {turn!r}",
                where=where,
                expected="a dialogue and a turn (from 0) of this challenge",
            )
        if self._answered[place]:
            raise SchemaError(f"dialogue {key[0]!r}, turn {key[1]} a second time", where=where, expected="it once")
        if not isinstance(response, str) or not response.strip():
            raise SchemaError(f"the response is {response!r:.60}", where=where, expected="a text that is not empty")
        self._answered[place] = 1

    def complete(self) -> None:
        """Raise what is wrong, or missing."""
        if self._problem is not None:
            raise self._problem
        if missing := self._answered.count(0):
            name, turn = next(item for item, place in self._wanted.items() if not self._answered[place])
            raise SchemaError(
                f"{missing} of {len(self._wanted)} responses are missing, the first: dialogue {name!r}, turn {turn}",
                where=str(self._path),
                expected="a response to every turn",
            )


def _is_whole(turn: Any) -> TypeGuard[int | float]:  # noqa: ANN401
    return type(turn) is int or (isinstance(turn, float) and turn.is_integer())


def _read_systems(path: Path) -> dict[str, dict[str, Any]]:
    frame = read_table(path)
    columns = ("system_id", "kind", "track", "description")
    if missing := [name for name in columns if name not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=str(path), expected=", ".join(columns))
    found: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(frame[list(columns)].itertuples(index=False, name=None), start=2):
        system, kind, track, description = row
        if kind not in _KINDS:
            raise SchemaError(f"kind {kind!r}", where=f"{path}, line {number}", expected=" or ".join(_KINDS))
        found[str(plain_name(system))] = {"kind": kind, "track": track or None, "description": description}
    return found
