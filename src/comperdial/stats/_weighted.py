"""Correlations of resamples, computed from integer weights instead of repeated rows.

A resample of systems and dialogues repeats a unit as often as its system was drawn, times as often as its dialogue was.
All coefficients here are those of the repeated rows, exactly: nothing is approximated by working on weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from comperdial.stats._means import average_values
from comperdial.stats._ranks import Sorted, concordance
from comperdial.stats._weights import Weights
from comperdial.stats.design import Design

Floats = npt.NDArray[np.float64]
NAMES = ("pearson", "spearman", "kendall")
# Units x resamples held at a time, of each of a few arrays: 4 MB that stay in the cache.
_AT_ONCE = 2**19
# What is left of a variance that is zero but for rounding, as a share of the mean square about the centre of all units.
_ROUNDING = 1e-13


def weighted(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: Sequence[str],
    schemes: Sequence[Weights],
) -> list[Floats]:
    """Return the coefficients of resamples.

    Parameters
    ----------
    scores, ratings, design
        As in :func:`comperdial.stats.resampling.coefficients`.
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
        return average_values(scores, ratings, design, names, schemes)
    return _pooled_values(scores, ratings, design, names, schemes)


def _pooled_values(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: Sequence[str],
    schemes: Sequence[Weights],
) -> list[Floats]:
    if not len(scores):
        return [np.empty((scheme.count, 0, len(names))) for scheme in schemes]
    units = _Units(scores, ratings, design, names)
    step = max(1, min(64, _AT_ONCE // max(1, len(ratings))))
    found = [
        np.concatenate([units.piece(scheme.rows(start, start + step)) for start in range(0, scheme.count, step)])
        for scheme in schemes
    ]
    if "kendall" in names:
        at = list(names).index("kendall")
        for metric, kept in enumerate(units.kept):
            of = (scores[metric, kept], ratings[kept], design.systems[kept], design.dialogues[kept])
            for values, pairs in zip(found, concordance(*of, schemes), strict=True):
                values[:, metric, at] = np.clip(values[:, metric, at] * pairs, -1, 1)
    return found


class _Units:
    """Units in the orders and sums that every resample needs."""

    def __init__(self, scores: Floats, ratings: Floats, design: Design, names: Sequence[str]) -> None:
        self.design, self.names = design, list(names)
        self.kept = ~np.isnan(scores)
        self.features: Floats | None = None
        self.columns: list[Sorted] = []
        if "pearson" in self.names:
            self.cells, codes = np.unique(
                design.systems * (int(design.dialogues.max(initial=0)) + 1) + design.dialogues, return_inverse=True
            )
            self.cell_of = codes
            self.first = np.unique(codes, return_index=True)[1]
            self.features = np.stack([_features(x, ratings, codes, len(self.cells)) for x in scores])
        if "spearman" in self.names or "kendall" in self.names:
            self.rating = Sorted(ratings)
            self.columns = [Sorted(x) for x in scores]

    def piece(self, weights: Weights) -> Floats:
        """Return the coefficients of a few resamples; of Kendall's, 1 / the root of the two numbers of untied pairs."""
        found = np.full((weights.count, len(self.kept), len(self.names)), np.nan)
        if self.features is not None:
            cells = weights.of(self.design.systems[self.first], self.design.dialogues[self.first])
            found[:, :, self.names.index("pearson")] = _pearson(np.einsum("mkc,cb->kbm", self.features, cells))
        if self.columns:
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
    a, b = standard(x[kept]), standard(y[kept])
    parts = (np.ones_like(a), a, b, a * a, b * b, a * b)
    return np.stack([np.bincount(codes[kept], weights=part, minlength=cells) for part in parts])


def standard(x: Floats) -> Floats:
    """Return values less their mean, over their largest distance from it; zeros where they do not vary."""
    if not len(x) or np.ptp(x) == 0:
        return np.zeros(len(x))
    centred = x - x.mean()
    return np.asarray(centred / np.abs(centred).max())


def _pearson(sums: Floats) -> Floats:
    n, a, b, aa, bb, ab = sums
    mean_a, mean_b = _divided(a, n), _divided(b, n)
    spread_a, spread_b = aa - a * mean_a, bb - b * mean_b
    spread_a = np.where(spread_a > _ROUNDING * aa, spread_a, 0.0)
    spread_b = np.where(spread_b > _ROUNDING * bb, spread_b, 0.0)
    return np.asarray(np.clip(_divided(ab - a * mean_b, np.sqrt(spread_a) * np.sqrt(spread_b)), -1, 1))


def _divided(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=b > 0)
