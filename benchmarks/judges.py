"""Supports docs/judges.md: judging survives faults and kills without losing or paying an answer twice, and adds little time.

python benchmarks/judges.py [--items 2000] [--kills 5] [--concurrency 32]        faults in 30 % of the calls, killed processes
python benchmarks/judges.py throughput [--items 2000] [--concurrency 16]         requests per second, and openai's client alone

The server answers instantly and runs on this machine, in its own process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import Process, Queue, Value
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# A prompt of the paper's length, about 3 kB.
WORDS = " ".join(["conversation"] * 250)
ANSWER = {
    "choices": [{"message": {"content": "Humanness: 4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 260, "completion_tokens": 2},
}
COUNTS = """SELECT COUNT(*), COUNT(DISTINCT key), TOTAL(cost), (SELECT COUNT(*) FROM charges), (SELECT TOTAL(amount) FROM charges)
FROM answers"""
# Share of faults, whether processes are killed, and a budget in dollars (0: the server costs nothing); the last is too small.
RUNS = ((0.0, False, 0.0), (0.3, True, 0.0), (0.3, True, 20.0), (0.3, False, 0.5))


def serve(port: Queue[int], faults: float, answered: Any) -> None:
    """Answer chat completions, with as little work as possible."""
    body = json.dumps(ANSWER).encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            status = random.choice([b"429 Slow", b"500 Oops", b"cut"]) if random.random() < faults else b"200 OK"  # noqa: S311
            if status == b"cut":
                break
            header = b"HTTP/1.1 %s\r\nretry-after-ms: 5\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
            writer.write(header + body)
            await writer.drain()
            answered.value += status == b"200 OK"
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def server(faults: float) -> Iterator[tuple[str, Any]]:
    """Start a server; provide its address and its count of answers."""
    ports: Queue[int] = Queue()
    answered = Value("i")
    process = Process(target=serve, args=(ports, faults, answered), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ports.get()}/v1", answered
    finally:
        process.terminate()


def judge(folder: str, url: str, items: str, concurrency: str, budget: str) -> None:
    """Judge items in a separate process."""
    from comperdial.judges.items import Item, message
    from comperdial.judges.judging import judge_items
    from comperdial.judges.tasks import Task

    sys.path.insert(0, str(ROOT / "tests"))
    from minijudging import judging_of

    (Path(folder) / "prices.yaml").write_text("m: [{from: 2024-01-01, input: 1.0, output: 2.0, source: invented}]\n")
    service = {"base_url": url, "concurrency": int(concurrency), "free": not float(budget)}
    judging = judging_of(service, Path(folder), budget=float(budget), prices=f"{folder}/prices.yaml")
    task = Task(judging, judging.judges["server"], judging.variants["cpds-d"], 1)
    asked = [Item("mine", f"c{n}", "bot", message(f"{n} {WORDS}")) for n in range(int(items))]
    result = judge_items(task, asked, dataset="mine")
    print(f"{len(result.scores)} scores; {result.report}")


def counts(file: Path) -> tuple[float, ...]:
    """Return the numbers of stored and distinct answers, their cost, calls without an answer and their cost."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            return tuple(database.execute(COUNTS).fetchone())
    except sqlite3.Error:
        return (0, 0, 0.0, 0, 0.0)


def faults(items: int, concurrency: int, kills: int) -> None:
    for share, killed, budget in RUNS:
        with server(share) as (url, answered), tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "judge", folder, url, str(items), str(concurrency), str(budget)]
            file, times = Path(folder) / "ledger/answers.sqlite", kills if killed else 0
            for number in range(1, times + 1):
                running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while counts(file)[0] < items * number / (times + 1) and running.poll() is None:
                    time.sleep(random.uniform(0, 0.1))  # noqa: S311
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
            print(
                f"faults {share:.0%}, {times} kills, budget {budget or 'none'}: {counts(file)[0]} answers so far",
                flush=True,
            )
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
            print("   ", (ended.stdout or ended.stderr).strip().splitlines()[-1])
            answers, different, cost, lost, charged = counts(file)
            print(f"    {answers} answers, {different} different, ${cost:.4f}; {answered.value} sent by the server,")
            print(f"    {lost} calls charged without an answer, ${charged:.4f}", flush=True)
            if budget and cost + charged > budget:
                raise SystemExit("the run cost more than its budget")


async def plain(url: str, chats: list[Any], concurrency: int) -> float:
    """Send the chats with the client alone; return the requests per second."""
    import openai

    left, start = iter(chats), time.perf_counter()

    async def work(client: openai.AsyncOpenAI) -> None:
        for chat in left:
            await client.chat.completions.create(model="m", messages=chat, max_tokens=512)

    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        await asyncio.gather(*(work(client) for _ in range(concurrency)))
    return len(chats) / (time.perf_counter() - start)


def throughput(items: int, concurrency: int) -> None:
    from comperdial.cli import main as comperdial

    with server(0.0) as (url, _), tempfile.TemporaryDirectory() as folder:
        records = [json.dumps({"response": f"{number} {WORDS}", "history": ["Hello."]}) for number in range(items)]
        (Path(folder) / "mine.jsonl").write_text("\n".join(records))
        command = f"judge file {folder}/mine.jsonl --prompt cpds-d --server {url} --model m --answers {folder}/ledger"
        command += f" --concurrency {concurrency} --output {folder}/scores.csv --params {ROOT}/params.yaml"
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = comperdial(command.split())
        report = re.search(r"answers to ([\d,]+) calls in ([\d.]+) s", printed.getvalue())
        if status or report is None:
            raise SystemExit(f"the command failed: {printed.getvalue()}")
        ours = int(report[1].replace(",", "")) / float(report[2])
        with contextlib.closing(sqlite3.connect(f"{folder}/ledger/answers.sqlite")) as database:
            chats = [json.loads(messages) for (messages,) in database.execute("SELECT messages FROM answers")]
        alone = asyncio.run(plain(url, chats, concurrency))
    print("| requests | judge file, 1/s | client alone, 1/s | ratio |\n|--:|--:|--:|--:|")
    print(f"| {items:,} | {ours:.0f} | {alone:.0f} | {ours / alone:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=["faults", "throughput"], default="faults")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, help="default: 32; throughput: 16")
    options = parser.parse_args()
    if options.case == "throughput":
        throughput(options.items, options.concurrency or 16)
    else:
        faults(options.items, options.concurrency or 32, options.kills)


if __name__ == "__main__":
    judge(*sys.argv[2:]) if sys.argv[1:2] == ["judge"] else main()
