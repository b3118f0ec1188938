"""Prices with dates, the estimate of tokens, and what a run asks of limits before it starts."""

import datetime
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError
from comperdial.judges.ask import Limits, check_budget
from comperdial.judges.prices import (
    FREE,
    PRICES,
    Price,
    Prices,
    estimate_input,
    estimate_tokens,
    most_input,
    most_output,
)

ROOT = Path(__file__).resolve().parents[2]
DAY = datetime.date(2024, 1, 1)
PRICE = Price("m", DAY, 10.0, 30.0, 0.5)


def test_the_price_list_that_comes_with_the_repository():
    prices = Prices.read(ROOT / PRICES)
    found = prices.find("gpt-3.5-turbo-0125")
    assert found is not None
    assert (found.input, found.output, found.batch, found.since) == (0.5, 1.5, 0.5, datetime.date(2024, 1, 25))
    assert found.of(1_000_000, 2_000_000) == 3.5
    assert found.of(1_000_000, 2_000_000, batch=True) == 1.75
    for model in yaml.safe_load((ROOT / PRICES).read_text()):
        source = prices.find(model).source
        # Where it was looked up, on which day; and what was not checked with the provider says so.
        assert re.search(r"read \d{4}-\d\d-\d\d", source) or "ask your provider" in source, model
    large = prices.find("gpt-4-turbo-2024-04-09", datetime.date(2025, 1, 1))
    assert large is not None
    assert large.of(1000, 100) == pytest.approx(0.013)
    assert prices.find("gpt-4-turbo-2024-04-09", datetime.date(2024, 4, 8)) is None
    assert prices.find("gpt-4") is None


def test_the_price_of_the_day(tmp_path):
    path = tmp_path / "prices.yaml"
    entries = [
        {"from": datetime.date(2024, month, 1), "input": month, "output": 0, "source": "s"} for month in (6, 1, 3)
    ]
    path.write_text(yaml.safe_dump({"m": entries}))
    prices = Prices.read(path)
    found = [prices.find("m", datetime.date(2024, month, 1)) for month in (1, 2, 3, 5, 6, 12)]
    assert [price and price.input for price in found] == [1, 1, 3, 3, 6, 6]
    with pytest.raises(ConfigError, match="no batch price is known for m"):
        found[0].of(1, 1, batch=True)


GOOD = {"from": DAY, "input": 1, "output": 1, "source": "s"}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([], "m: got an empty list; expected at least one entry"),
        ({}, "m: got an empty mapping; expected a list"),
        ([{}], r"m\[0\]: no 'from'"),
        ([GOOD | {"currency": "EUR"}], r"m\[0\]: unknown key 'currency'"),
        ([GOOD | {"from": "January"}], r"m\[0\]\.from: got 'January'; expected a date such as"),
        ([GOOD | {"input": -1}], r"m\[0\]\.input: got -1"),
        ([GOOD | {"output": True}], r"m\[0\]\.output: got True"),
        ([GOOD | {"batch": ".5"}], r"m\[0\]\.batch: got '\.5'"),
        ([GOOD, GOOD], "m: two prices begin on the same day"),
    ],
)
def test_a_price_list_that_is_none(tmp_path, entries, problem):
    path = tmp_path / "prices.yaml"
    path.write_text(yaml.safe_dump({"m": entries}))
    with pytest.raises(ConfigError, match=problem):
        Prices.read(path)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("yes", 1),
        ("It is fine.", 4),
        ("understandability", 3),
        ("### Context:\n", 4),
        ("déjà vu", 4),
        ("你好", 3),
    ],
)
def test_tokens_are_estimated(text, tokens):
    assert estimate_tokens(text) == tokens


@given(st.text())
def test_the_worst_case_is_never_below_the_estimate(text):
    messages = [{"role": "user", "content": text}]
    assert most_input(messages) >= estimate_input(messages)
    assert most_input(messages) >= len(text.encode(errors="replace"))


def test_the_longest_answer():
    assert most_output({"max_tokens": 5}) == 5
    assert most_output({"max_tokens": None, "max_completion_tokens": 7}) == 7
    assert most_output({"temperature": 1}) is None


def test_a_budget_that_could_not_be_kept():
    with pytest.raises(ConfigError, match="no price of model 'm' is known"):
        check_budget(None, {"max_tokens": 5}, "m")
    with pytest.raises(ConfigError, match="may be of any length"):
        check_budget(PRICE, {"temperature": 0}, "m")
    check_budget(PRICE, {"max_tokens": 5}, "m")
    check_budget(FREE, {}, "m")


@pytest.mark.parametrize("limits", [{"requests": 0}, {"tokens": -5}, {"attempts": 0}])
def test_limits_that_are_none(limits):
    with pytest.raises(ConfigError, match="a judge's"):
        Limits(**limits)


def test_a_pause_is_drawn_from_0_to_twice_as_much_after_each_fault():
    limits = Limits(backoff=0.5, most=60)
    for faults, most in ((1, 0.5), (4, 4), (30, 60), (3000, 60)):
        drawn = [limits.pause(faults) for _ in range(300)]
        assert 0 <= min(drawn) < most / 5 and most * 0.8 < max(drawn) <= most
