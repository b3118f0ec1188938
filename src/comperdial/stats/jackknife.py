"""Whether statistics of two metrics differ, by leaving out each system, each dialogue and each cell (a dialogue of a system).

The variance of a difference is that over systems plus that over dialogues minus that over cells, which both of them count
(Cameron, Gelbach and Miller 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import influence, without_each
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import FEWEST_SAMPLED, Design, Floats, Integers

# Differences that rounding alone tells apart are equal.
CLOSE = 1e-12


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
    residuals
        Shape (metrics, pairs of systems), of means over pairs of systems: what a pair adds to what its two systems have in
        all their pairs (:func:`residuals_of`). None where the statistic is no such mean, or a system has no value.
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
        """Return those of some of the metrics."""
        return self._each(lambda part: part[np.asarray(chosen, dtype=np.intp)])

    def with_zero(self) -> Replicates:
        """Return them with one more metric, whose value is always 0: a difference from it is a value by itself."""
        return self._each(lambda part: np.concatenate([part, np.zeros_like(part[:1])]))


def over_units(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, name: Coefficient) -> Replicates:
    """Return a coefficient over all units, and what it would be without each cluster; without a cell, by its influence.

    Scores, (metrics, n), and ratings, (n,), have nothing missing; ``design.average`` is not looked at.
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

    What counts a kind of cluster as given does not change without one of them. ``n`` is that of the first.
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
    """Return the residuals of D_ij = mean + h_i + h_j by least squares: shape (metrics, pairs).

    D, a value of each pair of three systems or more, has the shape (metrics, systems, systems) and is symmetric; its diagonal
    does not matter.
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
        Shape (4, metrics, metrics): over systems, dialogues and cells, and the spread of their sum, which its degrees of
        freedom are made of. Of independent data sets they may be added.
    fewest
        One less than there are of the fewer clusters, shape () or (metrics, metrics); NaN without any.
    counts
        How many systems and dialogues count as drawn; 1 where they are given.
    """

    parts: Floats
    fewest: npt.ArrayLike
    counts: tuple[int, int] = (1, 1)

    @classmethod
    def of(cls, systems: Floats, dialogues: Floats, cells: Floats, counts: tuple[int, int]) -> Variances:
        """Put together variances of shape (metrics, metrics)."""
        free = [max(count - 1, 1) for count in counts]
        spread = systems**2 / free[0] + dialogues**2 / free[1] + cells**2 / (free[0] * free[1])
        fewest = min((count - 1 for count in counts if count > 1), default=np.nan)
        return cls(np.stack([systems, dialogues, cells, spread]), fewest, counts)

    @property
    def named(self) -> list[str]:
        """Return what counts as drawn."""
        return [name for name, count in zip(("systems", "dialogues"), self.counts, strict=True) if count > 1]

    @property
    def two_way(self) -> Floats:
        """Return systems plus dialogues minus cells, for many clusters; the larger of the first two where that is negative."""
        summed = self.parts[0] + self.parts[1] - self.parts[2]
        return np.where(summed > 0, summed, np.maximum(self.parts[0], self.parts[1]))

    @property
    def cautious(self) -> Floats:
        """Return the mean of that, which is too small with few clusters, and of the least it can be, which is too large.

        It holds the level of tests within items and systems (docs/validation.md).
        """
        summed = np.maximum(self.parts[0] + self.parts[1] - self.parts[2], 0.0)
        return np.asarray((summed + np.maximum(summed, np.maximum(self.parts[0], self.parts[1]))) / 2)

    def test(self, difference: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return two-sided p of differences by Student's t, 1 where there is none, and half the width of 95 % intervals.

        p < 0.05 just where the interval leaves out 0. Degrees of freedom are Satterthwaite's, and at least those of the
        fewer clusters.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.maximum(variance**2 / self.parts[3], self.fewest)
            p = 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
            reach = np.where(variance > 0, stats.t.isf(ALPHA / 2, freedom) * np.sqrt(variance), np.nan)
        return np.where(np.abs(difference) < CLOSE, 1.0, p), reach


def variances(result: Replicates, fewest: int = FEWEST_SAMPLED) -> Variances:
    """Return the jackknife variances of the differences of pairs; clusters of which there are fewer count as given.

    Of means over pairs of systems the jackknife counts what pairs have of their own more than twice (Efron and Stein 1981);
    what is too much is taken off, so that the variance is that of a U-statistic without bias, but never less than if pairs
    had nothing else.
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
    """Return the jackknife variances of the differences of pairs, given what each metric is without each cluster."""
    clusters = without.shape[1]
    with np.errstate(invalid="ignore"):
        return _between(without - without.mean(axis=1, keepdims=True)) * (clusters - 1) / clusters


def _between(rows: Floats) -> Floats:
    """Return the sums of squares of the differences of all pairs of rows."""
    products = rows @ rows.T
    own = np.diag(products)
    return np.asarray(np.maximum(own[:, None] + own - 2 * products, 0))
