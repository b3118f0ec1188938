"""Correlation: of two samples, of many at once, and within items, averaged over items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.stats import COEFFICIENTS, Coefficient

Floats = npt.NDArray[np.float64]

# Pairs held at a time by Kendall's: what fits into a processor's cache.
_AT_ONCE = 2**17
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


def rowwise(x: Floats, y: Floats, name: Coefficient) -> Floats:
    """Return the coefficient of each row of a table with the same row of another, both of shape (rows, n).

    Pairs with a NaN on either side are left out; NaN where the coefficient is undefined. Kendall's compares all pairs
    of a row, so that memory is O(rows n^2).
    """
    missing = np.isnan(x) | np.isnan(y)
    x, y = np.where(missing, np.nan, x), np.where(missing, np.nan, y)
    varies = _varies(x, missing) & _varies(y, missing)
    found = np.full(len(x), np.nan)
    if not varies.any():
        return found
    x, y, missing = x[varies], y[varies], missing[varies]
    if name == "kendall":
        found[varies] = _kendall(x, y)
        return found
    if name == "spearman":
        from scipy import stats

        x, y = (np.asarray(stats.rankdata(side, axis=1, nan_policy="omit")) for side in (x, y))
    found[varies] = _pearson(x, y, missing)
    return found


def _varies(table: Floats, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.asarray(
        np.where(missing, -np.inf, table).max(axis=1) > np.where(missing, np.inf, table).min(axis=1), dtype=np.bool_
    )


def _pearson(x: Floats, y: Floats, missing: npt.NDArray[np.bool_]) -> Floats:
    a, b = (side - np.nanmean(side, axis=1, keepdims=True) for side in (x, y))
    # Divided by the largest first, so that the squares of tiny or huge scores neither vanish nor overflow.
    a, b = (side / np.nanmax(np.abs(side), axis=1, keepdims=True) for side in (a, b))
    a, b = np.where(missing, 0.0, a), np.where(missing, 0.0, b)
    value = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.asarray(np.clip(value, -1, 1))


def _kendall(x: Floats, y: Floats) -> Floats:
    one, other = np.triu_indices(x.shape[1], 1)
    found = np.empty(len(x))
    step = max(1, _AT_ONCE // len(one))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        above, higher = (signs_of(side[part, one], side[part, other]) for side in (x, y))
        agree = np.multiply(above, higher).sum(axis=1, dtype=np.int64)
        untied = (np.count_nonzero(side, axis=1).astype(np.float64) for side in (above, higher))
        found[part] = agree / np.sqrt(next(untied) * next(untied))
    return found


def signs_of(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return the signs of differences; 0 where a side is missing, so that such a pair counts like a tie of both."""
    return np.asarray((a > b).view(np.int8) - (a < b).view(np.int8))


def within_items(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, items: npt.ArrayLike, name: Coefficient
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the mean over items of the correlation over the units of an item: the systems that answered a context.

    Where the pooled correlation mixes "this context is easy" with "this answer is good", this one asks for the second.

    An item where the coefficient is undefined (fewer than two complete units, or a side that does not vary) is left out
    and not counted. That is mt-metrics-eval's default too; putting 0 in its place, its other choice, would punish a
    metric for what people could not tell apart either.

    Parameters
    ----------
    scores
        Shape (metrics, n), NaN where missing; each metric is correlated over the units that it scored.
    ratings
        Shape (n,), NaN where missing.
    items
        Shape (n,), whole numbers: the item of each unit.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    tuple
        Values (metrics,), NaN for a metric without a defined item, and the number of items averaged (metrics,). An item
        counts alike however many units it has.

    Raises
    ------
    ValueError
        For shapes that do not fit, or an unknown coefficient.
    """
    table, human, codes = np.asarray(scores, np.float64), np.asarray(ratings, np.float64), np.asarray(items)
    if table.ndim != 2 or human.shape != table.shape[1:] or codes.shape != human.shape:
        raise ValueError(f"expected (metrics, n), (n,) and (n,), got {table.shape}, {human.shape} and {codes.shape}")
    if name not in COEFFICIENTS:
        raise ValueError(f"unknown coefficient {name!r}")
    if not len(human):
        return np.full(len(table), np.nan), np.zeros(len(table), np.intp)
    place = places_of(codes)
    rated = _placed(human, place)
    found = np.stack([rowwise(_placed(row, place), rated, name) for row in table]) if len(table) else np.empty((0, 1))
    counted = (~np.isnan(found)).sum(axis=1)
    sums = np.nansum(found, axis=1)
    return np.divide(sums, counted, out=np.full(len(table), np.nan), where=counted > 0), counted


def places_of(codes: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Return the units of each item, shape (items, most units of an item), -1 where an item has fewer."""
    index = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(index, kind="stable")
    sizes = np.bincount(index)
    place = np.full((len(sizes), int(sizes.max())), -1)
    place[index[order], np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = order
    return place


def _placed(values: Floats, place: npt.NDArray[np.intp]) -> Floats:
    return np.where(place >= 0, values[place], np.nan)
