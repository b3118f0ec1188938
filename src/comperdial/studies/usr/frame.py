"""The published USR table: our correlations beside the reported ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.report import leave_out
from comperdial.report.document import Document, pivot, records_by
from comperdial.report.tables import (
    COEFFICIENT_NAMES,
    LEVEL_NAMES,
    READING,
    STAR,
    beside,
    corrected_over,
    few_notes,
    of_target,
    partial_notes,
    pooled,
    why_no_scores,
    with_interval,
)

# What a cell says where there are no scores: of a metric that runs here, and of scores computed elsewhere.
_ABSENT = {False: "not run", True: "not recorded"}


def usr_frame(
    correlations: pd.DataFrame,
    reported: pd.DataFrame,
    rows_file: str | Path,
    *,
    datasets: Sequence[str],
    target: str,
    not_run: Mapping[str, str],
    recorded: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Put our correlations beside the reported ones.

    Parameters
    ----------
    correlations
        Table ``correlations`` of the datasets.
    reported
        ``src/comperdial/studies/usr/correlations.csv``.
    rows_file
        ``src/comperdial/studies/usr/rows.yaml``: the rows of the table.
    datasets, target
        Which datasets, in this order; which rated dimension.
    not_run
        Metrics of ``params.yaml`` that could not run here, and why.
    recorded
        Metrics of ``params.yaml`` that are scores computed elsewhere, and of which dataset they are.

    Returns
    -------
    DataFrame
        One row a table row, dataset, level and coefficient: label, ours (value, low, high, p, p_exact, rank, tests,
        loso_value, loso_system, loso_halved, n, coverage, cut, signature), whether the scores were recorded elsewhere,
        reported (value, starred, source), the difference ours - reported, why there are no scores, and a note. Missing
        is missing.
    """
    for dataset in datasets:
        if dataset not in set(correlations["dataset"]):
            raise UnknownNameError("dataset", dataset, correlations["dataset"].unique())
    ours = of_target(pooled(correlations, "turn"), target)
    ours = ours.set_index(["dataset", "level", "coefficient", "metric", "output"])
    published = reported[reported["target"] == target]
    published = published.set_index(["dataset", "level", "coefficient", "source", "metric"])
    records = []
    for row in _rows(rows_file):
        of_dataset = (recorded or {}).get(row.get("metric", ""))
        reasons = {dataset: _why_not(row, correlations, dataset, not_run, of_dataset) for dataset in datasets}
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
                            "target": target,
                            "dataset": dataset,
                            "level": level,
                            "coefficient": coefficient,
                            "ours": value,
                            **{name: mine.get(name) for name in ("low", "high", "p", "p_exact", "rank", "tests")},
                            "loso_value": mine.get("loso_value"),
                            "loso_system": mine.get("loso_system"),
                            "n": mine.get("n"),
                            "coverage": mine.get("coverage"),
                            "cut": mine.get("cut"),
                            "lacking": mine.get("lacking"),
                            "reported": other,
                            "reported_starred": theirs.get("starred"),
                            "source": row["reported"][0] if other is not None else None,
                            "difference": None if value is None or other is None else value - other,
                            "signature": mine.get("signature"),
                            "recorded": of_dataset is not None,
                            "not_run": reasons[dataset],
                            "note": row.get("note"),
                        }
                    )
    frame = pd.DataFrame(records)
    numeric = ["ours", "low", "high", "p", "p_exact", "loso_value", "coverage", "cut", "reported", "difference"]
    whole = {"n": "Int32", "rank": "Int32", "tests": "Int32"}
    return leave_out.with_halved(frame.astype(dict.fromkeys(numeric, "float64") | whole), "ours")


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


def _why_not(
    row: Mapping[str, Any], correlations: pd.DataFrame, dataset: str, not_run: Mapping[str, str], recorded: str | None
) -> str | None:
    metric = row.get("metric")
    if metric is None:
        return str(row["not_run"])
    present = correlations[(correlations["metric"] == metric) & (correlations["dataset"] == dataset)]
    if present.empty and recorded not in (None, dataset):
        return f"there are recorded scores of {recorded} only"
    if present.empty:
        elsewhere = metric in set(correlations["metric"])
        return not_run.get(metric, f"no scores of {dataset}" if elsewhere else f"no metric {metric!r} in params.yaml")
    if row["output"] not in set(present["output"]):
        return f"metric {metric!r} has no output {row['output']!r}"
    return why_no_scores(present[present["output"] == row["output"]])


def _lookup(frame: pd.DataFrame, key: tuple[Any, ...]) -> dict[str, Any]:
    if key not in frame.index:
        return {}
    record = frame.loc[key]
    if isinstance(record, pd.DataFrame):
        raise SchemaError(f"two values for {key}", expected="one")
    return {name: None if pd.isna(value) else value for name, value in record.items()}


def usr_document(frame: pd.DataFrame, titles: Mapping[str, str], sources: pd.DataFrame) -> Document:
    """Render the frame of :func:`usr_frame`: per dataset and coefficient, ours beside the reported value.

    The rows of a level are sorted by our Spearman on the first data set, then on the next.
    """
    datasets = list(dict.fromkeys(frame["dataset"]))
    cited = sources.set_index("source")
    if unknown := sorted(set(frame["source"].dropna()) - set(cited.index)):
        raise SchemaError(
            f"no source {unknown[0]!r}", where="sources.csv", expected="a row for each source of a number"
        )
    if not cited.index.is_unique:
        raise SchemaError("a source stands twice", where="sources.csv", expected="each once")
    used = [source for source in cited.index if source in set(frame["source"].dropna())]
    columns = [
        column
        for dataset in datasets
        for coefficient in ("pearson", "spearman")
        for column in beside(
            f"{titles.get(dataset, dataset)} {COEFFICIENT_NAMES[coefficient]}", (dataset, coefficient), _ours
        )
    ]
    of_row = frame.drop_duplicates("label").set_index("label")
    unmarked = [cited.loc[s, "short"] for s in used if frame.loc[frame["source"] == s, "reported_starred"].isna().all()]
    sections = []
    for level, of_level in frame.groupby("level", sort=False):
        cells = records_by(of_level, ["label", "dataset", "coefficient"])
        by = of_level.groupby("label", sort=False)["source"].first().map(cited["short"]).fillna("–")
        rows = {(label,): [label, str(by[label])] for label in _best_first(of_level, datasets)}
        title, empty = LEVEL_NAMES[str(level)], ("–", *_ABSENT.values())
        sections.append(pivot(title, cells, rows, ["Metric", "Reported by"], columns, empty=empty))
    counts = frame.groupby(["dataset", "level"])["n"].max()
    spans = "; ".join(
        f"{titles.get(d, d)}: {counts[d, 'turn']} responses by {counts[d, 'system']} systems"
        for d in datasets
        if pd.notna(counts.get((d, "turn"))) and pd.notna(counts.get((d, "system")))
    )
    return Document(
        title="Metrics against human ratings on USR",
        caption=leave_out.with_legend(
            f"Pearson and Spearman correlation of metrics with the mean human rating ({frame['target'].iloc[0]}), "
            f"beside the values that papers report; sorted by our Spearman on {titles.get(datasets[0], datasets[0])}. "
            f"{spans}. The original responses are the references, not scored.",
            frame,
            "ours",
        ),
        sections=sections,
        tidy=frame,
        notes=[
            STAR,
            *READING[1:],
            *corrected_over(frame, titles),
            *few_notes(frame[frame["ours"].notna()]),
            *leave_out.notes(frame, titles, "ours"),
            *(f"No asterisks are known of the values by {' and '.join(unmarked)}" for _ in unmarked[:1]),
            "Difference is ours minus reported, before rounding; a dash means that there is no such value",
            *partial_notes(frame[frame["ours"].notna()], "label"),
            *(f"{cited.loc[s, 'short']}: {cited.loc[s, 'citation']}; {cited.loc[s, 'read_from']}" for s in used),
            *(f"{label}: {note}" for label, note in of_row["note"].dropna().items()),
            *(f"Computed with the model {model}: {'; '.join(rows)}" for model, rows in _models(frame).items()),
            # Many rows share a reason: it is said once.
            *(f"{absent}: {'; '.join(rows)}: {why}" for (absent, why), rows in _reasons(frame).items()),
        ],
    )


def _ours(cell: Mapping[Any, Any]) -> str:
    # The columns "without one system" would double the table; the CSV file has them.
    return _absent(cell) or with_interval({**cell, "value": cell["ours"]})


def _best_first(frame: pd.DataFrame, datasets: Sequence[str]) -> list[str]:
    """Return the labels of a level's rows by our Spearman on the first data set, then on the next."""
    wide = frame[frame["coefficient"] == "spearman"].pivot(index="label", columns="dataset", values="ours")
    order = wide.reindex(list(dict.fromkeys(frame["label"])))[list(datasets)]
    return [str(name) for name in order.sort_values(list(datasets), ascending=False, kind="stable").index]


def _absent(cell: Mapping[Any, Any]) -> str | None:
    """Say in two words why a cell has no value of ours; None if it may have one."""
    return _ABSENT[bool(cell["recorded"])] if pd.notna(cell["not_run"]) else None


def _reasons(frame: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Return the rows without a value of ours by what their cells say and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in frame.drop_duplicates(["label", "not_run"]).to_dict("records"):
        if absent := _absent(row):
            found.setdefault((absent, str(row["not_run"])), []).append(str(row["label"]))
    return found


def _models(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the rows of each model: a row's name says which it should be, the signature which it is."""
    signatures = frame.dropna(subset=["signature"]).drop_duplicates("label").set_index("label")["signature"]
    models = signatures.str.extract(r"\|model:([^|]+)", expand=False).dropna()
    return {str(model): [str(label) for label in rows.index] for model, rows in models.groupby(models, sort=False)}
