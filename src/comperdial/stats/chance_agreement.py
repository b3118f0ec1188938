"""Chance-corrected agreement of raters on ordered or unordered categories: weighted kappa and Gwet's AC."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Weighting = Literal["identity", "linear", "quadratic"]


def category_weights(count: int, weighting: Weighting) -> Floats:
    """Return the agreement weights of all pairs of ``count`` ordered categories: 1 on the diagonal."""
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) / max(count - 1, 1)
    if weighting == "identity":
        return np.asarray(apart == 0, dtype=np.float64)
    return np.asarray(1 - (apart if weighting == "linear" else apart**2))


def weighted_kappa(
    one: npt.ArrayLike, other: npt.ArrayLike, categories: npt.ArrayLike, weighting: Weighting = "quadratic"
) -> float:
    """Return Cohen's weighted kappa of two raters; NaN if chance agreement is perfect.

    Parameters
    ----------
    one, other
        Shape (n,), NaN if missing; such items do not count.
    categories
        All values of the scale, in order, including those that do not occur. Other labels are an error.
    """
    table = _coded(np.array([one, other], dtype=np.float64), categories)
    first, second = table[:, (table >= 0).all(axis=0)]
    count, n = np.size(categories), len(first)
    if not n:
        return float("nan")
    joint = np.bincount(first * count + second, minlength=count**2).reshape(count, count) / n
    weights = category_weights(count, weighting)
    chance = float((weights * np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())
    return float(((weights * joint).sum() - chance) / (1 - chance)) if chance < 1 else float("nan")


def gwet_ac(ratings: npt.ArrayLike, categories: npt.ArrayLike, weighting: Weighting = "identity") -> float:
    """Return Gwet's AC1 (identity weights) or AC2 of any number of raters, with missing ratings.

    Parameters
    ----------
    ratings
        Shape (raters, items), NaN if missing.
    categories
        As in :func:`weighted_kappa`.

    Notes
    -----
    Gwet (2008), as in the package irrCAC: agreement over items with at least two ratings, prevalences over all rated items. If
    most labels fall into few categories, AC is high and kappa low: report both.
    """
    table = _coded(np.asarray(ratings, dtype=np.float64), categories)
    count = np.size(categories)
    by_item = np.stack([(table == code).sum(axis=0) for code in range(count)], axis=1).astype(np.float64)
    sizes = by_item.sum(axis=1)
    weights = category_weights(count, weighting)
    several = sizes >= 2
    if not several.any() or count < 2:
        return float("nan")
    near = by_item @ weights
    pairs = (by_item * (near - 1)).sum(axis=1)[several] / (sizes * (sizes - 1))[several]
    prevalence = (by_item[sizes > 0] / sizes[sizes > 0, np.newaxis]).mean(axis=0)
    chance = float(weights.sum() / (count * (count - 1)) * (prevalence * (1 - prevalence)).sum())
    return float((pairs.mean() - chance) / (1 - chance))


def _coded(values: Floats, categories: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Return each label's index in the scale, -1 if missing."""
    scale = np.asarray(categories, dtype=np.float64)
    places = np.searchsorted(scale, values).clip(0, len(scale) - 1)
    there = ~np.isnan(values)
    if (wrong := values[there & (scale[places] != values)]).size:
        raise ValueError(f"{wrong[0]:g} is no category of the scale {scale.tolist()}")
    return np.where(there, places, -1).astype(np.intp)
