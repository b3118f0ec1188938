"""The command that scores a sample of pairs of an answer and a worse one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_table, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser(
        "score-pairs", help="score a sample of pairs, and how often the original's score is higher"
    )
    command.add_argument("tables", type=Path, help="a folder of pairs, as `comperdial perturb` makes one")
    command.add_argument(
        "--metrics", nargs="+", required=True, metavar="NAME", help="names of params.yaml or kinds; those that run here"
    )
    command.add_argument("--kinds", nargs="+", required=True, metavar="PERTURBATION", help="which kinds of pairs")
    command.add_argument("--sample", type=whole(1), default=400, help="the most pairs of a kind (default: 400)")
    command.add_argument("--seed", type=whole(0), default=2024, help="of the draw (default: 2024)")
    command.add_argument("--output", type=output_table, required=True, metavar="FILE", help="table `scores`, .parquet")
    command.add_argument("--ratios", type=output_table, required=True, metavar="FILE", help="table `ratios`")
    command.set_defaults(run=_score_pairs)


def _score_pairs(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation.ratios import score_pairs
    from comperdial.metrics.named import metric_named, read_entries
    from comperdial.perturbations import PERTURBATIONS

    entries = read_entries()
    metrics = {name: metric_named(name, entries) for name in options.metrics}
    not_run = {name: why for name, metric in metrics.items() if (why := metric.unavailable())}
    for name, why in not_run.items():
        print(f"{name}: not run: {why}", file=sys.stderr)
    ratios = score_pairs(
        options.tables,
        {name: metric for name, metric in metrics.items() if name not in not_run},
        options.output,
        strategies=options.kinds,
        sample=options.sample,
        seed=options.seed,
        perturbations=PERTURBATIONS,
    )
    schema.write(options.ratios, ratios, "ratios")
