"""How often the tests of statistics within items, within systems and of pairs of systems reject at 5 %, as paired.py counts it.

Three metrics of a setting are drawn with the same parameters, so that each rejection is a mistake; `power` is no null. Ranks
are checked against their tests, too. `OMP_NUM_THREADS=1 python benchmarks/grouped.py --benchmarks 1000 --systems 20`
(SIMULATED raters).
"""

from __future__ import annotations

import numpy as np
import simulated
from paired import SETTINGS, parts
from simulated import demo, draw

from comperdial.stats import Measure
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design
from comperdial.stats.jackknife import variances
from comperdial.stats.multiple import holm, rank_clusters
from comperdial.stats.pairs import Grouping, replicates
from comperdial.stats.swaps import swap_systems_of_pairs, swapped_differences

WITHIN: tuple[Measure, ...] = ("pearson", "spearman", "kendall", "tau_c", "accuracy", "pairwise_pearson", "acc_eq")
OF_SYSTEMS: tuple[Measure, ...] = ("tau_c", "accuracy", "acc_eq", "spa")
TESTS: list[tuple[Grouping, Measure]] = [
    *(("item", measure) for measure in WITHIN),
    *(("system", measure) for measure in ("pearson", "spearman", "kendall", "acc_eq")),
    *(("pooled", measure) for measure in OF_SYSTEMS),
]
SWAPS = 299


def contradicts(values: np.ndarray, p: np.ndarray) -> bool:
    """Say whether two metrics of one cluster differ significantly."""
    upper = np.triu_indices(len(p), 1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[upper] = holm(p[upper])
    adjusted = np.fmax(adjusted, adjusted.T)
    ranks = rank_clusters(values, adjusted)
    same = ranks[:, np.newaxis] == ranks
    return bool(np.any(same & (adjusted <= ALPHA)))


def count(
    benchmark: int, seed: int, systems: int, dialogues: int, turns: int
) -> dict[tuple[str, str, str, str], float]:
    """Return the share of pairs rejected in one benchmark, by test, grouping, measure and setting."""
    rng = np.random.default_rng([seed, benchmark])
    drawn = draw(
        rng, [metric for metrics in SETTINGS.values() for metric in metrics], *demo(),
        systems=systems, dialogues=dialogues, turns=turns,
    )  # fmt: skip
    system, dialogue, turn = (axis.ravel() for axis in np.indices(drawn.turn.shape))
    design, items = Design(system, dialogue), dialogue * turns + turn
    scores, ratings = drawn.scores.reshape(len(drawn.scores), -1), drawn.turn.ravel()
    result: dict[tuple[str, str, str, str], float] = {}
    for grouping, measure in TESTS:
        whole = replicates(scores, ratings, design, items, [measure], grouping, resamples=SWAPS)[measure]
        drawn_of = variances(whole)
        apart = whole.values[:, np.newaxis] - whole.values
        tested = drawn_of.test(apart, drawn_of.cautious)[0] if grouping != "pooled" else None
        for setting, part in parts().items():
            if tested is None:
                swaps = {"resamples": SWAPS, "seed": benchmark, "most": SWAPS}
                p = swap_systems_of_pairs(scores[part], ratings, design, items, measure, **swaps)
            else:
                p = tested[part, part]
            pairs = p[np.triu_indices(len(p), 1)]
            result["ours", grouping, measure, setting] = float(np.nanmean(pairs <= ALPHA))
            result["contradicted", grouping, measure, setting] = contradicts(whole.values[part], p)
            if measure == "acc_eq" and grouping == "item":
                a, b = part.start, part.start + 1
                null = swapped_differences(
                    scores[[a, b]], ratings, design, items, measure, grouping, resamples=SWAPS, rng=rng
                )
                apart = abs(whole.values[a] - whole.values[b])
                result["pairs swapped (WMT, two-sided)", grouping, measure, setting] = float(
                    np.mean(null >= apart - 1e-12) <= ALPHA
                )
    return result


def main() -> None:
    options = simulated.options(__doc__, benchmarks=1000, seed=2026, systems=20, dialogues=15, turns=3)
    shape = {name: getattr(options, name) for name in ("systems", "dialogues", "turns")}
    shares = simulated.shares(count, options, **shape)
    print(f"{shape}, {options.benchmarks} benchmarks: rejections at {ALPHA:.0%} in %, ± one standard error\n")
    rows = []
    for test, grouping, measure in dict.fromkeys(key[:3] for key in shares):
        if test == "contradicted":
            continue
        values = [100 * np.array(shares[test, grouping, measure, setting]) for setting in SETTINGS]
        cells = [f"{value.mean():.1f} ± {value.std() / np.sqrt(len(value)):.1f}" for value in values]
        rows.append([grouping, measure, test, *cells])
    simulated.table(["grouping", "measure", "test", *SETTINGS], rows)
    wrong = sum(sum(values) for key, values in shares.items() if key[0] == "contradicted")
    print(f"Clusters that hold a significant pair: {wrong:.0f}")


if __name__ == "__main__":
    main()
