"""Means of systems, and ties among them: numbers that differ by rounding only are equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from comperdial.stats.design import Design

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# Numbers closer than this share of the largest number they are made of are equal. A double keeps 2^-52; a sum of some
# thousands of numbers, ten digits more.
TIED = 2.0**-40


def settled(values: npt.ArrayLike, largest: npt.ArrayLike | None = None) -> Floats:
    """Make equal the numbers of a row that differ by rounding only.

    The mean of ratings depends in its last digits on the order of summing; two systems with the same ratings would get
    different ranks.

    Parameters
    ----------
    values
        Rows along the last axis; NaN stays NaN.
    largest
        The largest absolute number that the values of a row were computed from, by row (one axis fewer than values) or
        one for all; numbers nearer to each other than 2^-40 of it are equal. Default: the row's own largest. A mean
        of numbers of both signs may be near 0 and still be off by the rounding of those numbers: give theirs then.

    Returns
    -------
    array
        Same shape: the smallest of those that are equal in place of each of them, all others as they were. What else
        is in another row, or in the same one farther away, does not matter.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.size == 0:
        return table.copy()
    top = np.nan_to_num(np.abs(table)).max(axis=-1) if largest is None else np.asarray(largest, dtype=np.float64)
    order = np.argsort(table, axis=-1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=-1)
    near = np.zeros(table.shape, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        near[..., 1:] = np.diff(ordered, axis=-1) <= TIED * top[..., np.newaxis]
    if not (near[..., 1:] & (ordered[..., 1:] != ordered[..., :-1])).any():
        return table.copy()
    first = np.maximum.accumulate(np.where(near, 0, np.arange(table.shape[-1])), axis=-1)
    found = np.empty_like(table)
    np.put_along_axis(found, order, np.take_along_axis(ordered, first, axis=-1), axis=-1)
    return found


def system_means(values: npt.ArrayLike, design: Design) -> Floats:
    """Average by system, and settle ties.

    Parameters
    ----------
    values
        Shape (..., n), scores or ratings of the units of the design; NaN where missing, and left out.
    design
        Of the n units.

    Returns
    -------
    array
        Shape (..., systems), NaN for a system without a value.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.shape[-1:] != design.systems.shape:
        raise ValueError(f"expected values of {len(design.systems)} units along the last axis, got {table.shape}")
    count = int(design.systems.max(initial=-1)) + 1
    return averages(table.reshape(-1, len(design.systems)), design.systems, count).reshape(*table.shape[:-1], count)


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
    if table.ndim != 2 or not table.shape[1:] == human.shape == design.systems.shape:
        raise ValueError(f"expected (metrics, n) and n ratings, got shapes {table.shape} and {human.shape}")
    return paired_averages(table, human, design.systems, int(design.systems.max(initial=-1)) + 1)


def averages(rows: Floats, systems: Integers, count: int) -> Floats:
    """Do what :func:`system_means` does for rows (k, n); of the systems 0 to count - 1 not all need be there."""
    found = np.full((len(rows), count), np.nan)
    missing = np.isnan(rows)
    for row, gap, means in zip(rows, missing, found, strict=True):
        codes, values = (systems[~gap], row[~gap]) if gap.any() else (systems, row)
        sizes = np.bincount(codes, minlength=count)
        np.divide(np.bincount(codes, values, minlength=count), sizes, out=means, where=sizes > 0)
    return settled(found, np.where(missing, 0.0, np.abs(rows)).max(axis=-1, initial=0.0))


def paired_averages(scores: Floats, ratings: Floats, systems: Integers, count: int) -> tuple[Floats, Floats]:
    """Do what :func:`paired_means` does; of the systems 0 to count - 1 not all need be there."""
    x = averages(np.where(np.isnan(ratings), np.nan, scores), systems, count)
    missing = np.isnan(scores)
    if not missing.any():
        return x, np.broadcast_to(averages(ratings[np.newaxis], systems, count), x.shape)
    patterns, pattern = np.unique(missing, axis=0, return_inverse=True)
    y = averages(np.where(patterns, np.nan, ratings), systems, count)
    return x, np.asarray(y[pattern.reshape(-1)])
