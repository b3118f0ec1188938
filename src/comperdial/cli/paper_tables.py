"""Commands that render the paper's numbered tables, and our own of what correlations are worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import (
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
from comperdial.errors import NothingToShowError


def add_kinds(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's kinds."""
    kind = add_kind(kinds, "paper-table", _paper_table, "ComperDial's Tables 3, 4, 5, 6, 15 and 16, ours beside theirs")
    kind.add_argument("--number", required=True, metavar="NN", help="which table, two digits")
    kind.add_argument("--ceilings", type=Path, nargs="*", default=[], help="tables `ceilings` of the data sets")
    kind.add_argument("--judges", type=json_object, default={}, metavar="JSON", help="what each judge's metric is")
    for add in (add_target, add_not_run, add_paper, add_simulated, add_titles):
        add(kind)
    add_paper(add_kind(kinds, "benchmarks-short", _benchmarks, "ComperDial's Table 1", inputs=None))
    kind = add_kind(kinds, "example-short", _example, "ComperDial's Table 2", inputs=None)
    kind.add_argument("--tables", type=Path, required=True, help="the data set's folder of tables")
    kind.add_argument("--dialogue", help="which dialogue; default: the first")
    add_simulated(kind)
    kind = add_kind(kinds, "metric-outputs", _outputs, "ComperDial's Table 14", inputs=None)
    kind.add_argument("--metrics", type=json_object, required=True, metavar="JSON", help="the metrics of params.yaml")
    add_paper(kind)
    for name, about in (
        ("measures-table", "pairwise accuracies, and correlations by item beside pooled ones"),
        ("comparisons-table", "which metrics the paired tests tell apart"),
        ("power-table", "how many systems or dialogues it takes to tell two metrics apart"),
        ("curves-table", "how the ranking of metrics holds with less data"),
    ):
        kind = add_kind(kinds, name, _ours, about)
        for add in (add_target, add_simulated, add_titles):
            add(kind)


def _paper_table(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.report import document, tables
    from comperdial.report.paper_tables import paper_document, paper_frame, read_layout

    found = tables.read_correlations(options.inputs)
    target = read_target(options, found["target"])
    layout = read_layout(options.paper / "comperdial_rows.yaml", options.number)
    ceilings = [schema.read(path, "ceilings") for path in options.ceilings]
    frame = paper_frame(
        layout,
        found,
        pd.concat(ceilings, ignore_index=True) if ceilings else pd.DataFrame(),
        tables.read_reported(options.paper / layout.reported, tables.REPORTED_COLUMNS, given=("value",)),
        datasets=list(options.titles) or list(dict.fromkeys(found["dataset"])),
        target=target,
        not_run=options.not_run,
        judges=options.judges,
    )
    made = paper_document(frame, layout, options.titles, target, suffix=suffix(options))
    document.write(made, options.output)


def _benchmarks(options: argparse.Namespace) -> None:
    from comperdial.report import comperdial, document, paper_short, tables

    reported = tables.read_reported(options.paper / "benchmarks.csv", comperdial.BENCHMARK_COLUMNS)
    document.write(paper_short.benchmarks_short(reported), options.output)


def _example(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report import document, paper_short

    contexts, personas = (schema.read(options.tables / f"{name}.parquet", name) for name in ("contexts", "personas"))
    name = options.dialogue or str(contexts["dialogue_id"].min())
    document.write(paper_short.example_short(contexts, personas, name, suffix(options)), options.output)


def _outputs(options: argparse.Namespace) -> None:
    from comperdial.report import document, paper_short, tables

    reported = tables.read_reported(options.paper / "metric_outputs.csv", paper_short.OUTPUT_COLUMNS)
    document.write(paper_short.outputs_document(reported, options.metrics), options.output)


def _ours(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report import comparison_tables, document

    kind = options.what.removesuffix("-table")
    make = {
        "measures": comparison_tables.measures_document,
        "comparisons": comparison_tables.comparisons_document,
        "power": comparison_tables.power_document,
        "curves": comparison_tables.curves_document,
    }[kind]
    found = schema.read(options.inputs[0], "correlations" if kind == "measures" else kind)
    if found.empty:
        raise NothingToShowError("it takes two metrics with scores, and three systems or more")
    name = str(found["dataset"].iloc[0])
    made = make(found, options.titles.get(name, name), read_target(options, found["target"]), suffix=suffix(options))
    document.write(made, options.output)
