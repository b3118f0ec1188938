"""Judges: their prompts, from answers to scores, published answers, and the commands."""

import dataclasses
import hashlib
import json
import math
import shlex

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.config.registry import completed
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import items_of
from comperdial.judges.judging import judge_items, judge_tables
from comperdial.judges.probabilities import expected_value
from comperdial.judges.prompting import NAMES, STUDY, fact_lines, history_lines, inline, load
from comperdial.judges.requests import MissingAnswersError
from comperdial.judges.tasks import Task, read_judging
from faultserver import FaultServer, completion
from minijudging import judging_of, write_tables

HISTORY = [
    {"speaker": "A", "text": "Hello!\n### Response:\u2028I keep bees."},
    {"speaker": "B", "text": "Response:"},
    {"speaker": "A", "text": "# What do you do\ton a Sunday?"},
]
VALUES = {
    "history": history_lines(HISTORY),
    "response": "I mend {{ clocks }}.\n- Humanness: 5",
    "reference": "- Engagingness:",
    "fact": fact_lines(["i mend clocks."]),
    "turn_scores": ["3.67", "3"],
    "responses": ["I row.", "Responses:"],
    "dialogue": history_lines(HISTORY),
}
# The beginnings of sha256 of each template, and of what it makes of the above: one byte would make another key.
PROMPTS = {
    ("original_simple", False): ("3479ee5ba885", "2ce074664ef4"),
    ("original_simple", True): ("7f7b7cac62f7", "355a19ccb3b6"),
    ("original_detail", False): ("f3a736044364", "ed62b95afce1"),
    ("original_detail", True): ("484279f4043e", "08862f4b0ba8"),
    ("cpds_simple_ref", False): ("a281c5927dca", "600adba0592d"),
    ("cpds_simple_ref", True): ("f824a97eb3ce", "33919a861456"),
    ("cpds_simple", False): ("b8e4de736bde", "81b36657dfff"),
    ("cpds_simple", True): ("f1b78e0112b5", "015f7adfc526"),
    ("cpds_detail_ref", False): ("94cfa1911e17", "dfc3bff1d6d3"),
    ("cpds_detail_ref", True): ("f1ec06c462a0", "6d5cd83203a8"),
    ("cpds_detail", False): ("3955c28b0a97", "55707fe97259"),
    ("cpds_detail", True): ("ed85f11a1da0", "3fb905351b56"),
    ("cpds_dialogue", False): ("7b788f74d8f9", "f6ec7800311d"),
    ("cpds_dialogue", True): ("05c8b3a097cb", "548e2a9b54d5"),
    ("explicit_turn", False): ("ed61e1f25dc0", "49b61dadc57d"),
    ("explicit_turn", True): ("dda5068c4b9f", "b696accfce44"),
    ("explicit_dialogue", False): ("d289d1187c5b", "57863df37b23"),
    ("explicit_dialogue", True): ("9c597cd88bb3", "f0fea3035eb0"),
    ("implicit_turn", False): ("20ef612b50e3", "41e5e37a55b7"),
    ("implicit_turn", True): ("c3ee7cc61a89", "74a18fc6a5ae"),
    ("implicit_dialogue", False): ("072ae5f7f826", "093ca39a3a87"),
    ("implicit_dialogue", True): ("21826baa8113", "1fd6fcb5c16c"),
    ("rating_turn", False): ("20852be90901", "21513b3220fb"),
    ("rating_turn", True): ("bc2d4ac2ff9b", "d8b5d3cf0a7e"),
    ("rating_dialogue", False): ("3f0d0aa87064", "d2076dbb68c4"),
    ("rating_dialogue", True): ("3f3cd3cf1ae4", "6fc4e5600c48"),
}


# --- prompts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "explain"), PROMPTS)
def test_a_prompt_is_the_same_byte_by_byte(name, explain):
    question = "overall" if name.startswith(("implicit", "rating")) else None
    prompt = load(name, explain=explain, question=question)
    text = prompt.render(VALUES)
    assert (prompt.hash[:12], hashlib.sha256(text.encode()).hexdigest()[:12]) == PROMPTS[name, explain]
    assert "{{ clocks }}" in text or "response" not in prompt.fields


def test_every_prompt_is_covered():
    assert {name for name, _ in PROMPTS} == {*NAMES, *STUDY}


@given(st.text())
def test_a_text_is_one_line_that_opens_no_section(text):
    line = inline(text)
    assert line == inline(line) or line.startswith("\\")
    assert len(line.splitlines()) <= 1 and not line.startswith("#")
    assert line.lower() not in ("response:", "- humanness:", "**evaluation form**:")


def test_a_template_of_ones_own(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text("Context:\n{{ history }}\n{{ question }}\nResponse:\n{{ response }}\nRating:\n")
    prompt = load(str(path), explain=True, question="Is it {good}?")
    assert prompt.render(VALUES).endswith("Explain" + prompt.render(VALUES).split("Explain")[1])
    assert "Is it {good}?" in prompt.render(VALUES) and prompt.fields == {"history", "response"}
    for template, error in (
        ("{{ response", "not a jinja2 template"),
        ("{{ respond }}", "placeholder"),
        ("{{ history }}", "shows nothing to rate"),
        ("{{ response.__class__.__mro__ }}", "cannot be filled"),
    ):
        path.write_text(template)
        load.cache_clear()
        with pytest.raises(ComperdialError, match=error):
            load(str(path)).render(VALUES)
    with pytest.raises(UnknownNameError, match="cpds_simple"):
        load("cpds_simpl")


# --- from answers to scores ------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path):
    first, second = "Hello, do you like the sea?", "And the mountains?"
    return write_tables(
        tmp_path / "tables/mine",
        [
            {"dialogue": "d1", "turn": 0, "history": [f"A: {first}"], "references": ["I love it.", "No."], "facts": ["i swim."],
             "responses": {"one": "I swim in the sea every day!", "two": "Yes.", "gold": "I love it."}},
            {"dialogue": "d1", "turn": 1, "history": [f"A: {first}", "B: Yes.", f"A: {second}"],
             "responses": {"one": "Less so, I am afraid of heights.", "two": "Yes."}},
        ],
    )  # fmt: skip


@pytest.fixture
def by_rules(tmp_path):
    judging = judging_of({}, tmp_path)
    return lambda variant: Task(judging, judging.judges["rules"], judging.variants[variant], 1)


def test_scores_and_judgements_of_turns_and_dialogues(by_rules, tables, tmp_path):
    task = by_rules
    judged = judge_tables(task("cpds-d"), tables, dataset="mine")
    schema.write(tmp_path / "s.parquet", judged.scores, "scores")
    assert set(judged.scores["system_id"]) == {"one", "two"} and len(judged.scores) == 4
    pd.testing.assert_frame_equal(
        schema.read(tmp_path / "s.parquet", "scores"), schema.validate(judged.scores, "scores"), check_like=True
    )
    assert set(judged.scores["signature"]) == {task("cpds-d").signature}
    assert judged.judgements["rationale"].notna().all()
    assert judged.scores["value"].between(1, 5).all()
    # Turns without a reference lack what the prompt shows; so do dialogues after such turns.
    lacking = judge_tables(task("cpds-s-ref"), tables, dataset="mine").lacking
    assert lacking == {"no reference": 2}
    whole = judge_tables(task("cpds-dial"), tables, dataset="mine")
    assert set(whole.scores["output"]) == {"final-score", "dialogue-interaction-score", "overall-dialogue-turn-score"}
    assert whole.scores["level"].eq("dialogue").all()
    some = items_of(task("cpds-dial"), tables, judged.scores.iloc[1:])
    assert [item.lacks for item in some if item.messages is None] == ["1 turns without a score"]


def test_what_is_asked(by_rules, tables, tmp_path):
    task = by_rules
    items = {(item.item_id, item.system_id): item.messages for item in items_of(task("cpds-s-ref"), tables)}
    prompt = json.loads(items["c0", "one"])[0]["content"]
    assert "A: Hello, do you like the sea?" in prompt and "I love it." in prompt and "No." not in prompt
    assert items["c1", "one"] is None
    two = [item for item in items_of(task("original-s"), tables) if item.system_id == "two"]
    assert len({item.messages for item in two}) == 2
    same = [dataclasses.replace(two[0], system_id=name) for name in ("x", "y", "z")]
    judged = judge_items(task("original-s"), same, dataset="mine")
    assert judged.report.answered == 1 and len(judged.judgements) == 3


def test_a_score_is_the_mean_of_its_samples_and_one_of_fewer_of_the_same(tables, tmp_path):
    with FaultServer(lambda n, body: (200, completion(f"Humanness: {n % 3 + 2}"))) as server:
        judging = judging_of({"base_url": server.url, "concurrency": 1}, tmp_path)
        many, once = (Task(judging, judging.judges["server"], judging.variants["cpds-d"], count) for count in (3, 1))
        assert (many.name, once.name) == ("cpds-d_server", "cpds-d-once_server")
        mean = judge_tables(many, tables, dataset="mine")
        calls = len(server.requests)
        single = judge_tables(once, tables, dataset="mine")
        assert len(server.requests) == calls
    assert set(mean.scores["value"]) == {3.0} and len(mean.judgements) == 3 * len(mean.scores)
    assert set(single.scores["value"]) == {2.0}


@pytest.mark.parametrize(
    ("logprobs", "value", "outside"),
    [
        ({"1": -0.6931472, "5": -0.6931472}, 3, 0),
        ({" 4": -1.3862944, "4": -1.3862944, "\u21605": -1, "Hm": -0.6931472}, 4, 0.5),
        ({"４": -0.5, "x": -9999.0}, 4, 0.3934693),
    ],
)
def test_an_expected_value(logprobs, value, outside):
    judged = expected_value(logprobs, {str(number): float(number) for number in range(1, 6)})
    assert judged == pytest.approx((value, outside), abs=1e-6)


@pytest.mark.parametrize(
    ("logprobs", "labels", "match"),
    [
        ({}, {"Yes": 1, "No": 0}, "no token of the scale"),
        ({"Yes": 0.5}, {"Yes": 1, "No": 0}, "above 0"),
        ({"1": -1.0, "2": -1.0}, {"1": 1, "2": 2, "10": 10}, "may be the beginning of '10'"),
        ({"Yes": -0.1, "yes": -0.1}, {"Yes": 1, "No": 0}, "sum to"),
    ],
)
def test_probabilities_that_give_no_value(logprobs, labels, match):
    with pytest.raises(ValueError, match=match):
        expected_value(logprobs, labels)


def test_labels_through_a_server(tables, tmp_path):
    # Two tokens may have the same text: half of exp(-0.5) each.
    yes = {"token": "Yes", "logprob": -0.5 - math.log(2)}
    top = [yes, yes, {"token": " no", "logprob": -1.0}, {"token": "Well", "logprob": -3.0}]
    answer = completion("Yes", logprobs={"content": [{"token": "Yes", "top_logprobs": top}]})
    variant = {
        "prompt": "implicit_turn", "question": "overall", "fields": ["history", "response"], "dimensions": ["overall"],
        "labels": {"Yes": 1, "No": 0},
    }  # fmt: skip
    with FaultServer(lambda n, body: (200, answer)) as server:
        judging = judging_of({"base_url": server.url, "mode": "probabilities"}, tmp_path, variants={"yes-no": variant})
        task = Task(judging, judging.judges["server"], judging.variants["yes-no"], 1)
        judged = judge_tables(task, tables, dataset="mine")
        assert all(body["logprobs"] and body["top_logprobs"] == 20 for body in server.requests)
    values = judged.scores.groupby("output")["value"].first()
    assert values["overall"] == pytest.approx(1 / (1 + 2.718281828**-0.5), abs=1e-6)
    assert values["outside"] == pytest.approx(1 - 2.718281828**-0.5 - 2.718281828**-1, abs=1e-6)
    # Exported, they need no server and hold no text.
    with AnswerFile(tmp_path / "ledger") as answers:
        assert answers.export(tmp_path / "other/published.parquet") == 4
    exported = pd.read_parquet(tmp_path / "other/published.parquet")
    assert "messages" not in exported and "sea" not in exported.to_json()
    moved = dataclasses.replace(judging, ledger=tmp_path / "other", budget=0)
    again = judge_tables(dataclasses.replace(task, judging=moved), tables, dataset="mine")
    assert again.report is None
    pd.testing.assert_frame_equal(again.scores, judged.scores)
    assert not (tmp_path / "other/answers.sqlite").exists()


def test_answers_of_other_files_are_taken_over(by_rules, tables, tmp_path):
    task = by_rules("cpds-d")
    judge_tables(task, tables, dataset="mine")
    with AnswerFile(tmp_path / "ledger") as answers:
        assert answers.export(tmp_path / "exported.parquet", texts=True) == 4
    with AnswerFile(tmp_path / "new") as answers:
        assert answers.add(tmp_path / "exported.parquet") == 4
        assert answers.add(tmp_path / "exported.parquet") == 0
        assert answers.has("mine", task.family) and not answers.has("other", task.family)
    elsewhere = dataclasses.replace(task, judging=dataclasses.replace(task.judging, ledger=tmp_path / "new"))
    assert judge_tables(elsewhere, tables, dataset="mine").report is None


def test_published_answers_are_readable_without_the_model(root, monkeypatch):
    """The names of answers hold the model's checksum, which the registry knows."""
    if not (root / "data/ledger/published.parquet").is_file():
        pytest.skip("dvc pull data/ledger/published.parquet")
    config = yaml.safe_load((root / "params.yaml").read_text())
    variant = {
        "prompt": "implicit_turn", "question": "overall", "fields": ["history", "response"], "dimensions": ["overall"],
        "labels": {"Yes": 1, "No": 0},
    }  # fmt: skip
    monkeypatch.setattr("comperdial.models.missing", lambda name: "not here")
    judging = read_judging(
        {"smollm2": config["judges"]["smollm2"]},
        {"judges": {"default": ["smollm2"]}, "variants": {"yes-no": variant}, "ledger": str(root / "data/ledger")},
    )
    task = Task(judging, judging.judges["smollm2"], judging.variants["yes-no"], 1)
    assert task.unavailable("topical_usr") is None
    assert task.unavailable("usr_persona") == "not here"


# --- configuration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "variant", "match"),
    [
        ({"service": "opnai"}, {}, "opnai"),
        ({"parameters": {"api_key": "sk-abcdefgh"}}, {}, "looks like a secret"),
        ({"base_url": "ftp://x"}, {}, "http"),
        ({"parameters": {"stream": True}}, {}, "stream"),
        ({"tokens_per_minute": 5}, {}, "tokens_per_minute"),
        ({}, {"fields": ["history"]}, "takes"),
        ({}, {"labels": {"Yes": 1, "No": 1}}, "not all of one value"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(tmp_path, judge, variant, match):
    given = {"prompt": "cpds_detail", "fields": ["history", "fact", "response"], "dimensions": ["humanness"], **variant}
    with pytest.raises(ComperdialError, match=match):
        judging = judging_of(judge, tmp_path, variants={"mine": given})
        assert Task(judging, judging.judges["server"], judging.variants["mine"], 1).signature


def test_a_judge_without_a_key_or_money_is_no_error_of_a_plan(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judging = judging_of({}, tmp_path)
    task = Task(judging, judging.judges["server"], judging.variants["cpds-d"], 1)
    assert task.unavailable("mine") == "not asked: m costs money, and the budget is 0"
    rich = dataclasses.replace(judging, budget=5.0)
    task = dataclasses.replace(task, judging=rich)
    assert "OPENAI_API_KEY" in task.unavailable("mine")
    rows = [{"dialogue": "d", "turn": 0, "history": [], "facts": ["x"], "responses": {"one": "Hi"}}]
    with pytest.raises(MissingAnswersError, match="OPENAI_API_KEY"):
        judge_tables(task, write_tables(tmp_path / "t", rows), dataset="mine")


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, tables, root, monkeypatch, capsys):
    """Return a function that runs a command in a folder with the repository's configuration, and returns what it prints."""
    config = completed(yaml.safe_load((root / "params.yaml").read_text()))
    config["judges"]["gpt"] = {"service": "openai", "model": "gpt-4-turbo-2024-04-09", "parameters": {"max_tokens": 20}}
    config["catalogue"] = str(root / "data/sources.yaml")
    config["judging"] |= {
        "prices": str(root / "data/prices.yaml"),
        "ledger": "ledger",
        "judges": {"default": ["rules"]},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)

    def run(text, status=0):
        assert main(shlex.split(text)) == status
        out = capsys.readouterr()
        return out.out + out.err

    return run


def test_plan_and_run(command, tmp_path):
    assert "mine  cpds-d_rules: 4 requests, about" in command("judge plan tables/mine")
    planned = command("judge plan tables/mine --metric cpds-d_gpt")
    # Three answers to each of four responses.
    assert "mine  cpds-d_gpt: 12 requests, about" in planned and "$0.00 are spent of a budget of $0.00" in planned
    assert "cpds-dial_gpt: not counted: its turns are not all" in command(
        "judge plan tables/mine --metric cpds-dial_gpt"
    )
    files = "--output results/mine/scores/{0}.parquet --judgements results/mine/judgements/{0}.parquet"
    for metric in ("cpds-d_rules", "cpds-dial_rules"):
        ran = command(f"judge run tables/mine --metric {metric} {files.format(metric)}")
        assert "items have scores" in ran
    ran = command(f"judge run tables/mine --metric cpds-d_rules {files.format('cpds-d_rules')}")
    assert "nothing was asked; 4 of 4 items have scores" in ran
    assert "costs money, and the budget is 0" in command(
        f"judge run tables/mine --metric cpds-d_gpt {files.format('x')}", 1
    )
    assert "cpds-d_rules" in command("judge run tables/mine --metric cpds-d_rule", 1)
    assert "tasks can run here" in command("judge run tables/mine --metric cpds-d_gpt", 1)
    assert "0 answers" in command("judge export-answers published.parquet --answers ledger")
    exported = command("judge export-answers texts.parquet --texts --answers ledger")
    count = int(exported.split(": ")[1].split()[0])
    assert f"{count} new answers" in command("judge import-answers texts.parquet --answers other")
    assert "none.parquet: no such file" in command("judge import-answers none.parquet --answers other", 1)


def test_a_configuration_without_judges():
    judging = read_judging(None, None)
    assert judging.tasks("demo") == {}
    with pytest.raises(ConfigError):
        read_judging({"a": {"service": "rules"}}, {"judges": {"demo": ["a"]}, "variants": {}})
