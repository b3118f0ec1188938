"""Input of the strategies: a response with its history or a dialogue, and the data set's texts and named entities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from comperdial.perturbations.text import STOP_WORDS, WORDS, Piece, same, split

NAMES = {kind: [" ".join(name.split()) for name in text.split(",")] for kind, text in WORDS["names"].items()}
"""Names by kind: person, place, language, weekday, month, number."""
_KINDS = {name.lower(): kind for kind, names in NAMES.items() for name in names}
_LONGEST = max(len(name.split()) for name in _KINDS)
_AMBIGUOUS = frozenset(WORDS["ambiguous"].split())
# A sentence or clause starts after these, so its first word is capitalized anyway.
_BREAKS = frozenset('.!?:;…"“(*-–—')


class Line(NamedTuple):
    """An utterance of a dialogue; ``chatbot`` marks those of the tested system."""

    speaker: str
    text: str
    chatbot: bool = False


class Turn(NamedTuple):
    """A response and the utterances before it."""

    dialogue_id: str
    history: tuple[Line, ...]
    response: str


class Dialogue(NamedTuple):
    """A dialogue with one system.

    ``fixed``: the other utterances were recorded without this system, so only the system's may change.
    """

    dialogue_id: str
    lines: tuple[Line, ...]
    fixed: bool

    @property
    def texts(self) -> list[str]:
        """Return the texts of all lines."""
        return [line.text for line in self.lines]

    @property
    def movable(self) -> list[int]:
        """Return the positions that a strategy may change, unless it changes only the chatbot's utterances."""
        return [place for place, line in enumerate(self.lines) if line.chatbot or not self.fixed]


class Entity(NamedTuple):
    """A name or number in a text, from piece ``start`` up to, but excluding, piece ``end``."""

    start: int
    end: int
    kind: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """The texts of a data set, by dialogue, and sorted for drawing.

    ``responses`` are those of systems, ``utterances`` also histories and references.
    """

    by_dialogue: Mapping[str, set[str]]
    responses: Sequence[str]
    utterances: Sequence[str]

    def elsewhere(self, dialogue_id: str, random: np.random.Generator, texts: Sequence[str], than: str) -> str | None:
        """Return a random text that is not in the dialogue and differs from ``than``; None after 100 draws."""
        for _ in range(100 if texts else 0):
            text = texts[int(random.integers(len(texts)))]
            if text not in self.by_dialogue.get(dialogue_id, ()) and not same(text, than):
                return text
        return None

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Return the data set's entities by kind, sorted."""
        kinds: dict[str, set[str]] = defaultdict(set)
        for text in self.utterances:
            for entity in self.entities(text):
                kinds[entity.kind].add(entity.text)
        return {kind: sorted(names) for kind, names in kinds.items()}

    def entities(self, text: str) -> list[Entity]:
        """Find a text's named entities, in order, without a model.

        These are listed names, capitalized or not, numbers in digits, and capitalized words inside a sentence that the data set
        does not write in lower case more often (kind ``name``, joining capitalized neighbours). Other names in lower-case
        texts, and names that only begin sentences, are missed.
        """
        pieces, entities, place = split(text), [], 0
        while place < len(pieces):
            end, kind = _listed(pieces, place) or (place, "name")
            # In an all-caps text, capitals are uninformative.
            while kind == "name" and not text.isupper() and self._goes_on(pieces, place, end):
                end += 1
            if end > place:
                entities.append(Entity(place, end, kind, " ".join(piece.text for piece in pieces[place:end])))
            place = max(end, place + 1)
        return entities

    def _goes_on(self, pieces: list[Piece], start: int, end: int) -> bool:
        """Return whether the name that begins at ``start`` includes the piece at ``end``."""
        if end == len(pieces) or (end > start and not pieces[end].gap):
            return False
        piece = pieces[end]
        # An all-caps word is emphasis or an acronym.
        if not piece.text.istitle() or len(piece.text) < 2 or piece.low in STOP_WORDS:
            return False
        small, capital = (counts[piece.low] for counts in self._spellings)
        return small < max(1, capital) and (capital > 1 or not _begins(pieces, end))

    @cached_property
    def _spellings(self) -> tuple[Counter[str], Counter[str]]:
        """Count the words written in lower case, and capitalized inside a sentence."""
        small, capital = Counter[str](), Counter[str]()
        for text in self.utterances:
            # An all-lower-case text is uninformative about capitals.
            pieces = split(text) if text != text.lower() else []
            small.update(piece.low for piece in pieces if piece.text.islower())
            titles = (place for place, piece in enumerate(pieces) if piece.text.istitle())
            capital.update(pieces[place].low for place in titles if not _begins(pieces, place))
        return small, capital


def _begins(pieces: list[Piece], place: int) -> bool:
    return place == 0 or pieces[place - 1].text in _BREAKS


def _listed(pieces: list[Piece], start: int) -> tuple[int, str] | None:
    """Return the end and the kind of the number, or the longest listed name, at a position."""
    if re.fullmatch(r"\d[\d.,:]*", pieces[start].text):
        # "1st", "3d" and "u2" are not plain numbers.
        before = start > 0 and not pieces[start].gap and pieces[start - 1].is_word
        after = start + 1 < len(pieces) and not pieces[start + 1].gap and pieces[start + 1].is_word
        return None if before or after else (start + 1, "number")
    for end in range(min(start + _LONGEST, len(pieces)), start, -1):
        name = " ".join(piece.low for piece in pieces[start:end])
        as_word = name in _AMBIGUOUS and (_begins(pieces, start) or pieces[start].text.islower())
        if name in _KINDS and not as_word:
            return end, _KINDS[name]
    return None
