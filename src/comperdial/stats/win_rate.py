"""Exact two-sided tests of a win rate of one half, how many votes they need, and a test after every vote."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from comperdial.stats.design import Flags, Floats, Integers


def binomial_p(wins: npt.ArrayLike, votes: npt.ArrayLike) -> Floats:
    """Return the two-sided p of so many wins among votes, each of which is won with probability one half.

    The same as ``scipy.stats.binomtest(wins, votes).pvalue``, for arrays; 1 where there is no vote.
    """
    won, n = np.asarray(wins), np.asarray(votes)
    return np.asarray(np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(won, n - won), n, 0.5)))


def flip_p(margins: npt.ArrayLike) -> float:
    """Return the two-sided p of margins of clusters of votes, each of which is as likely to be turned round.

    The exact distribution of the sum of margins under all sign flips. Votes of a cluster stand or fall together, so
    that what they share does not pass for evidence. Where each cluster is one vote, this is the binomial test.

    Parameters
    ----------
    margins
        Shape (clusters,), wins less losses of each: whole numbers.
    """
    given = np.asarray(margins, dtype=np.float64)
    sizes = np.abs(given[given != 0]).astype(int)
    # The chance of each sum from -total to total, by one cluster after another.
    chances = np.ones(1)
    for size in sizes.tolist():
        wider = np.zeros(len(chances) + 2 * size)
        wider[: len(chances)] = chances / 2
        wider[2 * size :] += chances / 2
        chances = wider
    sums = np.arange(len(chances)) - int(sizes.sum())
    return float(min(1.0, chances[np.abs(sums) >= abs(int(given.sum()))].sum()))


def most_losses(votes: npt.ArrayLike, *, alpha: float = 0.05) -> Integers:
    """Return how many of so many votes the losing side may have at most for the binomial test to be significant.

    -1 where no result would be. Same shape as ``votes``.
    """
    n = np.asarray(votes)
    losses = stats.binom.ppf(alpha / 2, n, 0.5)
    return np.where(2 * stats.binom.cdf(losses, n, 0.5) <= alpha, losses, losses - 1).astype(np.intp)


def power(win_rate: float, votes: npt.ArrayLike, *, alpha: float = 0.05) -> Floats:
    """Return the probability that the two-sided binomial test of so many votes is significant; shape of ``votes``."""
    n, edge = np.asarray(votes), most_losses(votes, alpha=alpha)
    return np.asarray(stats.binom.cdf(edge, n, win_rate) + stats.binom.sf(n - edge - 1, n, win_rate))


def votes_needed(win_rate: float, *, power_wanted: float = 0.8, alpha: float = 0.05) -> int:
    """Return from how many votes on the binomial test has a power, whatever more there are.

    The exact power goes up and down with the number of votes, since wins are whole numbers: this is the number from
    which it never falls below what is wanted again.

    Parameters
    ----------
    win_rate
        Between 0 and 1, not one half: the share of votes for one of the two, ties left out.
    power_wanted
        Between 0 and 1.
    alpha
        Level of the two-sided test.
    """
    spread = np.sqrt(win_rate * (1 - win_rate))
    reach = stats.norm.ppf(1 - alpha / 2) / 2 + stats.norm.ppf(power_wanted) * spread
    near = (max(reach, 0.1) / (win_rate - 0.5)) ** 2
    # The exact number lies a little above the normal one: whole wins cost at most a few of the tails' steps.
    tried = np.arange(1, int(1.3 * near + 4 / abs(win_rate - 0.5)) + 20)
    return int(tried[power(win_rate, tried, alpha=alpha) < power_wanted].max(initial=0)) + 1


# A test that may be looked at after every vote (e-values; Ville 1939, Ramdas et al. 2023)


def e_values(won: npt.ArrayLike) -> Floats:
    """Return the evidence against a win rate of one half after each vote.

    The likelihood of the votes so far under win rates that are all equally likely, over that under one half:
    2^n / ((n + 1) C(n, wins)). If the true rate is one half, the chance that this ever reaches 1 / alpha is at most
    alpha, however often one looks and whenever one stops.

    Parameters
    ----------
    won
        Shape (..., votes): True or False in the order of voting; ties are left out.

    Returns
    -------
    array
        Same shape.
    """
    wins = np.cumsum(np.asarray(won, dtype=np.int64), axis=-1)
    n = np.arange(1, wins.shape[-1] + 1)
    # Logarithms of factorials are looked up: a simulation asks for millions.
    log = special.gammaln(np.arange(wins.shape[-1] + 2) + 1.0)
    return np.asarray(np.exp(n * np.log(2) + log[wins] + log[n - wins] - log[n + 1]))


def decided_at(won: npt.ArrayLike, *, alpha: float = 0.05) -> Integers:
    """Return after how many votes the e-value first reaches 1 / alpha; 0 where it never does. Shape (...)."""
    return _first(e_values(won) >= 1 / alpha)


def peeked_at(won: npt.ArrayLike, *, alpha: float = 0.05) -> Integers:
    """Return after how many votes the binomial test is first significant, if one looks after each; 0 for never.

    This is what one must not do: it finds a difference where there is none in far more than ``alpha`` of studies.
    """
    wins = np.cumsum(np.asarray(won, dtype=np.int64), axis=-1)
    n = np.arange(1, wins.shape[-1] + 1)
    return _first(np.minimum(wins, n - wins) <= most_losses(n, alpha=alpha))


def _first(reached: Flags) -> Integers:
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, 0).astype(np.intp)
