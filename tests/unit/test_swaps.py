"""Swaps: of whole systems, for ranks of their means, and of units, as the WMT metrics tasks have them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.means import system_means
from comperdial.stats.swaps import ENOUGH, draw_signs, swap_systems, swapped_differences


def crossed(systems=9, dialogues=5, turns=2, average=False):
    codes = [axis.ravel() for axis in np.indices((systems, dialogues, turns))]
    return Design(codes[0], codes[1], average)


def plain_swap(a, b, y, name, signs):
    """Differences of numerators: what the coefficients are divided by is kept."""

    def value(x):
        if name == "spearman":
            return sum(np.sign(x[:, None] - x).sum(axis=1) * stats.rankdata(y))
        return (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum()

    values = [value(np.where(z > 0, a, b)) - value(np.where(z > 0, b, a)) for z in (np.ones(len(y)), *signs)]
    return int(np.sum(np.abs(values[1:]) >= abs(values[0]) - 1e-9))


@given(st.integers(0, 10**6), st.sampled_from(["spearman", "kendall"]), st.integers(1, 6), st.integers(4, 12))
@settings(max_examples=30, deadline=None)
def test_swaps_of_systems_by_products_are_the_plain_loop(seed, name, coarse, systems):
    # Few values: ties within metrics, between the first two, and in the ratings.
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=(3, systems)) * coarse) / coarse
    scores[1] = rng.permutation(scores[0])
    ratings = np.round(rng.normal(size=systems) * coarse) + scores[0]
    if (np.ptp(scores, axis=1) == 0).any() or np.ptp(ratings) == 0:
        return
    p = swap_systems(scores, ratings, name, 40, seed, 40)
    signs = draw_signs(np.random.default_rng(seed), 40, systems)
    # Sums in another order must not break ties.
    standard = np.round(stats.zscore(scores, axis=1), 10)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        plain = plain_swap(standard[one], standard[other], ratings, name, signs)
        assert p[one, other] == pytest.approx((1 + plain) / 41)
        assert p[other, one] == p[one, other]


def test_swaps_of_systems_without_ties_are_of_the_coefficients():
    rng = np.random.default_rng(3)
    scores, ratings = rng.normal(size=(2, 9)), np.round(rng.normal(size=9))
    signs = draw_signs(np.random.default_rng(3), 99, 9) > 0
    a, b = stats.zscore(scores, axis=1)
    for name in ("spearman", "kendall"):
        observed = abs(correlate(a, ratings, name).value - correlate(b, ratings, name).value)
        values = [
            correlate(np.where(z, a, b), ratings, name).value - correlate(np.where(z, b, a), ratings, name).value
            for z in signs
        ]
        far = np.sum(np.abs(values) >= observed - 1e-12)
        assert swap_systems(scores, ratings, name, 99, 3, 99)[0, 1] == pytest.approx((1 + far) / 100)


def many_good_and_bad(average=True):
    design = crossed(60, 4, 2, average)
    rng = np.random.default_rng(21)
    quality = rng.normal(size=60)[design.systems]
    scores = np.repeat([1.0, 0.2], 10)[:, None] * quality + 0.3 * rng.normal(size=(20, 60))[:, design.systems]
    return scores, quality + rng.normal(size=len(quality)), design


def test_more_swaps_go_to_small_p_only_and_do_not_depend_on_other_pairs():
    scores, ratings, design = many_good_and_bad()
    scores, ratings = system_means(scores, design), system_means(ratings, design)
    few = swap_systems(scores, ratings, "spearman", 500, 3, 0)
    more = swap_systems(scores, ratings, "spearman", 500, 3, 4000)
    stopped = few >= (1 + ENOUGH) / 501
    np.testing.assert_array_equal(more[stopped], few[stopped])
    assert few[~stopped].min() == 1 / 501
    assert more[~stopped].min() == 1 / 4001
    two = swap_systems(scores[[2, 15]], ratings, "spearman", 500, 3, 4000)
    assert two[0, 1] == more[2, 15]


GOLD = [1, 2, 3, 4, 5, 5, 7, 8]
ONE = [1, 2, 3, 3, 7, 3, 5, 5]
TWO = [2, 1, 2, 6, 8, 8, 7, 6]


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_perm_both_of_mt_metrics_eval_example(name):
    # Data of PermutationSigDiffTest in mt-metrics-eval's stats_test.py; all 256 swaps give the exact p.
    design = Design(np.repeat(np.arange(4), 2), np.tile(np.arange(2), 4))
    rng, gold = np.random.default_rng(0), np.array(GOLD, dtype=float)
    drawn = swapped_differences(ONE, TWO, gold, design, np.arange(8), name, None, resamples=20_000, rng=rng)
    a, b = stats.zscore([ONE, TWO], axis=1)
    masks = (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    exact = [
        abs(correlate(np.where(m, a, b), gold, name).value - correlate(np.where(m, b, a), gold, name).value)
        for m in masks
    ]
    observed = exact[0] - 1e-12
    assert np.mean(drawn >= observed) == pytest.approx(np.mean(np.array(exact) >= observed), abs=0.015)
