"""Supports docs/validation.md, "Paired tests", "Statistics of pairs": how often tests reject at 5 % on SIMULATED benchmarks.

python benchmarks/rejections.py             paired tests of correlations at each level: twenty minutes on two cores
python benchmarks/rejections.py pairs       statistics within items and systems, and of pairs of systems: ten minutes
python benchmarks/rejections.py overall     the overall ranking of a board of three data sets: ten minutes

The metrics of a setting are drawn with the same parameters, so each rejection is a mistake; `power` compares a metric with a
worse one. A cell is the share rejected in % with its standard error; bold: outside 4 to 6 %. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import simulated
from simulated import Benchmark, Floats, Metric, demo, draw, each, levels, table, units

from comperdial.core.names import LEVELS
from comperdial.evaluation.overall import Board, overall
from comperdial.evaluation.samples import Sample
from comperdial.stats import COEFFICIENTS, Measure
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import ALPHA
from comperdial.stats.jackknife import variances
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import swap_systems_of_pairs, swapped_differences

SETTINGS: dict[str, list[Metric]] = {
    "as the demo's": [Metric()] * 3,
    "good": [Metric(system=0.15, dialogue=0.15, cell=0.15, noise=0.5)] * 3,
    "skewed": [Metric(skewed=True)] * 3,
    "no biases": [Metric(system=0, dialogue=0, cell=0)] * 3,
    "power": [Metric(), Metric(truth=0.7)],
}
METRICS = [metric for metrics in SETTINGS.values() for metric in metrics]
_ENDS = np.cumsum([len(metrics) for metrics in SETTINGS.values()]).tolist()
PARTS = {name: slice(end - len(SETTINGS[name]), end) for name, end in zip(SETTINGS, _ENDS, strict=True)}
SWAPS = 299
# Kendall and PERM-BOTH (not the default) are slow: run them on every nth benchmark.
KENDALL_EVERY, PERM_BOTH_EVERY = {"turn": 10, "dialogue": 2, "system": 2}, 10
TESTS: list[tuple[Grouping, Measure]] = [
    *(("item", of) for of in ("pearson", "spearman", "kendall", "tau_c", "accuracy", "pairwise_pearson", "acc_eq")),
    *(("system", of) for of in ("pearson", "spearman", "kendall", "acc_eq")),
    *(("pooled", of) for of in ("tau_c", "accuracy", "acc_eq", "spa")),
]
# The systems of three data sets, each in 12 dialogues of 2 turns.
SYSTEMS = {"a": 8, "b": 12, "c": 20}
BOARD = Board.of(
    "drawn",
    [
        {"measure": "spearman", "datasets": [*SYSTEMS]},
        {"measure": "acc_eq", "grouping": "item", "datasets": [*SYSTEMS]},
        {"measure": "accuracy", "grouping": "pooled", "together": True, "datasets": [*SYSTEMS]},
    ],
)
Shares = dict[tuple[str, str], float]
"""The share of pairs rejected in one benchmark, by test and setting."""


def rejected(p: Floats) -> float:
    """Return the share of pairs of metrics that are rejected."""
    return float(np.nanmean(p[np.triu_indices(len(p), 1)] <= ALPHA))


def paired(benchmark: int, seed: int, **_shape: int) -> Shares:
    drawn = draw(np.random.default_rng([seed, benchmark]), METRICS, *demo())
    samples, result = levels(drawn), {}
    for level in LEVELS:
        scores, ratings, design = samples[level]
        for name in COEFFICIENTS:
            if name == "kendall" and benchmark % KENDALL_EVERY[level]:
                continue
            swaps = SWAPS if level == "system" and name != "pearson" else 0
            for setting, part in PARTS.items():
                tested = compare(scores[part], ratings, design, name, resamples=swaps, seed=benchmark)
                result[f"{level}, {name}", setting] = rejected(tested.p)
                if benchmark % PERM_BOTH_EVERY == 0 and level != "system" and name != "kendall":
                    p, rng = np.ones_like(tested.p), np.random.default_rng(benchmark)
                    for a, b in zip(*np.triu_indices(len(p), 1), strict=True):
                        items, two = np.arange(len(ratings)), scores[part][[a, b]]
                        null = swapped_differences(two, ratings, design, items, name, None, resamples=SWAPS, rng=rng)
                        p[a, b] = np.mean(null >= abs(tested.difference[a, b]))
                    result[f"{level}, {name}: PERM-BOTH, units swapped", setting] = rejected(p)
    return result


def pairs(benchmark: int, seed: int, **shape: int) -> Shares:
    rng, result = np.random.default_rng([seed, benchmark]), {}
    drawn = draw(rng, METRICS, *demo(), **shape)
    scores, ratings, design = units(drawn.scores, drawn.turn)
    items = items_of(drawn)
    for grouping, measure in TESTS:
        whole = replicates(scores, ratings, design, items, [measure], grouping, resamples=SWAPS)[measure]
        by_jackknife = variances(whole)
        p = by_jackknife.test(whole.values[:, np.newaxis] - whole.values, by_jackknife.cautious)[0]
        for setting, part in PARTS.items():
            own = p[part, part]
            if grouping == "pooled":
                swaps = {"resamples": SWAPS, "seed": benchmark, "most": SWAPS}
                own = swap_systems_of_pairs(scores[part], ratings, design, items, measure, **swaps)
            result[f"{grouping}, {measure}", setting] = rejected(own)
            if (grouping, measure) == ("item", "acc_eq"):
                two = [part.start, part.start + 1]
                null = swapped_differences(
                    scores[two], ratings, design, items, measure, grouping, resamples=SWAPS, rng=rng
                )
                wmt = np.mean(null >= abs(np.subtract(*whole.values[two])) - 1e-12)
                result["item, acc_eq: WMT's swaps, two-sided", setting] = float(wmt <= ALPHA)
    return result


def items_of(drawn: Benchmark) -> np.ndarray:
    """Number each unit's context."""
    _, dialogues, turns = (axis.ravel() for axis in np.indices(drawn.turn.shape))
    return dialogues * drawn.turn.shape[2] + turns


def board(benchmark: int, seed: int, **_shape: int) -> Shares:
    rng = np.random.default_rng([seed, benchmark])
    drawn = {
        name: sample_of(name, draw(rng, METRICS, *demo(), systems=systems, dialogues=12, turns=2))
        for name, systems in SYSTEMS.items()
    }
    names, result = drawn["a"].names, {}
    for task, group in overall(BOARD, drawn, names, resamples=0)[1].groupby("task"):
        for setting, part in PARTS.items():
            chosen = [name for name, _ in names[part]]
            own = group[group["metric_a"].isin(chosen) & group["metric_b"].isin(chosen)]
            result[str(task), setting] = float((own["p"] <= ALPHA).mean())
    return result


def sample_of(name: str, drawn: Benchmark) -> Sample:
    """Return a drawn benchmark as a board's data set."""
    scores, ratings, design = units(drawn.scores, drawn.turn)
    items, count = items_of(drawn), len(METRICS)
    metrics = tuple((f"m{row:02}", "o") for row in range(count))
    cells = tuple((f"{item}", f"{system}") for item, system in zip(items, design.systems, strict=True))
    return Sample(
        name, "turn", "turn", "Overall", metrics, scores, ("a",), ratings[np.newaxis], ratings, design, items, cells,
        tuple(map(str, range(len(drawn.turn)))), (1.0,) * count, (0,) * count, ("drawn",) * count,
    )  # fmt: skip


def cell(setting: str, values: list[float]) -> str:
    mean, error = 100 * np.mean(values), 100 * np.std(values) / np.sqrt(len(values))
    text = f"{mean:.1f} ± {error:.1f}"
    return text if setting == "power" or 4 <= round(mean, 1) <= 6 else f"**{text}**"


def main() -> None:
    cases = {"paired": paired, "pairs": pairs, "overall": board}
    # The shape for `pairs`.
    options = simulated.options(__doc__, [*cases], benchmarks=1000, seed=2026, systems=12, dialogues=12, turns=2)
    shape = {name: getattr(options, name) for name in ("systems", "dialogues", "turns")}
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in each(cases[options.case], options.benchmarks, options.processes, seed=options.seed, **shape):
        for key, share in one.items():
            shares[key].append(share)
    tests = dict.fromkeys(test for test, _ in shares)
    rows = [
        [test, f"{len(shares[test, 'good'])}", *(cell(name, shares[test, name]) for name in SETTINGS)] for test in tests
    ]
    table([options.case, "benchmarks", *SETTINGS], rows)


if __name__ == "__main__":
    main()
