"""Every correlation of the study: each evaluator on each set and dimension, apart for each source of ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from comperdial.core.names import Output
from comperdial.report import leave_out
from comperdial.report.document import Column, Document, Section, pivot, records_by
from comperdial.report.labels import metrics_not_run
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import (
    OF_DIMENSIONS,
    OF_MODELS,
    SHORT,
    UNMIXED,
    by_source,
    in_order,
    labelled,
    rated_by,
    standing,
    wide,
    with_interval,
    without_itself,
)
from comperdial.studies.llm_evaluators.notes import Needs, evaluator_notes, not_asked_notes, wanted_by


def correlations_document(
    frame: pd.DataFrame,
    *,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
    titles: Mapping[str, str],
    not_run: Mapping[str, str],
    not_asked: Sequence[str] = (),
    needs: Needs | None = None,
    order: Sequence[str] = (),
    sampling: Sequence[str] = (),
) -> Document:
    """Render Pearson of each evaluator, set and dimension with its interval; the CSV has all three coefficients.

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` of all sets.
    outputs, labels
        Which output stands for a metric; what a metric is called.
    recorded
        The metrics that are GPT-4's recorded ratings.
    titles
        A title for each set.
    not_run, not_asked
        Metrics that could not run here, and why; what nobody was asked.
    needs
        What a metric needs of a text, as ``{"f1": ["references"]}``: said of those that have a part of the scores.
    order
        The sets in the order of the sections; default: that of ``titles``.
    sampling
        Notes on what intervals resample (:func:`comperdial.studies.llm_evaluators.sampling.sampling_notes`).
    """
    named = with_ensembles(sorted(set(frame["metric"])), labels)
    found = labelled(without_itself(standing(frame, outputs), recorded), named)
    found = found[found["value"].notna()]
    sections = []
    for dataset in dict.fromkeys([*order, *titles, *sorted(set(found["dataset"]))]):
        of_set = found[found["dataset"] == dataset]
        for source in by_source(list(of_set["source"])):
            section = _section(of_set[of_set["source"] == source], named, f"{titles.get(dataset, dataset)}, rated by ")
            sections.append(section)
    return Document(
        title="Every evaluator on every data set",
        caption=leave_out.with_legend(
            "Pearson correlation of scores with mean ratings, and in brackets its 95 % interval, for each data set, "
            "source of ratings and dimension, the highest in the last column first.",
            found[found["coefficient"] == "pearson"],
        ),
        sections=sections,
        tidy=_tidy(found),
        notes=[
            UNMIXED,
            "A dash: no score of such items, or scores that are all alike",
            *sampling,
            *leave_out.notes(found, titles),
            "The CSV has Spearman and Kendall (tau-b) too, by the metrics' names in params.yaml",
            *_partial(found, titles, needs or {}),
            *evaluator_notes(found, named),
            *not_asked_notes(not_asked),
            *metrics_not_run(not_run, labels),
        ],
    )


def with_ensembles(metrics: Sequence[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels, those of ensembles made of their members' where they have none."""
    found = dict(labels)
    for metric in metrics:
        if metric.startswith(OF_DIMENSIONS):
            member = metric.removeprefix(OF_DIMENSIONS)
            found.setdefault(metric, f"mean of the dimensions of {labels.get(member, member)}")
        elif metric.startswith(OF_MODELS):
            found.setdefault(metric, f"mean of models: {metric.removeprefix(OF_MODELS)}")
    return found


def _section(frame: pd.DataFrame, labels: Mapping[str, str], title: str) -> Section:
    level = str(frame["level"].iloc[0])
    own = [name for name in DIMENSIONS[level] if name in set(frame["dimension"])]
    pearson = frame[frame["coefficient"] == "pearson"]
    columns = [Column("Pearson", SHORT[name], with_interval("value"), (name,)) for name in own]
    cells = records_by(pearson, ["label", "dimension"])
    names = in_order(list(pearson["label"]), labels)
    rows = {(name,): [name] for name in sorted(names, key=lambda name: _place(cells, name, own))}
    return pivot(title + rated_by(str(frame["source"].iloc[0])), cells, rows, ["Evaluator"], columns)


def _place(cells: Mapping[tuple[str, ...], Mapping[str, object]], name: str, own: Sequence[str]) -> list[float]:
    """Return what sorts the rows: the last dimension, the overall one where it was rated, then the one before it."""
    values = [cells.get((name, dimension), {}).get("value") for dimension in reversed(own)]
    return [-value if isinstance(value, float) and value == value else math.inf for value in values]


def _partial(found: pd.DataFrame, titles: Mapping[str, str], needs: Needs) -> list[str]:
    """Return a note for each set of which evaluators have scores of a part of the rated items only."""
    partial = found[found["coverage"] < 1]
    sets: dict[str, list[str]] = {}
    for dataset, of_set in partial.groupby("dataset", sort=False, observed=True):
        wanted = of_set["metric"].map(lambda metric: wanted_by([metric], needs))
        shares: dict[tuple[float, str], set[str]] = {}
        for share, lost, label in zip(of_set["coverage"].round(3), wanted, of_set["label"], strict=True):
            shares.setdefault((float(share), str(lost)), set()).add(str(label))
        parts = [
            f"{share:.1%} of the rated items: {', '.join(sorted(shares[share, lost]))}"
            + (f" (the others have no {lost})" if lost else "")
            for share, lost in sorted(shares)
        ]
        sets.setdefault("; of ".join(parts), []).append(titles.get(str(dataset), str(dataset)))
    return [f"{', '.join(names)}, scores of {part}" for part, names in sets.items()]


def _tidy(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row a metric, set and source, its columns once for each dimension and coefficient."""
    key = ["dataset", "source", "metric", "dimension"]
    values = found.assign(dimension=found["dimension"].map(SHORT).str.lower())
    table = values.pivot_table(index=key, columns="coefficient", values="value", observed=True, sort=False)
    pearson = leave_out.with_halved(values[values["coefficient"] == "pearson"]).set_index(key)
    beside = ["low", "high", "loso_value", "loso_system", "loso_halved"]
    joined = table.join(pearson[[*beside, "n"]].round({"low": 2, "high": 2})).reset_index().round(3)
    order = ["pearson", *beside, *(name for name in ("spearman", "kendall") if name in joined)]
    # How many items does not differ by dimension, but where ratings are missing: the fewest.
    counts = joined.groupby(key[:3], sort=False)["n"].min().astype("Int32").reset_index()
    return counts.merge(wide(joined, key[:3], ["dimension"], order), on=key[:3])
