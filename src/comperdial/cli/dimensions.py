"""Commands of studies of judges: correlations by rated dimension, and robustness ratios."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from comperdial.cli.common import READ, WRITE, Commands, Run, add_command, json_object, output_table
from comperdial.core.errors import UnknownNameError
from comperdial.core.files import read_json
from comperdial.core.names import output_name


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    about = "correlate scores with ratings of each dimension, by who rated"
    add = _command(commands, "dimensions", _dimensions, about).add_argument
    add("--study", **READ, help="a study.yaml: its ensembles, resamples and seed")
    what = "scores that get intervals on all dimensions; default: all"
    add("--outputs", nargs="*", metavar="METRIC:OUTPUT", help=what)
    what = 'in place of the study\'s: {"dimensions": [METRIC, …], "models": {NAME: [METRIC:OUTPUT or METRIC, …]}}'
    add("--ensembles", type=json_object, metavar="JSON", help=what)
    add("--resamples", type=int, help="for intervals (default: the study's, or 1000); 0: no intervals")
    add("--seed", type=int, help="of all that is drawn (default: the study's, or 2024)")
    add("--between", **WRITE, help="write how a rater's dimensions agree")

    add = _command(commands, "ratios", _ratios, "how often scores fall when responses are made worse").add_argument
    what = "the lowest and highest score: {METRIC: {OUTPUT: [LOW, HIGH]}}; without them only threshold 0"
    add("--bounds", type=json_object, default={}, metavar="JSON", help=what)
    add("--about", **READ, help="the data set's about.json, which has the bounds")


def _command(commands: Commands, name: str, run: Run, about: str) -> ArgumentParser:
    command = add_command(commands, name, run, about)
    add = command.add_argument
    add("scores", type=Path, nargs="+", help="tables `scores` of one data set")
    add("--tables", type=Path, required=True, metavar="FOLDER", help="the data set's tables")
    add("--output", type=output_table, required=True, help="a .parquet, .csv or .jsonl file")
    return command


def _dimensions(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.config import load_yaml
    from comperdial.evaluation.dimensions import between_dimensions, dimension_correlations
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.evaluation.samples import Tables

    study: dict[str, Any] = {"resamples": 1000, "seed": 2024} | (load_yaml(options.study) if options.study else {})
    given = {name: getattr(options, name) for name in ("ensembles", "resamples", "seed")}
    study |= {name: value for name, value in given.items() if value is not None}
    tables = Tables.read(options.tables, options.scores)
    scores = tables.scores
    ensembles = Ensembles.of(study.get("ensembles") or {}, sorted({*scores["metric"]}), study.get("variants"))
    outputs = None if options.outputs is None else {output_name(name, where="--outputs") for name in options.outputs}
    # A recorded judge is called as the source of its ratings.
    own = {name: entry["model"] for name, entry in (study.get("recorded_judges") or {}).items()}
    drawing = {"resamples": study["resamples"], "seed": study["seed"]}
    table = dimension_correlations(tables, ensembles=ensembles, outputs=outputs, own=own, **drawing)
    if options.between:
        others = replace(tables, scores=scores[~scores["metric"].isin(list(own))])
        schema.write(options.between, between_dimensions(others, ensembles), "between_dimensions")
    schema.write(options.output, table, "dimension_correlations")


def _ratios(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation.aggregate import read_scores
    from comperdial.evaluation.ratios import bounds_of, ratios, read_pairs
    from comperdial.perturbations import PERTURBATIONS

    bounds = bounds_of(options.bounds or (read_json(options.about)["bounds"] if options.about else {}))
    contexts, pairs = read_pairs(options.tables)
    scores = read_scores(options.scores)
    known = {*zip(scores["metric"], scores["output"], strict=True)}
    if options.bounds and (unknown := sorted(":".join(name) for name in bounds.keys() - known)):
        raise UnknownNameError("output", unknown[0], sorted(map(":".join, known)), where="--bounds")
    schema.write(options.output, ratios(contexts, pairs, scores, PERTURBATIONS, bounds=bounds), "ratios")
