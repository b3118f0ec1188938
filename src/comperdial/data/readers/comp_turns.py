"""Single responses with a mean rating a dimension, people's or GPT-4's: six sets of Zhang et al. 2024 (AAAI).

What the files do not say is taken as ``docs/llm-evaluators.md`` explains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.core.files import read_json
from comperdial.data.readers import base, usr
from comperdial.data.readers._comp import GPT4, GPT4_SCALE, Line, read_lines, set_of
from comperdial.data.readers.base import Files, Row, Tables
from comperdial.schema.evaluated import DIMENSIONS

# The scales of what people rated; GPT-4 rated the other dimensions.
_USR = {"understandability": (0.0, 1.0), "relevance": (1.0, 3.0), "interestingness": (1.0, 3.0), "overall": (1.0, 5.0)}
_FED = {**dict.fromkeys(DIMENSIONS["turn"], (0.0, 2.0)), "understandability": (0.0, 1.0), "overall": (0.0, 4.0)}
# What the ids begin with -> the set's name in the files of ratings, what people rated.
_SETS: Mapping[str, tuple[str, Mapping[str, base.Scale]]] = {
    "PERSONAUSR": ("persona-usr", _USR),
    "TOPICALUSR": ("topical-usr", _USR),
    "PERSONAZHAO": ("persona-zhao", {"overall": (1.0, 5.0)}),
    "DAILYDZHAO": ("dailydialog-zhao", {"overall": (1.0, 5.0), "relevance": (1.0, 5.0)}),
    "FEDTURN": ("fed-turn", _FED),
    "CONTURE": ("conture-turn", {"overall": (0.0, 2.0)}),
}
# Responses a context.
_SLOTS = {"PERSONAZHAO": 6, "DAILYDZHAO": 9}
_FED_TURNS = 3
NEGATIVE = "taken for the negative sample: an utterance from elsewhere"


class _Item(NamedTuple):
    """What a line of the text file is: a response in its context."""

    context: Row
    system: Row
    response: str

    @property
    def names(self) -> tuple[str, str]:
        """Return context and system."""
        return self.context["context_id"], self.system["system_id"]


def read(dataset: str, files: Files) -> Tables:
    """Read one of the six sets; the ids in its text file say which.

    Files: ``texts`` (an item a line: the utterances of the context, then the response), one file of mean ratings a
    dimension (``relevance`` … ``overall``); for USR's sets ``original``, USR's own file, and for FED's ``dialogues``,
    the rated dialogues with the names of their models.
    """
    lines = read_lines(files["texts"])
    name = set_of(lines)
    personas: Any = []
    if "original" in files:
        original = usr.read(dataset, {"ratings": files["original"]})
        personas = original["personas"].to_dict("records")
        items = list(_of_usr(original))
    elif "dialogues" in files:
        items = list(_of_fed(dataset, lines, files["dialogues"]))
    elif name in _SLOTS:
        items = list(_of_zhao(dataset, lines, _SLOTS[name]))
    else:
        items = list(_of_conture(dataset, lines))
    key, by_people = _SETS[name]
    ratings = []
    for dimension in DIMENSIONS["turn"]:
        source = "human" if dimension in by_people else GPT4
        scale = by_people.get(dimension, GPT4_SCALE)
        ratings += [
            base.rating("turn", *item.names, "mean", dimension, value, scale, source=source)
            for item, value in zip(items, read_json(files[dimension])[key], strict=True)
        ]
    return base.tables(
        dataset,
        files,
        systems={item.system["system_id"]: item.system for item in items}.values(),
        contexts={item.context["context_id"]: item.context for item in items}.values(),
        personas=personas,
        responses=[base.response(*item.names, item.response) for item in items],
        ratings=ratings,
    )


def _truth(context_id: str) -> str:
    """Return the ground truth's own context: there it is no reference, least of all its own."""
    return f"{context_id}-truth"


def _of_usr(original: Tables) -> Iterator[_Item]:
    """Yield USR's items in its order, but the first response of a context, the ground truth, after the others."""
    kinds = dict(zip(original["systems"]["system_id"], original["systems"]["kind"], strict=True))
    answers = original["responses"].groupby("context_id", sort=False)
    for row in original["contexts"].to_dict("records"):
        context_id = row["context_id"]
        texts = answers.get_group(context_id)
        first, *others = zip(texts["system_id"], texts["response"], strict=True)
        for system, response in (*others, first):
            truth = system == usr.REFERENCE
            yield _Item(
                base.context(
                    _truth(context_id) if truth else context_id,
                    context_id,
                    0,
                    row["history"],
                    [] if truth else row["references"],
                    row["facts"],
                ),
                base.system(system, "agent" if kinds[system] == "agent" else "human"),
                response,
            )


def _of_zhao(dataset: str, lines: list[Line], slots: int) -> Iterator[_Item]:
    """Take lines in groups of one context; the first response is the ground truth, the others' reference."""
    known = {
        0: base.system("slot-0", "human", "the ground truth"),
        slots - 1: base.system(f"slot-{slots - 1}", description=NEGATIVE),
    }
    for place, line in enumerate(lines):
        number, slot = divmod(place, slots)
        truth = lines[number * slots].fields[-1]
        *before, response = line.fields
        dialogue_id = base.numbered(dataset, number)
        yield _Item(
            base.context(
                dialogue_id if slot else _truth(dialogue_id),
                dialogue_id,
                0,
                base.as_history(base.alternating(before)),
                [truth] if slot else [],
            ),
            known.get(slot) or base.system(f"slot-{slot}"),
            response,
        )


def _of_fed(dataset: str, lines: list[Line], path: Path) -> Iterator[_Item]:
    """Take three lines a rated dialogue, in its order."""
    dialogues = read_json(path)
    for place, line in enumerate(lines):
        number = place // _FED_TURNS
        model = dialogues[number]["model"]
        *before, response = line.fields
        speakers = [
            base.CHATBOT if u["speaker"] == "model" else base.PERSON for u in dialogues[number]["dialog"][: len(before)]
        ]
        turn, dialogue_id = speakers.count(base.CHATBOT), base.numbered(dataset, number)
        history = base.as_history(zip(speakers, before, strict=True))
        yield _Item(
            base.context(f"{dialogue_id}-{turn}", dialogue_id, turn, history),
            # FED has dialogues between two people, one of them in the chatbot's place.
            base.system(model, "human" if model == "Human" else "agent"),
            response,
        )


def _of_conture(dataset: str, lines: list[Line]) -> Iterator[_Item]:
    """Take dialogue and utterance from the ids; user and chatbot take turns, the user first."""
    for line in lines:
        dialogue, utterance = map(int, re.findall(r"\d+", line.name))
        dialogue_id, turn = base.numbered(dataset, dialogue), utterance // 2
        *before, response = line.fields
        context = base.context(f"{dialogue_id}-{turn}", dialogue_id, turn, base.as_history(base.alternating(before)))
        yield _Item(context, base.system("chatbot"), response)
