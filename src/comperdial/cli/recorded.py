"""The command that takes scores computed elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, output_table


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("recorded", help="take scores of responses or dialogues that were computed elsewhere")
    command.add_argument("folder", type=Path, help="the data set's folder of tables")
    command.add_argument("--name", required=True, help="what to call the metric in the table")
    command.add_argument("--format", required=True, help="`table`, or the name of a project's own (unieval)")
    scores = command.add_mutually_exclusive_group(required=True)
    scores.add_argument("--source", help="the scores: a fetched file of the catalogue, by name")
    scores.add_argument("--path", type=Path, help="the scores: a local file")
    command.add_argument("--about", required=True, help="who computed them, with what: part of the signature")
    command.add_argument("--ratings", type=Path, help="table `ratings`: what was rated, to check the scores by")
    command.add_argument("--output", type=output_table, required=True, help="a .jsonl, .csv or .parquet file")
    add_catalogue(command)
    command.set_defaults(run=_recorded)


def _recorded(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.recorded import import_scores, origin

    if options.source:
        source = load_catalogue(options.catalogue).file(options.source)
        path, made_in = sources.require(source), origin(source)
    else:
        path, made_in = options.path, origin(options.path)
    result = import_scores(
        options.name,
        options.folder,
        path,
        format=options.format,
        origin=made_in,
        about=options.about,
        ratings=options.ratings,
    )
    schema.write(options.output, result, "scores")
