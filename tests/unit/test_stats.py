import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comperdial.stats.agreement import pairwise_agreement
from comperdial.stats.correlation import correlate, is_starred

values = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30)


def plain_pearson(x, y):
    mx, my = sum(x) / len(x), sum(y) / len(y)
    cov = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return cov / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


def plain_ranks(x):
    return [sum(b < a for b in x) + (sum(b == a for b in x) + 1) / 2 for a in x]


def plain_tau_b(x, y):
    pairs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    agree = sum(a * b for a, b in pairs)
    return agree / math.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))


@given(values)
def test_coefficients_against_plain_python(pairs):
    x, y = zip(*pairs, strict=True)
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert correlate(x, y, "pearson").value == pytest.approx(plain_pearson(x, y), abs=1e-9)
    expected = plain_pearson(plain_ranks(x), plain_ranks(y))
    assert correlate(x, y, "spearman").value == pytest.approx(expected, abs=1e-9)
    assert correlate(x, y, "kendall").value == pytest.approx(plain_tau_b(x, y), abs=1e-9)


@given(values, st.sampled_from(["pearson", "spearman", "kendall"]))
def test_coefficients_are_symmetric_and_bounded(pairs, coefficient):
    x, y = zip(*pairs, strict=True)
    there, back = correlate(x, y, coefficient), correlate(y, x, coefficient)
    assert there.n == len(pairs)
    if not math.isnan(there.value):
        assert there.value == pytest.approx(back.value, abs=1e-12)
        assert -1 - 1e-9 <= there.value <= 1 + 1e-9


@given(values, st.floats(0.1, 10), st.floats(-5, 5))
def test_pearson_ignores_scale_and_shift(pairs, scale, shift):
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    before = correlate(x, y, "pearson").value
    assume(not math.isnan(before))
    assert correlate(x * scale + shift, y, "pearson").value == pytest.approx(before, abs=1e-6)


def test_pairs_with_a_gap_are_left_out_and_counted():
    found = correlate([1, 2, np.nan, 4, 9], [2, 4, 6, 8, np.nan], "pearson")
    assert found.n == 3
    assert found.value == pytest.approx(1.0)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4, 4, 4])])
def test_what_cannot_be_correlated_is_missing_not_zero(x, y, coefficient):
    found = correlate(x, y, coefficient)
    assert math.isnan(found.value)
    assert math.isnan(found.p)
    assert is_starred(found.p)


def test_the_asterisk_follows_p():
    noise = np.random.default_rng(1).normal(size=50)
    assert not is_starred(correlate(noise, noise + 0.1, "pearson").p)
    assert is_starred(correlate([1, 2, 3, 4], [1, 3, 2, 4], "spearman").p)


def test_unequal_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="equal length"):
        correlate([1, 2], [1, 2, 3], "pearson")


def test_agreement_is_the_mean_over_pairs_of_columns():
    table = np.array([[1, 2, 1], [2, 3, 3], [3, 1, 2], [4, 5, 4]], dtype=float)
    expected = np.mean([np.corrcoef(table[:, i], table[:, j])[0, 1] for i, j in [(0, 1), (0, 2), (1, 2)]])
    assert pairwise_agreement(table, "pearson") == pytest.approx(expected)
    with pytest.raises(ValueError, match="two raters"):
        pairwise_agreement(table[:, :1], "pearson")
