"""Compare predictions and simple metrics with the ratings of interlocutors and of outsiders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.data.readers.ieval import MOODS
from comperdial.metrics import create
from comperdial.metrics.base import Batch
from comperdial.metrics.text import normalise
from comperdial.stats import Coefficient
from comperdial.stats.comparison import compare
from comperdial.stats.design import Design, codes_of
from comperdial.stats.intervals import intervals
from comperdial.training import score_prediction as score_models

Tokens = Literal["characters", "words"]
POOLED, WITHIN = "pooled", "within"
INTERLOCUTOR, OUTSIDERS, DIFFERENCE = "interlocutor", "outsiders", "difference"
OTHER_EYE = "other eye"
"""In the column of metrics: the ratings of the other role."""
SIMPLE = ("length", "distinct-2", "overlap-last", "overlap-history", "question", "place")
"""Metrics that need no model and no reference."""
_QUESTION = ("?", "？", "か。", "か・・")
_ROLES = {"interlocutor": INTERLOCUTOR, "outsider": OUTSIDERS}


def by_person(
    predictions: Mapping[str, npt.ArrayLike],
    scores: npt.ArrayLike,
    persons: npt.ArrayLike,
    *,
    coefficient: Coefficient = "pearson",
    within: bool = True,
    resamples: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Correlate predictions with scores over all items and, with ``within``, also within persons.

    All arrays have shape (n,); items that lack a prediction (NaN) are ignored. Intervals (95 %) resample persons. Returns values
    (``prediction``, ``measure``: :data:`POOLED`, or :data:`WITHIN`, with both sides centred by person, ``value``, ``low``,
    ``high``, ``n`` items, ``persons``), missing if a side is constant; and differences (``prediction``, ``other``, ``measure``,
    ``difference``, ``low``, ``high``, ``p``: two-sided; Student's t, leaving persons out one by one).
    """
    names = list(predictions)
    frame = pd.DataFrame({name: np.asarray(one, np.float64) for name, one in predictions.items()})
    frame = frame.assign(_score=np.asarray(scores, np.float64), _person=np.asarray(persons)).dropna(subset=names)
    codes = codes_of(frame.pop("_person").to_numpy())
    design = Design(np.zeros_like(codes), codes)
    # Variation due to rounding is removed.
    centred = frame - frame.groupby(codes).transform("mean")
    centred = centred.mask(centred.abs() <= 1e-9 * frame.abs().max(), 0.0)
    one, other = np.nonzero(~np.eye(len(names), dtype=bool))
    values, differences = [], []
    for measure, sides in {POOLED: frame, **({WITHIN: centred} if within else {})}.items():
        table, human = sides[names].to_numpy().T, sides["_score"].to_numpy()
        estimates = intervals(table, human, design, [coefficient], resamples=resamples, seed=seed)
        numbers = {end: getattr(estimates, end)[:, 0] for end in ("value", "low", "high")}
        counts = {"n": len(frame), "persons": design.counts[1]}
        values.append(pd.DataFrame({"prediction": names, "measure": measure} | numbers | counts))
        tested = compare(table, human, design, coefficient, resamples=0, seed=seed)
        apart, reach = tested.difference[one, other], tested.reach[one, other]
        pairs = {"prediction": np.take(names, one), "other": np.take(names, other), "measure": measure}
        numbers = {"difference": apart, "low": apart - reach, "high": apart + reach, "p": tested.p[one, other]}
        differences.append(pd.DataFrame(pairs | numbers))
    return pd.concat(values, ignore_index=True), pd.concat(differences, ignore_index=True)


def score_prediction(folders: Sequence[Path], *, resamples: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predict the score that the interlocutor gives an exchange, and correlate predictions with it.

    ``folders`` are tables of data sets whose exchanges interlocutors and outsiders rated. Returns the results of
    :func:`by_person` on the test part, the values with ``penalty``, ``train`` and ``validation`` (exchanges). Predictions are
    named after the role whose scores the model learns, with ``-identity`` if it knows the person; without text:
    ``personal-mean`` and ``outsiders-score``.
    """
    names = ("contexts", "responses", "ratings", "annotators")
    parts = [
        score_models.rated_exchanges(*(schema.read(folder / f"{name}.parquet", name) for name in names))
        for folder in folders
    ]
    # Different data sets may reuse a person's number.
    frame = pd.concat([part.assign(person=part["dataset"] + "/" + part["person"]) for part in parts], ignore_index=True)
    features = score_models.text_features(frame)
    predictions, penalties = {}, {}
    for target, identity in product((OUTSIDERS, INTERLOCUTOR), (False, True)):
        fitted = score_models.predict(frame, features, target=target, identity=identity)
        name = target + ("-identity" if identity else "")
        predictions[name], penalties[name] = fitted.values, fitted.penalty
    predictions |= {"personal-mean": score_models.personal_means(frame), "outsiders-score": frame[OUTSIDERS].to_numpy()}
    sizes, test = frame["split"].value_counts(), frame["split"] == "test"
    tested = {name: values[test] for name, values in predictions.items()}
    scores, persons = frame.loc[test, INTERLOCUTOR], frame.loc[test, "person"]
    values, differences = by_person(tested, scores, persons, resamples=resamples, seed=seed)
    values["penalty"] = values["prediction"].map(penalties)
    return values.assign(train=sizes["train"], validation=sizes["validation"]), differences


def simple_scores(responses: pd.DataFrame, contexts: pd.DataFrame, tokens: Tokens) -> pd.DataFrame:
    """Score the responses of one data set by the metrics of :data:`SIMPLE`.

    ``tokens`` to count: ``words``, normalized, or ``characters``, for languages without spaces. The columns are ``context_id``,
    ``system_id``, ``dialogue_id`` and the metrics; NaN if there is no score.
    """
    frame = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")

    def spaced(text: str) -> str:
        return normalise(text) if tokens == "words" else " ".join("".join(text.split()))

    texts = [spaced(text) for text in frame["response"]]
    histories = [
        [{**one, "text": text} for one in history if (text := spaced(one["text"]))] for history in frame["history"]
    ]
    nothing: list[list[str]] = [[]] * len(texts)
    batch = Batch(texts, nothing, histories, nothing)
    scores: dict[str, Any] = {
        "length": [len(text.split()) or np.nan for text in texts],
        "distinct-2": create("distinct", text="raw").compute(batch)["distinct-2"],
    }
    filled = np.array([bool(text) for text in texts]) & batch.has("histories")
    for part in ("last", "history"):
        scores[f"overlap-{part}"] = np.full(len(texts), np.nan)
        if filled.any():
            metric = create("with_context", metric="f1", options={"text": "raw"}, of=part)
            scores[f"overlap-{part}"][filled] = metric.compute(batch.only(filled))["f1"]
    scores["question"] = [float(any(mark in text for mark in _QUESTION)) for text in frame["response"]]
    scores["place"] = frame["turn"].astype(float)
    return frame[["context_id", "system_id", "dialogue_id"]].assign(**scores)


def rated_items(
    folder: Path, dimension: str, tokens: Tokens, *, outsiders: str | None = None, ieval: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Read the items of a data set rated by every role in a dimension, with the scores of :func:`simple_scores`.

    ``outsiders`` is the source of outsiders' ratings, for a data set without table ``annotators``, which has the roles;
    ``ieval`` has iEval's ``dialogue_id``, ``system_id`` and ``likert``: the interlocutors' ratings of ieval_dial's dialogues.
    Returns a row per response, or per dialogue if these were rated: the metrics, each role's mean rating, ``who`` (the cluster
    to resample) and ``level``. Raises SchemaError if no item is left.
    """
    ratings = schema.ratings_in(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    level, item = ("turn", "context_id") if (ratings["level"] == "turn").any() else ("dialogue", "dialogue_id")
    key = [item, "system_id"]
    frame = simple_scores(responses, contexts, tokens)
    if level == "dialogue":
        # The mean turn number measures the length of a dialogue.
        frame = frame.groupby(key, as_index=False)[list(SIMPLE)].mean()
    ratings = ratings[(ratings["level"] == level) & (ratings["dimension"] == dimension)]
    if outsiders is None:
        annotators = schema.read(folder / "annotators.parquet", "annotators").set_index("annotator_id")["role"]
        roles = ratings["annotator_id"].map(annotators).map(_ROLES)
    else:
        roles = ratings["source"].map({outsiders: OUTSIDERS})
    for role, part in ratings.rename(columns={"item_id": item}).groupby(roles):
        mean = part.groupby(key)["rating"].agg(["mean", "size"])
        # Responses without some raters are left out, since their mean would be over other people.
        kept = mean[(mean["size"] == mean["size"].max()) | (level == "dialogue")]
        frame = frame.merge(kept["mean"].rename(str(role)).reset_index(), on=key)
    frame = frame.assign(who=frame["dialogue_id"], level=level)
    if ieval is not None:
        # Zhang et al.'s file has eight consecutive dialogues per worker: four bots for each of two topics.
        place = frame["dialogue_id"].str.rpartition("-")[2].astype(int)
        worker, mood = place // 8 + 1, (place % 8 // 4).map(dict(enumerate(MOODS)))
        own = ieval.rename(columns={"dialogue_id": "of", "likert": INTERLOCUTOR})[["of", "system_id", INTERLOCUTOR]]
        frame = frame.assign(who=worker, of=worker.astype(str) + "-" + mood).merge(own, on=["of", "system_id"])
    if frame.empty:
        raise SchemaError("no item that every role rated", where=str(folder), expected="ratings of the same items")
    return frame


def in_whose_eye(items: pd.DataFrame, *, metrics: Sequence[str] = SIMPLE, resamples: int, seed: int) -> pd.DataFrame:
    """Correlate scores with the ratings of each role by Spearman, and compare the roles if there are two.

    ``items`` come from :func:`rated_items`; intervals resample ``who``. A metric may lack scores (NaN). For each metric there
    is a row per role, and one :data:`DIFFERENCE` (interlocutor minus outsiders) if there are both: ``metric``, ``role``,
    ``value``, ``low``, ``high``, ``p`` (of differences), ``n``, ``clusters``, ``rank`` among the metrics for that role (by
    value; 1 is the highest). With both roles also a row :data:`OTHER_EYE`.
    """
    how: dict[str, Any] = {"coefficient": "spearman", "within": False, "resamples": resamples, "seed": seed}
    roles = [role for role in (OUTSIDERS, INTERLOCUTOR) if role in items]
    parts = []
    for metric in metrics:
        own = items[items[metric].notna()]
        if own.empty:
            continue
        # Correlation is symmetric: with roles as predictions, both are compared on the same items.
        of_roles, apart = by_person({role: own[role] for role in roles}, own[metric], own["who"], **how)
        apart = apart[(apart["prediction"] == INTERLOCUTOR) & (apart["other"] == OUTSIDERS)]
        apart = apart.assign(prediction=DIFFERENCE, n=len(own), persons=own["who"].nunique())
        parts.append(pd.concat([of_roles, apart.rename(columns={"difference": "value"})]).assign(metric=metric))
    if len(roles) == 2:
        other = by_person({INTERLOCUTOR: items[INTERLOCUTOR]}, items[OUTSIDERS], items["who"], **how)[0]
        parts.append(other.assign(metric=OTHER_EYE))
    frame = pd.concat(parts, ignore_index=True).rename(columns={"prediction": "role", "persons": "clusters"})
    ranked = frame[(frame["role"] != DIFFERENCE) & (frame["metric"] != OTHER_EYE)]
    frame["rank"] = ranked.groupby("role")["value"].rank(ascending=False, method="min")
    return frame.reindex(columns=["metric", "role", "value", "low", "high", "p", "n", "clusters", "rank"])
