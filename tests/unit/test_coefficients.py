"""Coefficients of resamples and without clusters: against scipy on the rows that are left or repeated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import (
    coefficients,
    concordance,
    influence,
    over_clusters,
    over_means,
    without_each,
)
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.pairs import within_items

NONE = float("nan")


def sample(rng, systems, dialogues, turns, *, metrics=3, missing=0.0, drop=0.0, average=False):
    """Scores, ratings and design; ratings are tied, one metric too, and half of the units may be gone."""
    s, d, _ = (codes.ravel() for codes in np.indices((systems, dialogues, turns)))
    kept = rng.random(len(s)) >= drop
    kept[:: max(1, len(s) // (systems * dialogues))] = True
    s, d = s[kept], d[kept]
    truth = rng.normal(size=systems)[s] + 0.3 * rng.normal(size=dialogues)[d] + rng.normal(size=len(s))
    ratings = np.clip(np.round(truth * 2) / 2, -2, 2)
    scores = np.stack([truth * k + rng.normal(size=len(s)) for k in range(metrics)])
    scores[-1] = np.round(scores[-1])
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores, ratings, Design(np.unique(s, return_inverse=True)[1], np.unique(d, return_inverse=True)[1], average)


def repeated(scores, ratings, design, of_systems, of_dialogues, name, of_cells=1):
    """Repeat the rows, or the means of systems, and ask scipy."""
    # Means that differ by rounding only are ties.
    digits = 15 if name == "pearson" else 11
    found = []
    for row in scores:
        kept = ~np.isnan(row)
        x, y, s, d = row[kept], ratings[kept], design.systems[kept], design.dialogues[kept]
        of_rows = np.broadcast_to(of_cells * of_dialogues, (len(of_systems), len(of_dialogues)))[s, d].astype(int)
        if not design.average:
            times = of_systems[s].astype(int) * of_rows
            found.append(correlate(np.repeat(x, times), np.repeat(y, times), name).value)
            continue
        a, b = [], []
        for system, times in enumerate(of_systems.astype(int)):
            rows = np.repeat(np.flatnonzero(s == system), of_rows[s == system])
            if len(rows):
                a += [round(float(x[rows].mean()), digits)] * times
                b += [round(float(y[rows].mean()), digits)] * times
        found.append(correlate(a, b, name).value)
    return found


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("systems", "dialogues", "turns", "drop"),
    # Few ratings of many units, and many of few: pairs are summed in two ways.
    [(6, 5, 1, 0), (12, 4, 3, 0.3), (5, 30, 1, 0), (4, 3, 20, 0)],
)
def test_weights_of_clusters_are_repeated_rows(systems, dialogues, turns, drop, missing):
    rng = np.random.default_rng([systems, dialogues, turns])
    scores, ratings, design = sample(rng, systems, dialogues, turns, missing=missing, drop=drop)
    ones = np.ones(systems), np.ones(dialogues)
    for side, (codes, count) in enumerate(((design.systems, systems), (design.dialogues, dialogues))):
        weights = rng.multinomial(count, np.full(count, 1 / count), size=4).astype(float)
        found = over_clusters(scores, ratings, codes, weights, NAMES)
        for values, times in zip(found, weights, strict=True):
            of = (times, ones[1]) if side == 0 else (ones[0], times)
            for at, name in enumerate(NAMES):
                expected = repeated(scores, ratings, design, *of, name)
                np.testing.assert_allclose(values[:, at], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("systems", "dialogues", "turns", "drop"), [(6, 5, 1, 0), (12, 4, 3, 0.3), (40, 3, 2, 0)])
def test_means_of_resampled_dialogues_are_those_of_repeated_rows(systems, dialogues, turns, drop, missing):
    rng = np.random.default_rng([systems, dialogues, turns])
    scores, ratings, design = sample(rng, systems, dialogues, turns, missing=missing, drop=drop, average=True)
    drawn = rng.multinomial(dialogues, np.full(dialogues, 1 / dialogues), size=(4, systems))
    for weights, times in ((drawn[:, 0], drawn[:, :1]), (drawn.astype(np.uint16), drawn)):
        for values, of_cells in zip(over_means(scores, ratings, design, weights, NAMES), times, strict=True):
            for at, name in enumerate(NAMES):
                once = np.ones(systems), np.ones(dialogues)
                expected = repeated(scores, ratings, design, *once, name, of_cells)
                np.testing.assert_allclose(values[:, at], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("average", [False, True])
def test_coefficients_are_those_of_scipy(average):
    scores, ratings, design = sample(np.random.default_rng(1), 30, 6, 3, missing=0.1, average=average)
    found = coefficients(scores, ratings, design, NAMES)
    ones = np.ones(30), np.ones(6)
    expected = np.stack([repeated(scores, ratings, design, *ones, name) for name in NAMES], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_no_variation_no_value():
    for average in (False, True):
        scores, ratings, design = sample(np.random.default_rng(2), 8, 5, 2, average=average)
        scores[0], scores[1] = 0.1, np.nan
        found = coefficients(scores, ratings, design, NAMES)
        assert np.isnan(found[:2]).all() and not np.isnan(found[2]).any()
        assert np.isnan(coefficients(scores, np.full_like(ratings, 0.1), design, NAMES)).all()
    nothing = Design(np.array([], dtype=int), np.array([], dtype=int))
    assert np.isnan(coefficients(np.empty((2, 0)), np.array([]), nothing, NAMES)).all()


@pytest.mark.parametrize("average", [False, True])
def test_equal_means_are_ties_whatever_the_order_of_a_sum(average):
    thirds = np.array([1 / 3, 2 / 3, 1.0, 2.0, 4 / 3, 5 / 3])
    ratings = np.concatenate([thirds, thirds[::-1], thirds + 1, thirds * 2])
    design = Design(np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4), average=True)
    scores = ratings[np.newaxis] * 1.1 if average else np.arange(24.0)[np.newaxis]
    tau = coefficients(scores, ratings, design, ["kendall"])[0, 0]
    x = scores[0].reshape(4, 6).mean(axis=1).round(9)
    assert tau == pytest.approx(
        correlate(x, np.round(ratings.reshape(4, 6).mean(axis=1), 9), "kendall").value, abs=1e-12
    )


def test_a_resample_of_little_variance_beside_much_is_not_constant():
    """Without one of four systems, all that is left of the scores is 1e-8 of what there was."""
    rng = np.random.default_rng(5)
    systems, _ = (axis.ravel() for axis in np.indices((4, 12)))
    y = rng.normal(size=len(systems))
    x = np.where(systems == 0, rng.random(len(y)), 1e-8 * (y + rng.normal(size=len(y))))[np.newaxis]
    drawn = np.array([[0, 2, 1, 1], [0, 0, 1, 3], [1, 1, 1, 1]], dtype=float)
    found = over_clusters(x, y, systems, drawn, ["pearson"])[:, 0, 0]
    for times, value in zip(drawn.astype(int), found, strict=True):
        kept = np.repeat(np.arange(len(y)), times[systems])
        assert value == pytest.approx(stats.pearsonr(x[0, kept], y[kept]).statistic, abs=1e-9)


def test_a_resample_without_variation_has_no_value():
    scores, ratings = np.array([[0.1, 0.1, 0.7, 0.9]]), np.array([1.0, 2, 3, 4])
    assert np.isnan(over_clusters(scores, ratings, np.array([0, 0, 1, 2]), np.array([[3.0, 0, 0]]), NAMES)).all()


def gappy(seed):
    """Scores with ties, gaps, outliers, one cluster that alone varies, and one that has no scores."""
    rng = np.random.default_rng(seed)
    count, n = int(rng.integers(2, 8)), int(rng.integers(16, 60))
    clusters = rng.permutation(np.r_[np.arange(count), rng.integers(0, count, n - count)])
    x = rng.normal(size=(6, n))
    x[1] = rng.integers(0, 3, n)
    x[2] = np.where(clusters == 0, 1e9 * x[2], x[2])
    x[3] = np.where(clusters == 1, x[3], 0.3)
    x[4, rng.random(n) < 0.4] = np.nan
    x[5, clusters == 0] = np.nan
    return x, rng.integers(1, 4, n) / 3 if seed % 2 else rng.normal(size=n), clusters


@pytest.mark.parametrize("name", NAMES)
def test_without_each_cluster_is_the_rest_correlated_anew(name):
    for seed in range(12):
        x, y, clusters = gappy(seed)
        expected = np.full((len(x), clusters.max() + 1), np.nan)
        for row, cluster in np.ndindex(expected.shape):
            if (~np.isnan(x[row]) & (clusters == cluster)).any():
                expected[row, cluster] = correlate(x[row, clusters != cluster], y[clusters != cluster], name).value
        found = without_each(x, y, clusters, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(without_each(-1e-160 * x, y, clusters, name), -found, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_influence_is_the_derivative(name):
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=40), 1)
    y = np.round(x + rng.normal(size=40))
    value, moves = influence(x, y, name)
    assert value == pytest.approx(correlate(x, y, name).value, abs=1e-12)
    weights = 1 + 1e-6 * np.concatenate([np.eye(40), -np.eye(40)])
    up, down = over_clusters(x[np.newaxis], y, np.arange(40), weights, [name]).reshape(2, 40)
    np.testing.assert_allclose(moves, 40 * (up - down) / 2e-6, atol=1e-5)
    assert np.isnan(influence(x, np.full(40, 0.3), name)[0])


def test_concordance_of_each_unit():
    rng = np.random.default_rng(2)
    for levels in (3, 60):
        x, y = np.round(rng.normal(size=70), 1), rng.integers(0, levels, 70) / 3
        pairs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
        np.testing.assert_array_equal(concordance(x[None], y)[0], pairs.sum(axis=1))


# Within items


def _loop(scores, ratings, items, name):
    values, counts = [], []
    for row in scores:
        found = [correlate(row[items == item], ratings[items == item], name).value for item in np.unique(items)]
        found = [value for value in found if not np.isnan(value)]
        values.append(np.mean(found) if found else NONE)
        counts.append(len(found))
    return values, counts


@pytest.mark.parametrize("name", NAMES)
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
@given(cells, st.sampled_from(NAMES), st.randoms())
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


def test_nothing_defined_within_items():
    values, counted = within_items(np.ones((2, 3)), np.arange(3.0), np.zeros(3), "kendall")
    assert np.isnan(values).all() and list(counted) == [0, 0]
