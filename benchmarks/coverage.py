"""What 95 % intervals for correlations cover, over simulated benchmarks whose truth is known.

What is to be covered is what a benchmark of the same design measures in the long run: the limit over ever more systems,
averaged over draws of as many dialogues, with the same raters. That truth is itself a mean over independent large
benchmarks, whose error is printed. Prints Markdown; everything is SIMULATED (benchmarks/simulated.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import simulated
from simulated import Benchmark, Floats, Metric, demo, draw, table, workers

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import coefficients
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

ZOO = {
    "good": Metric(),
    "mediocre": Metric(truth=0.5, system=0.5, dialogue=0.4, cell=0.4),
    "bad": Metric(truth=0.1, system=0.5, dialogue=0.4, cell=0.4),
    "skewed": Metric(truth=0.5, skewed=True),
}
LEVELS = ("turn", "dialogue", "system", "system, dialogue ratings")


def samples(benchmark: Benchmark) -> Iterator[tuple[str, Floats, Floats, Design]]:
    """Return the level, scores, ratings and design of every correlation."""
    scores = benchmark.scores
    by_dialogue = scores.mean(axis=3)
    for level, x, y in (
        ("turn", scores, benchmark.turn),
        ("dialogue", by_dialogue, benchmark.dialogue),
        ("system", scores, benchmark.turn),
        ("system, dialogue ratings", by_dialogue, benchmark.dialogue),
    ):
        systems, dialogues = np.indices(y.shape)[:2]
        design = Design(systems.ravel(), dialogues.ravel(), average=level.startswith("system"))
        yield level, x.reshape(len(x), -1), y.ravel(), design


def truth(index: int, seed: int, systems: int) -> Floats:
    """Return the coefficients of one large benchmark: shape (levels, metrics, coefficients)."""
    rng = np.random.default_rng([seed, 1, index])
    return np.stack(
        [
            coefficients(*sample[1:], NAMES)
            for sample in samples(draw(rng, list(ZOO.values()), *demo(), systems=systems))
        ]
    )


def cover(index: int, seed: int, resamples: int) -> Floats:
    """Return the ends of all intervals of one benchmark: shape (levels, metrics, coefficients, 2)."""
    drawn = draw(np.random.default_rng([seed, 2, index]), list(ZOO.values()), *demo())
    made = [intervals(*sample[1:], NAMES, resamples=resamples, seed=index) for sample in samples(drawn)]
    return np.stack([np.stack([one.low, one.high], axis=-1) for one in made])


def main() -> None:
    options = simulated.options(__doc__, {}, benchmarks=1000, resamples=200, truths=300, systems=1000, seed=6)
    begun = time.perf_counter()
    with workers(options.processes) as each:
        known = np.stack(list(each(truth, options.truths, seed=options.seed, systems=options.systems)))
        outcomes = []
        for ends in each(cover, options.benchmarks, seed=options.seed, resamples=options.resamples):
            outcomes.append(ends)
            if len(outcomes) % 100 == 0:
                print(f"{len(outcomes)} benchmarks, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(
        f"{options.benchmarks} SIMULATED benchmarks of 99 systems x 15 dialogues x 7 turns, {len(ZOO)} metrics "
        f"({', '.join(ZOO)}), {options.resamples} resamples, seed {options.seed}, {time.perf_counter() - begun:.0f} s. "
        f"Truth: mean over {len(known)} benchmarks of {options.systems} systems. "
        "A cell: coverage of 95 % intervals in %, all metrics together (least to most of a metric), mean width.\n"
    )
    report(known, np.stack(outcomes))


def report(known: Floats, ends: Floats) -> None:
    true, error = known.mean(axis=0), known.std(axis=0, ddof=1) / np.sqrt(len(known))
    covered = 100 * ((ends[..., 0] <= true) & (true <= ends[..., 1])).mean(axis=0)
    widths = np.nanmean(ends[..., 1] - ends[..., 0], axis=(0, 2))
    rows = []
    for level, of_level, wide in zip(LEVELS, covered, widths, strict=True):
        cells = zip(of_level.mean(axis=0), of_level.min(axis=0), of_level.max(axis=0), wide, strict=True)
        rows.append(
            [level, *(f"{mean:.1f} ({low:.1f} to {high:.1f}), {width:.3f}" for mean, low, high, width in cells)]
        )
    table(["level", *NAMES], rows)
    print("By metric: coverage in %, then truth -+ its Monte Carlo error.\n")
    rows = []
    for m, metric in enumerate(ZOO):
        for k, level in enumerate(LEVELS):
            cells = zip(covered[k, m], true[k, m], error[k, m], strict=True)
            rows.append([metric, level, *(f"{share:.1f} ({value:.4f} -+ {off:.4f})" for share, value, off in cells)])
    table(["metric", "level", *NAMES], rows)


if __name__ == "__main__":
    main()
