"""Dialogues to compare: who is judged, and what was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_jsonl, write_table

_FIELDS = ("dialogue_id", "system_id", "judged", "utterances")


@dataclass(frozen=True)
class Dialogue:
    """One dialogue of which one speaker is judged; a line of a file of dialogues.

    Attributes
    ----------
    dialogue_id
        Its name; where two systems talk to each other, the dialogue is there twice, once for each.
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
    utterances: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[str, str]:
        """Return what names it: dialogue and system."""
        return self.dialogue_id, self.system_id

    def said_by_judged(self) -> list[str]:
        """Return what the judged speaker said."""
        return [text for speaker, text in self.utterances if speaker == self.judged]


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
        if dialogue.key in found:
            raise SchemaError(
                f"dialogue {dialogue.dialogue_id!r} of {dialogue.system_id!r} a second time",
                where=where,
                expected="each dialogue once for each system that is judged in it",
            )
        found[dialogue.key] = dialogue
    if not found:
        raise SchemaError("holds no dialogue", where=str(path), expected=f"a line each, with {', '.join(_FIELDS)}")
    return found


def write_dialogues(path: str | Path, dialogues: Iterable[Dialogue]) -> None:
    """Write dialogues as JSON Lines."""
    import pandas as pd

    rows = [
        {
            "dialogue_id": one.dialogue_id,
            "system_id": one.system_id,
            "judged": one.judged,
            "utterances": [{"speaker": speaker, "text": text} for speaker, text in one.utterances],
        }
        for one in dialogues
    ]
    write_table(path, pd.DataFrame(rows, columns=list(_FIELDS)))


def _dialogue(record: Mapping[str, Any], where: str) -> Dialogue:
    for name in _FIELDS[:3]:
        if not isinstance(record.get(name), str) or not record[name].strip():
            raise SchemaError(f"{name!r} is {record.get(name)!r}", where=where, expected="a name that is not empty")
    said = record.get("utterances")
    if not isinstance(said, list) or not said:
        raise SchemaError(f"'utterances' is {said!r}", where=where, expected="a list of {speaker, text}")
    for count, one in enumerate(said, start=1):
        if not isinstance(one, dict) or not all(
            isinstance(one.get(key), str) and one[key].strip() for key in ("speaker", "text")
        ):
            raise SchemaError(f"utterance {count} is {one!r}", where=where, expected="{speaker, text}, neither empty")
    utterances = tuple((one["speaker"], one["text"]) for one in said)
    speakers = list(dict.fromkeys(speaker for speaker, _ in utterances))
    if record["judged"] not in speakers:
        raise SchemaError(
            f"the judged speaker {record['judged']!r} says nothing",
            where=where,
            expected=f"one of {', '.join(speakers)}",
        )
    return Dialogue(record["dialogue_id"], record["system_id"], record["judged"], utterances)
