"""Learning curves and power."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.stats.correlation import correlate
from comperdial.stats.sizes import Components, components, sample_curve, subsample_curve
from sampled import crossed

NONE = float("nan")


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
def test_a_subset_has_the_values_of_a_loop(name, average):
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


@pytest.mark.parametrize(("varied", "count"), [("systems", 9), ("dialogues", 7), ("annotators", 3)])
def test_a_curve_ends_at_the_whole(varied, count):
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


def test_samples_of_a_judge():
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
def test_components_are_those_of_leaving_one_out(average):
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


def test_power_of_a_z_test_with_many():
    # Two-sided 5 % test, effect 2.8 standard errors: 80 % power (normal quantiles 1.96 + 0.84).
    pair = Components(0.1, 2.802, 1e4, 0.0, 0.0, (10_000, 10_000))
    assert pair.power(10_000, 10_000) == pytest.approx(0.80, abs=0.001)
    assert Components(0, 50.0, 1.0, 1.0, 1.0, (10, 10)).power(10, 10) == 1
