"""Intervals of correlations, learning curves and power."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals
from comperdial.stats.sizes import Components, components, sample_curve, subsample_curve
from sampled import crossed, sample

NONE = float("nan")

# Intervals


def of_means(x, y):
    """Return the intervals over systems that have one response each: shape (coefficients,)."""
    design = Design(np.arange(len(x)), np.zeros(len(x), dtype=int), average=True)
    made = intervals(np.asarray(x)[np.newaxis], np.asarray(y), design, NAMES, resamples=2, seed=1)
    return made.low[0], made.high[0]


def test_more_confidence_is_wider_and_the_seed_decides():
    scores, ratings, design = sample(np.random.default_rng(5), 20, 8, 2)
    wide, narrow, again = (
        intervals(scores, ratings, design, NAMES, resamples=100, seed=3, confidence=c) for c in (0.95, 0.8, 0.8)
    )
    assert (wide.low < narrow.low).all() and (narrow.low < narrow.value).all() and (narrow.value < narrow.high).all()
    np.testing.assert_array_equal(narrow.low, again.low)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("dialogues", [1, 20])
def test_designs_with_an_interval(average, dialogues):
    """Two or three systems are given: over their means there is none, over units it is of dialogues alone."""
    known = {}
    for systems in (3, 30):
        scores, ratings, design = sample(np.random.default_rng(6), systems, dialogues, 2, average=average)
        found = intervals(scores, ratings, design, NAMES, resamples=60, seed=1)
        assert not np.isnan(found.value).any()
        known[systems] = (~np.isnan(found.low)).all(), found.given.all()
    assert known == {3: (not average and dialogues > 1, True), 30: (True, False)}


def test_intervals_of_few_systems_cover():
    """Nineteen of twenty, over populations whose Kendall's tau is anything."""
    rng, covered = np.random.default_rng(4), []
    for rho in np.repeat((0.0, 0.5, 0.9), 30):
        x, noise = rng.normal(size=(2, 4))
        low, high = of_means(x, rho * x + np.sqrt(1 - rho**2) * noise)
        truth = np.array([rho, 6 / np.pi * np.arcsin(rho / 2), 2 / np.pi * np.arcsin(rho)])
        covered.append((low <= truth) & (truth <= high))
    assert (np.mean(covered, axis=0) > 0.9).all() and np.mean(covered) < 0.995


def test_interval_over_few_systems_agrees_with_exact_p():
    # Four in perfect order: the exact p is 1 / 12. Pearson .92: p is .08.
    low, high = of_means([1.0, 2, 3, 4], [1.0, 3, 4, 9])
    assert (low < 0).all() and (high > 0.9).all()
    # Of six in perfect order it is 1 / 360.
    low, high = of_means(np.arange(6.0), np.arange(6.0) ** 2)
    assert (low > 0.3).all() and high[1:] == pytest.approx(1)
    # On a line there is no Pearson interval.
    assert np.isnan(of_means(np.arange(6.0), np.arange(6.0))[0]).tolist() == [True, False, False]


def test_interval_over_few_ranks_matches_simulated_posterior():
    """With a uniform prior on the population's tau; of five systems, a value in the middle of the possible ones."""
    rng, n = np.random.default_rng(11), 5
    tau = rng.uniform(-1, 1, 40_000)
    x, noise = rng.normal(size=(2, len(tau), n))
    rho = np.sin(np.pi * tau / 2)[:, np.newaxis]
    a, b = (side.argsort().argsort() - 2 for side in (x, rho * x + np.sqrt(1 - rho**2) * noise))
    signs = np.sign((a[:, :, None] - a[:, None]) * (b[:, :, None] - b[:, None])).sum(axis=(1, 2))
    low, high = of_means([1.0, 2, 3, 4, 5], [2.0, 1, 3, 5, 4])
    spearman, kendall = tau[np.isclose((a * b).sum(axis=1) / 10, 0.8)], tau[np.isclose(signs / 20, 0.6)]
    ends = 6 / np.pi * np.arcsin(np.sin(np.pi * np.quantile(spearman, [0.025, 0.975]) / 2) / 2)
    assert (low[1], high[1]) == pytest.approx(ends, abs=0.04)
    assert (low[2], high[2]) == pytest.approx(np.quantile(kendall, [0.025, 0.975]), abs=0.04)


@pytest.mark.parametrize(("systems", "same"), [(10, True), (11, False)])
def test_up_to_ten_systems_intervals_over_means_ignore_the_resamples(systems, same):
    x, y = np.random.default_rng(12).normal(size=(2, systems))
    design = Design(np.arange(systems), np.zeros(systems, dtype=int), average=True)
    one, other = (intervals((x + y)[np.newaxis], y, design, NAMES, resamples=60, seed=seed).low for seed in (1, 2))
    assert np.array_equal(one, other) == same


@pytest.mark.parametrize("average", [False, True])
def test_width_over_many_systems_matches_fisher(average):
    """Over units with one turn each, and over means, whatever a system alone does in each of twenty dialogues."""
    rng, (systems, dialogues) = np.random.default_rng(3), (100, 20) if average else (200, 1)
    design = crossed(systems, dialogues, 1, average=average)
    x = rng.normal(size=systems)[design.systems]
    y = x + 1.5 * rng.normal(size=systems)[design.systems]
    x, y = (side + average * 4 * rng.normal(size=len(x)) for side in (x, y))
    found = intervals(x[np.newaxis], y, design, ["pearson"], resamples=200, seed=1)
    width = np.arctanh(found.high[0, 0]) - np.arctanh(found.low[0, 0])
    assert width == pytest.approx(2 * 1.96 / np.sqrt(systems - 3), rel=0.2)


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 6), st.booleans())
def test_ends_are_between_minus_one_and_one_and_order_and_scale_do_not_matter(seed, systems, dialogues, average):
    rng, options = np.random.default_rng(seed), {"resamples": 20, "seed": 7}
    scores, ratings, design = sample(rng, systems, dialogues, 2, average=average, missing=0.05)
    found = intervals(scores, ratings, design, NAMES, **options)
    for end in (found.value, found.low, found.high):
        assert (((end >= -1) & (end <= 1)) | np.isnan(end)).all()
    assert ((found.low <= found.high) | np.isnan(found.low) & np.isnan(found.high)).all()
    order = rng.permutation(len(ratings))
    turned = Design(design.systems[order], design.dialogues[order], average)
    other = intervals(scores[:, order] * 3 + 2, ratings[order] * 0.5 - 1, turned, NAMES, **options)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(other, name), getattr(found, name), rtol=0, atol=1e-6)


# Curves and power


def rated(seed, design, metrics=4):
    """Return scores of metrics on a quality, and the ratings of three annotators."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=design.systems.max() + 1)[design.systems] + rng.normal(size=len(design.systems))
    scores = np.linspace(0.2, 2, metrics)[:, None] * truth + rng.normal(size=(metrics, len(truth)))
    return scores, np.clip(np.round(truth + rng.normal(size=(3, len(truth)))), -2, 2)


def plain(scores, ratings, design, name, chosen):
    """Return the coefficients of the chosen units."""
    found = []
    for row in scores:
        kept = chosen & ~np.isnan(row) & ~np.isnan(ratings)
        x, y = row[kept], ratings[kept]
        if design.average:
            systems = np.unique(design.systems[kept])
            x, y = (np.array([side[design.systems[kept] == s].mean() for s in systems]) for side in (x, y))
        found.append(correlate(x, y, name).value)
    return np.array(found)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["pearson", "kendall"])
def test_subset_matches_a_loop(name, average):
    design = crossed(8, 6, 3, average)
    scores, annotators = rated(1, design)
    ratings = annotators[0]
    scores[1] = np.round(scores[1])
    scores[2, ::4], scores[3], ratings[::9] = NONE, 1, NONE
    curve = subsample_curve(scores, ratings[None], design, name, varied="dialogues", sizes=(1, 6), repeats=50, seed=0)
    single = [plain(scores, ratings, design, name, design.dialogues == code) for code in range(6)]
    np.testing.assert_allclose(curve.value[1], plain(scores, ratings, design, name, True), atol=1e-12)
    # So many draws meet each dialogue several times, and the outer 2.5 % of them the lowest and the highest.
    for of, ends in ((np.nanmin, curve.low), (np.nanmax, curve.high)):
        np.testing.assert_allclose(ends[0, :3], of(np.array(single)[:, :3], axis=0), atol=1e-12)
    assert np.isnan(curve.value[:, 3]).all()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["spearman", "kendall"])
def test_subsets_of_systems_match_a_loop(name, average):
    design = crossed(8, 6, 3, average)
    scores, annotators = rated(2, design)
    ratings = annotators[0]
    scores[1] = np.round(scores[1])
    # One metric did not score a system, and nobody rated some of the units.
    scores[2, design.systems == 3], ratings[::9] = NONE, NONE
    curve = subsample_curve(scores, ratings[None], design, name, varied="systems", sizes=(7,), repeats=100, seed=0)
    left_out = np.array([plain(scores, ratings, design, name, design.systems != code) for code in range(8)])
    for of, ends in ((np.min, curve.low), (np.max, curve.high)):
        np.testing.assert_allclose(ends[0], of(left_out, axis=0), atol=1e-12)


@pytest.mark.parametrize(("varied", "count"), [("systems", 9), ("dialogues", 7), ("annotators", 3)])
def test_curve_ends_at_full_data(varied, count):
    design = crossed(9, 7, 2)
    scores, annotators = rated(3, design)
    options = {"varied": varied, "repeats": 30, "seed": 4}
    curve = subsample_curve(scores, annotators, design, "spearman", sizes=(2, count), **options)
    whole = [correlate(row, annotators.mean(axis=0), "spearman").value for row in scores]
    for side in (curve.value, curve.low, curve.high):
        np.testing.assert_allclose(side[1], whole, rtol=0, atol=1e-12)
    assert curve.agreement[1] == pytest.approx(1)
    assert (curve.low[0] < curve.high[0]).all() and curve.repeats.tolist() == [30, 1]
    # What is drawn for a size does not depend on the others.
    again = subsample_curve(scores, annotators, design, "spearman", sizes=(2,), **options)
    np.testing.assert_array_equal(again.value[0], curve.value[0])


def test_judge_samples():
    design = crossed(12, 6, 1)
    scores, annotators = rated(7, design, metrics=2)
    samples = scores[:, None] + 3 * np.random.default_rng(8).normal(size=(2, 4, scores.shape[1]))
    samples[1, 2:] = NONE
    ratings = annotators.mean(axis=0)
    curve = sample_curve(samples, ratings, design, "pearson", sizes=(1, 2, 4), repeats=60, seed=1, others=[0.99])
    assert curve.value[2, 0] == pytest.approx(correlate(samples[0].mean(axis=0), ratings, "pearson").value)
    assert curve.value[1, 1] == pytest.approx(correlate(samples[1, :2].mean(axis=0), ratings, "pearson").value)
    assert np.isnan(curve.value[2, 1])
    assert curve.value[0, 0] < curve.value[1, 0] < curve.value[2, 0]


@pytest.mark.parametrize("average", [False, True])
def test_components_match_leaving_one_out(average):
    design = crossed(30, 12, 2, average)
    scores, annotators = rated(10, design, metrics=2)
    ratings = annotators.mean(axis=0)
    (found,) = components(scores, ratings, design, "pearson", [(1, 0)])

    def effect(chosen):
        low, high = np.arctanh(plain(scores, ratings, design, "pearson", chosen))
        return high - low

    assert found.effect == pytest.approx(effect(np.full(len(ratings), True)))
    assert found.counts == (30, 12)
    for codes, count, variance in (
        (design.systems, 30, found.systems / 30 + found.cells / 360),
        (design.dialogues, 12, found.dialogues / 12 + found.cells / 360),
    ):
        left = np.array([effect(codes != code) for code in range(count)])
        jackknife = (count - 1) / count * np.sum((left - left.mean()) ** 2)
        # A component below 0 is put to 0, which leaves the cells alone. Dialogues of means are drawn by halves.
        rel = 0.6 if average and count == 12 else 0.12
        assert variance == pytest.approx(max(jackknife, found.cells / 360), rel=rel)


variances = st.floats(0.01, 20.0)


@settings(max_examples=20)
@given(st.floats(0.01, 1.0), variances, variances, variances, st.integers(3, 200), st.integers(3, 60))
def test_power_rises_with_numbers_and_with_the_effect(effect, a, b, c, systems, dialogues):
    def power(effect, more=0):
        return Components(0.1, effect, a, b, c, (systems, dialogues)).power(systems + more, dialogues + more)

    here = power(effect)
    assert 0.05 - 1e-4 <= here <= 1 and power(-effect) == here
    assert min(power(effect, 50), power(1.5 * effect)) >= here - 1e-6


@pytest.mark.parametrize("variances", [(1e4, 0.0, 0.0), (0.0, 1e4, 0.0), (0.0, 0.0, 1e8)])
def test_power_matches_z_test_for_large_samples(variances):
    # Two-sided 5 % test, effect 2.8 standard errors: 80 % power (normal quantiles 1.96 + 0.84).
    pair = Components(0.1, 2.802, *variances, (10_000, 10_000))
    assert pair.power(10_000, 10_000) == pytest.approx(0.80, abs=0.001)
