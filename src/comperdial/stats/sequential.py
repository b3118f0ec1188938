"""A test of a win rate that may be looked at after every vote (e-values; Ville 1939, Ramdas et al. 2023)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from comperdial.stats.win_rate import most_losses

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


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


def _first(reached: npt.NDArray[np.bool_]) -> Integers:
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, 0).astype(np.intp)
