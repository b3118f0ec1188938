"""Correlations of resamples of systems and dialogues, computed from integer weights instead of repeated rows.

A resample of systems and dialogues repeats a unit as often as its system was drawn, times as often as its dialogue was.
All coefficients here are those of the repeated rows, exactly: nothing is approximated by working on weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.stats.correlation import signs_of
from comperdial.stats.design import Design, patterns_of
from comperdial.stats.means import merge_ties

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
# Units x resamples held at a time, of each of a few arrays: 4 MB that stay in the cache.
_UNITS = 2**19
# Pairs of systems x resamples, or cells x resamples, at a time.
_SYSTEMS = 2**20
# Units x groups of them that are counted, and cells x resamples at a time.
_SHARED, _CELLS = 2**22, 2**19
# Pairs of cells taken at a time: so many bytes, a few times over, stay in the cache.
_PAIRS = 2**18
# Integers below this are exact as float32.
_EXACT = 2**24
# Where less than this share of the squares about the centre of all units is left of a resample's variance, its sums have
# lost too many digits: it is summed anew about its own centre.
_LITTLE = 1e-6
# What is left of a variance over means of systems that is zero but for rounding: as a share of the largest square.
_ROUNDING_OF_MEANS = 1e-22
# Cells x groups of cells that pairs are summed by, and units of which all pairs are compared; beyond, units are sorted.
_SUMMED, _COMPARED = 2**24, 2**15


@dataclass(frozen=True)
class Weights:
    """How often each system and each dialogue was drawn: shapes (resamples, systems) and (resamples, dialogues).

    ``cells``, shape (resamples, systems, dialogues), is how often a dialogue was drawn for one system by itself. None
    means that this was not resampled; the weight of a unit is the product of the others.
    """

    systems: Floats | None = None
    dialogues: Floats | None = None
    cells: npt.NDArray[np.uint16] | None = None

    @property
    def count(self) -> int:
        """Number of resamples."""
        sides = [len(side) for side in (self.systems, self.dialogues, self.cells) if side is not None]
        return sides[0] if sides else 1

    def rows(self, start: int, stop: int) -> Weights:
        """Return some of the resamples."""
        sides = {field.name: getattr(self, field.name) for field in fields(self)}
        return Weights(**{name: None if side is None else side[start:stop] for name, side in sides.items()})

    def of(self, systems: Integers, dialogues: Integers) -> Floats:
        """Return the weights of units, given their systems and dialogues: shape (units, resamples)."""
        found = np.ones((len(systems), 1)) if self.systems is None else self.systems.T[systems]
        if self.dialogues is not None:
            found = found * self.dialogues.T[dialogues]
        if self.cells is not None:
            found = found * self.cells.transpose(1, 2, 0)[systems, dialogues]
        return found


def weighted(
    scores: Floats, ratings: Floats, design: Design, names: Sequence[str], schemes: Sequence[Weights]
) -> list[Floats]:
    """Return the coefficients of resamples.

    Parameters
    ----------
    scores, ratings, design
        As in :func:`comperdial.stats.intervals.coefficients`.
    names
        Coefficients.
    schemes
        Sets of resamples. What they share, above all the concordance of pairs, is computed once.

    Returns
    -------
    list of array
        For each scheme, shape (resamples, metrics, names); NaN where a resample has no coefficient.
    """
    if design.average:
        return _average_values(scores, ratings, design, names, schemes)
    return _pooled_values(scores, ratings, design, names, schemes)


def _pooled_values(
    scores: Floats, ratings: Floats, design: Design, names: Sequence[str], schemes: Sequence[Weights]
) -> list[Floats]:
    if not len(scores):
        return [np.empty((scheme.count, 0, len(names))) for scheme in schemes]
    units = _Units(scores, ratings, design, names)
    step = max(1, min(64, _UNITS // max(1, len(ratings))))
    found = []
    for scheme in schemes:
        shared = units.shared(scheme)
        pieces = [
            units.piece(scheme.rows(start, start + step), ranked=not shared) for start in range(0, scheme.count, step)
        ]
        found.append(np.concatenate(pieces))
        if shared:
            units.ranked_by_side(*shared, found[-1])
    if "kendall" in names:
        at = list(names).index("kendall")
        for metric, kept in enumerate(units.kept):
            of = (scores[metric, kept], ratings[kept], design.systems[kept], design.dialogues[kept])
            for values, pairs in zip(found, _concordance(*of, schemes), strict=True):
                values[:, metric, at] = np.clip(values[:, metric, at] * pairs, -1, 1)
    return found


class _Units:
    """Units in the orders and sums that every resample needs."""

    def __init__(self, scores: Floats, ratings: Floats, design: Design, names: Sequence[str]) -> None:
        self.design, self.names = design, list(names)
        self.kept = ~np.isnan(scores)
        self.sides = scores, ratings
        self.features: Floats | None = None
        self.columns: list[_Sorted] = []
        if "pearson" in self.names:
            self.cells, codes = np.unique(
                design.systems * (int(design.dialogues.max(initial=0)) + 1) + design.dialogues, return_inverse=True
            )
            self.cell_of = codes
            self.first = np.unique(codes, return_index=True)[1]
            self.features = np.stack([_features(x, ratings, codes, len(self.cells)) for x in scores])
        if "spearman" in self.names or "kendall" in self.names:
            self.rating = _Sorted(ratings)
            self.columns = [_Sorted(x) for x in scores]

    def shared(self, scheme: Weights) -> tuple[Integers, Floats] | None:
        """Return the side of each unit that was resampled, and its weights, where it is one side of not too many."""
        both = scheme.systems is not None and scheme.dialogues is not None
        if not self.columns or both or scheme.cells is not None:
            return None
        codes = self.design.systems if scheme.dialogues is None else self.design.dialogues
        weights = scheme.systems if scheme.dialogues is None else scheme.dialogues
        if weights is None or scheme.count < len(weights.T) or len(codes) * len(weights.T) > _SHARED:
            return None
        return codes, weights.T

    def ranked_by_side(self, codes: Integers, weights: Floats, found: Floats) -> None:
        """Do what :meth:`piece` does for ranks, given the weights of groups of units: shape (groups, resamples).

        Ranks are sums of such weights, and the sum of their products is one over units of a rating and a group: counted
        once, whatever the resamples.
        """
        scores, ratings = self.sides
        for metric, kept in enumerate(self.kept):
            column, rating = (_Counted.of(side[kept], codes[kept], len(weights)) for side in (scores[metric], ratings))
            cells, cell_of = np.unique(rating.level * len(weights) + codes[kept], return_inverse=True)
            order = np.argsort(cell_of, kind="stable")
            starts = np.searchsorted(cell_of[order], np.arange(len(cells)))
            by_cell = np.add.reduceat(column.ranks[column.level[order]], starts, axis=0).T if len(cells) else None
            level, group = np.divmod(cells, len(weights))
            step = max(1, _CELLS // max(1, len(cells), len(column.counts), len(rating.counts)))
            for start in range(0, weights.shape[1], step):
                times = weights[:, start : start + step]
                total = rating.counts.sum(axis=0) @ times
                squares, cubes = zip(*(side.powers(times) for side in (rating, column)), strict=True)
                values = found[start : start + step, metric]
                if "spearman" in self.names and by_cell is not None:
                    spread = np.sqrt((total**3 - cubes[0]) * (total**3 - cubes[1])) / 12
                    product = by_cell @ ((rating.ranks @ times)[level] * times[group])
                    value = _divided(np.einsum("kb,kb->b", times, product), spread)
                    values[:, self.names.index("spearman")] = np.clip(value, -1, 1)
                if "kendall" in self.names:
                    untied = np.sqrt(total**2 - squares[0]) * np.sqrt(total**2 - squares[1])
                    values[:, self.names.index("kendall")] = _divided(np.ones_like(untied), untied)

    def piece(self, weights: Weights, *, ranked: bool) -> Floats:
        """Return the coefficients of a few resamples; of Kendall's, 1 / the root of the two numbers of untied pairs."""
        found = np.full((weights.count, len(self.kept), len(self.names)), np.nan)
        if self.features is not None:
            cells = weights.of(self.design.systems[self.first], self.design.dialogues[self.first])
            values, unsure = _pearson(np.einsum("mkc,cb->kbm", self.features, cells))
            for resample, metric in zip(*np.nonzero(unsure), strict=True):
                kept = self.kept[metric] & (cells[self.cell_of, resample] > 0)
                x, y = self.sides[0][metric, kept], self.sides[1][kept]
                values[resample, metric] = _pearson_of_units(x, y, cells[self.cell_of[kept], resample])
            found[:, :, self.names.index("pearson")] = values
        if self.columns and ranked:
            self._ranked(weights.of(self.design.systems, self.design.dialogues), found)
        return found

    def _ranked(self, every: Floats, found: Floats) -> None:
        shared = self.rating.ranks(every)
        for metric, column in enumerate(self.columns):
            kept = self.kept[metric]
            weights = every if kept.all() else every * kept[:, np.newaxis]
            rating = shared if kept.all() else self.rating.ranks(weights)
            total = weights.sum(axis=0)
            ranks = column.ranks(weights)
            if "spearman" in self.names:
                spread = np.sqrt((total**3 - rating.cubes) * (total**3 - ranks.cubes)) / 12
                value = _divided(column.product(ranks, rating.by_unit(weights)), spread)
                found[:, metric, self.names.index("spearman")] = np.clip(value, -1, 1)
            if "kendall" in self.names:
                untied = np.sqrt(total**2 - rating.squares) * np.sqrt(total**2 - ranks.squares)
                found[:, metric, self.names.index("kendall")] = _divided(np.ones_like(untied), untied)


def _features(x: Floats, y: Floats, codes: npt.NDArray[np.intp], cells: int) -> Floats:
    """Return the sums that make a Pearson coefficient, of each cell: shape (6, cells)."""
    kept = ~np.isnan(x)
    a, b = _standard(x[kept]), _standard(y[kept])
    parts = (np.ones_like(a), a, b, a * a, b * b, a * b)
    return np.stack([np.bincount(codes[kept], weights=part, minlength=cells) for part in parts])


def _standard(x: Floats) -> Floats:
    """Return values less their mean, over their largest distance from it; zeros where they do not vary."""
    if not len(x) or np.ptp(x) == 0:
        return np.zeros(len(x))
    centred = x - x.mean()
    return np.asarray(centred / np.abs(centred).max())


def _pearson(sums: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return coefficients, and which of them must be computed anew: a side varies little about its own centre, or not at all."""
    n, a, b, aa, bb, ab = sums
    mean_a, mean_b = _divided(a, n), _divided(b, n)
    spread_a, spread_b = aa - a * mean_a, bb - b * mean_b
    unsure = ((spread_a < _LITTLE * aa) | (spread_b < _LITTLE * bb)) & (aa > 0) & (bb > 0)
    spreads = (np.where(unsure, 0.0, np.maximum(spread, 0.0)) for spread in (spread_a, spread_b))
    value = _divided(ab - a * mean_b, np.sqrt(next(spreads)) * np.sqrt(next(spreads)))
    return np.clip(value, -1, 1), unsure


def _pearson_of_units(x: Floats, y: Floats, times: Floats) -> float:
    """Return the coefficient of units that come so many times; NaN where a side does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    a, b = (side - times @ side / times.sum() for side in (_standard(x), _standard(y)))
    return float(np.clip((times * a) @ b / np.sqrt((times * a) @ a) / np.sqrt((times * b) @ b), -1, 1))


def _divided(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=b > 0)


@dataclass(frozen=True)
class _Ranks:
    """Middle ranks less their mean, of groups of tied values: shape (groups, resamples), and what ties need.

    ``squares`` and ``cubes`` are sums over groups of powers of their weights.
    """

    groups: Floats
    squares: Floats
    cubes: Floats
    group_of: Integers

    def by_unit(self, weights: Floats) -> Floats:
        """Return weight times rank of each unit: shape (units, resamples)."""
        return np.asarray(self.groups[self.group_of] * weights)


@dataclass(frozen=True)
class _Counted:
    """A column by groups of units that have one weight.

    Attributes
    ----------
    level
        The place of each unit's value among the different values.
    counts, ranks
        Shape (levels, groups): units of a group that have it; and what each group's weight adds to its middle rank less
        the mean rank.
    """

    level: Integers
    counts: Floats
    ranks: Floats

    @classmethod
    def of(cls, values: Floats, codes: Integers, groups: int) -> _Counted:
        level = np.unique(values, return_inverse=True)[1].reshape(-1)
        levels = int(level.max(initial=-1)) + 1
        counts = (
            np.bincount(level * groups + codes, minlength=levels * groups).reshape(levels, groups).astype(np.float64)
        )
        return cls(level, counts, np.cumsum(counts, axis=0) - counts / 2 - counts.sum(axis=0) / 2)

    def powers(self, times: Floats) -> tuple[Floats, Floats]:
        """Return the sums over levels of squares and of cubes of their weights."""
        tied = self.counts.sum(axis=1) > 1
        weights = self.counts[tied] @ times
        alone = self.counts[~tied].sum(axis=0)
        squares = weights * weights
        # Not weights**3, which takes many times as long.
        return squares.sum(axis=0) + alone @ times**2, (squares * weights).sum(axis=0) + alone @ times**3


class _Sorted:
    """A column of values put in order once; missing values come last, each for itself; their weight must be 0."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        new = np.ones(len(values), dtype=bool)
        new[1:] = ordered[1:] != ordered[:-1]
        self.starts = np.flatnonzero(new)
        self.tied = len(self.starts) < len(values)
        self.group_of = np.empty(len(values), dtype=np.intp)
        self.group_of[self.order] = np.cumsum(new) - 1

    def _grouped(self, by_unit: Floats) -> Floats:
        ordered = by_unit[self.order]
        return np.add.reduceat(ordered, self.starts, axis=0) if self.tied else ordered

    def ranks(self, weights: Floats) -> _Ranks:
        """Rank the units of resamples, given how often each has them: shape (units, resamples)."""
        times = self._grouped(weights)
        groups = np.cumsum(times, axis=0)
        centre = times.sum(axis=0) / 2
        groups -= times / 2
        groups -= centre
        squared = times * times
        return _Ranks(groups, squared.sum(axis=0), np.einsum("gb,gb->b", squared, times), self.group_of)

    def product(self, ranks: _Ranks, other: Floats) -> Floats:
        """Return the sums over units of rank times another quantity, given by unit: shape (resamples,)."""
        return np.asarray(np.einsum("gb,gb->b", ranks.groups, self._grouped(other)))


def _concordance(
    x: Floats, y: Floats, systems: Integers, dialogues: Integers, schemes: Sequence[Weights]
) -> list[Floats]:
    """Return concordant less discordant pairs of resamples, every pair counted twice.

    Units of a system, or of a dialogue, have one weight where that side alone was resampled, so the pairs of two of them
    are summed before any weight is known: what is wanted is w'Aw, A (systems, systems) or (dialogues, dialogues). Where
    both were, or there are many, units are sorted instead.
    """
    if not len(x):
        return [np.zeros(scheme.count) for scheme in schemes]
    cells, cell_of = np.unique(systems * (int(dialogues.max()) + 1) + dialogues, return_inverse=True)
    sides = _sides(cells, int(dialogues.max()) + 1)
    loads = [_load(scheme, sides) for scheme in schemes]
    widest = max((len(sides[side][1]) if side else len(cells)) for side, _ in loads)
    if (
        any(side is None for side, _ in loads)
        or len(cells) * max(widest, 4 * int(np.bincount(cell_of).max())) > _SUMMED
        or len(x) > _COMPARED
    ):
        return _by_sorting(x, y, systems, dialogues, schemes)
    a, b = _laid_out(x, cell_of), _laid_out(y, cell_of)
    kind = np.float32 if 2 * a.shape[1] * len(x) < _EXACT else np.float64
    small = {side: np.zeros((len(sides[side][1]),) * 2) for side, _ in loads if side}
    step = max(1, _PAIRS // len(cells))
    for start in range(0, len(cells), step):
        stop = min(start + step, len(cells))
        pairs: npt.NDArray[Any] = _block(a, b, start, stop).astype(kind)
        for side, total in small.items():
            code = sides[side][0]
            by_column = _summed(pairs, code[start:], len(total))
            np.add.at(total, code[start:stop], by_column)
    return [
        np.einsum("cb,cb->b", weights, np.einsum("cd,db->cb", small[side], weights)) for side, weights in loads if side
    ]


def _by_sorting(
    x: Floats, y: Floats, systems: Integers, dialogues: Integers, schemes: Sequence[Weights]
) -> list[Floats]:
    """Do what :func:`_concordance` does in time and memory that grow with the units, not with their pairs.

    Levels of one side are numbered. Two different numbers differ in a highest binary digit: at each digit, those that agree
    in all higher ones are parted into low and high, sorted by the other side, and a running sum of the weights of the low
    ones says how many of them lie below and above each high one.
    """
    sides = [np.unique(side, return_inverse=True)[1].reshape(-1) for side in (x, y)]
    other, level = sorted(sides, key=lambda codes: -int(codes.max()))
    digits = []
    for digit in range(int(level.max()).bit_length()):
        part = level >> (digit + 1)
        order = np.lexsort((other, part))
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(part[order]) > 0) | (np.diff(other[order]) > 0)
        starts = np.flatnonzero(new)
        first = np.unique(part[order][starts], return_index=True)[1]
        sizes = np.diff([*first, len(starts)])
        digits.append(
            (order, starts, np.repeat(first, sizes), np.repeat(first + sizes, sizes), (level >> digit & 1)[order])
        )
    step = max(1, min(64, _UNITS // len(x)))
    found = []
    for scheme in schemes:
        parts = []
        for start in range(0, scheme.count, step):
            weights = scheme.rows(start, start + step).of(systems, dialogues)
            total = np.zeros(weights.shape[1])
            for order, starts, first, last, high in digits:
                ordered = weights[order]
                above = np.add.reduceat(ordered * high[:, np.newaxis], starts, axis=0)
                low = np.add.reduceat(ordered, starts, axis=0) - above
                upto = np.concatenate([np.zeros((1, low.shape[1])), np.cumsum(low, axis=0)])
                total += np.einsum("gb,gb->b", above, upto[1:] + upto[:-1] - upto[first] - upto[last])
            parts.append(2 * total)
        found.append(np.concatenate(parts))
    return found


def _sides(cells: Integers, dialogues: int) -> dict[str, tuple[Integers, Integers, Integers]]:
    """Return, for each side to resample, the group of each cell, and a system and a dialogue of each group."""
    system, dialogue = np.divmod(cells, dialogues)
    found = {}
    for name, codes in (("systems", system), ("dialogues", dialogue)):
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        found[name] = (group, system[first], dialogue[first])
    return found


def _load(scheme: Weights, sides: dict[str, tuple[Integers, Integers, Integers]]) -> tuple[str | None, Floats]:
    """Return the side that was resampled, and the weights of its groups; None where it was not one side alone."""
    if scheme.cells is not None or (scheme.systems is not None and scheme.dialogues is not None):
        return None, np.empty((0, scheme.count))
    side = "systems" if scheme.dialogues is None else "dialogues"
    _, system, dialogue = sides[side]
    return side, scheme.of(system, dialogue)


def _laid_out(values: Floats, cell_of: Integers) -> npt.NDArray[Any]:
    """Return codes in the order of the values, by cell: shape (cells, most units of a cell).

    Whole numbers of as few bytes as hold them, which compare fastest, where each cell has as many units; else floating-point
    ones, filled up with NaN.
    """
    codes = np.unique(values, return_inverse=True)[1].reshape(-1)
    order = np.argsort(cell_of, kind="stable")
    counts = np.bincount(cell_of)
    if counts.min() == counts.max():
        return codes[order].reshape(len(counts), -1).astype(np.min_scalar_type(int(codes.max())))
    kind = np.float32 if len(values) < _EXACT else np.float64
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((len(counts), int(counts.max())), np.nan, dtype=kind)
    table[cell_of[order], place] = codes[order]
    return table


def _block(a: npt.NDArray[Any], b: npt.NDArray[Any], start: int, stop: int) -> npt.NDArray[np.int32]:
    """Return A of some rows and the columns from their first on; pairs of two cells outside the square count double."""
    columns_a, columns_b = np.ascontiguousarray(a[start:].T), np.ascontiguousarray(b[start:].T)
    total = np.zeros((stop - start, len(a) - start), dtype=np.int32)
    small = np.zeros(total.shape, dtype=np.int8)
    added = 0
    for i in range(a.shape[1]):
        row_a, row_b = a[start:stop, i, np.newaxis], b[start:stop, i, np.newaxis]
        for j in range(a.shape[1]):
            # Nothing is above or below NaN, so that a place that is not filled adds nothing.
            small += signs_of(row_a, columns_a[j]) * signs_of(row_b, columns_b[j])
            added += 1
            if added == 127:
                total += small
                small[:] = 0
                added = 0
    total += small
    total[:, stop - start :] *= 2
    return total


def _summed(pairs: npt.NDArray[Any], code: Integers, groups: int) -> Floats:
    chosen = np.zeros((len(code), groups), dtype=pairs.dtype)
    chosen[np.arange(len(code)), code] = 1
    return np.asarray(pairs @ chosen, dtype=np.float64)


def _average_values(
    scores: Floats, ratings: Floats, design: Design, names: Sequence[str], schemes: Sequence[Weights]
) -> list[Floats]:
    """Return the coefficients over systems of resamples: for each scheme, shape (resamples, metrics, names)."""
    found = [np.full((scheme.count, len(scores), len(names)), np.nan) for scheme in schemes]
    missing = np.isnan(scores)
    # Metrics that scored the same units share the means of ratings and their ranks.
    patterns, pattern = patterns_of(missing)
    for number, gap in enumerate(patterns):
        rows = np.flatnonzero(pattern == number)
        sums = _Sums(
            np.vstack([scores[rows], ratings])[:, ~gap], design.systems[~gap], design.dialogues[~gap], design.counts
        )
        for values, scheme in zip(found, schemes, strict=True):
            values[:, rows] = _of_sums(sums, scheme, names)
    return found


class _Sums:
    """Sums over the units of each system in each dialogue, of metrics and last of the ratings: shape (systems, dialogues)."""

    def __init__(self, sides: Floats, systems: Integers, dialogues: Integers, shape: tuple[int, int]) -> None:
        codes = systems * shape[1] + dialogues

        def summed(part: Floats) -> Floats:
            return np.asarray(np.bincount(codes, part, shape[0] * shape[1]), dtype=np.float64).reshape(shape)

        self.n = summed(np.ones(sides.shape[1]))
        self.sides = [summed(side) for side in sides]
        # What means were rounded at, which of numbers of one sign is the mean itself.
        self.sizes = [summed(np.abs(side)) if side.min(initial=0.0) < 0 else None for side in sides]

    def means(self, weights: Weights) -> tuple[Iterator[Floats], Floats]:
        """Return the means of each metric and last of the ratings, and how often a system has them.

        Shape (resamples, systems); means have one row where systems alone were drawn. Those that differ by rounding
        only are equal.
        """
        dialogues = np.ones((1, self.n.shape[1])) if weights.dialogues is None else weights.dialogues
        cells = None if weights.cells is None else weights.cells * dialogues[:, np.newaxis]

        def drawn(part: Floats) -> Floats:
            if cells is None:
                return np.asarray(np.einsum("sd,bd->bs", part, dialogues))
            return np.asarray(np.einsum("sd,bsd->bs", part, cells))

        n = drawn(self.n)
        times = np.ones((1, self.n.shape[0])) if weights.systems is None else weights.systems
        times = np.where(n > 0, times, 0.0)
        n = np.where(n > 0, n, 1.0)
        sides = zip(self.sides, self.sizes, strict=True)
        return (merge_ties(drawn(part) / n, 0.0 if size is None else drawn(size) / n) for part, size in sides), times


def _of_sums(sums: _Sums, weights: Weights, names: Sequence[str]) -> Floats:
    systems = max(1, len(sums.n))
    step = max(1, _SYSTEMS // (systems * max(sums.n.shape)))
    parts = [_values(*sums.means(weights.rows(a, a + step)), names) for a in range(0, weights.count, step)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class _Side:
    """Means of systems, (resamples, systems), with what coefficients need of them."""

    means: Floats
    ranks: Floats | None
    untied: Floats | None
    signs: list[npt.NDArray[np.int8]] | None

    @classmethod
    def of(cls, means: Floats, times: Floats, names: Sequence[str]) -> _Side:
        if "spearman" not in names and "kendall" not in names:
            return cls(means, None, None, None)
        ranks, tied = _ranked(np.broadcast_to(means, times.shape), times)
        if "kendall" not in names:
            return cls(means, ranks, None, None)
        untied = np.sqrt(times.sum(axis=1) ** 2 - (times * tied).sum(axis=1))
        return cls(means, ranks, untied, _signs(means, times))


def _values(sides: Iterable[Floats], times: Floats, names: Sequence[str]) -> Floats:
    """Return the coefficients of all sides with the last one: shape (resamples, sides - 1, names)."""
    *scores, ratings = (_Side.of(means, times, names) for means in sides)
    found = np.full((len(times), len(scores), len(names)), np.nan)
    for row, side in enumerate(scores):
        for at, name in enumerate(names):
            if name == "pearson":
                found[:, row, at] = _pearson_of_means(side.means, ratings.means, times)
            elif side.ranks is not None and ratings.ranks is not None and name == "spearman":
                found[:, row, at] = _pearson_of_means(side.ranks, ratings.ranks, times)
            elif side.signs and ratings.signs and side.untied is not None and ratings.untied is not None:
                pairs = _concordance_of_means(side.signs, ratings.signs, times)
                found[:, row, at] = np.clip(_divided(pairs, side.untied * ratings.untied), -1, 1)
    return found


def _ranked(values: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Return the middle ranks and the weights of the groups of tied values: shapes (resamples, systems)."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered, weights = np.take_along_axis(values, order, axis=1), np.take_along_axis(times, order, axis=1)
    total = np.cumsum(weights, axis=1)
    new = np.ones(values.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(values.shape, dtype=bool)
    last[:, :-1] = new[:, 1:]
    before = np.maximum.accumulate(np.where(new, total - weights, -1.0), axis=1)
    after = np.minimum.accumulate(np.where(last, total, np.inf)[:, ::-1], axis=1)[:, ::-1]
    ranks, tied = np.empty(values.shape), np.empty(values.shape)
    np.put_along_axis(ranks, order, (before + after + 1) / 2, axis=1)
    np.put_along_axis(tied, order, after - before, axis=1)
    return ranks, tied


def _signs(means: Floats, times: Floats) -> list[npt.NDArray[np.int8]]:
    """Return the signs of pairs of systems: of each with those after it, (others, resamples), or all, (resamples, all, all).

    The first only where each system counts once.
    """
    if len(means) == len(times) and (times == 1).all():
        x = np.ascontiguousarray(means.T)
        return [signs_of(x[place], x[place + 1 :]) for place in range(len(x))]
    return [signs_of(means[:, :, np.newaxis], means[:, np.newaxis, :])]


def _concordance_of_means(
    a: Sequence[npt.NDArray[np.int8]], b: Sequence[npt.NDArray[np.int8]], times: Floats
) -> Floats:
    """Return concordant less discordant pairs, every pair counted twice: shape (resamples,)."""
    if a[0].ndim == 3:
        signs = a[0] * b[0]
        if len(signs) == 1:
            return np.asarray(np.einsum("bi,bi->b", times @ signs[0].astype(np.float64), times))
        return np.asarray(np.einsum("bi,bi->b", times, np.einsum("bij,bj->bi", signs, times)))
    total = np.zeros(len(times), dtype=np.int64)
    for one, other in zip(a, b, strict=True):
        pairs = one * other
        for start in range(0, len(pairs), 127):
            total += np.add.reduce(pairs[start : start + 127], axis=0, dtype=np.int8)
    return np.asarray(2.0 * total, dtype=np.float64)


def _pearson_of_means(x: Floats, y: Floats, times: Floats) -> Floats:
    total = times.sum(axis=1)
    a = x - _divided((times * x).sum(axis=1), total)[:, np.newaxis]
    b = y - _divided((times * y).sum(axis=1), total)[:, np.newaxis]
    spread_a, spread_b = (times * a * a).sum(axis=1), (times * b * b).sum(axis=1)
    # A mean of equal numbers is off by rounding.
    for spread, values in ((spread_a, x), (spread_b, y)):
        largest = (np.where(times > 0, values, 0.0) ** 2).max(axis=1, initial=0.0)
        spread[~(spread > _ROUNDING_OF_MEANS * total * largest)] = 0.0
    value = _divided((times * a * b).sum(axis=1), np.sqrt(spread_a) * np.sqrt(spread_b))
    return np.asarray(np.clip(value, -1, 1))
