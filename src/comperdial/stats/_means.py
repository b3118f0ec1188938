"""Coefficients over the means of systems, of resamples given by weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from comperdial.stats._weights import Weights
from comperdial.stats.design import Design
from comperdial.stats.means import merge_ties

Floats = npt.NDArray[np.float64]
# Pairs of systems x resamples, or cells x resamples, at a time.
_PAIRS = 2**20
# What is left of a variance that is zero but for rounding, as a share of the largest square.
_ROUNDING = 1e-22


def average_values(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: Sequence[str],
    schemes: Sequence[Weights],
) -> list[Floats]:
    """Return the coefficients over systems of resamples: for each scheme, shape (resamples, metrics, names)."""

    def of_metric(metric: int) -> list[Floats]:
        kept = ~np.isnan(scores[metric])
        sums = _Sums(scores[metric, kept], ratings[kept], design.systems[kept], design.dialogues[kept], _shape(design))
        return [_in_steps(sums, scheme, names) for scheme in schemes]

    found = [of_metric(metric) for metric in range(len(scores))]
    return [
        np.stack([of[k] for of in found], axis=1) if found else np.empty((scheme.count, 0, len(names)))
        for k, scheme in enumerate(schemes)
    ]


def _shape(design: Design) -> tuple[int, int]:
    return int(design.systems.max(initial=-1)) + 1, int(design.dialogues.max(initial=-1)) + 1


class _Sums:
    """Sums over the units of each system in each dialogue: shape (systems, dialogues)."""

    def __init__(
        self,
        x: Floats,
        y: Floats,
        systems: npt.NDArray[np.intp],
        dialogues: npt.NDArray[np.intp],
        shape: tuple[int, int],
    ) -> None:
        codes = systems * shape[1] + dialogues

        def summed(part: Floats) -> Floats:
            return np.asarray(np.bincount(codes, part, shape[0] * shape[1]), dtype=np.float64).reshape(shape)

        self.n = summed(np.ones(len(x)))
        self.x, self.y = summed(x), summed(y)
        # What means were rounded at, which of numbers of one sign is the mean itself.
        self.sizes = [summed(np.abs(side)) if side.min(initial=0.0) < 0 else None for side in (x, y)]

    def means(self, weights: Weights) -> tuple[Floats, Floats, Floats]:
        """Return the means of scores and of ratings and how often a system has them.

        Shape (resamples, systems); means have one row where systems alone were drawn. Those that differ by rounding
        only are equal.
        """
        dialogues = np.ones((1, self.n.shape[1])) if weights.dialogues is None else weights.dialogues
        cells = None if weights.cells is None else weights.cells * dialogues[:, np.newaxis]

        def drawn(part: Floats) -> Floats:
            if cells is None:
                return np.asarray(np.einsum("sd,bd->bs", part, dialogues))
            return np.asarray(np.einsum("sd,bsd->bs", part, cells))

        n = drawn(self.n)
        times = np.ones((1, self.n.shape[0])) if weights.systems is None else weights.systems
        times = np.where(n > 0, times, 0.0)
        n = np.where(n > 0, n, 1.0)
        x, y = (
            merge_ties(drawn(part) / n, 0.0 if size is None else drawn(size) / n)
            for part, size in zip((self.x, self.y), self.sizes, strict=True)
        )
        return x, y, times


def _in_steps(sums: _Sums, weights: Weights, names: Sequence[str]) -> Floats:
    systems = max(1, len(sums.n))
    step = max(1, _PAIRS // (systems * max(sums.n.shape)))
    parts = [_values(*sums.means(weights.rows(a, a + step)), names) for a in range(0, weights.count, step)]
    return np.concatenate(parts)


def _values(a: Floats, b: Floats, times: Floats, names: Sequence[str]) -> Floats:
    found = np.full((len(times), len(names)), np.nan)
    if "pearson" in names:
        found[:, list(names).index("pearson")] = _pearson(a, b, times)
    if "spearman" in names or "kendall" in names:
        (rank_a, tied_a), (rank_b, tied_b) = (_ranked(np.broadcast_to(means, times.shape), times) for means in (a, b))
        if "spearman" in names:
            found[:, list(names).index("spearman")] = _pearson(rank_a, rank_b, times)
        if "kendall" in names:
            total = times.sum(axis=1) ** 2
            untied = np.sqrt(total - (times * tied_a).sum(axis=1)) * np.sqrt(total - (times * tied_b).sum(axis=1))
            found[:, list(names).index("kendall")] = np.clip(_divided(_concordance(a, b, times), untied), -1, 1)
    return found


def _ranked(values: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Return the middle ranks and the weights of the groups of tied values: shapes (resamples, systems)."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered, weights = np.take_along_axis(values, order, axis=1), np.take_along_axis(times, order, axis=1)
    total = np.cumsum(weights, axis=1)
    new = np.ones(values.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(values.shape, dtype=bool)
    last[:, :-1] = new[:, 1:]
    before = np.maximum.accumulate(np.where(new, total - weights, -1.0), axis=1)
    after = np.minimum.accumulate(np.where(last, total, np.inf)[:, ::-1], axis=1)[:, ::-1]
    ranks, tied = np.empty(values.shape), np.empty(values.shape)
    np.put_along_axis(ranks, order, (before + after + 1) / 2, axis=1)
    np.put_along_axis(tied, order, after - before, axis=1)
    return ranks, tied


def _concordance(a: Floats, b: Floats, times: Floats) -> Floats:
    """Return concordant less discordant pairs, every pair counted twice: shape (resamples,)."""
    signs = _signs(a)
    signs *= _signs(b)
    return np.asarray(np.einsum("bi,bi->b", times, np.einsum("bij,bj->bi", signs, times)))


def _signs(values: Floats) -> npt.NDArray[np.int8]:
    one, other = values[:, :, np.newaxis], values[:, np.newaxis, :]
    return np.asarray((one > other).view(np.int8) - (one < other).view(np.int8))


def _pearson(x: Floats, y: Floats, times: Floats) -> Floats:
    total = times.sum(axis=1)
    a = x - _divided((times * x).sum(axis=1), total)[:, np.newaxis]
    b = y - _divided((times * y).sum(axis=1), total)[:, np.newaxis]
    spread_a, spread_b = (times * a * a).sum(axis=1), (times * b * b).sum(axis=1)
    # A mean of equal numbers is off by rounding.
    for spread, values in ((spread_a, x), (spread_b, y)):
        spread[~(spread > _ROUNDING * total * (values**2).max(axis=1, initial=0.0))] = 0.0
    value = _divided((times * a * b).sum(axis=1), np.sqrt(spread_a) * np.sqrt(spread_b))
    return np.asarray(np.clip(value, -1, 1))


def _divided(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.full(np.shape(b), np.nan), where=b > 0)
