"""From files of dialogues and submissions to a folder of tables, with a report of what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from comperdial import schema
from comperdial.challenge.dialogues import read_dialogues
from comperdial.challenge.roster import read_roster
from comperdial.challenge.submissions import read_submissions
from comperdial.challenge.tables import Answer, make_setting, responses_of
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json, write_json

# Responses that are held at once.
_PART = 16_384


def build(
    name: str,
    dialogues: str | Path,
    submissions: Sequence[str | Path],
    folder: str | Path,
    *,
    roster: str | Path | None = None,
    runs: str | Path | None = None,
) -> dict[str, str]:
    """Write the tables systems, contexts, personas and responses, and ``submissions.json``.

    Parameters
    ----------
    name
        The data set's name.
    dialogues, submissions
        As :func:`read_dialogues` and :func:`read_submissions` take them.
    folder
        Where to write.
    roster
        Whose tracks and descriptions to take.
    runs
        The report of ``comperdial challenge run``, whose failures are told again in ``submissions.json``.

    Returns
    -------
    dict
        System or file -> why it was left out.

    Raises
    ------
    SchemaError
        When no submission is complete.
    """
    read = read_dialogues(dialogues)
    found = read_submissions(submissions, read)
    where = ", ".join(map(str, submissions))
    if not found.files:
        problems = "; ".join(found.problems.values())
        raise SchemaError("no submission that is complete", where=where, expected="at least one", hint=problems or None)
    known = read_roster(roster).systems if roster else {}
    systems = {s: known.get(s) or about for s, about in found.systems.items() if s in found.files}
    setting = make_setting(name, read, systems, where=where)
    with schema.writing(Path(folder) / "responses.parquet", "responses") as add:
        for part in _parts(found.answers(), _PART):
            add(responses_of(name, part, where=where))
    for table, frame in setting.items():
        schema.write(Path(folder) / f"{table}.parquet", frame, table)
    failed = dict(found.problems)
    if runs:
        failed |= {run["system_id"]: run["problem"] for run in read_json(runs)["agents"] if run["problem"]}
    write_json(Path(folder) / "submissions.json", {"systems": len(systems), "failed": failed})
    return failed


def _parts(answers: Iterator[Answer], size: int) -> Iterator[list[Answer]]:
    while part := list(islice(answers, size)):
        yield part
