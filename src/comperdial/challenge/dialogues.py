"""The dialogues of a challenge: read ComperDial's format, and convert to tables.

``ComperDial_data.json`` is a list of {dialogue_id, persona: {A, B}, dialogue: [{persona_id, text}, …]}.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, Field

from comperdial import schema
from comperdial.challenge.records import Filled, Name, checked
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json

SPEAKERS = ("A", "B")
Conversation = dict[str, Any]
"""What an agent is shown: ``persona A``, ``persona B``, ``dialogue`` (a list of {persona_id, text}, the last by A)."""


@dataclass(frozen=True)
class Dialogue:
    """A dialogue that A begins, with alternating speakers; B is evaluated, and B's texts are the references.

    ``personas`` has the persona sentences by speaker, ``texts`` an even number of utterances, in order.
    """

    dialogue_id: str
    personas: dict[str, list[str]]
    texts: tuple[str, ...]

    @property
    def turns(self) -> int:
        """Return B's number of turns."""
        return len(self.texts) // 2

    def history(self, turn: int) -> list[dict[str, str]]:
        """Return the 2 * turn + 1 utterances before B's turn, counted from 0."""
        return [{"speaker": SPEAKERS[i % 2], "text": text} for i, text in enumerate(self.texts[: 2 * turn + 1])]

    def reference(self, turn: int) -> str:
        """Return B's utterance at a turn, counted from 0."""
        return self.texts[2 * turn + 1]

    def conversation(self, turn: int) -> Conversation:
        """Return the agent's input at a turn, without the reference."""
        return conversation(self.personas["A"], self.personas["B"], self.texts[: 2 * turn + 1])


def conversation(persona_a: Iterable[str], persona_b: Iterable[str], texts: Sequence[str]) -> Conversation:
    """Return the agent's input for texts that end with A."""
    utterances = [{"persona_id": SPEAKERS[(len(texts) - 1 - i) % 2], "text": text} for i, text in enumerate(texts)]
    return {"persona A": list(persona_a), "persona B": list(persona_b), "dialogue": utterances}


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


def context_id(dialogue_id: str, turn: int) -> str:
    """Return the context id of a turn."""
    return f"{dialogue_id}-t{turn}"


def read_dialogues(path: str | Path) -> list[Dialogue]:
    """Read dialogues; a :class:`SchemaError` gives the invalid entry, counted from 1, and what was expected."""
    dialogues: dict[str, Dialogue] = {}
    for number, value in enumerate(checked(list[Any], read_json(path), str(path)), start=1):
        where = f"{path}, entry {number}"
        entry = checked(_Entry, value, where)
        speakers = [utterance.persona_id for utterance in entry.dialogue]
        if speakers != ["A", "B"] * (len(speakers) // 2):
            raise SchemaError(
                f"the speakers are {', '.join(speakers)}", where=where, expected="A and B in turn, B last"
            )
        if entry.dialogue_id in dialogues:
            raise SchemaError(f"dialogue {entry.dialogue_id!r} a second time", where=where, expected="it once")
        # Published sentences are noisy ("…countries. in the past.") and kept as they are, except empty ones.
        personas = {s: [text for text in getattr(entry.persona, s) if text.strip()] for s in SPEAKERS}
        texts = tuple(utterance.text for utterance in entry.dialogue)
        dialogues[entry.dialogue_id] = Dialogue(entry.dialogue_id, personas, texts)
    if not dialogues:
        raise SchemaError("no dialogues", where=str(path), expected="at least one")
    return [*dialogues.values()]


def to_data(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue in the format of ``ComperDial_data.json``."""
    name = dialogue.dialogue_id
    return {
        "dialogue_id": int(name) if name.isdecimal() and str(int(name)) == name else name,
        "persona": {speaker: list(dialogue.personas[speaker]) for speaker in SPEAKERS},
        "dialogue": [{"persona_id": SPEAKERS[i % 2], "text": text} for i, text in enumerate(dialogue.texts)],
    }


# Tables

# Patterns of published sentences, by kind.
_KINDS = {
    "name": r"my name is\b",
    "age": r"i['’]m \d+ years old\b|i am \d+ years old\b",
    "characteristic": r"my character trait\b",
    "routine_habit": r"i regularly or consistently\b",
    "goal_plan": r"i intend to\b",
    "experience": r"i\b.*\bin the past\b",
    "head": r"i am\b|i['’]m\b",
}


def kinds_of(sentences: Sequence[str]) -> list[str]:
    """Return the kind of each sentence of a published persona: name, age, family, head, or an aspect.

    Published sentences are noisy, so patterns decide: unmatched sentences before the first head are family information, later
    ones are ``other``.
    """
    kinds: list[str] = []
    for sentence in sentences:
        text = sentence.strip().lower()
        kind = next((kind for kind, pattern in _KINDS.items() if re.match(pattern, text)), None)
        kinds.append(kind or ("other" if "head" in kinds else "family"))
    return kinds


def make_tables(
    dataset: str,
    dialogues: Sequence[Dialogue],
    systems: Mapping[str, Mapping[str, Any]],
    responses: Mapping[str, Mapping[tuple[str, int], str]],
    *,
    where: str,
) -> dict[str, pd.DataFrame]:
    """Return the tables systems, contexts, personas and responses of a data set; ``where`` names it in messages.

    B's utterances are the references, B's persona the facts. ``systems`` has kind, track and description of each system,
    ``responses`` its responses by dialogue and turn.
    """
    rows: dict[str, list[Mapping[str, Any]]] = {"contexts": [], "personas": []}
    for dialogue in dialogues:
        name = dialogue.dialogue_id
        for turn in range(dialogue.turns):
            context = {"context_id": context_id(name, turn), "dialogue_id": name, "turn": turn}
            context |= {"history": dialogue.history(turn), "references": [dialogue.reference(turn)]}
            rows["contexts"].append(context | {"facts": dialogue.personas["B"]})
        for speaker, sentences in dialogue.personas.items():
            about = {"speaker": speaker, "sentences": sentences, "kinds": kinds_of(sentences)}
            rows["personas"].append({"dialogue_id": name, **about})
    rows["systems"] = [{"system_id": system, **about} for system, about in systems.items()]
    rows["responses"] = [
        {"context_id": context_id(dialogue, turn), "system_id": system, "response": text}
        for system, answers in responses.items()
        for (dialogue, turn), text in answers.items()
    ]
    tables = {}
    for name, records in rows.items():
        frame = pd.DataFrame(records).assign(dataset=dataset).reindex(columns=schema.table(name).columns)
        tables[name] = schema.validate(frame, name, where=f"{where}, as table {name!r}")
    return tables


def dialogues_of(contexts: pd.DataFrame, personas: pd.DataFrame) -> list[Dialogue]:
    """Restore the dialogues that were passed to :func:`make_tables`."""
    sentences = personas.set_index(["dialogue_id", "speaker"])["sentences"]
    dialogues = []
    for name, rows in contexts.sort_values(["dialogue_id", "turn"]).groupby("dialogue_id"):
        last = rows.iloc[-1]
        texts = (*(u["text"] for u in last["history"]), last["references"][0])
        dialogues.append(Dialogue(str(name), {s: list(sentences.get((name, s), [])) for s in SPEAKERS}, texts))
    return dialogues


def read_answers(folder: str | Path) -> pd.DataFrame:
    """Return the responses in a folder with their contexts, the system's ``kind`` and the dialogue's ``turns``.

    Raises a :class:`SchemaError` if a response's context or system is in no table.
    """
    names = ("systems", "contexts", "responses")
    systems, contexts, responses = (schema.read(Path(folder) / f"{name}.parquet", name) for name in names)
    contexts["turns"] = contexts.groupby(["dataset", "dialogue_id"])["turn"].transform("nunique")
    joined = responses.merge(contexts, how="left").merge(systems[["dataset", "system_id", "kind"]], how="left")
    if len(stray := joined[joined[["dialogue_id", "kind"]].isna().any(axis=1)]):
        context, system = stray[["context_id", "system_id"]].iloc[0]
        problem = f"a response names context {context!r} and system {system!r}, of which one is in no table"
        raise SchemaError(problem, where=f"{folder}/responses.parquet", expected="tables that were made together")
    return joined
