"""How well scores separate two classes, with intervals over resampled clusters.

Measures take n classes or scores and weights of shape (n,) or (resamples, n), and return one value or one per resample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating] | npt.NDArray[np.integer] | npt.NDArray[np.bool_]
Measure = Callable[[Floats], Floats]


def accuracy(truth: Values, predicted: Values, weights: Floats) -> Floats:
    """Return the weighted share of correct predictions."""
    return np.asarray(weights @ (truth == predicted) / weights.sum(axis=-1), dtype=np.float64)


def macro_f1(truth: Values, predicted: Values, weights: Floats) -> Floats:
    """Return the mean F1 of both classes; a class that neither occurs nor is predicted counts as 0."""
    scores = []
    for one in (0, 1):
        right = weights @ ((truth == one) & (predicted == one))
        both = weights @ (truth == one) + weights @ (predicted == one)
        scores.append(np.divide(2 * right, both, out=np.zeros_like(both, dtype=float), where=both > 0))
    return np.asarray((scores[0] + scores[1]) / 2, dtype=np.float64)


def auc(truth: Values, scores: Values, weights: Floats) -> Floats:
    """Return the probability that a positive scores above a negative, ties counting half; NaN without both classes."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(scores[order]) > 0))
    positive = np.asarray(truth, dtype=bool)
    ups, downs = (np.add.reduceat((weights * of)[..., order], starts, axis=-1) for of in (positive, ~positive))
    pairs = ups.sum(axis=-1) * downs.sum(axis=-1)
    won = (ups * (np.cumsum(downs, axis=-1) - downs / 2)).sum(axis=-1)
    return np.asarray(np.divide(won, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0))


def correlation(one: Values, other: Values, weights: Floats) -> Floats:
    """Return Pearson's weighted correlation; NaN if a side is constant."""
    share = weights / weights.sum(axis=-1, keepdims=True)
    # Centre first, for precision.
    x, y = (np.asarray(side, dtype=float) - np.mean(side) for side in (one, other))
    mean_x, mean_y = share @ x, share @ y
    products = share @ (x * x) - mean_x**2, share @ (y * y) - mean_y**2
    scale = np.sqrt(np.clip(products[0], 0, None) * np.clip(products[1], 0, None))
    covariance = share @ (x * y) - mean_x * mean_y
    return np.asarray(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 1e-15), dtype=float)


def cluster_weights(clusters: npt.NDArray[np.generic], resamples: int, random: np.random.Generator) -> Floats:
    """Return how often each item counts in each resample of clusters drawn with replacement: resamples x n."""
    names, places = np.unique(clusters, return_inverse=True)
    count = len(names)
    drawn = random.multinomial(count, np.full(count, 1 / count), size=resamples) if count else np.zeros((resamples, 0))
    return np.asarray(drawn[:, places], dtype=np.float64)


def interval(values: Floats) -> tuple[float, float]:
    """Return the 2.5 % and 97.5 % percentiles of resampled values; NaN if fewer than half are defined."""
    kept = values[~np.isnan(values)]
    if len(kept) < max(1, len(values) / 2):
        return np.nan, np.nan
    low, high = np.quantile(kept, [0.025, 0.975])
    return float(low), float(high)


def estimated(measures: Mapping[str, Measure], weights: Floats) -> dict[str, tuple[float, Floats]]:
    """Return each measure on all items and on each resample, processing a few resamples at a time."""
    once = np.ones(weights.shape[1])
    step = max(1, 2**22 // max(1, weights.shape[1]))
    parts = [weights[start : start + step] for start in range(0, len(weights), step)]
    return {name: (float(of(once)), np.concatenate([of(part) for part in parts])) for name, of in measures.items()}
