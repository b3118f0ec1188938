"""Permutation tests that swap the scores of two metrics: by unit (PERM-BOTH), or by whole systems or dialogues.

A swapped score is (a + b) / 2 + s (a - b) / 2 with a sign s, and its square likewise, so every sum that a correlation
needs is linear in sums of s x (a feature of one metric): one matrix product serves all pairs of metrics.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats._comparison_systems import AT_ONCE, CLOSE, draw_signs, swap_ranks
from comperdial.stats.design import Design, Integers
from comperdial.stats.means import system_means

Floats = npt.NDArray[np.float64]

# Scores x swaps that are ranked at a time: 2 MB of each of a few arrays.
_RANKED = 2**18
SCHEMES = ("units", "cells", "systems", "dialogues", "product")


def swap_p(
    scores: Floats, ratings: Floats, design: Design, name: str, scheme: str, resamples: int, seed: int, most: int = 0
) -> Floats:
    """Return the two-sided p of each pair of metrics, (1 + swaps as far out as the data) / (1 + swaps).

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), nothing missing. Each row of scores is standardised first (its means of systems,
        if those are swapped and averaged). For Spearman, what was swapped (and averaged) is ranked each time.
    design
        Systems and dialogues of the units; with ``average`` the swapped scores are averaged by system.
    name
        ``pearson`` or ``spearman``; ``kendall`` with ``design.average`` only.
    scheme
        What is swapped together: ``units``, ``cells`` (a dialogue of a system), ``systems``, ``dialogues``, or
        ``product`` (a sign of the system times a sign of the dialogue).
    resamples, seed
        How many swaps, and where they begin. All pairs share them.
    most
        Where :func:`goes_on`: a pair with few swaps as far out as the data gets up to so many. 0: no more.

    Returns
    -------
    array
        Shape (metrics, metrics), symmetric, 1 on the diagonal; NaN for a metric that does not vary.
    """
    return swap_test(scores, ratings, design, name, scheme, resamples, seed, most)[0]


def swap_test(
    scores: Floats,
    ratings: Floats,
    design: Design,
    name: str,
    scheme: str,
    resamples: int,
    seed: int,
    most: int = 0,
    *,
    intervals: bool = False,
) -> tuple[Floats, Floats]:
    """Return p as :func:`swap_p` does, and the reach of intervals (:func:`swap_ranks`), NaN where there are none."""
    if design.average and scheme == "systems":
        scores, ratings, design = averaged(scores, ratings, design)
    count = len(scores)
    p, reach = np.full((count, count), np.nan), np.full((count, count), np.nan)
    usable = np.flatnonzero(np.ptp(scores, axis=1) > 0)
    if len(usable) == 0 or np.ptp(ratings) == 0:
        return p, reach
    chosen = scores[usable]
    chosen = (chosen - chosen.mean(axis=1, keepdims=True)) / chosen.std(axis=1, keepdims=True)
    if goes_on(scheme, design, name):
        cell = np.ix_(usable, usable)
        p[cell], reach[cell] = swap_ranks(chosen, ratings, name, resamples, seed, most, intervals=intervals)
        return p, reach
    codes, rng = _codes(design, scheme), np.random.default_rng(seed)
    found = np.zeros((len(usable), len(usable)))
    over_units = _of_ranks if name == "spearman" else _of_units
    step = max(1, AT_ONCE // (int(codes.max()) + 1))
    for start in range(0, resamples, step):
        signs = _signs(rng, design, scheme, codes, min(step, resamples - start))
        if design.average:
            found += _of_means(chosen, ratings, design.systems, codes, signs, name)
        else:
            found += over_units(chosen, ratings, codes, signs)
    p[np.ix_(usable, usable)] = (1 + found) / (1 + resamples)
    p[usable, usable] = 1
    return p, reach


def goes_on(scheme: str, design: Design, name: str) -> bool:
    """Say whether swaps are cheap enough to draw as many as a small p needs: of systems, for ranks of means."""
    return scheme == "systems" and design.average and name != "pearson"


def _codes(design: Design, scheme: str) -> Integers:
    if scheme == "units":
        return np.arange(len(design.systems), dtype=np.intp)
    if scheme in ("systems", "dialogues"):
        return np.asarray(getattr(design, scheme))
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}: expected one of {', '.join(SCHEMES)}")
    return cells(design)


def averaged(scores: Floats, ratings: Floats, design: Design) -> tuple[Floats, Floats, Design]:
    """Return means of systems, each a unit of its own and all of one dialogue."""
    codes = np.arange(int(design.systems.max()) + 1, dtype=np.intp)
    narrow = Design(codes, np.zeros_like(codes), design.average)
    return system_means(scores, design), system_means(ratings, design), narrow


def cells(design: Design) -> Integers:
    """Return for each unit the code of its dialogue of its system, in order of system, then dialogue."""
    width = int(design.dialogues.max()) + 1
    return np.unique(design.systems * width + design.dialogues, return_inverse=True)[1].astype(np.intp)


def _signs(rng: np.random.Generator, design: Design, scheme: str, codes: Integers, count: int) -> Floats:
    if scheme != "product":
        return draw_signs(rng, count, int(codes.max()) + 1)
    first = np.unique(codes, return_index=True)[1]
    of_system = draw_signs(rng, count, int(design.systems.max()) + 1)
    of_dialogue = draw_signs(rng, count, int(design.dialogues.max()) + 1)
    return np.asarray(of_system[:, design.systems[first]] * of_dialogue[:, design.dialogues[first]])


def _sums(values: Floats, codes: Integers) -> Floats:
    """Sum the columns of each row by code."""
    width = int(codes.max()) + 1
    if width == len(codes):
        return values[:, np.argsort(codes)]
    return np.stack([np.bincount(codes, row, minlength=width) for row in values])


def _of_units(scores: Floats, ratings: Floats, codes: Integers, signs: Floats) -> Floats:
    """Count per pair the resamples whose difference of Pearson's r over units is as far from 0 as the data's."""
    metrics, n = scores.shape
    y = (ratings - ratings.mean()) / ratings.std()
    features = np.concatenate([scores, scores**2, scores * y]) / n
    summed = signs @ _sums(features, codes).T
    # By metric, then resample: rows are contiguous.
    mean, square, cross = np.ascontiguousarray(summed.T).reshape(3, metrics, -1)
    values = (scores @ y) / n
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        rest = slice(a + 1, metrics)
        shift, surplus = (mean[a] - mean[rest]) / 2, (square[a] - square[rest]) / 2
        middle, half = (values[a] + values[rest, None]) / 2, (cross[a] - cross[rest]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (middle + half) / np.sqrt(1 + surplus - shift**2) - (middle - half) / np.sqrt(
                1 - surplus - shift**2
            )
        counts[a, rest] = _extreme(drawn, values[a] - values[rest])
    return counts + counts.T


def _of_ranks(scores: Floats, ratings: Floats, codes: Integers, signs: Floats) -> Floats:
    """Count as :func:`_of_units` does, the correlation being Spearman's.

    The scores of both metrics are put in order once. In a swap each metric has one of a unit's two scores, so that its
    ranks are sums along that order of what it has, and the other metric's are what is left.
    """
    metrics, n = scores.shape
    y = stats.rankdata(ratings) - (n + 1) / 2
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        for b in range(a + 1, metrics):
            pooled = np.concatenate([scores[a], scores[b]])
            order = np.argsort(pooled, kind="stable")
            starts = np.flatnonzero(np.diff(pooled[order], prepend=-np.inf))
            unit, first = codes[order % n], order < n
            swaps = _Swapped(np.tile(y, 2)[order], starts)
            observed = swaps.differences(first[None])
            step = max(1, _RANKED // len(pooled))
            for start in range(0, len(signs), step):
                drawn = swaps.differences((signs[start : start + step, unit] > 0) == first)
                counts[a, b] += _extreme(drawn[None], observed)[0]
    return counts + counts.T


class _Swapped:
    """Differences of Spearman's coefficients of two metrics, given which of the scores of both the first one has.

    ``y``: the other side's ranks less their mean, in the order of the scores; ``starts``: where a new value begins.
    """

    def __init__(self, y: Floats, starts: Integers) -> None:
        self.y, self.starts = y, starts
        self.tied = len(starts) < len(y)
        self.sizes = np.diff(starts, append=len(y)).astype(np.float64)
        self.middle = np.cumsum(self.sizes) - self.sizes / 2
        self.total = np.add.reduceat(y, starts)
        self.spread = float(y @ y) / 2

    def differences(self, has: npt.NDArray[np.bool_]) -> Floats:
        """Return the first metric's coefficient less the second's: shape (swaps,); ``has`` is (swaps, 2 n)."""
        number, sums = has.astype(np.float64), np.where(has, self.y, 0.0)
        if self.tied:
            number, sums = (np.add.reduceat(side, self.starts, axis=1) for side in (number, sums))
        ranks = np.cumsum(number, axis=1) - number / 2
        own = np.einsum("rg,rg->r", ranks, sums)
        others = own + self.middle @ self.total - sums @ self.middle - ranks @ self.total
        n = len(self.y) // 2
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (
                np.sqrt(self.spread * (n**3 - np.einsum("rg,rg,rg->r", side, side, side)) / 12)
                for side in ((number, self.sizes - number) if self.tied else (np.ones((1, n)),) * 2)
            )
            return np.asarray(own / one - others / other)


def _extreme(drawn: Floats, observed: Floats) -> Floats:
    # A swap after which a side does not vary gives no difference; it counts as extreme, the cautious side.
    return np.asarray((~(np.abs(drawn) < np.abs(observed)[:, None] - CLOSE)).sum(axis=1))


def _of_means(scores: Floats, ratings: Floats, systems: Integers, codes: Integers, signs: Floats, name: str) -> Floats:
    """Count as :func:`_of_units` does, the correlation being over means of systems."""
    sizes = np.bincount(systems)
    of_systems = Design(systems, np.zeros_like(systems), average=True)
    y = system_means(ratings, of_systems)
    means = _sums(scores, systems) / sizes
    moved = np.empty((len(scores), len(sizes), len(signs)))
    for system in range(len(sizes)):
        inside = np.flatnonzero(systems == system)
        groups, local = np.unique(codes[inside], return_inverse=True)
        moved[:, system] = (_sums(scores[:, inside], local.astype(np.intp)) / sizes[system]) @ signs[:, groups].T
    metrics = len(scores)
    correlation = _Rows(y, name)
    values = correlation(means.T)
    counts = np.zeros((metrics, metrics))
    for a in range(metrics - 1):
        for b in range(a + 1, metrics):
            middle, half = (means[a] + means[b])[:, None] / 2, (moved[a] - moved[b]) / 2
            drawn = correlation(middle + half) - correlation(middle - half)
            counts[a, b] = _extreme(drawn[None], np.array([values[a] - values[b]]))[0]
    return counts + counts.T


class _Rows:
    """Correlate the columns of (systems, many) with one side that stays."""

    def __init__(self, y: Floats, name: str) -> None:
        self.name = name
        fixed = stats.rankdata(y) if name == "spearman" else y
        self.y = (fixed - fixed.mean()) / np.linalg.norm(fixed - fixed.mean())
        self.first, self.second = np.triu_indices(len(y), 1)
        # Whole numbers below 2^24, exact in single precision.
        self.signs = np.sign(y[self.first] - y[self.second]).astype(np.float32)

    def __call__(self, x: Floats) -> Floats:
        if self.name != "pearson":
            # Sums in another order must not break ties.
            x = np.round(x, 10)
        if self.name == "kendall":
            return self._kendall(x)
        if self.name == "spearman":
            x = _ranked(x)
        centred = x - x.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.y @ centred) / np.sqrt(np.einsum("sr,sr->r", centred, centred)))

    def _kendall(self, x: Floats) -> Floats:
        order = np.argsort(x, axis=0)
        if np.any(np.diff(np.take_along_axis(x, order, axis=0), axis=0) == 0):
            return self._kendall_of_tied(x)
        ranks = np.empty(x.shape, dtype=np.int16)
        np.put_along_axis(ranks, order, np.arange(len(x), dtype=np.int16)[:, None], axis=0)
        agree = np.zeros(x.shape[1], dtype=np.float32)
        start = 0
        for system in range(len(x) - 1):
            signs = self.signs[start : start + len(x) - 1 - system]
            agree += signs @ (ranks[system] > ranks[system + 1 :]).astype(np.float32)
            start += len(signs)
        agreed = 2 * agree.astype(np.float64) - self.signs.sum(dtype=np.float64)
        return np.asarray(agreed / np.sqrt(np.sum(self.signs**2, dtype=np.float64) * len(self.signs)))

    def _kendall_of_tied(self, x: Floats) -> Floats:
        found = np.empty(x.shape[1])
        step = max(1, AT_ONCE // len(self.first))
        for start in range(0, x.shape[1], step):
            part = x[:, start : start + step]
            signs = np.sign(part[self.first] - part[self.second]).astype(np.float32)
            untied = np.einsum("pr,pr->r", signs, signs).astype(np.float64) * np.sum(self.signs**2, dtype=np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                found[start : start + step] = (self.signs @ signs).astype(np.float64) / np.sqrt(untied)
        return found


def _ranked(x: Floats) -> Floats:
    order = np.argsort(x, axis=0)
    if np.any(np.diff(np.take_along_axis(x, order, axis=0), axis=0) == 0):
        return np.asarray(stats.rankdata(x, axis=0))
    ranks = np.empty_like(x)
    np.put_along_axis(ranks, order, np.arange(len(x), dtype=np.float64)[:, None], axis=0)
    return ranks
