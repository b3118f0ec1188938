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
from comperdial.stats.means import system_means
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters
from comperdial.stats.sizes import components
from comperdial.stats.swaps import SWAPS, swapped_differences


def crossed(systems=9, dialogues=5, turns=2, average=False):
    codes = [axis.ravel() for axis in np.indices((systems, dialogues, turns))]
    return Design(codes[0], codes[1], average)


def drawn(design, metrics=3, seed=0, truth=1.0):
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=design.systems.max() + 1)[design.systems] + rng.normal(size=len(design.systems))
    ratings = np.round(quality + rng.normal(size=len(quality)))
    scores = truth * quality + rng.normal(size=(metrics, len(quality)))
    return scores, ratings


# The pieces, each against a plain way.


@pytest.mark.parametrize("name", NAMES)
def test_jackknife_is_the_plain_two_way_formula(name):
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
    expected = 2 * stats.t.sf(abs(a - b) / np.sqrt(total), freedom)
    found = compare(scores, ratings, design, name, resamples=9, seed=0)
    assert found.p[0, 1] == pytest.approx(expected)
    assert found.difference[0, 1] == pytest.approx(a - b, abs=1e-12)


# compare


@given(st.integers(0, 10**6), st.sampled_from(NAMES), st.booleans())
@settings(max_examples=30, deadline=None)
def test_compare_is_antisymmetric_bounded_and_1_of_itself(seed, name, average):
    design = crossed(average=average)
    scores, ratings = drawn(design, seed=seed)
    # One metric twice, on another scale.
    scores = np.vstack([scores, 2 * scores[:1] + 3])
    found = compare(scores, ratings, design, name, resamples=19, seed=seed)
    np.testing.assert_allclose(found.difference, -found.difference.T, atol=1e-15)
    np.testing.assert_array_equal(found.p, found.p.T)
    known = ~np.isnan(found.p)
    assert np.all((found.p[known] > 0) & (found.p[known] <= 1))
    np.testing.assert_array_equal(np.diag(found.p), 1)
    assert found.p[0, 3] == 1
    assert np.all(found.n == (9 if average else 90))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_order_of_units_and_scale_do_not_matter(name, average):
    design = crossed(average=average)
    scores, ratings = drawn(design, seed=7)
    before = compare(scores, ratings, design, name, resamples=99, seed=3)
    order = np.random.default_rng(8).permutation(len(ratings))
    mixed = Design(design.systems[order], design.dialogues[order], average)
    after = compare(scores[:, order] * [[1], [5], [0.1]] - 2, 3 * ratings[order] + 1, mixed, name, resamples=99, seed=3)
    np.testing.assert_allclose(after.difference, before.difference, atol=1e-12)
    # Neither a jackknife nor swaps of systems know an order of units.
    np.testing.assert_allclose(after.p, before.p, atol=1e-9)
    scaled = compare(scores * [[1], [5], [0.1]] - 2, 3 * ratings + 1, design, name, resamples=99, seed=3)
    np.testing.assert_allclose(scaled.p, before.p, atol=1e-9)


def test_more_metrics_do_not_change_a_pair():
    design = crossed()
    scores, ratings = drawn(design, metrics=5, seed=9)
    all_of_them = compare(scores, ratings, design, "spearman", resamples=99, seed=3)
    two = compare(scores[[1, 3]], ratings, design, "spearman", resamples=99, seed=3)
    assert two.p[0, 1] == pytest.approx(all_of_them.p[1, 3])


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_interval_of_a_difference_leaves_out_0_just_where_p_is_below_5_percent(name, average):
    significant = []
    for seed in range(12):
        design = crossed(9, 6, 1, average=average)
        rng = np.random.default_rng(seed)
        ratings = rng.integers(1, 6, len(design.systems)).astype(np.float64)
        # Of few values, so that there are ties, and of all qualities, so that some differences are significant.
        scores = np.round(ratings * np.array([[0], [0.3], [1], [3]]) + rng.normal(size=(4, len(ratings))), 1)
        found = compare(scores, ratings, design, name, resamples=99, seed=seed)
        there = ~np.isnan(found.reach) & ~np.eye(4, dtype=bool)
        # Ranks of systems' means have no interval.
        assert there.any() == (not average or name == "pearson")
        assert ((np.abs(found.difference) > found.reach) == (found.p < 0.05))[there].all()
        significant += list(found.p[there] < 0.05)
    assert not significant or 0 < np.mean(significant) < 1


@pytest.mark.parametrize("average", [False, True])
def test_a_pair_is_compared_over_the_units_that_both_have(average):
    design = crossed(average=average)
    scores, ratings = drawn(design, metrics=4, seed=10)
    scores[0, :10] = np.nan  # all of system 0
    scores[1, 15:40] = np.nan
    scores[2, :] = np.nan
    found = compare(scores, ratings, design, "pearson", resamples=99, seed=3)
    kept = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    narrow = Design(
        *(np.unique(codes[kept], return_inverse=True)[1] for codes in (design.systems, design.dialogues)), average
    )
    alone = compare(scores[:2, kept], ratings[kept], narrow, "pearson", resamples=99, seed=3)
    for part in ("difference", "p", "n"):
        assert getattr(found, part)[0, 1] == pytest.approx(getattr(alone, part)[0, 1])
    assert found.n[0, 1] == (len(np.unique(design.systems[kept])) if average else 55)
    assert found.n[2, 2] == 0
    assert np.isnan(found.p[2]).all()
    assert np.isnan(found.difference[:, 2]).all()
    assert not np.isnan(found.p[np.ix_([0, 1, 3], [0, 1, 3])]).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_metric_has_no_test(name):
    design = crossed()
    scores, ratings = drawn(design)
    scores[1] = 4
    found = compare(scores, ratings, design, name, resamples=19, seed=0)
    assert np.isnan(found.p[1]).all()
    assert np.isnan(found.difference[:, 1]).all()
    assert not np.isnan(found.p[0, 2])


def test_few_systems_and_one_dialogue_each_have_a_p():
    # USR: 60 contexts, each a dialogue of its own, rated for 4 systems.
    design = crossed(4, 60, 1)
    scores, ratings = drawn(design, seed=11)
    found = compare(scores, ratings, design, "spearman", resamples=99, seed=0)
    assert np.all((found.p > 0) & (found.p <= 1))
    one = Design(np.arange(30), np.zeros(30, dtype=np.intp))
    scores, ratings = drawn(one, seed=12)
    found = compare(scores, ratings, one, "pearson", resamples=99, seed=0)
    assert np.all((found.p > 0) & (found.p <= 1))


def test_a_much_better_metric_is_found_and_the_sign_is_right():
    design = crossed(20, 8, 2)
    scores, ratings = drawn(design, seed=13)
    scores[1] = np.random.default_rng(0).normal(size=len(ratings))
    for name in NAMES:
        found = compare(scores, ratings, design, name, resamples=99, seed=0)
        assert found.difference[0, 1] > 0
        assert found.p[0, 1] < 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "cosine"}, "unknown coefficient"),
        ({"ratings": np.full(90, np.nan)}, "a rating for each unit"),
        ({"ratings": np.zeros(5)}, "expected scores"),
    ],
)
def test_what_compare_refuses(change, message):
    design = crossed()
    scores, ratings = drawn(design)
    given_ = {"scores": scores, "ratings": ratings, "design": design, "name": "pearson", "resamples": 9, "seed": 0}
    with pytest.raises(ValueError, match=message):
        compare(**{**given_, **change})


def test_without_resamples_there_is_no_p_of_swaps():
    design = crossed()
    scores, ratings = drawn(design)
    found = compare(scores, ratings, design, "pearson", resamples=0, seed=0)
    np.testing.assert_array_equal(found.p, compare(scores, ratings, design, "pearson", resamples=9, seed=0).p)
    of_means = compare(scores, ratings, crossed(average=True), "kendall", resamples=0, seed=0)
    assert np.isnan(of_means.p).all()
    assert of_means.test == "swap_systems|swaps:0"


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_likes_of_systems_and_dialogues_mislead_swaps_of_units_and_not_the_default(name):
    # benchmarks/rejections.py counts this on the size of the real benchmark.
    design, rng = crossed(20, 8, 6), np.random.default_rng(15)
    rejected = []
    for _ in range(100):
        quality = rng.normal(size=20)[design.systems] + rng.normal(size=8)[design.dialogues] + rng.normal(size=960)
        likes = rng.normal(size=(2, 20))[:, design.systems] + rng.normal(size=(2, 8))[:, design.dialogues]
        scores, ratings = quality + likes + rng.normal(size=(2, 960)), quality + rng.normal(size=960)
        found = compare(scores, ratings, design, name, resamples=99, seed=0)
        drawn = swapped_differences(scores, ratings, design, np.arange(960), name, None, resamples=99, rng=rng)
        rejected.append([found.p[0, 1] <= 0.05, np.mean(drawn >= abs(found.difference[0, 1])) <= 0.05])
    default, of_units = np.mean(rejected, axis=0)
    assert default <= 0.12
    assert of_units >= 0.2


def many_good_and_bad(average=True):
    design = crossed(60, 4, 2, average)
    rng = np.random.default_rng(21)
    quality = rng.normal(size=60)[design.systems]
    scores = np.repeat([1.0, 0.2], 10)[:, None] * quality + 0.3 * rng.normal(size=(20, 60))[:, design.systems]
    return scores, quality + rng.normal(size=len(quality)), design


@pytest.mark.parametrize("name", NAMES)
def test_what_made_p_is_said(name):
    scores, ratings, design = many_good_and_bad()
    units = Design(design.systems, design.dialogues)
    assert compare(scores[:2], ratings, units, name, resamples=9, seed=0).test == "jackknife"
    ranks = name != "pearson"
    over_systems = compare(scores[:2], ratings, design, name, resamples=9, seed=0).test
    assert over_systems == (f"swap_systems|swaps:{SWAPS}" if ranks else "jackknife")


# Means of systems


@pytest.mark.parametrize("name", NAMES)
def test_differences_are_those_of_the_coefficients_with_means_tied_but_for_rounding(name):
    rng = np.random.default_rng(16)
    design = crossed(30, 5, 3, average=True)
    scores = rng.integers(0, 3, size=(4, 450)) / 3
    ratings = rng.integers(1, 4, size=(3, 450)).mean(axis=0)
    scores[3] = 0.1
    values = coefficients(scores, ratings, design, [name])[:, 0]
    found = compare(scores, ratings, design, name, resamples=9, seed=0)
    np.testing.assert_allclose(found.difference, values[:, None] - values, atol=1e-12)
    assert np.isnan(values).tolist() == [False, False, False, True]
    assert np.isnan(found.p[3]).all()
    whole = coefficients(np.round(3 * scores), np.round(3 * ratings), design, [name])[:, 0]
    np.testing.assert_allclose(whole[:3], values[:3], atol=1e-12)
    means, human = system_means(scores, design), system_means(ratings, design)
    np.testing.assert_allclose([correlate(row, human, name).value for row in means], values, atol=1e-12)
    np.testing.assert_allclose(
        intervals(scores, ratings, design, [name], resamples=20, seed=0).value[:, 0], values, atol=1e-12
    )
    power = components(scores, ratings, design, name, [(0, 1)])[0]
    assert power.difference == pytest.approx(values[0] - values[1], abs=1e-12)


def test_a_metric_that_varies_in_one_system_only_has_a_difference_and_no_p():
    design, rng = crossed(6, 10, 1), np.random.default_rng(0)
    scores = rng.normal(size=(3, 60))
    scores[0, design.systems > 0] = 0
    ratings = rng.normal(size=60)
    found = compare(scores, ratings, design, "spearman", resamples=99, seed=0)
    values = coefficients(scores, ratings, design, ["spearman"])[:, 0]
    assert np.isnan(found.p[0, 1:]).all()
    np.testing.assert_allclose(found.difference[0], values[0] - values, atol=1e-12)
    assert 0 < found.p[1, 2] < 1


# Many comparisons


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    # A missing p is no test.
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04, 0.03, 0.005]), [0.03, np.nan, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([[0.9, np.nan], [0.8, 0.5]]), [[1, np.nan], [1, 1]])
    assert np.isnan(holm([np.nan])).all()
    assert holm([]).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_keep_their_order_and_are_no_smaller(p):
    values = np.array(p)
    strict, mild = holm(values), benjamini_hochberg(values)
    for adjusted in (strict, mild):
        assert np.all(adjusted >= values * (1 - 1e-15))
        assert np.all(np.diff(adjusted[np.argsort(values, kind="stable")]) >= 0)
        assert adjusted.max() <= 1
    assert np.all(mild <= strict * (1 + 1e-12))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_is_scipy_s(p):
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12, atol=0)
    # A missing p is no test.
    with_gaps = np.insert(np.array(p), [0, len(p)], np.nan)
    np.testing.assert_allclose(benjamini_hochberg(with_gaps)[1:-1], stats.false_discovery_control(p), rtol=1e-12)
    assert np.isnan(benjamini_hochberg(with_gaps)[[0, -1]]).all()
    assert benjamini_hochberg([]).shape == (0,)


@pytest.mark.parametrize(
    ("p", "alpha", "ranks"),
    [
        # DataTest.testAssignRanks in mt-metrics-eval's data_test.py, upper halves row by row.
        ([1, 1, 1, 1, 1, 1], 0.5, [1, 1, 1, 1]),
        ([1, 1, 1, 1, 1, 1], 1.0, [1, 2, 3, 4]),
        ([1, 0, 1, 1, 1, 1], 0.5, [1, 1, 2, 2]),
        ([0, 1, 1, 1, 1, 0], 0.5, [1, 2, 2, 3]),
    ],
)
def test_rank_clusters_of_mt_metrics_eval(p, alpha, ranks):
    matrix = np.ones((4, 4))
    matrix[np.triu_indices(4, 1)] = p
    matrix = np.minimum(matrix, matrix.T)
    assert rank_clusters([0.9, 0.8, 0.7, 0.6], matrix, alpha).tolist() == ranks
    order = [2, 0, 3, 1]
    mixed = rank_clusters(np.array([0.9, 0.8, 0.7, 0.6])[order], matrix[np.ix_(order, order)], alpha)
    assert mixed.tolist() == [ranks[at] for at in order]


def test_rank_clusters_without_a_value_or_a_p():
    p = np.full((3, 3), 0.001)
    assert rank_clusters([np.nan, 0.2, 0.4], p).tolist() == [0, 2, 1]
    p[1, 2] = p[2, 1] = np.nan
    assert rank_clusters([np.nan, 0.2, 0.4], p).tolist() == [0, 1, 1]


# Systems that are given: two or three, or those asked for.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("systems", [2, 3])
def test_two_or_three_systems_are_given_and_p_depends_on_the_data(systems, name):
    found = []
    for seed in range(6):
        design = crossed(systems, 30, 1)
        scores, ratings = drawn(design, seed=seed)
        scores[2] = np.random.default_rng(seed).normal(size=len(ratings))
        made = compare(scores, ratings, design, name, resamples=0, seed=0)
        # As where each context is a cluster, whoever answered.
        alone = Design(np.zeros_like(design.systems), design.dialogues)
        assert made.p == pytest.approx(compare(scores, ratings, alone, name, resamples=0, seed=0).p)
        assert made.given.all()
        found.append(made.p[0, 1])
        # What a good and a random metric have in common is no reason to doubt that they differ.
        assert made.p[0, 2] < 0.05
    assert np.ptp(found) > 0.2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("average", [False, True])
def test_more_systems_are_given_if_asked_for(name, average):
    design = crossed(6, 40, 1, average=average)
    scores, ratings = drawn(design, seed=2)
    fixed = Design(design.systems, design.dialogues, average, fixed=True)
    found = compare(scores, ratings, fixed, name, resamples=200, seed=0)
    plain = compare(scores, ratings, design, name, resamples=200, seed=0)
    assert (found.given.all(), plain.given.any()) == (True, False)
    assert found.difference == pytest.approx(plain.difference)
    there = np.isfinite(found.reach) & ~np.eye(3, dtype=bool)
    assert average or there.any()
    assert ((np.abs(found.difference) > found.reach) == (found.p < 0.05))[there].all()
    made = intervals(scores, ratings, fixed, NAMES, resamples=200, seed=0)
    wide = intervals(scores, ratings, design, NAMES, resamples=200, seed=0)
    assert made.given.all() and not wide.given.any()
    assert np.nanmean(made.high - made.low) < np.nanmean(wide.high - wide.low)


@pytest.mark.parametrize("dialogues", [2, 3, 5])
@pytest.mark.parametrize("average", [False, True])
def test_the_interval_of_a_difference_stays_between_minus_2_and_2(dialogues, average):
    for seed in range(10):
        design = crossed(4 if average else 2, dialogues, 1, average=average)
        scores, ratings = drawn(design, seed=seed)
        scores[1] = -scores[0] + np.random.default_rng(seed).normal(0, 0.01, len(ratings))
        found = compare(scores, ratings, design, "pearson", resamples=0, seed=0)
        low, high = found.ends
        there = np.isfinite(found.reach) & ~np.eye(3, dtype=bool)
        assert (low[there] > -2).all() and (high[there] < 2).all()
        assert (low[there] <= found.difference[there]).all() and (found.difference[there] <= high[there]).all()
        assert (((low > 0) | (high < 0)) == (np.abs(found.difference) > found.reach))[there].all()


def test_intervals_over_contexts_cover_what_two_systems_have_in_the_long_run():
    rng, hits, apart = np.random.default_rng(4), [], []
    for draw in range(150):
        quality = rng.normal(size=2)[:, np.newaxis] + rng.normal(size=(2, 4030))
        ratings = np.round(quality + rng.normal(size=quality.shape)).ravel()
        likes = rng.normal(0, 0.5, (2, 2, 1))
        scores = (quality + likes + rng.normal(size=(2, *quality.shape))).reshape(2, -1)
        design = crossed(2, 4030, 1)
        first = design.dialogues < 30
        true = coefficients(scores[:, ~first], ratings[~first], design.of(~first), NAMES[:2])
        part = (scores[:, first], ratings[first], design.of(first))
        made = intervals(*part, NAMES[:2], resamples=100, seed=draw)
        hits.append((made.low <= true) & (true <= made.high))
        for at, name in enumerate(NAMES[:2]):
            low, high = compare(*part, name, resamples=0, seed=0).ends
            apart.append(low[0, 1] <= true[0, at] - true[1, at] <= high[0, 1])
    assert 0.91 < np.mean(hits) < 0.985
    assert 0.91 < np.mean(apart) < 0.985
