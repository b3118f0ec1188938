"""A chat service on loopback that fails as services do, counts what it did, and answers the same to the same prompt.

Also what its users share: a run of judgements against it (in a process that may be killed), and the final table.
"""

import argparse
import asyncio
import email.utils
import hashlib
import json
import random
import re
import sys
import threading
import time
import urllib.request
from collections import Counter

FAULTS = ("429", "429 and when", "500", "cut", "hang", "half", "not JSON", "shape", "empty")
KEY = "sk-loopback-0123456789abcdef"
FORMAT = "http://127.0.0.1:{}/v1"


class FaultServer:
    """Serves from a thread of its own; a context manager.

    share
        Of calls that meet a fault, drawn from ``faults``.
    script
        Instead: takes the number of the call (from 1) and its body, and returns a fault, an answer as bytes, a pair
        of status and body (and headers, third), or None for the usual answer.
    """

    def __init__(self, share=0.0, faults=FAULTS, seed=0, script=None, port=0):
        self.share, self.faults, self.script, self.port = share, faults, script, port
        self.random = random.Random(seed)
        self.requests = 0
        self.bodies = []
        self.headers = []
        self.delivered = Counter()
        self.met = Counter()
        self.busy = self.most = 0

    @property
    def url(self):
        return FORMAT.format(self.port)

    async def serve(self, ready=lambda: None):
        self.end = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        server = await self.loop.create_server(lambda: Connection(self), "127.0.0.1", self.port, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self.end.wait()
        server.close()

    def __enter__(self):
        started = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve(started.set)), daemon=True)
        self.thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join(10)

    def plan(self, body):
        """Return what is to happen to a call."""
        self.requests += 1
        if self.script:
            return self.script(self.requests, json.loads(body))
        return self.random.choice(self.faults) if self.random.random() < self.share else None

    def counts(self, full):
        answers = {"delivered": dict(self.delivered)} if full else {}
        return {"requests": self.requests, "met": dict(self.met), "answers": self.delivered.total(), **answers}


class Connection(asyncio.Protocol):
    """HTTP/1.1, as much of it as the openai client speaks."""

    def __init__(self, server):
        self.server = server
        self.buffer = b""
        self.hanging = False

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        if self.hanging:
            self.server.busy -= 1

    def data_received(self, data):
        self.buffer += data
        head, gap, rest = self.buffer.partition(b"\r\n\r\n")
        if not gap:
            return
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if len(rest) >= size:
            self.buffer = rest[size:]
            self.answer(head, rest[:size])

    def answer(self, head, body):
        server = self.server
        if head.startswith(b"GET"):
            return self.send(200, json.dumps(server.counts(head.startswith(b"GET /all"))).encode())
        server.busy += 1
        server.most = max(server.most, server.busy)
        if server.script:
            server.bodies.append(json.loads(body))
            server.headers.append(head.decode())
        plan = server.plan(body)
        if isinstance(plan, str):
            server.met[plan] += 1
        self.hanging = plan == "hang"
        if self.hanging:
            return None
        server.busy -= 1
        if isinstance(plan, tuple):
            return self.send(*plan)
        if isinstance(plan, bytes):
            return self.send(200, plan)
        return self.fail(plan, body) if plan else self.send(200, completion(body), of=digest(body))

    def fail(self, fault, body):
        if fault == "cut":
            self.transport.abort()
        elif fault == "half":
            self.send(200, completion(body), half=True)
        elif fault == "500":
            self.send(500, b"<html>oops</html>")
        elif fault == "drip":
            self.send(200, completion(body), drip=True)
        elif fault == "not JSON":
            self.send(200, b"<html>hello</html>")
        elif fault == "shape":
            self.send(200, b'{"hello": ["world"]}')
        elif fault == "empty":
            self.send(200, b'{"object": "chat.completion", "choices": []}')
        else:
            now = email.utils.formatdate(time.time(), usegmt=True)
            when = {"retry-after-ms": "5"} if self.server.requests % 2 else {"retry-after": now}
            error = b'{"error": {"message": "too many requests", "code": "rate_limit_exceeded"}}'
            self.send(429, error, when if fault == "429 and when" else {})

    def drip(self, body):
        if body and not self.transport.is_closing():
            self.transport.write(body[:1])
            asyncio.get_running_loop().call_later(0.03, self.drip, body[1:])

    def send(self, status, body, headers=(), *, half=False, drip=False, of=None):
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        sent = b"" if drip else body[: len(body) // 2] if half else body
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + sent)
        if drip:
            self.drip(body)
        if half:
            self.transport.close()
        if of:
            self.server.delivered[of] += 1


def digest(body):
    return hashlib.sha256(body).hexdigest()[:16]


def completion(body, text=None):
    """Answer a prompt, always with the same: a rating, or (one of 40) nothing that can be read as one."""
    rating = int(digest(body)[:4], 16) % 40
    text = text or ("I would rather not say." if rating == 0 else f"Overall: {1 + rating % 5}")
    content = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 700, "completion_tokens": 4, "total_tokens": 704},
    }
    return json.dumps(content).encode()


def repeated(delivered, samples=3, retries=2):
    """Count the answers that were given in full beyond those that a run needs; 0 at least."""
    needs = {of: samples * (1 if int(of[:4], 16) % 40 else retries + 1) for of in delivered}
    assert all(count >= needs[of] for of, count in delivered.items())
    return sum(count - needs[of] for of, count in delivered.items())


def parse(answer):
    from comperdial.judges.base import Parsed

    found = re.fullmatch(r"Overall: ([1-5])", answer.text)
    return Parsed({"overall": float(found[1])}) if found else Parsed({}, failure="no rating")


def prompt(turn, words=40):
    """Return the messages of a turn, encoded."""
    from comperdial.judges.base import encode_messages

    return encode_messages(
        [{"role": "user", "content": f"Rate the response of turn {turn}. " + "So it goes. " * words}]
    )


FAMILY = {"judge": "loop", "service": "openai", "model": "loopback", "prompt": "p", "prompt_hash": "0" * 64}
PARAMETERS = {"temperature": 1, "max_tokens": 20}


def service(url, *, key_variable=None, timeout=5, model="loopback"):
    from comperdial.judges.services.base import Connection
    from comperdial.judges.services.openai import OpenAI

    return OpenAI(Connection("openai", model, base_url=url, key_variable=key_variable, timeout=timeout))


class Turn:
    """What is judged: an item as :class:`comperdial.judges.ask.Wanted` has it."""

    def __init__(self, turn, words=40):
        self.messages = prompt(turn, words)


def asker(service, writer, **options):
    from comperdial.judges.ask import Asker, Limits

    options = {"limits": Limits(backoff=0.005, most=0.05, attempts=25), "read": parse, **options}
    return Asker(service, writer, parameters=PARAMETERS, **options)


def family():
    from comperdial.judges.base import Family

    return Family(parameters=PARAMETERS, **FAMILY)


def judge(url, ledger, turns, samples=3, concurrency=16, timeout=1, words=40, retries=2, ended=None, **options):
    """Have so many turns judged, every sample; return the report. ``ended`` is called before the ledger is closed."""
    from comperdial.judges.ledger import Ledger

    with Ledger(ledger).open("demo", family()) as writer:
        made = asker(
            service(url, timeout=timeout), writer, samples=samples, retries=retries, concurrency=concurrency,
            total=turns * samples, **options,
        )  # fmt: skip
        report = made.run(Turn(turn, words) for turn in range(turns))
        if ended:
            ended()
        return report


def pay(url, ledger, turns, shard="1/1", limit=1.0, price=(10.0, 30.0), concurrency=4, requests=None, **options):
    """Have a shard of the turns judged by a service that costs money, one sample each; return the report."""
    import datetime

    from comperdial.core.sharding import Shard
    from comperdial.judges.ask import Limits
    from comperdial.judges.ledger import Ledger
    from comperdial.judges.prices import Price

    part, paid = Shard.parse(shard), service(url, timeout=10)
    paid.paid = True
    with Ledger(ledger, part).open("demo", family(), budget=limit, paid=True) as writer:
        made = asker(
            paid, writer, concurrency=concurrency, price=Price("loopback", datetime.date(2024, 1, 1), *price),
            limits=Limits(backoff=0.005, most=0.05, attempts=25, requests=requests), **options,
        )  # fmt: skip
        return made.run(turn for turn in (Turn(number, 60) for number in range(turns)) if part.holds(turn.messages))


def kept(ledger):
    """Return how many answers a ledger holds."""
    from comperdial.judges.ledger import Ledger

    return len(Ledger(ledger).answers("demo", family()))


def table(ledger, turns, samples=3, words=40, retries=2):
    """Return the final table, one line a judgement, from the ledger alone."""
    from comperdial.judges.ask import look
    from comperdial.judges.ledger import Ledger

    answers = Ledger(ledger).answers("demo", family())
    lines = []
    for turn in range(turns):
        messages = prompt(turn, words)
        for index in range(samples):
            tries, ended = look(answers, messages, index, samples, retries, parse)
            answer, parsed = tries[-1] if ended else (None, None)
            found = ("missing", "") if answer is None else (answer.completion.text, parsed.values.get("overall"))
            lines.append(f"{turn},{index},{len(tries)},{answer and answer.sample},{found[0]},{found[1]}\n")
    return "".join(lines).encode()


def asked_of(url, full=True):
    """Return the counts of a server in another process; of a prompt's answers in full, only in the long form."""
    with urllib.request.urlopen(url.replace("/v1", "/all" if full else "/counts")) as response:
        return json.load(response)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    instance = FaultServer(options.share, seed=options.seed)
    asyncio.run(instance.serve(lambda: print(instance.port, flush=True)))
    sys.exit()
