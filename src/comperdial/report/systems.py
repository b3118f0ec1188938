"""Mean ratings of systems with intervals, and their mean scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.core.errors import SchemaError
from comperdial.core.names import RATED_LEVELS, output_name

_RATED = ["level", "system_id"]


def system_ratings(ratings: pd.DataFrame, contexts: pd.DataFrame) -> pd.DataFrame:
    """Return each system's mean rating with a 95 % interval, by level and system, best first.

    Items have equal weight, whatever their number of raters. The interval treats dialogues as sampled and raters as fixed: the
    variance of a mean of clustered units, with Student's t with dialogues - 1 degrees of freedom, clipped to the scale; missing
    with a single dialogue.

    Parameters
    ----------
    ratings
        Table ``ratings`` of one data set, dimension and source.
    contexts
        Table ``contexts``, for the dialogue of each rated turn.

    Returns
    -------
    pandas.DataFrame
        level, system_id, rating, low, high, items, dialogues, raters.
    """
    items = ratings.groupby([*_RATED, "item_id"], observed=True)["rating"].mean().reset_index()
    dialogue = items["item_id"].map(contexts.set_index("context_id")["dialogue_id"])
    # Rated dialogues are their own clusters.
    items["dialogue"] = dialogue.where(items["level"] == "turn").fillna(items["item_id"])
    made = items.groupby(_RATED, observed=True).agg(
        rating=("rating", "mean"), items=("rating", "size"), dialogues=("dialogue", "nunique")
    )
    rest = items["rating"] - items.groupby(_RATED, observed=True)["rating"].transform("mean")
    sums = rest.groupby([items["level"], items["system_id"], items["dialogue"]], observed=True).sum() ** 2
    clusters = made["dialogues"].where(made["dialogues"] > 1)
    variance = sums.groupby(_RATED, observed=True).sum() * clusters / (clusters - 1) / made["items"] ** 2
    reach = stats.t.ppf(0.975, clusters - 1) * np.sqrt(variance)
    raters = ratings.groupby(_RATED, observed=True).agg(
        raters=("annotator_id", "nunique"), lowest=("scale_min", "min"), highest=("scale_max", "max")
    )
    made = made.assign(raters=raters["raters"])
    made["low"] = (made["rating"] - reach).clip(lower=raters["lowest"])
    made["high"] = (made["rating"] + reach).clip(upper=raters["highest"])
    made = made.reset_index()[[*_RATED, "rating", "low", "high", "items", "dialogues", "raters"]]
    return made.sort_values(["level", "rating", "system_id"], ascending=[False, False, True], ignore_index=True)


def systems_frame(
    systems: pd.DataFrame,
    responses: pd.DataFrame,
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    *,
    outputs: Sequence[str],
) -> pd.DataFrame:
    """Return one row per system, best rated first, without references.

    The columns are kind, track, description, responses, the mean rating at each level with its interval (``turn_rating``,
    ``turn_rating_low``, ``turn_rating_high``, ``dialogue_…``), of one source and dimension, then the mean score of each of the
    ``outputs`` (METRIC:OUTPUT) with scores of turns.
    """
    frame = systems[systems["kind"] != "reference"].set_index("system_id")[["kind", "track", "description"]]
    if frame.empty:
        raise SchemaError("no systems", expected="at least one that is not a reference")
    frame["responses"] = responses.groupby("system_id").size().reindex(frame.index, fill_value=0)
    means = system_ratings(ratings, contexts).set_index("system_id")
    for level in RATED_LEVELS:
        own = means[means["level"] == level].rename(columns={"low": "rating_low", "high": "rating_high"})
        frame = frame.join(own[["rating", "rating_low", "rating_high"]].add_prefix(f"{level}_"))
    of_turns = scores[scores["level"] == "turn"]
    mean = of_turns.groupby(["metric", "output", "system_id"])["value"].mean().astype("float64")
    known = {*zip(of_turns["metric"], of_turns["output"], strict=True)}
    for name in outputs:
        if output_name(name, where="tables.systems") in known:
            frame[name] = mean[output_name(name)]
    order = [f"{level}_rating" for level in RATED_LEVELS]
    return frame.sort_index().sort_values(order, ascending=False, kind="stable").reset_index()
