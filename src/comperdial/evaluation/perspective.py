"""Whose eye: predictions and simple metrics compared with the ratings of interlocutors and of outsiders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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

Floats = npt.NDArray[np.float64]
Tokens = Literal["characters", "words"]
POOLED, WITHIN = "pooled", "within"
INTERLOCUTOR, OUTSIDERS, DIFFERENCE = "interlocutor", "outsiders", "difference"
OTHER_EYE = "other eye"
"""In the column of metrics: the ratings of the other role."""
SIMPLE = {
    "length": "Length",
    "distinct-2": "Distinct-2",
    "overlap-last": "Overlap with the last utterance",
    "overlap-history": "Overlap with the history",
    "question": "Asks a question",
    "place": "Place in the dialogue",
}
"""Metrics that need no model and no reference, with their labels."""
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

    Parameters
    ----------
    predictions
        Each of shape (n,). An item that lacks one of them (NaN) is left out of all.
    scores, persons
        Shape (n,), no NaN; intervals resample persons.

    Returns
    -------
    values
        ``prediction``, ``measure`` (:data:`POOLED`, or :data:`WITHIN`: both sides minus the person's mean), ``value``, ``low``,
        ``high`` (95 %), ``n`` items, ``persons``. Missing where a side does not vary.
    differences
        ``prediction``, ``other``, ``measure``, ``difference``, ``low``, ``high``, ``p`` (two-sided; Student's t, persons left out
        one by one).
    """
    names, x = list(predictions), np.stack([np.asarray(p, np.float64) for p in predictions.values()])
    there = ~np.isnan(x).any(axis=0)
    x, y = x[:, there], np.asarray(scores, np.float64)[there]
    codes = codes_of(np.asarray(persons)[there])
    design = Design(np.zeros_like(codes), codes)
    sides = {POOLED: (x, y)}
    if within:
        sides[WITHIN] = np.stack([_centred(row, codes) for row in x]), _centred(y, codes)
    one, other = np.nonzero(~np.eye(len(names), dtype=bool))
    values, differences = [], []
    for measure, (table, human) in sides.items():
        estimates = intervals(table, human, design, [coefficient], resamples=resamples, seed=seed)
        numbers = {end: getattr(estimates, end)[:, 0] for end in ("value", "low", "high")}
        counts = {"n": len(y), "persons": design.counts[1]}
        values.append(pd.DataFrame({"prediction": names, "measure": measure} | numbers | counts))
        tested = compare(table, human, design, coefficient, resamples=0, seed=seed)
        apart, reach = tested.difference[one, other], tested.reach[one, other]
        pairs = {"prediction": np.take(names, one), "other": np.take(names, other), "measure": measure}
        numbers = {"difference": apart, "low": apart - reach, "high": apart + reach, "p": tested.p[one, other]}
        differences.append(pd.DataFrame(pairs | numbers))
    return pd.concat(values, ignore_index=True), pd.concat(differences, ignore_index=True)


def score_prediction(
    folders: Sequence[Path],
    *,
    encoder: str | None = None,
    penalties: Sequence[float] = score_models.PENALTIES,
    resamples: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predict the score that the interlocutor gives an exchange, and correlate predictions with it.

    ``folders`` are tables of data sets whose exchanges interlocutors and outsiders rated; ``encoder`` and ``penalties`` are
    as in :func:`comperdial.training.score_prediction.text_features` and ``predict``. What is returned is
    :func:`by_person`'s, of the test part, the values with ``penalty``, ``train`` and ``validation`` (exchanges). Predictions
    are named by whose scores a model learns, with ``-identity`` if it knows the person; without a text: ``personal-mean``
    and ``outsiders-score``.
    """
    names = ("contexts", "responses", "ratings", "annotators")
    parts = [
        score_models.rated_exchanges(*(schema.read(folder / f"{name}.parquet", name) for name in names))
        for folder in folders
    ]
    # People of two data sets may have the same number.
    frame = pd.concat([part.assign(person=part["dataset"] + "/" + part["person"]) for part in parts], ignore_index=True)
    features = score_models.text_features(frame, encoder)
    fitted = {
        target + ("-identity" if identity else ""): score_models.predict(
            frame, features, target=target, identity=identity, penalties=penalties
        )
        for target in (OUTSIDERS, INTERLOCUTOR)
        for identity in (False, True)
    }
    predictions = {name: one.values for name, one in fitted.items()}
    predictions |= {"personal-mean": score_models.personal_means(frame), "outsiders-score": frame[OUTSIDERS].to_numpy()}
    sizes, test = frame["split"].value_counts(), frame["split"] == "test"
    values, differences = by_person(
        {name: one[test] for name, one in predictions.items()},
        frame.loc[test, INTERLOCUTOR],
        frame.loc[test, "person"],
        resamples=resamples,
        seed=seed,
    )
    penalty = values["prediction"].map({name: one.penalty for name, one in fitted.items()})
    return values.assign(penalty=penalty, train=sizes["train"], validation=sizes["validation"]), differences


def _centred(values: Floats, codes: npt.NDArray[np.intp]) -> Floats:
    """Return values minus the mean of their person; what varies by rounding alone does not vary."""
    centred = values - (np.bincount(codes, values) / np.bincount(codes))[codes]
    return np.where(np.abs(centred) <= 1e-9 * np.abs(values).max(initial=0), 0.0, centred)


def simple_scores(responses: pd.DataFrame, contexts: pd.DataFrame, tokens: Tokens) -> pd.DataFrame:
    """Score the responses of one data set by the metrics of :data:`SIMPLE`.

    ``tokens`` are counted: ``words``, normalised, or ``characters``, for a language that writes no spaces. The columns are
    ``context_id``, ``system_id``, ``dialogue_id`` and the metrics; NaN where there is no score.
    """
    frame = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")

    def spaced(text: str) -> str:
        return normalise(text) if tokens == "words" else " ".join("".join(text.split()))

    texts = [spaced(text) for text in frame["response"]]
    histories = [[{**one, "text": spaced(one["text"])} for one in history] for history in frame["history"]]
    nothing: list[list[str]] = [[]] * len(texts)
    batch = Batch(texts, nothing, [[one for one in history if one["text"]] for history in histories], nothing)
    filled = np.array([bool(text) for text in texts]) & batch.has("histories")
    scores: dict[str, Any] = {
        "length": [len(text.split()) or np.nan for text in texts],
        "distinct-2": create("distinct", text="raw").compute(batch)["distinct-2"],
    }
    for name, part in (("overlap-last", "last"), ("overlap-history", "history")):
        scores[name] = np.full(len(texts), np.nan)
        if filled.any():
            metric = create("with_context", metric="f1", options={"text": "raw"}, of=part)
            scores[name][filled] = metric.compute(batch.only(filled))["f1"]
    scores["question"] = [float(any(mark in text for mark in _QUESTION)) for text in frame["response"]]
    scores["place"] = frame["turn"].astype(float)
    return frame[["context_id", "system_id", "dialogue_id"]].assign(**scores)


class Items(NamedTuple):
    """Responses or dialogues that every role rated: scores, ratings by role, and what intervals resample."""

    level: str
    scores: pd.DataFrame
    ratings: Mapping[str, Floats]
    clusters: npt.NDArray[Any]


def rated_items(
    folder: Path, dimension: str, tokens: Tokens, *, outsiders: str | None = None, ieval: pd.DataFrame | None = None
) -> Items:
    """Read the items of a data set that every role rated in a dimension, scored as by :func:`simple_scores`.

    Parameters
    ----------
    outsiders
        The source whose ratings are outsiders', for a data set without table ``annotators``, which holds the roles.
    ieval
        iEval's ``dialogue_id``, ``system_id`` and ``likert``: how interlocutors rated the dialogues of ieval_dial.
    """
    ratings = schema.ratings_in(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    level, item = ("turn", "context_id") if (ratings["level"] == "turn").any() else ("dialogue", "dialogue_id")
    ratings = ratings[ratings["level"] == level].rename(columns={"item_id": item})
    key = [item, "system_id"]
    scores = simple_scores(responses, contexts, tokens)
    if level == "dialogue":
        # The mean place of its turns says how long a dialogue is.
        scores = scores.groupby(key, as_index=False)[list(SIMPLE)].mean()
    if outsiders is None:
        annotators = schema.read(folder / "annotators.parquet", "annotators").set_index("annotator_id")["role"]
        roles = ratings["annotator_id"].map(annotators).map(_ROLES)
    else:
        roles = ratings["source"].map({outsiders: OUTSIDERS})
    ratings = ratings.assign(role=roles)[ratings["dimension"] == dimension]
    frame = scores.assign(who=scores["dialogue_id"])
    means = {str(role): part.groupby(key)["rating"].agg(["mean", "size"]) for role, part in ratings.groupby("role")}
    for role, mean in means.items():
        # An item that lacks some of the raters is left out: its mean would be of other people.
        kept = mean[mean["size"] == mean["size"].max()] if level == "turn" else mean
        frame = frame.merge(kept["mean"].rename(role).reset_index(), on=key)
    if ieval is not None:
        # Zhang et al.'s file has eight dialogues of each worker in a row: four bots about each of two things.
        place = frame["dialogue_id"].str.rpartition("-")[2].astype(int)
        worker = place // 8 + 1
        mood = (place % 8 // 4).map(dict(enumerate(MOODS)))
        own = ieval.rename(columns={"dialogue_id": "of", "likert": INTERLOCUTOR})[["of", "system_id", INTERLOCUTOR]]
        frame = frame.assign(who=worker, of=worker.astype(str) + "-" + mood).merge(own, on=["of", "system_id"])
    if frame.empty:
        raise SchemaError("no item that every role rated", where=str(folder), expected="ratings of the same items")
    rated = {role: frame[role].to_numpy(np.float64) for role in (OUTSIDERS, INTERLOCUTOR) if role in frame}
    return Items(level, frame[list(SIMPLE)], rated, frame["who"].to_numpy())


def in_whose_eye(
    scores: pd.DataFrame,
    ratings: Mapping[str, npt.ArrayLike],
    clusters: npt.ArrayLike,
    *,
    metrics: Sequence[str] = tuple(SIMPLE),
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlate scores with the ratings of each role by Spearman, and compare the roles where there are two.

    ``scores`` has a column for each metric and a row for each item, NaN where it has no score; ``ratings``, by role, and
    ``clusters`` (who was the interlocutor, or which dialogue; intervals resample these) have shape (items,).

    Returns
    -------
    DataFrame
        For each metric a row for each role, and one :data:`DIFFERENCE` (interlocutor less outsiders) where there are both:
        ``metric``, ``role``, ``value``, ``low``, ``high``, ``p`` (of differences), ``n``, ``clusters``, ``rank`` among the
        metrics for that role (by value; 1 is the highest). With both roles also a row :data:`OTHER_EYE`.
    """
    people = np.asarray(clusters)
    by_role = {role: np.asarray(values, np.float64) for role, values in ratings.items()}
    how: dict[str, Any] = {"coefficient": "spearman", "within": False, "resamples": resamples, "seed": seed}
    parts = []
    for metric in metrics:
        values = scores[metric].to_numpy(np.float64)
        there = ~np.isnan(values)
        if not there.any():
            continue
        # A correlation is symmetric: with roles as predictions, both are compared on the same items.
        kept = {role: one[there] for role, one in by_role.items()}
        of_roles, apart = by_person(kept, values[there], people[there], **how)
        apart = apart[(apart["prediction"] == INTERLOCUTOR) & (apart["other"] == OUTSIDERS)]
        apart = apart.assign(prediction=DIFFERENCE, n=of_roles["n"].iloc[0], persons=of_roles["persons"].iloc[0])
        parts.append(pd.concat([of_roles, apart.rename(columns={"difference": "value"})]).assign(metric=metric))
    if {INTERLOCUTOR, OUTSIDERS} <= by_role.keys():
        other = by_person({INTERLOCUTOR: by_role[INTERLOCUTOR]}, by_role[OUTSIDERS], people, **how)[0]
        parts.append(other.assign(metric=OTHER_EYE))
    frame = pd.concat(parts, ignore_index=True).rename(columns={"prediction": "role", "persons": "clusters"})
    ranked = frame[(frame["role"] != DIFFERENCE) & (frame["metric"] != OTHER_EYE)]
    frame["rank"] = ranked.groupby("role")["value"].rank(ascending=False, method="min")
    return frame.reindex(columns=["metric", "role", "value", "low", "high", "p", "n", "clusters", "rank"])
