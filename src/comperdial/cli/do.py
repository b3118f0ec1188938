"""The command that the workflow's rules type."""

from __future__ import annotations

import argparse
from typing import Any

from comperdial.cli.common import json_object


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("do", help="do one job of the workflow: what its rules type")
    command.add_argument("job", type=json_object, metavar="JSON", help="what `snakemake --printshellcmds` shows")
    command.set_defaults(run=_do)


def _do(options: argparse.Namespace) -> None:
    from comperdial import jobs

    jobs.do(options.job)
