"""ROUGE-1, ROUGE-2 and ROUGE-L by rouge-score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from comperdial.metrics.base import OverlapMetric, check_choice, check_number

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

_NAMES = ("rougeL", "rouge1", "rouge2")


class _WhiteSpaceTokens:
    """Tokens as they stand, for texts that are tokenised already."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


@dataclass(frozen=True, kw_only=True)
class Rouge(OverlapMetric):
    """rouge-score's ROUGE with an F that can weigh recall; the reference with the best ROUGE-L counts; 0 to 1.

    ``beta: 1.2`` and ``tokens: whitespace`` give the ROUGE-L of nlg-eval, which USR and Yeh et al. 2021 report:
    F = (1 + beta^2) P R / (R + beta^2 P). ComperDial does not say which ROUGE it tabulates, so all are given.
    """

    kind: ClassVar[str] = "rouge"
    libraries: ClassVar[tuple[str, ...]] = ("rouge-score", "nltk")

    tokens: Literal["rouge-score", "whitespace"] = "rouge-score"
    stem: bool = False
    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "tokens", ("rouge-score", "whitespace"))
        check_number(self, "beta", 0.0, 1000.0)
        if self.stem and self.tokens == "whitespace":
            check_choice(self, "stem", (False,))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return F, precision and recall of each ROUGE, ROUGE-L's F first."""
        return tuple(f"{name}-{part}" for name in _NAMES for part in ("f", "p", "r"))

    @cached_property
    def _scorer(self) -> RougeScorer:
        from rouge_score.rouge_scorer import RougeScorer

        tokenizer = _WhiteSpaceTokens() if self.tokens == "whitespace" else None
        return RougeScorer(list(_NAMES), use_stemmer=self.stem, tokenizer=tokenizer)

    def pair(self, hypothesis: str, reference: str) -> Sequence[float]:
        """Return the nine numbers of one pair."""
        scores = self._scorer.score(reference, hypothesis)
        return [number for name in _NAMES for number in self._parts(scores[name].precision, scores[name].recall)]

    def _parts(self, precision: float, recall: float) -> tuple[float, float, float]:
        weight = self.beta**2
        below = recall + weight * precision
        return ((1 + weight) * precision * recall / below if below else 0.0), precision, recall
