"""Processes that judge shards at once: what one process would have made, for no more money, at no higher rate."""

from __future__ import annotations

import json
import os
import random
import signal
import time

import httpx2

import faultserver
from comperdial.core.sharding import Shard
from comperdial.judges.base import Family
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import Price, most_input
from faultserver import FAMILY, PARAMETERS, FaultServer, prompt

SHARDS = 4
PRICE = Price("loopback", None, 10.0, 30.0)
COST = PRICE.of(700, 4)
WORST = PRICE.of(most_input(json.loads(prompt(1, words=60))), PARAMETERS["max_tokens"])


def start(processes, server, root, turns, **options):
    """Start a process a shard."""
    started = []
    for number in range(1, SHARDS + 1):
        arguments = (server.url, root, turns, f"{number}/{SHARDS}")
        started.append(processes.Process(target=faultserver.pay, args=arguments, kwargs=options))
        started[-1].start()
    return started


def shelf(root):
    return Ledger(root).shelf("demo", Family(parameters=PARAMETERS, **FAMILY))


def answers(root):
    """Return what was answered to what, as a set; each request once."""
    frame = shelf(root).frame()
    found = {(row.messages, row.sample, row.answer) for row in frame.itertuples()}
    assert len(found) == len(frame)
    return found


def end(started, server=None):
    """Wait for processes, and for the server to have met what the killed ones had sent; return how they ended."""
    for process in started:
        process.join(120)
    # Its loop takes what was sent before in the same turn as the first of these, or earlier.
    for _ in range(2 if server else 0):
        httpx2.get(server.url).raise_for_status()
    return [process.exitcode for process in started]


def test_four_shards_at_once_make_what_one_process_makes(tmp_path, processes):
    with FaultServer(0.2, faults=("429", "429 and when", "500", "cut"), seed=1) as server:
        faultserver.pay(server.url, tmp_path / "one", 120, limit=100.0).check()
        server.delivered.clear()
        assert end(start(processes, server, tmp_path / "four", 120, limit=100.0)) == [0] * SHARDS
    assert set(server.delivered.values()) == {1}
    assert answers(tmp_path / "four") == answers(tmp_path / "one")
    assert len(answers(tmp_path / "four")) == 120
    # Each keeps its part; nothing else is left, and what calls may have cost is no more than the faults.
    assert len([*shelf(tmp_path / "four").path.glob("part-*")]) == SHARDS
    assert not [*shelf(tmp_path / "four").path.glob("*journal-*")]
    again = faultserver.pay("http://127.0.0.1:9/v1", tmp_path / "four", 120, limit=100.0)
    assert (again.done, again.from_ledger, again.asked) == (120, 120, 0)


def test_a_budget_for_all_is_used_and_never_passed_also_when_one_is_killed(tmp_path, processes):
    turns, limit, chance = 200, 0.6, random.Random(2)
    assert COST < WORST
    assert COST * 40 < limit < COST * turns
    with FaultServer() as server:
        started = start(processes, server, tmp_path, turns, limit=limit)
        goal = 20 + chance.randrange(10)
        while server.delivered.total() < goal:
            assert server.delivered.total() * COST <= limit
            time.sleep(0.002)
        os.kill(started[1].pid, signal.SIGKILL)
        while any(process.is_alive() for process in started):
            assert server.delivered.total() * COST <= limit
            time.sleep(0.002)
        assert [code for code in end(started, server) if code] == [-signal.SIGKILL]
        ledger, delivered = Ledger(tmp_path), server.delivered.total()
        paid = delivered * COST
        with ledger.account(limit) as budget:
            # Who was killed has four calls under way at most; they count, also if their answers were kept just then.
            assert paid - 1e-9 <= budget.spent <= limit + 4 * WORST * 1.01
            assert not budget.reserve(WORST)
        assert delivered - 4 <= len(shelf(tmp_path)) <= delivered
        lost = delivered - len(shelf(tmp_path))
        charges = tmp_path / "charges.jsonl"
        killed = [json.loads(line) for line in charges.read_text().splitlines()] if charges.exists() else []
        # A prompt with a longer number in it can cost a little more.
        assert sum(row["cost"] for row in killed) <= 4 * WORST * 1.01
        # With more money all is judged, and nothing that was on the disk is asked again.
        assert end(start(processes, server, tmp_path, turns, limit=10.0)) == [0] * SHARDS
    assert len(answers(tmp_path)) == turns
    assert server.delivered.total() == turns + lost
    assert ledger.spent() >= turns * COST - 1e-9


def test_who_finds_no_room_waits_for_what_others_leave(tmp_path, processes):
    """The worst case is set aside elsewhere, and given back: nobody stops for that."""
    turns = 12
    with FaultServer() as server, Ledger(tmp_path).account(1.0) as ours:
        assert ours.reserve(1.0 - WORST / 2)
        started = start(processes, server, tmp_path, turns, limit=1.0)
        while len([*tmp_path.glob(".running/account/payer-*")]) <= SHARDS:
            time.sleep(0.02)
        time.sleep(1.5)
        assert all(process.is_alive() for process in started)
        assert server.requests == 0
        ours.settle(1.0 - WORST / 2, 0.1)
        assert end(started) == [0] * SHARDS
    assert len(answers(tmp_path)) == turns


def test_a_rate_for_all(tmp_path, processes):
    turns, pace = 40, tmp_path / ".running" / "pace" / "x"
    with FaultServer() as server:
        begun = time.monotonic()
        assert end(start(processes, server, tmp_path, turns, limit=100.0, pace=pace, requests=300.0)) == [0] * SHARDS
        took = time.monotonic() - begun
    assert server.delivered.total() == turns
    # Five a second, and a second's worth and one more at the start. Each for itself would have taken a second.
    assert took >= (turns - 6) / 5


def test_a_killed_shard_loses_no_more_than_its_calls_in_flight(tmp_path, processes):
    turns, chance, lost, kills = 160, random.Random(3), 0, 0
    with FaultServer() as server:
        for _ in range(3):
            started = start(processes, server, tmp_path, turns, limit=100.0)
            goal = server.delivered.total() + 5 + chance.randrange(20)
            while server.delivered.total() < goal and any(process.is_alive() for process in started):
                time.sleep(0.002)
            for process in started[:2]:
                process.kill()
            codes = end(started, server)
            assert codes[2:] == [0, 0]
            kills += codes.count(-signal.SIGKILL)
            before, lost = lost, server.delivered.total() - len(shelf(tmp_path))
            assert 0 <= lost - before <= 2 * 4
        assert end(start(processes, server, tmp_path, turns, limit=100.0)) == [0] * SHARDS
    assert kills
    assert len(answers(tmp_path)) == turns
    assert server.delivered.total() == turns + lost
    for number in range(1, SHARDS + 1):
        part = Shard(number, SHARDS)
        found = Ledger(tmp_path).shelf("demo", Family(parameters=PARAMETERS, **FAMILY), part)
        assert len(found) == sum(part.holds(prompt(turn, words=60)) for turn in range(turns))
