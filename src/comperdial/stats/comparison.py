"""Whether one metric correlates better with ratings than another: paired tests, corrections, clusters of ranks.

Metrics like or dislike whole systems and whole dialogues, so units are not independent, and tests that take them for
independent (PERM-BOTH by unit, Williams) call far too many differences real. ``compare`` tests by what was sampled, and
gives PERM-BOTH's p beside it. benchmarks/paired.py counts how often each test is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design, patterns_of
from comperdial.stats.influence import concordance, influence, untied
from comperdial.stats.leave_out import without_each_group
from comperdial.stats.means import merge_ties, system_means
from comperdial.stats.resampling import Weights, weighted

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

# Of systems' ranks a pair may have so many swaps: enough for a correction over a thousand pairs.
SWAPS = 100_000
# So many swaps as far out as the data are enough to say what p is.
ENOUGH = 50
# The swaps of a pair that has fewer grow by this factor, up to the most.
_GROWTH = 4
# Below this many points a coefficient is +-1 or nearly so, and no test can tell anything.
FEWEST = 4
# Signs held at a time: 32 MB of them.
_AT_ONCE = 2**22
# Parts of them that are ranked together: 128 MB.
_RANKED_TOGETHER = 4
# Scores x swaps that are ranked at a time: 2 MB of each of a few arrays.
_RANKED = 2**18
# Differences that rounding alone tells apart are equal.
CLOSE = 1e-12
# Groups of ties that change the spread by no more than this share of it, all together, are bounded; what is bounded is sure
# where it is this much farther out, or less far, than what it is compared with.
_BOUNDED, _CAUTION = 1e-2, 1e-9


@dataclass(frozen=True)
class Comparison:
    """What was found of each pair of metrics, all of shape (metrics, metrics).

    Attributes
    ----------
    difference
        Coefficient of the row's metric minus that of the column's, over the units that both have. Antisymmetric; 0 on
        the diagonal.
    p
        Two-sided. Symmetric; 1 on the diagonal.
    p_perm_both
        Two-sided p of PERM-BOTH, for comparison with the literature: standardised scores are swapped unit by unit, and
        only then ranked (Spearman) or averaged by system. (mt-metrics-eval, given means of systems, swaps those, as
        ``p`` does for ranks.) NaN for Kendall over units: every swap would have to compare all pairs of units anew.
    reach
        Half the width of the difference's 95 % interval, which leaves out 0 just where p < 0.05; symmetric. NaN where
        none is honest: over ranks of systems' means, where no difference could be significant.
    n
        Points correlated: units, or systems where units are averaged.
    test
        What made ``p``: ``jackknife``, or ``swap_systems|swaps:N``, N being the most swaps that a pair got. No p is
        then below 1 / (1 + N), so that Holm's correction of more than N / 20 pairs can find nothing at 5 %. Over means
        of systems that are given (``design.fixed``): ``bootstrap:N``, N being the resamples of dialogues.
    given
        Whether the pair's systems are given, so that p and reach are over dialogues, these systems.
    """

    difference: Floats
    p: Floats
    p_perm_both: Floats
    reach: Floats
    n: Integers
    test: str
    given: Flags

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the ends of the 95 % intervals of the differences: see :func:`ends_of_difference`."""
        return ends_of_difference(self.difference, self.reach)


def compare(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    name: Coefficient,
    *,
    resamples: int = 1000,
    seed: int,
    intervals: bool = False,
) -> Comparison:
    """Test for every pair of metrics whether they correlate equally well with the ratings.

    Over units, and for Pearson over means of systems: Student's t with a variance from leaving out systems and
    dialogues (:func:`jackknife_t`). For ranks (Spearman, Kendall) of means of systems: swaps of whole systems
    (:func:`swap_systems`). Ranks of some hundred means move in steps too coarse for a jackknife, which then rejects too
    little; Pearson's scale depends on a few means where tails are long, and swapping those rejects too much.

    Systems that are given (``design.given``: asked for, or fewer than four) are neither left out nor swapped. Over units
    each dialogue is left out; over means of systems dialogues are resampled (:func:`over_dialogues`).

    Parameters
    ----------
    scores
        Shape (metrics, n); NaN where missing. A pair is compared over the units that both have.
    ratings
        Shape (n,), none missing.
    design
        Systems and dialogues of the units, and whether they are averaged by system.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).
    resamples
        Random swaps; p is (1 + those at least as far out) / (1 + resamples). All pairs share them. With 0 there is no
        ``p_perm_both`` and no p that needs swaps. Swaps of systems go on where few of them are as far out as the data,
        up to ``SWAPS``, and p is divided by what was drawn (Besag and Clifford 1991): without that none would be small
        enough for a correction over many pairs. What one pair gets does not depend on the others.
    seed
        Of the swaps: the same seed gives the same p.
    intervals
        Whether to find the reach where that takes more work, by keeping every swap's difference in memory (ranks of
        means of systems); a jackknife has it anyway.

    Returns
    -------
    Comparison
        NaN where two metrics share fewer than ``FEWEST`` points or one of them does not vary. ``p`` alone is NaN where
        a jackknife has no variance: a metric does not vary without one of the systems or dialogues.
    """
    table, target = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    _check(table, target, design, name)
    metrics = len(table)
    difference, p, p_perm_both, reach = (np.full((metrics, metrics), np.nan) for _ in range(4))
    n = np.zeros((metrics, metrics), dtype=np.intp)
    given = np.full((metrics, metrics), design.given)
    for rows, wanted, units in common_units(~np.isnan(table)):
        part, kept, inner = table[np.ix_(rows, units)], target[units], design.of(units)
        points = inner.counts[0] if inner.average else len(kept)
        cell = np.ix_(rows, rows)
        n[cell] = np.where(wanted, points, n[cell])
        given[cell] = np.where(wanted, inner.given, given[cell])
        if points < FEWEST:
            continue
        values, tested, both, wide = _tested(part, kept, inner, name, resamples, seed, intervals)
        for whole, found in (
            (difference, values[:, None] - values), (p, tested), (p_perm_both, both), (reach, wide),
        ):  # fmt: skip
            whole[cell] = np.where(wanted, found, whole[cell])
    test = f"swap_systems|swaps:{resamples and max(resamples, SWAPS)}" if _swaps(design, name) else "jackknife"
    test = f"bootstrap:{resamples}" if design.average and design.fixed else test
    return Comparison(difference, p, p_perm_both, reach, n, test, given)


def ends_of_difference(difference: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the interval of a difference of two coefficients, given half its width at the middle.

    The interval is symmetric on the scale of artanh(difference / 2), so that it stays between -2 and 2, which is as far
    as two coefficients can differ. It leaves out 0 just where the difference is larger than the reach.
    """
    half = np.clip(difference / 2, -1 + 1e-12, 1 - 1e-12)
    centre = np.arctanh(half)
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = reach * np.where(np.abs(half) < CLOSE, 0.5, centre / difference)
    return 2 * np.tanh(centre - wide), 2 * np.tanh(centre + wide)


def _swaps(design: Design, name: Coefficient) -> bool:
    return design.average and name != "pearson" and not design.fixed


def _check(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> None:
    if scores.ndim != 2 or ratings.shape != scores.shape[1:] or len(design.systems) != len(ratings):
        raise ValueError(
            f"expected scores (metrics, n), ratings (n,) and a design of n units, got {scores.shape}, {ratings.shape} "
            f"and {len(design.systems)}"
        )
    if np.isnan(ratings).any():
        raise ValueError("expected ratings without NaN: leave such units out")
    if name not in COEFFICIENTS:
        raise ValueError(f"unknown coefficient {name!r}: expected one of {', '.join(COEFFICIENTS)}")


def common_units(present: Flags) -> list[tuple[Integers, Flags, Flags]]:
    """Group pairs by the units that both have: metrics, which of their pairs, units."""
    patterns, pattern = patterns_of(present)
    members = [np.flatnonzero(pattern == code) for code in range(len(patterns))]
    pairs: dict[bytes, list[tuple[int, int]]] = {}
    for one in range(len(patterns)):
        for other in range(one, len(patterns)):
            pairs.setdefault((patterns[one] & patterns[other]).tobytes(), []).append((one, other))
    found = []
    for key, together in pairs.items():
        rows = np.unique(np.concatenate([members[code] for pair in together for code in pair]))
        wanted = np.zeros((len(present), len(present)), dtype=bool)
        for one, other in together:
            wanted[np.ix_(members[one], members[other])] = True
            wanted[np.ix_(members[other], members[one])] = True
        found.append((rows, wanted[np.ix_(rows, rows)], np.frombuffer(key, dtype=bool)))
    return found


def _tested(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, resamples: int, seed: int, intervals: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return values (metrics,), p, p of PERM-BOTH and the reach, of metrics without gaps."""
    unknown = np.full((len(scores), len(scores)), np.nan)
    both, rng = unknown, np.random.default_rng(seed)
    if resamples and (design.average or name != "kendall"):
        both = swap_units(scores, ratings, design, name, resamples, lambda n: draw_signs(rng, n, len(ratings)))
    if design.average and design.fixed:
        values, p, reach = over_dialogues(scores, ratings, design, name, resamples, seed)
        return values, p, both, reach
    if design.average:
        scores, ratings, design = averaged(scores, ratings, design)
    if not _swaps(design, name):
        values, p, reach = jackknife_t(scores, ratings, design, name)
        return values, p, both, reach
    p, reach = unknown, unknown
    if resamples:
        p, reach = swap_systems(scores, ratings, name, resamples, seed, SWAPS, intervals=intervals)
    return influence(scores, ratings, name)[0], p, both, reach


def averaged(scores: Floats, ratings: Floats, design: Design) -> tuple[Floats, Floats, Design]:
    """Return means of systems, each a unit of its own and all of one dialogue."""
    codes = np.arange(design.counts[0], dtype=np.intp)
    narrow = Design(codes, np.zeros_like(codes), design.average)
    return system_means(scores, design), system_means(ratings, design), narrow


# Leaving out. The variance of a difference is that over systems plus that over dialogues minus that over cells (a cell
# is a dialogue of a system), which both of them count (Cameron, Gelbach and Miller 2011).

# Variances of the differences of all pairs, and how many clusters they are from.
Part = tuple[Floats, int]


def jackknife_t(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> tuple[Floats, Floats, Floats]:
    """Return coefficients (metrics,), p of each pair and half the width of each difference's 95 % interval.

    Student's t with a two-way jackknife variance: p < 0.05 just where the interval leaves out 0. Each system is left
    out once and each dialogue once, and the coefficients are computed anew; cells, which weigh little, count by their
    influences. Degrees of freedom are Satterthwaite's, and at least those of the fewer clusters. With one system only,
    or one dialogue, the other alone counts; systems that are given count as one. ``design.average`` is not looked at.
    """
    if design.given and not design.average:
        design = replace(design, systems=np.zeros_like(design.systems))
    values, moves = influence(scores, ratings, name)
    by_system = _jackknife(scores, ratings, design.systems, name)
    by_dialogue = _jackknife(scores, ratings, design.dialogues, name)
    return values, *two_way_t(values, by_system, by_dialogue, of_influences(moves, cells(design)))


def over_dialogues(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Do what :func:`jackknife_t` does for means of systems that are given: resample dialogues alone.

    Student's t with the variance that a difference has over resamples of dialogues. p and reach are NaN where fewer than
    half of the resamples have both coefficients, or none differs: that is no precision.
    """
    count = design.counts[1]
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    made = weighted(scores, ratings, design, [name], [Weights(), Weights(None, drawn.astype(np.float64))])
    values, rows = made[0][0, :, 0], made[1][:, :, 0].T
    variance = np.full((len(rows), len(rows)), np.nan)
    for one, other in combinations(range(len(rows)), 2):
        moves = rows[one] - rows[other]
        moves = moves[np.isfinite(moves)]
        if count > 1 and 2 * len(moves) > max(resamples, 2):
            variance[one, other] = variance[other, one] = moves.var(ddof=1) * count / (count - 1)
    variance[~(variance > CLOSE**2)] = np.nan
    given = np.zeros_like(variance), 1
    return values, *two_way_t(values, given, (variance, count), given)


def _jackknife(scores: Floats, ratings: Floats, codes: Integers, name: Coefficient) -> Part:
    clusters = int(codes.max()) + 1
    if clusters < 2:
        return np.zeros((len(scores), len(scores))), clusters
    without = left_out(scores, ratings, codes, name)
    # Without one of few clusters a correlation may be perfect, whose z is infinite: there is no variance then.
    with np.errstate(invalid="ignore"):
        return between(without - without.mean(axis=1, keepdims=True)) * (clusters - 1) / clusters, clusters


def of_influences(moves: Floats, codes: Integers) -> Part:
    """Return the variances that the influences of clusters of units have."""
    clusters = int(codes.max()) + 1
    if clusters < 2:
        return np.zeros((len(moves), len(moves))), clusters
    sums = np.stack([np.bincount(codes, row) for row in moves]) / len(codes)
    return between(sums) * clusters / (clusters - 1), clusters


def between(rows: Floats) -> Floats:
    """Sums of squares of the differences of all pairs of rows."""
    products = rows @ rows.T
    own = np.diag(products)
    return np.asarray(np.maximum(own[:, None] + own - 2 * products, 0))


def two_way(systems: Part, dialogues: Part, by_cell: Part) -> tuple[Floats, float]:
    """Return what the variance of each difference is made of, and its fewest degrees of freedom.

    Returns
    -------
    tuple
        Shape (4, metrics, metrics): variances over systems, dialogues and cells, and the spread of their sum. Of
        independent data sets they may be added. And one less than there are of the fewer clusters, NaN without any.
    """
    spread = [part**2 / max(clusters - 1, 1) for part, clusters in (systems, dialogues)]
    spread.append(by_cell[0] ** 2 / max((systems[1] - 1) * (dialogues[1] - 1), 1))
    fewest = min((clusters - 1 for _, clusters in (systems, dialogues) if clusters > 1), default=np.nan)
    return np.stack([systems[0], dialogues[0], by_cell[0], np.sum(spread, axis=0)]), fewest


def two_way_t(values: Floats, systems: Part, dialogues: Part, by_cell: Part) -> tuple[Floats, Floats]:
    """Return p of the difference of each pair of values and the reach of its interval, given variances by cluster."""
    difference = values[:, None] - values
    if min(systems[1], dialogues[1]) < 2:
        by_cell = (np.zeros_like(difference), 1)
    (of_systems, of_dialogues, of_cells, spread), fewest = two_way(systems, dialogues, by_cell)
    summed = of_systems + of_dialogues - of_cells
    # It may come out negative; then the larger of the one-way ones.
    variance = np.where(summed > 0, summed, np.maximum(of_systems, of_dialogues))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.maximum(variance**2 / spread, fewest)
        p = 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
        reach = np.where(variance > 0, stats.t.isf(ALPHA / 2, freedom) * np.sqrt(variance), np.nan)
    same = np.abs(difference) < 1e-12
    return np.asarray(np.where(same, 1.0, p)), reach


def cells(design: Design) -> Integers:
    """Return for each unit the code of its dialogue of its system, in order of system, then dialogue."""
    return np.unique(design.systems * design.counts[1] + design.dialogues, return_inverse=True)[1].astype(np.intp)


def left_out(scores: Floats, ratings: Floats, codes: Integers, name: Coefficient) -> Floats:
    """Return the coefficient of each row without each cluster in turn.

    Leaving out for good, not by a derivative, is what keeps a test's level where scores have long tails.

    Parameters
    ----------
    scores, ratings, codes
        Shapes (metrics, n), (n,) and (n,): cluster of each unit, from 0 on. Nothing missing.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    array
        Shape (metrics, clusters); NaN where what is left does not vary.
    """
    find = {"pearson": _pearson_left, "spearman": _spearman_left, "kendall": _kendall_left}[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        return find(scores, ratings, codes, int(codes.max()) + 1)


def _pearson_left(scores: Floats, ratings: Floats, codes: Integers, _: int) -> Floats:
    return without_each_group(scores, ratings, codes, "pearson")


def _spearman_left(scores: Floats, ratings: Floats, codes: Integers, clusters: int) -> Floats:
    groups = [np.unique(row, return_inverse=True)[1] for row in (*scores, ratings)]
    counts = [np.bincount(group) for group in groups]
    found = np.empty((len(scores), clusters))
    for cluster in range(clusters):
        out = np.flatnonzero(codes == cluster)
        y, square_y = _ranks_left(groups[-1], counts[-1], out)
        for metric in range(len(scores)):
            x, square_x = _ranks_left(groups[metric], counts[metric], out)
            found[metric, cluster] = (x @ y) / np.sqrt(square_x * square_y)
    return found


def _ranks_left(group: Integers, counts: Integers, out: Integers) -> tuple[Floats, float]:
    """Return centred ranks of the units that stay, 0 for the others, and their sum of squares."""
    left = counts - np.bincount(group[out], minlength=len(counts))
    middle = np.cumsum(left) - left / 2 - (len(group) - len(out)) / 2
    ranks = middle[group]
    ranks[out] = 0
    return ranks, float(left @ middle**2)


def _kendall_left(scores: Floats, ratings: Floats, codes: Integers, clusters: int) -> Floats:
    members = [np.flatnonzero(codes == cluster) for cluster in range(clusters)]
    untied_y = _pairs_left(untied, (ratings,), members)
    found = np.empty((len(scores), clusters))
    for metric, x in enumerate(scores):
        agree = _pairs_left(concordance, (x, ratings), members)
        found[metric] = agree / np.sqrt(_pairs_left(untied, (x,), members) * untied_y)
    return found


def _pairs_left(mean_of: Callable[..., Floats], sides: tuple[Floats, ...], members: list[Integers]) -> Floats:
    """Sum over the pairs of units that stay: all, minus those with a unit left out (those of two counted twice)."""
    n = len(sides[0])
    each = n * mean_of(*sides)
    within = [len(part) * float(np.sum(mean_of(*(side[part] for side in sides)))) for part in members]
    return np.array([each.sum() - 2 * each[part].sum() + own for part, own in zip(members, within, strict=True)])


# Swapping. A swapped score is (a + b) / 2 + s (a - b) / 2 with a sign s, and its square likewise, so every sum that
# Pearson's r needs is linear in sums of s x (a feature of one metric): one matrix product serves all pairs of metrics.
# Whether one score lies above another is a product of what two signs choose, so concordance (Kendall), and likewise the
# sum of products of ranks (Spearman), is a constant plus linear plus quadratic terms in the signs. Turning all signs
# gives the other metric of the pair: in the difference of the two only the linear terms are left, if there are no ties.
# Ties change what is divided by, with the numbers of tied values chosen, which are linear too.


def draw_signs(rng: np.random.Generator, count: int, width: int) -> Floats:
    """Return random signs, shape (count, width), eight from each byte."""
    octets = rng.integers(0, 256, size=(count, (width + 7) // 8), dtype=np.uint8)
    return np.asarray(2.0 * np.unpackbits(octets, axis=1, count=width) - 1.0, dtype=np.float64)


def _usable(scores: Floats, ratings: Floats) -> tuple[Integers, Floats]:
    """Return the rows that vary, none if the ratings do not, and these rows standardised."""
    usable = np.flatnonzero((np.ptp(scores, axis=1) > 0) & (np.ptp(ratings) > 0))
    chosen = scores[usable]
    return usable, (chosen - chosen.mean(axis=1, keepdims=True)) / chosen.std(axis=1, keepdims=True)


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
    usable, chosen = _usable(scores, ratings)
    if not len(usable):
        return p
    count = _far_by_means if design.average else _far_by_ranks if name == "spearman" else _far_by_units
    found = np.zeros((len(usable), len(usable)))
    step = max(1, _AT_ONCE // len(ratings))
    starts = range(0, resamples, step)
    # What pairs are made of is made anew for each part: ranks, which take long, for several at a time.
    parts = _RANKED_TOGETHER if count is _far_by_ranks else 1
    for first in range(0, len(starts), parts):
        signs = np.concatenate([draw(min(step, resamples - start)) for start in starts[first : first + parts]])
        found += count(chosen, ratings, design.systems, signs, name)
    p[np.ix_(usable, usable)] = (1 + found + found.T) / (1 + resamples)
    p[usable, usable] = 1
    return p


def _far_by_units(scores: Floats, ratings: Floats, systems: Integers, signs: Floats, name: Coefficient) -> Floats:
    """Count per pair the resamples whose difference of Pearson's r over units is as far from 0 as the data's."""
    metrics, n = scores.shape
    y = (ratings - ratings.mean()) / ratings.std()
    summed = signs @ (np.concatenate([scores, scores**2, scores * y]) / n).T
    # By metric, then resample: rows are contiguous.
    mean, square, cross = np.ascontiguousarray(summed.T).reshape(3, metrics, -1)
    values = (scores @ y) / n
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        rest = slice(a + 1, metrics)
        shift, surplus = (mean[a] - mean[rest]) / 2, (square[a] - square[rest]) / 2
        middle, half = (values[a] + values[rest, None]) / 2, (cross[a] - cross[rest]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (middle + half) / np.sqrt(1 + surplus - shift**2) - (middle - half) / np.sqrt(
                1 - surplus - shift**2
            )
        counts[a, rest] = _as_far(np.abs(drawn), np.abs(values[a] - values[rest])[:, None])
    return counts


def _far_by_ranks(scores: Floats, ratings: Floats, systems: Integers, signs: Floats, name: Coefficient) -> Floats:
    """Count as :func:`_far_by_units` does, the correlation being Spearman's."""
    metrics = len(scores)
    y = np.asarray(stats.rankdata(ratings) - (len(ratings) + 1) / 2)
    counts = np.zeros((metrics, metrics))
    by_unit = np.ascontiguousarray(signs.T)
    for a in range(metrics - 1):
        pairs = [RankSwaps(np.concatenate([scores[a], other]), y) for other in scores[a + 1 :]]
        odd = np.stack([pair.linear for pair in pairs]) @ by_unit
        counts[a, a + 1 :] = [pair.as_far(by_unit, moved) for pair, moved in zip(pairs, odd, strict=True)]
    return counts


def _as_far(drawn: Floats, observed: Floats | float) -> Integers:
    # A swap after which a side does not vary gives no difference; it counts as extreme, the cautious side.
    return np.asarray((~(drawn < observed - CLOSE)).sum(axis=-1))


def _far_by_means(scores: Floats, ratings: Floats, systems: Integers, signs: Floats, name: Coefficient) -> Floats:
    """Count as :func:`_far_by_units` does, the correlation being over means of systems."""
    sizes = np.bincount(systems)
    y = system_means(ratings, Design(systems, np.zeros_like(systems), average=True))
    means = np.stack([np.bincount(systems, row) for row in scores]) / sizes
    moved = np.empty((len(scores), len(sizes), len(signs)))
    for system, size in enumerate(sizes):
        inside = np.flatnonzero(systems == system)
        moved[:, system] = (scores[:, inside] / size) @ signs[:, inside].T
    metrics = len(scores)
    correlation = _Columns(y, name)
    values = correlation(means.T)
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        for b in range(a + 1, metrics):
            middle, half = (means[a] + means[b])[:, None] / 2, (moved[a] - moved[b]) / 2
            one, other = np.split(correlation(np.concatenate([middle + half, middle - half], axis=1)), 2)
            drawn = one - other
            counts[a, b] = _as_far(np.abs(drawn), abs(values[a] - values[b]))
    return counts


class _Columns:
    """Correlate the columns of (systems, many) with one side that stays."""

    def __init__(self, y: Floats, name: Coefficient) -> None:
        self.name = name
        fixed = stats.rankdata(y) if name == "spearman" else y
        self.y = (fixed - fixed.mean()) / np.linalg.norm(fixed - fixed.mean())
        # For pairs: the order of the side that stays, and where those above each one begin.
        self.order = np.argsort(y, kind="stable")
        self.above = np.searchsorted(y[self.order], y, side="right")[self.order]
        # And its places among the different values, in numbers of as few bytes as count all systems.
        self.places = np.unique(y, return_inverse=True)[1].astype(np.min_scalar_type(len(y)))

    def __call__(self, x: Floats) -> Floats:
        if self.name == "pearson":
            return self._pearson(x)
        # Sums in another order must not break ties.
        x = np.round(x, 10)
        order = np.argsort(x, axis=0)
        ordered = np.take_along_axis(x, order, axis=0)
        tied = (ordered[1:] == ordered[:-1]).any(axis=0)
        find = self._ranks_in_order if self.name == "spearman" else self._pairs_in_order
        if not tied.any():
            return find(order)
        found = np.empty(x.shape[1])
        found[~tied] = find(order[:, ~tied])
        some = x[:, tied]
        found[tied] = (
            self._pearson(np.asarray(stats.rankdata(some, axis=0))) if self.name == "spearman" else self.kendall(some)
        )
        return found

    def _pearson(self, x: Floats) -> Floats:
        centred = x - x.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.y @ centred) / np.sqrt(np.einsum("sr,sr->r", centred, centred)))

    def _ranks_in_order(self, order: Integers) -> Floats:
        """Return Spearman's coefficients of columns without ties, given by which system is at each rank."""
        ranks = np.arange(len(order)) - (len(order) - 1) / 2
        return np.asarray(ranks / np.linalg.norm(ranks) @ self.y[order])

    def _pairs_in_order(self, order: Integers) -> Floats:
        """Return Kendall's coefficients of such columns: how many pairs of systems go up where the other side does."""
        places = self.places[order]
        # Of each system, how many before it lie below: bytes where no more are needed, which count fastest.
        below = np.zeros_like(places)
        for apart in range(1, len(places)):
            below[apart:] += (places[apart:] > places[:-apart]).view(np.uint8)
        untied = int(np.sum(len(places) - self.above))
        pairs = len(places) * (len(places) - 1) // 2
        right = below.sum(axis=0, dtype=np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((2 * right - untied) / np.sqrt(np.float64(untied * pairs)))

    def kendall(self, x: Floats) -> Floats:
        """Do what :meth:`_pairs_in_order` does, whatever the ties: compare all pairs."""
        x = np.ascontiguousarray(x[self.order])
        right, wrong, tied = (np.zeros(x.shape[1], dtype=np.int64) for _ in range(3))
        for place, above in enumerate(self.above):
            right += _trues(x[above:] > x[place])
            wrong += _trues(x[above:] < x[place])
            if above > place + 1:
                tied += _trues(x[place + 1 : above] != x[place])
        untied = np.sum(len(x) - self.above) * (right + wrong + tied)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((right - wrong) / np.sqrt(untied.astype(np.float64)))


def _trues(flags: Flags) -> Integers:
    """Count what is true in each column: bytes are added as bytes, which none of 255 overflows."""
    found = np.zeros(flags.shape[1], dtype=np.intp)
    for start in range(0, len(flags), 255):
        found += np.add.reduce(flags[start : start + 255].view(np.uint8), axis=0, dtype=np.uint8)
    return found


def swap_systems(
    scores: Floats,
    ratings: Floats,
    name: Coefficient,
    resamples: int,
    seed: int,
    most: int,
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
        Swaps of each pair, and of a pair with fewer than ``ENOUGH`` of them as far out as the data. p is (1 + as far
        out) / (1 + swaps). To stop early only at a p that is not small keeps the level (Besag and Clifford 1991): a p
        below some level is one also of the swaps that were drawn when others stopped above it.
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
    p, reach = (np.full((len(scores), len(scores)), np.nan) for _ in range(2))
    usable, chosen = _usable(scores, ratings)
    width = len(ratings)
    places = list(combinations(usable, 2))
    # Standardised values lie about 0, and were rounded at 1.
    pooled = [merge_ties(np.concatenate(pair), 1.0) for pair in combinations(chosen, 2)]
    pairs: Sequence[_Swapped]
    if name == "spearman":
        ranks = np.asarray(stats.rankdata(ratings) - (width + 1) / 2)
        pairs = [RankSwaps(values, ranks) for values in pooled]
    else:
        above = np.sign(ratings[:, None] - ratings)
        pairs = [_Pairs(values, above) for values in pooled]
    linear = np.array([pair.linear for pair in pairs]).reshape(len(pairs), width)
    counts, swaps = np.zeros(len(pairs)), np.zeros(len(pairs))
    kept: list[list[Floats]] = [[] for _ in pairs]
    rng, open_pairs = np.random.default_rng(seed), np.arange(len(pairs))
    done, target = 0, resamples
    while len(open_pairs):
        while done < target:
            size = min(max(1, _AT_ONCE // width), target - done)
            signs = np.ascontiguousarray(draw_signs(rng, size, width).T)
            odd = linear[open_pairs] @ signs
            for pair, moved in zip(open_pairs, odd, strict=True):
                counts[pair] += pairs[pair].as_far(signs, moved)
                if intervals:
                    kept[pair].append(pairs[pair].differences(signs, moved))
            done += size
        swaps[open_pairs] = done
        open_pairs = open_pairs[counts[open_pairs] < ENOUGH] if target < most else open_pairs[:0]
        target = max(target, min(_GROWTH * target, most))
    p[usable, usable] = 1
    for (one, other), found, drawn in zip(places, (1 + counts) / (1 + swaps), kept, strict=True):
        p[one, other] = p[other, one] = found
        if intervals:
            reach[one, other] = reach[other, one] = _reach(np.concatenate(drawn))
    return p, reach


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


# Williams, and many comparisons


def williams(r_ay: npt.ArrayLike, r_by: npt.ArrayLike, r_ab: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the two-sided p of Williams' test of two correlations that share a side.

    Parameters
    ----------
    r_ay, r_by
        Correlations of the two metrics with the ratings.
    r_ab
        Correlation of the two metrics.
    n
        Number of independent points, more than 3. The test takes points to be independent and normal (Pearson; for
        ranks it is an approximation). Units that share systems or dialogues are not independent: with n = units it is
        too liberal, and only over means of systems is n known, the number of systems.

    Returns
    -------
    array
        Broadcast over the four; NaN where one is missing, n is below 4 or the three correlations fit no sample; 1 where
        the first two are equal.

    Notes
    -----
    Equation 7 of Steiger (1980), "Tests for comparing elements of a correlation matrix": Student's t with n - 3 degrees
    of freedom.
    """
    ay, by, ab, count = np.broadcast_arrays(*(np.asarray(side, dtype=np.float64) for side in (r_ay, r_by, r_ab, n)))
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = 1 - ay**2 - by**2 - ab**2 + 2 * ay * by * ab
        spread = 2 * determinant * (count - 1) / (count - 3) + ((ay + by) / 2) ** 2 * (1 - ab) ** 3
        statistic = (ay - by) * np.sqrt((count - 1) * (1 + ab) / spread)
        p = 2 * stats.t.sf(np.abs(statistic), count - 3)
    complete = ~(np.isnan(ay) | np.isnan(by) | np.isnan(ab)) & (count > 3)
    return np.asarray(np.where(complete & (ay == by), 1.0, np.where(complete, p, np.nan)))


def holm(p: npt.ArrayLike) -> Floats:
    """Adjust p-values by Holm's step-down rule: the chance of any false finding among all stays below alpha.

    Parameters
    ----------
    p
        Any shape; NaN stays NaN and is not counted as a test. Give each unordered pair once.

    Returns
    -------
    array
        Same shape.
    """
    return _stepwise(p, lambda ordered: np.maximum.accumulate(ordered * np.arange(len(ordered), 0, -1)))


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Adjust p-values by Benjamini and Hochberg's step-up rule (1995): of what is found, at most a share alpha is false.

    That share, the false discovery rate, is expected over repetitions. It is kept where tests are independent or
    positively dependent, as tests of metrics against the same ratings mostly are; it is less strict than :func:`holm`.

    Parameters
    ----------
    p
        Any shape; NaN stays NaN and is not counted as a test. Give each unordered pair once.

    Returns
    -------
    array
        Same shape.
    """

    def step_up(ordered: Floats) -> Floats:
        count = len(ordered)
        return np.minimum.accumulate((ordered * (count / np.arange(1, count + 1)))[::-1])[::-1]

    return _stepwise(p, step_up)


def _stepwise(p: npt.ArrayLike, adjusted: Callable[[Floats], Floats]) -> Floats:
    """Adjust the p-values that there are, given to ``adjusted`` from the smallest on."""
    values = np.array(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values.flat[known], kind="stable")]
    values.flat[order] = np.minimum(adjusted(values.flat[order]), 1)
    return values


def rank_clusters(values: npt.ArrayLike, p: npt.ArrayLike, alpha: float = 0.05) -> Integers:
    """Rank metrics by value into clusters, as the WMT metrics tasks do.

    Going down from the best, a new cluster begins at a metric that differs significantly (p <= alpha) from any member
    of the cluster so far. Within a cluster no metric is significantly better than another; the first metric of a later
    cluster is worse than some, not each, of the one before.

    Parameters
    ----------
    values
        Shape (metrics,): coefficients, more is better. Equal values keep their order.
    p
        Shape (metrics, metrics), symmetric, adjusted or not. A NaN is no significant difference.
    alpha
        Level of the tests.

    Returns
    -------
    array
        Shape (metrics,): 1 for the best; 0, no rank, where the value is NaN.
    """
    given, tests = np.asarray(values, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if given.ndim != 1 or tests.shape != (len(given), len(given)):
        raise ValueError(f"expected values (metrics,) and p (metrics, metrics), got {given.shape} and {tests.shape}")
    ranks = np.zeros(len(given), dtype=np.intp)
    cluster: list[int] = []
    rank = 1
    for metric in np.argsort(-given, kind="stable"):
        if np.isnan(given[metric]):
            continue
        if np.any(tests[cluster, metric] <= alpha):
            rank, cluster = rank + 1, []
        cluster.append(int(metric))
        ranks[metric] = rank
    return ranks
