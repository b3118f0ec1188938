"""Submissions: a system's responses to all turns, one JSON object a line; read as data and nothing else.

A line is {"dialogue_id": …, "turn": 0, "response": …}. The system is the file's name without ``.jsonl``, or what each
line says under ``system_id`` (one file for many systems, as the runner writes it). ``systems.csv`` beside the files may
say of each system what kind it is, its track and its description.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.challenge.dialogues import Dialogue, items
from comperdial.errors import ComperdialError, SchemaError
from comperdial.files import printable, read_table, write_text

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FIELDS = ("dialogue_id", "turn", "response")
_KINDS = ("agent", "human")


@dataclass
class Submissions:
    """The submissions of a folder.

    Attributes
    ----------
    responses
        system -> (dialogue_id, turn) -> response; each complete.
    systems
        system -> kind, track, description.
    problems
        system or file -> why it was left out.
    """

    responses: dict[str, dict[tuple[str, int], str]] = field(default_factory=dict)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def is_name(text: str) -> bool:
    """Return whether a system, and the file of its submission, may be named so."""
    return bool(_NAME.fullmatch(text))


def write_submission(
    path: str | Path, responses: Mapping[str, Mapping[tuple[str, int], str]], *, named: bool = False
) -> None:
    """Write the responses of one system, or of several into one file with ``system_id`` on each line.

    ``named`` writes ``system_id`` for a single system too, whose name is then not the file's.
    """
    lines = []
    for system, answers in responses.items():
        name = {"system_id": system} if named or len(responses) > 1 else {}
        for (dialogue_id, turn), response in answers.items():
            record = {**name, "dialogue_id": dialogue_id, "turn": turn, "response": response}
            lines.append(json.dumps(record, ensure_ascii=False))
    write_text(path, "".join(f"{line}\n" for line in lines))


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
    wanted = set(items(list(dialogues)))
    found = Submissions()
    for file in _files(paths):
        if file.name == "systems.csv":
            found.systems |= _read_systems(file)
            continue
        try:
            submitted = _read_file(file)
        except ComperdialError as error:
            _leave_out(found, file.stem, file, error)
            continue
        for system, rows in submitted.items():
            try:
                if system in found.responses:
                    raise SchemaError(f"system {system!r} a second time", where=str(file), expected="each in one file")
                found.responses[system] = _complete(rows, wanted, file)
            except SchemaError as error:
                _leave_out(found, system, file, error)
    for system in sorted(set(found.systems) - set(found.responses) - set(found.problems)):
        log.warning("systems.csv names %s, which has no submission", system)
    for system in found.responses:
        found.systems.setdefault(system, {"kind": "agent", "track": None, "description": ""})
    for system, problem in found.problems.items():
        log.warning("submission %s was left out: %s", system, problem)
    return found


def _leave_out(found: Submissions, system: str, file: Path, error: ComperdialError) -> None:
    """Name what is left out by its system; by its file too, where that system stands or was left out already."""
    known = system in found.responses or system in found.problems
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


def _read_file(path: Path) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    if not _NAME.fullmatch(path.stem):
        raise SchemaError(f"the name {path.stem!r}", where=str(path), expected="letters, digits, dots, - and _")
    frame = read_table(path)
    if missing := [name for name in _FIELDS if name not in frame]:
        raise SchemaError(
            f"no field {', '.join(missing)}",
            where=str(path),
            expected=", ".join(_FIELDS),
            hint=f"It has: {', '.join(map(str, frame.columns))}",
        )
    systems: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    named = "system_id" in frame
    columns = [*_FIELDS, *(["system_id"] if named else [])]
    for number, row in enumerate(frame[columns].itertuples(index=False, name=None), start=1):
        record = dict(zip(columns, row, strict=True))
        system = record.get("system_id", path.stem)
        if not isinstance(system, str) or not _NAME.fullmatch(system):
            raise SchemaError(f"system_id {system!r}", where=f"{path}, record {number}", expected="a name as a file's")
        systems.setdefault(system, []).append((number, record))
    return systems


def _complete(
    rows: Iterable[tuple[int, dict[str, Any]]], wanted: set[tuple[str, int]], path: Path
) -> dict[tuple[str, int], str]:
    answers: dict[tuple[str, int], str] = {}
    for number, record in rows:
        where = f"{path}, record {number}"
        turn, response = record["turn"], record["response"]
        whole = (
            isinstance(turn, int | float) and not isinstance(turn, bool) and math.isfinite(turn) and turn == int(turn)
        )
        key = (str(record["dialogue_id"]), int(turn) if whole else -1)
        if key not in wanted:
            raise SchemaError(
                f"dialogue {record['dialogue_id']!r}, turn {turn!r}",
                where=where,
                expected="a dialogue and a turn (from 0) of this challenge",
            )
        if key in answers:
            raise SchemaError(f"dialogue {key[0]!r}, turn {key[1]} a second time", where=where, expected="it once")
        if not isinstance(response, str) or not response.strip():
            raise SchemaError(f"the response is {response!r:.60}", where=where, expected="a text that is not empty")
        answers[key] = response
    if missing := sorted(wanted - set(answers)):
        name, turn = missing[0]
        raise SchemaError(
            f"{len(missing)} of {len(wanted)} responses are missing, the first: dialogue {name!r}, turn {turn}",
            where=str(path),
            expected="a response to every turn",
        )
    return {key: answers[key] for key in sorted(answers)}


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
        found[system] = {"kind": kind, "track": track or None, "description": description}
    return found
