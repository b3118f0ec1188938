"""The Batch API, against one in miniature on loopback: nothing asked twice, nothing lost, no key kept."""

import argparse
import dataclasses
import email.parser
import json
import logging
import re
import ssl
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock, patch
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import yaml
from comperdial.judges.batch import submit, write
from comperdial.judges.batch_results import collect
from comperdial.judges.client import JudgeError
from hypothesis import given
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import judge_batch
from comperdial.core.errors import ComperdialError, ConfigError, FileError
from comperdial.judges import batch, batch_files, batch_results
from comperdial.judges.ask import Limits, Throttle
from comperdial.judges.base import Answer, Completion, key
from comperdial.judges.batch_files import committed, read_states
from comperdial.judges.batch_lines import BrokenLineError, read_result
from comperdial.judges.batches import Batches, LaterError
from comperdial.judges.ledger import Ledger
from comperdial.judges.scores import ask, judge
from comperdial.judges.tasks import family_of, read_judging

TRUST = ssl.create_default_context()
KEY = "sk-loopback-0123456789abcdef"


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


class Service:
    """A Batch API in miniature.

    ``faults`` has, for an operation (``upload``, ``create``, ``list``, ``retrieve``, ``content``, ``chat``), what
    happens to its next calls: a status, ``cut`` (it is done, and the connection cut) or a dict to answer with.
    ``answers`` makes the body, the (status, body) or the error of a request; None leaves it out of both files.
    """

    def __init__(self):
        self.files, self.batches, self.faults, self.calls = {}, {}, {}, []
        self.answers = lambda body: answer()
        self.status = "completed"
        self.mangle = lambda lines: lines
        self.metadata, self.problems, self.chats = True, None, []
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
            "input_file_id": asked["input_file_id"], "metadata": asked["metadata"] if self.metadata else None,
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
    # What is on loopback is free otherwise.
    monkeypatch.setattr("comperdial.judges.services.openai.is_loopback", lambda url: False)
    monkeypatch.setattr(batch, "SETTLING", 0.0)
    # Time that tests need not spend: reading the system's certificates, and waiting for the disk.
    monkeypatch.setattr("httpx2.create_ssl_context", lambda: TRUST)
    monkeypatch.setattr("os.fsync", lambda handle: None)
    made = Service()
    yield made
    made.close()


def quick(service):
    return Batches(service, throttle=Throttle(Limits(attempts=3, backoff=0.001)))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return tables of two dialogues of two turns, answered by two systems that say the same in one of the turns."""
    folder = tmp_path_factory.mktemp("tables") / "mine"
    contexts, responses = [], []
    for dialogue in ("d1", "d2"):
        for turn in range(2):
            context = f"{dialogue}-t{turn}"
            heard = [{"speaker": "A", "text": f"Do you like the sea, {context}?\u2028Täglich? 😀"}]
            contexts.append(
                {
                    "dataset": "mine", "context_id": context, "dialogue_id": dialogue, "turn": turn, "history": heard,
                    "references": ["I love the sea."], "facts": ["i swim."],
                }
            )  # fmt: skip
            for system in ("one", "two"):
                said = "Well. Yes." if context == "d1-t0" else f"{system} swims, {context}!"
                responses.append({"dataset": "mine", "system_id": system, "context_id": context, "response": said})
    folder.mkdir()
    systems = [
        {"dataset": "mine", "system_id": s, "kind": "agent", "track": None, "description": ""} for s in ("one", "two")
    ]
    for name, rows in (("systems", systems), ("contexts", contexts), ("responses", responses)):
        schema.write(folder / f"{name}.parquet", pd.DataFrame(rows), name)
    return folder


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
# Seven different requests of two samples each.
REQUESTS = 14


class Here:
    """A working directory with tables, a configuration, prices, and the steps."""

    def __init__(self, folder, service, tables):
        self.folder, self.service = folder, service
        self.root = folder / "data/batches"
        self.config = {
            "datasets": ["mine"],
            "judges": {
                "big": {
                    "service": "openai", "model": "m-1", "base_url": service.url, "key": "LOOPBACK_KEY", "timeout": 2,
                    "parameters": {"temperature": 1.0, "max_tokens": 50},
                },
                "rules": {"service": "rules"},
            },
            "judging": {
                "ledger": str(folder / "data/ledger"), "prices": str(folder / "prices.yaml"), "budget": 5,
                "judges": {"default": ["big"]}, "variants": VARIANTS,
            },
        }  # fmt: skip
        price = {"from": pd.Timestamp("2024-01-01").date(), "input": 10.0, "output": 30.0, "batch": 0.5, "source": "us"}
        (folder / "prices.yaml").write_text(yaml.safe_dump({"m-1": [price]}))
        self.tables = tables
        self.save()

    def save(self):
        (self.folder / "params.yaml").write_text(yaml.safe_dump(self.config))
        self.judging = read_judging(self.config["judges"], self.config["judging"])

    def budget(self, dollars):
        return dataclasses.replace(self.judging, budget=dollars)

    @property
    def task(self):
        return self.judging.tasks("mine")["turn_big"]

    @property
    def shelf(self):
        return Ledger(self.judging.ledger).shelf("mine", family_of(self.judging, self.task))

    def write(self, name="turn_big"):
        task = self.judging.tasks("mine")[name]
        return write(self.judging, task, self.tables, dataset="mine", root=self.root)

    def states(self):
        return read_states(self.root)

    def submit(self, state=None, judging=None):
        return submit(judging or self.judging, state or self.states()[-1], root=self.root, connect=quick)

    def collect(self, state=None, **options):
        return collect(self.judging, state or self.states()[-1], root=self.root, connect=quick, **options)

    def through(self):
        """Write, submit and collect; return the outcome."""
        self.write()
        self.submit()
        return self.collect()

    def command(self, *words):
        parser = argparse.ArgumentParser()
        judge_batch.add_kinds(parser.add_subparsers(required=True))
        options = parser.parse_args(["batch", *map(str, words), "--tables", str(self.tables.parent)])
        return options.run(options)

    def everything(self):
        """Return the bytes of all files that were made."""
        made = [p for folder in ("data/batches", "data/ledger") for p in (self.folder / folder).rglob("*")]
        return b"".join(path.read_bytes() for path in made if path.is_file())


@pytest.fixture
def here(tmp_path, monkeypatch, service, tables):
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, service, tables)


# --- write -----------------------------------------------------------------------------------------------------------


def test_a_request_is_what_the_client_sends(here, service):
    (state,), skipped = here.write()
    assert skipped is None
    lines = [json.loads(line) for line in state.file().read_text().splitlines()]
    assert len(lines) == state.requests == REQUESTS
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert state.bytes == state.file().stat().st_size
    assert set(state.slots()) == {line["custom_id"] for line in lines}
    for name, (messages, sample) in state.slots().items():
        assert name == key(state.family.id, messages, sample)
    assert {sample for _, sample in state.slots().values()} == {0, 1}
    ask(here.judging, here.task, here.tables, dataset="mine")
    bodies = sorted(json.dumps(line["body"]) for line in lines)
    assert sorted(json.dumps(body) for body in service.chats) == bodies
    assert "create" not in service.calls


def test_writing_needs_no_key_and_asks_nobody(here, service, monkeypatch):
    monkeypatch.delenv("LOOPBACK_KEY")
    (state,), _ = here.write()
    assert service.calls == []
    with pytest.raises(JudgeError, match="LOOPBACK_KEY is not set"):
        here.submit()
    assert here.states() == [state]


def test_writing_again_replaces_what_was_never_submitted(here):
    (first,), _ = here.write()
    (second,), _ = here.write()
    assert here.states() == [second]
    assert second.sha256 == first.sha256
    assert second.file().name == "mine_turn_001.jsonl"
    assert [path.name for path in here.root.glob("big/*.jsonl")] == ["mine_turn_001.jsonl"]


def test_writing_replaces_what_was_written_with_other_parameters(here, service):
    """Of another family, but for the same task: both would be paid."""
    (old,), _ = here.write()
    here.config["judges"]["big"]["parameters"]["temperature"] = 0.0
    here.save()
    (new,), _ = here.write()
    assert here.states() == [new]
    assert new.family.id != old.family.id
    assert new.file().name == "mine_turn_001.jsonl"
    here.submit()
    assert len(service.batches) == 1
    here.config["judges"]["big"]["parameters"]["temperature"] = 0.5
    here.save()
    (third,), _ = here.write()
    # What was submitted stays.
    assert [state.status for state in here.states()] == ["submitted", "written"]
    assert third.file().name == "mine_turn_002.jsonl"


def test_only_what_is_lacking_is_written(here):
    (state,), _ = here.write()
    slots = sorted(state.slots().values())
    with Ledger(here.judging.ledger).writing("mine", state.family) as shelf:
        shelf.add([Answer(*slots[0], Completion("Humanness: 3")), Answer(*slots[1], Completion("no idea"))])
    (state,), _ = here.write()
    left = sorted(state.slots().values())
    # The second answer cannot be read: a fresh sample, the third, is asked for in its place.
    assert left == sorted([*slots[2:], (slots[1][0], 3)])


def test_what_is_with_the_service_is_not_written_again(here):
    here.write()
    here.submit()
    states, skipped = here.write()
    assert states == []
    assert skipped == f"{REQUESTS} requests are with the service already"


def test_two_variants_of_one_family_share_their_requests(here):
    """The same prompt under another name: its answers are the same, so they are asked for once."""
    here.config["judging"]["variants"] = VARIANTS | {"again": VARIANTS["turn"] | {"samples": 3}}
    here.save()
    here.write()
    (other,), _ = here.write("again_big")
    assert other.requests == 7
    assert {sample for _, sample in other.slots().values()} == {2}


def test_large_files_are_split(here, monkeypatch):
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 5)
    states, _ = here.write()
    assert [state.requests for state in states] == [5, 5, 4]
    sizes = [state.bytes for state in states]
    monkeypatch.setattr(batch_files, "MOST_BYTES", max(sizes) * 3 // 5)
    states, _ = here.write()
    assert sum(state.requests for state in states) == REQUESTS
    assert max(state.bytes for state in states) <= max(sizes) * 3 // 5
    assert len(states) > 3
    assert len(set().union(*(state.keys() for state in states))) == REQUESTS


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(1, 5), st.integers(1, 12))
def test_no_split_loses_a_request(sizes, requests, most):
    lines = [b"x" * (size - 1) + b"\n" for size in sizes]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(batch_files, "MOST_REQUESTS", requests),
        patch.object(batch_files, "MOST_BYTES", most),
    ):
        made = list(batch_files.write_requests(Path(folder), "f", iter([(line, 1.5) for line in lines]), 4))
        assert b"".join(path.read_bytes() for path, *_ in made) == b"".join(lines)
        for number, (path, count, size, worst) in enumerate(made, start=4):
            assert path.name == f"f_{number:03d}.jsonl"
            assert path.stat().st_size == size
            assert count <= requests
            assert size <= most or count == 1
            assert worst == 1.5 * count


def test_the_worst_case_is_at_the_batch_price(here):
    (state,), _ = here.write()
    prompts = [len(messages.encode()) for messages, _ in state.slots().values()]
    # 50 tokens of output at 30 dollars a million, and at most a token a byte at 10; half of it.
    output = REQUESTS * 50 * 30 / 2e6
    assert output < state.worst < output + sum(prompts) * 1.2 * 10 / 2e6
    assert state.worst > output + sum(prompts) * 0.8 * 10 / 2e6


def test_without_a_price_or_a_limit_nobody_knows_the_worst(here):
    here.config["judges"]["big"]["parameters"] = {"temperature": 1.0}
    here.save()
    (state,), _ = here.write()
    assert state.worst is None
    with pytest.raises(ConfigError, match="may be of any length"):
        here.submit()
    here.config["judges"]["big"] |= {"model": "m-2", "parameters": {"max_tokens": 5}}
    here.save()
    (state,), _ = here.write()
    assert state.worst is None
    with pytest.raises(ConfigError, match="no price of model 'm-2'"):
        here.submit()


def test_a_judge_without_a_batch_api_is_skipped(here):
    here.config["judging"]["judges"]["default"] = ["rules"]
    here.save()
    assert here.write("turn_rules") == ([], "the service rules has no Batch API")


def test_dialogues_wait_for_their_turns(here, service):
    states, skipped = here.write("dial_big")
    assert states == []
    assert "does not hold all answers of turn_big" in skipped
    here.through()
    (state,), _ = here.write("dial_big")
    assert state.requests == 4
    assert "Turn1 Score - 4" in state.file().read_text()


# --- submit ----------------------------------------------------------------------------------------------------------


def test_submitting_twice_makes_one_batch(here, service):
    (state,), _ = here.write()
    made, found = here.submit()
    assert (made.status, made.batch, found) == ("submitted", "batch-0", False)
    assert service.batches["batch-0"]["metadata"] == {"comperdial": state.sha256, "file": "mine_turn_001"}
    assert here.submit(state) == (made, True)
    assert service.calls == ["upload", "create"]
    assert [line["custom_id"] for line in service.asked()] == list(state.slots())


def test_a_batch_whose_creation_was_cut_off_is_found(here, service):
    here.write()
    service.faults["create"] = ["cut"]
    with pytest.raises(JudgeError, match="nobody knows whether the service made the batch"):
        here.submit()
    (state,) = here.states()
    assert (state.status, state.input) == ("submitting", "file-0")
    # Somebody else's batches lie before it, on other pages.
    for _ in range(5):
        service.create(None, None, None, json.dumps(SOMEBODYS))
    made, found = here.submit()
    assert (made.batch, found) == ("batch-0", True)
    assert (service.count("create"), service.count("list")) == (1, 3)
    assert here.collect().answers == REQUESTS


SOMEBODYS = {
    "endpoint": "/v1/chat/completions", "completion_window": "24h", "input_file_id": "f",
    "metadata": {"comperdial": "x"},
}  # fmt: skip


def test_a_batch_that_a_killed_process_made_is_found(here, service):
    here.write()
    with patch.object(batch, "_submitted", Mock(side_effect=KeyboardInterrupt)), pytest.raises(KeyboardInterrupt):
        here.submit()
    assert here.states()[0].status == "submitting"
    assert here.submit()[0].batch == "batch-0"
    assert len(service.batches) == 1


def test_a_batch_that_was_never_made_is_made(here, service):
    here.write()
    service.faults["create"] = [500]
    with pytest.raises(JudgeError, match="nobody knows"):
        here.submit()
    made, found = here.submit()
    assert (made.batch, found) == ("batch-0", False)
    assert len(service.batches) == 1


def test_the_search_ends_at_batches_that_are_too_old(here, service):
    here.write()
    service.faults["create"] = [503]
    with pytest.raises(JudgeError):
        here.submit()
    for number in range(9):
        service.create(None, None, None, json.dumps(SOMEBODYS))
        service.batches[f"batch-{number}"]["created_at"] -= (10 - number) * 24 * 3600
    here.submit()
    assert service.count("list") == 1


def test_a_batch_of_the_same_requests_that_failed_is_not_taken_for_the_new_one(here, service):
    service.status, service.problems = "failed", [{"code": "token_limit", "message": "enqueued token limit reached"}]
    outcome = here.through()
    assert outcome.problem == "enqueued token limit reached"
    assert (outcome.answers, outcome.missing) == (0, REQUESTS)
    (state,), _ = here.write()
    assert state.sha256 == here.states()[0].sha256
    service.faults["create"] = [500]
    with pytest.raises(JudgeError):
        here.submit()
    made, found = here.submit()
    assert (made.batch, found) == ("batch-1", False)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_batch_that_is_refused_can_be_submitted_again(here, service, status):
    here.write()
    service.faults["create"] = [status]
    with pytest.raises(JudgeError, match=f"status {status}") as caught:
        here.submit()
    assert KEY not in str(caught.value)
    assert here.states()[0].status == "written"
    assert here.submit()[0].batch == "batch-0"
    assert service.count("list") == 0


def test_an_upload_is_tried_again(here, service):
    here.write()
    service.faults["upload"] = [500, "cut", {"object": "file"}]
    with pytest.raises(JudgeError, match="has no id"):
        here.submit()
    assert here.states()[0].status == "written"
    service.faults["upload"] = [429, "cut"]
    assert here.submit()[0].status == "submitted"


def test_nothing_is_submitted_without_a_budget(here, service):
    here.write()
    with pytest.raises(ConfigError, match="costs money, and the budget is 0"):
        here.submit(judging=here.budget(0))
    assert service.calls == []
    assert here.states()[0].status == "written"


def test_no_batch_may_pass_the_budget(here, service, monkeypatch):
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 7)
    (one, two), _ = here.write()
    with Ledger(here.judging.ledger).writing("mine", dataclasses.replace(one.family, model="m-0")) as shelf:
        shelf.add([Answer("[]", 0, Completion("4"), cost=1.0)])
    with pytest.raises(ConfigError, match=re.escape("cost $1.0000, batches that are under way can cost $0.0000")):
        here.submit(one, here.budget(1 + 0.99 * one.worst))
    enough = here.budget(1.0001 + one.worst)
    here.submit(one, enough)
    with pytest.raises(ConfigError, match=re.escape(f"under way can cost ${one.worst:,.4f}")):
        here.submit(two, enough)
    assert service.count("create") == 1
    # What it did cost is less than what it could have: now the other may go.
    service.answers = lambda body: answer(usage={"prompt_tokens": 1, "completion_tokens": 1})
    here.collect(here.states()[0])
    here.submit(two, here.budget(1.01 + two.worst))
    assert service.count("create") == 2


def test_a_batch_that_may_be_under_way_counts(here, service, monkeypatch):
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 7)
    (one, two), _ = here.write()
    service.faults["create"] = ["cut"]
    with pytest.raises(JudgeError):
        here.submit(one)
    with pytest.raises(ConfigError, match="under way can cost"):
        here.submit(two, here.budget(one.worst + 0.5 * two.worst))


def test_a_model_without_a_batch_price(here):
    text = (here.folder / "prices.yaml").read_text()
    (here.folder / "prices.yaml").write_text(text.replace("batch: 0.5", "note: no batches"))
    (state,), _ = here.write()
    assert state.worst is None
    with pytest.raises(ConfigError, match="no batch price is known for m-1"):
        here.submit()


def test_a_service_on_this_machine_needs_no_budget(here, service, monkeypatch):
    monkeypatch.setattr("comperdial.judges.services.openai.is_loopback", lambda url: True)
    (state,), _ = here.write()
    assert state.worst == 0.0
    here.submit(judging=here.budget(0))
    assert here.collect().cost == 0.0


def test_requests_answered_since_are_not_submitted(here, service):
    here.write()
    ask(here.judging, here.task, here.tables, dataset="mine")
    with pytest.raises(ConfigError, match=f"answers {REQUESTS} of its {REQUESTS} requests by now"):
        here.submit()
    assert here.write() == ([], "the ledger lacks nothing")
    assert here.states() == []


def test_an_altered_file_is_not_submitted(here, service):
    (state,), _ = here.write()
    state.file().write_text(state.file().read_text().replace("max_tokens", "max_tolkien"))
    with pytest.raises(FileError, match="the file of requests was altered"):
        here.submit()
    state.file().unlink()
    with pytest.raises(FileError, match="is missing"):
        here.submit()
    assert service.calls == []


def test_a_judge_that_is_gone(here):
    (state,), _ = here.write()
    here.config["judges"]["big"]["model"] = "m-2"
    here.save()
    with pytest.raises(ConfigError, match="no judge big with model m-1 and variant turn"):
        here.submit(state)


@pytest.mark.parametrize("explain", [True, False])
def test_a_file_that_was_written_for_what_is_asked_no_more_is_not_submitted(here, service, explain):
    here.write()
    if explain:
        here.config["judges"]["big"]["explain"] = True
    else:
        here.config["judges"]["big"]["parameters"]["temperature"] = 0.0
    here.save()
    with pytest.raises(ConfigError, match="written for other parameters, another prompt or another model"):
        here.submit()
    assert service.calls == []
    assert here.states()[0].status == "written"


def test_what_may_be_with_the_service_is_found_whatever_is_asked_today(here, service):
    here.write()
    service.faults["create"] = ["cut"]
    with pytest.raises(JudgeError):
        here.submit()
    here.config["judges"]["big"]["parameters"]["temperature"] = 0.0
    here.save()
    assert here.submit()[1]
    assert here.collect().answers == REQUESTS


@pytest.mark.parametrize("change", [{"status": "lost"}, {"family": {}}, {"worst": "much"}, {"more": 1}])
def test_a_broken_state_is_named(here, change):
    (state,), _ = here.write()
    state.path.write_text(json.dumps(json.loads(state.path.read_text()) | change))
    with pytest.raises(FileError, match=r"mine_turn_001\.json"):
        here.states()


# --- collect ---------------------------------------------------------------------------------------------------------


def test_answers_reach_the_ledger(here, service):
    outcome = here.through()
    assert (outcome.answers, outcome.unparsed, outcome.missing, outcome.broken) == (REQUESTS, 0, 0, [])
    shelf = here.shelf
    assert len(shelf) == REQUESTS
    found = shelf.get(key(shelf.family.id, *next(iter(here.states()[0].slots().values()))))
    assert found.completion.text == "Humanness: 4"
    assert (found.completion.input_tokens, found.completion.output_tokens) == (200, 10)
    assert found.completion.model == "m-1-0125"
    assert (found.latency, found.time, found.origin) == (None, 1_700_000_000, None)
    # 200 tokens at 10 dollars a million and 10 at 30, at half the price.
    assert found.cost == pytest.approx(0.00115)
    assert outcome.cost == pytest.approx(REQUESTS * 0.00115)
    assert Ledger(here.judging.ledger).spent() == pytest.approx(outcome.cost)
    assert here.states()[0].outcome["models"] == {"m-1-0125": REQUESTS}
    made = judge(here.judging, here.task, here.tables, dataset="mine")
    assert set(made.scores["value"]) == {4.0}
    assert service.count("chat") == 0


def test_collecting_again_does_nothing(here, service):
    here.through()
    before, calls = here.shelf.frame(), len(service.calls)
    outcome = here.collect()
    assert (outcome.status, outcome.ended, outcome.answers) == ("collected", False, 0)
    assert len(service.calls) == calls
    assert here.shelf.frame().equals(before)


def test_a_batch_under_way(here, service):
    here.write()
    assert here.collect().status == "written"
    here.submit()
    service.status = "in_progress"
    outcome = here.collect()
    assert not outcome.ended
    assert str(outcome) == "big/mine_turn_001: in_progress, 3 of 14 requests done, 1 failed"
    assert here.states()[0].status == "submitted"
    service.status = "completed"
    assert here.collect().ended


def by_number(*made):
    """Answer the requests one after the other, over again from the start."""
    numbers = iter(range(10_000))
    return lambda body: made[next(numbers) % len(made)]


def test_whatever_failed_can_be_written_again(here, service):
    service.status = "expired"
    late = ("batch_expired", f"This request could not be executed before the window of {KEY} ended.")
    service.answers = by_number(
        answer(), late, (404, {"error": {"message": "too long"}}), (500, None), answer("I will not."), None, answer()
    )
    outcome = here.through()
    assert (outcome.status, outcome.answers, outcome.unparsed, outcome.missing) == ("expired", 6, 2, 2)
    assert outcome.failures == {"batch_expired": 2, "404": 2, "500": 2}
    assert outcome.reasons["404"] == "too long"
    assert "of [key] ended" in outcome.reasons["batch_expired"]
    for part in ("6 of 14 requests answered", "2 answers without a rating", "2 x batch_expired: This", "2 x 404: too"):
        assert part in str(outcome)
    service.answers, service.status = (lambda body: answer()), "completed"
    before = len(here.shelf)
    outcome = here.through()
    # Eight failed or were forgotten; of the two that could not be read a fresh sample is drawn.
    assert (before, outcome.answers, len(here.shelf)) == (6, 10, 16)
    assert [state.path.stem for state in here.states()] == ["mine_turn_001", "mine_turn_002"]
    assert here.write() == ([], "the ledger lacks nothing")
    made = judge(here.judging, here.task, here.tables, dataset="mine")
    assert len(made.scores) == 8
    assert service.count("chat") == 0


def test_no_fresh_samples_for_a_judge_that_would_say_the_same_again(here, service):
    """As `judge run`, which draws none with `mode: probabilities`."""
    here.config["judges"]["big"]["mode"] = "probabilities"
    here.save()
    outcome = here.through()
    assert outcome.unparsed == outcome.answers == REQUESTS // 2
    assert here.write() == ([], "the ledger lacks nothing")


TOO_LONG = (400, {"error": {"message": f"too long, {KEY}", "code": "context_length_exceeded"}})


def test_what_is_refused_for_good_is_not_written_again(here, service):
    service.answers = by_number(answer(), TOO_LONG)
    outcome = here.through()
    assert (outcome.answers, outcome.refused, outcome.failures, outcome.missing) == (7, 7, {}, 0)
    assert outcome.reasons == {"400": "too long, [key]"}
    assert "7 refused for good: too long, [key]" in str(outcome)
    assert "written again" not in str(outcome)
    assert here.states()[0].outcome["refused"] == 7
    assert here.write() == ([], "the ledger lacks nothing")
    frame = here.shelf.frame()
    refused = frame[frame["finish"] == "refused"]
    assert set(refused["answer"]) == {"status 400: too long, [key]"}
    assert set(refused["cost"]) == {0.0}
    made = judge(here.judging, here.task, here.tables, dataset="mine")
    failures = made.judgements["failure"].dropna()
    assert set(failures) == {"refused: status 400: too long, [key]"}
    assert set(made.judgements[made.judgements["failure"].notna()]["tries"]) == {1}
    assert service.count("chat") == 0


def test_a_batch_that_is_refused_as_a_whole_leaves_nothing(here, service):
    service.answers = lambda body: TOO_LONG
    outcome = here.through()
    assert (outcome.refused, outcome.failures) == (0, {"400": REQUESTS})
    assert len(here.shelf) == 0
    assert here.write()[0][0].requests == REQUESTS


def test_an_account_without_money_refuses_nothing(here, service):
    service.answers = by_number(answer(), (400, {"error": {"message": "pay", "code": "billing_hard_limit_reached"}}))
    outcome = here.through()
    assert (outcome.answers, outcome.refused, outcome.failures) == (7, 0, {"400": 7})
    assert len(here.shelf) == 7


def test_refusals_are_kept_once_when_a_batch_is_collected_again(here, service):
    service.answers = by_number(answer(), TOO_LONG)
    service.mangle = lambda lines: ["{", *lines[1:]]
    assert (here.through().refused, len(here.shelf)) == (7, 13)
    assert (here.collect(skip_broken=True).refused, len(here.shelf)) == (7, 13)


def test_broken_lines_lose_nothing(here, service):
    strange = json.dumps({"custom_id": "f" * 32, "response": {"status_code": 200, "body": answer()}})
    empty = json.dumps({"custom_id": "0", "response": {"status_code": 200, "body": {"choices": []}}})
    service.mangle = lambda lines: [lines[0][:40], strange, *lines[1:5], "", empty, "7", "[" * 5000, *lines[5:]]
    outcome = here.through()
    assert (outcome.answers, outcome.missing) == (REQUESTS - 1, 1)
    assert [line.partition(":")[0] for line in outcome.broken] == [
        f"mine_turn_001.output.jsonl, line {number}" for number in (1, 2, 8, 9, 10)
    ]
    assert "not JSON" in outcome.broken[0]
    assert "is none of the file's requests" in outcome.broken[1]
    assert len(here.shelf) == REQUESTS - 1
    assert here.states()[0].status == "submitted"
    # What it gave once is not counted again, and what it withholds is not asked again.
    again = here.collect()
    assert (again.answers, again.known, again.cost) == (REQUESTS - 1, REQUESTS - 1, 0.0)
    assert here.write()[1] == f"{REQUESTS} requests are with the service already"
    assert here.collect(skip_broken=True).missing == 1
    (state,), _ = here.write()
    assert state.requests == 1


@pytest.mark.parametrize("status", [400, 500])
def test_a_request_that_has_an_answer_and_an_error_has_an_answer(here, service, status):
    service.mangle = lambda lines: [re.sub('"status_code": 200', f'"status_code": {status}', lines[0]), *lines]
    outcome = here.through()
    assert (outcome.answers, outcome.failures, outcome.refused, outcome.known) == (REQUESTS, {}, 0, 0)
    assert set(here.shelf.frame()["finish"]) == {"stop"}


@pytest.mark.parametrize("operation", ["retrieve", "content"])
def test_collecting_is_patient(here, service, operation):
    here.write()
    here.submit()
    service.faults[operation] = [429, "cut"]
    assert here.collect().answers == REQUESTS
    assert service.count(operation) == 3


def test_collecting_gives_up_and_goes_on_later(here, service):
    here.write()
    here.submit()
    service.faults["content"] = [500, 502, 503]
    with pytest.raises(JudgeError, match="status 503"):
        here.collect()
    service.faults["retrieve"] = [{"id": 7}, {}, {"status": "completed"}]
    with pytest.raises(JudgeError, match="it is no batch"):
        here.collect()
    assert len(here.shelf) == 0
    assert here.collect().answers == REQUESTS


def test_the_requests_are_needed_to_collect(here, service):
    (state,), _ = here.write()
    here.submit()
    kept = state.file().read_bytes()
    state.file().unlink()
    with pytest.raises(FileError, match=r"the service keeps it as file-0\. Restore it"):
        here.collect()
    state.file().write_bytes(kept)
    assert here.collect().answers == REQUESTS


def test_another_version_of_the_model_is_warned_of(here, service, caplog):
    service.answers = by_number(answer(), (429, None))
    here.through()
    service.answers = lambda body: answer(model="m-1-0613")
    with caplog.at_level(logging.WARNING):
        here.through()
    assert len([r for r in caplog.records if "now says that it runs m-1-0613" in r.getMessage()]) == 1


def test_an_answer_without_usage_costs_its_worst(here, service):
    service.answers = lambda body: answer(usage=None)
    outcome = here.through()
    assert outcome.cost == pytest.approx(here.states()[0].worst)


def test_no_key_is_kept(here, service):
    service.answers = by_number(answer(f"Humanness: 4, {KEY}"), (400, {"error": {"message": f"wrong key {KEY}"}}))
    outcome = here.through()
    assert KEY not in str(outcome)
    assert b"Humanness: 4, [key]" in here.everything()
    assert KEY.encode() not in here.everything()
    texts = set(here.shelf.frame()["answer"])
    assert texts == {"Humanness: 4, [key]", "status 400: wrong key [key]"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "no custom_id"),
        (b'{"custom_id": 7}', "no custom_id"),
        (b'{"custom_id": "a"}', "neither an answer nor an error"),
        (b'{"custom_id": "a", "response": {"status_code": 200}}', "no list of choices"),
        (b'{"custom_id": "a", "response": {"status_code": 200, "body": {"choices": [{"message": {}}]}}}', "no text"),
    ],
)
def test_lines_that_are_no_results(line, reason):
    with pytest.raises(BrokenLineError, match=reason):
        read_result(line)


# --- one budget ------------------------------------------------------------------------------------------------------


def test_nobody_asks_for_what_is_submitted_or_collected_meanwhile(here, service):
    """Each waits for the other; here, in one process, that would be for ever."""
    here.write()
    family = here.states()[0].family
    with Ledger(here.judging.ledger).writing(here.states()[0].dataset, family), pytest.raises(RuntimeError):
        here.submit()
    assert here.states()[0].status == "written"
    here.submit()
    service.status = "in_progress"
    with Ledger(here.judging.ledger).writing(here.states()[0].dataset, family):
        # To ask how far it is moves nothing, and waits for nobody.
        assert here.collect().status == "in_progress"
        service.status = "completed"
        with pytest.raises(RuntimeError, match="locked by this process"):
            here.collect()
    assert len(here.shelf) == 0
    assert here.states()[0].status == "submitted"
    assert here.collect().answers == REQUESTS


def test_a_file_that_was_written_anew_meanwhile_is_not_submitted_under_the_lock_of_another_family(here, service):
    here.write()
    (chosen,) = here.states()
    here.config["judges"]["big"]["parameters"]["temperature"] = 0.5
    here.save()
    here.write()
    (anew,) = here.states()
    assert anew.path == chosen.path and anew.family.id != chosen.family.id
    with (
        Ledger(here.judging.ledger).writing(anew.dataset, anew.family),
        pytest.raises(ConfigError, match="written anew") as error,
    ):
        here.submit(chosen)
    assert error.value.where == str(chosen.path)
    assert here.states() == [anew]
    assert here.submit()[0].status == "submitted"


def test_a_batch_is_paid_from_what_others_leave(here, service):
    """What a judge's calls under way may cost is not there for a batch; a batch's worst case is not there for them."""
    here.write()
    state, judging = here.states()[0], here.judging
    assert state.worst is not None
    most = 1.5 * state.worst
    ledger = Ledger(judging.ledger)
    poor = dataclasses.replace(judging, budget=most)
    with ledger.account(most) as budget:
        assert budget.reserve(state.worst)
        with pytest.raises(ConfigError, match="Calls that are under way may cost some of it, too"):
            here.submit(judging=poor)
        budget.settle(state.worst, 0)
        here.submit(judging=poor)
        assert not budget.reserve(state.worst) and budget.reserve(0.4 * state.worst)
        budget.settle(0.4 * state.worst, 0)


def test_a_batch_that_somebody_else_collected_meanwhile(here, service):
    here.write()
    here.submit()
    fetch = batch_results._fetch

    async def slow(*arguments):
        found = await fetch(*arguments)
        if len(calls) == 0:
            calls.append("other")
            other = dataclasses.replace(here.states()[0], status="collected", outcome={})
            other.save()
        return found

    calls = []
    with patch.object(batch_results, "_fetch", slow):
        outcome = here.collect()
    assert (outcome.status, outcome.answers) == ("collected", 0)
    assert len(here.shelf) == 0


def test_what_is_committed_counts_money_that_moves_twice_rather_than_never(here, service):
    ledger = Ledger(here.judging.ledger)
    assert committed(ledger, here.root) == 0
    (state,), _ = here.write()
    assert committed(ledger, here.root) == 0
    here.submit()
    assert committed(ledger, here.root) == state.worst

    class Racing(Ledger):
        def spent(self):
            here.collect()
            return super().spent()

    assert committed(Racing(ledger.root), here.root) == pytest.approx(state.worst + ledger.spent())
    assert committed(ledger, here.root) == ledger.spent() > 0


def test_what_a_batch_asks_already_is_not_asked(here, service):
    here.write()
    here.submit()
    with pytest.raises(ConfigError, match=r"a batch of these requests is under way \(big/mine_turn_001\)"):
        ask(here.judging, here.task, here.tables, dataset="mine")
    assert service.count("chat") == 0
    here.collect()
    assert ask(here.judging, here.task, here.tables, dataset="mine").from_ledger == 16


def test_a_batch_under_way_leaves_less_for_other_judges(here, service):
    here.config["judges"]["other"] = here.config["judges"]["big"] | {"concurrency": 1}
    here.config["judging"]["judges"]["default"] = ["big", "other"]
    here.save()
    (state,), _ = here.write()
    here.submit()
    task = here.judging.tasks("mine")["turn_other"]
    with pytest.raises(JudgeError, match=r"judgements are missing: .*of the budget of .* is spent"):
        ask(here.budget(1.001 * state.worst), task, here.tables, dataset="mine")
    assert service.count("chat") == 0
    # The same money without the batch is enough: an answer costs less than its worst case.
    service.status, service.answers = "cancelled", lambda body: None
    here.collect()
    service.answers = lambda body: answer()
    ask(here.budget(2 * state.worst), task, here.tables, dataset="mine")
    assert service.count("chat") == REQUESTS


def test_calls_that_are_never_answered_spend_the_budget_of_later_runs(here, service):
    here.config["judges"]["big"] |= {"attempts": 1, "concurrency": 1}
    here.save()
    service.faults["chat"] = ["cut"] * 100
    asked = []
    for _ in range(3):
        before = service.count("chat")
        with pytest.raises(JudgeError, match="judgements are missing"):
            ask(here.budget(0.05), here.task, here.tables, dataset="mine")
        asked.append(service.count("chat") - before)
    assert asked[0] > 0
    assert asked[1:] == [0, 0]
    assert 0.03 < Ledger(here.judging.ledger).spent() <= 0.05


def test_one_place_for_batches(here):
    """`judge run` looks there, and would ask again what a batch elsewhere asks."""
    with pytest.raises(SystemExit):
        here.command("write", "--batches", "elsewhere")


# --- the commands ----------------------------------------------------------------------------------------------------


def test_the_commands(here, service, capsys, monkeypatch):
    monkeypatch.setattr(batch_results, "_GROUP", 3)
    monkeypatch.setattr(judge_batch, "_sleep", lambda seconds: setattr(service, "status", "completed"))
    here.command("submit")
    assert capsys.readouterr().out == "data/batches: nothing to submit\n"
    here.command("write")
    out = capsys.readouterr().out
    assert "mine  turn_big: data/batches/big/mine_turn_001.jsonl: 14 requests, 0.0 MB, at most $0.1" in out
    assert "mine  dial_big: nothing written: the ledger does not hold all answers of turn_big yet" in out
    with pytest.raises(ComperdialError, match="budget"):
        here.command("submit", "--budget", 0.01)
    here.command("submit", "--variants", "dial")
    assert "nothing to submit" in capsys.readouterr().out
    here.command("submit", "--datasets", "mine", "--judges", "big")
    assert capsys.readouterr().out == "big/mine_turn_001: submitted as batch-0\n"
    service.status = "in_progress"
    here.command("collect")
    assert "in_progress" in capsys.readouterr().out
    here.command("collect", "--wait", "--interval", 0.5)
    out = capsys.readouterr().out
    assert out.startswith("big/mine_turn_001: in_progress")
    assert "completed; 14 of 14 requests answered, $0.0161" in out
    here.command("collect", "--wait")
    assert capsys.readouterr().out == "data/batches: nothing to collect\n"
    here.command("write")
    out = capsys.readouterr().out
    assert "turn_big: nothing written: the ledger lacks nothing" in out
    assert "dial_big: data/batches/big/mine_dial_001.jsonl: 4 requests" in out


def test_who_waits_waits_for_a_service_that_is_down(here, service, capsys, monkeypatch):
    here.write()
    here.submit()
    monkeypatch.setattr("comperdial.judges.batches.Limits", lambda **_: Limits(attempts=1))
    monkeypatch.setattr(judge_batch, "_sleep", lambda seconds: None)
    service.faults["retrieve"] = [503, 500, 502]
    with pytest.raises(LaterError, match="status 503"):
        here.command("collect")
    here.command("collect", "--wait")
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(", says")[0] for line in out[:2]] == [
        "big/mine_turn_001: status 500: no",
        "big/mine_turn_001: status 502: no",
    ]
    assert "14 of 14 requests answered" in out[2]


def test_the_commands_say_what_is_wrong(here, service, capsys):
    service.mangle = lambda lines: ["{", *lines[1:]]
    here.command("write")
    here.command("submit")
    with pytest.raises(FileError, match=r"line 1: it is not JSON: 1 lines that cannot be read"):
        here.command("collect", "--wait")
    here.command("collect", "--skip-broken")
    assert "1 of which it says nothing" in capsys.readouterr().out
    here.command("write")
    service.faults["create"] = ["cut"]
    with pytest.raises(JudgeError):
        here.command("submit")
    capsys.readouterr()
    here.command("collect")
    assert "`comperdial judge batch submit` finds out" in capsys.readouterr().out
    here.command("submit")
    assert "known to the service already, as batch-1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        here.command("collect", "--interval", "never")
