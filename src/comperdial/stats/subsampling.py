"""Learning curves: how the ranking of metrics changes with fewer systems, dialogues, annotators or judge samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import COEFFICIENTS, Coefficient
from comperdial.stats.correlation import correlate, rowwise
from comperdial.stats.design import Design
from comperdial.stats.means import paired_averages

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

Varied = Literal["systems", "dialogues", "annotators", "samples"]
VARIED: tuple[Varied, ...] = ("systems", "dialogues", "annotators", "samples")


@dataclass(frozen=True)
class Curve:
    """Values of metrics on subsets of rising size.

    Attributes
    ----------
    sizes
        Shape (sizes,).
    value, low, high
        Shape (sizes, metrics): mean, 2.5 % and 97.5 % quantile over the repeats that have a value; NaN where none has.
        Subsets of one data set overlap, so the quantiles are the spread of subsets, not a confidence interval; at the
        full size they meet.
    agreement
        Shape (sizes,): mean over repeats of Kendall's tau-b between the metrics' values in the subset and in the whole.
    repeats
        Shape (sizes,): how many subsets were drawn. At the full size there is one.
    """

    sizes: Integers
    value: Floats
    low: Floats
    high: Floats
    agreement: Floats
    repeats: Integers


def subsample_curve(
    scores: npt.ArrayLike,
    rating_matrix: npt.ArrayLike,
    design: Design,
    name: Coefficient,
    *,
    varied: Varied,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
) -> Curve:
    """Correlate metrics with ratings on random subsets of systems, dialogues or annotators.

    Parameters
    ----------
    scores
        Shape (metrics, n), NaN where missing.
    rating_matrix
        Shape (annotators, n), NaN where an annotator did not rate. A unit's rating is the mean of those who rated it;
        with fewer annotators that of the chosen ones, and units that none of them rated take no part.
    design, name
        As in the module :mod:`comperdial.stats.design`; ``pearson``, ``spearman`` or ``kendall``. Over 10,000 units
        Kendall's takes some milliseconds a metric and subset; the others a tenth.
    varied
        ``systems``, ``dialogues`` or ``annotators``: what is drawn, without replacement; the others are kept whole.
    sizes
        How many of them.
    repeats, seed
        Subsets for each size, and the seed. What is drawn for a size does not depend on the other sizes.

    Returns
    -------
    Curve
        Metrics in the order of ``scores``.

    Raises
    ------
    ValueError
        For shapes that do not fit, an unknown name, or a size that is not between 1 and what there is.
    """
    ratings = np.asarray(rating_matrix, dtype=np.float64)
    panel = Panel(scores, design, name)
    if ratings.ndim != 2 or ratings.shape[1] != panel.scores.shape[1]:
        raise ValueError(f"expected (annotators, {panel.scores.shape[1]}) ratings, got shape {ratings.shape}")
    everyone = mean_of(ratings)
    everything = np.ones(ratings.shape[1], dtype=np.bool_)
    codes = {"systems": design.systems, "dialogues": design.dialogues}
    if varied not in ("systems", "dialogues", "annotators"):
        raise ValueError(f"expected systems, dialogues or annotators, got {varied!r}")
    count = len(ratings) if varied == "annotators" else design.counts[varied == "dialogues"]

    known: dict[bytes, Floats] = {}

    def of_subset(order: Integers, size: int) -> Floats:
        taken = np.zeros(count, dtype=np.bool_)
        taken[order[:size]] = True
        key = taken.tobytes()
        # Of a few annotators there are few subsets.
        if key not in known:
            if varied == "annotators":
                known[key] = panel.values(mean_of(ratings[taken]), everything)
            else:
                known[key] = panel.values(everyone, taken[codes[varied]])
        return known[key]

    whole = panel.values(everyone, everything)
    return _curve(of_subset, whole, np.empty(0), count, varied, sizes, repeats, seed)


def sample_curve(
    samples: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    name: Coefficient,
    *,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
    others: npt.ArrayLike = (),
) -> Curve:
    """Correlate with ratings the mean of k of the samples that a judge gave for each unit.

    Parameters
    ----------
    samples
        Shape (metrics, most samples, n), NaN where missing. A sample of a metric without any score does not exist; in
        the others a missing score is left out of the mean.
    ratings
        Shape (n,), NaN where missing.
    design, name, repeats, seed
        As in :func:`subsample_curve`.
    sizes
        Numbers k; a metric with fewer samples has no value there.
    others
        Values of metrics without samples, which take part in the ranking that ``agreement`` compares. They have no
        column in the result.

    Returns
    -------
    Curve
        Metrics in the order of ``samples``.
    """
    table, human = np.asarray(samples, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 3 or human.shape != table.shape[2:]:
        raise ValueError(f"expected (metrics, samples, n) and (n,), got shapes {table.shape} and {human.shape}")
    everything = np.ones(len(human), dtype=np.bool_)
    exists = np.asarray((~np.isnan(table)).any(axis=2))
    known: dict[tuple[int, bytes], float] = {}

    def of_subset(order: Integers, size: int) -> Floats:
        found = np.full(len(table), np.nan)
        for row, there in enumerate(exists):
            taken = np.sort(order[there[order]][:size])
            if len(taken) < size:
                continue
            key = (row, taken.tobytes())
            if key not in known:
                panel = Panel(mean_of(table[row, taken])[np.newaxis], design, name)
                known[key] = float(panel.values(human, everything)[0])
            found[row] = known[key]
        return found

    whole = Panel(np.stack([mean_of(metric) for metric in table]), design, name).values(human, everything)
    rest = np.asarray(others, dtype=np.float64)
    return _curve(of_subset, whole, rest, table.shape[1], "samples", sizes, repeats, seed)


def _curve(
    of_subset: Callable[[Integers, int], Floats],
    whole: Floats,
    others: Floats,
    count: int,
    varied: Varied,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
) -> Curve:
    """Draw subsets: the first ``size`` of a random order of ``count``."""
    if repeats < 1 or not len(sizes) or min(sizes) < 1 or max(sizes) > count:
        raise ValueError(f"expected 1 repeat or more and sizes from 1 to {count} {varied}, got {repeats} and {sizes}")
    value, low, high = (np.full((len(sizes), len(whole)), np.nan) for _ in range(3))
    agreement = np.full(len(sizes), np.nan)
    times = np.where(np.array(sizes) == count, 1, repeats)
    for at, size in enumerate(sizes):
        rng = np.random.default_rng([seed, VARIED.index(varied), size])
        found = np.stack([of_subset(rng.permutation(count), size) for _ in range(times[at])])
        value[at] = mean_of(found)
        there = ~np.isnan(value[at])
        if there.any():
            low[at, there], high[at, there] = np.nanquantile(found[:, there], [0.025, 0.975], axis=0)
        agreement[at] = _agreement(found, whole, others)
    return Curve(np.array(sizes, dtype=np.intp), value, low, high, agreement, times)


def _agreement(found: Floats, whole: Floats, others: Floats) -> float:
    reference = np.concatenate([whole, others])
    table = np.hstack([found, np.broadcast_to(others, (len(found), len(others)))])
    return float(mean_of(rowwise(table, np.broadcast_to(reference, table.shape), "kendall")))


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
            of = self.design
            means = paired_averages(self.scores[:, units], ratings[units], of.systems[units], of.counts[0])
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
