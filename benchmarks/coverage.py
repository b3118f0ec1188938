"""What the candidate 95 % intervals for correlations cover, over simulated benchmarks whose truth is known.

What is to be covered is what a benchmark of the same design measures in the long run: the limit over ever more systems,
averaged over draws of as many dialogues, with the same raters. That truth is itself a mean over independent large
benchmarks, whose error is printed. Prints Markdown; everything is SIMULATED (benchmarks/simulated.py).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import simulated
from candidates import DEFAULT, INTERVALS, Resampled
from simulated import Benchmark, Floats, Metric, demo, draw, table, workers

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import coefficients
from comperdial.stats.design import Design

ZOO = {
    "good": Metric(),
    "mediocre": Metric(truth=0.5, system=0.5, dialogue=0.4, cell=0.4),
    "bad": Metric(truth=0.1, system=0.5, dialogue=0.4, cell=0.4),
    "skewed": Metric(truth=0.5, skewed=True),
}
LEVELS = ("turn", "dialogue", "system", "system, dialogue ratings")
ROWS = "percentile-rows"
CANDIDATES = (ROWS, *INTERVALS)
# The dearest to draw and not the best: tried on fewer benchmarks.
BOTH = ("percentile-both", "basic-both", "bca-both", "fisher-pigeonhole")
CONFIDENCE = 0.95


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


def cover(index: int, seed: int, resamples: int, rows: int, both: int) -> Floats:
    """Return the ends of all intervals of one benchmark: shape (levels, candidates, metrics, coefficients, 2).

    NaN where a candidate is not tried: rows over means of systems, and the slow ones in all benchmarks but the first.
    """
    rng = np.random.default_rng([seed, 2, index])
    found = np.full((len(LEVELS), len(CANDIDATES), len(ZOO), len(NAMES), 2), np.nan)
    for level, (name, x, y, design) in enumerate(samples(draw(rng, list(ZOO.values()), *demo()))):
        methods = [method for method in INTERVALS if index < both or method not in BOTH]
        drawn = Resampled(x, y, design, NAMES, resamples, rng)
        for candidate, method in enumerate(CANDIDATES):
            if method in methods:
                found[level, candidate] = np.stack(drawn.ends(method, CONFIDENCE), axis=-1)
        if index < rows and not design.average:
            # Each row a dialogue of its own.
            alone = Design(np.zeros_like(design.systems), np.arange(len(y)))
            drawn = Resampled(x, y, alone, NAMES, resamples if name != "turn" else 200, rng)
            ends = drawn.ends("percentile-dialogues", CONFIDENCE)
            found[level, CANDIDATES.index(ROWS)] = np.stack(ends, axis=-1)
    return found


def main() -> None:
    options = simulated.options(
        __doc__,
        {"rows": "of so many benchmarks, rows are resampled too", "both": "of so many, what draws both sides at once"},
        benchmarks=1000, rows=10, both=100, resamples=200, truths=300, systems=1000, seed=6,
    )  # fmt: skip
    begun = time.perf_counter()
    with workers(options.processes) as each:
        known = np.stack(list(each(truth, options.truths, seed=options.seed, systems=options.systems)))
        found = []
        settings = {name: getattr(options, name) for name in ("seed", "resamples", "rows", "both")}
        for ends in each(cover, options.benchmarks, **settings):
            found.append(ends)
            if len(found) % 100 == 0:
                progress(known.mean(axis=0), np.stack(found), time.perf_counter() - begun)
    report(known, np.stack(found), options, time.perf_counter() - begun)


def progress(true: Floats, ends: Floats, seconds: float) -> None:
    """Say on standard error what the Fisher candidates cover so far, by level and coefficient, all metrics together."""
    covered = ((ends[..., 0] <= true[:, None]) & (true[:, None] <= ends[..., 1])).mean(axis=(0, 3))
    for c, name in enumerate(CANDIDATES):
        if name.startswith("fisher") and name not in BOTH:
            print(
                len(ends),
                f"{seconds:.0f} s",
                name,
                np.round(100 * covered[:, c], 1).tolist(),
                file=sys.stderr,
                flush=True,
            )


def report(known: Floats, ends: Floats, options: argparse.Namespace, seconds: float) -> None:
    true, error = known.mean(axis=0), known.std(axis=0, ddof=1) / np.sqrt(len(known))
    tried = np.ones(ends.shape[:-1], dtype=bool)
    row = CANDIDATES.index(ROWS)
    tried[:, :, row] = False
    tried[: options.rows, :2, row] = True
    tried[options.both :, :, [CANDIDATES.index(name) for name in BOTH]] = False
    covered = (ends[..., 0] <= true[:, None]) & (true[:, None] <= ends[..., 1])
    widths = ends[..., 1] - ends[..., 0]
    print(
        f"{options.benchmarks} SIMULATED benchmarks of 99 systems x 15 dialogues x 7 turns, {len(ZOO)} metrics "
        f"({', '.join(ZOO)}), {options.resamples} resamples, seed {options.seed}, {seconds:.0f} s. "
        f"Resampling rows: {options.rows} benchmarks, at turn level 200 resamples; {', '.join(BOTH)}: {options.both}. "
        f"Truth: mean over {len(known)} benchmarks of {options.systems} systems. "
        "A cell: coverage of 95 % intervals in %, all metrics together (least to most of a metric), mean width. "
        f"The default is {DEFAULT}.\n"
    )
    head = [f"{level}: {name}" for level in LEVELS for name in NAMES]
    for half in (head[:6], head[6:]):
        table(
            ["candidate", *half],
            [
                [name, *(cell(covered, widths, tried, head.index(h), c) for h in half)]
                for c, name in enumerate(CANDIDATES)
            ],
        )
    print(f"{DEFAULT}, by metric: coverage in %, then truth -+ its Monte Carlo error.\n")
    c = CANDIDATES.index(DEFAULT)
    rows = []
    for m, metric in enumerate(ZOO):
        for k, level in enumerate(LEVELS):
            cells = [
                f"{100 * covered[:, k, c, m, n].mean():.1f} ({true[k, m, n]:.4f} -+ {error[k, m, n]:.4f})"
                for n in range(len(NAMES))
            ]
            rows.append([metric, level, *cells])
    table(["metric", "level", *NAMES], rows)


def cell(covered: Any, widths: Floats, tried: Any, at: int, candidate: int) -> str:
    level, name = divmod(at, len(NAMES))
    where = np.s_[:, level, candidate, :, name]
    if not tried[where].any():
        return "—"
    by_metric = [100 * covered[where][tried[where][:, m], m].mean() for m in range(len(ZOO))]
    width = np.nanmean(widths[where])
    return f"{np.mean(by_metric):.1f} ({min(by_metric):.1f} to {max(by_metric):.1f}), {width:.3f}"


if __name__ == "__main__":
    main()
