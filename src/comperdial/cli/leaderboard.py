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
    board = Leaderboard(options.board, load_catalogue(options.catalogue))
    if options.texts:
        if options.texts.suffix != ".jsonl" or not options.template:
            raise ConfigError(f"{options.texts}", where="--texts", expected="--template, and a name ending in .jsonl")
        write_table(options.texts, board.texts())
    if options.template:
        sys.stdout.write(board.template().to_csv(index=False, lineterminator="\n"))
        return
    scores = board.read(options.files) if options.files else schema.empty("scores")
    if len(scores):
        counts = board.rated.groupby("dataset").size().to_frame("rated")
        counts = counts.join(scores.groupby(["dataset", "metric"]).size().unstack("metric"))
        sys.stdout.write(f"Items with a score:\n\n{counts.fillna(0).astype(int).to_string()}\n\n")
    table = board.ranking(scores, resamples=options.resamples, seed=2024)
    sys.stdout.write(render.text(table))
    if options.output:
        write_text(options.output, _FORMS[options.output.suffix](table))
