"""Judging against a service on loopback (tests/faultserver.py): speed and memory, faults, processes that are killed.

python benchmarks/judges.py              all at full size: 10,395 turns x 3 samples
python benchmarks/judges.py --small      the same with 400 turns and 3 kills
python benchmarks/judges.py --only speed faults kills inside
python benchmarks/judges.py --profile    where the time of a call goes
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The service is the tests' too.
sys.path.insert(0, str(ROOT / "tests"))

import faultserver  # noqa: E402

SAMPLES = 3
KINDS = ("speed", "inside", "faults", "kills")
# A prompt of the paper's length, about 3 kB.
WORDS = 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    turns, kills = (400, 3) if options.small else (10_395, 20)
    with tempfile.TemporaryDirectory() as folder:
        if options.profile:
            profile(Path(folder), options.concurrency)
            return
        print(f"{turns:,} turns x {SAMPLES} samples, {options.concurrency} calls at a time")
        for kind in options.only:
            {"speed": speed, "inside": inside, "faults": faults, "kills": kill}[kind](
                Path(folder), turns, kills, options.concurrency
            )


@contextmanager
def served(share: float = 0.0) -> Iterator[str]:
    """Run the service in a process of its own; give its address."""
    command = [sys.executable, str(ROOT / "tests" / "faultserver.py"), "--share", str(share)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout  # noqa: S101
        try:
            yield faultserver.FORMAT.format(int(process.stdout.readline()))
        finally:
            process.terminate()


def measured(url: str, ledger: str, turns: int, concurrency: int, out: Any) -> None:
    """Judge; send judgements a second, ms of processor a call, and MiB at the most before, run and with all closed."""
    faultserver.judge(url, ledger + "-warm-up", 20)
    memory = [_memory()]
    before = time.process_time()
    report = faultserver.judge(
        url, ledger, turns, SAMPLES, concurrency, timeout=10, words=WORDS, ended=lambda: memory.append(_memory())
    )
    report.check()
    processor = (time.process_time() - before) / report.asked
    out.send((report.done / report.seconds, processor * 1000, *memory, _memory()))


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(folder: Path, turns: int, kills: int, concurrency: int) -> None:
    print("\n| instant service | judgements a second | ms of processor a call | MiB before | run | ledger closed |")
    print("|:--|--:|--:|--:|--:|--:|")
    with served() as url:
        for part in (turns // 4, turns):
            rate, processor, *memory = _apart(measured, url, str(folder / f"speed-{part}"), part, concurrency)
            amounts = " | ".join(f"{amount:.0f}" for amount in memory)
            print(f"| {part * SAMPLES:,} judgements | {rate:.0f} | {processor:.2f} | {amounts} |")


def _apart(function: Any, *arguments: Any) -> Any:
    """Run a function in a new process; return what it sends."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=function, args=(*arguments, there))
    process.start()
    while not here.poll(1):
        if not process.is_alive():
            raise SystemExit("a measuring process ended early")
    result = here.recv()
    process.join()
    return result


def inside(folder: Path, turns: int, kills: int, concurrency: int) -> None:
    """Time a service in process that answers at once: what a call costs without any network."""
    rate, processor = _apart(_inside, str(folder / "inside"), turns, concurrency)
    print(f"\nservice in process: {rate:.0f} judgements a second, {processor:.2f} ms of processor a call")


def _inside(ledger: str, turns: int, concurrency: int, out: Any) -> None:
    from comperdial.judges.base import Completion
    from comperdial.judges.services.base import Connection, Service

    class Instant(Service):
        name = "instant"

        async def complete(self, messages: object, parameters: object) -> Completion:
            return Completion("Overall: 4", "stop", 700, 4, "instant-1")

    faultserver.service = lambda *_, **__: Instant(Connection("instant", "loopback"))
    before = time.process_time()
    report = faultserver.judge("", ledger, turns, SAMPLES, concurrency, words=WORDS)
    report.check()
    out.send((report.done / report.seconds, (time.process_time() - before) / report.asked * 1000))


def faults(folder: Path, turns: int, kills: int, concurrency: int) -> None:
    with served(0.3) as url:
        report = faultserver.judge(url, folder / "faults", turns, SAMPLES, concurrency, words=WORDS)
        counts = faultserver.asked_of(url)
    lines = faultserver.table(folder / "faults", turns, SAMPLES, WORDS).decode().splitlines()
    answered = Counter(counts["delivered"].values())
    print(f"\n30 % faults\n{report}\nfaults met: {json.dumps(counts['met'])}")
    print(f"in the table: {len(set(lines)):,} judgements, {sum('missing' in line for line in lines)} missing")
    print(f"answers in full by prompt: {dict(answered)} ({SAMPLES}: rated; {SAMPLES * 3}: no rating after all retries)")
    print(f"answers in full that were asked for again: {faultserver.repeated(counts['delivered']):,}")


def kill(folder: Path, turns: int, kills: int, concurrency: int) -> None:
    chance = random.Random(0)  # noqa: S311
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faultserver", "comperdial.judges.ask", "comperdial.judges.services.openai"])
    with served(0.3) as url:
        faultserver.judge(url, folder / "whole", turns, SAMPLES, concurrency, words=WORDS)
        expected = faultserver.table(folder / "whole", turns, SAMPLES, WORDS)
    total = turns * SAMPLES
    done, moments, repeats = 0, [], []
    with served(0.3) as url:
        for moment in sorted(chance.randrange(total) for _ in range(kills)):
            arguments = (url, folder / "killed", turns, SAMPLES, concurrency, 0.5, WORDS)
            process = context.Process(target=faultserver.judge, args=arguments)
            process.start()
            while process.is_alive() and _delivered(url) < max(moment, done + 1):
                time.sleep(chance.random() * 0.05)
            assert process.pid  # noqa: S101
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            # What it had sent may still be answered.
            time.sleep(0.2)
            done = _delivered(url)
            lost = done - faultserver.kept(folder / "killed")
            moments.append(done)
            repeats.append(lost - sum(repeats))
        report = faultserver.judge(url, folder / "killed", turns, SAMPLES, concurrency, words=WORDS)
        counts = faultserver.asked_of(url)
    report.check()
    same = faultserver.table(folder / "killed", turns, SAMPLES, WORDS) == expected
    twice = faultserver.repeated(counts["delivered"])
    print(f"\nkilled {kills} times, after {', '.join(f'{n:,}' for n in moments)} answers in full; then run to the end")
    print(f"final table byte-identical to an uninterrupted run's: {same}")
    print(f"calls repeated: {twice} in all, {max(repeats)} at most for a kill (bound: {concurrency})")


def _delivered(url: str) -> int:
    return int(faultserver.asked_of(url, full=False)["answers"])


def profile(folder: Path, concurrency: int) -> None:
    with served() as url:
        faultserver.judge(url, folder / "warm-up", 20)
        profiler = cProfile.Profile()
        profiler.enable()
        report = faultserver.judge(url, folder / "profile", 1000, SAMPLES, concurrency, timeout=30, words=WORDS)
        profiler.disable()
    print(report)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
