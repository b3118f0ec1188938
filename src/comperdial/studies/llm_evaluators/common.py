"""What the tables of the study share: its dimensions, whose ratings, which output stands for a metric, means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.names import Output, unperturbed
from comperdial.evaluation.ensembles import MEAN, OVER_DIMENSIONS, OVER_MODELS, is_ensemble, standing_for
from comperdial.report import leave_out
from comperdial.report.document import Column, Section, interval, number, pivot, records_by
from comperdial.schema.evaluated import DIMENSIONS

PAPER = "Zhang et al. 2024"
SHORT = {
    "relevance": "Rel", "specificity": "Spe", "interestingness": "Int", "understandability": "Und", "overall": "Ovr",
    "coherence": "Coh", "engagingness": "Eng", "diversity": "Div", "informativeness": "Inf", "average": "Avg",
}  # fmt: skip
LEVELS = {"turn": "Turn level", "dialogue": "Dialogue level"}
# In the order of the tables; other sources come after them.
RATERS = {"human": "people", "gpt-4": "GPT-4"}
BOTH = "people or GPT-4"
AVERAGE = "average"
OF_DIMENSIONS = f"{OVER_DIMENSIONS}:"
OF_MODELS = f"{OVER_MODELS}:"

CORRELATION_COLUMNS = ("source", "place", "level", "metric", "score", "dimension")
RANKING_COLUMNS = ("source", "place", "dataset", "dimension")

UNMIXED = (
    "Ratings by people and by GPT-4 are never put together in a number of ours; the paper's means over sets are over "
    "both, the sets that people rated and those that GPT-4 rated"
)
NOT_OURS = f"Rows marked reported are the numbers that {PAPER} print; the models of these rows were not run here"


def rated_by(source: str) -> str:
    """Say whose ratings a source stands for."""
    return RATERS.get(source, source)


def by_source(sources: Sequence[str]) -> list[str]:
    """Return sources, each once: people, GPT-4, and the others by name."""
    order = list(RATERS)
    return sorted(set(sources), key=lambda name: (order.index(name) if name in order else len(order), name))


def standing(frame: pd.DataFrame, outputs: Sequence[Output]) -> pd.DataFrame:
    """Keep one output a metric and dimension: the one called as the dimension; else the metric's, as chosen.

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` or ``ratios``.
    outputs
        (metric, output) of the metrics that have none called as a dimension. A metric with one output needs no entry;
        of an ensemble it is ``mean``. Metrics with several outputs and no entry are left out.
    """
    has = frame.groupby("metric", observed=True)["output"].agg(lambda names: sorted(set(names)))
    main = {str(metric): names[0] for metric, names in has.items() if len(names) == 1}
    main |= {str(metric): MEAN for metric in has.index if is_ensemble(str(metric))} | dict(outputs)
    return standing_for(frame, list(main.items()))


def labelled(frame: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Add ``label``: what an output or its metric is called. What is called alike is one row (a judge's variants)."""
    names = zip(frame["metric"], frame["output"], strict=True)
    return frame.assign(label=[called(str(metric), str(output), labels) for metric, output in names])


def called(metric: str, output: str, labels: Mapping[str, str]) -> str:
    """Return the label of an output or of its metric, or the metric's name."""
    return labels.get(f"{metric}:{output}", labels.get(metric, metric))


def in_order(names: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    """Return labels, each once, in the order of ``labels``; what is not there comes after, by name."""
    order = list(dict.fromkeys(labels.values()))
    return sorted(set(names), key=lambda name: (order.index(name) if name in order else len(order), name))


def without_itself(frame: pd.DataFrame, recorded: Sequence[str]) -> pd.DataFrame:
    """Leave out GPT-4's recorded ratings, and means of them, held against GPT-4's ratings: they are the same."""
    own = frame["metric"].astype(str).str.removeprefix(OF_DIMENSIONS).isin(list(recorded))
    return frame[~(own & (frame["source"] == "gpt-4"))]


def level_means(frame: pd.DataFrame, labels: Mapping[str, str], rated: pd.DataFrame | None = None) -> pd.DataFrame:
    """Average Pearson correlations over the sets of a level, apart for each source of ratings.

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` with one output a metric and dimension (:func:`standing`).
    labels
        What a metric is called.
    rated
        The rows whose sets are counted as having such ratings; default: ``frame``.

    Returns
    -------
    DataFrame
        One row a label, level, source and dimension: value, ``sets`` (in the mean) and ``of`` (sets with such
        ratings); ``low`` and ``high`` where it is one set.

    Raises
    ------
    SchemaError
        When two metrics called alike have a value in one place.
    """
    found = labelled(frame[(frame["coefficient"] == "pearson") & frame["value"].notna()], labels)
    key = ["label", "level", "source", "dimension"]
    if (twice := found.duplicated([*key, "dataset"])).any():
        row = found[twice].iloc[0]
        both = found[(found[[*key, "dataset"]] == row[[*key, "dataset"]]).all(axis=1)]["metric"]
        raise SchemaError(
            f"{row['label']!r} is what {' and '.join(both)} are called, and both have a value",
            where=f"{row['dataset']}, {row['dimension']}",
            expected="labels that tell them apart",
        )
    made = found.groupby(key, sort=False, observed=True).agg(
        value=("value", "mean"), sets=("dataset", "nunique"), low=("low", "first"), high=("high", "first")
    )
    made.loc[made["sets"] > 1, ["low", "high"]] = float("nan")
    every = frame if rated is None else rated
    of = every.groupby(["level", "source", "dimension"], observed=True)["dataset"].nunique().rename("of")
    return made.reset_index().merge(of.reset_index(), on=["level", "source", "dimension"])


def by_dimension(
    title: str,
    frame: pd.DataFrame,
    rows: Mapping[Any, Sequence[str]],
    labels: Sequence[str],
    *,
    key: Sequence[str] = ("label",),
    levels: Sequence[str] = tuple(LEVELS),
    first: Sequence[Sequence[str]] = (),
) -> Section:
    """Return a section with the five dimensions of some levels and their mean, rows without any value left out.

    ``frame`` is of :func:`with_averages` or of reported values, ``key`` its columns that are a row's key; the others
    are those of :func:`comperdial.report.document.pivot`.
    """
    columns = [
        Column(LEVELS[level], SHORT[name], mean_of_sets, (level, name))
        for level in levels
        for name in (*DIMENSIONS[level], AVERAGE)
    ]
    cells = records_by(frame, [*key, "level", "dimension"])
    return pivot(title, cells, rows, labels, columns, first=first, empty="–")


def with_averages(means: pd.DataFrame) -> pd.DataFrame:
    """Add to the means of :func:`level_means` those over a level's dimensions, where all of these have a value."""
    own = [name in DIMENSIONS[level] for name, level in zip(means["dimension"], means["level"], strict=True)]
    groups = means[own].groupby(["label", "level", "source"], sort=False, observed=True)["value"]
    whole = groups.agg(value="mean", count="count").reset_index()
    whole = whole[whole["count"] == whole["level"].map(DIMENSIONS).map(len)].assign(dimension=AVERAGE)
    return pd.concat([means, whole.drop(columns="count")], ignore_index=True)


def mean_of_sets(row: Mapping[Any, Any]) -> str:
    """Write a mean of :func:`level_means`, and in brackets how many sets it is of where some have no score."""
    fewer = "sets" in row and row["sets"] < row["of"]
    return number(row["value"]) + (f" ({row['sets']:.0f})" if fewer else "")


def average(values: Sequence[float]) -> float:
    """Return the mean; missing where one of the values is."""
    return float("nan") if not values or any(pd.isna(v) for v in values) else float(sum(values) / len(values))


def counts(means: pd.DataFrame, source: str, level: str) -> list[str]:
    """Return how many sets have ratings by a source, for the five dimensions, and nothing for their mean."""
    found = means[(means["source"] == source) & (means["level"] == level)]
    of = found.groupby("dimension")["of"].max()
    return [*(str(of[name]) if name in of.index else "–" for name in DIMENSIONS[level]), "–"]


def wide(tidy: pd.DataFrame, index: Sequence[str], by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Return one row for ``index``, and a column for each value and place in ``by``: a third of a tidy CSV's bytes.

    Rows and columns keep the order in which they come first; columns of which nothing is known are left out.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    order: dict[str, None] = {}
    for record in tidy.to_dict("records"):
        place = "_".join(str(record[name]) for name in by)
        names = {value: place if value == values[0] else f"{place}_{value}" for value in values}
        order |= dict.fromkeys(names.values())
        row = rows.setdefault(tuple(str(record[name]) for name in index), {name: record[name] for name in index})
        row |= {name: record[value] for value, name in names.items()}
    found = pd.DataFrame(list(rows.values()), columns=[*index, *order])
    return found.drop(columns=[name for name in order if found[name].isna().all()])


def with_interval(value: str) -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a record's value with its interval, ``low`` and ``high``; a dash when it is missing.

    A correlation that falls by more than half without one system is marked.
    """

    def write(row: Mapping[Any, Any]) -> str:
        if pd.isna(row[value]):
            return "–"
        return number(row[value]) + leave_out.mark(row, value) + interval(row["low"], row["high"])

    return write


def titled(dataset: str, titles: Mapping[str, str]) -> str:
    """Return a data set's title; pairs that were made of a set bear the set's."""
    return titles.get(dataset, titles.get(unperturbed(dataset), dataset))
