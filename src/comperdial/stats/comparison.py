"""Whether one metric correlates better with ratings than another: paired tests, corrections, clusters of ranks.

Metrics like or dislike whole systems and whole dialogues, so units are not independent, and tests that take them for
independent (PERM-BOTH by unit, Williams) call far too many differences real. ``compare`` tests by what was sampled, and
gives PERM-BOTH's p beside it. benchmarks/paired.py counts how often each test is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comperdial.stats._comparison_adjust import holm, rank_clusters, williams
from comperdial.stats._comparison_clustered import flip_dialogues, influence_t, jackknife_t
from comperdial.stats._comparison_influence import NAMES, influence
from comperdial.stats._comparison_swaps import averaged, goes_on, swap_p, swap_test
from comperdial.stats.design import Design

__all__ = [
    "DEFAULT",
    "METHODS",
    "Comparison",
    "compare",
    "holm",
    "rank_clusters",
    "williams",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

# What is swapped by each of the plain permutation tests.
_SWAPS = {
    "swap_units": "units",
    "swap_cells": "cells",
    "swap_systems": "systems",
    "swap_dialogues": "dialogues",
    "swap_product": "product",
}
# All but the first two, and the swaps of systems, are there to be compared: benchmarks/paired.py counts their errors.
METHODS = ("clustered", "jackknife", "influence", "flip_dialogues", *_SWAPS)
DEFAULT = "clustered"
# Of a swap test of systems' ranks a pair may have so many swaps: enough for a correction over a thousand pairs.
SWAPS = 100_000
# Below this many points a coefficient is +-1 or nearly so, and no test can tell anything.
FEWEST = 4


@dataclass(frozen=True)
class Comparison:
    """What was found of each pair of metrics, all of shape (metrics, metrics).

    Attributes
    ----------
    difference
        Coefficient of the row's metric minus that of the column's, over the units that both have. Antisymmetric; 0 on
        the diagonal.
    p
        Two-sided, by the method asked for. Symmetric; 1 on the diagonal.
    p_perm_both
        Two-sided p of PERM-BOTH, for comparison with the literature: standardised scores are swapped unit by unit, and
        only then ranked (Spearman) or averaged by system. (mt-metrics-eval, given means of systems, swaps those: that
        is ``swap_systems``.) NaN for Kendall over units: every swap would have to compare all pairs of units anew.
    reach
        Half the width of the difference's 95 % interval, which leaves out 0 just where p < 0.05; symmetric. NaN where
        the method has none, or none is honest: over ranks of systems' means, where no difference could be significant.
    n
        Points correlated: units, or systems where units are averaged.
    test
        What made ``p``: ``jackknife``, ``influence``, ``flip_dialogues|swaps:N`` or ``swap_...|swaps:N``, N being the
        most swaps that a pair got. No p is below 1 / (1 + N), so that Holm's correction of more than N / 20 pairs can
        find nothing at 5 %.
    """

    difference: Floats
    p: Floats
    p_perm_both: Floats
    reach: Floats
    n: Integers
    test: str


def compare(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    design: Design,
    name: str,
    *,
    method: str = DEFAULT,
    resamples: int = 1000,
    seed: int,
    intervals: bool = False,
) -> Comparison:
    """Test for every pair of metrics whether they correlate equally well with the ratings.

    Parameters
    ----------
    scores
        Shape (metrics, n); NaN where missing. A pair is compared over the units that both have.
    ratings
        Shape (n,), none missing.
    design
        Systems and dialogues of the units, and whether they are averaged by system.
    name
        ``pearson``, ``spearman`` or ``kendall`` (tau-b).
    method
        One of ``METHODS``. ``clustered``, the one that holds its level: ``swap_systems`` for ranks (Spearman, Kendall)
        of means of systems, ``jackknife`` for all else. ``jackknife``: Student's t with a variance from leaving out
        systems and dialogues.
        ``influence``: the same by derivatives. ``flip_dialogues``: whole dialogues are swapped, and each difference is
        divided by its standard error. ``swap_...``: plain swaps of units (PERM-BOTH of Deutsch, Dror and Roth 2021),
        cells (a dialogue of a system), systems, dialogues, or by a product of signs. Over means of systems there are no
        dialogues to leave out or flip: ``flip_dialogues`` and the ``swap_`` of dialogues are refused.
    resamples
        Random swaps; p is (1 + those at least as far out) / (1 + resamples). All pairs share them. With 0 there is no
        ``p_perm_both`` and no p that needs swaps. ``swap_systems`` of ranks of means goes on where few swaps are as far
        out as the data, up to ``SWAPS``, and divides by what it drew (Besag and Clifford 1991): without that no p would
        be small enough for a correction over many pairs. What one pair gets does not depend on the others.
    seed
        Of the swaps: the same seed gives the same p.
    intervals
        Whether to find the reach where that takes more work, by keeping every swap's difference in memory (``swap_
        systems`` of ranks of means); a jackknife has it anyway.

    Returns
    -------
    Comparison
        NaN where two metrics share fewer than ``FEWEST`` points or one of them does not vary. ``p`` alone is NaN where
        a jackknife has no variance: a metric does not vary without one of the systems or dialogues.
    """
    table, target = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    _check(table, target, design, name, method)
    metrics = len(table)
    difference, p, p_perm_both, reach = (np.full((metrics, metrics), np.nan) for _ in range(4))
    n = np.zeros((metrics, metrics), dtype=np.intp)
    for rows, wanted, units in _groups(~np.isnan(table)):
        part, kept, inner = table[np.ix_(rows, units)], target[units], _narrowed(design, units)
        points = (int(inner.systems.max()) + 1 if inner.average else len(kept)) if len(kept) else 0
        cell = np.ix_(rows, rows)
        n[cell] = np.where(wanted, points, n[cell])
        if points < FEWEST:
            continue
        values, tested, both, wide = _tested(part, kept, inner, name, method, resamples, seed, intervals)
        for whole, found in (
            (difference, values[:, None] - values), (p, tested), (p_perm_both, both), (reach, wide),
        ):  # fmt: skip
            whole[cell] = np.where(wanted, found, whole[cell])
    test = _name(_method(method, design, name), design, name, resamples)
    return Comparison(difference, p, p_perm_both, reach, n, test)


def _method(method: str, design: Design, name: str) -> str:
    if method != "clustered":
        return method
    # Ranks of some hundred means move in steps too coarse for a jackknife, which then rejects too little; Pearson's
    # scale depends on a few means where tails are long, and swapping those rejects too much.
    return "swap_systems" if design.average and name != "pearson" else "jackknife"


def _name(method: str, design: Design, name: str, resamples: int) -> str:
    if method not in _SWAPS:
        return f"{method}|swaps:{resamples}" if method == "flip_dialogues" else method
    more = resamples > 0 and goes_on(_SWAPS[method], design, name)
    return f"{method}|swaps:{max(resamples, SWAPS) if more else resamples}"


def _check(scores: Floats, ratings: Floats, design: Design, name: str, method: str) -> None:
    if scores.ndim != 2 or ratings.shape != scores.shape[1:] or len(design.systems) != len(ratings):
        raise ValueError(
            f"expected scores (metrics, n), ratings (n,) and a design of n units, got {scores.shape}, {ratings.shape} "
            f"and {len(design.systems)}"
        )
    if np.isnan(ratings).any():
        raise ValueError("expected ratings without NaN: leave such units out")
    if name not in NAMES:
        raise ValueError(f"unknown coefficient {name!r}: expected one of {', '.join(NAMES)}")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: expected one of {', '.join(METHODS)}")
    if method == "flip_dialogues" and design.average:
        raise ValueError(f"method {method!r} is over units: over means of systems use {DEFAULT!r}")
    if method in _SWAPS and name == "kendall" and not design.average:
        raise ValueError(f"method {method!r} has no Kendall over units: use {DEFAULT!r}")


def _groups(present: Flags) -> list[tuple[Integers, Flags, Flags]]:
    """Group pairs by the units that both have: metrics, which of their pairs, units."""
    patterns, pattern = np.unique(present, axis=0, return_inverse=True)
    members = [np.flatnonzero(pattern == code) for code in range(len(patterns))]
    pairs: dict[bytes, list[tuple[int, int]]] = {}
    for one in range(len(patterns)):
        for other in range(one, len(patterns)):
            pairs.setdefault((patterns[one] & patterns[other]).tobytes(), []).append((one, other))
    found = []
    for key, together in pairs.items():
        rows = np.unique(np.concatenate([members[code] for pair in together for code in pair]))
        wanted = np.zeros((len(present), len(present)), dtype=bool)
        for one, other in together:
            wanted[np.ix_(members[one], members[other])] = True
            wanted[np.ix_(members[other], members[one])] = True
        found.append((rows, wanted[np.ix_(rows, rows)], np.frombuffer(key, dtype=bool)))
    return found


def _narrowed(design: Design, units: Flags) -> Design:
    systems, dialogues = (
        np.unique(codes[units], return_inverse=True)[1].astype(np.intp) for codes in (design.systems, design.dialogues)
    )
    return Design(systems, dialogues, design.average)


def _tested(
    scores: Floats,
    ratings: Floats,
    design: Design,
    name: str,
    method: str,
    resamples: int,
    seed: int,
    intervals: bool,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return values (metrics,), p by the method, p of PERM-BOTH and the reach, of metrics without gaps."""

    def swapped(scheme: str) -> Floats:
        return swap_p(scores, ratings, design, name, scheme, resamples, seed, SWAPS)

    unavailable = resamples == 0 or (name == "kendall" and not design.average)
    both = np.full((len(scores), len(scores)), np.nan) if unavailable else swapped("units")
    method = _method(method, design, name)
    points, target, inner = averaged(scores, ratings, design) if design.average else (scores, ratings, design)
    unknown = np.full_like(both, np.nan)
    if method in _SWAPS:
        p, reach = both if method == "swap_units" else unknown, unknown
        if method != "swap_units" and resamples:
            p, reach = swap_test(
                scores, ratings, design, name, _SWAPS[method], resamples, seed, SWAPS, intervals=intervals
            )
        return influence(points, target, name)[0], p, both, reach
    if method == "flip_dialogues":
        return *flip_dialogues(points, target, inner, name, resamples, seed), both, unknown
    values, p, reach = (influence_t if method == "influence" else jackknife_t)(points, target, inner, name)
    return values, p, both, reach
