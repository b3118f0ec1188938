"""Commands of the study of judges: correlations by rated dimension, and robustness ratios."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import json_object, output_table


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("dimensions", help="correlate scores with ratings of each dimension, by who rated")
    _inputs(command)
    command.add_argument(
        "--outputs",
        nargs="*",
        metavar="METRIC:OUTPUT",
        help="scores that get intervals on all dimensions; default: all",
    )
    command.add_argument(
        "--ensembles",
        type=json_object,
        default={},
        metavar="JSON",
        help='{"dimensions": [METRIC, …], "models": {NAME: [METRIC:OUTPUT or METRIC, …]}}',
    )
    command.add_argument(
        "--own",
        nargs="*",
        type=_own,
        default=[],
        metavar="METRIC=SOURCE",
        help="a metric whose scores are the ratings of a source: it is not held against itself",
    )
    command.add_argument("--resamples", type=int, default=1000, help="for intervals (default: 1000); 0: no intervals")
    command.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    command.add_argument("--rounds", type=output_table, metavar="FILE", help="write how annotators agree, two by two")
    command.set_defaults(run=_dimensions)

    command = commands.add_parser("ratios", help="how often scores fall when responses are made worse")
    _inputs(command)
    command.add_argument(
        "--bounds",
        type=json_object,
        default={},
        metavar="JSON",
        help="the lowest and highest score: {METRIC: {OUTPUT: [LOW, HIGH]}}; without them only threshold 0",
    )
    command.set_defaults(run=_ratios)


def _own(text: str) -> tuple[str, str]:
    """Parse ``METRIC=SOURCE``."""
    metric, _, source = text.rpartition("=")
    if not metric or not source:
        raise argparse.ArgumentTypeError(f"{text!r}; expected METRIC=SOURCE")
    return metric, source


def _inputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("scores", type=Path, nargs="+", help="tables `scores`, of any number of data sets")
    command.add_argument(
        "--tables", type=Path, nargs="+", required=True, metavar="FOLDER", help="one folder of tables a data set"
    )
    command.add_argument("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")


def _dimensions(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation import dimensions
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.evaluation.rounds import rounds

    ensembles = Ensembles.of(options.ensembles)
    outputs = None if options.outputs is None else {dimensions.output_name(name) for name in options.outputs}
    sets = [dimensions.RatedSet.read(folder) for folder in options.tables]
    scores = dimensions.read_scores_by_dataset(options.scores)
    found = dimensions.dimension_correlations(
        sets,
        scores,
        ensembles=ensembles,
        outputs=outputs,
        own=dict(options.own),
        resamples=options.resamples,
        seed=options.seed,
    )
    if options.rounds:
        schema.write(options.rounds, rounds(sets), "rounds")
    schema.write(options.output, found, "dimension_correlations")


def _ratios(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation.dimensions import read_scores_by_dataset
    from comperdial.evaluation.ratios import PairSet, bounds_of, ratios
    from comperdial.perturbations import PERTURBATIONS

    bounds = bounds_of(options.bounds)
    sets = [PairSet.read(folder) for folder in options.tables]
    found = ratios(sets, read_scores_by_dataset(options.scores), PERTURBATIONS, bounds=bounds)
    schema.write(options.output, found, "ratios")
