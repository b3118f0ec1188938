"""The commands that the workflow and `make publish` run."""

from __future__ import annotations

import argparse
from typing import Any

from comperdial.cli.common import json_object


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("do", help="do one job of the workflow: what its rules type")
    command.add_argument("job", type=json_object, metavar="JSON", help="what `snakemake --printshellcmds` shows")
    command.set_defaults(run=_do)
    command = commands.add_parser("pack-records", help="pack Snakemake's records for DVC (`make publish` does it)")
    command.set_defaults(run=_pack)


def _do(options: argparse.Namespace) -> None:
    from comperdial import jobs

    jobs.do(options.job)


def _pack(_: argparse.Namespace) -> None:
    from comperdial.jobs import records

    print(f"{records.pack()}: the records of this folder's results")
