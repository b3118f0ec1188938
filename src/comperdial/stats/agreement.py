"""Agreement between raters: mean correlations, and Krippendorff's alpha with intervals."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Literal, get_args

import krippendorff
import numpy as np
import numpy.typing as npt
from scipy import sparse

from comperdial.stats import Coefficient
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Flags, Floats, codes_of

Measurement = Literal["ordinal", "interval", "nominal", "ratio"]
MEASUREMENTS: tuple[Measurement, ...] = get_args(Measurement)
# Numbers held in memory while resampling: 32 MB.
_AT_ONCE = 2**22


def pairwise_agreement(ratings: Floats, coefficient: Coefficient) -> float:
    """Return the mean correlation over all pairs of columns; NaN if it is undefined for a pair.

    ``ratings`` has shape (items, raters) with two or more raters; NaN if missing. In USR's Table 1 a column is a position, not
    a person: different people may have position 1 of different items.
    """
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise ValueError(f"expected items x raters with two raters or more, got shape {ratings.shape}")
    pairs = combinations(ratings.T, 2)
    return float(np.mean([correlate(one, other, coefficient).value for one, other in pairs]))


def is_pairable(ratings: npt.ArrayLike) -> Flags:
    """Return which items (rows) have at least two ratings: only these count in Krippendorff's alpha."""
    return np.asarray((~np.isnan(np.asarray(ratings, dtype=np.float64))).sum(axis=1) >= 2)


def krippendorff_alpha(ratings: npt.ArrayLike, level: Measurement = "ordinal") -> float:
    """Return Krippendorff's alpha, as computed by the library ``krippendorff``.

    1 is perfect agreement, 0 chance agreement; NaN if no item has two ratings, or the ratings of those that do are constant.
    ``ratings`` has shape (items, raters), NaN if missing; for level ``ratio`` they must not be negative.
    """
    table = np.asarray(ratings, dtype=np.float64)
    table = table[is_pairable(table)]
    if len(np.unique(table[~np.isnan(table)])) < 2:
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

    The coincidence matrix of a resample is a weighted sum of the clusters' matrices, which is exact; distances of ordinal
    ratings, which depend on the marginals, are those of the resample.

    Whole clusters (any codes, (items,); default: each item is one) are drawn with replacement, so that dependence within
    clusters does not look like precision. Value, low and high are NaN if alpha is undefined. Items with fewer than two ratings
    are ignored, and so are resamples without variation. ``ratings`` and ``level`` are as in :func:`krippendorff_alpha`.
    """
    table = np.asarray(ratings, dtype=np.float64)
    value, kept = krippendorff_alpha(table, level), is_pairable(table)
    if np.isnan(value):
        return value, value, value
    codes = codes_of((np.arange(len(table)) if clusters is None else np.asarray(clusters))[kept])
    table = table[kept]
    rated = ~np.isnan(table)
    values, units = np.unique(table[rated]), int(codes.max()) + 1
    # Each ordered pair of ratings of an item by different raters adds 1 / (ratings of the item - 1) to its cluster's matrix.
    places = np.searchsorted(values, np.where(rated, table, values[0]))
    one, other = np.array(list(permutations(range(table.shape[1]), 2))).T
    item, pair = np.nonzero(rated[:, one] & rated[:, other])
    cells = places[item, one[pair]] * len(values) + places[item, other[pair]]
    shares = 1.0 / (rated.sum(axis=1) - 1)
    matrices = sparse.csr_array(sparse.coo_array((shares[item], (codes[item], cells)), shape=(units, len(values) ** 2)))
    alphas = []
    at_once = max(1, _AT_ONCE // max(units, len(values) ** 2))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        drawn = rng.integers(units, size=(count, units)) + units * np.arange(count)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=count * units).reshape(count, units).astype(np.float64)
        alphas.append(_alphas((times @ matrices).reshape(count, len(values), len(values)), values, level))
    known = np.concatenate(alphas)
    known = known[~np.isnan(known)]
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(known) else (np.nan, np.nan)
    return value, float(low), float(high)


def _alphas(coincidences: Floats, values: Floats, level: Measurement) -> Floats:
    """Return alpha of each coincidence matrix, shape (matrices, values, values); NaN without variation."""
    marginals = coincidences.sum(axis=2)
    # The number of ratings between two values, counting half of each end, is a difference of middle ranks.
    places = np.cumsum(marginals, axis=1) - marginals / 2 if level == "ordinal" else values[np.newaxis, :]
    apart = places[:, :, np.newaxis] - places[:, np.newaxis, :]
    if level == "nominal":
        apart = apart != 0
    if level == "ratio":
        total = places[:, :, np.newaxis] + places[:, np.newaxis, :]
        apart = np.divide(apart, total, out=np.zeros_like(apart), where=total != 0)
    distances = apart.astype(np.float64) ** 2
    observed = (coincidences * distances).sum(axis=(1, 2))
    # The diagonal, which would need a correction for drawing without replacement, has distance 0.
    chance = (marginals[:, :, np.newaxis] * marginals[:, np.newaxis, :] * distances).sum(axis=(1, 2))
    ratio = np.full(len(coincidences), np.nan)
    np.divide((marginals.sum(axis=1) - 1) * observed, chance, out=ratio, where=chance > 0)
    return np.asarray(1 - ratio)
