"""Correlations of resamples against scipy on the repeated rows, and intervals for what they promise."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats import COEFFICIENTS as NAMES
from comperdial.stats import resampling
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.intervals import coefficients, draw_within, intervals
from comperdial.stats.resampling import Weights, weighted


def sample(rng, systems, dialogues, turns, *, metrics=3, missing=0.0, drop=0.0, average=False):
    """Scores, ratings and design; ratings are tied, one metric too, and half of the units may be gone."""
    s, d, _ = (codes.ravel() for codes in np.indices((systems, dialogues, turns)))
    kept = rng.random(len(s)) >= drop
    kept[:: max(1, len(s) // (systems * dialogues))] = True
    s, d = s[kept], d[kept]
    truth = rng.normal(size=systems)[s] + 0.3 * rng.normal(size=dialogues)[d] + rng.normal(size=len(s))
    ratings = np.clip(np.round(truth * 2) / 2, -2, 2)
    scores = np.stack([truth * k + rng.normal(size=len(s)) for k in range(metrics)])
    scores[-1] = np.round(scores[-1])
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores, ratings, Design(np.unique(s, return_inverse=True)[1], np.unique(d, return_inverse=True)[1], average)


def repeated(scores, ratings, design, of_systems, of_dialogues, name, of_cells=1):
    """The oracle: repeat the rows, or the means of systems, and ask scipy."""
    # Means that differ by rounding only are ties.
    digits = 15 if name == "pearson" else 11
    found = []
    for row in scores:
        kept = ~np.isnan(row)
        x, y, s, d = row[kept], ratings[kept], design.systems[kept], design.dialogues[kept]
        of_rows = np.broadcast_to(of_cells * of_dialogues, (len(of_systems), len(of_dialogues)))[s, d].astype(int)
        if not design.average:
            times = of_systems[s].astype(int) * of_rows
            found.append(correlate(np.repeat(x, times), np.repeat(y, times), name).value)
            continue
        a, b = [], []
        for system, times in enumerate(of_systems.astype(int)):
            rows = np.repeat(np.flatnonzero(s == system), of_rows[s == system])
            if len(rows):
                a += [round(float(x[rows].mean()), digits)] * times
                b += [round(float(y[rows].mean()), digits)] * times
        found.append(correlate(a, b, name).value)
    return found


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("systems", "dialogues", "turns", "drop"), [(6, 5, 1, 0), (12, 4, 3, 0.3), (5, 30, 1, 0), (40, 3, 2, 0)]
)
def test_weights_are_repeated_rows(systems, dialogues, turns, drop, missing, average):
    rng = np.random.default_rng([systems, dialogues, turns])
    scores, ratings, design = sample(rng, systems, dialogues, turns, missing=missing, drop=drop, average=average)
    one = rng.multinomial(systems, np.full(systems, 1 / systems), size=4).astype(float)
    other = rng.multinomial(dialogues, np.full(dialogues, 1 / dialogues), size=4).astype(float)
    cells = rng.multinomial(dialogues, np.full(dialogues, 1 / dialogues), size=(4, systems)).astype(np.uint16)
    schemes = [
        Weights(one, None),
        Weights(None, other),
        Weights(one, other),
        Weights(cells=cells),
        Weights(one, other, cells),
        Weights(),
    ]
    for scheme, found in zip(schemes, weighted(scores, ratings, design, NAMES, schemes), strict=True):
        assert found.shape == (scheme.count, len(scores), len(NAMES))
        for k, values in enumerate(found):
            of_systems = np.ones(systems) if scheme.systems is None else one[k]
            of_dialogues = np.ones(dialogues) if scheme.dialogues is None else other[k]
            of_cells = 1 if scheme.cells is None else cells[k]
            for at, name in enumerate(NAMES):
                expected = repeated(scores, ratings, design, of_systems, of_dialogues, name, of_cells)
                np.testing.assert_allclose(values[:, at], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("average", [False, True])
def test_coefficients_are_those_of_scipy(average):
    scores, ratings, design = sample(np.random.default_rng(1), 30, 6, 3, missing=0.1, average=average)
    found = coefficients(scores, ratings, design, NAMES)
    ones = np.ones(30), np.ones(6)
    expected = np.stack([repeated(scores, ratings, design, *ones, name) for name in NAMES], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_many_units_of_a_cell_and_large_weights_stay_exact():
    rng = np.random.default_rng(4)
    scores, ratings, design = sample(rng, 3, 2, 40)
    of_systems, of_dialogues = np.array([[60.0, 1, 0]]), np.array([[1.0, 70]])
    found = weighted(scores, ratings, design, NAMES, [Weights(of_systems, of_dialogues)])[0][0]
    for at, name in enumerate(NAMES):
        expected = repeated(scores, ratings, design, of_systems[0], of_dialogues[0], name)
        np.testing.assert_allclose(found[:, at], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("average", [False, True])
def test_no_variation_no_value(average):
    scores, ratings, design = sample(np.random.default_rng(2), 8, 5, 2, average=average)
    scores[0] = 0.1
    scores[1] = np.nan
    found = coefficients(scores, ratings, design, NAMES)
    assert np.isnan(found[:2]).all()
    assert not np.isnan(found[2]).any()
    ends = intervals(scores, ratings, design, NAMES, seed=1, resamples=50)
    assert np.isnan(ends.low[:2]).all()
    assert np.isnan(ends.high[:2]).all()
    assert not np.isnan(ends.low[2]).any()
    assert np.isnan(coefficients(scores, np.full_like(ratings, 0.1), design, NAMES)).all()


def test_a_resample_without_variation_has_no_value():
    scores = np.array([[0.1, 0.1, 0.7, 0.9]])
    design = Design(np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]))
    found = weighted(scores, np.array([1.0, 2, 3, 4]), design, NAMES, [Weights(np.array([[3.0, 0, 0]]), None)])[0]
    assert np.isnan(found).all()


@pytest.mark.parametrize("average", [False, True])
def test_equal_means_are_ties_whatever_the_order_of_a_sum(average):
    thirds = np.array([1 / 3, 2 / 3, 1.0, 2.0, 4 / 3, 5 / 3])
    ratings = np.concatenate([thirds, thirds[::-1], thirds + 1, thirds * 2])
    design = Design(np.repeat(np.arange(4), 6), np.tile(np.arange(6), 4), average=True)
    scores = ratings[np.newaxis] * 1.1 if average else np.arange(24.0)[np.newaxis]
    tau = coefficients(scores, ratings, design, ["kendall"])[0, 0]
    x = scores[0].reshape(4, 6).mean(axis=1).round(9)
    assert tau == pytest.approx(
        correlate(x, np.round(ratings.reshape(4, 6).mean(axis=1), 9), "kendall").value, abs=1e-12
    )


def test_resamples_in_blocks_are_as_many(monkeypatch):
    scores, ratings, design = sample(np.random.default_rng(7), 9, 6, 2, average=True)
    rng = np.random.default_rng(8)
    one = rng.multinomial(9, np.full(9, 1 / 9), size=50).astype(float)
    cells = rng.multinomial(6, np.full(6, 1 / 6), size=(50, 9)).astype(np.uint16)
    whole = weighted(scores, ratings, design, NAMES, [Weights(one, None, cells)])[0]
    monkeypatch.setattr("comperdial.stats.resampling._SYSTEMS", 200)
    np.testing.assert_array_equal(weighted(scores, ratings, design, NAMES, [Weights(one, None, cells)])[0], whole)
    # So many dialogues of many systems are not all held at a time.
    monkeypatch.setattr("comperdial.stats.intervals._CELLS", 54 * 20)
    found = draw_within(scores, ratings, design, NAMES, 50, rng)
    assert found.shape == (50, 3, 3)
    assert len(np.unique(found[:, 0, 0])) > 40


@pytest.mark.parametrize("units", [1, 2, 3])
def test_very_few_units_have_a_value_where_there_is_one(units):
    design = Design(np.arange(units), np.zeros(units, dtype=int))
    found = coefficients(np.arange(float(units))[np.newaxis], np.arange(float(units)) ** 2, design, NAMES)
    assert (np.isnan(found) if units == 1 else found > 0.9).all()


def test_no_units_and_no_metrics():
    design = Design(np.array([], dtype=int), np.array([], dtype=int))
    assert np.isnan(coefficients(np.empty((2, 0)), np.array([]), design, NAMES)).all()
    scores, ratings, design = sample(np.random.default_rng(2), 8, 5, 2)
    assert intervals(scores[:0], ratings, design, NAMES, seed=1, resamples=20).low.shape == (0, 3)


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
    assert (low > 0.3).all() and (high[1:] == 1).all()
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


@pytest.mark.parametrize("limit", ["_SUMMED", "_COMPARED"])
def test_pairs_too_many_to_look_at_are_sorted_with_the_same_result(monkeypatch, limit):
    rng = np.random.default_rng(2)
    systems, dialogues, _ = (axis.ravel() for axis in np.indices((7, 9, 3)))
    y = rng.integers(1, 6, len(systems)).astype(float)
    x = np.stack([y + rng.normal(size=len(y)), np.round(y + rng.normal(size=len(y))), rng.normal(size=len(y))])
    x[1, 5] = np.nan
    first = intervals(x, y, Design(systems, dialogues), ["kendall"], resamples=50, seed=3)
    monkeypatch.setattr(resampling, limit, 0)
    again = intervals(x, y, Design(systems, dialogues), ["kendall"], resamples=50, seed=3)
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)


@pytest.mark.parametrize("shared", [0, 2**22])
def test_ranks_counted_by_group_are_those_of_units(monkeypatch, shared):
    rng = np.random.default_rng(3)
    systems, dialogues, _ = (axis.ravel() for axis in np.indices((6, 8, 2)))
    y = rng.integers(1, 4, len(systems)).astype(float)
    x = np.stack([y + rng.normal(size=len(y)), np.round(rng.normal(size=len(y)))])
    x[0, 7] = np.nan
    drawn = rng.multinomial(6, np.full(6, 1 / 6), size=40).astype(float)
    monkeypatch.setattr(resampling, "_SHARED", shared)
    found = resampling.weighted(x, y, Design(systems, dialogues), ["spearman"], [resampling.Weights(systems=drawn)])[0]
    for times, values in zip(drawn.astype(int), found, strict=True):
        for row, value in zip(x, values[:, 0], strict=True):
            kept = np.repeat(np.arange(len(y)), np.where(np.isnan(row), 0, times[systems]))
            assert value == pytest.approx(stats.spearmanr(row[kept], y[kept]).statistic, abs=1e-12)


def test_a_resample_of_little_variance_beside_much_is_not_constant():
    """Without one of four systems, all that is left of the scores is 1e-8 of what there was."""
    rng = np.random.default_rng(5)
    systems, dialogues = (axis.ravel() for axis in np.indices((4, 12)))
    y = rng.normal(size=len(systems))
    x = np.where(systems == 0, rng.random(len(y)), 1e-8 * (y + rng.normal(size=len(y))))[np.newaxis]
    drawn = np.array([[0, 2, 1, 1], [0, 0, 1, 3], [1, 1, 1, 1]], dtype=float)
    found = resampling.weighted(x, y, Design(systems, dialogues), ["pearson"], [resampling.Weights(systems=drawn)])[0]
    for times, value in zip(drawn.astype(int), found[:, 0, 0], strict=True):
        kept = np.repeat(np.arange(len(y)), times[systems])
        assert value == pytest.approx(stats.pearsonr(x[0, kept], y[kept]).statistic, abs=1e-9)


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
