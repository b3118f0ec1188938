"""Coefficients of many subsets of the same units: what depends on the whole is computed once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats.correlation import Coefficient, correlate
from comperdial.stats.design import Design
from comperdial.stats.grouped import COEFFICIENTS, rowwise
from comperdial.stats.means import paired_averages

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


def mean_of(table: Floats) -> Floats:
    """Return the mean over the first axis of what is there; NaN where nothing is."""
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    found = np.full(table.shape[1:], np.nan)
    np.divide(np.where(there, table, 0.0).sum(axis=0), counts, out=found, where=counts > 0)
    return found


class Panel:
    """Scores of metrics on the units of a design, to be correlated with ratings over many subsets of units.

    Ranks within a subset follow from the order in the whole by counting, without sorting again.

    Parameters
    ----------
    scores
        Shape (metrics, n), NaN where missing.
    design
        Of the n units.
    name
        ``pearson``, ``spearman`` or ``kendall``.
    """

    def __init__(self, scores: npt.ArrayLike, design: Design, name: Coefficient) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        if self.scores.ndim != 2 or self.scores.shape[1] != len(design.systems):
            raise ValueError(f"expected (metrics, {len(design.systems)}) scores, got shape {self.scores.shape}")
        if name not in COEFFICIENTS:
            raise ValueError(f"unknown coefficient {name!r}")
        self.design, self.name = design, name
        self.missing = np.isnan(self.scores)
        self._gaps = np.asarray(self.missing.any(axis=1))
        self._places: list[Integers] = []
        if name == "spearman" and not design.average:
            self._places = [np.unique(row, return_inverse=True)[1] for row in self.scores]

    def values(self, ratings: Floats, chosen: npt.NDArray[np.bool_]) -> Floats:
        """Return the coefficient of each metric over the chosen units that were rated.

        Parameters
        ----------
        ratings
            Shape (n,), NaN where missing.
        chosen
            Shape (n,): which units.

        Returns
        -------
        array
            Shape (metrics,): what :func:`comperdial.stats.correlation.correlate` gives, of system means where the
            design says so (means that differ by rounding only are tied); NaN where it is undefined.
        """
        units = np.flatnonzero(chosen & ~np.isnan(ratings))
        if self.design.average:
            count = int(self.design.systems.max(initial=-1)) + 1
            means = paired_averages(self.scores[:, units], ratings[units], self.design.systems[units], count)
            return rowwise(*means, self.name)
        if self.name == "kendall":
            return np.array([correlate(row[units], ratings[units], self.name).value for row in self.scores])
        found = np.full(len(self.scores), np.nan)
        groups = [(np.flatnonzero(~self._gaps), units)]
        groups += [(np.array([row]), units[~self.missing[row, units]]) for row in np.flatnonzero(self._gaps)]
        for rows, kept in groups:
            if len(rows) and len(kept) > 1:
                found[rows] = self._of_units(rows, ratings[kept], kept)
        return found

    def _of_units(self, rows: Integers, ratings: Floats, units: Integers) -> Floats:
        if self.name == "spearman":
            table = np.stack([_ranks(self._places[row][units]) for row in rows])
            ratings = np.asarray(stats.rankdata(ratings))
        else:
            table = self.scores[np.ix_(rows, units)]
        return rowwise(table, np.broadcast_to(ratings, table.shape), "pearson")


def _ranks(places: Integers) -> Floats:
    """Return the mean ranks of values known by their place among all values, equal ones having the same."""
    counts = np.bincount(places)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])
