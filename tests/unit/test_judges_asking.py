"""Asking a server with faults: each answer once, the budget never passed, wrong servers noticed, runs that go on."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections import Counter

import pytest

from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.judging import judge_items
from comperdial.judges.requests import JudgeError, MissingAnswersError
from comperdial.judges.tasks import Task
from faultserver import FaultServer, completion
from minijudging import chats, judging_of

KEY = "sk-a-secret-of-this-test"
PRICES = "m:\n  - {from: 2024-01-01, input: 1.0, output: 2.0, source: a test}\n"
# Of one call: 64 + 4 tokens around the prompt, a token a byte, and 20 tokens out.
WORST = (68 + len("How human is number 0?") + 2 * 20) / 1_000_000


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Return a function that has items judged by a server."""
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.setattr("comperdial.judges.asking._backoff", lambda attempt: 0.005)
    (tmp_path / "prices.yaml").write_text(PRICES)

    def run(server, count=30, *, variant="cpds-d", items=None, budget=0, ask_again=False, **entry):
        entry = {"base_url": server.url, "key": "TEST_KEY", "concurrency": 8, **entry}
        judging = judging_of(entry, tmp_path, budget=budget, prices=str(tmp_path / "prices.yaml"))
        asked = judging.variants[variant].model_copy(update={"samples": 1})
        task = Task(judging, judging.judges["server"], asked, 1)
        items = chats(count) if items is None else items
        return judge_items(task, items, dataset="mine", ask_again=ask_again)

    return run


@pytest.fixture
def answers(tmp_path):
    return lambda: AnswerFile(tmp_path / "ledger")


def test_every_request_is_answered_once_under_faults(judge, answers):
    with FaultServer(faults=0.3) as server:
        judged = judge(server, 80, concurrency=16, attempts=16)
        assert (len(judged.scores), judged.report.answered) == (80, 80)
        assert len(judged.judgements["key"].unique()) == 80
        calls = len(server.requests)
        assert judge(server, 80).report is None
        assert len(server.requests) == calls
    with answers() as kept:
        assert len(kept) == 80


def test_keys_and_error_pages_are_not_stored(judge, tmp_path):
    with FaultServer(lambda n, body: (200, completion(f"Humanness: 4. {KEY}"))) as server:
        judge(server, 3)
        assert all(headers["authorization"] == f"Bearer {KEY}" for headers in server.headers)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    with FaultServer(lambda n, body: (401, {"error": {"message": f"{KEY} is wrong"}})) as server:
        with pytest.raises(JudgeError) as error:
            judge(server, 30, variant="cpds-s")
        assert KEY not in str(error.value) and "TEST_KEY" in str(error.value)
        assert len(server.requests) <= 8


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 50, "completion_tokens": 2},
        None,
        {"prompt_tokens": -5, "completion_tokens": "many"},
        {"prompt_tokens": 10**7, "completion_tokens": 10**7},
    ],
)
def test_budget_is_never_exceeded(judge, answers, usage):
    budget = 10.5 * WORST
    with FaultServer(lambda n, body: (200, completion(usage=usage)), faults=0.2) as server:
        with pytest.raises(JudgeError, match=r"budget|more than there can be"):
            judge(server, 40, budget=budget, free=False)
        answered = len(server.answered)
        honest = usage and 0 < usage["prompt_tokens"] < 1000
        # What a server counts wrongly is charged as if it were the most.
        assert answered <= (40 if honest else 10)
        with answers() as kept:
            assert kept.spent <= budget or usage == {"prompt_tokens": 10**7, "completion_tokens": 10**7}
            assert kept.spent >= min(budget - 2 * WORST, answered * (54 / 1_000_000 if honest else WORST))
        calls = len(server.requests)
        with pytest.raises((JudgeError, MissingAnswersError)):
            judge(server, 40, budget=0, free=False)
        assert len(server.requests) == calls


def test_paid_judge_needs_price_and_length_limit(judge):
    with FaultServer() as server:
        with pytest.raises(MissingAnswersError, match="the budget is 0"):
            judge(server, free=False)
        with pytest.raises(ConfigError, match="max_tokens"):
            judge(server, budget=1, free=False, parameters={})
        with pytest.raises(ConfigError, match="no price"):
            judge(server, budget=1, free=False, model="other")
        assert not server.requests


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ((200, completion("Sorry, an internal error occurred.")), "no rating in the last 10 answers"),
        ((400, {"error": {"message": "no such parameter"}}), "no such parameter"),
        ((500, "broken"), "failures in a row"),
        ((404, {"error": {"message": "no such model"}}), "no such model"),
        ((429, {"error": {"message": "quota", "code": "insufficient_quota"}}), "no quota left"),
    ],
)
def test_server_with_only_invalid_answers_stops_the_run(judge, answers, answer, match):
    with FaultServer(lambda n, body: answer) as server:
        with pytest.raises(JudgeError, match=match):
            judge(server, 40, attempts=2)
        assert len(server.requests) < 40
    with answers() as kept:
        refused = kept._database.execute("SELECT COUNT(*) FROM answers WHERE finish = 'refused'").fetchone()
        assert refused == (0,)
    # It works now: what was unreadable is asked for again on demand, the rest by itself.
    with FaultServer() as server:
        assert len(judge(server, 40, ask_again=True).scores) == 40


def test_request_refused_twice_is_not_retried(judge):
    def answer(number, body):
        return (400, "too long") if "number 3?" in json.dumps(body) else (200, completion())

    with FaultServer(answer) as server:
        judged = judge(server, 10)
        assert (len(judged.scores), judged.report.refused) == (9, 1)
        assert list(judged.failures) == ["refused: status 400: too long"]
        calls = len(server.requests)
        judge(server, 10)
        assert len(server.requests) == calls
    with FaultServer() as server:
        assert len(judge(server, 10, ask_again=True).scores) == 10
        assert len(server.requests) == 1


def test_refusals_in_a_row_are_retried_and_only_refusals_stop_the_run(judge):
    with FaultServer(lambda n, body: (400, "bad") if n in range(6, 14) else (200, completion())) as server:
        judged = judge(server, 20, concurrency=1)
        assert len(judged.scores) == 20
        assert not judged.failures
    with (
        FaultServer(lambda n, body: (400, "no")) as server,
        pytest.raises(JudgeError, match="nothing else was answered"),
    ):
        judge(server, 2, model="third")


def test_a_slow_server_stops_the_run(judge):
    slow = FaultServer(lambda n, body: (200, completion(), 0.6))
    with slow as server, pytest.raises(JudgeError, match=r"no answer within 0\.2 s"):
        judge(server, 2, timeout=0.2, attempts=1)


def test_unreadable_answer_is_replaced_by_a_paid_sample(judge):
    asked_before = Counter()

    def answer(number, body):
        asked_before[json.dumps(body["messages"])] += 1
        return 200, completion("Hm." if asked_before[json.dumps(body["messages"])] == 1 else "Humanness: 2")

    with FaultServer(answer) as server:
        judged = judge(server, 5, concurrency=1)
    assert set(judged.scores["value"]) == {2.0} and set(judged.judgements["tries"]) == {2}
    assert set(judged.judgements["output_tokens"]) == {4}


@pytest.mark.parametrize(
    ("broken", "failure"), [({"text": None}, ["an empty answer"]), ({"finish_reason": "length"}, None)]
)
def test_empty_or_truncated_answer_gives_no_rating(judge, broken, failure):
    def answer(number, body):
        return 200, completion(**broken if "number 3?" in json.dumps(body) else {})

    with FaultServer(answer) as server:
        judged = judge(server, 6, concurrency=1)
    assert len(judged.scores) == 5
    assert judged.failures.total() == 1
    assert failure is None or list(judged.failures) == failure
    assert judged.judgements.set_index("item_id")["tries"]["c3"] == 4


def test_prompt_truncated_by_server_is_detected(judge, caplog):
    cut = {"prompt_tokens": 2, "completion_tokens": 2}
    with FaultServer(lambda n, body: (200, completion(usage=cut))) as server:
        assert judge(server, 3).report.shortened == 3
    assert caplog.text.count("it may have cut it") == 1


def test_each_sample_has_its_own_seed(judge):
    with FaultServer(lambda n, body: (200, completion("Hm."))) as server:
        with pytest.raises(ComperdialError):
            judge(server, 1, parameters={"max_tokens": 20, "seed": 7})
        assert sorted(body["seed"] for body in server.requests) == [7, 8, 9, 10]


def test_a_second_process_gets_one_clear_message(judge, answers):
    with answers() as kept, kept.asking(), FaultServer() as server:
        with pytest.raises(JudgeError, match="another process is asking"):
            judge(server, 3)
        assert not server.requests


PROCESS = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from comperdial.judges.judging import judge_items
from comperdial.judges.tasks import Task
from minijudging import chats, judging_of
entry = {{"base_url": {url!r}, "free": False, "concurrency": 16}}
judging = judging_of(entry, Path({folder!r}), budget=1.0, prices={prices!r})
task = Task(judging, judging.judges["server"], judging.variants["cpds-d"], 1)
judge_items(task, chats(60), dataset="mine")
"""


@pytest.fixture
def process(tmp_path, root):
    (tmp_path / "prices.yaml").write_text(PRICES)

    def start(server):
        paths = [str(root / "tests"), str(root / "src")]
        given = {"paths": paths, "url": server.url, "folder": str(tmp_path), "prices": str(tmp_path / "prices.yaml")}
        code = textwrap.dedent(PROCESS).format(**given)
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def test_interrupted_run_resumes_and_pays_nothing_twice(process, judge, tmp_path):
    with FaultServer(lambda n, body: (200, completion(), 0.1)) as server:
        for number, at in ((signal.SIGKILL, 16), (signal.SIGTERM, 40)):
            running = process(server)
            while len(server.requests) < at and running.poll() is None:
                time.sleep(0.01)
            os.kill(running.pid, number)
            _, error = running.communicate(timeout=60)
        assert "InterruptedRunError" in error
        assert "run it again to go on" in error
        assert len(judge(server, 60, free=False, budget=1.0).scores) == 60
        # Only requests in flight when the process ended are repeated.
        assert len(server.answered) <= 60 + 2 * 16
    database = sqlite3.connect(tmp_path / "ledger/answers.sqlite")
    assert database.execute("SELECT COUNT(*), COUNT(DISTINCT key) FROM answers").fetchone() == (60, 60)
    assert database.execute("SELECT COUNT(*) FROM charges WHERE why = 'killed'").fetchone()[0] <= 16
    assert database.execute("SELECT COUNT(*) FROM charges WHERE why = 'under way'").fetchone() == (0,)
