"""One budget for all who pay: what is spent and set aside never passes it, whoever is killed and whenever."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError, FileError
from comperdial.judges import _account
from comperdial.judges.ledger import Ledger

CHILD = """
import os, random, sys, time
from comperdial.judges.ledger import Ledger
ledger = Ledger(sys.argv[1])
def say(text):
    print(text, flush=True)
"""


def child(root, code):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code, str(root)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def charges(root):
    path = root / "charges.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_payers_share_what_is_left(tmp_path):
    ledger = Ledger(tmp_path)
    with (
        ledger.account(1.0, lambda: 0.25) as first,
        ledger.account(1.0, lambda: pytest.fail("somebody pays")) as second,
    ):
        assert (first.spent, first.pending) == (0.25, 0)
        assert first.reserve(0.5)
        assert second.spent == 0.25
        assert not second.reserve(0.3)
        assert second.pending == 1
        assert second.reserve(0.25)
        assert not first.reserve(1e-9)
        first.settle(0.5, 0.125)
        assert (first.spent, first.pending) == (0.375, 1)
        assert second.reserve(0.375)
        assert not second.reserve(1e-9)
        second.settle(0.25, 0.25)
        second.settle(0.375, 0.0)
        assert (second.spent, second.pending) == (0.625, 0)
    assert charges(tmp_path) == []
    # Nobody pays any more: what counts is what the ledger says.
    with ledger.account(1.0, lambda: 0.75) as third:
        assert (third.spent, third.pending) == (0.75, 0)
    with ledger.account(1.0) as fourth:
        assert fourth.spent == 0.0
    assert not [*tmp_path.glob(".running/account/payer-*")]


def test_each_payer_keeps_its_own_limit(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.account(1.0) as small, ledger.account(5.0) as large, ledger.account(None) as endless:
        assert large.reserve(2.0)
        assert not small.reserve(0.5)
        assert endless.reserve(100.0)
        assert not large.reserve(0.5)
        endless.settle(100.0, 0.0)
        assert large.reserve(3.0)
        assert not large.reserve(1e-9)
        large.settle(2.0, 0.0)
        large.settle(3.0, 0.0)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_limit_that_is_none(tmp_path, limit):
    with pytest.raises(ConfigError, match="the budget is"):
        Ledger(tmp_path).account(limit)
    assert not [*tmp_path.iterdir()]


# In tenths of a cent, so that sums are exact in the oracle too.
@settings(max_examples=40, deadline=None)
@given(
    limit=st.integers(1, 300),
    spent=st.integers(0, 100),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 100), st.integers(0, 100), st.booleans()), max_size=40),
)
def test_any_order_of_calls_is_what_plain_sums_say(tmp_path_factory, limit, spent, steps):
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    dollars = 1000
    with ExitStack() as stack:
        payers = [stack.enter_context(ledger.account(limit / dollars, lambda: spent / dollars)) for _ in range(3)]
        flying = [[], [], []]
        now = spent
        for payer, worst, cost, ends in steps:
            if ends and flying[payer]:
                reserved = flying[payer].pop(0)
                payers[payer].settle(reserved / dollars, min(cost, reserved) / dollars)
                now += min(cost, reserved)
            else:
                aside = sum(map(sum, flying))
                fits = now + aside + worst <= limit
                assert payers[payer].reserve(worst / dollars) is fits
                if fits:
                    flying[payer].append(worst)
            assert payers[payer].spent == pytest.approx(now / dollars, abs=1e-12)
            assert payers[payer].pending == sum(map(len, flying))
        for payer, calls in zip(payers, flying, strict=True):
            for reserved in calls:
                payer.settle(reserved / dollars, 0.0)


def test_a_payer_that_is_killed_has_spent_what_it_had_set_aside(tmp_path, caplog):
    ledger = Ledger(tmp_path)
    code = """
with ledger.account(1.0) as budget:
    assert budget.reserve(0.125) and budget.reserve(0.5)
    budget.settle(0.125, 0.0625)
    assert budget.reserve(0.25)
    say("ready")
    time.sleep(600)
"""
    with ledger.account(1.0) as ours:
        process = child(tmp_path, code)
        assert process.stdout.readline() == "ready\n"
        assert not ours.reserve(0.25)
        assert ours.pending == 2
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        ours._looked = -1e9  # it looks once a second at most
        with caplog.at_level(logging.WARNING):
            assert not ours.reserve(0.25)
        assert "2 calls were under way: they count as $0.7500" in caplog.text
        assert (ours.spent, ours.pending) == (0.8125, 0)
        assert ours.reserve(0.1875)
        ours.settle(0.1875, 0.0)
    (row,) = charges(tmp_path)
    assert (row["cost"], row["kind"]) == (0.75, "killed")
    assert ledger.spent() == 0.75
    assert not [*tmp_path.glob(".running/account/payer-*")]


def test_all_payers_are_killed_and_the_next_one_knows_what_they_may_have_spent(tmp_path):
    code = """
with ledger.account(1.0) as budget:
    assert budget.reserve(0.25)
    say("ready")
    time.sleep(600)
"""
    processes = [child(tmp_path, code) for _ in range(3)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.kill()
        process.wait()
    for _ in range(2):
        with Ledger(tmp_path).account(1.0) as budget:
            assert (budget.spent, budget.pending) == (0.75, 0)
            assert not budget.reserve(0.5)
    assert len(charges(tmp_path)) == 3


def test_an_end_between_the_charge_and_its_note_counts_it_twice_and_never_not(tmp_path, monkeypatch):
    with Ledger(tmp_path).account(1.0) as ours:
        process = child(
            tmp_path, "with ledger.account(1.0) as b:\n    b.reserve(0.25)\n    say('ready')\n    time.sleep(600)\n"
        )
        process.stdout.readline()
        process.kill()
        process.wait()
        with monkeypatch.context() as patch:

            def dies(state):
                raise KeyboardInterrupt

            patch.setattr(ours, "_write", dies)
            with pytest.raises(KeyboardInterrupt), ours._open() as state:
                ours._bury(state)
        ours._looked = -1e9
        assert not ours.reserve(0.9)
    assert [row["cost"] for row in charges(tmp_path)] == [0.25, 0.25]


def test_what_is_left_unsettled_is_spent(tmp_path):
    """Answers that could not be kept: they were paid for."""
    ledger = Ledger(tmp_path)
    with ledger.account(1.0) as other:
        with pytest.raises(KeyError), ledger.account(1.0) as budget:
            assert budget.reserve(0.25)
            raise KeyError
        assert not other.reserve(0.8)
        assert other.spent == 0.25
    assert [row["cost"] for row in charges(tmp_path)] == [0.25]


def test_a_charge_that_cannot_be_kept_is_left_to_the_next(tmp_path, monkeypatch):
    def full(*_):
        raise FileError("no space", where="here")

    ledger = Ledger(tmp_path)
    monkeypatch.setattr(ledger._charges, "add", full)
    with pytest.raises(FileError, match="no space"), ledger.account(1.0) as budget:
        budget.reserve(0.25)
    with Ledger(tmp_path).account(1.0) as budget:
        assert budget.spent == 0.25
    assert len(charges(tmp_path)) == 1


def test_who_was_taken_for_dead_pays_nothing_more(tmp_path):
    """As on a file system whose locks do not reach the other node."""
    ledger = Ledger(tmp_path)
    with pytest.raises(FileError, match="taken out of the account"), ledger.account(1.0) as budget:
        (own,) = tmp_path.glob(".running/account/payer-*")
        own.unlink()
        with ledger.account(1.0):
            pass
        budget.reserve(0.1)


def test_an_account_that_is_deleted_while_somebody_pays_stops_him(tmp_path):
    with pytest.raises(FileError, match="cannot be read"), Ledger(tmp_path).account(1.0) as budget:
        (tmp_path / ".running" / "account" / "account").unlink()
        budget.reserve(0.1)


def test_an_account_that_cannot_be_read(tmp_path, caplog):
    ledger, path = Ledger(tmp_path), tmp_path / ".running" / "account" / "account"
    with pytest.raises(FileError, match="cannot be read"), ledger.account(1.0):
        data = path.read_bytes()
        path.write_bytes(b"x" + data[1:])
        with pytest.raises(FileError, match="cannot be read"), ledger.account(1.0):
            pytest.fail("somebody pays")
    assert "started anew" not in caplog.text
    with ledger.account(1.0, lambda: 0.5) as budget:
        assert budget.spent == 0.5
    assert "started anew" in caplog.text
    path.write_bytes(b"")
    with ledger.account(1.0, lambda: 0.25) as budget:
        assert budget.spent == 0.25


def test_a_shorter_state_over_a_longer_one():
    long = _account._State(10**15, {"a" * 16: [10**14, 300], "b" * 16: [1, 1]})
    short = _account._State(7, {})
    data = short.encode() + long.encode()[len(short.encode()) :]
    assert _account._State.decode(data) == short
    assert _account._State.decode(long.encode()) == long
    assert _account._State.decode(long.encode()[:-9]) is None


PAYER = """
chance = random.Random(int(sys.stdin.readline()))
with ledger.account(3.0) as budget, open(sys.argv[1] + "/paid-" + str(os.getpid()), "a") as paid:
    say("ready")
    sys.stdin.readline()
    while True:
        worst = chance.uniform(0.001, 0.02)
        if not budget.reserve(worst):
            if budget.pending:
                time.sleep(0.001)
                continue
            break
        # From here on the service charges it.
        cost = worst * chance.random()
        paid.write(f"{cost}\\n")
        paid.flush()
        if chance.random() < float(sys.argv[1].endswith("killed")) * 0.01:
            os.kill(os.getpid(), 9)
        budget.settle(worst, cost)
"""


def paid_in(root):
    """Return the sum of all whole lines of what the processes say that they paid."""
    lines = [line for path in root.glob("paid-*") for line in path.read_text().splitlines(keepends=True)]
    return sum(float(line) for line in lines if line.endswith("\n"))


@pytest.mark.parametrize("name", ["calm", "killed"])
def test_many_processes_never_pay_more_than_the_budget(tmp_path, name):
    root = tmp_path / name
    root.mkdir()
    with Ledger(root).account(3.0) as ours:
        processes = [child(root, PAYER) for _ in range(4)]
        for seed, process in enumerate(processes):
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        while any(process.poll() is None for process in processes):
            # What was paid is read before what is allowed: it can only have grown since.
            paid = paid_in(root)
            assert paid <= 3.0 + 1e-9
            if ours.reserve(1e-6):
                ours.settle(1e-6, 0.0)
            assert ours.spent <= 3.0
        paid = paid_in(root)
        ours._looked = -1e9
        assert not ours.reserve(3.0)
        assert ours.pending == 0
        assert paid - 1e-6 <= ours.spent <= 3.0
        if name == "calm":
            assert ours.spent == pytest.approx(paid, abs=1e-6)
            assert ours.spent > 2.95
            assert [process.returncode for process in processes] == [0] * 4
        else:
            assert -signal.SIGKILL in [process.returncode for process in processes]
    for process in processes:
        process.communicate()


def test_threads_share_one_payer(tmp_path):
    with Ledger(tmp_path).account(100.0) as budget:

        def pay(seed):
            chance = random.Random(seed)
            for _ in range(100):
                worst = chance.choice([0.25, 0.5])
                assert budget.reserve(worst)
                budget.settle(worst, 0.125)

        threads = [threading.Thread(target=pay, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (budget.spent, budget.pending) == (50.0, 0)
