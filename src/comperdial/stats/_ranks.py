"""Ranks under weights, and Kendall's concordance as a quadratic form of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.stats._weights import Weights

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
# Pairs of cells taken at a time: so many bytes, a few times over, stay in the cache.
_PAIRS = 2**18
# Integers below this are exact as float32.
_EXACT = 2**24


@dataclass(frozen=True)
class Ranks:
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


class Sorted:
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

    def ranks(self, weights: Floats) -> Ranks:
        """Rank the units of resamples, given how often each has them: shape (units, resamples)."""
        times = self._grouped(weights)
        groups = np.cumsum(times, axis=0)
        centre = times.sum(axis=0) / 2
        groups -= times / 2
        groups -= centre
        squared = times * times
        return Ranks(groups, squared.sum(axis=0), np.einsum("gb,gb->b", squared, times), self.group_of)

    def product(self, ranks: Ranks, other: Floats) -> Floats:
        """Return the sums over units of rank times another quantity, given by unit: shape (resamples,)."""
        return np.asarray(np.einsum("gb,gb->b", ranks.groups, self._grouped(other)))


def concordance(
    x: Floats, y: Floats, systems: Integers, dialogues: Integers, schemes: Sequence[Weights]
) -> list[Floats]:
    """Return concordant less discordant pairs of resamples, every pair counted twice.

    Units of a cell (a system in a dialogue) have one weight, so the pairs of two cells are summed before any weight is
    known: what is wanted is w'Aw, A (cells, cells). Where only one side was resampled, A shrinks to that side.
    """
    if not len(x):
        return [np.zeros(scheme.count) for scheme in schemes]
    cells, cell_of = np.unique(systems * (int(dialogues.max()) + 1) + dialogues, return_inverse=True)
    sides = _sides(cells, int(dialogues.max()) + 1)
    a, b = _laid_out(x, cell_of), _laid_out(y, cell_of)
    for name in ("systems", "dialogues"):
        # Hardly fewer groups than cells: nothing to gain by summing them first.
        if 2 * len(sides[name][1]) > len(cells):
            sides[name] = sides["cells"]
    loads = [_load(scheme, sides) for scheme in schemes]
    counts = np.bincount(cell_of)
    most = max([len(x), *((counts @ weights).max() for side, weights in loads if side == "cells")])
    kind = np.float32 if 2 * a.shape[1] * most < _EXACT else np.float64
    small = {side: np.zeros((len(sides[side][1]),) * 2) for side, _ in loads if side != "cells"}
    large = [weights.astype(kind) for _, weights in loads]
    found: list[Floats] = [np.zeros(weights.shape[1]) for _, weights in loads]
    step = max(1, _PAIRS // len(cells))
    for start in range(0, len(cells), step):
        stop = min(start + step, len(cells))
        pairs: npt.NDArray[Any] = _block(a, b, start, stop).astype(kind)
        for side, total in small.items():
            code = sides[side][0]
            by_column = _summed(pairs, code[start:], len(total))
            np.add.at(total, code[start:stop], by_column)
        for k, (side, weights) in enumerate(loads):
            if side == "cells":
                found[k] += np.einsum("cb,cb->b", weights[start:stop], (pairs @ large[k][start:]).astype(np.float64))
    for k, (side, weights) in enumerate(loads):
        if side != "cells":
            found[k] = np.einsum("cb,cb->b", weights, np.einsum("cd,db->cb", small[side], weights))
    return found


def _sides(cells: Integers, dialogues: int) -> dict[str, tuple[Integers, Integers, Integers]]:
    """Return, for each way to resample, the group of each cell, and a system and a dialogue of each group."""
    system, dialogue = np.divmod(cells, dialogues)
    found = {"cells": (np.arange(len(cells)), system, dialogue)}
    for name, codes in (("systems", system), ("dialogues", dialogue)):
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        found[name] = (group, system[first], dialogue[first])
    return found


def _load(scheme: Weights, sides: dict[str, tuple[Integers, Integers, Integers]]) -> tuple[str, Floats]:
    side = "cells"
    if scheme.cells is None and (scheme.systems is None or scheme.dialogues is None):
        side = "systems" if scheme.dialogues is None else "dialogues"
    _, system, dialogue = sides[side]
    return "cells" if sides[side] is sides["cells"] else side, scheme.of(system, dialogue)


def _laid_out(values: Floats, cell_of: Integers) -> npt.NDArray[np.float32]:
    """Return codes in the order of the values, by cell, filled up with NaN: shape (cells, most units of a cell)."""
    codes = np.unique(values, return_inverse=True)[1]
    kind = np.float32 if len(values) < _EXACT else np.float64
    order = np.argsort(cell_of, kind="stable")
    counts = np.bincount(cell_of)
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((len(counts), int(counts.max())), np.nan, dtype=kind)
    table[cell_of[order], place] = codes[order]
    return table


def _block(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], start: int, stop: int) -> npt.NDArray[np.int32]:
    """Return A of some rows and the columns from their first on; pairs of two cells outside the square count double."""
    columns_a, columns_b = np.ascontiguousarray(a[start:].T), np.ascontiguousarray(b[start:].T)
    total = np.zeros((stop - start, len(a) - start), dtype=np.int32)
    small = np.zeros(total.shape, dtype=np.int8)
    added = 0
    for i in range(a.shape[1]):
        row_a, row_b = a[start:stop, i, np.newaxis], b[start:stop, i, np.newaxis]
        for j in range(a.shape[1]):
            small += _sign(row_a, columns_a[j]) * _sign(row_b, columns_b[j])
            added += 1
            if added == 127:
                total += small
                small[:] = 0
                added = 0
    total += small
    total[:, stop - start :] *= 2
    return total


def _sign(row: npt.NDArray[np.float32], column: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    # Comparisons with NaN are false, so that a place that is not filled adds nothing.
    return np.asarray((row > column).view(np.int8) - (row < column).view(np.int8))


def _summed(pairs: npt.NDArray[Any], code: Integers, groups: int) -> Floats:
    chosen = np.zeros((len(code), groups), dtype=pairs.dtype)
    chosen[np.arange(len(code)), code] = 1
    return np.asarray(pairs @ chosen, dtype=np.float64)
