"""Dialogue continuity prediction: models and baselines on one data set and split, and whether continuing is liking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

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
# What splits make: (model, kind of user).
_Model = tuple[str, str]


def baselines_here() -> list[str]:
    """Return the baselines whose models are on this machine."""
    return [name for name, (kind, _, options) in BASELINES.items() if create(kind, **options).unavailable() is None]


def baseline_scores(dataset: str, conversations: Sequence[Conversation], names: Sequence[str]) -> pd.DataFrame:
    """Score the balanced samples by metrics that know nothing of continuing: ``item_id``, ``baseline`` and ``value``.

    The likelihood, which is slow, has scores of some samples of the first split.
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


class Answers(NamedTuple):
    """A model's scores of some samples, NaN where it has none, and which samples it calls positive."""

    scores: Floats
    predicted: npt.NDArray[np.int64]
    penalty: float | None = None


def _compared(
    asked: Sequence[Sample],
    known: npt.NDArray[np.int64],
    answers: Mapping[_Model, Answers],
    *,
    grouped: bool,
    resamples: int,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each model, measure and difference, of all samples and, if ``grouped``, by how well the user is known.

    ``known`` counts the conversations of the training split that each sample's user was in.
    """
    truth, users = np.array([one.continued for one in asked]), np.array([one.user_id for one in asked])
    groups = {"all": known >= 0}
    if grouped:
        groups |= {"known": known > 0, "cold": known == 0}
        groups |= {name: (known >= low) & (known <= high) for name, (low, high) in BINS.items()}

    @cache
    def estimated(model: _Model, chosen: bytes) -> dict[str, tuple[float, Floats]]:
        here = np.frombuffer(chosen, dtype=np.bool_)
        of, scores, called = truth[here], answers[model].scores[here], answers[model].predicted[here]
        measures: dict[str, Measure] = {
            "accuracy": lambda weights: classification.accuracy(of, called, weights),
            "macro_f1": lambda weights: classification.macro_f1(of, called, weights),
            "auc": lambda weights: classification.auc(of, scores, weights),
        }
        # One seed for each: the same samples have the same resamples, so that differences are paired.
        weights = classification.cluster_weights(users[here], resamples, np.random.default_rng(SEED))
        return classification.estimated(measures, weights)

    for (group, chosen), ((name, user), own) in product(groups.items(), answers.items()):
        here = chosen & ~np.isnan(own.scores)
        if not here.any():
            continue
        others = [""] + [*MAJORITIES] * (own.penalty is not None) + ["none"] * (user != "none")
        about = {
            "group": group, "model": name, "user": user, "n": int(here.sum()), "positives": int(truth[here].sum()),
            "users": len(np.unique(users[here])), "penalty": own.penalty,
        }  # fmt: skip
        for against, measure in product(others, ("accuracy", "macro_f1", "auc")):
            # The classes of a majority do not rank samples.
            if measure == "auc" and {*MAJORITIES} & {name, against}:
                continue
            value, drawn = estimated((name, user), here.tobytes())[measure]
            if against:
                other = (name if against == "none" else against, "none")
                base, of_base = estimated(other, here.tobytes())[measure]
                value, drawn = value - base, drawn - of_base
            low, high = classification.interval(drawn)
            yield about | {"measure": measure, "against": against, "value": value, "low": low, "high": high}


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

    ``conversations`` are all of ``chitchat`` or ``convai2``; ``vectors`` are by encoder, of all texts that it reads (models
    of an encoder without them are left out); ``baselines`` are :func:`baseline_scores`'s; ``resamples``, of users, are for
    intervals. What is returned is the measures (:data:`COLUMNS`), and each reply's probability by split, model and kind of
    user.
    """
    rows: list[dict[str, Any]] = []
    scored: list[pd.DataFrame] = []
    contexts = [name for name in continuity.CONTEXTS if name not in ENCODERS or name in vectors]
    # MiniLM reads profiles; without it a history is its numbers alone.
    personal = [name for name in PERSONAL[dataset] if "minilm" in vectors or "profile" not in name]
    for task in tasks(conversations, SPLITS[dataset]):
        histories = Histories(task.known, vectors.get("minilm"))
        asked = {"balanced": task.test, "natural": task.natural}
        answers: dict[str, dict[_Model, Answers]] = {kind: {} for kind in asked}
        for private, name in enumerate(MAJORITIES):
            for kind, train in (("balanced", task.train), ("natural", task.known)):
                called = continuity.majority(train, asked[kind], private=bool(private))
                answers[kind][name, "none"] = Answers(called.astype(float), called)
        for name, known in _baselines(task, vectors, baselines).items():
            chosen_by, scores = (
                known.reindex(_ids(task.validation)).dropna(),
                known.reindex(_ids(task.test)).to_numpy(np.float64),
            )
            if len(chosen_by) and not np.isnan(scores).all():
                answers["balanced"][name, "none"] = Answers(scores, cut(scores, chosen_by.to_numpy(), 0.5))
        # SmolLM2 is slow, and reads some samples of the first split.
        for context, user in product(contexts, personal):
            few = context == "smollm2"
            if few and task.name != SPLITS[dataset][0]:
                continue
            train, validation = (task.few("train"), task.few("validation")) if few else (task.train, task.validation)
            model = continuity.fit(
                Features(train, context, user, vectors=vectors, histories=histories), train, validation
            )
            for kind in ("balanced",) if few else asked:
                read = task.few("test") if few else asked[kind]
                rate = continuity.natural_rate(task.known) if kind == "natural" else None
                chances = pd.Series(model.probabilities(read, rate), index=_ids(read))
                scores = np.asarray(chances.reindex(_ids(asked[kind])), dtype=np.float64)
                answers[kind][context, user] = Answers(scores, (scores >= 0.5).astype(np.int64), model.penalty)
                frame = pd.DataFrame({"item_id": chances.index, "value": chances.to_numpy()})
                scored.append(frame.assign(split=task.name, rate=kind, model=context, user=user))
        for kind, samples_of in asked.items():
            counts = np.array([histories.conversations(one.user_id) for one in samples_of], dtype=np.int64)
            made = _compared(samples_of, counts, answers[kind], grouped=kind == "balanced", resamples=resamples)
            rows += [{"dataset": dataset, "split": task.name, "rate": kind} | row for row in made]
    return pd.DataFrame(rows, columns=list(COLUMNS)), pd.concat(scored, ignore_index=True)


def _ids(asked: Sequence[Sample]) -> list[str]:
    return [sample.id for sample in asked]


def _baselines(task: Task, vectors: Mapping[str, Vectors], baselines: pd.DataFrame | None) -> dict[str, pd.Series]:
    scores: dict[str, pd.Series] = {}
    if baselines is not None:
        scores = {str(name): part.set_index("item_id")["value"] for name, part in baselines.groupby("baseline")}
    if known := vectors.get("minilm"):
        asked = [*task.validation, *task.test]
        one = continuity.stacked(known, [sample.reply.text for sample in asked])
        other = continuity.stacked(known, [before(sample) for sample in asked])
        scale = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        values = np.einsum("ik,ik->i", one, other) / np.where(scale > 0, scale, 1)
        scores["cosine"] = pd.Series(values, index=_ids(asked))
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
        logits |= zip(_ids(held), model.logits(held).tolist(), strict=True)
    return logits


def liking(
    conversations: Mapping[str, Sequence[Conversation]],
    vectors: Mapping[str, Mapping[str, Vectors]],
    measures: pd.DataFrame,
    *,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare predicted continuing with what users liked.

    ``conversations`` are those of ``convai2`` and, if they are here, of ``chitchat`` and ``topical_chat``; ``vectors`` are by
    data set and encoder; ``measures`` are :func:`evaluate`'s, of ``convai2`` and ``chitchat``, whose penalties are used. What
    is returned is the agreement with ratings, a row for each predictor and measure, and each reply's log-odds by predictor.
    """
    bots, people = conversations["convai2"], rated_replies(conversations.get(RATED, ()))
    time = measures[measures["split"] == "time"].drop_duplicates(["dataset", "model", "user"])
    penalties = time.set_index(["dataset", "model", "user"])["penalty"].to_dict()
    frames = []
    for context, user in product(("tfidf", "minilm"), continuity.PERSONAL):
        if (penalty := penalties.get(("convai2", context, user))) is not None:
            logits = crossfitted(bots, context, user, penalty, vectors.get("convai2", {}))
            frames.append(_predicted("convai2", f"convai2, {context}, {user}", logits))
    of_people: list[pd.DataFrame] = []
    for context in ("tfidf", "minilm") if "chitchat" in conversations else ():
        if (penalty := penalties.get(("chitchat", context, "none"))) is None:
            continue
        task = Task.of(conversations["chitchat"], "time")
        features = Features(task.train, context, vectors=vectors.get("chitchat", {}))
        model = continuity.fit(features, task.train, task.validation, (penalty,))
        for dataset, asked, to in (("convai2", list(samples(bots)), frames), (RATED, people, of_people)):
            if asked:
                features.vectors = vectors.get(dataset, {})
                logits = dict(zip(_ids(asked), model.logits(asked).tolist(), strict=True))
                to.append(_predicted(dataset, f"chitchat, {context}, none", logits))
    frames += of_people
    # What happened is given as predictions are: how long dialogues were, and whether users went on.
    length = {one.id: math.log(max(1, len(one.utterances))) for one in bots}
    went_on = {sample.id: float(sample.continued) for sample in samples(bots)}
    values = [_predicted("convai2", "observed length", length), _predicted("convai2", "observed continuing", went_on)]
    dialogue_of = {sample.id: sample.conversation.id for sample in samples(bots)}
    key = ["dataset", "predictor", "item_id"]
    for frame in frames:
        chances = frame.assign(value=special.expit(frame["value"]))
        whole = chances.assign(item_id=chances["item_id"].map(dialogue_of)).groupby(key, sort=False)["value"].mean()
        values += [whole.reset_index(), chances]
    joined = pd.concat(values, ignore_index=True).merge(_liked(bots, people), on=["dataset", "item_id"])
    key = ["dataset", "replies", "of", "predictor"]
    rows = []
    for names, part in joined.groupby(key, sort=False):
        clusters, within = part["cluster"].to_numpy(), part["within"].to_numpy()
        agreed = agreement(part["value"], part["rating"], clusters, within=within, resamples=resamples)
        rows += [dict(zip(key, names, strict=True)) | row for row in agreed]
    return pd.DataFrame(rows), pd.concat(frames, ignore_index=True)


def _predicted(dataset: str, predictor: str, values: Mapping[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {"dataset": dataset, "predictor": predictor, "item_id": list(values), "value": list(values.values())}
    )


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

    All arrays have shape (n,): ``clusters`` is the rater of each, which the intervals resample, ``within`` the group inside
    of which each is centred, or compared. The rows have ``measure``, ``value``, ``low``, ``high``, ``n`` and ``groups``.
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
        # Of each group with both ratings: the pairs that the scores order rightly, all pairs, and whose they are.
        pairs = []
        for group in np.unique(places):
            inside = places == group
            apart = scores[inside & up][:, None] - scores[inside & ~up]
            if apart.size:
                pairs.append((float((apart > 0).sum() + (apart == 0).sum() / 2), float(apart.size), raters[inside][0]))
        if pairs:
            won, of, owners = map(np.array, zip(*pairs, strict=True))
            add(
                "auc_within",
                lambda w: np.asarray(w @ won / np.where(w @ of > 0, w @ of, np.nan)),
                owners,
                int(of.sum()),
                len(of),
            )
    return rows
