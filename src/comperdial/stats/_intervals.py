"""Ways to an interval from resamples of systems and dialogues; benchmarks/coverage.py says what each of them covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from comperdial.stats._few_systems import MOST, posterior_interval
from comperdial.stats._weighted import weighted
from comperdial.stats._weights import Weights
from comperdial.stats.design import Design

Floats = npt.NDArray[np.float64]
# What each method draws.
_NEEDS: dict[str, tuple[str, ...]] = {
    "percentile-dialogues": ("dialogues",),
    "percentile-systems": ("systems",),
    "percentile-both": ("both",),
    "basic-both": ("both",),
    "bca-both": ("both", "without-system", "without-dialogue"),
    "fisher-pigeonhole": ("systems", "dialogues", "both"),
    "fisher-sum": ("systems", "dialogues"),
    "fisher-two-way": ("systems", "dialogues", "within"),
    "fisher-design": ("systems", "dialogues", "within"),
    "fisher-jackknife": ("without-system", "without-dialogue"),
}
# All but the default of intervals() are there to be compared.
METHODS = tuple(_NEEDS)
# Cells x resamples held at a time: 64 MB of them.
_CELLS = 2**25
# Fewer systems give no interval over their means.
_SYSTEMS = 4
# An interval needs this share of its resamples to have a coefficient.
_SHARE = 0.5
# From here on a coefficient counts as 1.
_PERFECT = 1 - 1e-9


@dataclass(frozen=True)
class Drawn:
    """Values of the sample (metrics, names) and, by kind of resample, of the resamples (resamples, metrics, names).

    ``systems`` and ``dialogues`` say how many of each have a score of a metric: shape (metrics,).
    """

    names: tuple[str, ...]
    value: Floats
    resampled: dict[str, Floats]
    systems: Floats
    dialogues: Floats
    average: bool


def draw(
    scores: Floats,
    ratings: Floats,
    design: Design,
    names: Sequence[str],
    methods: str | Iterable[str],
    resamples: int,
    rng: np.random.Generator,
) -> Drawn:
    """Draw what some methods need."""
    chosen = {methods} if isinstance(methods, str) else set(methods)
    if not design.average and "fisher-design" in chosen:
        chosen = chosen - {"fisher-design"} | {"fisher-sum"}
    count = [int(codes.max(initial=-1)) + 1 for codes in (design.systems, design.dialogues)]
    systems, dialogues = (
        rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64) if n else np.ones((resamples, 0))
        for n in count
    )
    schemes: dict[str, Callable[[], Weights]] = {
        "systems": lambda: Weights(systems, None),
        "dialogues": lambda: Weights(None, dialogues),
        "both": lambda: Weights(systems, dialogues),
        "without-system": lambda: Weights(1 - np.eye(count[0]), None),
        "without-dialogue": lambda: Weights(None, 1 - np.eye(count[1])),
    }
    kinds = [kind for kind in schemes if any(kind in _NEEDS[method] for method in chosen)]
    value, *found = weighted(scores, ratings, design, names, [Weights(), *(schemes[kind]() for kind in kinds)])
    resampled = dict(zip(kinds, found, strict=True))
    if any("within" in _NEEDS[method] for method in chosen):
        step = max(1, _CELLS // max(1, count[0] * count[1]))
        blocks = (_within(design, count, min(step, resamples - done), rng) for done in range(0, resamples, step))
        resampled["within"] = np.concatenate(
            [weighted(scores, ratings, design, names, [Weights(cells=block)])[0] for block in blocks]
        )
    kept = ~np.isnan(scores)
    present = [
        np.array([len(np.unique(codes[row])) for row in kept], dtype=np.float64)
        for codes in (design.systems, design.dialogues)
    ]
    return Drawn(tuple(names), value[0], resampled, present[0], present[1], design.average)


def _within(design: Design, count: list[int], resamples: int, rng: np.random.Generator) -> npt.NDArray[np.uint16]:
    """Draw, for each system by itself, from the dialogues that it has: shape (resamples, systems, dialogues)."""
    has = np.zeros(count, dtype=bool)
    has[design.systems, design.dialogues] = True
    found = np.zeros((resamples, *count), dtype=np.uint16)
    for system, dialogues in enumerate(has):
        n = int(dialogues.sum())
        found[:, system, dialogues] = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    return found


def bounds(drawn: Drawn, method: str, confidence: float) -> tuple[Floats, Floats]:
    """Return the low and the high ends, each of shape (metrics, names)."""
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    kind, _, of = method.partition("-")
    with np.errstate(all="ignore"):
        if kind == "percentile":
            low, high = _quantiles(drawn.resampled[of], np.broadcast_to(tails, (*drawn.value.shape, 2)))
        elif kind == "basic":
            high, low = _quantiles(drawn.resampled[of], np.broadcast_to(tails, (*drawn.value.shape, 2)))
            low, high = 2 * drawn.value - low, 2 * drawn.value - high
        elif kind == "bca":
            low, high = _quantiles(drawn.resampled[of], _corrected(drawn, tails))
        else:
            low, high = _fisher(drawn, method, tails[1])
    if drawn.average and method == "fisher-design":
        _few(drawn, confidence, low, high)
    none = np.isnan(drawn.value) | np.isnan(low) | np.isnan(high)
    if drawn.average:
        none |= (drawn.systems < _SYSTEMS)[:, np.newaxis]
    low, high = (np.where(none, np.nan, np.clip(end, -1, 1)) for end in (low, high))
    return low, high


def _few(drawn: Drawn, confidence: float, low: Floats, high: Floats) -> None:
    """Put the ends for few systems in the place of those that resamples gave."""
    for row, systems in enumerate(drawn.systems.astype(int).tolist()):
        if _SYSTEMS <= systems <= MOST:
            for column, name in enumerate(drawn.names):
                value = float(drawn.value[row, column])
                ends = posterior_interval(value, systems, name, confidence) if np.isfinite(value) else (np.nan, np.nan)
                low[row, column], high[row, column] = ends


def _fisher(drawn: Drawn, method: str, tail: float) -> tuple[Floats, Floats]:
    """Return value -+ a quantile of Student's t times a standard error, on the scale of Fisher's z."""
    systems, dialogues = drawn.systems[:, np.newaxis], drawn.dialogues[:, np.newaxis]
    found = drawn.resampled
    if method == "fisher-jackknife":
        of_systems = _spread(found["without-system"]) * (systems - 1) ** 2 / systems
        of_dialogues = _spread(found["without-dialogue"]) * (dialogues - 1) ** 2 / dialogues
    else:
        # A resample of few varies too little, as the variance about a mean of n divided by n and not by n - 1 does.
        of_systems = _spread(found["systems"]) * systems / (systems - 1)
        of_dialogues = _spread(found["dialogues"]) * dialogues / (dialogues - 1)
    of_systems, of_dialogues = np.where(systems > 1, of_systems, 0.0), np.where(dialogues > 1, of_dialogues, 0.0)
    total = of_systems + of_dialogues
    if method == "fisher-pigeonhole":
        total = np.maximum(total, _spread(found["both"]))
    elif method == "fisher-two-way" or (method == "fisher-design" and drawn.average):
        # What a system alone does in a dialogue varies in both; it is counted once.
        of_cells = np.where(dialogues > 1, _spread(found["within"]) * dialogues / (dialogues - 1), 0.0)
        total = np.maximum(total - of_cells, np.maximum(of_systems, of_dialogues))
    shares = of_systems**2 / np.maximum(systems - 1, 1) + of_dialogues**2 / np.maximum(dialogues - 1, 1)
    freedom = np.maximum(np.minimum(total, of_systems + of_dialogues) ** 2 / shares, 1.0)
    # Resamples of a perfect coefficient are perfect, and of one unit all the same: that is no precision.
    total = np.where((total > 0) & (np.abs(drawn.value) < _PERFECT), total, np.nan)
    centre, error = np.arctanh(drawn.value), np.sqrt(total)
    reach = stats.t.ppf(tail, freedom) * error
    return np.tanh(centre - reach), np.tanh(centre + reach)


def _spread(values: Floats) -> Floats:
    """Return the variance of resamples of a value on the scale of Fisher's z: shape (metrics, names)."""
    # A resample that is perfect has no z: it counts as the highest of those that are not.
    size = np.abs(values)
    highest = np.where(size < _PERFECT, size, 0.0).max(axis=0)
    z = np.arctanh(np.where(size < _PERFECT, values, np.sign(values) * highest))
    there = ~np.isnan(z)
    n = there.sum(axis=0)
    mean = np.where(there, z, 0.0).sum(axis=0) / n
    found = (np.where(there, z - mean, 0.0) ** 2).sum(axis=0) / (n - 1)
    return np.where(n >= _SHARE * len(values), found, np.nan)


def _quantiles(values: Floats, tails: Floats) -> tuple[Floats, Floats]:
    """Return two quantiles of each column; tails has shape (metrics, names, 2)."""
    found = np.full(tails.shape, np.nan)
    for at in np.ndindex(tails.shape[:2]):
        column = values[(slice(None), *at)]
        column = column[~np.isnan(column)]
        if len(column) and len(column) >= _SHARE * len(values) and not np.isnan(tails[at]).any():
            found[at] = np.quantile(column, tails[at])
    return found[..., 0], found[..., 1]


def _corrected(drawn: Drawn, tails: tuple[float, float]) -> Floats:
    """Return the tails of Efron's bias-corrected and accelerated percentiles, with the influence of both sides."""
    less, both = drawn.value - 1e-12, drawn.resampled["both"]
    below = ((both < less).mean(axis=0) + (both <= drawn.value + 1e-12).mean(axis=0)) / 2
    bias = stats.norm.ppf(below)
    squares, cubes = np.zeros(bias.shape), np.zeros(bias.shape)
    for kind in ("without-system", "without-dialogue"):
        values = drawn.resampled[kind]
        there = ~np.isnan(values)
        mean = np.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
        influence = (mean - values) * (len(values) - 1) / max(len(values), 1)
        squares += np.nansum(influence**2, axis=0)
        cubes += np.nansum(influence**3, axis=0)
    acceleration = cubes / (6 * squares**1.5)
    ends = [bias + stats.norm.ppf(tail) for tail in tails]
    return np.stack([stats.norm.cdf(bias + end / (1 - acceleration * end)) for end in ends], axis=-1)
