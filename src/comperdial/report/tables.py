"""The study's tables, each made from results and reported numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.errors import SchemaError, UnknownNameError
from comperdial.files import read_table
from comperdial.report.document import Document, Section, number, records_by, with_suffix
from comperdial.stats.correlation import ALPHA, is_starred

STAR = (
    f"An asterisk marks p >= {ALPHA}; with the few systems of the system level, p is an approximation that is too "
    "small for Spearman"
)
REPORTED_COLUMNS = ("source", "dataset", "level", "target", "metric", "coefficient", "value", "starred")
COEFFICIENT_NAMES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall"}
LEVEL_NAMES = {"turn": "Turn level", "dialogue": "Dialogue level", "system": "System level"}


def read_correlations(paths: Sequence[str | Path]) -> pd.DataFrame:
    """Read and join tables ``correlations``; none of them may be empty."""
    found = pd.concat([schema.read(path, "correlations") for path in paths], ignore_index=True)
    if found.empty:
        raise SchemaError("no correlations", where=", ".join(map(str, paths)), expected="at least one")
    return found


def of_target(correlations: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the correlations with one rated dimension, or raise :class:`UnknownNameError`."""
    if target not in set(correlations["target"]):
        raise UnknownNameError("dimension", target, correlations["target"].unique())
    return correlations[correlations["target"] == target]


def read_reported(path: str | Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read reported numbers (``data/paper/*.csv``); ``starred`` becomes True, False or missing."""
    frame = read_table(path)
    if missing := [column for column in columns if column not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=str(path), expected=", ".join(columns))
    frame["value"] = pd.to_numeric(frame["value"], errors="coerce")
    if frame["value"].isna().any():
        row = int(frame["value"].isna().to_numpy().argmax())
        raise SchemaError("the value is not a number", where=f"{path}, line {row + 2}", expected="a number")
    if "starred" in frame:
        frame["starred"] = frame["starred"].astype(str).str.lower().map({"true": True, "false": False})
    return frame


def with_star(value: float, marked: bool) -> str:
    """Write a value with three digits and, if it is marked, an asterisk; a dash when it is missing."""
    text = number(value)
    return f"{text}*" if marked and text != "–" else text


def partial_notes(frame: pd.DataFrame, name: str) -> list[str]:
    """Return a note for each row that has scores of a part of the responses only, or scores of cut inputs."""
    partial = frame[frame["coverage"] < 1].drop_duplicates(["dataset", name])
    cut = frame[frame["cut"] > 0].drop_duplicates(["dataset", name])
    return [
        f"{row[name]}: {row['coverage']:.1%} of the rated responses of {row['dataset']} have a score"
        for row in partial.to_dict("records")
    ] + [
        f"{row[name]}: the input of {row['cut']:.0f} responses of {row['dataset']} did not fit the model and was cut"
        for row in cut.to_dict("records")
    ]


def correlation_document(
    correlations: pd.DataFrame, title: str, target: str, not_run: Mapping[str, str], *, suffix: str = ""
) -> Document:
    """Render everything we computed for one dataset and one rated dimension: three coefficients at each level.

    ``suffix`` ends the caption; with one, the ratings are not called human.
    """
    chosen = of_target(correlations, target)
    levels = list(dict.fromkeys(chosen["level"]))
    levels.sort(key=list(LEVEL_NAMES).index)
    columns = [("", "Metric")] + [(LEVEL_NAMES[level], name) for level in levels for name in COEFFICIENT_NAMES.values()]
    cells = records_by(chosen, ["metric", "output", "level", "coefficient"])
    rows = []
    for metric, output in sorted(set(zip(chosen["metric"], chosen["output"], strict=True))):
        found = [cells[metric, output, level, coefficient] for level in levels for coefficient in COEFFICIENT_NAMES]
        rows.append([f"{metric} {output}", *(with_star(c["value"], is_starred(c["p"])) for c in found)])
    signatures = dict(sorted(zip(chosen["metric"], chosen["signature"], strict=True)))
    return Document(
        title=f"All metrics on {title}",
        caption=with_suffix(
            f"Correlation of every output of every metric with the mean {'' if suffix else 'human '}rating ({target}) "
            f"on {title}.",
            suffix,
        ),
        sections=[Section(f"{title}, {target}", columns, rows)],
        tidy=chosen.sort_values(["metric", "output", "level", "coefficient"]).reset_index(drop=True),
        notes=[
            STAR,
            *partial_notes(chosen.assign(row=chosen["metric"] + " " + chosen["output"]), "row"),
            *(f"{name}: not run: {why}" for name, why in sorted(not_run.items())),
            *(f"{metric} is {signature}" for metric, signature in signatures.items()),
        ],
    )


def agreement_document(agreement: pd.DataFrame, reported: pd.DataFrame, titles: Mapping[str, str]) -> Document:
    """Render inter-annotator agreement beside USR's Table 1."""
    keys = ["dataset", "dimension", "coefficient"]
    frame = agreement.merge(
        reported[[*keys, "value", "note"]].rename(columns={"value": "reported"}), on=keys, how="left"
    )
    frame = frame.rename(columns={"value": "ours"})
    frame["difference"] = frame["ours"] - frame["reported"]
    datasets = list(dict.fromkeys(frame["dataset"]))
    columns = [("", "Dimension")] + [
        (f"{titles.get(dataset, dataset)} {COEFFICIENT_NAMES[coefficient]}", name)
        for dataset in datasets
        for coefficient in ("spearman", "pearson")
        for name in ("ours", "reported", "difference")
    ]
    cells = records_by(frame, keys)
    rows = []
    for dimension in dict.fromkeys(frame["dimension"]):
        row = [str(dimension)]
        for dataset in datasets:
            for coefficient in ("spearman", "pearson"):
                cell = cells[dataset, dimension, coefficient]
                row += [
                    number(cell["ours"], digits=4),
                    number(cell["reported"], digits=4),
                    number(cell["difference"], digits=4, sign=True),
                ]
        rows.append(row)
    return Document(
        title="Agreement between the annotators of USR",
        caption=(
            "Mean correlation over the three pairs of rater positions, all responses included, beside Table 1 of Mehri "
            "and Eskenazi 2020. A position is a column of the data, not a person."
        ),
        sections=[Section("Inter-annotator agreement", columns, rows)],
        tidy=frame,
        notes=[
            f"{row['dataset']}, {row['dimension']}, {row['coefficient']}: {row['note']}"
            for row in frame.to_dict("records")
            if isinstance(row["note"], str) and row["note"]
        ],
    )
