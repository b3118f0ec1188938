"""The paper's short tables: 1 (benchmarks), 2 (a dialogue's beginning) and 14 (what each metric gives)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from comperdial.metrics import Metric, create
from comperdial.report.document import Document, Section
from comperdial.studies.comperdial.benchmarks import benchmarks_document
from comperdial.studies.comperdial.personas import example_document

OUTPUT_COLUMNS = ("source", "place", "metric", "outputs", "normalised", "ours", "note")
_IN_TABLE_1 = re.compile(r"Tables? 1\b")


def benchmarks_short(frame: pd.DataFrame) -> Document:
    """Render Table 1: the rows of ``benchmarks.csv`` that stand in it; Table 7 has the others too."""
    full = benchmarks_document(frame[frame["place"].map(lambda place: bool(_IN_TABLE_1.match(str(place))))])
    return replace(
        full,
        title="Table 1. Benchmarks of dialogue evaluation, in short",
        caption="Who answered in each benchmark and how the answers were rated, as Table 1 of the ComperDial paper "
        "reports it; Table 7 has more. A dash stands where the paper's cell is empty.",
    )


def example_short(contexts: pd.DataFrame, personas: pd.DataFrame, dialogue_id: str, suffix: str = "") -> Document:
    """Render Table 2: the first sentences of both personas and the beginning of a dialogue; Table 12 has it in full."""
    full = example_document(contexts, personas, dialogue_id, suffix)
    beginning = full.sections[0]
    shown = {cell for row in beginning.rows for cell in row[:1]}
    # The rows of the table that the section shows, by the labels it gives them.
    labels = full.tidy["part"] + " " + full.tidy["number"].astype(str)
    return replace(
        full,
        title=f"Table 2. {full.title}, the beginning",
        sections=[beginning],
        tidy=full.tidy[labels.isin(shown)].reset_index(drop=True),
        notes=["An ellipsis stands for what Table 12 shows in full"],
    )


def outputs_document(reported: pd.DataFrame, metrics: Mapping[str, Mapping[str, Any]]) -> Document:
    """Render Table 14: what each metric gives and whether it normalises its texts, the paper's beside ours.

    Parameters
    ----------
    reported
        ``src/comperdial/studies/comperdial/metric_outputs.csv``.
    metrics
        The metrics of ``params.yaml``: ``kind`` and options by name. What they give is asked of the metrics themselves.
    """
    made = {
        name: create(options["kind"], **{k: v for k, v in options.items() if k != "kind"})
        for name, options in metrics.items()
    }
    rows = []
    for record in reported.to_dict("records"):
        metric = made.get(record["ours"])
        rows.append(
            [
                str(record["metric"]),
                str(record["ours"]) if metric else "–",
                str(record["outputs"]),
                ", ".join(metric.outputs) if metric else "–",
                str(record["normalised"]),
                _normalises(metric) if metric else "–",
            ]
        )
    ours = [
        [name, metric.kind, ", ".join(metric.needs) or "–", ", ".join(metric.outputs), _normalises(metric)]
        for name, metric in made.items()
    ]
    columns = [("", "Metric"), ("", "Ours"), ("Outputs", "paper"), ("Outputs", "ours"), ("Normalised", "paper"),
               ("Normalised", "ours")]  # fmt: skip
    names = ["metric", "kind", "needs", "outputs", "normalised"]
    paper = reported[["metric", "outputs", "normalised", "ours"]].rename(columns={"ours": "metric_here"})
    return Document(
        title="Table 14. What metrics give",
        caption="The outputs of each metric and whether it normalises responses, references and histories first, as "
        "Table 14 of the ComperDial paper reports it and as the metrics of params.yaml say of themselves.",
        sections=[
            Section("The paper's metrics", columns, rows),
            Section("All metrics of params.yaml", [("", name.capitalize()) for name in names], ours),
        ],
        tidy=pd.concat(
            [paper.assign(table="paper"), pd.DataFrame(ours, columns=names).assign(table="ours")], ignore_index=True
        ),
        notes=[
            "Normalised: lower case, no ASCII punctuation, no a, an, the, single spaces",
            *_output_notes(reported, made),
        ],
    )


def _normalises(metric: Metric) -> str:
    """Say whether a metric normalises: one without the option takes texts as they are."""
    return "yes" if getattr(metric, "text", "raw") == "normalised" else "no"


def _output_notes(reported: pd.DataFrame, made: Mapping[str, Metric]) -> Sequence[str]:
    noted = reported[reported["note"].fillna("") != ""]
    missing = reported[~reported["ours"].isin(list(made))]
    return [
        *(f"{record['metric']}: {record['note']}" for record in noted.to_dict("records")),
        *(f"{record['metric']}: params.yaml has no metric {record['ours']!r}" for record in missing.to_dict("records")),
    ]
