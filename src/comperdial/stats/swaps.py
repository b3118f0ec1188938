"""Permutation tests of the difference of two metrics by random swaps of their scores.

Swapping whole systems treats systems as a sample; these are the tests for ranks of systems. PERM-BOTH (Deutsch, Dror and Roth
2021), as in the WMT metrics tasks, swaps single units, which assumes that they are independent. Metrics that favour whole
systems or dialogues violate this, and the test then rejects too often (docs/validation.md); it is included for the WMT-style
ranks of :mod:`comperdial.evaluation.overall`.

After a swap each system has the first metric's mean or the second's. A statistic that is a sum over pairs of systems, like the
numerators of Spearman's and Kendall's coefficients, is then a constant plus linear and quadratic terms in the signs of the
swap. Flipping all signs gives the other metric, so only the linear terms remain in the difference of the two: all swaps of all
pairs of metrics are one matrix product. The denominators are kept: swapping changes them only if scores are tied.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats import COEFFICIENTS, Coefficient, Measure
from comperdial.stats.coefficients import over_clusters
from comperdial.stats.design import FEWEST_SAMPLED, Design, Floats, Integers, codes_of
from comperdial.stats.jackknife import CLOSE
from comperdial.stats.means import merge_ties, paired_means
from comperdial.stats.pairs import Grouping, Pairs, best_epsilon, p_better, pair_signs, sign_flips, system_matrix

# Maximum swaps per pair: enough for a correction over a thousand pairs.
SWAPS = 100_000
# Stop after this many swaps as extreme as the data.
ENOUGH = 50
# Signs held in memory: 32 MB, and 4 MB where each takes more work.
_AT_ONCE, _STEP = 2**22, 2**19


def draw_signs(rng: np.random.Generator, count: int, width: int) -> Floats:
    """Return random signs, shape (count, width), eight from each byte."""
    octets = rng.integers(0, 256, size=(count, (width + 7) // 8), dtype=np.uint8)
    return np.asarray(2.0 * np.unpackbits(octets, axis=1, count=width) - 1.0, dtype=np.float64)


def _standardised(sides: Floats) -> Floats:
    """Return standardized scores of some metrics; NaN if missing."""
    spread = np.nanstd(sides, axis=1, keepdims=True)
    return np.asarray((sides - np.nanmean(sides, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0))


# Whole systems swapped


def swap_systems(
    scores: Floats, ratings: Floats, measure: Measure, resamples: int, seed: int, most: int = SWAPS
) -> Floats:
    """Return the two-sided p of each pair of metrics from swaps of whole systems.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, systems) and (systems,): means from :func:`comperdial.stats.means.system_means`, none missing. Each row
        of scores is standardized first.
    measure
        ``spearman``, ``kendall``, ``accuracy``, ``tau_23``, ``tau_c`` or ``acc_eq`` (with one threshold for both metrics).
    resamples, most
        Swaps of each pair, and of a pair for which fewer than ``ENOUGH`` of them are as extreme as the data. Stopping early
        only at a large p keeps the level (Besag and Clifford 1991). All pairs share the swaps; p of a pair does not depend on
        the other pairs.

    Returns
    -------
    array
        (1 + swaps as extreme as the data) / (1 + swaps): shape (metrics, metrics), symmetric, 1 on the diagonal; NaN for a
        constant metric.
    """
    usable = np.flatnonzero((np.ptp(scores, axis=1) > 0) & (np.ptp(ratings) > 0))
    pairs = combinations(_standardised(scores[usable]), 2)
    return _square(len(scores), usable, [_of_means(a, b, ratings, measure) for a, b in pairs], resamples, seed, most)


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
    """Apply :func:`swap_systems` to units without missing values; also supports ``spa``, which needs units.

    ``design`` and ``items`` are as in :func:`comperdial.stats.pairs.replicates`. p is NaN with fewer than ``FEWEST_SAMPLED``
    systems.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    means, rated = paired_means(table, human, design)
    systems, usable = design.counts[0], np.flatnonzero(np.ptp(means, axis=1) > 0)
    if systems < FEWEST_SAMPLED or not resamples:
        return np.where(np.eye(len(table), dtype=bool) & (np.ptp(means, axis=1) > 0), 1.0, np.nan)
    if measure != "spa":
        return swap_systems(means, rated[0], measure, resamples, seed, most)
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    *sides, of_ratings = (system_matrix(row, design.systems, items) for row in (*_standardised(table[usable]), human))
    known = p_better(of_ratings, of_ratings, signs)
    linear = []
    for pair in combinations(sides, 2):
        p = np.array([[p_better(one, other, signs) for other in pair] for one in pair])
        linear.append(_linear(np.nan_to_num(1 - np.abs(p - known))) / (systems * (systems - 1) / 2))
    return _square(len(table), usable, linear, resamples, seed, most)


def _of_means(a: Floats, b: Floats, y: Floats, measure: Measure) -> Floats:
    """Return the linear terms of a statistic of two metrics' standardized system means, (systems,) each."""
    n = len(y)
    # Standardized values are centred at 0, and were rounded at 1.
    both, epsilon = merge_ties(np.concatenate([a, b]), 1.0), 0.0
    if measure == "acc_eq":
        # One threshold for both metrics, from all their scores, so that swaps do not change it.
        epsilon = best_epsilon(both, np.tile(y, 2), Pairs.of(np.zeros(2 * n, dtype=np.intp)))
    above, rated = pair_signs(both, epsilon).reshape(2, n, 2, n).swapaxes(1, 2), pair_signs(y)
    if measure == "spearman":
        rank = scipy.stats.rankdata(y)
        return _linear(above * (rank[:, np.newaxis] - rank) / np.sqrt(rank.var() * n * (n**3 - n) / 3))
    if measure in ("kendall", "tau_c"):
        return _linear(above * rated / np.sqrt(np.abs(rated).sum() / 2 * n * (n - 1) / 2))
    return _linear((above == rated) / (n * (n - 1) / 2))


def _linear(pairs: Floats) -> Floats:
    """Return each system's linear term in the difference of two metrics' sums over pairs of systems.

    ``pairs``, shape (2, 2, systems, systems), is a pair's contribution if one system has the score of the first or second
    metric (first axis) and the other that of the first or second (second axis).
    """
    count = pairs.shape[-1]
    i, j = np.triu_indices(count, 1)
    own = pairs[0, 0, i, j] - pairs[1, 1, i, j]
    across = pairs[0, 1, i, j] - pairs[1, 0, i, j]
    summed = np.bincount(i, (own + across) / 2, count) + np.bincount(j, (own - across) / 2, count)
    return np.asarray(summed, dtype=np.float64)


def _square(count: int, usable: Integers, linear: list[Floats], resamples: int, seed: int, most: int) -> Floats:
    """Return the p of pairs of the usable metrics as a table of all metrics."""
    result = np.full((count, count), np.nan)
    result[usable, usable] = 1.0
    if linear:
        one, other = usable[np.array(np.triu_indices(len(usable), 1))]
        result[one, other] = result[other, one] = _swap_p(np.array(linear), resamples, seed, most)
    return result


def _swap_p(linear: Floats, resamples: int, seed: int, most: int) -> Floats:
    """Return the p of pairs of metrics from their linear terms: shape (pairs, systems)."""
    observed, width = np.abs(linear.sum(axis=1)), linear.shape[1]
    counts, swaps = np.zeros(len(linear)), np.zeros(len(linear))
    rng, unsure, done, target = np.random.default_rng(seed), np.arange(len(linear)), 0, resamples
    while len(unsure):
        while done < target:
            size = min(max(1, _AT_ONCE // width), target - done)
            drawn = np.abs(linear[unsure] @ draw_signs(rng, size, width).T)
            counts[unsure] += (drawn >= observed[unsure, np.newaxis] - CLOSE).sum(axis=1)
            done += size
        swaps[unsure] = done
        unsure = unsure[counts[unsure] < ENOUGH] if target < most else unsure[:0]
        target = max(target, min(4 * target, most))
    return (1 + counts) / (1 + swaps)


# PERM-BOTH


def swapped_differences(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    measure: Measure,
    grouping: Grouping | None,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the absolute differences of two metrics, scores (2, n), after the random swaps of PERM-BOTH: shape (resamples,).

    Arguments as in :func:`comperdial.stats.pairs.replicates`, without missing values; the grouping ``None`` is over all units.
    Standardized scores are swapped unit by unit, system means as means; for ``acc_eq`` the verdicts on pairs, each with the
    metric's own threshold. NaN for statistics without such a test here: coefficients within groups, accuracy within groups,
    tau_23, tau_c, pairwise_pearson and spa.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if grouping == "pooled":
        sides, rated = paired_means(table, human, design)
        human, groups = rated[0], np.zeros(design.counts[0], dtype=np.intp)
    else:
        sides, human, groups = merge_ties(table), merge_ties(human), items if grouping == "item" else design.systems
    if measure == "acc_eq" and grouping:
        return _swapped_verdicts(sides, human, Pairs.of(codes_of(groups)), resamples, rng)
    sides = _standardised(sides)
    if measure == "accuracy" and grouping == "pooled":
        first = rng.integers(0, 2, size=(resamples, len(human)), dtype=np.int8) == 1
        one, other = (_accuracies(np.where(first, a, b), human) for a, b in (sides, sides[::-1]))
        return np.abs(one - other)
    if measure in COEFFICIENTS and grouping in (None, "pooled"):
        return _swapped_coefficients(sides, human, measure, resamples, rng)
    return np.full(resamples, np.nan)


def _swapped_verdicts(x: Floats, y: Floats, pairs: Pairs, resamples: int, rng: np.random.Generator) -> Floats:
    """Swap the verdicts on each pair: the difference is a sum of signs over the pairs on which the metrics disagree."""
    one, other = (pairs.signs(side, best_epsilon(side, y, pairs)) == pairs.signs(y) for side in x)
    sizes, drawn = np.bincount(pairs.group), np.zeros(resamples)
    for size in np.unique(sizes[sizes > 0]):
        number = int(((one != other) & (sizes[pairs.group] == size)).sum())
        drawn += (2.0 * rng.binomial(number, 0.5, size=resamples) - number) / size
    return np.abs(drawn) / max(1, int((sizes > 0).sum()))


def _accuracies(x: Floats, y: Floats) -> Floats:
    """Return the pairwise accuracy of each row."""
    i, j = np.triu_indices(len(y), 1)
    return np.asarray((np.sign(x[:, i] - x[:, j]) == np.sign(y[i] - y[j])).mean(axis=1))


def _swapped_coefficients(x: Floats, y: Floats, name: Coefficient, resamples: int, rng: np.random.Generator) -> Floats:
    """Include each unit twice, with the score of either metric, and draw one of the two."""
    differences, step = [], max(1, _STEP // len(y))
    for start in range(0, resamples, step):
        first = draw_signs(rng, min(step, resamples - start), len(y)) > 0
        weights = np.hstack([first, ~first]).astype(np.float64)
        one, other = (
            over_clusters(x.reshape(1, -1), np.tile(y, 2), np.arange(x.size), drawn, [name])[:, 0, 0]
            for drawn in (weights, 1 - weights)
        )
        differences.append(np.abs(one - other))
    return np.concatenate(differences)
