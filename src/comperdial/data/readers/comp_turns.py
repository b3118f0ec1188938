"""Single responses with a mean rating a dimension, people's or GPT-4's: six sets of Zhang et al. 2024 (AAAI).

What the files do not say is taken as ``docs/llm-evaluators.md`` explains.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers import usr
from comperdial.data.readers._comp import (
    CHATBOT,
    EMPTY,
    GPT4,
    GPT4_SCALE,
    PERSON,
    History,
    Line,
    Scale,
    alternating,
    as_history,
    context_row,
    numbered,
    plain,
    prefix,
    rating_row,
    read_lines,
    system_row,
)
from comperdial.data.readers.base import Reader, Tables, get
from comperdial.schema.evaluated import DIMENSIONS

log = logging.getLogger(__name__)

_USR = {"understandability": (0.0, 1.0), "relevance": (1.0, 3.0), "interestingness": (1.0, 3.0), "overall": (1.0, 5.0)}
_USR_NAMES = {
    "understandability": "Understandable",
    "relevance": "Maintains Context",
    "interestingness": "Engaging",
    "overall": "Overall",
}
_FED = {**dict.fromkeys(DIMENSIONS["turn"], (0.0, 2.0)), "understandability": (0.0, 1.0), "overall": (0.0, 4.0)}
_TOLERANCE = 1e-6
_FED_TURNS = 3
_CONTURE_ID = re.compile(r"CONTURE-(\d+)-(\d+)")
NEGATIVE = "taken for the negative sample: an utterance from elsewhere"


@dataclass(frozen=True)
class _Set:
    """A set: its name in the files of ratings, what people rated there and on which scale, responses a context."""

    key: str
    human: Mapping[str, Scale]
    slots: int = 0


_SETS = {
    "PERSONAUSR": _Set("persona-usr", _USR),
    "TOPICALUSR": _Set("topical-usr", _USR),
    "PERSONAZHAO": _Set("persona-zhao", {"overall": (1.0, 5.0)}, slots=6),
    "DAILYDZHAO": _Set("dailydialog-zhao", {"overall": (1.0, 5.0), "relevance": (1.0, 5.0)}, slots=9),
    "FEDTURN": _Set("fed-turn", _FED),
    "CONTURE": _Set("conture-turn", {"overall": (0.0, 2.0)}),
}


@dataclass(frozen=True)
class _Item:
    """What a line of the text file is: a response in its context."""

    context_id: str
    dialogue_id: str
    system_id: str
    response: str
    history: History
    turn: int = 0
    references: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    def context(self) -> dict[str, Any]:
        """Return the item's row of table ``contexts``."""
        return context_row(self.context_id, self.dialogue_id, self.turn, self.history, self.references, self.facts)


class CompTurns(Reader):
    """Reader of one of the six sets; the ids in its text file say which.

    Files: ``texts`` (an item a line: the utterances of the context, then the response), one file of mean ratings a
    dimension (``relevance`` … ``overall``); for USR's sets ``original``, USR's own file, and for FED's ``dialogues``,
    the rated dialogues with the names of their models.
    """

    def read(self) -> Tables:
        """Return systems, contexts, personas, responses and ratings."""
        path = self.files["texts"]
        lines = read_lines(path)
        name = prefix(lines, _SETS, path)
        self._personas = schema.empty("personas")
        self._kinds: dict[str, dict[str, Any]] = {}
        items = list(self._items(name, lines))
        contexts: dict[str, _Item] = {}
        for item in items:
            contexts.setdefault(item.context_id, item)
        ratings = [
            {"level": "turn", "item_id": items[place].context_id, "system_id": items[place].system_id, **row}
            for place, row in self._ratings(name, len(items))
        ]
        responses = [
            {"context_id": item.context_id, "system_id": item.system_id, "response": item.response} for item in items
        ]
        systems = [self._kinds.get(s) or system_row(s) for s in dict.fromkeys(item.system_id for item in items)]
        marked = sum(item.response == EMPTY for item in items)
        log.info(
            "%s: %d items in %d contexts; %d responses are the mark %s", self.dataset, len(items), len(contexts),
            marked, EMPTY,
        )  # fmt: skip
        return {
            "systems": self.frame("systems", systems, path),
            "contexts": self.frame("contexts", (item.context() for item in contexts.values()), path),
            "personas": self._personas,
            "responses": self.frame("responses", responses, path),
            "ratings": self.frame("ratings", ratings, path),
        }

    def _items(self, name: str, lines: list[Line]) -> Iterator[_Item]:
        for line in lines:
            if not all(line.fields):
                raise SchemaError("an utterance is empty", where=line.where, expected="a text in each field")
        if "original" in self.files:
            return self._of_usr(name, lines)
        if "dialogues" in self.files:
            return self._of_fed(lines)
        return self._of_conture(lines) if name == "CONTURE" else self._of_zhao(_SETS[name].slots, lines)

    def _of_usr(self, name: str, lines: list[Line]) -> Iterator[_Item]:
        """Join with USR's own file: contexts in its order, the first response, the ground truth, moved to the end."""
        origin = self.files["original"]
        tables = usr.Usr(self.dataset, {"ratings": origin}).read()
        self._personas = tables["personas"]
        self._kinds = {
            row["system_id"]: system_row(row["system_id"], "agent" if row["kind"] == "agent" else "human")
            for row in tables["systems"].to_dict("records")
        }
        self._check_means(name, tables["ratings"], origin)
        contexts = tables["contexts"].set_index("context_id")
        expected = []
        for context_id, group in tables["responses"].groupby("context_id", sort=False):
            answers = list(zip(group["system_id"], group["response"], strict=True))
            expected += [(str(context_id), *answer) for answer in [*answers[1:], answers[0]]]
        if len(lines) != len(expected):
            raise SchemaError(
                f"{len(lines)} lines", where=str(self.files["texts"]), expected=f"{len(expected)}, as {origin} has"
            )
        for line, (context_id, system, response) in zip(lines, expected, strict=True):
            context = contexts.loc[context_id]
            known = [utterance["text"] for utterance in context["history"]] + [response]
            if [plain(text) for text in line.fields] != [plain(text) for text in known]:
                raise SchemaError(
                    "the texts differ",
                    where=line.where,
                    expected=f"context {context_id!r}, system {system!r} of {origin}",
                )
            truth = system == usr.REFERENCE
            yield _Item(
                _apart(context_id) if truth else context_id,
                context_id,
                system,
                response,
                list(context["history"]),
                references=() if truth else tuple(context["references"]),
                facts=tuple(context["facts"]),
            )

    def _check_means(self, name: str, theirs: pd.DataFrame, origin: Any) -> None:  # noqa: ANN401
        """Hold the mean ratings against those of USR's three raters."""
        keys = ["item_id", "system_id"]
        for dimension, called in _USR_NAMES.items():
            part = theirs[theirs["dimension"] == called]
            means = part.groupby(keys, sort=False)["rating"].mean()
            # As in the text file: in each context the first response stands at the end.
            ordered = [
                value for _, group in means.groupby(level=0, sort=False) for value in [*group[1:], group.iloc[0]]
            ]
            values = self._numbers(name, dimension, len(ordered))
            for place, (value, mean) in enumerate(zip(values, ordered, strict=True)):
                if not isinstance(value, int | float) or abs(value - mean) > _TOLERANCE:
                    raise SchemaError(
                        f"entry {place} is {value!r}",
                        where=f"{self.files[dimension]}, {_SETS[name].key!r}",
                        expected=f"{mean:g}, the mean of {called!r} in {origin}",
                    )

    def _of_zhao(self, slots: int, lines: list[Line]) -> Iterator[_Item]:
        """Take lines in groups of one context; the first response is the ground truth, the others' reference."""
        if len(lines) % slots:
            raise SchemaError(f"{len(lines)} lines", where=str(self.files["texts"]), expected=f"a multiple of {slots}")
        self._kinds = {
            "slot-0": system_row("slot-0", "human", "the ground truth"),
            f"slot-{slots - 1}": system_row(f"slot-{slots - 1}", description=NEGATIVE),
        }
        for place, line in enumerate(lines):
            number, slot = divmod(place, slots)
            first = lines[number * slots]
            *said, response = line.fields
            if said != list(first.fields[:-1]):
                raise SchemaError("the context differs", where=line.where, expected=f"that of {first.where}")
            dialogue_id = numbered(self.dataset, number)
            yield _Item(
                dialogue_id if slot else _apart(dialogue_id),
                dialogue_id,
                f"slot-{slot}",
                response,
                as_history(alternating(said, PERSON)),
                references=(first.fields[-1],) if slot else (),
            )

    def _of_fed(self, lines: list[Line]) -> Iterator[_Item]:
        """Take three lines a rated dialogue, in its order; the last response may be the one after its end."""
        path = self.files["dialogues"]
        dialogues = read_json(path)
        if not isinstance(dialogues, list) or _FED_TURNS * len(dialogues) != len(lines):
            raise SchemaError(f"not {len(lines) / _FED_TURNS:g} dialogues", where=str(path), expected="one for 3 lines")
        for place, line in enumerate(lines):
            number = place // _FED_TURNS
            where = f"{path}, dialogue {number}"
            said = get(dialogues[number], "dialog", list, where)
            model = get(dialogues[number], "model", str, where)
            self._kinds.setdefault(model, system_row(model, "human" if model == "Human" else "agent"))
            *before, response = line.fields
            theirs = [plain(get(u, "text", str, where)) for u in said][: len(line.fields)]
            speakers = [get(u, "speaker", str, where) for u in said][: len(line.fields)]
            is_next = "model" in speakers[len(before) :] or len(before) == len(said)
            if (
                theirs != [plain(text) for text in line.fields][: len(theirs)]
                or len(theirs) < len(before)
                or not is_next
            ):
                raise SchemaError("the texts differ", where=line.where, expected=f"the beginning of {where}")
            dialogue_id = numbered(self.dataset, number)
            turn = speakers[: len(before)].count("model")
            history = [
                (CHATBOT if speaker == "model" else PERSON, text)
                for speaker, text in zip(speakers, before, strict=False)
            ]
            yield _Item(f"{dialogue_id}-{turn}", dialogue_id, model, response, as_history(history), turn)

    def _of_conture(self, lines: list[Line]) -> Iterator[_Item]:
        """Take dialogue and utterance from the ids; user and chatbot take turns, the user first."""
        for line in lines:
            found = _CONTURE_ID.fullmatch(line.name)
            if not found or int(found[2]) % 2 == 0:
                raise SchemaError(
                    f"the id is {line.name!r}",
                    where=line.where,
                    expected="CONTURE-<dialogue>-<utterance, an odd number>",
                )
            dialogue_id, turn = numbered(self.dataset, int(found[1])), int(found[2]) // 2
            *said, response = line.fields
            history = as_history(alternating(said, PERSON))
            yield _Item(f"{dialogue_id}-{turn}", dialogue_id, "chatbot", response, history, turn)

    def _ratings(self, name: str, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for dimension in DIMENSIONS["turn"]:
            source = "human" if dimension in _SETS[name].human else GPT4
            scale = _SETS[name].human.get(dimension, GPT4_SCALE)
            where = f"{self.files[dimension]}, {_SETS[name].key!r}"
            for place, value in enumerate(self._numbers(name, dimension, count)):
                yield place, rating_row("mean", None, dimension, value, scale, source, f"{where}, entry {place}")

    def _numbers(self, name: str, dimension: str, count: int) -> list[Any]:
        path = self.files[dimension]
        values: list[Any] = get(read_json(path), _SETS[name].key, list, str(path))
        if len(values) != count:
            raise SchemaError(
                f"{len(values)} ratings of {_SETS[name].key!r}",
                where=str(path),
                expected=f"{count}, one a line of texts",
            )
        return values


def _apart(context_id: str) -> str:
    """Return the ground truth's own context: there it is no reference, least of all its own."""
    return f"{context_id}-truth"
