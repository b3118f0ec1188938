"""Tests of a difference of correlations that treat systems and dialogues as what was sampled.

Units of a system hang together, and so do units of a dialogue. The variance of a difference is therefore that over
systems plus that over dialogues minus that over cells (a cell is a dialogue of a system), which both of them count
(Cameron, Gelbach and Miller 2011).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats._comparison_influence import influence
from comperdial.stats._comparison_jackknife import left_out
from comperdial.stats._comparison_swaps import cells
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design, Integers

Floats = npt.NDArray[np.float64]


def jackknife_t(scores: Floats, ratings: Floats, design: Design, name: str) -> tuple[Floats, Floats, Floats]:
    """Return coefficients (metrics,), p of each pair and half the width of each difference's 95 % interval.

    Student's t with a two-way jackknife variance: p < 0.05 just where the interval leaves out 0. Each system is left
    out once and each dialogue once, and the coefficients are computed anew; cells, which weigh little, count by their
    influences. Degrees of freedom are Satterthwaite's, and at least those of the fewer clusters. With one system only,
    or one dialogue, the other alone counts. ``design.average`` is not looked at.
    """
    values, moves = influence(scores, ratings, name)
    by_system = _jackknife(scores, ratings, design.systems, name)
    by_dialogue = _jackknife(scores, ratings, design.dialogues, name)
    return values, *_t_test(values, by_system, by_dialogue, _of_influences(moves, cells(design)))


def influence_t(scores: Floats, ratings: Floats, design: Design, name: str) -> tuple[Floats, Floats, Floats]:
    """Do what :func:`jackknife_t` does with influences in place of leaving out."""
    values, moves = influence(scores, ratings, name)
    parts = [_of_influences(moves, codes) for codes in (design.systems, design.dialogues, cells(design))]
    return values, *_t_test(values, *parts)


# Variances of the differences of all pairs, and how many clusters they are from.
Part = tuple[Floats, int]


def _jackknife(scores: Floats, ratings: Floats, codes: Integers, name: str) -> Part:
    clusters = int(codes.max()) + 1
    if clusters < 2:
        return np.zeros((len(scores), len(scores))), clusters
    without = left_out(scores, ratings, codes, name)
    # Without one of few clusters a correlation may be perfect, whose z is infinite: there is no variance then.
    with np.errstate(invalid="ignore"):
        return _between(without - without.mean(axis=1, keepdims=True)) * (clusters - 1) / clusters, clusters


def _of_influences(moves: Floats, codes: Integers) -> Part:
    clusters = int(codes.max()) + 1
    if clusters < 2:
        return np.zeros((len(moves), len(moves))), clusters
    sums = np.stack([np.bincount(codes, row) for row in moves]) / len(codes)
    return _between(sums) * clusters / (clusters - 1), clusters


def _between(rows: Floats) -> Floats:
    """Sums of squares of the differences of all pairs of rows."""
    products = rows @ rows.T
    own = np.diag(products)
    return np.asarray(np.maximum(own[:, None] + own - 2 * products, 0))


def _t_test(values: Floats, systems: Part, dialogues: Part, by_cell: Part) -> tuple[Floats, Floats]:
    difference = values[:, None] - values
    if min(systems[1], dialogues[1]) < 2:
        by_cell = (np.zeros_like(difference), 1)
    summed = systems[0] + dialogues[0] - by_cell[0]
    # It may come out negative; then the larger of the one-way ones.
    variance = np.where(summed > 0, summed, np.maximum(systems[0], dialogues[0]))
    spread = [part**2 / max(clusters - 1, 1) for part, clusters in (systems, dialogues)]
    spread.append(by_cell[0] ** 2 / max((systems[1] - 1) * (dialogues[1] - 1), 1))
    fewest = min((clusters for _, clusters in (systems, dialogues) if clusters > 1), default=0) - 1
    if fewest < 0:
        return np.full_like(difference, np.nan), np.full_like(difference, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.maximum(variance**2 / np.sum(spread, axis=0), fewest)
        p = 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
        reach = np.where(variance > 0, stats.t.isf(ALPHA / 2, freedom) * np.sqrt(variance), np.nan)
    same = np.abs(difference) < 1e-12
    return np.asarray(np.where(same, 1.0, p)), reach


def flip_dialogues(
    scores: Floats, ratings: Floats, design: Design, name: str, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return coefficients and p of each pair: swap whole dialogues, and divide by the two-way standard error each time.

    The swap is done on the sums of influences by cell, whose sign it turns. Dividing by the standard error is what lets
    systems, which are not swapped, count.
    """
    values, moves = influence(scores, ratings, name)
    systems, dialogues = int(design.systems.max()) + 1, int(design.dialogues.max()) + 1
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
    return values, p


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
