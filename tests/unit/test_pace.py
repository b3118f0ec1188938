"""A rate for all processes that ask one service, and a pause that all of them keep."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from comperdial.judges._pace import Level, Pace, Shared
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import FileError
from comperdial.judges.ask import Bucket, Limits, Throttle
from comperdial.judges.ledger import Ledger
from comperdial.judges.services.base import Connection


class Clock:
    """One time for several processes, each of which may be a little off; it passes when somebody sleeps."""

    def __init__(self, now=1e9):
        self.now = now
        self.sleepers = []

    async def sleep(self, seconds):
        wake = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now + seconds, len(self.sleepers), wake))
        await wake

    async def run(self, *tasks):
        """Run tasks until all are done; when all of them sleep, time goes to where the first one wakes."""
        tasks = [asyncio.ensure_future(task) for task in tasks]
        while not all(task.done() for task in tasks):
            for _ in range(20):
                await asyncio.sleep(0)
            if self.sleepers:
                self.sleepers.sort(key=lambda sleeper: sleeper[:2])
                when, _, wake = self.sleepers.pop(0)
                self.now = max(self.now, when)
                if not wake.done():
                    wake.set_result(None)
        return [task.result() for task in tasks]


def throttle(path, clock, off=0.0, **limits):
    return Throttle(Limits(**limits), shared=path, clock=lambda: clock.now + off, sleep=clock.sleep, seed=1)


def most_within(sent, seconds):
    """Return the most that was sent in any so many seconds."""
    return max(sum(amount for when, amount in sent if start <= when < start + seconds) for start, _ in sent)


@settings(max_examples=25, deadline=None)
@given(
    rate=st.sampled_from([30.0, 60.0, 600.0]),
    workers=st.lists(st.tuples(st.integers(0, 3), st.floats(-0.5, 0.5)), min_size=2, max_size=6),
    calls=st.integers(1, 20),
)
def test_all_together_keep_the_rate_and_use_it(tmp_path_factory, rate, workers, calls):
    """Processes whose clocks differ, each with workers of its own."""
    path, clock, sent = tmp_path_factory.mktemp("pace") / "pace", Clock(), []
    shared = {number: throttle(path, clock, off, requests=rate) for number, off in workers}

    async def work(number):
        for _ in range(calls):
            await shared[number].ready()
            sent.append((clock.now, 1.0))

    start = clock.now
    asyncio.run(clock.run(*(work(number) for number, _ in workers)))
    offs = dict(workers).values()
    # Clocks that differ make a stretch of time longer by their difference, once.
    apart = max(offs) - min(offs)
    for seconds in (1, 10, 60):
        assert most_within(sent, seconds) <= rate * (seconds + 1 + apart) / 60 + 1 + 1e-6
    # Nobody waits for nothing.
    assert clock.now - start <= len(sent) * 60 / rate + 1 + apart


@settings(max_examples=25, deadline=None)
@given(pieces=st.lists(st.floats(1, 3000), min_size=2, max_size=30))
def test_tokens_are_shared_too_and_a_large_piece_waits_no_longer_than_the_rate_says(tmp_path_factory, pieces):
    path, clock, sent = tmp_path_factory.mktemp("pace") / "pace", Clock(), []
    shared = [throttle(path, clock, requests=6000, tokens=6000) for _ in range(3)]

    async def work(number):
        for piece in pieces[number::3]:
            await shared[number].ready(piece)
            sent.append((clock.now, piece))

    start = clock.now
    asyncio.run(clock.run(*map(work, range(3))))
    assert most_within(sent, 60) <= 6000 + 100 + max(pieces) + 1e-6
    assert clock.now - start <= sum(pieces) / 100 + 1


def test_nothing_of_an_earlier_run_counts_after_a_minute(tmp_path):
    clock = Clock()
    path = tmp_path / "pace"

    async def wait():
        await throttle(path, clock, requests=60).ready()

    async def killed():
        tasks = [asyncio.ensure_future(wait()) for _ in range(200)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()

    asyncio.run(killed())
    clock.sleepers.clear()
    before = clock.now
    asyncio.run(clock.run(wait()))
    # Two hundred had asked; what they owe is one call and one more.
    assert clock.now - before <= 3
    for _ in range(8):
        throttle(path, clock, most=30, backoff=20).hold()
        clock.now += 30
    clock.now += 60
    late = throttle(path, clock, backoff=1)
    late.hold()
    before = clock.now
    asyncio.run(clock.run(late.ready()))
    assert clock.now - before <= 1


@pytest.mark.parametrize("back", [30.0, 7200.0])
def test_a_clock_that_is_put_back_neither_stops_anybody_for_long_nor_lets_more_pass(tmp_path, back):
    clock, sent = Clock(), []
    path, real = tmp_path / "pace", [0.0]
    # The pause is as long as one can be.
    shared = Throttle(
        Limits(requests=60, patience=100), shared=path, clock=lambda: clock.now - real[0], sleep=clock.sleep, seed=1
    )

    async def work():
        for number in range(30):
            if number == 15:
                real[0] = back
            await shared.ready()
            sent.append((clock.now, 1.0))

    start = clock.now
    asyncio.run(clock.run(work()))
    assert clock.now - start <= 30 + min(back, 1.0 if back > 60 else back) + 2
    assert most_within(sent, 10) <= 12
    shared.hold(after=90)
    real[0] += 7200
    before = clock.now
    asyncio.run(clock.run(shared.ready()))
    assert clock.now - before <= 103


def test_one_pause_for_all_processes(tmp_path):
    clock, path = Clock(), tmp_path / "pace"
    first, second = (throttle(path, clock, backoff=0.5) for _ in range(2))
    first.hold(after=30)
    start = clock.now
    asyncio.run(clock.run(second.ready()))
    assert 30 <= clock.now - start <= 30.5
    # It is made longer while somebody sleeps.
    first.hold(after=30)

    async def longer():
        await clock.sleep(10)
        first.hold(after=60)

    start = clock.now
    asyncio.run(clock.run(second.ready(), longer()))
    assert 70 <= clock.now - start <= 70.5


def test_refusals_of_all_processes_are_one_pause_and_a_success_of_any_ends_the_row(tmp_path):
    clock, path = Clock(), tmp_path / "pace"
    many = [throttle(path, clock, backoff=1.0, most=60) for _ in range(4)]
    for each in many * 10:
        each.hold()
    with Shared(path).open() as pace:
        assert pace.slowed == 1
        assert pace.paused_until <= clock.now + 1
    clock.now += 2
    many[1].hold()
    with Shared(path).open() as pace:
        assert pace.slowed == 2
    many[2].passed()
    with Shared(path).open() as pace:
        assert pace.slowed == 0


@pytest.mark.parametrize("content", [b"", b"x" * 52, b"\xff" * 52, b"short"])
def test_a_file_that_says_nothing_is_one_without_a_past(tmp_path, content):
    path, clock = tmp_path / "pace", Clock()
    path.write_bytes(content)
    asyncio.run(clock.run(throttle(path, clock, requests=60).ready()))
    assert clock.now == Clock().now
    with Shared(path).open() as pace:
        assert pace.requests == Level(0.0, clock.now)


def test_what_is_kept_is_what_was_said(tmp_path):
    said = Pace(Level(-3.5, 1e9), Level(0.25, 2e9), 12.5, 7)
    with Shared(tmp_path / "a" / "pace").open() as pace:
        pace.requests, pace.tokens, pace.paused_until, pace.slowed = said.requests, said.tokens, 12.5, 7
    with Shared(tmp_path / "a" / "pace").open() as pace:
        assert pace == said


def test_a_folder_that_takes_no_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        asyncio.run(Throttle(Limits(), shared=tmp_path / "file" / "pace").ready())


def test_a_clock_that_is_behind_fills_nothing_and_takes_nothing_back():
    level = Level(-10.0, 100.0)
    bucket = Bucket(60, level)
    assert bucket.debt(95.0) == pytest.approx(15.0)
    assert level == Level(-10.0, 100.0)
    assert bucket.debt(104.0) == pytest.approx(6.0)
    assert bucket.debt(10.0) == pytest.approx(6.0)
    assert level.then == 10.0


def test_each_model_of_a_service_has_a_pace_of_its_own(tmp_path):
    ledger = Ledger(tmp_path)
    one = Connection("openai", "a")
    others = [
        Connection("openai", "b"),
        Connection("openai", "a", base_url="http://localhost/v1"),
        Connection("openai", "a", key_variable="MINE"),
        Connection("transformers", "a"),
    ]
    assert len({ledger.pace(each) for each in (one, *others)}) == 5
    assert ledger.pace(one) == ledger.pace(Connection("openai", "a", timeout=5, options={"x": 1}))
    assert ledger.pace(one).parent.parent.parent == tmp_path


CALLER = """
import asyncio, sys, time
from pathlib import Path
from comperdial.judges.ask import Limits, Throttle
async def main():
    throttle = Throttle(Limits(requests=1200), shared=Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.time() + 4
    async def work():
        while time.time() < end:
            await throttle.ready()
            # The time until which it may have been sent is read after.
            print(time.time(), flush=True)
    await asyncio.gather(*(work() for _ in range(4)))
asyncio.run(main())
"""


def test_four_processes_send_no_more_than_one_may(tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CALLER, str(tmp_path / "pace")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    start = time.time()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    sent = sorted(float(line) for process in processes for line in process.communicate(timeout=120)[0].split())
    assert [process.returncode for process in processes] == [0] * 4
    # From the first on; later stretches can hold what a busy machine had held up.
    for seconds in (1, 2, 3):
        assert sum(when - start < seconds for when in sent) <= 20 * (seconds + 1) + 1
    assert len(sent) <= 20 * (sent[-1] - start + 1) + 1
    # All of them got their turns.
    assert len(sent) >= 8
