"""A language model for agents of the API track, played by a server on loopback: faults, money, threads, rosters."""

import json
import re
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from comperdial.challenge.dialogues import Dialogue, to_data
from comperdial.challenge.roster import read_roster
from comperdial.challenge.runner import run_roster
from comperdial.cli import main
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.judges.ask import Limits
from comperdial.judges.base import JudgeError
from comperdial.judges.chat_api import ChatApi, make_api
from comperdial.judges.ledger import Ledger
from comperdial.judges.prices import Price, estimate_input
from comperdial.judges.services.base import Connection
from comperdial.judges.services.openai import OpenAI
from faultserver import KEY, FaultServer, completion

MESSAGES = [{"role": "system", "content": "You are a sailor."}, {"role": "user", "content": "Do you like the sea?"}]
# 700 and 4 tokens, which the server always counts, cost 0.0704 dollars.
PRICE = Price("loopback", since=None, input=100.0, output=100.0)
COST = 0.0704
TRUST = ssl.create_default_context()


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOPBACK_KEY", KEY)
    monkeypatch.setattr("httpx2.create_ssl_context", lambda: TRUST)


@pytest.fixture
def paid(monkeypatch):
    """What is on loopback is free otherwise."""
    monkeypatch.setattr("comperdial.judges.services.openai.is_loopback", lambda url: False)


def api(server, **options):
    connection = Connection("openai", "loopback", base_url=server.url, key_variable="LOOPBACK_KEY", timeout=5)
    limits = Limits(attempts=4, backoff=0.001, most=0.01)
    return ChatApi(OpenAI(connection), limits=limits, **options)


def script(*plans):
    """Answer calls as planned, the last plan for all that follow."""
    return FaultServer(script=lambda number, body: plans[min(number, len(plans)) - 1])


def said(text, usage=True):
    body = json.loads(completion(b"", text))
    return json.dumps(body if usage else body | {"usage": None}).encode()


def test_a_call_and_what_it_counts():
    with script(said("Aye.")) as server, api(server, parameters={"temperature": 0.2}) as model:
        found = model.complete(MESSAGES, 60)
        assert (found.text, found.input_tokens, found.output_tokens) == ("Aye.", 700, 4)
        assert server.bodies == [
            {"model": "loopback", "messages": MESSAGES, "temperature": 0.2, "max_tokens": 60},
        ]
        assert model.count(MESSAGES) == estimate_input(MESSAGES)
        assert server.requests == 1


def test_tokens_that_the_service_does_not_count_are_estimated():
    with script(said("Aye, aye.", usage=False)) as server, api(server) as model:
        found = model.complete(MESSAGES, 60)
        assert (found.input_tokens, found.output_tokens) == (model.count(MESSAGES), 4)


def test_faults_are_tried_again():
    with script("429", "500", "cut", said("Aye.")) as server, api(server) as model:
        assert model.complete(MESSAGES, 60).text == "Aye."
        assert server.requests == 4


@pytest.mark.parametrize(
    ("plan", "calls", "message"),
    [
        ("500", 4, "status 500.*; tried 4 times"),
        ("half", 4, "cut"),
        ((400, b'{"error": {"message": "too long"}}'), 1, "status 400: too long"),
        ((401, b'{"error": {"message": "wrong key %s"}}' % KEY.encode()), 1, r"wrong key \[key\]"),
        ((429, b"{}", {"retry-after": "100000"}), 1, "status 429"),
    ],
)
def test_faults_that_stay(plan, calls, message):
    with script(plan) as server, api(server) as model:
        with pytest.raises(JudgeError, match=message):
            model.complete(MESSAGES, 60)
        assert server.requests == calls


def test_one_agents_requests_that_are_refused_leave_the_others_theirs():
    with script(*[(400, b'{"error": {"message": "too long"}}')] * 12, said("Aye.")) as server, api(server) as model:
        for _ in range(12):
            with pytest.raises(JudgeError, match="too long"):
                model.complete(MESSAGES, 60)
        assert model.complete(MESSAGES, 60).text == "Aye."


def test_threads_share_a_model():
    barrier = threading.Barrier(4)

    def one(_):
        barrier.wait(5)
        return model.complete(MESSAGES, 60).text

    with script(None) as server, api(server) as model, ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(one, range(8)))) == 8
        assert server.requests == 8
    model.close()


# --- money -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "costs money, and there is no budget"),
        ({"price": PRICE}, "there is no budget"),
        ({"budget": 1.0}, "no price of model 'loopback' is known"),
        ({"budget": 0, "price": PRICE}, "the budget is 0"),
    ],
)
def test_a_paid_service_needs_a_budget_and_a_price(paid, options, message):
    with script(None) as server, pytest.raises(ConfigError, match=message):
        api(server, **options)
    assert server.requests == 0


def test_a_run_stops_before_the_budget_is_passed(paid):
    most = 1000
    worst = (most + 64 + sum(4 + len(m["content"]) for m in MESSAGES)) * 100 / 1e6
    budget = 3 * COST + worst
    with script(None) as server, api(server, price=PRICE, budget=budget * 1.0001) as model:
        for _ in range(4):
            model.complete(MESSAGES, most)
        with pytest.raises(JudgeError, match=r"of the budget of \$0\.32 is spent, and one more call can cost \$0\.1"):
            model.complete(MESSAGES, most)
        assert server.requests == 4
        assert model.spent == pytest.approx(4 * COST)


def test_many_threads_do_not_pass_the_budget_either(paid):
    with script(None) as server, api(server, price=PRICE, budget=0.5) as model, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(model.complete, MESSAGES, 1000) for _ in range(20)]
        failed = [call for call in calls if call.exception()]
        assert 0 < len(failed) == 20 - server.requests
        assert 0.5 - 0.12 < model.spent < 0.5
        assert all("of the budget of $0.50 is spent" in str(call.exception()) for call in failed)


def test_a_call_that_may_have_been_charged_counts(paid):
    with script("half", "500", None) as server, api(server, price=PRICE, budget=9) as model:
        model.complete(MESSAGES, 1000)
        assert COST + 0.1 < model.spent < COST + 0.13
        assert server.requests == 3


# --- rosters ---------------------------------------------------------------------------------------------------------

DIALOGUES = [
    Dialogue("d1", {"A": ["i am a baker."], "B": ["i am a sailor."]}, ("Do you like tea?", "i do.", "why?", "so."))
]
AGENT = """
class UserAgent:
    def generate_responses(self, test_data, api_responses):
        if api_responses is not None:
            return {"use_api": False, "final_responses": api_responses}
        prompts = [[{"role": "user", "content": d["dialogue"][-1]["text"]}] for d in test_data]
        return {"use_api": True, "prompts": prompts, "max_generated_tokens": [1000] * len(prompts)}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a function that writes a roster of two agents with such an entry `api`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "dialogues.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    price = {"from": "2024-01-01", "input": 100, "output": 100, "source": "us"}
    text = yaml.safe_dump({"loopback": [price]}).replace("'", "")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/prices.yaml").write_text(text)

    def write(server, **entry):
        found = {"service": "openai", "model": "loopback", "key": "LOOPBACK_KEY"} | entry
        if server:
            found["base_url"] = server.url
        agents = [{"id": name, "file": "agent.py", "track": "api"} for name in ("one", "two")]
        (tmp_path / "roster.yaml").write_text(yaml.safe_dump({"api": found, "agents": agents}))
        return tmp_path / "roster.yaml"

    return write


def test_a_roster_may_name_a_service(here):
    with script(None) as server:
        roster = read_roster(here(server), make_api)
        runs = list(run_roster(roster.agents, DIALOGUES, api=roster.api))
        roster.api.close()
    assert [(run.problem, run.calls, run.input_tokens, run.output_tokens) for run in runs] == [(None, 2, 1400, 8)] * 2


def test_who_wants_no_model_needs_none(here):
    roster = read_roster(here(None, key="NOT_SET"))
    assert roster.model is None
    assert list(roster.systems) == ["one", "two"]
    with pytest.raises(ConfigError, match=r"roster\.yaml, api: it names a service, and nothing here can reach one"):
        _ = roster.api


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"colour": "blue"}, "unknown key 'colour'; expected one of base_url, budget, key, model"),
        ({"model": 7}, ", model: got 7; expected a text"),
        ({"model": ""}, ", model: got ''"),
        ({"key": "sk-my-own-secret"}, ", key: got a text that is not shown"),
        ({"service": "openia"}, "unknown service 'openia'"),
        ({"budget": "much"}, ", budget: got 'much'"),
        ({"budget": True}, ", budget: got True"),
        ({"budget": -1}, ", budget: got -1"),
        ({"parameters": [1]}, ", parameters: got a list"),
        ({"parameters": {"max_tokens": 7}}, "`max_tokens` among the parameters"),
        ({"key": "NOT_SET"}, "the environment variable NOT_SET is not set"),
    ],
)
def test_a_mistake_in_the_entry_is_named(here, entry, message):
    with script(None) as server, pytest.raises((ConfigError, UnknownNameError, JudgeError), match=message) as caught:
        read_roster(here(server, **entry), make_api)
    assert "roster.yaml, api" in str(caught.value)
    assert "my-own-secret" not in str(caught.value)


def test_a_key_without_a_service_is_not_shown(here):
    path = here(None, key="sk-my-own-secret")
    path.write_text(path.read_text().replace("  service: openai\n", ""))
    with pytest.raises(ConfigError, match="api: no 'service'") as caught:
        read_roster(path, make_api)
    assert "my-own-secret" not in str(caught.value)


def test_the_command(here, capsys):
    with script(None) as server:
        here(server)
        arguments = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "made.jsonl"]
        assert main(arguments) == 0
        assert "2 of 2 agents" in capsys.readouterr().out
        assert server.requests == 4


def test_the_command_stops_at_the_budget(here, capsys, paid):
    with script(None) as server:
        arguments = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "made.jsonl"]
        here(server)
        assert main(arguments) == 1
        assert "roster.yaml, api: the service openai costs money, and there is no budget" in capsys.readouterr().err
        # Enough for the first agent and one call of the second.
        here(server, budget=0.3)
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "two: no submission: turn 1" in out
        assert "of the budget of $0.30 is spent" in out
        assert "the language model's answers cost $0.2112" in out
        assert "1 of 2 agents" in out
        assert server.requests == 3


def test_a_second_run_of_the_command_pays_nothing(here, tmp_path, capsys, paid):
    arguments = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "made.jsonl"]
    with FaultServer(script=lambda number, body: said(f"Answer {number}.")) as server:
        here(server, budget=1)
        assert main(arguments) == 0
        assert "the language model's answers cost $0.2816\n" in capsys.readouterr().out
        first = (tmp_path / "made.jsonl").read_bytes()
        assert main(arguments) == 0
        assert "the language model's answers cost $0.0000; 4 came from the ledger" in capsys.readouterr().out
        assert (tmp_path / "made.jsonl").read_bytes() == first and server.requests == 4
        with FaultServer(script=lambda number, body: said(f"Other {number}.")) as other:
            here(other, budget=1)
            assert main(arguments) == 0
            assert other.requests == 4 and b"Other 1." in (tmp_path / "made.jsonl").read_bytes()


def test_what_is_asked_twice_in_a_run_has_two_answers_and_the_same_in_the_next(tmp_path):
    with FaultServer(script=lambda number, body: said(f"{number}.")) as server:
        for _ in range(2):
            with api(server, ledger=Ledger(tmp_path)) as model:
                asked = [model.complete(MESSAGES, length).text for length in (60, 60, 61)]
            assert asked == ["1.", "2.", "3."]
        with api(server, ledger=Ledger(tmp_path), parameters={"temperature": 0}) as model:
            assert model.complete(MESSAGES, 60).text == "4."


def test_a_call_without_an_answer_is_charged_in_the_ledger(tmp_path, paid):
    options = {"ledger": Ledger(tmp_path), "price": PRICE, "budget": 1}
    with script("half", said("Aye.")) as server, api(server, **options) as model:
        assert model.complete(MESSAGES, 60).text == "Aye."
        spent = model.spent
    assert Ledger(tmp_path).spent() == pytest.approx(spent) and spent > COST


def test_the_example_of_adding_a_system(root, monkeypatch):
    page = (root / "docs/adding-a-system.md").read_text()
    (example,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL) if "service" in block)
    monkeypatch.chdir(root)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with make_api(yaml.safe_load(example)["api"], "the page") as model:
        assert model.count(MESSAGES) > 10
        assert model.spent == 0.0
