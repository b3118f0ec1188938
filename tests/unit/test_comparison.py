"""Differences of metrics: jackknife, swaps of systems, PERM-BOTH and corrections, compared with plain recomputation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.coefficients import coefficients, influence
from comperdial.stats.comparison import compare
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals
from comperdial.stats.means import paired_means, system_means
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters
from comperdial.stats.pairs import replicates
from comperdial.stats.sizes import components
from comperdial.stats.swaps import SWAPS, swap_systems_of_pairs, swapped_differences
from sampled import crossed, drawn

# compare


@pytest.mark.parametrize("name", NAMES)
def test_jackknife_matches_two_way_formula(name):
    design = crossed()
    scores, ratings = drawn(design, metrics=2, seed=6)
    rng = np.random.default_rng(6)
    scores += rng.normal(size=(2, 9))[:, design.systems] + rng.normal(size=(2, 5))[:, design.dialogues]
    cell = design.systems * 5 + design.dialogues

    def variance(codes):
        values = []
        for code in np.unique(codes):
            kept = codes != code
            a, b = (correlate(row[kept], ratings[kept], name).value for row in scores)
            values.append(a - b)
        return np.var(values) * (len(values) - 1)

    moves = [influence(row, ratings, name)[1] for row in scores]
    inside = np.bincount(cell, moves[0] - moves[1]) / len(cell)
    parts = [variance(design.systems), variance(design.dialogues), np.sum(inside**2) * 45 / 44]
    total = parts[0] + parts[1] - parts[2]
    assert total > 0
    freedom = max(total**2 / (parts[0] ** 2 / 8 + parts[1] ** 2 / 4 + parts[2] ** 2 / 32), 4)
    a, b = (correlate(row, ratings, name).value for row in scores)
    found = compare(scores, ratings, design, name, resamples=9, seed=0)
    assert found.p[0, 1] == pytest.approx(2 * stats.t.sf(abs(a - b) / np.sqrt(total), freedom))
    assert found.difference[0, 1] == pytest.approx(a - b, abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(NAMES), st.booleans())
def test_what_holds_of_any_comparison(seed, name, average):
    design, options = crossed(average=average), {"resamples": 19, "seed": 3}
    scores, ratings = drawn(design, seed=seed)
    # One metric twice, on another scale.
    scores = np.vstack([scores, 2 * scores[:1] + 3])
    found = compare(scores, ratings, design, name, **options)
    np.testing.assert_allclose(found.difference, -found.difference.T, atol=1e-15)
    np.testing.assert_array_equal(found.p, found.p.T)
    assert np.all((found.p > 0) & (found.p <= 1) | np.isnan(found.p))
    np.testing.assert_array_equal(np.diag(found.p), 1)
    assert found.p[0, 3] == 1
    assert np.all(found.n == (9 if average else 90))
    # The interval leaves out 0 just where p < 0.05, and is between -2 and 2.
    there = np.isfinite(found.reach) & ~np.eye(4, dtype=bool)
    assert there.any() == (not average or name == "pearson")
    low, high = found.ends
    assert (((low > 0) | (high < 0)) == (found.p < 0.05))[there].all()
    assert (low[there] > -2).all() and (high[there] < 2).all()
    # Neither the order of units nor the scale matters, nor which other metrics there are.
    order = np.random.default_rng(8).permutation(len(ratings))
    mixed = Design(design.systems[order], design.dialogues[order], average)
    other = compare(scores[1:3, order] * [[5], [0.1]] - 2, 3 * ratings[order] + 1, mixed, name, **options)
    np.testing.assert_allclose(other.difference, found.difference[1:3, 1:3], atol=1e-12)
    np.testing.assert_allclose(other.p, found.p[1:3, 1:3], atol=1e-9)


@pytest.mark.parametrize("average", [False, True])
def test_pair_is_compared_over_shared_units(average):
    design = crossed(average=average)
    scores, ratings = drawn(design, metrics=4, seed=10)
    scores[0, :10] = np.nan  # all of system 0
    scores[1, 15:40] = np.nan
    scores[2, :] = np.nan
    found = compare(scores, ratings, design, "pearson", resamples=99, seed=3)
    kept = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    narrow = Design(*(np.unique(c[kept], return_inverse=True)[1] for c in (design.systems, design.dialogues)), average)
    alone = compare(scores[:2, kept], ratings[kept], narrow, "pearson", resamples=99, seed=3)
    for part in ("difference", "p", "n"):
        assert getattr(found, part)[0, 1] == pytest.approx(getattr(alone, part)[0, 1])
    assert found.n[0, 1] == (len(np.unique(design.systems[kept])) if average else 55)
    assert found.n[2, 2] == 0 and np.isnan(found.p[2]).all() and np.isnan(found.difference[:, 2]).all()


@pytest.mark.parametrize("name", NAMES)
def test_nearly_constant_metrics(name):
    design = crossed()
    scores, ratings = drawn(design)
    scores[1] = 4
    found = compare(scores, ratings, design, name, resamples=19, seed=0)
    assert np.isnan(found.p[1]).all() and np.isnan(found.difference[:, 1]).all()
    assert not np.isnan(found.p[0, 2])
    # One that varies in one system only has a difference and no p.
    scores[1] = np.where(design.systems > 0, 0, np.random.default_rng(0).normal(size=90))
    found = compare(scores, ratings, design, name, resamples=19, seed=0)
    assert np.isnan(found.p[1, [0, 2]]).all() and not np.isnan(found.difference).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("average", [False, True])
def test_much_better_metric_is_detected_with_fixed_systems(name, average):
    design = crossed(20, 8, 2, average=average)
    scores, ratings = drawn(design, seed=13)
    scores[1] = np.random.default_rng(0).normal(size=len(ratings))
    found = compare(scores, ratings, design, name, resamples=99, seed=0)
    assert found.difference[0, 1] > 0 and found.p[0, 1] < 0.01
    by_swaps = average and name != "pearson"
    assert found.test == (f"swap_systems|swaps:{SWAPS}" if by_swaps else "jackknife")
    fixed = Design(design.systems, design.dialogues, average, fixed=True)
    given = compare(scores, ratings, fixed, name, resamples=99, seed=0)
    assert (given.given.all(), found.given.any()) == (True, False)
    assert given.difference == pytest.approx(found.difference)
    there = np.isfinite(given.reach) & ~np.eye(3, dtype=bool)
    assert ((np.abs(given.difference) > given.reach) == (given.p < 0.05))[there].all()
    made, wide = (intervals(scores, ratings, of, [name], resamples=99, seed=0) for of in (fixed, design))
    assert np.nanmean(made.high - made.low) < np.nanmean(wide.high - wide.low)


@pytest.mark.parametrize("name", NAMES)
def test_functions_agree_on_means_tied_up_to_rounding(name):
    rng, design = np.random.default_rng(16), crossed(30, 5, 3, average=True)
    scores, ratings = rng.integers(0, 3, size=(3, 450)) / 3, rng.integers(1, 4, size=(3, 450)).mean(axis=0)
    values = coefficients(scores, ratings, design, [name])[:, 0]
    human = system_means(ratings, design)
    exact = [correlate(row, human, name).value for row in system_means(scores, design)]
    whole = coefficients(np.round(3 * scores), np.round(3 * ratings), design, [name])[:, 0]
    of_intervals = intervals(scores, ratings, design, [name], resamples=20, seed=0).value[:, 0]
    for other in (exact, whole, of_intervals):
        np.testing.assert_allclose(other, values, atol=1e-12)
    found = compare(scores, ratings, design, name, resamples=9, seed=0)
    np.testing.assert_allclose(found.difference, values[:, None] - values, atol=1e-12)
    power = components(scores, ratings, design, name, [(0, 1)])[0]
    assert power.difference == pytest.approx(values[0] - values[1], abs=1e-12)


# Whole systems swapped


@pytest.fixture(scope="module")
def units():
    """Two metrics of 6 systems in 7 dialogues of 2 turns, a tenth of the cells gone."""
    rng = np.random.default_rng(1)
    system, dialogue, turn = (axis.ravel() for axis in np.indices((6, 7, 2)))
    kept = rng.random(len(system)) < 0.9
    system, dialogue, turn = system[kept], dialogue[kept], turn[kept]
    y = rng.integers(1, 6, len(system)).astype(float)
    x = np.stack([y + rng.normal(size=len(y)) * 2, np.round(y + rng.normal(size=len(y)) * 3)])
    return x, y, Design(system, dialogue), np.unique(dialogue * 2 + turn, return_inverse=True)[1]


@pytest.mark.parametrize("measure", ["spa", "accuracy", "tau_c", "kendall"])
def test_system_swaps_match_recomputation(units, measure):
    x, y, design, items = units
    if measure == "spa":
        sides, rated, of, groups = stats.zscore(x, axis=1), y, design, items
    else:
        means, rated = paired_means(x, y, design)
        sides, rated, of = stats.zscore(means, axis=1), rated[0], Design(np.arange(6), np.zeros(6, dtype=np.intp))
        groups = of.dialogues
    swaps = list(itertools.product([1, -1], repeat=6))

    def apart(signs):
        turned = np.array(signs)[of.systems] > 0
        both = np.stack([np.where(turned, *sides), np.where(turned, *sides[::-1])])
        first, second = replicates(both, rated, of, groups, [measure], "pooled", resamples=200, seed=3)[measure].values
        return abs(first - second)

    observed = apart(swaps[0])
    far = sum(apart(signs) >= observed - 1e-12 for signs in swaps)
    often = 200 if measure == "spa" else 4000
    p = swap_systems_of_pairs(x, y, design, items, measure, resamples=often, seed=3, most=5_000)
    assert p[0, 1] == pytest.approx(far / len(swaps), abs=0.05 if measure == "spa" else 0.02)


@pytest.mark.parametrize("measure", ["tau_c", "accuracy", "acc_eq", "spa"])
def test_a_metric_does_not_differ_from_itself(units, measure):
    x, y, design, items = units
    same = np.stack([x[1], x[1], 2 * x[1] + 1, np.ones(len(y))])
    p = swap_systems_of_pairs(same, y, design, items, measure, resamples=50, seed=1)
    assert (p[:3, :3] == 1).all() and np.isnan(p[3]).all()
    kept = design.systems < 3
    p = swap_systems_of_pairs(x[:, kept], y[kept], design.of(kept), items[kept], measure, resamples=50, seed=1)
    np.testing.assert_array_equal(p, [[1, np.nan], [np.nan, 1]])


# PERM-BOTH


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_perm_both_matches_mt_metrics_eval_example(name):
    # Data of PermutationSigDiffTest in mt-metrics-eval's stats_test.py; all 256 swaps give the exact p.
    gold = np.array([1, 2, 3, 4, 5, 5, 7, 8], dtype=float)
    metrics = [[1, 2, 3, 3, 7, 3, 5, 5], [2, 1, 2, 6, 8, 8, 7, 6]]
    design = Design(np.repeat(np.arange(4), 2), np.tile(np.arange(2), 4))
    rng = np.random.default_rng(0)
    swapped = swapped_differences(metrics, gold, design, np.arange(8), name, None, resamples=10_000, rng=rng)
    a, b = stats.zscore(metrics, axis=1)
    exact = np.array([
        abs(correlate(np.where(m, a, b), gold, name).value - correlate(np.where(m, b, a), gold, name).value)
        for m in (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    ])  # fmt: skip
    observed = exact[0] - 1e-12
    assert np.mean(swapped >= observed) == pytest.approx(np.mean(exact >= observed), abs=0.02)


@pytest.mark.parametrize(("measure", "grouping"), [("acc_eq", "item"), ("accuracy", "pooled"), ("kendall", "pooled")])
def test_verdicts_and_means_are_swapped(measure, grouping):
    rng = np.random.default_rng(5)
    design = crossed(12, 30, 1)
    y = rng.normal(size=360) + design.systems / 6
    x = np.stack([y + rng.normal(size=360) * 0.5, rng.normal(size=360)])
    values = replicates(x, y, design, design.dialogues, [measure], grouping, resamples=50)[measure].values
    known = design, design.dialogues, measure, grouping
    swapped = swapped_differences(x, y, *known, resamples=200, rng=rng)
    assert np.mean(swapped >= values[0] - values[1]) < 0.05
    assert (swapped_differences(x[[0, 0]], y, *known, resamples=20, rng=rng) == 0).all()


# Many comparisons


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    # A missing p is no test.
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04, 0.03, 0.005]), [0.03, np.nan, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([[0.9, np.nan], [0.8, 0.5]]), [[1, np.nan], [1, 1]])
    assert holm([]).shape == benjamini_hochberg([]).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_keep_their_order_and_are_no_smaller(p):
    values = np.array(p)
    strict, mild = holm(values), benjamini_hochberg(np.insert(values, 0, np.nan))[1:]
    np.testing.assert_allclose(mild, stats.false_discovery_control(p), rtol=1e-12, atol=0)
    for adjusted in (strict, mild):
        assert np.all(adjusted >= values * (1 - 1e-15)) and adjusted.max() <= 1
        assert np.all(np.diff(adjusted[np.argsort(values, kind="stable")]) >= 0)
    assert np.all(mild <= strict * (1 + 1e-12))


# DataTest.testAssignRanks in mt-metrics-eval's data_test.py, upper halves row by row.
@pytest.mark.parametrize(
    ("p", "alpha", "ranks"),
    [
        ([1, 1, 1, 1, 1, 1], 0.5, [1, 1, 1, 1]),
        ([1, 1, 1, 1, 1, 1], 1.0, [1, 2, 3, 4]),
        ([0, 1, 1, 1, 1, 0], 0.5, [1, 2, 2, 3]),
        ([0, np.nan, 1, 1, 1, np.nan], 0.5, [1, 2, 2, 2]),
    ],
)
def test_rank_clusters_match_mt_metrics_eval(p, alpha, ranks):
    matrix = np.ones((4, 4))
    matrix[np.triu_indices(4, 1)] = p
    matrix = np.minimum(matrix, matrix.T)
    order = [2, 0, 3, 1]
    values = np.array([0.9, 0.8, 0.7, 0.6])
    assert rank_clusters(values, matrix, alpha).tolist() == ranks
    assert rank_clusters(values[order], matrix[np.ix_(order, order)], alpha).tolist() == [ranks[at] for at in order]
    values[0] = np.nan
    assert rank_clusters(values, matrix, alpha)[0] == 0
