"""Dialogues to compare: who is judged, and the utterances; read from a file of dialogues, or from a folder of tables."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import BaseModel, Field

from comperdial.challenge.annotation.source import is_whole, read_responses
from comperdial.challenge.records import Filled, checked, refuse_repeated
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_jsonl, read_table, write_table

log = logging.getLogger(__name__)

Utterances = tuple[tuple[str, str], ...]
"""Speaker and text of each utterance, in order."""
Key = tuple[str, str]
"""Dialogue and system."""
CONTROL_COLUMNS = ("better_dialogue_id", "better_system_id", "worse_dialogue_id", "worse_system_id")


@dataclass(frozen=True)
class Dialogue:
    """One dialogue of which one speaker is judged; a line of a file of dialogues.

    Attributes
    ----------
    dialogue_id
        Its name; if two systems talk to each other, the file has the dialogue twice, once for each.
    system_id
        Who is judged.
    judged
        That one's name among the speakers.
    utterances
        Speaker and text of each, in order.
    """

    dialogue_id: str
    system_id: str
    judged: str
    utterances: Utterances

    @property
    def key(self) -> Key:
        """Return dialogue and system, which name it."""
        return self.dialogue_id, self.system_id

    def said_by_judged(self) -> list[str]:
        """Return the utterances of the judged speaker."""
        return [text for speaker, text in self.utterances if speaker == self.judged]


@dataclass(frozen=True)
class Pair:
    """Two dialogues that are compared, in the order of their systems and names; :func:`pair_of` makes one.

    ``answer`` is ``first`` or ``second``, the better one, if that is known: the pair is a control then.
    """

    first: Dialogue
    second: Dialogue
    answer: str | None = None

    @property
    def id(self) -> str:
        """Return its name, a hash of the names of the two: the same in every design."""
        return hashlib.sha256(json.dumps([self.first.key, self.second.key]).encode()).hexdigest()[:12]


def pair_of(one: Dialogue, other: Dialogue, better: Dialogue | None = None) -> Pair:
    """Return two dialogues as a pair; ``better`` is one of them, or None if that is not known."""
    first, second = sorted((one, other), key=lambda dialogue: (dialogue.system_id, dialogue.dialogue_id))
    return Pair(first, second, None if better is None else "first" if better.key == first.key else "second")


class Utterance(BaseModel):
    """One utterance of a record."""

    speaker: Filled
    text: Filled


class _Record(BaseModel):
    dialogue_id: Filled
    system_id: Filled
    judged: Filled
    utterances: Annotated[list[Utterance], Field(min_length=1)]


def read_dialogues(path: str | Path) -> dict[Key, Dialogue]:
    """Read a JSON Lines file of dialogues, by dialogue and system.

    Raises
    ------
    SchemaError
        Names the line at fault.
    """
    read: dict[Key, Dialogue] = {}
    seen: dict[Key, str] = {}
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        entry = checked(_Record, record, where)
        utterances = tuple((utterance.speaker, utterance.text) for utterance in entry.utterances)
        dialogue = Dialogue(entry.dialogue_id, entry.system_id, entry.judged, utterances)
        if not dialogue.said_by_judged():
            expected = f"one of {', '.join(dict.fromkeys(speaker for speaker, _ in utterances))}"
            raise SchemaError(f"the judged speaker {entry.judged!r} says nothing", where=where, expected=expected)
        refuse_repeated(seen, dialogue.key, where, f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r}")
        read[dialogue.key] = dialogue
    if not read:
        raise SchemaError("holds no dialogue", where=str(path), expected="a JSON object a line")
    return read


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> None:
    """Write dialogues as JSON Lines."""
    rows = [
        (*one.key, one.judged, [{"speaker": speaker, "text": text} for speaker, text in one.utterances])
        for one in dialogues
    ]
    write_table(path, pd.DataFrame(rows, columns=[*_Record.model_fields]))


def read_all(paths: Sequence[str | Path]) -> dict[Key, Dialogue]:
    """Read files of dialogues and folders of tables (contexts and responses: logs of people and systems).

    Raises
    ------
    ComperdialError
        Names file and line at fault.
    """
    read: dict[Key, Dialogue] = {}
    for path in map(Path, paths):
        for key, dialogue in (_read_tables(path) if path.is_dir() else read_dialogues(path)).items():
            if read.setdefault(key, dialogue) != dialogue:
                problem = f"dialogue {key[0]!r} of {key[1]!r} a second time, with other words"
                raise SchemaError(problem, where=str(path), expected="each dialogue once for each system")
    return read


def read_controls(path: str | Path, dialogues: Mapping[Key, Dialogue]) -> list[Pair]:
    """Read pairs with known answers: a CSV with the columns of :data:`CONTROL_COLUMNS`, which names two of ``dialogues``.

    Raises
    ------
    SchemaError
        Names the record at fault: a control without an answer, or with an unknown dialogue.
    """
    controls = []
    for number, row in enumerate(read_table(path).to_dict("records"), start=1):
        where = f"{path}, record {number}"
        columns = checked(dict[str, str], {name: row.get(name) for name in CONTROL_COLUMNS}, where)
        keys = [(columns[f"{side}_dialogue_id"], columns[f"{side}_system_id"]) for side in ("better", "worse")]
        if unknown := [key for key in keys if key not in dialogues]:
            problem = f"dialogue {unknown[0][0]!r} of {unknown[0][1]!r} does not exist"
            raise SchemaError(problem, where=where, expected="a dialogue of the files that are given")
        better, worse = (dialogues[key] for key in keys)
        if better.utterances == worse.utterances:
            raise SchemaError("a dialogue is compared with itself", where=where, expected="two dialogues")
        controls.append(pair_of(better, worse, better))
    return controls


def _read_tables(folder: Path) -> dict[Key, Dialogue]:
    """Make a dialogue of each system's responses in each dialogue, with the histories between them."""
    read: dict[Key, Dialogue] = {}
    left_out, foreign = [], 0
    for (_, name, system), rows in read_responses(folder).groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        lines, own = _joined(rows) if is_whole(rows) else ([], True)
        if not lines:
            left_out.append(f"{name} by {system}")
            continue
        foreign += not own
        read[str(name), str(system)] = Dialogue(str(name), str(system), "B", tuple(lines))
    if left_out:
        message = "%s: %d dialogues left out, because turns are missing or do not join (the first: %s)"
        log.warning(message, folder, len(left_out), left_out[0])
    if foreign:
        log.warning(
            "%s: in %d of %d dialogues the partner answers somebody else: the system was given the history of another "
            "speaker B, whose utterances its own responses replace here",
            folder,
            foreign,
            len(read),
        )
    if not read:
        raise SchemaError("holds no whole dialogue", where=str(folder), expected="contexts and responses")
    return read


def _joined(responses: pd.DataFrame) -> tuple[list[tuple[str, str]], bool]:
    """Return the lines of a dialogue, none if its turns do not join; and whether its histories are its own.

    A history holds all lines before it, or, as in ConTurE, the end of them; or all lines of another speaker B, whose
    utterances follow those of the history before.
    """
    lines: list[tuple[str, str]] = []
    before: list[tuple[str, str]] = []
    own = True
    # The first response of each turn, if a system answered it several times.
    first = responses.drop_duplicates("turn")
    for utterances, response in zip(first["history"], first["response"], strict=True):
        history = [(utterance["speaker"], utterance["text"]) for utterance in utterances]
        if history[: len(lines)] == lines:
            lines += history[len(lines) :]
        elif len(history) > len(before) and history[: len(before)] == before:
            own = False
            lines += history[len(before) + 1 :]
        else:
            shared = (n for n in range(min(len(lines), len(history)), 0, -1) if lines[-n:] == history[:n])
            if not (overlap := next(shared, 0)):
                return [], own
            lines += history[overlap:]
        lines.append(("B", response))
        before = history
    return lines, own
