"""Responses with a mean rating per dimension, by people or GPT-4: six sets of Zhang et al. 2024 (AAAI).

``docs/llm-evaluators.md`` documents assumptions about what the files do not state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from comperdial.core.files import read_json
from comperdial.data.readers import base, usr
from comperdial.data.readers._comp import GPT4, GPT4_SCALE, LABELS, Line, read_lines, set_of
from comperdial.data.readers.base import Files, Row, Tables
from comperdial.schema.evaluated import DIMENSIONS

# Scales of the human ratings; GPT-4 rated the other dimensions.
_USR = {"understandability": (0.0, 1.0), "relevance": (1.0, 3.0), "interestingness": (1.0, 3.0), "overall": (1.0, 5.0)}
_FED = {**dict.fromkeys(DIMENSIONS["turn"], (0.0, 2.0)), "understandability": (0.0, 1.0), "overall": (0.0, 4.0)}
# Id prefix -> the set's name in the rating files, and the dimensions rated by people.
_SETS: Mapping[str, tuple[str, Mapping[str, base.Scale]]] = {
    "PERSONAUSR": ("persona-usr", _USR),
    "TOPICALUSR": ("topical-usr", _USR),
    "PERSONAZHAO": ("persona-zhao", {"overall": (1.0, 5.0)}),
    "DAILYDZHAO": ("dailydialog-zhao", {"overall": (1.0, 5.0), "relevance": (1.0, 5.0)}),
    "FEDTURN": ("fed-turn", _FED),
    "CONTURE": ("conture-turn", {"overall": (0.0, 2.0)}),
}
# Responses per context.
_SLOTS = {"PERSONAZHAO": 6, "DAILYDZHAO": 9}
_FED_TURNS = 3
NEGATIVE = "taken for the negative sample: an utterance from elsewhere"

_Answers = Iterator[tuple[Row, Row]]
"""What each line of the text file is: a response with its context, and its system."""


def read(dataset: str, files: Files) -> Tables:
    """Read one of the six sets, identified by the ids in its text file.

    Files: ``texts`` (one item per line: the context's utterances, then the response), one file of mean ratings per dimension
    (``relevance`` … ``overall``); for USR's sets ``original``, USR's own file, and for FED's ``dialogues``, the rated dialogues
    with model names.
    """
    lines = read_lines(files["texts"])
    name = set_of(lines)
    original = usr.read(dataset, {"ratings": files["original"]}) if "original" in files else {}
    if original:
        answers = _of_usr(original)
    elif "dialogues" in files:
        answers = _of_fed(dataset, lines, files["dialogues"])
    else:
        answers = _of_zhao(dataset, lines, _SLOTS[name]) if name in _SLOTS else _of_conture(dataset, lines)
    responses, systems = zip(*answers, strict=True)
    key, by_people = _SETS[name]
    ratings = [
        base.rating(
            ("turn", one["context_id"], one["system_id"]), "mean", dimension, value,
            by_people.get(dimension, GPT4_SCALE), source="human" if dimension in by_people else GPT4,
        )
        for dimension in DIMENSIONS["turn"]
        for one, value in zip(responses, read_json(files[dimension])[key], strict=True)
    ]  # fmt: skip
    personas: list[Row] = original["personas"].to_dict("records") if original else []  # type: ignore[assignment]
    by_name = {system["system_id"]: system for system in systems}
    return base.tables(dataset, files, by_name.values(), responses, ratings, personas)


def _truth(context_id: str) -> str:
    """Return the ground truth's own context, which has no reference, so that it is not its own reference."""
    return f"{context_id}-truth"


def _of_usr(original: Tables) -> _Answers:
    """Yield USR's items in order, but with each context's first response, the ground truth, last."""
    kinds = dict(zip(original["systems"]["system_id"], original["systems"]["kind"], strict=True))
    texts = original["responses"].groupby("context_id", sort=False)
    for row in original["contexts"].to_dict("records"):
        given = texts.get_group(name := row["context_id"])
        first, *others = zip(given["system_id"], given["response"], strict=True)
        for system, text in (*others, first):
            truth = system == usr.REFERENCE
            own, references = (_truth(name), []) if truth else (name, row["references"])
            one = base.answer(own, name, 0, row["history"], system, text, references, row["facts"])
            yield one, base.system(system, "agent" if kinds[system] == "agent" else "human")


def _of_zhao(dataset: str, lines: list[Line], slots: int) -> _Answers:
    """Group lines by context; the first response is the ground truth and the others' reference."""
    for place, line in enumerate(lines):
        number, slot = divmod(place, slots)
        dialogue, system = base.numbered(dataset, number), base.system(f"slot-{slot}")
        context, references = dialogue, [lines[number * slots].fields[-1]]
        if slot == 0:
            context, references, system = _truth(dialogue), [], base.system("slot-0", "human", "the ground truth")
        elif slot == slots - 1:
            system["description"] = NEGATIVE
        *before, response = line.fields
        history = base.as_history(base.alternating(before))
        yield base.answer(context, dialogue, 0, history, system["system_id"], response, references), system


def _of_fed(dataset: str, lines: list[Line], path: Path) -> _Answers:
    """Take three lines per rated dialogue, in order."""
    dialogues = read_json(path)
    for place, line in enumerate(lines):
        number = place // _FED_TURNS
        model, *before, response = dialogues[number]["model"], *line.fields
        speakers = [LABELS[utterance["speaker"]] for utterance in dialogues[number]["dialog"][: len(before)]]
        turn, dialogue = speakers.count(base.CHATBOT), base.numbered(dataset, number)
        history = base.as_history(zip(speakers, before, strict=True))
        # Some FED dialogues are between two people, one in the chatbot's role.
        system = base.system(model, "human" if model == "Human" else "agent")
        yield base.answer(f"{dialogue}-{turn}", dialogue, turn, history, model, response), system


def _of_conture(dataset: str, lines: list[Line]) -> _Answers:
    """Parse dialogue and utterance from the ids; user and chatbot alternate, the user first."""
    for line in lines:
        number, utterance = map(int, re.findall(r"\d+", line.name))
        dialogue, turn = base.numbered(dataset, number), utterance // 2
        *before, response = line.fields
        history = base.as_history(base.alternating(before))
        yield base.answer(f"{dialogue}-{turn}", dialogue, turn, history, "chatbot", response), base.system("chatbot")
