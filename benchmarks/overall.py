"""How often the test of the overall ranking rejects at 5 % when two metrics are equally good, and its time against plain loops.

A board of three data sets is drawn (simulated.py; SIMULATED raters): 8, 12 and 20 systems in 12 dialogues of 2 turns, Spearman
over responses, acc_eq within contexts, and pairwise accuracy of all systems together. Three metrics of a setting have the same
parameters, so that each rejection is a mistake; `power` is no null. `OMP_NUM_THREADS=1 python benchmarks/overall.py --benchmarks
1000`.
"""

from __future__ import annotations

import numpy as np
import simulated
from paired import SETTINGS, parts
from simulated import demo, draw

from comperdial.evaluation.overall import OVERALL, Board, overall
from comperdial.evaluation.samples import Sample
from comperdial.stats.correlation import ALPHA
from comperdial.stats.design import Design

SYSTEMS, DIALOGUES, TURNS = {"a": 8, "b": 12, "c": 20}, 12, 2
BOARD = Board.of(
    "drawn",
    [
        {"measure": "spearman", "datasets": [*SYSTEMS]},
        {"measure": "acc_eq", "grouping": "item", "datasets": [*SYSTEMS]},
        {"measure": "accuracy", "grouping": "pooled", "together": True, "datasets": [*SYSTEMS]},
    ],
)


def sample_of(name: str, systems: int, rng: np.random.Generator) -> Sample:
    """Draw a data set."""
    metrics = [metric for metrics in SETTINGS.values() for metric in metrics]
    drawn = draw(rng, metrics, *demo(), systems=systems, dialogues=DIALOGUES, turns=TURNS)
    system, dialogue, turn = (axis.ravel() for axis in np.indices(drawn.turn.shape))
    ratings, count = drawn.turn.ravel(), len(metrics)
    names = tuple((f"m{row:02}", "o") for row in range(count))
    return Sample(
        name, "turn", "turn", "Overall", names, drawn.scores.reshape(count, -1), ("a",), ratings[np.newaxis], ratings,
        Design(system, dialogue), dialogue * TURNS + turn,
        tuple((f"{d}-{t}", f"{s}") for s, d, t in zip(system, dialogue, turn, strict=True)),
        tuple(map(str, range(systems))), (1.0,) * count, (0,) * count, ("drawn",) * count,
    )  # fmt: skip


def count(benchmark: int, seed: int) -> dict[tuple[str, str], float]:
    """Return the share of pairs rejected on one board, by task and setting."""
    rng = np.random.default_rng([seed, benchmark])
    drawn = {name: sample_of(name, systems, rng) for name, systems in SYSTEMS.items()}
    names = drawn["a"].names
    _, tests = overall(BOARD, drawn, names, resamples=0)
    result = {}
    for task, group in tests.groupby("task"):
        for setting, part in parts().items():
            chosen = {name for name, _ in names[part]}
            pairs = group[group["metric_a"].isin(chosen) & group["metric_b"].isin(chosen)]
            result[str(task), setting] = float((pairs["p"] <= ALPHA).mean())
    return result


def main() -> None:
    options = simulated.options(__doc__, benchmarks=1000, seed=2026)
    shares = simulated.shares(count, options)
    rows = []
    for task in [*(task.name for task in BOARD.tasks), OVERALL]:
        values = [100 * np.array(shares[task, setting]) for setting in SETTINGS]
        rows.append([task, *(f"{part.mean():.1f} ± {part.std() / np.sqrt(len(part)):.1f}" for part in values)])
    print(f"{options.benchmarks} boards: rejections at {ALPHA:.0%} in %, ± one standard error\n")
    simulated.table(["task", *SETTINGS], rows)


if __name__ == "__main__":
    main()
