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
    command = _command(commands, "dimensions", "correlate scores with ratings of each dimension, by who rated")
    add = command.add_argument
    add("--study", type=Path, metavar="FILE", help="a study.yaml: its ensembles, resamples and seed")
    intervals = "scores that get intervals on all dimensions; default: all"
    add("--outputs", nargs="*", metavar="METRIC:OUTPUT", help=intervals)
    ensembles = '{"dimensions": [METRIC, …], "models": {NAME: [METRIC:OUTPUT or METRIC, …]}}'
    add("--ensembles", type=json_object, metavar="JSON", help=f"in place of the study's: {ensembles}")
    add("--resamples", type=int, help="for intervals (default: the study's, or 1000); 0: no intervals")
    add("--seed", type=int, help="of all that is drawn (default: the study's, or 2024)")
    add("--between", type=output_table, metavar="FILE", help="write how a rater's dimensions agree")
    command.set_defaults(run=_dimensions)

    command = _command(commands, "ratios", "how often scores fall when responses are made worse")
    add = command.add_argument
    bounds = "the lowest and highest score: {METRIC: {OUTPUT: [LOW, HIGH]}}; without them only threshold 0"
    add("--bounds", type=json_object, default={}, metavar="JSON", help=bounds)
    add("--about", type=Path, metavar="FILE", help="the data set's about.json, which has the bounds")
    command.set_defaults(run=_ratios)


def _command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:  # noqa: ANN401
    command: argparse.ArgumentParser = commands.add_parser(name, help=about)
    command.add_argument("scores", type=Path, nargs="+", help="tables `scores` of one data set")
    command.add_argument("--tables", type=Path, required=True, metavar="FOLDER", help="the data set's tables")
    command.add_argument("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")
    return command


def _scores(paths: list[Path], dataset: str) -> pd.DataFrame:
    from comperdial.core.errors import SchemaError
    from comperdial.evaluation.aggregate import read_scores

    scores = read_scores(paths)
    if others := sorted({*scores["dataset"]} - {dataset}):
        raise SchemaError(f"scores of data set {others[0]!r}", where="--tables", expected=f"scores of {dataset!r}")
    return scores


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
    chosen = options.ensembles if options.ensembles is not None else study.get("ensembles") or {}
    ensembles = Ensembles.of(chosen, sorted(scores["metric"].unique()), study.get("variants"))
    outputs = options.outputs
    # A recorded judge is called as the source of its ratings.
    own = {name: entry["model"] for name, entry in (study.get("recorded_judges") or {}).items()}
    table = dimension_correlations(
        rated,
        scores,
        ensembles=ensembles,
        outputs=None if outputs is None else {output_name(name, where="--outputs") for name in outputs},
        own=own,
        resamples=study.get("resamples", 1000) if options.resamples is None else options.resamples,
        seed=study.get("seed", 2024) if options.seed is None else options.seed,
    )
    if options.between:
        others = scores[~scores["metric"].isin(list(own))]
        schema.write(options.between, between_dimensions(rated, others, ensembles), "between_dimensions")
    schema.write(options.output, table, "dimension_correlations")


def _ratios(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import read_json
    from comperdial.evaluation.ratios import bounds_of, ratios, read_pairs
    from comperdial.perturbations import PERTURBATIONS

    bounds = bounds_of(options.bounds or (read_json(options.about)["bounds"] if options.about else {}))
    contexts, pairs = read_pairs(options.tables)
    scores = _scores(options.scores, str(pairs["dataset"].iloc[0]))
    schema.write(options.output, ratios(contexts, pairs, scores, PERTURBATIONS, bounds=bounds), "ratios")
