"""Multiple comparisons: corrected p-values, and clusters of metrics that do not differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats.design import Floats, Integers


def holm(p: npt.ArrayLike) -> Floats:
    """Adjust p-values by Holm's step-down rule, which keeps the probability of any false positive below alpha.

    ``p`` has any shape; NaN stays NaN and does not count as a test. Pass each unordered pair once.
    """
    values = np.array(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values.flat[known], kind="stable")]
    steps = values.flat[order] * np.arange(len(order), 0, -1)
    values.flat[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return values


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Adjust p-values by Benjamini and Hochberg's step-up rule (1995), which controls the false discovery rate.

    The expected share of false positives among significant results is at most alpha if tests are independent or positively
    dependent, as tests of metrics against the same ratings mostly are. Less strict than :func:`holm`; same arguments and
    result.
    """
    values = np.array(p, dtype=np.float64)
    known = ~np.isnan(values)
    values[known] = scipy.stats.false_discovery_control(values[known]) if known.any() else []
    return values


def rank_clusters(values: npt.ArrayLike, p: npt.ArrayLike, alpha: float = 0.05) -> Integers:
    """Rank metrics by value into clusters, as the WMT metrics tasks do.

    Going down from the best, a new cluster begins at a metric that differs significantly (p <= alpha) from any member of the
    current cluster. Within a cluster no metric is significantly better than another; the first metric of a later cluster is
    worse than some, not each, of the one before.

    Values, (metrics,), are higher if better; p, (metrics, metrics), is symmetric, adjusted or not; NaN means not significant.
    Ranks, (metrics,), start at 1; 0 means no rank, if the value is NaN.
    """
    given, tests = np.asarray(values, dtype=np.float64), np.asarray(p, dtype=np.float64)
    ranks = np.zeros(len(given), dtype=np.intp)
    cluster: list[int] = []
    rank = 1
    for metric in np.argsort(-given, kind="stable")[: (~np.isnan(given)).sum()]:
        if np.any(tests[cluster, metric] <= alpha):
            rank, cluster = rank + 1, []
        cluster.append(int(metric))
        ranks[metric] = rank
    return ranks
