"""Find named entities without a model: by lists, by capitals inside sentences, by digits.

What this finds: names, places, languages, weekdays, months and numbers of the lists, with or without capitals; any
other capitalised word inside a sentence that the data set does not also write small (kind ``name``), with capitalised
neighbours as one name; numbers in digits. What it misses: names that no list has in texts without capitals, and names
that only ever begin a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from comperdial.perturbations._gazetteer import AMBIGUOUS, KINDS
from comperdial.perturbations._generic import STOP_WORDS
from comperdial.perturbations._text import Piece, is_lower, split

_BREAKS = {".", "!", "?", ":", ";", "…", '"', "“", "(", "*", "-", "–", "—"}
_KNOWN = {name.lower(): kind for kind, names in KINDS.items() for name in names}
_LONGEST = max(len(name.split()) for name in _KNOWN)
_NUMBER = re.compile(r"\d[\d.,:]*")


@dataclass(frozen=True)
class Entity:
    """A name or number in a text, from the piece ``start`` to before the piece ``end``."""

    start: int
    end: int
    kind: str
    text: str


class Finder:
    """Finds entities as the texts of one data set write them.

    Parameters
    ----------
    texts
        The data set's texts: they tell which capitalised words are names and which are words with a capital.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._small: Counter[str] = Counter()
        self._capital: Counter[str] = Counter()
        for text in texts:
            # A text without capitals says nothing about which words have one.
            if is_lower(text):
                continue
            pieces = split(text)
            for place, piece in enumerate(pieces):
                if piece.text.islower():
                    self._small[piece.low] += 1
                elif piece.text.istitle() and not _begins(pieces, place):
                    self._capital[piece.low] += 1

    def find(self, text: str) -> list[Entity]:
        """Return a text's entities in order."""
        pieces = split(text)
        shouts = text.isupper()
        found = []
        place = 0
        while place < len(pieces):
            entity = _listed(pieces, place) or (None if shouts else self._named(pieces, place))
            if entity:
                found.append(entity)
            place = entity.end if entity else place + 1
        return found

    def _named(self, pieces: list[Piece], start: int) -> Entity | None:
        end = start
        while end < len(pieces) and self._is_name(pieces, end) and (end == start or pieces[end].gap):
            end += 1
        return _entity(pieces, start, end, "name") if end > start else None

    def _is_name(self, pieces: list[Piece], place: int) -> bool:
        piece = pieces[place]
        # Titles and names only: a word all in capitals shouts, or is short for something.
        if not piece.text.istitle() or len(piece.text) < 2 or piece.low in STOP_WORDS:
            return False
        if self._small[piece.low] >= max(1, self._capital[piece.low]):
            return False
        return not _begins(pieces, place) or self._capital[piece.low] > 1


def _begins(pieces: list[Piece], place: int) -> bool:
    return place == 0 or pieces[place - 1].text in _BREAKS


def _listed(pieces: list[Piece], start: int) -> Entity | None:
    if _NUMBER.fullmatch(pieces[start].text):
        # "1st", "3d" and "u2" are no plain numbers.
        before = pieces[start - 1] if start and not pieces[start].gap else None
        after = pieces[start + 1] if start + 1 < len(pieces) and not pieces[start + 1].gap else None
        in_word = any(piece is not None and piece.is_word for piece in (before, after))
        return None if in_word else _entity(pieces, start, start + 1, "number")
    for length in range(_LONGEST, 0, -1):
        words = pieces[start : start + length]
        name = " ".join(piece.low for piece in words)
        kind = _KNOWN.get(name)
        if kind is None or len(words) < length:
            continue
        if name in AMBIGUOUS and (_begins(pieces, start) or words[0].text.islower()):
            continue
        return _entity(pieces, start, start + length, kind)
    return None


def _entity(pieces: list[Piece], start: int, end: int, kind: str) -> Entity:
    return Entity(start, end, kind, " ".join(piece.text for piece in pieces[start:end]))
