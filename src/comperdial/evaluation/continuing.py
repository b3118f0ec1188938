"""Dialogue continuity prediction, evaluated: models and baselines on one data set and split, and whether continuing is liking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.data.continuations import Conversation, Sample, samples
from comperdial.stats import classification
from comperdial.stats.classification import Floats, Measure
from comperdial.training import continuity
from comperdial.training.continuity import Features, Histories, Predictor, Vectors
from comperdial.training.continuity_tasks import SEED, Task, balanced, before, tasks

BINS = {"0": (0, 0), "1": (1, 1), "2-4": (2, 4), "5-9": (5, 9), "10+": (10, 1_000_000)}
"""Groups of samples by the conversations of the training split that their user was in."""
MAJORITIES = ("global majority", "private majority")
COLUMNS = (
    "dataset", "split", "rate", "group", "model", "user", "measure", "against", "value", "low", "high",
    "n", "positives", "users", "penalty",
)  # fmt: skip


# What is compared


@dataclass
class Answers:
    """What a model said of some samples: a score of each, NaN where it has none, and which are called positive."""

    scores: Floats
    predicted: npt.NDArray[np.int64]
    penalty: float | None = None


@dataclass
class Compared:
    """Answers of several models, by (model, kind of user), about the same samples."""

    samples: list[Sample]
    conversations: npt.NDArray[np.int64]
    """In how many conversations of the training split each sample's user was."""
    answers: dict[tuple[str, str], Answers] = field(default_factory=dict)

    def rows(self, resamples: int, *, grouped: bool) -> Iterator[dict[str, Any]]:
        """Yield a row for each model and measure, of all samples and by how well the user is known, and for differences."""
        counts = self.conversations
        groups = {"all": counts >= 0}
        if grouped:
            groups |= {"known": counts > 0, "cold": counts == 0}
            groups |= {name: (counts >= low) & (counts <= high) for name, (low, high) in BINS.items()}
        for group, chosen in groups.items():
            if chosen.any():
                yield from self._rows(group, chosen, resamples)

    def _rows(self, group: str, chosen: npt.NDArray[np.bool_], resamples: int) -> Iterator[dict[str, Any]]:
        truth = np.array([sample.continued for sample in self.samples])
        users = np.array([sample.user_id for sample in self.samples])
        made: dict[tuple[tuple[str, str], bytes], dict[str, tuple[float, Floats]]] = {}

        def estimated(key: tuple[str, str], here: npt.NDArray[np.bool_]) -> dict[str, tuple[float, Floats]]:
            if (key, here.tobytes()) not in made:
                # Anew for each, from one seed: the same samples have the same resamples.
                weights = classification.cluster_weights(users[here], resamples, np.random.default_rng(SEED))
                said = self.answers[key]
                measures = _measures(truth[here], said.scores[here], said.predicted[here])
                made[key, here.tobytes()] = classification.estimated(measures, weights)
            return made[key, here.tobytes()]

        for key, said in self.answers.items():
            here = chosen & ~np.isnan(said.scores)
            if not here.any():
                continue
            about = {
                "group": group,
                "model": key[0],
                "user": key[1],
                "n": int(here.sum()),
                "positives": int(truth[here].sum()),
                "users": len(set(users[here].tolist())),
                "penalty": said.penalty,
            }
            others = [("", None), *((name, (name, "none")) for name in MAJORITIES if said.penalty is not None)]
            if key[1] != "none":
                others.append(("none", (key[0], "none")))
            for against, other in others:
                for measure, (value, drawn) in estimated(key, here).items():
                    # A majority's classes have no order to speak of.
                    if measure == "auc" and {*MAJORITIES} & {key[0], against}:
                        continue
                    base, of_base = estimated(other, here)[measure] if other else (0.0, np.zeros_like(drawn))
                    low, high = classification.interval(drawn - of_base)
                    named = {"measure": measure, "against": against}
                    yield {**about, **named, "value": value - base, "low": low, "high": high}


def _measures(truth: npt.NDArray[np.bool_], scores: Floats, called: npt.NDArray[np.int64]) -> dict[str, Measure]:
    return {
        "accuracy": lambda weights: classification.accuracy(truth, called, weights),
        "macro_f1": lambda weights: classification.macro_f1(truth, called, weights),
        "auc": lambda weights: classification.auc(truth, scores, weights),
    }


def cut(scores: Floats, validation: Floats, rate: float) -> npt.NDArray[np.int64]:
    """Call the scores positive above which a share of the validation samples' scores lies, as in section 4.3 of the paper."""
    return np.asarray(scores >= np.quantile(validation, 1 - rate), dtype=np.int64)


def evaluate(
    dataset: str,
    conversations: Sequence[Conversation],
    names: Sequence[str],
    *,
    contexts: Sequence[str],
    personal: Sequence[str],
    vectors: Mapping[str, Vectors],
    baselines: Mapping[str, Mapping[str, float]],
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[tuple[str, str, str], Predictor]]:
    """Train all models on each split and evaluate them with the baselines.

    Parameters
    ----------
    dataset
        Its name, for the rows.
    conversations
        All of them.
    names
        How to split: ``time``, ``waves``.
    contexts, personal
        Of :data:`~comperdial.training.continuity.CONTEXTS` and ``PERSONAL``.
    vectors
        Of all texts that :meth:`Task.texts` yields, by encoder.
    baselines
        Scores by baseline and sample, of validation and test samples.
    resamples
        Of users, for intervals.

    Returns
    -------
    tuple
        The measures (:data:`COLUMNS`); each reply's probability by split, model and kind of user; and the models.
    """
    rows: list[dict[str, Any]] = []
    said: list[pd.DataFrame] = []
    models: dict[tuple[str, str, str], Predictor] = {}
    for task in tasks(conversations, names):
        histories = Histories(task.known, vectors.get("minilm"))
        rate = continuity.natural_rate(task.known)
        seen = {
            "balanced": _compared(task.test, histories),
            "natural": _compared(task.natural, histories),
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
            # Costly to read: some samples of the first split.
            few = context == "smollm2"
            if few and task.name != names[0]:
                continue
            train, validation = (task.few("train"), task.few("validation")) if few else (task.train, task.validation)
            for user in personal:
                features = Features(train, context, user, vectors=vectors, histories=histories)
                model = models[task.name, context, user] = continuity.fit(features, train, validation)
                for kind, shown in seen.items():
                    if kind == "natural" and few:
                        continue
                    asked = task.few("test") if few else shown.samples
                    chances = model.probabilities(asked, rate if kind == "natural" else None)
                    by_id = dict(zip((sample.id for sample in asked), chances.tolist(), strict=True))
                    scores = np.array([by_id.get(sample.id, np.nan) for sample in shown.samples])
                    shown.answers[context, user] = Answers(scores, (scores >= 0.5).astype(np.int64), model.penalty)
                    frame = pd.DataFrame({"item_id": list(by_id), "value": chances})
                    said.append(frame.assign(split=task.name, rate=kind, model=context, user=user))
        for kind, shown in seen.items():
            found = shown.rows(resamples, grouped=kind == "balanced")
            rows += [{"dataset": dataset, "split": task.name, "rate": kind, **row} for row in found]
    return pd.DataFrame(rows, columns=list(COLUMNS)), pd.concat(said, ignore_index=True), models


def _compared(asked: list[Sample], histories: Histories) -> Compared:
    return Compared(asked, np.array([histories.conversations(sample.user_id) for sample in asked], dtype=np.int64))


def _baselines(
    task: Task, vectors: Mapping[str, Vectors], baselines: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    found = dict(baselines)
    if known := vectors.get("minilm"):
        asked = [*task.validation, *task.test]
        one = continuity.stacked(known, [sample.reply.text for sample in asked])
        other = continuity.stacked(known, [before(sample) for sample in asked])
        scale = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        values = np.einsum("ik,ik->i", one, other) / np.where(scale > 0, scale, 1)
        found["cosine"] = {sample.id: float(value) for sample, value in zip(asked, values, strict=True)}
    return found


# Does continuing mean liking?


def crossfitted(
    conversations: Sequence[Conversation], context: str, personal: str, penalty: float, vectors: Mapping[str, Vectors]
) -> dict[str, float]:
    """Return each sample's log-odds by a model that has not seen its conversation: five folds, drawn at random."""
    folds = np.random.default_rng(SEED).permutation(len(conversations)) % 5
    of = {conversation.id: fold for conversation, fold in zip(conversations, folds.tolist(), strict=True)}
    found: dict[str, float] = {}
    asked = list(samples(conversations))
    for fold in range(5):
        known = [sample for sample in asked if of[sample.conversation.id] != fold]
        held = [sample for sample in asked if of[sample.conversation.id] == fold]
        train = balanced(known, {sample.conversation.id: "train" for sample in known}, SEED)
        features = Features(
            train, context, personal, vectors=vectors, histories=Histories(known, vectors.get("minilm"))
        )
        # The penalty was chosen on the validation split; there is nothing left to choose.
        model = continuity.fit(features, train, train, (penalty,))
        found |= zip((sample.id for sample in held), model.logits(held).tolist(), strict=True)
    return found


def liking(
    values: Sequence[float], ratings: Sequence[float], clusters: Sequence[str], *, within: Sequence[str], resamples: int
) -> list[dict[str, Any]]:
    """Return how scores agree with ratings: r pooled and within groups, and, of two ratings, AUC pooled and within.

    Parameters
    ----------
    values, ratings
        n scores and ratings.
    clusters
        What is resampled: the rater of each.
    within
        The group that each is centred by, or compared inside of.
    resamples
        For the intervals.

    Returns
    -------
    list of dict
        ``measure``, ``value``, ``low``, ``high``, ``n`` and ``groups``.
    """
    scores, given = np.asarray(values, dtype=float), np.asarray(ratings, dtype=float)
    raters, groups = np.asarray(clusters), np.asarray(within)
    _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
    several = counts[places] > 1
    found: list[dict[str, Any]] = []

    def add(measure: str, of: Any, kept: npt.NDArray[np.bool_], count: int) -> None:  # noqa: ANN401
        weights = classification.cluster_weights(raters[kept], resamples, np.random.default_rng(SEED))
        value, drawn = classification.estimated({measure: of}, weights)[measure]
        low, high = classification.interval(drawn)
        about = {"n": int(kept.sum()), "groups": count}
        found.append({"measure": measure, "value": value, "low": low, "high": high, **about})

    whole = np.ones(len(scores), dtype=bool)
    if len(scores) < 3:
        return found
    add("r", lambda w: classification.correlation(scores, given, w), whole, len(counts))
    if several.sum() > 2:
        one, other = (_centred(array, places)[several] for array in (scores, given))
        add("r_within", lambda w: classification.correlation(one, other, w), several, int((counts > 1).sum()))
    if len(set(given.tolist())) == 2:
        up = given == given.max()
        add("auc", lambda w: classification.auc(up, scores, w), whole, len(counts))
        won, pairs, owners = _pairs(scores, up, places, raters)
        if len(pairs) and pairs.sum():
            weights = classification.cluster_weights(owners, resamples, np.random.default_rng(SEED))
            drawn = (weights @ won) / np.where((total := weights @ pairs) > 0, total, np.nan)
            low, high = classification.interval(drawn)
            inside = {"n": int(pairs.sum()), "groups": len(pairs)}
            value = float(won.sum() / pairs.sum())
            found.append({"measure": "auc_within", "value": value, "low": low, "high": high, **inside})
    return found


def _centred(values: Floats, places: npt.NDArray[np.intp]) -> Floats:
    means = np.bincount(places, weights=values) / np.bincount(places)
    return np.asarray(values - means[places], dtype=float)


def _pairs(
    scores: Floats, up: npt.NDArray[np.bool_], places: npt.NDArray[np.intp], raters: npt.NDArray[np.generic]
) -> tuple[Floats, Floats, npt.NDArray[np.generic]]:
    """Return, of each group with both ratings, the pairs that the scores put right, all pairs, and whose they are."""
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
