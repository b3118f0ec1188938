"""The commands that make tables, figures and pages from results; what each needs is imported by it alone."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from comperdial.core.files import form_path, write_json, write_text


def make(options: argparse.Namespace) -> None:
    """Make a table or a figure of a study."""
    from comperdial.studies import making

    stem = form_path(options.output, "")
    making.make(options.kind, options.study, options.name, stem, dataset=options.dataset)


def describe(options: argparse.Namespace) -> None:
    """Write a data set's configuration."""
    from comperdial import selection

    write_json(options.output, selection.describe(selection.Selection.read(options.params), options.dataset))


def notebook(options: argparse.Namespace) -> None:
    """Execute a notebook, and write its page."""
    from comperdial.report.notebook import execute

    for name in ("dataset", "source", "target"):
        os.environ[f"COMPERDIAL_{name.upper()}"] = getattr(options, name)
    write_text(options.output, execute(options.notebook))


def page(options: argparse.Namespace) -> None:
    """Make the page of a data set."""
    from comperdial.report.page import page

    write_text(options.output, page(options.dataset, options.output))


def summary(options: argparse.Namespace) -> None:
    """Write the numbers that are compared between commits."""
    from comperdial import schema
    from comperdial.report.about import About
    from comperdial.report.summary import summarise

    results = Path("results", options.dataset)
    about = About.read([results / "about.json"])
    correlations = schema.read(results / "correlations.parquet", "correlations")
    target = about.dimension(options.dataset, correlations["target"])
    summarise(correlations, target, options.output, simulated=about.simulated)


def pack(_: argparse.Namespace) -> None:
    """Pack Snakemake's records."""
    from comperdial.config import records

    print(f"{records.pack()}: the records of this folder's results")
