"""The arguments of commands that score responses, and compare scores with ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import READ, Commands, add_command
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

_PARAMS: Any = {**READ, "help": "names of metrics; default: params.yaml if it exists"}
_EMBEDDINGS: Any = {"type": Path, "metavar": "FOLDER", "help": "keep vectors there (default: nowhere)"}
_OUTPUT: Any = {"type": common.output_table, "help": "a .jsonl, .csv or .parquet file; default: CSV on standard output"}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    for add_one in (_add_compare, _add_scoring):
        add_one(commands)


def _add_compare(commands: Commands) -> None:
    command = add_command(commands, "compare", "compare:compare", "which metric agrees best with the ratings of a file")
    add = command.add_argument
    add("input", type=Path, nargs="?", help="JSONL, CSV or Parquet with `response`, `rating`, …; or a folder of tables")
    what = (
        "kinds or names of params.yaml (`comperdial metrics`), with options as in bleu,text=raw; columns of the input; "
        "default, without --scores: those of params.yaml with `main` that run here in up to three minutes each"
    )
    add("--metrics", nargs="+", default=[], metavar="METRIC[:OUTPUT]", help=what)
    what = "compare this metric with each other one, and no others with each other: fewer tests to correct for"
    add("--against", metavar="METRIC[:OUTPUT]", help=what)
    add("--params", **_PARAMS)
    add("--scores", **READ, nargs="+", default=[], help="scores of any program: context_id, system_id, value")
    common.add_rated_file(command)
    common.add_rated(add, nargs="+")
    add("--target", nargs="+", metavar="DIMENSION", help="a rated dimension; default: all")
    what = "one or more (default: spearman pearson); the last five are of pairs of systems, at system level"
    names = (*COEFFICIENTS, *OF_SYSTEMS)
    add("--coefficient", nargs="+", choices=names, default=["spearman", "pearson"], help=what)
    common.add_analysis(add)
    corrections = ("holm", "fdr", "none")
    add("--correction", choices=corrections, default="holm", help="of p-values, for ranks (default: holm)")
    what = "fixed: intervals and tests are over contexts, these systems; two or three always count so"
    add("--systems", choices=("sampled", "fixed"), default="sampled", help=what)
    add("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    add("--embeddings", **_EMBEDDINGS)
    forms = ("text", "markdown", "latex", "csv")
    add("--format", choices=forms, help="default: by the suffix of --output, else text")
    add("--output", type=common.output_file, help="a .txt, .md, .tex or .csv file; default: standard output")


def _add_scoring(commands: Commands) -> None:
    command = add_command(commands, "metrics", "score:metrics", "list the metrics, and whether they can run here")
    command.add_argument("--params", **_PARAMS)

    command = add_command(commands, "score", "score:score", "score a file of responses or a folder of tables")
    add, add_which = command.add_argument, command.add_mutually_exclusive_group(required=True).add_argument
    add("input", type=Path, help="JSONL, CSV or Parquet with `response`, `references`, …; or a folder")
    add_which("--metric", metavar="NAME", help="a kind of metric or a name of params.yaml: `comperdial metrics`")
    add_which("--metrics", nargs="+", metavar="NAME", help="several; options follow, as in bleu,text=raw")
    add("--params", **_PARAMS)
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of --metric")
    add("--options", type=common.json_object, metavar="JSON", help="all options of --metric, which names a kind then")
    add("--name", help="what to call --metric in the table; default: NAME")
    add("--part", type=common.part_of, metavar="I-of-N", help="only this part, such as 3-of-16 (docs/metrics.md)")
    add("--parts", nargs="*", default=[], metavar="NAME=FILE", help="scores of metrics that --metric is made of")
    add("--embeddings", **_EMBEDDINGS)
    add("--output", **_OUTPUT)
