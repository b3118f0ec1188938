"""The command that takes answers that others have of a judge."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, json_object


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command below ``judge``."""
    kind = what.add_parser("import", help="take a judge's answers that others recorded: into the ledger, and as scores")
    kind.add_argument("folder", type=Path, help="the data set's folder of tables")
    kind.add_argument("--name", required=True, help="what to call the judge and its metric")
    kind.add_argument("--format", required=True, help="chiang2023, gpt4_rounds, …")
    kind.add_argument("--model", required=True, help="the model, as the source names it")
    kind.add_argument("--prompt", required=True, help="the prompt's name")
    kind.add_argument(
        "--sources", type=json_object, required=True, metavar="JSON", help="fetched files of the catalogue"
    )
    kind.add_argument("--ledger", type=Path, default=Path("data/ledger"), help="default: data/ledger")
    kind.add_argument("--output", type=Path, required=True, help="the scores: a .parquet file")
    kind.add_argument("--judgements", type=Path, help="what each answer says: a .parquet file")
    kind.add_argument("--coverage", type=Path, help="a CSV of how many answers can be read, and how they agree")
    add_catalogue(kind)
    kind.set_defaults(run=_import)


def _import(options: argparse.Namespace) -> None:
    from comperdial.judging.answers.taking import take_answers

    take_answers(
        {name: getattr(options, name) for name in ("name", "format", "model", "prompt")},
        options.sources,
        options.folder,
        options.output,
        catalogue=options.catalogue,
        ledger=options.ledger,
        judgements_to=options.judgements,
        coverage_to=options.coverage,
    )
