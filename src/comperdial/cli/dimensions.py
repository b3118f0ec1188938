"""Commands of studies of judges: correlations by rated dimension, and robustness ratios."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import json_object, output_table

if TYPE_CHECKING:
    import pandas as pd


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("dimensions", help="correlate scores with ratings of each dimension, by who rated")
    _inputs(command)
    command.add_argument("--study", type=Path, metavar="FILE", help="a study.yaml: its ensembles, resamples and seed")
    command.add_argument(
        "--outputs",
        nargs="*",
        metavar="METRIC:OUTPUT",
        help="scores that get intervals on all dimensions; default: all",
    )
    command.add_argument(
        "--ensembles",
        type=json_object,
        metavar="JSON",
        help='in place of the study\'s: {"dimensions": [METRIC, …], "models": {NAME: [METRIC:OUTPUT or METRIC, …]}}',
    )
    command.add_argument("--resamples", type=int, help="for intervals (default: the study's, or 1000); 0: no intervals")
    command.add_argument("--seed", type=int, help="of all that is drawn (default: the study's, or 2024)")
    command.add_argument("--between", type=output_table, metavar="FILE", help="write how a rater's dimensions agree")
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
    command.add_argument("--about", type=Path, metavar="FILE", help="the data set's about.json, which has the bounds")
    command.set_defaults(run=_ratios)


def _inputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("scores", type=Path, nargs="+", help="tables `scores` of one data set")
    command.add_argument("--tables", type=Path, required=True, metavar="FOLDER", help="the data set's tables")
    command.add_argument("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")


def _scores(paths: list[Path], dataset: str) -> pd.DataFrame:
    from comperdial.core.errors import SchemaError
    from comperdial.evaluation.aggregate import read_scores

    found = read_scores(paths)
    if others := sorted({*found["dataset"]} - {dataset}):
        raise SchemaError(f"scores of data set {others[0]!r}", where="--tables", expected=f"scores of {dataset!r}")
    return found


def _dimensions(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.config import load_yaml
    from comperdial.core.names import output_name
    from comperdial.evaluation.dimensions import between_dimensions, dimension_correlations
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.evaluation.rated import RatedSet

    study = load_yaml(options.study) if options.study else {}
    rated = RatedSet.read(options.tables)
    scores = _scores(options.scores, rated.dataset)
    ensembles = options.ensembles if options.ensembles is not None else study.get("ensembles") or {}
    made = Ensembles.of(ensembles, sorted(scores["metric"].unique()), study.get("variants"))
    # A recorded judge is called as the source of its ratings.
    own = {name: entry["model"] for name, entry in (study.get("recorded_judges") or {}).items()}
    found = dimension_correlations(
        rated,
        scores,
        ensembles=made,
        outputs=None if options.outputs is None else {output_name(name, where="--outputs") for name in options.outputs},
        own=own,
        resamples=study.get("resamples", 1000) if options.resamples is None else options.resamples,
        seed=study.get("seed", 2024) if options.seed is None else options.seed,
    )
    if options.between:
        others = scores[~scores["metric"].isin(list(own))]
        schema.write(options.between, between_dimensions(rated, others, made), "between_dimensions")
    schema.write(options.output, found, "dimension_correlations")


def _ratios(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import read_json
    from comperdial.evaluation.ratios import bounds_of, ratios, read_pairs
    from comperdial.perturbations import PERTURBATIONS

    bounds = bounds_of(options.bounds or (read_json(options.about)["bounds"] if options.about else {}))
    contexts, pairs = read_pairs(options.tables)
    scores = _scores(options.scores, str(pairs["dataset"].iloc[0]))
    schema.write(options.output, ratios(contexts, pairs, scores, PERTURBATIONS, bounds=bounds), "ratios")
