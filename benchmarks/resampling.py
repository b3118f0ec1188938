"""Bootstrap of the correlations of Tables 4 and 5 by weights, against the plain loop over scipy: time and agreement.

17 SIMULATED metrics of 99 systems x 15 dialogues x 7 turns: at turn level against turn ratings, at dialogue level
against dialogue ratings, and over the means of systems for both; Pearson, Spearman and Kendall. Both sides draw systems
and dialogues. The plain loop repeats rows and calls scipy for each metric; it is timed on a few resamples and scaled.
Prints a Markdown table.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import numpy as np
import simulated
from simulated import Floats, Metric, demo, draw

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import over_clusters, over_means
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

METRICS = [Metric(truth=k / 16, skewed=k % 4 == 0) for k in range(17)]


def samples(rng: np.random.Generator) -> Iterator[tuple[str, Floats, Floats, Design]]:
    benchmark = draw(rng, METRICS, *demo())
    for level, x, y in (
        ("turn", benchmark.scores, benchmark.turn),
        ("dialogue", benchmark.scores.mean(axis=3), benchmark.dialogue),
    ):
        systems, dialogues = (codes.ravel() for codes in np.indices(y.shape)[:2])
        yield level, x.reshape(len(x), -1), y.ravel(), Design(systems, dialogues)
        yield f"system, {level} ratings", x.reshape(len(x), -1), y.ravel(), Design(systems, dialogues, average=True)


def plain(x: Floats, y: Floats, design: Design, of_systems: Floats, of_dialogues: Floats) -> Floats:
    """Return the coefficients of one resample: shape (metrics, coefficients)."""
    rows = np.repeat(np.arange(len(y)), (of_systems[design.systems] * of_dialogues[design.dialogues]).astype(int))
    if not design.average:
        return np.array([[correlate(row[rows], y[rows], name).value for name in NAMES] for row in x])
    systems = design.systems[rows]
    n = np.bincount(systems)
    there = np.flatnonzero(n)
    times = of_systems[there].astype(int)

    def means(values: Floats) -> Floats:
        # Means that differ by rounding only are ties.
        return np.repeat(np.round(np.bincount(systems, weights=values[rows])[there] / n[there], 11), times)

    return np.array([[correlate(means(row), means(y), name).value for name in NAMES] for row in x])


def main() -> None:
    options = simulated.options(__doc__, {"plain": "resamples of the plain loop"}, resamples=1000, plain=10, seed=0)
    rng = np.random.default_rng(options.seed)
    print(
        f"{len(METRICS)} metrics, {len(NAMES)} coefficients, {options.resamples} resamples of dialogues; "
        f"plain loop timed on {options.plain} and scaled. Seconds of the processor, one thread; SIMULATED data.\n"
    )
    print("| level | units | by weights | plain loop, scaled | faster | largest difference | intervals |")
    print("| --- " * 7 + "|")
    total = np.zeros(3)
    for level, x, y, design in samples(rng):
        drawn = rng.multinomial(15, np.full(15, 1 / 15), size=options.resamples).astype(np.float64)
        begun = time.process_time()
        of = (
            over_means(x, y, design, drawn, NAMES)
            if design.average
            else over_clusters(x, y, design.dialogues, drawn, NAMES)
        )
        ours = time.process_time() - begun
        begun = time.process_time()
        oracle = np.stack([plain(x, y, design, np.ones(99), drawn[k]) for k in range(options.plain)])
        theirs = (time.process_time() - begun) * options.resamples / options.plain
        apart = np.abs(of[: options.plain] - oracle).max()
        begun = time.process_time()
        intervals(x, y, design, NAMES, resamples=options.resamples, seed=1)
        whole = time.process_time() - begun
        total += (ours, theirs, whole)
        print(f"| {level} | {len(y)} | {ours:.2f} | {theirs:.0f} | {theirs / ours:.0f} | {apart:.0e} | {whole:.2f} |")
    print(f"| all | | {total[0]:.2f} | {total[1]:.0f} | {total[1] / total[0]:.0f} | | {total[2]:.2f} |")
    print(f"\nLargest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB.")


if __name__ == "__main__":
    main()
