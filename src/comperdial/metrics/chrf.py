"""chrF, the character n-gram F-score, by nltk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from comperdial.metrics.base import OverlapMetric, check_number


@dataclass(frozen=True, kw_only=True)
class Chrf(OverlapMetric):
    """nltk's ``sentence_chrf`` without white space, best reference; 0 to 1.

    nltk averages the F of the n-gram orders; sacrebleu takes the F of the averaged precision and recall, so the two
    differ (docs/reproduction-notes.md).
    """

    kind: ClassVar[str] = "chrf"
    libraries: ClassVar[tuple[str, ...]] = ("nltk",)

    order: int = 6
    beta: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "order", 1, 100)
        check_number(self, "beta", 0.0, 1000.0)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the one score."""
        return ("chrf",)

    def pair(self, hypothesis: str, reference: str) -> Sequence[float]:
        """Return the score of one pair."""
        from nltk.translate.chrf_score import sentence_chrf

        score: float = sentence_chrf(reference, hypothesis, max_len=self.order, beta=self.beta)
        return (score,)
