"""Correlations without each group of units in turn: which of them, such as the units of one system, each hangs on.

The values are those of the units that are left, correlated anew; only the work is shared: sums, ranks and concordant
pairs of what is left follow from those of all units and of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.design import patterns_of
from comperdial.stats.influence import concordance

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# Numbers of groups x units that are held at a time, of each of a few tables: 1 MB, which stays in the cache.
_AT_ONCE = 2**17
# And of groups x ratings x scores, where all groups are counted at once.
_COUNTED = 2**21
# Values nearer to each other than this are equally low: the first group is named, whatever the machine's rounding.
_SAME = 1e-12


def without_each_group(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, groups: npt.ArrayLike, name: Coefficient
) -> Floats:
    """Return each metric's coefficient over the units that are not of a group, for each group.

    Parameters
    ----------
    scores
        Shape (metrics, n), NaN where missing; each metric is correlated over the units that it scored.
    ratings
        Shape (n,), NaN where missing.
    groups
        Shape (n,), the group of each unit, whole numbers from 0.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    array
        Shape (metrics, groups). NaN where no coefficient is left: fewer than two units, or a side that does not vary;
        and where there was nothing to leave out, a group of which the metric scored no unit.

    Raises
    ------
    ValueError
        For shapes that do not fit, or an unknown coefficient.
    """
    table, human = np.asarray(scores, np.float64), np.asarray(ratings, np.float64)
    codes = np.asarray(groups, np.intp)
    if table.ndim != 2 or human.shape != table.shape[1:] or codes.shape != human.shape:
        raise ValueError(f"expected (metrics, n), (n,) and (n,), got {table.shape}, {human.shape} and {codes.shape}")
    if name not in COEFFICIENTS:
        raise ValueError(f"unknown coefficient {name!r}: expected one of {', '.join(COEFFICIENTS)}")
    without: Callable[[Floats, Floats, Integers], Floats]
    without = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}[name]
    found = np.full((len(table), _count(codes)), np.nan)
    there = ~(np.isnan(table) | np.isnan(human))
    # Metrics that scored the same units share what is known of the ratings.
    patterns, pattern = patterns_of(there)
    for number, kept in enumerate(patterns):
        rows = np.flatnonzero(pattern == number)
        present, own = np.unique(codes[kept], return_inverse=True)
        if len(present) > 1:
            found[np.ix_(rows, present)] = without(table[np.ix_(rows, kept)], human[kept], own.reshape(-1))
    return found


def lowest_without(
    values: npt.ArrayLike,
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    groups: npt.ArrayLike,
    name: Coefficient,
    *,
    fewest: int = 2,
) -> tuple[Floats, Integers]:
    """Return each metric's lowest coefficient without a group, and which group that is.

    Lowest is seen from the metric's coefficient of all units: the smallest value where that is positive, the largest
    where it is negative. A group without which no coefficient is left is the lowest of all, and the value then NaN.

    Parameters
    ----------
    values
        Shape (metrics,), the coefficients of all units.
    scores, ratings, groups, name
        As :func:`without_each_group` takes them.
    fewest
        How many groups must be left.

    Returns
    -------
    tuple
        Values and groups, shape (metrics,) each; NaN and -1 where a metric has no coefficient, or one of 0, which
        cannot fall, or scored units of too few groups.
    """
    found = without_each_group(scores, ratings, groups, name)
    table, codes = np.asarray(scores, np.float64), np.asarray(groups, np.intp)
    there = ~(np.isnan(table) | np.isnan(np.asarray(ratings, np.float64)))
    scored = np.array([np.bincount(codes[row], minlength=found.shape[1]) for row in there]).reshape(found.shape) > 0
    sign = np.sign(np.asarray(values, np.float64))
    from_above = np.where(np.isnan(found), -np.inf, found * sign[:, np.newaxis])
    from_above = np.where(scored, from_above, np.inf)
    lowest, at = np.full(len(found), np.nan), np.full(len(found), -1)
    for row in np.flatnonzero((scored.sum(axis=1) > fewest) & (np.abs(sign) == 1)):
        at[row] = np.argmax(from_above[row] <= from_above[row].min() + _SAME)
        lowest[row] = found[row, at[row]]
    return lowest, at


def _count(groups: Integers) -> int:
    return int(groups.max(initial=-1)) + 1


# Each of these takes complete scores (metrics, n), ratings (n,) and groups (n,) with all codes in use.


def _pearson(scores: Floats, ratings: Floats, groups: Integers) -> Floats:
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(_count(groups)))
    sides = [np.broadcast_to(side, scores.shape)[:, order] for side in (scores, ratings)]
    varies = np.logical_and(*(_vary(side, starts) for side in sides))
    x, y = map(_scaled, sides)
    sizes = np.diff([*starts, len(order)])
    of_group = np.repeat(np.arange(len(starts)), sizes)
    means = [np.add.reduceat(side, starts, axis=1) / sizes for side in (x, y)]
    dx, dy = (side - mean[:, of_group] for side, mean in zip((x, y), means, strict=True))
    squares = [np.add.reduceat(one * other, starts, axis=1) for one, other in ((dx, dx), (dy, dy), (dx, dy))]
    moments = np.stack([np.broadcast_to(sizes, means[0].shape), *means, *squares])
    # What comes before a group and after it is merged: taking a group off the sums of all would lose the digits of
    # what is left where the group has nearly all of the variance.
    before, after = _merged_before(moments), _merged_before(moments[:, :, ::-1])[:, :, ::-1]
    _, _, _, xx, yy, xy = _merged(before, after)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(varies, np.clip(xy / np.sqrt(xx * yy), -1, 1), np.nan)


def _vary(side: Floats, starts: Integers) -> npt.NDArray[np.bool_]:
    """Say without which groups a side varies; compared and not computed, so that no rounding passes for variance."""
    low, high = np.minimum.reduceat(side, starts, axis=1), np.maximum.reduceat(side, starts, axis=1)
    least = np.minimum(_before(low, np.minimum, np.inf), _before(low[:, ::-1], np.minimum, np.inf)[:, ::-1])
    most = np.maximum(_before(high, np.maximum, -np.inf), _before(high[:, ::-1], np.maximum, -np.inf)[:, ::-1])
    return np.asarray(most > least)


def _before(values: Floats, extreme: np.ufunc, none: float) -> Floats:
    """Return the least, or the largest, of the groups before each one."""
    found = np.full(values.shape, none)
    found[:, 1:] = extreme.accumulate(values[:, :-1], axis=1)
    return found


def _scaled(side: Floats) -> Floats:
    """Divide by the range, so that the squares of tiny or huge scores neither vanish nor overflow."""
    reach = np.ptp(side, axis=1, keepdims=True)
    return np.asarray(side / np.where(reach > 0, reach, 1.0))


def _merged_before(moments: Floats) -> Floats:
    """Return the moments of all groups before each one."""
    found = np.zeros(moments.shape)
    for group in range(1, moments.shape[2]):
        found[:, :, group] = _merged(found[:, :, group - 1], moments[:, :, group - 1])
    return found


def _merged(one: Floats, other: Floats) -> Floats:
    """Merge counts, two means, and three sums of squares and products about the means (Chan, Golub, LeVeque 1983)."""
    count = one[0] + other[0]
    share = np.divide(other[0], count, out=np.zeros_like(count), where=count > 0)
    dx, dy = other[1] - one[1], other[2] - one[2]
    weight = one[0] * share
    gained = np.stack([dx * dx, dy * dy, dx * dy]) * weight
    return np.concatenate([[count, one[1] + dx * share, one[2] + dy * share], one[3:] + other[3:] + gained])


def _spearman(scores: Floats, ratings: Floats, groups: Integers) -> Floats:
    rated, columns = _levels(ratings), [_levels(row) for row in scores]
    found = np.empty((len(scores), _count(groups)))
    for start, stop in _parts(_count(groups), len(ratings)):
        gone = np.flatnonzero((groups >= start) & (groups < stop))
        of_level, square_y = _ranks(_left(rated, groups, gone, start, stop))
        y = of_level.take(rated, axis=1)
        y[groups[gone] - start, gone] = 0.0
        for row, column in enumerate(columns):
            of_level, square_x = _ranks(_left(column, groups, gone, start, stop))
            products = np.einsum("gn,gn->g", of_level.take(column, axis=1), y)
            found[row, start:stop] = _ratio(products, square_x, square_y)
    return found


def _kendall(scores: Floats, ratings: Floats, groups: Integers) -> Floats:
    rated, count = _levels(ratings), _count(groups)
    sizes = np.bincount(groups)
    left = float(len(groups)) - sizes
    untied_y = left**2 - _tied(rated, groups)
    found = np.empty((len(scores), count))
    for row, column in enumerate(map(_levels, scores)):
        agree = concordance(column.astype(np.float64), rated.astype(np.float64)) * len(groups)
        pairs = agree.sum() - 2 * np.bincount(groups, agree) + _within(column, rated, groups)
        found[row] = _ratio(np.rint(pairs), left**2 - _tied(column, groups), untied_y)
    return found


def _ratio(products: Floats, square_x: Floats, square_y: Floats) -> Floats:
    """Divide whole numbers, or halves: a side that does not vary has exactly 0."""
    size = np.sqrt(square_x) * np.sqrt(square_y)
    return np.clip(np.divide(products, size, out=np.full(len(size), np.nan), where=size > 0), -1, 1)


def _levels(values: Floats) -> Integers:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _parts(groups: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _AT_ONCE // width)
    return ((start, min(start + step, groups)) for start in range(0, groups, step))


def _left(column: Integers, groups: Integers, gone: Integers, start: int, stop: int) -> Floats:
    """Return how many units of each level are left without each of some groups, ``gone`` being their units."""
    count = int(column.max()) + 1
    own = np.bincount((groups[gone] - start) * count + column[gone], minlength=(stop - start) * count)
    return np.asarray(np.bincount(column) - own.reshape(stop - start, count), dtype=np.float64)


def _ranks(left: Floats) -> tuple[Floats, Floats]:
    """Return the mean rank of each level less that of all, and the sum of its squares over the units."""
    upto = np.cumsum(left, axis=1)
    ranks = upto - (left + upto[:, -1:]) / 2
    return ranks, (left * ranks**2).sum(axis=1)


def _tied(column: Integers, groups: Integers) -> Floats:
    """Return how many pairs of the units left without each group are tied, each unit with itself among them."""
    parts = _parts(_count(groups), int(column.max()) + 1)
    found = []
    for start, stop in parts:
        gone = np.flatnonzero((groups >= start) & (groups < stop))
        found.append((_left(column, groups, gone, start, stop) ** 2).sum(axis=1))
    return np.concatenate(found)


def _within(x: Integers, y: Integers, groups: Integers) -> Floats:
    """Return by group the sum of sign(x - x') sign(y - y') over its pairs of units, each pair in both orders."""
    count = _count(groups)
    if count == len(groups):
        return np.zeros(count)
    level, rank = _within_group(y, groups), _within_group(x, groups)
    levels, ranks = int(level.max()) + 1, int(rank.max()) + 1
    if count * levels * ranks > _COUNTED:
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
        sides = x.astype(np.float64), y.astype(np.float64)
        return np.array([concordance(*(side[own] for side in sides)).sum() * len(own) for own in members])
    counts = np.bincount((groups * levels + level) * ranks + rank, minlength=count * levels * ranks)
    counts = counts.reshape(count, levels, ranks)
    upto = np.cumsum(counts, axis=2)
    surplus = 2 * upto - counts - upto[:, :, -1:]
    lower = np.cumsum(surplus, axis=1)
    agree = 2 * lower - surplus - lower[:, -1:, :]
    return np.asarray((counts * agree).sum(axis=(1, 2)), dtype=np.float64)


def _within_group(column: Integers, groups: Integers) -> Integers:
    """Number the levels of each group from 0 on."""
    levels = int(column.max()) + 1
    pairs, code = np.unique(groups * levels + column, return_inverse=True)
    first = np.searchsorted(pairs, np.arange(_count(groups)) * levels)
    return np.asarray(code.reshape(-1) - first[groups])
