"""Intervals and tests that exist only to be compared with those of `comperdial.stats`: see docs/validation.md.

Used by coverage.py, few_systems.py and paired.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from simulated import Floats

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import influence, over_clusters, over_means
from comperdial.stats.comparison import averaged
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design, Integers
from comperdial.stats.intervals import FEWEST_SYSTEMS, SHARE, Drawn, draw, draw_within, fisher_ends, spread, two_way
from comperdial.stats.jackknife import Replicates, variances
from comperdial.stats.means import paired_means
from comperdial.stats.swaps import draw_signs, swap_units

DEFAULT = "fisher-design"
INTERVALS = (
    "percentile-dialogues", "percentile-systems", "percentile-both", "basic-both", "bca-both", "fisher-pigeonhole",
    "fisher-sum", "fisher-two-way", DEFAULT, "fisher-jackknife",
)  # fmt: skip


class Resampled:
    """The resamples of the default interval, and what other intervals draw beside them."""

    def __init__(
        self,
        scores: Floats,
        ratings: Floats,
        design: Design,
        names: tuple[Coefficient, ...],
        resamples: int,
        rng: np.random.Generator,
    ) -> None:
        self.of = (scores, ratings, design, names)
        self.drawn: Drawn = draw(*self.of, resamples, rng)
        self.resamples, self.rng = resamples, rng
        self._known: dict[str, Floats] = {"systems": self.drawn.systems, "dialogues": self.drawn.dialogues}
        if self.drawn.within is not None:
            self._known["within"] = self.drawn.within

    def values(self, kind: str) -> Floats:
        """Return the coefficients of a kind of resample: shape (resamples, metrics, names)."""
        if kind not in self._known:
            self._known[kind] = self._drawn(kind)
        return self._known[kind]

    def _drawn(self, kind: str) -> Floats:
        if kind == "within":
            return draw_within(*self.of, self.resamples, self.rng)
        scores, ratings, design, names = self.of
        if kind == "both":
            sides = zip(self.drawn.drawn_systems, self.drawn.drawn_dialogues, strict=True)
            return np.stack([_repeated(*self.of, *times) for times in sides])
        by_system = kind == "without-system"
        if design.average and not by_system:
            return over_means(scores, ratings, design, 1 - np.eye(design.counts[1]), names)
        codes = design.systems if by_system else design.dialogues
        if design.average:
            means, rated = paired_means(scores, ratings, design)
            # Of complete scores: all metrics have the same mean ratings.
            scores, ratings, codes = means, rated[0], np.arange(design.counts[0])
        return over_clusters(scores, ratings, codes, 1 - np.eye(int(codes.max()) + 1), names)

    def ends(self, method: str, confidence: float) -> tuple[Floats, Floats]:
        """Return the low and the high ends of one of ``INTERVALS``, each of shape (metrics, names)."""
        if method == DEFAULT:
            return self.drawn.ends(confidence)
        value, tails = self.drawn.value, np.array([(1 - confidence) / 2, (1 + confidence) / 2])
        kind, _, of = method.partition("-")
        with np.errstate(all="ignore"):
            if kind == "fisher":
                low, high = fisher_ends(self.drawn, *self._variances(of), confidence)
            else:
                chosen = self._corrected(tails) if kind == "bca" else np.broadcast_to(tails, (*value.shape, 2))
                low, high = _quantiles(self.values(of), chosen)
                if kind == "basic":
                    low, high = 2 * value - high, 2 * value - low
        none = np.isnan(value) | np.isnan(low) | np.isnan(high)
        if self.of[2].average:
            none |= self.drawn.counts[0] < FEWEST_SYSTEMS
        return np.where(none, np.nan, np.clip(low, -1, 1)), np.where(none, np.nan, np.clip(high, -1, 1))

    def _variances(self, of: str) -> tuple[Floats, Floats, Floats]:
        systems, dialogues = self.drawn.counts
        of_systems, of_dialogues, _ = self.drawn.variances()
        if of == "jackknife":
            without = (spread(self.values(f"without-{side}")) for side in ("system", "dialogue"))
            of_systems, of_dialogues = (
                np.where(n > 1, part * (n - 1) ** 2 / n, 0.0)
                for part, n in zip(without, (systems, dialogues), strict=True)
            )
        total = of_systems + of_dialogues
        if of == "pigeonhole":
            total = np.maximum(total, spread(self.values("both")))
        elif of == "two-way":
            total = two_way(of_systems, of_dialogues, self.values("within"), dialogues)
        return of_systems, of_dialogues, total

    def _corrected(self, tails: Floats) -> Floats:
        """Return the tails of Efron's bias-corrected and accelerated percentiles, with the influence of both sides."""
        value, both = self.drawn.value, self.values("both")
        below = ((both < value - 1e-12).mean(axis=0) + (both <= value + 1e-12).mean(axis=0)) / 2
        bias = stats.norm.ppf(below)
        squares, cubes = np.zeros(bias.shape), np.zeros(bias.shape)
        for side in ("system", "dialogue"):
            values = self.values(f"without-{side}")
            there = ~np.isnan(values)
            mean = np.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
            moved = (mean - values) * (len(values) - 1) / max(len(values), 1)
            squares += np.nansum(moved**2, axis=0)
            cubes += np.nansum(moved**3, axis=0)
        acceleration = cubes / (6 * squares**1.5)
        ends = [bias + stats.norm.ppf(tail) for tail in tails]
        return np.stack([stats.norm.cdf(bias + end / (1 - acceleration * end)) for end in ends], axis=-1)


def _repeated(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: tuple[Coefficient, ...],
    of_systems: Floats,
    of_dialogues: Floats,
) -> Floats:
    """Return the coefficients of rows repeated as often as their system times their dialogue was drawn."""
    times = (of_systems[design.systems] * of_dialogues[design.dialogues]).astype(int)
    rows = np.repeat(np.arange(len(ratings)), times)
    table = np.vstack([scores, ratings])[:, rows]
    if design.average:
        # Means that differ by rounding only are ties.
        drawn = np.repeat(np.arange(len(of_systems)), of_systems.astype(int))
        n = np.bincount(design.systems[rows], minlength=len(of_systems))
        drawn = drawn[n[drawn] > 0]
        table = np.stack([np.round(np.bincount(design.systems[rows], row)[drawn] / n[drawn], 11) for row in table])
    return np.array([[correlate(row, table[-1], name).value for name in names] for row in table[:-1]])


def _quantiles(values: Floats, tails: Floats) -> tuple[Floats, Floats]:
    """Return two quantiles of each column; tails has shape (metrics, names, 2)."""
    found = np.full(tails.shape, np.nan)
    for at in np.ndindex(tails.shape[:2]):
        column = values[(slice(None), *at)]
        column = column[~np.isnan(column)]
        if len(column) and len(column) >= SHARE * len(values) and not np.isnan(tails[at]).any():
            found[at] = np.quantile(column, tails[at])
    return found[..., 0], found[..., 1]


def influence_t(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> Floats:
    """Return p of each pair: what the jackknife of `compare` does, with influences in place of leaving out."""
    if design.average:
        scores, ratings, design = averaged(scores, ratings, design)
    values, moves = _influences(scores, ratings, name)
    parts = []
    for codes in (design.systems, design.dialogues, design.cells):
        count = int(codes.max()) + 1
        sums = np.stack([np.bincount(codes, row, count) for row in moves]) / len(codes)
        parts.append(values[:, None] - sums * count / max(count - 1, 1))
    tested = variances(Replicates(values, *parts, np.zeros(len(values), dtype=np.intp)), 2)
    return tested.test(values[:, None] - values, tested.two_way)[0]


def _influences(scores: Floats, ratings: Floats, name: Coefficient) -> tuple[Floats, Floats]:
    values, moves = zip(*(influence(row, ratings, name) for row in scores), strict=True)
    return np.array(values), np.stack(moves)


def swapped(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, scheme: str, resamples: int, seed: int
) -> Floats:
    """Return p of each pair, scores being swapped by unit, by cell, by system, by dialogue, or by a product of signs.

    Over means of systems, swapping systems swaps standardised means.
    """
    if scheme == "systems" and design.average:
        scores, ratings, design = averaged(scores, ratings, design)
    return swap_units(scores, ratings, design, name, resamples, _signs(design, scheme, np.random.default_rng(seed)))


def _signs(design: Design, scheme: str, rng: np.random.Generator) -> Callable[[int], Floats]:
    """Return what draws signs of units: those of a group have one."""
    codes: dict[str, list[Integers]] = {
        "units": [np.arange(len(design.systems))],
        "cells": [design.cells],
        "systems": [design.systems],
        "dialogues": [design.dialogues],
        "product": [design.systems, design.dialogues],
    }

    def draw_all(count: int) -> Floats:
        found = np.ones((count, len(design.systems)))
        for of in codes[scheme]:
            found *= draw_signs(rng, count, int(of.max()) + 1)[:, of]
        return found

    return draw_all


def flip_dialogues(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, resamples: int, seed: int
) -> Floats:
    """Return p of each pair: whole dialogues are swapped, and divided by the two-way standard error each time.

    The swap is done on the sums of influences by cell, whose sign it turns. Dividing by the standard error is what lets
    systems, which are not swapped, count.
    """
    values, moves = _influences(scores, ratings, name)
    systems, dialogues = design.counts
    parts = (values[:, None] + moves) / len(ratings)
    codes = design.systems * dialogues + design.dialogues
    flat = np.stack([np.bincount(codes, row, minlength=systems * dialogues) for row in parts])
    table = flat.reshape(len(scores), systems, dialogues)
    flips = np.random.default_rng(seed).integers(0, 2, size=(resamples, dialogues))
    signs = np.asarray(2 * flips - 1, dtype=np.float64)
    p = np.ones((len(scores), len(scores)))
    for a in range(len(scores) - 1):
        for b in range(a + 1, len(scores)):
            p[a, b] = p[b, a] = _flipped(table[a] - table[b], signs)
    gap = np.isnan(values)
    p[gap], p[:, gap] = np.nan, np.nan
    return p


def _flipped(pair: Floats, signs: Floats) -> float:
    by_dialogue, by_cell = np.sum(pair.sum(axis=0) ** 2), np.sum(pair**2)
    rows = np.concatenate([np.ones((1, signs.shape[1])), signs]) @ pair.T
    by_system = np.einsum("rs,rs->r", rows, rows)
    summed = by_system + by_dialogue - by_cell
    variance = np.where(summed > 0, summed, np.maximum(by_system, by_dialogue))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(rows.sum(axis=1)) / np.sqrt(variance)
    # Not "at least as large": 0 / 0, two equal metrics, counts as well.
    return float((1 + np.sum(~(ratio[1:] < ratio[0] * (1 - 1e-9)))) / (1 + len(signs)))
