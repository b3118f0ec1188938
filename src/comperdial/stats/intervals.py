"""Intervals for correlations that respect how the units were sampled.

A bootstrap of what was sampled: systems, dialogues, and dialogues separately for each system. Each gives a variance on the
scale of Fisher's z. Over units, the variance of the value is the sum over systems and dialogues, slightly too large since both
include the interaction of a system with a dialogue. Over system means that share is large, and the variance of dialogues within
systems is subtracted (the two-way variance of Cameron, Gelbach and Miller, 2011); the result is at least the larger of the
first two. The variance of a resample of n is too small by (n - 1) / n, which is corrected. The interval is the value -+ a
quantile of Student's t times the standard error on the scale of z, transformed back, with Satterthwaite's degrees of freedom.
Over the means of 4 to 10 systems nothing is resampled (:func:`posterior_interval`). benchmarks/coverage.py compares the
coverage with other methods.

For fixed systems (``Design.fixed``, or a metric that scored fewer than four), the interval is for these systems' value over
ever more dialogues, and its variance is that of dialogues alone. `benchmarks/coverage.py given` measures the coverage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import checked, coefficients, over_clusters, over_means, over_systems
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers

# Cells x resamples held in memory: 64 MB.
_CELLS = 2**25
# Up to this many systems, resampling understates the variance: they have their own interval (docs/validation.md).
FEW = 10
# Coefficients from here on count as 1.
_PERFECT = 1 - 1e-9


@dataclass(frozen=True)
class Intervals:
    """Coefficients with the ends of their intervals: each of shape (metrics, names), NaN if missing.

    ``systems``, shape (metrics,), is the number of scored systems, and ``given`` whether these count as fixed.
    """

    value: Floats
    low: Floats
    high: Floats
    systems: Integers
    given: Flags


def intervals(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    names: Sequence[Coefficient],
    *,
    resamples: int = 1000,
    seed: int,
    confidence: float = 0.95,
) -> Intervals:
    """Correlate metrics with ratings, with intervals that respect how the units were sampled.

    The interval covers the value that benchmarks of the same design (as many dialogues and turns, the same raters) have in the
    long run, over ever more systems and averaged over draws of dialogues.

    Parameters
    ----------
    scores, ratings, design, names
        As in :func:`comperdial.stats.coefficients.coefficients`.
    resamples, seed
        For each kind of resampling; shared by all metrics and coefficients, and independent of the order of units.
    confidence
        Coverage, between 0 and 1.

    Returns
    -------
    Intervals
        The ends are NaN if there is no coefficient; if it is 1 or -1, except for a rank coefficient of 4 to 10 systems
        (resamples of a perfect order are perfect, which is not precision); over the means of fewer than four systems; if fewer
        than half of the resamples have a coefficient; and if nothing that varies was resampled. A factor with only one level is
        not resampled.
    """
    x, y = checked(scores, ratings, design, names)
    if resamples < 2 or not 0 < confidence < 1:
        raise ValueError(f"expected 2 resamples or more and 0 < confidence < 1, got {resamples} and {confidence}")
    value = coefficients(x, y, design, names)
    systems, dialogues = (
        np.array([len(np.unique(codes[row])) for row in ~np.isnan(x)], dtype=np.intp).reshape(-1, 1)
        for codes in (design.systems, design.dialogues)
    )
    given = np.asarray(design.fixed | ((systems > 1) & (systems < FEWEST_SAMPLED)))
    drawn = _resampled(x, y, design, names, resamples, np.random.default_rng(seed))
    # A resample of few varies too little, like a variance divided by n instead of n - 1.
    of_systems, of_dialogues, of_cells = (
        np.where(n > 1, _spread(values) * n / np.maximum(n - 1, 1), 0.0)
        for values, n in zip(drawn, (systems, dialogues, dialogues), strict=True)
    )
    of_systems = np.where(given, 0.0, of_systems)
    both = total = of_systems + of_dialogues
    if design.average:
        # Count the interaction of system and dialogue once.
        two_way = np.maximum(both - of_cells, np.maximum(of_systems, of_dialogues))
        total = np.where(given, both, two_way)
    shares = of_systems**2 / np.maximum(systems - 1, 1) + of_dialogues**2 / np.maximum(dialogues - 1, 1)
    with np.errstate(all="ignore"):
        freedom = np.maximum(np.minimum(total, both) ** 2 / shares, 1.0)
        error = np.sqrt(np.where((total > 0) & (np.abs(value) < _PERFECT), total, np.nan))
        reach = scipy.stats.t.ppf((1 + confidence) / 2, freedom) * error
        low, high = np.tanh(np.arctanh(value) - reach), np.tanh(np.arctanh(value) + reach)
    if design.average:
        few = (systems >= FEWEST_SAMPLED) & (systems <= FEW) & (not design.fixed)
        for row, at in np.argwhere(np.broadcast_to(few, value.shape)):
            ends = posterior_interval(float(value[row, at]), int(systems[row, 0]), names[at], confidence)
            low[row, at], high[row, at] = ends
        low[systems[:, 0] < FEWEST_SAMPLED] = np.nan
    none = np.isnan(value) | np.isnan(low) | np.isnan(high)
    low, high = (np.where(none, np.nan, np.clip(end, -1, 1)) for end in (low, high))
    return Intervals(value, low, high, systems[:, 0], given[:, 0])


def bootstrap(count: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return how often each of ``count`` clusters is drawn, with replacement: shape (resamples, count)."""
    return rng.multinomial(count, np.full(count, 1 / max(count, 1)), size=resamples).astype(np.float64)


def _resampled(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: Sequence[Coefficient],
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Return coefficients, (resamples, metrics, names), of resamples of systems, dialogues and each system's dialogues.

    The last are computed only for system means. All are NaN if no resamples are needed.
    """
    # Two or three systems are fixed: over units, only dialogues are drawn.
    together = not design.average and not design.fixed and design.given
    codes = np.zeros_like(design.systems) if together else design.systems
    systems = bootstrap(int(codes.max(initial=-1)) + 1, resamples, rng)
    dialogues = bootstrap(design.counts[1], resamples, rng)
    of_systems, within = (np.full((resamples, len(scores), len(names)), np.nan) for _ in range(2))
    if design.average and not design.fixed and design.counts[0] <= FEW:
        return of_systems, of_systems, within
    if not design.average:
        of_systems = over_clusters(scores, ratings, codes, systems, names)
        return of_systems, over_clusters(scores, ratings, design.dialogues, dialogues, names), within
    of_systems = over_systems(scores, ratings, design, systems, names)
    has = np.zeros(design.counts, dtype=np.bool_)
    has[design.systems, design.dialogues] = True
    step = max(1, _CELLS // max(1, has.size))
    for start in range(0, resamples, step):
        part = slice(start, min(start + step, resamples))
        cells = np.zeros((part.stop - start, *has.shape), dtype=np.uint16)
        for system, own_dialogues in enumerate(has):
            cells[:, system, own_dialogues] = bootstrap(int(own_dialogues.sum()), len(cells), rng)
        within[part] = over_means(scores, ratings, design, cells, names)
    return of_systems, over_means(scores, ratings, design, dialogues, names), within


def _spread(values: Floats) -> Floats:
    """Return the variance of resamples on Fisher's z scale, (metrics, names); NaN if fewer than half have a value."""
    # A perfect resample has no z: it counts as the highest of the others.
    size = np.abs(values)
    highest = np.where(size < _PERFECT, size, 0.0).max(axis=0)
    z = np.arctanh(np.where(size < _PERFECT, values, np.sign(values) * highest))
    enough = (~np.isnan(z)).sum(axis=0) >= max(len(values) / 2, 2)
    variance = np.full(enough.shape, np.nan)
    variance[enough] = np.nanvar(z[:, enough], axis=0, ddof=1)
    return variance


# Few systems: they are assumed to come from a population in which the means of scores and of ratings are bivariate
# normal (for rank coefficients: normal after some increasing change of either scale). The prior on that population's
# Kendall's tau is uniform; the interval is the central 95 % of the posterior. Averaged over this prior, its coverage is
# nominal, and, unlike Fisher's, whatever its width: a narrow one is not wrong more often. `benchmarks/coverage.py few`
# measures both. In a normal population Pearson's r determines the others: tau = 2 / pi asin(r), and Spearman's is
# 6 / pi asin(r / 2).

# Simulated samples of a rank coefficient; each also represents its mirror image.
_DRAWS, _SEED = 2**19, 8
# Grid of Fisher's z of populations, for Pearson's r.
_Z = np.linspace(-15, 15, 6001)


def posterior_interval(value: float, systems: int, name: Coefficient, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a coefficient over the means of 4 to ``FEW`` systems.

    A rank coefficient with ties is replaced by the nearest one without. The interval is extended to the value if the posterior
    is nearer to 0. NaN for NaN, and for a Pearson of 1 or -1: points on a line contradict the assumed population.
    """
    if np.isnan(value):
        return value, value
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = (_of_pearson if name == "pearson" else _of_ranks)(value, systems, name, tails)
    return min(low, value), max(high, value)


def _of_pearson(r: float, n: int, _: Coefficient, tails: tuple[float, float]) -> tuple[float, float]:
    """Return quantiles of the population's r, from the exact density of the sample's (Hotelling 1953)."""
    if not abs(r) < _PERFECT:
        return float("nan"), float("nan")
    rho = np.tanh(_Z)
    density = (1 - rho**2) ** ((n - 1) / 2) * (1 - rho * r) ** (1.5 - n)
    density *= scipy.special.hyp2f1(0.5, 0.5, n - 0.5, (1 + rho * r) / 2)
    # The uniform prior on tau, on the z scale.
    weights = density / np.cosh(_Z)
    below = np.cumsum(weights) - weights / 2
    low, high = np.tanh(np.interp(tails, below / weights.sum(), _Z))
    return float(low), float(high)


@cache
def _of_ranks(value: float, n: int, name: Coefficient, tails: tuple[float, float]) -> tuple[float, float]:
    """Return quantiles of the population's coefficient, from simulated samples with a similar value."""
    populations, *made = _simulated(n)
    distance = np.abs(made[name == "kendall"] - value)
    tau = np.quantile(populations[distance <= distance.min() + 1e-9], tails)
    low, high = 6 / np.pi * np.arcsin(np.sin(np.pi * tau / 2) / 2) if name == "spearman" else tau
    return float(low), float(high)


@cache
def _simulated(n: int) -> list[Floats]:
    """Draw populations and a sample of n from each; return tau of the populations, Spearman's and Kendall's of the samples."""
    rng = np.random.default_rng([_SEED, n])
    tau = rng.uniform(-1, 1, _DRAWS)
    rho = np.sin(np.pi * tau / 2)
    x = rng.standard_normal((n, _DRAWS), dtype=np.float32)
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal((n, _DRAWS), dtype=np.float32)
    ranks, alike = np.zeros((2, n, _DRAWS), dtype=np.int8), np.zeros(_DRAWS, dtype=np.int16)
    for one, other in combinations(range(n), 2):
        above = x[one] > x[other], y[one] > y[other]
        alike += above[0] == above[1]
        for side, up in zip(ranks, above, strict=True):
            side[one] += up
            side[other] += ~up
    apart = ((ranks[0] - ranks[1]).astype(np.int32) ** 2).sum(axis=0)
    spearman, kendall = 1 - 6 * apart / (n**3 - n), 4 * alike / (n**2 - n) - 1
    return [np.concatenate([side, -side]) for side in (tau, spearman, kendall)]
