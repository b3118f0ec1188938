"""Dialogue continuity prediction: models and baselines on one data set and split, and whether continuing is liking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from comperdial.data.continuations import RATED, Conversation, Sample, samples, splits
from comperdial.metrics import create
from comperdial.stats import classification
from comperdial.stats.classification import Floats, Measure
from comperdial.training import continuity
from comperdial.training.continuity import Features, Histories, Vectors
from comperdial.training.continuity_tasks import (
    ENCODERS,
    SEED,
    SPLITS,
    Task,
    balanced,
    before,
    rated_replies,
    some,
    tasks,
)

Flags = npt.NDArray[np.bool_]
BINS = {"0": (0, 0), "1": (1, 1), "2-4": (2, 4), "5-9": (5, 9), "10+": (10, 1_000_000)}
"""Groups of samples by the number of the user's conversations in the training split."""
MAJORITIES = ("global majority", "private majority")
PERSONAL = {
    "chitchat": ("none", "token", "history", "token+history"),
    "convai2": ("none", "token", "profile", "token+profile", "history", "token+history"),
}
"""What models know of users, by data set."""
BASELINES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "selection": ("density", "classifier", {}),
    "likelihood": ("pmi", "likelihood-mean", {"dtype": "bf16"}),
}
"""Metric, output and options in place of RUBER and of Deep-FM."""
_MOST_LIKELY = {"validation": 200, "test": 500}
COLUMNS = (
    "dataset", "split", "rate", "group", "model", "user", "measure", "against", "value", "low", "high",
    "n", "positives", "users", "penalty",
)  # fmt: skip
_Output = tuple[str, str]


# Baselines


def baselines_here() -> list[str]:
    """Return the baselines whose models are on this machine."""
    return [name for name, (kind, _, options) in BASELINES.items() if create(kind, **options).unavailable() is None]


def baseline_scores(dataset: str, conversations: Sequence[Conversation], names: Sequence[str]) -> pd.DataFrame:
    """Score the balanced samples by metrics that know nothing of continuing.

    Returns
    -------
    DataFrame
        ``item_id``, ``baseline`` and ``value``; of the likelihood, which is slow, for some samples of the first split.
    """
    parts = []
    for name in names:
        kind, output, options = BASELINES[name]
        few = name == "likelihood"
        asked: dict[str, Sample] = {}
        for task in tasks(conversations, SPLITS[dataset][:1] if few else SPLITS[dataset]):
            for part, drawn in (("validation", task.validation), ("test", task.test)):
                asked |= {one.id: one for one in (some(drawn, _MOST_LIKELY[part]) if few else drawn)}
        texts = [sample.reply.text for sample in asked.values()]
        values = create(kind, **options).score(texts, histories=[_history(one) for one in asked.values()])[output]
        parts.append(pd.DataFrame({"item_id": list(asked), "baseline": name, "value": values}))
    return pd.concat(parts, ignore_index=True)


def _history(sample: Sample) -> list[dict[str, str]]:
    earlier = sample.conversation.utterances[max(0, sample.turn - 6) : sample.turn]
    return [{"speaker": "B" if one.speaker == sample.reply.speaker else "A", "text": one.text} for one in earlier]


# Models


@dataclass
class Answers:
    """A model's scores of some samples, NaN where it has none, and which samples it calls positive."""

    scores: Floats
    predicted: npt.NDArray[np.int64]
    penalty: float | None = None


@dataclass
class Compared:
    """Answers of several models about the same samples, by (model, kind of user)."""

    samples: list[Sample]
    conversations: npt.NDArray[np.int64]
    """How many conversations of the training split each sample's user was in."""
    answers: dict[_Output, Answers] = field(default_factory=dict)

    def rows(self, resamples: int, *, grouped: bool) -> Iterator[dict[str, Any]]:
        """Yield a row for each model and measure, of all samples and by how well the user is known, and for differences."""
        truth = np.array([sample.continued for sample in self.samples])
        users = np.array([sample.user_id for sample in self.samples])
        counts = self.conversations
        groups = {"all": counts >= 0}
        if grouped:
            groups |= {"known": counts > 0, "cold": counts == 0}
            groups |= {name: (counts >= low) & (counts <= high) for name, (low, high) in BINS.items()}

        @cache
        def estimated(key: _Output, chosen: bytes) -> dict[str, tuple[float, Floats]]:
            here, answers = np.frombuffer(chosen, dtype=np.bool_), self.answers[key]
            # One seed for each: the same samples have the same resamples, so that differences are paired.
            weights = classification.cluster_weights(users[here], resamples, np.random.default_rng(SEED))
            measures = _measures(truth[here], answers.scores[here], answers.predicted[here])
            return classification.estimated(measures, weights)

        for (group, chosen), (key, answers) in product(groups.items(), self.answers.items()):
            here = chosen & ~np.isnan(answers.scores)
            if not here.any():
                continue
            others = [("", None), *((name, (name, "none")) for name in MAJORITIES if answers.penalty is not None)]
            if key[1] != "none":
                others.append(("none", (key[0], "none")))
            about = {
                "group": group,
                "model": key[0],
                "user": key[1],
                "n": int(here.sum()),
                "positives": int(truth[here].sum()),
                "users": len(np.unique(users[here])),
                "penalty": answers.penalty,
            }
            for (against, other), measure in product(others, ("accuracy", "macro_f1", "auc")):
                # The classes of a majority do not rank samples.
                if measure == "auc" and {*MAJORITIES} & {key[0], against}:
                    continue
                value, drawn = estimated(key, here.tobytes())[measure]
                if other:
                    base, of_base = estimated(other, here.tobytes())[measure]
                    value, drawn = value - base, drawn - of_base
                low, high = classification.interval(drawn)
                yield about | {"measure": measure, "against": against, "value": value, "low": low, "high": high}


def _measures(truth: Flags, scores: Floats, called: npt.NDArray[np.int64]) -> dict[str, Measure]:
    return {
        "accuracy": lambda weights: classification.accuracy(truth, called, weights),
        "macro_f1": lambda weights: classification.macro_f1(truth, called, weights),
        "auc": lambda weights: classification.auc(truth, scores, weights),
    }


def cut(scores: Floats, validation: Floats, rate: float) -> npt.NDArray[np.int64]:
    """Call scores positive above the quantile of the validation scores that leaves a share of them (section 4.3)."""
    return np.asarray(scores >= np.quantile(validation, 1 - rate), dtype=np.int64)


def evaluate(
    dataset: str,
    conversations: Sequence[Conversation],
    vectors: Mapping[str, Vectors],
    baselines: pd.DataFrame | None = None,
    *,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train all models on each split of a data set and evaluate them with the baselines.

    Parameters
    ----------
    dataset
        ``chitchat`` or ``convai2``.
    conversations
        All of them.
    vectors
        By encoder, of all texts that it reads. Models of an encoder without vectors are left out.
    baselines
        As :func:`baseline_scores` returns them.
    resamples
        Of users, for intervals.

    Returns
    -------
    tuple
        The measures (:data:`COLUMNS`), and each reply's probability by split, model and kind of user.
    """
    rows: list[dict[str, Any]] = []
    scored: list[pd.DataFrame] = []
    contexts = [name for name in continuity.CONTEXTS if name not in ENCODERS or name in vectors]
    # MiniLM reads profiles; without it a history is its numbers alone.
    personal = [name for name in PERSONAL[dataset] if "minilm" in vectors or "profile" not in name]
    for task in tasks(conversations, SPLITS[dataset]):
        histories = Histories(task.known, vectors.get("minilm"))
        rate = continuity.natural_rate(task.known)
        seen = {
            kind: Compared(asked, np.array([histories.conversations(one.user_id) for one in asked], dtype=np.int64))
            for kind, asked in (("balanced", task.test), ("natural", task.natural))
        }
        for private, name in enumerate(MAJORITIES):
            for kind, train in (("balanced", task.train), ("natural", task.known)):
                called = continuity.majority(train, seen[kind].samples, private=bool(private))
                seen[kind].answers[name, "none"] = Answers(called.astype(float), called)
        for name, known in _baselines(task, vectors, baselines).items():
            chosen_by = np.array([known[sample.id] for sample in task.validation if sample.id in known])
            scores = np.array([known.get(sample.id, np.nan) for sample in task.test])
            if len(chosen_by) and not np.isnan(scores).all():
                seen["balanced"].answers[name, "none"] = Answers(scores, cut(scores, chosen_by, 0.5))
        for context in contexts:
            # SmolLM2 is slow, and reads some samples of the first split.
            few = context == "smollm2"
            if few and task.name != SPLITS[dataset][0]:
                continue
            train, validation = (task.few("train"), task.few("validation")) if few else (task.train, task.validation)
            for user in personal:
                features = Features(train, context, user, vectors=vectors, histories=histories)
                model = continuity.fit(features, train, validation)
                for kind, shown in seen.items():
                    if kind == "natural" and few:
                        continue
                    asked = task.few("test") if few else shown.samples
                    chances = model.probabilities(asked, rate if kind == "natural" else None)
                    by_id = dict(zip((sample.id for sample in asked), chances.tolist(), strict=True))
                    scores = np.array([by_id.get(sample.id, np.nan) for sample in shown.samples])
                    shown.answers[context, user] = Answers(scores, (scores >= 0.5).astype(np.int64), model.penalty)
                    frame = pd.DataFrame({"item_id": list(by_id), "value": chances})
                    scored.append(frame.assign(split=task.name, rate=kind, model=context, user=user))
        for kind, shown in seen.items():
            about = {"dataset": dataset, "split": task.name, "rate": kind}
            rows += [about | row for row in shown.rows(resamples, grouped=kind == "balanced")]
    return pd.DataFrame(rows, columns=list(COLUMNS)), pd.concat(scored, ignore_index=True)


def _baselines(
    task: Task, vectors: Mapping[str, Vectors], baselines: pd.DataFrame | None
) -> dict[str, Mapping[str, float]]:
    scores: dict[str, Mapping[str, float]] = {}
    if baselines is not None:
        for name, part in baselines.groupby("baseline"):
            scores[str(name)] = dict(zip(part["item_id"], part["value"], strict=True))
    if known := vectors.get("minilm"):
        asked = [*task.validation, *task.test]
        one = continuity.stacked(known, [sample.reply.text for sample in asked])
        other = continuity.stacked(known, [before(sample) for sample in asked])
        scale = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        values = np.einsum("ik,ik->i", one, other) / np.where(scale > 0, scale, 1)
        scores["cosine"] = {sample.id: float(value) for sample, value in zip(asked, values, strict=True)}
    return scores


def continuations(dataset: str, conversations: Sequence[Conversation]) -> pd.DataFrame:
    """Return table ``continuations``: whether the user went on after each reply."""
    split = splits(conversations)
    rows = [
        {
            "dataset": dataset,
            "context_id": sample.id,
            "system_id": sample.conversation.systems[sample.reply.speaker],
            "user_id": sample.user_id,
            "continued": int(sample.continued),
            "seconds": sample.seconds,
            "began": sample.conversation.began,
            "split": split[sample.conversation.id],
        }
        for sample in samples(conversations)
    ]
    return pd.DataFrame(rows)


# Does continuing mean liking?


def crossfitted(
    conversations: Sequence[Conversation], context: str, personal: str, penalty: float, vectors: Mapping[str, Vectors]
) -> dict[str, float]:
    """Return each sample's log-odds by a model that has not seen its conversation: five folds, drawn at random."""
    folds = np.random.default_rng(SEED).permutation(len(conversations)) % 5
    of = {conversation.id: fold for conversation, fold in zip(conversations, folds.tolist(), strict=True)}
    logits: dict[str, float] = {}
    asked = list(samples(conversations))
    for fold in range(5):
        known = [sample for sample in asked if of[sample.conversation.id] != fold]
        held = [sample for sample in asked if of[sample.conversation.id] == fold]
        train = balanced(known, {sample.conversation.id: "train" for sample in known}, SEED)
        histories = Histories(known, vectors.get("minilm"))
        features = Features(train, context, personal, vectors=vectors, histories=histories)
        # The penalty was chosen on the validation split.
        model = continuity.fit(features, train, train, (penalty,))
        logits |= zip((sample.id for sample in held), model.logits(held).tolist(), strict=True)
    return logits


def liking(
    conversations: Mapping[str, Sequence[Conversation]],
    vectors: Mapping[str, Mapping[str, Vectors]],
    measures: pd.DataFrame,
    *,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare predicted continuing with what users liked.

    Parameters
    ----------
    conversations
        Of ``convai2`` and, if they are here, of ``chitchat`` and ``topical_chat``.
    vectors
        By data set and encoder.
    measures
        As :func:`evaluate` returns them, of ``convai2`` and ``chitchat``: their penalties are used.
    resamples
        For intervals.

    Returns
    -------
    tuple
        Agreement with ratings, a row for each predictor and measure; and each reply's log-odds by predictor.
    """
    bots, people = conversations["convai2"], rated_replies(conversations.get(RATED, ()))
    time = measures[measures["split"] == "time"].drop_duplicates(["dataset", "model", "user"])
    penalties = time.set_index(["dataset", "model", "user"])["penalty"].to_dict()
    scores: dict[str, dict[str, dict[str, float]]] = {"convai2": {}, RATED: {}}
    for context in ("tfidf", "minilm"):
        for user in continuity.PERSONAL:
            if (penalty := penalties.get(("convai2", context, user))) is not None:
                known = crossfitted(bots, context, user, penalty, vectors.get("convai2", {}))
                scores["convai2"][f"convai2, {context}, {user}"] = known
    task = Task.of(conversations["chitchat"], "time") if "chitchat" in conversations else None
    for context in ("tfidf", "minilm"):
        penalty = penalties.get(("chitchat", context, "none"))
        if task is None or penalty is None:
            continue
        features = Features(task.train, context, vectors=vectors.get("chitchat", {}))
        model = continuity.fit(features, task.train, task.validation, (penalty,))
        for dataset, asked in (("convai2", list(samples(bots))), (RATED, people)):
            if asked:
                features.vectors = vectors.get(dataset, {})
                values = zip((sample.id for sample in asked), model.logits(asked).tolist(), strict=True)
                scores[dataset][f"chitchat, {context}, none"] = dict(values)
    frames = [
        pd.DataFrame({"dataset": dataset, "predictor": name, "item_id": list(values), "value": list(values.values())})
        for dataset, by_name in scores.items()
        for name, values in by_name.items()
    ]
    predicted = [frame.assign(value=special.expit(frame["value"])) for frame in frames]
    rated = _observed(bots) + [part for frame in predicted for part in (_by_dialogue(frame, bots), frame)]
    joined = pd.concat(rated, ignore_index=True).merge(_liked(bots, people), on=["dataset", "item_id"])
    key = ["dataset", "replies", "of", "predictor"]
    rows = [
        dict(zip(key, names, strict=True)) | row
        for names, part in joined.groupby(key, sort=False)
        for row in agreement(
            part["value"],
            part["rating"],
            part["cluster"].to_numpy(),
            within=part["within"].to_numpy(),
            resamples=resamples,
        )
    ]
    return pd.DataFrame(rows), pd.concat(frames, ignore_index=True)


def _observed(bots: Sequence[Conversation]) -> list[pd.DataFrame]:
    """Return what happened, as predictions are given: how long dialogues were, and whether users went on."""
    length = {one.id: math.log(max(1, len(one.utterances))) for one in bots}
    went_on = {sample.id: float(sample.continued) for sample in samples(bots)}
    return [
        pd.DataFrame({"dataset": "convai2", "predictor": name, "item_id": list(values), "value": list(values.values())})
        for name, values in (("observed length", length), ("observed continuing", went_on))
    ]


def _by_dialogue(predicted: pd.DataFrame, bots: Sequence[Conversation]) -> pd.DataFrame:
    """Return the mean prediction of each of the bots' dialogues."""
    dialogues = predicted["item_id"].map({sample.id: sample.conversation.id for sample in samples(bots)})
    key = ["dataset", "predictor", "item_id"]
    return predicted.assign(item_id=dialogues).groupby(key, sort=False)["value"].mean().reset_index()


def _liked(bots: Sequence[Conversation], people: Sequence[Sample]) -> pd.DataFrame:
    """Return the ratings of dialogues and of replies, with what is resampled and the group within which they are compared."""
    rows = []
    for one in bots:
        if one.rating is not None:
            owner = next(iter(one.users.values()))
            rows.append(("convai2", "system", "quality", one.id, float(one.rating), owner, owner))
    for sample in samples(bots):
        if sample.reply.rating is not None:
            thumb, dialogue = float(sample.reply.rating), sample.conversation.id
            rows.append(("convai2", "system", "thumbs", sample.id, thumb, sample.user_id, dialogue))
    for sample in people:
        rating, dialogue = float(sample.reply.rating or 0), sample.conversation.id
        rows.append((RATED, "human", "turn rating", sample.id, rating, dialogue, sample.user_id))
    return pd.DataFrame(rows, columns=["dataset", "replies", "of", "item_id", "rating", "cluster", "within"])


def agreement(
    values: npt.ArrayLike, ratings: npt.ArrayLike, clusters: npt.ArrayLike, *, within: npt.ArrayLike, resamples: int
) -> list[dict[str, Any]]:
    """Return how scores agree with ratings: r pooled and within groups; of two ratings, also the area under the ROC curve.

    Parameters
    ----------
    values, ratings
        n scores and ratings.
    clusters
        What is resampled: the rater of each.
    within
        The group inside of which each is centred, or compared.
    resamples
        For the intervals.

    Returns
    -------
    list of dict
        ``measure``, ``value``, ``low``, ``high``, ``n`` and ``groups``.
    """
    scores, given, raters = np.asarray(values, dtype=float), np.asarray(ratings, dtype=float), np.asarray(clusters)
    _, places, counts = np.unique(np.asarray(within), return_inverse=True, return_counts=True)
    rows: list[dict[str, Any]] = []

    def add(measure: str, of: Measure, owners: npt.NDArray[Any], n: int, groups: int) -> None:
        weights = classification.cluster_weights(owners, resamples, np.random.default_rng(SEED))
        value, drawn = classification.estimated({measure: of}, weights)[measure]
        low, high = classification.interval(drawn)
        rows.append({"measure": measure, "value": value, "low": low, "high": high, "n": n, "groups": groups})

    if len(scores) < 3:
        return rows
    add("r", lambda w: classification.correlation(scores, given, w), raters, len(scores), len(counts))
    several = counts[places] > 1
    if several.sum() > 2:
        one, other = ((array - (np.bincount(places, array) / counts)[places])[several] for array in (scores, given))
        n, groups = int(several.sum()), int((counts > 1).sum())
        add("r_within", lambda w: classification.correlation(one, other, w), raters[several], n, groups)
    if len(set(given.tolist())) == 2:
        up = given == given.max()
        add("auc", lambda w: classification.auc(up, scores, w), raters, len(scores), len(counts))
        won, pairs, owners = _pairs(scores, up, places, raters)
        if pairs.sum():
            add("auc_within", lambda w: _share(won, pairs, w), owners, int(pairs.sum()), len(pairs))
    return rows


def _share(won: Floats, pairs: Floats, weights: Floats) -> Floats:
    total = weights @ pairs
    return np.asarray(weights @ won / np.where(total > 0, total, np.nan))


def _pairs(
    scores: Floats, up: Flags, places: npt.NDArray[np.intp], raters: npt.NDArray[Any]
) -> tuple[Floats, Floats, npt.NDArray[Any]]:
    """Return, of each group with both ratings, the pairs that the scores order rightly, all pairs, and whose they are."""
    won, pairs, owners = [], [], []
    for group in np.unique(places):
        inside = places == group
        ups, downs = scores[inside & up], scores[inside & ~up]
        if len(ups) and len(downs):
            apart = ups[:, None] - downs[None, :]
            won.append(float((apart > 0).sum() + (apart == 0).sum() / 2))
            pairs.append(float(apart.size))
            owners.append(raters[inside][0])
    return np.array(won), np.array(pairs), np.array(owners)
