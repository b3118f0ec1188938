"""Williams' test, a correction for many comparisons, and clusters of ranks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


def williams(r_ay: npt.ArrayLike, r_by: npt.ArrayLike, r_ab: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the two-sided p of Williams' test of two correlations that share a side.

    Parameters
    ----------
    r_ay, r_by
        Correlations of the two metrics with the ratings.
    r_ab
        Correlation of the two metrics.
    n
        Number of independent points, more than 3. The test takes points to be independent and normal (Pearson; for
        ranks it is an approximation). Units that share systems or dialogues are not independent: with n = units it is
        too liberal, and only over means of systems is n known, the number of systems.

    Returns
    -------
    array
        Broadcast over the four; NaN where one is missing, n is below 4 or the three correlations fit no sample; 1 where
        the first two are equal.

    Notes
    -----
    Equation 7 of Steiger (1980), "Tests for comparing elements of a correlation matrix": Student's t with n - 3 degrees
    of freedom.
    """
    ay, by, ab, count = np.broadcast_arrays(*(np.asarray(side, dtype=np.float64) for side in (r_ay, r_by, r_ab, n)))
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = 1 - ay**2 - by**2 - ab**2 + 2 * ay * by * ab
        spread = 2 * determinant * (count - 1) / (count - 3) + ((ay + by) / 2) ** 2 * (1 - ab) ** 3
        statistic = (ay - by) * np.sqrt((count - 1) * (1 + ab) / spread)
        p = 2 * stats.t.sf(np.abs(statistic), count - 3)
    complete = ~(np.isnan(ay) | np.isnan(by) | np.isnan(ab)) & (count > 3)
    return np.asarray(np.where(complete & (ay == by), 1.0, np.where(complete, p, np.nan)))


def holm(p: npt.ArrayLike) -> Floats:
    """Adjust p-values by Holm's step-down rule: the chance of any false finding among all stays below alpha.

    Parameters
    ----------
    p
        Any shape; NaN stays NaN and is not counted as a test. Give each unordered pair once.

    Returns
    -------
    array
        Same shape.
    """
    values = np.array(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values.flat[known], kind="stable")]
    steps = values.flat[order] * (len(order) - np.arange(len(order)))
    values.flat[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return values


def rank_clusters(values: npt.ArrayLike, p: npt.ArrayLike, alpha: float = 0.05) -> Integers:
    """Rank metrics by value into clusters, as the WMT metrics tasks do.

    Going down from the best, a new cluster begins at a metric that differs significantly (p <= alpha) from any member
    of the cluster so far. Within a cluster no metric is significantly better than another; the first metric of a later
    cluster is worse than some, not each, of the one before.

    Parameters
    ----------
    values
        Shape (metrics,): coefficients, more is better. Equal values keep their order.
    p
        Shape (metrics, metrics), symmetric, adjusted or not. A NaN is no significant difference.
    alpha
        Level of the tests.

    Returns
    -------
    array
        Shape (metrics,): 1 for the best; 0, no rank, where the value is NaN.
    """
    given, tests = np.asarray(values, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if given.ndim != 1 or tests.shape != (len(given), len(given)):
        raise ValueError(f"expected values (metrics,) and p (metrics, metrics), got {given.shape} and {tests.shape}")
    ranks = np.zeros(len(given), dtype=np.intp)
    cluster: list[int] = []
    rank = 1
    for metric in np.argsort(-given, kind="stable"):
        if np.isnan(given[metric]):
            continue
        if np.any(tests[cluster, metric] <= alpha):
            rank, cluster = rank + 1, []
        cluster.append(int(metric))
        ranks[metric] = rank
    return ranks
