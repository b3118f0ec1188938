"""How often paired tests between metrics reject at 5 %: when two metrics are equally good, and when one is better.

Prints a Markdown table over benchmarks drawn at random (simulated.py; SIMULATED raters). Under the null the metrics of
a setting are drawn independently with the same parameters, three to a setting, so a benchmark gives three pairs; a test
that holds its level rejects 4 to 6 % of them. `OMP_NUM_THREADS=1 python benchmarks/paired.py --benchmarks 1000`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import candidates
import numpy as np
import simulated
from simulated import Benchmark, Floats, Metric, demo, draw

from comperdial.core.names import LEVELS
from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.comparison import averaged, jackknife_t, williams
from comperdial.stats.correlation import ALPHA, correlate
from comperdial.stats.design import Design
from comperdial.stats.swaps import swap_systems

SETTINGS: dict[str, list[Metric]] = {
    "as the demo's": [Metric()] * 3,
    "good": [Metric(system=0.15, dialogue=0.15, cell=0.15, noise=0.5)] * 3,
    "skewed": [Metric(skewed=True)] * 3,
    "no likes": [Metric(system=0, dialogue=0, cell=0)] * 3,
    "power": [Metric(), Metric(truth=0.7)],
}
RESAMPLES = 299
# Kendall takes long, and so do the candidates that are no default: every so many benchmarks.
KENDALL_EVERY = {"turn": 10, "dialogue": 2, "system": 2}
OTHERS_EVERY = 10

LABELS = {
    "jackknife": "jackknife t, two-way",
    "influence": "influence t, two-way",
    "flip_dialogues": "dialogues swapped, divided by two-way error",
    "units": "PERM-BOTH: units swapped",
    "cells": "cells swapped",
    "systems": "systems swapped",
    "dialogues": "dialogues swapped",
    "product": "product of system's and dialogue's sign",
    "williams": "Williams",
}

Key = tuple[str, str, str, str]
Test = Callable[[Floats, Floats, Design, str], Floats]


def parts() -> dict[str, slice]:
    """Where the metrics of each setting lie."""
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


def williams_p(scores: Floats, ratings: Floats, design: Design, name: str) -> Floats:
    """Williams' test with n = points correlated, as if they were independent."""
    if design.average:
        sizes = np.bincount(design.systems)
        scores = np.stack([np.bincount(design.systems, row) / sizes for row in scores])
        ratings = np.bincount(design.systems, ratings) / sizes
    values = np.array([correlate(row, ratings, name).value for row in scores])
    between = np.array([[correlate(a, b, name).value for a in scores] for b in scores])
    return williams(values[:, None], values, between, len(ratings))


def swapped(scores: Floats, ratings: Floats, design: Design, name: str, scheme: str = "units") -> Floats:
    if scheme == "systems" and design.average and name != "pearson":
        means, target, _ = averaged(scores, ratings, design)
        return swap_systems(means, target, name, RESAMPLES, seed=0, most=0)[0]
    return candidates.swapped(scores, ratings, design, name, scheme, RESAMPLES, seed=0)


def jackknife(scores: Floats, ratings: Floats, design: Design, name: str) -> Floats:
    return jackknife_t(*(averaged(scores, ratings, design) if design.average else (scores, ratings, design)), name)[1]


def flipped(scores: Floats, ratings: Floats, design: Design, name: str) -> Floats:
    return candidates.flip_dialogues(scores, ratings, design, name, RESAMPLES, seed=0)


def tests(level: str, name: str, benchmark: int) -> Iterator[tuple[str, Test, bool]]:
    """Yield the tests to count at a level: a label, the test, and whether it takes all metrics at once cheaply.

    The first is what `compare` does unless told otherwise.
    """
    if name == "kendall" and benchmark % KENDALL_EVERY[level]:
        return
    swaps = level == "system" and name != "pearson"
    if swaps:
        yield "systems", partial(swapped, scheme="systems"), False
    else:
        yield "jackknife", jackknife, True
    if benchmark % OTHERS_EVERY:
        return
    if swaps:
        yield "jackknife", jackknife, True
    elif level == "system":
        yield "systems", partial(swapped, scheme="systems"), False
    yield "influence", candidates.influence_t, True
    yield "williams", williams_p, False
    if level != "system":
        yield "flip_dialogues", flipped, False
    if name != "kendall" or level == "system":
        schemes = ("units",) if level == "system" else ("units", "cells", "systems", "dialogues", "product")
        for scheme in schemes:
            # Ranks of swapped scores are made anew for each pair: of pairs that are counted only.
            yield scheme, partial(swapped, scheme=scheme), level != "system" and name != "spearman"


def count(benchmark: int, seed: int) -> dict[Key, float]:
    """Return the share of pairs rejected in one benchmark, by test, level, coefficient and setting."""
    rng = np.random.default_rng([seed, benchmark])
    drawn = draw(rng, [metric for metrics in SETTINGS.values() for metric in metrics], *demo())
    found: dict[Key, float] = {}
    for level in LEVELS:
        scores, ratings, design = cells_of(level, drawn)
        for name in NAMES:
            for label, test, at_once in tests(level, name, benchmark):
                whole = test(scores, ratings, design, name) if at_once else None
                for setting, part in parts().items():
                    p = test(scores[part], ratings, design, name) if whole is None else whole[part, part]
                    pairs = p[np.triu_indices(len(p), 1)]
                    found[label, level, name, setting] = float(np.mean(pairs <= ALPHA))
    return found


def table(shares: dict[Key, list[float]]) -> str:
    """Set the means as a Markdown table; what lies outside 4 to 6 % under the null is in bold."""
    lines = [
        "| level | coefficient | test | benchmarks | " + " | ".join(SETTINGS) + " |",
        "|:--|:--|:--|--:|" + "--:|" * len(SETTINGS),
    ]
    for level in LEVELS:
        for name in NAMES:
            for label, words in LABELS.items():
                default = label == ("systems" if level == "system" and name != "pearson" else "jackknife")
                rows = [shares.get((label, level, name, setting)) for setting in SETTINGS]
                if any(row is None for row in rows):
                    continue
                values = [np.array(row) for row in rows if row is not None]
                texts = [_cell(setting, value) for setting, value in zip(SETTINGS, values, strict=True)]
                lines.append(
                    f"| {level} | {name} | {words}{', the default' if default else ''} | {len(values[0])} | "
                    + " | ".join(texts)
                    + " |"
                )
    return "\n".join(lines)


def _cell(setting: str, values: Floats) -> str:
    mean, error = 100 * values.mean(), 100 * values.std() / np.sqrt(len(values))
    text = f"{mean:.1f} ± {error:.1f}"
    return text if setting == "power" or 4 <= round(mean, 1) <= 6 else f"**{text}**"


def main() -> None:
    options = simulated.options(__doc__, benchmarks=1000, seed=2026)
    shares = simulated.shares(count, options)
    print(f"Rejections at {ALPHA:.0%} in percent, ± one standard error, {RESAMPLES} swaps; bold: outside 4 to 6 %.\n")
    print(table(shares))


if __name__ == "__main__":
    main()
