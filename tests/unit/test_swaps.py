"""Permutation tests: whole systems swapped, and PERM-BOTH."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.means import paired_means
from comperdial.stats.pairs import replicates
from comperdial.stats.swaps import ENOUGH, draw_signs, swap_systems, swap_systems_of_pairs, swapped_differences


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


def test_more_swaps_go_to_small_p_only_and_do_not_depend_on_other_pairs():
    rng = np.random.default_rng(21)
    quality = rng.normal(size=60)
    scores = np.repeat([1.0, 0.2], 10)[:, None] * quality + 0.3 * rng.normal(size=(20, 60))
    ratings = quality + 0.4 * rng.normal(size=60)
    few = swap_systems(scores, ratings, "spearman", 500, 3, 0)
    more = swap_systems(scores, ratings, "spearman", 500, 3, 4000)
    stopped = few >= (1 + ENOUGH) / 501
    np.testing.assert_array_equal(more[stopped], few[stopped])
    assert few[~stopped].min() == 1 / 501
    assert more[~stopped].min() == 1 / 4001
    two = swap_systems(scores[[2, 15]], ratings, "spearman", 500, 3, 4000)
    assert two[0, 1] == more[2, 15]


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


@pytest.mark.parametrize("measure", ["spa", "accuracy", "tau_23", "tau_c"])
def test_swaps_of_systems_are_recomputed(units, measure):
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
    assert p[0, 1] == pytest.approx(far / len(swaps), abs=0.05)


@pytest.mark.parametrize("measure", ["tau_c", "accuracy", "tau_23", "acc_eq", "spa"])
def test_a_metric_does_not_differ_from_itself(units, measure):
    x, y, design, items = units
    constant = np.ones(len(y))
    p = swap_systems_of_pairs(
        np.stack([x[1], x[1], 2 * x[1] + 1, constant]), y, design, items, measure, resamples=50, seed=1
    )
    assert (p[:3, :3] == 1).all()
    assert np.isnan(p[3]).all()
    few = design.of(design.systems < 3)
    kept = design.systems < 3
    p = swap_systems_of_pairs(x[:, kept], y[kept], few, items[kept], measure, resamples=50, seed=1)
    np.testing.assert_array_equal(p, [[1, np.nan], [np.nan, 1]])


# PERM-BOTH


GOLD = [1, 2, 3, 4, 5, 5, 7, 8]
ONE = [1, 2, 3, 3, 7, 3, 5, 5]
TWO = [2, 1, 2, 6, 8, 8, 7, 6]


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_perm_both_of_mt_metrics_eval_example(name):
    # Data of PermutationSigDiffTest in mt-metrics-eval's stats_test.py; all 256 swaps give the exact p.
    design = Design(np.repeat(np.arange(4), 2), np.tile(np.arange(2), 4))
    rng, gold = np.random.default_rng(0), np.array(GOLD, dtype=float)
    drawn = swapped_differences([ONE, TWO], gold, design, np.arange(8), name, None, resamples=20_000, rng=rng)
    a, b = stats.zscore([ONE, TWO], axis=1)
    masks = (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    exact = [
        abs(correlate(np.where(m, a, b), gold, name).value - correlate(np.where(m, b, a), gold, name).value)
        for m in masks
    ]
    observed = exact[0] - 1e-12
    assert np.mean(drawn >= observed) == pytest.approx(np.mean(np.array(exact) >= observed), abs=0.015)


def test_verdicts_and_means_are_swapped():
    rng = np.random.default_rng(5)
    system, dialogue = (axis.ravel() for axis in np.indices((12, 30)))
    design, y = Design(system, dialogue), rng.normal(size=360) + system / 6
    x = np.stack([y + rng.normal(size=360) * 0.5, rng.normal(size=360)])
    for measure, grouping in (("acc_eq", "item"), ("acc_eq", "system"), ("accuracy", "pooled"), ("kendall", "pooled")):
        values = replicates(x, y, design, dialogue, [measure], grouping)[measure].values
        drawn = swapped_differences(x, y, design, dialogue, measure, grouping, resamples=200, rng=rng)
        assert np.mean(drawn >= values[0] - values[1]) < 0.05
        same = swapped_differences(x[[0, 0]], y, design, dialogue, measure, grouping, resamples=20, rng=rng)
        assert (same == 0).all()
    none = swapped_differences(x, y, design, dialogue, "spa", "pooled", resamples=20, rng=rng)
    assert np.isnan(none).all()
