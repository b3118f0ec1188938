"""Predicting the score that an interlocutor gives a response: from its text, from who they are, or from both.

Source: Tsuta et al. 2023, "Rethinking Response Evaluation from Interlocutor's Eye", section 3; what differs is said in
``docs/continuity.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.schema.tables import SPLITS

Floats = npt.NDArray[np.float64]

INTERLOCUTOR, OUTSIDERS = "interlocutor", "outsiders"
TRAIN, VALIDATION, TEST = SPLITS
PENALTIES = (0.1, 0.3, 1, 3, 10, 30, 100)
# How much of what was said before the last utterance is read.
_CHARACTERS = 512
# The shares of a dialogue at whose ends the training and the validation part end.
_ENDS = (0.8, 0.9)


def rated_exchanges(
    contexts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame, annotators: pd.DataFrame
) -> pd.DataFrame:
    """Return the responses that the interlocutor and all outsiders rated, in order, with their scores.

    Parameters
    ----------
    contexts, responses, ratings, annotators
        Tables ``contexts``, ``responses``, ``ratings`` (of turns, in one dimension) and ``annotators`` of a data set, in
        which each dialogue has one interlocutor, and the same outsiders as all others.

    Returns
    -------
    DataFrame
        ``dataset``, ``dialogue_id``, ``turn``, ``person`` (the interlocutor), ``response``, ``last`` (the utterance
        before), ``earlier`` (the end of what was said before that), ``interlocutor``, ``outsiders`` (their mean), ``split``.

    Raises
    ------
    SchemaError
        When ratings are of an annotator without a role, a dialogue has two interlocutors, or nothing is left.
    """
    roles = annotators.set_index("annotator_id")["role"]
    role = ratings["annotator_id"].map(roles)
    if role.isna().any():
        name = ratings.loc[role.isna(), "annotator_id"].iloc[0]
        raise SchemaError(
            f"annotator {name!r} has no role", where="table 'ratings'", expected="each in table 'annotators'"
        )
    key = ["context_id", "system_id"]
    ratings = ratings.rename(columns={"item_id": "context_id"})
    own = ratings[role == "interlocutor"]
    if own.duplicated(key).any():
        item = own.loc[own.duplicated(key), "context_id"].iloc[0]
        raise SchemaError(f"two interlocutors rated {item!r}", where="table 'ratings'", expected="one")
    others = ratings[role == "outsider"].groupby(key)["rating"].agg(outsiders="mean", count="size")
    complete = others[others["count"] == (roles == "outsider").sum()].drop(columns="count").reset_index()
    frame = own.rename(columns={"rating": INTERLOCUTOR, "annotator_id": "person"})[[*key, "person", INTERLOCUTOR]]
    frame = (
        frame.merge(complete, on=key).merge(responses, on=key).merge(contexts.drop(columns="dataset"), on="context_id")
    )
    if frame.empty:
        raise SchemaError("no response was rated by its interlocutor and by all outsiders", where="table 'ratings'")
    frame = frame.sort_values(["dialogue_id", "turn"], ignore_index=True)
    said = [[utterance["text"] for utterance in history] for history in frame["history"]]
    frame["last"] = [texts[-1] if texts else "" for texts in said]
    frame["earlier"] = ["\n".join(texts[:-1])[-_CHARACTERS:] for texts in said]
    frame["split"] = split_in_time(frame["dialogue_id"])
    columns = [
        "dataset",
        "dialogue_id",
        "turn",
        "person",
        "response",
        "last",
        "earlier",
        INTERLOCUTOR,
        OUTSIDERS,
        "split",
    ]
    return frame[columns]


def split_in_time(dialogues: pd.Series) -> pd.Series:
    """Split each dialogue along its course: the first 80 % train, the next 10 % validation, the last 10 % test.

    Parameters
    ----------
    dialogues
        The dialogue of each item, the items of a dialogue in their order.
    """
    place = dialogues.groupby(dialogues).cumcount()
    size = dialogues.groupby(dialogues).transform("size")
    train, validation = (np.rint(size * end) for end in _ENDS)
    names = np.select([place < train, place < validation], [TRAIN, VALIDATION], TEST)
    return pd.Series(names, index=dialogues.index)


def personal_means(frame: pd.DataFrame) -> Floats:
    """Return each person's mean score in the training part, for each exchange: a prediction that reads no text."""
    means = frame[frame["split"] == TRAIN].groupby("person")[INTERLOCUTOR].mean()
    return frame["person"].map(means).to_numpy(np.float64)


def text_features(frame: pd.DataFrame, encoder: str | None = None) -> Any:  # noqa: ANN401 - sparse or dense
    """Return what is known of each exchange's text, shape (exchanges, features).

    Parameters
    ----------
    frame
        As :func:`rated_exchanges` gives it; the training part alone is fitted to.
    encoder
        The name of a sentence encoder of ``comperdial.models``, whose tokens' mean stands for a text; None: TF-IDF of
        character 1- to 3-grams. Either way three blocks, each text's of length 1: response, last utterance, earlier ones.

    Raises
    ------
    SchemaError
        When the training part's texts have nothing in common.
    """
    blocks = [frame[name] for name in ("response", "last", "earlier")]
    if encoder is not None:
        return np.hstack([_encoded(texts.tolist(), encoder) for texts in blocks])
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    train = (frame["split"] == TRAIN).to_numpy()
    made: list[Any] = []
    for texts in blocks:
        counted = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True)
        # scikit-learn's error where no n-gram is in two texts, as of dialogues of one exchange.
        with suppress(ValueError):
            made.append(counted.fit(texts[train]).transform(texts))
    if not made:
        raise SchemaError("no two texts share a character", where="the training part", expected="texts to learn from")
    return sparse.hstack(made, format="csr")


def _encoded(texts: Sequence[str], encoder: str) -> Floats:
    from comperdial.models.encoder import Encoder

    vectors = Encoder(encoder).vectors()
    vectors.add(filter(None, texts))
    rows = []
    for text in texts:
        found = vectors[text]
        mean = found.vectors[~found.special].mean(axis=0) if not found.special.all() else found.vectors.mean(axis=0) * 0
        rows.append(mean / max(float(np.linalg.norm(mean)), 1e-12))
    return np.asarray(rows, dtype=np.float64)


@dataclass(frozen=True)
class Prediction:
    """What a model says of each exchange, and the penalty that the validation part chose."""

    values: Floats
    penalty: float


def predict(
    frame: pd.DataFrame,
    features: Any,  # noqa: ANN401 - sparse or dense
    *,
    target: str,
    identity: bool,
    penalties: Sequence[float],
) -> Prediction:
    """Fit a ridge regression on the training part; the validation part chooses the penalty by squared error.

    Parameters
    ----------
    frame
        As :func:`rated_exchanges` gives it.
    features
        Shape (exchanges, features), as :func:`text_features` gives it.
    target
        :data:`INTERLOCUTOR` or :data:`OUTSIDERS`: whose scores are learnt.
    identity
        Whether the model is told who the interlocutor is, by a one-hot vector.
    penalties
        To choose from; of equal ones the first.
    """
    from scipy import sparse
    from sklearn.linear_model import Ridge

    if identity:
        people: Any = pd.get_dummies(frame["person"]).to_numpy(np.float64)
        if sparse.issparse(features):
            blocks: list[Any] = [features, sparse.csr_array(people)]
            features = sparse.hstack(blocks, format="csr")
        else:
            features = np.hstack([features, people])
    scores = frame[target].to_numpy(np.float64)
    train, validation = ((frame["split"] == name).to_numpy() for name in (TRAIN, VALIDATION))
    centre = scores[train].mean()
    best: tuple[float, Prediction] | None = None
    for penalty in penalties:
        # The scores are centred instead: a column of ones would make sparse features dense.
        model = Ridge(alpha=penalty, fit_intercept=False, tol=1e-6).fit(features[train], scores[train] - centre)
        values = np.asarray(model.predict(features) + centre, dtype=np.float64)
        error = float(np.mean((values[validation] - scores[validation]) ** 2))
        if best is None or error < best[0]:
            best = error, Prediction(values, float(penalty))
    if best is None:
        raise ValueError("expected a penalty or more")
    return best[1]
