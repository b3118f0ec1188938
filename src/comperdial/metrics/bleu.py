"""Sentence BLEU-1 to BLEU-4 by nltk."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from comperdial.metrics.base import OverlapMetric, check_choice, check_number

# nltk's method6 is left out: it fails on responses without a shared pair of words.
_SMOOTHING = tuple(f"method{number}" for number in (0, 1, 2, 3, 4, 5, 7))


@dataclass(frozen=True, kw_only=True)
class Bleu(OverlapMetric):
    """nltk's ``sentence_bleu`` with uniform weights, no re-weighing, all references at once; 0 to 1.

    Source: ComperDial, appendix C.2 (``method1``, epsilon 1e-12). The orders share their n-gram counts: nltk computes
    them in one call.
    """

    kind: ClassVar[str] = "bleu"
    libraries: ClassVar[tuple[str, ...]] = ("nltk",)

    smoothing: str = "method1"
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "smoothing", _SMOOTHING)
        check_number(self, "epsilon", 0.0, 1.0, above=True)
        if self.smoothing != "method1":
            # It would change the signature and not the scores.
            check_choice(self, "epsilon", (type(self).epsilon,))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the four orders, BLEU-4 first."""
        return ("bleu-4", "bleu-3", "bleu-2", "bleu-1")

    def pair(self, hypothesis: str, reference: str) -> Sequence[float]:
        """Return the four orders against one reference."""
        return self.best(hypothesis, [reference])

    def best(self, hypothesis: str, references: Sequence[str]) -> Sequence[float]:
        """Return the four orders; BLEU has its own way of using several references."""
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        weights = [(1 / order,) * order for order in (4, 3, 2, 1)]
        smooth = getattr(SmoothingFunction(epsilon=self.epsilon), self.smoothing)
        with warnings.catch_warnings():
            # nltk recommends smoothing wherever method0, which is none, meets an empty order.
            warnings.simplefilter("ignore", UserWarning)
            scores: Sequence[float] = sentence_bleu(
                [reference.split() for reference in references], hypothesis.split(), weights, smoothing_function=smooth
            )
        return scores
