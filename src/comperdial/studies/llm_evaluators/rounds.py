"""How the rounds of GPT-4, and people, agree with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.evaluation.dimensions import RatedSet
from comperdial.report.document import Column, Document, interval, number, pivot, records_by, value_of
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import LEVELS, PAPER, SHORT, rated_by

SOURCES = ("human", "gpt-4")
# Zhang et al. 2024, on the agreement between GPT-4's rounds.
REPORTED_AGREEMENT = 0.65


def agreement(rounds: pd.DataFrame) -> pd.DataFrame:
    """Average pairs of annotators: dataset, source, dimension, mean, lowest and highest Pearson, pairs, n (least)."""
    key = ["dataset", "source", "dimension"]
    return (
        rounds.groupby(key, observed=True, sort=True)
        .agg(
            mean=("pearson", "mean"), lowest=("pearson", "min"), highest=("pearson", "max"), pairs=("pearson", "count"),
            n=("n", "min"),
        )
        .reset_index()
    )  # fmt: skip


def rounds_document(
    rounds: pd.DataFrame, alphas: pd.DataFrame, *, titles: Mapping[str, str], order: Sequence[str] = ()
) -> Document:
    """Render how the rounds of GPT-4, and people, agree with each other.

    Parameters
    ----------
    rounds
        Table ``rounds``.
    alphas
        Krippendorff's alpha (:func:`alpha`); may be empty.
    titles
        A title for each set.
    order
        The sets in the order of the rows; default: that of ``titles``.
    """
    found = agreement(rounds).merge(alphas, on=["dataset", "source", "dimension"], how="left")
    sections = []
    names = list(dict.fromkeys([*order, *titles, *sorted(set(found["dataset"]))]))
    cells = records_by(found, ["dataset", "source", "dimension"])
    for level, title in LEVELS.items():
        own = [name for name in DIMENSIONS[level] if name != "overall"]
        here = found.groupby(["dataset", "source"], observed=True)["dimension"].agg(set)
        rows = {
            (name, source): [titles.get(name, name), rated_by(source)]
            for name in names
            for source in SOURCES
            if (name, source) in here.index and here[name, source] & set(own)
        }
        for what, group, write in (
            ("Mean Pearson of pairs, lowest and highest", "Pearson", _pair),
            ("Krippendorff's alpha", "Alpha", value_of("alpha")),
        ):
            columns = [Column(group, SHORT[name], write, (name,)) for name in DIMENSIONS[level]]
            made = pivot(f"{title}: {what}", cells, rows, ["Data set", "Rated by"], columns, empty="–")
            sections += [made] if made.rows else []
    return Document(
        title="How the rounds agree",
        caption="Agreement between GPT-4's five rounds on each set of dialogues, and between the people who rated "
        "FED-Dial.",
        sections=sections,
        tidy=found.round(4),
        notes=[
            f"{PAPER} report more than {REPORTED_AGREEMENT} for GPT-4 in general, as the "
            "mean Pearson correlation over pairs of rounds",
            *_above(found, titles),
            "Krippendorff's alpha is of interval data: some recorded ratings are no whole numbers",
            "A pair of people is a pair of places, first to fifth: other dialogues have other people there",
        ],
    )


def _above(found: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Say where the rounds of GPT-4 agree by more than the paper's number, and where they do not."""
    of = found[(found["source"] == "gpt-4") & found["mean"].notna()]
    if of.empty:
        return []
    above = of["mean"] > REPORTED_AGREEMENT
    by_set = above.groupby(of["dataset"]).agg(["sum", "count"])
    parts = [f"{titles.get(str(name), str(name))} {row['sum']} of {row['count']}" for name, row in by_set.iterrows()]
    whole = of.groupby("dataset")["mean"].mean() > REPORTED_AGREEMENT
    return [
        f"Here GPT-4's mean is above {REPORTED_AGREEMENT} in {above.sum()} of {len(of)} dimensions of sets "
        f"({', '.join(parts)}), and the mean over a set's dimensions in {whole.sum()} of {len(whole)} sets"
    ]


def _pair(row: Mapping[Any, Any]) -> str:
    return number(row["mean"]) + interval(row["lowest"], row["highest"])


def alpha(folders: Sequence[Path]) -> pd.DataFrame:
    """Return Krippendorff's alpha (interval data) of each set, source and dimension with several annotators."""
    from comperdial.stats.agreement import krippendorff_alpha

    columns = ["dataset", "source", "dimension", "alpha"]
    rows = []
    for folder in folders:
        rated = RatedSet.read(folder)
        for source in rated.sources:
            single = rated.single(source)
            if single is None or single.shape[1] < 2:
                continue
            for dimension, table in single.groupby(level="dimension"):
                rows.append((rated.dataset, source, dimension, krippendorff_alpha(table.to_numpy(), "interval")))
    return pd.DataFrame(rows, columns=columns)
