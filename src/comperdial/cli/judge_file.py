"""The command that has a user's own file judged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command below ``judge``."""
    kind = what.add_parser("file", help="have a file of responses rated, as `comperdial score` scores one")
    kind.add_argument("file", type=Path, help="JSONL, CSV or Parquet with `response`, `history`, …")
    kind.add_argument("--variant", required=True, help="what is asked: a variant at turn level (see `judge list`)")
    kind.add_argument("--judge", required=True, help="who is asked: a judge of params.yaml")
    kind.add_argument("--output", type=Path, required=True, help="the scores: a .jsonl, .csv or .parquet file")
    kind.add_argument("--judgements", type=Path, help="how each score came about, with rationales: likewise")
    kind.add_argument("--params", type=Path, default=Path("params.yaml"), help="default: params.yaml")
    kind.add_argument("--ledger", type=Path, help="where answers are kept; default: params.yaml's")
    kind.add_argument(
        "--budget", type=float, help="US dollars that all answers in the ledger may cost; default: params.yaml's"
    )
    kind.set_defaults(run=_file)


def _file(options: argparse.Namespace) -> None:
    import dataclasses

    from comperdial import schema
    from comperdial.config import load_yaml
    from comperdial.files import check_table_output
    from comperdial.judging.config import read_judging
    from comperdial.judging.files import file_task, judge_file, why_silent

    check_table_output(options.output)
    check_table_output(options.judgements, "--judgements")
    config = load_yaml(options.params)
    judging = read_judging(config.get("judges"), config.get("judging"))
    given = {name: getattr(options, name) for name in ("ledger", "budget") if getattr(options, name) is not None}
    judging = dataclasses.replace(judging, **given)
    task = file_task(judging, options.variant, options.judge)
    made = judge_file(judging, task, options.file)
    schema.write(options.output, made.scores, "scores")
    if options.judgements:
        schema.write(options.judgements, made.judgements, "judgements")
    asked = made.report or f"all from the ledger; nothing was asked: {why_silent(judging, task)}"
    print(f"{options.file}  {task.name}: {asked}")
    for lacks, count in made.lacking.items():
        print(f"{options.file}  {task.name}: {count:,} records not judged: {lacks}")
