"""Supports docs/validation.md, "Intervals", "Few systems", "Fixed systems": what 95 % intervals cover, on SIMULATED benchmarks.

python benchmarks/coverage.py                 99 systems, each level: a quarter of an hour on two cores
python benchmarks/coverage.py few             over the means of 3 to 10 systems: minutes
python benchmarks/coverage.py given           two or three fixed systems, over contexts: ten minutes
python benchmarks/coverage.py differences     differences between metrics: ten minutes

The truth is the mean over large benchmarks with as many dialogues and the same raters; for fixed systems, their own value
over 20,000 further contexts. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
import simulated
from simulated import Floats, Metric, demo, draw, each, levels, table, units

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import coefficients
from comperdial.stats.comparison import compare
from comperdial.stats.intervals import intervals

ZOO = {
    "good": Metric(),
    "mediocre": Metric(truth=0.5, system=0.5, dialogue=0.4, cell=0.4),
    "bad": Metric(truth=0.1, system=0.5, dialogue=0.4, cell=0.4),
    "skewed": Metric(truth=0.5, skewed=True),
}
LEVELS = ["turn", "dialogue", "system", "system, dialogue ratings"]
PAIRS = list(combinations(range(len(ZOO)), 2))
COMPARED = (4, 6, 10, 99)
# Named by their approximate correlation over the means of many systems in the first shape.
FEW = {
    "0": Metric(truth=0, system=0.3),
    ".3": Metric(truth=0.3, system=0.55),
    ".6": Metric(truth=0.6, system=0.5),
    ".9": Metric(),
    ".6, skewed": Metric(truth=0.6, system=0.45, skewed=True),
}
# Dialogues x turns: how much noise is left in the means.
SHAPES, SIZES, POPULATION = ((15, 7), (60, 1), (5, 1)), range(3, 11), 99
# The last two have no biases for whole systems, so they are equally good for any systems.
GIVEN = FEW | dict.fromkeys(("equal", "equal too"), Metric(truth=0.6, system=0.0))
FIXED, CONTEXTS, FURTHER = (2, 3), (30, 100, 300), 20_000


def truth_many(index: int, seed: int, systems: int) -> Floats:
    """Return the coefficients of one large benchmark: shape (levels, metrics, coefficients)."""
    large = draw(np.random.default_rng([seed, 1, index]), [*ZOO.values()], *demo(), systems=systems)
    return np.stack([coefficients(*sample, NAMES) for sample in levels(large).values()])


def many(index: int, seed: int, resamples: int) -> Floats:
    """Return the ends of one benchmark's intervals: shape (levels, metrics, coefficients, 2)."""
    samples = levels(draw(np.random.default_rng([seed, 2, index]), [*ZOO.values()], *demo())).values()
    made = [intervals(*sample, NAMES, resamples=resamples, seed=index) for sample in samples]
    return np.stack([np.stack([one.low, one.high], axis=-1) for one in made])


def truth_few(index: int, seed: int, systems: int) -> Floats:
    """Return these coefficients over system means: shape (1, shapes x metrics, coefficients)."""
    rng = np.random.default_rng([seed, 1, index])
    large = [draw(rng, [*FEW.values()], *demo(), systems=systems, dialogues=d, turns=t) for d, t in SHAPES]
    return np.concatenate([coefficients(*units(one.scores, one.turn, average=True), NAMES) for one in large])[None]


def few(index: int, seed: int, resamples: int) -> Floats:
    """Return the ends of intervals: shape (sizes, shapes x metrics, coefficients, 2); few systems are not resampled."""
    rng = np.random.default_rng([seed, 2, index])
    result = np.full((len(SIZES), len(SHAPES), len(FEW), len(NAMES), 2), np.nan)
    for shape, (dialogues, turns) in enumerate(SHAPES):
        whole = draw(rng, [*FEW.values()], *demo(), systems=POPULATION, dialogues=dialogues, turns=turns)
        for size, count in enumerate(SIZES):
            chosen = np.s_[sum(SIZES[:size]) : sum(SIZES[:size]) + count]
            sample = units(whole.scores[:, chosen], whole.turn[chosen], average=True)
            made = intervals(*sample, NAMES, resamples=resamples, seed=index)
            result[size, shape] = np.stack([made.low, made.high], axis=-1)
    return result.reshape(len(SIZES), -1, len(NAMES), 2)


def given(index: int, seed: int, resamples: int) -> Floats:
    """Return the ends minus the truth: shape (systems x contexts x 3, metrics, Pearson and Spearman, 2).

    The rows are intervals of values, of differences from the next metric, and of the difference of the equal metrics from 0.
    """
    rng, names, rows = np.random.default_rng([seed, 9, index]), NAMES[:2], []
    for systems in FIXED:
        whole = draw(rng, [*GIVEN.values()], *demo(), systems=systems, dialogues=sum(CONTEXTS) + FURTHER, turns=1)
        rest = np.s_[:, sum(CONTEXTS) :]
        true = coefficients(*units(whole.scores[:, *rest], whole.turn[rest]), names)[..., None]
        for at, contexts in enumerate(CONTEXTS):
            part = np.s_[:, sum(CONTEXTS[:at]) : sum(CONTEXTS[:at]) + contexts]
            sample = units(whole.scores[:, *part], whole.turn[part])
            made = intervals(*sample, names, resamples=resamples, seed=index)
            apart, equal = np.full((2, len(GIVEN), len(names), 2), np.nan)
            for column, name in enumerate(names):
                ends = compare(*sample, name, resamples=0, seed=index).ends
                apart[1:, column] = np.stack([np.diag(end, 1) for end in ends], axis=-1)
            equal[-1] = apart[-1]
            apart[1:] += np.diff(true, axis=0)
            rows += [np.stack([made.low, made.high], axis=-1) - true, apart, equal]
    return np.stack(rows)


def truth_differences(index: int, seed: int, systems: int) -> Floats:
    """Return the differences of one large benchmark: shape (sizes x levels, pairs, coefficients)."""
    one, other = np.array(PAIRS).T
    values = truth_many(index, seed, systems)
    return np.tile(values[:, one] - values[:, other], (len(COMPARED), 1, 1))


def differences(index: int, seed: int, resamples: int) -> Floats:
    """Return the ends of the intervals of differences: shape (sizes x levels, pairs, coefficients, 2)."""
    result = np.full((len(COMPARED), len(LEVELS), len(PAIRS), len(NAMES), 2), np.nan)
    for size, systems in enumerate(COMPARED):
        samples = levels(
            draw(np.random.default_rng([seed, 3, systems, index]), [*ZOO.values()], *demo(), systems=systems)
        )
        for level, (label, sample) in enumerate(samples.items()):
            # Kendall over units is slow; ranks of systems' means have no interval.
            for column, name in enumerate(NAMES[:1] if label.startswith("system") else NAMES[:2]):
                ends = compare(*sample, name, resamples=resamples, seed=index).ends
                result[size, level, :, column] = [[end[pair] for end in ends] for pair in PAIRS]
    return result.reshape(-1, *result.shape[2:])


class Case(NamedTuple):
    shapes: list[str]
    kinds: list[str]
    """There is a row for each kind of each shape."""
    ends: Callable[..., Floats]
    truth: Callable[..., Floats] | None
    benchmarks: int
    resamples: int
    truths: int
    seed: int


OF_GIVEN = ["values", "differences", "equal metrics, of 0 (rejections: 100 less this)"]
CASES = {
    "many": Case(["99 systems"], LEVELS, many, truth_many, 1000, 200, 300, 6),
    "few": Case([f"{size} systems" for size in SIZES], ["system"], few, truth_few, 1000, 2, 100, 8),
    "given": Case([f"{size} systems, {n} contexts" for size in FIXED for n in CONTEXTS], OF_GIVEN, given, None, 800, 300, 0, 16),
    "differences": Case([f"{size} systems" for size in COMPARED], LEVELS, differences, truth_differences, 150, 299, 48, 6),
}  # fmt: skip


def cell(ends: Floats) -> str:
    """Write what the intervals (..., metrics, 2), minus the truth, cover: see ``main``."""
    ends = ends.reshape(-1, *ends.shape[-2:])
    width = ends[..., 1] - ends[..., 0]
    there = ~np.isnan(width)
    if not there.any():
        return "none"
    covered = np.where(there, (ends[..., 0] <= 0) & (ends[..., 1] >= 0), np.nan) * 100
    narrow = covered[width <= np.nanquantile(width, 0.2)].mean()
    tested = there.any(axis=0)
    by_metric, share = np.nanmean(covered[:, tested], axis=0), there[:, tested].mean()
    text = f"{np.nanmean(covered):.1f} ({by_metric.min():.1f} to {by_metric.max():.1f}) / {narrow:.1f}, "
    return text + f"{np.nanmedian(width):.2f}" + (f" ({share:.0%} have one)" if share < 0.995 else "")


def main() -> None:
    options = simulated.options(
        __doc__, [*CASES], benchmarks=None, resamples=None, truths=None, seed=None, systems=1000
    )
    case = CASES[options.case]
    case = case._replace(**{name: value for name, value in vars(options).items() if name in case._fields and value})
    true = np.zeros(1)
    if case.truth:
        known = np.stack(each(case.truth, case.truths, options.processes, seed=case.seed, systems=options.systems))
        true = known.mean(axis=0)[..., None]
        low, high, error = (
            true[:, :, 0].min(),
            true[:, :, 0].max(),
            known.std(axis=0, ddof=1).max() / np.sqrt(case.truths),
        )
        print(
            f"Truth: mean over {case.truths} benchmarks of {options.systems} systems; largest standard error {error:.4f};"
        )
        print(f"Pearson's is {low:.2f} to {high:.2f}.")
    ends = each(case.ends, case.benchmarks, options.processes, seed=case.seed, resamples=case.resamples) - true
    ends = ends.reshape(len(ends), len(case.shapes), len(case.kinds), *ends.shape[2:])
    print(
        f"{case.benchmarks} SIMULATED benchmarks, {case.resamples} resamples, seed {case.seed}. A cell: coverage in % (least"
    )
    print("to most of a metric or pair) / coverage of the narrowest fifth, median width.\n")
    shapes = [*enumerate(case.shapes), (slice(None), "all")][: None if case.shapes[1:] else 1]
    names = NAMES[: ends.shape[-2]]
    rows = [
        [shape, kind, *(cell(ends[:, at, row, ..., column, :]) for column in range(len(names)))]
        for at, shape in shapes
        for row, kind in enumerate(case.kinds)
    ]
    table(["shape", "of", *names], rows)


if __name__ == "__main__":
    main()
