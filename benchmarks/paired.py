"""How often paired tests between metrics reject at 5 %: when two metrics are equally good, and when one is better.

Prints a Markdown table over benchmarks drawn at random (simulated.py; SIMULATED raters). Under the null the metrics of
a setting are drawn independently with the same parameters, three to a setting, so a benchmark gives three pairs; a test
that holds its level rejects 4 to 6 % of them. `OMP_NUM_THREADS=1 python benchmarks/paired.py --benchmarks 1000`.
"""

from __future__ import annotations

import numpy as np
import simulated
from simulated import Benchmark, Floats, Metric, demo, draw, table

from comperdial.core.names import LEVELS
from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design
from comperdial.stats.swaps import swapped_differences

SETTINGS: dict[str, list[Metric]] = {
    "as the demo's": [Metric()] * 3,
    "good": [Metric(system=0.15, dialogue=0.15, cell=0.15, noise=0.5)] * 3,
    "skewed": [Metric(skewed=True)] * 3,
    "no likes": [Metric(system=0, dialogue=0, cell=0)] * 3,
    "power": [Metric(), Metric(truth=0.7)],
}
RESAMPLES = 299
# Kendall takes long, and so does PERM-BOTH, which is no default: every so many benchmarks.
KENDALL_EVERY = {"turn": 10, "dialogue": 2, "system": 2}
PERM_BOTH_EVERY = 10
DEFAULT, PERM_BOTH = "the default", "PERM-BOTH: units swapped"

Key = tuple[str, str, str, str]


def parts() -> dict[str, slice]:
    """Return where the metrics of each setting are."""
    ends = np.cumsum([len(metrics) for metrics in SETTINGS.values()])
    return {
        name: slice(int(end) - len(metrics), int(end))
        for (name, metrics), end in zip(SETTINGS.items(), ends, strict=True)
    }


def cells_of(level: str, drawn: Benchmark) -> tuple[Floats, Floats, Design]:
    """Return scores (metrics, n), ratings and design of a level; systems are rated by turn."""
    scores, ratings = drawn.scores, drawn.turn
    if level == "dialogue":
        scores, ratings = scores.mean(axis=3), drawn.dialogue
    systems, dialogues, *_ = (axis.ravel() for axis in np.indices(ratings.shape))
    return scores.reshape(len(scores), -1), ratings.ravel(), Design(systems, dialogues, level == "system")


def count(benchmark: int, seed: int) -> dict[Key, float]:
    """Return the share of pairs rejected in one benchmark, by test, level, coefficient and setting."""
    rng = np.random.default_rng([seed, benchmark])
    drawn = draw(rng, [metric for metrics in SETTINGS.values() for metric in metrics], *demo())
    both = benchmark % PERM_BOTH_EVERY == 0
    rates: dict[Key, float] = {}
    for level in LEVELS:
        scores, ratings, design = cells_of(level, drawn)
        for name in NAMES:
            if name == "kendall" and benchmark % KENDALL_EVERY[level]:
                continue
            swaps = level == "system" and name != "pearson"
            for setting, part in parts().items():
                tested = compare(
                    scores[part], ratings, design, name, resamples=RESAMPLES if swaps else 0, seed=benchmark
                )
                pairs = np.triu_indices(len(tested.p), 1)
                rates[DEFAULT, level, name, setting] = float(np.mean(tested.p[pairs] <= ALPHA))
                if both and not design.average and name != "kendall":
                    items, rng = np.arange(len(ratings)), np.random.default_rng(benchmark)
                    swapped = [
                        swapped_differences(
                            scores[part][[a, b]], ratings, design, items, name, None, resamples=RESAMPLES, rng=rng
                        )
                        >= abs(tested.difference[a, b])
                        for a, b in zip(*pairs, strict=True)
                    ]
                    rates[PERM_BOTH, level, name, setting] = float(np.mean(np.mean(swapped, axis=1) <= ALPHA))
    return rates


def cell(setting: str, values: list[float]) -> str:
    """Write a mean with its standard error; bold where a null is rejected in less than 4 or more than 6 %."""
    mean, error = 100 * np.mean(values), 100 * np.std(values) / np.sqrt(len(values))
    text = f"{mean:.1f} ± {error:.1f}"
    return text if setting == "power" or 4 <= round(mean, 1) <= 6 else f"**{text}**"


def main() -> None:
    options = simulated.options(__doc__, benchmarks=1000, seed=2026)
    shares = simulated.shares(count, options)
    print(f"Rejections at {ALPHA:.0%} in percent, ± one standard error, {RESAMPLES} swaps; bold: outside 4 to 6 %.\n")
    rows = []
    for key in dict.fromkeys(key[:3] for key in shares):
        values = {setting: shares[*key, setting] for setting in SETTINGS}
        drawn = str(len(next(iter(values.values()))))
        rows.append([*key, drawn, *(cell(setting, of) for setting, of in values.items())])
    table(["test", "level", "coefficient", "benchmarks", *SETTINGS], rows)


if __name__ == "__main__":
    main()
