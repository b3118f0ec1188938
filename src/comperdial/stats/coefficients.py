"""Pearson, Spearman and Kendall on resamples, or with clusters (systems or dialogues) left out.

A resample is a vector of weights: how often each cluster was drawn. Results equal those for units repeated that often; the
weights are not an approximation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.correlation import correlate, each_rowwise, rowwise, signs_of
from comperdial.stats.design import Design, Floats, Integers, by_units, codes_of
from comperdial.stats.means import merge_ties, paired, paired_means

# Elements of an array (resamples, units) processed at a time: 2 MB, which fit into the cache.
BLOCK = 2**18
# If variance is a smaller share of a resample's squares about the overall mean, its sums have lost too many digits and are
# recomputed about its own mean.
_LITTLE = 1e-6
# Up to this many units, all pairs are compared.
_FEW = 128
# Counting a unit in a resample takes as long as this many products (measured).
_SUMMED = 256
# Maximum size of a table of units, levels or clusters by clusters: 64 MB.
_TABLE = 2**23


def blocks(count: int, width: int) -> Iterator[slice]:
    """Split ``count`` rows of ``width`` numbers into parts that fit into the cache."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def ratio(product: Floats, square_x: Floats, square_y: Floats) -> Floats:
    """Return a coefficient from a sum of products and two sums of squares; NaN if one of these is not positive."""
    size = np.sqrt(np.maximum(square_x, 0)) * np.sqrt(np.maximum(square_y, 0))
    return np.asarray(np.clip(np.divide(product, size, out=np.full(np.shape(size), np.nan), where=size > 0), -1, 1))


def checked(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return scores (metrics, n) and ratings (n,) as arrays; raise a ValueError if they do not match the design."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if x.ndim != 2 or not x.shape[1:] == y.shape == design.systems.shape:
        shapes = f"{x.shape}, {y.shape} and {design.systems.shape}"
        raise ValueError(f"expected scores (metrics, n), ratings (n,) and a design of n units, got {shapes}")
    if np.isnan(y).any():
        raise ValueError("expected a rating for each unit; leave out units without one")
    if unknown := set(names) - set(COEFFICIENTS):
        raise ValueError(f"unknown coefficient {unknown.pop()!r}; expected one of {', '.join(COEFFICIENTS)}")
    return x, y


def coefficients(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[Coefficient]) -> Floats:
    """Correlate metrics with ratings: shape (metrics, names), NaN if a side is constant.

    Scores have shape (metrics, n), ratings (n,). A unit without a score (NaN) is ignored for that metric; each needs a rating.
    The design sets whether to correlate system means; means that differ only by rounding are ties. Names are
    ``pearson``, ``spearman`` and ``kendall`` (tau-b).
    """
    sides = paired(*checked(scores, ratings, design, names), design)
    values = [
        # With many units scipy's way of counting is faster.
        correlate(x, y, name).value if name == "kendall" else rowwise(x[np.newaxis], y[np.newaxis], name)[0]
        for x, y in sides
        for name in names
    ]
    return np.array(values).reshape(len(sides), len(names))


def over_means(
    scores: Floats, ratings: Floats, design: Design, weights: npt.NDArray[Any], names: Sequence[Coefficient]
) -> Floats:
    """Return the coefficients over system means of resamples of dialogues: shape (resamples, metrics, names).

    Weights give how often each dialogue was drawn: for all systems, shape (resamples, dialogues), or separately for each system,
    (resamples, systems, dialogues). A system without drawn dialogues is ignored. Otherwise as :func:`coefficients`.
    """
    result = np.full((len(weights), len(scores), len(names)), np.nan)
    shape = design.counts
    cell = design.systems * shape[1] + design.dialogues
    for rows, kept in by_units(scores):

        def summed(values: Floats, cell: Integers = cell[kept]) -> Floats:
            return np.bincount(cell, values, shape[0] * shape[1]).reshape(shape).astype(np.float64)

        sides = [*scores[np.ix_(rows, kept)], ratings[kept]]
        # Rounding of means is relative to the mean absolute value, which for numbers of one sign is the mean itself.
        sums = [[summed(part) for part in ((side, np.abs(side)) if side.min() < 0 else (side,))] for side in sides]
        units = summed(np.ones(int(kept.sum())))
        for part in blocks(len(weights), units.size):
            times = weights[part].astype(np.float64)

            def drawn(side: Floats, times: Floats = times) -> Floats:
                return times @ side.T if times.ndim == 2 else np.vecdot(times, side)

            count = drawn(units)
            count = np.where(count > 0, count, np.nan)
            *x, y = (merge_ties(*(drawn(side) / count for side in of_side)) for of_side in sums)
            result[part, rows] = np.transpose(each_rowwise(x, y, names), (2, 1, 0))
    return result


def over_systems(
    scores: Floats, ratings: Floats, design: Design, weights: Floats, names: Sequence[Coefficient]
) -> Floats:
    """Return the coefficients over system means of resamples of systems, (resamples, systems): as :func:`over_means`."""
    result = np.full((len(weights), len(scores), len(names)), np.nan)
    means, rated = paired_means(scores, ratings, design)
    # Outputs that scored the same units have the same mean ratings.
    for rows, _ in by_units(scores):
        result[:, rows] = over_clusters(means[rows], rated[rows[0]], np.arange(design.counts[0]), weights, names)
    return result


def over_clusters(
    scores: Floats, ratings: Floats, clusters: Integers, weights: Floats, names: Sequence[Coefficient]
) -> Floats:
    """Return the coefficients of resamples of clusters: shape (resamples, metrics, names), NaN if a side is constant.

    Scores, ratings and clusters have shapes (metrics, n), (n,) and (n,); scores are NaN if missing, clusters are codes from 0.
    Weights, (resamples, clusters), give how often each cluster was drawn.
    """
    result = np.full((len(weights), len(scores), len(names)), np.nan)
    for rows, kept in by_units(scores):
        x, y, codes = scores[np.ix_(rows, kept)], ratings[kept], clusters[kept]
        ranked = cache(lambda x=x, y=y, codes=codes: [_Ranked.of(side, codes, weights) for side in (*x, y)])
        for at, name in enumerate(names):
            values: list[Floats] | Floats
            if name == "pearson":
                values = [_pearson(row, y, codes, weights) for row in x]
            elif len(codes) <= _FEW:
                values = _of_few(x, y, weights[:, codes], name)
            elif name == "spearman" and not _is_summed(y, codes, weights):
                values = _spearman_of_units(x, y, codes, weights)
            else:
                of_ranks = _spearman if name == "spearman" else _kendall
                values = [of_ranks(side, ranked()[-1], codes, weights) for side in ranked()[:-1]]
            result[:, rows, at] = np.transpose(values)
    return result


def _of_few(x: Floats, y: Floats, times: Floats, name: Coefficient) -> Floats:
    """Return a rank coefficient, (metrics, resamples), by comparing all pairs of units."""
    above, rated = (signs_of(side[..., :, np.newaxis], side[..., np.newaxis, :]).astype(np.float64) for side in (x, y))
    if name == "kendall":
        return ratio(*(np.vecdot(times @ pairs, times) for pairs in (above * rated, above**2, rated**2)))
    # Centred ranks are half the sums of signs.
    a, b = times @ above, times @ rated
    return ratio(*(np.vecdot(times * one, other) for one, other in ((a, b), (a, a), (b, b))))


def _is_summed(y: Floats, codes: Integers, weights: Floats) -> bool:
    """Return whether ranks can be summed over clusters first, and whether that takes less time."""
    clusters, levels = weights.shape[1], len(np.unique(y))
    fits = max(len(y), levels * clusters) * clusters <= _TABLE
    return bool(fits and levels * clusters**2 <= _SUMMED * len(y))


def _spearman_of_units(x: Floats, y: Floats, codes: Integers, weights: Floats) -> Floats:
    """Return Spearman's coefficients, (metrics, resamples), from the ranks of units in each resample."""
    result = np.empty((len(x), len(weights)))
    *scored, rated = (codes_of(side) for side in (*x, y))
    for part in blocks(len(weights), len(codes)):
        # Units first: numpy then adds whole rows of resamples.
        times = np.ascontiguousarray(weights[part].T)[codes]
        b, square = _middle_ranks(rated, times)
        by_unit = times * b
        for row, side in enumerate(scored):
            a, own = _middle_ranks(side, times)
            result[row, part] = ratio(np.einsum("nr,nr->r", by_unit, a), own, square)
    return result


def _pearson(x: Floats, y: Floats, codes: Integers, weights: Floats) -> Floats:
    """Return Pearson's r of resamples from sums over clusters."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.full(len(weights), np.nan)
    # Divide by the largest, so that squares of tiny or huge scores neither vanish nor overflow.
    a, b = (side / np.abs(side).max() for side in (x - x.mean(), y - y.mean()))
    sums = [np.bincount(codes, part, weights.shape[1]) for part in (np.ones_like(x), a, b, a * a, b * b, a * b)]
    total, sum_x, sum_y, *whole = np.stack(sums) @ weights.T
    with np.errstate(invalid="ignore"):
        square_x, square_y, product = whole - np.stack([sum_x**2, sum_y**2, sum_x * sum_y]) / total
    result = ratio(product, square_x, square_y)
    for at in np.flatnonzero((square_x < _LITTLE * whole[0]) | (square_y < _LITTLE * whole[1])):
        drawn = np.repeat(np.arange(len(x)), weights[at, codes].astype(np.intp))[np.newaxis]
        result[at : at + 1] = rowwise(x[drawn], y[drawn], "pearson")
    return result


class _Ranked(NamedTuple):
    """One side as ranks from 0; per resample, the number of units and the sums over ties of their square and cube."""

    ranks: Integers
    total: Floats
    squares: Floats
    cubes: Floats

    @classmethod
    def of(cls, values: Floats, codes: Integers, weights: Floats) -> _Ranked:
        ranks, clusters = codes_of(values), weights.shape[1]
        tied = np.bincount(ranks)[ranks] > 1
        alone = np.bincount(codes[~tied], minlength=clusters)
        squares, cubes = weights**2 @ alone, weights**3 @ alone
        own = codes_of(ranks[tied])
        groups = _summing(own, codes[tied], (int(own.max(initial=-1)) + 1, clusters))
        for part in blocks(len(weights), groups.shape[0]):
            times = groups @ np.ascontiguousarray(weights[part].T)
            squares[part] += np.einsum("gr,gr->r", times, times)
            cubes[part] += np.einsum("gr,gr,gr->r", times, times, times)
        return cls(ranks, weights @ np.bincount(codes, minlength=clusters), squares, cubes)


def _summing(groups: Integers, places: Integers, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Return a sparse matrix (groups, places) that counts the units at each place of each group."""
    return scipy.sparse.csr_array((np.ones(len(groups)), (groups, places)), shape=shape)


def _spearman(x: _Ranked, y: _Ranked, codes: Integers, weights: Floats) -> Floats:
    """Return Spearman's coefficients of resamples.

    A unit's rank is the weighted number of units below it in each cluster. Ratings have few levels, so the ranks of the units
    of a level and cluster are summed before weighting.
    """
    levels, clusters = int(y.ranks.max()) + 1, weights.shape[1]
    group, product = codes * levels + y.ranks, np.empty(len(weights))
    summing = _summing(group, np.arange(len(codes)), (clusters * levels, len(codes)))
    table = (summing @ _standing(x.ranks, codes, clusters)).reshape(clusters, levels * clusters)
    cells = np.bincount(group, minlength=clusters * levels).reshape(clusters, levels)
    # These are integers: if small enough, single precision is exact and twice as fast.
    largest = np.abs(table).max(initial=0) * weights.sum(axis=1).max(initial=0) ** 2
    kind = np.float32 if largest < 2**24 and np.array_equal(weights, np.round(weights)) else np.float64
    table = table.astype(kind)
    for part in blocks(len(weights), levels * clusters):
        times = weights[part].astype(kind)
        sums = np.vecdot((times @ table).reshape(len(times), levels, clusters), times[:, np.newaxis]) / 2
        product[part] = np.vecdot(sums, _middle_ranks(np.arange(levels), cells.T @ weights[part].T)[0].T)
    return ratio(product, (x.total**3 - x.cubes) / 12, (x.total**3 - y.cubes) / 12)


def _middle_ranks(ranks: Integers, times: Floats) -> tuple[Floats, Floats]:
    """Return centred middle ranks, given how often each unit was drawn, (n, resamples), and their sums of squares."""
    order = np.argsort(ranks, kind="stable")
    tied = np.add.reduceat(times[order], np.flatnonzero(np.diff(ranks[order], prepend=-1)))
    middle = np.cumsum(tied, axis=0) - tied / 2 - tied.sum(axis=0) / 2
    return middle[ranks], np.einsum("gr,gr,gr->r", tied, middle, middle)


def _standing(ranks: Integers, codes: Integers, clusters: int) -> npt.NDArray[np.int32]:
    """Return the number of units of each cluster below each unit minus those above it: shape (n, clusters).

    Units with a code outside 0 to clusters - 1 are not counted.
    """
    ordered = codes[np.argsort(ranks, kind="stable")]
    counted = np.flatnonzero((ordered >= 0) & (ordered < clusters))
    counts = np.zeros((len(ranks) + 1, clusters), dtype=np.int32)
    counts[counted + 1, ordered[counted]] = 1
    np.cumsum(counts, axis=0, out=counts)
    edges = np.concatenate([[0], np.cumsum(np.bincount(ranks))])
    return counts.take(edges[ranks], axis=0) + counts.take(edges[ranks + 1], axis=0) - counts[-1]


def _kendall(x: _Ranked, y: _Ranked, codes: Integers, weights: Floats) -> Floats:
    """Return Kendall's tau-b of resamples."""
    if weights.shape[1] ** 2 > _TABLE:
        # Too many pairs of clusters: use scipy per resample, whose time and memory grow with the number of units.
        repeats = (np.repeat(np.arange(len(codes)), times[codes].astype(np.intp)) for times in weights)
        return np.array([correlate(x.ranks[own], y.ranks[own], "kendall").value for own in repeats])
    pairs = _concordant(x.ranks, y.ranks, codes, weights.shape[1])
    return ratio(np.vecdot(weights @ pairs, weights), x.total**2 - x.squares, x.total**2 - y.squares)


def _concordant(x: Integers, y: Integers, codes: Integers, count: int) -> Floats:
    """Return concordant minus discordant pairs by the clusters of their units: shape (count, count), each pair twice."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    # The smallest integer type compares fastest.
    x, y = (side[order].astype(np.min_scalar_type(int(side.max()))) for side in (x, y))
    pairs = np.zeros((count, count))
    edges = np.searchsorted(codes, np.arange(count + 1))
    for code, (first, end) in enumerate(pairwise(edges)):
        # The sum of 127 signs fits into a byte. Pairs of two clusters are compared from the first one.
        for start in range(first, end, 127):
            some = slice(start, min(start + 127, end))
            signs = signs_of(x[some, np.newaxis], x[first:]) * signs_of(y[some, np.newaxis], y[first:])
            pairs[code] += np.bincount(codes[first:], np.add.reduce(signs, axis=0, dtype=np.int8), count)
    return np.asarray(pairs + np.triu(pairs, 1).T)


def concordance(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Floats:
    """Return for each unit the sum over all units of sign(x - x') sign(y - y'), for rows x, (rows, n), and one y, (n,).

    Ratings have few values: units of each value are counted by their place in x.
    """
    level, rank = codes_of(y), np.array([codes_of(row) for row in x])
    places, offsets = int(rank.max(initial=-1)) + 1, np.arange(len(rank))[:, np.newaxis]
    result, lower = np.empty(rank.shape), np.zeros((len(rank), places))
    for own in np.split(np.argsort(level, kind="stable"), np.cumsum(np.bincount(level))[:-1]):
        at = rank[:, own]
        counts = np.bincount((offsets * places + at).ravel(), minlength=lower.size).reshape(lower.shape)
        # Units of this level below each place minus those above it.
        surplus = 2 * np.cumsum(counts, axis=1) - counts - len(own)
        result[:, own] = (2 * lower + surplus)[offsets, at]
        lower += surplus
    # Twice those of lower levels plus once its own, minus all: lower levels minus higher ones.
    return result - lower[offsets, rank]


def without_each(scores: Floats, ratings: Floats, clusters: Integers, name: Coefficient) -> Floats:
    """Return each metric's coefficient without the units of each cluster: shape (metrics, clusters).

    NaN if no coefficient is left, or there was nothing to leave out. Arguments as in :func:`over_clusters`. Actual
    leave-one-out, instead of a derivative, keeps a test's level if scores have long tails.
    """
    result = np.full((len(scores), int(clusters.max(initial=-1)) + 1), np.nan)
    for rows, kept in by_units(scores):
        present, own = np.unique(clusters[kept], return_inverse=True)
        x, y, size = scores[np.ix_(rows, kept)], ratings[kept], len(present)
        if name == "kendall":
            values = _kendall_without(x, y, own)
        elif name == "spearman" and len(own) > _FEW:
            values = _spearman_without(x, y, own)
        else:
            # All clusters but one, in parts, since the full square is large for thousands of clusters.
            drawn = (1 - np.eye(part.stop - part.start, size, part.start) for part in blocks(size, size))
            values = np.concatenate([over_clusters(x, y, own, some, [name])[:, :, 0] for some in drawn]).T
        result[np.ix_(rows, present)] = values
    return result


def _spearman_without(x: Floats, y: Floats, clusters: Integers) -> Floats:
    """Return Spearman's coefficients without each cluster: a unit's rank among all units minus that within the cluster."""
    n, count = len(y), int(clusters.max()) + 1
    *scored, rated = (codes_of(side) for side in (*x, y))
    # Units below minus units above, among all units.
    everyone = [_standing(side, np.zeros_like(side), 1)[:, 0].astype(np.float64) for side in (*scored, rated)]
    product = np.empty((len(x), count))
    step = max(1, _TABLE // 4 // n)
    for start in range(0, count, step):
        codes, width = clusters - start, min(step, count - start)
        outside = codes[:, np.newaxis] != np.arange(width)
        b = (everyone[-1][:, np.newaxis] - _standing(rated, codes, width)) * outside
        for row, side in enumerate(scored):
            own = np.einsum("nc,nc->c", _standing(side, codes, width), b)
            product[row, start : start + width] = (everyone[row] @ b - own) / 4
    left = n - np.bincount(clusters)
    *spread_x, spread_y = ((left**3.0 - _ties_without(side, clusters, 3.0)) / 12 for side in (*scored, rated))
    return ratio(product, np.array(spread_x), spread_y)


def _kendall_without(x: Floats, y: Floats, clusters: Integers) -> Floats:
    """Return Kendall's tau-b without each cluster: all pairs minus those of the cluster (its own pairs counted twice)."""
    n, left = len(y), len(y) - np.bincount(clusters)
    *scored, rated = (codes_of(side) for side in (*x, y))
    # With clusters shifted far up and far down, pairs between clusters cancel and those within a cluster remain.
    agree, up, down = (concordance(np.array(scored) + sign * n * clusters, rated) for sign in (0, 1, -1))
    lost = np.array([np.bincount(clusters, row) for row in 2 * agree - (up + down) / 2])
    *untied_x, untied_y = (left**2.0 - _ties_without(side, clusters, 2.0) for side in (*scored, rated))
    return ratio(agree.sum(axis=1, keepdims=True) - lost, np.array(untied_x), untied_y)


def _ties_without(ranks: Integers, clusters: Integers, power: float) -> Floats:
    """Return the sum of a power of the sizes of tied groups, without each cluster: shape (clusters,)."""
    ties = np.bincount(ranks)
    cells, inside = np.unique(clusters * len(ties) + ranks, return_counts=True)
    cluster, group = np.divmod(cells, len(ties))
    change = (ties[group] - inside) ** power - ties[group] ** power
    return np.asarray((ties**power).sum() + np.bincount(cluster, change))


def influence(x: Floats, y: Floats, name: Coefficient) -> tuple[float, Floats]:
    """Return a coefficient, and each unit's influence: the derivative by the unit's weight, times n.

    Sides, (n,), have no missing values; influences, (n,), have mean 0. NaN if a side is constant.
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), np.full(len(x), np.nan)
    if name == "kendall":
        agree = concordance(x[np.newaxis], y)[0] / len(x)
        untied_x, untied_y = (1 - np.bincount(group)[group] / len(x) for group in (codes_of(x), codes_of(y)))
        mean, mean_x, mean_y = agree.mean(), untied_x.mean(), untied_y.mean()
        size = np.sqrt(mean_x * mean_y)
        moves = 2 * agree / size - mean / size * (untied_x / mean_x + untied_y / mean_y)
        return float(mean / size), moves - moves.mean()
    of_x, of_y = (scipy.stats.rankdata(side) if name == "spearman" else side for side in (x, y))
    u, v = ((side - side.mean()) / side.std() for side in (of_x, of_y))
    value = float(np.mean(u * v))
    moves = u * v - value * (u**2 + v**2) / 2
    if name == "spearman":
        # A unit also shifts the ranks of those above it.
        moves = moves + _above(of_x, v - value * u) / of_x.std() + _above(of_y, u - value * v) / of_y.std()
        moves = moves - moves.mean()
    return value, moves


def _above(ranks: Floats, weights: Floats) -> Floats:
    """Return for each unit the sum of the weights of units ranked above it and half of those tied with it."""
    group = codes_of(ranks)
    sums = np.bincount(group, weights)
    return np.asarray((np.cumsum(sums[::-1])[::-1] - sums / 2)[group])
