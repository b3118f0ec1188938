"""What 7 million responses and 17 metrics would take on n nodes, computed from what `scale.py` measured.

python benchmarks/on_paper.py --work data/scale

A node is what was measured on: two cores. Seconds of the processor grow from the largest size measured in proportion,
start not counted; wall time is these seconds by the cores that work, for a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from scale import MODEL, NGRAM, ROOT, SHARDED, Work, fit

RESPONSES = 7_000_000
SHARD = 65_536
CORES = 2
NODES = (1, 4, 16, 64)
# benchmarks/README.md, `replay.py replay`: seconds for that many judgements, one process.
REPLAY = 7.5 / 124_740
ALONE = {
    "tables": "build the table of responses",
    "ratings": "simulate ratings (a challenge of people's has none)",
    "correlate": "statistics: `correlate`, five scores detailed",
}
Measured = dict[int, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "data/scale")
    result = Work(parser.parse_args().work).best()
    metrics = [name for name in (*NGRAM, *MODEL) if known(result, name)]
    shards = math.ceil(RESPONSES / SHARD)
    print(f"{RESPONSES:,} responses, {shards} shards of {SHARD:,} a metric, nodes of {CORES} cores.\n")
    print("| stage | from size | core-hours | peak MB | disk, MB | parallel |\n|:--|--:|--:|--:|--:|:--|")
    alone = {name: seconds(result[name], 1) for name in ALONE if known(result, name)}
    for name, cost in alone.items():
        line(ALONE[name], result[name], cost, "no", grows=True)
    scored = {name: seconds(result[name], shards) for name in metrics}
    for name, cost in scored.items():
        line(f"score {name}", result[name], cost, f"{shards} shards")
    merging = 0.0
    if known(result, "merge"):
        merging = seconds(result["merge"], 1)
        line(f"merge {SHARDED}", result["merge"], merging, "one a metric")
    judged = RESPONSES * REPLAY
    print(f"| replay one judge's variant, one sample | 124,740 judgements | {judged / 3600:.2f} | | | no |")
    # One metric's merge is one job; the metrics' merges run beside each other, as many as there are cores.
    serial = sum(alone.values())
    print(f"\n| nodes | scoring {len(metrics)} metrics, h | merges, h | alone, h | all, h | times as fast | at most |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    first = 0.0
    for nodes in NODES:
        # A job of a model takes a node's cores, another takes one; at least as long as one shard of the slowest.
        work = sum(scored.values()) / CORES / nodes
        longest = max((cost / shards / (CORES if name in MODEL else 1) for name, cost in scored.items()), default=0.0)
        rounds = math.ceil(len(metrics) / (CORES * nodes))
        parts = [max(work, longest), merging * rounds, serial]
        first = first or sum(parts)
        # Amdahl: what stays when all that can be shared costs nothing, one merge included.
        most = first / (serial + merging + longest)
        cells = " | ".join(f"{part / 3600:.2f}" for part in [*parts, sum(parts)])
        print(f"| {nodes} | {cells} | {first / sum(parts):.1f} | {most:.1f} |")


def known(result: dict[str, Measured], stage: str) -> bool:
    return 0 in result.get(stage, {}) and max(result[stage]) > 0


def seconds(measured: Measured, jobs: int) -> float:
    """Return the processor's seconds for all: jobs * start + responses * (cpu - start) / (responses measured)."""
    start, most = measured[0], measured[max(measured)]
    each = (most["cpu"] - start["cpu"]) / (most["responses"] - start["responses"])
    return jobs * start["cpu"] + RESPONSES * each


def line(name: str, measured: Measured, cost: float, parallel: str, *, grows: bool = False) -> None:
    """Print a stage. A shard is no larger than what was measured, so its memory is at most the largest seen."""
    most = measured[max(measured)]
    memory = f"{most['mb']:.0f}"
    line_of = fit(measured)
    if grows and "c" in line_of:
        memory = f"{line_of['b'] + line_of['c'] * RESPONSES / 1e6:.0f} if it grows on"
    disk = most["bytes"] / most["responses"] * RESPONSES / 1e6
    print(f"| {name} | {max(measured)}x | {cost / 3600:.2f} | {memory} | {disk:.0f} | {parallel} |")


if __name__ == "__main__":
    main()
