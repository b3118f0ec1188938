"""Exact two-sided tests of a win rate of one half, and how many votes they need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats.design import Floats, Integers


def binomial_p(wins: npt.ArrayLike, votes: npt.ArrayLike) -> Floats:
    """Return the two-sided p of so many wins among votes, each won with probability one half; 1 where there is no vote.

    The same as ``scipy.stats.binomtest(wins, votes).pvalue``, for arrays.
    """
    won, n = np.asarray(wins), np.asarray(votes)
    return np.asarray(np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(won, n - won), n, 0.5)))


def flip_p(margins: npt.ArrayLike) -> float:
    """Return the exact two-sided p of margins (wins less losses) of clusters of votes, each as likely to be turned round.

    Votes of a cluster stand or fall together, so that what they share does not pass for evidence. Where each cluster is
    one vote, this is the binomial test.
    """
    given = np.asarray(margins, dtype=np.float64).astype(int)
    sizes = np.abs(given[given != 0])
    # The chance of each sum from -total to total, by one cluster after another.
    chances = np.ones(1)
    for size in sizes.tolist():
        chances = np.pad(chances / 2, (0, 2 * size)) + np.pad(chances / 2, (2 * size, 0))
    sums = np.arange(len(chances)) - int(sizes.sum())
    return float(min(1.0, chances[np.abs(sums) >= abs(int(given.sum()))].sum()))


def _most_losses(n: npt.NDArray[np.integer], alpha: float) -> Integers:
    """Return how many of n votes the losing side may have for a significant binomial test; -1 where no result would be."""
    losses = stats.binom.ppf(alpha / 2, n, 0.5)
    return np.where(2 * stats.binom.cdf(losses, n, 0.5) <= alpha, losses, losses - 1).astype(np.intp)


def power(win_rate: float, votes: npt.ArrayLike, *, alpha: float = 0.05) -> Floats:
    """Return the probability that the two-sided binomial test of so many votes is significant; shape of ``votes``."""
    n = np.asarray(votes)
    edge = _most_losses(n, alpha)
    return np.asarray(stats.binom.cdf(edge, n, win_rate) + stats.binom.sf(n - edge - 1, n, win_rate))


def votes_needed(win_rate: float, *, power_wanted: float = 0.8, alpha: float = 0.05) -> int:
    """Return from how many votes on the binomial test at level ``alpha`` has a power, whatever more there are.

    The exact power goes up and down with the number of votes, since wins are whole numbers: this is the number from
    which it never falls below what is wanted again. ``win_rate`` is the share of votes for one of the two, ties left out,
    and not one half.
    """
    spread = np.sqrt(win_rate * (1 - win_rate))
    reach = stats.norm.ppf(1 - alpha / 2) / 2 + stats.norm.ppf(power_wanted) * spread
    near = (max(reach, 0.1) / (win_rate - 0.5)) ** 2
    # The exact number is a little above the normal one: whole wins cost at most a few of the tails' steps.
    tried = np.arange(1, int(1.3 * near + 4 / abs(win_rate - 0.5)) + 20)
    return int(tried[power(win_rate, tried, alpha=alpha) < power_wanted].max(initial=0)) + 1
