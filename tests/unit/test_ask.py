"""A run of judgements: every one once, for no more money than allowed, whatever the service does and whoever is killed."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from functools import partial

import httpx2
import pytest

import faultserver
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.sharding import Shard
from comperdial.judges import ask, ledger
from comperdial.judges.ask import INTERRUPTED, Limits, look
from comperdial.judges.base import Answer, Completion, JudgeError, key
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import Price, most_input
from comperdial.judges.services.openai import OpenAI
from faultserver import FAULTS, PARAMETERS, FaultServer, completion, kept, parse, repeated, table

# Long enough for the 700 tokens that the server counts.
prompt, Turn = partial(faultserver.prompt, words=60), partial(faultserver.Turn, words=60)
SAMPLES = 3
QUICK = Limits(backoff=0.002, most=0.02)
PRICE = Price("loopback", datetime.date(2024, 1, 1), 10.0, 30.0)
# What one answer of the server costs: 700 tokens in, 4 out; and the most that one may cost.
COST = PRICE.of(700, 4)
WORST = PRICE.of(most_input(json.loads(prompt(1))), PARAMETERS["max_tokens"])
FAMILY = faultserver.family()


def judge(server, root=None, turns=10, *, items=None, budget=None, paid=False, timeout=10, done=None, **options):
    """Run against a server; return the report and the answers, which are closed only by the garbage collector."""
    service = faultserver.service(server.url, timeout=timeout)
    service.paid = paid or budget is not None
    options = {"samples": SAMPLES, "retries": 2, "concurrency": 8, "limits": QUICK, "price": PRICE} | options
    with Ledger(root).open("demo", FAMILY, budget=budget, paid=service.paid) as writer:
        asker = faultserver.asker(service, writer, **options)
        report = asker.run([Turn(turn) for turn in range(turns)] if items is None else items, done)
        report.kept, report.spent = len(writer), writer.spent()
        return report


def answers(root):
    return Ledger(root).answers("demo", FAMILY)


def rated(*_):
    return completion(b"", "Overall: 4")


def after(number, plan):
    """Return a script that answers so many calls, and then does something else."""
    return lambda count, _: rated() if count <= number else plan


def error(status, said, **other):
    return status, json.dumps({"error": {"message": said}}).encode(), other


# --- every judgement once ---


def test_every_judgement_once_among_faults_and_none_again(tmp_path):
    """Three calls of ten meet a fault, of each kind."""
    turns = 60
    with FaultServer(0.3, seed=5) as server:
        report = faultserver.judge(server.url, tmp_path, turns, concurrency=16, timeout=0.5)
        again = faultserver.judge("http://127.0.0.1:9/v1", tmp_path, turns)
    report.check()
    assert (report.done, report.total, report.missing, report.from_ledger) == (turns * SAMPLES, turns * SAMPLES, 0, 0)
    assert set(server.met) == set(FAULTS)
    assert report.asked == server.requests == report.answered + report.repeated
    assert sum(report.faults.values()) == server.met.total() == report.repeated
    # None is paid twice: a prompt with a rating was answered once a sample, one without once a try.
    assert repeated(server.delivered) == 0
    lines = table(tmp_path, turns).decode().splitlines()
    assert len(set(lines)) == turns * SAMPLES
    assert not [line for line in lines if "missing" in line]
    unrated = [line for line in lines if line.endswith(",None")]
    assert len(unrated) == report.unparsed == 3 * sum(n == SAMPLES * 3 for n in server.delivered.values())
    assert (again.done, again.from_ledger, again.asked, again.unparsed) == (180, 180, 0, report.unparsed)
    text = str(report)
    assert "180 judged, 0 of them from the ledger" in text
    assert "calls sent again after faults" in text
    assert "not complete" not in text


def test_killed_at_any_moment_and_run_again(tmp_path, processes):
    turns, concurrency, chance = 60, 8, random.Random(4)
    with FaultServer(seed=1) as server:
        faultserver.judge(server.url, tmp_path / "whole", turns)
        expected = table(tmp_path / "whole", turns)
        server.delivered.clear()
        server.share = 0.3
        kills, lost = 0, []
        for _ in range(3):
            arguments = (server.url, tmp_path / "killed", turns, SAMPLES, concurrency, 0.3)
            process = processes.Process(target=faultserver.judge, args=arguments)
            process.start()
            # From its start, or in the middle of its work.
            goal = server.delivered.total() + chance.randrange(50)
            while server.delivered.total() < goal and process.is_alive():
                process.join(0.002)
            kills += process.is_alive()
            process.kill()
            process.join()
            settle(server)
            lost.append(server.delivered.total() - kept(tmp_path / "killed") - sum(lost))
        report = faultserver.judge(server.url, tmp_path / "killed", turns, SAMPLES, concurrency, 0.3)
    assert kills == 3
    report.check()
    assert table(tmp_path / "killed", turns) == expected
    assert max(lost) <= concurrency
    assert repeated(server.delivered) == sum(lost)


def settle(server):
    """Wait until the server has met all that was sent before: its loop takes that in the same turn, or earlier."""
    for _ in range(2):
        httpx2.get(server.url).raise_for_status()


def start(processes, server, root, turns, shards, **options):
    started = []
    for shard in shards:
        arguments = (server.url, root, turns, shard)
        started.append(processes.Process(target=faultserver.pay, args=arguments, kwargs=options))
        started[-1].start()
    return started


@pytest.mark.parametrize("shards", [["1/1"] * 4, [f"{number}/4" for number in range(1, 5)]])
def test_four_processes_some_of_them_killed_share_work_and_budget(tmp_path, processes, shards):
    """On one file, where two may want the same at the same time, and a file each."""
    turns, limit, chance = 80, 0.4, random.Random(2)
    assert COST < WORST
    assert COST * 40 < limit < COST * turns
    with FaultServer() as server:
        started = start(processes, server, tmp_path, turns, shards, limit=limit)
        for victim, goal in ((0, 10), (1, 20)):
            while server.delivered.total() < goal + chance.randrange(5):
                assert server.delivered.total() * COST <= limit
                started[victim].join(0.002)
            started[victim].kill()
        for process in started:
            process.join()
        settle(server)
        # The second one may have come to its end before it was to be killed.
        assert [process.exitcode for process in started] in ([-9, -9, 0, 0], [-9, 0, 0, 0])
        delivered, spent = server.delivered.total(), Ledger(tmp_path).spent()
        assert delivered * COST <= spent + 1e-9
        assert spent <= limit
        assert 0 <= delivered - kept(tmp_path) <= 2 * 4
        # With more money all is judged, and nothing that was on the disk is asked again.
        lost = delivered - kept(tmp_path)
        for shard in shards:
            faultserver.pay(server.url, tmp_path, turns, shard, limit=10.0).check()
    assert server.delivered.total() == turns + lost
    assert len(answers(tmp_path).frame()) == kept(tmp_path) == turns
    assert Ledger(tmp_path).spent() >= server.delivered.total() * COST - 1e-9
    whole = faultserver.pay("http://127.0.0.1:9/v1", tmp_path, turns, limit=10.0)
    assert (whole.done, whole.from_ledger, whole.asked) == (turns, turns, 0)


def test_who_wants_what_another_process_asks_waits_for_its_answer(tmp_path, monkeypatch):
    """Two runs in threads, which share nothing but the file; the second one says that it waits."""
    begun, waits, reports = threading.Event(), threading.Event(), []

    def script(*_):
        begun.set()
        assert waits.wait(10)
        return rated()

    class Heard(logging.Handler):
        def emit(self, record):
            assert "another process asks the same" in record.getMessage()
            waits.set()

    monkeypatch.setattr(ask.log, "handlers", [Heard()])

    with FaultServer(script=script) as server:
        first, second = (
            threading.Thread(target=lambda: reports.append(judge(server, tmp_path, 1, samples=1))) for _ in range(2)
        )
        first.start()
        assert begun.wait(10)
        second.start()
        first.join()
        second.join()
        assert server.requests == 1
    assert sorted((report.asked, report.answered, report.from_ledger, report.done) for report in reports) == [
        (0, 0, 1, 1),
        (1, 1, 0, 1),
    ]


def test_requests_that_are_alike_are_one_call():
    with FaultServer() as server:
        report = judge(server, items=[Turn(1)] * 20, samples=1)
        assert server.requests == 1
    assert (report.done, report.asked, report.from_ledger) == (20, 1, 19)
    with FaultServer(script=lambda *_: (415, b"{}")) as server:
        report = judge(server, items=[Turn(1)] * 20, samples=1)
        assert server.requests == 1
    assert (len(report.failed), report.done) == (1, 0)


def test_fresh_samples_for_answers_without_a_rating(tmp_path):
    """The tries of judgement 0 of 3 are samples 0, 3 and 6; each is kept."""
    said = iter(["no", "none", "Overall: 2"])
    with FaultServer(script=lambda *_: completion(b"", next(said, "no"))) as server:
        report = judge(server, tmp_path, 1, samples=1, stride=3)
        assert (report.done, report.unread, report.unparsed) == (1, 2, 0)
        tries, ended = look(answers(tmp_path), prompt(0), 0, 3, 2, parse)
        assert ended
        assert [(one.sample, one.completion.text, parsed.values) for one, parsed in tries] == [
            (0, "no", {}),
            (3, "none", {}),
            (6, "Overall: 2", {"overall": 2.0}),
        ]
        report = judge(server, tmp_path, items=[Turn(1)], samples=1)
        assert (report.done, report.unread, report.unparsed) == (1, 3, 1)
        report.check()
    assert not look(answers(tmp_path), prompt(1), 0, 1, 3, parse).ended


def test_items_are_taken_as_there_is_room_and_handed_on_in_order(monkeypatch):
    monkeypatch.setattr(ask, "_PART", 7)
    taken, seen, handed = [], [], []

    def lazily():
        for number in range(40):
            taken.append(number)
            yield Turn(number) if number % 10 else Missing()

    class Missing:
        messages = None

    with FaultServer() as server:
        server.script = lambda number, body: seen.append(len(taken) - number // SAMPLES) or rated()
        report = judge(server, items=lazily(), concurrency=4, done=lambda part: handed.append(list(part)))
    assert max(seen) <= 4 + 5
    assert server.most <= 4
    flat = [pair for part in handed for pair in part]
    assert [item.messages for item, _ in flat] == [prompt(number) if number % 10 else None for number in range(40)]
    assert all(len(found) == (SAMPLES if item.messages else 0) for item, found in flat)
    assert all(one.ended for _, found in flat for one in found)
    assert len(handed) == 6
    assert report.done == report.total == 36 * SAMPLES


def test_a_refused_request_does_not_hold_back_what_comes_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(ask, "_PART", 20)
    when = []
    with FaultServer(script=lambda number, _: error(400, "no") if number == 3 else rated()) as server:
        report = judge(
            server, tmp_path, 400, samples=1, done=lambda part: when.append((server.requests, len(part))), price=None
        )
        assert judge(server, tmp_path, 400, samples=1, price=None).asked == 0
    report.check()
    assert (report.done, report.refused, sum(size for _, size in when)) == (400, 1, 400)
    assert when[0][0] < 300


@pytest.mark.parametrize("where", ["items", "done", "read"])
def test_an_error_of_the_caller_comes_through_and_what_came_is_kept(tmp_path, monkeypatch, where):
    monkeypatch.setattr(ask, "_PART", 2)

    def broken(*_):
        raise FileError("no more tables")

    def items():
        yield from (Turn(turn) for turn in range(40))
        broken()

    given = {"items": {"items": items()}, "done": {"done": broken}, "read": {"read": broken}}[where]
    with FaultServer(script=rated) as server:
        with pytest.raises(FileError, match="no more tables"):
            judge(server, tmp_path, **given)
        assert 0 < kept(tmp_path) == server.requests <= 120


def test_a_call_that_the_service_cancels_itself_is_no_judgement(tmp_path, monkeypatch):
    real, numbers = OpenAI.complete, iter(range(1000))

    async def complete(self, *arguments):
        if next(numbers) == 3:
            raise asyncio.CancelledError
        return await real(self, *arguments)

    monkeypatch.setattr(OpenAI, "complete", complete)
    with FaultServer(script=rated) as server:
        report = judge(server, tmp_path)
    with pytest.raises(JudgeError, match="the service cancelled a call of its own"):
        report.check()


def test_in_a_thread_no_signal_is_needed(tmp_path):
    with FaultServer(script=rated) as server:
        thread = threading.Thread(target=judge, args=(server, tmp_path))
        thread.start()
        thread.join()
    assert kept(tmp_path) == 30


# --- money ---


def test_what_is_kept_of_an_answer(tmp_path):
    with FaultServer(script=rated) as server:
        report = judge(server, tmp_path, 1, samples=1, paid=True)
    found = answers(tmp_path).get(key(FAMILY.id, prompt(0), 0))
    assert found.completion == Completion("Overall: 4", "stop", 700, 4, "loopback-1")
    assert found.cost == report.cost == COST
    assert 0 <= found.latency < 5000
    assert abs(found.time - time.time()) < 60
    assert (report.input_tokens, report.output_tokens, report.unpriced) == (700, 4, 0)


@pytest.mark.parametrize(
    ("paid", "price", "usage", "cost"),
    [(True, None, True, None), (False, None, True, 0.0), (False, PRICE, True, 0.0), (True, PRICE, False, WORST)],
)
def test_a_price_that_is_not_known_is_not_zero(tmp_path, paid, price, usage, cost):
    answer = rated() if usage else b'{"choices": [{"message": {"content": "Overall: 4"}}]}'
    with FaultServer(script=lambda *_: answer) as server:
        report = judge(server, tmp_path, items=[Turn(1)], samples=1, paid=paid, price=price)
    assert answers(tmp_path).frame()["cost"].fillna(-1).tolist() == [-1 if cost is None else cost]
    assert report.unpriced == (cost is None)


def test_a_budget_needs_a_price_and_a_limit_to_answers(tmp_path, monkeypatch):
    with FaultServer() as server:
        with pytest.raises(ConfigError, match="no price of model 'loopback' is known"):
            judge(server, tmp_path, budget=1.0, price=None)
        monkeypatch.setattr(faultserver, "PARAMETERS", {})
        with pytest.raises(ConfigError, match="may be of any length"):
            judge(server, tmp_path, budget=1.0)
        assert server.requests == 0


def test_a_budget_is_used_and_never_passed(tmp_path):
    """Every third answer is cut off: its price is not known, and not nothing, also for later runs."""
    with FaultServer(script=lambda number, _: "half" if number % 3 == 0 else rated()) as server:
        first = judge(server, tmp_path, 100, budget=0.4)
        second = judge(server, tmp_path, 100, budget=0.4)
        assert second.asked == 0
        assert first.answered == first.kept == second.kept
        assert server.met["half"] * COST + first.cost <= first.spent == second.spent <= 0.4
    assert first.charged == pytest.approx(first.spent - first.cost)
    assert first.spent > 0.4 - WORST
    assert f"${first.charged:.4f} may have been charged for calls without an answer" in str(first)
    assert "of the budget of $0.40 is spent, and one more call can cost" in first.stopped
    with pytest.raises(JudgeError, match=f"{300 - first.done} judgements are missing: .*raise the budget"):
        first.check()


def test_only_what_may_have_been_charged_is_a_charge():
    plans = ["half", error(500, ""), error(429, ""), "cut", error(400, ""), "not JSON"]
    with FaultServer(script=lambda number, _: plans[number - 1] if number <= len(plans) else rated()) as server:
        report = judge(server, turns=4, budget=10.0, concurrency=1)
        assert report.spent == pytest.approx(11 * COST + report.charged)
        assert report.charged == pytest.approx(3 * PRICE.of(most_input(json.loads(prompt(0))), 20), rel=0.01)
    with FaultServer(script=lambda number, _: "half" if number == 1 else rated()) as server:
        assert judge(server).spent == 0.0


def test_what_a_gateway_gave_up_may_have_been_charged():
    """Whoever stands before the service does not know what that has done."""
    plans = [error(status, "late") for status in (408, 502, 504, 520, 522, 524)]
    with FaultServer(script=lambda number, _: plans[number - 1] if number <= len(plans) else rated()) as server:
        report = judge(server, turns=1, budget=10.0, concurrency=1)
    assert report.charged == pytest.approx(6 * PRICE.of(most_input(json.loads(prompt(0))), 20))


def test_a_server_that_bills_more_than_it_may_is_stopped_at_once():
    """It promised 20 tokens."""
    bill = json.loads(rated()) | {"usage": {"prompt_tokens": 700, "completion_tokens": 100_000}}
    dear = PRICE.of(700, 100_000)
    with FaultServer(script=lambda number, _: rated() if number <= 10 else json.dumps(bill).encode()) as server:
        report = judge(server, turns=100, budget=0.5, concurrency=8)
        assert server.requests <= 10 + 8
    assert f"billed ${dear:,.4f} for a call that can cost $0.00" in report.stopped
    assert report.spent == pytest.approx(report.cost)
    assert report.cost <= 10 * COST + 8 * dear
    with pytest.raises(JudgeError, match="A budget holds only for a service that keeps to the length"):
        report.check()


# --- faults ---


def test_an_odd_answer_is_invalid_alone(tmp_path):
    odd = [
        json.dumps(json.loads(rated()) | {"usage": {"prompt_tokens": 10**30, "completion_tokens": 4}}).encode(),
        b"[" * 100_000,
        (200, b" " * (17 << 20)),
        (200, rated(), {"content-encoding": "gzip"}),
        b'{"choices": [{"message": {"content": 5}}]}',
    ]
    with FaultServer(
        script=lambda number, _: odd[number // 7] if number % 7 == 0 and number < 35 else rated()
    ) as server:
        report = judge(server, tmp_path, concurrency=32)
    report.check()
    assert (report.answered, kept(tmp_path), report.repeated) == (30, 30, 4)
    assert report.faults == Counter({"invalid answer": 4})


def test_a_value_that_cannot_be_kept_is_an_invalid_answer_too(tmp_path, monkeypatch):
    """Should the service let one through."""
    flatten = ledger.flatten

    def strict(answer):
        if answer.completion.text == "odd":
            answer = Answer(answer.messages, answer.sample, Completion("odd", input_tokens=10**30))
        return flatten(answer)

    monkeypatch.setattr(ledger, "flatten", strict)
    with FaultServer(script=lambda number, _: completion(b"", "odd") if number == 5 else rated()) as server:
        report = judge(server, tmp_path, concurrency=32, budget=10.0)
    report.check()
    assert (kept(tmp_path), report.faults) == (30, Counter({"invalid answer": 1}))
    assert report.spent == pytest.approx(30 * COST + report.charged)
    assert report.charged > 0


def test_a_call_that_fails_is_named_and_the_run_goes_on(tmp_path):
    def script(_, body):
        return (500, b"") if "turn 3." in body["messages"][0]["content"] else rated()

    with FaultServer(script=script) as server:
        report = judge(server, tmp_path, limits=Limits(backoff=0.001, most=0.002, attempts=4))
    keys = {key(FAMILY.id, prompt(3), sample) for sample in range(SAMPLES)}
    assert {name for name, _ in report.failed} == keys
    assert (report.done, report.missing, report.stopped) == (27, 3, None)
    assert report.faults == Counter({"500": 3 * 4})
    with pytest.raises(JudgeError, match="3 judgements are missing: 3 calls failed") as caught:
        report.check("gpt")
    assert str(caught.value).startswith("gpt: ")
    assert all(name in str(caught.value) for name in keys)


@pytest.mark.parametrize(
    ("script", "said", "most"),
    [
        (after(0, "shape"), "10 times in a row: .*no list of choices", 20 * 3),
        (after(20, "cut"), "nothing is answered any more; 10 times in a row: the connection was cut", 20 + 20 * 3),
        (after(20, error(401, "no")), "status 401: no", 20 + 8),
        (after(20, error(404, "no")), "status 404: no", 20 + 8),
        (after(20, error(402, "pay")), "status 402: pay", 20 + 8),
        (after(20, error(429, "no", **{"retry-after": "86400"})), "the service asks to wait 86,400 s", 20 + 8),
        (
            after(20, error(429, "no", **{"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"})),
            "the service asks to wait",
            20 + 8,
        ),
    ],
)
def test_what_ends_a_run_soon_and_keeps_what_came(tmp_path, script, said, most):
    with FaultServer(script=script) as server:
        report = judge(server, tmp_path, 100, limits=Limits(backoff=0.001, attempts=3))
        assert server.requests <= most
    assert kept(tmp_path) == report.answered <= 20
    with pytest.raises(JudgeError, match=said):
        report.check()


def test_a_server_that_is_not_there_is_soon_given_up():
    with FaultServer() as server:
        pass
    report = judge(server, turns=100)
    assert report.asked < 30
    with pytest.raises(JudgeError, match=r"10 times in a row: .*cannot be reached.*Is the server running"):
        report.check()


def test_one_429_holds_all_workers():
    times = []

    def script(number, _):
        times.append(time.monotonic())
        return error(429, "slowly", **{"retry-after-ms": "300"}) if number == 1 else rated()

    with FaultServer(script=script) as server:
        report = judge(server, concurrency=2)
    assert (report.done, report.faults) == (30, Counter({"429": 1}))
    # One call may have been on its way already.
    assert sum(when < times[0] + 0.29 for when in times) <= 1 + 2


# --- refusals ---


def refusing(*turns):
    """Return a script that refuses some turns for good."""

    def script(_, body):
        mine = any(f"turn {turn}." in body["messages"][0]["content"] for turn in turns)
        return error(400, "content policy") if mine else rated()

    return script


def test_a_few_refusals_are_kept_and_asked_again_only_when_told(tmp_path):
    with FaultServer(script=refusing(3)) as server:
        handed = []
        report = judge(server, tmp_path, done=handed.extend)
        report.check()
        assert (report.done, report.refused, report.unparsed, report.failed) == (30, 3, 3, [])
        assert all(one.ended for _, found in handed for one in found)
        assert [one.tries[0][1].failure for one in handed[3][1]] == ["refused: status 400: content policy"] * 3
        assert (report.answered, report.unread, report.cost, report.kept) == (27, 0, 0.0, 30)
        assert "3 requests refused for good; --retry-refused asks them again" in str(report)
        again = judge(server, tmp_path)
        assert (server.requests, again.from_ledger, again.unparsed, again.refused) == (30, 30, 3, 0)
        told = judge(server, tmp_path, retry_refused=True)
        assert (server.requests, told.from_ledger, told.refused) == (33, 27, 3)
        tries, ended = look(answers(tmp_path), prompt(3), 1, SAMPLES, 2, parse)
        assert (ended, len(tries), tries[0][0].completion) == (
            True,
            1,
            Completion("status 400: content policy", "refused"),
        )
        Ledger(tmp_path).export()
        server.script = rated
        told = judge(server, tmp_path, retry_refused=True)
        assert (server.requests, told.answered, told.unparsed) == (36, 3, 0)
        for _ in range(2):
            again = judge(server, tmp_path, retry_refused=True)
            assert (server.requests, again.from_ledger, again.unparsed) == (36, 30, 0)
            Ledger(tmp_path).export()


@pytest.mark.parametrize(
    ("well", "refuse"),
    [
        (80, lambda number: error(400, "max_tokens is unknown")),
        (0, lambda number: error(400, "max_tokens is unknown")),
        (80, lambda number: error(400, f"request {number} is invalid")),
        (80, lambda number: error(422 if number % 2 else 400, "no") if number % 3 else rated()),
        (80, lambda number: error(451, "no")),
    ],
)
def test_a_service_that_refuses_everything_from_some_moment_on_ends_the_run(tmp_path, refuse, well):
    with FaultServer(script=lambda number, _: rated() if number <= well else refuse(number)) as server:
        report = judge(server, tmp_path, 200, samples=1)
        assert server.requests <= well + 60
        assert report.refused == 0
        assert kept(tmp_path) == report.answered
        with pytest.raises(JudgeError, match=r"the service refused .*--accept-refused keeps that"):
            report.check()
        # The next run asks them again.
        server.script = rated
        report = judge(server, tmp_path, 200, samples=1)
    report.check()
    assert (report.done, kept(tmp_path)) == (200, 200)


def test_refusals_are_kept_however_many_when_that_is_accepted(tmp_path):
    with FaultServer(script=lambda *_: error(400, "no")) as server:
        # So few are no pattern; but the service never answered anything.
        report = judge(server, tmp_path, 2)
        assert (kept(tmp_path), report.refused, len(report.failed)) == (0, 0, 6)
        report = judge(server, tmp_path, 20, accept_refused=True)
    report.check()
    assert (report.done, report.refused, kept(tmp_path)) == (60, 60, 60)


def test_a_fresh_sample_that_is_refused_is_the_last(tmp_path):
    plans = [completion(b"", "no"), (422, b'{"detail": "too long"}')]
    with FaultServer(script=lambda number, _: plans[number - 1]) as server:
        report = judge(server, tmp_path, 1, samples=1)
    assert (report.asked, report.done, report.refused, report.unparsed) == (2, 1, 1, 1)
    tries, ended = look(answers(tmp_path), prompt(0), 0, 1, 2, parse)
    assert ended
    assert [answer.completion.text for answer, _ in tries] == ["no", "status 422: too long"]


# --- the disk, and the end ---


@pytest.mark.parametrize("room", [True, False])
def test_answers_that_come_when_the_disk_is_full_are_kept_in_the_end_or_counted(tmp_path, monkeypatch, room):
    with FaultServer() as server, Ledger(tmp_path).open("demo", FAMILY, budget=10.0, paid=True) as writer:
        service = faultserver.service(server.url, timeout=10)
        service.paid = True
        (spare,) = (tmp_path / ".running").glob("*.spare")
        assert spare.stat().st_size >= 1 << 20
        make_room = writer.make_room

        def limit(pages):
            writer._base.execute(f"PRAGMA max_page_count = {pages}")

        def free():
            make_room()
            assert not spare.exists()
            if room:
                limit(2**30)

        monkeypatch.setattr(writer, "make_room", free)
        pages = []

        def script(number, _):
            if number == 20:
                pages.append(writer._base.execute("PRAGMA page_count").fetchone()[0])
                limit(pages[0])
            return completion(b"", "Overall: 4" + " " * 3000)

        server.script = script
        asker = faultserver.asker(service, writer, samples=1, concurrency=8, price=PRICE, limits=QUICK)
        with pytest.raises(FileError, match=r"full.*Free some space") as caught:
            asker.run(Turn(turn) for turn in range(200))
        asked, found = server.requests, len(writer)
        assert asked < 60
        assert writer.spent() >= asked * COST - 1e-9
        if room:
            assert found == asked == asker.report.answered
            assert "lost" not in str(caught.value)
        else:
            assert 10 < found < asked
            assert f"; {asked - found} answers that came then are lost, and count as spent" in str(caught.value)
        limit(2**30)
    assert kept(tmp_path) == found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path, number):
    """What came is kept, calls under way are given up at once and may be charged, and handlers are as they were."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def script(count, _):
        if count == 12:
            os.kill(os.getpid(), number)
        return "hang" if count > 10 else rated()

    begun = time.monotonic()
    with FaultServer(script=script) as server:
        report = judge(server, tmp_path, 100, timeout=30, budget=10.0)
        assert server.requests <= 20
    assert time.monotonic() - begun < 10
    assert report.stopped == INTERRUPTED
    # The last of the ten may have been on their way.
    assert 2 <= report.answered == kept(tmp_path) <= 10
    assert server.requests * COST <= report.spent + 1e-9 == pytest.approx(report.cost + report.charged)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    with pytest.raises(JudgeError, match=r"judgements are missing: it was interrupted.*run again") as caught:
        report.check()
    assert caught.value.status == 130


def test_an_answer_is_on_the_disk_before_it_is_read(tmp_path):
    def careful(completion):
        with Ledger(tmp_path).open("demo", FAMILY) as other:
            assert completion.text in set(other.frame()["answer"])
        return parse(completion)

    said = iter(f"Overall: {1 + number % 5}" for number in range(99))
    with FaultServer(script=lambda *_: completion(b"", next(said))) as server:
        judge(server, tmp_path, 3, read=careful, concurrency=4).check()


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_has_the_price_and_is_for_terminals(monkeypatch, terminal):
    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    monkeypatch.setattr("sys.stderr", Screen())
    with FaultServer(script=rated) as server:
        report = judge(server, turns=20, budget=100.0, total=60, progress="judging")
        shown = sys.stderr.getvalue()
    assert report.price == f"${60 * COST:.4f}"
    assert ("judging: 100%" in shown and f", {report.price} of {report.price}]" in shown) if terminal else shown == ""


def test_what_cannot_be():
    for name, value in {"concurrency": 0, "requests": 0, "tokens": -1, "attempts": 0}.items():
        with FaultServer() as server, pytest.raises(ConfigError, match=f"{name}.* (is|are) {value}"):
            judge(server, **({name: value} if name == "concurrency" else {"limits": Limits(**{name: value})}))


def test_another_model_version_is_warned_of_once(tmp_path, caplog):
    for model in ("loopback-1", "loopback-2"):
        answer = json.dumps(json.loads(rated()) | {"model": model}).encode()
        with FaultServer(script=lambda *_, answer=answer: answer) as server:
            judge(server, tmp_path, items=[Turn(model)])
    (record,) = caplog.records
    assert "now says that it runs loopback-2, but the ledger holds answers of loopback-1" in record.getMessage()


def test_shards_judge_what_one_process_would(tmp_path):
    """Their requests are those that their shard holds."""
    with FaultServer() as server:
        for number in (1, 2):
            faultserver.pay(server.url, tmp_path, 30, f"{number}/2", limit=10.0).check()
        assert set(server.delivered.values()) == {1}
    for shard in (Shard(1, 2), Shard(2, 2)):
        found = Ledger(tmp_path, shard).answers("demo", FAMILY)
        assert len(found) == sum(shard.holds(prompt(turn)) for turn in range(30))
