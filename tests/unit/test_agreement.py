"""Krippendorff's alpha: against the worked examples of its author, the library, and what must hold of any ratings."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from comperdial.stats import agreement
from comperdial.stats.agreement import MEASUREMENTS, alpha_interval, krippendorff_alpha

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", sections A to D; a dot is a missing value.
MEG_OWEN = ["0100000010", "1110010000"]
BEN_GERRY = ["aabbdcccedda", "babbbccceddd"]
FOUR = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
PUBLISHED = [
    (MEG_OWEN, "nominal", "0.095"),
    (BEN_GERRY, "nominal", "0.692"),
    (FOUR, "nominal", "0.743"),
    (FOUR, "ordinal", "0.815"),
    (FOUR, "interval", "0.849"),
    (FOUR, "ratio", "0.797"),
]


def items_x_raters(rows):
    """Return the ratings as numbers; letters count from a = 1."""
    code = {".": math.nan} | {c: float(c) for c in "0123456789"} | {c: float(n) for n, c in enumerate("abcde", 1)}
    return np.array([[code[c] for c in row] for row in rows]).T


def plain_alpha(table, level):
    """Return alpha in exact fractions, by the published formula: the coincidence matrix value by value."""
    coincidences = Counter()
    for item in table:
        rated = [Fraction(float(v)) for v in item if not math.isnan(v)]
        for one, other in permutations(rated, 2):
            coincidences[one, other] += Fraction(1, len(rated) - 1)
    n = Counter()
    for (one, _), count in coincidences.items():
        n[one] += count

    def distance(c, k):
        if level == "nominal":
            return Fraction(int(c != k))
        if level == "interval":
            return (c - k) ** 2
        if level == "ratio":
            return ((c - k) / (c + k)) ** 2 if c + k else Fraction(0)
        low, high = min(c, k), max(c, k)
        return (sum(n[g] for g in n if low <= g <= high) - (n[c] + n[k]) / 2) ** 2

    total = sum(n.values())
    observed = sum(count * distance(c, k) for (c, k), count in coincidences.items())
    expected = sum(n[c] * n[k] * distance(c, k) for c, k in permutations(n, 2))
    return 1 - (total - 1) * observed / expected if expected else None


@pytest.mark.parametrize(("rows", "level", "published"), PUBLISHED)
def test_worked_examples_of_krippendorff_2011(rows, level, published):
    table = items_x_raters(rows)
    exact = plain_alpha(table, level)
    assert f"{float(exact):.3f}" == published
    assert krippendorff_alpha(table, level) == pytest.approx(float(exact), abs=1e-12)
    assert alpha_interval(table, level, rng=np.random.default_rng(1), resamples=9)[0] == pytest.approx(float(exact))


def test_two_examples_by_hand():
    # Its printed coincidence matrices: o01 = 4, n0 = 14, n1 = 6; and o_cc = 2+4+6+4+2, n_c = 4, 6, 6, 6, 2.
    assert plain_alpha(items_x_raters(MEG_OWEN), "nominal") == 1 - 19 * Fraction(4, 14 * 6)
    assert plain_alpha(items_x_raters(BEN_GERRY), "nominal") == Fraction(23 * 18 - 104, 24 * 23 - 104)


ratings = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.one_of(st.integers(1, 5).map(float), st.just(math.nan)),
)
levels = st.sampled_from(MEASUREMENTS)


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, abs=1e-9)


@given(ratings, levels)
def test_alpha_against_plain_python(table, level):
    exact = plain_alpha(table, level)
    assert same(krippendorff_alpha(table, level), math.nan if exact is None else float(exact))


@given(ratings, levels, st.randoms(use_true_random=False))
def test_order_of_items_and_raters_and_empty_ones_do_not_matter(table, level, random):
    before = krippendorff_alpha(table, level)
    rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    assert same(krippendorff_alpha(table[np.ix_(rows, columns)], level), before)
    wider = np.full((table.shape[0] + 1, table.shape[1] + 1), np.nan)
    wider[:-1, :-1] = table
    assert same(krippendorff_alpha(wider, level), before)
    seeds = (np.random.default_rng(3), np.random.default_rng(3))
    pair = [alpha_interval(t, level, rng=r, resamples=20) for t, r in zip((table, wider), seeds, strict=True)]
    assert all(same(a, b) for a, b in zip(*pair, strict=True))


@given(ratings, st.floats(0.5, 4), st.integers(-3, 3))
def test_what_each_level_of_measurement_ignores(table, scale, shift):
    assert same(krippendorff_alpha(table * scale + shift, "interval"), krippendorff_alpha(table, "interval"))
    assert same(krippendorff_alpha(table * scale, "ratio"), krippendorff_alpha(table, "ratio"))
    assert same(krippendorff_alpha(np.exp(table), "ordinal"), krippendorff_alpha(table, "ordinal"))
    assert same(krippendorff_alpha((table * 2) % 5, "nominal"), krippendorff_alpha(table, "nominal"))


@given(ratings, levels)
def test_alpha_is_at_most_one_and_the_interval_is_in_order(table, level):
    value, low, high = alpha_interval(table, level, rng=np.random.default_rng(0), resamples=30)
    assert same(value, krippendorff_alpha(table, level))
    if not math.isnan(value):
        assert value <= 1 + 1e-12
    if not math.isnan(low):
        assert low <= high <= 1 + 1e-12


@pytest.mark.parametrize("level", MEASUREMENTS)
def test_perfect_agreement_is_one(level):
    table = np.repeat([[1.0], [2.0], [5.0], [2.0]], 3, axis=1)
    table[1, 0] = np.nan
    assert krippendorff_alpha(table, level) == 1
    assert alpha_interval(table, level, rng=np.random.default_rng(0), resamples=50) == (1, 1, 1)


@pytest.mark.parametrize(
    "table",
    [
        np.empty((0, 3)),
        np.full((4, 3), np.nan),
        np.full((4, 3), 2.0),
        [[1, np.nan], [np.nan, 2]],
        [[1, 1], [1, 1], [5, np.nan]],
        [[1], [2]],
    ],
)
@pytest.mark.parametrize("level", MEASUREMENTS)
@pytest.mark.filterwarnings("error")
def test_undefined_is_missing_without_a_warning(table, level):
    assert math.isnan(krippendorff_alpha(table, level))
    assert all(map(math.isnan, alpha_interval(table, level, rng=np.random.default_rng(0), resamples=5)))


@pytest.mark.parametrize("level", MEASUREMENTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_that_of_the_library_on_repeated_clusters(level, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    table = np.clip(np.round(rng.normal(3, 1, (40, 1)) + rng.normal(0, 1, (40, 4))), 1, 5)
    table[rng.random(table.shape) < 0.3] = np.nan
    table[0], table[1] = np.nan, [2, np.nan, np.nan, np.nan]
    labels = rng.integers(0, 9, len(table))
    monkeypatch.setattr(agreement, "_AT_ONCE", 100)
    found = alpha_interval(table, level, rng=np.random.default_rng(seed), resamples=30, clusters=labels)
    kept = agreement.is_pairable(table)
    names, again = np.unique(labels[kept]), np.random.default_rng(seed)
    drawn = [np.concatenate([table[kept & (labels == names[one])] for one in again.integers(len(names), size=len(names))])
             for _ in range(30)]  # fmt: skip
    expected = [krippendorff.alpha(resample.T, level_of_measurement=level) for resample in drawn]
    assert found[1:] == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=1e-12)
    assert found[0] == pytest.approx(krippendorff.alpha(table.T, level_of_measurement=level), abs=1e-12)


def simulated(rng, items, raters=4, noise=1.0):
    return np.clip(np.round(rng.normal(3, 1, (items, 1)) + rng.normal(0, noise, (items, raters))), 1, 5)


def test_the_generator_decides_and_items_are_clusters_of_one():
    table = simulated(np.random.default_rng(5), 60)
    first = alpha_interval(table, "ordinal", rng=np.random.default_rng(1), resamples=200)
    assert first == alpha_interval(table, "ordinal", rng=np.random.default_rng(1), resamples=200)
    assert first == alpha_interval(
        table, "ordinal", rng=np.random.default_rng(1), resamples=200, clusters=np.arange(60)
    )
    assert first != alpha_interval(table, "ordinal", rng=np.random.default_rng(2), resamples=200)


def test_copies_of_an_item_in_one_cluster_add_no_precision():
    table = simulated(np.random.default_rng(6), 80)
    single = alpha_interval(table, "interval", rng=np.random.default_rng(1))
    copies, clusters = np.repeat(table, 7, axis=0), np.repeat(np.arange(80), 7)
    clustered = alpha_interval(copies, "interval", rng=np.random.default_rng(1), clusters=clusters)
    naive = alpha_interval(copies, "interval", rng=np.random.default_rng(1))
    assert np.subtract(*clustered[1:]) == pytest.approx(np.subtract(*single[1:]), rel=0.02)
    assert np.subtract(*naive[1:]) == pytest.approx(np.subtract(*single[1:]) / math.sqrt(7), rel=0.15)


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_intervals_cover_the_alpha_of_the_population(level):
    rng = np.random.default_rng(7)
    truth = krippendorff_alpha(simulated(rng, 200_000), level)
    hits = 0
    for _ in range(200):
        _, low, high = alpha_interval(simulated(rng, 150), level, rng=rng, resamples=200, confidence=0.9)
        hits += low <= truth <= high
    # Binomial: 0.9 of 200 with a standard deviation of 4.2; the percentile bootstrap runs a little short.
    assert 165 <= hits <= 195


def test_pairwise_agreement_is_the_mean_over_pairs_of_columns():
    table = np.array([[1, 2, 1], [2, 3, 3], [3, 1, 2], [4, 5, 4]], dtype=float)
    expected = np.mean([np.corrcoef(table[:, i], table[:, j])[0, 1] for i, j in [(0, 1), (0, 2), (1, 2)]])
    assert agreement.pairwise_agreement(table, "pearson") == pytest.approx(expected)
    with pytest.raises(ValueError, match="two raters"):
        agreement.pairwise_agreement(table[:, :1], "pearson")
