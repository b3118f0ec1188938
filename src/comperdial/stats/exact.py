"""The exact p-value of a correlation of a few points, by all orders in which one side can stand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient
from comperdial.stats.correlation import rowwise

MOST = 8
"""More points have too many orders to go through: 8 have 40,320."""


def exact_p(x: npt.ArrayLike, y: npt.ArrayLike, coefficient: Coefficient) -> float:
    """Return the two-sided p-value of a correlation under random pairing.

    Parameters
    ----------
    x, y
        Shape (n,), numbers; pairs with a NaN on either side are left out.
    coefficient
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    float
        The share of all n! pairings whose coefficient is as far from 0 as the given one, or further. NaN with fewer
        than two pairs or more than :data:`MOST`, and when a side does not vary.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two samples of equal length, got shapes {a.shape} and {b.shape}")
    complete = ~(np.isnan(a) | np.isnan(b))
    a, b = a[complete], b[complete]
    if not 2 <= len(a) <= MOST:
        return float("nan")
    # The order as given comes first.
    orders = b[np.array(list(permutations(range(len(b)))))]
    found = np.abs(rowwise(np.broadcast_to(a, orders.shape), orders, coefficient))
    # Sums in another order differ in the last digits.
    return float("nan") if np.isnan(found[0]) else float(np.mean(found >= found[0] - 1e-9))
