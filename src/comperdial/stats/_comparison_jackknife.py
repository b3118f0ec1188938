"""Correlations without each cluster of units in turn: what a jackknife is made of.

Leaving out for good, not by a derivative, is what keeps a test's level where scores have long tails.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from comperdial.stats._comparison_influence import concordance, untied
from comperdial.stats.design import Integers

Floats = npt.NDArray[np.float64]


def left_out(scores: Floats, ratings: Floats, codes: Integers, name: str) -> Floats:
    """Return the coefficient of each row without each cluster in turn.

    Parameters
    ----------
    scores, ratings, codes
        Shapes (metrics, n), (n,) and (n,): cluster of each unit, from 0 on. Nothing missing.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    array
        Shape (metrics, clusters); NaN where what is left does not vary.
    """
    find = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        return find(scores, ratings, codes, int(codes.max()) + 1)


def _pearson(scores: Floats, ratings: Floats, codes: Integers, clusters: int) -> Floats:
    x = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    y = (ratings - ratings.mean()) / ratings.std()

    def rest(values: Floats) -> Floats:
        inside = np.stack([np.bincount(codes, row, minlength=clusters) for row in np.atleast_2d(values)])
        return np.asarray(inside.sum(axis=1, keepdims=True) - inside)

    n = rest(np.ones(len(y)))
    sum_x, sum_y = rest(x), rest(y)
    covariance = rest(x * y) - sum_x * sum_y / n
    return np.asarray(covariance / np.sqrt((rest(x**2) - sum_x**2 / n) * (rest(y**2) - sum_y**2 / n)))


def _spearman(scores: Floats, ratings: Floats, codes: Integers, clusters: int) -> Floats:
    groups = [np.unique(row, return_inverse=True)[1] for row in (*scores, ratings)]
    counts = [np.bincount(group) for group in groups]
    found = np.empty((len(scores), clusters))
    for cluster in range(clusters):
        out = np.flatnonzero(codes == cluster)
        y, square_y = _ranks_left(groups[-1], counts[-1], out)
        for metric in range(len(scores)):
            x, square_x = _ranks_left(groups[metric], counts[metric], out)
            found[metric, cluster] = (x @ y) / np.sqrt(square_x * square_y)
    return found


def _ranks_left(group: Integers, counts: Integers, out: Integers) -> tuple[Floats, float]:
    """Return centred ranks of the units that stay, 0 for the others, and their sum of squares."""
    left = counts - np.bincount(group[out], minlength=len(counts))
    middle = np.cumsum(left) - left / 2 - (len(group) - len(out)) / 2
    ranks = middle[group]
    ranks[out] = 0
    return ranks, float(left @ middle**2)


def _kendall(scores: Floats, ratings: Floats, codes: Integers, clusters: int) -> Floats:
    members = [np.flatnonzero(codes == cluster) for cluster in range(clusters)]
    untied_y = _pairs_left(untied, (ratings,), members)
    found = np.empty((len(scores), clusters))
    for metric, x in enumerate(scores):
        agree = _pairs_left(concordance, (x, ratings), members)
        found[metric] = agree / np.sqrt(_pairs_left(untied, (x,), members) * untied_y)
    return found


def _pairs_left(mean_of: Callable[..., Floats], sides: tuple[Floats, ...], members: list[Integers]) -> Floats:
    """Sum over the pairs of units that stay: all, minus those with a unit left out (those of two counted twice)."""
    n = len(sides[0])
    each = n * mean_of(*sides)
    within = [len(part) * float(np.sum(mean_of(*(side[part] for side in sides)))) for part in members]
    return np.array([each.sum() - 2 * each[part].sum() + own for part, own in zip(members, within, strict=True)])
