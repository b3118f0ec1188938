"""What the ratings say of their raters: agreement, bias, and where the levels of rating differ."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import RATED_LEVELS
from comperdial.stats.agreement import Measurement, alpha_interval, is_pairable
from comperdial.stats.correlation import correlate

OVERALL = "Overall"
ALPHA_COLUMNS = [
    "dataset", "level", "dimension", "metric", "value", "low", "high", "confidence", "items", "clusters", "annotators",
    "ratings", "resamples",
]  # fmt: skip
BIAS_COLUMNS = ["dataset", "level", "dimension", "annotator_id", "n", "mean", "bias", "spread", "spearman"]
_ITEM, _DIALOGUE = ["dataset", "item_id", "system_id"], ["dataset", "dialogue_id", "system_id"]


def alphas(
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    *,
    seed: int,
    resamples: int = 1000,
    metrics: Sequence[Measurement] = ("ordinal", "interval"),
    confidence: float = 0.95,
    source: str = "human",
) -> pd.DataFrame:
    """Return Krippendorff's alpha of every dimension at each level, with bootstrap intervals.

    At turn level whole dialogues of one system are resampled (its responses in one dialogue are not independent), at
    dialogue level the rated dialogues, which are the same units.

    Parameters
    ----------
    ratings, contexts
        Tables of these names; a level without ratings by the source is left out.
    seed
        Of the resamples. Each dimension has its own stream, so that one more does not change the others.
    resamples, confidence
        As in :func:`comperdial.stats.agreement.alpha_interval`.
    metrics
        Levels of measurement, of which ComperDial (section 5) does not say which it used.
    source
        Whose ratings: ``human`` or the name of a judge; never mixed.

    Returns
    -------
    DataFrame
        One row a data set, level (turn first), dimension and metric: value, low, high, confidence; items and ratings that
        count (of items with two ratings or more), clusters (what was resampled), annotators, resamples.
    """
    rows: list[dict[str, Any]] = []
    for key, table in _tables(ratings, source):
        items = table.index.to_frame(index=False).assign(dataset=key["dataset"])
        if key["level"] == "turn":
            items["item_id"] = _dialogue_of(items, contexts)
        clusters = items.groupby(["item_id", "system_id"], sort=False).ngroup().to_numpy()
        numbers = table.to_numpy(dtype=np.float64)
        kept = is_pairable(numbers)
        rated = ~np.isnan(numbers[kept])
        counts = {
            "confidence": confidence, "items": int(kept.sum()), "clusters": len(np.unique(clusters[kept])),
            "annotators": int(rated.any(axis=0).sum()), "ratings": int(rated.sum()), "resamples": resamples,
        }  # fmt: skip
        for metric in metrics:
            # The same resamples for each metric.
            rng = np.random.default_rng([seed, zlib.crc32("\n".join(key.values()).encode())])
            value, low, high = alpha_interval(
                numbers, metric, rng=rng, resamples=resamples, confidence=confidence, clusters=clusters
            )
            rows.append(key | {"metric": metric, "value": value, "low": low, "high": high} | counts)
    # Sorted by data set alone, stably: the levels come turn first.
    return pd.DataFrame(rows, columns=ALPHA_COLUMNS).sort_values("dataset", kind="stable", ignore_index=True)


def annotator_bias(ratings: pd.DataFrame, *, source: str = "human") -> pd.DataFrame:
    """Compare each annotator with the others who rated the same items.

    Returns
    -------
    DataFrame
        One row a data set, level, dimension and annotator, in that order. All numbers are of the ``n`` items that the
        annotator and at least one other rated: mean; bias (the mean difference from the mean of the others on the same
        item); spread (the standard deviation over that of the others, whose variances are pooled within each of them,
        so that their own biases do not count); spearman (correlation with the mean of the others). Missing where it is
        undefined.
    """
    rows: list[dict[str, Any]] = []
    for key, table in _tables(ratings, source):
        for annotator in table.columns:
            others = table.drop(columns=annotator)
            shared = table[annotator].notna() & others.notna().any(axis=1)
            own, others = table.loc[shared, annotator], others[shared]
            theirs = others.mean(axis=1)
            degrees, squares = (others.count() - 1).clip(lower=0).sum(), ((others - others.mean()) ** 2).sum().sum()
            numbers = {
                "n": len(own),
                "mean": own.mean(),
                "bias": (own - theirs).mean(),
                "spread": float(np.sqrt(own.var() / (squares / degrees))) if degrees and squares else np.nan,
                "spearman": correlate(own, theirs, "spearman").value,
            }
            rows.append(key | {"annotator_id": annotator} | numbers)
    return pd.DataFrame(rows, columns=BIAS_COLUMNS)


def level_differences(
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    *,
    systems: pd.DataFrame | None = None,
    dimension: str = OVERALL,
    source: str = "human",
) -> pd.DataFrame:
    """Return by how much raters of dialogues differ from raters of their turns.

    ComperDial, appendix A.8, shows such dialogues; the rule is ours. The difference is the mean dialogue rating minus the
    mean over turns of the mean turn rating, with nothing standardised.

    Parameters
    ----------
    ratings, contexts
        Tables of these names; a dialogue of a system counts if it was rated at both levels.
    systems
        Table ``systems``: with it, only those of kind ``agent`` count.
    dimension, source
        Which ratings.

    Returns
    -------
    DataFrame
        Columns dataset, dialogue_id, system_id, turns (rated), turn_rating, dialogue_rating, difference; lowest
        difference first, ties (to 9 digits) by the names.
    """
    of_level = {}
    for level in RATED_LEVELS:
        chosen = ratings[(ratings["level"] == level) & (ratings["source"] == source)]
        if dimension not in set(chosen["dimension"]):
            raise SchemaError(
                f"no ratings of dimension {dimension!r} by source {source!r} at {level} level",
                where="table ratings",
                expected=f"dimension {dimension!r}",
                hint="It has: " + ", ".join(sorted(chosen["dimension"].unique())),
            )
        of_level[level] = chosen[chosen["dimension"] == dimension].groupby(_ITEM)["rating"].mean()
    means = of_level["turn"].reset_index()
    means["dialogue_id"] = _dialogue_of(means, contexts)
    frame = means.groupby(_DIALOGUE)["rating"].agg(turns="size", turn_rating="mean")
    frame["dialogue_rating"] = of_level["dialogue"].rename_axis(_DIALOGUE)
    frame = frame[frame["dialogue_rating"].notna()].reset_index()
    if systems is not None:
        frame = frame.merge(systems.loc[systems["kind"] == "agent", ["dataset", "system_id"]])
    if frame.empty:
        raise SchemaError(
            "no dialogue of a system has ratings at both levels",
            where="table ratings",
            expected=f"ratings of dimension {dimension!r} at both levels of the same dialogues and agents",
        )
    frame["difference"] = (frame["dialogue_rating"] - frame["turn_rating"]).round(9)
    return frame.sort_values(["difference", *_DIALOGUE], ignore_index=True)


def table13_cases(
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    *,
    count: int = 3,
    systems: pd.DataFrame | None = None,
    source: str = "human",
) -> pd.DataFrame:
    """Choose one dialogue and at most ``count`` systems in it, to be shown side by side as in ComperDial's Table 13.

    The paper does not say how it chose. Here it is the dialogue whose ``count`` lowest differences of
    :func:`level_differences` (same parameters, same columns) have the lowest mean, and the systems they belong to; ties by
    name.
    """
    differences = level_differences(ratings, contexts, systems=systems, source=source)
    lowest = differences.groupby(["dataset", "dialogue_id"]).head(count)
    of_dialogue = lowest.groupby(["dataset", "dialogue_id"])["difference"].agg(["size", "mean"])
    # Small sets may have fewer systems than are to be shown: then as many as there are.
    means = of_dialogue.loc[of_dialogue["size"] == of_dialogue["size"].max(), "mean"].round(9)
    # The index is sorted, and the first of equal means is taken.
    dataset, dialogue = means.index[int(means.to_numpy().argmin())]
    chosen = (lowest["dataset"] == dataset) & (lowest["dialogue_id"] == dialogue)
    return lowest[chosen].reset_index(drop=True)


def _tables(ratings: pd.DataFrame, source: str) -> Iterable[tuple[dict[str, str], pd.DataFrame]]:
    """Yield data set, level (turn first) and dimension with their table: item and system x annotator."""
    chosen = ratings[ratings["source"] == source]
    if chosen.empty and len(ratings):
        raise UnknownNameError("source of ratings", source, ratings["source"].unique())
    for level in RATED_LEVELS:
        of_level = chosen[chosen["level"] == level]
        for (dataset, dimension), group in of_level.groupby(["dataset", "dimension"], sort=True):
            table = group.pivot(index=["item_id", "system_id"], columns="annotator_id", values="rating")
            yield {"dataset": str(dataset), "level": level, "dimension": str(dimension)}, table


def _dialogue_of(items: pd.DataFrame, contexts: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return the dialogue of each context (dataset, item_id)."""
    known = contexts.set_index(["dataset", "context_id"])["dialogue_id"]
    dialogues = known.reindex(pd.MultiIndex.from_frame(items[["dataset", "item_id"]])).to_numpy(dtype=object)
    if (unknown := pd.isna(dialogues)).any():
        dataset, context = items.loc[unknown, ["dataset", "item_id"]].iloc[0]
        raise SchemaError(
            f"rated context {context!r} of data set {dataset!r} is unknown",
            where="table contexts",
            expected="every context that was rated",
        )
    return dialogues
