"""The commands of a leaderboard of one's own: hand in a metric's scores, show the ranking."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_file, whole
from comperdial.core.errors import ConfigError
from comperdial.core.files import write_table, write_text

if TYPE_CHECKING:
    from comperdial.studies.leaderboard import Leaderboard

_FORMS = (".html", ".md", ".csv", ".tex")
BOARDS = Path("studies/overall/boards.yaml")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("submit", help="check a metric's scores and rank it among others over all data sets")
    command.add_argument("file", type=Path, nargs="?", help="columns dataset, item_id, system_id, value")
    command.add_argument("--name", help="what to call the metric")
    command.add_argument("--about", help="what it is, version, settings: part of the signature")
    command.add_argument("--replace", action="store_true", help="replace another entry of this name")
    command.add_argument("--template", metavar="BOARD", help="only print the file to fill in for a board")
    command.add_argument("--texts", type=Path, metavar="FILE", help="with --template: write the texts to score, JSONL")
    _ranking(command)
    command.set_defaults(run=_submit)

    command = commands.add_parser("leaderboard", help="rank the submitted metrics among others over all data sets")
    command.add_argument("--remove", metavar="NAME", help="delete a submitted metric's entry first")
    _ranking(command)
    command.set_defaults(run=_leaderboard)


def _ranking(command: argparse.ArgumentParser) -> None:
    command.add_argument("--board", default="responses", help="responses, references or dialogues (default: responses)")
    missing = "a metric without scores on a task is left out, or given its worst value"
    command.add_argument("--missing", choices=("left-out", "worst"), help=missing)
    command.add_argument("--output", type=output_file, help=f"write the ranking, too: {', '.join(_FORMS)}")
    swaps = "swaps of WMT's test (default: 1000; 0: without that test)"
    command.add_argument("--resamples", type=whole(0), default=1000, help=swaps)
    command.add_argument("--boards", type=Path, default=BOARDS, metavar="FILE", help=f"default: {BOARDS}")
    command.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
    command.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    command.add_argument("--entries", type=Path, default=Path("leaderboard"), help="default: leaderboard")
    add_catalogue(command)


def _open(options: argparse.Namespace, board: str) -> Leaderboard:
    from comperdial.data.catalogue import load_catalogue
    from comperdial.studies.leaderboard import Leaderboard

    if options.output is not None and options.output.suffix not in _FORMS:
        raise ConfigError(f"{options.output}", where="--output", expected=f"a name ending in {', '.join(_FORMS)}")
    folders = (options.tables, options.results, options.entries)
    return Leaderboard(board, load_catalogue(options.catalogue), *folders, boards=options.boards)


def _submit(options: argparse.Namespace) -> None:
    if options.template is not None:
        _template(options)
        return
    for option, value in (("a file", options.file), ("--name", options.name), ("--about", options.about)):
        if value is None:
            raise ConfigError(f"{option} is missing", expected="FILE --name NAME --about TEXT, or --template BOARD")
    if options.texts is not None:
        raise ConfigError("given without --template", where="--texts")
    from comperdial.report.render import Table, text

    board = _open(options, options.board)
    scores, unused = board.read(options.file, options.name, options.about)
    section, complete = board.coverage(scores)
    notes = [f"{unused:,} scores are of responses that nobody rated, or of references: not used"] if unused else []
    sys.stdout.write(text(Table(options.name, options.about, scores, [section], notes)) + "\n")
    if not complete and options.missing is None:
        expected = "all of them, or --missing left-out or --missing worst"
        hint = (
            "left-out: they do not count, and a task without any score leaves the metric out of the overall ranking; "
            "worst: such a task counts with the worst value of any metric"
        )
        raise ConfigError("not all rated items have a score", where=str(options.file), expected=expected, hint=hint)
    path = board.add(scores, replace=options.replace)
    print(f"{path}: {len(scores):,} scores\n")
    _show(board, options)


def _template(options: argparse.Namespace) -> None:
    if options.file is not None:
        raise ConfigError(f"{options.file} and --template", expected="one of the two")
    if options.texts is not None and options.texts.suffix != ".jsonl":
        raise ConfigError(f"{options.texts}", where="--texts", expected="a name ending in .jsonl")
    board = _open(options, options.template)
    template = board.template()
    if options.texts is not None:
        write_table(options.texts, board.texts())
    sys.stdout.write(template.to_csv(index=False, lineterminator="\n"))


def _leaderboard(options: argparse.Namespace) -> None:
    board = _open(options, options.board)
    if options.remove is not None:
        print(f"{board.remove(options.remove)}: deleted\n")
    _show(board, options)


def _show(board: Leaderboard, options: argparse.Namespace) -> None:
    from comperdial.report import render

    table = board.ranking(resamples=options.resamples, seed=2024, missing=options.missing)
    sys.stdout.write(render.text(table))
    if options.output is not None:
        forms = {".html": render.page, ".md": render.markdown, ".csv": render.csv}
        form = forms.get(options.output.suffix, lambda table: render.latex(table, "tab:leaderboard"))
        write_text(options.output, form(table))
