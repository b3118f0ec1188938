"""The command that scores a data set with many metrics at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import json_object
from comperdial.cli.evaluate import keep_embeddings
from comperdial.errors import ConfigError
from comperdial.files import check_output


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("score-all", help="score a folder of tables with many metrics in one process")
    command.add_argument("folder", type=Path, help="holds contexts.parquet, responses.parquet and systems.parquet")
    command.add_argument(
        "--metrics",
        type=json_object,
        required=True,
        metavar="JSON",
        help='kind and options of each metric by its name, as in params.yaml: {"f1": {"kind": "f1"}}',
    )
    command.add_argument("--embeddings", type=Path, metavar="FOLDER", help="keep vectors there (default: nowhere)")
    command.add_argument("--output", type=Path, required=True, help="table `scores`, a .parquet file")
    command.set_defaults(run=_score_all)


def _score_all(options: argparse.Namespace) -> None:
    from comperdial import scoring
    from comperdial.metrics import create

    if options.output.suffix != ".parquet":
        raise ConfigError(f"{options.output}: unknown kind of file", where="--output", expected=".parquet")
    check_output(options.output)
    metrics = {}
    for name, entry in options.metrics.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            raise ConfigError(f"{name!r} is {entry!r}", where="--metrics", expected="an object with `kind` and options")
        found = dict(entry)
        metrics[name] = create(found.pop("kind"), **found)
    keep_embeddings(options)
    scoring.score_all(metrics, options.folder, options.output)
