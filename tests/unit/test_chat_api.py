"""A language model for agents of the API track, played by a server on loopback: faults, money, threads, rosters."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
import yaml

from comperdial.challenge.dialogues import Dialogue, to_data
from comperdial.challenge.roster import read_roster
from comperdial.challenge.runner import run_roster
from comperdial.cli import main
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.judges.chat_api import ChatApi, make_api
from comperdial.judges.prices import Price, estimate_input
from comperdial.judges.requests import JudgeError
from comperdial.judges.services.openai import OpenAI
from comperdial.judges.tasks import Judge
from faultserver import FaultServer, completion

MESSAGES = [{"role": "system", "content": "You are a sailor."}, {"role": "user", "content": "Do you like the sea?"}]
PRICE = Price.model_validate({"from": date(2024, 1, 1), "input": 100.0, "output": 100.0, "source": "a test"})
USAGE = {"prompt_tokens": 60, "completion_tokens": 4}
COST = 0.0064


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", "sk-of-this-test")
    monkeypatch.setattr("comperdial.judges.asking._BACKOFF", lambda state: 0.005)


def numbered(number, body):
    return 200, completion(f"{number}.", USAGE)


def api(server, *, parameters=None, free=None, **options):
    connection = {"base_url": server.url, "key": "LOOPBACK_KEY"} | ({} if free is None else {"free": free})
    judge = Judge("m", "openai", "m", "any", "generate", parameters or {}, None, connection)
    return ChatApi(OpenAI(judge), attempts=4, **options)


def test_a_call_and_what_it_counts():
    with FaultServer(numbered) as server, api(server) as model:
        found = model.complete(MESSAGES, 60)
        assert (found.text, found.input_tokens, found.output_tokens) == ("0.", 60, 4)
        assert model.count(MESSAGES) == estimate_input(MESSAGES) and model.spent == 0
    assert server.requests == [{"model": "m", "messages": MESSAGES, "max_tokens": 60}]


def test_faults_are_tried_again_and_a_refusal_is_one_agents():
    def answer(number, body):
        if "refuse" in body["messages"][0]["content"]:
            return 400, "no"
        return (503, "busy") if number == 0 else (200, completion("Aye.", None))

    with FaultServer(answer) as server, api(server) as model:
        assert model.complete(MESSAGES, 60).output_tokens == 2  # estimated
        with pytest.raises(JudgeError, match="refuses"):
            model.complete([{"role": "user", "content": "refuse"}], 60)
        assert model.complete(MESSAGES, 61).text == "Aye."


def test_many_threads_share_a_model_and_do_not_pass_the_budget():
    # 64 and 8 tokens around a token a byte, and 60 tokens out.
    worst = PRICE.at_worst(MESSAGES, {"max_tokens": 60})
    budget = worst + 9.5 * COST
    with FaultServer(numbered) as server, api(server, free=False, price=PRICE, budget=budget) as model:

        def ask(number):
            try:
                return model.complete(MESSAGES, 60).text
            except JudgeError as error:
                return str(error)

        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(ask, range(40)))
        assert model.spent <= budget
    assert 9 <= len(server.requests) <= 10
    assert sum("of the budget of" in text for text in found) == 40 - len(server.requests)
    with pytest.raises(ConfigError, match="there is no budget"):
        api(server, free=False, price=PRICE)


def test_what_is_asked_twice_in_a_run_has_two_answers_and_the_same_in_the_next(tmp_path):
    with FaultServer(numbered) as server:
        for known in (0, 3):
            with api(server, answers=tmp_path / "a.sqlite") as model:
                assert [model.complete(MESSAGES, length).text for length in (60, 60, 61)] == ["0.", "1.", "2."]
                assert model.known == known
        with api(server, answers=tmp_path / "a.sqlite", parameters={"temperature": 0}) as model:
            assert model.complete(MESSAGES, 60).text == "3."


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
    with FaultServer() as server, pytest.raises((ConfigError, UnknownNameError, JudgeError), match=message) as caught:
        read_roster(here(server, **entry), make_api)
    assert "roster.yaml, api" in str(caught.value)
    assert "my-own-secret" not in str(caught.value)


def test_a_roster_may_name_a_service(here, tmp_path, capsys):
    with FaultServer(numbered) as server:
        roster = read_roster(here(server), make_api)
        runs = list(run_roster(roster.agents, DIALOGUES, api=roster.api))
        roster.api.close()
        assert [(run.problem, run.calls, run.input_tokens) for run in runs] == [(None, 2, 120)] * 2
        arguments = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "made.jsonl"]
        here(server, budget=1)
        assert main(arguments) == 0
        assert "2 of 2 agents" in capsys.readouterr().out
        first = (tmp_path / "made.jsonl").read_bytes()
        assert main(arguments) == 0
        assert "4 came from the ledger" in capsys.readouterr().out
        assert (tmp_path / "made.jsonl").read_bytes() == first and len(server.requests) == 8
