"""Pearson, Spearman and Kendall over units of which whole clusters (systems or dialogues) are resampled or left out.

A resample is a vector of weights over clusters: how often each was drawn. All values are those of the units repeated that
often; nothing is approximated by working on weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.correlation import correlate, rowwise, signs_of
from comperdial.stats.design import Design, Floats, Integers, by_units
from comperdial.stats.means import merge_ties, paired_means

# Numbers of an array (resamples, units) at a time: 2 MB, which stay in the cache.
BLOCK = 2**18
# Where less than this share of a resample's squares about the mean of all units is variance, its sums have lost too many
# digits: it is summed anew about its own mean.
_LITTLE = 1e-6
# Pairs of clusters that are summed by: 64 MB.
_SUMMED = 2**23
# Of so many units all pairs are looked at.
_FEW = 400


def blocks(count: int, width: int) -> Iterator[slice]:
    """Cut ``count`` rows of ``width`` numbers into parts that stay in the cache."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def ratio(product: Floats, square_x: Floats, square_y: Floats) -> Floats:
    """Return a coefficient from a sum of products and two sums of squares; NaN where one of these is not positive."""
    size = np.sqrt(np.maximum(square_x, 0)) * np.sqrt(np.maximum(square_y, 0))
    return np.asarray(np.clip(np.divide(product, size, out=np.full(np.shape(size), np.nan), where=size > 0), -1, 1))


def coefficients(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[Coefficient]) -> Floats:
    """Correlate metrics with ratings.

    Parameters
    ----------
    scores
        Shape (metrics, n); NaN where a metric has no score: the unit then takes no part in that metric's row.
    ratings
        Shape (n,), no NaN.
    design
        The systems and dialogues of the n units, and whether to correlate the means of systems.
    names
        Of ``pearson``, ``spearman`` and ``kendall`` (tau-b).

    Returns
    -------
    array
        Shape (metrics, names): what :func:`comperdial.stats.correlation.correlate` gives, to 1e-12; NaN where a side
        does not vary. Means of systems that differ by rounding only are ties.

    Raises
    ------
    ValueError
        Shapes that do not fit, a rating that is missing, an unknown name.
    """
    x, y = checked(scores, ratings, design, names)
    if design.average:
        means = paired_means(x, y, design)
        return np.array([rowwise(*means, name) for name in names]).reshape(len(names), len(x)).T
    result = np.full((len(x), len(names)), np.nan)
    for place, name in enumerate(names):
        # Kendall's of many units by scipy, which does not look at every pair.
        one = (
            [correlate(row, y, name).value for row in x]
            if name == "kendall"
            else rowwise(x, np.broadcast_to(y, x.shape), name)
        )
        result[:, place] = one
    return result


def checked(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return scores and ratings as arrays of the shapes that :func:`coefficients` asks for, or raise ValueError."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if x.ndim != 2 or y.shape != x.shape[1:] or y.shape != design.systems.shape:
        raise ValueError(
            f"expected scores (metrics, n), ratings (n,) and a design of n units, got {x.shape}, {y.shape} and "
            f"{design.systems.shape}"
        )
    if np.isnan(y).any():
        raise ValueError("expected a rating for each unit; leave out units without one")
    if unknown := [name for name in names if name not in COEFFICIENTS]:
        raise ValueError(f"unknown coefficient {unknown[0]!r}; expected one of {', '.join(COEFFICIENTS)}")
    return x, y


def over_means(
    scores: Floats, ratings: Floats, design: Design, weights: npt.NDArray[Any], names: Sequence[Coefficient]
) -> Floats:
    """Return the coefficients over means of systems of resamples of dialogues.

    Parameters
    ----------
    scores, ratings, design, names
        As in :func:`coefficients`.
    weights
        How often each dialogue was drawn: for all systems, shape (resamples, dialogues), or for each system by itself,
        (resamples, systems, dialogues).

    Returns
    -------
    array
        Shape (resamples, metrics, names). A system of which nothing was drawn takes no part.
    """
    result = np.full((len(weights), len(scores), len(names)), np.nan)
    axes = "sd,bd->bs" if weights.ndim == 2 else "sd,bsd->bs"
    shape = design.counts
    cell = design.systems * shape[1] + design.dialogues
    for rows, kept in by_units(scores):

        def summed(part: Floats, cell: Integers = cell[kept]) -> Floats:
            return np.bincount(cell, part, shape[0] * shape[1]).reshape(shape).astype(np.float64)

        sides = [*scores[np.ix_(rows, kept)], ratings[kept]]
        n, sums = summed(np.ones(int(kept.sum()))), [summed(side) for side in sides]
        # What means were rounded at, which of numbers of one sign is the mean itself.
        sizes = [summed(np.abs(side)) if side.min() < 0 else None for side in sides]
        for part in blocks(len(weights), n.size):
            times = weights[part]
            count = np.einsum(axes, n, times)
            count = np.where(count > 0, count, np.nan)
            *x, y = (
                merge_ties(
                    np.einsum(axes, one, times) / count, 0.0 if size is None else np.einsum(axes, size, times) / count
                )
                for one, size in zip(sums, sizes, strict=True)
            )
            for place, name in enumerate(names):
                sides, of = [*x, y], name
                if name == "spearman":
                    # All metrics share the ranks of the ratings; a system without a mean has one on no side.
                    sides = [stats.rankdata(side, axis=1, nan_policy="omit") for side in sides]
                    of = "pearson"
                result[part, rows, place] = np.stack([rowwise(side, sides[-1], of) for side in sides[:-1]], axis=1)
    return result


def over_clusters(
    scores: Floats, ratings: Floats, clusters: Integers, weights: Floats, names: Sequence[Coefficient]
) -> Floats:
    """Return the coefficients of resamples of clusters.

    Parameters
    ----------
    scores, ratings, clusters
        Shapes (metrics, n), (n,) and (n,); scores are NaN where missing, clusters are codes from 0 on.
    weights
        Shape (resamples, clusters), 0 or more.
    names
        Which coefficients.

    Returns
    -------
    array
        Shape (resamples, metrics, names); NaN where a side does not vary.
    """
    result = np.full((len(weights), len(scores), len(names)), np.nan)
    for rows, kept in by_units(scores):
        x, y, codes = scores[np.ix_(rows, kept)], ratings[kept], clusters[kept]
        made: dict[str, Floats] = {}
        if "pearson" in names:
            made["pearson"] = np.stack([_pearson(row, y, codes, weights) for row in x], axis=1)
        if "spearman" in names or "kendall" in names:
            made["spearman"], untied = _ranked(x, y, codes, weights)
        if "kendall" in names and weights.shape[1] ** 2 > _SUMMED:
            # So many clusters have too many pairs: each resample by scipy, whose time and memory grow with the units.
            repeats = [np.repeat(np.arange(len(y)), times[codes].astype(np.intp)) for times in weights]
            made["kendall"] = np.array([[correlate(row[own], y[own], "kendall").value for row in x] for own in repeats])
        elif "kendall" in names:
            pairs = np.stack([_concordant(row, y, codes, weights) for row in x], axis=1)
            made["kendall"] = ratio(pairs, *untied)
        for place, name in enumerate(names):
            result[:, rows, place] = made[name]
    return result


def _pearson(x: Floats, y: Floats, codes: Integers, weights: Floats) -> Floats:
    """Return Pearson's r of resamples from sums over clusters."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.full(len(weights), np.nan)
    a, b = (_scaled(side - side.mean()) for side in (x, y))
    features = (np.ones_like(a), a, b, a * a, b * b, a * b)
    sums = np.stack([np.bincount(codes, part, weights.shape[1]) for part in features])
    total, sum_x, sum_y, *whole = sums @ weights.T
    with np.errstate(invalid="ignore"):
        square_x, square_y, product = whole - np.stack([sum_x**2, sum_y**2, sum_x * sum_y]) / total
    result = ratio(product, square_x, square_y)
    unsure = (square_x < _LITTLE * whole[0]) | (square_y < _LITTLE * whole[1])
    for at in np.flatnonzero(unsure):
        times = weights[at, codes]
        there = times > 0
        result[at] = _pearson_of_units(x[there], y[there], times[there])
    return result


def _scaled(side: Floats) -> Floats:
    """Divide by the largest, so that the squares of tiny or huge scores neither vanish nor overflow."""
    return np.asarray(side / np.abs(side).max())


def _pearson_of_units(x: Floats, y: Floats, times: Floats) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    a, b = (_scaled(side - side[0]) for side in (x, y))
    a, b = (side - times @ side / times.sum() for side in (a, b))
    return float(ratio(times @ (a * b), times @ (a * a), times @ (b * b)))


def _ranked(x: Floats, y: Floats, codes: Integers, weights: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    """Return Spearman's coefficients, (resamples, metrics), and how many pairs are untied in either side."""
    result, untied_x, untied_y = (np.empty((len(weights), len(x))) for _ in range(3))
    groups = [np.unique(side, return_inverse=True)[1] for side in (*x, y)]
    orders = [np.argsort(group, kind="stable") for group in groups]
    starts = [np.flatnonzero(np.diff(group[order], prepend=-1)) for group, order in zip(groups, orders, strict=True)]
    for part in blocks(len(weights), len(y)):
        # Units come first here: numpy adds whole rows of resamples at a time.
        times = np.ascontiguousarray(weights[part].T)[codes]

        def ranks(side: int, times: Floats = times) -> tuple[Floats, Floats, Floats]:
            """Return middle ranks less their mean of a side's values, their sum of squares, and the pairs that are untied."""
            tied = np.add.reduceat(times[orders[side]], starts[side], axis=0)
            total = tied.sum(axis=0)
            rank = np.cumsum(tied, axis=0) - tied / 2 - total / 2
            squares = np.einsum("gr,gr->r", tied, tied)
            return rank, np.einsum("gr,gr,gr->r", tied, rank, rank), total**2 - squares

        rated, square_y, untied = ranks(-1)
        by_unit = times * rated[groups[-1]]
        for row in range(len(x)):
            rank, square_x, untied_x[part, row] = ranks(row)
            sums = np.add.reduceat(by_unit[orders[row]], starts[row], axis=0)
            result[part, row] = ratio(np.einsum("gr,gr->r", rank, sums), square_x, square_y)
            untied_y[part, row] = untied
    return result, (untied_x, untied_y)


def _concordant(x: Floats, y: Floats, codes: Integers, weights: Floats) -> Floats:
    """Return concordant less discordant pairs of resamples, every pair counted twice.

    Units of a cluster have one weight, so that pairs are summed by the clusters of their units before any weight is known.
    """
    count = weights.shape[1]
    pairs = np.zeros((count, count))
    # Whole numbers of as few bytes as hold them compare fastest.
    ranks, levels = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    ranks, levels = (side.astype(np.min_scalar_type(int(side.max()))) for side in (ranks, levels))
    for code, own in enumerate(np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])):
        # The sum of 127 signs fits into a byte.
        for start in range(0, len(own), 127):
            some = own[start : start + 127, np.newaxis]
            signs = signs_of(ranks[some], ranks) * signs_of(levels[some], levels)
            pairs[code] += np.bincount(codes, np.add.reduce(signs, axis=0, dtype=np.int8), count)
    return np.asarray(np.vecdot(weights @ pairs, weights))


def concordance(x: Floats, y: Floats) -> Floats:
    """Return for each unit the sum over all units of sign(x - x') sign(y - y'): shape (n,).

    Ratings have few values: of each, units are counted by their place in x.
    """
    rank, level = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    places, levels = int(rank.max(initial=-1)) + 1, int(level.max(initial=-1)) + 1
    result, lower = np.empty(len(x)), np.zeros(places)
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(levels + 1))
    step = max(1, BLOCK // max(1, places))
    for first in range(0, levels, step):
        last = min(first + step, levels)
        own = order[edges[first] : edges[last]]
        cell = (level[own] - first) * places + rank[own]
        counts = np.bincount(cell, minlength=(last - first) * places).reshape(-1, places)
        below = np.cumsum(counts, axis=1)
        # Units of a level below each place in x less those above it.
        surplus = 2 * below - counts - below[:, -1:]
        upto = lower + np.cumsum(surplus, axis=0)
        # Those of lower levels twice and of its own once; less all, which gives lower levels less higher ones.
        result[own] = (2 * upto - surplus)[level[own] - first, rank[own]]
        lower = upto[-1]
    return result - lower[rank]


def _within(x: Floats, y: Floats, clusters: Integers) -> Floats:
    """Return concordant less discordant pairs of the units of each cluster, every pair counted twice."""
    sizes = np.bincount(clusters)
    members = np.split(np.argsort(clusters, kind="stable"), np.cumsum(sizes)[:-1])
    result = np.zeros(len(sizes))
    for size in np.unique(sizes[sizes > 1]):
        same = np.flatnonzero(sizes == size)
        if size > _FEW:
            result[same] = [concordance(x[members[code]], y[members[code]]).sum() for code in same]
            continue
        for part in blocks(len(same), size * size):
            units = np.stack([members[code] for code in same[part]])
            pairs = [signs_of(side[units][:, :, np.newaxis], side[units][:, np.newaxis, :]) for side in (x, y)]
            result[same[part]] = (pairs[0] * pairs[1]).sum(axis=(1, 2), dtype=np.int64)
    return result


def without_each(scores: Floats, ratings: Floats, clusters: Integers, name: Coefficient) -> Floats:
    """Return each metric's coefficient over the units that are not of a cluster, for each cluster.

    Leaving out for good, not by a derivative, is what keeps a test's level where scores have long tails.

    Parameters
    ----------
    scores, ratings, clusters
        Shapes (metrics, n), (n,) and (n,); scores are NaN where missing, clusters are codes from 0 on.
    name
        The coefficient.

    Returns
    -------
    array
        Shape (metrics, clusters). NaN where no coefficient is left, and where there was nothing to leave out.
    """
    count = int(clusters.max(initial=-1)) + 1
    result = np.full((len(scores), count), np.nan)
    for rows, kept in by_units(scores):
        present, own = np.unique(clusters[kept], return_inverse=True)
        if len(present) < 2:
            continue
        x, y = scores[np.ix_(rows, kept)], ratings[kept]
        if name == "kendall":
            values = np.stack([_kendall_without(row, y, own) for row in x])
        else:
            size = len(present)
            # All but one: parts of them, since of thousands of clusters the whole square is large.
            parts = [
                over_clusters(x, y, own, 1 - np.eye(part.stop - part.start, size, part.start), [name])[:, :, 0]
                for part in blocks(size, size)
            ]
            values = np.concatenate(parts).T
        result[np.ix_(rows, present)] = values
    return result


def _kendall_without(x: Floats, y: Floats, clusters: Integers) -> Floats:
    """Return Kendall's tau-b without each cluster, from all pairs less those of what is left out (two counted twice)."""
    sizes = np.bincount(clusters)
    each = concordance(x, y)
    untied = []
    for side in (x, y):
        level = np.unique(side, return_inverse=True)[1]
        ties = np.bincount(level)
        cell, inside = np.unique(clusters * len(ties) + level, return_counts=True)
        # Without some of a group of t ties, t squared becomes (t - some) squared.
        lost = inside * (2 * ties[cell % len(ties)] - inside)
        gone = np.bincount(cell // len(ties), lost, len(sizes))
        untied.append((len(x) - sizes) ** 2.0 - ((ties**2).sum() - gone))
    return ratio(each.sum() - 2 * np.bincount(clusters, each) + _within(x, y, clusters), *untied)


def influence(x: Floats, y: Floats, name: Coefficient) -> tuple[float, Floats]:
    """Return a coefficient, and how much each unit moves it: its derivative by the unit's weight, times n.

    Parameters
    ----------
    x, y
        Shape (n,), nothing missing.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    tuple
        The value, and influences of shape (n,) with a mean of 0; NaN where a side does not vary.
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), np.full(len(x), np.nan)
    if name == "kendall":
        agree = concordance(x, y) / len(x)
        untied_x, untied_y = (1 - _share_of_ties(side) for side in (x, y))
        mean, mean_x, mean_y = agree.mean(), untied_x.mean(), untied_y.mean()
        size = np.sqrt(mean_x * mean_y)
        moves = 2 * agree / size - mean / size * (untied_x / mean_x + untied_y / mean_y)
        return float(mean / size), moves - moves.mean()
    ranked = name == "spearman"
    of_x, of_y = (stats.rankdata(side) if ranked else side for side in (x, y))
    u, v = ((side - side.mean()) / side.std() for side in (of_x, of_y))
    value = float(np.mean(u * v))
    moves = u * v - value * (u**2 + v**2) / 2
    if ranked:
        # A unit also moves the ranks of those above it.
        moves = moves + _above(of_x, v - value * u) / of_x.std() + _above(of_y, u - value * v) / of_y.std()
        moves = moves - moves.mean()
    return value, moves


def _share_of_ties(values: Floats) -> Floats:
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[group] / len(values))


def _above(ranks: Floats, weights: Floats) -> Floats:
    """For each unit, the sum of the weights of those ranked above it and half of those tied with it."""
    _, group = np.unique(ranks, return_inverse=True)
    sums = np.bincount(group, weights)
    return np.asarray((np.cumsum(sums[::-1])[::-1] - sums / 2)[group])
