"""Judging against an instant server on this machine: speed; and 30 % faults with processes that are killed.

python benchmarks/judges.py [--items 2000] [--kills 5] [--concurrency 32]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from multiprocessing import Process, Queue, Value
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
# A prompt of the paper's length, about 3 kB.
WORDS = " ".join(["conversation"] * 250)


def serve(port: Queue[int], faults: float, answered: Any) -> None:
    """Answer chat completions, with as little work as possible."""
    body = json.dumps(
        {
            "choices": [{"message": {"content": "Humanness: 4"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 260, "completion_tokens": 2},
        }
    ).encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            status = random.choice([b"429 Slow", b"500 Oops", b"cut"]) if random.random() < faults else b"200 OK"  # noqa: S311
            if status == b"cut":
                break
            writer.write(
                b"HTTP/1.1 %s\r\nretry-after-ms: 5\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
            )
            await writer.drain()
            answered.value += status == b"200 OK"
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def judge(folder: str, port: str, items: str, concurrency: str, budget: str) -> None:
    """Have items judged, as a process of its own; with a budget, by a server that costs money."""
    from comperdial.judges.items import Item, message
    from comperdial.judges.judging import judge_items
    from comperdial.judges.tasks import Task
    from minijudging import judging_of

    (Path(folder) / "prices.yaml").write_text("m: [{from: 2024-01-01, input: 1.0, output: 2.0, source: invented}]\n")
    server = {"base_url": f"http://127.0.0.1:{port}/v1", "concurrency": int(concurrency), "free": not float(budget)}
    judging = judging_of(server, Path(folder), budget=float(budget), prices=f"{folder}/prices.yaml")
    task = Task(judging, judging.judges["server"], judging.variants["cpds-d"], 1)
    asked = [Item("mine", f"c{n}", "bot", message(f"{n} {WORDS}")) for n in range(int(items))]
    result = judge_items(task, asked, dataset="mine")
    print(f"{len(result.scores)} scores; {result.report}")


def kept(file: Path) -> int:
    """Return how many answers are in a file."""
    try:
        return int(
            sqlite3.connect(f"file:{file}?mode=ro", uri=True).execute("SELECT COUNT(*) FROM answers").fetchone()[0]
        )
    except sqlite3.Error:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    # Speed; faults and kills; the same within a budget that is enough, and within one that is not.
    for faults, kills, budget in ((0.0, 0, 0.0), (0.3, options.kills, 0.0), (0.3, options.kills, 20.0), (0.3, 0, 0.5)):
        ports: Queue[int] = Queue()
        answered = Value("i")
        server = Process(target=serve, args=(ports, faults, answered), daemon=True)
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "judge", folder, str(ports.get()), str(options.items)]
            command += [str(options.concurrency), str(budget)]
            file = Path(folder) / "ledger/answers.sqlite"
            for number in range(1, kills + 1):
                running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while kept(file) < options.items * number / (kills + 1) and running.poll() is None:
                    time.sleep(random.uniform(0, 0.1))  # noqa: S311
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
            print(
                f"faults {faults:.0%}, {kills} kills, budget {budget or 'none'}: {kept(file)} answers so far",
                flush=True,
            )
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
            print("   ", (ended.stdout or ended.stderr).strip().splitlines()[-1])
            database = sqlite3.connect(file)
            counts = database.execute("SELECT COUNT(*), COUNT(DISTINCT key), TOTAL(cost) FROM answers").fetchone()
            charged = database.execute("SELECT COUNT(*), TOTAL(amount) FROM charges").fetchone()
            print(f"    {counts[0]} answers, {counts[1]} different, ${counts[2]:.4f}", end="; ")
            print(
                f"{answered.value} sent by the server, {charged[0]} calls charged without an answer, ${charged[1]:.4f}",
                flush=True,
            )
            if budget and counts[2] + charged[1] > budget:
                raise SystemExit("the budget was passed")
        server.terminate()


if __name__ == "__main__":
    judge(*sys.argv[2:]) if sys.argv[1:2] == ["judge"] else main()
