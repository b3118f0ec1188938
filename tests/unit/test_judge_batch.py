"""The Batch API, against one in miniature on loopback: nothing asked twice, nothing lost, no key kept."""

import argparse
import datetime
import email.parser
import json
import logging
import re
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import judge_batch
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.sharding import Shard
from comperdial.judges import batch
from comperdial.judges.ask import Asker, Limits
from comperdial.judges.base import Answer, Completion, Family, JudgeError, Parsed, encode_messages, key
from comperdial.judges.batch import BatchApi, LaterError
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import Price, most_input
from comperdial.judges.services.base import Connection
from comperdial.judges.services.openai import OpenAI

TRUST = ssl.create_default_context()
KEY = "sk-loopback-0123456789abcdef"
QUICK = Limits(attempts=3, backoff=0.001)
PRICE = Price("m-1", datetime.date(2024, 1, 1), 10.0, 30.0, batch=0.5)
PARAMETERS = {"temperature": 1.0, "max_tokens": 50}
FAMILY = Family("big", "openai", "m-1", PARAMETERS, "p", "0" * 64)
CHATS = [[{"role": "user", "content": f"Rate {n}.\u2028Täglich? 😀"}] for n in range(7)]
MESSAGES = [encode_messages(chat) for chat in CHATS]
# Of two samples each.
REQUESTS = 14
# At most: 50 tokens of output at 30 dollars a million and a token a byte at 10, at half the price.
WORST = sum(most_input(chat) * 10 + 50 * 30 for chat in CHATS) * 2 / 2e6


def answer(text="Humanness: 4", **more):
    """Return the body of a chat completion."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m-1-0125",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 10},
    } | more


def read(completion):
    found = re.match(r"Humanness: ([1-5])", completion.text)
    return Parsed({"humanness": float(found[1])}) if found else Parsed({}, failure="no rating")


class Service:
    """A Batch API in miniature.

    ``faults`` has, for an operation (``upload``, ``create``, ``list``, ``retrieve``, ``content``, ``chat``), what
    happens to its next calls: a status, ``cut`` (it is done, and the connection cut) or a dict to answer with.
    ``answers`` makes the body, the (status, body) or the error of a request; None leaves it out of both files.
    """

    def __init__(self):
        self.files, self.batches, self.faults, self.calls, self.hooks = {}, {}, {}, [], {}
        self.answers = lambda body: answer()
        self.status = "completed"
        self.mangle = lambda lines: lines
        self.problems, self.chats = None, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one packet, sent at once.
            wbufsize = -1
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.serve(self, b"")

            def do_POST(self):
                outer.serve(self, self.rfile.read(int(self.headers["Content-Length"])))

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def count(self, operation):
        return self.calls.count(operation)

    def serve(self, request, body):
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        parts = urlsplit(request.path)
        steps = parts.path.removeprefix("/v1/").split("/")
        operation = {
            ("POST", "files"): "upload",
            ("POST", "batches"): "create",
            ("POST", "chat"): "chat",
            ("GET", "files"): "content",
        }.get((request.command, steps[0])) or ("retrieve" if len(steps) > 1 else "list")
        self.calls.append(operation)
        if operation in self.hooks:
            self.hooks[operation]()
        fault = self.faults[operation].pop(0) if self.faults.get(operation) else None
        if isinstance(fault, int):
            return self.reply(request, {"error": {"message": f"no, says {KEY}"}}, fault)
        if isinstance(fault, dict):
            return self.reply(request, fault)
        made = getattr(self, operation)(request, steps, parse_qs(parts.query), body)
        if fault == "cut":
            request.close_connection = True
            return request.connection.close()
        return self.reply(request, made)

    def reply(self, request, content, status=200):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def upload(self, request, steps, query, body):
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in email.parser.BytesParser().parsebytes(head + body).get_payload()
        }
        assert parts["purpose"] == b"batch"
        name = f"file-{len(self.files)}"
        self.files[name] = parts["file"]
        return {"id": name, "object": "file", "purpose": "batch"}

    def create(self, request, steps, query, body):
        asked = json.loads(body)
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        name = f"batch-{len(self.batches)}"
        self.batches[name] = {
            "id": name, "object": "batch", "created_at": int(time.time()), "status": "validating",
            "input_file_id": asked["input_file_id"], "metadata": asked["metadata"],
            "endpoint": asked["endpoint"], "completion_window": "24h",
        }  # fmt: skip
        return self.batches[name]

    def list(self, request, steps, query, body):
        newest = list(self.batches.values())[::-1]
        names = [made["id"] for made in newest]
        first = names.index(query["after"][0]) + 1 if "after" in query else 0
        page = newest[first : first + 2]
        return {"object": "list", "data": page, "has_more": first + 2 < len(newest)}

    def retrieve(self, request, steps, query, body):
        made = self.batches[steps[1]]
        if "output_file_id" not in made:
            made |= {"status": self.status, "request_counts": {"total": 8, "completed": 3, "failed": 1}}
            if self.problems:
                made["errors"] = {"object": "list", "data": self.problems}
            if self.status in ("completed", "expired", "cancelled"):
                self.finish(made)
        return made

    def finish(self, made):
        done, failed = [], []
        for line in self.files[made["input_file_id"]].splitlines():
            asked = json.loads(line)
            found = self.answers(asked["body"])
            if found is None:
                continue
            status, body = found if isinstance(found, tuple) else (200, found)
            response = {"status_code": status, "request_id": "r", "body": body}
            result = {"id": "b", "custom_id": asked["custom_id"], "response": response, "error": None}
            if isinstance(status, str):
                result |= {"response": None, "error": {"code": status, "message": body}}
            (done if status == 200 else failed).append(json.dumps(result))
        made["request_counts"] |= {"completed": len(done)}
        for role, lines in (("output_file_id", self.mangle(done)), ("error_file_id", failed)):
            made[role] = None
            if lines:
                made[role] = f"file-{len(self.files)}"
                self.files[made[role]] = "".join(f"{line}\n" for line in lines).encode()

    def content(self, request, steps, query, body):
        return self.files[steps[1]]

    def chat(self, request, steps, query, body):
        self.chats.append(json.loads(body))
        return self.answers(self.chats[-1])

    def asked(self, number=0):
        """Return the requests of a batch."""
        return [json.loads(line) for line in self.files[self.batches[f"batch-{number}"]["input_file_id"]].splitlines()]


@pytest.fixture
def service(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOPBACK_KEY", KEY)
    monkeypatch.setattr(batch, "SETTLING", 0.0)
    # Time that tests need not spend: reading the system's certificates.
    monkeypatch.setattr("httpx2.create_ssl_context", lambda: TRUST)
    made = Service()
    yield made
    made.close()


class Here:
    """A ledger, and the steps as the commands take them."""

    def __init__(self, folder, service):
        self.folder, self.ledger = folder, Ledger(folder)
        connection = Connection("openai", "m-1", base_url=service.url, key_variable="LOOPBACK_KEY", timeout=2)
        self.judge = OpenAI(connection)
        # What is on loopback is free otherwise.
        self.judge.paid = True

    def settle(self):
        return [batch.settle(self.judge, self.ledger, made, limits=QUICK) for made in self.ledger.submissions()]

    def submit(self, messages=MESSAGES, **options):
        options = {"samples": 2, "retries": 1, "price": PRICE, "budget": 5.0, "read": read, "limits": QUICK} | options
        return list(batch.submit(self.judge, self.ledger, "mine", FAMILY, "turn", messages, **options))

    def collect(self, **options):
        (made,) = self.ledger.submissions()
        return batch.collect(self.judge, self.ledger, made, read=read, price=PRICE, limits=QUICK, **options)

    def through(self, **options):
        self.submit()
        return self.collect(**options)

    def ask(self, messages=MESSAGES, ledger=None, family=FAMILY, budget=5.0):
        """Ask as `judge run` does; return the report."""

        class Item:
            def __init__(self, text):
                self.messages = text

        with (ledger or self.ledger).open("mine", family, budget=budget, paid=True) as writer:
            asker = Asker(
                self.judge, writer, parameters=PARAMETERS, read=read, samples=2, retries=1, price=PRICE, limits=QUICK
            )
            return asker.run(map(Item, messages))

    @property
    def answers(self):
        return self.ledger.answers("mine", FAMILY)

    def everything(self):
        """Return the bytes of all files that were made."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def here(tmp_path, service):
    return Here(tmp_path, service)


# --- submit ----------------------------------------------------------------------------------------------------------


def test_calls_are_reserved_before_anything_is_sent_and_are_what_the_asker_sends(here, service):
    seen = []
    service.hooks["upload"] = lambda: seen.append((here.ledger.submissions(), here.ledger.spent()))
    (made,) = here.submit()
    (((reserved,), spent),) = seen
    assert (reserved.name, reserved.requests, reserved.tried, reserved.id) == (made.name, REQUESTS, None, None)
    assert spent == here.ledger.spent() == pytest.approx(WORST)
    assert (made.id, made.dataset, made.family, made.variant) == ("batch-0", "mine", FAMILY, "turn")
    assert service.batches["batch-0"]["metadata"] == {"comperdial": made.name}
    assert service.calls == ["upload", "create"]
    lines = service.asked()
    assert {line["custom_id"] for line in lines} == {key(FAMILY.id, m, n) for m in MESSAGES for n in range(2)}
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    other = Here(here.folder / "other", service)
    other.ask()
    assert sorted(map(json.dumps, service.chats)) == sorted(json.dumps(line["body"]) for line in lines)


def test_only_what_is_lacking_is_asked(here, service):
    kept = [Answer(MESSAGES[0], 0, Completion("Humanness: 3")), Answer(MESSAGES[0], 1, Completion("no idea"))]
    here.ledger.add("mine", FAMILY, kept)
    (made,) = here.submit([*MESSAGES, MESSAGES[0]])
    # The second answer cannot be read: a fresh sample, the fourth, is asked for in its place.
    assert made.requests == REQUESTS - 1
    assert key(FAMILY.id, MESSAGES[0], 3) in {line["custom_id"] for line in service.asked()}


def test_what_a_batch_asks_nobody_else_asks(here, service):
    here.submit(MESSAGES[:3])
    assert here.submit(MESSAGES[:3]) == []
    (more,) = here.submit()
    assert more.requests == REQUESTS - 6
    shards = [Ledger(here.folder, shard) for shard in (Shard(1, 2), Shard(2, 2))]
    parts = [[text for text in MESSAGES if ledger.shard.holds(text)] for ledger in shards]
    for ledger, part in [(here.ledger, MESSAGES), *zip(shards, parts, strict=True)]:
        with pytest.raises(JudgeError, match="a batch of these requests is under way"):
            here.ask(part, ledger).check()
    assert service.count("chat") == 0
    assert here.ledger.spent() == pytest.approx(WORST)


def test_large_files_are_split(here, service, monkeypatch):
    monkeypatch.setattr(batch, "MOST_REQUESTS", 5)
    assert [made.requests for made in here.submit(MESSAGES[:3])] == [5, 1]
    size = max(len(line) for line in service.files["file-0"].splitlines()) + 1
    monkeypatch.setattr(batch, "MOST_BYTES", 3 * size)
    assert [made.requests for made in here.submit(MESSAGES[3:])] == [3, 3, 2]
    names = [line["custom_id"] for number in range(5) for line in service.asked(number)]
    assert len(names) == len(set(names)) == REQUESTS


@pytest.mark.parametrize("point", ["upload", "create", "created"])
def test_a_process_that_dies_leaves_one_batch(here, service, point):
    """Before anything is sent, before the batch is made, and before its id is on the disk."""
    create = BatchApi.create

    async def die(api, *arguments):
        if point == "created":
            await create(api, *arguments)
        raise KeyboardInterrupt

    with patch.object(BatchApi, "upload" if point == "upload" else "create", die), pytest.raises(KeyboardInterrupt):
        here.submit()
    (left,) = here.ledger.submissions()
    assert left.id is None
    assert here.ledger.spent() == pytest.approx(WORST)
    with pytest.raises(JudgeError, match="a batch of these requests is under way"):
        here.ask().check()
    (found,) = here.settle()
    assert (found is not None) == (point == "created")
    assert service.count("list") == (point != "upload")
    assert len(here.submit()) == (point != "created")
    assert service.count("create") == len(service.batches) == 1
    assert here.collect().answers == REQUESTS


SOMEBODYS = {
    "endpoint": "/v1/chat/completions", "completion_window": "24h", "input_file_id": "f",
    "metadata": {"comperdial": "x"},
}  # fmt: skip


@pytest.mark.parametrize("fault", ["cut", 500])
def test_a_batch_that_may_have_been_made_is_looked_for(here, service, fault):
    service.faults["create"] = [fault]
    with pytest.raises(JudgeError, match="nobody knows whether the service made the batch"):
        here.submit()
    # Somebody else's batches lie before it, on other pages, and others are too old.
    old = service.create(None, None, None, json.dumps(SOMEBODYS))
    service.batches = {"old": old | {"created_at": 1, "id": "old"}, **service.batches}
    for _ in range(3):
        service.create(None, None, None, json.dumps(SOMEBODYS))
    # A service need not say when one was made.
    service.create(None, None, None, json.dumps(SOMEBODYS))["created_at"] = None
    (found,) = here.settle()
    assert service.count("list") == 3
    assert (found and found.id) == ("batch-0" if fault == "cut" else None)
    assert len(here.submit()) == (fault == 500)


@pytest.mark.parametrize("listed", [{}, {"data": None}, 503])
def test_only_a_list_without_a_batch_says_that_it_was_not_made(here, service, listed):
    service.faults = {"create": ["cut"], "list": [listed] * 3}
    with pytest.raises(JudgeError, match="nobody knows"):
        here.submit()
    with pytest.raises(LaterError):
        here.settle()
    assert [made.id for made in here.settle()] == ["batch-0"]


def test_a_batch_that_another_process_submits_now_is_left_to_it(here, service):
    found = []
    service.hooks["create"] = lambda: found.extend(here.settle())
    (made,) = here.submit()
    assert [(other.name, other.id) for other in found] == [(made.name, None)]
    assert service.calls == ["upload", "create"]


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_batch_that_is_refused_leaves_nothing(here, service, status):
    service.faults["create"] = [status]
    with pytest.raises(JudgeError, match=f"status {status}") as caught:
        here.submit()
    assert KEY not in str(caught.value)
    assert (here.ledger.submissions(), here.ledger.spent()) == ([], 0.0)
    assert len(here.submit()) == 1


def test_an_upload_is_tried_again(here, service):
    service.faults["upload"] = [500, "cut", {"object": "file"}]
    with pytest.raises(LaterError, match="has no id"):
        here.submit()
    assert here.ledger.submissions() == []
    service.faults["upload"] = [429, "cut"]
    assert len(here.submit()) == 1


# --- money -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "costs money, and the budget is 0"),
        ({"price": None}, "no price of model 'm-1'"),
        ({"price": Price("m-1", datetime.date(2024, 1, 1), 10.0, 30.0)}, "no batch price is known for m-1"),
        ({"budget": 0.99 * WORST}, r"\$0.0000 of the budget of \$0.02 is spent.* 14 requests can cost \$0.0169"),
    ],
)
def test_what_might_pass_the_budget_is_not_submitted(here, service, options, message):
    with pytest.raises(ConfigError, match=message):
        here.submit(**options)
    assert service.calls == []
    assert here.ledger.submissions() == []


def test_a_service_on_this_machine_needs_no_budget(here):
    here.judge.paid = False
    here.submit(budget=0, price=None)
    here.collect()
    assert here.ledger.spent() == 0


def test_one_budget_for_batches_and_calls(here, service):
    here.submit()
    other = Family("other", "openai", "m-1", PARAMETERS, "p", "0" * 64)
    with pytest.raises(JudgeError, match=r"of the budget of \$0.02 is spent"):
        here.ask(family=other, budget=1.001 * WORST).check()
    assert service.count("chat") == 0
    # Without an answer nothing is charged: the same money is enough then.
    service.status, service.answers = "cancelled", lambda body: None
    assert here.collect().missing == REQUESTS
    assert here.ledger.spent() == 0
    service.answers = lambda body: answer(usage={"prompt_tokens": 1, "completion_tokens": 1})
    here.ask(MESSAGES[:3], family=other, budget=1.001 * WORST).check()
    assert service.count("chat") == 6


# --- collect ---------------------------------------------------------------------------------------------------------


def test_answers_reach_the_ledger(here, service, monkeypatch):
    monkeypatch.setattr(batch, "_GROUP", 3)
    here.submit()
    service.status = "in_progress"
    outcome = here.collect()
    assert not outcome.collected
    assert str(outcome).endswith(": in_progress, 3 of 14 requests done, 1 failed")
    service.status = "completed"
    outcome = here.collect()
    assert (outcome.answers, outcome.unparsed, outcome.missing, outcome.broken) == (REQUESTS, 0, 0, [])
    found = here.answers.get(key(FAMILY.id, MESSAGES[0], 1))
    assert found.completion == Completion("Humanness: 4", "stop", 200, 10, "m-1-0125")
    assert (found.latency, found.time, found.origin) == (None, 1_700_000_000, None)
    # 200 tokens at 10 dollars a million and 10 at 30, at half the price.
    assert found.cost == pytest.approx(0.00115)
    assert outcome.cost == pytest.approx(REQUESTS * 0.00115) == here.ledger.spent()
    assert outcome.models == {"m-1-0125"}
    assert here.ledger.submissions() == []
    assert here.ask().from_ledger == REQUESTS
    assert (here.submit(), service.count("chat")) == ([], 0)


def by_number(*made):
    """Answer the requests one after the other, over again from the start."""
    numbers = iter(range(10_000))
    return lambda body: made[next(numbers) % len(made)]


def test_whatever_failed_can_be_submitted_again(here, service):
    service.status = "expired"
    service.problems = [{"code": "late", "message": f"for {KEY} it was late"}]
    late = ("batch_expired", f"This request could not be executed before the window of {KEY} ended.")
    service.answers = by_number(
        answer(), late, (404, {"error": {"message": "too long"}}), (500, None), answer("I will not."), None, answer()
    )
    outcome = here.through()
    assert (outcome.answers, outcome.unparsed, outcome.missing) == (6, 2, 2)
    assert outcome.failures == {"batch_expired": 2, "404": 2, "500": 2}
    for part in (
        "expired; 6 of 14 requests answered", "says: for [key] it was late", "2 answers without a rating: the next",
        "2 x batch_expired: This request could not be executed before the window of [key] ended", "2 x 404: too long",
        "2 of which it says nothing", "can be submitted again",
    ):  # fmt: skip
        assert part in str(outcome)
    service.answers, service.status = (lambda body: answer()), "completed"
    # Eight failed or were forgotten; of the two that could not be read a fresh sample is drawn.
    assert here.through().answers == 10
    assert len(here.answers) == 16
    assert here.submit() == []


TOO_LONG = (400, {"error": {"message": f"too long, {KEY}", "code": "context_length_exceeded"}})


def test_what_is_refused_for_good_is_not_asked_again(here, service):
    service.answers = by_number(answer(), TOO_LONG)
    service.mangle = lambda lines: ["{", *lines[1:]]
    for options in ({}, {"skip_broken": True}):
        outcome = here.collect(**options) if options else here.through()
        assert "7 refused for good: too long, [key]" in str(outcome) or options
        assert len(here.answers) == 13
    frame = here.answers.frame()
    refused = frame[frame["finish"] == "refused"]
    assert set(refused["answer"]) == {"status 400: too long, [key]"}
    assert set(refused["cost"]) == {0.0}
    (made,) = here.submit()
    assert made.requests == 1


@pytest.mark.parametrize("first", [0, 60])
def test_too_many_refusals_are_not_kept(here, service, first):
    """Where nothing is answered, or next to nothing, it is not the requests."""
    messages = [encode_messages([{"role": "user", "content": str(number)}]) for number in range(60)]
    service.answers = by_number(*[answer()] * first, *[TOO_LONG] * (120 - first))
    here.submit(messages)
    outcome = here.collect()
    assert (outcome.refused, outcome.suspicious, outcome.failures) == (0, 120 - first, {"400": 120 - first})
    assert len(here.answers) == first
    service.answers = lambda body: TOO_LONG
    here.submit(messages)
    assert here.collect(accept_refused=True).refused == 120 - first


def test_an_account_without_money_refuses_nothing(here, service):
    service.answers = by_number(answer(), (400, {"error": {"message": "pay", "code": "billing_hard_limit_reached"}}))
    outcome = here.through()
    assert (outcome.answers, outcome.refused, outcome.failures) == (7, 0, {"400": 7})


def test_broken_lines_lose_nothing(here, service):
    strange = json.dumps({"custom_id": "f" * 32, "response": {"status_code": 200, "body": answer()}})
    empty = json.dumps({"custom_id": "0", "response": {"status_code": 200, "body": {"choices": []}}})
    neither = '{"custom_id": "a"}'
    odd = [empty, neither, "7", "[" * 5000]
    service.mangle = lambda lines: [lines[0][:40], strange, *lines[1:5], "", *odd, *lines[5:]]
    outcome = here.through()
    assert (outcome.answers, outcome.missing) == (REQUESTS - 1, 1)
    assert {line.partition(":")[0] for line in outcome.broken} == {f"file-1, line {n}" for n in (1, 2, 8, 9, 10, 11)}
    assert "is none of the batch's requests" in "".join(outcome.broken)
    assert len(here.answers) == REQUESTS - 1
    spent, worst = here.ledger.spent(), outcome.cost + WORST / REQUESTS
    assert spent == pytest.approx(worst)
    # What it gave once is not counted again, and what it withholds is not asked again.
    again = here.collect()
    assert (again.answers, again.cost, here.ledger.spent()) == (REQUESTS - 1, 0.0, spent)
    assert here.submit() == []
    assert here.collect(skip_broken=True).missing == 1
    (made,) = here.submit()
    assert made.requests == 1


def test_answers_that_are_not_in_the_file_yet_are_waited_for(here, service):
    service.mangle = lambda lines: lines[:3]
    outcome = here.through()
    assert "the service answered 14 requests, and its files hold 3" in outcome.broken[0]
    assert here.submit() == []
    service.batches["batch-0"].pop("output_file_id")
    service.mangle = lambda lines: lines
    assert (here.collect().broken, len(here.answers), here.ledger.submissions()) == ([], REQUESTS, [])


def test_each_request_of_a_batch_has_a_seed_of_its_own(here, service):
    seeded = Family("big", "openai", "m-1", {**PARAMETERS, "seed": 7}, "p", "0" * 64)
    options = {"samples": 3, "price": PRICE, "budget": 5.0, "read": read, "limits": QUICK}
    assert len(list(batch.submit(here.judge, here.ledger, "mine", seeded, "turn", MESSAGES[:1], **options))) == 1
    assert sorted(line["body"]["seed"] for line in service.asked()) == [7, 8, 9]


def test_an_answer_without_content_is_an_answer(here, service):
    """And none that can be read: the next batch asks again."""
    empty = answer(None)
    empty["choices"][0] |= {"finish_reason": "tool_calls"}
    service.answers = by_number(empty, *[answer()] * 13)
    outcome = here.through()
    assert (outcome.answers, outcome.unparsed, outcome.broken, len(here.answers)) == (REQUESTS, 1, [], REQUESTS)


def test_one_odd_answer_is_broken_alone(here, service):
    """More tokens than a number of the ledger can hold."""
    service.answers = by_number(answer(usage={"prompt_tokens": 10**30, "completion_tokens": 1}), *[answer()] * 13)
    outcome = here.through()
    assert (outcome.answers, len(outcome.broken), len(here.answers)) == (13, 1, 13)


@pytest.mark.parametrize("status", [400, 500])
def test_a_request_that_has_an_answer_and_an_error_has_an_answer(here, service, status):
    service.mangle = lambda lines: [re.sub('"status_code": 200', f'"status_code": {status}', lines[0]), *lines]
    outcome = here.through()
    assert (outcome.answers, outcome.failures, outcome.refused) == (REQUESTS, {}, 0)
    assert set(here.answers.frame()["finish"]) == {"stop"}


@pytest.mark.parametrize("operation", ["retrieve", "content"])
def test_collecting_is_patient_and_goes_on_later(here, service, operation):
    here.submit()
    service.faults[operation] = [500, 502, 503]
    with pytest.raises(LaterError, match="status 503"):
        here.collect()
    service.faults["retrieve"] = [{"id": 7}, {}, {"status": "completed"}]
    with pytest.raises(LaterError, match="it has no id"):
        here.collect()
    assert len(here.answers) == 0
    service.faults[operation] = [429, "cut"]
    assert here.collect().answers == REQUESTS


def test_answers_may_be_long(here, service):
    """A file of them is larger than any single answer may be."""
    service.answers = lambda body: answer("Humanness: 4" + " " * (2 << 20))
    here.submit(MESSAGES[:5])
    assert here.collect().answers == 10


def test_another_version_of_the_model_is_warned_of(here, service, caplog):
    service.answers = by_number(answer(), (429, None))
    here.through()
    service.answers = lambda body: answer(model="m-1-0613")
    with caplog.at_level(logging.WARNING):
        here.through()
    assert len([r for r in caplog.records if "now says that it runs m-1-0613" in r.getMessage()]) == 1


def test_an_answer_without_usage_costs_its_worst(here, service):
    service.answers = lambda body: answer(usage=None)
    assert here.through().cost == pytest.approx(WORST) == here.ledger.spent()


def test_no_key_is_kept(here, service):
    service.answers = by_number(answer(f"Humanness: 4, {KEY}"), (400, {"error": {"message": f"wrong key {KEY}"}}))
    outcome = here.through()
    assert KEY not in str(outcome)
    assert KEY.encode() not in here.everything()
    assert set(here.answers.frame()["answer"]) == {"Humanness: 4, [key]", "status 400: wrong key [key]"}


# --- the commands ----------------------------------------------------------------------------------------------------

VARIANTS = {
    "turn": {
        "prompt": "cpds_detail", "fields": ["history", "fact", "response"], "dimensions": ["humanness"],
        "scale": [1, 5], "samples": 2, "retries": 1,
    },
    "dial": {
        "prompt": "cpds_dialogue", "fields": ["turn_scores", "responses"], "turns": "turn", "main": "final score",
        "dimensions": ["overall dialogue turn score", "dialogue interaction score", "final score"], "scale": [1, 5],
    },
}  # fmt: skip


@pytest.fixture
def command(tmp_path, monkeypatch, service, capsys):
    """Return a function that runs a step on two dialogues of two turns each, and returns its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("comperdial.judges.services.openai.is_loopback", lambda url: False)
    contexts, responses = [], []
    for dialogue, turn in (("d1", 0), ("d1", 1), ("d2", 0), ("d2", 1)):
        name = f"{dialogue}-t{turn}"
        contexts.append(
            {
                "dataset": "mine", "context_id": name, "dialogue_id": dialogue, "turn": turn,
                "history": [{"speaker": "A", "text": f"Do you like the sea, {name}?"}],
                "references": ["I love the sea."], "facts": ["i swim."],
            }
        )  # fmt: skip
        responses.append({"dataset": "mine", "system_id": "one", "context_id": name, "response": f"Yes, {name}!"})
    (tmp_path / "data/tables/mine").mkdir(parents=True)
    systems = [{"dataset": "mine", "system_id": "one", "kind": "agent", "track": None, "description": ""}]
    for name, rows in (("systems", systems), ("contexts", contexts), ("responses", responses)):
        schema.write(tmp_path / f"data/tables/mine/{name}.parquet", pd.DataFrame(rows), name)
    judge = {
        "service": "openai", "model": "m-1", "base_url": service.url, "key": "LOOPBACK_KEY", "timeout": 2,
        "parameters": PARAMETERS,
    }  # fmt: skip
    judging = {
        "ledger": "data/ledger", "prices": "prices.yaml", "budget": 5, "variants": VARIANTS,
        "judges": {"default": ["big", "rules"]},
    }  # fmt: skip
    judges = {"big": judge, "rules": {"service": "rules"}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"datasets": ["mine"], "judges": judges, "judging": judging}))
    (tmp_path / "prices.yaml").write_text(
        "m-1: [{from: 2024-01-01, input: 10.0, output: 30.0, batch: 0.5, source: us}]"
    )

    def run(*words):
        parser = argparse.ArgumentParser()
        judge_batch.add_kinds(parser.add_subparsers(required=True))
        options = parser.parse_args(["batch", *map(str, words)])
        options.run(options)
        return capsys.readouterr().out

    return run


def test_the_commands(command, service, monkeypatch):
    sleeping = []
    monkeypatch.setattr(judge_batch, "_sleep", lambda seconds: sleeping.append(setattr(service, "status", "completed")))
    assert command("collect") == "data/ledger: nothing to collect\n"
    with pytest.raises(ConfigError, match="budget"):
        command("submit", "--budget", 0.001)
    out = command("submit")
    assert re.search(r"^mine_big_turn_\w+: submitted as batch-0: 8 requests, at most \$0.0\d$", out, re.MULTILINE)
    assert "mine  turn_rules: nothing submitted: the service rules has no Batch API" in out
    assert "mine  dial_big: nothing submitted: the ledger does not hold all answers of turn_big yet" in out
    assert "turn_big: nothing submitted: 8 requests are with the service already" in command("submit")
    service.status = "in_progress"
    for step in ("status", "collect"):
        assert ": in_progress, 3 of 8 requests done, 1 failed" in command(step, "--judges", "big")
    assert "no batch is under way" in command("status", "--variants", "dial")
    out = command("collect", "--wait", "--interval", 0.5).splitlines()
    assert "in_progress" in out[0]
    assert "completed; 8 of 8 requests answered, $0.0092" in out[1]
    assert len(sleeping) == 1
    out = command("submit")
    assert "turn_big: nothing submitted: the ledger lacks nothing" in out
    assert "mine_big_dial" in out
    assert "Turn1 Score - 4" in service.asked(1)[0]["body"]["messages"][-1]["content"]


def test_a_crash_and_the_commands(command, service):
    service.faults["create"] = ["cut"]
    with pytest.raises(JudgeError, match="nobody knows"):
        command("submit", "--variants", "turn")
    for step in ("status", "collect"):
        assert "may be with the service; `comperdial judge batch submit` finds out" in command(step)
    assert ": is with the service as batch-0\n" in command("submit", "--variants", "turn")
    assert service.count("create") == 1
    service.mangle = lambda lines: ["{", *lines[1:]]
    with pytest.raises(FileError, match=r"line 1: it is not JSON: 1 lines that cannot be read"):
        command("collect")
    assert "1 of which it says nothing" in command("collect", "--skip-broken")
    service.faults["create"] = [500]
    with pytest.raises(JudgeError, match="nobody knows"):
        command("submit", "--variants", "turn")
    out = command("submit", "--variants", "turn")
    assert ": was never made\n" in out
    assert ": submitted as batch-1: 1 requests" in out


def test_whoever_waits_waits_for_a_service_that_is_down(command, service, monkeypatch):
    command("submit", "--variants", "turn")
    monkeypatch.setattr(judge_batch, "_sleep", lambda seconds: None)
    monkeypatch.setattr(batch, "Limits", lambda **_: Limits(attempts=1))
    service.faults["retrieve"] = [503, 500]
    with pytest.raises(LaterError, match="status 503"):
        command("collect")
    out = command("collect", "--wait").splitlines()
    assert ": status 500: no, says [key]" in out[0]
    assert "8 of 8 requests answered" in out[1]


def test_refusals_of_everything_are_an_error(command, service):
    service.answers = lambda body: TOO_LONG
    command("submit", "--variants", "turn")
    with pytest.raises(JudgeError, match="refused too many requests for their content to be the reason"):
        command("collect")
    command("submit", "--variants", "turn")
    assert "8 refused for good: too long, [key]" in command("collect", "--accept-refused")
