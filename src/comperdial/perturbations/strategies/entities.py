"""Names, places, languages, dates and numbers give way to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comperdial.perturbations.base import Turn, TurnStrategy
from comperdial.perturbations.entities import KINDS, SPELLED
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.text import is_lower, join, like, split

_OTHER_KIND = 0.5
# A number in a name's place, or a name in a number's, would be no entity any more but a broken sentence.
_FIXED = "number"
# Fewer names would return all the time.
_FEWEST = 5


class Entities(TurnStrategy):
    """Each entity of a response becomes another of its kind; in half of the responses, one of another kind.

    Which others there are, the data set says; where it has no other of a kind, the lists of
    :mod:`comperdial.perturbations.entities` do. An entity that stands twice becomes the same twice.
    """

    def change(self, turn: Turn, pool: Pool, random: np.random.Generator) -> str | None:
        """Return the response with its entities replaced."""
        found = pool.finder.find(turn.response)
        if not found:
            return None
        other_kind = random.random() < _OTHER_KIND
        pieces = split(turn.response)
        small = is_lower(turn.response)
        chosen: dict[str, str] = {}
        for entity in found:
            key = entity.text.lower()
            if key not in chosen:
                kinds = [kind for kind in sorted(KINDS) if kind not in {entity.kind, _FIXED}]
                swap = other_kind and entity.kind != _FIXED
                kind = kinds[random.integers(len(kinds))] if swap else entity.kind
                new = _other(entity.text, kind, pool, random)
                if new is None:
                    return None
                chosen[key] = new.lower() if small or kind == _FIXED else SPELLED.get(new.lower(), new)
        # From the end, so that places before stay right.
        for entity in reversed(found):
            new = chosen[entity.text.lower()]
            pieces[entity.start].text = like(new, entity.text) if entity.kind == _FIXED else new
            del pieces[entity.start + 1 : entity.end]
        text = join(pieces)
        return text if small else text[:1].upper() + text[1:] if turn.response[:1].isupper() else text


def _other(text: str, kind: str, pool: Pool, random: np.random.Generator) -> str | None:
    if kind == _FIXED and text[0].isdigit():
        return _number(text, random)
    known: Sequence[str] = [name for name in pool.entities.get(kind, ()) if not name[0].isdigit()]
    for names in (known, KINDS.get(kind, ()), KINDS["person"]):
        others = sorted({name.lower(): name for name in names if name.lower() != text.lower()}.items())
        if len(others) >= _FEWEST:
            return others[random.integers(len(others))][1]
    return None


def _number(text: str, random: np.random.Generator) -> str | None:
    """Return a number with other digits, as many of them; what stands between them stays."""
    for _ in range(20):
        digits = [str(random.integers(1 if place == 0 and text != "0" else 0, 10)) for place in range(len(text))]
        new = "".join(digit if old.isdigit() else old for old, digit in zip(text, digits, strict=True))
        if new != text:
            return new
    return None
