"""How well metrics agree with ratings within groups of units, by pairs of these units.

A group is an item (one context or dialogue, answered by several systems), a system (all its items), or the means of all
systems. Nearly every statistic here is made of sums over pairs of units of one group; sums without some units follow from
sums over the pairs of each unit, so that leaving out every system and every dialogue costs little more than the statistic.

Sources: tau_c: Stuart 1953. tau_23, acc_eq: Deutsch, Foster and Freitag 2023 (arXiv 2305.14324). Pairwise accuracy: Kocmi et
al. 2021 (arXiv 2107.10821). Soft pairwise accuracy: Thompson et al. 2024 (arXiv 2409.09598). All as mt-metrics-eval has them;
benchmarks/wmt.py computes them pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient, Measure
from comperdial.stats.coefficients import blocks, ratio, without_each
from comperdial.stats.correlation import rowwise, signs_of
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers, codes_of
from comperdial.stats.jackknife import Replicates, residuals_of
from comperdial.stats.means import TIED, group_means, merge_ties, paired_means

Grouping = Literal["item", "system", "pooled"]
# Two sums of the same terms in another order differ by less than this share of the sum of their absolute values.
_ROUNDING = 1e-11


@dataclass(frozen=True)
class Groups:
    """Units laid out by group: every array has shape (groups, units of the largest group).

    Attributes
    ----------
    unit
        Which unit is in each place; -1 for none.
    member
        The cluster of each place that cuts through groups: the system within an item, the dialogue within a system.
    outer
        Shape (groups,): the cluster that each group belongs to: an item's dialogue, or the system.
    members, outers
        How many clusters there are of each kind.
    by_item
        Whether a group is an item, so that members are systems and outer clusters dialogues; else the other way round.
    """

    unit: Integers
    member: Integers
    outer: Integers
    members: int
    outers: int
    by_item: bool = False

    @classmethod
    def of(cls, design: Design, items: Integers, grouping: Grouping) -> Groups:
        """Lay out the units of a design, each of an item; ``pooled`` is over the means of systems, one group."""
        systems, dialogues = design.counts
        if grouping == "pooled":
            places = np.arange(systems, dtype=np.intp)[np.newaxis]
            return cls(places, places, np.zeros(1, dtype=np.intp), systems, 0)
        by_item = grouping == "item"
        inner, outer = (design.systems, design.dialogues) if by_item else (design.dialogues, design.systems)
        unit = _places_of(codes_of(items if by_item else design.systems))
        counts = (systems, dialogues) if by_item else (dialogues, systems)
        return cls(unit, np.where(unit >= 0, inner[unit], -1), outer[unit[:, 0]], *counts, by_item)

    def laid_out(self, values: Floats) -> Floats:
        """Return values of units, shape (..., n), in their places; NaN where there is no unit."""
        return np.where(self.unit >= 0, values[..., self.unit], np.nan)

    @property
    def cells(self) -> tuple[Integers, Integers]:
        """Return the outer and the member cluster of each cell, in order of system, then dialogue, as everywhere."""
        rows, columns = np.nonzero(self.unit >= 0)
        pair = self.outer[rows], self.member[rows, columns]
        system, dialogue = pair[::-1] if self.by_item else pair
        count = int(dialogue.max(initial=0)) + 1
        systems, dialogues = np.divmod(np.unique(system * count + dialogue), count)
        return (dialogues, systems) if self.by_item else (systems, dialogues)


def _places_of(codes: Integers) -> Integers:
    """Return the units of each code, shape (codes, most units of one), -1 where one has fewer."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    unit = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.intp)
    unit[codes[order], np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = order
    return unit


def within_items(scores: Floats, ratings: Floats, items: Integers, name: Coefficient) -> tuple[Floats, Integers]:
    """Return the mean over items of the correlation over the units of an item: the systems that answered a context.

    Where the pooled correlation mixes "this context is easy" with "this answer is good", this one asks for the second.
    An item where the coefficient is undefined is left out and not counted, as mt-metrics-eval has it: 0 in its place
    would punish a metric for what people could not tell apart either.

    Parameters
    ----------
    scores, ratings, items
        Shapes (metrics, n), (n,) and (n,); scores and ratings are NaN where missing.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    tuple
        Values (metrics,), NaN for a metric without a defined item, and the number of items averaged (metrics,). An item
        counts alike however many units it has.
    """
    unit = _places_of(codes_of(items))
    sides = (np.where(unit >= 0, side[..., unit], np.nan) for side in (scores, ratings))
    x, y = np.broadcast_arrays(*sides)
    result = rowwise(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]), name).reshape(x.shape[:-1])
    return mean(result, axis=1), (~np.isnan(result)).sum(axis=1)


def mean(values: Floats, axis: int | None = None) -> Floats:
    """Return the mean of what is defined; NaN where nothing is."""
    there = np.isfinite(values)
    return _divided(np.where(there, values, 0.0).sum(axis=axis), there.sum(axis=axis))


def _divided(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=np.greater(b, 0))


# Sums over the pairs of a group, shape (5, ...): concordant less discordant pairs; those untied in x, in y; those that x and y
# do not see alike; all.


def pair_signs(x: Floats, epsilon: float, some: slice = slice(None)) -> npt.NDArray[np.int8]:
    """Return which of some places lie above (1) or below (-1) each place, differences up to epsilon being ties."""
    one, other = x[..., some, np.newaxis], x[..., np.newaxis, :]
    if epsilon == 0:
        return signs_of(one, other)
    sizes = np.abs(x)
    apart, slack = one - other, epsilon + TIED * np.maximum(sizes[..., some, np.newaxis], sizes[..., np.newaxis, :])
    return np.asarray((apart > slack).view(np.int8) - (apart < -slack).view(np.int8))


def _sums_by_place(x: Floats, y: Floats, epsilon: float = 0.0, member: Integers | None = None) -> Floats:
    """Sum over the pairs of each place: shape (5, groups, places); with ``member``, over those of one cluster alone."""
    count, places = x.shape
    both = np.isfinite(x) & np.isfinite(y)
    x, y = (np.where(both, side, np.nan) for side in (x, y))
    result = np.zeros((5, count, places))
    for part in blocks(count, places * places):
        for some in blocks(places, places):
            with np.errstate(invalid="ignore"):
                a, b = pair_signs(x[part], epsilon, some), pair_signs(y[part], 0.0, some)
            there = both[part, some, np.newaxis] & both[part, np.newaxis, :]
            if member is not None:
                same = member[part, some, np.newaxis] == member[part, np.newaxis, :]
                a, b, there = a * same, b * same, there & same
            for total, pairs in zip(result, (a * b, a * a, b * b, a != b, there), strict=True):
                total[part, some] = pairs.sum(axis=-1, dtype=np.int32)
    # A place is no pair with itself.
    result[4] -= both
    return result


_OF_SUMS: dict[str, Callable[[Floats], Floats]] = {
    "kendall": lambda sums: ratio(sums[0], sums[1], sums[2]),
    "tau_23": lambda sums: _divided(sums[4] - 2 * sums[3], sums[4]),
    "accuracy": lambda sums: _divided(sums[4] - sums[3], sums[4]),
    "acc_eq": lambda sums: _divided(sums[4] - sums[3], sums[4]),
}


def stuart(agree: Floats, size: npt.ArrayLike, fewest: npt.ArrayLike) -> Floats:
    """Return tau_c, given concordant less discordant pairs (counted twice), points, and the values of the side with fewer."""
    n, values = np.asarray(size, dtype=np.float64), np.asarray(fewest, dtype=np.float64)
    return _divided(agree * values, n**2 * (values - 1))


def distinct(values: Floats) -> Integers:
    """Count the different values of each row, NaN being none."""
    ordered = np.sort(values, axis=-1)
    return np.asarray((ordered[..., 1:] > ordered[..., :-1]).sum(axis=-1) + np.isfinite(ordered[..., 0]))


# Sums of each group without each member cluster: shape (k, groups, 1 + members), the first being the sums of all.


def _counted(x: Floats, y: Floats, groups: Groups, epsilon: float = 0.0) -> Floats:
    """Return sums over the pairs of each group; pairs within what is left out leave once, not twice."""
    by_place = _sums_by_place(x, y, epsilon)
    gone = 2 * by_place
    ordered = np.sort(groups.member, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        gone = gone - _sums_by_place(x, y, epsilon, groups.member)
    width = 1 + groups.members
    lost = np.zeros((len(x) * width, 5))
    rows, columns = np.nonzero(groups.member >= 0)
    np.add.at(lost, rows * width + 1 + groups.member[rows, columns], gone[:, rows, columns].T)
    return by_place.sum(axis=-1)[..., np.newaxis] - lost.T.reshape(5, len(x), width)


def _anew(x: Floats, groups: Groups, made: Callable[[Floats], Floats]) -> Floats:
    """Return what scores make, with all and, computed anew, without each member cluster."""
    without = [made(np.where(groups.member == cluster, np.nan, x)) for cluster in range(groups.members)]
    return np.stack([made(x), *without], axis=-1)


def _tau_c(x: Floats, y: Floats, groups: Groups, agree: Floats) -> Floats:
    """Return tau_c, which asks how many values each side has: these are counted anew without each cluster."""

    def sizes(scores: Floats) -> Floats:
        both = np.isfinite(scores) & np.isfinite(y)
        fewest = np.minimum(*(distinct(np.where(both, side, np.nan)) for side in (scores, y)))
        return np.stack([both.sum(axis=1), fewest])

    return stuart(agree, *_anew(x, groups, sizes))


def _deviations(x: Floats, y: Floats) -> Floats:
    """Return sums of products and squares of the differences of all pairs of each row, (3, rows), over twice as many."""
    both = np.isfinite(x) & np.isfinite(y)
    size = both.sum(axis=-1)
    sides = []
    for side in (x, y):
        # Less one of the values and then the mean: what does not vary is 0.
        first = np.take_along_axis(side, both.argmax(axis=-1)[..., np.newaxis], axis=-1)
        moved = np.where(both, side - first, 0.0)
        centred = moved - (moved.sum(axis=-1) / np.maximum(size, 1))[..., np.newaxis]
        sides.append(np.where(both, centred, 0.0))
    a, b = sides
    return np.stack([np.vecdot(one, other) * size for one, other in ((a, b), (a, a), (b, b))])


def _pearson(sums: Floats) -> Floats:
    return ratio(sums[0], sums[1], sums[2])


def _spearman(x: Floats, y: Floats, groups: Groups) -> Floats:
    """Return Spearman's coefficient of each group, of metrics that share their ratings: shape (metrics, groups, 1 + members)."""
    rated = np.broadcast_to(y, x.shape)
    whole = rowwise(x.reshape(-1, x.shape[-1]), rated.reshape(-1, x.shape[-1]), "spearman").reshape(x.shape[:-1])
    result = np.repeat(whole[..., np.newaxis], 1 + groups.members, axis=-1)
    for group, member in enumerate(groups.member):
        there = (member >= 0) & np.isfinite(y[group])
        present, codes = np.unique(member[there], return_inverse=True)
        scores = x[:, group, there]
        without = without_each(scores, y[group, there], codes, "spearman")
        # Where a metric has no score of a cluster, nothing is left out.
        has = np.zeros(without.shape, dtype=np.bool_)
        np.logical_or.at(has.T, codes, np.isfinite(scores).T)
        result[:, group, 1 + present] = np.where(has, without, result[:, group, 1 + present])
    return result


def replicates(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    measures: Sequence[Measure],
    grouping: Grouping,
    *,
    resamples: int = 1000,
    seed: int = 2024,
) -> dict[Measure, Replicates]:
    """Return statistics of each metric, and what they would be without each system and each dialogue.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,); scores NaN where missing, which leaves the unit out.
    design
        Systems and dialogues of the units.
    items
        Shape (n,), codes from 0 on: the context, or dialogue, that a unit answers.
    measures
        Any of ``MEASURES``. ``spa`` is of systems only (``pooled``). ``pairwise_pearson`` takes all pairs within groups
        together; every other statistic is computed within each group, and averaged over those where it is defined. One
        epsilon of ``acc_eq`` serves all groups, and stays what it is on all data where clusters are left out.
    grouping
        ``item``: over the systems of each item; ``system``: over the items of each system; ``pooled``: over the means of
        systems, which takes dialogues as given.
    resamples, seed
        Of the permutations inside ``spa``.

    Raises
    ------
    ValueError
        For shapes that do not fit, or ``spa`` of anything but systems.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] == len(human) == len(items) == len(design.systems):
        raise ValueError(f"expected (metrics, n) and n ratings, items and units, got {table.shape} and {human.shape}")
    if "spa" in measures and grouping != "pooled":
        raise ValueError("soft pairwise accuracy compares systems: expected the grouping pooled")
    groups = Groups.of(design, items, grouping)
    ranks: list[Floats] = []
    if grouping == "pooled":
        means, rated = paired_means(table, human, design)
        x, y = means[:, np.newaxis], rated[:, np.newaxis]
        if "spearman" in measures:
            ranks = [_spearman(x[row : row + 1], y[row], groups)[0] for row in range(len(x))]
    else:
        x, of_one = groups.laid_out(merge_ties(table)), groups.laid_out(merge_ties(human))
        y = np.broadcast_to(of_one, x.shape)
        ranks = list(_spearman(x, of_one, groups)) if "spearman" in measures else []
    result: dict[Measure, list[_Parts]] = {measure: [] for measure in measures if measure != "spa"}
    for row, (a, b) in enumerate(zip(x, y, strict=True)):
        counted = cache(lambda a=a, b=b: _counted(a, b, groups))
        # Anew without a cluster, since it may have nearly all of the variance.
        products = cache(lambda a=a, b=b: _anew(a, groups, lambda left: _deviations(left, b)))
        for measure, parts in result.items():
            epsilon = np.nan
            if measure == "pairwise_pearson":
                parts.append(_combined(products(), groups, _pearson))
                continue
            if measure == "spearman":
                values = ranks[row]
            elif measure == "tau_c":
                values = _tau_c(a, b, groups, counted()[0])
            elif measure == "pearson":
                values = _pearson(products())
            else:
                epsilon = best_epsilon(a, b) if measure == "acc_eq" else epsilon
                values = _OF_SUMS[measure](_counted(a, b, groups, epsilon) if epsilon > 0 else counted())
            defined = np.stack([np.nan_to_num(values), np.isfinite(values)])
            parts.append(_combined(defined, groups, lambda of: _divided(*of), epsilon))
    made = {measure: _joined(parts, groups) for measure, parts in result.items()}
    if grouping == "pooled":
        made = {measure: _with_residuals(of, measure, x[:, 0], y[:, 0]) for measure, of in made.items()}
    if "spa" in measures:
        made["spa"] = _soft(table, human, design, items, resamples, seed)
    return {measure: made[measure] for measure in measures}


class _Parts(NamedTuple):
    """Of one metric: the value, without each member cluster, each outer one, and each member of an outer one."""

    value: float
    members: Floats
    outers: Floats
    cells: Floats
    n: int
    epsilon: float = np.nan


def _combined(sums: Floats, groups: Groups, made: Callable[[Floats], Floats], epsilon: float = np.nan) -> _Parts:
    """Make one value of sums over groups, (k, groups, 1 + members); a group without any of the last of the k does not count."""
    value, *members = made(sums.sum(axis=1)).tolist()
    count = int((sums[1:, :, 0].min(axis=0) > 0).sum())
    outers = cells = np.empty(0)
    if groups.outers:
        by_outer = np.zeros((groups.outers, len(sums), 1 + groups.members))
        np.add.at(by_outer, groups.outer, sums.transpose(1, 0, 2))
        # Not the whole less each one, which loses the digits of small ones beside a large one.
        rest = np.zeros(by_outer.shape[:2])
        rest[1:] += np.cumsum(by_outer[:-1, :, 0], axis=0)
        rest[:-1] += np.cumsum(by_outer[:0:-1, :, 0], axis=0)[::-1]
        outer, member = groups.cells
        outers, cells = made(rest.T), made((rest[outer] + by_outer[outer, :, 1 + member]).T)
    return _Parts(value, np.array(members), outers, cells, count, epsilon)


def _joined(parts: Sequence[_Parts], groups: Groups) -> Replicates:
    columns = zip(*parts, strict=True) if parts else iter([()] * len(_Parts._fields))
    values, *clusters, n, epsilon = map(list, columns)
    members, outers, cells = (np.stack(side) if side else np.empty((0, 0)) for side in clusters)
    systems, dialogues = (members, outers) if groups.by_item or not groups.outers else (outers, members)
    return Replicates(np.array(values), systems, dialogues, cells, np.array(n, dtype=np.intp), np.array(epsilon))


def _with_residuals(made: Replicates, measure: Measure, x: Floats, y: Floats) -> Replicates:
    """Add how many systems there are, and what single pairs of them say where the statistic is a mean over pairs."""
    made = replace(made, n=np.isfinite(x).sum(axis=1))
    if measure not in ("accuracy", "acc_eq", "tau_23") or x.shape[1] < FEWEST_SAMPLED or not np.isfinite(x).all():
        return made
    epsilon = np.zeros(len(x)) if made.epsilon is None else np.nan_to_num(made.epsilon)
    same = [pair_signs(a, float(slack)) == pair_signs(b, 0.0) for a, b, slack in zip(x, y, epsilon, strict=True)]
    # tau_23 goes from -1 to 1, and so do its pairs.
    return replace(made, residuals=residuals_of(same) * (2 if measure == "tau_23" else 1)) if same else made


def of_rows(x: Floats, y: Floats, measure: Measure) -> Floats:
    """Return a statistic of scores and ratings laid out by group: shapes (samples, groups, places) to (samples,)."""
    rows = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    if measure == "spearman":
        return mean(rowwise(*rows, "spearman").reshape(x.shape[:-1]), axis=1)
    if measure in ("pearson", "pairwise_pearson"):
        sums = _deviations(x, y)
        return _pearson(sums.sum(axis=2)) if measure == "pairwise_pearson" else mean(_pearson(sums), axis=1)
    sums = _sums_by_place(*rows).sum(axis=-1)
    if measure == "tau_c":
        both = np.isfinite(rows[0]) & np.isfinite(rows[1])
        fewest = np.minimum(*(distinct(np.where(both, side, np.nan)) for side in rows))
        values = stuart(sums[0], both.sum(axis=1), fewest)
    else:
        values = _OF_SUMS[measure](sums)
    return mean(values.reshape(x.shape[:-1]), axis=1)


def best_epsilon(x: Floats, y: Floats) -> float:
    """Return the threshold of a tie of scores with the highest acc_eq, averaged over groups; the smallest of several.

    Scores that differ by it or less are tied, ratings only when equal. While it grows, pairs become tied one after the
    other. Only those matter whose answer turns from right to wrong or back; the best threshold is 0 or the difference of
    such a pair. NaN without a pair.

    Parameters
    ----------
    x, y
        Scores and ratings laid out by group, shape (groups, places), NaN where missing; differences by rounding merged.
    """
    i, j = np.triu_indices(x.shape[1], 1)
    gaps, slacks, gains = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    pairs = 0
    for part in blocks(len(x), len(i)):
        a, b = x[part], y[part]
        there = np.isfinite(a) & np.isfinite(b)
        a, b = (np.where(there, side, np.nan) for side in (a, b))
        own = there.sum(axis=1) * (there.sum(axis=1) - 1) // 2
        first, other = a[:, i], a[:, j]
        tied = b[:, i] == b[:, j]
        gain = tied.astype(np.int8) - (signs_of(first, other) == signs_of(b[:, i], b[:, j]))
        turns = np.nonzero((gain != 0) & np.isfinite(first) & np.isfinite(other))
        first, other = first[turns], other[turns]
        gaps.append(np.abs(first - other))
        slacks.append(TIED * np.maximum(np.abs(first), np.abs(other)))
        gains.append(gain[turns] / own[turns[0]])
        pairs += int((own > 0).sum())
    if not pairs:
        return float("nan")
    gap, slack, gain = (np.concatenate(side) for side in (gaps, slacks, gains))
    order = np.argsort(gap, kind="stable")
    gap, slack, gained = gap[order], slack[order], np.cumsum(gain[order])
    # Pairs of the same difference become tied together.
    last = np.append(gap[1:] - gap[:-1] > np.maximum(slack[1:], slack[:-1]), True)[: len(gap)]
    thresholds, gained = np.append(0.0, gap[last]), np.append(0.0, gained[last])
    return float(thresholds[np.argmax(gained >= gained.max() - _ROUNDING * pairs)])


# Soft pairwise accuracy


def sign_flips(items: int, resamples: int, seed: int) -> Floats:
    """Return random signs, shape (resamples, items), -1 or 1: what the permutation tests of all pairs share."""
    return np.where(np.random.default_rng(seed).integers(0, 2, size=(resamples, items)) == 1, 1.0, -1.0)


def system_matrix(values: Floats, systems: Integers, items: Integers) -> Floats:
    """Return the mean value of each system on each item: shape (systems, items), NaN where there is none."""
    shape = int(systems.max()) + 1, int(items.max()) + 1
    there = ~np.isnan(values)
    return group_means(values[there], (systems * shape[1] + items)[there], shape[0] * shape[1]).reshape(shape)


def p_better(first: Floats, second: Floats, signs: Floats) -> Floats:
    """Return one-sided p-values of "a row of first is better than a row of second" from paired permutation tests.

    Exchanging two systems on an item turns the sign of its difference. p is the share of sign flips whose sum of differences
    reaches the observed one; as in the paper, the observed one is not added to them.

    Parameters
    ----------
    first, second
        Shape (systems, items), NaN where there is no value; two systems are compared on the items that both have.
    signs
        Shape (resamples, items), from :func:`sign_flips`; the same for people and every metric.

    Returns
    -------
    array
        Shape (systems, systems), for row < column; NaN elsewhere, and for pairs with no item in common.
    """
    complete = not (np.isnan(first).any() or np.isnan(second).any())
    flipped, others = (first @ signs.T, second @ signs.T) if complete else (first, second)
    result = np.full((len(first), len(first)), np.nan)
    for row in range(len(first) - 1):
        rest = slice(row + 1, None)
        apart = first[row] - second[rest]
        common = ~np.isnan(apart)
        apart[~common] = 0.0
        least = apart.sum(axis=1) - _ROUNDING * np.abs(apart).sum(axis=1)
        drawn = flipped[row] - others[rest] if complete else apart @ signs.T
        result[row, rest] = np.where(common.any(axis=1), np.mean(drawn >= least[:, np.newaxis], axis=1), np.nan)
    return result


def _soft(table: Floats, human: Floats, design: Design, items: Integers, resamples: int, seed: int) -> Replicates:
    """Return soft pairwise accuracies: the p-values of pairs take items as drawn, leaving out takes systems so."""
    signs = sign_flips(int(items.max()) + 1, resamples, seed)

    def of(values: Floats, missing: Flags) -> Floats:
        matrix = system_matrix(np.where(missing, np.nan, values), design.systems, items)
        return p_better(matrix, matrix, signs)

    known: dict[bytes, Floats] = {}
    parts, shares, every = [], [], True
    above = np.triu_indices(design.counts[0], 1)
    for row in table:
        missing = np.isnan(row) | np.isnan(human)
        if (key := missing.tobytes()) not in known:
            known[key] = of(human, missing)
        agree = 1 - np.abs(of(row, missing) - known[key])
        there = np.isfinite(agree)
        agree = np.where(there, agree, 0.0)
        shares.append(agree + agree.T)
        every &= bool(there[above].all())
        sums, counts = (part.sum(axis=0) + part.sum(axis=1) for part in (agree, there.astype(np.float64)))
        without = _divided(agree.sum() - sums, there.sum() - counts)
        value = float(_divided(agree.sum(), there.sum()))
        parts.append(_Parts(value, without, np.empty(0), np.empty(0), int((counts > 0).sum())))
    made = _joined(parts, Groups.of(design, items, "pooled"))
    residuals = residuals_of(shares) if shares and every and design.counts[0] >= FEWEST_SAMPLED else None
    return replace(made, residuals=residuals)
