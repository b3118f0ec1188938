"""Learning curves with fewer systems, dialogues, annotators or judge samples, and the power to separate metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import coefficients, influence, over_clusters, over_means, over_systems, without_each
from comperdial.stats.correlation import ALPHA, rowwise
from comperdial.stats.design import Design, Floats, Integers
from comperdial.stats.means import merge_ties, paired_means

Varied = Literal["systems", "dialogues", "annotators", "samples"]
# A random order of what is varied, and how many to take from its start.
Subsets = list[tuple[Integers, int]]
VARIED: tuple[Varied, ...] = ("systems", "dialogues", "annotators", "samples")
# Quadrature over the quantiles of a variance: accurate to 1e-5 from two degrees of freedom on.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# Half-samples are a fixed design, similar to an orthogonal array: the same for all metrics, whatever else is drawn.
_DESIGN, _HALVES = 20, 400


class Curve(NamedTuple):
    """Values of metrics on subsets of increasing size.

    ``value``, ``low`` and ``high``, of shape (sizes, metrics), are the mean and the 2.5 % and 97.5 % quantiles over subsets
    with a value; NaN if there are none. Subsets of one data set overlap, so the quantiles show the spread of subsets, not a
    confidence interval; at the full size, with its single subset, they coincide. ``agreement``, (sizes,), is the mean over
    subsets of Kendall's tau-b between the metrics' values on the subset and on all data; ``repeats``, (sizes,), the number of
    subsets.
    """

    sizes: Integers
    value: Floats
    low: Floats
    high: Floats
    agreement: Floats
    repeats: Integers


def subsample_curve(
    scores: Floats,
    single: Floats,
    design: Design,
    name: Coefficient,
    *,
    varied: Varied,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
) -> Curve:
    """Correlate metrics with ratings on random subsets of systems, dialogues or annotators, drawn without replacement.

    ``scores`` have shape (metrics, n), ``single`` ratings (annotators, n); both are NaN if missing. A unit's rating is the mean
    over its (chosen) annotators; units without ratings are ignored. The draws for a size, between 1 and the total, do not
    depend on the other ``sizes``.
    """
    ratings = mean_of(single)
    count = len(single) if varied == "annotators" else design.counts[varied == "dialogues"]

    # Few annotators have few subsets.
    @cache
    def of_annotators(taken: tuple[int, ...]) -> Floats:
        return _values(scores, mean_of(single[list(taken)]), design, name)

    def of_subsets(subsets: Subsets) -> Floats:
        if varied == "annotators":
            return np.stack([of_annotators(tuple(sorted(order[:size].tolist()))) for order, size in subsets])
        taken = np.zeros((len(subsets), count))
        for row, (order, size) in zip(taken, subsets, strict=True):
            row[order[:size]] = 1
        known = np.where(np.isnan(ratings), np.nan, scores), np.nan_to_num(ratings)
        if not design.average:
            return over_clusters(*known, getattr(design, varied), taken, [name])[:, :, 0]
        return (over_systems if varied == "systems" else over_means)(*known, design, taken, [name])[:, :, 0]

    return _curve(of_subsets, count, varied, sizes, repeats, seed)


def sample_curve(
    samples: Floats,
    ratings: Floats,
    design: Design,
    name: Coefficient,
    *,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
    others: npt.ArrayLike = (),
) -> Curve:
    """Correlate ratings, (n,), with the mean of k of a judge's samples per unit; ``sizes`` are numbers k.

    ``samples`` have shape (metrics, most samples, n), NaN if missing. A sample without any score is ignored; in the others
    a missing score is ignored in the mean. A metric with fewer than k samples has no value. ``others`` are values of metrics
    without samples, which take part in the ranking behind ``agreement``.
    """
    exists = np.asarray(np.isfinite(samples).any(axis=2))

    @cache
    def of_taken(row: int, taken: tuple[int, ...]) -> float:
        return float(_values(mean_of(samples[row, list(taken)])[np.newaxis], ratings, design, name)[0])

    def of_subsets(subsets: Subsets) -> Floats:
        values = np.full((len(subsets), len(samples)), np.nan)
        for at, (order, size) in enumerate(subsets):
            for row, there in enumerate(exists):
                if there.sum() >= size:
                    values[at, row] = of_taken(row, tuple(sorted(order[there[order]][:size].tolist())))
        return values

    whole = [of_taken(row, tuple(np.flatnonzero(there).tolist())) for row, there in enumerate(exists)]
    return _curve(
        of_subsets, exists.shape[1], "samples", sizes, repeats, seed, np.array(whole), np.asarray(others, float)
    )


def _curve(
    of_subsets: Callable[[Subsets], Floats],
    count: int,
    varied: Varied,
    sizes: Sequence[int],
    repeats: int,
    seed: int,
    whole: Floats | None = None,
    others: Floats | tuple[()] = (),
) -> Curve:
    """Draw subsets, the first ``size`` of a random order of ``count``, and summarize their values."""
    subsets = [(np.arange(count), count)]
    for size in sizes:
        rng = np.random.default_rng([seed, VARIED.index(varied), size])
        subsets += [(rng.permutation(count), size) for _ in range(1 if size == count else repeats)]
    values, of_size = of_subsets(subsets), np.array([size for _, size in subsets])
    whole, of_size[0] = values[0] if whole is None else whole, 0
    rows = []
    for size in sizes:
        drawn = values[of_size == size]
        times, value, ends = len(drawn), mean_of(drawn), np.full((2, len(whole)), np.nan)
        there = ~np.isnan(value)
        ends[:, there] = np.nanquantile(drawn[:, there], [0.025, 0.975], axis=0)
        ranked, reference = (np.array([[*row, *others] for row in side]) for side in (drawn, [whole] * times))
        rows.append(
            (size, value, *ends, float(mean_of(rowwise(merge_ties(ranked), merge_ties(reference), "kendall"))), times)
        )
    return Curve(*map(np.array, zip(*rows, strict=True)))


def mean_of(table: Floats) -> Floats:
    """Return the mean over the first axis, ignoring missing values; NaN if all are missing."""
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    means = np.full(table.shape[1:], np.nan)
    return np.divide(np.where(there, table, 0.0).sum(axis=0), counts, out=means, where=counts > 0)


def _values(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> Floats:
    """Return the coefficient of each metric over the rated units."""
    rated = ~np.isnan(ratings)
    if not rated.any():
        return np.full(len(scores), np.nan)
    return coefficients(scores[:, rated], ratings[rated], design.of(rated), [name])[:, 0]


# Power


@dataclass(frozen=True)
class Components:
    """The difference of two metrics' correlations, also on Fisher's scale (``effect``), and its variance components.

    With S systems and D dialogues the variance of the effect is systems / S + dialogues / D + cells / (S D), a cell being a
    dialogue of a system. Negative components are set to 0; NaN if there are fewer than two systems or dialogues, or a
    coefficient is undefined or 1. ``counts`` are the numbers of systems and dialogues in the data.
    """

    difference: float
    effect: float
    systems: float
    dialogues: float
    cells: float
    counts: tuple[int, int]

    def variance(self, systems: int, dialogues: int) -> tuple[float, float]:
        """Return the variance of the effect for numbers of systems and dialogues, and Satterthwaite's degrees of freedom."""
        parts = self.systems / systems, self.dialogues / dialogues, self.cells / (systems * dialogues)
        free = systems - 1, dialogues - 1, (systems - 1) * (dialogues - 1)
        spread = sum(part**2 / of for part, of in zip(parts, free, strict=True))
        return sum(parts), sum(parts) ** 2 / spread if spread > 0 else float("nan")

    def power(self, systems: int, dialogues: int) -> float:
        """Return the power of a two-sided t test at 5 %; NaN below two systems or dialogues.

        Assumes that the difference is true and equally large for other numbers (over system means it may grow with the
        dialogues), that systems and dialogues are random samples, and that people rate equally reliably.
        """
        if min(systems, dialogues) < 2:
            return float("nan")
        variance, free = self.variance(systems, dialogues)
        if not variance > 0:
            return float("nan")
        # Integrate over the distribution of the standard error, since scipy's noncentral t gives NaN in the tails.
        shift = abs(self.effect) / variance**0.5
        limit = float(scipy.special.stdtrit(free, 1 - ALPHA / 2)) * np.sqrt(
            scipy.special.chdtri(free, (1 - _POINTS) / 2) / free
        )
        beyond = scipy.special.ndtr(shift - limit) + scipy.special.ndtr(-shift - limit)
        return float(np.clip(beyond @ _WEIGHTS / 2, 0, 1))


def components(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient, pairs: Sequence[tuple[int, int]]
) -> list[Components]:
    """Return the difference of each pair of metrics and its variance components, over the units that both scored.

    ``scores`` have shape (metrics, n), NaN if missing, ``ratings`` (n,). With ``design.average`` the correlation is over system
    means. Systems and dialogues should be crossed; an empty cell counts as contributing nothing.
    """

    @cache
    def of(row: int, flags: bytes) -> tuple[float, Floats, Floats, Floats]:
        units = np.frombuffer(flags, dtype=np.bool_)
        x, y, inner = scores[row, units], ratings[units], design.of(units)
        if min(inner.counts) < 2:
            return float(_values(x[np.newaxis], y, inner, name)[0]), *np.full((3, 2), np.nan)
        return (_effects_of_means if design.average else _effects)(x, y, inner, name)

    made = []
    for pair in pairs:
        units = np.asarray(np.isfinite(scores[list(pair)]).all(axis=0))
        systems, dialogues = counts = design.of(units).counts
        (one, *ours), (other, *theirs) = (of(row, units.tobytes()) for row in pair)
        of_systems, of_dialogues, cell = (float(np.var(a - b, ddof=1)) for a, b in zip(ours, theirs, strict=True))
        effect = float(np.arctanh(one) - np.arctanh(other)) if max(abs(one), abs(other)) < 1 else float("nan")
        # The variances of systems and of dialogues include a share of the cells.
        of_systems = float(np.maximum(0, of_systems - cell / max(dialogues, 1)))
        of_dialogues = float(np.maximum(0, of_dialogues - cell / max(systems, 1)))
        made.append(Components(one - other, effect, of_systems, of_dialogues, cell, counts))
    return made


# A coefficient, and deviations on Fisher's scale whose variances are those of systems, dialogues and cells. For the difference
# of two metrics they are subtracted.


def _effects(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient
) -> tuple[float, Floats, Floats, Floats]:
    """Return these over units by influence functions (the infinitesimal jackknife)."""
    shape = design.counts
    value, moves = influence(scores, ratings, name)
    moved = moves / (1 - value**2) if abs(value) < 1 else np.full(len(ratings), np.nan)
    places = np.ravel_multi_index((design.systems, design.dialogues), shape)
    sums = np.bincount(places, moved, minlength=shape[0] * shape[1])
    cells = sums.reshape(shape) * (sums.size / len(ratings))
    of_systems, of_dialogues = np.asarray(cells.mean(axis=1)), np.asarray(cells.mean(axis=0))
    rest = cells - of_systems[:, np.newaxis] - of_dialogues + cells.mean()
    # Scale the variance of residuals to their degrees of freedom.
    unbiased = np.sqrt((cells.size - 1) / ((shape[0] - 1) * (shape[1] - 1)))
    return value, of_systems, of_dialogues, rest.ravel() * unbiased


def _effects_of_means(
    scores: Floats, ratings: Floats, design: Design, name: Coefficient
) -> tuple[float, Floats, Floats, Floats]:
    """Return these over system means.

    Systems are left out one by one (jackknife). Leaving out one dialogue of a system barely moves its mean, and a rank then
    stays or jumps; so half of the dialogues are left out, which moves means as much as sampling does: the same half for all
    systems, and a separate half for each.
    """
    table, (systems, dialogues) = scores[np.newaxis], design.counts
    means, rated = paired_means(table, ratings, design)
    left_out = _fisher(without_each(means, rated[0], np.arange(systems), name)[0])
    rng = np.random.default_rng(_DESIGN)
    kept = dialogues // 2
    common = rng.random((_HALVES, 1, dialogues)).argsort(axis=2)[:, 0] < kept
    own = rng.random((_HALVES, systems, dialogues)).argsort(axis=2) < kept
    halved = [_fisher(over_means(table, ratings, design, taken * 1.0, [name])[:, 0, 0]) for taken in (common, own)]
    # The mean of a part differs from that of the whole with variance v (1 / kept - 1 / all), where v is that of one.
    scale = 1 / np.sqrt(1 / kept - 1 / dialogues)
    of_dialogues, of_cells = (scale * (half - half.mean()) for half in halved)
    value = float(rowwise(means, rated, name)[0])
    return value, -(systems - 1) * (left_out - left_out.mean()), of_dialogues, np.sqrt(systems) * of_cells


def _fisher(values: Floats) -> Floats:
    inside = np.abs(values) < 1
    return np.where(inside, np.arctanh(np.where(inside, values, 0.0)), np.nan)
