"""The alternative annotator test: can a judge replace one of the annotators? (Calderon, Reichart and Dror 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

Floats = npt.NDArray[np.float64]
Scoring = Literal["accuracy", "rmse"]
EPSILONS = {"experts": 0.2, "trained": 0.15, "crowd": 0.1}
"""How much worse than a person a judge may be and still pay off, by who the annotators are (the authors' advice)."""
FEWEST_ITEMS = 30
_LEVEL = 0.05


@dataclass(frozen=True)
class AlternativeTest:
    """The result of the test.

    Attributes
    ----------
    annotators
        The tested annotators, who have at least ``FEWEST_ITEMS`` items; ``left_out`` are the others.
    advantage
        For each annotator, the share of items on which the judge agrees with the others at least as well as the annotator does.
    annotator_advantage
        The converse share; ties count on both sides.
    p
        One-sided p, under the null hypothesis that the judge is worse than the annotator by epsilon or more.
    rejected
        Which tests are significant after Benjamini and Yekutieli's correction.
    n
        Number of items per annotator.
    winning_rate
        Share of annotators that the judge wins against; NaN if nobody was tested. The judge passes at .5 or more.
    average_advantage
        Mean of ``advantage``, for ranking judges; NaN if nobody was tested.
    """

    annotators: tuple[str, ...]
    left_out: tuple[str, ...]
    advantage: Floats
    annotator_advantage: Floats
    p: Floats
    rejected: npt.NDArray[np.bool_]
    n: npt.NDArray[np.intp]
    epsilon: float

    @property
    def winning_rate(self) -> float:
        """Return the share of tested annotators that the judge wins against."""
        return float(self.rejected.mean()) if len(self.annotators) else float("nan")

    @property
    def average_advantage(self) -> float:
        """Return the mean advantage probability."""
        return float(self.advantage.mean()) if len(self.annotators) else float("nan")

    @property
    def passed(self) -> bool:
        """Return whether the judge wins against at least half of the annotators."""
        return bool(self.winning_rate >= 0.5)


def alternative_test(
    judge: npt.ArrayLike,
    annotators: Mapping[str, npt.ArrayLike],
    *,
    epsilon: float = 0.1,
    scoring: Scoring = "accuracy",
    clusters: npt.ArrayLike | None = None,
) -> AlternativeTest:
    """Compare a judge with each annotator by their agreement with the other annotators.

    Parameters
    ----------
    judge
        Shape (items,): the judge's labels as numbers, NaN if missing.
    annotators
        Labels of each annotator, shape (items,), NaN if missing.
    epsilon
        See ``EPSILONS``.
    scoring
        ``accuracy`` for categories, ``rmse`` for ordered labels and numbers.
    clusters
        Shape (items,): groups of dependent items, such as those of a dialogue or text. They enter the standard error, and
        Student's t has one degree of freedom less than clusters; the published procedure has no clusters.
    """
    own = np.asarray(judge, dtype=np.float64)
    names, table = list(annotators), np.array([np.asarray(one, dtype=np.float64) for one in annotators.values()])
    kept = ~np.isnan(own) & ((~np.isnan(table)).sum(axis=0) >= 2)
    groups = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1].reshape(-1)
    result: list[tuple[str, float, float, float, int]] = []
    left_out = []
    for place, name in enumerate(names):
        items = kept & ~np.isnan(table[place])
        if items.sum() < FEWEST_ITEMS:
            left_out.append(name)
            continue
        others = np.delete(table[:, items], place, axis=0)
        of_judge, of_annotator = (_score(labels[items], others, scoring) for labels in (own, table[place]))
        better, worse = of_judge >= of_annotator, of_annotator >= of_judge
        apart = worse.astype(np.float64) - better
        p = _p_below(apart, epsilon, None if groups is None else groups[items])
        result.append((name, float(better.mean()), float(worse.mean()), p, int(items.sum())))
    columns = list(zip(*result, strict=True)) or [(), (), (), (), ()]
    every = np.array(columns[3], dtype=np.float64)
    rejected = (
        scipy.stats.false_discovery_control(every, method="by") <= _LEVEL if len(every) else np.zeros(0, dtype=np.bool_)
    )
    return AlternativeTest(
        tuple(columns[0]), tuple(left_out), np.array(columns[1], dtype=np.float64), np.array(columns[2], dtype=np.float64),
        every, rejected, np.array(columns[4], dtype=np.intp), epsilon,
    )  # fmt: skip


def _score(labels: Floats, others: Floats, scoring: Scoring) -> Floats:
    """Return how well labels, (items,), agree with the others', (annotators, items)."""
    if scoring == "accuracy":
        there = ~np.isnan(others)
        return np.asarray(((labels == others) & there).sum(axis=0) / there.sum(axis=0))
    return np.asarray(-np.sqrt(np.nanmean((labels - others) ** 2, axis=0)))


def _p_below(apart: Floats, epsilon: float, groups: npt.NDArray[np.intp] | None) -> float:
    """Return the p of a one-sided t-test that the mean is below epsilon."""
    count, error = len(apart), np.nan
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
        count = int(codes.max()) + 1
        sums = np.bincount(codes, apart - apart.mean())
        error = np.sqrt(count / max(count - 1, 1) * (sums**2).sum()) / len(apart)
    elif count > 1:
        error = apart.std(ddof=1) / np.sqrt(count)
    if not error > 0:
        return 0.0 if apart.mean() < epsilon else 1.0
    return float(scipy.stats.t.cdf((apart.mean() - epsilon) / error, count - 1))
