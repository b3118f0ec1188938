"""Predict the score that an interlocutor gives a response, from its text, from the person, or from both.

Source: Tsuta et al. 2023, "Rethinking Response Evaluation from Interlocutor's Eye", section 3; ``docs/continuity.md`` lists the
differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.schema.tables import SPLITS

Floats = npt.NDArray[np.float64]

INTERLOCUTOR, OUTSIDERS = "interlocutor", "outsiders"
TRAIN, VALIDATION, TEST = SPLITS
PENALTIES = (0.1, 0.3, 1, 3, 10, 30, 100)
TEXTS = ("response", "last", "earlier")
# Characters read from the utterances before the last one.
_CHARACTERS = 512
# Ends of the training and validation parts, as shares of a dialogue.
_ENDS = (0.8, 0.9)


def rated_exchanges(
    contexts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame, annotators: pd.DataFrame
) -> pd.DataFrame:
    """Return the responses rated by the interlocutor and all outsiders, in order, with their scores.

    The tables have turn ratings in one dimension and one interlocutor per dialogue. Returned columns are ``dataset``,
    ``dialogue_id``, ``turn``, ``person`` (the interlocutor), ``response``, ``last`` (the utterance before), ``earlier`` (the
    end of the utterances before that), ``interlocutor``, ``outsiders`` (their mean), ``split``. Raises SchemaError if an
    annotator who rated has no role, a response has two interlocutors, or nothing is left.
    """
    where, key = "table 'ratings'", ["context_id", "system_id"]
    roles = annotators.set_index("annotator_id")["role"]
    role = ratings["annotator_id"].map(roles)
    if role.isna().any():
        name = ratings.loc[role.isna(), "annotator_id"].iloc[0]
        raise SchemaError(f"annotator {name!r} has no role", where=where, expected="each in table 'annotators'")
    ratings = ratings.rename(columns={"item_id": "context_id"})
    own = ratings[role == "interlocutor"].rename(columns={"rating": INTERLOCUTOR, "annotator_id": "person"})
    if (twice := own.duplicated(key)).any():
        item = own.loc[twice, "context_id"].iloc[0]
        raise SchemaError(f"two interlocutors rated {item!r}", where=where, expected="one")
    others = ratings[role == "outsider"].groupby(key)["rating"].agg(outsiders="mean", count="size").reset_index()
    others = others[others["count"] == (roles == "outsider").sum()]
    frame = own[[*key, "person", INTERLOCUTOR]].merge(others, on=key).merge(responses, on=key)
    frame = frame.merge(contexts.drop(columns="dataset"), on="context_id")
    if frame.empty:
        raise SchemaError("no response was rated by its interlocutor and by all outsiders", where=where)
    frame = frame.sort_values(["dialogue_id", "turn"], ignore_index=True)
    histories = [[utterance["text"] for utterance in history] for history in frame["history"]]
    frame["last"] = [texts[-1] if texts else "" for texts in histories]
    frame["earlier"] = ["\n".join(texts[:-1])[-_CHARACTERS:] for texts in histories]
    frame["split"] = split_in_time(frame["dialogue_id"])
    return frame[["dataset", "dialogue_id", "turn", "person", *TEXTS, INTERLOCUTOR, OUTSIDERS, "split"]]


def split_in_time(dialogues: pd.Series) -> pd.Series:
    """Split each dialogue in time: the first 80 % for training, the next 10 % for validation, the last 10 % for testing.

    ``dialogues`` gives the dialogue of each item, in order.
    """
    items = dialogues.groupby(dialogues)
    place, size = items.cumcount(), items.transform("size")
    train, validation = (np.rint(size * end) for end in _ENDS)
    return pd.Series(np.select([place < train, place < validation], [TRAIN, VALIDATION], TEST), dialogues.index)


def personal_means(frame: pd.DataFrame) -> Floats:
    """Return each person's mean training score for each exchange: a prediction without text."""
    means = frame[frame["split"] == TRAIN].groupby("person")[INTERLOCUTOR].mean()
    return frame["person"].map(means).to_numpy(np.float64)


def text_features(frame: pd.DataFrame) -> Any:  # noqa: ANN401 - a sparse matrix
    """Return text features of each exchange, shape (exchanges, features), fitted to the training part.

    There is a block of norm 1 for each of response, last utterance and earlier ones: TF-IDF of character 1- to 3-grams. Raises
    SchemaError if the training texts share no n-gram.
    """
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    train = (frame["split"] == TRAIN).to_numpy()
    counts: list[Any] = []
    for name in TEXTS:
        counted = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True)
        # scikit-learn raises it if no n-gram occurs in two texts, as in dialogues of one exchange.
        with suppress(ValueError):
            counts.append(counted.fit(frame.loc[train, name]).transform(frame[name]))
    if not counts:
        raise SchemaError("no two texts share a character", where="the training part", expected="texts to learn from")
    return sparse.hstack(counts, format="csr")


class Prediction(NamedTuple):
    """A prediction for each exchange, and the penalty chosen on the validation part."""

    values: Floats
    penalty: float


def predict(
    frame: pd.DataFrame,
    features: Any,  # noqa: ANN401 - a sparse matrix
    *,
    target: str,
    identity: bool,
    penalties: Sequence[float] = PENALTIES,
) -> Prediction:
    """Fit ridge regressions on the training part and return the one with the lowest squared error on the validation part.

    ``frame`` and ``features`` come from :func:`rated_exchanges` and :func:`text_features`; ``target`` is :data:`INTERLOCUTOR`
    or :data:`OUTSIDERS`. With ``identity``, the interlocutor is a one-hot feature. Of equally good ``penalties`` the first is
    used.
    """
    from scipy import sparse
    from sklearn.linear_model import Ridge

    if identity:
        blocks: list[Any] = [features, pd.get_dummies(frame["person"]).to_numpy(np.float64)]
        features = sparse.hstack(blocks, format="csr")
    scores = frame[target].to_numpy(np.float64)
    train, validation = ((frame["split"] == name).to_numpy() for name in (TRAIN, VALIDATION))
    centre = scores[train].mean()
    candidates = []
    for penalty in penalties:
        # Centre the scores: an intercept's column of ones would make sparse features dense.
        model = Ridge(alpha=penalty, fit_intercept=False, tol=1e-6).fit(features[train], scores[train] - centre)
        candidates.append(Prediction(model.predict(features) + centre, float(penalty)))
    return min(candidates, key=lambda one: float(np.mean((one.values[validation] - scores[validation]) ** 2)))
