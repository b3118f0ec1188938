"""Commands for ratings by people: tasks for Label Studio, and its exports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.core.names import RATED_LEVELS


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("annotate", help="have people rate responses and dialogues in Label Studio")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = parts.add_parser("export", help="turn a folder of tables into Label Studio projects")
    command.add_argument("folder", type=Path, help="holds systems, contexts, responses, personas as Parquet")
    command.add_argument("--output", type=Path, required=True, help="a folder")
    command.add_argument("--level", action="append", choices=RATED_LEVELS, help="may be given twice; default: both")
    command.add_argument("--systems", nargs="+", metavar="SYSTEM", help="default: all but the references")
    command.add_argument("--sample", type=int, metavar="N", help="how many dialogues to draw; default: all")
    command.add_argument("--seed", type=int, default=0, help="of items' names, sample and order; default: 0")
    command.set_defaults(run=_export)

    command = parts.add_parser("import", help="turn exports of Label Studio into a table of ratings")
    command.add_argument("exports", type=Path, nargs="+", metavar="EXPORT", help="a project's JSON or JSON-MIN")
    command.add_argument("--key", type=Path, required=True, help="the key.csv written with the tasks")
    command.add_argument("--level", choices=RATED_LEVELS, required=True)
    command.add_argument("--output", type=Path, required=True, help="a .parquet, .csv or .jsonl file")
    command.set_defaults(run=_import)


def _export(options: argparse.Namespace) -> None:
    from comperdial.challenge import annotation

    counts = annotation.export(
        options.folder,
        options.output,
        levels=options.level or RATED_LEVELS,
        systems=options.systems,
        sample=options.sample,
        seed=options.seed,
    )
    for level, count in counts.items():
        print(f"{options.output / level}: {count} tasks")


def _import(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge import annotation

    ratings = annotation.read_ratings(options.exports, options.key, options.level)
    schema.write(options.output, ratings, annotation.LEVELS[options.level].table)
    print(f"{options.output}: {len(ratings)} records of {ratings['dimension'].nunique()} dimensions")
