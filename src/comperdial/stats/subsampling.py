"""Learning curves: how the ranking of metrics changes with fewer systems, dialogues, annotators or judge samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import coefficients
from comperdial.stats.correlation import rowwise
from comperdial.stats.design import Design, Flags, Floats, Integers
from comperdial.stats.means import paired_means

Varied = Literal["systems", "dialogues", "annotators", "samples"]
VARIED: tuple[Varied, ...] = ("systems", "dialogues", "annotators", "samples")


class Curve(NamedTuple):
    """Values of metrics on subsets of rising size.

    ``value``, ``low`` and ``high``, of shape (sizes, metrics), are the mean and the 2.5 % and 97.5 % quantiles over the
    subsets that have a value; NaN where none has. Subsets of one data set overlap, so the quantiles are the spread of
    subsets, not a confidence interval; at the full size, of which there is one subset, they meet. ``agreement``, (sizes,),
    is the mean over subsets of Kendall's tau-b between the metrics' values in the subset and in the whole; ``repeats``,
    (sizes,), how many subsets were drawn.
    """

    sizes: Integers
    value: Floats
    low: Floats
    high: Floats
    agreement: Floats
    repeats: Integers


def subsample_curve(
    scores: Floats,
    rating_matrix: Floats,
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
        Of the n units; ``pearson``, ``spearman`` or ``kendall``.
    varied
        ``systems``, ``dialogues`` or ``annotators``: what is drawn, without replacement; the others are kept whole.
    sizes, repeats, seed
        How many of them, between 1 and what there is; subsets of each size. What is drawn for a size does not depend on
        the other sizes.
    """
    ratings, everything = mean_of(rating_matrix), np.ones(rating_matrix.shape[1], dtype=np.bool_)
    count = len(rating_matrix) if varied == "annotators" else design.counts[varied == "dialogues"]

    # Of a few annotators there are few subsets.
    @cache
    def of_taken(taken: tuple[int, ...]) -> Floats:
        chosen = np.array(taken)
        if varied == "annotators":
            return values_of(scores, mean_of(rating_matrix[chosen]), design, name, everything)
        return values_of(scores, ratings, design, name, np.isin(getattr(design, varied), chosen))

    def of_subset(order: Integers, size: int) -> Floats:
        return of_taken(tuple(np.sort(order[:size]).tolist()))

    whole = values_of(scores, ratings, design, name, everything)
    return _curve(of_subset, whole, np.empty(0), count, varied, sizes, repeats, seed)


def sample_curve(
    samples: Floats,
    ratings: Floats,
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
        the others a missing score is left out of the mean. A metric with fewer samples than k has no value there.
    ratings
        Shape (n,), NaN where missing.
    design, name, sizes, repeats, seed
        As in :func:`subsample_curve`; the sizes are numbers k.
    others
        Values of metrics without samples, which take part in the ranking that ``agreement`` compares.
    """
    everything = np.ones(len(ratings), dtype=np.bool_)
    exists = np.asarray((~np.isnan(samples)).any(axis=2))

    @cache
    def of_taken(row: int, taken: tuple[int, ...]) -> float:
        mean = mean_of(samples[row, np.array(taken)])[np.newaxis]
        return float(values_of(mean, ratings, design, name, everything)[0])

    def of_subset(order: Integers, size: int) -> Floats:
        values = np.full(len(samples), np.nan)
        for row, there in enumerate(exists):
            if there.sum() >= size:
                values[row] = of_taken(row, tuple(np.sort(order[there[order]][:size]).tolist()))
        return values

    whole = values_of(np.stack([mean_of(metric) for metric in samples]), ratings, design, name, everything)
    return _curve(of_subset, whole, np.asarray(others, float), samples.shape[1], "samples", sizes, repeats, seed)


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
    value, low, high = (np.full((len(sizes), len(whole)), np.nan) for _ in range(3))
    agreement, times = np.full(len(sizes), np.nan), np.where(np.array(sizes) == count, 1, repeats)
    for at, size in enumerate(sizes):
        rng = np.random.default_rng([seed, VARIED.index(varied), size])
        drawn = np.stack([of_subset(rng.permutation(count), size) for _ in range(times[at])])
        value[at] = mean_of(drawn)
        if (there := ~np.isnan(value[at])).any():
            low[at, there], high[at, there] = np.nanquantile(drawn[:, there], [0.025, 0.975], axis=0)
        ranked, reference = (
            np.hstack([part, np.tile(others, (len(drawn), 1))]) for part in (drawn, np.tile(whole, (len(drawn), 1)))
        )
        agreement[at] = float(mean_of(rowwise(ranked, reference, "kendall")))
    return Curve(np.array(sizes, dtype=np.intp), value, low, high, agreement, times)


def mean_of(table: Floats) -> Floats:
    """Return the mean over the first axis of what is there; NaN where nothing is."""
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    means = np.full(table.shape[1:], np.nan)
    np.divide(np.where(there, table, 0.0).sum(axis=0), counts, out=means, where=counts > 0)
    return means


def values_of(scores: Floats, ratings: Floats, design: Design, name: Coefficient, chosen: Flags) -> Floats:
    """Return the coefficient of each metric over the chosen units that were rated, of system means where the design says so.

    ``scores``, ``ratings`` and ``chosen`` have the shapes (metrics, n), (n,) and (n,); the first two are NaN where missing.
    """
    if design.average:
        return rowwise(*paired_means(scores, np.where(chosen, ratings, np.nan), design), name)
    units = chosen & ~np.isnan(ratings)
    if name == "kendall":
        return coefficients(scores[:, units], ratings[units], design.of(units), [name])[:, 0]
    return rowwise(scores[:, units], np.broadcast_to(ratings[units], (len(scores), int(units.sum()))), name)
