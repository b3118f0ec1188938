"""Correlation within items."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.stats import COEFFICIENTS
from comperdial.stats.correlation import correlate, within_items

NONE = float("nan")


def _loop(scores, ratings, items, name):
    values, counts = [], []
    for row in scores:
        found = [correlate(row[items == item], ratings[items == item], name).value for item in np.unique(items)]
        found = [value for value in found if not np.isnan(value)]
        values.append(np.mean(found) if found else NONE)
        counts.append(len(found))
    return values, counts


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_agrees_with_a_loop_of_scipy(name):
    rng = np.random.default_rng(3)
    items = rng.integers(0, 9, 150)
    ratings = rng.integers(1, 6, 150).astype(float)
    ratings[items == 2] = 3
    scores = np.stack([rng.normal(size=150), rng.integers(0, 3, 150), 1e9 + rng.random(150), rng.random(150) * 1e-200])
    scores[0, ::5], scores[1, items == 4] = NONE, 1
    found, counted = within_items(scores, ratings, items, name)
    values, counts = _loop(scores, ratings, items, name)
    np.testing.assert_allclose(found[[0, 1, 3]], np.array(values)[[0, 1, 3]], rtol=0, atol=1e-12)
    assert found[2] == pytest.approx(values[2], abs=1e-6 if name == "pearson" else 1e-12)
    np.testing.assert_array_equal(counted, counts)


cells = st.lists(
    st.tuples(st.integers(-3, 3) | st.just(NONE), st.integers(1, 4) | st.just(NONE), st.integers(0, 3)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(cells, st.sampled_from(COEFFICIENTS), st.randoms())
def test_small_tables_with_ties_and_gaps(drawn, name, random):
    scores, ratings, items = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    found, counted = within_items(scores[None], ratings, items, name)
    values, counts = _loop(scores[None], ratings, items, name)
    np.testing.assert_allclose(found, values, rtol=0, atol=1e-12)
    assert list(counted) == counts
    # Neither the order of units, nor the numbers of items, nor what is added to all units of an item matters.
    order = list(range(len(scores)))
    random.shuffle(order)
    again, _ = within_items((2 * scores + 8 * items)[order][None], ratings[order], -items[order], name)
    np.testing.assert_allclose(again, found, rtol=0, atol=1e-12)


def test_worked_examples_of_mt_metrics_eval():
    # google-research/mt-metrics-eval, stats_test.py: two systems by three items, and three items by two systems.
    gold, metric = np.arange(1.0, 7), np.array([[2.0, 1, 4, 3, 3, 7]])
    by_item, by_system = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    for name, value in (("pearson", 0.760), ("kendall", 0.575)):
        assert within_items(metric, gold, by_system, name)[0][0] == pytest.approx(value, abs=5e-4)
        assert within_items(metric, gold, by_item, name)[0][0] == pytest.approx(1, abs=5e-4)
    # An undefined group is left out by default.
    values, counted = within_items(np.array([[2.0, 2, 2, 4, 5, 6]]), gold, by_system, "pearson")
    assert (values[0], counted[0]) == (pytest.approx(1), 1)


def test_nothing_defined_and_bad_input():
    values, counted = within_items(np.ones((2, 3)), np.arange(3.0), np.zeros(3), "kendall")
    assert np.isnan(values).all() and list(counted) == [0, 0]
    assert np.isnan(within_items(np.empty((1, 0)), [], [], "pearson")[0]).all()
    with pytest.raises(ValueError, match="metrics, n"):
        within_items(np.ones(3), np.ones(3), np.ones(3), "pearson")
    with pytest.raises(ValueError, match="unknown coefficient"):
        within_items(np.ones((1, 3)), np.ones(3), np.ones(3), "tau")
