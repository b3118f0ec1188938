"""Proportions, with intervals for clustered units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy


class Share(NamedTuple):
    """A share with the ends of its interval; NaN if nothing was counted. ``n`` counts units."""

    value: float
    low: float
    high: float
    n: int


def share(hits: npt.ArrayLike, clusters: npt.ArrayLike) -> Share:
    """Return the share of hits with a 95 % interval for clustered units; both arguments of shape (n,).

    If each unit is its own cluster, this is Wilson's interval (1927). Otherwise the variance of the share is that of a ratio of
    two sums over clusters, and Wilson's interval is computed for the number of independent units with this variance, at most
    the number of units, with a quantile of Student's t with clusters - 1 degrees of freedom. If all units agree, the variance
    is uninformative and each cluster counts as one unit. In simulations (shares of 0.02 to 0.9, correlations within a cluster
    of 0 to 1, 1500 draws each) 95 % intervals covered in 92 to 97 % of draws with 40 clusters of 5 units, in 90 to 98 % with 40
    of 1 to 9, and in 92 to 96 % with 300 of mostly 1 or 2.
    """
    yes = np.asarray(hits, dtype=np.bool_)
    n = len(yes)
    if not n:
        return Share(np.nan, np.nan, np.nan, 0)
    value = float(yes.mean())
    codes = np.unique(np.asarray(clusters), return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(codes).astype(np.float64)
    count = len(sizes)
    if count == n:
        return Share(value, *_wilson(value, n, float(scipy.stats.norm.ppf(0.975))), n)
    if count == 1:
        # A single cluster allows no inference.
        return Share(value, 0.0, 1.0, n)
    sums = np.bincount(codes, weights=yes)
    variance = count / (count - 1) * float(((sums - value * sizes) ** 2).sum()) / n**2
    effective = min(value * (1 - value) / variance, n) if 0 < value < 1 and variance > 0 else count
    return Share(value, *_wilson(value, effective, float(scipy.stats.t.ppf(0.975, count - 1))), n)


def _wilson(value: float, n: float, reach: float) -> tuple[float, float]:
    square = reach**2 / n
    centre = (value + square / 2) / (1 + square)
    half = reach / (1 + square) * float(np.sqrt(value * (1 - value) / n + square / (4 * n)))
    # At 0 and 1 the end is the share itself, which rounding would miss.
    return min(max(centre - half, 0.0), value), max(min(centre + half, 1.0), value)
