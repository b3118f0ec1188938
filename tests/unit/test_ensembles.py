"""Ensembles over dimensions and over models."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.evaluation.ensembles import Ensembles, combined, is_ensemble, output_name
from comperdial.evaluation.samples import Sample
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design

N = 12
JUDGE = [("judge", dimension) for dimension in sorted(DIMENSIONS["turn"])]


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(2)
    names = (("bleu", "mean"), *JUDGE)
    scores = rng.normal(size=(len(names), N)) * np.array([50, 1, 1, 1, 1, 1])[:, np.newaxis]
    scores[0, 3] = np.nan
    codes = np.arange(N)
    return Sample(
        dataset="d", level="turn", against="turn", target="overall", names=names, scores=scores, annotators=("a",),
        single=rng.normal(size=(1, N)), ratings=rng.normal(size=N), design=Design(np.zeros_like(codes), codes),
        items=codes, units=tuple((str(k), "s") for k in range(N)), systems=("s",), coverage=(1.0,) * 6, cut=(0,) * 6,
        signatures=("bleu|v:1", *("judge|v:1",) * 5),
    )  # fmt: skip


def row(sample, *name):
    return sample.scores[sample.names.index(name)]


def test_a_judges_four_dimensions_are_averaged_as_they_are(sample):
    found = Ensembles(dimensions=("judge",)).added(sample)
    own = [row(sample, "judge", name) for name in DIMENSIONS["turn"] if name != "overall"]
    np.testing.assert_allclose(row(found, "ensemble-dimensions:judge", "mean"), np.mean(own, axis=0))
    assert found.names == tuple(sorted(found.names))
    signature = found.signatures[found.names.index(("ensemble-dimensions:judge", "mean"))]
    assert "members:relevance+specificity+interestingness+understandability|scale:plain" in signature
    # The others keep their own rows.
    np.testing.assert_array_equal(row(found, "bleu", "mean"), row(sample, "bleu", "mean"))


APART = [("i-" + name[:3], name) for name in DIMENSIONS["turn"]]
WHOLE = [f"i-{name[:3]}:{name}" for name in DIMENSIONS["dialogue"][:-1]]


def asked_apart(sample):
    """Return the sample as of a judge whose every dimension is a metric of its own."""
    known = {("judge", dimension): (metric, dimension) for metric, dimension in APART}
    return replace(sample, names=tuple(known.get(name, name) for name in sample.names))


def test_a_judge_of_one_metric_a_dimension_is_averaged_as_one(sample):
    apart = asked_apart(sample)
    # In any order, of both levels: those of the sample's count; overall is the direct score, and no member.
    outputs = [*WHOLE, *(f"{metric}:{output}" for metric, output in reversed(APART)), "i-dial:overall"]
    ensembles = Ensembles.of({"dimensions": ["judge", {"implicit_mine": outputs}]})
    ensembles.check([*sample.names, *apart.names, *(output_name(name) for name in [*WHOLE, "i-dial:overall"])])
    found, expected = ensembles.added(apart), Ensembles.of({"dimensions": ["judge"]}).added(sample)
    name = ("ensemble-dimensions:implicit_mine", "mean")
    np.testing.assert_array_equal(row(found, *name), row(expected, "ensemble-dimensions:judge", "mean"))
    signature = found.signatures[found.names.index(name)]
    assert "members:relevance+specificity+interestingness+understandability|scale:plain" in signature
    assert ensembles.direct == {"judge": "judge", "i-ove": "implicit_mine", "i-dial": "implicit_mine"}
    assert ensembles.made_of(name[0]) == {metric for metric, output in [*APART, *map(output_name, WHOLE)]} - {"i-ove"}
    assert ensembles.made_of("ensemble-dimensions:judge") == ensembles.made_of("judge") == {"judge"}
    assert Ensembles.of({"models": {"m": ["a:b", "c"]}}).made_of("ensemble-models:m") == {"a", "c"}


def test_a_judge_asked_about_dialogues_alone_has_no_mean_of_turns(sample):
    assert Ensembles.of({"dimensions": [{"implicit_mine": WHOLE}]}).added(sample) is sample


def test_models_are_standardised_over_the_items_that_all_have(sample):
    found = Ensembles.of({"models": {"two": ["bleu:mean", "judge:overall"]}}).added(sample)
    both = ~np.isnan(row(sample, "bleu", "mean"))
    expected = np.full(N, np.nan)
    expected[both] = (
        stats.zscore(row(sample, "bleu", "mean")[both]) + stats.zscore(row(sample, "judge", "overall")[both])
    ) / 2
    np.testing.assert_allclose(row(found, "ensemble-models:two", "mean"), expected, atol=1e-12)
    at = found.names.index(("ensemble-models:two", "mean"))
    assert found.coverage[at] == pytest.approx((N - 1) / N)
    assert "members:bleu:mean+judge:overall|scale:z|" in found.signatures[at]


def test_a_member_without_output_stands_for_each_dimension(sample):
    found = Ensembles.of({"models": {"m": {"members": ["judge", "bleu:mean"], "scale": "plain"}}}).added(sample)
    made = [name for name in found.names if is_ensemble(name[0])]
    assert made == [("ensemble-models:m", dimension) for dimension in sorted(DIMENSIONS["turn"])]
    expected = (row(sample, "judge", "relevance") + row(sample, "bleu", "mean")) / 2
    np.testing.assert_allclose(row(found, "ensemble-models:m", "relevance"), expected)


def test_an_ensemble_lacking_a_member_is_not_made(sample):
    part = sample.only([name for name in sample.names if name != ("judge", "relevance")])
    assert Ensembles(dimensions=("judge",)).added(part) is part


@given(st.sampled_from(JUDGE), st.sampled_from(["z", "plain"]))
def test_an_ensemble_of_one_member_is_the_member(name, scale):
    rng = np.random.default_rng(9)
    scores, ratings = rng.normal(size=(5, N)), rng.normal(size=N)
    member = scores[JUDGE.index(name)]
    found = combined(member[np.newaxis], scale)
    for coefficient in ("pearson", "spearman", "kendall"):
        assert correlate(found, ratings, coefficient).value == pytest.approx(
            correlate(member, ratings, coefficient).value
        )


_numbers = st.lists(st.integers(-50, 50), min_size=6, max_size=6)


@given(_numbers, _numbers, st.floats(0.1, 100), st.floats(-100, 100))
def test_z_does_not_depend_on_a_members_scale(one, other, factor, offset):
    a, b = np.array(one, dtype=float), np.array(other, dtype=float)
    np.testing.assert_allclose(
        combined(np.stack([a * factor + offset, b]), "z"), combined(np.stack([a, b]), "z"), atol=1e-6
    )


def test_a_member_that_does_not_vary_adds_nothing():
    scores = np.stack([np.full(5, 0.1), np.arange(5.0)])
    np.testing.assert_allclose(combined(scores, "z"), stats.zscore(np.arange(5.0)) / 2)


def test_missing_everywhere_is_missing():
    assert np.isnan(combined(np.array([[np.nan, 1.0], [1.0, np.nan]]), "z")).all()
    with pytest.raises(ValueError, match="unknown scale"):
        combined(np.ones((1, 2)), "rank")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"dimension": []}, "unknown kind of ensemble 'dimension'.*Did you mean 'dimensions'"),
        ({"dimensions": "judge"}, "ensembles, dimensions: no list of metrics"),
        ({"dimensions": ["judge", "judge"]}, "judge stands twice"),
        ({"dimensions": ["judge", {"judge": WHOLE}]}, "judge stands twice"),
        ({"dimensions": [{"i": "a:relevance"}]}, "ensembles, dimensions, i: no list of outputs"),
        ({"dimensions": [{"i": ["a:relevence"]}]}, "unknown dimension 'relevence'.*Did you mean 'relevance'"),
        ({"dimensions": [{"i": [*WHOLE, "b:coherence"]}]}, "dimensions, i: coherence stands twice"),
        ({"dimensions": [{"i": WHOLE[1:]}]}, "dimensions, i: no output for coherence"),
        ({"dimensions": [{"i": ["a:overall"]}]}, "dimensions, i: no output for"),
        ({"models": ["a:b"]}, "ensembles, models: no object"),
        ({"models": {"m": ["a:b", "a:b"]}}, "ensembles, models, m: no list of members"),
        ({"models": {"m": {"members": ["a:b"], "scale": "rank"}}}, "unknown scale 'rank'"),
        ({"models": {"m": {"members": ["a:b"], "scales": "z"}}}, "unknown setting 'scales'"),
        ({"models": {"m": [":b"]}}, "output ':b'; expected METRIC:OUTPUT"),
    ],
)
def test_what_is_no_ensemble_is_refused(value, message):
    with pytest.raises(ConfigError, match=message):
        Ensembles.of(value)


def test_a_member_that_no_set_has_is_refused(sample):
    for value in ({"dimensions": ["jduge"]}, {"models": {"m": ["jduge"]}}, {"models": {"m": ["judge:overal"]}}):
        with pytest.raises(UnknownNameError, match="Did you mean 'judge"):
            Ensembles.of(value).check(sample.names)
    with pytest.raises(UnknownNameError, match="ensembles, dimensions, i: unknown output 'i-coh:coherence'"):
        Ensembles.of({"dimensions": [{"i": WHOLE}]}).check(sample.names)
    Ensembles.of({"dimensions": ["judge"], "models": {"m": ["judge", "bleu:mean"]}}).check(sample.names)


def test_a_metrics_name_may_hold_colons():
    assert output_name("ensemble-dimensions:judge:mean") == ("ensemble-dimensions:judge", "mean")
