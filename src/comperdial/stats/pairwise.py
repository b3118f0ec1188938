"""Pairwise accuracy: with ties and tie calibration (acc_eq), and soft, by p-values (SPA).

Sources of the definitions: D. Deutsch, G. Foster, M. Freitag, "Ties Matter: Meta-Evaluating Modern Metrics with
Pairwise Accuracy and Tie Calibration" (2023, arXiv 2305.14324); B. Thompson, N. Mathur, D. Deutsch, H. Khayrallah,
"Improving Statistical Significance in Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy" (2024, arXiv
2409.09598). Both as google-research/mt-metrics-eval computes them; our tests hold the worked examples of its tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comperdial.stats.means import TIED, group_means, merge_ties

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

# Two sums of the same terms in another order differ by less than this share of the sum of their absolute values.
_ROUNDING = 1e-11


@dataclass(frozen=True)
class PairAccuracy:
    """The share of pairs on which a metric and people agree, the threshold of a tie, and how many pairs there were.

    ``value`` and ``epsilon`` are NaN when there is no pair.
    """

    value: float
    epsilon: float
    pairs: int


@dataclass(frozen=True)
class _Pairs:
    """Pairs of units: the item of each (0 to items - 1), the absolute difference of scores, and two questions.

    Differences that are nearer to each other than their ``slack``, rounding of the scores that they are of, are equal:
    thirds lie apart like whole numbers.

    ``alike``: do scores, no threshold applied, and ratings order the pair alike, or both call it a tie? ``tied``: do
    the ratings call it a tie, so that a tie of scores would be right?
    """

    item: Integers
    items: int
    gap: Floats
    slack: Floats
    alike: npt.NDArray[np.bool_]
    tied: npt.NDArray[np.bool_]

    def accuracy(self, epsilon: float) -> float:
        right = np.where(self.gap <= epsilon + self.slack, self.tied, self.alike)
        counts = np.bincount(self.item, minlength=self.items)
        return float(np.mean(np.bincount(self.item, right, minlength=self.items) / counts))


def acc_eq(scores: npt.ArrayLike, ratings: npt.ArrayLike, *, epsilon: float | None = None) -> PairAccuracy:
    """Return the pairwise accuracy with ties, over all pairs of units.

    Scores that differ by epsilon or less are tied, ratings only when equal; rounding is left out of account. A pair
    counts as right when scores and ratings order it alike, or both tie it.

    Parameters
    ----------
    scores, ratings
        Shape (n,); units with a NaN on either side are left out.
    epsilon
        Threshold of a tie, 0 or more, in the unit of the scores. Default: tie calibration. Every difference found is
        tried, and 0; the one with the highest accuracy is taken, the smallest where several reach it.

    Returns
    -------
    PairAccuracy
        With tie calibration the value is the best case of the metric: the threshold is chosen on the data it is
        judged by.

    Raises
    ------
    ValueError
        For samples of unequal length, or a negative epsilon.

    Notes
    -----
    Time O(n^2 log n), memory O(n^2): 100 MB for 1,500 units.
    """
    return acc_eq_by_item(scores, ratings, np.zeros(np.shape(scores), dtype=np.intp), epsilon=epsilon)


def acc_eq_by_item(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, items: npt.ArrayLike, *, epsilon: float | None = None
) -> PairAccuracy:
    """Return the pairwise accuracy with ties over pairs of units of the same item, averaged over items.

    One threshold serves all items. Each item with a pair counts alike, however many pairs it has: so the paper's
    group-by-item form, and mt-metrics-eval's.

    Parameters
    ----------
    scores, ratings, epsilon
        As in :func:`acc_eq`; the threshold is chosen for the average over items.
    items
        Shape (n,), whole numbers: the item of each unit.

    Returns
    -------
    PairAccuracy
        ``pairs`` is the sum over items.
    """
    if epsilon is not None and not epsilon >= 0:
        raise ValueError(f"expected an epsilon of 0 or more, got {epsilon}")
    pairs = _pairs(scores, ratings, np.asarray(items))
    if not len(pairs.gap):
        return PairAccuracy(float("nan"), float("nan"), 0)
    chosen = _best_epsilon(pairs) if epsilon is None else float(epsilon)
    return PairAccuracy(pairs.accuracy(chosen), chosen, len(pairs.gap))


def best_epsilon_by_item(scores: npt.ArrayLike, ratings: npt.ArrayLike, items: npt.ArrayLike) -> float:
    """Return the threshold that :func:`acc_eq_by_item` chooses; NaN where there is no pair."""
    pairs = _pairs(scores, ratings, np.asarray(items))
    return _best_epsilon(pairs) if len(pairs.gap) else float("nan")


def _pairs(scores: npt.ArrayLike, ratings: npt.ArrayLike, items: npt.NDArray[np.generic]) -> _Pairs:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or x.shape != items.shape:
        raise ValueError(f"expected samples of equal length, got shapes {x.shape}, {y.shape} and {items.shape}")
    complete = ~(np.isnan(x) | np.isnan(y))
    codes = np.unique(items[complete], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    x, y = merge_ties(x[complete][order]), merge_ties(y[complete][order])
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    first, second, item = [np.empty(0, np.intp)], [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    with_pair = np.cumsum(sizes > 1) - 1
    for size in np.unique(sizes[sizes > 1]):
        of_size = np.flatnonzero(sizes == size)
        one, other = np.triu_indices(size, 1)
        first.append((starts[of_size][:, np.newaxis] + one).ravel())
        second.append((starts[of_size][:, np.newaxis] + other).ravel())
        item.append(np.repeat(with_pair[of_size], len(one)))
    i, j = np.concatenate(first), np.concatenate(second)
    apart, rated = x[i] - x[j], y[i] - y[j]
    slack = TIED * np.maximum(np.abs(x[i]), np.abs(x[j]))
    alike = np.sign(apart) == np.sign(rated)
    return _Pairs(np.concatenate(item), int((sizes > 1).sum()), np.abs(apart), slack, alike, rated == 0)


def _best_epsilon(pairs: _Pairs) -> float:
    """Return the smallest threshold with the highest accuracy.

    While the threshold grows, pairs become tied one after the other. Only those matter whose answer turns from right to
    wrong or back; the best threshold is 0 or the difference of such a pair.
    """
    gain = pairs.tied.astype(np.float64) - pairs.alike
    turns = np.flatnonzero(gain)
    order = turns[np.argsort(pairs.gap[turns], kind="stable")]
    gap, slack = pairs.gap[order], pairs.slack[order]
    weight = 1 / np.bincount(pairs.item, minlength=pairs.items)
    gained = np.cumsum(gain[order] * weight[pairs.item[order]])
    # Pairs of the same difference become tied together.
    last = np.append(gap[1:] - gap[:-1] > np.maximum(slack[1:], slack[:-1]), True)[: len(gap)]
    thresholds = np.append(0.0, gap[last])
    gained = np.append(0.0, gained[last])
    return float(thresholds[np.argmax(gained >= gained.max() - _ROUNDING * pairs.items)])


def sign_flips(items: int, resamples: int, seed: int) -> Floats:
    """Return random signs, shape (resamples, items), -1 or 1: what the permutation tests of all pairs share."""
    if items < 1 or resamples < 1:
        raise ValueError(f"expected 1 item and 1 resample or more, got {items} and {resamples}")
    return np.where(np.random.default_rng(seed).integers(0, 2, size=(resamples, items)) == 1, 1.0, -1.0)


def system_matrix(values: npt.ArrayLike, systems: Integers, items: Integers) -> Floats:
    """Return the mean value of each system on each item: shape (systems, items), NaN where there is none."""
    table = np.asarray(values, dtype=np.float64)
    shape = (int(systems.max()) + 1, int(items.max()) + 1)
    cell = np.ravel_multi_index((systems, items), shape)
    there = ~np.isnan(table)
    return group_means(table[there], cell[there], shape[0] * shape[1]).reshape(shape)


def system_p_values(matrix: Floats, signs: Floats) -> Floats:
    """Return one-sided p-values of paired permutation tests between all pairs of systems.

    Exchanging the two systems on an item turns the sign of its difference. The p-value is the share of sign flips whose
    sum of differences reaches the observed one; as in the paper, the observed one is not added to them.

    Parameters
    ----------
    matrix
        Shape (systems, items), NaN where a system has no value; a pair is compared on the items both have.
    signs
        Shape (resamples, items), from :func:`sign_flips`; the same for people and every metric.

    Returns
    -------
    array
        Shape (systems, systems): p of "row is better than column", for row < column; NaN elsewhere, and for pairs with
        no item in common.
    """
    if signs.shape[1] != matrix.shape[1]:
        raise ValueError(f"expected a sign for each of {matrix.shape[1]} items, got {signs.shape[1]}")
    count = len(matrix)
    found = np.full((count, count), np.nan)
    for row in range(count - 1):
        apart = matrix[row] - matrix[row + 1 :]
        common = ~np.isnan(apart)
        apart[~common] = 0.0
        least = apart.sum(axis=1) - _ROUNDING * np.abs(apart).sum(axis=1)
        found[row, row + 1 :] = np.mean(signs @ apart.T >= least, axis=0)
        found[row, row + 1 :][~common.any(axis=1)] = np.nan
    return found


def soft_accuracy(p_human: Floats, p_metric: Floats) -> float:
    """Return 1 - the mean absolute difference of p-values over pairs of systems that have both; NaN where none has."""
    apart = np.abs(p_human - p_metric)[np.triu_indices(len(p_human), 1)]
    apart = apart[~np.isnan(apart)]
    return float(1 - apart.mean()) if len(apart) else float("nan")


def soft_pairwise_accuracies(
    scores: npt.ArrayLike, ratings: npt.ArrayLike, systems: Integers, items: Integers, *, resamples: int, seed: int
) -> Floats:
    """Return the soft pairwise accuracy of each metric.

    Parameters
    ----------
    scores
        Shape (metrics, n), NaN where missing.
    ratings
        Shape (n,).
    systems, items
        Shape (n,), codes from 0 on. An item is what is exchanged between two systems: a context or a dialogue. Several
        units of a system in one item are averaged.
    resamples, seed
        Number of sign flips and their seed; the same flips serve all pairs, people and metrics.

    Returns
    -------
    array
        Shape (metrics,), 0 to 1; each over the units that it scored and people rated. NaN for fewer than two systems.

    Notes
    -----
    Exact ties between a flipped sum and the observed one count fully against the row's system, so that another order of
    systems changes the value a little where scores have few values. The definition's order is kept: that of the codes.
    """
    table, human = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] == len(human) == len(systems) == len(items):
        raise ValueError(f"expected (metrics, n) and three of (n,), got {table.shape} and {human.shape}")
    signs = sign_flips(int(items.max()) + 1, resamples, seed)
    known: dict[bytes, Floats] = {}
    found = np.empty(len(table))
    for number, row in enumerate(table):
        missing = np.isnan(row) | np.isnan(human)
        key = missing.tobytes()
        if key not in known:
            known[key] = system_p_values(system_matrix(np.where(missing, np.nan, human), systems, items), signs)
        p_metric = system_p_values(system_matrix(np.where(missing, np.nan, row), systems, items), signs)
        found[number] = soft_accuracy(known[key], p_metric)
    return found
