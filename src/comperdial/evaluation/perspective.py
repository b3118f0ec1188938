"""Whose eye: what metrics that need no model and no reference say, against the interlocutor's ratings and outsiders'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.evaluation.continuity import by_person
from comperdial.metrics import create
from comperdial.metrics.base import Batch
from comperdial.metrics.text import normalise

Tokens = Literal["characters", "words"]
INTERLOCUTOR, OUTSIDERS, DIFFERENCE = "interlocutor", "outsiders", "difference"
OTHER_EYE = "other eye"
"""In the place of a metric: the ratings of the other role."""
SIMPLE = {
    "length": "Length",
    "distinct-2": "Distinct-2",
    "overlap-last": "Overlap with the last utterance",
    "overlap-history": "Overlap with the history",
    "question": "Asks a question",
    "place": "Place in the dialogue",
}
_QUESTION = ("?", "？", "か。", "か・・")


def simple_scores(responses: pd.DataFrame, contexts: pd.DataFrame, tokens: Tokens) -> pd.DataFrame:
    """Score responses with what needs no model and no reference.

    Parameters
    ----------
    responses, contexts
        Tables of one data set.
    tokens
        What is counted: ``words``, normalised as everywhere; or ``characters``, of a language that writes no spaces.

    Returns
    -------
    DataFrame
        ``context_id``, ``system_id``, ``dialogue_id``, and a column for each of :data:`SIMPLE`; NaN where a score cannot be had.
    """
    frame = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")
    texts = [_spaced(text, tokens) for text in frame["response"]]
    said = [[{**one, "text": _spaced(one["text"], tokens)} for one in history] for history in frame["history"]]
    batch = Batch(
        texts, [[]] * len(texts), [[one for one in history if one["text"]] for history in said], [[]] * len(texts)
    )
    filled = np.array([bool(text) for text in texts]) & batch.has("histories")
    scores = {"length": [len(text.split()) or np.nan for text in texts]}
    scores["distinct-2"] = create("distinct", text="raw").compute(batch)["distinct-2"].tolist()
    for name, part in (("overlap-last", "last"), ("overlap-history", "history")):
        metric = create("with_context", metric="f1", options={"text": "raw"}, of=part)
        values = np.full(len(texts), np.nan)
        if filled.any():
            values[filled] = metric.compute(batch.only(filled))["f1"]
        scores[name] = values.tolist()
    scores["question"] = [float(any(mark in text for mark in _QUESTION)) for text in frame["response"]]
    scores["place"] = frame["turn"].astype(float).tolist()
    return frame[["context_id", "system_id", "dialogue_id"]].assign(**{name: scores[name] for name in SIMPLE})


def _spaced(text: str, tokens: Tokens) -> str:
    return normalise(text) if tokens == "words" else " ".join("".join(text.split()))


def in_whose_eye(
    scores: pd.DataFrame,
    ratings: Mapping[str, npt.ArrayLike],
    clusters: npt.ArrayLike,
    *,
    metrics: Sequence[str] = tuple(SIMPLE),
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlate scores with the ratings of each role by Spearman, and where there are two roles compare them.

    Parameters
    ----------
    scores
        A column for each metric, a row an item; NaN where an item has no score.
    ratings
        By role, each of shape (items,), none missing.
    clusters
        Shape (items,): who was the interlocutor, or which dialogue; intervals resample these.

    Returns
    -------
    DataFrame
        For each metric a row a role, and one :data:`DIFFERENCE` (interlocutor less outsiders) where there are both:
        ``metric``, ``role``, ``value``, ``low``, ``high``, ``p`` (of differences), ``n``, ``clusters``, ``rank`` among the
        metrics in that role's eye (by value; 1 is the highest). With both roles also a row :data:`OTHER_EYE`.
    """
    people = np.asarray(clusters)
    by_role = {role: np.asarray(values, np.float64) for role, values in ratings.items()}
    rows = []
    for metric in metrics:
        values = scores[metric].to_numpy(np.float64)
        there = ~np.isnan(values)
        if not there.any():
            continue
        # A correlation has no sides: the roles take the metrics' place, so that they are compared on the same items.
        kept = {role: one[there] for role, one in by_role.items()}
        found = by_person(kept, values[there], people[there], coefficient="spearman", resamples=resamples, seed=seed)
        pooled = found.values[found.values["measure"] == "pooled"]
        rows += [
            {"metric": metric, "role": row["prediction"], **_numbers(row), "p": np.nan}
            for row in pooled.to_dict("records")
        ]
        apart = found.differences.query(
            f"measure == 'pooled' and prediction == '{INTERLOCUTOR}' and other == '{OUTSIDERS}'"
        )
        for row in apart.to_dict("records"):
            said = {"value": row["difference"], "low": row["low"], "high": row["high"], "p": row["p"]}
            counts = {"n": int(there.sum()), "clusters": len(np.unique(people[there]))}
            rows.append({"metric": metric, "role": DIFFERENCE, **said, **counts})
    frame = pd.DataFrame(rows, columns=["metric", "role", "value", "low", "high", "p", "n", "clusters"])
    ranked = frame["role"] != DIFFERENCE
    frame["rank"] = frame[ranked].groupby("role")["value"].rank(ascending=False, method="min")
    if {INTERLOCUTOR, OUTSIDERS} <= by_role.keys():
        found = by_person(
            {INTERLOCUTOR: by_role[INTERLOCUTOR]},
            by_role[OUTSIDERS],
            people,
            coefficient="spearman",
            resamples=resamples,
            seed=seed,
        )
        row = found.values.iloc[0].to_dict()
        other = {"metric": OTHER_EYE, "role": INTERLOCUTOR, **_numbers(row), "p": np.nan, "rank": np.nan}
        frame = pd.concat([frame, pd.DataFrame([other])], ignore_index=True)
    return frame


def _numbers(row: Mapping[Any, Any]) -> dict[str, float]:
    return {**{name: row[name] for name in ("value", "low", "high", "n")}, "clusters": row["persons"]}
