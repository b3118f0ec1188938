"""ROUGE-1, ROUGE-2 and ROUGE-L as rouge-score computes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from comperdial.metrics._ngrams import Ngrams, longest_common_subsequence, matches
from comperdial.metrics._stems import stem
from comperdial.metrics.base import Bounds, OverlapMetric, check_choice, check_number

_NAMES = ("rougeL", "rouge1", "rouge2")
_WORD = re.compile("[a-z0-9]+")
# rouge-score leaves shorter words as they are.
_SHORTEST_TO_STEM = 4


@dataclass(frozen=True, kw_only=True)
class Rouge(OverlapMetric):
    """rouge-score's ROUGE with an F that can weigh recall; the reference with the best ROUGE-L counts; 0 to 1.

    The counts are our own, equal to rouge-score's: its tokens, its stems, its precision and recall.
    F = (1 + beta^2) P R / (R + beta^2 P). ComperDial does not say which ROUGE it tabulates, so all are given.

    ``tokens: nlg-eval`` and ``beta: 1.2`` give the ROUGE-L of nlg-eval, which USR and Yeh et al. 2021 report. Its
    tokens are what stands between single spaces, so that a double space holds an empty one; of several references,
    the best precision and the best recall count, which may be those of two.
    """

    kind: ClassVar[str] = "rouge"
    libraries: ClassVar[tuple[str, ...]] = ("rouge-score", "nltk")
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    tokens: Literal["rouge-score", "whitespace", "nlg-eval"] = "rouge-score"
    stem: bool = False
    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "tokens", ("rouge-score", "whitespace", "nlg-eval"))
        check_number(self, "beta", 0.0, 1000.0)
        if self.stem and self.tokens != "rouge-score":
            check_choice(self, "stem", (False,))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return F, precision and recall of each ROUGE, ROUGE-L's F first."""
        return tuple(f"{name}-{part}" for name in _NAMES for part in ("f", "p", "r"))

    def prepare(self, text: str) -> Ngrams:
        """Return the text's tokens."""
        if self.tokens == "whitespace":
            return Ngrams(tuple(text.split()))
        if self.tokens == "nlg-eval":
            # A text of which normalisation leaves nothing has no tokens, like everywhere else.
            return Ngrams(tuple(text.split(" ")) if text else ())
        words = _WORD.findall(text.lower())
        if not self.stem:
            return Ngrams(tuple(words))
        stems = (stem(word) if len(word) >= _SHORTEST_TO_STEM else word for word in words)
        return Ngrams(tuple(token for token in stems if token))

    def pair(self, hypothesis: Ngrams, reference: Ngrams) -> Sequence[float]:
        """Return the nine numbers of one pair."""
        words, pairs = matches(hypothesis, [reference], 2)
        longest = longest_common_subsequence(hypothesis, reference) if words else 0
        numbers: list[float] = []
        for shared, order in ((longest, 1), (words, 1), (pairs, 2)):
            below, above = max(1, hypothesis.total(order)), max(1, reference.total(order))
            numbers += self._parts(shared / below, shared / above)
        return numbers

    def best(self, hypothesis: Ngrams, references: Sequence[Ngrams]) -> Sequence[float]:
        """Return the nine numbers against the best reference, or as nlg-eval has it."""
        if self.tokens != "nlg-eval":
            return super().best(hypothesis, references)
        rows = [self.pair(hypothesis, reference) for reference in references]
        numbers: list[float] = []
        for place in range(0, len(self.outputs), 3):
            numbers += self._parts(max(row[place + 1] for row in rows), max(row[place + 2] for row in rows))
        return numbers

    def _parts(self, precision: float, recall: float) -> tuple[float, float, float]:
        weight = self.beta**2
        below = recall + weight * precision
        return ((1 + weight) * precision * recall / below if below else 0.0), precision, recall
