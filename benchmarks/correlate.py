"""How long intervals take beside a plain loop of scipy over the same metrics, coefficients and resamples.

`OMP_NUM_THREADS=1 python benchmarks/correlate.py`, on a simulated benchmark of the demo's size (simulated.py). The loop draws
whole systems, then whole dialogues, repeats their units and asks scipy; over the means of systems it averages the drawn
dialogues. Its time is extrapolated from a few resamples. Prints seconds of the processor and the peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from coverage import ZOO, samples
from scipy import stats
from simulated import Floats, demo, draw, table

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def loop(x: Floats, y: Floats, design: Design, resamples: int, rng: np.random.Generator) -> None:
    """Resample systems and dialogues, and over means each system's dialogues, with numpy and scipy alone."""
    systems, dialogues = design.counts
    by_system, by_dialogue = ([np.flatnonzero(codes == code) for code in range(count)] for codes, count in (
        (design.systems, systems), (design.dialogues, dialogues),
    ))  # fmt: skip
    for _ in range(resamples):
        drawn = [np.concatenate([groups[code] for code in rng.integers(len(groups), size=len(groups))])
                 for groups in (by_system, by_dialogue)]  # fmt: skip
        if design.average:
            drawn.append(np.concatenate([rng.choice(units, len(units)) for units in by_system]))
        for units in drawn:
            sides = [*x[:, units], y[units]]
            if design.average:
                counts = np.bincount(design.systems[units], minlength=systems)
                sides = [
                    np.bincount(design.systems[units], side, systems)[counts > 0] / counts[counts > 0] for side in sides
                ]
            for side in sides[:-1]:
                for name in NAMES:
                    SCIPY[name](side, sides[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--metrics", type=int, default=16)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--looped", type=int, default=3, help="resamples of the loop (default: %(default)s)")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    metrics = [[*ZOO.values()][at % len(ZOO)] for at in range(options.metrics)]
    rows = []
    for level, x, y, design in samples(draw(rng, metrics, *demo())):
        begun = time.process_time()
        intervals(x, y, design, NAMES, resamples=options.resamples, seed=1)
        ours = time.process_time() - begun
        begun = time.process_time()
        loop(x, y, design, options.looped, rng)
        theirs = (time.process_time() - begun) * options.resamples / options.looped
        rows.append([level, f"{ours:.1f}", f"{theirs:,.0f}", f"{theirs / ours:,.0f}"])
    table(["level", "intervals, s", "scipy's loop, s", "ratio"], rows)
    print(f"Peak of memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
