"""Intervals of correlations: what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats.design import Design
from comperdial.stats.intervals import intervals
from sampled import crossed, sample


def of_means(x, y):
    """Return the intervals over systems that have one response each: shape (coefficients,)."""
    design = Design(np.arange(len(x)), np.zeros(len(x), dtype=int), average=True)
    found = intervals(np.asarray(x)[np.newaxis], np.asarray(y), design, NAMES, resamples=2, seed=1)
    return found.low[0], found.high[0]


def test_more_confidence_is_wider_and_the_seed_decides():
    scores, ratings, design = sample(np.random.default_rng(5), 20, 8, 2)
    wide, narrow, again = (
        intervals(scores, ratings, design, NAMES, resamples=100, seed=3, confidence=c) for c in (0.95, 0.8, 0.8)
    )
    assert (wide.low < narrow.low).all() and (narrow.low < narrow.value).all() and (narrow.value < narrow.high).all()
    np.testing.assert_array_equal(narrow.low, again.low)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("dialogues", [1, 20])
def test_which_designs_have_an_interval(average, dialogues):
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


def test_an_interval_of_few_systems_agrees_with_their_exact_p():
    # Four in perfect order: the exact p is 1 / 12. Pearson .92: p is .08.
    low, high = of_means([1.0, 2, 3, 4], [1.0, 3, 4, 9])
    assert (low < 0).all() and (high > 0.9).all()
    # Of six in perfect order it is 1 / 360.
    low, high = of_means(np.arange(6.0), np.arange(6.0) ** 2)
    assert (low > 0.3).all() and high[1:] == pytest.approx(1)
    # On a line there is no Pearson interval.
    assert np.isnan(of_means(np.arange(6.0), np.arange(6.0))[0]).tolist() == [True, False, False]


@pytest.mark.parametrize("average", [False, True])
def test_over_many_systems_the_width_is_that_of_fisher(average):
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
