"""Means of systems, and ties among them: means that differ by rounding only are equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from comperdial.stats.design import Design, Floats, Integers, by_units

# A double keeps 52 binary digits; the sum of some thousands of them loses a few. What agrees in the first 44, thirteen
# decimal digits, is one number. Scores are stored with 24, so that no two of them are made equal by this.
TIED = 2.0**-44


def merge_ties(values: npt.ArrayLike, sizes: npt.ArrayLike = 0.0) -> Floats:
    """Make equal the means of a row that differ by rounding only, since rounding depends on the order of summing.

    Parameters
    ----------
    values
        Rows along the last axis; NaN stays NaN.
    sizes
        Broadcast to values: the mean absolute value of what each mean is of, which is what it was rounded at. Numbers
        nearer to each other than 2^-44 of this, or of themselves, are equal. May be left out if nothing that is averaged
        is negative: the mean itself is as large then.

    Returns
    -------
    array
        Same shape: the smallest of those that are equal in place of each of them, all others as they were.
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
    """Average by system; means that differ by rounding only are ties.

    Parameters
    ----------
    values
        Shape (n,) or (k, n), scores or ratings of the units of the design; NaN where missing, and left out.
    design
        Of the n units.

    Returns
    -------
    array
        Shape (systems,) or (k, systems), NaN for a system without a value.
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
    return merge_ties(means.reshape(-1, count), sizes.reshape(-1, count)).reshape(*np.shape(values)[:-1], count)


def paired_means(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design) -> tuple[Floats, Floats]:
    """Average metrics and ratings by system, each metric over the units that it scored and people rated.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), NaN where missing.
    design
        Of the n units.

    Returns
    -------
    tuple
        Means of scores and of ratings, each of shape (metrics, systems) and as :func:`system_means` gives them.
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
