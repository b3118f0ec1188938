"""Commands that make tables, figures and pages from results, and rank a user's metric."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from comperdial.cli import options as o

_Study = Annotated[str, Argument(help="A folder in studies/, or `dataset` for tables and figures of all data sets.")]
_Dataset = Annotated[str, Argument(help="A data set of params.yaml.")]
_OfDataset = Annotated[o.Name, Option(help="The data set, for the study `dataset`.")]
_Stem = Annotated[Path, o.written("Common path of the files, without suffix.", o.output_stem)]
_Page = Annotated[Path, o.written("A .html file.", o.output_file)]


@o.command()
def table(
    study: _Study,
    name: Annotated[str, Argument(help="A table in its study.yaml.")],
    output: _Stem,
    dataset: _OfDataset = None,
) -> None:
    """Make a table of a study from existing results."""
    _make("table", study, name, output, dataset)


@o.command()
def figure(
    study: _Study,
    name: Annotated[str, Argument(help="A figure in its study.yaml.")],
    output: _Stem,
    dataset: _OfDataset = None,
) -> None:
    """Make a figure of a study from existing results."""
    _make("figure", study, name, output, dataset)


def _make(kind: str, study: str, name: str, output: Path, dataset: str | None) -> None:
    from comperdial.core.files import form_path
    from comperdial.studies import making

    making.make(kind, study, name, form_path(output, ""), dataset=dataset)


@o.command()
def describe(
    dataset: _Dataset,
    output: Annotated[Path, o.written("A .json file.", o.output_file)],
    params: Annotated[o.File, o.option("FILE", "Default: params.yaml.")] = None,
) -> None:
    """Write a data set's configuration for tables and figures."""
    from comperdial import selection
    from comperdial.core.files import write_json

    write_json(output, selection.describe(selection.Selection.read(params), dataset))


@o.command()
def notebook(
    notebook: Annotated[Path, Argument(help="A jupytext file of notebooks/.")],
    dataset: Annotated[str, Option(help="A data set of params.yaml.")],
    output: _Page,
    source: Annotated[str, Option(help="Source of the ratings.")] = "human",
    target: Annotated[str, Option(help="The rated dimension.")] = "Overall",
) -> None:
    """Execute a notebook and write its page."""
    from comperdial.core.files import write_text
    from comperdial.report.notebook import execute

    for name, value in {"DATASET": dataset, "SOURCE": source, "TARGET": target}.items():
        os.environ[f"COMPERDIAL_{name}"] = value
    write_text(output, execute(notebook))


@o.command()
def page(dataset: _Dataset, output: _Page) -> None:
    """Make the page of a data set from existing results."""
    from comperdial.auditing.dataset import section
    from comperdial.core.files import write_text
    from comperdial.report.page import page

    # Audits are plain HTML below the views, which are a program.
    write_text(output, page(dataset, output).replace("<footer>", f"{section(dataset)}\n<footer>", 1))


@o.command()
def summary(dataset: _Dataset, output: Annotated[Path, o.written("Output folder.", o.output_folder)]) -> None:
    """Write the key numbers that DVC compares between commits."""
    from comperdial import schema
    from comperdial.report.about import About
    from comperdial.report.summary import summarise

    results = Path("results", dataset)
    about = About.read([results / "about.json"])
    correlations = schema.read(results / "correlations.parquet", "correlations")
    target = about.dimension(dataset, correlations["target"])
    summarise(correlations, target, output, simulated=about.simulated)


@o.command("pack-records")
def pack() -> None:
    """Pack Snakemake's metadata for DVC (done by `make publish`)."""
    from comperdial.config import records

    print(f"{records.pack()}: the records of this folder's results")


_FORMS = (".html", ".md", ".csv", ".tex")


@o.command()
def leaderboard(
    files: Annotated[o.Files, Argument(help="Scores: dataset, level, item_id, system_id, value.")] = None,
    board: Annotated[str, Option(help="responses, references or dialogues.")] = "responses",
    template: Annotated[bool, Option("--template", help="Only print the file to fill in.")] = False,
    texts: Annotated[o.File, o.written("Also write the texts as JSONL.", o.output_of(".jsonl"))] = None,
    output: Annotated[
        o.File, o.written("Also write the ranking: .html, .md, .csv or .tex.", o.output_of(*_FORMS))
    ] = None,
    resamples: Annotated[int, Option(min=0, help="Swaps in WMT's test; 0: skip it.")] = 1000,
) -> None:
    """Rank your metric among the existing ones, over all available data sets."""
    from comperdial import schema
    from comperdial.core.files import write_table, write_text
    from comperdial.data.catalogue import load_catalogue
    from comperdial.report import render
    from comperdial.studies.leaderboard import Leaderboard

    ranking = Leaderboard(board, load_catalogue(o.CATALOGUE))
    if texts:
        write_table(texts, ranking.texts())
    if template:
        sys.stdout.write(ranking.template().to_csv(index=False, lineterminator="\n"))
        return
    scores = ranking.read(files) if files else schema.empty("scores")
    if len(scores):
        counts = ranking.rated.groupby("dataset").size().to_frame("rated")
        counts = counts.join(scores.groupby(["dataset", "metric"]).size().unstack("metric"))
        sys.stdout.write(f"Items with a score:\n\n{counts.fillna(0).astype(int).to_string()}\n\n")
    table = ranking.ranking(scores, resamples=resamples, seed=2024)
    sys.stdout.write(render.text(table))
    if output:
        latex = partial(render.latex, label="tab:leaderboard")
        forms: tuple[Callable[..., str], ...] = (render.page, render.markdown, render.csv, latex)
        write_text(output, forms[_FORMS.index(output.suffix)](table))


@o.command()
def audit_recorded(
    output: Annotated[Path, o.written("Output folder, for one file per table.", o.output_folder)],
) -> None:
    """Audit the recorded judges for the study `judge_audit`."""
    from comperdial.auditing.recorded import compute

    compute(output, catalogue=o.CATALOGUE)
