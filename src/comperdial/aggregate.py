"""From single ratings and scores to levels, and from levels to correlations."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.errors import SchemaError, UnknownNameError
from comperdial.stats.agreement import pairwise_agreement
from comperdial.stats.correlation import Coefficient, correlate

log = logging.getLogger(__name__)

LEVELS = ("turn", "system")
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


def mean_ratings(ratings: pd.DataFrame, *, source: str = "human") -> pd.DataFrame:
    """Average the ratings of each response over its annotators.

    Parameters
    ----------
    ratings
        Table ``turn_ratings``.
    source
        Whose ratings: ``human`` or the name of a judge; never mixed.

    Returns
    -------
    DataFrame
        One row a context and system (index), one column a dimension; missing where nobody rated.
    """
    chosen = ratings[ratings["source"] == source]
    if chosen.empty:
        raise UnknownNameError("source of ratings", source, ratings["source"].unique())
    return chosen.pivot_table(index=["context_id", "system_id"], columns="dimension", values="rating", aggfunc="mean")


def correlations(
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    *,
    source: str = "human",
    levels: Sequence[str] = LEVELS,
    targets: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Correlate every output of every metric with the human mean of every dimension.

    Turn level pools all rated responses. A system's score and rating are its means over turns, the same turns on both
    sides: a turn without a score counts on neither.

    Parameters
    ----------
    scores
        Table ``scores``, turn level, of one dataset.
    ratings
        Table ``turn_ratings`` of the same dataset. Only systems that have scores count: references have none.
    source
        As in :func:`mean_ratings`.
    levels
        Some of ``turn`` and ``system``.
    targets
        The dimensions; default: all.

    Returns
    -------
    DataFrame
        Table ``correlations``. ``n`` counts complete pairs; ``coverage`` is the share of the rated responses of scored
        systems that have a score.
    """
    human = mean_ratings(ratings, source=source)
    chosen = list(human.columns) if targets is None else list(targets)
    for target in chosen:
        if target not in human.columns:
            raise UnknownNameError("dimension", target, human.columns)
    rows = []
    keys = ["dataset", "metric", "output", "signature"]
    for (dataset, metric, output, signature), group in scores[scores["level"] == "turn"].groupby(keys, sort=True):
        values = group.set_index(["item_id", "system_id"])["value"].astype("float64")
        values.index.names = ["context_id", "system_id"]
        rated = human[human.index.get_level_values("system_id").isin(group["system_id"].unique())]
        if not values.index.intersection(rated.index).size:
            raise SchemaError(
                f"no score of metric {metric!r} belongs to a rated response",
                where=f"dataset {dataset!r}",
                expected="the same context_id and system_id in scores and ratings",
            )
        for target in chosen:
            pairs = pd.DataFrame({"score": values.reindex(rated.index), "rating": rated[target]})
            pairs = pairs[pairs["rating"].notna()]
            coverage = float(pairs["score"].notna().mean())
            complete = pairs.dropna()
            samples = {"turn": complete, "system": complete.groupby(level="system_id").mean()}
            for level in levels:
                sample = samples[level]
                for coefficient in COEFFICIENTS:
                    found = correlate(sample["score"], sample["rating"], coefficient)
                    rows.append(
                        {
                            "dataset": dataset,
                            "level": level,
                            "target": target,
                            "metric": metric,
                            "output": output,
                            "coefficient": coefficient,
                            "value": found.value,
                            "p": found.p,
                            "n": found.n,
                            "coverage": coverage,
                            "signature": signature,
                        }
                    )
    return schema.validate(pd.DataFrame(rows, columns=schema.table("correlations").columns), "correlations")


def agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return inter-annotator agreement as USR's Table 1 has it: mean correlation over the pairs of rater positions.

    Parameters
    ----------
    ratings
        Table ``turn_ratings`` of one dataset, with positions; all responses count, references included.

    Returns
    -------
    DataFrame
        Columns dataset, dimension, coefficient (pearson, spearman), value, n (responses); dimensions in the order of
        the ratings' scale widths and names.
    """
    if ratings["position"].isna().any():
        raise SchemaError("ratings without a position", expected="a position for each rating: the column of its rater")
    rows = []
    for (dataset, dimension), group in ratings.groupby(["dataset", "dimension"], sort=True):
        table = group.pivot(index=["context_id", "system_id"], columns="position", values="rating")
        for coefficient in COEFFICIENTS[:2]:
            value = pairwise_agreement(table.to_numpy(dtype=np.float64), coefficient)
            rows.append(
                {
                    "dataset": dataset,
                    "dimension": dimension,
                    "coefficient": coefficient,
                    "value": value,
                    "n": len(table),
                }
            )
    return pd.DataFrame(rows)
