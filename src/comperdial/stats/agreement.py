"""Agreement between raters."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Literal

import krippendorff
import numpy as np
import numpy.typing as npt
from scipy import sparse

from comperdial.stats.correlation import Coefficient, correlate

Floats = npt.NDArray[np.float64]
Measurement = Literal["ordinal", "interval", "nominal", "ratio"]
MEASUREMENTS: tuple[Measurement, ...] = ("ordinal", "interval", "nominal", "ratio")

# Numbers held at a time while resampling: 32 MB of them.
_AT_ONCE = 2**22


def pairwise_agreement(ratings: npt.ArrayLike, coefficient: Coefficient) -> float:
    """Return the mean correlation between all pairs of columns.

    Parameters
    ----------
    ratings
        Shape (items, raters); NaN where a rater did not rate an item. In USR's Table 1 a column is a position, not a
        person: position 1 of one item may be another person than position 1 of the next.
    coefficient
        As in :func:`comperdial.stats.correlation.correlate`.

    Returns
    -------
    float
        NaN when a pair of columns has no correlation.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"expected items x raters with two raters or more, got shape {table.shape}")
    pairs = combinations(range(table.shape[1]), 2)
    return float(np.mean([correlate(table[:, i], table[:, j], coefficient).value for i, j in pairs]))


def is_pairable(ratings: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say of each item (row) whether two raters or more rated it: only such items count in Krippendorff's alpha."""
    return np.asarray((~np.isnan(np.asarray(ratings, dtype=np.float64))).sum(axis=1) >= 2)


def krippendorff_alpha(ratings: npt.ArrayLike, level: Measurement = "ordinal") -> float:
    """Return Krippendorff's alpha, as the library ``krippendorff`` computes it.

    Parameters
    ----------
    ratings
        Shape (items, raters); NaN where a rater did not rate an item.
    level
        Level of measurement: ``ordinal``, ``interval``, ``nominal`` or ``ratio`` (ratings of 0 or more).

    Returns
    -------
    float
        1 for perfect agreement, 0 for what chance would give. NaN where it is undefined: no item has two ratings, or
        those that have do not vary.
    """
    table = _checked(ratings, level)
    table = table[is_pairable(table)]
    if len(_values(table)) < 2:
        return float("nan")
    return float(krippendorff.alpha(reliability_data=table.T, level_of_measurement=level))


def alpha_interval(
    ratings: npt.ArrayLike,
    level: Measurement,
    *,
    rng: np.random.Generator,
    resamples: int = 1000,
    confidence: float = 0.95,
    clusters: npt.ArrayLike | None = None,
) -> tuple[float, float, float]:
    """Return Krippendorff's alpha with a percentile bootstrap interval over items, or over clusters of items.

    The coincidence matrix is a sum over items, so that of a resample is a weighted sum of what each item brings to it.
    That is exact; the distances of ordinal ratings, which depend on the marginals, are those of the resample.

    Parameters
    ----------
    ratings, level
        As in :func:`krippendorff_alpha`.
    rng
        Source of the resamples.
    resamples
        How many.
    confidence
        Coverage of the interval, between 0 and 1.
    clusters
        Shape (items,): the cluster of each item, as whole numbers. Whole clusters are drawn, with replacement, so that
        what the items of a cluster share does not pass for precision. Default: each item is drawn for itself.

    Returns
    -------
    tuple of float
        Value, low, high. Items with fewer than two ratings take no part, and neither do resamples without variation.
        All three are NaN where alpha is undefined.
    """
    table = _checked(ratings, level)
    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError(f"expected 1 resample or more and 0 < confidence < 1, got {resamples} and {confidence}")
    labels = np.arange(len(table)) if clusters is None else np.asarray(clusters)
    if labels.shape != (len(table),):
        raise ValueError(f"expected a cluster for each of {len(table)} items, got shape {labels.shape}")
    value = krippendorff_alpha(table, level)
    if np.isnan(value):
        return value, value, value
    kept = is_pairable(table)
    found = _resampled(table[kept], labels[kept], level, rng, resamples)
    found = found[~np.isnan(found)]
    if not len(found):
        return value, float("nan"), float("nan")
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return value, float(low), float(high)


def _checked(ratings: npt.ArrayLike, level: Measurement) -> Floats:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"expected items x raters, got shape {table.shape}")
    if level not in MEASUREMENTS:
        raise ValueError(f"unknown level of measurement {level!r}; expected one of {', '.join(MEASUREMENTS)}")
    if level == "ratio" and (table < 0).any():
        raise ValueError("ratings on a ratio scale cannot be negative")
    return table


def _values(table: Floats) -> Floats:
    return np.unique(table[~np.isnan(table)])


def _resampled(
    table: Floats, labels: npt.NDArray[np.generic], level: Measurement, rng: np.random.Generator, resamples: int
) -> Floats:
    """Return the alphas of resamples of the clusters of a table whose every item has two ratings or more."""
    values = _values(table)
    index = np.unique(labels, return_inverse=True)[1]
    units = int(index.max()) + 1
    brought = _contributions(table, values, index)
    at_once = max(1, _AT_ONCE // max(units, len(values) ** 2))
    found = []
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        drawn = rng.integers(units, size=(count, units)) + units * np.arange(count)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=count * units).reshape(count, units).astype(np.float64)
        coincidences = np.asarray(times @ brought).reshape(count, len(values), len(values))
        found.append(_alphas(coincidences, values, level))
    return np.concatenate(found)


def _contributions(table: Floats, values: Floats, index: npt.NDArray[np.intp]) -> sparse.csr_array:
    """Return what each cluster brings to the coincidence matrix: shape (clusters, values x values), sparse.

    Each ordered pair of ratings of one item, by different raters, adds 1 / (ratings of the item - 1).
    """
    rated = ~np.isnan(table)
    codes = np.searchsorted(values, np.where(rated, table, values[0]))
    share = 1.0 / (rated.sum(axis=1) - 1)
    rows, columns, data = [], [], []
    for one, other in permutations(range(table.shape[1]), 2):
        both = rated[:, one] & rated[:, other]
        rows.append(index[both])
        columns.append(codes[both, one] * len(values) + codes[both, other])
        data.append(share[both])
    where = (np.concatenate(rows), np.concatenate(columns))
    shape = (int(index.max()) + 1, len(values) ** 2)
    return sparse.csr_array(sparse.coo_array((np.concatenate(data), where), shape=shape))


def _alphas(coincidences: Floats, values: Floats, level: Measurement) -> Floats:
    """Return alpha of each coincidence matrix, shape (matrices, values, values); NaN where nothing varies."""
    marginals = coincidences.sum(axis=2)
    distances = _distances(marginals, values, level)
    observed = (coincidences * distances).sum(axis=(1, 2))
    # The diagonal, where chance needs a correction for drawing without replacement, has no distance.
    chance = (marginals[:, :, np.newaxis] * marginals[:, np.newaxis, :] * distances).sum(axis=(1, 2))
    ratio = np.full(len(coincidences), np.nan)
    np.divide((marginals.sum(axis=1) - 1) * observed, chance, out=ratio, where=chance > 0)
    return np.asarray(1 - ratio)


def _distances(marginals: Floats, values: Floats, level: Measurement) -> Floats:
    """Return the squared differences of values: shape (1 or matrices, values, values)."""
    # How many ratings lie between two values, half of each end counted, is a difference of middle ranks.
    ranks = np.cumsum(marginals, axis=1) - marginals / 2
    places = ranks if level == "ordinal" else values[np.newaxis, :]
    apart = places[:, :, np.newaxis] - places[:, np.newaxis, :]
    if level == "nominal":
        return (apart != 0).astype(np.float64)
    if level == "ratio":
        total = places[:, :, np.newaxis] + places[:, np.newaxis, :]
        apart = np.divide(apart, total, out=np.zeros_like(apart), where=total != 0)
    return np.asarray(apart**2)
