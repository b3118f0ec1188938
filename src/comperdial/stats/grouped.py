"""How well metrics agree with ratings within groups of units, and whether two metrics agree equally well.

A group is an item (one context or dialogue, answered by several systems), a system (all its items), or the means of all
systems. Nearly every statistic here is made of pairs of units of one group: Kendall's tau in all its forms, shares of pairs
in the right order, Pearson's r. Sums over pairs without some units follow from sums over the pairs of each unit, so that
leaving out every system and every dialogue in turn costs little more than the statistic itself.

Sources: tau_c: Stuart 1953. tau_23, acc_eq: Deutsch, Foster and Freitag 2023 (arXiv 2305.14324). Pairwise accuracy: Kocmi et
al. 2021 (arXiv 2107.10821). Soft pairwise accuracy: Thompson et al. 2024 (arXiv 2409.09598). All as mt-metrics-eval has them;
benchmarks/wmt.py computes them pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import Coefficient, Measure
from comperdial.stats.comparison import CLOSE, FEWEST, Part, between, cells, left_out, two_way
from comperdial.stats.correlation import places_of, rowwise, signs_of
from comperdial.stats.design import Design
from comperdial.stats.influence import influence
from comperdial.stats.means import TIED, merge_ties, paired_means
from comperdial.stats.pairwise import best_epsilon_by_item, sign_flips, system_matrix, system_p_values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

Grouping = Literal["item", "system", "pooled"]
# Pairs held at a time: 16 MB of each of a few arrays.
_AT_ONCE = 2**21
# And where ranks are made of them: 2 MB, which stay in the cache.
_RANKED = 2**18
# Of sums of squares: below this share of the whole, what is left without a cluster is summed anew.
_LITTLE = 1e-5


@dataclass(frozen=True)
class Replicates:
    """Values of metrics, and what they would be without each system, each dialogue and each dialogue of a system.

    What a cluster's absence does not change is the value itself. An empty array says that such clusters count as given, not
    as drawn from others.

    Attributes
    ----------
    values
        Shape (metrics,); NaN where there is nothing to compare.
    systems, dialogues, cells
        Shape (metrics, clusters): without each of them; cells in order of system, then dialogue.
    n
        Shape (metrics,): groups that the value is the mean of, or the units of the one group.
    epsilon
        Shape (metrics,), of acc_eq: below which difference two scores count as tied.
    beside
        Shape (metrics, pairs of systems), of means over pairs of systems: what a pair adds to what its two systems have in
        all their pairs (:func:`beside`). None where the statistic is no such mean, or a system has no value.
    """

    values: Floats
    systems: Floats
    dialogues: Floats
    cells: Floats
    n: Integers
    epsilon: Floats | None = field(default=None)
    beside: Floats | None = field(default=None)

    def rows(self, chosen: Sequence[int]) -> Replicates:
        """Return those of some of the metrics."""
        at = np.asarray(chosen, dtype=np.intp)
        systems, dialogues, cells = (part[at] for part in (self.systems, self.dialogues, self.cells))
        epsilon, pairs = (None if part is None else part[at] for part in (self.epsilon, self.beside))
        return Replicates(self.values[at], systems, dialogues, cells, self.n[at], epsilon, pairs)

    def with_zero(self) -> Replicates:
        """Return them with one more metric, whose value is always 0: a difference from it is a value by itself."""
        values, systems, dialogues, cells = (
            np.concatenate([part, np.zeros((1, *part.shape[1:]))])
            for part in (self.values, self.systems, self.dialogues, self.cells)
        )
        pairs = None if self.beside is None else np.pad(self.beside, ((0, 1), (0, 0)))
        return Replicates(values, systems, dialogues, cells, self.n, beside=pairs)


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
        group, inner = (items, design.systems) if by_item else (design.systems, design.dialogues)
        codes = np.unique(group, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        unit = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.intp)
        unit[codes[order], place] = order
        member = np.where(unit >= 0, inner[unit], -1)
        first = unit[:, 0] if unit.size else np.empty(0, dtype=np.intp)
        outer = (design.dialogues if by_item else design.systems)[first]
        return cls(unit, member, outer, *((systems, dialogues) if by_item else (dialogues, systems)), by_item)

    def laid_out(self, values: Floats) -> Floats:
        """Return values of units, shape (..., n), in their places; NaN where there is no unit."""
        return np.where(self.unit >= 0, values[..., self.unit], np.nan)


# What is summed over the ordered pairs of some places with all places, shapes (groups, places) to (k, groups, some, places).
Features = Callable[[Floats, Floats, slice], npt.NDArray[np.float32 | np.float64]]
_ALL = slice(None)


def _signs(values: Floats, slack: Floats | float, some: slice = _ALL) -> npt.NDArray[np.int8]:
    apart = values[..., some, np.newaxis] - values[..., np.newaxis, :]
    sizes = np.abs(values)
    allowed = slack + TIED * np.maximum(sizes[..., some, np.newaxis], sizes[..., np.newaxis, :])
    return (apart > allowed).astype(np.int8) - (apart < -allowed).astype(np.int8)


def counts_of_pairs(x: Floats, y: Floats, epsilon: Floats | float = 0.0, some: slice = _ALL) -> npt.NDArray[np.float32]:
    """Return which pairs are concordant, discordant, tied in x alone, in y alone, in both; a place is no pair with itself."""
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):
        a, b = _signs(x, epsilon, some), _signs(y, 0.0, some)
    places = np.arange(x.shape[-1])
    others = places[some, np.newaxis] != places
    there = both[..., some, np.newaxis] & both[..., np.newaxis, :] & others
    right = a * b
    found = (right > 0, right < 0, (a == 0) & (b != 0), (a != 0) & (b == 0), (a == 0) & (b == 0))
    return np.stack([part & there for part in found]).astype(np.float32)


def same_of_pairs(x: Floats, y: Floats, epsilon: Floats | float = 0.0) -> Flags:
    """Return which pairs are concordant or tied in both."""
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):
        same = _signs(x, epsilon) == _signs(y, 0.0)
    others = ~np.eye(x.shape[-1], dtype=np.bool_)
    return np.asarray(same & both[..., np.newaxis] & both[..., np.newaxis, :] & others, dtype=np.bool_)


@dataclass(frozen=True)
class _Counted:
    """Counts of pairs, two scores being tied up to epsilon."""

    epsilon: float = 0.0

    def __call__(self, x: Floats, y: Floats, some: slice) -> npt.NDArray[np.float32]:
        return counts_of_pairs(x, y, self.epsilon, some)


def _products(x: Floats, y: Floats, some: slice = _ALL) -> Floats:
    """Return products and squares of the differences of pairs."""
    both = np.isfinite(x) & np.isfinite(y)
    a, b = (np.where(both, side, np.nan) for side in (x, y))
    da, db = (side[..., some, np.newaxis] - side[..., np.newaxis, :] for side in (a, b))
    return np.nan_to_num(np.stack([da * db, da * da, db * db]))


def _divided(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=b > 0)


def _tau_b(sums: Floats) -> Floats:
    con, dis, tied_x, tied_y, _ = sums
    return _divided(con - dis, np.sqrt((con + dis + tied_x) * (con + dis + tied_y)))


def _tau_23(sums: Floats) -> Floats:
    con, dis, tied_x, tied_y, both = sums
    return _divided(con + both - dis - tied_x - tied_y, sums.sum(axis=0))


def _right(sums: Floats) -> Floats:
    return _divided(sums[0] + sums[4], sums.sum(axis=0))


def _pearson(sums: Floats) -> Floats:
    return np.clip(_divided(sums[0], np.sqrt(sums[1] * sums[2])), -1, 1)


# Of each statistic: what is summed, and what is made of the sums.
_MADE: dict[str, tuple[Features, Callable[[Floats], Floats]]] = {
    "kendall": (_Counted(), _tau_b),
    "tau_23": (_Counted(), _tau_23),
    "accuracy": (_Counted(), _right),
    "acc_eq": (_Counted(), _right),
    "pearson": (_products, _pearson),
    "pairwise_pearson": (_products, _pearson),
}


@dataclass(frozen=True)
class _Sums:
    """Sums over the pairs of each group, (k, groups), and without each member cluster, (k, groups, members)."""

    whole: Floats
    without: Floats


def _sums(features: Features, x: Floats, y: Floats, groups: Groups) -> _Sums:
    count, places = groups.unit.shape
    step = max(1, _AT_ONCE // max(1, places * places))
    whole, without = [], []
    several = _several(groups.member)
    for start in range(0, count, step):
        part = slice(start, start + step)
        member = groups.member[part]
        by_place, inside = _by_place(features, x[part], y[part], member if several else None)
        total = by_place.sum(axis=-1)
        gone = np.zeros((*total.shape, groups.members))
        rows, columns = np.nonzero(member >= 0)
        np.add.at(
            gone.reshape(len(total), -1).T,
            rows * groups.members + member[rows, columns],
            (2 * by_place - inside)[:, rows, columns].T,
        )
        whole.append(total)
        without.append(total[..., np.newaxis] - gone)
    return _Sums(np.concatenate(whole, axis=1), np.concatenate(without, axis=1))


def _by_place(features: Features, x: Floats, y: Floats, member: Integers | None) -> tuple[Floats, Floats]:
    """Return the sums over the pairs of each place, and over those within its cluster, which leave with it once, not twice.

    ``member`` None: every place is a cluster of its own.
    """
    sums = _counts_by_place(x, y, features.epsilon) if isinstance(features, _Counted) else _products_by_place(x, y)
    inside = np.zeros_like(sums)
    if member is not None:
        # The places of a cluster of a group are a group of their own.
        filled = np.flatnonzero(member >= 0)
        row, cluster = filled // member.shape[1], member.reshape(-1)[filled]
        at = places_of(row * (int(member.max(initial=0)) + 1) + cluster)
        place = filled[at]
        of_x, of_y = (np.where(at >= 0, side.reshape(-1)[place], np.nan) for side in (x, y))
        own = _by_place(features, of_x, of_y, None)[0]
        inside.reshape(len(sums), -1)[:, place[at >= 0]] = own[:, at >= 0]
    return sums, inside


def _counts_by_place(x: Floats, y: Floats, epsilon: float) -> Floats:
    """Return the sums of :func:`counts_of_pairs` over the pairs of each place: (5, groups, places)."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = (np.where(both, side, np.nan) for side in (x, y))
    count, places = x.shape
    # Of each place: with how many it differs in x, in y and in both, and how many more it agrees than disagrees with.
    found = np.zeros((4, count, places))
    step = max(1, _RANKED // max(1, places * places))
    rows = max(1, _RANKED // max(1, places))
    for start, first in product(range(0, count, step), range(0, places, rows)):
        part, some = slice(start, start + step), slice(first, first + rows)
        with np.errstate(invalid="ignore"):
            a, b = _signs(x[part], epsilon, some), _signs(y[part], 0.0, some)
        agree = a * b
        for total, pairs in zip(found, (a * a, b * b, agree * agree, agree), strict=True):
            total[part] += _summed(pairs)
    in_x, in_y, in_both, surplus = found
    others = (both.sum(axis=1, keepdims=True) - 1) * both
    return np.stack(
        [
            (in_both + surplus) / 2,
            (in_both - surplus) / 2,
            in_y - in_both,
            in_x - in_both,
            others - in_x - in_y + in_both,
        ]
    )


def _summed(pairs: npt.NDArray[np.int8]) -> Floats:
    """Sum over the second of three axes what is from -1 to 1, as many at a time as bytes hold."""
    total = np.zeros(pairs.shape[::2])
    for start in range(0, pairs.shape[1], 127):
        total += np.add.reduce(pairs[:, start : start + 127], axis=1, dtype=np.int8)
    return total


def _products_by_place(x: Floats, y: Floats) -> Floats:
    """Return the sums of :func:`_products` over the pairs of each place, which follow from sums over places."""
    both = np.isfinite(x) & np.isfinite(y)
    size = both.sum(axis=1, keepdims=True)
    sides = []
    for side in (x, y):
        there = np.where(both, side, np.nan)
        # Less one of the values and then the mean: what does not vary is 0.
        first = there[np.arange(len(there)), both.argmax(axis=1)][:, np.newaxis] if there.size else there
        moved = np.where(both, there - first, 0.0)
        sides.append(np.where(both, moved - moved.sum(axis=1, keepdims=True) / np.maximum(size, 1), 0.0))
    a, b = sides
    found = []
    for one, other in ((a, b), (a, a), (b, b)):
        times = one * other
        crossed = one * other.sum(axis=1, keepdims=True) + other * one.sum(axis=1, keepdims=True)
        found.append(np.where(both, size * times - crossed + times.sum(axis=1, keepdims=True), 0.0))
    return np.stack(found)


def _sums_of_products(x: Floats, y: Floats, groups: Groups) -> _Sums:
    """Return the sums of products and squares of differences.

    A cluster may have nearly all of the variance, such as people among systems that share no word with the reference. What
    is left without it cannot be had by taking it off: those sums are made of the units that are left.
    """
    sums = _sums(_products, x, y, groups)
    whole, without = sums.whole, sums.without.copy()
    little = (without[1:] <= _LITTLE * whole[1:, :, np.newaxis]).any(axis=0)
    varies = np.asarray((whole[1:] > 0).all(axis=0))
    found = np.nonzero(little & varies[:, np.newaxis])
    step = max(1, _AT_ONCE // max(1, x.shape[1] ** 2))
    for start in range(0, len(found[0]), step):
        group, cluster = (codes[start : start + step] for codes in found)
        left = np.where(groups.member[group] == cluster[:, np.newaxis], np.nan, x[group])
        without[:, group, cluster] = _by_place(_products, left, y[group], None)[0].sum(axis=-1)
    return _Sums(whole, without)


def _spearman(x: Floats, y: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """Return the coefficient of each group, and without each member cluster: ranks are made anew."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = (np.where(both, side, np.nan) for side in (x, y))
    whole = rowwise(x, y, "spearman")
    without = np.repeat(whole[:, np.newaxis], groups.members, axis=1)
    count, places = x.shape
    # The places of each group in order of their clusters, those without a unit first.
    order = np.argsort(groups.member, axis=1, kind="stable")
    member = np.take_along_axis(groups.member, order, axis=1)
    x, y = (np.take_along_axis(side, order, axis=1) for side in (x, y))
    if (np.diff(member, axis=1)[member[:, 1:] >= 0] > 0).all():
        step = max(1, _RANKED // max(1, places * places))
        for start in range(0, count, step):
            part = slice(start, start + step)
            found = _ranked_without(x[part], y[part], np.arange(places))
            rows, columns = np.nonzero(member[part] >= 0)
            without[start + rows, member[part][rows, columns]] = found[rows, columns]
        return whole, without
    for row in range(count):
        clusters, first = np.unique(member[row], return_index=True)
        found = _ranked_without(x[row : row + 1], y[row : row + 1], first)[0]
        without[row, clusters[clusters >= 0]] = found[clusters >= 0]
    return whole, without


def _ranked_without(x: Floats, y: Floats, first: Integers) -> Floats:
    """Return Spearman's coefficient of each row without each cluster of places, given the first place of each.

    Twice a rank less the mean rank is the sum of the signs of all differences; those from what is left out are taken off.
    Whole numbers, so that nothing is lost.
    """
    count, places = x.shape
    own = np.repeat(np.arange(len(first)), np.diff([*first, places]))
    sums = np.zeros((3, count, len(first)))
    step = max(1, _RANKED // max(1, count * places))
    for start in range(0, places, step):
        some = slice(start, start + step)
        left = []
        for side in (x, y):
            signs = signs_of(side[:, some, np.newaxis], side[:, np.newaxis, :])
            taken = signs if len(first) == places else np.add.reduceat(signs, first, axis=-1, dtype=np.int32)
            ranks = signs.sum(axis=-1, keepdims=True, dtype=np.float64) - taken
            ranks[:, np.arange(ranks.shape[1]), own[some]] = 0.0
            left.append(ranks)
        for total, (one, other) in zip(sums, ((0, 1), (0, 0), (1, 1)), strict=True):
            total += np.einsum("gic,gic->gc", left[one], left[other])
    return np.clip(_divided(sums[0], np.sqrt(sums[1]) * np.sqrt(sums[2])), -1, 1)


def _tau_c(x: Floats, y: Floats, groups: Groups, sums: _Sums) -> tuple[Floats, Floats]:
    """Return Stuart's tau_c of each group and without each member cluster: it asks how many values there are, too."""
    both = np.isfinite(x) & np.isfinite(y)
    x, y = (np.where(both, side, np.nan) for side in (x, y))
    whole = stuart(x, y, sums.whole)
    without = np.empty(sums.without.shape[1:])
    if not _several(groups.member):
        # Without one place of each group; where a group has no place of a cluster, nothing leaves.
        rows, columns = np.nonzero(groups.member >= 0)
        fewest = np.minimum(*(_distinct_without(side) for side in (x, y)))
        size = both.sum(axis=1, keepdims=True) - both
        without[:] = whole[:, np.newaxis]
        without[rows, groups.member[rows, columns]] = _stuart(
            sums.without[:, rows, groups.member[rows, columns]], size[rows, columns], fewest[rows, columns]
        )
        return whole, without
    for cluster in range(groups.members):
        without[:, cluster] = stuart(np.where(groups.member == cluster, np.nan, x), y, sums.without[..., cluster])
    return whole, without


def _several(member: Integers) -> bool:
    """Say whether any group has two places of a cluster."""
    ordered = np.sort(member, axis=1)
    return bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any())


def stuart(x: Floats, y: Floats, sums: Floats) -> Floats:
    """Return tau_c of rows, given the counts of their ordered pairs: (5, rows)."""
    missing = ~(np.isfinite(x) & np.isfinite(y))
    fewest = np.minimum(*(_distinct(np.where(missing, np.nan, side)) for side in (x, y)))
    return _stuart(sums, (~missing).sum(axis=1), fewest)


def _stuart(sums: Floats, sizes: Integers, fewest: Floats) -> Floats:
    size = sizes.astype(np.float64)
    above = np.asarray((sums[0] - sums[1]) * fewest, dtype=np.float64)
    return _divided(above, np.asarray(size**2 * (fewest - 1), dtype=np.float64))


def _distinct(values: Floats) -> Floats:
    """Count the different values of each row; rounding does not make two of one."""
    ordered = np.sort(values, axis=1)
    return np.asarray(_new(ordered[:, :-1], ordered[:, 1:]).sum(axis=1) + np.isfinite(ordered[:, 0]), dtype=np.float64)


def _new(values: Floats, after: Floats) -> Flags:
    """Say whether a larger value is another than the one before it."""
    with np.errstate(invalid="ignore"):
        return np.asarray(after - values > TIED * np.maximum(np.abs(after), np.abs(values)), dtype=np.bool_)


def _distinct_without(values: Floats) -> Floats:
    """Do what :func:`_distinct` does without each place: its neighbours in order then follow each other."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    new = np.pad(_new(ordered[:, :-1], ordered[:, 1:]), ((0, 0), (1, 1)))
    bridged = np.pad(_new(ordered[:, :-2], ordered[:, 2:]), ((0, 0), (1, 1)))[:, : values.shape[1]]
    there = np.isfinite(ordered)
    kept = new.sum(axis=1, keepdims=True) - new[:, :-1] - new[:, 1:] + bridged
    found = np.empty(values.shape)
    np.put_along_axis(found, order, kept + (there.sum(axis=1, keepdims=True) - there > 0), axis=1)
    return found


def replicates(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    items: Integers,
    measure: Measure,
    grouping: Grouping,
    *,
    resamples: int = 1000,
    seed: int = 2024,
) -> Replicates:
    """Return a statistic of each metric, and what it would be without each system and each dialogue.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,); scores NaN where missing, which leaves the unit out.
    design
        Systems and dialogues of the units.
    items
        Shape (n,), codes from 0 on: the context, or dialogue, that a unit answers.
    measure
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
    return all_replicates(scores, ratings, design, items, [measure], grouping, resamples=resamples, seed=seed)[measure]


def all_replicates(
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
    """Do what :func:`replicates` does for several statistics, which share their sums over pairs."""
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] == len(human) == len(items) == len(design.systems):
        raise ValueError(f"expected (metrics, n) and n ratings, items and units, got {table.shape} and {human.shape}")
    if "spa" in measures and grouping != "pooled":
        raise ValueError("soft pairwise accuracy compares systems: expected the grouping pooled")
    groups = Groups.of(design, items, grouping)
    if grouping == "pooled":
        x, y = paired_means(table, human, design)
        x, y = x[:, np.newaxis], y[:, np.newaxis]
    else:
        x = groups.laid_out(merge_ties(table))
        y = np.broadcast_to(groups.laid_out(merge_ties(human)), x.shape)
    of_pairs = [measure for measure in measures if measure != "spa"]
    found = [_of_metric(a, b, groups, of_pairs) for a, b in zip(x, y, strict=True)]
    made: dict[Measure, Replicates] = {}
    for measure in measures:
        if measure == "spa":
            made[measure] = _soft(table, human, design, items, resamples, seed)
            continue
        parts, epsilon = [one[measure][0] for one in found], np.array([one[measure][1] for one in found])
        made[measure] = _joined(parts, grouping, epsilon)
        if grouping == "pooled":
            made[measure] = _with_pairs(made[measure], measure, x[:, 0], y[:, 0], epsilon)
    return made


def _with_pairs(made: Replicates, measure: Measure, x: Floats, y: Floats, epsilon: Floats) -> Replicates:
    """Add how many systems there are, and what single pairs of them say where the statistic is a mean over pairs."""
    made = replace(made, n=np.isfinite(x).sum(axis=1))
    if measure not in ("accuracy", "acc_eq", "tau_23") or x.shape[1] < FEWEST or not np.isfinite(x).all():
        return made
    same = same_of_pairs(x, y, np.nan_to_num(epsilon)[:, np.newaxis, np.newaxis])
    # tau_23 goes from -1 to 1, and so do its pairs.
    return replace(made, beside=beside(same) * (2 if measure == "tau_23" else 1))


def _of_metric(
    x: Floats, y: Floats, groups: Groups, measures: Sequence[Measure]
) -> dict[Measure, tuple[_Parts, float]]:
    found: dict[Measure, tuple[_Parts, float]] = {}
    counted = cache(lambda: _sums(_Counted(), x, y, groups))
    products = cache(lambda: _sums_of_products(x, y, groups))
    for measure in measures:
        epsilon = np.nan
        if measure in ("spearman", "tau_c"):
            whole, without = _spearman(x, y, groups) if measure == "spearman" else _tau_c(x, y, groups, counted())
        else:
            features, made = _MADE[measure]
            if measure == "acc_eq":
                epsilon = best_epsilon(x, y)
                sums = _sums(_Counted(epsilon), x, y, groups) if epsilon > 0 else counted()
            else:
                sums = products() if features is _products else counted()
            if measure == "pairwise_pearson":
                found[measure] = _of_all_pairs(sums, made, groups), epsilon
                continue
            whole, without = made(sums.whole), made(sums.without)
        found[measure] = _mean_over_groups(whole, without, groups), epsilon
    return found


def of_rows(x: Floats, y: Floats, measure: Measure) -> Floats:
    """Return a statistic of scores and ratings laid out by group: shapes (samples, groups, places) to (samples,)."""
    rows = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    if measure == "spearman":
        return mean(rowwise(*rows, "spearman").reshape(x.shape[:-1]), axis=1)
    features, made = _MADE["kendall" if measure == "tau_c" else measure]
    sums = features(*rows, _ALL).sum(axis=(-2, -1), dtype=np.float64)
    if measure == "pairwise_pearson":
        return made(sums.reshape(-1, *x.shape[:-1]).sum(axis=2))
    values = stuart(*rows, sums) if measure == "tau_c" else made(sums)
    return mean(values.reshape(x.shape[:-1]), axis=1)


def best_epsilon(x: Floats, y: Floats) -> float:
    """Return the calibrated threshold of a tie of scores laid out by group, NaN if there is no pair."""
    group = np.broadcast_to(np.arange(len(x))[:, np.newaxis], x.shape)
    return best_epsilon_by_item(x.ravel(), y.ravel(), group.ravel())


@dataclass(frozen=True)
class _Parts:
    """Of one metric: the value, without each member cluster, each outer one, and each member of an outer one."""

    value: float
    members: Floats
    outers: Floats
    cells: Floats
    n: int


def mean(values: Floats, axis: int | None = None) -> Floats:
    """Return the mean of what is defined; NaN where nothing is."""
    there = np.isfinite(values)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    return _divided(np.asarray(sums, dtype=np.float64), np.asarray(there.sum(axis=axis), dtype=np.float64))


def _cells_of(groups: Groups) -> tuple[Integers, Integers]:
    """Return the outer and the member cluster of each cell, in order of system, then dialogue, as everywhere."""
    rows, columns = np.nonzero(groups.unit >= 0)
    outer, member = groups.outer[rows], groups.member[rows, columns]
    if groups.by_item:
        codes = np.unique(member * groups.outers + outer)
        return codes % max(1, groups.outers), codes // max(1, groups.outers)
    codes = np.unique(outer * groups.members + member)
    return codes // max(1, groups.members), codes % max(1, groups.members)


def _mean_over_groups(whole: Floats, without: Floats, groups: Groups) -> _Parts:
    """Average over groups; ``without`` (groups, members) is the value of a group without each member cluster."""
    there = np.isfinite(whole)
    value, total, count = float(mean(whole)), float(whole[there].sum()), int(there.sum())
    members = mean(without, axis=0)
    if not groups.outers:
        return _Parts(value, members, np.empty(0), np.empty(0), count)
    sums = np.bincount(groups.outer[there], whole[there], minlength=groups.outers).astype(np.float64)
    counts = np.bincount(groups.outer[there], minlength=groups.outers).astype(np.float64)
    outers = _divided(total - sums, count - counts)
    defined = np.isfinite(without)
    sums_without, counts_without = (np.zeros((groups.outers, groups.members)) for _ in range(2))
    np.add.at(sums_without, groups.outer, np.where(defined, without, 0.0))
    np.add.at(counts_without, groups.outer, defined)
    outer, member = _cells_of(groups)
    cells = _divided(
        total - sums[outer] + sums_without[outer, member], count - counts[outer] + counts_without[outer, member]
    )
    return _Parts(value, members, outers, cells, count)


def _of_all_pairs(sums: _Sums, made: Callable[[Floats], Floats], groups: Groups) -> _Parts:
    """Take the pairs of all groups together."""
    whole = sums.whole.sum(axis=1)
    count = int((sums.whole[1:].min(axis=0) > 0).sum())
    value = float(made(whole[:, np.newaxis])[0])
    members = made(sums.without.sum(axis=1))
    if not groups.outers:
        return _Parts(value, members, np.empty(0), np.empty(0), count)
    by_outer, without_by_outer = (
        np.zeros((len(whole), groups.outers)),
        np.zeros((len(whole), groups.outers, groups.members)),
    )
    np.add.at(by_outer.T, groups.outer, sums.whole.T)
    np.add.at(np.moveaxis(without_by_outer, 0, -1), groups.outer, np.moveaxis(sums.without, 0, -1))
    outer, member = _cells_of(groups)
    rest = _others(by_outer)
    cells = made(rest[:, outer] + without_by_outer[:, outer, member])
    return _Parts(value, members, made(rest), cells, count)


def _others(parts: Floats) -> Floats:
    """Return the sum of all columns but each; not by taking it off, which loses the digits of small ones beside a large one."""
    before, after = np.zeros_like(parts), np.zeros_like(parts)
    before[:, 1:] = np.cumsum(parts[:, :-1], axis=1)
    after[:, :-1] = np.cumsum(parts[:, :0:-1], axis=1)[:, ::-1]
    return before + after


def _joined(parts: list[_Parts], grouping: Grouping, epsilon: Floats) -> Replicates:
    members, outers, cells = (
        np.stack([getattr(part, name) for part in parts]) if parts else np.empty((0, 0))
        for name in ("members", "outers", "cells")
    )
    systems, dialogues = (outers, members) if grouping == "system" else (members, outers)
    return Replicates(
        np.array([part.value for part in parts]), systems, dialogues, cells,
        np.array([part.n for part in parts], dtype=np.intp), epsilon,
    )  # fmt: skip


def beside(pairs: npt.ArrayLike) -> Floats:
    """Return what is left of what pairs say when the means of both their systems are taken off.

    Parameters
    ----------
    pairs
        Shape (metrics, systems, systems), symmetric, at least three systems; the diagonal does not matter.

    Returns
    -------
    array
        Shape (metrics, pairs): the residuals of D_ij = mean + h_i + h_j by least squares.
    """
    table = np.array(pairs, dtype=np.float64)
    systems = table.shape[-1]
    table[:, np.arange(systems), np.arange(systems)] = 0
    sums = table.sum(axis=-1)
    own = (sums - sums.mean(axis=-1, keepdims=True)) / (systems - 2)
    middle = sums.sum(axis=-1) / (systems * (systems - 1))
    i, j = np.triu_indices(systems, 1)
    return np.asarray(table[:, i, j] - middle[:, np.newaxis] - own[:, i] - own[:, j])


def _soft(table: Floats, human: Floats, design: Design, items: Integers, resamples: int, seed: int) -> Replicates:
    """Return soft pairwise accuracies: the p-values of pairs take items as drawn, leaving out takes systems so."""
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    known: dict[bytes, Floats] = {}
    parts, shares, every = [], [], True
    above = np.triu_indices(design.counts[0], 1)
    for row in table:
        missing = np.isnan(row) | np.isnan(human)
        if (key := missing.tobytes()) not in known:
            known[key] = system_p_values(system_matrix(np.where(missing, np.nan, human), design.systems, items), signs)
        found = system_p_values(system_matrix(np.where(missing, np.nan, row), design.systems, items), signs)
        agree = 1 - np.abs(found - known[key])
        there = np.isfinite(agree)
        agree = np.where(there, agree, 0.0)
        shares.append(agree + agree.T)
        every &= bool(there[above].all())
        sums, counts = (part.sum(axis=0) + part.sum(axis=1) for part in (agree, there.astype(np.float64)))
        value = float(_divided(np.asarray(agree.sum()), np.asarray(float(there.sum()))))
        without = _divided(agree.sum() - sums, there.sum() - counts)
        parts.append(_Parts(value, without, np.empty(0), np.empty(0), int((counts > 0).sum())))
    made = _joined(parts, "pooled", np.full(len(table), np.nan))
    return replace(made, beside=beside(np.stack(shares))) if shares and every and design.counts[0] >= FEWEST else made


def jackknife(found: Replicates, fewest: int = FEWEST) -> tuple[Floats, str]:
    """Return the two-sided p of the difference of each pair of metrics, and of what clusters it is.

    Student's t with a two-way jackknife variance, as in :func:`comperdial.stats.comparison.jackknife_t`. With few clusters
    systems plus dialogues minus cells is too small, and the larger of the one-way variances, which it cannot be below, too
    large: halfway between them lies what holds its level (docs/validation.md). Clusters of which there are fewer than
    ``fewest`` count as given: without one of three systems little is left to compare.

    Returns
    -------
    tuple
        Shape (metrics, metrics), 1 on the diagonal, NaN where there is no variance; and ``jackknife`` with the clusters.
    """
    parts, named = variances(found, fewest)
    return p_of(found.values, *parts), "|".join(["jackknife", *named])


def variances(found: Replicates, fewest: int = FEWEST) -> tuple[tuple[Part, Part, Part], list[str]]:
    """Return the variances of the differences of pairs over systems, dialogues and cells, and which of them count as drawn.

    Of means over pairs of systems the jackknife counts what pairs have of their own more than twice (Efron and Stein 1981);
    what is too much is taken off, so that the variance is that of a U-statistic without bias, but never less than if pairs
    had nothing else.
    """
    given = np.zeros((len(found.values), len(found.values))), 1
    drawn = {
        name: jackknifed(without)
        for name in ("systems", "dialogues")
        if (without := getattr(found, name)).size and without.shape[1] >= fewest
    }
    if "systems" in drawn and found.beside is not None:
        variance, systems = drawn["systems"]
        of_pairs = between(found.beside) / (systems * (systems - 3) / 2)
        excess = 2 * of_pairs / ((systems - 1) * (systems - 2))
        drawn["systems"] = np.maximum(variance - excess, variance * (systems - 2) / (2 * (systems - 1))), systems
    cells = jackknifed(found.cells) if len(drawn) == 2 else given
    return (drawn.get("systems", given), drawn.get("dialogues", given), cells), [*drawn]


def jackknifed(without: Floats) -> Part:
    """Return the jackknife variances of the differences of pairs, given what each metric is without each cluster."""
    clusters = without.shape[1]
    with np.errstate(invalid="ignore"):
        return between(without - without.mean(axis=1, keepdims=True)) * (clusters - 1) / clusters, clusters


def p_of(values: Floats, systems: Part, dialogues: Part, by_cell: Part) -> Floats:
    """Return the two-sided p of all pairs, given variances by cluster."""
    return student(values[:, np.newaxis] - values, *variance_of(*two_way(systems, dialogues, by_cell)))


def variance_of(parts: Floats, fewest: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the variance of each difference and its degrees of freedom, of what :func:`two_way` returned."""
    systems, dialogues, by_cell, spread = parts
    summed = np.maximum(systems + dialogues - by_cell, 0.0)
    variance = (summed + np.maximum(summed, np.maximum(systems, dialogues))) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return variance, np.maximum(variance**2 / spread, fewest)


def student(difference: Floats, variance: Floats, freedom: Floats) -> Floats:
    """Return the two-sided p of differences; 1 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
    return np.asarray(np.where(np.abs(difference) < CLOSE, 1.0, p))


def of_units(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, name: Coefficient) -> Replicates:
    """Return a coefficient over all units, and what it would be without each cluster; without a cell, by its influence.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing.
    design
        Of the n units; ``average`` is not looked at.
    name
        ``pearson``, ``spearman`` or ``kendall``.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    values, moves = influence(table, human, name)
    codes = cells(design)
    sums = np.stack([np.bincount(codes, row) for row in moves]) / len(human) if len(moves) else np.empty((0, 0))
    clusters = sums.shape[1]
    return Replicates(
        values, left_out(table, human, design.systems, name), left_out(table, human, design.dialogues, name),
        values[:, np.newaxis] - sums * clusters / max(clusters - 1, 1), np.full(len(table), len(human), dtype=np.intp),
    )  # fmt: skip


def weighted(parts: Sequence[tuple[float, Replicates]]) -> Replicates:
    """Return a weighted sum of statistics of the same metrics, units and clusters.

    What counts a kind of cluster as given does not change without one of them. ``n`` is that of the first.
    """

    def summed(name: str) -> Floats:
        widest = max(getattr(found, name).shape[1] for _, found in parts)
        rows = []
        for weight, found in parts:
            without = getattr(found, name)
            rows.append(
                weight * (without if without.shape[1] else np.repeat(found.values[:, np.newaxis], widest, axis=1))
            )
        return np.asarray(np.sum(rows, axis=0))

    values = np.asarray(np.sum([weight * found.values for weight, found in parts], axis=0))
    of_pairs = [weight * found.beside for weight, found in parts if found.beside is not None]
    return Replicates(
        values, summed("systems"), summed("dialogues"), summed("cells"), parts[0][1].n,
        beside=np.sum(of_pairs, axis=0) if of_pairs else None,
    )  # fmt: skip
