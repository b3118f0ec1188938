"""What a strategy is given and what it returns.

A strategy is one file in ``comperdial.perturbations.strategies`` with one class, and one entry in
:mod:`comperdial.perturbations.registry` under the file's name. It holds no state: all chance comes from the generator
that it is given, which depends on the seed, the strategy and the item alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from comperdial.perturbations.pool import Pool


@dataclass(frozen=True)
class Line:
    """An utterance of a dialogue; ``chatbot`` marks those of the system under test."""

    speaker: str
    text: str
    chatbot: bool = False


@dataclass(frozen=True)
class Turn:
    """A response and what was said before it."""

    dialogue_id: str
    history: tuple[Line, ...]
    response: str

    @property
    def own(self) -> list[str]:
        """Return what the speaker of the response said before: all that the last utterance's speaker did not say."""
        if not self.history:
            return []
        other = self.history[-1].speaker
        return [line.text for line in self.history if line.speaker != other]


@dataclass(frozen=True)
class Dialogue:
    """A whole dialogue with one system.

    Attributes
    ----------
    fixed
        The others' utterances come from a recorded dialogue, in which the system's own never stood: only the
        system's may be changed.
    """

    dialogue_id: str
    lines: tuple[Line, ...]
    fixed: bool

    @property
    def movable(self) -> list[int]:
        """Return the positions that a strategy may change when it is not about the chatbot alone."""
        return [place for place, line in enumerate(self.lines) if line.chatbot or not self.fixed]


class Strategy(ABC):  # noqa: B024 - what is abstract differs by level
    """Base of all strategies."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Find what the strategy needs; raise :class:`MissingResourceError` when it is not on this machine."""


class TurnStrategy(Strategy):
    """Makes a response worse."""

    @abstractmethod
    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the changed response, or None when it cannot be changed."""


class DialogueStrategy(Strategy):
    """Makes a dialogue worse."""

    @abstractmethod
    def change(self, dialogue: Dialogue, pool: Pool, random: np.random.Generator) -> list[str] | None:
        """Return the texts of all lines, in place, or None when the dialogue cannot be changed."""


def rewrite(dialogue: Dialogue, new: Callable[[int, Line], str]) -> list[str]:
    """Return the texts of a dialogue, those of the chatbot as ``new`` says for their position."""
    return [new(place, line) if line.chatbot else line.text for place, line in enumerate(dialogue.lines)]
