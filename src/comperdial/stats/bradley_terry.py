"""Strengths of competitors from pairwise preferences (Bradley and Terry 1952)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy
from scipy.sparse.csgraph import connected_components

from comperdial.stats.design import Floats, Integers

# Ties added per pair to make strengths finite, where only their spread over units is needed.
_SLIGHT = 0.1


def _linked(wins: Floats) -> tuple[int, Integers]:
    """Return the number of components strongly connected by wins, and the component of each competitor."""
    parts, part = connected_components(wins > 0, directed=True, connection="strong")
    return int(parts), part.astype(np.intp)


def has_strengths(wins: npt.ArrayLike) -> bool:
    """Return whether finite strengths exist (Ford 1957): wins connect each competitor to every other."""
    return bool(_linked(np.asarray(wins))[0] == 1)


def strengths(wins: npt.ArrayLike, *, prior: float = 0.0) -> Floats:
    """Return the maximum-likelihood strengths of the Bradley-Terry model, by Newton's method.

    i is preferred to j with probability 1 / (1 + exp(s_j - s_i)).

    Parameters
    ----------
    wins
        Shape (n, n): how often row was preferred to column; a tie is half a win for both.
    prior
        Ties added to each pair of competitors that met, which makes strengths finite if comparisons connect all competitors.
        0 gives the plain estimate.

    Returns
    -------
    array
        Shape (n,), log strengths with mean 0. Raises a ValueError if finite strengths do not exist.
    """
    counts = np.asarray(wins, dtype=np.float64)
    counts = counts + prior / 2 * ((counts + counts.T) > 0)
    if not has_strengths(counts):
        raise ValueError("finite strengths do not exist: some are only ever preferred to the others, or never compared")
    values = np.zeros(len(counts))
    for _ in range(200):
        expected = ((counts + counts.T) * scipy.special.expit(values[:, np.newaxis] - values)).sum(axis=1)
        step = np.linalg.solve(_curvature(counts, values), counts.sum(axis=1) - expected)
        # Limit the step, which could overshoot from a distant start.
        values += step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-12:
            break
    return values - values.mean()


def _curvature(counts: Floats, values: Floats) -> Floats:
    """Return the negative Hessian of the log likelihood; the term 1 / n fixes the mean of the strengths."""
    chance = scipy.special.expit(values[:, np.newaxis] - values)
    weights = (counts + counts.T) * chance * (1 - chance)
    return np.asarray(np.diag(weights.sum(axis=1)) - weights + 1 / len(counts))


@dataclass(frozen=True)
class Ballots:
    """Single votes as arrays of shape (votes,).

    ``first`` and ``second`` are codes of two competitors, ``won`` is 1 if the first is preferred, 0 if the second is, 0.5 for a
    tie; votes with the same code in ``units`` may be dependent. Codes are consecutive from 0.
    """

    first: Integers
    second: Integers
    won: Floats
    units: Integers

    @property
    def wins(self) -> Floats:
        """Return how often row was preferred to column, the input of :func:`strengths`."""
        wins = np.zeros((int(max(self.first.max(), self.second.max())) + 1,) * 2)
        np.add.at(wins, (self.first, self.second), self.won)
        np.add.at(wins, (self.second, self.first), 1 - self.won)
        return wins


def uncertainty(votes: Ballots) -> tuple[Floats, Floats, Floats]:
    """Return the ends of 95 % intervals of strengths, shape (n,) each, and two-sided p of equal strengths, (n, n).

    All are NaN if there is only one unit. Competitors must be connected.

    Intervals and tests are Wald's, using Student's t with the number of units as degrees of freedom. For n competitors,
    n - 1 ties are added, spread evenly over the pairs that met; for two this is Jeffreys' prior and Firth's penalty (1993).
    Without it, intervals undercover if one competitor nearly always wins, and vanish for unanimous votes. Votes of a unit may
    be dependent: variances are multiplied by the ratio of the sandwich variance over units to that of independent votes. If
    some competitors only ever win or lose against the rest, their votes contain no information about dependence, and votes of a
    unit count as copies of each other. benchmarks/bradley_terry.py measures the coverage.
    """
    wins = votes.wins
    count, n = int(votes.units.max()) + 1, len(wins)
    if count < 2:
        return np.full(n, np.nan), np.full(n, np.nan), np.full((n, n), np.nan)
    met = (wins + wins.T) > 0
    counts = wins + met * (n - 1) / met.sum()
    centre = strengths(counts)
    inverse, ratio = np.linalg.inv(_curvature(counts, centre)) - 1 / n, _ratio(votes, wins)
    own = np.diag(inverse)
    reach = scipy.stats.t.ppf(0.975, count) * np.sqrt(own * ratio)
    variance = (own[:, np.newaxis] + own - 2 * inverse) * np.maximum(ratio[:, np.newaxis], ratio)
    np.fill_diagonal(variance, 1.0)
    p = 2 * scipy.stats.t.sf(np.abs(centre[:, np.newaxis] - centre) / np.sqrt(variance), count)
    return centre - reach, centre + reach, p


def _ratio(votes: Ballots, wins: Floats) -> Floats:
    """Return the factor by which dependence of votes within units increases each strength's variance: shape (n,)."""
    count, n = int(votes.units.max()) + 1, len(wins)
    part = _linked(wins)[1]
    # Votes between these components are unanimous.
    unanimous = part[votes.first] != part[votes.second]
    plain = wins + (_SLIGHT / 2 * ((wins + wins.T) > 0) if unanimous.any() else 0.0)
    values = strengths(plain)
    inverse = np.linalg.inv(_curvature(plain, values)) - 1 / n
    surprise = votes.won - scipy.special.expit(values[votes.first] - values[votes.second])
    moves = np.zeros((count, n))
    np.add.at(moves, (votes.units, votes.first), surprise)
    np.add.at(moves, (votes.units, votes.second), -surprise)
    robust = ((moves @ inverse) ** 2).sum(axis=0)
    if len(votes.won) > count:
        # Correct for the estimated mean of the clusters.
        robust *= count / (count - 1)
    # Ties lower the variance of votes, but it must stay positive: a few votes may all be ties by chance.
    least = ((votes.won != 0.5).sum() + 1) / (len(votes.won) + 1)
    if unanimous.any():
        sizes = np.bincount(votes.units[unanimous])
        least = max(least, float((sizes**2).sum() / sizes.sum()))
    return np.asarray(np.maximum(robust / np.diag(inverse), least))
