"""The dialogues of a challenge, read from ComperDial's ``ComperDial_data.json`` or the challenge's test data.

The first is a list of {dialogue_id, persona: {A, B}, dialogue: [{persona_id, text}, …]}. The second is a list of {dialog_id,
turn_0, …, turn_6}, each turn {persona A, persona B, dialogue, gold_reference}.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from comperdial.challenge.records import Filled, Name, checked, refuse_repeated
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json

log = logging.getLogger(__name__)

SPEAKERS = ("A", "B")
Conversation = dict[str, Any]
"""What an agent is shown: ``persona B``, ``dialogue`` (a list of {persona_id, text}, the last by A), maybe ``persona A``."""


@dataclass(frozen=True)
class Dialogue:
    """One dialogue: A begins, the speakers alternate, B is the one whose turns are evaluated.

    Attributes
    ----------
    dialogue_id
        Its name.
    personas
        Speaker -> persona sentences.
    texts
        All utterances in order, of even number; B's are the references.
    """

    dialogue_id: str
    personas: dict[str, list[str]]
    texts: tuple[str, ...]

    @property
    def turns(self) -> int:
        """Return how many turns B has."""
        return len(self.texts) // 2

    def history(self, turn: int) -> list[dict[str, str]]:
        """Return the 2 * turn + 1 utterances that B answers at a turn counted from 0."""
        return [{"speaker": SPEAKERS[i % 2], "text": text} for i, text in enumerate(self.texts[: 2 * turn + 1])]

    def reference(self, turn: int) -> str:
        """Return B's utterance at a turn counted from 0."""
        return self.texts[2 * turn + 1]

    def conversation(self, turn: int, *, persona_a: bool = True) -> Conversation:
        """Return what an agent is shown at a turn; never the reference."""
        shown: Conversation = {"persona A": list(self.personas["A"])} if persona_a else {}
        utterances = [{"persona_id": u["speaker"], "text": u["text"]} for u in self.history(turn)]
        return shown | {"persona B": list(self.personas["B"]), "dialogue": utterances}


class _Utterance(BaseModel):
    persona_id: Literal["A", "B"]
    text: Filled


class _Personas(BaseModel):
    A: list[str]
    B: list[str]


class _Entry(BaseModel):
    dialogue_id: Name
    persona: _Personas
    dialogue: list[_Utterance] = Field(min_length=2)


class _Turn(BaseModel):
    persona_a: list[str] = Field(alias="persona A")
    persona_b: list[str] = Field(alias="persona B")
    dialogue: list[_Utterance]
    gold_reference: Filled


def context_id(dialogue_id: str, turn: int) -> str:
    """Return the name of the context of one turn."""
    return f"{dialogue_id}-t{turn}"


def read_dialogues(path: str | Path) -> list[Dialogue]:
    """Read dialogues in either format; entries of the test data that are no objects are skipped, as upstream does.

    Raises
    ------
    SchemaError
        Names the entry at fault, counted from 1, and what was expected.
    """
    content = checked(list[Any], read_json(path), str(path))
    if skipped := sum(not isinstance(entry, dict) for entry in content):
        log.warning("%s: %d entries are no objects and were skipped", path, skipped)
    dialogues: list[Dialogue] = []
    seen: dict[str, str] = {}
    for number, entry in enumerate(content, start=1):
        if isinstance(entry, dict):
            where = f"{path}, entry {number}"
            dialogue = _dialogue(_from_test_data(entry, where) if "turn_0" in entry else entry, where)
            refuse_repeated(seen, dialogue.dialogue_id, where, f"dialogue {dialogue.dialogue_id!r}")
            dialogues.append(dialogue)
    if not dialogues:
        raise SchemaError("no dialogues", where=str(path), expected="at least one")
    return dialogues


def _dialogue(value: dict[str, Any], where: str) -> Dialogue:
    entry = checked(_Entry, value, where)
    speakers = [utterance.persona_id for utterance in entry.dialogue]
    if speakers != ["A", "B"] * (len(speakers) // 2):
        raise SchemaError(f"the speakers are {', '.join(speakers)}", where=where, expected="A and B in turn, B last")
    # Published sentences are noisy ("…countries. in the past."): they are taken as they are, but not when empty.
    personas = {s: [text for text in getattr(entry.persona, s) if text.strip()] for s in SPEAKERS}
    return Dialogue(str(entry.dialogue_id), personas, tuple(utterance.text for utterance in entry.dialogue))


def _from_test_data(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """Return an entry of the test data in the other format; each turn must go on from the gold history before it."""
    turns = [
        checked(_Turn, entry[f"turn_{k}"], f"{where}, turn_{k}") for k in range(len(entry)) if f"turn_{k}" in entry
    ]
    if {*entry} != {"dialog_id", *(f"turn_{k}" for k in range(len(turns)))}:
        keys = ", ".join(map(str, entry))
        raise SchemaError(f"the keys are {keys}", where=where, expected="dialog_id, turn_0, turn_1, … without a gap")
    texts: list[_Utterance] = []
    for k, turn in enumerate(turns):
        if len(turn.dialogue) != 2 * k + 1 or turn.dialogue[: len(texts)] != texts:
            expected = f"{2 * k + 1} utterances that continue turn_{k - 1}"
            raise SchemaError("the history is not the gold one", where=f"{where}, turn_{k}", expected=expected)
        texts = [*turn.dialogue, _Utterance(persona_id="B", text=turn.gold_reference)]
    persona = {"A": turns[0].persona_a, "B": turns[0].persona_b}
    return {"dialogue_id": entry["dialog_id"], "persona": persona, "dialogue": [text.model_dump() for text in texts]}


def to_data(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as an entry of ``ComperDial_data.json``."""
    name = dialogue.dialogue_id
    return {
        "dialogue_id": int(name) if name.isdecimal() and str(int(name)) == name else name,
        "persona": {speaker: list(dialogue.personas[speaker]) for speaker in SPEAKERS},
        "dialogue": [{"persona_id": SPEAKERS[i % 2], "text": text} for i, text in enumerate(dialogue.texts)],
    }
