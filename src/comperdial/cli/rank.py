"""The command that ranks metrics over many data sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, output_table, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("rank", help="rank metrics over many data sets, by a board's tasks")
    command.add_argument("boards", type=Path, help="a file of boards, such as studies/overall/boards.yaml")
    command.add_argument("board", help="one of its boards")
    command.add_argument(
        "--tables", type=Path, nargs="+", required=True, metavar="FOLDER", help="tables of the data sets"
    )
    command.add_argument("--scores", type=Path, nargs="+", required=True, metavar="FILE", help="tables `scores`")
    command.add_argument(
        "--resamples", type=whole(0), default=1000, help="swaps of WMT's test; 0: without it (default: 1000)"
    )
    command.add_argument("--seed", type=whole(0), default=2024, help="of the swaps (default: 2024)")
    command.add_argument("--output", type=output_table, required=True, help="the ranking, to write")
    command.add_argument(
        "--comparisons", type=output_table, required=True, help="the tests of pairs of metrics, to write"
    )
    command.add_argument("--pairs", type=output_table, required=True, help="the counts of pairs of systems, to write")
    add_catalogue(command)
    command.set_defaults(run=_rank)


def _rank(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.data.catalogue import load_catalogue
    from comperdial.evaluation.overall import Board, board_of, overall, pairs_of_systems, read_boards, read_samples

    entry = board_of(options.board, read_boards(options.boards))
    board, outputs = (
        Board.of(options.board, entry["tasks"]),
        [(row["metric"], row["output"]) for row in entry["outputs"]],
    )
    folders = {path.name: path for path in options.tables if path.name in board.datasets}
    known = load_catalogue(options.catalogue).datasets
    targets = {name: known[name].target for name in folders if name in known}
    scores = pd.concat([schema.read(path, "scores") for path in options.scores], ignore_index=True)
    samples = read_samples(folders, scores, outputs, level=entry["level"], source=entry["source"], targets=targets)
    drawing = {"resamples": options.resamples, "seed": options.seed}
    frame, tests = overall(board, samples, outputs, missing=entry["missing"], **drawing)
    systems = {name: schema.read(path / "systems.parquet", "systems") for name, path in folders.items()}
    kinds = {name: dict(zip(one["system_id"], one["kind"], strict=True)) for name, one in systems.items()}
    schema.write(options.output, frame, "overall")
    schema.write(options.comparisons, tests, "overall_comparisons")
    schema.write(options.pairs, pairs_of_systems(board, samples, kinds), "overall_pairs")
