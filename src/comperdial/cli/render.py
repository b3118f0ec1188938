"""Commands that make tables, figures and notebooks from results."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from comperdial.cli import llm_evaluators, paper_tables, plots, site, study
from comperdial.cli.common import (
    add_catalogue,
    add_kind,
    add_not_run,
    add_paper,
    add_simulated,
    add_target,
    add_titles,
    json_object,
    read_target,
    suffix,
)


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("render", help="make a table, a figure or a notebook from results")
    _add_kinds(command.add_subparsers(title="what", metavar="WHAT", required=True))


def _add_kinds(kinds: Any) -> None:  # noqa: ANN401
    kind = add_kind(kinds, "usr", _render_usr, "the published USR table, ours beside theirs, with its figure")
    kind.add_argument("--figure", type=Path, help="the figure's name, without suffix")
    kind.add_argument("--datasets", nargs="+", required=True, help="in the order of the columns")
    kind.add_argument(
        "--recorded", type=json_object, default={}, metavar="JSON", help="recorded metrics: of what dataset"
    )
    for add in (add_target, add_not_run, add_paper, add_titles):
        add(kind)
    kind = add_kind(kinds, "correlations", _render_correlations, "everything computed for one dataset")
    for add in (add_target, add_not_run, add_simulated, add_titles):
        add(kind)
    kind = add_kind(kinds, "agreement", _render_agreement, "agreement between the annotators beside the published one")
    for add in (add_paper, add_titles):
        add(kind)
    kind = add_kind(kinds, "judges", _render_judges, "what judges were asked, and what came back")
    kind.add_argument("--labels", type=json_object, default={}, metavar="JSON", help="a name for each metric")
    for add in (add_not_run, add_simulated, add_titles):
        add(kind)
    kind = add_kind(kinds, "recorded-judges", _render_recorded_judges, "recorded answers, beside the reported figures")
    for name in ("prompts", "models"):
        kind.add_argument(f"--{name}", type=json_object, default={}, metavar="JSON", help=f"{name} by judge")
    for add in (add_paper, add_titles):
        add(kind)
    kind = add_kind(kinds, "summary", _render_summary, "the numbers that dvc compares between commits", "a folder")
    add_target(kind)
    add_simulated(kind)
    add_catalogue(add_kind(kinds, "readme", _render_readme, "the table in the README, in place", "the page"))
    kind = add_kind(kinds, "notebook", _render_notebook, "an executed notebook", "the HTML file")
    kind.add_argument("--dataset", help="which data set it is to read, if it can read several")
    kind.add_argument("--source", help="whose ratings it is to read (default: simulated ones if there are, else human)")
    add_target(kind)
    add_simulated(kind)
    for module in (study, paper_tables, llm_evaluators, plots, site):
        module.add_kinds(kinds)


def _render_usr(options: argparse.Namespace) -> None:
    from comperdial.report import document, figures, tables, usr

    found = tables.read_correlations(options.inputs)
    frame = usr.usr_frame(
        found,
        tables.read_reported(options.paper / "usr_correlations.csv", tables.REPORTED_COLUMNS, given=("value",)),
        options.paper / "usr_rows.yaml",
        datasets=options.datasets,
        target=read_target(options, found["target"]),
        not_run=options.not_run,
        recorded=options.recorded,
    )
    sources = tables.read_reported(options.paper / "sources.csv", ("source", "short", "citation"))
    document.write(usr.usr_document(frame, options.titles, sources), options.output)
    if options.figure:
        figures.save(figures.usr_figure(frame, options.titles), options.figure)


def _render_correlations(options: argparse.Namespace) -> None:
    from comperdial.report import document, tables

    found = tables.read_correlations(options.inputs)
    title = options.titles.get(found["dataset"].iloc[0], found["dataset"].iloc[0])
    made = tables.correlation_document(
        found, title, read_target(options, found["target"]), options.not_run, suffix=suffix(options)
    )
    document.write(made, options.output)


def _render_agreement(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import aggregate, schema
    from comperdial.errors import SchemaError
    from comperdial.report import document, tables

    found = pd.concat([aggregate.agreement(schema.read(path, "turn_ratings")) for path in options.inputs])
    if found.empty:
        raise SchemaError("no ratings", where=str(options.inputs[0]), expected="ratings by two annotators or more")
    reported = tables.read_reported(
        options.paper / "usr_agreement.csv", ("dataset", "dimension", "coefficient", "note"), given=("value",)
    )
    document.write(tables.agreement_document(found, reported, options.titles), options.output)


def _render_judges(options: argparse.Namespace) -> None:
    from comperdial.report import document
    from comperdial.report.judges import judges_document, judges_frame

    frame = judges_frame(options.inputs)
    names = [options.titles.get(name, name) for name in dict.fromkeys(frame["dataset"])]
    made = judges_document(frame, ", ".join(names), options.labels, options.not_run, suffix=suffix(options))
    document.write(made, options.output)


def _render_recorded_judges(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.report import document
    from comperdial.report.recorded_judges import recorded_judges_document, recorded_judges_frame
    from comperdial.report.tables import read_reported

    counts, values = ("items", "answers", "unread"), ("pearson", "kendall", "owners_pearson", "owners_kendall")
    texts = ("metric", "dimension", "target", "why")
    found = [read_reported(path, texts, values, given=counts) for path in options.inputs]
    columns = ("prompt", "dimension", "coefficient")
    reported = read_reported(options.paper / "recorded_judges.csv", columns, given=("value",))
    frame = recorded_judges_frame(pd.concat(found, ignore_index=True), reported, options.prompts)
    made = recorded_judges_document(frame, ", ".join(options.titles.values()), options.models)
    document.write(made, options.output)


def _render_summary(options: argparse.Namespace) -> None:
    from comperdial.report import summary, tables

    found = tables.read_correlations(options.inputs)
    target = read_target(options, found["target"])
    summary.summarise(found, target, options.output, simulated=options.simulated)


def _render_readme(options: argparse.Namespace) -> None:
    from comperdial.catalogue import load_catalogue
    from comperdial.report import readme
    from comperdial.report.tables import read_reported

    titles = {name: dataset.title for name, dataset in load_catalogue(options.catalogue).datasets.items()}
    texts = ("level", "label", "dataset", "coefficient", "reported_starred")
    readme.update(options.output, read_reported(options.inputs[0], texts, ("ours", "p", "reported")), titles)


def _render_notebook(options: argparse.Namespace) -> None:
    from comperdial.report import notebook

    # Whether ratings are SIMULATED the notebook sees from their source; the option is for the page's record.
    for name in ("dataset", "target", "source"):
        if value := getattr(options, name):
            os.environ[f"COMPERDIAL_{name.upper()}"] = value
    notebook.execute(options.inputs[0], options.output)
