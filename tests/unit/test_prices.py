"""Prices with dates, the estimate of tokens, and a budget that nothing passes; rate limits and backoff."""

import asyncio
import datetime
import random
from pathlib import Path

import pytest
import yaml
from comperdial.judges._pace import Level
from hypothesis import given
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError
from comperdial.judges.ask import Bucket, Limits, Throttle
from comperdial.judges.prices import (
    FREE,
    PRICES,
    Budget,
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
    assert "check before relying on it" in found.source
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


@given(
    limit=st.floats(0.001, 100),
    spent=st.floats(0, 10),
    calls=st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), max_size=60),
    order=st.randoms(use_true_random=False),
)
def test_a_budget_is_never_passed_whatever_the_order_of_answers(limit, spent, calls, order):
    """Calls are sent and answered in any order; one costs anything up to its worst case."""
    budget, flying, allowed = Budget(limit, spent), [], 0
    for worst, share in calls:
        while flying and order.random() < 0.5:
            budget.settle(*flying.pop(order.randrange(len(flying))))
        if budget.reserve(worst):
            allowed += 1
            flying.append((worst, worst * share))
        paid = budget.spent + sum(most for most, _ in flying)
        assert paid <= max(limit, spent) + 1e-9
    for pair in flying:
        budget.settle(*pair)
    assert budget.pending == 0
    assert budget.spent <= max(limit, spent) + 1e-9
    assert allowed == 0 or spent <= limit


def test_no_budget_allows_everything():
    budget = Budget()
    assert budget.reserve(1e9)
    budget.check(None, {}, "m")


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_is_none(limit):
    with pytest.raises(ConfigError, match="the budget is"):
        Budget(limit)


def test_a_budget_that_could_not_be_kept():
    with pytest.raises(ConfigError, match="no price of model 'm' is known"):
        Budget(1).check(None, {"max_tokens": 5}, "m")
    with pytest.raises(ConfigError, match="may be of any length"):
        Budget(1).check(PRICE, {"temperature": 0}, "m")
    Budget(1).check(PRICE, {"max_tokens": 5}, "m")
    Budget(1).check(FREE, {}, "m")


@given(
    rate=st.floats(1, 10_000),
    pieces=st.lists(st.tuples(st.floats(0, 30), st.floats(0.01, 200)), min_size=1, max_size=40),
)
def test_no_minute_holds_more_than_the_limit(rate, pieces):
    """From any call on, what goes within a minute is the rate and at most a second's worth and a piece more."""
    bucket, now, sent = Bucket(rate, Level()), 0.0, []
    for later, amount in pieces:
        now += later
        sent.append((now + bucket.take(amount, now), amount))
    for start, _ in sent:
        minute = [amount for when, amount in sent if start <= when < start + 60]
        assert sum(minute) <= rate + max(1.0, rate / 60) + max(minute) + 1e-6


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def time(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def throttle(clock, **limits):
    return Throttle(Limits(**limits), clock=clock.time, sleep=clock.sleep, seed=1)


def test_requests_and_tokens_a_minute():
    clock = Clock()
    slow = throttle(clock, requests=60, tokens=6000)

    async def send(count, tokens):
        for _ in range(count):
            await slow.ready(tokens)

    asyncio.run(send(61, 1))
    assert clock.now == pytest.approx(160)
    asyncio.run(send(10, 1000))
    assert clock.now == pytest.approx(160 + 100, abs=2)


def test_without_limits_nothing_waits():
    clock = Clock()
    asyncio.run(throttle(clock).ready(10_000))
    assert clock.slept == []


def test_one_pause_for_all():
    clock = Clock()
    shared = throttle(clock, backoff=0.5)
    shared.hold(after=30)

    async def others():
        await shared.ready()
        return clock.now

    assert 130 <= asyncio.run(others()) <= 130.5
    assert asyncio.run(others()) == clock.now  # the pause is over


def test_many_refusals_at_once_are_one_pause():
    clock = Clock()
    shared = throttle(clock, backoff=1.0, most=60)
    for _ in range(50):
        shared.hold()
    asyncio.run(shared.ready())
    assert clock.now <= 101
    for _ in range(20):
        shared.hold()
        asyncio.run(shared.ready())
    assert clock.now > 101
    assert max(clock.slept) <= 60
    shared.passed()
    before = clock.now
    shared.hold()
    asyncio.run(shared.ready())
    assert clock.now <= before + 1


def test_backoff_has_full_jitter_and_honours_the_service():
    waits = [throttle(Clock(), backoff=0.5, most=60)]
    drawn = {faults: [waits[0].backoff(faults) for _ in range(200)] for faults in (1, 4, 30, 3000)}
    assert 0 <= min(drawn[1]) < 0.1
    assert 0.4 < max(drawn[1]) <= 0.5
    assert 3 < max(drawn[4]) <= 4
    assert 50 < max(drawn[30]) <= 60
    assert max(drawn[3000]) <= 60
    assert all(20 <= waits[0].backoff(1, after=20) <= 20.5 for _ in range(50))


@pytest.mark.parametrize("limits", [{"requests": 0}, {"tokens": -5}, {"attempts": 0}])
def test_limits_that_are_none(limits):
    with pytest.raises(ConfigError):
        Limits(**limits)


def test_jitter_is_drawn_from_its_seed_alone():
    random.seed(1)
    first = throttle(Clock()).backoff(5)
    random.seed(2)
    assert throttle(Clock()).backoff(5) == first
