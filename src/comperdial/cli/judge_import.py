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
    from comperdial import schema, sources
    from comperdial.catalogue import load_catalogue
    from comperdial.files import write_text
    from comperdial.judges.ledger import Ledger
    from comperdial.judging.answers import find
    from comperdial.judging.answers.coverage import coverage
    from comperdial.judging.answers.importing import RecordedJudge, import_answers, ratings, scores
    from comperdial.judging.answers.singles import judgements
    from comperdial.recorded.base import Rated
    from comperdial.recorded.entries import origin

    catalogue = load_catalogue(options.catalogue)
    files = {name: catalogue.file(source) for name, source in options.sources.items()}
    judge = RecordedJudge(
        options.name,
        options.format,
        options.model,
        options.prompt,
        {name: sources.require(file) for name, file in files.items()},
        {name: origin(file) for name, file in files.items()},
    )
    tables = {
        name: schema.read(options.folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")
    }
    reader = find(options.format)
    ratings_table = f"{reader.level}_ratings"
    human = schema.read(options.folder / f"{ratings_table}.parquet", ratings_table)
    rated = Rated(**tables, ratings=human if reader.level == "turn" else None)
    ledger = Ledger(options.ledger)
    import_answers(judge, ledger, rated.dataset, rated)
    schema.write(options.output, scores(judge, ledger, rated), "scores")
    found = ratings(judge, ledger, rated.dataset, rated)
    if options.judgements:
        schema.write(options.judgements, judgements(judge, found, rated), "judgements")
    if options.coverage:
        counted = coverage(judge.name, found, human, reader.targets)
        write_text(options.coverage, counted.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
