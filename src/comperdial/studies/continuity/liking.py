"""Does continuing mean liking? Predicted probabilities against what users said of conversations and messages."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from comperdial.data.continuations import Conversation, Sample, samples
from comperdial.evaluation import continuing
from comperdial.training import continuity
from comperdial.training.continuity import Features, Predictor, Vectors
from comperdial.training.continuity_tasks import Task


def compared(
    conversations: Mapping[str, Sequence[Conversation]],
    people: Sequence[Sample],
    vectors: Mapping[str, Mapping[str, Vectors]],
    measures: pd.DataFrame,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare predictors with ratings.

    Parameters
    ----------
    conversations
        Of ``convai2``, and of ``chitchat`` where it is there.
    people
        Rated replies of Topical-Chat.
    vectors
        By data set and encoder.
    measures
        What was measured of the predictors: their penalties.
    resamples
        For intervals.

    Returns
    -------
    tuple
        Agreement with ratings, a row for each predictor and measure; and each reply's log-odds by predictor.
    """
    bots = conversations["convai2"]
    known = vectors.get("convai2", {})
    scores: dict[str, dict[str, dict[str, float]]] = {"convai2": {}, "topical_chat": {}}
    for context in ("tfidf", "minilm"):
        for user in continuity.PERSONAL:
            penalty = _penalty(measures, "convai2", context, user)
            if penalty is not None:
                name = f"convai2, {context}, {user}"
                scores["convai2"][name] = continuing.crossfitted(bots, context, user, penalty, known)
    if "chitchat" in conversations:
        task = Task.of(conversations["chitchat"], "time")
        every = list(samples(bots))
        for context in ("tfidf", "minilm"):
            penalty = _penalty(measures, "chitchat", context, "none")
            if penalty is None:
                continue
            of = vectors.get("chitchat", {})
            model = continuity.fit(Features(task.train, context, vectors=of), task.train, task.validation, (penalty,))
            for dataset, asked in (("convai2", every), ("topical_chat", people)):
                if asked:
                    read = _reading(model, vectors.get(dataset, {}))
                    values = dict(zip((sample.id for sample in asked), read.logits(asked).tolist(), strict=True))
                    scores[dataset][f"chitchat, {context}, none"] = values
    rows = _of_bots(bots, scores["convai2"], resamples) + _of_people(people, scores["topical_chat"], resamples)
    said = [
        pd.DataFrame({"dataset": dataset, "predictor": name, "item_id": list(values), "value": list(values.values())})
        for dataset, by_name in scores.items()
        for name, values in by_name.items()
    ]
    return pd.DataFrame(rows), pd.concat(said, ignore_index=True)


def _penalty(measures: pd.DataFrame, dataset: str, context: str, user: str) -> float | None:
    here = measures.query("dataset == @dataset and split == 'time' and model == @context and user == @user")
    return float(here["penalty"].iloc[0]) if len(here) else None


def _reading(model: Predictor, vectors: Mapping[str, Vectors]) -> Predictor:
    """Return a predictor with other texts' vectors at hand."""
    model.features.vectors = vectors
    return model


def _of_bots(
    bots: Sequence[Conversation], scores: Mapping[str, Mapping[str, float]], resamples: int
) -> list[dict[str, Any]]:
    asked = list(samples(bots))
    marked = [conversation for conversation in bots if conversation.rating is not None]
    rows: list[dict[str, Any]] = []

    def add(of: str, predictor: str, found: list[dict[str, Any]]) -> None:
        rows.extend(
            {"dataset": "convai2", "replies": "system", "of": of, "predictor": predictor, **row} for row in found
        )

    owners = [next(iter(conversation.users.values())) for conversation in marked]
    given = [float(conversation.rating or 0) for conversation in marked]
    lengths = [math.log(len(conversation.utterances)) for conversation in marked]
    add("quality", "observed length", continuing.liking(lengths, given, owners, within=owners, resamples=resamples))
    thumbs = [sample for sample in asked if sample.reply.rating is not None]
    ups = [float(sample.reply.rating or 0) for sample in thumbs]
    readers = [sample.user_id for sample in thumbs]
    inside = [sample.conversation.id for sample in thumbs]
    went = [float(sample.continued) for sample in thumbs]
    add("thumbs", "observed continuing", continuing.liking(went, ups, readers, within=inside, resamples=resamples))
    for name, values in scores.items():
        of: dict[str, list[float]] = defaultdict(list)
        for sample in asked:
            of[sample.conversation.id].append(_chance(values[sample.id]))
        whole = [
            (np.mean(of[c.id]), rating, owner)
            for c, rating, owner in zip(marked, given, owners, strict=True)
            if c.id in of
        ]
        means, ratings, users = ([float(row[0]) for row in whole], [row[1] for row in whole], [row[2] for row in whole])
        add("quality", name, continuing.liking(means, ratings, users, within=users, resamples=resamples))
        single = [_chance(values[sample.id]) for sample in thumbs]
        add("thumbs", name, continuing.liking(single, ups, readers, within=inside, resamples=resamples))
    return rows


def _of_people(
    people: Sequence[Sample], scores: Mapping[str, Mapping[str, float]], resamples: int
) -> list[dict[str, Any]]:
    rated = [float(sample.reply.rating or 0) for sample in people]
    talks, raters = [sample.conversation.id for sample in people], [sample.user_id for sample in people]
    rows = []
    for name, values in scores.items():
        single = [_chance(values[sample.id]) for sample in people]
        found = continuing.liking(single, rated, talks, within=raters, resamples=resamples)
        about = {"dataset": "topical_chat", "replies": "human", "of": "turn rating", "predictor": name}
        rows += [{**about, **row} for row in found]
    return rows


def _chance(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))
