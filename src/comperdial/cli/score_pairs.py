"""The command that scores a sample of pairs of an answer and a worse one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import json_object, output_table, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser(
        "score-pairs", help="score a sample of pairs, and how often the original's score is higher"
    )
    command.add_argument("tables", type=Path, help="a folder of pairs, as `comperdial perturb` makes one")
    command.add_argument(
        "--metrics", type=json_object, required=True, metavar="JSON", help='{NAME: {"kind": KIND, OPTION: VALUE, …}}'
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
    from comperdial.metrics import create
    from comperdial.perturbations import PERTURBATIONS

    found = score_pairs(
        options.tables,
        {
            name: create(entry["kind"], **{key: value for key, value in entry.items() if key != "kind"})
            for name, entry in options.metrics.items()
        },
        options.output,
        strategies=options.kinds,
        sample=options.sample,
        seed=options.seed,
        perturbations=PERTURBATIONS,
    )
    schema.write(options.ratios, found, "ratios")
