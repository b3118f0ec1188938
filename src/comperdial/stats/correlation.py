"""Correlation of two paired samples, with what a paper's table needs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Coefficient = Literal["pearson", "spearman", "kendall"]

# The ComperDial tables mark p >= 0.05 with an asterisk (inferred; the figures agree with it).
ALPHA = 0.05


def is_starred(p: float) -> bool:
    """Say whether a paper's table would mark a value: p >= 0.05, or no p to be had."""
    return not p < ALPHA


@dataclass(frozen=True)
class Correlation:
    """A coefficient with its two-sided p-value and the number of complete pairs.

    ``value`` and ``p`` are NaN when there are fewer than two pairs or a side does not vary; ``p`` alone is NaN when two
    pairs give a coefficient but no test.
    """

    value: float
    p: float
    n: int


def correlate(x: npt.ArrayLike, y: npt.ArrayLike, coefficient: Coefficient) -> Correlation:
    """Correlate two samples of equal length; pairs with a NaN on either side are left out.

    Parameters
    ----------
    x, y
        Shape (n,), numbers.
    coefficient
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    Correlation
        As scipy's ``pearsonr``, ``spearmanr`` and ``kendalltau`` (variant b) give it. The p of Spearman is that of
        Student's t, as in the papers; with four or five points it is too small (a perfect ranking of four has an exact
        p of 0.083, not 0). Kendall's is exact for small samples without ties.
    """
    # Half a second, which commands that only ask whether a value is starred need not wait.
    from scipy import stats

    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two samples of equal length, got shapes {a.shape} and {b.shape}")
    complete = ~(np.isnan(a) | np.isnan(b))
    a, b = a[complete], b[complete]
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(float("nan"), float("nan"), len(a))
    result: Any
    if coefficient == "pearson":
        result = stats.pearsonr(a, b)
    elif coefficient == "spearman":
        result = stats.spearmanr(a, b)
    elif coefficient == "kendall":
        result = stats.kendalltau(a, b, variant="b")
    else:
        raise ValueError(f"unknown coefficient {coefficient!r}")
    p = float(result.pvalue) if len(a) > 2 else float("nan")
    return Correlation(float(result.statistic), p, len(a))
