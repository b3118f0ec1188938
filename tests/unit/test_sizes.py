"""Learning curves and power."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats import COEFFICIENTS
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.sizes import Components, components, mean_of, sample_curve, subsample_curve

NONE = float("nan")


def _crossed(systems, dialogues, turns=1, average=False):
    codes = np.indices((systems, dialogues, turns)).reshape(3, -1)
    return Design(codes[0], codes[1], average)


def _drawn(seed, design, metrics=4):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=design.systems.max() + 1)[design.systems] + rng.normal(size=len(design.systems))
    scores = np.linspace(0.2, 2, metrics)[:, None] * truth + rng.normal(size=(metrics, len(truth)))
    annotators = np.clip(np.round(truth + rng.normal(size=(3, len(truth)))), -2, 2)
    return scores, annotators


def _values(scores, ratings, design, name, chosen):
    """The coefficients of the chosen units, plainly."""
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
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_subset_has_the_values_of_a_loop(name, average):
    design = _crossed(8, 6, 3, average)
    scores, annotators = _drawn(1, design)
    ratings = annotators[0]
    scores[1] = np.round(scores[1])
    scores[2, ::4], scores[3], ratings[::9] = NONE, 1, NONE
    curve = subsample_curve(scores, ratings[None], design, name, varied="dialogues", sizes=(1, 6), repeats=50, seed=0)
    single = [_values(scores, ratings, design, name, design.dialogues == code) for code in range(6)]
    np.testing.assert_allclose(curve.value[1], _values(scores, ratings, design, name, True), atol=1e-12)
    # So many draws meet each dialogue several times, and the outer 2.5 % of them the lowest and the highest.
    for of, ends in ((np.nanmin, curve.low), (np.nanmax, curve.high)):
        np.testing.assert_allclose(ends[0, :3], of(np.array(single)[:, :3], axis=0), atol=1e-12)
    assert np.isnan(curve.value[:, 3]).all()


@pytest.mark.parametrize("varied", ["systems", "dialogues", "annotators"])
def test_a_curve_ends_at_the_whole(varied):
    design = _crossed(9, 7, 2)
    scores, annotators = _drawn(3, design)
    count = {"systems": 9, "dialogues": 7, "annotators": 3}[varied]
    curve = subsample_curve(scores, annotators, design, "spearman", varied=varied, sizes=(2, count), repeats=30, seed=4)
    whole = [correlate(row, annotators.mean(axis=0), "spearman").value for row in scores]
    for side in (curve.value, curve.low, curve.high):
        np.testing.assert_allclose(side[1], whole, rtol=0, atol=1e-12)
    assert curve.agreement[1] == pytest.approx(1)
    assert curve.agreement[0] < 1 or varied == "annotators"
    assert (curve.low[0] < curve.high[0]).all() and curve.repeats.tolist() == [30, 1]
    # What is drawn for a size does not depend on the others; another seed draws another.
    again = subsample_curve(scores, annotators, design, "spearman", varied=varied, sizes=(2,), repeats=30, seed=4)
    np.testing.assert_array_equal(again.value[0], curve.value[0])
    other = subsample_curve(scores, annotators, design, "spearman", varied=varied, sizes=(2,), repeats=30, seed=5)
    assert (other.value != again.value).any()


def test_all_subsets_of_annotators_are_met():
    design = _crossed(10, 5)
    scores, annotators = _drawn(6, design)
    annotators[0, ::3] = NONE
    curve = subsample_curve(scores, annotators, design, "pearson", varied="annotators", sizes=(1,), repeats=400, seed=0)
    single = np.array([[correlate(row, one, "pearson").value for row in scores] for one in annotators])
    np.testing.assert_allclose(curve.low[0], single.min(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.high[0], single.max(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.value[0], single.mean(axis=0), rtol=0, atol=0.05)


def test_samples_of_a_judge():
    design = _crossed(12, 6)
    scores, annotators = _drawn(7, design, metrics=2)
    rng = np.random.default_rng(8)
    samples = scores[:, None] + 3 * rng.normal(size=(2, 4, scores.shape[1]))
    samples[1, 2:] = NONE
    ratings = annotators.mean(axis=0)
    curve = sample_curve(samples, ratings, design, "pearson", sizes=(1, 2, 4), repeats=60, seed=1, others=[0.99])
    whole = [correlate(samples[0].mean(axis=0), ratings, "pearson").value]
    whole.append(correlate(samples[1, :2].mean(axis=0), ratings, "pearson").value)
    assert curve.value[2, 0] == pytest.approx(whole[0])
    assert curve.value[1, 1] == pytest.approx(whole[1]) and curve.low[1, 1] == curve.high[1, 1]
    assert np.isnan(curve.value[2, 1])
    assert curve.value[0, 0] < curve.value[1, 0] < curve.value[2, 0]
    assert curve.agreement[2] == 1


def test_mean_of_leaves_out_what_is_missing():
    np.testing.assert_array_equal(mean_of(np.array([[1.0, NONE, NONE], [3.0, 5.0, NONE]])), [2.0, 5.0, NONE])


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_components_are_those_of_leaving_one_out(name, average):
    design = _crossed(30, 12, 2, average)
    scores, annotators = _drawn(10, design, metrics=2)
    ratings = annotators.mean(axis=0)
    (found,) = components(scores, ratings, design, name, [(1, 0)])

    def effect(chosen):
        low, high = np.arctanh(_values(scores, ratings, design, name, chosen))
        return high - low

    assert found.effect == pytest.approx(effect(np.full(len(ratings), True)))
    assert found.counts == (30, 12)
    for codes, count, variance in (
        (design.systems, 30, found.systems / 30 + found.cells / 360),
        (design.dialogues, 12, found.dialogues / 12 + found.cells / 360),
    ):
        left = np.array([effect(codes != code) for code in range(count)])
        jackknife = (count - 1) / count * np.sum((left - left.mean()) ** 2)
        # A component below 0 is put to 0, which leaves the cells alone. Ranks of few means jump, so halves are drawn.
        rough = average and codes is design.dialogues
        if name == "pearson" or not rough:
            assert variance == pytest.approx(max(jackknife, found.cells / 360), rel=0.6 if rough else 0.12)


def test_a_missing_score_leaves_its_unit_out_for_the_pair():
    design = _crossed(12, 8)
    scores, annotators = _drawn(11, design, metrics=3)
    ratings = annotators[0]
    with_gap = scores.copy()
    gap = design.dialogues == 7
    with_gap[0, gap] = NONE
    fewer = Design(design.systems[~gap], design.dialogues[~gap])
    first = components(with_gap, ratings, design, "pearson", [(0, 1), (1, 2)])
    assert first[0] == components(scores[:, ~gap], ratings[~gap], fewer, "pearson", [(0, 1)])[0]
    assert first[1] == components(scores, ratings, design, "pearson", [(1, 2)])[0]


effects = st.floats(0.01, 1.0)
variances = st.floats(0.01, 20.0)


@settings(max_examples=80, deadline=None)
@given(effects, variances, variances, variances, st.integers(3, 200), st.integers(3, 60))
def test_power_rises_with_numbers_and_with_the_effect(effect, a, b, c, systems, dialogues):
    pair = Components(0.1, effect, a, b, c, (systems, dialogues))
    here = pair.power(systems, dialogues)
    assert 0.05 - 1e-4 <= here <= 1
    assert pair.power(systems + 50, dialogues + 50) >= here - 1e-6
    assert Components(0.1, 1.5 * effect, a, b, c, (systems, dialogues)).power(systems, dialogues) >= here - 1e-6
    assert Components(-0.1, -effect, a, b, c, (systems, dialogues)).power(systems, dialogues) == here


def test_power_of_a_z_test_with_many():
    # Two-sided 5 % test, effect 2.8 standard errors: 80 % power (normal quantiles 1.96 + 0.84).
    pair = Components(0.1, 2.802, 1e4, 0.0, 0.0, (10_000, 10_000))
    assert pair.power(10_000, 10_000) == pytest.approx(0.80, abs=0.001)
    assert Components(0, 50.0, 1.0, 1.0, 1.0, (10, 10)).power(10, 10) == 1


def test_power_of_pairs_and_what_cannot_be_known():
    design = _crossed(20, 10, 1, True)
    scores, annotators = _drawn(12, design, metrics=3)
    scores[2] = 1
    ratings = annotators.mean(axis=0)
    pairs = components(scores, ratings, design, "pearson", [(0, 1), (0, 2), (0, 0)])
    power = np.array([[[pair.power(s, d) for d in (5, 10)] for s in (5, 8, 12)] for pair in pairs])
    assert (np.diff(power[0], axis=0) > 0).all() and (np.diff(power[0], axis=1) >= 0).all()
    assert np.isnan(power[1:]).all()


@pytest.mark.parametrize("shape", [(5, 20, 1), (2, 3, 1), (1, 5, 1), (5, 1, 1)])
@pytest.mark.parametrize("average", [False, True])
def test_few_systems_and_empty_metrics_have_no_value_and_no_warning(shape, average, recwarn):
    design = _crossed(*shape, average)
    rng = np.random.default_rng(13)
    ratings = rng.integers(1, 6, len(design.systems)).astype(float)
    scores = np.stack([ratings + rng.normal(size=len(ratings)), np.full(len(ratings), NONE), np.ones(len(ratings))])
    annotators = np.stack([ratings, ratings])
    annotators[0, :2], annotators[1, 0] = NONE, NONE
    for name in COEFFICIENTS:
        pairs = components(scores, ratings, design, name, [(0, 1), (0, 2), (0, 0)])
        assert np.isnan([pair.power(4, 10) for pair in pairs]).all()
        for varied, count in (("systems", shape[0]), ("dialogues", shape[1]), ("annotators", 2)):
            curve = subsample_curve(
                scores, annotators, design, name, varied=varied, sizes=(1, count), repeats=3, seed=1
            )
            assert np.isnan(curve.value[:, 1:]).all() and np.isnan(curve.agreement).all()
    assert not recwarn.list


@pytest.fixture(scope="module")
def simulated():
    path = Path(__file__).resolve().parents[2] / "benchmarks/simulated.py"
    spec = importlib.util.spec_from_file_location("simulated_for_power", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("average", [False, True])
def test_predicted_power_is_what_simulated_benchmarks_show(simulated, average):
    skills, model = simulated.demo()
    metrics = [simulated.Metric(truth=1.0), simulated.Metric(truth=0.45 if average else 0.72)]

    def pair(rng, systems, dialogues):
        drawn = simulated.draw(rng, metrics, skills, model, systems=systems, dialogues=dialogues, turns=3)
        design = _crossed(systems, dialogues, 3, average)
        return components(drawn.scores.reshape(2, -1), drawn.turn.ravel(), design, "pearson", [(0, 1)])[0]

    def p(found):
        variance, freedom = found.variance(*found.counts)
        return 2 * stats.t.sf(abs(found.effect) / variance**0.5, freedom)

    rng = np.random.default_rng(22)
    rejected = np.mean([p(pair(rng, 40, 8)) < 0.05 for _ in range(60)])
    pilots = [pair(rng, 60, 12) for _ in range(20)]
    typical = Components(0.0, *np.mean([[p.effect, p.systems, p.dialogues, p.cells] for p in pilots], axis=0), (60, 12))
    assert typical.power(40, 8) == pytest.approx(rejected, abs=0.2)
