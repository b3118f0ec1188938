"""Word F1 as in ParlAI, ConvAI2 and the CPD challenge, and the character-level variant that USR's tables print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from comperdial.metrics.base import OverlapMetric, check_choice
from comperdial.metrics.text import overlap_f1


@dataclass(frozen=True, kw_only=True)
class F1(OverlapMetric):
    """Harmonic mean of the precision and recall of shared words (a multiset), best reference; 0 to 1.

    Source: ComperDial, Table 14 (``Word F1``). ``unit: character`` counts characters, spaces included, which is what
    the F-1 row of USR's Tables 5 and 6 turns out to be (docs/reproduction-notes.md).
    """

    kind: ClassVar[str] = "f1"

    unit: Literal["word", "character"] = "word"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "unit", ("word", "character"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return F1, precision, recall."""
        return ("f1", "precision", "recall")

    def pair(self, hypothesis: str, reference: str) -> Sequence[float]:
        """Return F1, precision and recall of one pair."""
        if self.unit == "character":
            return overlap_f1(hypothesis, reference)
        return overlap_f1(hypothesis.split(), reference.split())
