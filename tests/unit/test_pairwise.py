"""Pairwise accuracy with ties, and soft pairwise accuracy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.stats.pairwise import (
    acc_eq,
    acc_eq_by_item,
    sign_flips,
    soft_accuracy,
    soft_pairwise_accuracies,
    system_matrix,
    system_p_values,
)

NONE = float("nan")

# Worked examples of google-research/mt-metrics-eval: tau_optimization_test.py and stats_test.py (acc23).
METRIC = (0, 2, 6, 8)
TABLE_METRIC = [[0, 5, 2, 3, 2], [NONE, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [NONE] * 5]
TABLE_HUMAN = [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, NONE, 3, 2], [NONE] * 5]
TABLE_VALUES = (
    (0, 0.4666666666666667),
    (1, 0.4916666666666668),
    (2, 0.38333333333333347),
    (3, 0.29166666666666674),
    (4, 0.2666666666666667),
    (5, 0.2),
    (6, 0.15833333333333335),
    (7, 0.15833333333333335),
    (8, 0.1166666666666667),
)


@pytest.mark.parametrize(
    ("human", "values", "best"),
    [
        ((1, 2, 3, 4), (6, 4, 3, 1, 0), (0, 6)),
        ((1, 1, 1, 4), (3, 3, 4, 4, 3), (4, 4)),
    ],
)
def test_worked_examples_of_tau_optimization(human, values, best):
    for epsilon, right in zip((0, 2, 4, 6, 8), values, strict=True):
        assert acc_eq(METRIC, human, epsilon=epsilon).value == pytest.approx(right / 6, abs=1e-12)
    found = acc_eq(METRIC, human)
    assert (found.epsilon, found.pairs) == (best[0], 6)
    assert found.value == pytest.approx(best[1] / 6, abs=1e-12)


def test_worked_example_with_items_and_missing_values():
    items = np.repeat(np.arange(5), 5)
    metric, human = np.ravel(TABLE_METRIC), np.ravel(TABLE_HUMAN)
    for epsilon, value in TABLE_VALUES:
        assert acc_eq_by_item(metric, human, items, epsilon=epsilon).value == pytest.approx(value, abs=1e-12)
    best = acc_eq_by_item(metric, human, items)
    assert best.epsilon == 1
    assert best.value == pytest.approx(0.4916666666666668, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "human", "epsilon", "value"),
    [
        ((2, 1, 1.5, 5, 3), (1, 2, 2, 3, 4), 0, 0.6),
        ((2, 1, 1.5, 5, 3), (1, 2, 2, 3, 4), 2, 0.4),
        ((2, 1, 1.5, 5, 3), (1, 2, 2, 3, 4), None, 0.7),
        ((1, 1, 2, 2, 4, 3, 3), (1, 1, 1, 2, 2, 3, 4), 0, 14 / 21),
        ((1, 1, 2, 1, 2), (1, 2, 3, 3, 4), 0, 5 / 10),
    ],
)
def test_worked_examples_of_stats(metric, human, epsilon, value):
    assert acc_eq(metric, human, epsilon=epsilon).value == pytest.approx(value, abs=1e-12)


def _loop(scores, ratings, items, epsilon):
    """Accuracy by the words of its definition."""
    of_item = {}
    for i, j in combinations(range(len(scores)), 2):
        if items[i] != items[j] or np.isnan([scores[i], scores[j], ratings[i], ratings[j]]).any():
            continue
        scored = 0 if abs(scores[i] - scores[j]) <= epsilon else np.sign(scores[i] - scores[j])
        of_item.setdefault(items[i], []).append(scored == np.sign(ratings[i] - ratings[j]))
    return float(np.mean([np.mean(pairs) for pairs in of_item.values()])) if of_item else NONE


units = st.lists(
    st.tuples(st.integers(-4, 4) | st.just(NONE), st.integers(1, 4) | st.just(NONE), st.integers(0, 2)),
    min_size=2,
    max_size=14,
)


@settings(max_examples=120, deadline=None)
@given(units)
def test_calibration_finds_the_best_threshold_and_the_smallest(drawn):
    scores, ratings, items = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    found = acc_eq_by_item(scores, ratings, items)
    candidates = sorted({0.0, *(abs(a - b) for a, b in combinations(scores, 2) if not np.isnan(a - b))})
    values = [_loop(scores, ratings, items, epsilon) for epsilon in candidates]
    if found.pairs == 0:
        assert np.isnan(found.value) and np.isnan(values).all()
        return
    assert found.value == pytest.approx(max(values), abs=1e-12)
    smallest = next(e for e, value in zip(candidates, values, strict=True) if value > max(values) - 1e-12)
    assert found.epsilon == smallest
    assert acc_eq_by_item(scores, ratings, items, epsilon=found.epsilon).value == found.value
    assert found.value >= acc_eq_by_item(scores, ratings, items, epsilon=0).value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-8, 8), st.integers(1, 5)), min_size=2, max_size=20), st.randoms())
def test_order_shift_and_scale_do_not_matter(drawn, random):
    scores, ratings = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    found = acc_eq(scores, ratings)
    order = list(range(len(scores)))
    random.shuffle(order)
    assert acc_eq(scores[order], ratings[order]) == found
    moved = acc_eq(4 * scores + 3, 2 * ratings - 1)
    assert (moved.value, moved.epsilon) == (found.value, 4 * found.epsilon)


thirds = st.lists(st.tuples(st.integers(3, 15), st.integers(1, 4)), min_size=2, max_size=20)


@settings(max_examples=150, deadline=None)
@given(thirds, st.integers(0, 6))
def test_thirds_are_as_far_apart_as_whole_numbers(drawn, epsilon):
    whole, ratings = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    for share, more in ((3, 0), (7, 0), (3, 10)):
        parts = whole / share + more
        for of_whole, of_parts in ((None, None), (epsilon, epsilon / share)):
            expected, found = acc_eq(whole, ratings, epsilon=of_whole), acc_eq(parts, ratings, epsilon=of_parts)
            assert found.value == expected.value
            assert found.epsilon == pytest.approx(expected.epsilon / share, abs=1e-12)


def test_the_threshold_itself_is_a_tie():
    ratings = np.ones(4)
    assert acc_eq([0, 1 / 3, 2 / 3, 1], ratings, epsilon=1 / 3).value == 0.5
    assert acc_eq([0, 1, 2, 3], ratings, epsilon=1).value == 0.5


def test_no_pair_has_no_value_and_bad_input_is_refused():
    assert np.isnan(acc_eq([1.0], [2.0]).value)
    assert acc_eq([], []).pairs == 0
    with pytest.raises(ValueError, match="epsilon"):
        acc_eq([1, 2], [1, 2], epsilon=-1)
    with pytest.raises(ValueError, match="equal length"):
        acc_eq([1, 2], [1, 2, 3])


def test_p_value_of_the_worked_example():
    # The docstring of compute_pairwise_p_values in mt-metrics-eval's pce.py: one flip of ten reaches the observed 3.0.
    scores = np.array([[0.8, 0.9, 0.7, 1.0, 0.6], [0.2, 0.3, 0.1, 0.4, 0.0]])
    signs = np.array(
        [
            [1, 1, -1, -1, -1],
            [1, -1, 1, -1, 1],
            [1, -1, 1, 1, -1],
            [-1, 1, -1, -1, 1],
            [1, 1, 1, -1, 1],
            [-1, 1, -1, 1, -1],
            [1, 1, 1, 1, 1],
            [1, -1, 1, -1, 1],
            [1, -1, -1, 1, 1],
            [-1, 1, -1, -1, -1],
        ],
        dtype=float,
    )
    found = system_p_values(scores, signs)
    assert found[0, 1] == 0.1
    assert np.isnan(found[np.tril_indices(2)]).all()


def test_p_values_against_a_loop_with_missing_cells():
    rng = np.random.default_rng(1)
    matrix = rng.integers(1, 6, size=(6, 12)).astype(float)
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    matrix[0, :6], matrix[1, 6:] = np.nan, np.nan
    signs = sign_flips(12, 200, 3)
    found = system_p_values(matrix, signs)
    for i, j in combinations(range(6), 2):
        both = ~np.isnan(matrix[i] - matrix[j])
        apart = (matrix[i] - matrix[j])[both]
        sums = [np.sum(row[both] * apart) for row in signs]
        expected = np.mean(np.array(sums) >= apart.sum()) if both.any() else NONE
        assert found[i, j] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(found[0, 1])


def test_soft_accuracy_by_hand():
    human, metric = np.full((3, 3), np.nan), np.full((3, 3), np.nan)
    human[np.triu_indices(3, 1)] = 0.1, 0.5, 0.9
    metric[np.triu_indices(3, 1)] = 0.3, 0.5, 0.5
    assert soft_accuracy(human, metric) == pytest.approx(1 - (0.2 + 0 + 0.4) / 3)
    metric[0, 1] = np.nan
    assert soft_accuracy(human, metric) == pytest.approx(1 - 0.4 / 2)
    assert np.isnan(soft_accuracy(human, np.full((3, 3), np.nan)))


def test_soft_pairwise_accuracy_of_good_and_bad_metrics():
    rng = np.random.default_rng(5)
    systems, items = np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12)
    human = np.repeat(np.linspace(0, 2, 12), 20) + rng.normal(size=240)
    scores = np.stack([human, 3 * human + 1, -human, rng.normal(size=240)])
    found = soft_pairwise_accuracies(scores, human, systems, items, resamples=500, seed=2)
    assert found[0] == found[1] == 1
    assert found[2] < 0.3 < found[3] < 0.9
    # A metric is judged by the units that it scored.
    scores[0, ::7] = np.nan
    assert soft_pairwise_accuracies(scores[:1], human, systems, items, resamples=500, seed=2)[0] == 1


def test_units_of_an_item_are_averaged():
    systems, items = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = system_matrix([1.0, 3.0, NONE, 5.0], systems, items)
    np.testing.assert_array_equal(found, [[2.0, NONE], [NONE, 5.0]])
