"""Expected scores, against numpy and by what must hold of any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError
from comperdial.judges.weighting import (
    YES_NO,
    UnweightedError,
    expected_score,
    expected_score_of_logs,
    scale_labels,
)

SCALE = (1, 2, 3, 4, 5)


def shares(size):
    """Return a strategy for ``size`` probabilities that sum to 1."""
    weights = st.lists(st.floats(0, 1), min_size=size, max_size=size).filter(lambda found: sum(found) > 1e-3)
    return weights.map(lambda found: list(np.array(found) / sum(found)))


@given(shares(7))
def test_numpy_gives_the_same(found):
    """Five labels and two other tokens: the weighted mean of the five, and the two as outside."""
    inside = np.array(found[:5])
    assume(inside.sum() > 1e-6)
    tokens = dict(zip(["1", "2", "3", "4", "5", "The", "\n"], found, strict=True))
    score = expected_score(tokens, SCALE)
    assert score.value == pytest.approx(np.average(SCALE, weights=inside), abs=1e-9)
    assert score.outside == pytest.approx(found[5] + found[6], abs=1e-9)


@given(shares(5), st.floats(0.01, 1))
def test_a_score_stays_on_its_scale_whatever_is_outside(found, inside):
    tokens = {str(label): value * inside for label, value in zip(SCALE, found, strict=True)}
    score = expected_score(tokens, SCALE)
    there = [label for label, value in zip(SCALE, found, strict=True) if value * inside > 0]
    assert min(there) <= score.value <= max(there)
    assert 0 <= score.outside <= 1
    assert score.outside == pytest.approx(1 - inside, abs=1e-9)
    # What is outside is shared out in proportion: it moves nothing.
    whole = {str(label): value for label, value in zip(SCALE, found, strict=True)}
    assert score.value == pytest.approx(expected_score(whole, SCALE).value, abs=1e-9)


@given(shares(5), st.floats(-3, 3), st.floats(0.1, 10))
def test_moving_and_stretching_the_scale_moves_and_stretches_the_score(found, shift, factor):
    tokens = dict(zip("abcde", found, strict=True))
    plain = expected_score(tokens, dict(zip("abcde", SCALE, strict=True))).value
    other = expected_score(tokens, {label: shift + factor * score for label, score in zip("abcde", SCALE, strict=True)})
    assert other.value == pytest.approx(shift + factor * plain, abs=1e-8)


@given(shares(6))
def test_logs_of_probabilities_give_the_same(found):
    tokens = dict(zip(["1", "2", "3", "4", "5", "x"], found, strict=True))
    assume(sum(found[:5]) > 1e-6)
    logs = {token: math.log(value) if value else -math.inf for token, value in tokens.items()}
    plain, logged = expected_score(tokens, SCALE), expected_score_of_logs(logs, SCALE)
    assert logged.value == pytest.approx(plain.value, abs=1e-9)
    assert logged.outside == pytest.approx(plain.outside, abs=1e-9)


@pytest.mark.parametrize("token", [" 4", "4", "４", "4 ", "\n4", "4.0", "▁4", "Ġ4", "٤", "+4", "04"])
def test_spellings_of_a_number_are_the_same_label(token):
    assert expected_score({token: 0.2, "2": 0.2}, SCALE).value == pytest.approx(3)
    assert expected_score({token: 0.2, " 4": 0.1, "2": 0.1} | {token: 0.2}, SCALE).value > 3


def test_spellings_are_summed():
    score = expected_score({" 4": 0.1, "4": 0.2, "４": 0.1, "1": 0.4, "four": 0.2}, SCALE)
    assert score.value == pytest.approx(2.5)
    assert score.outside == pytest.approx(0.2)


@pytest.mark.parametrize("token", ["45", "4.5", "4/5", "-4", "6", "", " ", "four", "4th", "1e0", "nan", "inf", "4_0"])
def test_other_tokens_are_outside(token):
    score = expected_score({token: 0.5, "3": 0.5}, SCALE)
    assert (score.value, score.outside) == (3, pytest.approx(0.5))


def test_yes_and_no():
    score = expected_score({"Yes": 0.3, " yes": 0.1, "YES": 0.05, "No": 0.1, " no": 0.05, "Maybe": 0.4}, YES_NO)
    assert score.value == pytest.approx(0.45 / 0.6)
    assert score.outside == pytest.approx(0.4)
    assert expected_score({"no": 0.2}, YES_NO).value == 0


def test_the_20_most_probable_of_openai():
    """A label that is not among them counts as outside, as one with OpenAI's -9999 does."""
    logs = {" 4": math.log(0.6), " 5": math.log(0.3), "Overall": math.log(0.05), "1": -9999.0}
    score = expected_score_of_logs(logs, SCALE)
    assert score.value == pytest.approx((4 * 0.6 + 5 * 0.3) / 0.9)
    assert score.outside == pytest.approx(0.1)


def test_probabilities_too_small_for_a_float_still_have_a_ratio():
    score = expected_score_of_logs({"1": -2000.0, "3": -2000.0}, SCALE)
    assert (score.value, score.outside) == (pytest.approx(2), 1)


@pytest.mark.parametrize(
    "tokens", [{}, {"The": 0.9, "\n": 0.1}, {"4": 0.0}, {"6": 1.0}, {"4": -0.0, "I": 1.0}], ids=str
)
def test_without_a_token_of_the_scale_there_is_no_score(tokens):
    with pytest.raises(UnweightedError, match="no token of the scale"):
        expected_score(tokens, SCALE)


def test_without_a_log_of_the_scale_there_is_no_score():
    with pytest.raises(UnweightedError, match="no token of the scale is among the 2"):
        expected_score_of_logs({"4": -9999.0, "I": -0.1}, SCALE)


@pytest.mark.parametrize("value", [1.5, -0.5, math.nan, math.inf])
def test_what_is_no_probability_is_refused(value):
    with pytest.raises(UnweightedError, match="probability of the token 'I'"):
        expected_score({"4": 0.5, "I": value}, SCALE)


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf])
def test_what_is_no_log_probability_is_refused(value):
    with pytest.raises(UnweightedError, match="log probability of the token '4'"):
        expected_score_of_logs({"4": value}, SCALE)


def test_probabilities_above_one_together_are_refused():
    with pytest.raises(UnweightedError, match=r"sum to 1\.8"):
        expected_score({"4": 0.9, "5": 0.9}, SCALE)
    # By a rounding they are not.
    assert expected_score({"4": 0.5, "5": 0.5005}, SCALE).outside == 0


@pytest.mark.parametrize("labels", [(1, 2, 1.0), {"yes": 1, " Yes": 0}, {"4": 4, "４": 5}], ids=str)
def test_labels_that_are_the_same_are_refused(labels):
    with pytest.raises(ConfigError, match="stands twice"):
        expected_score({"yes": 1.0}, labels)


def test_labels_of_a_scale():
    assert scale_labels(1, 5) == ("1", "2", "3", "4", "5")
    assert scale_labels(0.0, 2.0) == ("0", "1", "2")


@pytest.mark.parametrize("ends", [(1, 4.5), (0.5, 5), (5, 1), (2, 2)])
def test_a_scale_without_whole_numbers_has_no_labels(ends):
    with pytest.raises(ConfigError, match="whole numbers"):
        scale_labels(*ends)


def test_the_beginning_of_a_label_is_no_label():
    """Of a scale to 10 whose 10 may be two tokens; a space says that a token is a whole word."""
    ten = scale_labels(1, 10)
    scale = {label: float(label) for label in ten}
    with pytest.raises(UnweightedError, match="'1' may be the beginning of '10', whose probability is not known"):
        expected_score({"1": 0.6, "9": 0.4}, scale)
    for tokens in ({"Y": 0.6, "No": 0.4}, {"Y": 0.6, "Yes": 0.1, "No": 0.3}):
        with pytest.raises(UnweightedError, match="'Y' may be the beginning of 'Y"):
            expected_score(tokens, YES_NO)
    assert expected_score({"1 ": 0.6, "9": 0.4}, scale).value == pytest.approx(4.2)
    assert expected_score({"1 ": 0.02, "10": 0.98}, scale).value == pytest.approx(9.82)
    assert expected_score({"1": 0.001, "9": 0.999}, scale).value == pytest.approx(8.992)
    assert expected_score({"Y": 0.001, "Yes": 0.6, "No": 0.3}, YES_NO).value == pytest.approx(2 / 3)
    # Where it is known how the word goes on, the word counts.
    assert expected_score({"YES ": 0.6, "Y ": 0.1, "No": 0.3}, YES_NO).value == pytest.approx(2 / 3)
