"""What the 95 % intervals of differences between metrics cover, over simulated benchmarks whose truth is known.

The intervals of `stats.comparison.compare`, which `comperdial compare` prints; what is to be covered is the difference
of the two long-run values that coverage.py defines. Prints a Markdown table; everything is SIMULATED (simulated.py).
`OMP_NUM_THREADS=1 python benchmarks/differences.py --benchmarks 400`.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from multiprocessing import get_context

import numpy as np
from coverage import LEVELS, ZOO, samples
from simulated import Floats, demo, draw

from comperdial.stats.comparison import compare
from comperdial.stats.correlation import ALPHA
from comperdial.stats.intervals import NAMES, coefficients

PAIRS = list(combinations(range(len(ZOO)), 2))
ROWS, COLUMNS = np.array(PAIRS).T
# Kendall over units takes long; the others say enough about units.
COEFFICIENTS = {level: NAMES if level.startswith("system") else NAMES[:2] for level in LEVELS}


def truth(index: int, seed: int, systems: int) -> Floats:
    """Return the differences of one large benchmark: shape (levels, coefficients, pairs)."""
    drawn = draw(np.random.default_rng([seed, 1, index]), list(ZOO.values()), *demo(), systems=systems)
    found = np.full((len(LEVELS), len(NAMES), len(PAIRS)), np.nan)
    for level, (label, x, y, design) in enumerate(samples(drawn)):
        values = coefficients(x, y, design, COEFFICIENTS[label]).T
        found[level, : len(values)] = values[:, ROWS] - values[:, COLUMNS]
    return found


def ends(index: int, seed: int, systems: int, resamples: int) -> Floats:
    """Return difference, reach and p of one benchmark: shape (levels, coefficients, pairs, 3)."""
    found = np.full((len(LEVELS), len(NAMES), len(PAIRS), 3), np.nan)
    drawn = draw(np.random.default_rng([seed, 3, systems, index]), list(ZOO.values()), *demo(), systems=systems)
    for level, (label, x, y, design) in enumerate(samples(drawn)):
        for name in COEFFICIENTS[label]:
            tested = compare(x, y, design, name, resamples=resamples, seed=index, intervals=True)
            parts = [part[ROWS, COLUMNS] for part in (tested.difference, tested.reach, tested.p)]
            found[level, NAMES.index(name)] = np.stack(parts, axis=-1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=int, default=400)
    parser.add_argument("--systems", type=int, nargs="+", default=[4, 6, 10, 20, 99])
    parser.add_argument("--resamples", type=int, default=299)
    parser.add_argument("--truths", type=int, default=100, help="large benchmarks that the truth is a mean of")
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    begun = time.perf_counter()
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        known = list(pool.map(partial(truth, seed=options.seed, systems=1000), range(options.truths), chunksize=4))
        true = np.mean(known, axis=0)
        agree = True
        print("| systems | level | " + " | ".join(NAMES) + " |\n|--:|:--|" + ":--|" * len(NAMES), flush=True)
        for systems in options.systems:
            work = partial(ends, seed=options.seed, systems=systems, resamples=options.resamples)
            found = np.stack(list(pool.map(work, range(options.benchmarks), chunksize=4)))
            difference, reach, p = np.moveaxis(found, -1, 0)
            there = ~np.isnan(reach)
            agree &= bool(((p < ALPHA) == (np.abs(difference) > reach))[there].all())
            covered = np.abs(difference - true) <= reach
            for level, label in enumerate(LEVELS):
                cells = []
                for at, name in enumerate(NAMES):
                    here = np.s_[:, level, at]
                    if name not in COEFFICIENTS[label]:
                        cells.append("—")
                    elif not there[here].mean() > 0.01:
                        cells.append("none")
                    else:
                        by_pair = [100 * covered[here][there[here][:, pair], pair].mean() for pair in range(len(PAIRS))]
                        share = there[here].mean()
                        cells.append(
                            f"{np.mean(by_pair):.1f} ({min(by_pair):.1f} to {max(by_pair):.1f}), "
                            f"{2 * np.nanmean(reach[here]):.2f}" + (f", {share:.0%} have one" if share < 0.995 else "")
                        )
                print(f"| {systems} | {label} | " + " | ".join(cells) + " |", flush=True)
    print(
        f"\n{options.benchmarks} SIMULATED benchmarks of each number of systems x 15 dialogues x 7 turns, the "
        f"{len(PAIRS)} pairs of {len(ZOO)} metrics ({', '.join(ZOO)}), {options.resamples} swaps and more, "
        f"seed {options.seed}, {time.perf_counter() - begun:.0f} s. Truth: mean over {options.truths} benchmarks of "
        "1000 systems. A cell: coverage of 95 % intervals in %, all pairs together (least to most of a pair), mean "
        f"width. p < {ALPHA} just where the interval leaves out 0: {'always' if agree else 'NOT ALWAYS'}."
    )


if __name__ == "__main__":
    main()
