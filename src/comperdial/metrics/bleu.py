"""Sentence BLEU-1 to BLEU-4 as computed by nltk or nlg-eval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from comperdial.core.scripts import words
from comperdial.metrics._ngrams import Ngrams, matches
from comperdial.metrics._overlap import WordMetric
from comperdial.metrics.base import Bounds, check_choice, check_number

# nltk's method6 is left out: it fails on responses without a shared bigram.
_NLTK = tuple(f"method{number}" for number in (0, 1, 2, 3, 4, 5, 7))
_NLG_EVAL = "nlg-eval"
# These two add 1 to a precision before averaging neighbours, so a copy of a short reference scores above 1.
_BEYOND_1 = ("method5", "method7")
_ORDERS = (4, 3, 2, 1)
_WEIGHTS = [(1 / order,) * order for order in _ORDERS]
# What pycocoevalcap, which nlg-eval runs, adds to numerators and denominators.
_TINY, _SMALL = 1e-15, 1e-9


@dataclass(frozen=True, kw_only=True)
class Bleu(WordMetric):
    """Sentence BLEU with uniform weights, all references at once; 0 to 1, except with ``method5`` and ``method7``.

    BLEU is the brevity penalty, for the reference of the closest length, times the geometric mean of the clipped n-gram
    precisions. ``smoothing`` sets the precision of an order without a shared n-gram:

    - ``method1`` (nltk): ``epsilon`` matches. Without a shared word the score is 0; two identical texts of
      three words have a BLEU-4 of 0.001. Source: ComperDial, appendix C.2.
    - ``nlg-eval`` (pycocoevalcap): each precision is (matches + 1e-15) / (n-grams + 1e-9), as is the ratio of lengths in
      the brevity penalty, so no score is exactly 0. With ``text: raw`` this is what Mehri and Eskenazi 2020 and Yeh et
      al. 2021 ran.
    - ``method0`` to ``method5`` and ``method7``: nltk's.

    The first two are implemented here and agree with their sources to the last digit; they reuse n-gram counts across
    orders and responses. nltk computes the others.
    """

    kind: ClassVar[str] = "bleu"
    libraries: ClassVar[tuple[str, ...]] = ("nltk",)

    smoothing: str = "method1"
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "smoothing", (*_NLTK, _NLG_EVAL))
        check_number(self, "epsilon", 0.0, 1.0, above=True)
        if self.smoothing != "method1":
            # The option has no effect here and would only change the signature.
            check_choice(self, "epsilon", (type(self).epsilon,))

    def signed(self, option: str) -> object:
        """Omit ``epsilon`` from the signature unless it is used."""
        return "none" if option == "epsilon" and self.smoothing == _NLG_EVAL else super().signed(option)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the four orders, BLEU-4 first."""
        return ("bleu-4", "bleu-3", "bleu-2", "bleu-1")

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return 0 to 1, except for the two smoothing methods that can exceed 1."""
        return dict.fromkeys(self.outputs, None if self.smoothing in _BEYOND_1 else (0.0, 1.0))

    def prepare(self, text: str) -> Ngrams:
        """Return the text's words."""
        return Ngrams(tuple(words(text)))

    def pair(self, hypothesis: Ngrams, reference: Ngrams) -> Sequence[float]:
        """Return the four orders for one reference."""
        return self.best(hypothesis, [reference])

    def best(self, hypothesis: Ngrams, references: Sequence[Ngrams]) -> Sequence[float]:
        """Return the four orders; BLEU combines several references itself."""
        if self.smoothing not in ("method1", _NLG_EVAL):
            return self._by_nltk(hypothesis, references)
        length = len(hypothesis)
        shared = matches(hypothesis, references, _ORDERS[0])
        # The shorter one in a tie.
        closest = min((abs(len(reference) - length), len(reference)) for reference in references)[1]
        if self.smoothing == _NLG_EVAL:
            return _nlg_eval(tuple(shared), length, closest)
        return _method1(tuple(shared), length, closest, self.epsilon)

    def _by_nltk(self, hypothesis: Ngrams, references: Sequence[Ngrams]) -> Sequence[float]:
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        smooth = getattr(SmoothingFunction(epsilon=self.epsilon), self.smoothing)
        with warnings.catch_warnings():
            # With method0 (no smoothing), nltk warns whenever an order has no match.
            warnings.simplefilter("ignore", UserWarning)
            scores: Sequence[float] = sentence_bleu(
                [reference.tokens for reference in references], hypothesis.tokens, _WEIGHTS, smoothing_function=smooth
            )
        return scores


# Many responses share the same few counts.
@lru_cache(maxsize=4096)
def _method1(shared: tuple[int, ...], length: int, closest: int, epsilon: float) -> tuple[float, ...]:
    """Return the orders from the clipped counts, with nltk's order of operations, which decides the last digit."""
    if not shared[0]:
        return (0.0,) * len(_ORDERS)
    brevity = 1.0 if length > closest else math.exp(1 - closest / length)
    precisions = [(count or epsilon) / max(1, length - before) for before, count in enumerate(shared)]
    # A tiny epsilon over many n-grams may underflow to 0, which nltk leaves out.
    logarithms = [math.log(precision) if precision > 0 else 0.0 for precision in precisions]
    return tuple(
        brevity * math.exp(math.fsum(w * value for w, value in zip(weights, logarithms, strict=False)))
        for weights in _WEIGHTS
    )


@lru_cache(maxsize=4096)
def _nlg_eval(shared: tuple[int, ...], length: int, closest: int) -> tuple[float, ...]:
    """Return the orders as pycocoevalcap computes them: without a shared word they are nearly 0, not 0."""
    ratio = (length + _TINY) / (closest + _SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    scores, product = [], 1.0
    for before, count in enumerate(shared):
        product *= (count + _TINY) / (max(0, length - before) + _SMALL)
        scores.append(product ** (1 / (before + 1)) * brevity)
    return tuple(reversed(scores))
