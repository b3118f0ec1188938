"""The study's tables, each made from results and reported numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.errors import ConfigError, FileError, SchemaError
from comperdial.files import read_table
from comperdial.report.document import Document, Section, number, records_by
from comperdial.stats.correlation import ALPHA

STAR = f"An asterisk marks p >= {ALPHA}"
REPORTED_COLUMNS = ("source", "dataset", "level", "metric", "coefficient", "value", "starred")
_COEFFICIENT = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall"}
_LEVEL = {"turn": "Turn level", "dialogue": "Dialogue level", "system": "System level"}


def read_correlations(paths: Sequence[str | Path]) -> pd.DataFrame:
    """Read and join tables ``correlations``."""
    return pd.concat([schema.read(path, "correlations") for path in paths], ignore_index=True)


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


def usr_frame(
    correlations: pd.DataFrame,
    reported: pd.DataFrame,
    rows_file: str | Path,
    *,
    datasets: Sequence[str],
    target: str,
    not_run: Mapping[str, str],
) -> pd.DataFrame:
    """Put our correlations beside the reported ones.

    Parameters
    ----------
    correlations
        Table ``correlations`` of the datasets.
    reported
        ``data/paper/usr_correlations.csv``.
    rows_file
        ``data/paper/usr_rows.yaml``: the rows of the table.
    datasets, target
        Which datasets, in this order; which rated dimension.
    not_run
        Metrics of ``params.yaml`` that could not run here, and why.

    Returns
    -------
    DataFrame
        One row a table row, dataset, level and coefficient: label, ours (value, p, n, coverage, signature), reported
        (value, starred, source), the difference ours - reported, and a note. Missing is missing.
    """
    ours = correlations[correlations["target"] == target].set_index(
        ["dataset", "level", "coefficient", "metric", "output"]
    )
    published = reported.set_index(["dataset", "level", "coefficient", "source", "metric"])
    records = []
    for row in _rows(rows_file):
        reason = _why_not(row, correlations, not_run)
        for level in ("turn", "system"):
            for dataset in datasets:
                for coefficient in ("pearson", "spearman"):
                    cell = (dataset, level, coefficient)
                    mine = _lookup(ours, (*cell, row.get("metric"), row.get("output")))
                    theirs = _lookup(published, (*cell, *row.get("reported", (None, None))))
                    value, other = mine.get("value"), theirs.get("value")
                    records.append(
                        {
                            "label": row["label"],
                            "dataset": dataset,
                            "level": level,
                            "coefficient": coefficient,
                            "ours": value,
                            "p": mine.get("p"),
                            "n": mine.get("n"),
                            "coverage": mine.get("coverage"),
                            "reported": other,
                            "reported_starred": theirs.get("starred"),
                            "source": row["reported"][0] if other is not None else None,
                            "difference": None if value is None or other is None else value - other,
                            "signature": mine.get("signature"),
                            "note": f"not run: {reason}" if reason else row.get("note"),
                        }
                    )
    frame = pd.DataFrame(records)
    numeric = ["ours", "p", "coverage", "reported", "difference"]
    return frame.astype(dict.fromkeys(numeric, "float64") | {"n": "Int32"})


def _rows(path: str | Path) -> list[dict[str, Any]]:
    rows = load_yaml(path).get("rows")
    if not isinstance(rows, list):
        raise FileError("no list `rows`", where=str(path), expected="a list of table rows")
    known = {"label", "metric", "output", "reported", "note", "not_run"}
    for count, row in enumerate(rows, start=1):
        where = f"{path}, row {count}"
        if not isinstance(row, dict) or "label" not in row or not set(row) <= known:
            raise ConfigError(
                f"the row is {row!r}", where=where, expected="`label` and some of " + ", ".join(sorted(known))
            )
        if ("metric" in row) == ("not_run" in row) or ("metric" in row) != ("output" in row):
            raise ConfigError(
                f"row {row['label']!r} is half defined", where=where, expected="`metric` and `output`, or `not_run`"
            )
    return rows


def _why_not(row: Mapping[str, Any], correlations: pd.DataFrame, not_run: Mapping[str, str]) -> str | None:
    metric = row.get("metric")
    if metric is None:
        return str(row["not_run"])
    present = correlations[correlations["metric"] == metric]
    if present.empty:
        return not_run.get(metric, f"no metric {metric!r} in params.yaml")
    if row["output"] not in set(present["output"]):
        return f"metric {metric!r} has no output {row['output']!r}"
    return None


def _lookup(frame: pd.DataFrame, key: tuple[Any, ...]) -> dict[str, Any]:
    if key not in frame.index:
        return {}
    record = frame.loc[key]
    if isinstance(record, pd.DataFrame):
        raise SchemaError(f"two values for {key}", expected="one")
    return {name: None if pd.isna(value) else value for name, value in record.items()}


def usr_document(frame: pd.DataFrame, titles: Mapping[str, str], sources: pd.DataFrame) -> Document:
    """Render the frame of :func:`usr_frame`: per dataset and coefficient, ours beside the reported value."""
    datasets = list(dict.fromkeys(frame["dataset"]))
    cited = sources.set_index("source")
    used = [source for source in cited.index if source in set(frame["source"].dropna())]
    columns = [("", "Metric"), ("", "Reported by")] + [
        (f"{titles.get(dataset, dataset)} {_COEFFICIENT[coefficient]}", name)
        for dataset in datasets
        for coefficient in ("pearson", "spearman")
        for name in ("ours", "reported", "difference")
    ]
    labels = list(dict.fromkeys(frame["label"]))
    notes = frame.drop_duplicates("label").set_index("label")["note"].dropna()
    sections = []
    for level, of_level in frame.groupby("level", sort=False):
        cells = records_by(of_level, ["label", "dataset", "coefficient"])
        rows = []
        for label in labels:
            source = of_level.loc[of_level["label"] == label, "source"].dropna()
            row = [label, str(cited.loc[source.iloc[0], "short"]) if len(source) else "–"]
            for dataset in datasets:
                for coefficient in ("pearson", "spearman"):
                    cell = cells[label, dataset, coefficient]
                    # A "not run" is said once a row, in the note; a dash alone would be taken for a failed score.
                    row += [
                        _starred(cell["ours"], not cell["p"] < ALPHA),
                        _starred(cell["reported"], cell["reported_starred"] is True),
                        number(cell["difference"], sign=True),
                    ]
            rows.append(row)
        rows = [row for row in rows if any(cell != "–" for cell in row[2:])]
        sections.append(Section(_LEVEL[str(level)], columns, rows))
    counts = frame.groupby(["dataset", "level"])["n"].max()
    spans = "; ".join(
        f"{titles.get(d, d)}: {counts[d, 'turn']} responses by {counts[d, 'system']} systems"
        for d in datasets
        if pd.notna(counts.get((d, "turn"))) and pd.notna(counts.get((d, "system")))
    )
    return Document(
        title="Metrics against human ratings on USR",
        caption=(
            "Pearson and Spearman correlation of word-overlap metrics with the mean human rating of overall quality, "
            f"beside the values that papers report. {spans}. The original responses are the references, not scored."
        ),
        sections=sections,
        tidy=frame,
        notes=[
            f"{STAR}; difference is ours minus reported; a dash means that there is no such value",
            *(f"{cited.loc[s, 'short']}: {cited.loc[s, 'citation']}; {cited.loc[s, 'read_from']}" for s in used),
            *(f"{label}: {note}" for label, note in notes.items()),
        ],
    )


def _starred(value: float, starred: bool) -> str:
    text = number(value)
    return f"{text}*" if starred and text != "–" else text


def correlation_document(correlations: pd.DataFrame, title: str, target: str, not_run: Mapping[str, str]) -> Document:
    """Render everything we computed for one dataset and one rated dimension: three coefficients at each level."""
    chosen = correlations[correlations["target"] == target]
    if chosen.empty:
        raise SchemaError(f"no correlations with {target!r}", expected=", ".join(correlations["target"].unique()))
    levels = list(dict.fromkeys(chosen["level"]))
    levels.sort(key=list(_LEVEL).index)
    columns = [("", "Metric")] + [(_LEVEL[level], name) for level in levels for name in _COEFFICIENT.values()]
    cells = records_by(chosen, ["metric", "output", "level", "coefficient"])
    rows = []
    for metric, output in sorted(set(zip(chosen["metric"], chosen["output"], strict=True))):
        found = [cells[metric, output, level, coefficient] for level in levels for coefficient in _COEFFICIENT]
        rows.append([f"{metric} {output}", *(_starred(c["value"], not c["p"] < ALPHA) for c in found)])
    partial = chosen[chosen["coverage"] < 1].drop_duplicates("metric")
    signatures = chosen.drop_duplicates("metric").sort_values("metric")["signature"]
    return Document(
        title=f"All metrics on {title}",
        caption=f"Correlation of every output of every metric with the mean human rating ({target}) on {title}.",
        sections=[Section(f"{title}, {target}", columns, rows)],
        tidy=chosen.sort_values(["metric", "output", "level", "coefficient"]).reset_index(drop=True),
        notes=[
            STAR,
            *(f"{row.metric}: {row.coverage:.1%} of the rated responses have a score" for row in partial.itertuples()),
            *(f"{name}: not run: {why}" for name, why in sorted(not_run.items())),
            *(f"signature: {signature}" for signature in signatures),
        ],
    )


def agreement_document(agreement: pd.DataFrame, reported: pd.DataFrame, titles: Mapping[str, str]) -> Document:
    """Render inter-annotator agreement beside USR's Table 1."""
    keys = ["dataset", "dimension", "coefficient"]
    frame = agreement.merge(reported[[*keys, "value"]].rename(columns={"value": "reported"}), on=keys, how="left")
    frame = frame.rename(columns={"value": "ours"})
    frame["difference"] = frame["ours"] - frame["reported"]
    datasets = list(dict.fromkeys(frame["dataset"]))
    columns = [("", "Dimension")] + [
        (f"{titles.get(dataset, dataset)} {_COEFFICIENT[coefficient]}", name)
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
            "Persona, Engaging, Spearman: the data give 0.4138; the printed 0.4318 looks like a transposition of digits"
        ]
        if "usr_persona" in datasets
        else (),
    )
