"""The command that ranks a metric of one's own among those that run here, over all data sets."""

from __future__ import annotations

import argparse
import sys

from comperdial import schema
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_table, write_text
from comperdial.data.catalogue import load_catalogue
from comperdial.report import render
from comperdial.studies.leaderboard import Leaderboard

_FORMS = {
    ".html": render.page,
    ".md": render.markdown,
    ".csv": render.csv,
    ".tex": lambda table: render.latex(table, "tab:leaderboard"),
}


def leaderboard(options: argparse.Namespace) -> None:
    """Rank the metrics of files among those of a board, or write what there is to score."""
    if options.output and options.output.suffix not in _FORMS:
        raise ConfigError(f"{options.output}", where="--output", expected=f"a name ending in {', '.join(_FORMS)}")
    catalogue = load_catalogue(options.catalogue)
    board = Leaderboard(options.board, catalogue, options.tables, options.results, options.boards)
    if options.texts:
        if options.texts.suffix != ".jsonl" or not options.template:
            raise ConfigError(f"{options.texts}", where="--texts", expected="--template, and a name ending in .jsonl")
        write_table(options.texts, board.texts())
    if options.template:
        sys.stdout.write(board.template().to_csv(index=False, lineterminator="\n"))
        return
    scores = board.read(options.files) if options.files else schema.empty("scores")
    incomplete = []
    for metric, own in scores.groupby("metric"):
        section, complete = board.coverage(own)
        sys.stdout.write(render.text(render.Table(str(metric), own["signature"].iloc[0], own, [section])) + "\n")
        incomplete += [] if complete else [str(metric)]
    if incomplete and options.missing is None:
        raise ConfigError(
            f"not all rated items have a score of {', '.join(incomplete)}",
            expected="all of them, or --missing left-out or --missing worst",
            hint="left-out: they do not count, and a task without any score leaves the metric out of the overall ranking; "
            "worst: such a task counts with the worst value of any metric",
        )
    table = board.ranking(scores, resamples=options.resamples, seed=2024, missing=options.missing)
    sys.stdout.write(render.text(table))
    if options.output:
        write_text(options.output, _FORMS[options.output.suffix](table))
