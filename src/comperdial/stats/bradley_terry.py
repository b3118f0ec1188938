"""Strengths of competitors from who was preferred to whom (Bradley and Terry 1952), and preferences that go in circles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

Floats = npt.NDArray[np.float64]
_STEPS, _CLOSE = 200, 1e-12
# No step of Newton's moves a strength further: from a start far off it would overshoot.
_FURTHEST = 2.0


def has_strengths(wins: npt.ArrayLike) -> bool:
    """Return whether finite strengths exist (Ford 1957): from each competitor, wins lead to every other."""
    return bool(connected_components(_checked(wins) > 0, directed=True, connection="strong")[0] == 1)


def strengths(wins: npt.ArrayLike, *, prior: float = 0.0) -> Floats:
    """Return the maximum-likelihood strengths of the Bradley-Terry model, by Newton's method.

    i is preferred to j with probability 1 / (1 + exp(s_j - s_i)).

    Parameters
    ----------
    wins
        Shape (n, n): how often row was preferred to column; a tie is half a win for both.
    prior
        So many ties are added to each two competitors that met, which makes strengths finite where
        :func:`has_strengths` is False as long as all of them are connected. 0 gives the plain estimate.

    Returns
    -------
    array
        Shape (n,), logarithms with a mean of 0.

    Raises
    ------
    ValueError
        For counts that are none, and where finite strengths do not exist.
    """
    counts = _checked(wins)
    if prior < 0:
        raise ValueError(f"expected a prior of 0 or more, got {prior}")
    counts = counts + prior / 2 * ((counts + counts.T) > 0)
    if not has_strengths(counts):
        raise ValueError("finite strengths do not exist: some are only ever preferred to the others, or never compared")
    n = len(counts)
    met, won = counts + counts.T, counts.sum(axis=1)
    found = np.zeros(n)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(found[np.newaxis, :] - found[:, np.newaxis]))
        weights = met * chance * (1 - chance)
        # Strengths are known up to a constant: 1 / n holds their mean where it is.
        curvature = np.diag(weights.sum(axis=1)) - weights + 1 / n
        step = np.linalg.solve(curvature, won - (met * chance).sum(axis=1))
        step *= min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
        found += step
        found -= found.mean()
        if np.abs(step).max() < _CLOSE:
            return found
    raise ValueError(f"no convergence in {_STEPS} steps")


def cycles(beats: npt.ArrayLike) -> list[tuple[int, int, int]]:
    """Return the triples of competitors that beat each other in a circle: i beats j, j beats k, k beats i.

    Parameters
    ----------
    beats
        Shape (n, n), True where row beats column.
    """
    table = np.asarray(beats, dtype=np.bool_)
    found = []
    for i, j, k in combinations(range(len(table)), 3):
        if table[i, j] and table[j, k] and table[k, i]:
            found.append((i, j, k))
        if table[i, k] and table[k, j] and table[j, i]:
            found.append((i, k, j))
    return found


def _checked(wins: npt.ArrayLike) -> Floats:
    counts = np.asarray(wins, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or len(counts) < 2:
        raise ValueError(f"expected wins of shape (n, n) with n of 2 or more, got {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any() or np.diag(counts).any():
        raise ValueError("expected counts of 0 or more, and none of a competitor over itself")
    return counts
