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
from candidates import Resampled
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
# The default; the bootstrap that was the default once; Fisher's interval with 1 / (n - 3) for the variance.
CANDIDATES = ("fisher-design", "fisher-two-way", "Fisher")


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


def cover(index: int, seed: int, slow: int, resamples: int) -> Floats:
    """Return the ends of all intervals: shape (shapes, sizes, candidates, metrics, coefficients, 2).

    NaN for the bootstrap in all benchmarks but the first ``slow``.
    """
    rng = np.random.default_rng([seed, 2, index])
    found = np.full((len(SHAPES), len(SIZES), len(CANDIDATES), len(METRICS), len(NAMES), 2), np.nan)
    for shape, (dialogues, turns) in enumerate(SHAPES):
        whole = draw(rng, list(METRICS.values()), *demo(), systems=POPULATION, dialogues=dialogues, turns=turns)
        start = 0
        for size, count in enumerate(SIZES):
            chosen, start = slice(start, start + count), start + count
            x, y = whole.scores[:, chosen].reshape(len(METRICS), -1), whole.turn[chosen].ravel()
            systems, items = (side.ravel() for side in np.indices((count, dialogues, turns))[:2])
            design = Design(systems, items, average=True)
            # The default asks no resamples where systems are few.
            made = intervals(x, y, design, NAMES, resamples=2, seed=index)
            found[shape, size, 0] = np.stack([made.low, made.high], axis=-1)
            if index < slow:
                drawn = Resampled(x, y, design, NAMES, resamples, np.random.default_rng(index))
                found[shape, size, 1] = np.stack(drawn.ends("fisher-two-way", 0.95), axis=-1)
            if count > 3:
                reach, r = stats.norm.ppf(0.975) / np.sqrt(count - 3), made.value[:, :1]
                found[shape, size, 2, :, :1] = np.tanh(
                    np.stack([np.arctanh(r) - reach, np.arctanh(r) + reach], axis=-1)
                )
    return found


def main() -> None:
    options = simulated.options(
        __doc__, {"slow": "of so many, the bootstrap too"},
        benchmarks=1000, slow=40, resamples=200, truths=100, systems=1000, seed=8,
    )  # fmt: skip
    begun = time.perf_counter()
    with workers(options.processes) as each:
        known = np.mean(list(each(truth, options.truths, seed=options.seed, systems=options.systems)), axis=0)
        settings = {"seed": options.seed, "slow": options.slow, "resamples": options.resamples}
        ends = np.stack(list(each(cover, options.benchmarks, **settings)))
    print(
        f"{options.benchmarks} SIMULATED benchmarks of each of {len(SHAPES)} shapes "
        f"({', '.join(f'{d} dialogues x {t} turns' for d, t in SHAPES)}), {len(METRICS)} metrics "
        f"({'; '.join(METRICS)}), seed {options.seed}, {time.perf_counter() - begun:.0f} s. Bootstrap "
        f"({CANDIDATES[1]}, {options.resamples} resamples): {options.slow} of each shape. A cell: coverage of the 95 % "
        "intervals given, in % / that of the narrowest fifth of them, median width; in brackets the share given, where "
        "it is not all.\n"
    )
    report(known, ends)


def report(known: Floats, ends: Floats) -> None:
    """Print the tables: by size; the default by shape; the default by metric."""
    covered = (ends[..., 0] <= known[:, None, None]) & (known[:, None, None] <= ends[..., 1])
    width = ends[..., 1] - ends[..., 0]
    heads = [f"{name}: {'the default' if c == 0 else CANDIDATES[c]}" for name in NAMES for c in range(3)]
    shown = [(n, c) for n in range(3) for c in range(3) if c < 2 or n == 0]
    heads = [heads[3 * n + c] for n, c in shown]
    table(
        ["systems", *heads],
        [
            [str(count), *(cell(covered[:, :, s, c, :, n], width[:, :, s, c, :, n]) for n, c in shown)]
            for s, count in enumerate(SIZES)
        ],
    )
    print("The default by shape.\n")
    table(
        ["dialogues x turns", "systems", *NAMES],
        [
            [
                f"{d} x {t}", str(count),
                *(cell(covered[:, k, s, 0, :, n], width[:, k, s, 0, :, n]) for n in range(3)),
            ]
            for k, (d, t) in enumerate(SHAPES)
            for s, count in enumerate(SIZES)
            if count > 3
        ],
    )  # fmt: skip
    print("The default by metric, all shapes and 4 to 10 systems; in brackets the truth in each shape.\n")
    few = [s for s, count in enumerate(SIZES) if count > 3]
    table(
        ["metric", *NAMES],
        [
            [
                metric,
                *(
                    cell(covered[:, :, few, 0, m, n], width[:, :, few, 0, m, n])
                    + f" ({', '.join(f'{value:.2f}' for value in known[:, m, n])})"
                    for n in range(3)
                ),
            ]
            for m, metric in enumerate(METRICS)
        ],
    )


def cell(covered: Floats, width: Floats) -> str:
    given = ~np.isnan(width)
    # What was not tried has no share; no interval was given of a size where none has a width.
    tried = given.any(axis=tuple(range(1, given.ndim)))
    if not given.any():
        return "none"
    hit, wide = covered[given], width[given]
    narrow = wide <= np.quantile(wide, 0.2)
    share = given[tried].mean()
    text = f"{100 * hit.mean():.1f} / {100 * hit[narrow].mean():.1f}, {np.median(wide):.2f}"
    return text + (f" ({100 * share:.0f} %)" if share < 0.995 else "")


if __name__ == "__main__":
    main()
