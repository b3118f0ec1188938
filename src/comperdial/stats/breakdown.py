"""The measures of the Dialogue Breakdown Detection Challenge 3 (Higashinaka et al. 2017).

People and systems give each turn a distribution over three classes, in this order: O (not a breakdown), T (possible) and X (a
breakdown).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

CLASSES = ("O", "T", "X")
# Groupings of the classes: all three separate, O against T+X, O+T against X.
MERGED = (((0,), (1,), (2,)), ((0,), (1, 2)), ((0, 1), (2,)))

_Floats = npt.NDArray[np.float64]


class Breakdown(NamedTuple):
    """The measures over ``n`` turns; ``gold`` counts gold labels O, T and X.

    ``js`` (Jensen-Shannon divergence, base 2) and ``mse`` are for the three groupings of :data:`MERGED`.
    """

    n: int
    gold: tuple[int, int, int]
    accuracy: float
    f1_x: float
    f1_tx: float
    js: tuple[float, float, float]
    mse: tuple[float, float, float]


def gold_labels(shares: npt.ArrayLike, threshold: float = 0.0) -> npt.NDArray[np.str_]:
    """Return each turn's label from shares of shape (n, 3): the largest share, ties go to O, then T.

    T or X becomes O if its share is below ``threshold``.
    """
    given = _checked(shares)
    places = given.argmax(axis=1)
    return np.array(CLASSES)[np.where(given.max(axis=1) < threshold, 0, places)]


def majority(shares: npt.ArrayLike) -> tuple[str, _Floats]:
    """Return the challenge's majority baseline: the most frequent gold label, and the mean of shares of shape (n, 3)."""
    given = _checked(shares)
    labels = gold_labels(given).tolist()
    return max(CLASSES, key=labels.count), given.mean(axis=0)


def evaluate(
    shares: npt.ArrayLike, labels: npt.ArrayLike, distributions: npt.ArrayLike, *, threshold: float = 0.0
) -> Breakdown:
    """Compare a system's predictions with human labels.

    Parameters
    ----------
    shares
        Human shares of O, T and X per turn, shape (n, 3).
    labels
        The predicted label per turn, shape (n,), or one for all.
    distributions
        The predicted distribution per turn, shape (n, 3), or one of shape (3,) for all.
    threshold
        As in :func:`gold_labels`. F1(T+X) does not depend on it: a turn is a breakdown if T and X together have more than half.

    Raises
    ------
    ValueError
        If there are no turns, or distributions are not over three classes or do not sum to 1.
    """
    people = _checked(shares)
    predicted = np.broadcast_to(np.asarray(labels), len(people))
    ours = np.broadcast_to(_checked(distributions), people.shape)
    gold = gold_labels(people, threshold)
    js, mse = [], []
    for groups in MERGED:
        a, b = (np.stack([p[:, list(merged)].sum(axis=1) for merged in groups], axis=1) for p in (people, ours))
        nats = (scipy.special.rel_entr(a, (a + b) / 2) + scipy.special.rel_entr(b, (a + b) / 2)).sum(axis=1) / 2
        js.append(float(nats.mean() / np.log(2)))
        mse.append(float(((a - b) ** 2).mean()))
    return Breakdown(
        n=len(people),
        gold=(int((gold == "O").sum()), int((gold == "T").sum()), int((gold == "X").sum())),
        accuracy=float((gold == predicted).mean()),
        f1_x=_f1(gold == "X", predicted == "X"),
        f1_tx=_f1(people[:, 0] < 0.5, predicted != "O"),
        js=(js[0], js[1], js[2]),
        mse=(mse[0], mse[1], mse[2]),
    )


def _f1(gold: npt.NDArray[np.bool_], predicted: npt.NDArray[np.bool_]) -> float:
    """Return F1; 0 if nothing is predicted or gold."""
    both = int((gold & predicted).sum())
    return 2 * both / (int(gold.sum()) + int(predicted.sum())) if both else 0.0


def _checked(shares: npt.ArrayLike) -> _Floats:
    given = np.atleast_2d(np.asarray(shares, dtype=np.float64))
    if given.ndim != 2 or given.shape[1] != len(CLASSES) or not len(given):
        raise ValueError(f"shares of shape {given.shape}; expected (n, {len(CLASSES)}), n of 1 or more")
    if (given < 0).any() or not np.allclose(given.sum(axis=1), 1):
        raise ValueError("shares that are no distribution; expected numbers from 0 that add up to 1 in each row")
    return given
