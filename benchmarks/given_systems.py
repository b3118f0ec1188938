"""What 95 % intervals over contexts cover where two or three systems are given, over simulated benchmarks.

Of the model of simulated.py two or three systems are drawn, with what each metric likes and dislikes of them, and many
contexts that all of them answer. A benchmark is the first contexts, 30, 100 or 300. What is to be covered is the value
of these systems, by these raters, over the other contexts, of which there are very many. Also counted: intervals of
differences of two metrics, and how often the test finds a difference between two metrics that see the systems alike and
differ by chance alone. Prints Markdown; everything is SIMULATED. `OMP_NUM_THREADS=1 python benchmarks/given_systems.py`
takes ten minutes.
"""

from __future__ import annotations

import time

import numpy as np
import simulated
from few_systems import METRICS
from simulated import Floats, Metric, demo, draw, table, workers

from comperdial.stats import Coefficient
from comperdial.stats.coefficients import coefficients
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

SIZES = (2, 3)
CONTEXTS = (30, 100, 300)
NAMES: tuple[Coefficient, ...] = ("pearson", "spearman")
# Equally good whatever the systems: they have no likes and dislikes of whole systems.
EQUAL = Metric(truth=0.6, system=0.0)
ZOO = [*METRICS.values(), EQUAL, EQUAL]


def cover(index: int, seed: int, resamples: int, population: int) -> Floats:
    """Return coverage, widths and p of one benchmark of each shape.

    Shape (sizes, contexts, 3, metrics, coefficients, 2): whether the interval covers, and its width; then whether the
    interval of the difference from the metric before covers, and its width; then the p of that difference, twice.
    """
    rng = np.random.default_rng([seed, 9, index])
    outcomes = np.full((len(SIZES), len(CONTEXTS), 3, len(ZOO), len(NAMES), 2), np.nan)
    for size, systems in enumerate(SIZES):
        whole = draw(rng, ZOO, *demo(), systems=systems, dialogues=sum(CONTEXTS) + population, turns=1)
        rest = np.s_[:, sum(CONTEXTS) :, 0]
        true = coefficients(*_units(whole.scores[(slice(None), *rest)], whole.turn[rest]), NAMES)
        start = 0
        for at, contexts in enumerate(CONTEXTS):
            part = np.s_[:, start : start + contexts, 0]
            start += contexts
            x, y, design = _units(whole.scores[(slice(None), *part)], whole.turn[part])
            made = intervals(x, y, design, NAMES, resamples=resamples, seed=index)
            covers = (made.low <= true) & (true <= made.high)
            outcomes[size, at, 0, ..., 0] = np.where(np.isnan(made.low), np.nan, covers)
            outcomes[size, at, 0, ..., 1] = made.high - made.low
            for column, name in enumerate(NAMES):
                tested = compare(x, y, design, name, resamples=0, seed=index)
                low, high = (np.diag(end, 1) for end in tested.ends)
                apart = -np.diff(true[:, column])
                outcomes[size, at, 1, 1:, column, 0] = (low <= apart) & (apart <= high)
                outcomes[size, at, 1, 1:, column, 1] = high - low
                outcomes[size, at, 2, 1:, column] = np.diag(tested.p, 1)[:, np.newaxis]
    return outcomes


def _units(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Design]:
    systems, contexts = (side.ravel() for side in np.indices(ratings.shape))
    return scores.reshape(len(scores), -1), ratings.ravel(), Design(systems, contexts)


def main() -> None:
    options = simulated.options(
        __doc__, {"population": "contexts that the truth is of"},
        benchmarks=800, resamples=300, population=20000, seed=16,
    )  # fmt: skip
    begun = time.perf_counter()
    settings = {name: getattr(options, name) for name in ("seed", "resamples", "population")}
    with workers(options.processes) as each:
        outcomes = np.stack(list(each(cover, options.benchmarks, **settings)))
    print(
        f"{options.benchmarks} SIMULATED benchmarks of each number of systems and contexts, {len(ZOO)} metrics "
        f"({'; '.join(METRICS)}; two equal ones), {options.resamples} resamples, seed {options.seed}, "
        f"{time.perf_counter() - begun:.0f} s. A cell: coverage of 95 % intervals in %, Pearson / Spearman; least and "
        "most of a metric in brackets; median width for Spearman.\n"
    )
    shapes = [
        (str(systems), str(contexts), outcomes[:, size, at])
        for size, systems in enumerate(SIZES)
        for at, contexts in enumerate(CONTEXTS)
    ]
    rows = []
    for systems, contexts, of in [*shapes, ("all", "all", outcomes)]:
        rejected = (of[..., 2, -1, :, 0] < ALPHA).reshape(-1, len(NAMES)).mean(axis=0)
        cells = [_cell(of[..., 0, :, :, :]), _cell(of[..., 1, 1:, :, :])]
        rows.append([systems, contexts, *cells, " / ".join(f"{100 * share:.1f}" for share in rejected)])
    table(["systems", "contexts", "coverage", "differences", "equal: rejected at 5 %"], rows)
    print("By metric, all shapes.\n")
    by_metric = 100 * np.nanmean(outcomes[:, :, :, 0, :, :, 0], axis=(0, 1, 2))
    names = [*METRICS, "equal", "equal"]
    table(
        ["metric", *NAMES],
        [[name, *(f"{share:.1f}" for share in of)] for name, of in zip(names, by_metric, strict=True)],
    )


def _cell(outcomes: Floats) -> str:
    """Return coverage by coefficient, with the least and the most of a metric; metrics are the last axis but two."""
    covered, width = outcomes[..., 0], outcomes[..., 1]
    axes = tuple(range(covered.ndim - 2))
    by_metric = 100 * np.nanmean(covered, axis=axes)
    shares = " / ".join(
        f"{100 * np.nanmean(covered[..., column]):.1f} ({by_metric[:, column].min():.1f} to {by_metric[:, column].max():.1f})"
        for column in range(covered.shape[-1])
    )
    return f"{shares}, {np.nanmedian(width[..., 1]):.2f}"


if __name__ == "__main__":
    main()
