"""Permutation tests: what the difference of two metrics is when their scores are swapped at random.

PERM-BOTH (Deutsch, Dror and Roth 2021), as the WMT metrics tasks use it, swaps each unit by itself, so that units count as
independent. Metrics that favour whole systems or dialogues break that, and the test then rejects too often
(docs/validation.md). It answers WMT's question, "is the difference chance, given these systems and dialogues and no others?",
and is given beside the test that answers ours. Swaps of whole systems take systems as drawn.

A swapped score is (a + b) / 2 + s (a - b) / 2 with a sign s, and its square likewise, so every sum that Pearson's r needs is
linear in sums of s x: one matrix product serves all pairs of metrics. Whether one score lies above another is a product of
what two signs choose, so concordance (Kendall), and likewise the sum of products of ranks (Spearman), is a constant plus
linear plus quadratic terms in the signs. Turning all signs gives the other metric of the pair: in the difference of the two
only the linear terms are left, if there are no ties. Ties change what is divided by, with the numbers of tied values chosen,
which are linear too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from comperdial.stats import Coefficient, Measure
from comperdial.stats.coefficients import blocks
from comperdial.stats.correlation import ALPHA, rowwise
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers
from comperdial.stats.jackknife import CLOSE, Replicates
from comperdial.stats.means import TIED, merge_ties, paired_means, system_means
from comperdial.stats.pairs import (
    Grouping,
    Groups,
    best_epsilon,
    distinct,
    of_rows,
    p_better,
    pair_signs,
    sign_flips,
    stuart,
    system_matrix,
)

# So many swaps a pair may have: enough for a correction over a thousand pairs.
SWAPS = 100_000
# So many swaps as far out as the data are enough to say what p is.
ENOUGH = 50
# Signs held at a time: 32 MB of them; numbers in a step of the slower statistics.
_AT_ONCE, _STEP = 2**22, 2**19
# Parts of the signs that are ranked together: 128 MB.
_RANKED_TOGETHER = 4
# Scores x swaps that are ranked at a time: 2 MB of each of a few arrays.
_RANKED = 2**18
# Pairs of systems looked at for one pair of metrics, where each swap looks at them all.
_WORK = 2**24
# Groups of ties that change the spread by no more than this share of it, all together, are bounded; what is bounded is sure
# where it is this much farther out, or less far, than what it is compared with.
_BOUNDED, _CAUTION = 1e-2, 1e-9


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


# PERM-BOTH of coefficients


def swap_units(
    scores: Floats,
    ratings: Floats,
    design: Design,
    name: Coefficient,
    resamples: int,
    draw: Callable[[int], Floats],
) -> Floats:
    """Return the two-sided p of each pair of metrics, (1 + swaps as far out as the data) / (1 + swaps): PERM-BOTH.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing. Each row of scores is standardised first. For Spearman, what was
        swapped (and averaged) is ranked each time.
    design
        With ``average`` the swapped scores are averaged by system.
    name
        ``pearson`` or ``spearman``; ``kendall`` with ``design.average`` only.
    resamples
        How many swaps; all pairs share them.
    draw
        Returns so many random signs of all units: shape (count, n).

    Returns
    -------
    array
        Shape (metrics, metrics), symmetric, 1 on the diagonal; NaN for a metric that does not vary.
    """
    p = np.full((len(scores), len(scores)), np.nan)
    usable = _varying(scores, ratings)
    if not len(usable):
        return p
    chosen = _standardised(scores[usable])
    found = np.zeros((len(usable), len(usable)))
    step = max(1, _AT_ONCE // len(ratings))
    starts = range(0, resamples, step)
    # What pairs are made of is made anew for each part: ranks, which take long, for several at a time.
    parts = _RANKED_TOGETHER if name == "spearman" and not design.average else 1
    for first in range(0, len(starts), parts):
        signs = np.concatenate([draw(min(step, resamples - start)) for start in starts[first : first + parts]])
        if design.average:
            found += _far_by_means(chosen, ratings, design, signs, name)
        elif name == "spearman":
            found += _far_by_ranks(chosen, ratings, signs)
        else:
            found += _far_by_units(chosen, ratings, signs)
    p[np.ix_(usable, usable)] = (1 + found + found.T) / (1 + resamples)
    p[usable, usable] = 1
    return p


def _far_by_units(scores: Floats, ratings: Floats, signs: Floats) -> Floats:
    """Count per pair the swaps whose difference of Pearson's r over units is as far from 0 as the data's."""
    metrics, n = scores.shape
    y = (ratings - ratings.mean()) / ratings.std()
    summed = signs @ (np.concatenate([scores, scores**2, scores * y]) / n).T
    # By metric, then resample: rows are contiguous.
    middle, square, cross = np.ascontiguousarray(summed.T).reshape(3, metrics, -1)
    values = (scores @ y) / n
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        rest = slice(a + 1, metrics)
        shift, surplus = (middle[a] - middle[rest]) / 2, (square[a] - square[rest]) / 2
        both, half = (values[a] + values[rest, None]) / 2, (cross[a] - cross[rest]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = ((both + s * half) / np.sqrt(1 + s * surplus - shift**2) for s in (1, -1))
        counts[a, rest] = _as_far(np.abs(one - other), np.abs(values[a] - values[rest])[:, None])
    return counts


def _far_by_ranks(scores: Floats, ratings: Floats, signs: Floats) -> Floats:
    """Count as :func:`_far_by_units` does, the correlation being Spearman's."""
    y = np.asarray(stats.rankdata(ratings) - (len(ratings) + 1) / 2)
    counts = np.zeros((len(scores), len(scores)))
    by_unit = np.ascontiguousarray(signs.T)
    for a in range(len(scores) - 1):
        pairs = [RankSwaps(np.concatenate([scores[a], other]), y) for other in scores[a + 1 :]]
        odd = np.stack([pair.linear for pair in pairs]) @ by_unit
        counts[a, a + 1 :] = [pair.as_far(by_unit, moved) for pair, moved in zip(pairs, odd, strict=True)]
    return counts


def _far_by_means(scores: Floats, ratings: Floats, design: Design, signs: Floats, name: Coefficient) -> Floats:
    """Count as :func:`_far_by_units` does, the correlation being over means of systems."""
    y, sizes = system_means(ratings, design), np.bincount(design.systems)
    means = np.stack([np.bincount(design.systems, row) for row in scores]) / sizes
    moved = np.empty((len(scores), len(sizes), len(signs)))
    for system, size in enumerate(sizes):
        inside = np.flatnonzero(design.systems == system)
        moved[:, system] = (scores[:, inside] / size) @ signs[:, inside].T
    values = _of_columns(means.T, y, name)
    counts = np.zeros((len(scores), len(scores)))
    for a, b in combinations(range(len(scores)), 2):
        middle, half = (means[a] + means[b])[:, None] / 2, (moved[a] - moved[b]) / 2
        one, other = np.split(_of_columns(np.concatenate([middle + half, middle - half], axis=1), y, name), 2)
        counts[a, b] = _as_far(np.abs(one - other), abs(values[a] - values[b]))
    return counts


def _of_columns(x: Floats, y: Floats, name: Coefficient) -> Floats:
    """Correlate the columns of (systems, many) with one side that stays, (systems,)."""
    if name == "pearson":
        centred, fixed = x - x.mean(axis=0), y - y.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((fixed @ centred) / np.linalg.norm(fixed) / np.sqrt((centred**2).sum(axis=0)))
    # Sums in another order must not break ties.
    x = np.round(x, 10)
    order = np.argsort(x, axis=0)
    ordered = np.take_along_axis(x, order, axis=0)
    tied = (ordered[1:] == ordered[:-1]).any(axis=0)
    found = np.empty(x.shape[1])
    if tied.any():
        found[tied] = rowwise(x[:, tied].T, np.broadcast_to(y, (int(tied.sum()), len(y))), name)
    order = order[:, ~tied]
    if name == "spearman":
        ranks, fixed = (np.asarray(stats.rankdata(side)) - (len(y) + 1) / 2 for side in (np.arange(len(y)), y))
        found[~tied] = ranks @ fixed[order] / np.linalg.norm(ranks) / np.linalg.norm(fixed)
        return found
    # Numbers of as few bytes as count all systems, which compare fastest.
    places = np.unique(y, return_inverse=True)[1].astype(np.min_scalar_type(len(y)))[order]
    below = np.zeros_like(places)
    for apart in range(1, len(places)):
        below[apart:] += (places[apart:] > places[:-apart]).view(np.uint8)
    pairs, same = len(y) * (len(y) - 1) / 2, np.unique(y, return_counts=True)[1]
    untied = pairs - float((same * (same - 1) / 2).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        found[~tied] = (2 * below.sum(axis=0, dtype=np.int64) - untied) / np.sqrt(untied * pairs)
    return found


# Whole systems swapped


def _enough_swaps(
    pairs: int,
    width: int,
    resamples: int,
    most: int,
    seed: int,
    far: Callable[[Integers, Floats], Sequence[int] | Integers],
) -> Floats:
    """Return (1 + swaps as far out as the data) / (1 + swaps) of pairs of metrics, which share the swaps.

    A pair gets ``resamples`` swaps, and more while fewer than ``ENOUGH`` are as far out, up to ``most``. To stop early only
    at a p that is not small keeps the level (Besag and Clifford 1991): a p below some level is one also of the swaps that
    were drawn when others stopped above it. What a pair gets does not depend on the others.

    ``far`` counts the swaps as far out, of some pairs, given signs of shape (width, swaps).
    """
    counts, swaps = np.zeros(pairs), np.zeros(pairs)
    rng, unsure = np.random.default_rng(seed), np.arange(pairs)
    done, target = 0, resamples
    while len(unsure):
        while done < target:
            size = min(max(1, _AT_ONCE // width), target - done)
            counts[unsure] += far(unsure, np.ascontiguousarray(draw_signs(rng, size, width).T))
            done += size
        swaps[unsure] = done
        unsure = unsure[counts[unsure] < ENOUGH] if target < most else unsure[:0]
        target = max(target, min(4 * target, most))
    return (1 + counts) / (1 + swaps)


def _square(count: int, rows: Integers, values: npt.ArrayLike, own: float) -> Floats:
    """Put values of the pairs of some metrics into a table of all, symmetric, NaN where there is none."""
    found = np.full((count, count), np.nan)
    found[rows, rows] = own
    one, other = rows[np.array(np.triu_indices(len(rows), 1))]
    found[one, other] = found[other, one] = values
    return found


def swap_systems(
    scores: Floats,
    ratings: Floats,
    name: Coefficient,
    resamples: int,
    seed: int,
    most: int = SWAPS,
    *,
    intervals: bool = False,
) -> tuple[Floats, Floats]:
    """Return the two-sided p of each pair of metrics from swaps of whole systems, and the reach of its interval.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, systems) and (systems,): as :func:`comperdial.stats.means.system_means` gives them, nothing
        missing. Each row of scores is standardised first.
    name
        ``spearman`` or ``kendall``.
    resamples, most
        Swaps of each pair, and of a pair with fewer than ``ENOUGH`` of them as far out as the data.
    seed
        All pairs share the swaps; p of a pair does not depend on what other pairs there are.
    intervals
        Whether to keep every swap's difference, which intervals are made of.

    Returns
    -------
    tuple
        Both (metrics, metrics) and symmetric. p is 1 on the diagonal; NaN for a metric that does not vary. The reach is
        half the width of the 95 % interval of the difference: the largest difference among the swaps whose p would not
        be below 0.05, so that p < 0.05 just where the interval leaves out 0. It takes the difference to vary as much
        where it is not 0 as where it is. NaN where no difference would be significant, as with five systems, or not
        asked for.
    """
    usable, width = _varying(scores, ratings), len(ratings)
    # Standardised values lie about 0, and were rounded at 1.
    pooled = [merge_ties(np.concatenate(pair), 1.0) for pair in combinations(_standardised(scores[usable]), 2)]
    pairs: list[_Swapped]
    if name == "spearman":
        ranks = np.asarray(stats.rankdata(ratings) - (width + 1) / 2)
        pairs = [RankSwaps(values, ranks) for values in pooled]
    else:
        above = np.sign(ratings[:, None] - ratings)
        pairs = [_Pairs(values, above) for values in pooled]
    linear = np.array([pair.linear for pair in pairs]).reshape(len(pairs), width)
    kept: list[list[Floats]] = [[] for _ in pairs]

    def far(some: Integers, signs: Floats) -> list[int]:
        odd = linear[some] @ signs
        if intervals:
            for pair, moved in zip(some, odd, strict=True):
                kept[pair].append(pairs[pair].differences(signs, moved))
        return [pairs[pair].as_far(signs, moved) for pair, moved in zip(some, odd, strict=True)]

    p = _enough_swaps(len(pairs), width, resamples, most, seed, far)
    reach = [_reach(np.concatenate(drawn)) if intervals else np.nan for drawn in kept]
    return _square(len(scores), usable, p, 1.0), _square(len(scores), usable, reach, np.nan)


def _reach(drawn: Floats) -> float:
    """Return the largest of the differences drawn that is not significant; NaN where none would be."""
    # A swap that gives no difference counts as extreme, as it does in p.
    ordered = np.sort(np.where(np.isnan(drawn), np.inf, drawn))
    as_far = len(ordered) - np.searchsorted(ordered, ordered - CLOSE)
    p = (1 + as_far) / (1 + len(ordered))
    usual = ordered[p >= ALPHA]
    some = np.isfinite(ordered[p < ALPHA]).any() and len(usual)
    # What differs from it by rounding only is no more significant.
    return float(usual[-1]) + CLOSE if some else float("nan")


class _Swapped:
    """Two metrics whose scores are swapped.

    Parameters
    ----------
    codes
        Shape (2 n,): the scores of both, one metric's after the other's, by their place among the distinct ones.
    whole, spread
        The spread of n values without ties, and that of the side that stays.

    Attributes
    ----------
    linear
        Shape (n,): signs times these are the linear terms of the first metric's numerator.
    """

    linear: Floats

    def __init__(self, codes: Integers, whole: float, spread: float) -> None:
        n = len(codes) // 2
        self._whole, self._spread = whole, spread
        sizes = np.bincount(codes)
        tied = sizes > 1
        inside = tied[codes]
        halves = np.repeat([0.5, -0.5], n)[inside]
        where = ((np.cumsum(tied) - 1)[codes[inside]], np.tile(np.arange(n), 2)[inside])
        self._middle = sizes[tied, None] / 2
        self._moves = sparse.csr_array((halves, where), shape=(int(tied.sum()), n))
        # How much each group's loss can change with the signs; those that change most come first, others are bounded.
        most = np.asarray(abs(self._moves).sum(axis=1)).reshape(-1, 1)
        least, largest = (self._losses(self._middle + s * most) for s in (-1, 1))
        reach = (largest - least)[:, 0]
        order = np.argsort(-reach, kind="stable")
        small = np.cumsum(reach[order][::-1])[::-1] <= _BOUNDED * whole
        self._large, rest = np.sort(order[~small]), order[small]
        self._rest = float(least[rest].sum()), float(largest[rest].sum())

    def _lost(self, tied: Floats) -> Floats:
        """Return what groups of so many tied values, (groups, swaps), take from the spread: shape (swaps,)."""
        return np.asarray(self._losses(tied).sum(axis=0))

    def _losses(self, tied: Floats) -> Floats:
        """Return what each of these groups takes: more, the more values are tied."""
        raise NotImplementedError

    def _even(self, signs: Floats, odd: Floats) -> Floats:
        """Return the constant and the quadratic terms of the numerator."""
        raise NotImplementedError

    def differences(self, signs: Floats, odd: Floats, about: float | None = None) -> Floats:
        """Return how far from 0 the difference is after each swap.

        Parameters
        ----------
        signs, odd
            Shape (n, swaps), and their linear terms (swaps,).
        about
            With it, quadratic terms, which are dear, are left out where they cannot decide whether the difference is
            above this: a coefficient is at most 1, which bounds what they add.
        """
        moved = self._moves @ signs
        one, other = (np.sqrt(self._spread * (self._whole - self._lost(self._middle + s * moved))) for s in (1, -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = np.abs(odd / one + odd / other)
            slack = (one + other) * np.abs(one - other) / (2 * one * other)
            unsure = slack > 0
            if about is not None:
                unsure &= np.abs(drawn - about) <= slack + CLOSE
            if unsure.any():
                one, other, odd = one[unsure], other[unsure], odd[unsure]
                even = self._even(signs[:, unsure], odd)
                drawn[unsure] = np.abs((even + odd) / one - (even - odd) / other)
        return np.asarray(drawn)

    def as_far(self, signs: Floats, odd: Floats) -> int:
        """Count the swaps whose difference is as far from 0 as the data's: most are sure without the small groups of ties."""
        far, unsure = self._surely(signs, odd, self._observed)
        if unsure.all():
            return int(_as_far(self.differences(signs, odd, self._observed), self._observed))
        if unsure.any():
            drawn = self.differences(signs[:, unsure], odd[unsure], self._observed)
            far += int(_as_far(drawn, self._observed))
        return far

    def _surely(self, signs: Floats, odd: Floats, about: float) -> tuple[int, Flags]:
        """Count the swaps whose difference is above this whatever small groups lose, and say which may lie on either side."""
        middle, least, largest = self._middle[self._large], *self._rest
        moved = self._moves[self._large] @ signs if len(middle) else np.zeros((0, 1))
        one, other = (self._whole - self._lost(middle + s * moved) for s in (1, -1))
        lowest = float(min(one.min(), other.min())) - largest
        if lowest <= 0:
            return 0, np.ones(len(odd), dtype=np.bool_)
        size = np.abs(odd) / np.sqrt(self._spread)
        near = size * (1 / np.sqrt(one - least) + 1 / np.sqrt(other - least))
        # The quadratic terms are at most the mean of the two numerators, of which the rest may make two different ones.
        slack = (np.abs(one - other) + largest - least) / (2 * lowest) + _CAUTION
        wide = np.sqrt((lowest + largest - least) / lowest)
        above = near - slack > about
        return int(above.sum()), np.asarray(~above & ~(near * wide + slack < about))

    @cached_property
    def _observed(self) -> float:
        return float(self.differences(np.ones((len(self.linear), 1)), self.linear.sum(keepdims=True))[0])


class RankSwaps(_Swapped):
    """Spearman's coefficients. ``y``: the other side's ranks less their mean."""

    def __init__(self, pooled: Floats, y: Floats) -> None:
        n = len(y)
        codes = np.unique(pooled, return_inverse=True)[1]
        super().__init__(codes, (n**3 - n) / 12, float(y @ y))
        twice = np.tile(y, 2)
        order = np.argsort(codes, kind="stable")
        self._unit, self._first = order % n, order[:, None] < n
        self._starts, self._y = np.flatnonzero(np.diff(codes[order], prepend=-1)), twice[order, None]
        sizes, total = np.bincount(codes), np.bincount(codes, twice)
        # What a score adds to the sum of products of ranks: itself, and one rank of each that lies above.
        adds = twice * (np.cumsum(sizes) - sizes / 2)[codes] + (np.cumsum(total[::-1])[::-1] - total / 2)[codes]
        self.linear = (adds[:n] - adds[n:]) / 4

    def _losses(self, tied: Floats) -> Floats:
        # Not tied**3, which takes three times as long.
        return tied * (tied * tied - 1) / 12

    def _even(self, signs: Floats, odd: Floats) -> Floats:
        found = np.empty(len(odd))
        step = max(1, _RANKED // len(self._unit))
        for start in range(0, len(odd), step):
            part = slice(start, start + step)
            has = (signs[self._unit, part] > 0) == self._first
            number = np.add.reduceat(has, self._starts, axis=0, dtype=np.float64)
            sums = np.add.reduceat(np.where(has, self._y, 0.0), self._starts, axis=0)
            found[part] = np.einsum("gr,gr->r", np.cumsum(number, axis=0) - number / 2, sums)
        return found - odd


class _Pairs(_Swapped):
    """Kendall's coefficients. ``y``: signs of the differences of the other side, all pairs of units."""

    def __init__(self, pooled: Floats, y: Floats) -> None:
        n = len(y)
        codes = np.unique(pooled, return_inverse=True)[1]
        super().__init__(codes, n * (n - 1) / 2, float(np.sum(y**2) / 2))
        self._y, self._codes = y, codes.reshape(2, n)
        of_a, across, back, of_b = self._above()
        self.linear = (y * (of_a - of_b + across - back)).sum(axis=1) / 4

    def _above(self) -> list[Integers]:
        """Return the signs of (a - a', a - b', b - a', b - b') of all pairs of units."""
        return [np.sign(one[:, None] - other) for one in self._codes for other in self._codes]

    def _losses(self, tied: Floats) -> Floats:
        return tied * (tied - 1) / 2

    def _even(self, signs: Floats, odd: Floats) -> Floats:
        # Not kept: of a thousand systems it takes 8 MB a pair.
        of_a, across, back, of_b = self._above()
        constant = float((self._y * (of_a + of_b + across + back)).sum()) / 8
        quadratic = self._y * (of_a + of_b - across - back) / 8
        return np.asarray(constant + np.einsum("sr,sr->r", quadratic @ signs, signs))


# Statistics of pairs


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
) -> tuple[Floats, int]:
    """Return the two-sided p of each pair of metrics from swaps of whole systems, and the most swaps that a pair may get.

    What a statistic of pairs of systems is after a swap follows from what it is of each pair.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing. Scores are standardised: means of systems, but for ``spa`` units.
    design, items
        As :func:`comperdial.stats.pairs.replicates` takes them.
    measure
        ``accuracy``, ``tau_23``, ``tau_c``, ``acc_eq`` (its threshold calibrated anew after each swap) or ``spa``.
    resamples, most
        As in :func:`swap_systems`; where a swap takes long the most are fewer.

    Returns
    -------
    tuple
        Shape (metrics, metrics), symmetric, 1 on the diagonal, NaN where there is nothing to compare or a metric does not
        vary; and the most swaps.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    means, rated = paired_means(table, human, design)
    systems, usable = design.counts[0], np.flatnonzero(np.ptp(means, axis=1) > 0)
    y = rated[0]
    if measure == "acc_eq" and np.unique(y).size == systems:
        # Where no two ratings are tied, no threshold above 0 can help.
        measure = "accuracy"
    pairs = list(combinations(range(len(usable)), 2))
    sides = _standardised(means[usable])
    if measure not in ("accuracy", "tau_23", "spa"):
        most = int(np.clip(_WORK // (systems * systems), resamples, most))
    if systems < FEWEST_SAMPLED or not resamples:
        return _square(len(table), usable, np.nan, 1.0), most
    if measure in ("accuracy", "tau_23", "spa"):
        shares = (
            _softly(_standardised(table[usable]), human, design, items, resamples, seed)
            if measure == "spa"
            else lambda a, b: np.array([[_in_order(sides[one], sides[other], y) for other in (a, b)] for one in (a, b)])
        )
        linear = np.array([_linear(shares(a, b)) for a, b in pairs]).reshape(len(pairs), systems)
        observed = np.abs(linear.sum(axis=1, keepdims=True))

        def far(some: Integers, signs: Floats) -> Integers:
            return np.array([_as_far(np.abs(linear[pair] @ signs), observed[pair]) for pair in some])

    else:
        of = _calibrated if measure == "acc_eq" else _stuart_of

        def differences(pair: int, signs: Floats) -> Floats:
            found = []
            for part in blocks(len(signs), systems * systems):
                first, second = sides[list(pairs[pair])]
                one, other = (np.where(signs[part] > 0, a, b) for a, b in ((first, second), (second, first)))
                found.append(np.abs(of(one, y) - of(other, y)))
            return np.concatenate(found)

        def far(some: Integers, signs: Floats) -> Integers:
            once = np.ones((1, systems))
            return np.array([_as_far(differences(pair, signs.T), differences(pair, once)) for pair in some])

    return _square(len(table), usable, _enough_swaps(len(pairs), systems, resamples, most, seed, far), 1.0), most


def _linear(of_pairs: Floats) -> Floats:
    """Return what the sign of each system adds to the difference of two metrics' means over pairs of systems.

    ``of_pairs``, shape (2, 2, systems, systems), is what a pair adds where the one system has the score of the first or
    second metric (first axis) and the other that of the first or second (second axis).
    """
    count = of_pairs.shape[-1]
    i, j = np.triu_indices(count, 1)
    own = of_pairs[0, 0, i, j] - of_pairs[1, 1, i, j]
    across = of_pairs[0, 1, i, j] - of_pairs[1, 0, i, j]
    summed = np.bincount(i, (own + across) / 2, count) + np.bincount(j, (own - across) / 2, count)
    return np.asarray(summed / len(i))


def _in_order(one: Floats, other: Floats, y: Floats) -> Floats:
    """Return whether each pair is in the right order, one system scored by the one metric and the other by the other."""
    return np.asarray(np.sign(_apart(one, other)) == np.sign(_apart(y, y)), dtype=np.float64)


def _apart(one: Floats, other: Floats) -> Floats:
    found = one[:, np.newaxis] - other
    return np.where(np.abs(found) <= TIED * np.maximum(np.abs(one)[:, np.newaxis], np.abs(other)), 0.0, found)


def _softly(
    table: Floats, human: Floats, design: Design, items: Integers, resamples: int, seed: int
) -> Callable[[int, int], Floats]:
    """Return what gives of two metrics how near the p of each pair by their scores is to that by ratings."""
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    *sides, rated = (system_matrix(row, design.systems, items) for row in (*table, human))
    known = p_better(rated, rated, signs)

    def of_pair(a: int, b: int) -> Floats:
        p = np.array([[p_better(sides[one], sides[other], signs) for other in (a, b)] for one in (a, b)])
        return np.nan_to_num(1 - np.abs(p - known))

    return of_pair


def _pairs_apart(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return differences of the pairs of each row, (rows, pairs), the signs of ratings', and what is rounding in a row."""
    i, j = np.triu_indices(len(y), 1)
    apart, slack = x[:, i] - x[:, j], TIED * np.abs(x).max(axis=1, keepdims=True)
    return np.where(np.abs(apart) <= slack, 0.0, apart), np.sign(y[i] - y[j]), slack


def _stuart_of(x: Floats, y: Floats) -> Floats:
    """Return tau_c of each row of scores (rows, n) with ratings (n,)."""
    apart, rated, _ = _pairs_apart(x, y)
    return stuart(2 * (np.sign(apart) @ rated), len(y), np.minimum(distinct(x), len(np.unique(y))))


def _calibrated(x: Floats, y: Floats) -> Floats:
    """Return acc_eq of each row of scores (rows, n) with ratings (n,), its threshold calibrated for the row."""
    apart, rated, slack = _pairs_apart(x, y)
    alike = np.sign(apart) == rated
    gaps, right = np.abs(apart), alike.sum(axis=1)
    order = np.argsort(gaps, axis=1)
    gaps = np.take_along_axis(gaps, order, axis=1)
    gain = np.take_along_axis((rated == 0).astype(np.int8) - alike.astype(np.int8), order, axis=1)
    gained = np.cumsum(gain, axis=1, dtype=np.int32)
    # Pairs of the same difference become tied together.
    last = np.ones(gaps.shape, dtype=np.bool_)
    last[:, :-1] = np.diff(gaps, axis=1) > slack
    best = np.maximum(np.where(last, gained, 0).max(axis=1), 0)
    return np.asarray((right + best) / len(rated))


def swap_pairs(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    grouping: Grouping,
    found: Replicates,
    *,
    resamples: int,
    seed: int,
) -> Floats:
    """Return the two-sided p of each pair of metrics when what they say of pairs of units is swapped at random.

    Parameters
    ----------
    scores, ratings, design, items, grouping
        As :func:`comperdial.stats.pairs.replicates` takes them, nothing missing.
    found
        What that returned for ``acc_eq``: the values, and the thresholds, which each metric keeps.
    resamples, seed
        Swaps, and their seed; what a pair gets does not depend on the others.
    """
    groups = Groups.of(design, items, grouping)
    x, y = (groups.laid_out(merge_ties(np.asarray(side, dtype=np.float64))) for side in (scores, ratings))
    epsilon = np.zeros(len(x)) if found.epsilon is None else np.nan_to_num(found.epsilon)
    right = [_alike(side, y, float(slack)) for side, slack in zip(x, epsilon, strict=True)]
    p = []
    for a, b in combinations(range(len(x)), 2):
        drawn = _swapped_pairs(right[a], right[b], x[a], y, resamples, np.random.default_rng([seed, a, b]))
        p.append((1 + _as_far(drawn, abs(found.values[a] - found.values[b]))) / (1 + resamples))
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
        n = len(human)
        pair = RankSwaps(np.concatenate([*_standardised(sides)]), np.asarray(stats.rankdata(human) - (n + 1) / 2))
        drawn = []
        for count in _sizes(resamples, n):
            signs = np.ascontiguousarray(draw_signs(rng, count, n).T)
            drawn.append(pair.differences(signs, pair.linear @ signs))
        return np.concatenate(drawn)
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
