"""What a strategy gets: a response with its history or a dialogue, and the texts of the whole data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from comperdial.perturbations.entities import Finder
from comperdial.perturbations.text import same


class Line(NamedTuple):
    """An utterance of a dialogue; ``chatbot`` marks those of the system under test."""

    speaker: str
    text: str
    chatbot: bool = False


@dataclass(frozen=True)
class Turn:
    """A response and the utterances before it."""

    dialogue_id: str
    history: tuple[Line, ...]
    response: str


@dataclass(frozen=True)
class Dialogue:
    """A whole dialogue with one system.

    Attributes
    ----------
    fixed
        The other utterances come from a recorded dialogue without this system: only the system's own may be changed.
    """

    dialogue_id: str
    lines: tuple[Line, ...]
    fixed: bool

    @property
    def movable(self) -> list[int]:
        """Return the positions that a strategy may change if it does not change the chatbot's utterances alone."""
        return [place for place, line in enumerate(self.lines) if line.chatbot or not self.fixed]


@dataclass(frozen=True)
class Corpus:
    """The texts of a data set.

    Attributes
    ----------
    by_dialogue
        All texts of each dialogue.
    responses, utterances
        Sorted texts to draw from: responses of systems; these, histories and references.
    """

    by_dialogue: Mapping[str, set[str]]
    responses: Sequence[str]
    utterances: Sequence[str]

    def elsewhere(self, dialogue_id: str, random: np.random.Generator, texts: Sequence[str], than: str) -> str | None:
        """Return a random one of ``texts`` that is not in a dialogue and differs from ``than``; None after 100 draws."""
        for _ in range(100 if texts else 0):
            text = texts[int(random.integers(len(texts)))]
            if text not in self.by_dialogue.get(dialogue_id, ()) and not same(text, than):
                return text
        return None

    @cached_property
    def finder(self) -> Finder:
        """Return the finder of entities in the texts of this data set."""
        return Finder(self.utterances)

    @cached_property
    def entities(self) -> dict[str, list[str]]:
        """Return the data set's entities by kind, sorted."""
        kinds: dict[str, set[str]] = {}
        for text in self.utterances:
            for entity in self.finder.find(text):
                kinds.setdefault(entity.kind, set()).add(entity.text)
        return {kind: sorted(names) for kind, names in kinds.items()}
