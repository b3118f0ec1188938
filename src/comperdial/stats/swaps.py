"""Permutation tests: what the difference of two metrics is when their scores are swapped at random.

Swaps of whole systems take systems as drawn from more of their kind; they are the tests of ranks of systems. PERM-BOTH (Deutsch,
Dror and Roth 2021), as the WMT metrics tasks use it, swaps each unit by itself, so that units count as independent. Metrics that
favour whole systems or dialogues break that, and the test then rejects too often (docs/validation.md); it is here for the ranks
of :mod:`comperdial.evaluation.overall` that the WMT tasks would give.

After a swap each unit has the first metric's score or the second's. A statistic that is a sum over pairs of units, as the
numerators of Spearman's and Kendall's coefficients are, is then a constant plus linear plus quadratic terms in the signs of the
swap. Turning all signs gives the other metric, so that in the difference of the two the linear terms alone are left: all swaps of
all pairs of metrics are one matrix product. What the coefficients are divided by is kept: swapping changes it only where
scores are tied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import Measure
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers
from comperdial.stats.jackknife import CLOSE, Replicates
from comperdial.stats.means import merge_ties, paired_means
from comperdial.stats.pairs import (
    Grouping,
    Groups,
    best_epsilon,
    of_rows,
    p_better,
    pair_signs,
    sign_flips,
    system_matrix,
)

# So many swaps a pair may have: enough for a correction over a thousand pairs.
SWAPS = 100_000
# So many swaps as far out as the data are enough to know p.
ENOUGH = 50
# Signs held at a time: 32 MB of them.
_AT_ONCE = 2**22
# Numbers in a step of the slower statistics.
_STEP = 2**19


def draw_signs(rng: np.random.Generator, count: int, width: int) -> Floats:
    """Return random signs, shape (count, width), eight from each byte."""
    octets = rng.integers(0, 256, size=(count, (width + 7) // 8), dtype=np.uint8)
    return np.asarray(2.0 * np.unpackbits(octets, axis=1, count=width) - 1.0, dtype=np.float64)


def _standardised(sides: Floats) -> Floats:
    """Return each of some metrics' scores, less their mean and over their spread; NaN where missing."""
    axes = tuple(range(1, sides.ndim))
    spread = np.nanstd(sides, axis=axes, keepdims=True)
    return np.asarray((sides - np.nanmean(sides, axis=axes, keepdims=True)) / np.where(spread > 0, spread, 1.0))


def _varying(scores: Floats, ratings: Floats) -> Integers:
    """Return the rows that vary; none if the ratings do not."""
    return np.flatnonzero((np.ptp(scores, axis=1) > 0) & (np.ptp(ratings) > 0))


def _as_far(drawn: Floats, observed: Floats | float) -> Integers:
    # A swap after which a side does not vary gives no difference; it counts as extreme, the cautious side.
    return np.asarray((~(drawn < observed - CLOSE)).sum(axis=-1))


def _square(count: int, rows: Integers, values: npt.ArrayLike, own: float) -> Floats:
    """Put values of the pairs of some metrics into a table of all, symmetric, NaN where there is none."""
    result = np.full((count, count), np.nan)
    result[rows, rows] = own
    one, other = rows[np.array(np.triu_indices(len(rows), 1))]
    result[one, other] = result[other, one] = values
    return result


# Linear terms


def _places(a: Floats, b: Floats) -> Integers:
    """Return the places of two metrics' scores, one's after the other's, among all that are different: shape (2 n,)."""
    return np.unique(np.concatenate([a, b]), return_inverse=True)[1]


def _of_ranks(group: Integers, y: Floats) -> Floats:
    """Return what the sign of each unit adds to half the difference of two metrics' sums of products of ranks: shape (n,).

    ``group`` is as :func:`_places` returns it; ``y`` are the ratings' ranks, less their mean.
    """
    sizes, total = np.bincount(group), np.bincount(group, np.tile(y, 2))
    # What a score adds to the sum of products of ranks: itself, and one rank of each that lies above.
    below, above = np.cumsum(sizes) - sizes / 2, np.cumsum(total[::-1])[::-1] - total / 2
    adds = np.tile(y, 2) * below[group] + above[group]
    return np.asarray((adds[: len(y)] - adds[len(y) :]) / 4)


def _ranked(ratings: Floats) -> Floats:
    return np.asarray(stats.rankdata(ratings) - (len(ratings) + 1) / 2)


def _of_pairs(pairs: Floats) -> Floats:
    """Return what the sign of each system adds to the difference of two metrics' sums over pairs of systems.

    ``pairs``, shape (2, 2, systems, systems), is what a pair adds where the one system has the score of the first or second
    metric (first axis) and the other that of the first or second (second axis).
    """
    count = pairs.shape[-1]
    i, j = np.triu_indices(count, 1)
    own = pairs[0, 0, i, j] - pairs[1, 1, i, j]
    across = pairs[0, 1, i, j] - pairs[1, 0, i, j]
    summed = np.bincount(i, (own + across) / 2, count) + np.bincount(j, (own - across) / 2, count)
    return np.asarray(summed, dtype=np.float64)


def _of_means(a: Floats, b: Floats, y: Floats, measure: Measure) -> Floats:
    """Return the linear terms of a statistic of two metrics' standardised means of systems, (systems,) each."""
    n = len(y)
    # Standardised values lie about 0, and were rounded at 1.
    both = merge_ties(np.concatenate([a, b]), 1.0)
    a, b = both[:n], both[n:]
    if measure == "spearman":
        ranks = _ranked(y)
        return 2 * _of_ranks(_places(a, b), ranks) / np.sqrt(ranks @ ranks * (n**3 - n) / 12)
    epsilon = 0.0
    if measure == "acc_eq":
        # One threshold for both, of all their scores: it is the same after each swap.
        epsilon = best_epsilon(both[np.newaxis], np.tile(y, 2)[np.newaxis])
    above = pair_signs(both, epsilon).reshape(2, n, 2, n).swapaxes(1, 2)
    rated = pair_signs(y, 0.0)
    if measure in ("kendall", "tau_c"):
        return _of_pairs(above * rated / np.sqrt(np.abs(rated).sum() / 2 * n * (n - 1) / 2))
    return _of_pairs((above == rated) / (n * (n - 1) / 2))


def _swap_p(linear: Floats, resamples: int, most: int, draw: Callable[[int], Floats]) -> Floats:
    """Return (1 + swaps as far out as the data) / (1 + swaps) of pairs of metrics, which share the swaps.

    A pair gets ``resamples`` swaps, and more while fewer than ``ENOUGH`` are as far out, up to ``most``. To stop early only
    at a p that is not small keeps the level (Besag and Clifford 1991): a p below some level is one also of the swaps that
    were drawn when others stopped above it. What a pair gets does not depend on the others.

    Parameters
    ----------
    linear
        Shape (pairs, units).
    draw
        Returns so many random signs of all units: shape (count, units).
    """
    observed = np.abs(linear.sum(axis=1))
    counts, swaps = np.zeros(len(linear)), np.zeros(len(linear))
    unsure, done, target = np.arange(len(linear)), 0, resamples
    while len(unsure):
        while done < target:
            size = min(max(1, _AT_ONCE // linear.shape[1]), target - done)
            drawn = np.abs(linear[unsure] @ draw(size).T)
            counts[unsure] += _as_far(drawn, observed[unsure, np.newaxis])
            done += size
        swaps[unsure] = done
        unsure = unsure[counts[unsure] < ENOUGH] if target < most else unsure[:0]
        target = max(target, min(4 * target, most))
    return (1 + counts) / (1 + swaps)


# Whole systems swapped


def swap_systems(
    scores: Floats,
    ratings: Floats,
    measure: Measure,
    resamples: int,
    seed: int,
    most: int = SWAPS,
) -> Floats:
    """Return the two-sided p of each pair of metrics from swaps of whole systems.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, systems) and (systems,): as :func:`comperdial.stats.means.system_means` gives them, nothing
        missing. Each row of scores is standardised first.
    measure
        ``spearman``, ``kendall``, ``accuracy``, ``tau_23``, ``tau_c`` or ``acc_eq`` (with one threshold for both metrics).
    resamples, most
        Swaps of each pair, and of a pair with fewer than ``ENOUGH`` of them as far out as the data.
    seed
        All pairs share the swaps; p of a pair does not depend on what other pairs there are.

    Returns
    -------
    array
        Shape (metrics, metrics), symmetric, 1 on the diagonal; NaN for a metric that does not vary.
    """
    usable = _varying(scores, ratings)
    pairs = combinations(_standardised(scores[usable]), 2)
    linear = np.array([_of_means(a, b, ratings, measure) for a, b in pairs]).reshape(-1, len(ratings))
    draw = partial(draw_signs, np.random.default_rng(seed), width=len(ratings))
    return _square(len(scores), usable, _swap_p(linear, resamples, most, draw), 1.0)


def swap_systems_of_pairs(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    measure: Measure,
    *,
    resamples: int,
    seed: int,
    most: int = SWAPS,
) -> Floats:
    """Return the two-sided p of each pair of metrics from swaps of whole systems, for statistics of pairs of systems.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing: units. Standardised are means of systems, but for ``spa`` units.
    design, items
        As :func:`comperdial.stats.pairs.replicates` takes them.
    measure
        ``accuracy``, ``tau_23``, ``tau_c``, ``acc_eq`` or ``spa``.
    resamples, most, seed
        As in :func:`swap_systems`.

    Returns
    -------
    array
        Shape (metrics, metrics), symmetric, 1 on the diagonal, NaN where there is nothing to compare or a metric does not
        vary.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    means, rated = paired_means(table, human, design)
    systems, usable = design.counts[0], np.flatnonzero(np.ptp(means, axis=1) > 0)
    if systems < FEWEST_SAMPLED or not resamples:
        return _square(len(table), usable, np.nan, 1.0)
    if measure != "spa":
        return swap_systems(means, rated[0], measure, resamples, seed, most)
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    *sides, of_ratings = (system_matrix(row, design.systems, items) for row in (*_standardised(table[usable]), human))
    known = p_better(of_ratings, of_ratings, signs)
    linear = []
    for pair in combinations(sides, 2):
        p = np.array([[p_better(one, other, signs) for other in pair] for one in pair])
        linear.append(_of_pairs(np.nan_to_num(1 - np.abs(p - known))) / (systems * (systems - 1) / 2))
    draw = partial(draw_signs, np.random.default_rng(seed), width=systems)
    p = _swap_p(np.array(linear).reshape(-1, systems), resamples, most, draw)
    return _square(len(table), usable, p, 1.0)


# PERM-BOTH


def swap_pairs(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    grouping: Grouping,
    result: Replicates,
    *,
    resamples: int,
    seed: int,
) -> Floats:
    """Return WMT's one-sided p of each pair of metrics: what they say of pairs of units is swapped at random, nothing is added.

    Parameters
    ----------
    scores, ratings, design, items, grouping
        As :func:`comperdial.stats.pairs.replicates` takes them, nothing missing.
    result
        What that returned for ``acc_eq``: the values, and the thresholds, which each metric keeps.
    resamples, seed
        Swaps, and their seed; what a pair gets does not depend on the others.
    """
    groups = Groups.of(design, items, grouping)
    x, y = (groups.laid_out(merge_ties(np.asarray(side, dtype=np.float64))) for side in (scores, ratings))
    epsilon = np.zeros(len(x)) if result.epsilon is None else np.nan_to_num(result.epsilon)
    right = [_alike(side, y, float(slack)) for side, slack in zip(x, epsilon, strict=True)]
    p = []
    for a, b in combinations(range(len(x)), 2):
        drawn = _swapped_pairs(right[a], right[b], x[a], y, resamples, np.random.default_rng([seed, a, b]))
        p.append(_as_far(drawn, abs(result.values[a] - result.values[b])) / (2 * max(resamples, 1)))
    return _square(len(x), np.arange(len(x)), p, np.nan)


def _alike(x: Floats, y: Floats, epsilon: float) -> Flags:
    """Return whether a metric sees each pair as people do, (groups, places, places), each pair once."""
    there = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):
        same = pair_signs(x, epsilon) == pair_signs(y, 0.0)
    return np.triu(same & there[:, :, np.newaxis] & there[:, np.newaxis, :], 1)


def _swapped_pairs(one: Flags, other: Flags, x: Floats, y: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Swap the verdicts on each pair: the difference is a sum of signs over the pairs on which the two metrics disagree."""
    places = (np.isfinite(x) & np.isfinite(y)).sum(axis=1)
    pairs = places * (places - 1) / 2
    otherwise = (one != other).sum(axis=(1, 2))
    drawn = np.zeros(resamples)
    for size in np.unique(pairs[pairs > 0]):
        number = int(otherwise[pairs == size].sum())
        drawn += (2.0 * rng.binomial(number, 0.5, size=resamples) - number) / size
    return np.abs(drawn) / max(1, int((pairs > 0).sum()))


def swapped_differences(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    measure: Measure,
    grouping: Grouping | None,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the absolute differences of two metrics after the random swaps of PERM-BOTH: shape (resamples,).

    Parameters
    ----------
    first, second, ratings
        Shape (n,), none missing.
    design, items
        As :func:`comperdial.stats.pairs.replicates` takes them.
    measure, grouping
        Likewise; ``None`` is over all units (Pearson and Spearman). Standardised scores are swapped unit by unit; ``acc_eq``
        swaps what each metric, with its own threshold, says of a pair; means of systems are swapped as means, but for
        ``spa``, which needs the units.
    """
    sides = np.stack([np.asarray(side, dtype=np.float64) for side in (first, second)])
    human = np.asarray(ratings, dtype=np.float64)
    if measure == "spa":
        return _soft_swaps(_standardised(sides), human, design, items, resamples, rng)
    if grouping is None and measure == "spearman":
        return np.concatenate(
            [
                _rank_swaps(_places(*_standardised(sides)), _ranked(human), draw_signs(rng, size, len(human)).T)
                for size in _sizes(resamples, len(human))
            ]
        )
    if grouping is None and measure != "pearson":
        raise ValueError(f"{measure} over all units is not swapped: expected pearson or spearman")
    if grouping == "pooled":
        means, rated = paired_means(sides, human, design)
        x, y = means[:, np.newaxis], rated[:1]
    elif grouping is None:
        x, y = sides[:, np.newaxis], human[np.newaxis]
    else:
        groups = Groups.of(design, items, grouping)
        x, y = groups.laid_out(merge_ties(sides)), groups.laid_out(merge_ties(human))
    if measure == "acc_eq":
        right = [_alike(side, y, best_epsilon(side, y)) for side in x]
        return _swapped_pairs(right[0], right[1], x[0], y, resamples, rng)
    x, drawn = _standardised(x), []
    for size in _sizes(resamples, y.size * (y.shape[1] if grouping else 1)):
        which = rng.integers(0, 2, size=(size, *y.shape), dtype=np.int8) == 1
        rated = np.broadcast_to(y, which.shape)
        one, other = (of_rows(np.where(which, a, b), rated, measure) for a, b in (x, x[::-1]))
        drawn.append(np.abs(one - other))
    return np.concatenate(drawn)


def _sizes(resamples: int, width: int) -> list[int]:
    step = max(1, _STEP // max(1, width))
    return [min(step, resamples - start) for start in range(0, resamples, step)]


def _rank_swaps(group: Integers, y: Floats, signs: Floats) -> Floats:
    """Return the absolute differences of Spearman's coefficients after swaps, signs being (n, swaps), y the ratings' ranks.

    Not by ranking each swapped sample: how many and which values of a group of ties are chosen is counted.
    """
    n = len(y)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    unit, of_first = order % n, order[:, np.newaxis] < n
    values = []
    for turned in (signs > 0, signs < 0):
        chosen = turned[unit] == of_first
        number = np.add.reduceat(chosen, starts, axis=0, dtype=np.float64)
        sums = np.add.reduceat(np.where(chosen, y[unit, np.newaxis], 0.0), starts, axis=0)
        # Ranks of ratings sum to 0, so that those of scores need not be centred.
        product = np.einsum("gr,gr->r", np.cumsum(number, axis=0) - number / 2, sums)
        spread = (n**3 - n - (number**3 - number).sum(axis=0)) / 12
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(product / np.sqrt(spread * (y @ y)))
    return np.asarray(np.abs(values[0] - values[1]))


def _soft_swaps(
    sides: Floats, human: Floats, design: Design, items: Integers, resamples: int, rng: np.random.Generator
) -> Floats:
    signs = sign_flips(int(items.max()) + 1, resamples, int(rng.integers(2**31)))
    first, second, rated = (system_matrix(side, design.systems, items) for side in (*sides, human))
    known = p_better(rated, rated, signs)
    drawn = np.empty(resamples)
    for at in range(resamples):
        which = rng.integers(0, 2, size=first.shape, dtype=np.int8) == 1
        swapped = (np.where(which, a, b) for a, b in ((first, second), (second, first)))
        one, other = (np.nanmean(np.abs(known - p_better(side, side, signs))) for side in swapped)
        drawn[at] = abs(one - other)
    return drawn
