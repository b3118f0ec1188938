"""The arguments of commands that score responses, and compare scores with ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import READ, WRITE, Add, Commands, add_command
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

_PARAMS: Any = {**READ, "help": "names of metrics; default: params.yaml if it exists"}
_EMBEDDINGS: Any = {"type": Path, "metavar": "FOLDER", "help": "keep vectors there (default: nowhere)"}
_OUTPUT: Any = {"type": common.output_table, "help": "a .jsonl, .csv or .parquet file; default: CSV on standard output"}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    for add_one in (_add_correlating, _add_rank):
        add_one(commands)


def _add_correlating(commands: Commands) -> None:
    add = add_command(commands, "correlate", "correlate:correlate", "correlate scores with human ratings").add_argument
    _add_scored(add)
    outputs: Any = {"nargs": "*", "default": [], "metavar": "METRIC:OUTPUT"}
    add("--compared", **outputs, help="outputs with intervals and tests of Pearson and Spearman")
    add("--restricted", **outputs, help="also correlate these within systems and without human systems")
    add("--raters", nargs="*", default=[], metavar="SOURCE", help="whose mean ratings are scores, too")
    add("--systems-given", action="store_true", help="intervals and tests over contexts, these systems")
    common.add_analysis(add)
    add("--resamples", type=int, default=1000, help="for details, intervals and tests (default: 1000); 0: no details")
    what = "also test these over systems; accuracy and spa are tested anyway where there are few systems"
    add("--tests", nargs="+", choices=OF_SYSTEMS, default=[], help=what)
    add("--ceilings", **WRITE, help="write how one annotator agrees with the others")
    add("--pairs", **WRITE, help="write tests of pairs, not corrected")
    add("--output", **_OUTPUT)

    command = add_command(commands, "robustness", "correlate:robustness", "how ranks change with less data")
    add = command.add_argument
    _add_scored(add)
    add("--judgements", type=Path, nargs="*", default=[], help="tables `judgements`: single samples")
    add("--coefficient", default="spearman", choices=COEFFICIENTS)
    add("--repeats", type=common.whole(1), default=100, help="subsets for each size (default: 100)")
    add("--curves", **WRITE, required=True, help="write the learning curves")
    add("--power", **WRITE, required=True, help="write the power of a 5 %% test")


def _add_scored(add: Add) -> None:
    """Add which scores and ratings are compared."""
    add("input", type=Path, nargs="+", help="a folder of tables, with --scores; or tables `scores`, with --ratings")
    add("--scores", **READ, nargs="+", default=[], help="scores of a folder of tables")
    add("--about", **READ, help="about.json of the folder: source, dimension, main outputs; default: params.yaml")
    common.add_rated(add, action="append")
    add("--systems", type=Path, help="table `systems`: which of the rated systems are references")
    what = "a dimension to detail; default: all, of a folder of params.yaml its own"
    add("--detail-target", action="append", metavar="TARGET", help=what)
    add("--outputs", nargs="*", metavar="METRIC:OUTPUT", help="scores to detail; default: all")


def _add_rank(commands: Commands) -> None:
    command = add_command(commands, "rank", "correlate:rank", "rank metrics over many data sets, by a board's tasks")
    add = command.add_argument
    add("boards", type=Path, help="a file of boards, such as studies/overall/boards.yaml")
    add("board", help="one of its boards")
    add("--tables", type=Path, nargs="+", required=True, metavar="FOLDER", help="tables of the data sets")
    add("--scores", **READ, nargs="+", required=True, help="tables `scores`")
    add("--resamples", type=common.whole(0), default=1000, help="swaps of WMT's test; 0: without it (default: 1000)")
    add("--seed", type=common.whole(0), default=2024, help="of the swaps (default: 2024)")
    add("--output", type=common.output_table, required=True, help="the ranking, to write")
    add("--comparisons", type=common.output_table, required=True, help="the tests of pairs of metrics, to write")
    add("--pairs", type=common.output_table, required=True, help="the counts of pairs of systems, to write")
    common.add_catalogue(command)
