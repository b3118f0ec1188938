"""Commands that score responses and correlate scores with ratings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from comperdial.cli.common import json_object
from comperdial.errors import ConfigError


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("metrics", help="list the metrics, their outputs and whether they can run here")
    command.set_defaults(run=_metrics)

    command = commands.add_parser("score", help="score a file of responses, or a folder of tables, with a metric")
    command.add_argument("input", type=Path, help="JSONL, CSV or Parquet with `response`, `references`, …; or a folder")
    command.add_argument("--metric", required=True, metavar="KIND", help="see `comperdial metrics`")
    command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the metric")
    command.add_argument(
        "--options", type=json_object, default={}, metavar="JSON", help="all options as one JSON object"
    )
    command.add_argument("--name", help="what to call the metric in the table; default: its kind")
    _embeddings(command)
    _output(command)
    command.set_defaults(run=_score)

    command = commands.add_parser("correlate", help="correlate scores with human ratings")
    command.add_argument("scores", type=Path, nargs="+", help="tables `scores`, as `comperdial score` writes them")
    command.add_argument("--ratings", type=Path, required=True, help="context_id, system_id, rating, …")
    command.add_argument("--systems", type=Path, help="table `systems`: which of the rated systems are references")
    command.add_argument("--source", default="human", help="whose ratings (default: human)")
    command.add_argument("--level", action="append", choices=["turn", "system"], help="default: both")
    command.add_argument("--target", action="append", help="a rated dimension; default: all")
    _output(command)
    command.set_defaults(run=_correlate)


def _embeddings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--embeddings", type=Path, metavar="FOLDER", help="keep vectors there (default: nowhere)")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", type=Path, help="a .jsonl, .csv or .parquet file; default: CSV on standard output")


def _metrics(_: argparse.Namespace) -> None:
    from comperdial.metrics import create, kinds

    for kind in kinds():
        metric = create(kind)
        print(f"{kind}: {', '.join(metric.outputs)}")
        print(f"    {metric.signature()}")
        if reason := metric.unavailable():
            print(f"    cannot run here: {reason}")


def _metric_options(options: argparse.Namespace) -> dict[str, Any]:
    found = dict(options.options)
    for pair in options.option:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"option {pair!r}", where="--option", expected="NAME=VALUE")
        found[name] = value
    return found


def _emit(frame: Any, output: Path | None, table: str) -> None:  # noqa: ANN401
    from comperdial import schema

    if output:
        schema.write(output, frame, table)
    else:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")


def _score(options: argparse.Namespace) -> None:
    from comperdial import scoring
    from comperdial.metrics import create

    metric = create(options.metric, **_metric_options(options))
    name = options.name or options.metric
    _keep_embeddings(options)
    if options.input.is_dir() and options.output and options.output.suffix == ".parquet":
        scoring.write_scores(metric, name, options.input, options.output)
        return
    run = scoring.score_tables if options.input.is_dir() else scoring.score_file
    _emit(run(metric, name, options.input), options.output, "scores")


def _keep_embeddings(options: argparse.Namespace) -> None:
    if options.embeddings:
        from comperdial.models.encoder import STORE_VARIABLE

        os.environ[STORE_VARIABLE] = str(options.embeddings)


def _correlate(options: argparse.Namespace) -> None:
    from comperdial import aggregate, schema

    scores = aggregate.read_scores(options.scores)
    names = scores["dataset"].unique()
    found = aggregate.correlations(
        scores,
        aggregate.read_ratings(options.ratings, dataset=names[0] if len(names) == 1 else None),
        systems=schema.read(options.systems, "systems") if options.systems else None,
        source=options.source,
        levels=options.level or aggregate.LEVELS,
        targets=options.target,
    )
    _emit(found, options.output, "correlations")
