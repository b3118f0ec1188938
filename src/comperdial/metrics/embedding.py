"""Embedding Average, Vector Extrema and Greedy Matching of a model's token vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from comperdial.metrics._embedding import Vector, cosine, cosines, own
from comperdial.metrics._pairs import PairMetric
from comperdial.metrics.base import Bounds
from comperdial.models.vectors import Encoded


@dataclass(frozen=True, kw_only=True)
class Embedding(PairMetric):
    """The three cosines of Liu et al. 2016 between a response and its best reference; -1 to 1.

    Average compares the means of the token vectors; extrema compares vectors of each dimension's value farthest from
    zero; greedy is the mean best cosine of the tokens, averaged over both directions. The papers use GloVe or word2vec;
    this metric uses a model's contextual vectors (``layer: 0``: those before its first layer), so it does not reproduce
    published values. A text without tokens has no score.
    """

    kind: ClassVar[str] = "embedding"
    limits: ClassVar[Bounds | None] = (-1.0, 1.0)

    model: str = "all-MiniLM-L6-v2"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the three cosines."""
        return ("average", "extrema", "greedy")

    def pair(self, hypothesis: Encoded, reference: Encoded) -> tuple[float, ...]:
        """Return the three cosines of one pair."""
        one, other = own(hypothesis), own(reference)
        if not len(one) or not len(other):
            return np.nan, np.nan, np.nan
        similarity = cosines(one, other)
        greedy = (float(similarity.max(axis=1).mean()) + float(similarity.max(axis=0).mean())) / 2
        return cosine(one.mean(axis=0), other.mean(axis=0)), cosine(extrema(one), extrema(other)), greedy


def extrema(vectors: Vector) -> Vector:
    """Return, for each dimension, the value farthest from zero; in a tie the positive one."""
    high, low = vectors.max(axis=0), vectors.min(axis=0)
    return np.where(high >= -low, high, low)
