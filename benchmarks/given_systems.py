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
from candidates import Resampled
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
# The default, and others.
CANDIDATES = (
    "the default", "fisher-jackknife", "percentile-dialogues", "bca-both",
)  # fmt: skip


def cover(index: int, seed: int, resamples: int, population: int, others: int) -> Floats:
    """Return coverage, widths and p of one benchmark of each shape.

    Shape (sizes, contexts, 2 + candidates, metrics, coefficients, 2): whether it covers and the width of each candidate;
    then whether the interval of the difference from the next metric covers, and its width; then its p, twice. NaN for all
    candidates but the default in all benchmarks but the first ``others``.
    """
    rng = np.random.default_rng([seed, 9, index])
    found = np.full((len(SIZES), len(CONTEXTS), len(CANDIDATES) + 2, len(ZOO), len(NAMES), 2), np.nan)
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
            ends = [(made.low, made.high)]
            if index < others:
                alone = Design(np.zeros_like(design.systems), design.dialogues)
                one = Resampled(x, y, alone, NAMES, resamples, np.random.default_rng(index))
                ends += [one.ends(name, 0.95) for name in CANDIDATES[1:]]
            for candidate, (low, high) in enumerate(ends):
                found[size, at, candidate, ..., 0] = np.where(np.isnan(low), np.nan, (low <= true) & (true <= high))
                found[size, at, candidate, ..., 1] = high - low
            for column, name in enumerate(NAMES):
                tested = compare(x, y, design, name, resamples=0, seed=index)
                low, high = (np.diag(end, 1) for end in tested.ends)
                apart = -np.diff(true[:, column])
                found[size, at, -2, 1:, column, 0] = (low <= apart) & (apart <= high)
                found[size, at, -2, 1:, column, 1] = high - low
                found[size, at, -1, 1:, column] = np.diag(tested.p, 1)[:, np.newaxis]
    return found


def _units(scores: Floats, ratings: Floats) -> tuple[Floats, Floats, Design]:
    systems, contexts = (side.ravel() for side in np.indices(ratings.shape))
    return scores.reshape(len(scores), -1), ratings.ravel(), Design(systems, contexts)


def main() -> None:
    options = simulated.options(
        __doc__, {"population": "contexts that the truth is of", "others": "of so many, other intervals too"},
        benchmarks=800, others=0, resamples=300, population=20000, seed=16,
    )  # fmt: skip
    begun = time.perf_counter()
    settings = {
        "seed": options.seed,
        "resamples": options.resamples,
        "population": options.population,
        "others": options.others,
    }
    with workers(options.processes) as each:
        found = np.stack(list(each(cover, options.benchmarks, **settings)))
    print(
        f"{options.benchmarks} SIMULATED benchmarks of each number of systems and contexts, {len(ZOO)} metrics "
        f"({'; '.join(METRICS)}; two equal ones), {options.resamples} resamples, seed {options.seed}, "
        f"{time.perf_counter() - begun:.0f} s. A cell: coverage of 95 % intervals in %, Pearson / Spearman; least and "
        "most of a metric in brackets; median width for Spearman.\n"
    )
    shown = range(len(CANDIDATES) if options.others else 1)
    shapes = [(size, at) for size in range(len(SIZES)) for at in range(len(CONTEXTS))]
    heads = ["systems", "contexts", *CANDIDATES[: len(shown)], "differences", "equal: rejected at 5 %"]
    rows = []
    for size, at in shapes:
        of = found[:, size, at]
        cells = [_cell(of[:, candidate, :, :, 0], of[:, candidate, :, :, 1]) for candidate in shown]
        cells.append(_cell(of[:, -2, 1:, :, 0], of[:, -2, 1:, :, 1]))
        cells.append(
            " / ".join(f"{100 * (of[:, -1, -1, column, 0] < ALPHA).mean():.1f}" for column in range(len(NAMES)))
        )
        rows.append([str(SIZES[size]), str(CONTEXTS[at]), *cells])
    overall = [_cell(found[:, :, :, c, :, :, 0], found[:, :, :, c, :, :, 1]) for c in shown]
    overall.append(_cell(found[:, :, :, -2, 1:, :, 0], found[:, :, :, -2, 1:, :, 1]))
    rejected = found[:, :, :, -1, -1, :, 0] < ALPHA
    overall.append(" / ".join(f"{100 * share:.1f}" for share in rejected.mean(axis=(0, 1, 2))))
    table(heads, [*rows, ["all", "all", *overall]])
    print("The default by metric, all shapes.\n")
    by_metric = 100 * np.nanmean(found[:, :, :, 0, :, :, 0], axis=(0, 1, 2))
    names = [*METRICS, "equal", "equal"]
    table(
        ["metric", *NAMES],
        [[name, *(f"{share:.1f}" for share in of)] for name, of in zip(names, by_metric, strict=True)],
    )


def _cell(covered: Floats, width: Floats) -> str:
    """Return coverage by coefficient, with the least and the most of a metric: the last two axes are these."""
    axes = tuple(range(covered.ndim - 2))
    by_metric = 100 * np.nanmean(covered, axis=axes)
    shares = " / ".join(
        f"{100 * np.nanmean(covered[..., column]):.1f} ({by_metric[:, column].min():.1f} to {by_metric[:, column].max():.1f})"
        for column in range(covered.shape[-1])
    )
    return f"{shares}, {np.nanmedian(width[..., 1]):.2f}"


if __name__ == "__main__":
    main()
