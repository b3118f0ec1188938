"""ROUGE-1, ROUGE-2 and ROUGE-L as computed by rouge-score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from comperdial.core.scripts import Writing, alphanumeric_words, has_no_spaces, words
from comperdial.metrics._ngrams import Ngrams, longest_common_subsequence, matches
from comperdial.metrics._overlap import WordMetric
from comperdial.metrics._stems import stem
from comperdial.metrics.base import Bounds, check_choice, check_number

_NAMES = ("rougeL", "rouge1", "rouge2")
# rouge-score does not stem shorter words.
_SHORTEST_TO_STEM = 4


@dataclass(frozen=True, kw_only=True)
class Rouge(WordMetric):
    """rouge-score's ROUGE-1, 2 and L with an F-score that can weight recall, each for its best reference; 0 to 1.

    Precision and recall of shared n-grams, or for ROUGE-L of the longest common subsequence, with rouge-score's tokens
    and stems; F = (1 + beta^2) P R / (R + beta^2 P). ComperDial does not state which ROUGE it reports, so all are given.

    rouge-score keeps only ASCII letters and digits. Here letters and digits of other scripts, and emoji, are tokens too
    (:func:`comperdial.core.scripts.alphanumeric_words`); the signature then contains ``tokens:unicode``. Scores of ASCII
    text are the same.

    ``tokens: nlg-eval`` with ``beta: 1.2`` and ``text: raw`` is the ROUGE-L of nlg-eval, which USR and Yeh et al. 2021
    report. It splits at single spaces, so a double space gives an empty token; with several references, it combines the
    best precision and the best recall, even of different ones. ``tokens: whitespace`` splits at any white space.
    """

    kind: ClassVar[str] = "rouge"
    libraries: ClassVar[tuple[str, ...]] = ("rouge-score", "nltk")
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    tokens: Literal["rouge-score", "unicode", "whitespace", "nlg-eval"] = "rouge-score"
    stem: bool = False
    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "tokens", ("rouge-score", "unicode", "whitespace", "nlg-eval"))
        check_number(self, "beta", 0.0, 1000.0)
        if self.stem and not self._alphanumeric:
            check_choice(self, "stem", (False,))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of F, precision and recall of each ROUGE, ROUGE-L's F first."""
        return tuple(f"{name}-{part}" for name in _NAMES for part in ("f", "p", "r"))

    @property
    def _alphanumeric(self) -> bool:
        return self.tokens in ("rouge-score", "unicode")

    def suited_to(self, writing: Writing) -> Self:
        """Name the tokens in the signature if they differ from rouge-score's."""
        found = super().suited_to(writing)
        return replace(found, tokens="unicode") if writing.beyond_ascii and found.tokens == "rouge-score" else found

    def prepare(self, text: str) -> Ngrams:
        """Return the text's tokens."""
        if self.tokens == "whitespace":
            return Ngrams(tuple(words(text)))
        if self.tokens == "nlg-eval":
            if has_no_spaces(text):
                return Ngrams(tuple(words(text)))
            # As in other metrics, a text that is empty after normalisation has no tokens.
            return Ngrams(tuple(text.split(" ")) if text else ())
        found = alphanumeric_words(text)
        if not self.stem:
            return Ngrams(tuple(found))
        stems = (stem(word) if len(word) >= _SHORTEST_TO_STEM and word.isascii() else word for word in found)
        return Ngrams(tuple(token for token in stems if token))

    def pair(self, hypothesis: Ngrams, reference: Ngrams) -> Sequence[float]:
        """Return the nine values of one pair."""
        singles, pairs = matches(hypothesis, [reference], 2)
        longest = longest_common_subsequence(hypothesis, reference) if singles else 0
        numbers: list[float] = []
        for shared, order in ((longest, 1), (singles, 1), (pairs, 2)):
            below, above = max(1, hypothesis.total(order)), max(1, reference.total(order))
            numbers += self._parts(shared / below, shared / above)
        return numbers

    def best(self, hypothesis: Ngrams, references: Sequence[Ngrams]) -> Sequence[float]:
        """Return the nine values, for the best reference of each type or combined as in nlg-eval."""
        rows = [self.pair(hypothesis, reference) for reference in references]
        numbers: list[float] = []
        for place in range(0, len(self.outputs), 3):
            if self.tokens == "nlg-eval":
                numbers += self._parts(max(row[place + 1] for row in rows), max(row[place + 2] for row in rows))
            else:
                numbers += max(tuple(row[place : place + 3]) for row in rows)
        return numbers

    def _parts(self, precision: float, recall: float) -> tuple[float, float, float]:
        weight = self.beta**2
        below = recall + weight * precision
        return ((1 + weight) * precision * recall / below if below else 0.0), precision, recall
