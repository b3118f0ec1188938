"""Power: how many systems or dialogues it takes to tell two metrics apart.

The difference of two metrics' correlations with people, on Fisher's scale (atanh), varies with the systems and the
dialogues that were sampled: with S systems and D dialogues its variance is

    systems / S + dialogues / D + cells / (S D),

where a cell is a system in a dialogue. The three are estimated from what single systems, dialogues and cells bring to
the difference: over units by influence functions (the infinitesimal jackknife), over means of systems by leaving out
systems one by one and dialogues by halves.

Assumptions, to be named next to the numbers:

- The difference is taken as true. It is an estimate; where it is large by luck, so is the power ("how many would it
  take, if the difference were what it is here"). From one benchmark a power near a half is known loosely.
- It stays the same with other numbers. Over units that holds; over means of systems a correlation rises with the number
  of dialogues, since means grow more reliable, and so may a difference.
- Systems and dialogues are drawn at random from larger sets, each dialogue has as many units as here, and people rate
  as reliably.
- The difference over its standard error follows Student's t, with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import influence, over_means, without_each
from comperdial.stats.correlation import ALPHA, correlate, rowwise
from comperdial.stats.design import Design, Floats
from comperdial.stats.jackknife import Replicates, variances
from comperdial.stats.means import paired_means

# Points and weights of an integral over the quantiles of a variance: good to 1e-5 from two degrees of freedom on.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# Half-samples are a fixed design, like an orthogonal array: the same for all metrics, whatever else is drawn.
_DESIGN, _HALVES = 20, 400
# A coefficient, and deviations of it on Fisher's scale: their variances are those of systems, dialogues and cells. Those of
# systems and dialogues hold the share of cells too. For the difference of two metrics they are subtracted.
_Effects = tuple[float, Floats, Floats, Floats]


@dataclass(frozen=True)
class Components:
    """The difference of two metrics' coefficients and where its variance comes from.

    Attributes
    ----------
    difference
        First minus second, on the scale of the coefficient.
    effect
        What is tested: of coefficients the same on Fisher's scale, of other statistics the difference itself.
    systems, dialogues, cells
        Components of variance of ``effect``; negative estimates are put to 0. NaN where there are fewer than two
        systems or dialogues, or a coefficient is undefined or 1.
    counts
        Number of systems and of dialogues that they were estimated from.
    """

    difference: float
    effect: float
    systems: float
    dialogues: float
    cells: float
    counts: tuple[int, int]

    def _terms(self, systems: float, dialogues: float) -> tuple[float, float, float]:
        return self.systems / systems, self.dialogues / dialogues, self.cells / (systems * dialogues)

    def variance(self, systems: int, dialogues: int) -> float:
        """Return the variance of the effect with that many systems and dialogues."""
        return sum(self._terms(systems, dialogues))

    def freedom(self, systems: int, dialogues: int) -> float:
        """Return Satterthwaite's degrees of freedom of that variance as estimated with these numbers."""
        parts = self._terms(systems, dialogues)
        every = (systems - 1, dialogues - 1, (systems - 1) * (dialogues - 1))
        spread = sum(part**2 / free for part, free in zip(parts, every, strict=True))
        return sum(parts) ** 2 / spread if spread > 0 else float("nan")

    def power(self, systems: int, dialogues: int, alpha: float = ALPHA) -> float:
        """Return the chance that a two-sided t test finds the effect; NaN below two systems or dialogues."""
        if min(systems, dialogues) < 2 or not (variance := self.variance(systems, dialogues)) > 0:
            return float("nan")
        # A mean over the distribution of the standard error, since scipy's noncentral t gives NaN far out.
        shift, free = abs(self.effect) / variance**0.5, self.freedom(systems, dialogues)
        limit = float(stats.t.isf(alpha / 2, free)) * np.sqrt(special.chdtri(free, (1 - _POINTS) / 2) / free)
        beyond = special.ndtr(shift - limit) + special.ndtr(-shift - limit)
        return float(np.clip(beyond @ _WEIGHTS / 2, 0, 1))


def components(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, design: Design, name: Coefficient, pairs: Sequence[tuple[int, int]]
) -> list[Components]:
    """Return the difference of each pair of metrics and its components of variance.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, n) and (n,), NaN where missing; a pair is compared over the units that both scored.
    design
        Of the units; with ``average`` the correlation is over means of systems. Systems and dialogues should be
        crossed; a cell without units counts as one that brings nothing.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)

    @cache
    def of(row: int, flags: bytes) -> _Effects:
        units = np.frombuffer(flags, dtype=np.bool_)
        return _effects(table[row, units], human[units], design.of(units), name)

    made = []
    for pair in pairs:
        units = ~(np.isnan(table[list(pair)]).any(axis=0) | np.isnan(human))
        (one, *ours), (other, *theirs) = (of(row, units.tobytes()) for row in pair)
        of_systems, of_dialogues, cell = (float(np.var(a - b, ddof=1)) for a, b in zip(ours, theirs, strict=True))
        counts = design.of(units).counts
        inside = max(abs(one), abs(other)) < 1
        effect = float(np.arctanh(one) - np.arctanh(other)) if inside else float("nan")
        of_systems = float(np.maximum(0.0, of_systems - cell / max(counts[1], 1)))
        of_dialogues = float(np.maximum(0.0, of_dialogues - cell / max(counts[0], 1)))
        made.append(Components(one - other, effect, of_systems, of_dialogues, cell, counts))
    return made


def components_within(statistic: Replicates, pairs: Sequence[tuple[int, int]]) -> list[Components]:
    """Return the components of variance of the differences of pairs, given what each statistic is without each cluster.

    The effect is the difference itself. A kind of cluster that counts as given (dialogues, of statistics of pairs of
    systems; fewer than four systems) brings nothing, and is counted as two, so that more of it change nothing.
    """
    drawn = variances(statistic)
    counts = max(drawn.counts[0], 2), max(drawn.counts[1], 2)
    made = []
    for one, other in pairs:
        difference = float(statistic.values[one] - statistic.values[other])
        *sides, cell = (float(part) for part in drawn.parts[:3, one, other])
        of_systems, of_dialogues = (max(side - cell, 0.0) * count for side, count in zip(sides, counts, strict=True))
        made.append(Components(difference, difference, of_systems, of_dialogues, cell * counts[0] * counts[1], counts))
    return made


def _effects(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> _Effects:
    shape = design.counts
    if min(shape) < 2:
        nothing = np.full(2, np.nan)
        return correlate(scores, ratings, name).value, nothing, nothing, nothing
    if design.average:
        return _effects_of_means(scores, ratings, design, name)
    value, moves = influence(scores, ratings, name)
    moved = moves / (1 - value**2) if abs(value) < 1 else np.full(len(ratings), np.nan)
    places = np.ravel_multi_index((design.systems, design.dialogues), shape)
    sums = np.bincount(places, moved, minlength=shape[0] * shape[1])
    cells = sums.reshape(shape) * (sums.size / len(ratings))
    of_systems, of_dialogues = np.asarray(cells.mean(axis=1)), np.asarray(cells.mean(axis=0))
    rest = cells - of_systems[:, np.newaxis] - of_dialogues + cells.mean()
    # The variance of residuals is to be one over their degrees of freedom.
    unbiased = np.sqrt((cells.size - 1) / ((shape[0] - 1) * (shape[1] - 1)))
    return value, of_systems, of_dialogues, rest.ravel() * unbiased


def _effects_of_means(scores: Floats, ratings: Floats, design: Design, name: Coefficient) -> _Effects:
    """Return those of a coefficient over means of systems.

    Systems are left out one by one (jackknife). Leaving out one dialogue of a system hardly moves its mean, and a rank
    then stays or jumps; so dialogues are left out by halves, which moves means as much as sampling does: the same half
    for all systems, and another half for each.
    """
    table, (systems, dialogues) = scores[np.newaxis], design.counts
    means, rated = paired_means(table, ratings, design)
    left_out = _fisher(without_each(means, rated[0], np.arange(systems), name)[0])
    rng = np.random.default_rng(_DESIGN)
    kept = dialogues // 2
    common = rng.random((_HALVES, 1, dialogues)).argsort(axis=2)[:, 0] < kept
    own = rng.random((_HALVES, systems, dialogues)).argsort(axis=2) < kept
    # The mean of a part differs from that of the whole with variance v (1 / kept - 1 / all), v being that of one.
    scale = 1 / np.sqrt(1 / kept - 1 / dialogues)
    halved = [_fisher(over_means(table, ratings, design, taken * 1.0, [name])[:, 0, 0]) for taken in (common, own)]
    return (
        float(rowwise(means, rated, name)[0]),
        -(systems - 1) * (left_out - left_out.mean()),
        scale * (halved[0] - halved[0].mean()),
        scale * np.sqrt(systems) * (halved[1] - halved[1].mean()),
    )


def _fisher(values: Floats) -> Floats:
    inside = np.abs(values) < 1
    return np.where(inside, np.arctanh(np.where(inside, values, 0.0)), np.nan)
