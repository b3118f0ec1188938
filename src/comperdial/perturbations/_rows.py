"""The rows of a data set of pairs: what they are called, which histories and references they get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.perturbations._text import tidy
from comperdial.perturbations.base import Line
from comperdial.perturbations.items import Context, Item, Source
from comperdial.schema.evaluated import ORIGINAL, PERTURBED


class Rows:
    """The rows of the new tables."""

    def __init__(self, source: Source, dataset: str) -> None:
        self._source, self._dataset = source, dataset
        self._contexts: list[dict[str, Any]] = []
        self._responses: list[dict[str, Any]] = []
        self._pairs: list[dict[str, Any]] = []

    def add(self, name: str, number: int, item: Item, new: list[str], *, turn: bool) -> None:
        """Add a pair."""
        dialogue_id = f"{name}-{number:04d}"
        self._pairs.append(
            {
                "dialogue_id": dialogue_id,
                "perturbation": name,
                "source_dataset": self._source.dataset,
                "source_dialogue_id": item.dialogue_id,
                "source_context_id": item.contexts[0].context_id if turn else None,
                "source_system_id": item.system_id,
            }
        )
        rows = _turn_rows(item, new[0]) if turn else _dialogue_rows(item, new)
        for place, system_id, context, history, references, response in rows:
            context_id = f"{dialogue_id}-{system_id}-{place}"
            self._contexts.append(
                {
                    "dataset": self._dataset,
                    "context_id": context_id,
                    "dialogue_id": dialogue_id,
                    "turn": place,
                    "history": [{"speaker": line.speaker, "text": line.text} for line in history],
                    "references": list(references),
                    "facts": list(context.facts),
                }
            )
            self._responses.append(
                {"dataset": self._dataset, "context_id": context_id, "system_id": system_id, "response": response}
            )

    def pairs(self) -> pd.DataFrame:
        """Return what the pairs were made of."""
        columns = ["dialogue_id", "perturbation", "source_dataset", "source_dialogue_id", "source_context_id"]
        return pd.DataFrame(self._pairs, columns=[*columns, "source_system_id"])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the checked tables."""
        about = {ORIGINAL: f"what systems of {self._source.dataset} said", PERTURBED: "the same, made worse"}
        systems = [
            {"dataset": self._dataset, "system_id": system_id, "kind": "agent", "track": None, "description": text}
            for system_id, text in about.items()
        ]
        personas = self._source.personas().drop(columns="dataset").rename(columns={"dialogue_id": "source_dialogue_id"})
        known = self.pairs()[["dialogue_id", "source_dialogue_id"]].merge(personas, on="source_dialogue_id")
        frames = {
            "systems": pd.DataFrame(systems),
            "contexts": pd.DataFrame(self._contexts, columns=schema.table("contexts").columns),
            "responses": pd.DataFrame(self._responses, columns=schema.table("responses").columns),
            "personas": known.drop(columns="source_dialogue_id").assign(dataset=self._dataset),
        }
        empty = {name: schema.empty(name) for name in ("turn_ratings", "dialogue_ratings")}
        return {name: schema.validate(frame, name) for name, frame in frames.items()} | empty


_Row = tuple[int, str, Context, Sequence[Line], Sequence[str], str]


def _turn_rows(item: Item, new: str) -> Iterator[_Row]:
    context = item.contexts[0]
    for system_id, text in ((ORIGINAL, tidy(item.responses[0])), (PERTURBED, new)):
        yield context.turn, system_id, context, context.history, context.references, text


def _dialogue_rows(item: Item, new: list[str]) -> Iterator[_Row]:
    """Yield the rows of both dialogues; references stay where the history does, and then in both.

    A perturbed dialogue has histories of its own where the original does; where the histories are a recorded
    dialogue's, they are the same for both.
    """
    dialogue = item.dialogue
    lines = [Line(line.speaker, text, line.chatbot) for line, text in zip(dialogue.lines, new, strict=True)]
    places = [place for place, line in enumerate(dialogue.lines) if line.chatbot]
    for turn, (place, context) in enumerate(zip(places, item.contexts, strict=True)):
        old_history = context.history
        new_history = old_history if dialogue.fixed else tuple(lines[:place])
        kept = [line.text.split() for line in old_history] == [line.text.split() for line in new_history]
        references = context.references if kept else ()
        yield turn, ORIGINAL, context, old_history, references, tidy(dialogue.lines[place].text)
        yield turn, PERTURBED, context, new_history, references, lines[place].text
