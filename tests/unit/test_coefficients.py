"""Coefficients, within items too, and with a cluster left out: compared with scipy and plain Python."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import influence, over_clusters, over_means, without_each
from comperdial.stats.correlation import MOST_EXACT, correlate, exact_p, is_starred, rowwise
from comperdial.stats.means import merge_ties
from comperdial.stats.pairs import within_items
from sampled import sample

NONE = float("nan")
SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


# Two samples


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30), st.sampled_from(NAMES))
def test_all_rows_at_once_are_scipys_values(pairs, name):
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    made, expected = correlate([*x, NONE], [*y, 1], name), SCIPY[name](x, y).statistic
    assert (made.value, made.n) == (pytest.approx(expected, abs=1e-9), len(pairs))
    assert rowwise(x[np.newaxis], y[np.newaxis], name)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4, 4, 4])])
def test_an_undefined_coefficient_is_missing_and_starred(x, y, name):
    made = correlate(x, y, name)
    assert math.isnan(made.value) and math.isnan(made.p) and is_starred(made.p)
    assert is_starred(0.05) and not is_starred(0.049)


@pytest.mark.parametrize("name", NAMES)
def test_exact_p_matches_scipy_over_all_permutations(name):
    x, y = np.array([1.0, 2.0, 2.0, 5.0, 4.0]), np.array([0.3, 0.1, 0.5, 0.9, 0.8])
    options = {"permutation_type": "pairings", "n_resamples": np.inf, "alternative": "greater"}
    theirs = stats.permutation_test((y,), lambda order: np.abs(SCIPY[name](x, order).statistic), **options)
    assert exact_p(x, y, name) == pytest.approx(theirs.pvalue)
    assert exact_p([1, 2, 3, 4, NONE], [4, 3, 2, 1, 9], "kendall") == pytest.approx(2 / 24)
    assert np.isnan(exact_p(range(MOST_EXACT + 1), range(MOST_EXACT + 1), name))


# Resamples of clusters


def repeated(scores, ratings, design, of_systems, of_dialogues, name, of_cells=1):
    """Repeat the rows, or the means of systems, and correlate them."""
    # Means that differ by rounding only are ties.
    digits = 15 if name == "pearson" else 11
    made = []
    for row in scores:
        kept = ~np.isnan(row)
        x, y, s, d = row[kept], ratings[kept], design.systems[kept], design.dialogues[kept]
        of_rows = np.broadcast_to(of_cells * of_dialogues, (len(of_systems), len(of_dialogues)))[s, d].astype(int)
        a, b = [], []
        for system, times in enumerate(of_systems.astype(int)):
            rows = np.repeat(np.flatnonzero(s == system), of_rows[s == system])
            if design.average and len(rows):
                a += [round(float(x[rows].mean()), digits)] * times
                b += [round(float(y[rows].mean()), digits)] * times
            elif not design.average:
                a, b = [*a, *np.tile(x[rows], times)], [*b, *np.tile(y[rows], times)]
        made.append(correlate(a, b, name).value)
    return made


# All pairs of few units; sums over levels and clusters of more; no such sums where they would be too large.
@pytest.mark.parametrize(
    ("systems", "dialogues", "turns", "drop", "missing"), [(6, 5, 1, 0, 0.2), (12, 4, 3, 0.3, 0.2), (4, 3, 20, 0, 0)]
)
def test_cluster_weights_equal_repeated_rows(systems, dialogues, turns, drop, missing):
    rng = np.random.default_rng([systems, dialogues, turns])
    scores, ratings, design = sample(rng, systems, dialogues, turns, missing=missing, drop=drop)
    ones = np.ones(systems), np.ones(dialogues)
    for side, (codes, count) in enumerate(((design.systems, systems), (design.dialogues, dialogues))):
        weights = rng.multinomial(count, np.full(count, 1 / count), size=3).astype(float)
        made = over_clusters(scores, ratings, codes, weights, NAMES)
        for row, times in zip(made, weights, strict=True):
            of = (times, ones[1]) if side == 0 else (ones[0], times)
            for at, name in enumerate(NAMES):
                expected = repeated(scores, ratings, design, *of, name)
                np.testing.assert_allclose(row[:, at], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("systems", "dialogues", "turns", "drop", "missing"), [(6, 5, 1, 0, 0.0), (12, 4, 3, 0.3, 0.2)]
)
def test_means_of_resampled_dialogues_equal_repeated_rows(systems, dialogues, turns, drop, missing):
    rng = np.random.default_rng([systems, dialogues, turns])
    scores, ratings, design = sample(rng, systems, dialogues, turns, missing=missing, drop=drop, average=True)
    drawn = rng.multinomial(dialogues, np.full(dialogues, 1 / dialogues), size=(4, systems))
    once = np.ones(systems), np.ones(dialogues)
    for weights, times in ((drawn[:, 0], drawn[:, :1]), (drawn.astype(np.uint16), drawn)):
        for row, of_cells in zip(over_means(scores, ratings, design, weights, NAMES), times, strict=True):
            for at, name in enumerate(NAMES):
                expected = repeated(scores, ratings, design, *once, name, of_cells)
                np.testing.assert_allclose(row[:, at], expected, rtol=0, atol=1e-10)


def test_low_variance_resample_is_not_constant():
    """Without one of four systems, all that is left of the scores is 1e-8 of what there was."""
    rng = np.random.default_rng(5)
    systems, _ = (axis.ravel() for axis in np.indices((4, 12)))
    y = rng.normal(size=len(systems))
    x = np.where(systems == 0, rng.random(len(y)), 1e-8 * (y + rng.normal(size=len(y))))[np.newaxis]
    drawn = np.array([[0, 2, 1, 1], [0, 0, 1, 3], [1, 1, 1, 1]], dtype=float)
    made = over_clusters(x, y, systems, drawn, ["pearson"])[:, 0, 0]
    for times, value in zip(drawn.astype(int), made, strict=True):
        kept = np.repeat(np.arange(len(y)), times[systems])
        assert value == pytest.approx(stats.pearsonr(x[0, kept], y[kept]).statistic, abs=1e-9)
    # And one without any variance has no value.
    x, y = np.array([[0.1, 0.1, 0.7, 0.9]]), np.array([1.0, 2, 3, 4])
    assert np.isnan(over_clusters(x, y, np.array([0, 0, 1, 2]), np.array([[3.0, 0, 0]]), NAMES)).all()


# Without a cluster


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
@pytest.mark.parametrize("seed", range(2))
def test_leaving_out_a_cluster_equals_recomputing(name, seed):
    x, y, clusters = gappy(seed)
    expected = np.full((len(x), clusters.max() + 1), np.nan)
    for row, cluster in np.ndindex(expected.shape):
        if (~np.isnan(x[row]) & (clusters == cluster)).any():
            expected[row, cluster] = correlate(x[row, clusters != cluster], y[clusters != cluster], name).value
    np.testing.assert_allclose(without_each(x, y, clusters, name), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(without_each(-1e-160 * x, y, clusters, name), -expected, atol=1e-12)


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


# Means of systems


def test_tie_tolerance_depends_on_own_magnitude():
    near = np.array([0.3, 0.1 + 0.2, np.nan, 0.3 + 1e-12, -1.0, 1e-12, 2e-12])
    made = merge_ties(near)
    assert made[0] == made[1] == 0.3
    np.testing.assert_array_equal(made[2:], near[2:])
    # The mean of numbers of both signs may be near 0, and was rounded at their size.
    assert np.ptp(merge_ties([1e-17, -3e-17, 0.0], [1.0, 1.0, 1.0])) == 0


# Within items


cells = st.lists(
    st.tuples(st.integers(-3, 3) | st.just(NONE), st.integers(1, 4) | st.just(NONE), st.integers(0, 3)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=40)
@given(cells, st.sampled_from(NAMES), st.randoms())
def test_within_items_is_the_mean_over_the_items_that_have_a_value(drawn, name, random):
    scores, ratings, items = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    made, counted = within_items(scores[None], ratings, items, name)
    each = [correlate(scores[items == item], ratings[items == item], name).value for item in np.unique(items)]
    each = [value for value in each if not np.isnan(value)]
    assert made[0] == pytest.approx(np.mean(each) if each else NONE, abs=1e-12, nan_ok=True)
    assert counted[0] == len(each)
    # Neither the order of units, nor the numbers of items, nor what is added to all units of an item matters.
    order = list(range(len(scores)))
    random.shuffle(order)
    again, _ = within_items((2 * scores + 8 * items)[order][None], ratings[order], -items[order], name)
    np.testing.assert_allclose(again, made, rtol=0, atol=1e-12)


def test_mt_metrics_eval_worked_examples():
    # google-research/mt-metrics-eval, stats_test.py: two systems by three items, and three items by two systems.
    gold, metric = np.arange(1.0, 7), np.array([[2.0, 1, 4, 3, 3, 7]])
    by_item, by_system = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    for name, value in (("pearson", 0.760), ("kendall", 0.575)):
        assert within_items(metric, gold, by_system, name)[0][0] == pytest.approx(value, abs=5e-4)
        assert within_items(metric, gold, by_item, name)[0][0] == pytest.approx(1, abs=5e-4)
    # An undefined group is left out by default.
    made, counted = within_items(np.array([[2.0, 2, 2, 4, 5, 6]]), gold, by_system, "pearson")
    assert (made[0], counted[0]) == (pytest.approx(1), 1)
