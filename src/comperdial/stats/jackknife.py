"""Test differences of two metrics' statistics by leaving out systems, dialogues and cells (dialogues of a system).

The variance of a difference is that over systems plus that over dialogues minus that over cells, which both include (Cameron,
Gelbach and Miller 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import influence, without_each
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import FEWEST_SAMPLED, Design, Floats, Integers

# Smaller differences are due to rounding.
CLOSE = 1e-12


@dataclass(frozen=True)
class Replicates:
    """Values of metrics, and their values without each system, each dialogue and each cell.

    If leaving out a cluster has no effect, the value is unchanged. An empty array means that such clusters count as fixed, not
    sampled.

    Attributes
    ----------
    values
        Shape (metrics,); NaN if there is nothing to compare.
    systems, dialogues, cells
        Shape (metrics, clusters): values without each of them; cells in order of system, then dialogue.
    n
        Shape (metrics,): number of groups averaged over, or of units of the only group.
    residuals
        Shape (metrics, pairs of systems), for means over pairs of systems: a pair's deviation from the additive effects of its
        two systems (:func:`residuals_of`). None if the statistic is not such a mean, or a system has no value.
    """

    values: Floats
    systems: Floats
    dialogues: Floats
    cells: Floats
    n: Integers
    residuals: Floats | None = None

    def _each(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Replicates:
        parts: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {name: None if part is None else change(part) for name, part in parts.items()}
        return replace(self, **changed)

    def rows(self, chosen: Sequence[int] | Integers) -> Replicates:
        """Return the replicates of some of the metrics."""
        return self._each(lambda part: part[np.asarray(chosen, dtype=np.intp)])

    def with_zero(self) -> Replicates:
        """Append a metric with constant value 0: the difference from it is a metric's own value."""
        return self._each(lambda part: np.concatenate([part, np.zeros_like(part[:1])]))


def over_units(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, name: Coefficient) -> Replicates:
    """Return a coefficient over all units, and its value without each cluster; without a cell, by influence functions.

    Scores, (metrics, n), and ratings, (n,), have no missing values; ``design.average`` is ignored.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    codes = design.cells
    clusters = int(codes.max(initial=-1)) + 1
    values, cells = np.empty(len(table)), np.empty((len(table), clusters))
    for row, side in enumerate(table):
        values[row], moves = influence(side, human, name)
        lost = np.bincount(codes, moves, clusters) / len(human)
        cells[row] = values[row] - lost * clusters / max(clusters - 1, 1)
    systems, dialogues = (without_each(table, human, of, name) for of in (design.systems, design.dialogues))
    return Replicates(values, systems, dialogues, cells, np.full(len(table), len(human), dtype=np.intp))


def weighted(parts: Sequence[tuple[float, Replicates]]) -> Replicates:
    """Return a weighted sum of statistics of the same metrics, units and clusters.

    A statistic that treats a kind of cluster as fixed does not change when one is left out. ``n`` is that of the first.
    """

    def summed(name: str) -> Floats:
        sides = [(weight, getattr(part, name), part.values[:, np.newaxis]) for weight, part in parts]
        widest = max(without.shape[1] for _, without, _ in sides)
        rows = [
            weight * (without if without.shape[1] else np.repeat(value, widest, axis=1))
            for weight, without, value in sides
        ]
        return np.asarray(np.sum(rows, axis=0))

    values = np.asarray(np.sum([weight * part.values for weight, part in parts], axis=0))
    residuals = [weight * part.residuals for weight, part in parts if part.residuals is not None]
    return Replicates(
        values, summed("systems"), summed("dialogues"), summed("cells"), parts[0][1].n,
        residuals=np.sum(residuals, axis=0) if residuals else None,
    )  # fmt: skip


def residuals_of(pairs: npt.ArrayLike) -> Floats:
    """Return the least-squares residuals of D_ij = mean + h_i + h_j: shape (metrics, pairs).

    D, a value for each pair of at least three systems, has shape (metrics, systems, systems) and is symmetric; its diagonal is
    ignored.
    """
    table = np.array(pairs, dtype=np.float64)
    systems = table.shape[-1]
    table[:, np.arange(systems), np.arange(systems)] = 0
    sums = table.sum(axis=-1)
    own = (sums - sums.mean(axis=-1, keepdims=True)) / (systems - 2)
    middle = sums.sum(axis=-1) / (systems * (systems - 1))
    i, j = np.triu_indices(systems, 1)
    return np.asarray(table[:, i, j] - middle[:, np.newaxis] - own[:, i] - own[:, j])


@dataclass(frozen=True)
class Variances:
    """Variances of the differences of all pairs of metrics.

    Attributes
    ----------
    parts
        Shape (4, metrics, metrics): over systems, dialogues and cells, and the spread of their sum, for its degrees of freedom.
        Parts of independent data sets may be added.
    fewest
        The smaller number of clusters minus one, shape () or (metrics, metrics); NaN without any.
    counts
        Numbers of systems and dialogues that count as sampled; 1 if they are fixed.
    """

    parts: Floats
    fewest: npt.ArrayLike
    counts: tuple[int, int] = (1, 1)

    @classmethod
    def of(cls, systems: Floats, dialogues: Floats, cells: Floats, counts: tuple[int, int]) -> Variances:
        """Combine variances of shape (metrics, metrics)."""
        free = [max(count - 1, 1) for count in counts]
        spread = systems**2 / free[0] + dialogues**2 / free[1] + cells**2 / (free[0] * free[1])
        fewest = min((count - 1 for count in counts if count > 1), default=np.nan)
        return cls(np.stack([systems, dialogues, cells, spread]), fewest, counts)

    @property
    def named(self) -> list[str]:
        """Return which factors count as sampled."""
        return [name for name, count in zip(("systems", "dialogues"), self.counts, strict=True) if count > 1]

    @property
    def two_way(self) -> Floats:
        """Return systems plus dialogues minus cells, for many clusters; the larger of the first two if that is negative."""
        summed = self.parts[0] + self.parts[1] - self.parts[2]
        return np.where(summed > 0, summed, np.maximum(self.parts[0], self.parts[1]))

    @property
    def cautious(self) -> Floats:
        """Return the mean of the two-way variance, too small with few clusters, and of its lower bound, too large.

        It keeps the level of tests within items and systems (docs/validation.md).
        """
        summed = np.maximum(self.parts[0] + self.parts[1] - self.parts[2], 0.0)
        return np.asarray((summed + np.maximum(summed, np.maximum(self.parts[0], self.parts[1]))) / 2)

    def test(self, difference: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return two-sided p of differences by Student's t, 1 if undefined, and half the width of 95 % intervals.

        p < 0.05 exactly if the interval excludes 0. Degrees of freedom are Satterthwaite's, and at least those of the fewer
        clusters.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.maximum(variance**2 / self.parts[3], self.fewest)
            p = 2 * scipy.stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
            reach = np.where(variance > 0, scipy.stats.t.isf(ALPHA / 2, freedom) * np.sqrt(variance), np.nan)
        return np.where(np.abs(difference) < CLOSE, 1.0, p), reach


def variances(result: Replicates, fewest: int = FEWEST_SAMPLED) -> Variances:
    """Return the jackknife variances of the differences of pairs; fewer than ``fewest`` clusters count as fixed.

    For means over pairs of systems, the jackknife counts the pairs' own variance more than twice (Efron and Stein 1981). The
    excess is subtracted to get the unbiased variance of a U-statistic, which is at least that of pairs without any other
    variance.
    """
    counts = tuple(side.shape[1] if side.shape[1] >= fewest else 1 for side in (result.systems, result.dialogues))
    none = np.zeros((len(result.values), len(result.values)))
    of_systems = _jackknifed(result.systems) if counts[0] > 1 else none
    of_dialogues = _jackknifed(result.dialogues) if counts[1] > 1 else none
    if counts[0] > 1 and result.residuals is not None:
        count = counts[0]
        of_pairs = _between(result.residuals) / (count * (count - 3) / 2)
        excess = 2 * of_pairs / ((count - 1) * (count - 2))
        of_systems = np.maximum(of_systems - excess, of_systems * (count - 2) / (2 * (count - 1)))
    of_cells = _jackknifed(result.cells) if min(counts) > 1 else none
    return Variances.of(of_systems, of_dialogues, of_cells, (counts[0], counts[1]))


def _jackknifed(without: Floats) -> Floats:
    """Return the jackknife variances of the differences of pairs, given each metric's leave-one-out values."""
    clusters = without.shape[1]
    with np.errstate(invalid="ignore"):
        return _between(without - without.mean(axis=1, keepdims=True)) * (clusters - 1) / clusters


def _between(rows: Floats) -> Floats:
    """Return the sums of squared differences of all pairs of rows."""
    products = rows @ rows.T
    own = np.diag(products)
    return np.asarray(np.maximum(own[:, None] + own - 2 * products, 0))
