"""Dialogues with personas, from either of the formats they are published in; the history of a turn is always gold.

``ComperDial_data.json``: a list of {dialogue_id, persona: {A, B}, dialogue: [{persona_id, text}, …]}.
The challenge's test data: a list of {dialog_id, turn_0, …, turn_6}, each turn {persona A, persona B, dialogue,
gold_reference}.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.challenge.agent import Conversation
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.core.names import plain_name

log = logging.getLogger(__name__)

SPEAKERS = ("A", "B")


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
        """Return what B said at a turn counted from 0."""
        return self.texts[2 * turn + 1]

    def conversation(self, turn: int, *, persona_a: bool = True) -> Conversation:
        """Return what an agent is shown at a turn; never the reference."""
        found: Conversation = {
            "persona B": list(self.personas["B"]),
            "dialogue": [{"persona_id": u["speaker"], "text": u["text"]} for u in self.history(turn)],
        }
        if persona_a:
            found["persona A"] = list(self.personas["A"])
        return found


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
    content = read_json(path)
    if not isinstance(content, list) or not content:
        raise SchemaError("no list of dialogues", where=str(path), expected="a JSON list of dialogues with personas")
    if skipped := sum(not isinstance(entry, dict) for entry in content):
        log.warning("%s: %d entries are no objects and were skipped", path, skipped)
    found = []
    for number, entry in enumerate(content, start=1):
        if isinstance(entry, dict):
            where = f"{path}, entry {number}"
            found.append(_from_test_data(entry, where) if "turn_0" in entry else _from_data(entry, where))
    names = [dialogue.dialogue_id for dialogue in found]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise SchemaError(f"dialogue {repeated!r} stands there twice", where=str(path), expected="each dialogue once")
    if not found:
        raise SchemaError("no dialogues", where=str(path), expected="at least one")
    return found


def to_data(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as an entry of ``ComperDial_data.json``."""
    name = dialogue.dialogue_id
    return {
        "dialogue_id": int(name) if name.isdecimal() and str(int(name)) == name else name,
        "persona": {speaker: list(dialogue.personas[speaker]) for speaker in SPEAKERS},
        "dialogue": [{"persona_id": SPEAKERS[i % 2], "text": text} for i, text in enumerate(dialogue.texts)],
    }


def _from_data(entry: dict[str, Any], where: str) -> Dialogue:
    for key in ("dialogue_id", "persona", "dialogue"):
        if key not in entry:
            raise SchemaError(
                f"no {key!r}", where=where, expected=f"dialogue_id, persona, dialogue; it has {_keys(entry)}"
            )
    if not isinstance(entry["persona"], dict):
        raise SchemaError("persona is no object", where=where, expected='{"A": […], "B": […]}')
    personas = {
        speaker: _sentences(entry["persona"].get(speaker), f"{where}, persona {speaker}") for speaker in SPEAKERS
    }
    return _dialogue(_name(entry["dialogue_id"], where), personas, entry["dialogue"], where)


def _from_test_data(entry: dict[str, Any], where: str) -> Dialogue:
    turns = [entry[f"turn_{k}"] for k in range(len(entry)) if f"turn_{k}" in entry]
    extra = [key for key in entry if key not in ("dialog_id", *(f"turn_{k}" for k in range(len(turns))))]
    if extra or "dialog_id" not in entry:
        raise SchemaError(
            f"the keys are {_keys(entry)}", where=where, expected="dialog_id, turn_0, turn_1, … without a gap"
        )
    texts: list[dict[str, str]] = []
    for k, turn in enumerate(turns):
        place = f"{where}, turn_{k}"
        if not isinstance(turn, dict) or not isinstance(turn.get("gold_reference"), str):
            raise SchemaError(
                "no text gold_reference", where=place, expected="persona A, persona B, dialogue, gold_reference"
            )
        history = turn.get("dialogue")
        if not isinstance(history, list) or len(history) != 2 * k + 1 or history[: len(texts)] != texts:
            raise SchemaError(
                "the history is not the gold one",
                where=place,
                expected=f"{2 * k + 1} utterances that go on from turn_{k - 1}",
            )
        texts = [*history, {"persona_id": "B", "text": turn["gold_reference"]}]
    personas = {s: _sentences(turns[0].get(f"persona {s}"), f"{where}, persona {s}") for s in SPEAKERS}
    return _dialogue(_name(entry["dialog_id"], where), personas, texts, where)


def _dialogue(name: str, personas: dict[str, list[str]], utterances: Any, where: str) -> Dialogue:  # noqa: ANN401
    if not isinstance(utterances, list) or not utterances or len(utterances) % 2:
        raise SchemaError("the dialogue is no list of pairs", where=where, expected="A and B in turn, B last")
    for number, utterance in enumerate(utterances):
        place, speaker = f"{where}, utterance {number + 1}", SPEAKERS[number % 2]
        if (
            not isinstance(utterance, dict)
            or not isinstance(utterance.get("text"), str)
            or not utterance["text"].strip()
        ):
            raise SchemaError(f"holds {utterance!r}", where=place, expected='{"persona_id": "A", "text": "…"}')
        if utterance.get("persona_id") != speaker:
            raise SchemaError(f"speaker {utterance.get('persona_id')!r}", where=place, expected=speaker)
    return Dialogue(name, personas, tuple(u["text"] for u in utterances))


def _sentences(value: Any, where: str) -> list[str]:  # noqa: ANN401
    if not isinstance(value, list) or not all(isinstance(s, str) for s in value):
        raise SchemaError(f"holds {value!r}", where=where, expected="a list of sentences")
    # Published sentences are noisy ("…countries. in the past."): they are taken as they are, but not when empty.
    return [sentence for sentence in value if sentence.strip()]


def _name(value: Any, where: str) -> str:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
        raise SchemaError(f"its name is {value!r}", where=where, expected="a number or a text")
    return str(plain_name(value))


def _keys(entry: dict[str, Any]) -> str:
    return ", ".join(map(str, entry)) or "nothing"


def items(dialogues: list[Dialogue]) -> Iterator[tuple[str, int]]:
    """Return every (dialogue_id, turn) that a submission must answer."""
    return ((dialogue.dialogue_id, turn) for dialogue in dialogues for turn in range(dialogue.turns))
