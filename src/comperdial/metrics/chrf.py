"""chrF, the character n-gram F-score, as computed by nltk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from comperdial.metrics._ngrams import Ngrams, matches
from comperdial.metrics._overlap import ReferenceMetric
from comperdial.metrics.base import Bounds, check_number

# nltk's regular expressions do not treat these four separators as white space; Python's do.
_WHITE_SPACE = re.compile(r"[^\S\x1c-\x1f]+")
# nltk's F-score of an order without a shared n-gram.
_NOTHING_SHARED = 1e-16


@dataclass(frozen=True, kw_only=True)
class Chrf(ReferenceMetric):
    """nltk's chrF without white space, for the best reference; 0 to 1.

    The mean F-score, with ``beta``, over character n-grams of orders 1 to ``order`` (Popović 2015). sacrebleu computes
    the F-score of the mean precision and recall instead: the two are not comparable. If a text has n < 6 characters,
    chrF is at most n / 6, because missing orders count as 0: ``ok`` compared with itself scores .333.
    """

    kind: ClassVar[str] = "chrf"
    libraries: ClassVar[tuple[str, ...]] = ("nltk",)
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    order: int = 6
    beta: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "order", 1, 100)
        check_number(self, "beta", 0.0, 1000.0)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("chrf",)

    def prepare(self, text: str) -> Ngrams:
        """Return the text's characters."""
        return Ngrams(_WHITE_SPACE.sub("", text))

    def pair(self, hypothesis: Ngrams, reference: Ngrams) -> Sequence[float]:
        """Return the score of one pair."""
        factor = self.beta**2
        values = []
        for order, shared in enumerate(matches(hypothesis, [reference], self.order), start=1):
            value = _NOTHING_SHARED
            if shared:
                precision, recall = shared / hypothesis.total(order), shared / reference.total(order)
                value = (1 + factor) * (precision * recall) / (factor * precision + recall)
            values.append(value)
        return (sum(values) / self.order,)
