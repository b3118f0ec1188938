"""Agreement between raters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from comperdial.stats.correlation import Coefficient, correlate


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
