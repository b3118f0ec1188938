"""How much each unit moves a correlation: the empirical influence function of Pearson, Spearman and Kendall.

With weights w on the units (1/n each in the sample), a coefficient changes by about the sum of (w - 1/n) x influence.
Sums of it over systems and dialogues are what variances and sign flips are made of.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats import COEFFICIENTS, Coefficient

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
# Numbers held at a time by Kendall's direct comparison of all pairs: 64 MB of them.
_AT_ONCE = 2**23


def influence(scores: Floats, ratings: Floats, name: Coefficient) -> tuple[Floats, Floats]:
    """Return the coefficient of each row with the ratings, and the influence of each unit on it.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).

    Returns
    -------
    tuple
        Values (metrics,) and influences (metrics, n), each row of which sums to 0; NaN where a side does not vary.
    """
    if name not in COEFFICIENTS:
        raise ValueError(f"unknown coefficient {name!r}: expected one of {', '.join(COEFFICIENTS)}")
    count = len(ratings)
    values, moves = np.full(len(scores), np.nan), np.full(scores.shape, np.nan)
    if count < 2 or np.ptp(ratings) == 0:
        return values, moves
    varies = np.ptp(scores, axis=1) > 0
    if name == "pearson":
        values[varies], moves[varies] = _pearson(_standardised(scores[varies]), _standardised(ratings))
    elif name == "spearman":
        for row in np.flatnonzero(varies):
            values[row], moves[row] = _spearman(scores[row], ratings)
    else:
        untied_y = untied(ratings)
        for row in np.flatnonzero(varies):
            values[row], moves[row] = _kendall(scores[row], ratings, untied_y)
    return values, moves


def _standardised(values: Floats) -> Floats:
    centred = values - values.mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True)))


def _pearson(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    values = np.asarray((x * y).mean(axis=-1))
    return values, x * y - values[..., None] * (x**2 + y**2) / 2


def _spearman(x: Floats, y: Floats) -> tuple[float, Floats]:
    ranks_x, ranks_y = stats.rankdata(x), stats.rankdata(y)
    u, v = _standardised(ranks_x), _standardised(ranks_y)
    value, moves = _pearson(u, v)
    # A unit also moves the ranks of those above it.
    moves = moves + _above(ranks_x, v - value * u) / ranks_x.std() + _above(ranks_y, u - value * v) / ranks_y.std()
    return float(value), moves - moves.mean()


def _above(ranks: Floats, weights: Floats) -> Floats:
    """For each unit, the sum of the weights of those ranked above it and half of those tied with it."""
    _, group = np.unique(ranks, return_inverse=True)
    sums = np.bincount(group, weights)
    return np.asarray((np.cumsum(sums[::-1])[::-1] - sums / 2)[group])


def untied(values: Floats) -> Floats:
    """For each unit, the share of units that differ from it."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(1 - counts[group] / len(values))


def _kendall(x: Floats, y: Floats, untied_y: Floats) -> tuple[float, Floats]:
    agree, untied_x = concordance(x, y), untied(x)
    mean, mean_x, mean_y = agree.mean(), untied_x.mean(), untied_y.mean()
    value = float(mean / np.sqrt(mean_x * mean_y))
    moves = 2 * agree / np.sqrt(mean_x * mean_y) - value * (untied_x / mean_x + untied_y / mean_y)
    return value, moves - moves.mean()


def concordance(x: Floats, y: Floats) -> Floats:
    """For each unit, the mean over all units of sign(x - x') sign(y - y')."""
    ranks, rank = np.unique(x, return_inverse=True)
    levels, level = np.unique(y, return_inverse=True)
    count = len(x)
    if len(levels) * len(ranks) <= _AT_ONCE:
        return _by_level(level, rank, len(levels), len(ranks)) / count
    found = np.empty(count)
    step = max(1, _AT_ONCE // count)
    for start in range(0, count, step):
        part = slice(start, start + step)
        found[part] = np.mean(np.sign(x[part, None] - x) * np.sign(y[part, None] - y), axis=1)
    return found


def _by_level(level: Integers, rank: Integers, levels: int, ranks: int) -> Floats:
    """Ratings have few values: count, for each of them and each score, how many units lie below and above."""
    counts = np.bincount(level * ranks + rank, minlength=levels * ranks).reshape(levels, ranks)
    upto = np.cumsum(counts, axis=1)
    surplus = 2 * upto - counts - upto[:, -1:]
    lower = np.cumsum(surplus, axis=0)
    # Those of lower ratings minus those of higher ones.
    return np.asarray((2 * lower - surplus - lower[-1])[level, rank], dtype=np.float64)
