"""System means, treating means that differ only by rounding as ties."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from comperdial.stats.design import Design, Floats, Integers, by_units

# A double has 52 binary digits, and the sum of some thousands of numbers loses a few. Values that agree in the first 44
# (thirteen decimals) are equal. Scores are stored with 24 digits, so distinct scores stay distinct.
TIED = 2.0**-44


def merge_ties(values: npt.ArrayLike, sizes: npt.ArrayLike = 0.0) -> Floats:
    """Make means of a row (the last axis) equal if they differ only by rounding, which depends on the order of summing.

    ``sizes`` are the mean absolute values of what is averaged, which determine the rounding; optional if nothing is negative.
    Numbers closer than 2^-44 relative to this, or to themselves, are replaced by the smallest of them. NaN stays NaN.
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
    """Return the mean of the values of each code from 0 to count - 1; NaN without values."""
    counts = np.bincount(codes, minlength=count)
    sums = np.bincount(codes, values, minlength=count)
    return np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0)


def system_means(values: npt.ArrayLike, design: Design) -> Floats:
    """Average values, (n,) or (k, n), by system: shape (systems,) or (k, systems).

    Missing values (NaN) are ignored; a system without values gets NaN. Means that differ only by rounding are ties.
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
    """Average metrics, (metrics, n), and ratings, (n,), by system, over the units that each metric scored.

    Both results have shape (metrics, systems), since ratings are averaged over a metric's units.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    x = system_means(np.where(np.isnan(human), np.nan, table), design)
    y = np.full_like(x, np.nan)
    for rows, kept in by_units(table):
        y[rows] = system_means(np.where(kept, human, np.nan), design)
    return x, y


def paired(scores: Floats, ratings: Floats, design: Design) -> list[tuple[Floats, Floats]]:
    """Return each metric's complete pairs of score and rating: units, or system means if the design averages."""
    if not design.average:
        return [(row[there], ratings[there]) for row, there in zip(scores, ~np.isnan(scores), strict=True)]
    means = zip(*paired_means(scores, ratings, design), strict=True)
    return [(x[there], y[there]) for x, y in means for there in [~np.isnan(x)]]
