"""Distinct-1 and distinct-2: the lexical diversity of a response."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from comperdial.core.scripts import words
from comperdial.metrics._overlap import SplitsWords
from comperdial.metrics.base import Batch, Bounds, Metric, Scores, check_choice
from comperdial.metrics.text import clean

_TEXTS = 16_384


@dataclass(frozen=True, kw_only=True)
class Distinct(SplitsWords, Metric):
    """Number of distinct words, and of distinct bigrams, divided by the number of words of a response; 0 to 1.

    Source: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", who count over all
    responses of a system; here each response is counted by itself. As there, both counts are divided by the number of
    words, so distinct-2 is at most (n - 1) / n and mostly measures the length of short responses; ``over: ngrams`` divides
    bigrams by the number of bigrams. A response that is empty after normalisation has no score; with ``over: ngrams``, a
    response of one word has no distinct-2.
    """

    kind: ClassVar[str] = "distinct"
    needs: ClassVar[tuple[str, ...]] = ()
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    text: Literal["normalised", "raw"] = "normalised"
    """``normalised`` as the word-overlap metrics have it, or ``raw``: the text as it is."""
    over: Literal["words", "ngrams"] = "words"
    split: Literal["words", "characters"] = "words"
    """As word-overlap metrics have it."""

    def __post_init__(self) -> None:
        check_choice(self, "text", ("normalised", "raw"))
        check_choice(self, "over", ("words", "ngrams"))
        check_choice(self, "split", ("words", "characters"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the two orders."""
        return ("distinct-1", "distinct-2")

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct response once."""

        @lru_cache(maxsize=_TEXTS)
        def row(response: str) -> tuple[float, float]:
            found = words(clean(response, self.text))
            pairs = list(pairwise(found))
            below = len(found) if self.over == "words" else len(pairs)
            return _share(len(set(found)), len(found)), _share(len(set(pairs)), below)

        values = np.array([row(response) for response in batch.responses], dtype=np.float64).reshape(len(batch), 2)
        return Scores({name: values[:, column] for column, name in enumerate(self.outputs)})


def _share(count: int, total: int) -> float:
    return count / total if total else np.nan
