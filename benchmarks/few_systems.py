"""What 95 % intervals over the means of 3 to 10 systems cover, over simulated benchmarks whose truth is known.

Like coverage.py, of which it has the model (simulated.py) and what is to be covered, for small numbers of systems: also
counted is what the narrowest fifth of the intervals covers, since a narrow interval is what a reader believes. Systems
are drawn from 99, so that what the model does over all responses to a context is as in the large benchmark. Prints
Markdown; everything is SIMULATED. `OMP_NUM_THREADS=1 python benchmarks/few_systems.py` takes some minutes.
"""

from __future__ import annotations

import time

import numpy as np
import simulated
from scipy import stats
from simulated import Benchmark, Floats, Metric, demo, draw, table, workers

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

# Called by what they correlate to, about, over the means of many systems in the first of the shapes.
METRICS = {
    "0": Metric(truth=0, system=0.3),
    ".3": Metric(truth=0.3, system=0.55),
    ".6": Metric(truth=0.6, system=0.5),
    ".9": Metric(),
    ".6, skewed": Metric(truth=0.6, system=0.45, skewed=True),
}
# Dialogues x turns: how much noise is left in the means.
SHAPES = ((15, 7), (60, 1), (5, 1))
SIZES = range(3, 11)
POPULATION = 99


def correlated(benchmark: Benchmark) -> Floats:
    """Return the coefficients over the means of all systems: shape (metrics, coefficients)."""
    scores, ratings = benchmark.scores.mean(axis=(2, 3)), benchmark.turn.mean(axis=(1, 2))
    ways = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
    return np.array([[way(row, ratings).statistic for way in ways] for row in scores])


def truth(index: int, seed: int, systems: int) -> Floats:
    """Return what one large benchmark of each shape has: shape (shapes, metrics, coefficients)."""
    rng = np.random.default_rng([seed, 1, index])
    return np.stack(
        [
            correlated(draw(rng, list(METRICS.values()), *demo(), systems=systems, dialogues=dialogues, turns=turns))
            for dialogues, turns in SHAPES
        ]
    )


def cover(index: int, seed: int) -> Floats:
    """Return the ends of all intervals: shape (shapes, sizes, metrics, coefficients, 2)."""
    rng = np.random.default_rng([seed, 2, index])
    outcomes = np.full((len(SHAPES), len(SIZES), len(METRICS), len(NAMES), 2), np.nan)
    for shape, (dialogues, turns) in enumerate(SHAPES):
        whole = draw(rng, list(METRICS.values()), *demo(), systems=POPULATION, dialogues=dialogues, turns=turns)
        start = 0
        for size, count in enumerate(SIZES):
            chosen, start = slice(start, start + count), start + count
            x, y = whole.scores[:, chosen].reshape(len(METRICS), -1), whole.turn[chosen].ravel()
            systems, items = (side.ravel() for side in np.indices((count, dialogues, turns))[:2])
            # No resamples are drawn where systems are few.
            made = intervals(x, y, Design(systems, items, average=True), NAMES, resamples=2, seed=index)
            outcomes[shape, size] = np.stack([made.low, made.high], axis=-1)
    return outcomes


def main() -> None:
    options = simulated.options(__doc__, {}, benchmarks=1000, truths=100, systems=1000, seed=8)
    begun = time.perf_counter()
    with workers(options.processes) as each:
        known = np.mean(list(each(truth, options.truths, seed=options.seed, systems=options.systems)), axis=0)
        ends = np.stack(list(each(cover, options.benchmarks, seed=options.seed)))
    print(
        f"{options.benchmarks} SIMULATED benchmarks of each of {len(SHAPES)} shapes "
        f"({', '.join(f'{d} dialogues x {t} turns' for d, t in SHAPES)}), {len(METRICS)} metrics "
        f"({'; '.join(METRICS)}), seed {options.seed}, {time.perf_counter() - begun:.0f} s. A cell: coverage of the 95 % "
        "intervals given, in % / that of the narrowest fifth of them, median width; in brackets the share given, where "
        "it is not all.\n"
    )
    report(known, ends)


def report(known: Floats, ends: Floats) -> None:
    """Print the tables: by size; by shape; by metric."""
    covered = (ends[..., 0] <= known[:, None]) & (known[:, None] <= ends[..., 1])
    width = ends[..., 1] - ends[..., 0]
    coefficients = range(len(NAMES))
    by_size = [
        [str(count), *(cell(covered[:, :, s, :, n], width[:, :, s, :, n]) for n in coefficients)]
        for s, count in enumerate(SIZES)
    ]
    table(["systems", *NAMES], by_size)
    print("By shape.\n")
    by_shape = [
        [f"{d} x {t}", str(count), *(cell(covered[:, k, s, :, n], width[:, k, s, :, n]) for n in coefficients)]
        for k, (d, t) in enumerate(SHAPES)
        for s, count in enumerate(SIZES)
        if count > 3
    ]
    table(["dialogues x turns", "systems", *NAMES], by_shape)
    print("By metric, all shapes and 4 to 10 systems; in brackets the truth in each shape.\n")
    few = [s for s, count in enumerate(SIZES) if count > 3]
    rows = []
    for m, metric in enumerate(METRICS):
        truths = [f" ({', '.join(f'{value:.2f}' for value in known[:, m, n])})" for n in coefficients]
        shares = [cell(covered[:, :, few, m, n], width[:, :, few, m, n]) for n in coefficients]
        rows.append([metric, *map("".join, zip(shares, truths, strict=True))])
    table(["metric", *NAMES], rows)


def cell(covered: Floats, width: Floats) -> str:
    given = ~np.isnan(width)
    if not given.any():
        return "none"
    hit, wide = covered[given], width[given]
    narrow = wide <= np.quantile(wide, 0.2)
    share = given.mean()
    text = f"{100 * hit.mean():.1f} / {100 * hit[narrow].mean():.1f}, {np.median(wide):.2f}"
    return text + (f" ({100 * share:.0f} %)" if share < 0.995 else "")


if __name__ == "__main__":
    main()
