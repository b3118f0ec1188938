"""Dialogues to compare: who is judged, and the utterances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_jsonl, write_table

_FIELDS = ("dialogue_id", "system_id", "judged", "utterances")

Utterances = tuple[tuple[str, str], ...]
"""Speaker and text of each utterance, in order."""


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
    def key(self) -> tuple[str, str]:
        """Return dialogue and system, which name it."""
        return self.dialogue_id, self.system_id

    def said_by_judged(self) -> list[str]:
        """Return the utterances of the judged speaker."""
        return [text for speaker, text in self.utterances if speaker == self.judged]


def check(holds: object, problem: str, where: str, expected: str) -> None:
    """Raise :class:`SchemaError` unless a condition holds."""
    if not holds:
        raise SchemaError(problem, where=where, expected=expected)


def read_dialogues(path: str | Path) -> dict[tuple[str, str], Dialogue]:
    """Read a JSON Lines file of dialogues, by dialogue and system.

    Raises
    ------
    SchemaError
        Names the line at fault.
    """
    found: dict[tuple[str, str], Dialogue] = {}
    for number, record in read_jsonl(path):
        where = f"{path}, line {number}"
        dialogue = _dialogue(record, where)
        problem = f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r} a second time"
        expected = "each dialogue once for each system that is judged in it"
        check(dialogue.key not in found, problem, where, expected)
        found[dialogue.key] = dialogue
    check(found, "holds no dialogue", str(path), f"a line each, with {', '.join(_FIELDS)}")
    return found


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> None:
    """Write dialogues as JSON Lines."""
    import pandas as pd

    rows = [
        (*one.key, one.judged, [{"speaker": speaker, "text": text} for speaker, text in one.utterances])
        for one in dialogues
    ]
    write_table(path, pd.DataFrame(rows, columns=list(_FIELDS)))


def utterances(value: Any, where: str, speaker: str = "speaker") -> Utterances:  # noqa: ANN401
    """Check a list of objects with a text and a speaker, which the key ``speaker`` names, and return its utterances."""
    form = f"{{{speaker}, text}}"
    check(isinstance(value, list) and value, f"the utterances are {value!r:.80}", where, f"a list of {form}")
    for number, one in enumerate(value, start=1):
        texts = [one.get(key) for key in (speaker, "text")] if isinstance(one, dict) else [None]
        filled = all(isinstance(text, str) and text.strip() for text in texts)
        check(filled, f"utterance {number} is {one!r:.80}", where, f"{form}, neither empty")
    return tuple((one[speaker], one["text"]) for one in value)


def _dialogue(record: Mapping[str, Any], where: str) -> Dialogue:
    for name in _FIELDS[:3]:
        filled = isinstance(record.get(name), str) and record[name].strip()
        check(filled, f"{name!r} is {record.get(name)!r}", where, "a name that is not empty")
    said = utterances(record.get("utterances"), where)
    speakers = dict.fromkeys(speaker for speaker, _ in said)
    problem = f"the judged speaker {record['judged']!r} says nothing"
    check(record["judged"] in speakers, problem, where, f"one of {', '.join(speakers)}")
    return Dialogue(record["dialogue_id"], record["system_id"], record["judged"], said)
