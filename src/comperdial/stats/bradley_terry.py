"""Strengths of competitors from who was preferred to whom (Bradley and Terry 1952), and preferences that go in circles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats
from scipy.sparse.csgraph import connected_components

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
_STEPS, _CLOSE = 200, 1e-12
# No step of Newton's moves a strength further: from a start far off it would overshoot.
_FURTHEST = 2.0
# Ties in each pair that make strengths finite, where only their spread over units is asked for.
_SLIGHT = 0.1


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


@dataclass(frozen=True)
class Uncertainty:
    """How sure strengths are.

    Attributes
    ----------
    low, high
        Shape (n,), the ends of the intervals; NaN where there is one unit only.
    p
        Shape (n, n), two-sided p of equal strengths given all votes, 1 on the diagonal; NaN where there is one unit only.
    """

    low: Floats
    high: Floats
    p: Floats


@dataclass(frozen=True)
class Ballots:
    """Single votes, each of shape (votes,).

    Attributes
    ----------
    first, second
        Codes of the two competitors, all from 0 on in use.
    won
        1 where the first is preferred, 0 where the second is, 0.5 for a tie.
    units
        Codes from 0 on of what a vote belongs to: votes of a unit may be alike.
    """

    first: Integers
    second: Integers
    won: Floats
    units: Integers

    @property
    def wins(self) -> Floats:
        """Return how often row was preferred to column, as :func:`strengths` takes it."""
        n = int(max(self.first.max(), self.second.max())) + 1
        found = np.zeros((n, n))
        np.add.at(found, (self.first, self.second), self.won)
        np.add.at(found, (self.second, self.first), 1 - self.won)
        return found


def uncertainty(votes: Ballots, *, confidence: float = 0.95) -> Uncertainty:
    """Return intervals of the Bradley-Terry strengths, and tests of their differences.

    An interval holds the strengths whose profile likelihood is not too low: twice the difference of the logarithms is at
    most the square of a quantile of Student's t, of as many degrees of freedom as there are units. It never vanishes,
    however unanimous the votes are. To the likelihood a tie is added for each competitor but one, spread evenly over the
    pairs that met, which for two is Jeffreys' prior and Firth's penalty (1993): plain likelihood covers too little where
    one nearly always wins. Votes of a unit may be alike: the difference is divided by the ratio of the sandwich variance,
    over units, and that of independent votes. Where some only ever win or lose against the rest, their votes say nothing
    of how alike those of a unit are, which then count as copies of each other. The tests are Wald's with the same ratio.
    benchmarks/bradley_terry.py prints what the intervals cover.

    Parameters
    ----------
    votes
        What met must be connected.
    confidence
        Share of intervals that are to cover, between 0 and 1.
    """
    wins = _checked(votes.wins)
    count, n = int(votes.units.max()) + 1, len(wins)
    unknown = np.full(n, np.nan)
    if count < 2:
        return Uncertainty(unknown, unknown, np.full((n, n), np.nan))
    met = (wins + wins.T) > 0
    counts = wins + met * (n - 1) / met.sum()
    centre = strengths(counts)
    inverse = np.linalg.inv(_curvature(counts, centre)) - 1 / n
    ratio = _ratio(votes, wins)
    quantile = float(stats.t.ppf((1 + confidence) / 2, count))
    low, high = unknown.copy(), unknown.copy()
    for one in range(n):
        profile = _Profile(counts, centre, one)
        near = quantile * np.sqrt(inverse[one, one] * ratio[one])
        low[one], high[one] = (profile.reaches(quantile**2 * ratio[one], side * near) for side in (-1, 1))
    of_one = np.diag(inverse)
    variance = of_one[:, np.newaxis] + of_one - 2 * inverse
    variance = variance * np.maximum(ratio[:, np.newaxis], ratio)
    np.fill_diagonal(variance, 1.0)
    p = 2 * stats.t.sf(np.abs(centre[:, np.newaxis] - centre) / np.sqrt(variance), count)
    return Uncertainty(low, high, np.asarray(p))


def _chances(found: Floats) -> Floats:
    return np.asarray(special.expit(found[:, np.newaxis] - found))


def _curvature(counts: Floats, found: Floats) -> Floats:
    """Return minus the second derivatives of the likelihood; 1 / n holds the mean of strengths where it is."""
    chance = _chances(found)
    weights = (counts + counts.T) * chance * (1 - chance)
    return np.asarray(np.diag(weights.sum(axis=1)) - weights + 1 / len(counts))


def _ratio(votes: Ballots, wins: Floats) -> Floats:
    """Return by how much more each strength varies, given that votes of a unit may be alike: shape (n,)."""
    count, n = int(votes.units.max()) + 1, len(wins)
    part = connected_components(wins > 0, directed=True, connection="strong")[1]
    # Of votes between these parts all are for the same one.
    unanimous = part[votes.first] != part[votes.second]
    plain = wins + (_SLIGHT / 2 * ((wins + wins.T) > 0) if unanimous.any() else 0.0)
    found = strengths(plain)
    inverse = np.linalg.inv(_curvature(plain, found)) - 1 / n
    surprise = votes.won - special.expit(found[votes.first] - found[votes.second])
    moves = np.zeros((count, n))
    np.add.at(moves, (votes.units, votes.first), surprise)
    np.add.at(moves, (votes.units, votes.second), -surprise)
    robust = ((moves @ inverse) ** 2).sum(axis=0)
    if len(votes.won) > count:
        # Clusters vary about a mean of theirs.
        robust *= count / (count - 1)
    # Votes with ties vary less, but never not at all: a few may all be ties by chance.
    least = ((votes.won != 0.5).sum() + 1) / (len(votes.won) + 1)
    if unanimous.any():
        sizes = np.bincount(votes.units[unanimous])
        least = max(least, float((sizes**2).sum() / sizes.sum()))
    return np.asarray(np.maximum(robust / np.diag(inverse), least))


class _Profile:
    """The likelihood at a strength of one competitor, at its best over those of the others."""

    def __init__(self, counts: Floats, centre: Floats, one: int) -> None:
        self._counts, self._centre, self._one = counts, centre, one
        n = len(counts)
        # What can move: the others, their mean held by what the one's strength leaves.
        held = np.stack([np.eye(n)[one], np.ones(n)])
        self._free = np.linalg.svd(held)[2][2:].T
        self._best = self._value(centre)

    def _value(self, found: Floats) -> float:
        return float((self._counts * np.log(_chances(found))).sum())

    def deviance(self, strength: float) -> float:
        """Return twice by how much the likelihood's logarithm lies below its maximum."""
        n = len(self._centre)
        shift = np.full(n, -(strength - self._centre[self._one]) / (n - 1))
        shift[self._one] *= -(n - 1)
        found = self._centre + shift
        for _ in range(_STEPS if n > 2 else 0):
            chance = _chances(found)
            residual = self._counts.sum(axis=1) - ((self._counts + self._counts.T) * chance).sum(axis=1)
            step = self._free @ np.linalg.solve(
                self._free.T @ _curvature(self._counts, found) @ self._free, self._free.T @ residual
            )
            step *= min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
            found = found + step
            if np.abs(step).max() < 1e-9:
                break
        return 2 * (self._best - self._value(found))

    def reaches(self, bound: float, near: float) -> float:
        """Return the strength at which the deviance is so much; ``near`` says on which side, and about how far off."""
        start = float(self._centre[self._one])
        far = near
        while self.deviance(start + far) < bound:
            far *= 1.5
        return float(optimize.brentq(lambda at: self.deviance(start + at) - bound, 0.0, far, xtol=1e-6)) + start


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
