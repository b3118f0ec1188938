"""Word F1 as in ParlAI, ConvAI2 and the CPD challenge, and the character-level variant in USR's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from comperdial.core.scripts import words
from comperdial.metrics._ngrams import Ngrams, matches
from comperdial.metrics._overlap import WordMetric
from comperdial.metrics.base import Bounds, check_choice


@dataclass(frozen=True, kw_only=True)
class F1(WordMetric):
    """Harmonic mean of the precision and recall of shared words, for the best reference; 0 to 1.

    With c shared tokens, counted with multiplicity: F1 = 2c / (|response| + |reference|), precision = c / |response|,
    recall = c / |reference|. Source: ParlAI, and ComperDial, Table 14 (``Word F1``). ``unit: character`` counts
    characters, spaces included, as in the F-1 row of USR's Tables 5 and 6 (docs/reproduction-notes.md).
    """

    kind: ClassVar[str] = "f1"
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    unit: Literal["word", "character"] = "word"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "unit", ("word", "character"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of F1, precision and recall."""
        return ("f1", "precision", "recall")

    def prepare(self, text: str) -> Ngrams:
        """Return the text's words or characters."""
        return Ngrams(text if self.unit == "character" else tuple(words(text)))

    def pair(self, hypothesis: Ngrams, reference: Ngrams) -> Sequence[float]:
        """Return F1, precision and recall of one pair."""
        (common,) = matches(hypothesis, [reference], 1)
        if not common:
            return 0.0, 0.0, 0.0
        length, other = len(hypothesis), len(reference)
        # A single division of integers: 2PR/(P+R) is equal, but its rounding makes equal scores differ in the last
        # digit, which breaks ties and changes rank correlations in the fourth decimal (docs/reproduction-notes.md).
        return 2 * common / (length + other), common / length, common / other
