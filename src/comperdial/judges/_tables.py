"""Ratings in tables: a dimension a row, or a dimension a column."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from comperdial.judges._labels import OTHER, Label, Labels
from comperdial.judges._numbers import Reading, read

_RULE = re.compile(r"[\s|:-]+")
_NUMBERED = re.compile(r"\d{0,3}[.)]?")
_REST = re.compile(r"[\s.,;:!)\]'/-]*")


@dataclass
class Table:
    """A table while it is read row by row."""

    _header: list[Label] = field(default_factory=list)
    _above: list[Label] = field(default_factory=list)

    def row(self, line: str, names: Labels) -> tuple[list[tuple[Label, Reading]], bool]:
        """Return the ratings in a line with bars, and whether it is a row of a table."""
        if _RULE.fullmatch(line):
            self._header = self._above
            return [], True
        cells = [cell.strip(" '") for cell in line.strip().strip("|").split("|")]
        labels = [names.classify(cell) if cell[:1].isalpha() else OTHER for cell in cells]
        self._above = labels
        readings = [_cell(cell, names) for cell in cells]
        # A first column may number the rows.
        first = 1 if len(cells) > 2 and _NUMBERED.fullmatch(cells[0]) and labels[1].kind == "dimension" else 0
        if labels[first].kind in ("dimension", "rating") and any(readings[first + 1 :]):
            scored = {place for place, label in enumerate(self._header) if label.kind == "rating"}
            places = [place for place in range(first + 1, len(cells)) if not scored or place in scored]
            return [(labels[first], reading) for place in places if (reading := readings[place])], True
        under = zip(self._header, readings, strict=False)
        named = [(label, reading) for label, reading in under if reading and label.kind == "dimension"]
        return named, bool(named) or not any(":" in cell for cell in cells)


def _cell(cell: str, names: Labels) -> Reading | None:
    reading = read(cell, 0, names.low, names.high)
    return reading if reading and _REST.fullmatch(cell, reading.end) else None
