"""Judges: their prompts, from answers to scores, published answers, and the commands."""

import dataclasses
import hashlib
import json
import math
import shlex

import pandas as pd
import pytest
import yaml

from comperdial.cli import main
from comperdial.config.registry import completed
from comperdial.core.errors import ComperdialError
from comperdial.judges import prices
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import items_of
from comperdial.judges.judging import judge_items, judge_tables
from comperdial.judges.probabilities import expected_value
from comperdial.judges.prompting import NAMES, STUDY, fact_lines, history_lines, load
from comperdial.judges.tasks import Task
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
# The beginnings of sha256 of each template, and of what it makes of the above, without and with an explanation.
PROMPTS = {
    "original_simple": ("3479ee5ba885", "2ce074664ef4", "7f7b7cac62f7", "355a19ccb3b6"),
    "original_detail": ("f3a736044364", "ed62b95afce1", "484279f4043e", "08862f4b0ba8"),
    "cpds_simple_ref": ("a281c5927dca", "600adba0592d", "f824a97eb3ce", "33919a861456"),
    "cpds_simple": ("b8e4de736bde", "81b36657dfff", "f1b78e0112b5", "015f7adfc526"),
    "cpds_detail_ref": ("94cfa1911e17", "dfc3bff1d6d3", "f1ec06c462a0", "6d5cd83203a8"),
    "cpds_detail": ("3955c28b0a97", "55707fe97259", "ed85f11a1da0", "3fb905351b56"),
    "cpds_dialogue": ("7b788f74d8f9", "f6ec7800311d", "05c8b3a097cb", "548e2a9b54d5"),
    "explicit_turn": ("ed61e1f25dc0", "49b61dadc57d", "dda5068c4b9f", "b696accfce44"),
    "explicit_dialogue": ("d289d1187c5b", "57863df37b23", "9c597cd88bb3", "f0fea3035eb0"),
    "implicit_turn": ("20ef612b50e3", "41e5e37a55b7", "c3ee7cc61a89", "74a18fc6a5ae"),
    "implicit_dialogue": ("072ae5f7f826", "093ca39a3a87", "21826baa8113", "1fd6fcb5c16c"),
    "rating_turn": ("20852be90901", "21513b3220fb", "bc2d4ac2ff9b", "d8b5d3cf0a7e"),
    "rating_dialogue": ("3f0d0aa87064", "d2076dbb68c4", "3f3cd3cf1ae4", "6fc4e5600c48"),
}


@pytest.mark.parametrize("name", [*NAMES, *STUDY])
def test_prompts_are_byte_identical(name):
    """One byte would make another key, and published answers would be asked for again."""
    question = "overall" if name.startswith(("implicit", "rating")) else None
    hashes = []
    for explain in (False, True):
        prompt = load(name, explain=explain, question=question)
        text = prompt.render(VALUES)
        assert "{{ clocks }}" in text or "response" not in prompt.fields
        hashes += [prompt.hash[:12], hashlib.sha256(text.encode()).hexdigest()[:12]]
    assert tuple(hashes) == PROMPTS[name]


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


def test_scores_and_judgements_of_turns_and_dialogues(by_rules, tables):
    task = by_rules("cpds-d")
    judged = judge_tables(task, tables, dataset="mine")
    assert sorted(judged.scores["system_id"]) == ["one", "one", "two", "two"]
    assert set(judged.scores["signature"]) == {task.signature}
    assert judged.judgements["rationale"].notna().all()
    # Turns without a reference lack what the prompt shows; so do dialogues after such turns.
    assert judge_tables(by_rules("cpds-s-ref"), tables, dataset="mine").lacking == {"no reference": 2}
    whole = judge_tables(by_rules("cpds-dial"), tables, dataset="mine")
    assert set(whole.scores["output"]) == {"final-score", "dialogue-interaction-score", "overall-dialogue-turn-score"}
    assert whole.scores["level"].eq("dialogue").all()
    some = items_of(by_rules("cpds-dial"), tables, judged.scores.iloc[1:])
    assert [item.lacks for item in some if item.messages is None] == ["1 turns without a score"]


def test_selection_of_items(by_rules, tables):
    items = {(item.item_id, item.system_id): item.messages for item in items_of(by_rules("cpds-s-ref"), tables)}
    prompt = json.loads(items["c0", "one"])[0]["content"]
    assert "A: Hello, do you like the sea?" in prompt
    assert "I love it." in prompt
    assert "No." not in prompt
    item = next(iter(items_of(by_rules("original-s"), tables)))
    same = [dataclasses.replace(item, system_id=name) for name in ("x", "y", "z")]
    judged = judge_items(by_rules("original-s"), same, dataset="mine")
    assert (judged.report.answered, len(judged.judgements)) == (1, 3)


def test_score_is_the_mean_of_its_first_samples(tables, tmp_path):
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
def test_probabilities_without_a_value(logprobs, labels, match):
    with pytest.raises(ValueError, match=match):
        expected_value(logprobs, labels)


def test_labels_through_a_server(tables, tmp_path):
    variant = {
        "prompt": "implicit_turn", "question": "overall", "fields": ["history", "response"], "dimensions": ["overall"],
        "labels": {"Yes": 1, "No": 0},
    }  # fmt: skip
    # Two tokens may have the same text: half of exp(-0.5) each.
    yes = {"token": "Yes", "logprob": -0.5 - math.log(2)}
    top = [yes, yes, {"token": " no", "logprob": -1.0}, {"token": "Well", "logprob": -3.0}]
    answer = completion("Yes", logprobs={"content": [{"token": "Yes", "top_logprobs": top}]})
    with FaultServer(lambda n, body: (200, answer)) as server:
        judging = judging_of({"base_url": server.url, "mode": "probabilities"}, tmp_path, variants={"yes-no": variant})
        task = Task(judging, judging.judges["server"], judging.variants["yes-no"], 1)
        judged = judge_tables(task, tables, dataset="mine")
        assert all(body["logprobs"] and body["top_logprobs"] == 20 for body in server.requests)
    values = judged.scores.groupby("output")["value"].first()
    assert values["overall"] == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-6)
    assert values["outside"] == pytest.approx(1 - math.exp(-0.5) - math.exp(-1), abs=1e-6)
    # Exported, they need no server and hold no text.
    with AnswerFile(tmp_path / "ledger") as answers:
        assert answers.export(tmp_path / "other/published.parquet") == 4
    exported = pd.read_parquet(tmp_path / "other/published.parquet")
    assert "messages" not in exported and "sea" not in exported.to_json()
    moved = dataclasses.replace(judging, ledger=tmp_path / "other", budget=0)
    again = judge_tables(dataclasses.replace(task, judging=moved), tables, dataset="mine")
    assert again.report is None
    pd.testing.assert_frame_equal(again.scores, judged.scores)


@pytest.mark.parametrize(
    ("judge", "variant", "match"),
    [
        ({"service": "opnai"}, {}, "opnai"),
        ({"parameters": {"api_key": "sk-abcdefgh"}}, {}, "looks like a secret"),
        ({"base_url": "ftp://x"}, {}, "http"),
        ({"parameters": {"stream": True}}, {}, "stream"),
        ({}, {"fields": ["history"]}, "takes"),
        ({}, {"labels": {"Yes": 1, "No": 1}}, "not all of one value"),
    ],
)
def test_configuration_mistake_is_reported(tmp_path, judge, variant, match):
    given = {"prompt": "cpds_detail", "fields": ["history", "fact", "response"], "dimensions": ["humanness"], **variant}
    with pytest.raises(ComperdialError, match=match):
        judging = judging_of(judge, tmp_path, variants={"mine": given})
        assert Task(judging, judging.judges["server"], judging.variants["mine"], 1).signature


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


def test_plan_run_export_and_import(command):
    def run(metric, status=0):
        files = f"--output results/mine/scores/{metric}.parquet --judgements results/mine/judgements/{metric}.parquet"
        return command(f"judge run tables/mine --metric {metric} {files}", status)

    # Three answers to each of four responses.
    planned = command("judge plan tables/mine --metric cpds-d_gpt")
    assert "mine  cpds-d_gpt: 12 requests, about" in planned
    assert "$0.00 are spent of a budget of $0.00" in planned
    assert "items have scores" in run("cpds-d_rules")
    assert "nothing was asked; 4 of 4 items have scores" in run("cpds-d_rules")
    assert "costs money, and the budget is 0" in run("cpds-d_gpt", 1)
    count = int(command("judge export-answers texts.parquet --texts --answers ledger").split(": ")[1].split()[0])
    assert f"{count} new answers" in command("judge import-answers texts.parquet --answers other")
    assert "none.parquet: no such file" in command("judge import-answers none.parquet --answers other", 1)


def test_a_template_cannot_run_code(tmp_path):
    (tmp_path / "mine.md").write_text("{{ response.__class__.__mro__ }}")
    with pytest.raises(ComperdialError, match="cannot be filled"):
        load(str(tmp_path / "mine.md")).render(VALUES)


# Prices


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("eightish", 1), ("nineteens", 2), ("two words", 2), ("no, no!", 4), ("a\n\nb", 3), ("é", 2)],
)
def test_input_is_estimated_by_pieces_of_eight_letters(text, tokens):
    chat = [{"role": "user", "content": text}]
    assert prices.estimate_input(chat) - prices.estimate_input([chat[0] | {"content": ""}]) == tokens


def test_call_cost_is_tokens_times_prices():
    assert prices.price_of(2, 50).of(1_000, 10) == pytest.approx(0.002 + 0.0005)
