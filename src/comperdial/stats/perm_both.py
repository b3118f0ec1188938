"""PERM-BOTH as the WMT metrics tasks use it: what the difference of two metrics is when their scores are swapped at random.

Each unit is swapped by itself (Deutsch, Dror and Roth 2021), so that units count as independent. Metrics that favour whole
systems or dialogues break that, and the test then rejects too often (docs/validation.md). It answers WMT's question, "is the
difference chance, given these systems and dialogues and no others?", and is given beside the test that answers ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import Measure
from comperdial.stats.comparison import CLOSE, ENOUGH, FEWEST, SWAPS, RankSwaps, draw_signs
from comperdial.stats.correlation import rowwise
from comperdial.stats.design import Design
from comperdial.stats.grouped import Grouping, Groups, Replicates, best_epsilon, of_rows, same_of_pairs, stuart
from comperdial.stats.means import TIED, merge_ties, paired_means
from comperdial.stats.pairwise import sign_flips, soft_accuracy, system_matrix, system_p_values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# Pairs of units held at a time.
_AT_ONCE = 2**19
# Pairs of systems looked at for one pair of metrics, where each swap looks at them all.
_WORK = 2**24
# With so few pairs that people tie, thresholds are tried one by one.
_FEW_TIED = 24


def one_sided(observed: float, drawn: Floats) -> float:
    """Return the p of "the first metric is better", as WMT has it: the share of swaps as far out, nothing added.

    Swapping everything turns the sign of a difference, so what is as far out on either side counts half.
    """
    return float(np.mean(~(np.abs(drawn) < abs(observed) - CLOSE)) / 2)


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
    """Return the absolute differences of two metrics after random swaps: shape (resamples,).

    Parameters
    ----------
    first, second, ratings
        Shape (n,), none missing.
    design, items
        As :func:`comperdial.stats.grouped.replicates` takes them.
    measure, grouping
        Likewise; ``None`` is over all units (Pearson and Spearman). Standardised scores are swapped unit by unit; ``acc_eq``
        swaps what each metric, with its own threshold, says of a pair; means of systems are swapped as means, but for
        ``spa``, which needs the units.
    """
    sides = np.stack([np.asarray(side, dtype=np.float64) for side in (first, second)])
    human = np.asarray(ratings, dtype=np.float64)
    if measure == "spa":
        return _soft(_standardised(sides), human, design, items, resamples, rng)
    if grouping is None:
        return _of_units(_standardised(sides), human, measure, resamples, rng)
    groups = Groups.of(design, items, grouping)
    if grouping == "pooled":
        means, rated = paired_means(sides, human, design)
        x, y = means[:, np.newaxis], rated[:1]
    else:
        x, y = groups.laid_out(merge_ties(sides)), groups.laid_out(merge_ties(human))
    if measure == "acc_eq":
        return _of_pairs(x, y, resamples, rng)
    return _of_groups(_standardised(x), y, measure, resamples, rng)


def _standardised(sides: Floats) -> Floats:
    axes = tuple(range(1, sides.ndim))
    spread = np.nanstd(sides, axis=axes, keepdims=True)
    return np.asarray((sides - np.nanmean(sides, axis=axes, keepdims=True)) / np.where(spread > 0, spread, 1.0))


def _blocks(resamples: int, size: int) -> Iterator[int]:
    step = max(1, _AT_ONCE // max(1, size))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


def _of_units(sides: Floats, human: Floats, measure: Measure, resamples: int, rng: np.random.Generator) -> Floats:
    n = len(human)
    if measure == "spearman":
        pair = RankSwaps(np.concatenate([*sides]), np.asarray(stats.rankdata(human) - (n + 1) / 2))
        drawn = []
        for count in _blocks(resamples, n):
            signs = np.ascontiguousarray(draw_signs(rng, count, n).T)
            drawn.append(pair.differences(signs, pair.linear @ signs))
        return np.concatenate(drawn)
    if measure != "pearson":
        raise ValueError(f"{measure} over all units is not swapped: expected pearson or spearman")
    drawn = []
    for count in _blocks(resamples, n):
        which = rng.integers(0, 2, size=(count, n), dtype=np.int8) == 1
        y = np.broadcast_to(human, which.shape)
        one, other = (rowwise(np.where(which, a, b), y, "pearson") for a, b in (sides, sides[::-1]))
        drawn.append(np.abs(one - other))
    return np.concatenate(drawn)


def _of_groups(x: Floats, y: Floats, measure: Measure, resamples: int, rng: np.random.Generator) -> Floats:
    count, places = y.shape
    drawn = []
    for size in _blocks(resamples, count * places * places):
        which = rng.integers(0, 2, size=(size, count, places), dtype=np.int8) == 1
        rated = np.broadcast_to(y, which.shape)
        one, other = (of_rows(np.where(which, a, b), rated, measure) for a, b in (x, x[::-1]))
        drawn.append(np.abs(one - other))
    return np.concatenate(drawn)


def _of_pairs(x: Floats, y: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    return _drawn([_right(side, y, best_epsilon(side, y)) for side in x], _pairs_in(x[0], y), resamples, rng)


def _right(x: Floats, y: Floats, epsilon: float) -> npt.NDArray[np.bool_]:
    """Return whether a metric sees each pair as people do, (groups, places, places), each pair once."""
    return np.triu(same_of_pairs(x, y, epsilon), 1)


def _pairs_in(x: Floats, y: Floats) -> Floats:
    there = (np.isfinite(x) & np.isfinite(y)).sum(axis=1)
    return np.asarray(there * (there - 1) / 2)


def _drawn(right: Sequence[npt.NDArray[np.bool_]], pairs: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Swap what is said of each pair: a sum of signs, of which only the number of pairs that the two see otherwise matters."""
    otherwise = (right[0] != right[1]).sum(axis=(1, 2))
    drawn = np.zeros(resamples)
    for size in np.unique(pairs[pairs > 0]):
        number = int(otherwise[pairs == size].sum())
        drawn += (2.0 * rng.binomial(number, 0.5, size=resamples) - number) / size
    return np.abs(drawn) / max(1, int((pairs > 0).sum()))


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
        As :func:`comperdial.stats.grouped.replicates` takes them, nothing missing.
    found
        What that returned for ``acc_eq``: the values, and the thresholds, which each metric keeps.
    resamples, seed
        Swaps, and their seed; what a pair gets does not depend on the others.
    """
    groups = Groups.of(design, items, grouping)
    x, y = (groups.laid_out(merge_ties(np.asarray(side, dtype=np.float64))) for side in (scores, ratings))
    epsilon = np.nan_to_num(found.epsilon if found.epsilon is not None else np.zeros(len(x)))
    right = [_right(side, y, float(allowed)) for side, allowed in zip(x, epsilon, strict=True)]
    p = np.full((len(x), len(x)), np.nan)
    for a, b in combinations(range(len(x)), 2):
        drawn = _drawn([right[a], right[b]], _pairs_in(x[a], y), resamples, np.random.default_rng([seed, a, b]))
        far = int(np.sum(drawn >= abs(found.values[a] - found.values[b]) - CLOSE))
        p[a, b] = p[b, a] = (1 + far) / (1 + resamples)
    return p


def _soft(
    sides: Floats, human: Floats, design: Design, items: Integers, resamples: int, rng: np.random.Generator
) -> Floats:
    signs = sign_flips(int(items.max()) + 1, resamples, int(rng.integers(2**31)))
    first, second = (system_matrix(side, design.systems, items) for side in sides)
    known = system_p_values(system_matrix(human, design.systems, items), signs)
    drawn = np.empty(resamples)
    for at in range(resamples):
        which = rng.integers(0, 2, size=first.shape, dtype=np.int8) == 1
        one, other = (
            soft_accuracy(known, system_p_values(np.where(which, a, b), signs))
            for a, b in ((first, second), (second, first))
        )
        drawn[at] = abs(one - other)
    return drawn


# Whole systems swapped: what a statistic of pairs of systems is after a swap follows from what it is of each pair.


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

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing. Scores are standardised: means of systems, but for ``spa`` units.
    design, items
        As :func:`comperdial.stats.grouped.replicates` takes them.
    measure
        ``accuracy``, ``tau_23``, ``tau_c``, ``acc_eq`` (its threshold calibrated anew after each swap) or ``spa``.
    resamples, most
        As in :func:`comperdial.stats.comparison.swap_systems`, with the same rule of when to go on; where a swap takes long
        the most are fewer.

    Returns
    -------
    tuple
        Shape (metrics, metrics), symmetric, 1 on the diagonal, NaN where there is nothing to compare or a metric does not
        vary; and the most swaps.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    p = np.full((len(table), len(table)), np.nan)
    means, rated = paired_means(table, human, design)
    systems = design.counts[0]
    if measure == "acc_eq" and np.unique(rated[0]).size == systems:
        # Where no two ratings are tied, no threshold above 0 can help.
        measure = "accuracy"
    linear = measure in ("accuracy", "tau_23", "spa")
    if not linear:
        most = int(np.clip(_WORK // (systems * systems), resamples, most))
    usable = np.flatnonzero(np.ptp(means, axis=1) > 0)
    p[usable, usable] = 1
    if systems < FEWEST or not resamples:
        return p, most
    for place, a in enumerate(usable):
        for b in usable[place + 1 :]:
            if measure == "spa":
                weights = _linear(_softly(_standardised(table[[a, b]]), human, design, items, resamples, seed))
            elif linear:
                weights = _linear(_in_order(_standardised(means[[a, b]]), rated[0]))
            else:
                weights = None
            p[a, b] = p[b, a] = _counted(
                weights, _standardised(means[[a, b]]), rated[0], measure, resamples, most, seed
            )
    return p, most


def _counted(
    weights: Floats | None, sides: Floats, rated: Floats, measure: Measure, resamples: int, most: int, seed: int
) -> float:
    rng = np.random.default_rng(seed)
    width = sides.shape[1]
    observed = float(_after(weights, sides, rated, measure, np.ones((1, width)))[0])
    done, far, target = 0, 0, resamples
    while True:
        while done < target:
            size = min(target - done, max(1, _AT_ONCE // (width if weights is not None else width * width)))
            drawn = _after(weights, sides, rated, measure, draw_signs(rng, size, width))
            far += int(np.sum(~(drawn < observed - CLOSE)))
            done += size
        if far >= ENOUGH or target >= most:
            return (1 + far) / (1 + done)
        target = min(4 * target, most)


def _after(weights: Floats | None, sides: Floats, rated: Floats, measure: Measure, signs: Floats) -> Floats:
    """Return the absolute differences after swaps, given as signs (swaps, systems)."""
    if weights is not None:
        return np.asarray(np.abs(signs @ weights))
    one, other = (np.where(signs > 0, a, b) for a, b in (sides, sides[::-1]))
    if measure == "acc_eq":
        return np.asarray(np.abs(calibrated(one, rated) - calibrated(other, rated)))
    return np.asarray(np.abs(_stuart_of(one, rated) - _stuart_of(other, rated)))


def _stuart_of(x: Floats, y: Floats) -> Floats:
    """Return tau_c of each row of scores (rows, n) with ratings (n,)."""
    i, j = np.triu_indices(len(y), 1)
    apart = x[:, i] - x[:, j]
    slack = TIED * np.abs(x).max(axis=1, keepdims=True)
    surplus = np.where(np.abs(apart) <= slack, 0.0, np.sign(apart)) @ np.sign(y[i] - y[j])
    nothing = np.zeros_like(surplus)
    return stuart(x, np.broadcast_to(y, x.shape), np.stack([2 * surplus, nothing]))


def calibrated(x: Floats, y: Floats) -> Floats:
    """Return acc_eq of each row of scores (rows, n) with ratings (n,), its threshold calibrated for the row."""
    i, j = np.triu_indices(len(y), 1)
    apart, rated = x[:, i] - x[:, j], np.sign(y[i] - y[j])
    slack = TIED * np.abs(x).max(axis=1, keepdims=True)
    apart = np.where(np.abs(apart) <= slack, 0.0, apart)
    alike = np.sign(apart) == rated
    gaps, tied = np.abs(apart), np.flatnonzero(rated == 0)
    right = alike.sum(axis=1)
    if len(tied) <= _FEW_TIED:
        # Only at the difference of a pair that people tie can a threshold gain anything.
        best = np.zeros(len(x), dtype=np.intp)
        for threshold in gaps[:, tied].T:
            below = gaps <= threshold[:, np.newaxis] + slack
            best = np.maximum(best, below[:, tied].sum(axis=1) - (below & alike).sum(axis=1))
        return np.asarray((right + best) / len(i))
    order = np.argsort(gaps, axis=1)
    gaps = np.take_along_axis(gaps, order, axis=1)
    gain = np.take_along_axis((rated == 0).astype(np.int8) - alike.astype(np.int8), order, axis=1)
    gained = np.cumsum(gain, axis=1, dtype=np.int32)
    # Pairs of the same difference become tied together.
    last = np.ones(gaps.shape, dtype=np.bool_)
    last[:, :-1] = np.diff(gaps, axis=1) > slack
    best = np.maximum(np.where(last, gained, 0).max(axis=1), 0)
    return np.asarray((right + best) / len(i))


def _in_order(sides: Floats, rated: Floats) -> Floats:
    """Return whether each pair is in the right order: (which metric scores the one, which the other, systems, systems)."""
    human = np.sign(_apart(rated, rated))
    return np.stack([[np.sign(_apart(one, other)) == human for other in sides] for one in sides]).astype(np.float64)


def _apart(one: Floats, other: Floats) -> Floats:
    found = one[:, np.newaxis] - other
    slack = TIED * np.maximum(np.abs(one)[:, np.newaxis], np.abs(other))
    return np.where(np.abs(found) <= slack, 0.0, found)


def _softly(sides: Floats, human: Floats, design: Design, items: Integers, resamples: int, seed: int) -> Floats:
    """Return how near the p of each pair by two metrics' scores is to that by ratings, as :func:`_in_order` does."""
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    first, second = (system_matrix(side, design.systems, items) for side in sides)
    known = system_p_values(system_matrix(human, design.systems, items), signs)
    count = len(known)
    ab, ba = (system_p_values(np.concatenate(pair), signs) for pair in ((first, second), (second, first)))
    inner = slice(None, count), slice(None, count)
    outer = slice(None, count), slice(count, None)
    found = np.stack([[ab[inner], ab[outer]], [ba[outer], ba[inner]]])
    return np.nan_to_num(1 - np.abs(found - known))


def _linear(of_pairs: Floats) -> Floats:
    """Return what the sign of each system adds to the difference of the two metrics' means over pairs."""
    count = of_pairs.shape[-1]
    i, j = np.triu_indices(count, 1)
    own = of_pairs[0, 0, i, j] - of_pairs[1, 1, i, j]
    across = of_pairs[0, 1, i, j] - of_pairs[1, 0, i, j]
    summed = np.bincount(i, (own + across) / 2, count) + np.bincount(j, (own - across) / 2, count)
    return np.asarray(summed / len(i))
