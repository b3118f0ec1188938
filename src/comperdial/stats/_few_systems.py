"""Intervals for correlations over the means of few systems, where resampling systems says too little.

Systems are taken as drawn from a population in which the means of scores and of ratings are bivariate normal (for rank
coefficients: normal after some increasing change of either scale). Before the data, all values of Kendall's tau of that
population are equally likely; the interval holds the middle 95 % of what is likely after them. Such an interval covers
as often as it says over the values taken together, and, unlike Fisher's, whatever its width: a narrow one is not wrong
more often. benchmarks/few_systems.py counts both. Tau and Pearson's r of a normal population tell each other: tau =
2 / pi asin(r), and Spearman's is 6 / pi asin(r / 2).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

# Up to so many systems; of more, resamples say enough (docs/validation.md).
MOST = 10
# Simulated samples of a rank coefficient; each stands for its mirror image too.
_DRAWS, _SEED = 2**19, 8
# Fisher's z of the populations tried for Pearson's r.
_Z = np.linspace(-15, 15, 6001)


def posterior_interval(value: float, systems: int, name: str, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a coefficient over the means of systems.

    Parameters
    ----------
    value
        Between -1 and 1; a rank coefficient of ties is taken as the nearest one that has none.
    systems
        How many, 4 to ``MOST``.
    name
        ``pearson``, ``spearman`` or ``kendall``.
    confidence
        Between 0 and 1.

    Returns
    -------
    tuple
        Low and high end. The interval reaches to the value where what is likely lies nearer to 0. NaN for a Pearson of
        1 or -1: points on a line were not drawn from what is assumed.
    """
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    if name == "pearson":
        low, high = _of_pearson(value, systems, tails)
    else:
        low, high = _of_ranks(value, systems, name, tails)
    return min(low, value), max(high, value)


def _of_pearson(r: float, n: int, tails: tuple[float, float]) -> tuple[float, float]:
    """Return quantiles of the population's r, from the exact density of the sample's (Hotelling 1953)."""
    if not abs(r) < 1:
        return float("nan"), float("nan")
    rho = np.tanh(_Z)
    density = (1 - rho**2) ** ((n - 1) / 2) * (1 - rho * r) ** (1.5 - n)
    density *= special.hyp2f1(0.5, 0.5, n - 0.5, (1 + rho * r) / 2)
    # Equally likely values of tau, on the scale of z.
    weights = density / np.cosh(_Z)
    below = np.cumsum(weights) - weights / 2
    low, high = np.tanh(np.interp(tails, below / weights.sum(), _Z))
    return float(low), float(high)


@cache
def _of_ranks(value: float, n: int, name: str, tails: tuple[float, float]) -> tuple[float, float]:
    """Return quantiles of the population's coefficient, from the samples with a value like this."""
    populations, made = _simulated(n)[name == "kendall"]
    distance = np.abs(made - value)
    tau = np.quantile(populations[distance <= distance.min() + 1e-9], tails)
    low, high = 6 / np.pi * np.arcsin(np.sin(np.pi * tau / 2) / 2) if name == "spearman" else tau
    return float(low), float(high)


@cache
def _simulated(n: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Draw populations and samples of n from them: tau of the populations, with Spearman's and Kendall's of samples."""
    rng = np.random.default_rng([_SEED, n])
    tau = rng.uniform(-1, 1, _DRAWS)
    rho = np.sin(np.pi * tau / 2)
    x = rng.standard_normal((n, _DRAWS), dtype=np.float32)
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal((n, _DRAWS), dtype=np.float32)
    ranks = np.zeros((2, n, _DRAWS), dtype=np.int8)
    alike = np.zeros(_DRAWS, dtype=np.int16)
    for one in range(n):
        for other in range(one):
            above = x[one] > x[other], y[one] > y[other]
            alike += above[0] == above[1]
            for side, up in zip(ranks, above, strict=True):
                side[one] += up
                side[other] += ~up
    apart = ((ranks[0] - ranks[1]).astype(np.int32) ** 2).sum(axis=0)
    spearman, kendall = 1 - 6 * apart / (n**3 - n), 4 * alike / (n**2 - n) - 1
    both = np.concatenate([tau, -tau])
    return (both, np.concatenate([spearman, -spearman])), (both, np.concatenate([kendall, -kendall]))
