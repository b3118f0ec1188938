"""Estimate a mean from many judge scores and few human labels: from labels alone, the judge alone, and both.

Prediction-powered inference with a fitted weight: PPI++ (Angelopoulos, Duchi and Zrnic 2023), with intervals that keep their
coverage for few labels and for clustered items (docs/validation.md); for two classes also Rogan and Gladen (1978).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error and interval; ``weight`` is the judge's, 0 to 1, ``freedom`` that of Student's t."""

    value: float
    error: float
    low: float
    high: float
    weight: float = 0.0
    freedom: float = np.inf

    @property
    def width(self) -> float:
        """Return the width of the interval."""
        return self.high - self.low


def _estimate(value: float, error: float, freedom: float, confidence: float, weight: float = 0.0) -> Estimate:
    reach = (scipy.stats.t.ppf((1 + confidence) / 2, freedom) if freedom >= 1 else np.nan) * error
    return Estimate(
        float(value), float(error), float(value - reach), float(value + reach), float(weight), float(freedom)
    )


def classical(labels: npt.ArrayLike, clusters: npt.ArrayLike | None = None, *, confidence: float = 0.95) -> Estimate:
    """Return the mean of the labels alone, shape (n,); ``clusters`` as in :func:`corrected_mean`."""
    y = np.asarray(labels, dtype=np.float64)
    return corrected_mean(y, np.zeros_like(y), np.zeros(1), clusters, None, weight=0.0, confidence=confidence)


def fitted_weight(labels: Floats, judged: Floats, others: Floats) -> float:
    """Return the judge's weight, between 0 and 1, that minimizes the variance of the estimate (PPI++)."""
    n, total = len(labels), len(judged) + len(others)
    spread = np.var(np.concatenate([judged, others]), ddof=1) if total > 1 else 0.0
    if not spread > 0 or not len(others):
        return 0.0
    together = np.mean((labels - labels.mean()) * (judged - judged.mean()))
    return float(np.clip(together / ((1 + n / len(others)) * spread), 0.0, 1.0))


def corrected_mean(
    labels: npt.ArrayLike,
    judged: npt.ArrayLike,
    others: npt.ArrayLike,
    clusters: npt.ArrayLike | None = None,
    other_clusters: npt.ArrayLike | None = None,
    *,
    weight: float | None = None,
    confidence: float = 0.95,
    normal: bool = False,
) -> Estimate:
    """Estimate the human mean from a random sample of labels and a judge's labels of everything.

    Parameters
    ----------
    labels, judged
        Shape (n,): human labels of the labelled items, and the judge's.
    others
        Shape (N,): the judge's labels of all other items.
    clusters, other_clusters
        Shapes (n,) and (N,): the dialogue, instruction or system of each item. With them the interval comes from a jackknife
        over clusters with Student's t; a cluster with items in both parts is left out of both at once.
    weight
        The judge's weight; default: fitted. 0 is the classical mean, 1 plain prediction-powered inference.
    normal
        True: normal quantiles and variances divided by n, as in the package ppi-python; its intervals are too narrow below
        about 100 labels. False: Student's t with n - 2 degrees of freedom, and divisor n - 2.

    Raises
    ------
    ValueError
        If a value is missing, or there are fewer than three labels.
    """
    y, f, rest = (np.asarray(side, dtype=np.float64) for side in (labels, judged, others))
    if y.shape != f.shape or len(y) < 3 or np.isnan(np.concatenate([y, f, rest])).any():
        raise ValueError("expected three labels or more, as many judgements of them, and no missing value")
    lam = fitted_weight(y, f, rest) if weight is None else float(weight)
    value = y.mean() + lam * (rest.mean() - f.mean() if len(rest) else 0.0)
    if clusters is not None:
        other_clusters = [f"\0{place}" for place in range(len(rest))] if other_clusters is None else other_clusters
        codes, count = _codes([clusters, other_clusters])
        theta = _without_each(y, f, rest, codes[0], codes[1], count, weight)
        error, freedom = _jackknife(theta, np.bincount(codes[0], minlength=count) > 0)
        return _estimate(value, error, freedom, confidence, lam)
    n = len(y)
    own, lost = np.var(y - lam * f), 0.0 if normal else (2.0 if lam else 1.0)
    error = np.sqrt(own / (n - lost) + lam**2 * (np.var(rest) / len(rest) if len(rest) else 0.0))
    return _estimate(value, error, np.inf if normal else n - lost, confidence, lam)


def corrected_difference(
    one: tuple[npt.ArrayLike, ...],
    other: tuple[npt.ArrayLike, ...],
    *,
    weight: float | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Return the difference of two corrected means, for example of two systems with common dialogues.

    ``one`` and ``other`` are the first five arguments of :func:`corrected_mean`, with cluster names common to both. The
    jackknife leaves a cluster out of both at once; Student's t has the degrees of freedom of the smaller side.
    """
    codes, count = _codes([one[3], one[4], other[3], other[4]])
    values, thetas, labelled = [], [], []
    for (labels, judged, others, *_), own, outer in ((one, codes[0], codes[1]), (other, codes[2], codes[3])):
        y, f, rest = (np.asarray(side, dtype=np.float64) for side in (labels, judged, others))
        values.append(corrected_mean(y, f, rest, weight=weight).value)
        thetas.append(_without_each(y, f, rest, own, outer, count, weight))
        labelled.append(np.bincount(own, minlength=count) > 0)
    error, _ = _jackknife(thetas[0] - thetas[1], labelled[0] | labelled[1])
    freedom = float(min(part.sum() for part in labelled) - 1)
    return _estimate(values[0] - values[1], error, freedom, confidence)


def _codes(clusters: Sequence[npt.ArrayLike]) -> tuple[list[Integers], int]:
    """Number the clusters of several arrays jointly."""
    parts = [np.asarray(part).astype(str) for part in clusters]
    codes = np.unique(np.concatenate(parts), return_inverse=True)[1].reshape(-1)
    return np.split(codes, np.cumsum([len(part) for part in parts])[:-1]), int(codes.max()) + 1


def _jackknife(theta: Floats, labelled: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return an estimate's standard error from its leave-one-cluster-out values, and the degrees of freedom."""
    variance = 0.0
    for part in (labelled, ~labelled):
        if (size := int(part.sum())) > 1:
            variance += (size - 1) / size * float(((theta[part] - theta[part].mean()) ** 2).sum())
    return float(np.sqrt(variance)), float(labelled.sum() - 1)


def _without_each(
    y: Floats, f: Floats, rest: Floats, own: Integers, outer: Integers, count: int, weight: float | None
) -> Floats:
    """Return the corrected mean without each cluster, shape (count,), refitting the judge's weight."""

    def sums(codes: Integers, values: Floats) -> Floats:
        return np.asarray(np.bincount(codes, values, count), dtype=np.float64)

    # The estimate uses only sums over clusters, so leaving one out is a subtraction.
    yy, ff, yf, n = (sums(own, part) for part in (y, f, y * f, np.ones_like(y)))
    fsq, rr, rsq, m = sums(own, f * f), sums(outer, rest), sums(outer, rest * rest), sums(outer, np.ones_like(rest))

    def without(part: Floats) -> Floats:
        return part.sum() - part

    n_, m_ = without(n), without(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_y, mean_f, mean_r = without(yy) / n_, without(ff) / n_, np.where(m_ > 0, without(rr) / m_, 0.0)
        total = n_ + m_
        both = (without(ff) + without(rr)) / total
        spread = ((without(fsq) + without(rsq)) / total - both**2) * total / (total - 1)
        lam = (without(yf) / n_ - mean_y * mean_f) / ((1 + n_ / m_) * spread)
    fitted = np.where((m_ > 0) & (spread > 0), np.clip(np.nan_to_num(lam), 0, 1), 0.0)
    lam = fitted if weight is None else np.full(count, weight)
    return np.asarray(mean_y + lam * np.where(m_ > 0, mean_r - mean_f, 0.0))


def rogan_gladen(
    labels: npt.ArrayLike, judged: npt.ArrayLike, others: npt.ArrayLike, *, confidence: float = 0.95
) -> Estimate | None:
    """Return the share of positives, corrected by the judge's sensitivity and specificity on the labelled items.

    Labels are 0 or 1, shapes as in :func:`corrected_mean`. None if the judge is no better than chance, or a class has no label.
    """
    y, f, rest = (np.asarray(side, dtype=np.float64) for side in (labels, judged, others))
    positives, negatives, count = y.sum(), len(y) - y.sum(), len(rest)
    if not positives or not negatives or not count:
        return None
    sensitivity, specificity = f[y == 1].mean(), 1 - f[y == 0].mean()
    skill, share = sensitivity + specificity - 1, rest.mean()
    if not skill > 0:
        return None
    value = (share + specificity - 1) / skill
    variance = share * (1 - share) / count
    variance += (1 - value) ** 2 * specificity * (1 - specificity) / negatives
    variance += value**2 * sensitivity * (1 - sensitivity) / positives
    made = _estimate(value, float(np.sqrt(variance)) / skill, np.inf, confidence, 1.0)
    ends = np.clip([made.value, made.low, made.high], 0, 1)
    return Estimate(float(ends[0]), made.error, float(ends[1]), float(ends[2]), 1.0)


def labels_needed(
    half_width: float, spread: float, correlation: float, total: int, *, design_effect: float = 1.0
) -> float:
    """Return the number of labels for a 95 % interval of this half-width; infinity if there are too few items.

    Parameters
    ----------
    spread, correlation
        Standard deviation of human labels, and their correlation with the judge; from a pilot, so the result is approximate.
    total
        Number of judged items, including labelled ones.
    design_effect
        Design effect of clusters: 1 + (mean size - 1) x intraclass correlation of the residuals.
    """
    unit = (half_width / (scipy.stats.norm.ppf(0.975) * spread)) ** 2 / design_effect
    left = unit - correlation**2 / total
    needed = (1 - correlation**2) / left if left > 0 else np.inf
    return float(needed) if needed <= total else float("inf")
