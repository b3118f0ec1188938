"""A run of judgements: every one once, whatever the service does and whenever the process is killed."""

import asyncio
import datetime
import io
import os
import random
import signal
import sys
import threading
import time
from collections import Counter

import pytest
from comperdial.judges._writing import Writer
from comperdial.judges.client import Client

import faultserver
from comperdial.core.errors import ConfigError, FileError
from comperdial.judges.ask import INTERRUPTED, JudgeError, Limits, Slot, Throttle, attempts, run, run_async, usable
from comperdial.judges.base import Answer, Completion, Family, key
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import FREE, Budget, Price, most_input
from faultserver import FAMILY, FAULTS, PARAMETERS, FaultServer, completion, parse, prompt, service, table

SAMPLES = 3
QUICK = Limits(backoff=0.002, most=0.02)
PRICE = Price("loopback", datetime.date(2024, 1, 1), 10.0, 30.0)
# What one answer of the server costs: 700 tokens in, 4 out.
COST = PRICE.of(700, 4)


class Paper:
    """A shelf in memory."""

    def __init__(self, family=None):
        self.family = family or Family(parameters=PARAMETERS, **FAMILY)
        self.answers = {}
        self.groups = []
        self.charges = []

    def __len__(self):
        return len(self.answers)

    @property
    def answered(self):
        return bool(self.answers)

    def charge(self, cost, kind):
        self.charges.append((cost, kind))

    def get(self, name):
        return self.answers.get(name)

    def add(self, answers):
        self.groups.append(len(answers))
        for answer in answers:
            self.answers.setdefault(key(self.family.id, answer.messages, answer.sample), answer)


def slots(turns, samples=SAMPLES):
    return [Slot(prompt(turn), index) for turn in range(turns) for index in range(samples)]


def options(server, shelf, **other):
    # Ten seconds: a busy machine is not a fault.
    return {
        "shelf": shelf,
        "client": Client(service(server.url, timeout=10)),
        "samples": SAMPLES,
        "retries": 2,
        "parse": parse,
        "parameters": PARAMETERS,
        "concurrency": 8,
        "limits": QUICK,
    } | other


def rated(*_):
    return completion(b"", "Overall: 4")


def test_every_judgement_once_among_faults(tmp_path):
    """Three calls of ten meet a fault, of each kind."""
    turns = 100
    with FaultServer(0.3, seed=5) as server:
        report = faultserver.judge(server.url, tmp_path, turns, concurrency=16, timeout=1)
    assert report.stopped is None
    assert report.failed == []
    assert (report.done, report.total, report.missing, report.from_ledger) == (turns * SAMPLES, turns * SAMPLES, 0, 0)
    assert set(server.met) == set(FAULTS)
    assert report.asked == server.requests == report.answered + report.repeated
    assert sum(report.faults.values()) == sum(server.met.values()) == report.repeated
    # None is paid twice: a prompt with a rating was answered once a sample, one without once a try.
    assert faultserver.repeated(server.delivered) == 0
    assert report.answered == sum(server.delivered.values())
    lines = table(tmp_path, turns).decode().splitlines()
    assert len(set(lines)) == turns * SAMPLES
    assert not [line for line in lines if "missing" in line]
    unrated = [line for line in lines if line.endswith(",None")]
    assert len(unrated) == report.unparsed == 3 * sum(n == SAMPLES * 3 for n in server.delivered.values())
    assert all(line.split(",")[2] == "3" for line in unrated)
    report.check()


def test_a_warm_ledger_is_asked_and_nobody_else(tmp_path):
    with FaultServer() as server:
        first = faultserver.judge(server.url, tmp_path, 30)
        before = server.requests
        second = faultserver.judge(server.url, tmp_path, 30)
        assert server.requests == before
    assert first.done == second.done == second.from_ledger == 90
    assert (second.asked, second.answered, second.parse_failures) == (0, 0, 0)
    assert second.unparsed == first.unparsed


def test_killed_at_any_moment_and_run_again(tmp_path, processes):
    turns, concurrency, chance = 80, 8, random.Random(4)
    with FaultServer(0.3, seed=1) as server:
        faultserver.judge(server.url, tmp_path / "whole", turns)
        expected = table(tmp_path / "whole", turns)
        server.delivered.clear()
        kills, lost = 0, []
        for _ in range(3):
            arguments = (server.url, tmp_path / "killed", turns, SAMPLES, concurrency)
            process = processes.Process(target=faultserver.judge, args=arguments)
            process.start()
            # From its start, or in the middle of its work.
            goal = sum(server.delivered.values()) + chance.randrange(70)
            while sum(server.delivered.values()) < goal and process.is_alive():
                time.sleep(0.002)
            kills += process.is_alive()
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            time.sleep(0.05)  # what it had sent may still be answered
            lost.append(sum(server.delivered.values()) - faultserver.kept(tmp_path / "killed") - sum(lost))
        report = faultserver.judge(server.url, tmp_path / "killed", turns, SAMPLES, concurrency)
    assert kills == 3
    report.check()
    assert table(tmp_path / "killed", turns) == expected
    assert max(lost) <= concurrency
    assert faultserver.repeated(server.delivered) == sum(lost)


def test_an_answer_is_kept_although_the_pace_of_all_cannot_be():
    """The file that processes share is on a file server that fails just then."""

    class Failing(Throttle):
        def passed(self):
            raise FileError("cannot be written")

    shelf = Paper()
    with FaultServer() as server, pytest.raises(FileError, match="cannot be written"):
        run(slots(3), **options(server, shelf, concurrency=1, throttle=Failing(QUICK)))
    assert len(shelf) == server.delivered.total() == 1


def test_no_more_calls_at_a_time_than_asked_for():
    with FaultServer() as server:
        run(slots(20), **options(server, Paper(), concurrency=3))
        assert server.most <= 3


def test_slots_are_taken_as_there_is_room():
    taken = []

    def lazily():
        for slot in slots(40):
            taken.append(slot)
            yield slot

    with FaultServer() as server:
        server.script = lambda number, _: seen.append(len(taken) - number) or rated()
        seen = []
        run(lazily(), **options(server, Paper(), concurrency=4))
    assert len(taken) == 120
    assert max(seen) <= 4


def test_two_slots_of_the_same_request_are_one_call():
    shelf = Paper()
    with FaultServer() as server:
        report = run([Slot(prompt(1), 0)] * 20 + [Slot(prompt(1), 1)], **options(server, shelf))
        assert server.requests == 2
    assert (report.done, report.asked, report.from_ledger) == (21, 2, 19)


def test_two_slots_of_a_request_that_fails_are_one_call_too():
    with FaultServer(script=lambda *_: (400, b"{}")) as server:
        report = run([Slot(prompt(1), 0)] * 20, **options(server, Paper()))
        assert server.requests == 1
    assert len(report.failed) == 1
    assert report.done == 0


def test_a_fresh_sample_for_an_answer_without_a_rating():
    """The tries of slot 1 of 3 are samples 1, 4 and 7; each is kept."""
    said = ["no", "none", "Overall: 2"]
    shelf = Paper()
    with FaultServer(script=lambda number, _: completion(b"", said[number - 1])) as server:
        report = run([Slot(prompt(0), 1)], **options(server, shelf))
    assert [(answer.sample, answer.completion.text) for answer in shelf.answers.values()] == [
        (1, "no"),
        (4, "none"),
        (7, "Overall: 2"),
    ]
    assert (report.done, report.parse_failures, report.unparsed) == (1, 2, 0)
    answer, parsed, tried = usable(shelf, prompt(0), 1, SAMPLES, 2, parse)
    assert (answer.sample, parsed.values, tried) == (7, {"overall": 2.0}, 3)


def test_no_rating_after_all_retries_is_a_judgement_without_one():
    shelf = Paper()
    with FaultServer(script=lambda *_: completion(b"", "no")) as server:
        report = run([Slot(prompt(0), 0)], **options(server, shelf))
        assert server.requests == 3
    assert (report.done, report.unparsed, report.parse_failures) == (1, 1, 3)
    report.check()
    answer, parsed, tried = usable(shelf, prompt(0), 0, SAMPLES, 2, parse)
    assert (answer.completion.text, parsed.failure, tried) == ("no", "no rating", 3)
    # With one more retry there is more to ask.
    assert usable(shelf, prompt(0), 0, SAMPLES, 3, parse) == (None, None, 3)


def test_what_is_kept_of_an_answer():
    shelf = Paper()
    with FaultServer(script=rated) as server:
        chat = options(server, shelf)
        chat["client"].service.paid = True
        report = run([Slot(prompt(0), 0)], **chat, price=PRICE)
    (answer,) = shelf.answers.values()
    assert answer.completion == Completion("Overall: 4", "stop", 700, 4, "loopback-1")
    assert answer.cost == report.cost == COST
    assert 0 <= answer.latency < 5000
    assert abs(answer.time - time.time()) < 60
    assert (report.input_tokens, report.output_tokens, report.unpriced) == (700, 4, 0)


@pytest.mark.parametrize(("paid", "cost"), [(True, None), (False, 0.0)])
def test_a_price_that_is_not_known_is_not_zero(paid, cost):
    shelf = Paper()
    with FaultServer(script=rated) as server:
        chat = options(server, shelf)
        chat["client"].service.paid = paid
        report = run([Slot(prompt(0), 0)], **chat)
    assert [answer.cost for answer in shelf.answers.values()] == [cost]
    assert report.unpriced == (cost is None)


def budgeted(server, limit, spent=0.0, **other):
    chat = options(server, Paper(), price=PRICE, budget=Budget(limit, spent), **other)
    chat["client"].service.paid = True
    return chat


def test_a_budget_stops_the_run_before_it_is_passed():
    with FaultServer(script=rated) as server:
        chat = budgeted(server, 0.4, spent=0.1)
        report = run(slots(100), **chat, total=300)
        assert server.requests == report.asked == report.answered == len(chat["shelf"].answers)
    assert 0.2 < report.cost <= 0.3
    assert chat["budget"].spent == pytest.approx(0.1 + report.cost)
    assert "of the budget of $0.40 is spent, and one more call can cost" in report.stopped
    with pytest.raises(JudgeError, match=f"{300 - report.done} judgements are missing: .*budget.*run again to go on"):
        report.check()


def test_a_call_that_may_have_been_charged_counts_at_its_worst():
    """Every other answer is cut off: their price is not known, and not nothing."""
    with FaultServer(script=lambda number, _: "half" if number % 2 else rated()) as server:
        chat = budgeted(server, 0.4)
        report = run(slots(100), **chat)
        worst = PRICE.of(64 + 4 + 530, 20)
        assert server.met["half"] * worst * 0.9 + report.cost <= 0.4
    charges = chat["shelf"].charges
    assert {kind for _, kind in charges} == {"cut"}
    assert len(charges) == server.met["half"] == report.faults["cut"]
    assert report.charged == pytest.approx(sum(cost for cost, _ in charges))
    assert chat["budget"].spent == pytest.approx(report.charged + report.cost)
    assert f"${report.charged:.4f} may have been charged for calls without an answer" in str(report)
    assert report.stopped is not None
    assert report.cost < 0.25


def test_what_may_have_been_charged_is_known_to_the_next_run(tmp_path):
    """Runs of a service that never answers in time spend one budget together, not one each."""
    ledger = Ledger(tmp_path)
    family = Family(parameters=PARAMETERS, **FAMILY)
    asked = []
    with FaultServer(script=lambda *_: "half") as server:
        for _ in range(3):
            with ledger.writing("demo", family) as shelf:
                chat = budgeted(server, 0.05, spent=ledger.spent(), limits=Limits(backoff=0.001, attempts=2))
                asked.append(run(slots(20), **chat | {"shelf": shelf, "concurrency": 1}).asked)
    assert asked[0] > 1
    assert asked[1:] == [0, 0]
    assert 0.04 < ledger.spent() <= 0.05


def test_only_what_a_paid_service_may_have_charged_is_a_charge():
    plans = ["half", (500, b""), (429, b"{}"), (400, b"{}"), "not JSON"]
    with FaultServer(script=lambda number, _: plans[number - 1] if number <= len(plans) else rated()) as server:
        chat = budgeted(server, 10.0, concurrency=1)
        run(slots(4), **chat)
        assert [kind for _, kind in chat["shelf"].charges] == ["cut", "invalid answer"]
        chat = budgeted(server, 10.0)
        with pytest.raises(ConfigError, match="cannot be set"):
            run(slots(1), **chat | {"parameters": {"max_tokens": 5, "n": 2}})
        assert chat["shelf"].charges == []
    with FaultServer(script=lambda number, _: "half" if number == 1 else rated()) as server:
        free = options(server, Paper(), price=FREE)
        report = run(slots(1), **free)
    assert (free["shelf"].charges, report.charged) == ([], 0.0)


def test_calls_given_up_by_an_interrupt_may_have_been_charged():
    def script(count, _):
        if count == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return "hang"

    with FaultServer(script=script) as server:
        chat = budgeted(server, 10.0, concurrency=3)
        chat["client"] = Client(service(server.url, timeout=30))
        chat["client"].service.paid = True
        report = run(slots(10), **chat)
    assert report.stopped == INTERRUPTED
    assert [kind for _, kind in chat["shelf"].charges] == ["interrupted"] * 3


def test_a_token_is_a_byte_at_least():
    """Characters are not enough: a tokeniser may spend four tokens on one."""
    plain, wide = ([{"role": "user", "content": text * 50}] for text in "a😀")
    assert most_input(wide) - most_input(plain) == 3 * 50
    assert most_input(plain) > 50


def test_a_service_that_does_not_count_is_taken_to_charge_the_most():
    answer = b'{"choices": [{"message": {"content": "Overall: 4"}}]}'
    with FaultServer(script=lambda *_: answer) as server:
        chat = budgeted(server, 100.0)
        report = run([Slot(prompt(0), 0)], **chat)
    assert report.cost >= PRICE.of(400, 20)
    assert chat["budget"].spent == report.cost


def test_a_budget_needs_a_price_and_a_limit_to_answers():
    with FaultServer() as server:
        with pytest.raises(ConfigError, match="no price of model 'loopback' is known"):
            run(slots(1), **budgeted(server, 1) | {"price": None})
        with pytest.raises(ConfigError, match="may be of any length"):
            run(slots(1), **budgeted(server, 1) | {"parameters": {}})
        assert server.requests == 0


def test_a_call_that_fails_is_named_and_the_run_goes_on():
    bad = prompt(3)

    def script(_, body):
        return (500, b"") if "turn 3." in body["messages"][0]["content"] else rated()

    with FaultServer(script=script) as server:
        chat = options(server, Paper(), limits=Limits(backoff=0.001, most=0.002, attempts=4))
        report = run(slots(10), **chat, total=30)
    keys = {key(chat["shelf"].family.id, bad, sample) for sample in range(SAMPLES)}
    assert {name for name, _ in report.failed} == keys
    assert (report.done, report.missing, report.stopped) == (27, 3, None)
    assert report.faults == Counter({"500": 3 * 4})
    with pytest.raises(JudgeError, match="3 judgements are missing: 3 calls failed") as caught:
        report.check("gpt")
    assert str(caught.value).startswith("gpt: ")
    assert all(name in str(caught.value) for name in keys)


@pytest.mark.parametrize(
    ("plan", "reason", "most"),
    [
        ((400, b'{"error": {"message": "max_tokens is unknown"}}'), "max_tokens is unknown", 20),
        ("shape", "no list of choices", 20 * 3),
    ],
)
def test_ten_failures_alike_and_not_one_answer_end_the_run(plan, reason, most):
    with FaultServer(script=lambda *_: plan) as server:
        chat = options(server, Paper(), limits=Limits(backoff=0.001, attempts=3))
        report = run(slots(100), **chat)
        assert 10 <= server.requests <= most
    assert "10 times in a row" in report.stopped
    assert reason in report.stopped


def test_a_server_that_is_not_there_is_soon_given_up():
    with FaultServer() as server:
        pass
    report = run(slots(100), **options(server, Paper()))
    assert report.asked < 30
    assert "10 times in a row" in report.stopped
    assert "cannot be reached" in report.stopped


def test_after_one_answer_failures_do_not_end_the_run():
    limits = Limits(backoff=0.001, attempts=1)
    with FaultServer(script=lambda number, _: rated() if number == 1 else (500, b"{}")) as server:
        report = run(slots(10), **options(server, Paper(), concurrency=1, limits=limits))
    assert (report.stopped, report.done, len(report.failed)) == (None, 1, 29)


def refusing(turn, answer=rated):
    """Return a script that refuses one turn for good."""
    said = b'{"error": {"message": "content policy", "code": "content_filter"}}'
    return lambda _, body: (400, said) if f"turn {turn}." in body["messages"][0]["content"] else answer()


def test_a_prompt_that_is_refused_for_good_is_kept_and_not_asked_again():
    shelf = Paper()
    with FaultServer(script=refusing(3)) as server:
        report = run(slots(10), **options(server, shelf), total=30)
        assert server.requests == 30
        report.check()
        assert (report.done, report.refused, report.unparsed, report.failed) == (30, 3, 3, [])
        # A refusal is no answer.
        assert (report.answered, report.parse_failures, report.cost, len(shelf)) == (27, 0, 0.0, 30)
        assert "3 requests refused for good" in str(report)
        again = run(slots(10), **options(server, shelf), total=30)
        assert server.requests == 30
    assert (again.done, again.from_ledger, again.unparsed, again.refused) == (30, 30, 3, 0)
    answer, parsed, tried = usable(shelf, prompt(3), 1, SAMPLES, 2, parse)
    assert answer.completion == Completion("status 400: content policy", "refused")
    assert (answer.cost, tried) == (0.0, 1)
    assert (parsed.values, parsed.failure) == ({}, "refused: status 400: content policy")
    # Nor does it give way to a sample that a run with other numbers left.
    shelf.add([Answer(prompt(3), 1 + SAMPLES, Completion("Overall: 5"))])
    assert usable(shelf, prompt(3), 1, SAMPLES, 2, parse) == (answer, parsed, 1)


def test_a_fresh_sample_that_is_refused_is_the_last():
    plans = [completion(b"", "no"), (422, b'{"detail": "too long"}'), rated()]
    shelf = Paper()
    with FaultServer(script=lambda number, _: plans[number - 1]) as server:
        report = run([Slot(prompt(0), 0)], **options(server, shelf))
    assert (report.asked, report.done, report.refused, report.unparsed) == (2, 1, 1, 1)
    answer, parsed, tried = usable(shelf, prompt(0), 0, SAMPLES, 2, parse)
    assert (answer.sample, parsed.failure, tried) == (3, "refused: status 422: too long", 2)
    tries = attempts(shelf, prompt(0), 0, SAMPLES, 2, parse)
    assert [(answer.sample, answer.completion.text) for answer, _ in tries] == [(0, "no"), (3, "status 422: too long")]


def test_refusals_are_kept_only_where_the_service_answers_something():
    """A parameter that is wrong refuses everything."""
    wrong = (400, b'{"error": {"message": "max_tokens is unknown"}}')
    shelf = Paper()
    with FaultServer(script=lambda *_: wrong) as server:
        report = run(slots(2), **options(server, shelf))
        assert (len(shelf), report.done, report.refused, len(report.failed)) == (0, 0, 0, 6)
        with pytest.raises(JudgeError, match=r"6 calls failed .*max_tokens is unknown"):
            report.check()
    # It answered once, in an earlier run: more than ten refusals in a row are no sign of anything.
    shelf.add([Answer(prompt(99), 0, Completion("Overall: 5"))])
    with FaultServer(script=lambda *_: wrong) as server:
        report = run(slots(5), **options(server, shelf))
    assert (len(shelf), report.done, report.refused, report.stopped) == (16, 15, 15, None)


def test_another_status_of_refusal_is_not_kept():
    """415 or 451 say nothing of the prompt for certain."""
    with FaultServer(script=lambda number, _: rated() if number == 1 else (415, b"{}")) as server:
        chat = options(server, Paper(), concurrency=1)
        report = run(slots(1), **chat)
    assert (len(chat["shelf"]), report.refused, len(report.failed)) == (1, 0, 2)


def test_refusals_are_kept_also_when_the_run_is_stopped():
    with FaultServer(script=lambda number, body: (401, b"{}") if number == 9 else refusing(0)(number, body)) as server:
        chat = options(server, Paper(), concurrency=1)
        report = run(slots(10), **chat)
    assert "status 401" in report.stopped
    assert (len(chat["shelf"]), report.answered, report.refused, report.done) == (8, 5, 3, 8)


def test_a_call_that_failed_is_judged_by_no_refusal():
    def script(_, body):
        return (500, b"{}") if "turn 4." in body["messages"][0]["content"] else refusing(3)(0, body)

    with FaultServer(script=script) as server:
        chat = options(server, Paper(), limits=Limits(backoff=0.001, attempts=1))
        report = run(slots(10), **chat, total=30)
    assert (report.done, report.refused, len(report.failed), report.missing) == (27, 3, 3, 3)
    with pytest.raises(JudgeError, match="3 judgements are missing: 3 calls failed"):
        report.check()


def test_slots_that_share_a_refusal_are_all_judged():
    shelf = Paper()
    shelf.add([Answer(prompt(99), 0, Completion("Overall: 5"))])
    with FaultServer(script=refusing(1)) as server:
        report = run([Slot(prompt(1), 0)] * 20, **options(server, shelf))
        assert server.requests == 1
    assert (report.done, report.refused, report.unparsed, len(shelf)) == (20, 1, 20, 2)


@pytest.mark.parametrize("status", [401, 404])
def test_an_error_of_the_account_ends_the_run_and_keeps_what_came(status):
    wrong = (status, b'{"error": {"message": "no"}}')
    with FaultServer(script=lambda number, _: rated() if number <= 20 else wrong) as server:
        chat = options(server, Paper())
        report = run(slots(100), **chat)
        assert server.requests <= 20 + 8
    assert report.answered == len(chat["shelf"].answers) == 20
    assert f"status {status}: no" in report.stopped
    with pytest.raises(JudgeError, match="some judgements are missing"):
        report.check()


def test_one_refusal_holds_all_workers():
    times = []

    def script(number, _):
        times.append(time.monotonic())
        return (429, b"{}", {"retry-after": "0.3"}) if number == 1 else rated()

    with FaultServer(script=script) as server:
        report = run(slots(20), **options(server, Paper(), concurrency=2))
    assert report.done == 60
    # One call may have been on its way already.
    assert sum(when < times[0] + 0.29 for when in times) <= 1 + 2


def test_a_service_that_asks_to_wait_for_a_day_ends_the_run():
    with FaultServer(script=lambda *_: (429, b"{}", {"retry-after": "86400"})) as server:
        report = run(slots(20), **options(server, Paper()))
        assert server.requests <= 8
    assert "the service asks to wait 86,400 s" in report.stopped


def test_an_error_of_the_slots_comes_through_and_what_came_is_kept():
    def broken():
        yield from slots(5)
        raise FileError("no more tables")

    with FaultServer(script=rated) as server:
        chat = options(server, Paper())
        with pytest.raises(FileError, match="no more tables"):
            run(broken(), **chat)
        assert len(chat["shelf"].answers) == server.requests == 15


def test_answers_that_cannot_be_kept_end_the_run():
    class Full(Paper):
        def add(self, answers):
            if len(self.groups) == 2:
                raise FileError("no space left")
            super().add(answers)

    with FaultServer(script=rated) as server:
        with pytest.raises(FileError, match="no space left"):
            run(slots(100), **options(server, Full()))
        assert server.requests <= 3 * 8


def test_an_answer_is_on_the_disk_before_it_counts():
    class Slow(Paper):
        def add(self, answers):
            time.sleep(0.02)
            assert threading.current_thread() is not threading.main_thread()
            super().add(answers)

    shelf = Slow()

    def careful(answer):
        assert shelf.answers
        return parse(answer)

    with FaultServer(script=rated) as server:
        run(slots(10), **options(server, shelf, parse=careful))
    assert sum(shelf.groups) == len(shelf.answers) == 30
    assert max(shelf.groups) > 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number):
    """What came is kept, calls under way are given up at once, and handlers are as they were."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def script(count, _):
        if count == 12:
            os.kill(os.getpid(), number)
        return "hang" if count > 10 else rated()

    start = time.monotonic()
    with FaultServer(script=script) as server:
        chat = options(server, Paper(), client=Client(service(server.url, timeout=30)))
        report = run(slots(100), **chat, total=300)
    assert time.monotonic() - start < 10
    assert report.stopped == INTERRUPTED
    # The last of the ten may have been on their way.
    assert 2 <= report.answered == len(chat["shelf"].answers) <= 10
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    with pytest.raises(JudgeError, match=r"29\d judgements are missing: it was interrupted.*run again") as caught:
        report.check()
    assert caught.value.status == 130


def test_answers_that_wait_for_the_disk_are_kept_when_interrupted():
    """One answer is being written and another one waits when both workers are cancelled."""

    class Slow(Paper):
        def add(self, answers):
            time.sleep(0.1)
            super().add(answers)

    async def interrupted():
        writer = Writer(shelf, counted.extend)
        serving = asyncio.create_task(writer.serve())
        bringing = []
        for sample in range(2):
            answer = Answer(prompt(0), sample, Completion("Overall: 5"))
            bringing.append(asyncio.create_task(writer.put(answer)))
            await asyncio.sleep(0.02)
        for task in bringing:
            task.cancel()
        writer.close()
        await serving

    shelf, counted = Slow(), []
    asyncio.run(interrupted())
    assert shelf.groups == [1, 1]
    assert len(shelf.answers) == len(counted) == 2


def test_in_a_thread_and_in_a_loop():
    """Where signals cannot be had, a run works all the same."""
    done = []
    with FaultServer(script=rated) as server:
        thread = threading.Thread(target=lambda: done.append(run(slots(2), **options(server, Paper()))))
        thread.start()
        thread.join()
        done.append(asyncio.run(run_async(iter(slots(2)), **options(server, Paper()))))
    assert [report.done for report in done] == [6, 6]


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_has_the_price_and_is_for_terminals(monkeypatch, terminal):
    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    monkeypatch.setattr("sys.stderr", Screen())
    with FaultServer(script=rated) as server:
        report = run(slots(20), **budgeted(server, 100.0), total=60, progress="judging")
        shown = sys.stderr.getvalue()
    assert report.price == f"${60 * COST:.4f}"
    assert ("judging: 100%" in shown and f", {report.price}]" in shown) if terminal else shown == ""


def test_a_report_in_words():
    with FaultServer(0.3, seed=2) as server:
        patience = {
            "client": Client(service(server.url, timeout=1)),
            "limits": Limits(backoff=0.002, most=0.01, attempts=20),
        }
        report = run(slots(20), **options(server, Paper(), **patience))
    text = str(report)
    assert "60 judged, 0 of them from the ledger" in text
    assert "calls sent again after faults" in text
    assert "not complete" not in text


def test_concurrency_must_be_one_at_least():
    with FaultServer() as server, pytest.raises(ConfigError, match="concurrency is 0"):
        run(slots(1), **options(server, Paper(), concurrency=0))


def test_usable_asks_the_shelf_alone():
    shelf = Paper()
    assert usable(shelf, prompt(0), 0, 1, 0, parse) == (None, None, 0)
    shelf.add([Answer(prompt(0), 0, Completion("Overall: 5"))])
    answer, parsed, tried = usable(shelf, prompt(0), 0, 1, 0, parse)
    assert (answer.completion.text, parsed.values, tried) == ("Overall: 5", {"overall": 5.0}, 1)


def test_attempts_are_all_answers_of_a_slot():
    shelf = Paper()
    assert attempts(shelf, prompt(0), 1, SAMPLES, 2, parse) == []
    texts = {1: "no", 4: "none", 7: "Overall: 2", 10: "Overall: 3"}
    shelf.add([Answer(prompt(0), sample, Completion(text), cost=0.5) for sample, text in texts.items()])
    assert [answer.sample for answer, _ in attempts(shelf, prompt(0), 1, SAMPLES, 2, parse)] == [1, 4, 7]
    assert [answer.sample for answer, _ in attempts(shelf, prompt(0), 1, SAMPLES, 0, parse)] == [1]
    assert [answer.sample for answer, _ in attempts(shelf, prompt(0), 1, SAMPLES, 9, parse)] == [1, 4, 7]
