"""How a correlation over means of systems varies with the systems, the dialogues and the cells that were sampled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from comperdial.stats.correlation import Coefficient
from comperdial.stats.grouped import rowwise
from comperdial.stats.means import merge_ties

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# Half-samples are a fixed design, like an orthogonal array: the same for all metrics, whatever else is drawn.
_DESIGN, _HALVES = 20, 400


def spread_of_means(
    scores: Floats, ratings: Floats, systems: Integers, dialogues: Integers, name: Coefficient
) -> tuple[float, Floats, Floats, Floats]:
    """Return a coefficient over means of systems, and deviations of it on Fisher's scale.

    Systems are left out one by one (jackknife). Leaving out one dialogue of a system hardly moves its mean, and a rank
    then stays or jumps; so dialogues are left out by halves, which moves means as much as sampling does: the same half
    for all systems, and another half for each.

    Parameters
    ----------
    scores, ratings
        Shape (n,), nothing missing.
    systems, dialogues
        Shape (n,), codes from 0 on, each in use; two of each or more.
    name
        ``pearson``, ``spearman`` or ``kendall``.

    Returns
    -------
    tuple
        The value, and deviations whose variance estimates what one system, one dialogue and one cell (a system in a
        dialogue) bring; the first two hold the share of the cells too, over the number of the other. Shapes (systems,),
        (halves,) and (halves,).
    """
    shape = (int(systems.max()) + 1, int(dialogues.max()) + 1)
    cell = np.ravel_multi_index((systems, dialogues), shape)
    counts, *sums = (
        np.bincount(cell, side, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
        for side in (np.ones(len(scores)), scores, ratings, np.abs(scores), np.abs(ratings))
    )
    x, y, *sizes = (side.sum(axis=1) / counts.sum(axis=1) for side in sums)

    def of_means(x: Floats, y: Floats) -> Floats:
        return rowwise(merge_ties(x, sizes[0]), merge_ties(y, sizes[1]), name)

    value = float(of_means(x[None], y[None])[0])
    alone = np.eye(shape[0], dtype=np.bool_)
    left_out = _fisher(of_means(np.where(alone, np.nan, x), np.where(alone, np.nan, y)))

    rng = np.random.default_rng(_DESIGN)
    kept = shape[1] // 2
    common = rng.random((_HALVES, 1, shape[1])).argsort(axis=2) < kept
    own = rng.random((_HALVES, *shape)).argsort(axis=2) < kept
    # The mean of a part differs from that of the whole with variance v (1 / kept - 1 / all), v being that of one.
    scale = 1 / np.sqrt(1 / kept - 1 / shape[1])
    halved = [_fisher(of_means(*_halved(taken, counts, sums[:2]))) for taken in (common, own)]
    return (
        value,
        -(shape[0] - 1) * (left_out - left_out.mean()),
        scale * (halved[0] - halved[0].mean()),
        scale * np.sqrt(shape[0]) * (halved[1] - halved[1].mean()),
    )


def _halved(taken: npt.NDArray[np.bool_], counts: Floats, sums: list[Floats]) -> tuple[Floats, Floats]:
    """Return the means of both sides over the cells taken, (halves, systems or 1, dialogues): (halves, systems)."""
    number = (taken * counts).sum(axis=2)
    x, y = (
        np.divide((taken * side).sum(axis=2), number, out=np.full(number.shape, np.nan), where=number > 0)
        for side in sums
    )
    return x, y


def _fisher(values: Floats) -> Floats:
    inside = np.abs(values) < 1
    return np.where(inside, np.arctanh(np.where(inside, values, 0.0)), np.nan)
