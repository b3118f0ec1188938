"""Paired tests of whether one metric correlates better with ratings than another, for all pairs.

Metrics favour or penalize whole systems and dialogues, so units are not independent, and tests that treat them as
independent reject far too often. ``compare`` tests by what was sampled. benchmarks/rejections.py counts how often
each test is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import numpy.typing as npt

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import checked, coefficients, over_means
from comperdial.stats.design import FEWEST_SAMPLED, Design, Flags, Floats, Integers
from comperdial.stats.intervals import bootstrap
from comperdial.stats.jackknife import CLOSE, Variances, over_units, variances
from comperdial.stats.means import system_means
from comperdial.stats.swaps import SWAPS, swap_systems


@dataclass(frozen=True)
class Comparison:
    """The differences of all pairs of metrics and their tests, each of shape (metrics, metrics).

    Attributes
    ----------
    difference
        Coefficient of the row's metric minus that of the column's, over the units that both scored. Antisymmetric; 0 on the
        diagonal.
    p
        Two-sided. Symmetric; 1 on the diagonal.
    reach
        Half the width of the difference's 95 % interval, which excludes 0 exactly if p < 0.05; symmetric. NaN for ranks of
        system means, which have no interval.
    n
        Number of points correlated: units, or systems if units are averaged.
    test
        The test behind ``p``: ``jackknife``, or ``swap_systems|swaps:N``, where N is the maximum number of swaps. No p is
        below 1 / (1 + N), so Holm's correction of more than N / 20 pairs cannot be significant at 5 %. Over means of fixed
        systems (``design.fixed``): ``bootstrap:N``, where N is the number of resamples of dialogues.
    given
        Whether the pair's systems are fixed, so that p and reach are over dialogues only.
    """

    difference: Floats
    p: Floats
    reach: Floats
    n: Integers
    test: str
    given: Flags

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the ends of the 95 % intervals of the differences.

        They are symmetric on the scale of artanh(difference / 2), so that they stay between -2 and 2, the extreme differences
        of two coefficients, and exclude 0 exactly if the difference exceeds the reach.
        """
        half = np.clip(self.difference / 2, -1 + 1e-12, 1 - 1e-12)
        centre = np.arctanh(half)
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = self.reach * np.where(np.abs(half) < CLOSE, 0.5, centre / self.difference)
        return 2 * np.tanh(centre - wide), 2 * np.tanh(centre + wide)


def compare(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    name: Coefficient,
    *,
    resamples: int = 1000,
    seed: int,
) -> Comparison:
    """Test for every pair of metrics whether they correlate equally well with the ratings.

    Over units, and for Pearson over system means: Student's t with a variance from leaving out systems and dialogues
    (:mod:`comperdial.stats.jackknife`). For ranks (Spearman, Kendall) of system means: swaps of whole systems
    (:func:`comperdial.stats.swaps.swap_systems`). Ranks of about a hundred means change in steps too coarse for a jackknife,
    which then rejects too rarely; Pearson's scale depends on a few means if tails are long, and swapping those rejects too
    often.

    Fixed systems (``design.given``: requested, or fewer than four) are neither left out nor swapped. Then over units each
    dialogue is left out; over system means dialogues are resampled.

    Parameters
    ----------
    scores, ratings, design, name
        As in :func:`comperdial.stats.coefficients.coefficients`. A pair is compared over the units that both scored.
    resamples, seed
        For swaps and resamples of dialogues; p of swaps is (1 + those at least as extreme) / (1 + swaps). Swapping continues
        while few are as extreme as the data, up to ``SWAPS`` (Besag and Clifford 1991); otherwise no p would be small enough
        for a correction over many pairs. All pairs share the swaps; a pair's result does not depend on the others. With 0 there
        is no p that needs swaps.

    Returns
    -------
    Comparison
        NaN if two metrics share fewer than ``FEWEST_SAMPLED`` points or one is constant. Only ``p`` is NaN if the jackknife
        variance is undefined, because a metric is constant without one of the systems or dialogues.
    """
    table, target = checked(scores, ratings, design, [name])
    difference, p, reach = np.full((3, len(table), len(table)), np.nan)
    n, given = np.zeros_like(p, dtype=np.intp), np.full_like(p, design.given, dtype=np.bool_)
    for rows, wanted, units in common_units(~np.isnan(table)):
        inner = design.of(units)
        points = inner.counts[0] if inner.average else int(units.sum())
        results: list[tuple[npt.NDArray[np.generic], npt.ArrayLike]] = [(n, points), (given, inner.given)]
        if points >= FEWEST_SAMPLED:
            values, *tested = _tested(table[np.ix_(rows, units)], target[units], inner, name, resamples, seed)
            results += zip((difference, p, reach), (values[:, None] - values, *tested), strict=True)
        for whole, result in results:
            put(whole, rows, wanted, result)
    test = "jackknife"
    if design.average and design.fixed:
        test = f"bootstrap:{resamples}"
    elif design.average and name != "pearson":
        test = f"swap_systems|swaps:{resamples and max(resamples, SWAPS)}"
    return Comparison(difference, p, reach, n, test, given)


def common_units(present: Flags) -> Iterator[tuple[Integers, Flags, Flags]]:
    """Group pairs by the units that both scored; yield metrics, which of their pairs, units."""
    pairs: dict[bytes, list[tuple[int, int]]] = {}
    for one, other in combinations_with_replacement(range(len(present)), 2):
        pairs.setdefault((present[one] & present[other]).tobytes(), []).append((one, other))
    for key, together in pairs.items():
        rows, places = np.unique(together, return_inverse=True)
        wanted = np.zeros((len(rows), len(rows)), dtype=np.bool_)
        wanted[tuple(places.reshape(-1, 2).T)] = True
        yield rows, wanted | wanted.T, np.frombuffer(key, dtype=np.bool_)


def put(whole: npt.NDArray[np.generic], rows: Integers, wanted: Flags, values: npt.ArrayLike) -> None:
    """Write the values of selected pairs of some metrics into a table of all."""
    cell = np.ix_(rows, rows)
    whole[cell] = np.where(wanted, values, whole[cell])


def _tested(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return values (metrics,), p and the reach of each pair, for metrics without missing values."""
    if design.average and design.fixed:
        return _over_dialogues(scores, ratings, design, name, resamples, seed)
    if design.average:
        # Each mean is a single unit, and all belong to one dialogue.
        scores, ratings = system_means(scores, design), system_means(ratings, design)
        codes = np.arange(design.counts[0], dtype=np.intp)
        design = Design(codes, np.zeros_like(codes))
        if name != "pearson":
            none = np.full((len(scores), len(scores)), np.nan)
            p = swap_systems(scores, ratings, name, resamples, seed) if resamples else none
            return coefficients(scores, ratings, design, [name])[:, 0], p, none
    elif design.given:
        design = replace(design, systems=np.zeros_like(design.systems))
    result = over_units(scores, ratings, design, name)
    drawn = variances(result, 2)
    return result.values, *drawn.test(result.values[:, None] - result.values, drawn.two_way)


def _over_dialogues(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return the results of ``_tested`` for means of fixed systems, by resampling only dialogues.

    Student's t with the variance of a difference over resamples of dialogues. p and reach are NaN if fewer than half of the
    resamples have both coefficients, or all are equal, which does not indicate precision.
    """
    count, values = design.counts[1], coefficients(scores, ratings, design, [name])[:, 0]
    drawn = bootstrap(count, resamples, np.random.default_rng(seed))
    rows = over_means(scores, ratings, design, drawn, [name])[:, :, 0].T
    variance = np.full((len(rows), len(rows)), np.nan)
    for one, other in combinations(range(len(rows)), 2):
        moves = rows[one] - rows[other]
        moves = moves[np.isfinite(moves)]
        if count > 1 and 2 * len(moves) > max(resamples, 2):
            variance[one, other] = variance[other, one] = moves.var(ddof=1) * count / (count - 1)
    variance[~(variance > CLOSE**2)] = np.nan
    none = np.zeros_like(variance)
    return values, *Variances.of(none, variance, none, (1, count)).test(values[:, None] - values, variance)
