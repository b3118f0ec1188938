"""A user's own file, judged: read as `comperdial score` reads it, through the same ledger as everything else."""

import json

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.judges.base import Answer, Completion
from comperdial.judges.ledger import Ledger
from comperdial.judges.services import rules
from comperdial.judging.config import read_judging
from comperdial.judging.files import _items, file_task, judge_file
from comperdial.judging.tasks import family_of, signature
from comperdial.score_files import read_records

RECORDS = [
    {
        "response": "I swim in the sea every day!",
        "reference": "I love the sea.",
        "history": ["Hello, who are you?", "I am a sailor.", "Do you like the sea?"],
        "facts": ["i swim.", "i sail."],
    },
    {"response": "Well. Yes.", "history": ["Do you like tea?"], "facts": []},
]


@pytest.fixture
def params(tmp_path, root):
    """Return a params.yaml with the repository's judges and variants, and a ledger of its own."""
    content = yaml.safe_load((root / "params.yaml").read_text())
    content["judging"]["ledger"] = str(tmp_path / "ledger")
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def judging(params):
    content = yaml.safe_load(params.read_text())
    return read_judging(content["judges"], content["judging"])


def write(path, records):
    if path.suffix == ".csv":
        cells = [{k: v if isinstance(v, str) else json.dumps(v) for k, v in r.items()} for r in records]
        pd.DataFrame(cells).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def mine(tmp_path):
    return write(tmp_path / "mine.jsonl", RECORDS)


@pytest.fixture
def command(params, tmp_path):
    def arguments(file, variant="cpds-d", judge="rules", *more):
        given = ["--variant", variant, "--judge", judge, "--params", params, "--output", tmp_path / "scores.csv"]
        return [str(argument) for argument in ["judge", "file", file, *given, *more]]

    return arguments


def prompts(judging, name="mine", variant="cpds-d"):
    """Return what the judge was sent."""
    task = file_task(judging, variant, "rules")
    frame = Ledger(judging.ledger).shelf(name, family_of(judging, task)).frame()
    return [json.loads(messages)[0]["content"] for messages in frame["messages"]]


def test_a_file_is_judged_and_the_run_reported(command, mine, judging, tmp_path, capsys):
    assert main([*command(mine), "--judgements", str(tmp_path / "why.parquet")]) == 0
    assert "cpds-d_rules: 2 judged, 0 of them from the ledger; 2 new answers for 2 calls" in capsys.readouterr().out
    scores = schema.read(tmp_path / "scores.csv", "scores")
    assert set(scores["metric"]) == {"cpds-d_rules"} and set(scores["dataset"]) == {"mine"}
    assert scores["item_id"].tolist() == ["1", "2"] and set(scores["system_id"]) == {"system"}
    assert scores["value"].between(1, 5).all()
    assert set(scores["signature"]) == {signature(judging, file_task(judging, "cpds-d", "rules"))}
    why = schema.read(tmp_path / "why.parquet", "judgements")
    assert why["value"].tolist() == pytest.approx(scores["value"].tolist()) and why["rationale"].notna().all()


def test_a_csv_is_judged_like_jsonl(command, mine, tmp_path):
    other = write(tmp_path / "other.csv", RECORDS)
    values = []
    for file in (mine, other):
        assert main(command(file, "cpds-s")) == 0
        scores = schema.read(tmp_path / "scores.csv", "scores")
        values.append(scores.set_index(["item_id", "output"])["value"].to_dict())
    assert values[0] == values[1] and len(values[0]) == 12


def test_a_second_run_asks_nothing(command, mine, tmp_path, monkeypatch, capsys):
    assert main(command(mine)) == 0
    first = (tmp_path / "scores.csv").read_bytes()

    def refuse(*_):
        raise AssertionError("a request was made")

    monkeypatch.setattr(rules, "respond", refuse)
    assert main(command(mine)) == 0
    assert "2 judged, 2 of them from the ledger" in capsys.readouterr().out
    assert (tmp_path / "scores.csv").read_bytes() == first


def test_another_ledger_knows_nothing_of_the_first(command, mine, tmp_path, capsys):
    assert main(command(mine)) == 0
    assert main([*command(mine), "--ledger", str(tmp_path / "elsewhere")]) == 0
    assert "2 judged, 0 of them from the ledger" in capsys.readouterr().out.splitlines()[-1]
    assert (tmp_path / "elsewhere/mine/rules").is_dir()


def test_texts_have_speakers_that_take_turns_and_the_last_is_a(command, mine, judging):
    assert main(command(mine)) == 0
    long, short = sorted(prompts(judging), key=len, reverse=True)
    said = ["A: Hello, who are you?", "B: I am a sailor.", "A: Do you like the sea?"]
    assert "\n".join(said) in long and "- i swim.\n- i sail." in long
    assert "A: Do you like tea?" in short.splitlines() and "(none)" in short.splitlines()


def test_speakers_that_the_file_names_are_kept(command, judging, tmp_path):
    history = [{"speaker": "Ann", "text": "Hi."}, {"speaker": "Bob", "text": "Hello."}]
    assert main(command(write(tmp_path / "mine.jsonl", [{"response": "Yes.", "history": history}]))) == 0
    assert "Ann: Hi.\nBob: Hello." in prompts(judging)[0]


def test_the_columns_dataset_context_and_system_name_the_item(command, judging, tmp_path):
    names = {"dataset": "known", "context_id": "c7", "system_id": "s"}
    assert main(command(write(tmp_path / "a file.jsonl", [RECORDS[0] | names]))) == 0
    scores = schema.read(tmp_path / "scores.csv", "scores")
    assert scores[["dataset", "item_id", "system_id"]].to_numpy().tolist() == [["known", "c7", "s"]]
    assert len(prompts(judging, "known")) == 1


def test_a_record_without_reference_is_not_judged_and_counted(command, mine, tmp_path, capsys):
    assert main(command(mine, "cpds-d-ref")) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("cpds-d-ref_rules: 1 records not judged: no reference")
    assert schema.read(tmp_path / "scores.csv", "scores")["item_id"].tolist() == ["1"]


def test_a_paid_judge_is_asked_within_a_budget_only_and_the_ledger_is_used_without(
    command, mine, judging, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    assert main(command(mine, "cpds-d", "gpt-4")) == 1
    error = capsys.readouterr().err
    assert "6 judgements are missing, the first: 1, system, sample 0" in error and "--budget" in error
    assert not (tmp_path / "scores.csv").exists()
    assert main(command(mine)) == 0
    by_rules, paid = (file_task(judging, "cpds-d", judge) for judge in ("rules", "gpt-4"))
    # `rules` explains and is asked with another prompt: what is sent to a judge that does not is made here.
    assert family_of(judging, by_rules).prompt_hash != family_of(judging, paid).prompt_hash
    with Ledger(judging.ledger).writing("mine", family_of(judging, paid)) as shelf:
        shelf.add(
            [
                Answer(item.messages, sample, Completion(text, model="x", input_tokens=9, output_tokens=1), cost=0.5)
                for item in _items(read_records(mine), judging.prompt(paid))
                for sample, text in enumerate(["3", "4", "5"])
            ]
        )
    capsys.readouterr()
    assert main(command(mine, "cpds-d", "gpt-4")) == 0
    assert "all from the ledger; nothing was asked: gpt-4 costs money, and the budget is 0" in capsys.readouterr().out
    assert schema.read(tmp_path / "scores.csv", "scores")["value"].tolist() == [4, 4]
    made = judge_file(judging, paid, mine)
    assert made.report is None and len(made.judgements) == 6


@pytest.mark.parametrize(
    ("records", "variant", "message"),
    [
        ([{"answer": "x"}], "cpds-d", "no column 'response'; expected response: the text to score"),
        ([{"response": "x", "histroy": []}], "cpds-d", "unknown column 'histroy'"),
        ([{"response": "x", "facts": ["y"]}], "cpds-d", "no column 'history'; expected one: the prompt cpds_detail"),
        ([{"response": "x", "history": ["y"]}], "cpds-s-ref", "no column 'references'"),
        ([{"response": "x", "history": ["y", " "]}], "cpds-d", "record 1: one of its history is ' '"),
        ([{"response": "x", "history": [{"text": "y"}]}], "cpds-d", "{'text': 'y'}; expected a text that is not empty"),
        ([{"response": "x", "history": ["y"], "reference": [7]}], "cpds-d", "record 1: one of its references is 7"),
        ([{"response": "x", "history": ["y"], "dataset": d} for d in "ab"], "cpds-d", "2 data sets, among them 'a'"),
        (RECORDS, "cpds", "--variant: unknown variant 'cpds'"),
        (RECORDS, "cpds-dial", "'cpds-dial' rates whole dialogues, and a file holds single responses; expected"),
    ],
)
def test_faults_are_named_before_anything_is_asked(command, tmp_path, capsys, records, variant, message):
    assert main(command(write(tmp_path / "mine.jsonl", records), variant)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "ledger").exists() and not (tmp_path / "scores.csv").exists()


@pytest.mark.parametrize("name", ["my file.jsonl", "größe.jsonl", "a|b.jsonl"])
def test_a_file_name_that_cannot_name_a_data_set(command, tmp_path, capsys, name):
    assert main(command(write(tmp_path / name, RECORDS))) == 1
    error = capsys.readouterr().err
    assert name in error and "cannot name a data set in the ledger" in error and "column 'dataset'" in error


def test_an_unknown_judge_and_a_place_that_is_no_table(command, mine, tmp_path, capsys):
    assert main(command(mine, "cpds-d", "ruls")) == 1
    assert "--judge: unknown judge 'ruls'" in capsys.readouterr().err
    assert main([*command(mine), "--judgements", str(tmp_path / "why.txt")]) == 1
    assert "--judgements" in capsys.readouterr().err and not (tmp_path / "ledger").exists()
