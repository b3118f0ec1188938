"""Whose eye: predictions against the scores of people, pooled and within persons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.stats import Coefficient
from comperdial.stats.comparison import compare
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals

Floats = npt.NDArray[np.float64]

POOLED, WITHIN = "pooled", "within"


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
