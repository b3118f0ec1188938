"""Supports benchmarks/README.md: CPU seconds for intervals, compared with a plain loop over scipy; SIMULATED.

`OMP_NUM_THREADS=1 python benchmarks/correlate.py`, on a benchmark of the demo's size. The loop draws whole systems, then whole
dialogues, and over means also each system's dialogues; its time is extrapolated from three resamples.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import simulated
from coverage import ZOO
from scipy import stats
from simulated import Sample, demo, draw, levels, table

from comperdial.stats import COEFFICIENTS
from comperdial.stats.intervals import intervals

SCIPY = (stats.pearsonr, stats.spearmanr, stats.kendalltau)


def loop(sample: Sample, resamples: int, rng: np.random.Generator) -> None:
    x, y, design = sample
    by_system, by_dialogue = (
        [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
        for codes in (design.systems, design.dialogues)
    )
    for _ in range(resamples):
        draws = [
            np.concatenate([groups[code] for code in rng.integers(len(groups), size=len(groups))])
            for groups in (by_system, by_dialogue)
        ]
        if design.average:
            draws.append(np.concatenate([rng.choice(units, len(units)) for units in by_system]))
        for units in draws:
            sides = [*x[:, units], y[units]]
            if design.average:
                counts = np.bincount(design.systems[units], minlength=len(by_system))
                sums = [np.bincount(design.systems[units], side, len(by_system)) for side in sides]
                sides = [side[counts > 0] / counts[counts > 0] for side in sums]
            for side in sides[:-1]:
                for coefficient in SCIPY:
                    coefficient(side, sides[-1])


def main() -> None:
    options = simulated.options(__doc__, metrics=16, resamples=1000, looped=3)
    rng, rows = np.random.default_rng(1), []
    metrics = ([*ZOO.values()] * options.metrics)[: options.metrics]
    for level, sample in levels(draw(rng, metrics, *demo())).items():
        begun = time.process_time()
        intervals(*sample, COEFFICIENTS, resamples=options.resamples, seed=1)
        ours = time.process_time() - begun
        begun = time.process_time()
        loop(sample, options.looped, rng)
        theirs = (time.process_time() - begun) * options.resamples / options.looped
        rows.append([level, f"{ours:.1f}", f"{theirs:,.0f}", f"{theirs / ours:,.0f}"])
    table(["level", "intervals, s", "scipy's loop, s", "ratio"], rows)
    print(f"Peak of memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
