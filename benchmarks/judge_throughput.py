"""Supports the claim that keeping, parsing and scoring answers costs little: requests a second of a judge / of the bare client.

`python benchmarks/judge_throughput.py [--requests 2000] [--concurrency 16]`: `comperdial judge file` asks an instant server on
127.0.0.1, a process of its own, so many requests; openai's asynchronous client alone asks it as many, as many at a time. Both
send the same prompts, each once. The command's start (imports, reading the file) counts for neither side.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import Process, Queue, Value
from pathlib import Path
from typing import Any

import openai
from judges import WORDS, serve

from comperdial.cli import main as comperdial

ROOT = Path(__file__).resolve().parents[1]


def judged(url: str, count: int, concurrency: int, folder: Path) -> tuple[float, list[Any]]:
    """Have responses judged by the command; return the requests a second that it reports, and the chats that it sent."""
    records = [json.dumps({"response": f"{number} {WORDS}", "history": ["Hello."]}) + "\n" for number in range(count)]
    (folder / "mine.jsonl").write_text("".join(records))
    command = f"judge file {folder}/mine.jsonl --variant cpds-d --base-url {url} --model m --answers {folder}/ledger"
    command += f" --concurrency {concurrency} --output {folder}/scores.csv --params {ROOT}/params.yaml"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = comperdial(command.split())
    report = re.search(r"answers to ([\d,]+) calls in ([\d.]+) s", printed.getvalue())
    if status or report is None:
        raise SystemExit(f"the command failed: {printed.getvalue()}")
    with contextlib.closing(sqlite3.connect(folder / "ledger/answers.sqlite")) as database:
        chats = [json.loads(messages) for (messages,) in database.execute("SELECT messages FROM answers")]
    return int(report[1].replace(",", "")) / float(report[2]), chats


async def plain(url: str, chats: Sequence[Any], concurrency: int) -> float:
    """Send the same chats with the client alone; return the requests a second."""
    left, start = iter(chats), time.perf_counter()

    async def work(client: openai.AsyncOpenAI) -> None:
        for chat in left:
            await client.chat.completions.create(model="m", messages=chat, max_tokens=512)

    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        await asyncio.gather(*(work(client) for _ in range(concurrency)))
    return len(chats) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    ports: Queue[int] = Queue()
    server = Process(target=serve, args=(ports, 0.0, Value("i")), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ports.get()}/v1"
    with tempfile.TemporaryDirectory() as folder:
        ours, chats = judged(url, options.requests, options.concurrency, Path(folder))
    alone = asyncio.run(plain(url, chats, options.concurrency))
    server.terminate()
    print("| requests | judge file, 1/s | client alone, 1/s | ratio |\n|--:|--:|--:|--:|")
    print(f"| {options.requests:,} | {ours:.0f} | {alone:.0f} | {ours / alone:.2f} |")


if __name__ == "__main__":
    main()
