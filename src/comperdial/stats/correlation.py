"""Correlation of two samples, and of the rows of two tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

# Its subpackages, which take half a second, are imported when first used.
import scipy

from comperdial.stats import Coefficient

Floats = npt.NDArray[np.float64]

# The ComperDial tables mark p >= 0.05 with an asterisk (inferred; consistent with the figures).
ALPHA = 0.05
MOST_EXACT = 8
"""More points have too many orders for an exact p: 8 have 40,320."""


def is_starred(p: float) -> bool:
    """Return whether the papers' tables would mark a value: p >= 0.05, or no p."""
    return not p < ALPHA


@dataclass(frozen=True)
class Correlation:
    """A coefficient with its two-sided p-value and the number of complete pairs.

    ``value`` and ``p`` are NaN if there are fewer than two pairs or a side is constant; only ``p`` is NaN if two pairs allow a
    coefficient but no test.
    """

    value: float
    p: float
    n: int


def correlate(x: npt.ArrayLike, y: npt.ArrayLike, coefficient: Coefficient) -> Correlation:
    """Correlate two samples, (n,) each, by scipy's ``pearsonr``, ``spearmanr`` or ``kendalltau`` (variant b).

    Pairs with a NaN are ignored. Spearman's p is from Student's t, as in the papers; with four or five points it is too small
    (a perfect ranking of four has an exact p of 0.083, not 0). Kendall's is exact for small samples without ties.
    """
    a, b = _complete(x, y)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(float("nan"), float("nan"), len(a))
    tests = {"pearson": "pearsonr", "spearman": "spearmanr", "kendall": "kendalltau"}
    result = getattr(scipy.stats, tests[coefficient])(a, b)
    p = float(result.pvalue) if len(a) > 2 else float("nan")
    return Correlation(float(result.statistic), p, len(a))


def _complete(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two samples of equal length, got shapes {a.shape} and {b.shape}")
    complete = ~(np.isnan(a) | np.isnan(b))
    return a[complete], b[complete]


def exact_p(x: npt.ArrayLike, y: npt.ArrayLike, coefficient: Coefficient) -> float:
    """Return the two-sided p of a correlation of a few points under random pairing.

    It is the share of all n! pairings with a coefficient at least as far from 0. NaN with fewer than two pairs or more than
    :data:`MOST_EXACT`, and if a side is constant. Arguments as in :func:`correlate`.
    """
    a, b = _complete(x, y)
    if not 2 <= len(a) <= MOST_EXACT:
        return float("nan")
    # The given order comes first.
    orders = b[np.array(list(permutations(range(len(b)))))]
    results = np.abs(rowwise(np.broadcast_to(a, orders.shape), orders, coefficient))
    # Sums in another order differ in the last digits.
    return float("nan") if np.isnan(results[0]) else float(np.mean(results >= results[0] - 1e-9))


def rowwise(x: Floats, y: Floats, name: Coefficient) -> Floats:
    """Correlate each row of a table with the same row of another, both of shape (rows, n).

    Pairs with a NaN are ignored; NaN if the coefficient is undefined. Kendall's compares all pairs of a row.
    """
    return each_rowwise([x], y, [name])[0, 0]


def each_rowwise(tables: Sequence[Floats], y: Floats, names: Sequence[Coefficient]) -> Floats:
    """Apply :func:`rowwise` to several tables with the same other side, for several coefficients.

    Returns shape (names, tables, rows). Shared parts, such as the ranks of the other side, are computed once.
    """
    results = np.full((len(names), len(tables), len(y)), np.nan)
    missing = np.isnan(y)
    for table in tables:
        missing = missing | np.isnan(table)
    if missing.any() and any(not np.array_equal(np.isnan(side), missing) for side in (*tables, y)):
        if len(tables) > 1:
            return np.concatenate([each_rowwise([table], y, names) for table in tables], axis=1)
        tables, y = [np.where(missing, np.nan, tables[0])], np.where(missing, np.nan, y)
    varies = _vary(y)
    if not varies.all():
        tables, y, missing = [table[varies] for table in tables], y[varies], missing[varies]
    if not len(y):
        return results
    ranked = [_ranks(side, missing) for side in (*tables, y)] if set(names) != {"pearson"} else []
    of_values, of_ranks = [*tables, y], [ranks for ranks, _ in ranked]
    for at, name in enumerate(names):
        if name == "kendall":
            results[at][:, varies] = _kendall(ranked, missing)
        else:
            results[at][:, varies] = _pearson(of_values if name == "pearson" else of_ranks, missing)
    for place, table in enumerate(tables):
        results[:, place, np.flatnonzero(varies)[~_vary(table)]] = np.nan
    return results


def _vary(side: Floats) -> npt.NDArray[np.bool_]:
    """Return which rows have at least two distinct values."""
    return np.greater(*(of.reduce(side, axis=1, initial=np.nan) for of in (np.fmax, np.fmin)))


def _ranks(values: Floats, missing: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return twice the middle ranks of rows, from 0, and the number of untied pairs of each row.

    Three times as fast as scipy's rankdata.
    """
    order, places = np.argsort(values, axis=1), np.arange(values.shape[1])
    ordered = np.take_along_axis(values, order, axis=1)
    # Missing values, which come last, equal nothing.
    new = np.ones((len(values), len(places) + 1), dtype=np.bool_)
    new[:, 1:-1] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(new[:, :-1], places, 0), axis=1)
    last = np.minimum.accumulate(np.where(new[:, 1:], places, len(places))[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last).astype(np.float64), axis=1)
    ranks[missing] = np.nan
    count = len(places) - missing.sum(axis=1)
    return ranks, (count * (count - 1) - (last - first).sum(axis=1)) / 2


def _pearson(of: Sequence[Floats], missing: npt.NDArray[np.bool_]) -> Floats:
    """Return Pearson's r of the rows of each table with those of the last; undefined for constant rows."""
    sides, counts = [], (~missing).sum(axis=1, keepdims=True)
    for side in of:
        there = np.where(missing, 0.0, side) if missing.any() else side
        centred = there - there.sum(axis=1, keepdims=True) / counts
        centred[missing] = 0.0
        # Divide by the largest, so that squares of tiny or huge scores neither vanish nor overflow.
        with np.errstate(divide="ignore", invalid="ignore"):
            sides.append(centred / np.abs(centred).max(axis=1, keepdims=True))
    *tables, y = sides
    square = np.vecdot(y, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([np.clip(np.vecdot(x, y) / np.sqrt(np.vecdot(x, x) * square), -1, 1) for x in tables])


def _kendall(ranked: Sequence[tuple[Floats, Floats]], missing: npt.NDArray[np.bool_]) -> Floats:
    """Return tau-b of the rows of each table with those of the last, given ranks and numbers of untied pairs."""
    # The smallest integer type compares fastest.
    kind = np.dtype(np.float64) if missing.any() else np.min_scalar_type(2 * missing.shape[1])
    *tables, y = (np.ascontiguousarray(ranks.T, dtype=kind) for ranks, _ in ranked)
    agree = np.zeros((len(tables), y.shape[1]))
    for place in range(len(y) - 1):
        # The sum of 127 signs fits into a byte, and bytes add fastest.
        for start in range(place + 1, len(y), 127):
            rated = signs_of(y[place], y[start : start + 127])
            for row, x in enumerate(tables):
                agree[row] += np.add.reduce(signs_of(x[place], x[start : start + 127]) * rated, axis=0, dtype=np.int8)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(agree / np.sqrt([untied * ranked[-1][1] for _, untied in ranked[:-1]]))


def signs_of(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return the signs of differences; 0 if a side is missing, which then counts as a tie on both sides."""
    return np.asarray((a > b).view(np.int8) - (a < b).view(np.int8))
