"""The command that builds the project's website."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser(
        "site",
        help="build the website: README, docs and published results as pages that need no network",
        description="Run in the repository's root. Results are those that lie in results/: pull or make them first.",
    )
    command.add_argument("--output", type=output_folder, default=Path("site"), metavar="FOLDER", help="default: site")
    command.set_defaults(run=_site)


def _site(options: argparse.Namespace) -> None:
    from comperdial.config import load_yaml
    from comperdial.config.studies import study_files
    from comperdial.report.website.build import build

    titles = {path.parent.name: load_yaml(path)["title"] for path in study_files()}
    built = build(Path(), options.output, studies=titles)
    counts = ", ".join(f"{count} of {folder}" for folder, count in built.results.items() if count)
    print(f"{built.path}/index.html: {built.pages} pages of text; results: {counts or 'none'}")
    if not counts:
        print(
            "No results are here, so the website has none: `dvc pull` brings the published ones, `make reproduce` makes "
            "the demo's. Then build it again.",
            file=sys.stderr,
        )
