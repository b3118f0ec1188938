"""`comperdial judge file` and `comperdial.judge`: files of any form, templates, servers by name, and costs."""

import json
import shlex

import pandas as pd
import pytest

import comperdial
from comperdial import schema
from comperdial.cli import main
from comperdial.judges.own import own_judge
from faultserver import FaultServer, completion

ROWS = [
    {"model": "a", "question": "Do you like tea?", "answer": "Green tea, every morning.", "tone": "warm", "rating": 5},
    {"model": "b", "question": "Do you like tea?", "answer": "The moon.", "tone": "cold", "rating": 1},
]
TEMPLATE = "Rate from 1 to 10.\n\n### Context:\n{{ history }}\n\n### Response:\n{{ response }}\n"


def rated(number, body):
    text = body["messages"][0]["content"]
    return 200, completion("9" if "Green tea" in text else "3", {"prompt_tokens": 60, "completion_tokens": 1})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pd.DataFrame(ROWS).drop(columns="rating").to_excel(tmp_path / "unrated.xlsx", index=False)
    (tmp_path / "ten.md").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def command(here, capsys):
    def run(text, status=0):
        assert main(shlex.split(text)) == status
        out = capsys.readouterr()
        return out.out + out.err

    return run


@pytest.mark.parametrize("file", ["mine.jsonl", "unrated.xlsx"])
def test_any_form_with_a_template_and_rerun(here, command, file):
    with FaultServer(rated) as server:
        text = f"judge file {file} --prompt ten.md --server {server.url} --model org/M --samples 2 --output s.csv"
        first = command(text)
        assert "ten_org-m: rating from 1 to 10; 4 requests, about" in first and "2 of 2 items have scores" in first
        assert "A: Do you like tea?" in server.requests[0]["messages"][0]["content"]
        assert "nothing was asked" in command(text) and len(server.requests) == 4
    scores = schema.read(here / "s.csv", "scores")
    assert scores.set_index("system_id")["value"].to_dict() == {"a": 9, "b": 3}
    if file == "mine.jsonl":
        # Its scores join with its ratings.
        keys = ["dataset", "level", "item_id", "system_id"]
        assert len(comperdial.read(here / file, scale=[1, 5]).ratings[keys].merge(scores, on=keys)) == 2


@pytest.mark.parametrize(
    ("template", "options", "expected"),
    [
        ("{answer} after {question}: from 1 to 5.", "", "The moon. after A: Do you like tea?: from 1 to 5."),
        ("{{ response }} ({{ tone }}), 1-7 or more", "--scale 1 9", "The moon. (cold), 1-7 or more"),
        ('{{ output }} {"rating": 1} between 0 and 9', "", 'The moon. {"rating": 1} between 0 and 9'),
        ("{{ response }}", "", "names no scale; expected --scale LOW HIGH"),
        ("{{ response }} (1-5) or (1-7)", "", "names several scales: 1-5, 1-7"),
        ("{{ response }} {{ mood }} (1-5)", "", "unknown placeholder 'mood'"),
        ("{{ reference }} {{ response }} (1-5)", "", "no column 'references'"),
    ],
)
def test_template_output(here, command, template, options, expected):
    (here / "own.txt").write_text(template)
    with FaultServer(rated) as server:
        text = f"judge file mine.jsonl --prompt own.txt --server {server.url} --model m --output s.csv {options}"
        shown = command(text, int(not expected.startswith("The moon"))).replace("\n", " ")
        prompts = {body["messages"][0]["content"] for body in server.requests}
    assert expected in prompts or expected in shown


def test_money_is_spent_only_with_consent_or_within_budget(command):
    with FaultServer(rated) as server:
        asked = (
            f"judge file mine.jsonl --prompt ten.md --server {server.url} --model m --output s.csv --price 1000 2000"
        )
        shown = command(asked, 1)
        assert "2 requests, about" in shown and "at most $" in shown and "expected --yes, or --budget" in shown
        assert "one more call can cost" in command(f"{asked} --budget 0.01", 1)
        assert not server.requests
        assert "2 of 2 items" in command(f"{asked} --yes")
        assert "2 of 2 items" in command(f"{asked} --price 0 0 --name free")
        assert server.requests[0]["max_tokens"] == 512
        asked += " --name more --budget 9 --parameter max_completion_tokens=4000 reasoning_effort=low"
        command(asked)
        assert {**server.requests[-1], "messages": 0} == {
            "model": "m", "messages": 0, "max_completion_tokens": 4000, "reasoning_effort": "low",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ("", 1, "no judge given; expected --server openai, azure, ollama, vllm, llama.cpp, rules or a URL"),
        ("--server olama --model m", 1, "Did you mean 'ollama'"),
        ("--server ollama", 1, "no model is named"),
        ("--server openai --model m --price 1 2 --yes", 1, "the environment variable OPENAI_API_KEY is not set"),
        ("--server http://me:secret@host/v1 --model m", 1, "a key in the variable that --key names"),
        ("--server rules --prompt cpds-dial", 1, "unknown rubric for responses 'cpds-dial'"),
        ("--server rules --scale 1 3", 1, "given with a rubric, which has its own"),
        ("--server rules --parameter max_tokens", 2, "expected NAME=VALUE"),
    ],
)
def test_usage(command, options, status, message):
    shown = " ".join(command(f"judge file mine.jsonl --output s.csv {options}", status).split())
    assert message in shown and "secret" not in shown


@pytest.mark.parametrize(
    ("server", "url", "key", "paid", "limit"),
    [
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", True, "max_completion_tokens"),
        ("azure", "https://x.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY", True, "max_completion_tokens"),
        ("vllm", "http://localhost:8000/v1", None, False, "max_tokens"),
        ("https://host/v1/", "https://host/v1", None, True, "max_tokens"),
    ],
)
def test_servers(here, monkeypatch, server, url, key, paid, limit):
    from comperdial.judges.services.openai import OpenAI

    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/")
    who = own_judge(server, "Org/M")
    assert (who.name, who.base_url, who.key, [*who.parameters]) == ("org-m", url, key, [limit])
    assert OpenAI(who).paid is paid and not OpenAI(own_judge(server, "m", price=(0, 0))).paid


def test_frames_in_python_give_the_same_scores(here):
    frame = pd.DataFrame(ROWS)
    with FaultServer(rated) as server:
        asked = {"prompt": "ten.md", "server": server.url, "model": "m", "answers": here / "kept.sqlite"}
        scores = comperdial.judge(frame, **asked)
        again = comperdial.judge(comperdial.read(here / "mine.jsonl", scale=[1, 5]), **asked)
        assert len(server.requests) == 2
    assert list(scores["value"]) == list(again["value"]) == [9, 3]
