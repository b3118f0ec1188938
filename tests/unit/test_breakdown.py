"""The measures of breakdown detection, by hand."""

import numpy as np
import pytest

from comperdial.stats.breakdown import evaluate, gold_labels, majority

# Of ten people: O, T and X.
PEOPLE = np.array([[8, 1, 1], [2, 5, 3], [5, 5, 0], [0, 0, 10], [5, 2, 3]]) / 10


def test_gold_labels_break_ties_in_order_and_are_o_below_the_threshold():
    assert gold_labels(PEOPLE).tolist() == ["O", "T", "O", "X", "O"]
    assert gold_labels(PEOPLE, 0.6).tolist() == ["O", "O", "O", "X", "O"]
    assert gold_labels([0, 0.5, 0.5]).tolist() == ["T"]


def test_the_majority_baseline():
    label, mean = majority(PEOPLE)
    assert (label, mean.tolist()) == ("O", pytest.approx([0.4, 0.26, 0.34]))


def test_measures_by_hand():
    result = evaluate(PEOPLE, ["O", "X", "T", "X", "X"], PEOPLE)
    assert (result.n, result.gold) == (5, (3, 1, 1))
    assert result.accuracy == pytest.approx(2 / 5)
    # One of three predicted, one of one gold.
    assert result.f1_x == pytest.approx(1 / 2)
    # Half is no majority: gold T or X are the second and the fourth, of four predicted.
    assert result.f1_tx == pytest.approx(2 * 2 / (2 + 4))
    assert (*result.js, *result.mse) == (0,) * 6


def test_distances_by_hand():
    result = evaluate([[1, 0, 0], [0, 0, 1]], "O", [0, 0, 1])
    # Nothing in common, and the same; O+T are one class, and T+X.
    assert result.js == pytest.approx((0.5, 0.5, 0.5))
    assert result.mse == pytest.approx((1 / 3, 1 / 2, 1 / 2))
    half = evaluate([[0, 1, 0]], "T", [0, 0, 1])
    assert (half.js, half.f1_x) == (pytest.approx((1, 0, 1)), 0)


@pytest.mark.parametrize(
    ("shares", "message"),
    [(np.empty((0, 3)), r"shape \(0, 3\)"), ([[0.5, 0.5]], r"shape \(1, 2\)"), ([[3, 4, 3]], "no distribution")],
)
def test_what_is_no_distribution_is_refused(shares, message):
    with pytest.raises(ValueError, match=message):
        majority(shares)
