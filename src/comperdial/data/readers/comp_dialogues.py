"""Whole dialogues rated by GPT-4 in five rounds, FED's also by people: six sets of Zhang et al. 2024 (AAAI).

What the files do not say is taken as ``docs/llm-evaluators.md`` explains.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers._comp import (
    CHATBOT,
    GPT4,
    GPT4_SCALE,
    PERSON,
    Line,
    Utterance,
    chatbot_turns,
    context_row,
    labelled,
    numbered,
    plain,
    prefix,
    rating_row,
    read_lines,
    system_row,
)
from comperdial.data.readers._rounds import Rounds, read_rounds
from comperdial.data.readers.base import Reader, Tables, get

log = logging.getLogger(__name__)

# FED's names of the dimensions that people rated, ours, and the scale.
FED_DIMENSIONS = {
    "Coherent": ("coherence", (0.0, 2.0)),
    "Likeable": ("engagingness", (0.0, 2.0)),
    "Diverse": ("diversity", (0.0, 2.0)),
    "Informative": ("informativeness", (0.0, 2.0)),
    "Overall": ("overall", (0.0, 4.0)),
}
UNNAMED = "chatbot"
# Line 8t + i is of task t; four lines with a positive emotion, then four with a negative one, in this order.
COLOURS = ("Pink", "Purple", "Green", "Yellow")


@dataclass(frozen=True)
class _Set:
    """A set: whose labels are whose, and its systems in turn, line by line."""

    labels: Mapping[str, str]
    systems: tuple[str, ...] = (UNNAMED,)


_SETS = {
    "IEVAL": _Set({"A": PERSON, "B": CHATBOT}, COLOURS),
    "PERSONASEE": _Set({"human_evaluator": PERSON, "model": CHATBOT}),
    "RELIABLE": _Set({"User": PERSON, "Chatbot": CHATBOT}),
    "CONTURE": _Set({"User": PERSON, "Chatbot": CHATBOT}),
    "FEDDIAL": _Set({"human": PERSON, "model": CHATBOT}),
    "HEVAL": _Set({"A": PERSON, "B": CHATBOT}),
}


class CompDialogues(Reader):
    """Reader of one of the six sets; the ids in its text file say which.

    Files: ``texts`` (a dialogue a line, utterances after their speakers' labels), ``rounds`` (GPT-4's ratings), and for
    FED ``ratings`` (people's ratings, with the names of the models). Only dialogues that GPT-4 rated are taken.
    """

    def read(self) -> Tables:
        """Return systems, contexts, responses, ratings, and personas without rows."""
        path = self.files["texts"]
        lines = read_lines(path)
        name = prefix(lines, _SETS, path)
        rounds = self._rounds(len(lines))
        contexts, responses, ratings = [], [], []
        systems: dict[str, None] = {}
        silent = 0
        places = {line: place for place, line in enumerate(rounds.lines)}
        for number in sorted(places):
            line = lines[number]
            dialogue = labelled(line, _SETS[name].labels)
            system = self._system(name, number, line, dialogue)
            systems.setdefault(system)
            dialogue_id = numbered(self.dataset, number)
            turns = list(chatbot_turns(dialogue))
            silent += sum(speaker == CHATBOT for speaker, _ in dialogue) - len(turns)
            if not turns:
                raise SchemaError("the chatbot says nothing", where=line.where, expected="a turn of the chatbot")
            for turn, history, response in turns:
                context_id = f"{dialogue_id}-{turn}"
                contexts.append(context_row(context_id, dialogue_id, turn, history))
                responses.append({"context_id": context_id, "system_id": system, "response": response})
            key = {"level": "dialogue", "item_id": dialogue_id, "system_id": system}
            ratings += [key | row for row in (*self._machine(rounds, places[number]), *self._people(number))]
        log.info(
            "%s: %d of %d dialogues are rated; %d turns of the chatbot, %d more say nothing and are left out",
            self.dataset,
            len(places),
            len(lines),
            len(responses),
            silent,
        )
        return {
            "systems": self.frame("systems", map(_system, systems), path),
            "contexts": self.frame("contexts", contexts, path),
            "personas": schema.empty("personas"),
            "responses": self.frame("responses", responses, path),
            "ratings": self.frame("ratings", ratings, self.files["rounds"]),
        }

    def _rounds(self, count: int) -> Rounds:
        path = self.files["rounds"]
        rounds = read_rounds(path)
        if not rounds.some and len(rounds.lines) != count:
            raise SchemaError(
                f"{len(rounds.lines)} ratings a round", where=str(path), expected=f"{count}, one a line of texts"
            )
        if max(rounds.lines, default=-1) >= count:
            raise SchemaError(
                f"`indices` names line {max(rounds.lines)}", where=str(path), expected=f"lines below {count}"
            )
        return rounds

    @cached_property
    def _rated(self) -> list[Any]:
        """What people rated: FED's list of dialogues; empty for the other sets."""
        if "ratings" not in self.files:
            return []
        content = read_json(self.files["ratings"])
        if not isinstance(content, list) or not content:
            raise SchemaError("no list", where=str(self.files["ratings"]), expected="a JSON list of dialogues")
        return content

    def _system(self, name: str, number: int, line: Line, dialogue: list[Utterance]) -> str:
        """Return whose turns a dialogue holds; FED's from the file of ratings, where the texts must agree."""
        if not self._rated:
            systems = _SETS[name].systems
            return systems[number % len(systems)]
        where = f"{self.files['ratings']}, dialogue {number}"
        if number >= len(self._rated):
            raise SchemaError("no such dialogue", where=where, expected=f"the dialogue of {line.where}")
        entry = self._rated[number]
        theirs = [
            (_SETS[name].labels.get(get(u, "speaker", str, where)), plain(get(u, "text", str, where)))
            for u in get(entry, "dialog", list, where)
        ]
        if theirs != [(speaker, plain(text)) for speaker, text in dialogue]:
            raise SchemaError("the texts differ", where=where, expected=f"those of {line.where}")
        return str(get(entry, "model", str, where))

    def _machine(self, rounds: Rounds, place: int) -> Iterator[dict[str, Any]]:
        where = f"{self.files['rounds']}, entry {place}"
        for (dimension, number), values in rounds.numbers.items():
            yield rating_row(f"round-{number + 1}", number, dimension, values[place], GPT4_SCALE, GPT4, where)

    def _people(self, number: int) -> Iterator[dict[str, Any]]:
        if not self._rated:
            return
        where = f"{self.files['ratings']}, dialogue {number}"
        given = get(self._rated[number], "annotations", dict, where)
        for theirs, (dimension, scale) in FED_DIMENSIONS.items():
            values = get(given, theirs, list, where)
            if not values:
                raise SchemaError(f"no rating of {theirs!r}", where=where, expected="one an annotator")
            for position, value in enumerate(values):
                yield rating_row(f"annotator-{position + 1}", position, dimension, value, scale, "human", where)


def _system(name: str) -> dict[str, Any]:
    if name == UNNAMED:
        return system_row(name, description="whichever chatbot: the files do not say which")
    # FED has dialogues between two people, one of them in the chatbot's place.
    return system_row(name, "human" if name == "Human" else "agent")
