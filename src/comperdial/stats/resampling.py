"""Correlations of many metrics at once, and intervals for them that know how the units were sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats._intervals import METHODS, bounds, draw
from comperdial.stats._weighted import NAMES, weighted
from comperdial.stats._weights import Weights
from comperdial.stats.design import Design
from comperdial.stats.grouped import COEFFICIENTS, rowwise
from comperdial.stats.means import paired_means

__all__ = ["DEFAULT", "METHODS", "NAMES", "Intervals", "coefficients", "intervals"]

Floats = npt.NDArray[np.float64]
DEFAULT = "fisher-design"


@dataclass(frozen=True)
class Intervals:
    """Coefficients with the ends of their intervals: each of shape (metrics, names), NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats


def coefficients(scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[str]) -> Floats:
    """Correlate metrics with ratings.

    Parameters
    ----------
    scores
        Shape (metrics, n); NaN where a metric has no score: the unit then takes no part in that metric's row.
    ratings
        Shape (n,), no NaN.
    design
        The systems and dialogues of the n units, and whether to correlate the means of systems.
    names
        Of ``pearson``, ``spearman`` and ``kendall`` (tau-b).

    Returns
    -------
    array
        Shape (metrics, names): what :func:`comperdial.stats.correlation.correlate` gives, to 1e-12; NaN where a side
        does not vary. Means of systems that differ by rounding only are ties.

    Raises
    ------
    ValueError
        Shapes that do not fit, a rating that is missing, an unknown name.
    """
    x, y = _checked(scores, ratings, design, names)
    found = np.full((len(x), len(names)), np.nan)
    if not found.size or not len(y):
        return found
    if design.average:
        means = paired_means(x, y, design)
        return np.stack([rowwise(*means, COEFFICIENTS[NAMES.index(name)]) for name in names], axis=1)
    plain = [name for name in names if name != "kendall"]
    found[:, [name in plain for name in names]] = weighted(x, y, design, plain, [Weights()])[0][0]
    # What makes Kendall's tau of many resamples fast, all pairs of cells, is slow for one.
    for at in [at for at, name in enumerate(names) if name not in plain]:
        found[:, at] = [_kendall(row[~np.isnan(row)], y[~np.isnan(row)]) for row in x]
    return found


def _kendall(x: Floats, y: Floats) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return min(1.0, max(-1.0, float(stats.kendalltau(x, y, method="asymptotic").statistic)))


def intervals(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    names: Sequence[str],
    *,
    method: str = DEFAULT,
    resamples: int = 1000,
    seed: int,
    confidence: float = 0.95,
) -> Intervals:
    """Correlate metrics with ratings, with intervals that respect how the units were sampled.

    What is to be covered: the value that benchmarks of the same design (as many dialogues and turns, the same raters)
    have in the long run, over ever more systems and averaged over draws of dialogues.

    The default, ``fisher-design``, is a bootstrap of what was sampled: systems, dialogues, and, for each system by
    itself, its dialogues. Each gives a variance on the scale of Fisher's z. Over units, the variance of the value is
    that of systems plus that of dialogues, a little too much since both hold what a system alone does in a dialogue.
    Over the means of systems that share is large, and the variance of dialogues within systems is taken away (the
    two-way variance of Cameron, Gelbach and Miller, 2011); it stays at least the larger of the first two. A resample of
    n things varies by (n - 1) / n too little; that is made good. This choice between two formulas was made on 100
    simulated benchmarks. The interval is the value -+ a quantile of Student's t times the standard error, on the scale
    of z and turned back, so that it stays within -1 and 1. Its degrees of freedom are
    Satterthwaite's: near the number of dialogues - 1 where dialogues matter most, near that of systems - 1 where
    systems do. Percentiles of resamples of fifteen dialogues are too narrow: benchmarks/coverage.py prints what every
    method covers.

    Parameters
    ----------
    scores, ratings, design, names
        As in :func:`coefficients`.
    method
        One of ``METHODS``, of which all but the default are there to be compared. ``percentile-``, ``basic-`` and
        ``bca-`` draw systems, dialogues or ``both`` at once; ``fisher-sum`` never takes away what is in both, ``fisher-
        two-way`` always does; ``fisher-pigeonhole`` takes the variance of drawing both at once if it is larger;
        ``fisher-jackknife`` leaves out one system or dialogue at a time, without chance.
    resamples
        How many of each kind.
    seed
        Of the resamples; the same for all metrics and coefficients. The same data in another order of units give the
        same intervals.
    confidence
        Share of intervals that are to cover, between 0 and 1.

    Returns
    -------
    Intervals
        The ends are NaN where there is no coefficient; where it is 1 or -1, but for a rank coefficient of 4 to 10
        systems (resamples of a perfect order are perfect, which is no precision); over the means of fewer than four
        systems; where fewer than half of the resamples have a coefficient; and where nothing was resampled that
        varies. A side that has one member only is not resampled.

    Raises
    ------
    ValueError
        As :func:`coefficients`; an unknown method; fewer than two resamples; a confidence that is none.
    """
    x, y = _checked(scores, ratings, design, names)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")
    if resamples < 2 or not 0 < confidence < 1:
        raise ValueError(f"expected 2 resamples or more and 0 < confidence < 1, got {resamples} and {confidence}")
    drawn = draw(x, y, design, names, method, resamples, np.random.default_rng(seed))
    low, high = bounds(drawn, method, confidence)
    return Intervals(drawn.value, low, high)


def _checked(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, names: Sequence[str]
) -> tuple[Floats, Floats]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if x.ndim != 2 or y.shape != x.shape[1:] or y.shape != design.systems.shape:
        raise ValueError(
            f"expected scores (metrics, n), ratings (n,) and a design of n units, got {x.shape}, {y.shape} and "
            f"{design.systems.shape}"
        )
    if np.isnan(y).any():
        raise ValueError("expected a rating for each unit; leave out units without one")
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(f"unknown coefficient {unknown[0]!r}; expected one of {', '.join(NAMES)}")
    return x, y
