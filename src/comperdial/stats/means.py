"""Means of systems, and ties among them: means that differ by rounding only are equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from comperdial.stats.design import Design, Floats, Integers, by_units

# A double keeps 52 binary digits; the sum of some thousands of them loses a few. What agrees in the first 44, thirteen
# decimal digits, is one number. Scores are stored with 24, so that no two of them are made equal by this.
TIED = 2.0**-44


def merge_ties(values: npt.ArrayLike, sizes: npt.ArrayLike = 0.0) -> Floats:
    """Make equal the means of a row (the last axis) that differ by rounding only, which depends on the order of summing.

    ``sizes`` are the mean absolute values of what each mean is of, which it was rounded at; they may be left out if nothing
    that is averaged is negative. Numbers nearer to each other than 2^-44 of this, or of themselves, are equal: the smallest of
    them replaces each. NaN stays NaN.
    """
    table = np.asarray(values, dtype=np.float64)
    order = np.argsort(table, axis=-1)
    ordered = np.take_along_axis(table, order, axis=-1)
    size = np.take_along_axis(np.maximum(np.abs(table), sizes), order, axis=-1)
    with np.errstate(invalid="ignore"):
        apart = np.diff(ordered, axis=-1)
        near = apart <= TIED * np.maximum(size[..., 1:], size[..., :-1])
    if not (near & (apart > 0)).any():
        return table.copy()
    starts = np.zeros(table.shape, dtype=np.intp)
    starts[..., 1:] = np.where(near, 0, np.arange(1, table.shape[-1]))
    merged = np.take_along_axis(ordered, np.maximum.accumulate(starts, axis=-1), axis=-1)
    result = np.empty_like(table)
    np.put_along_axis(result, order, merged, axis=-1)
    return result


def group_means(values: Floats, codes: Integers, count: int) -> Floats:
    """Return the mean of the values of each code from 0 to count - 1; NaN for one without values."""
    counts = np.bincount(codes, minlength=count)
    sums = np.bincount(codes, values, minlength=count)
    return np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)


def system_means(values: npt.ArrayLike, design: Design) -> Floats:
    """Average values, (n,) or (k, n), by system: shape (systems,) or (k, systems).

    Missing values (NaN) are left out; a system without any has NaN. Means that differ by rounding only are ties.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    count = design.counts[0]
    means, sizes = (
        np.array(
            [
                group_means(row[there], design.systems[there], count)
                for row, there in zip(of, ~np.isnan(of), strict=True)
            ]
        )
        for of in (table, np.abs(table))
    )
    return merge_ties(means.reshape(len(table), count), sizes.reshape(len(table), count)).reshape(
        *np.shape(values)[:-1], count
    )


def paired_means(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design) -> tuple[Floats, Floats]:
    """Average metrics, (metrics, n), and ratings, (n,), by system, each metric over the units that it scored and people rated.

    Both tables of means have the shape (metrics, systems), since ratings are those of a metric's units.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    x = system_means(np.where(np.isnan(human), np.nan, table), design)
    y = np.full_like(x, np.nan)
    for rows, kept in by_units(table):
        y[rows] = system_means(np.where(kept, human, np.nan), design)
    return x, y


def paired(scores: Floats, ratings: Floats, design: Design) -> list[tuple[Floats, Floats]]:
    """Return each metric's complete pairs of score and rating: of units, or of systems' means if the design averages."""
    if not design.average:
        return [(row[there], ratings[there]) for row, there in zip(scores, ~np.isnan(scores), strict=True)]
    means = zip(*paired_means(scores, ratings, design), strict=True)
    return [(x[there], y[there]) for x, y in means for there in [~np.isnan(x)]]
