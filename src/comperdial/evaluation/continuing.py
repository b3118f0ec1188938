"""Evaluate continuity prediction against baselines, and test whether users who continue liked the conversation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

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

BINS = {"0": (0, 0), "1": (1, 1), "2-4": (2, 4), "5-9": (5, 9), "10+": (10, np.inf)}
"""Groups of samples by the number of the user's conversations in the training split."""
_GROUPS = {"all": (0, np.inf), "known": (1, np.inf), "cold": (0, 0), **BINS}
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
# The likelihood is slow.
_MOST_LIKELY = {"validation": 200, "test": 500}


def baselines_here() -> list[str]:
    """Return the baselines whose models are on this machine."""
    return [name for name, (kind, _, options) in BASELINES.items() if create(kind, **options).unavailable() is None]


def baseline_scores(dataset: str, conversations: Sequence[Conversation], names: Sequence[str]) -> pd.DataFrame:
    """Score the balanced samples by metrics unrelated to continuing: ``item_id``, ``baseline`` and ``value``.

    The likelihood scores only some samples of the first split.
    """
    parts = []
    for name in names:
        kind, output, options = BASELINES[name]
        few, asked = name == "likelihood", dict[str, Sample]()
        for task in tasks(conversations, SPLITS[dataset][:1] if few else SPLITS[dataset]):
            for part, most in _MOST_LIKELY.items():
                drawn = getattr(task, part)
                asked |= {one.id: one for one in (some(drawn, most) if few else drawn)}
        texts, histories = [one.reply.text for one in asked.values()], [_history(one) for one in asked.values()]
        values = create(kind, **options).score(texts, histories=histories)[output]
        parts.append(pd.DataFrame({"item_id": list(asked), "baseline": name, "value": values}))
    return pd.concat(parts, ignore_index=True)


def _history(sample: Sample) -> list[dict[str, str]]:
    earlier = sample.conversation.utterances[max(0, sample.turn - 6) : sample.turn]
    return [{"speaker": "B" if one.speaker == sample.reply.speaker else "A", "text": one.text} for one in earlier]


class Answers(NamedTuple):
    """A model's scores of samples, NaN if missing, and its positive predictions."""

    scores: Floats
    predicted: npt.NDArray[np.int64]
    penalty: float | None = None


def evaluate(
    dataset: str,
    conversations: Sequence[Conversation],
    vectors: Mapping[str, Vectors],
    baselines: pd.DataFrame | None = None,
    *,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train all models on each split of a data set and evaluate them with the baselines.

    ``conversations`` are all of ``chitchat`` or ``convai2``; ``vectors`` are by encoder, for all its texts (models without
    their encoder's vectors are skipped); ``baselines`` come from :func:`baseline_scores`; ``resamples``, of users, are for
    intervals. Returns a row per measure, model, kind of user, split and rate (with ``against``, the difference from another
    model), and each reply's probability by split, model and kind of user.
    """
    rows: list[dict[str, Any]] = []
    scored: list[pd.DataFrame] = []
    contexts = [name for name in continuity.CONTEXTS if name not in ENCODERS or name in vectors]
    # Profiles need MiniLM; without it a history has only numbers.
    personal = [name for name in PERSONAL[dataset] if "minilm" in vectors or "profile" not in name]
    for task in tasks(conversations, SPLITS[dataset]):
        histories = Histories(task.known, vectors.get("minilm"))
        models = {}
        for context, user in product(contexts, personal):
            # SmolLM2 is slow, so it scores only some samples of the first split.
            few = context == "smollm2"
            if few and task.name != SPLITS[dataset][0]:
                continue
            train, validation = (task.few("train"), task.few("validation")) if few else (task.train, task.validation)
            features = Features(train, context, user, vectors=vectors, histories=histories)
            models[context, user] = continuity.fit(features, train, validation)
        for kind, asked, train in (("balanced", task.test, task.train), ("natural", task.natural, task.known)):
            rate = continuity.natural_rate(task.known) if kind == "natural" else None
            answers: dict[tuple[str, str], Answers] = {}
            for private, name in enumerate(MAJORITIES):
                called = continuity.majority(train, asked, private=bool(private))
                answers[name, "none"] = Answers(np.asarray(called, np.float64), called)
            answers |= _baselines(task, vectors, baselines) if kind == "balanced" else {}
            for (context, user), model in models.items():
                if context == "smollm2" and kind == "natural":
                    continue
                read = task.few("test") if context == "smollm2" else asked
                chances = pd.Series(model.probabilities(read, rate), index=pd.Index(_ids(read), name="item_id"))
                scores = np.asarray(chances.reindex(_ids(asked)), dtype=np.float64)
                answers[context, user] = Answers(scores, (scores >= 0.5).astype(np.int64), model.penalty)
                frame = chances.rename("value").reset_index()
                scored.append(frame.assign(split=task.name, rate=kind, model=context, user=user))
            about = {"dataset": dataset, "split": task.name, "rate": kind}
            known = np.array([histories.conversations(one.user_id) for one in asked])
            groups = [*_GROUPS] if kind == "balanced" else ["all"]
            rows += [about | row for row in _compared(asked, known, answers, groups, resamples)]
    return pd.DataFrame(rows), pd.concat(scored, ignore_index=True)


def _ids(asked: Sequence[Sample]) -> list[str]:
    return [sample.id for sample in asked]


def _baselines(
    task: Task, vectors: Mapping[str, Vectors], baselines: pd.DataFrame | None
) -> dict[tuple[str, str], Answers]:
    """Return the baselines' test scores, with the median of the validation samples as threshold (section 4.3)."""
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
    answers = {}
    for name, series in scores.items():
        validation = series.reindex(_ids(task.validation)).dropna()
        test = series.reindex(_ids(task.test)).to_numpy(np.float64)
        if len(validation) and not np.isnan(test).all():
            answers[name, "none"] = Answers(test, (test >= validation.median()).astype(np.int64))
    return answers


def _compared(
    asked: Sequence[Sample],
    known: npt.NDArray[np.int64],
    answers: Mapping[tuple[str, str], Answers],
    groups: Sequence[str],
    resamples: int,
) -> Iterator[dict[str, Any]]:
    """Yield a row per group of samples, model and measure, and for its difference from other models.

    ``known`` counts the training conversations of each sample's user; ``answers`` are by model and kind of user.
    """
    truth, users = np.array([one.continued for one in asked]), np.array([one.user_id for one in asked])

    @cache
    def estimated(model: tuple[str, str], chosen: bytes) -> dict[str, tuple[float, Floats]]:
        here = np.frombuffer(chosen, dtype=np.bool_)
        of, scores, called = truth[here], answers[model].scores[here], answers[model].predicted[here]
        measures: dict[str, Measure] = {
            "accuracy": partial(classification.accuracy, of, called),
            "macro_f1": partial(classification.macro_f1, of, called),
            "auc": partial(classification.auc, of, scores),
        }
        # The same seed gives the same resamples for the same samples, so that differences are paired.
        weights = classification.cluster_weights(users[here], resamples, np.random.default_rng(SEED))
        return classification.estimated(measures, weights)

    for group, ((name, user), own) in product(groups, answers.items()):
        least, most = _GROUPS[group]
        here = (known >= least) & (known <= most) & ~np.isnan(own.scores)
        if not here.any():
            continue
        counts = {"n": int(here.sum()), "positives": int(truth[here].sum()), "users": len(np.unique(users[here]))}
        others = {"": (name, user)}
        others |= {majority: (majority, "none") for majority in MAJORITIES} if own.penalty is not None else {}
        others |= {"none": (name, "none")} if user != "none" else {}
        for (against, other), measure in product(others.items(), ("accuracy", "macro_f1", "auc")):
            # Majority classes do not rank samples.
            if measure == "auc" and {*MAJORITIES} & {name, against}:
                continue
            value, drawn = estimated((name, user), here.tobytes())[measure]
            if against:
                base, of_base = estimated(other, here.tobytes())[measure]
                value, drawn = value - base, drawn - of_base
            low, high = classification.interval(drawn)
            about = {"group": group, "model": name, "user": user, "measure": measure, "against": against}
            yield about | {"value": value, "low": low, "high": high} | counts | {"penalty": own.penalty}


def continuations(dataset: str, conversations: Sequence[Conversation]) -> pd.DataFrame:
    """Return table ``continuations``: whether the user continued after each reply."""
    split, rows = splits(conversations), []
    for one in samples(conversations):
        of, system = one.conversation, one.conversation.systems[one.reply.speaker]
        rows.append((dataset, one.id, system, one.user_id, int(one.continued), one.seconds, of.began, split[of.id]))
    columns = ["dataset", "context_id", "system_id", "user_id", "continued", "seconds", "began", "split"]
    return pd.DataFrame(rows, columns=columns)


# Does continuing mean liking?


def liking(
    conversations: Mapping[str, Sequence[Conversation]],
    vectors: Mapping[str, Mapping[str, Vectors]],
    measures: pd.DataFrame,
    *,
    resamples: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare predicted continuing with user ratings.

    ``conversations`` are those of ``convai2`` and, if available, of ``chitchat`` and ``topical_chat``; ``vectors`` are by data
    set and encoder; ``measures`` come from :func:`evaluate` for ``convai2`` and ``chitchat`` and supply the penalties. Returns
    the agreement with ratings, a row per predictor and measure, and each reply's log-odds by predictor.
    """
    bots, people = conversations["convai2"], rated_replies(conversations.get(RATED, ()))
    asked = {"convai2": list(samples(bots)), RATED: people}
    time = measures[measures["split"] == "time"].drop_duplicates(["dataset", "model", "user"])
    penalties = time.set_index(["dataset", "model", "user"])["penalty"].to_dict()
    logits: dict[tuple[str, str], dict[str, float]] = {}
    for context, user in product(("tfidf", "minilm"), continuity.PERSONAL):
        if (penalty := penalties.get(("convai2", context, user))) is not None:
            made = crossfitted(bots, context, user, penalty, vectors.get("convai2", {}))
            logits["convai2", f"convai2, {context}, {user}"] = made
    for context in ("tfidf", "minilm") if "chitchat" in conversations else ():
        if (penalty := penalties.get(("chitchat", context, "none"))) is not None:
            task = Task.of(conversations["chitchat"], "time")
            features = Features(task.train, context, vectors=vectors.get("chitchat", {}))
            model = continuity.fit(features, task.train, task.validation, (penalty,))
            for dataset, replies in asked.items():
                if replies:
                    features.vectors = vectors.get(dataset, {})
                    made = dict(zip(_ids(replies), model.logits(replies).tolist(), strict=True))
                    logits[dataset, f"chitchat, {context}, none"] = made
    # Observed behaviour in the form of predictions: length of dialogues, and whether users continued.
    values = {
        ("convai2", "observed length"): {one.id: math.log(max(1, len(one.utterances))) for one in bots},
        ("convai2", "observed continuing"): {one.id: float(one.continued) for one in asked["convai2"]},
    }
    dialogue_of = {one.id: one.conversation.id for replies in asked.values() for one in replies}
    for key, of in logits.items():
        chances = pd.Series(of).map(scipy.special.expit)
        # A dialogue's prediction is the mean over its replies.
        values[key] = chances.groupby(chances.index.map(dialogue_of)).mean().to_dict() | chances.to_dict()
    joined, scores = (
        pd.DataFrame(
            [(*key, item, value) for key, of in known.items() for item, value in of.items()],
            columns=["dataset", "predictor", "item_id", "value"],
        )
        for known in (values, logits)
    )
    joined = joined.merge(_liked(bots, people), on=["dataset", "item_id"])
    columns, rows = ["dataset", "replies", "of", "predictor"], list[dict[str, Any]]()
    for names, part in joined.groupby(columns, sort=False):
        sides = (part[name] for name in ("value", "rating", "cluster"))
        agreed = agreement(*sides, within=part["within"], resamples=resamples)
        rows += [dict(zip(columns, names, strict=True)) | row for row in agreed]
    return pd.DataFrame(rows), scores


def crossfitted(
    conversations: Sequence[Conversation], context: str, personal: str, penalty: float, vectors: Mapping[str, Vectors]
) -> dict[str, float]:
    """Return each sample's log-odds by a model trained without its conversation: five random folds."""
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


def _liked(bots: Sequence[Conversation], people: Sequence[Sample]) -> pd.DataFrame:
    """Return the ratings of dialogues and replies, with the cluster to resample and the group to compare within."""
    rows: list[tuple[Any, ...]] = []
    for one in bots:
        owner = next(iter(one.users.values()))
        rows.append(("convai2", "system", "quality", one.id, one.rating, owner, owner))
    for reply in samples(bots):
        about = reply.id, reply.reply.rating, reply.user_id, reply.conversation.id
        rows.append(("convai2", "system", "thumbs", *about))
    for reply in people:
        about = reply.id, reply.reply.rating, reply.conversation.id, reply.user_id
        rows.append((RATED, "human", "turn rating", *about))
    columns = ["dataset", "replies", "of", "item_id", "rating", "cluster", "within"]
    return pd.DataFrame(rows, columns=columns).astype({"rating": float}).dropna(subset="rating")


def agreement(
    values: npt.ArrayLike, ratings: npt.ArrayLike, clusters: npt.ArrayLike, *, within: npt.ArrayLike, resamples: int
) -> list[dict[str, Any]]:
    """Return the agreement of scores with ratings: r pooled and within groups; for binary ratings, also the AUC.

    All arrays have shape (n,): ``clusters`` is the rater, resampled for intervals, ``within`` the group for centring or
    comparing. The rows have ``measure``, ``value``, ``low``, ``high``, ``n`` and ``groups``.
    """
    sides = {"score": np.asarray(values, float), "rating": np.asarray(ratings, float)}
    frame = pd.DataFrame(sides | {"cluster": np.asarray(clusters), "within": np.asarray(within)})
    rows: list[dict[str, Any]] = []

    def add(measure: str, of: Measure, owners: pd.Series, n: int, groups: int) -> None:
        weights = classification.cluster_weights(owners.to_numpy(), resamples, np.random.default_rng(SEED))
        value, drawn = classification.estimated({measure: of}, weights)[measure]
        low, high = classification.interval(drawn)
        rows.append({"measure": measure, "value": value, "low": low, "high": high, "n": n, "groups": groups})

    if len(frame) < 3:
        return rows
    groups, numbers = frame.groupby("within"), frame[["score", "rating"]]
    several = groups["within"].transform("size") > 1
    centred = (numbers - numbers.groupby(frame["within"]).transform("mean"))[several]
    for measure, table in {"r": numbers, "r_within": centred}.items():
        if len(table) > 2:
            own, correlated = frame.loc[table.index], partial(classification.correlation, *table.to_numpy().T)
            add(measure, correlated, own["cluster"], len(own), own["within"].nunique())
    up = frame["rating"] == frame["rating"].max()
    if frame["rating"].nunique() == 2:
        ordered = partial(classification.auc, up.to_numpy(), numbers["score"].to_numpy())
        add("auc", ordered, frame["cluster"], len(frame), len(groups))
        # For each group with both ratings: correctly ordered pairs, all pairs, and the rater.
        pairs = []
        for _, group in groups:
            high, low = (group.loc[side[group.index], "score"].to_numpy() for side in (up, ~up))
            apart = np.subtract.outer(high, low)
            if apart.size:
                pairs.append(((apart > 0).sum() + (apart == 0).sum() / 2, apart.size, group["cluster"].iloc[0]))
        if pairs:
            table = pd.DataFrame(pairs, columns=["won", "all", "cluster"])
            won, of = table["won"].to_numpy(float), table["all"].to_numpy(float)

            def share(weights: Floats) -> Floats:
                return np.asarray(weights @ won / np.where(weights @ of > 0, weights @ of, np.nan))

            add("auc_within", share, table["cluster"], int(of.sum()), len(table))
    return rows
