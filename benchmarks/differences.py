"""What the 95 % intervals of differences between metrics cover, over simulated benchmarks whose truth is known.

The intervals of `stats.comparison.compare`, which `comperdial compare` prints; what is to be covered is the difference
of the two long-run values that coverage.py defines. Prints a Markdown table; everything is SIMULATED (simulated.py).
`OMP_NUM_THREADS=1 python benchmarks/differences.py --benchmarks 400`.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import simulated
from coverage import LEVELS, ZOO, samples
from simulated import Floats, demo, draw, workers

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import coefficients
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import ALPHA

PAIRS = list(combinations(range(len(ZOO)), 2))
ROWS, COLUMNS = np.array(PAIRS).T
# Kendall over units takes long; ranks of systems' means have no interval.
COEFFICIENTS = {level: NAMES[:1] if level.startswith("system") else NAMES[:2] for level in LEVELS}


def truth(index: int, seed: int, systems: int) -> Floats:
    """Return the differences of one large benchmark: shape (levels, coefficients, pairs)."""
    drawn = draw(np.random.default_rng([seed, 1, index]), list(ZOO.values()), *demo(), systems=systems)
    result = np.full((len(LEVELS), len(NAMES), len(PAIRS)), np.nan)
    for level, (label, x, y, design) in enumerate(samples(drawn)):
        values = coefficients(x, y, design, COEFFICIENTS[label]).T
        result[level, : len(values)] = values[:, ROWS] - values[:, COLUMNS]
    return result


def ends(index: int, seed: int, systems: int, resamples: int) -> Floats:
    """Return difference, low end, high end and p of one benchmark: shape (levels, coefficients, pairs, 4)."""
    result = np.full((len(LEVELS), len(NAMES), len(PAIRS), 4), np.nan)
    drawn = draw(np.random.default_rng([seed, 3, systems, index]), list(ZOO.values()), *demo(), systems=systems)
    for level, (label, x, y, design) in enumerate(samples(drawn)):
        for name in COEFFICIENTS[label]:
            tested = compare(x, y, design, name, resamples=resamples, seed=index)
            parts = [part[ROWS, COLUMNS] for part in (tested.difference, *tested.ends, tested.p)]
            result[level, NAMES.index(name)] = np.stack(parts, axis=-1)
    return result


def main() -> None:
    options = simulated.options(
        __doc__,
        {"systems": "numbers of systems"},
        benchmarks=400,
        systems=[4, 6, 10, 20, 99],
        resamples=299,
        truths=100,
        seed=6,
    )
    begun = time.perf_counter()
    with workers(options.processes) as each:
        known = list(each(truth, options.truths, seed=options.seed, systems=1000))
        true = np.mean(known, axis=0)
        agree = True
        print("| systems | level | " + " | ".join(NAMES) + " |\n|--:|:--|" + ":--|" * len(NAMES), flush=True)
        for systems in options.systems:
            settings = {"seed": options.seed, "systems": systems, "resamples": options.resamples}
            result = np.stack(list(each(ends, options.benchmarks, **settings)))
            low, high, p = np.moveaxis(result, -1, 0)[1:]
            there = ~np.isnan(low)
            agree &= bool(((p < ALPHA) == ((low > 0) | (high < 0)))[there].all())
            covered = (low <= true) & (true <= high)
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
                            f"{np.nanmean((high - low)[here]):.2f}"
                            + (f", {share:.0%} have one" if share < 0.995 else "")
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
