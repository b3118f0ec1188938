"""Exact two-sided tests of a win rate of one half, and the number of votes that they need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats.design import Floats, Integers


def binomial_p(wins: npt.ArrayLike, votes: npt.ArrayLike) -> Floats:
    """Return the two-sided binomial p of ``wins`` among ``votes`` for a win rate of one half; 1 without votes.

    Equals ``scipy.stats.binomtest(wins, votes).pvalue``, for arrays.
    """
    won, n = np.asarray(wins), np.asarray(votes)
    return np.asarray(np.minimum(1.0, 2 * scipy.stats.binom.cdf(np.minimum(won, n - won), n, 0.5)))


def flip_p(margins: npt.ArrayLike) -> float:
    """Return the exact two-sided p of cluster margins (wins minus losses) under random sign flips.

    Votes of a cluster are flipped together, so that dependence within clusters is respected. With one vote per cluster, this is
    the binomial test.
    """
    given = np.asarray(margins, dtype=np.float64).astype(int)
    sizes = np.abs(given[given != 0])
    # The distribution of the sum from -total to total, adding one cluster at a time.
    chances = np.ones(1)
    for size in sizes.tolist():
        chances = np.pad(chances / 2, (0, 2 * size)) + np.pad(chances / 2, (2 * size, 0))
    sums = np.arange(len(chances)) - int(sizes.sum())
    return float(min(1.0, chances[np.abs(sums) >= abs(int(given.sum()))].sum()))


def _most_losses(n: npt.NDArray[np.integer], alpha: float) -> Integers:
    """Return the maximum votes of the losing side for a significant binomial test of n votes; -1 if none is significant."""
    losses = scipy.stats.binom.ppf(alpha / 2, n, 0.5)
    return np.where(2 * scipy.stats.binom.cdf(losses, n, 0.5) <= alpha, losses, losses - 1).astype(np.intp)


def power(win_rate: float, votes: npt.ArrayLike, *, alpha: float = 0.05) -> Floats:
    """Return the power of the two-sided binomial test; shape of ``votes``."""
    n = np.asarray(votes)
    edge = _most_losses(n, alpha)
    return np.asarray(scipy.stats.binom.cdf(edge, n, win_rate) + scipy.stats.binom.sf(n - edge - 1, n, win_rate))


def votes_needed(win_rate: float, *, power_wanted: float = 0.8, alpha: float = 0.05) -> int:
    """Return the number of votes from which the binomial test at level ``alpha`` keeps the wanted power.

    The exact power is not monotonic in the number of votes, since wins are integers: this is the number from which it never
    falls below the wanted power again. ``win_rate`` is the share of votes for one of the two, without ties, and not one half.
    """
    spread = np.sqrt(win_rate * (1 - win_rate))
    reach = scipy.stats.norm.ppf(1 - alpha / 2) / 2 + scipy.stats.norm.ppf(power_wanted) * spread
    near = (max(reach, 0.1) / (win_rate - 0.5)) ** 2
    # The exact number is slightly above the normal approximation: integer wins cost at most a few steps of the tails.
    tried = np.arange(1, int(1.3 * near + 4 / abs(win_rate - 0.5)) + 20)
    return int(tried[power(win_rate, tried, alpha=alpha) < power_wanted].max(initial=0)) + 1
