"""Swap whole systems between two metrics, for rank correlations of means: many swaps by few matrix products.

A swap is a sign for each system. Whether the value of one system lies above that of another is then a product of what
the two signs choose, so concordance (Kendall), and likewise the sum of products of ranks (Spearman), is a constant plus
linear plus quadratic terms in the signs. Turning all signs gives the other metric of the pair: in the difference of the
two only the linear terms are left, if there are no ties. Ties change what is divided by, with the numbers of tied
values chosen, which are linear too.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats.correlation import ALPHA
from comperdial.stats.means import merge_ties

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# So many swaps as far out as the data are enough to say what p is.
ENOUGH = 50
# The swaps of a pair that has fewer grow by this factor, up to the most.
_GROWTH = 4
# Signs held at a time: 32 MB of them.
AT_ONCE = 2**22
# Differences that rounding alone tells apart are equal.
CLOSE = 1e-12


def draw_signs(rng: np.random.Generator, count: int, width: int) -> Floats:
    """Return random signs, shape (count, width), eight from each byte."""
    octets = rng.integers(0, 256, size=(count, (width + 7) // 8), dtype=np.uint8)
    return np.asarray(2.0 * np.unpackbits(octets, axis=1, count=width) - 1.0, dtype=np.float64)


def swap_ranks(
    scores: Floats, ratings: Floats, name: str, resamples: int, seed: int, most: int, *, intervals: bool = False
) -> tuple[Floats, Floats]:
    """Return the two-sided p of each pair of metrics from swaps of whole systems, and the reach of its interval.

    Parameters
    ----------
    scores, ratings
        Shapes (metrics, systems) and (systems,): as :func:`comperdial.stats.means.system_means` gives them, nothing
        missing, metrics on one scale; each varies.
    name
        ``spearman`` or ``kendall``.
    resamples, most
        Swaps of each pair, and of a pair with fewer than ``ENOUGH`` of them as far out as the data. p is (1 + as far
        out) / (1 + swaps). To stop early only at a p that is not small keeps the level (Besag and Clifford 1991): a p
        below some level is one also of the swaps that were drawn when others stopped above it.
    seed
        All pairs share the swaps; p of a pair does not depend on what other pairs there are.
    intervals
        Whether to keep every swap's difference, which intervals are made of.

    Returns
    -------
    tuple
        Both (metrics, metrics) and symmetric. p is 1 on the diagonal. The reach is half the width of the 95 % interval
        of the difference: the largest difference among the swaps whose p would not be below 0.05, so that p < 0.05 just
        where the interval leaves out 0. It takes the difference to vary as much where it is not 0 as where it is. NaN
        where no difference would be significant, as with five systems, or not asked for.
    """
    metrics, width = scores.shape
    human = _Human(ratings, name)
    places = list(combinations(range(metrics), 2))
    pairs = [_Pair(scores[one], scores[other], human) for one, other in places]
    linear = np.array([pair.linear for pair in pairs]).reshape(len(pairs), width)
    counts, swaps = np.zeros(len(pairs)), np.zeros(len(pairs))
    kept: list[list[Floats]] = [[] for _ in pairs]
    rng, open_pairs = np.random.default_rng(seed), np.arange(len(pairs))
    done, target = 0, resamples
    while len(open_pairs):
        while done < target:
            signs = draw_signs(rng, min(max(1, AT_ONCE // width), target - done), width)
            odd = linear[open_pairs] @ signs.T
            for pair, moved in zip(open_pairs, odd, strict=True):
                counts[pair] += pairs[pair].as_far(signs, moved)
                if intervals:
                    kept[pair].append(pairs[pair].differences(signs, moved))
            done += len(signs)
        swaps[open_pairs] = done
        open_pairs = open_pairs[counts[open_pairs] < ENOUGH] if target < most else open_pairs[:0]
        target = max(target, min(_GROWTH * target, most))
    p, reach = np.ones((metrics, metrics)), np.full((metrics, metrics), np.nan)
    for (one, other), found, drawn in zip(places, (1 + counts) / (1 + swaps), kept, strict=True):
        p[one, other] = p[other, one] = found
        if intervals:
            reach[one, other] = reach[other, one] = _reach(np.concatenate(drawn))
    return p, reach


def _reach(drawn: Floats) -> float:
    """Return the largest of the differences drawn that is not significant; NaN where none would be."""
    # A swap that gives no difference counts as extreme, as it does in p.
    ordered = np.sort(np.where(np.isnan(drawn), np.inf, drawn))
    as_far = len(ordered) - np.searchsorted(ordered, ordered - CLOSE)
    p = (1 + as_far) / (1 + len(ordered))
    usual = ordered[p >= ALPHA]
    some = np.isfinite(ordered[p < ALPHA]).any() and len(usual)
    # What differs from it by rounding only is no more significant.
    return float(usual[-1]) + CLOSE if some else float("nan")


class _Human:
    """The side that stays: weights of pairs of systems, and what its share of the denominator is.

    The numerator of a coefficient is half the sum over pairs (s, t) of weights[s, t] x sign(x[s] - x[t]).
    """

    def __init__(self, ratings: Floats, name: str) -> None:
        self.kendall = name == "kendall"
        if self.kendall:
            self.weights = np.sign(ratings[:, None] - ratings)
            self.spread = float(np.sum(self.weights**2) / 2)
        else:
            ranks = np.asarray(stats.rankdata(ratings) - (len(ratings) + 1) / 2)
            self.weights = (ranks[:, None] - ranks) / 2
            self.spread = float(ranks @ ranks)

    def lost(self, tied: Floats) -> Floats:
        """Return what groups of so many tied values, (groups, swaps), take from the other side's spread."""
        return np.asarray((tied * (tied - 1) / 2 if self.kendall else (tied**3 - tied) / 12).sum(axis=0))


class _Pair:
    """Two metrics whose systems are swapped."""

    def __init__(self, a: Floats, b: Floats, human: _Human) -> None:
        self.human, systems = human, len(a)
        # Standardised values lie about 0, and were rounded at 1.
        codes = np.unique(merge_ties(np.concatenate([a, b]), 1.0), return_inverse=True)[1].reshape(2, systems)
        self._codes = codes
        of_a, across, back, of_b = self._above()
        self.linear: Floats = (human.weights * (of_a - of_b + across - back)).sum(axis=1) / 4
        self._whole = systems * (systems - 1) / 2 if human.kendall else (systems**3 - systems) / 12
        # Values that two systems can have at once.
        here = np.stack([codes == code for code in np.unique(codes)])
        held = here[here.any(axis=1).sum(axis=1) > 1].astype(np.float64)
        self._tied_middle: Floats = held.sum(axis=(1, 2))[:, None] / 2
        self._tied_moves: Floats = (held[:, 0] - held[:, 1]) / 2
        self._observed = abs(float(self._exact(np.ones((1, systems)), self.linear.sum(keepdims=True))[0]))

    def _spreads(self, signs: Floats) -> tuple[Floats, Floats]:
        """Return what each metric's numerator is divided by, shapes (swaps,)."""
        moved = self._tied_moves @ signs.T
        first, second = (self._whole - self.human.lost(self._tied_middle + side) for side in (moved, -moved))
        return np.sqrt(self.human.spread * first), np.sqrt(self.human.spread * second)

    def _above(self) -> list[Integers]:
        """Return the signs of (a - a', a - b', b - a', b - b') of all pairs of systems."""
        return [np.sign(one[:, None] - other) for one in self._codes for other in self._codes]

    def _even(self, signs: Floats) -> Floats:
        # Not kept: of a thousand systems it takes 8 MB a pair.
        of_a, across, back, of_b = self._above()
        constant = float((self.human.weights * (of_a + of_b + across + back)).sum()) / 8
        quadratic = self.human.weights * (of_a + of_b - across - back) / 8
        return np.asarray(constant + np.einsum("rs,rs->r", signs @ quadratic, signs))

    def _exact(self, signs: Floats, odd: Floats) -> Floats:
        one, other = self._spreads(signs)
        even = self._even(signs)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((even + odd) / one - (even - odd) / other)

    def differences(self, signs: Floats, odd: Floats) -> Floats:
        """Return how far from 0 the difference is after each swap, given signs and their linear terms."""
        if not len(self._tied_moves):
            return np.asarray(np.abs(2 * odd / np.sqrt(self.human.spread * self._whole)))
        return np.abs(self._exact(signs, odd))

    def as_far(self, signs: Floats, odd: Floats) -> int:
        """Count the swaps whose difference is as far from 0 as the data's, given signs and their linear terms."""
        if not len(self._tied_moves):
            return int(np.sum(~(self.differences(signs, odd) < self._observed - CLOSE)))
        one, other = self._spreads(signs)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = np.abs(odd / one + odd / other)
            # Quadratic terms are dear. A coefficient is at most 1, which bounds what they add.
            slack = (one + other) * np.abs(one - other) / (2 * one * other)
        unsure = np.flatnonzero((slack > 0) & (np.abs(drawn - self._observed) <= slack + CLOSE))
        if len(unsure):
            drawn[unsure] = np.abs(self._exact(signs[unsure], odd[unsure]))
        # A swap after which a side does not vary gives no difference; it counts as extreme, the cautious side.
        return int(np.sum(~(drawn < self._observed - CLOSE)))
