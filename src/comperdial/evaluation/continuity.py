"""Whose eye: predictions against the scores of people, pooled, within persons and for each person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.stats import Coefficient
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

Floats = npt.NDArray[np.float64]

POOLED, WITHIN = "pooled", "within"
# Fewer items say nothing of a person.
FEWEST_ITEMS = 5


@dataclass(frozen=True)
class ByPerson:
    """Correlations of several predictions with one score an item.

    Attributes
    ----------
    values
        ``prediction``, ``measure`` (:data:`POOLED`, or :data:`WITHIN`: both sides minus the person's mean), ``value``, ``low``,
        ``high`` (95 %, persons resampled), ``n`` items, ``persons``. Missing where a side does not vary.
    differences
        ``prediction``, ``other``, ``measure``, ``difference``, ``low``, ``high``, ``p`` (two-sided; Student's t, persons left
        out one by one).
    """

    values: pd.DataFrame
    differences: pd.DataFrame


def by_person(
    predictions: Mapping[str, npt.ArrayLike],
    scores: npt.ArrayLike,
    persons: npt.ArrayLike,
    *,
    coefficient: Coefficient = "pearson",
    resamples: int,
    seed: int,
) -> ByPerson:
    """Correlate predictions with scores over all items, and within persons.

    Parameters
    ----------
    predictions
        Each of shape (n,); items of which one is missing (NaN) are left out of all, so that all are of the same items.
    scores
        Shape (n,), no NaN.
    persons
        Shape (n,): whose items they are; intervals resample persons.
    coefficient
        ``pearson`` or ``spearman``.
    resamples, seed
        Of intervals.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a score that is missing.
    """
    names, x = list(predictions), np.stack([np.asarray(p, np.float64) for p in predictions.values()])
    y, people = np.asarray(scores, np.float64), np.asarray(persons)
    if x.shape[1:] != y.shape or people.shape != y.shape:
        raise ValueError(f"expected (n,) each, got {x.shape[1:]}, {y.shape} and {people.shape}")
    if np.isnan(y).any():
        raise ValueError("expected a score for each item; leave out items without one")
    there = ~np.isnan(x).any(axis=0)
    x, y, codes = x[:, there], y[there], np.unique(people[there], return_inverse=True)[1].astype(np.intp)
    design = Design(np.zeros_like(codes), codes)
    sides = {POOLED: (x, y), WITHIN: (np.stack([_centred(row, codes) for row in x]), _centred(y, codes))}
    values, differences = [], []
    for measure, (table, human) in sides.items():
        found = intervals(table, human, design, [coefficient], resamples=resamples, seed=seed)
        tested = compare(table, human, design, coefficient, resamples=0, seed=seed)
        for at, name in enumerate(names):
            ends = {"value": found.value, "low": found.low, "high": found.high}
            numbers = {key: float(end[at, 0]) for key, end in ends.items()}
            values.append(
                {"prediction": name, "measure": measure, **numbers, "n": len(human), "persons": design.counts[1]}
            )
            for beside, other in enumerate(names):
                if at != beside:
                    value, reach = float(tested.difference[at, beside]), float(tested.reach[at, beside])
                    ends_of = {"difference": value, "low": value - reach, "high": value + reach}
                    said = {"prediction": name, "other": other, "measure": measure}
                    differences.append(said | ends_of | {"p": float(tested.p[at, beside])})
    columns = ["prediction", "other", "measure", "difference", "low", "high", "p"]
    return ByPerson(pd.DataFrame(values), pd.DataFrame(differences, columns=columns))


def _centred(values: Floats, codes: npt.NDArray[np.intp]) -> Floats:
    """Return values minus the mean of their person; what varies by rounding alone does not vary."""
    if not len(values):
        return values
    found = values - (np.bincount(codes, values) / np.bincount(codes))[codes]
    return np.where(np.abs(found) <= 1e-9 * np.abs(values).max(), 0.0, found)


def continuing_and_liking(
    scores: npt.ArrayLike,
    ratings: npt.ArrayLike,
    users: npt.ArrayLike,
    kinds: npt.ArrayLike,
    *,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlate how likely a user goes on with how much they like what they answer to.

    Parameters
    ----------
    scores
        Shape (n,): the predicted probability that the user goes on after a reply, or in a dialogue the mean of it.
    ratings
        Shape (n,): what that user said of the reply or dialogue.
    users
        Shape (n,): who was answered, and rated.
    kinds
        Shape (n,): who replied: ``human`` or ``system``; each kind has rows of its own.

    Returns
    -------
    DataFrame
        For each kind ``pooled`` and ``within`` users, as :func:`by_person` says; ``by user``: the mean of the coefficients of
        users with :data:`FEWEST_ITEMS` items or more of which neither side is constant, with an interval of Student's t over
        users; where the ratings have two values, ``auc``: the chance that of two replies the better rated one has the higher
        score (ties half), with an interval of users resampled. Columns ``kind``, ``measure``, ``value``, ``low``, ``high``,
        ``n``, ``persons``.
    """
    frame = pd.DataFrame({"score": scores, "rating": ratings, "user": users, "kind": kinds}).dropna()
    rows = []
    for kind, part in frame.groupby("kind", sort=True):
        found = by_person({"score": part["score"]}, part["rating"], part["user"], resamples=resamples, seed=seed).values
        rows += [{"kind": kind, **row} for row in found.drop(columns="prediction").to_dict("records")]
        rows.append({"kind": kind, "measure": "by user", **_of_users(part)})
        if part["rating"].nunique() == 2:
            rows.append({"kind": kind, "measure": "auc", **_auc(part, resamples, seed)})
    return pd.DataFrame(rows, columns=["kind", "measure", "value", "low", "high", "n", "persons"])


def _of_users(part: pd.DataFrame) -> dict[str, float]:
    from scipy import stats

    enough = [one for _, one in part.groupby("user") if len(one) >= FEWEST_ITEMS]
    each = np.array([correlate(one["score"], one["rating"], "pearson").value for one in enough])
    there = ~np.isnan(each)
    n = int(sum(len(one) for one, is_there in zip(enough, there, strict=True) if is_there))
    kept = each[there]
    reach = np.nan
    if len(kept) > 1:
        reach = float(stats.t.ppf(0.975, len(kept) - 1) * kept.std(ddof=1) / np.sqrt(len(kept)))
    value = float(kept.mean()) if len(kept) else np.nan
    return {"value": value, "low": value - reach, "high": value + reach, "n": n, "persons": len(kept)}


def _auc(part: pd.DataFrame, resamples: int, seed: int) -> dict[str, float]:
    """Return the area under the ROC curve; a resampled user's items count as often as the user was drawn."""
    better = (part["rating"] == part["rating"].max()).to_numpy()
    users = np.unique(part["user"], return_inverse=True)[1]
    ranks = np.unique(part["score"], return_inverse=True)[1]
    count = int(users.max()) + 1
    rng = np.random.default_rng(seed)

    def area(times: Floats) -> float:
        won, lost = (np.bincount(ranks, times[users] * side, int(ranks.max()) + 1) for side in (better, ~better))
        total = won.sum() * lost.sum()
        return float(won @ (np.cumsum(lost) - lost / 2) / total) if total else np.nan

    drawn = [area(np.bincount(rng.integers(0, count, count), minlength=count).astype(float)) for _ in range(resamples)]
    low, high = np.nanquantile(drawn, [0.025, 0.975]) if count > 1 and resamples else (np.nan, np.nan)
    return {"value": area(np.ones(count)), "low": float(low), "high": float(high), "n": len(part), "persons": count}
