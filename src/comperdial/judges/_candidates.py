"""Numbers that may be ratings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from comperdial.judges._labels import OTHER, Label, Labels
from comperdial.judges._lines import GAP, LABEL, SENTENCE_END, SOFT
from comperdial.judges._numbers import Reading, read
from comperdial.judges._values import doubtful


class Kind(IntEnum):
    """How a number is said to be a rating; a lower kind counts more."""

    NAMED = 0
    ECHOED = 1
    ALONE = 2
    INLINE = 3
    PROSE = 4
    WEAK = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A number that may be the rating of a dimension (None: of whatever is asked for)."""

    dimension: str | None
    kind: Kind
    reading: Reading
    label: Label = OTHER


@dataclass
class Notes:
    """The numbers of an answer that may be ratings.

    Attributes
    ----------
    candidates
        In the order of the answer.
    named
        Whether one of them is a dimension's, under its name.
    """

    names: Labels
    candidates: list[Candidate] = field(default_factory=list)
    named: bool = False
    _section: str = ""

    def read(self, text: str, at: int) -> Reading | None:
        """Read a number against the form's scale."""
        return read(text, at, self.names.low, self.names.high)

    def add(self, dimension: str | None, kind: Kind, reading: Reading | None, label: Label = OTHER) -> bool:
        """Note a number; return whether there is one."""
        if reading is not None:
            self.named = self.named or (kind == Kind.NAMED and dimension is not None)
            self.candidates.append(Candidate(dimension, kind, reading, label))
        return reading is not None

    def disown(self) -> None:
        """Take all that was noted for a quote."""
        for place, each in enumerate(self.candidates):
            reading = Reading(None, "a quoted rating", each.reading.end)
            self.candidates[place] = Candidate(each.dimension, each.kind, reading, each.label)

    def _sure(self, line: str, reading: Reading | None) -> Reading | None:
        """Return the reading of a number after a label, or why it is no rating of it."""
        if reading is None or reading.why or self._goes_on(line, reading.end):
            return reading
        why = doubtful(line, reading.end)
        return Reading(None, why, reading.end) if why else reading

    def _goes_on(self, line: str, at: int) -> bool:
        """Return whether another rating or the explanation follows in the line."""
        gap = GAP.match(line, at)
        found = LABEL.match(line, gap.end()) if gap else None
        return found is not None and self.names.classify(found[1]).kind in ("dimension", "rating", "rationale")

    def _inline(self, line: str, at: int) -> None:
        """Note ratings that are named after the end of a sentence."""
        for end in SENTENCE_END.finditer(line, at):
            found = LABEL.match(line, end.end())
            label = self.names.classify(found[1]) if found else OTHER
            if found and label.kind in ("dimension", "rating"):
                soft = SOFT.match(line, found.end())
                kind = Kind.WEAK if label.dimension is None and self._section == "other" else Kind.INLINE
                reading = self.read(line, soft.end() if soft else found.end())
                self.add(label.dimension, kind, self._sure(line, reading), label)
