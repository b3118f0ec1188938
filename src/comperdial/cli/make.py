"""Commands that make a table or figure of a study or a data set, and that say what params.yaml selects for a data set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_file, output_stem


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    for kind in ("table", "figure"):
        command = commands.add_parser(kind, help=f"make a {kind} of a study, from results that are here")
        command.add_argument("study", help="a folder of studies/; `dataset`: what every data set has")
        command.add_argument("name", help=f"a {kind} in its study.yaml")
        command.add_argument("--dataset", help="with `dataset`: which one")
        command.add_argument(
            "--output", type=output_stem, required=True, help="the files' common name; a suffix is not needed"
        )
        command.set_defaults(run=_make, kind=kind)
    command = commands.add_parser("describe", help="write what tables need to know of a data set's configuration")
    command.add_argument("dataset")
    command.add_argument("--params", type=Path, metavar="FILE", help="default: params.yaml")
    command.add_argument("--output", type=output_file, required=True, help="a .json file")
    command.set_defaults(run=_describe)


def _make(options: argparse.Namespace) -> None:
    from comperdial.core.files import form_path
    from comperdial.studies.making import make

    stem = form_path(options.output, "")
    make(options.kind, options.study, options.name, stem, dataset=options.dataset)


def _describe(options: argparse.Namespace) -> None:
    from comperdial.core.files import write_json
    from comperdial.selection import Selection, describe

    write_json(options.output, describe(Selection.read(options.params), options.dataset))
