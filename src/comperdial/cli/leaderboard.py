"""The command that ranks a metric of one's own among those that run here, over all data sets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, output_file, whole
from comperdial.core.errors import ConfigError

_FORMS = (".html", ".md", ".csv", ".tex")
BOARDS = Path("studies/overall/boards.yaml")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser(
        "leaderboard", help="rank your metric's scores among the metrics here, over all data sets"
    )
    command.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="scores: dataset, level, item_id, system_id, value"
    )
    command.add_argument("--board", default="responses", help="responses, references or dialogues (default: responses)")
    command.add_argument("--template", action="store_true", help="print the file to fill in, and do nothing else")
    command.add_argument(
        "--texts", type=Path, metavar="FILE", help="with --template: write the texts to score as JSONL"
    )
    command.add_argument(
        "--missing",
        choices=("left-out", "worst"),
        help="a metric without scores on a task is left out, or given its worst value",
    )
    command.add_argument("--output", type=output_file, help=f"write the ranking, too: {', '.join(_FORMS)}")
    command.add_argument(
        "--resamples", type=whole(0), default=1000, help="swaps of WMT's test (default: 1000; 0: without that test)"
    )
    command.add_argument("--boards", type=Path, default=BOARDS, metavar="FILE", help=f"default: {BOARDS}")
    command.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
    command.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    add_catalogue(command)
    command.set_defaults(run=_leaderboard)


def _leaderboard(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import write_table, write_text
    from comperdial.data.catalogue import load_catalogue
    from comperdial.report import render
    from comperdial.studies.leaderboard import Leaderboard

    if options.output is not None and options.output.suffix not in _FORMS:
        raise ConfigError(f"{options.output}", where="--output", expected=f"a name ending in {', '.join(_FORMS)}")
    catalogue = load_catalogue(options.catalogue)
    board = Leaderboard(options.board, catalogue, options.tables, options.results, options.boards)
    if options.texts is not None:
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
    if options.output is not None:
        forms = {".html": render.page, ".md": render.markdown, ".csv": render.csv}
        form = forms.get(options.output.suffix, lambda table: render.latex(table, "tab:leaderboard"))
        write_text(options.output, form(table))
