"""Agreement of metrics with ratings within groups of units, from pairs of these units.

A group is an item (a context or dialogue answered by several systems), a system (all its items), or the means of all systems.
Sums without a system or dialogue are total sums minus those of its pairs, so leaving out each one costs little more than the
statistic.

Sources: tau_c: Stuart 1953. tau_23, acc_eq: Deutsch, Foster and Freitag 2023 (arXiv 2305.14324). Pairwise accuracy: Kocmi et
al. 2021 (arXiv 2107.10821). Soft pairwise accuracy: Thompson et al. 2024 (arXiv 2409.09598). All as in mt-metrics-eval;
tests/unit/test_wmt_loops.py computes them pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient, Measure
from comperdial.stats.coefficients import blocks, over_clusters, ratio
from comperdial.stats.correlation import rowwise, signs_of
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers, codes_of
from comperdial.stats.jackknife import Replicates, residuals_of
from comperdial.stats.means import TIED, group_means, merge_ties, paired_means

Grouping = Literal["item", "system", "pooled"]
# Relative difference of two sums of the same terms in another order is below this share of their absolute sum.
_ROUNDING = 1e-11


def within_items(scores: Floats, ratings: Floats, items: Integers, name: Coefficient) -> tuple[Floats, Integers]:
    """Return the mean correlation within items, and the number of items that count: (metrics,) each.

    The pooled correlation mixes item difficulty with response quality; this measures only the latter. Shapes: ``scores``
    (metrics, n), ``ratings`` and ``items`` (n,); NaN if missing. Items with an undefined coefficient are ignored, as in
    mt-metrics-eval: counting 0 would punish a metric for pairs that people could not separate either.
    """
    units = units_of(codes_of(items))
    place = np.full((len(units), max(map(len, units))), -1, dtype=np.intp)
    for row, own in enumerate(units):
        place[row, : len(own)] = own
    x, y = np.broadcast_arrays(*(np.where(place >= 0, side[..., place], np.nan) for side in (scores, ratings)))
    result = rowwise(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]), name).reshape(x.shape[:-1])
    defined = np.isfinite(result)
    return _divided(np.where(defined, result, 0.0).sum(axis=1), defined.sum(axis=1)), defined.sum(axis=1)


def units_of(codes: Integers) -> list[Integers]:
    """Return the units of each code."""
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])


def _divided(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=np.greater(b, 0))


@dataclass(frozen=True)
class Pairs:
    """Pairs of units within groups, each pair once: arrays of shape (pairs,)."""

    first: Integers
    second: Integers
    group: Integers

    @classmethod
    def of(cls, groups: Integers) -> Pairs:
        """Pair the units of each group: shape (n,), codes from 0."""
        first, second = np.concatenate(
            [own[np.array(np.triu_indices(len(own), 1))] for own in units_of(groups)], axis=1
        )
        return cls(first, second, groups[first])

    def among(self, units: Flags) -> Pairs:
        """Return the pairs among some of the units."""
        both = units[self.first] & units[self.second]
        return self if both.all() else Pairs(self.first[both], self.second[both], self.group[both])

    def signs(self, values: Floats, epsilon: float = 0.0) -> npt.NDArray[np.int8]:
        """Return 1 if the first of a pair is higher, -1 if it is lower; 0 if they differ by at most epsilon."""
        return _signs(values[self.first], values[self.second], epsilon)


def pair_signs(values: Floats, epsilon: Floats | float = 0.0) -> npt.NDArray[np.int8]:
    """Return the signs of all pairs of units, as in :meth:`Pairs.signs`: shape (..., n, n)."""
    return _signs(values[..., :, np.newaxis], values[..., np.newaxis, :], epsilon)


def _signs(one: Floats, other: Floats, epsilon: Floats | float) -> npt.NDArray[np.int8]:
    if not np.any(epsilon):
        return signs_of(one, other)
    apart, slack = one - other, epsilon + TIED * np.maximum(np.abs(one), np.abs(other))
    return (apart > slack).view(np.int8) - (apart < -slack).view(np.int8)


def best_epsilon(scores: Floats, ratings: Floats, pairs: Pairs) -> float:
    """Return the tie threshold of scores, (n,), with the highest acc_eq averaged over groups; the smallest if several.

    Scores that differ by at most the threshold are tied, ratings only if equal; both are NaN if missing. As the threshold
    grows, pairs become tied one after another, so the best one is 0 or the difference of a pair whose correctness changes. NaN
    without pairs.
    """
    pairs = pairs.among(np.isfinite(scores) & np.isfinite(ratings))
    sizes = np.bincount(pairs.group)
    rated = pairs.signs(ratings)
    # Change in correctness if the scores were tied.
    gain = (rated == 0).view(np.int8) - (pairs.signs(scores) == rated).view(np.int8)
    turns = np.flatnonzero(gain)
    one, other = scores[pairs.first[turns]], scores[pairs.second[turns]]
    gap, slack = np.abs(one - other), TIED * np.maximum(np.abs(one), np.abs(other))
    order = np.argsort(gap)
    gap, slack = gap[order], slack[order]
    gained = np.cumsum((gain[turns] / sizes[pairs.group[turns]])[order])
    # Pairs with equal differences become tied together.
    last = np.append(gap[1:] - gap[:-1] > np.maximum(slack[1:], slack[:-1]), True)[: len(gap)]
    thresholds, gained = np.append(0.0, gap[last]), np.append(0.0, gained[last])
    best = thresholds[np.argmax(gained >= gained.max() - _ROUNDING * len(sizes))]
    return float(best) if len(sizes) else float("nan")


@dataclass(frozen=True)
class Groups:
    """Units by group, and the clusters to leave out.

    ``group`` and ``member``, of shape (n,), are each unit's group and the cluster that crosses groups: the system within an
    item, the dialogue within a system. ``outer``, (groups,), is the cluster that contains whole groups: an item's dialogue, or
    the system itself; empty for none. ``cells`` are the outer and the member cluster of each dialogue of a system, in order of
    system, then dialogue. ``by_item``: members are systems.
    """

    group: Integers
    member: Integers
    outer: Integers
    cells: tuple[Integers, Integers]
    by_item: bool = False

    @classmethod
    def of(cls, design: Design, items: Integers, grouping: Grouping) -> Groups:
        """Group the units of a design, each belonging to an item; ``pooled`` has one group, the system means."""
        systems, dialogues = design.counts
        none = np.empty(0, dtype=np.intp)
        if grouping == "pooled":
            return cls(np.zeros(systems, dtype=np.intp), np.arange(systems, dtype=np.intp), none, (none, none))
        by_item = grouping == "item"
        inner, outer = (design.systems, design.dialogues) if by_item else (design.dialogues, design.systems)
        group = codes_of(items if by_item else design.systems)
        system, dialogue = np.divmod(np.unique(design.systems * dialogues + design.dialogues), dialogues)
        cells = (dialogue, system) if by_item else (system, dialogue)
        return cls(group, inner, outer[np.unique(group, return_index=True)[1]], cells, by_item)

    @cached_property
    def units(self) -> list[Integers]:
        """Return the units of each group."""
        return units_of(self.group)

    @cached_property
    def pairs(self) -> Pairs:
        """Return all pairs."""
        return Pairs.of(self.group)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of tables of groups by what is left out: nothing, then each member."""
        return int(self.group.max()) + 1, int(self.member.max()) + 2


# For one group and metrics that share their ratings, with all members and without each one: shape (metrics, 1 + members).


def _coefficient(x: Floats, y: Floats, members: Integers, measure: Measure, epsilon: Floats) -> Floats:
    """Return any statistic except ``pairwise_pearson``."""
    if measure == "pearson":
        return ratio(*_products(x, y, members))
    if measure == "spearman":
        weights = np.vstack([np.ones(members.max() + 1), 1 - np.eye(members.max() + 1)])
        return over_clusters(x, y, members, weights, ["spearman"])[:, :, 0].T
    return _of_pairs(x, y, members, measure, epsilon)


def _products(x: Floats, y: Floats, members: Integers) -> Floats:
    """Sum products and squares of pair differences: shape (3, metrics, 1 + members).

    Recomputed without each member, since one may contribute nearly all of the variance.
    """
    kept = np.arange(-1, members.max() + 1)[:, np.newaxis] != members
    there = kept & (np.isfinite(x) & np.isfinite(y))[:, np.newaxis]
    n, centred = there.sum(axis=2), []
    for side in (x[:, np.newaxis], y):
        # Subtract one of the values, then the mean, so that a constant becomes exactly 0.
        values = np.where(there, side, np.nan)
        values = np.where(there, values - np.fmax.reduce(values, axis=2, keepdims=True), 0.0)
        means = values.sum(axis=2) / np.maximum(n, 1)
        centred.append(np.where(there, values - means[..., np.newaxis], 0.0))
    a, b = centred
    return n * np.stack([np.vecdot(a, b), np.vecdot(a, a), np.vecdot(b, b)])


def _of_pairs(x: Floats, y: Floats, members: Integers, measure: Measure, epsilon: Floats) -> Floats:
    """Return a statistic based on counts of pairs."""
    there = np.isfinite(x) & np.isfinite(y)
    x, y = np.where(there, x, np.nan), y[np.newaxis] if there.all() else np.where(there, y, np.nan)
    together = members[:, np.newaxis] == members
    own = (members[:, np.newaxis] == np.arange(members.max() + 1)).astype(np.float64)

    def summed(of_units: npt.NDArray[Any], gone: npt.NDArray[Any]) -> Floats:
        """Sum over units: the total, and the total without each member's units."""
        total = of_units.sum(axis=1, keepdims=True)
        return np.hstack([total, total - gone @ own])

    def counted(pairs: npt.NDArray[Any]) -> Floats:
        """Sum over pairs, each counted twice; a pair within a member is subtracted once."""
        of_units = pairs.sum(axis=2, dtype=np.int32)
        twice = (pairs * together).sum(axis=2, dtype=np.int32) if own.shape[1] < len(members) else 0
        return summed(of_units, 2 * of_units - twice)

    def distinct(values: Floats) -> Floats:
        """Count distinct values; without a member, minus those that only it has."""
        alike = values[..., :, np.newaxis] == values[..., np.newaxis, :]
        share = 1 / np.maximum(alike.sum(axis=2), 1) * there
        return np.rint(summed(share, share * ~(alike & ~together).any(axis=2)))

    scored, rated, n = pair_signs(x, epsilon[:, np.newaxis, np.newaxis]), pair_signs(y), summed(there, there)
    if measure == "kendall":
        return ratio(counted(scored * rated), counted(scored * scored), counted(rated * rated))
    if measure == "tau_c":
        fewest = np.minimum(distinct(x), distinct(y))
        return _divided(counted(scored * rated) * fewest, n**2 * (fewest - 1))
    share = _divided(n * (n - 1) - counted(scored != rated), n * (n - 1))
    return 2 * share - 1 if measure == "tau_23" else share


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
    """Return statistics of each metric, and their values without each system and each dialogue.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,); scores NaN if missing, which drops the unit.
    design
        Systems and dialogues of the units.
    items
        Shape (n,), codes from 0: the context, or dialogue, of each unit.
    measures
        Any of ``MEASURES``. ``spa`` is only for systems (``pooled``). ``pairwise_pearson`` pools all pairs within groups; other
        statistics are computed per group, and averaged over the groups where they are defined. ``acc_eq`` has one epsilon for
        all groups, which is kept when clusters are left out.
    grouping
        ``item``: over the systems of each item; ``system``: over the items of each system; ``pooled``: over system means, with
        fixed dialogues.
    resamples, seed
        For the permutations in ``spa``.

    Raises
    ------
    ValueError
        If shapes do not match, or for ``spa`` of anything but systems.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] == len(human) == len(items) == len(design.systems):
        raise ValueError(f"expected (metrics, n) and n ratings, items and units, got {table.shape} and {human.shape}")
    pooled, groups = grouping == "pooled", Groups.of(design, items, grouping)
    if "spa" in measures and not pooled:
        raise ValueError("soft pairwise accuracy compares systems: expected the grouping pooled")
    # Mean ratings are over the units that a metric scored.
    x, y = paired_means(table, human, design) if pooled else (merge_ties(table), merge_ties(human)[np.newaxis])
    y = np.broadcast_to(y, x.shape)
    result: dict[Measure, Replicates] = {}
    for measure in measures:
        epsilon = np.zeros(len(x))
        if measure == "acc_eq":
            epsilon = np.array([best_epsilon(*sides, groups.pairs) for sides in zip(x, y, strict=True)])
        if measure == "spa":
            made = _over_pairs(_soft(table, human, design, items, resamples, seed))
        elif pooled and measure in ("accuracy", "tau_23", "acc_eq"):
            alike = _alike(x, y, epsilon)
            made = _over_pairs(2 * alike - 1 if measure == "tau_23" else alike)
        else:
            made = _over_groups(groups, x, y, measure, epsilon)
        result[measure] = replace(made, n=np.isfinite(x).sum(axis=1)) if pooled and measure != "spa" else made
    return result


def _over_groups(groups: Groups, x: Floats, y: Floats, measure: Measure, epsilon: Floats) -> Replicates:
    """Return a statistic of each metric over all groups, and without each cluster."""
    # Sums over groups: of values and their counts, or of products and squares for a single pooled value.
    together = measure == "pairwise_pearson"
    sums = np.zeros((3 if together else 2, len(x), *groups.shape))
    for group, units in enumerate(groups.units):
        members, codes = np.unique(groups.member[units], return_inverse=True)
        # Over system means, each metric has its own ratings; for large groups, only few metrics fit into memory.
        for part in blocks(len(x), len(units) ** 2 if len(groups.outer) else 2**40):
            sides = x[part, units], y[part.start, units], codes
            if together:
                values = _products(*sides)
            else:
                value = _coefficient(*sides, measure, epsilon[part])
                values = np.stack([np.nan_to_num(value), np.isfinite(value)])
            sums[:, part, group] = values[..., :1]
            sums[:, part, group, 1 + members] = values[..., 1:]
    made = (lambda of: ratio(*of)) if together else (lambda of: _divided(*of))
    values, count = made(sums.sum(axis=2)), (sums[1:, :, :, 0].min(axis=0) > 0).sum(axis=1)
    if not len(groups.outer):
        none = np.empty((len(values), 0))
        return Replicates(values[:, 0], values[:, 1:], none, none, count)
    by_outer = np.zeros((int(groups.outer.max()) + 1, *sums.shape[:2], sums.shape[3]))
    np.add.at(by_outer, groups.outer, np.moveaxis(sums, 2, 0))
    # Do not subtract each from the total, which would lose the digits of small terms.
    rest = np.zeros(by_outer.shape[:3])
    rest[1:] += np.cumsum(by_outer[:-1, ..., 0], axis=0)
    rest[:-1] += np.cumsum(by_outer[:0:-1, ..., 0], axis=0)[::-1]
    outer, member = groups.cells
    outers, cells = (made(np.moveaxis(part, 0, -1)) for part in (rest, rest[outer] + by_outer[outer, ..., 1 + member]))
    without = (values[:, 1:], outers) if groups.by_item else (outers, values[:, 1:])
    return Replicates(values[:, 0], *without, cells, count)


# Means over pairs of systems, given values of pairs: shape (metrics, systems, systems), symmetric, NaN if missing.


def _over_pairs(values: Floats) -> Replicates:
    """Return the means over pairs of systems, and without each system."""
    there, systems = np.isfinite(values), values.shape[-1]
    sums, counts = np.where(there, values, 0.0).sum(axis=-1), there.sum(axis=-1)
    total, pairs = sums.sum(axis=-1, keepdims=True), counts.sum(axis=-1, keepdims=True)
    complete = len(values) and systems >= FEWEST_SAMPLED and (pairs == systems * (systems - 1)).all()
    none = np.empty((len(values), 0))
    return Replicates(
        _divided(total, pairs)[:, 0], _divided(total - 2 * sums, pairs - 2 * counts), none, none,
        (counts > 0).sum(axis=-1), residuals=residuals_of(values) if complete else None,
    )  # fmt: skip


def _alike(x: Floats, y: Floats, epsilon: Floats) -> Floats:
    """Return 1 if a metric orders two systems as people do, else 0."""
    there = np.isfinite(x) & np.isfinite(y)
    both = there[:, :, np.newaxis] & there[:, np.newaxis, :] & ~np.eye(x.shape[1], dtype=np.bool_)
    return np.where(both, pair_signs(x, epsilon[:, np.newaxis, np.newaxis]) == pair_signs(y), np.nan)


def sign_flips(items: int, resamples: int, seed: int) -> Floats:
    """Return random signs, shape (resamples, items), shared by the permutation tests of all pairs."""
    return np.where(np.random.default_rng(seed).integers(0, 2, size=(resamples, items)) == 1, 1.0, -1.0)


def system_matrix(values: Floats, systems: Integers, items: Integers) -> Floats:
    """Return the mean value of each system on each item: shape (systems, items), NaN if missing."""
    shape = int(systems.max()) + 1, int(items.max()) + 1
    there = ~np.isnan(values)
    return group_means(values[there], (systems * shape[1] + items)[there], shape[0] * shape[1]).reshape(shape)


def p_better(first: Floats, second: Floats, signs: Floats) -> Floats:
    """Return one-sided p-values of "a row of first is better than a row of second" from paired permutation tests.

    Rows are systems, columns items, NaN if missing; two systems are compared on their common items. Exchanging them on an item
    flips the sign of its difference. p is the share of ``signs``, from :func:`sign_flips`, for which the sum of differences
    reaches the observed one; as in the paper, the observed one is not included. The result, (systems, systems), is for row <
    column; NaN elsewhere, and for pairs without common items.
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


def _soft(table: Floats, human: Floats, design: Design, items: Integers, resamples: int, seed: int) -> Floats:
    """Return the similarity of metrics' and people's p-values over pairs of systems; 1 if equal."""
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    of_ratings: dict[bytes, Floats] = {}
    result = np.empty((len(table), *(design.counts[:1] * 2)))
    for near, row in zip(result, table, strict=True):
        missing = np.isnan(row) | np.isnan(human)

        def p(values: Floats, missing: Flags = missing) -> Floats:
            matrix = system_matrix(np.where(missing, np.nan, values), design.systems, items)
            return p_better(matrix, matrix, signs)

        key = missing.tobytes()
        of_ratings[key] = of_ratings[key] if key in of_ratings else p(human)
        upper = 1 - np.abs(p(row) - of_ratings[key])
        near[:] = np.fmax(upper, upper.T)
    return result
