"""Properties of raters: agreement, bias, and differences between the levels of rating."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import RATED_LEVELS
from comperdial.schema.dimensions import OVERALL as OVERALL
from comperdial.stats import Coefficient
from comperdial.stats.agreement import Measurement, alpha_interval, is_pairable, pairwise_agreement
from comperdial.stats.correlation import correlate

# ComperDial (section 5) does not state its level of measurement.
_MEASUREMENTS: tuple[Measurement, ...] = ("ordinal", "interval")
_COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman")
_ITEM, _DIALOGUE = ["dataset", "item_id", "system_id"], ["dataset", "dialogue_id", "system_id"]


def alphas(
    ratings: pd.DataFrame, contexts: pd.DataFrame, *, seed: int, resamples: int = 1000, source: str = "human"
) -> pd.DataFrame:
    """Return Krippendorff's alpha of every dimension at each level, with bootstrap intervals.

    A system's whole dialogues are resampled, since its responses in a dialogue are not independent. There is one row per data
    set, level (turn first), dimension and level of measurement (``metric``); only items with at least two ratings count.
    """
    rows: list[dict[str, Any]] = []
    for key, table in _tables(ratings, source):
        units = table.index.to_frame(index=False).assign(dataset=key["dataset"])
        items = _dialogue_of(units, contexts) if key["level"] == "turn" else units["item_id"]
        clusters = pd.factorize(pd.MultiIndex.from_arrays([items, units["system_id"]]))[0]
        numbers = table.to_numpy(dtype=np.float64)
        kept = is_pairable(numbers)
        rated = ~np.isnan(numbers[kept])
        counts = {
            "confidence": 0.95, "items": int(kept.sum()), "clusters": len(np.unique(clusters[kept])),
            "annotators": int(rated.any(axis=0).sum()), "ratings": int(rated.sum()), "resamples": resamples,
        }  # fmt: skip
        for metric in _MEASUREMENTS:
            # Each dimension has its own random stream, so that adding one does not change the others.
            rng = np.random.default_rng([seed, zlib.crc32("\n".join(key.values()).encode())])
            ends = alpha_interval(numbers, metric, rng=rng, resamples=resamples, clusters=clusters)
            rows.append(key | {"metric": metric} | dict(zip(("value", "low", "high"), ends, strict=True)) | counts)
    columns = ["dataset", "level", "dimension", "metric", "value", "low", "high", "confidence", "items", "clusters"]
    columns += ["annotators", "ratings", "resamples"]
    return pd.DataFrame(rows, columns=columns).sort_values("dataset", kind="stable", ignore_index=True)


def annotator_bias(ratings: pd.DataFrame, *, source: str = "human") -> pd.DataFrame:
    """Compare each annotator with the others who rated the same items.

    All numbers are over the ``n`` items rated by the annotator and at least one other: mean; bias (the mean difference from the
    others' mean on the same item); spread (the standard deviation relative to the others', whose variances are pooled within
    each of them, so that their own biases do not count); spearman (correlation with the others' mean).
    """
    rows: list[list[Any]] = []
    for key, table in _tables(ratings, source):
        for annotator in table.columns:
            others = table.drop(columns=annotator)
            shared = table[annotator].notna() & others.notna().any(axis=1)
            own, others = table.loc[shared, annotator], others[shared]
            theirs = others.mean(axis=1)
            degrees, squares = (others.count() - 1).clip(lower=0).sum(), ((others - others.mean()) ** 2).sum().sum()
            spread = float(np.sqrt(own.var() / (squares / degrees))) if degrees and squares else np.nan
            rho = correlate(own, theirs, "spearman").value
            rows.append([*key.values(), annotator, len(own), own.mean(), (own - theirs).mean(), spread, rho])
    columns = ["dataset", "level", "dimension", "annotator_id", "n", "mean", "bias", "spread", "spearman"]
    return pd.DataFrame(rows, columns=columns)


def agreement(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return inter-annotator agreement as in USR's Table 1: mean correlation over the pairs of rater positions.

    ``ratings`` is a table of one data set and level, with positions; all responses count, including references. The columns are
    dataset, dimension, coefficient (pearson, spearman), value, n (responses); sorted by data set and dimension.
    """
    rows = []
    for (dataset, dimension), group in ratings.groupby(["dataset", "dimension"], sort=True):
        several = group.duplicated(["item_id", "system_id", "position"]).any() or group["position"].nunique() < 2
        if several or group["position"].isna().any():
            raise SchemaError(
                f"the positions of dimension {dimension!r} are not one a rater",
                where=f"dataset {dataset!r}",
                expected="two raters or more, each response rated once a position: the column of its rater",
            )
        table = group.pivot(index=["item_id", "system_id"], columns="position", values="rating").to_numpy(np.float64)
        rows += [(dataset, dimension, name, pairwise_agreement(table, name), len(table)) for name in _COEFFICIENTS]
    return pd.DataFrame(rows, columns=["dataset", "dimension", "coefficient", "value", "n"])


def table13_cases(
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    *,
    count: int = 3,
    systems: pd.DataFrame | None = None,
    source: str = "human",
) -> pd.DataFrame:
    """Choose one dialogue and at most ``count`` of its systems to show side by side, as in ComperDial's Table 13.

    The paper (appendix A.8) shows dialogues that were rated lower as a whole than their turns, but not how it chose them. Here
    it is the dialogue whose ``count`` lowest differences have the lowest mean, and their systems; ties (to 9 digits) by name. A
    difference is the mean overall rating of the dialogue minus the mean over turns of the mean turn rating, without
    standardization. With table ``systems`` only those of kind ``agent`` count. Raises a SchemaError if no dialogue of a system
    has ratings at both levels.
    """
    chosen = ratings[(ratings["dimension"] == OVERALL) & (ratings["source"] == source)]
    means = chosen.groupby(["level", *_ITEM])["rating"].mean().reset_index()
    turns, whole = (means[means["level"] == level].drop(columns="level") for level in RATED_LEVELS)
    turns = turns.assign(dialogue_id=_dialogue_of(turns, contexts))
    frame = turns.groupby(_DIALOGUE)["rating"].agg(turns="size", turn_rating="mean").reset_index()
    frame = frame.merge(whole.rename(columns={"item_id": "dialogue_id", "rating": "dialogue_rating"}))
    if systems is not None:
        frame = frame.merge(systems.loc[systems["kind"] == "agent", ["dataset", "system_id"]])
    if frame.empty:
        raise SchemaError(
            "no dialogue of a system has ratings at both levels",
            where="table ratings",
            expected=f"ratings of dimension {OVERALL!r} at both levels of the same dialogues and agents",
        )
    frame["difference"] = (frame["dialogue_rating"] - frame["turn_rating"]).round(9)
    lowest = frame.sort_values(["difference", *_DIALOGUE]).groupby(_DIALOGUE[:2]).head(count)
    by_dialogue = lowest.groupby(_DIALOGUE[:2])["difference"].agg(["size", "mean"]).round(9)
    # Small data sets may have fewer systems than ``count``: then show all.
    dataset, dialogue = by_dialogue.loc[by_dialogue["size"] == by_dialogue["size"].max(), "mean"].idxmin()
    return lowest[(lowest["dataset"] == dataset) & (lowest["dialogue_id"] == dialogue)].reset_index(drop=True)


def _tables(ratings: pd.DataFrame, source: str) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield data set, level (turn first) and dimension with their table: item and system x annotator."""
    chosen = ratings[ratings["source"] == source]
    if chosen.empty and len(ratings):
        raise UnknownNameError("source of ratings", source, ratings["source"].unique())
    for level in RATED_LEVELS:
        of_level = chosen[chosen["level"] == level]
        for (dataset, dimension), group in of_level.groupby(["dataset", "dimension"], sort=True):
            table = group.pivot(index=["item_id", "system_id"], columns="annotator_id", values="rating")
            yield {"dataset": str(dataset), "level": level, "dimension": str(dimension)}, table


def _dialogue_of(items: pd.DataFrame, contexts: pd.DataFrame) -> pd.Series:
    """Return the dialogue of each context (dataset, item_id)."""
    known = contexts.set_index(["dataset", "context_id"])["dialogue_id"]
    dialogues = known.reindex(pd.MultiIndex.from_frame(items[["dataset", "item_id"]])).set_axis(items.index)
    if len(unknown := items[dialogues.isna()]):
        dataset, context = unknown.iloc[0][["dataset", "item_id"]]
        problem = f"rated context {context!r} of data set {dataset!r} is unknown"
        raise SchemaError(problem, where="table contexts", expected="every context that was rated")
    return dialogues
