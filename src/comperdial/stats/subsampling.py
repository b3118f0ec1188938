"""Learning curves: how the ranking of metrics changes with fewer systems, dialogues, annotators or judge samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import coefficients
from comperdial.stats.correlation import rowwise
from comperdial.stats.design import Design, Flags, Floats, Integers
from comperdial.stats.means import paired_means

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
        Of the n units; ``pearson``, ``spearman`` or ``kendall``.
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
    table, ratings = np.asarray(scores, dtype=np.float64), np.asarray(rating_matrix, dtype=np.float64)
    if table.ndim != 2 or ratings.ndim != 2 or ratings.shape[1] != table.shape[1]:
        raise ValueError(f"expected (metrics, n) and (annotators, n), got shapes {table.shape} and {ratings.shape}")
    everyone, everything = mean_of(ratings), np.ones(ratings.shape[1], dtype=np.bool_)
    codes = {"systems": design.systems, "dialogues": design.dialogues}
    count = len(ratings) if varied == "annotators" else design.counts[varied == "dialogues"]
    known: dict[bytes, Floats] = {}

    def of_subset(order: Integers, size: int) -> Floats:
        taken = np.zeros(count, dtype=np.bool_)
        taken[order[:size]] = True
        key = taken.tobytes()
        # Of a few annotators there are few subsets.
        if key not in known:
            if varied == "annotators":
                known[key] = values_of(table, mean_of(ratings[taken]), design, name, everything)
            else:
                known[key] = values_of(table, everyone, design, name, taken[codes[varied]])
        return known[key]

    whole = values_of(table, everyone, design, name, everything)
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
                mean = mean_of(table[row, taken])[np.newaxis]
                known[key] = float(values_of(mean, human, design, name, everything)[0])
            found[row] = known[key]
        return found

    whole = values_of(np.stack([mean_of(metric) for metric in table]), human, design, name, everything)
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


def values_of(scores: Floats, ratings: Floats, design: Design, name: Coefficient, chosen: Flags) -> Floats:
    """Return the coefficient of each metric over the chosen units that were rated, of system means where the design says so.

    Parameters
    ----------
    scores, ratings, chosen
        Shapes (metrics, n), (n,) and (n,); scores and ratings are NaN where missing.
    """
    if design.average:
        means = paired_means(scores, np.where(chosen, ratings, np.nan), design)
        return rowwise(*means, name)
    units = chosen & ~np.isnan(ratings)
    if name == "kendall":
        return coefficients(scores[:, units], ratings[units], design.of(units), [name])[:, 0]
    return rowwise(scores[:, units], np.broadcast_to(ratings[units], (len(scores), int(units.sum()))), name)
