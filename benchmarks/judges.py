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
from multiprocessing import Process, Queue
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
# A prompt of the paper's length, about 3 kB.
WORDS = " ".join(["conversation"] * 250)


def serve(port: Queue[int], faults: float) -> None:
    """Answer chat completions, with as little work as possible."""
    body = json.dumps(
        {
            "choices": [{"message": {"content": "Humanness: 4"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 2},
        }
    ).encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            status = random.choice([b"429 Slow", b"500 Oops", b"cut"]) if random.random() < faults else b"200 OK"  # noqa: S311
            if status == b"cut":
                break
            writer.write(
                b"HTTP/1.1 %s\r\nretry-after-ms: 5\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
            )
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def judge(folder: str, port: str, items: str, concurrency: str) -> None:
    """Have items judged, as a process of its own."""
    from comperdial.judges.items import Item, message
    from comperdial.judges.scores import judge_items
    from comperdial.judges.tasks import Task
    from minijudging import judging_of

    server = {"base_url": f"http://127.0.0.1:{port}/v1", "concurrency": int(concurrency)}
    judging = judging_of(server, Path(folder))
    task = Task(judging.judges["server"], judging.variants["cpds-d"], 1)
    asked = [Item("mine", f"c{n}", "bot", message(f"{n} {WORDS}")) for n in range(int(items))]
    found = judge_items(judging, task, asked, dataset="mine")
    print(f"{len(found.scores)} scores; {found.report}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    for faults, kills in ((0.0, 0), (0.3, options.kills)):
        ports: Queue[int] = Queue()
        server = Process(target=serve, args=(ports, faults), daemon=True)
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "judge", folder, str(ports.get()), str(options.items)]
            command.append(str(options.concurrency))
            for _ in range(kills):
                running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(random.uniform(3, 6))  # noqa: S311
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
            print(f"faults {faults:.0%}, {kills} kills")
            subprocess.run(command, check=True)
            database = sqlite3.connect(Path(folder) / "ledger/answers.sqlite")
            print(
                *database.execute("SELECT COUNT(*), COUNT(DISTINCT key) FROM answers").fetchone(),
                "answers, different ones",
            )
        server.terminate()


if __name__ == "__main__":
    judge(*sys.argv[2:]) if sys.argv[1:2] == ["judge"] else main()
