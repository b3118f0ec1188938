"""Intervals of correlations: what they promise."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coefficients import sample

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals


def test_an_interval_lies_about_the_value_and_is_the_same_again():
    scores, ratings, design = sample(np.random.default_rng(5), 20, 8, 2)
    found = intervals(scores, ratings, design, NAMES, resamples=200, seed=3)
    assert (found.low < found.value).all()
    assert (found.value < found.high).all()
    again = intervals(scores, ratings, design, NAMES, resamples=200, seed=3)
    np.testing.assert_array_equal(found.low, again.low)


def test_more_confidence_is_wider():
    scores, ratings, design = sample(np.random.default_rng(5), 20, 8, 2)
    low = [intervals(scores, ratings, design, NAMES, resamples=100, seed=3, confidence=c).low for c in (0.8, 0.95)]
    assert (low[0] > low[1]).all()


@pytest.mark.parametrize("average", [False, True])
def test_few_systems_with_a_dialogue_for_every_context(average):
    rng = np.random.default_rng(6)
    scores, ratings, design = sample(rng, 5, 60, 1, average=average)
    found = intervals(scores, ratings, design, NAMES, resamples=300, seed=1)
    given = ~np.isnan(found.low)
    assert (found.low[given] <= found.value[given]).all()
    assert (found.high[given] >= found.value[given]).all()
    if not average:
        assert given.all()


def test_three_systems_have_no_interval_over_systems():
    scores, ratings, design = sample(np.random.default_rng(6), 3, 20, 1, average=True)
    found = intervals(scores, ratings, design, NAMES, resamples=50, seed=1)
    assert not np.isnan(found.value).any()
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


def of_means(x, y):
    """Return the intervals over systems that have one response each: shape (coefficients,)."""
    design = Design(np.arange(len(x)), np.zeros(len(x), dtype=int), average=True)
    found = intervals(np.asarray(x)[np.newaxis], np.asarray(y), design, NAMES, resamples=2, seed=1)
    return found.low[0], found.high[0]


@pytest.mark.parametrize("systems", [4, 5, 8])
def test_intervals_of_few_systems_cover_and_the_narrow_ones_too(systems):
    rng, truths = np.random.default_rng(systems), (0.0, 0.3, 0.6, 0.9)
    covered, width = [], []
    for rho in np.repeat(truths, 100):
        x, noise = rng.normal(size=(2, systems))
        low, high = of_means(x, rho * x + np.sqrt(1 - rho**2) * noise)
        truth = np.array([rho, 6 / np.pi * np.arcsin(rho / 2), 2 / np.pi * np.arcsin(rho)])
        covered.append((low <= truth) & (truth <= high))
        width.append(high - low)
    for hit, wide in zip(np.transpose(covered), np.transpose(width), strict=True):
        assert 0.92 < hit.mean() < 0.995
        assert hit[wide <= np.quantile(wide, 0.2)].mean() > 0.85


def test_an_interval_of_four_systems_says_no_more_than_their_exact_p():
    # In perfect order: the exact p is 1 / 12. Pearson .92: p is .08.
    low, high = of_means([1.0, 2, 3, 4], [1.0, 3, 4, 9])
    assert (low < 0).all() and (high > 0.9).all()
    # Of six in perfect order it is 1 / 360.
    low, high = of_means(np.arange(6.0), np.arange(6.0) ** 2)
    assert (low > 0.3).all() and high[1:] == pytest.approx(1)
    # On a line there is no Pearson interval.
    assert np.isnan(of_means(np.arange(6.0), np.arange(6.0))[0]).tolist() == [True, False, False]


def test_one_dialogue_resamples_systems_alone():
    scores, ratings, design = sample(np.random.default_rng(6), 30, 1, 1)
    found = intervals(scores, ratings, design, NAMES, resamples=100, seed=1)
    assert (found.high - found.low > 0.1).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    systems=st.integers(1, 7),
    dialogues=st.integers(1, 6),
    turns=st.integers(1, 2),
    average=st.booleans(),
)
def test_intervals_are_between_minus_one_and_one(seed, systems, dialogues, turns, average):
    sampled = sample(np.random.default_rng(seed), systems, dialogues, turns, average=average, missing=0.1)
    found = intervals(*sampled, NAMES, resamples=20, seed=7)
    for end in (found.value, found.low, found.high):
        assert (((end >= -1) & (end <= 1)) | np.isnan(end)).all()
    assert (np.isnan(found.low) == np.isnan(found.high)).all()
    assert ((found.low <= found.high) | np.isnan(found.low)).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), systems=st.integers(4, 9), dialogues=st.integers(2, 6), average=st.booleans())
def test_order_and_scale_do_not_matter(seed, systems, dialogues, average):
    rng = np.random.default_rng(seed)
    scores, ratings, design = sample(rng, systems, dialogues, 2, average=average, missing=0.05)
    options = {"resamples": 40, "seed": 7}
    found = intervals(scores, ratings, design, NAMES, **options)
    order = rng.permutation(len(ratings))
    turned = Design(design.systems[order], design.dialogues[order], average)
    others = [
        (intervals(scores[:, order], ratings[order], turned, NAMES, **options), found),
        (intervals(scores * 3 + 2, ratings * 0.5 - 1, design, NAMES, **options), found),
    ]
    if not average:
        ranks = intervals(scores, ratings, design, NAMES[1:], **options)
        others.append((intervals(np.exp(scores / 2), ratings**3, design, NAMES[1:], **options), ranks))
    for other, expected in others:
        for name in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(other, name), getattr(expected, name), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["tau"]}, "unknown coefficient"),
        ({"resamples": 1}, "2 resamples"),
        ({"confidence": 1.0}, "confidence"),
        ({"scores": np.zeros((2, 3))}, "expected scores"),
        ({"ratings": np.full(80, np.nan)}, "expected a rating"),
    ],
)
def test_wrong_arguments(changes, message):
    scores, ratings, design = sample(np.random.default_rng(0), 8, 5, 2)
    arguments = {"scores": scores, "ratings": ratings, "names": NAMES, "seed": 1, **changes}
    with pytest.raises(ValueError, match=message):
        intervals(arguments.pop("scores"), arguments.pop("ratings"), design, arguments.pop("names"), **arguments)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_memory_grows_with_the_units_and_not_with_their_contexts(name):
    def peak(contexts):
        rng = np.random.default_rng(6)
        systems, dialogues = (axis.ravel() for axis in np.indices((3, contexts)))
        y = rng.integers(1, 6, len(systems)).astype(float)
        x = y + rng.normal(size=(1, len(y)))
        tracemalloc.start()
        intervals(x, y, Design(systems, dialogues), [name], resamples=20, seed=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # Units times contexts would be four times as much.
    assert peak(6000) < 2.6 * peak(3000)


def test_no_metrics_and_no_variation():
    scores, ratings, design = sample(np.random.default_rng(2), 8, 5, 2)
    assert intervals(scores[:0], ratings, design, NAMES, seed=1, resamples=20).low.shape == (0, 3)
    scores[0] = 0.1
    ends = intervals(scores, ratings, design, NAMES, seed=1, resamples=50)
    assert np.isnan(ends.low[0]).all() and np.isnan(ends.high[0]).all() and not np.isnan(ends.low[2]).any()
