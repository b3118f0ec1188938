"""Recorded answers of a judge: into the ledger, and out of it as scores, judgements and a table of how many can be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from comperdial import schema
from comperdial.core.files import write_text
from comperdial.data import sources
from comperdial.data.catalogue import load_catalogue
from comperdial.data.recorded.base import Rated
from comperdial.data.recorded.entries import origin
from comperdial.judges.ledger import Ledger
from comperdial.judging.answers import find
from comperdial.judging.answers.coverage import coverage
from comperdial.judging.answers.importing import RecordedJudge, import_answers, ratings, scores
from comperdial.judging.answers.singles import judgements


def take_answers(
    judge: Mapping[str, str],
    files: Mapping[str, str],
    folder: Path,
    output: Path,
    *,
    catalogue: Path,
    ledger: Path,
    judgements_to: Path | None = None,
    coverage_to: Path | None = None,
) -> None:
    """Take a judge's recorded answers about a data set.

    Parameters
    ----------
    judge
        Its ``name``, the ``format`` of the files, the ``model`` and the ``prompt``.
    files
        Fetched files of the catalogue by what the format calls them.
    folder
        The data set's tables.
    output
        Table ``scores``.
    judgements_to, coverage_to
        Table ``judgements``, and a CSV of how many answers can be read and how they agree with people.
    """
    known = load_catalogue(catalogue)
    found = {name: known.file(source) for name, source in files.items()}
    recorded = RecordedJudge(
        judge["name"],
        judge["format"],
        judge["model"],
        judge["prompt"],
        {name: sources.require(file) for name, file in found.items()},
        {name: origin(file) for name, file in found.items()},
    )
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    reader = find(recorded.format)
    table = f"{reader.level}_ratings"
    human = schema.read(folder / f"{table}.parquet", table)
    rated = Rated(**tables, ratings=human if reader.level == "turn" else None)
    book = Ledger(ledger)
    import_answers(recorded, book, rated.dataset, rated)
    schema.write(output, scores(recorded, book, rated), "scores")
    read = ratings(recorded, book, rated.dataset, rated)
    if judgements_to:
        schema.write(judgements_to, judgements(recorded, read, rated), "judgements")
    if coverage_to:
        counted = coverage(recorded.name, read, human, reader.targets)
        write_text(coverage_to, counted.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
