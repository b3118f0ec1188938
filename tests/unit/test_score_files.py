"""Scores of other programs: long and wide files, and logs of evaluation tools."""

import json

import pytest

from comperdial.core.errors import ComperdialError
from comperdial.evaluation.aggregate import read_scores
from comperdial.metrics.score_files import read_records


def scores(path):
    """Return {(item, system, metric, output): value} of a file, and the signature of each metric."""
    frame = read_scores([path], unnamed=True)
    keys = frame[["item_id", "system_id", "metric", "output"]].itertuples(index=False, name=None)
    signatures = dict(zip(frame["metric"], frame["signature"], strict=True))
    return dict(zip(keys, frame["value"], strict=True)), signatures


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "id,model,BLEU,BERTScore\n1,a,0.1,0.9\n1,b,0.2,\n",
            {("BLEU", "a"): 0.1, ("BLEU", "b"): 0.2, ("BERTScore", "a"): 0.9},
        ),
        ("context_id;system;metric;value\n1;a;bleu;0,1\n1;b;bleu;0,2\n", {("bleu", "a"): 0.1, ("bleu", "b"): 0.2}),
        ("question_id,model,metric,score\n1,a,bleu,0.1\n1,b,rouge,0.2\n", {("bleu", "a"): 0.1, ("rouge", "b"): 0.2}),
        ("context_id,system_id,score\n1,a,0.1\n1,b,NA\n", {("mine", "a"): 0.1}),
        (
            ",context_id,system_id,f1,note\n0,1,a,0.1,good\n1,1,b,0.5,bad\n",
            {("f1", "a"): 0.1, ("f1", "b"): 0.5},
        ),
    ],
)
def test_long_and_wide_files(tmp_path, content, expected):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    found, _ = scores(path)
    assert {(metric, system): value for (_, system, metric, _), value in found.items()} == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,model,bleu\n1,a,0.1\n1,b,high\n", "record 2, column 'bleu': holds 'high'; expected a number"),
        ("model,bleu\na,0.1\n", "no column 'value'; expected at least system_id, value"),
        ("id,bleu\n1,0.1\n", "no column 'system_id', 'value'"),
    ],
)
def test_scores_that_cannot_be_read(tmp_path, content, message):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(ComperdialError, match=message):
        scores(path)


INSPECT = {
    "version": 2,
    "eval": {"model": "openai/bot", "scorers": [{"name": "graded", "options": {"model": "openai/judge"}}]},
    "samples": [
        {
            "id": number,
            "epoch": 1,
            "input": [{"role": "user", "content": f"what is {number}?"}],
            "target": "tea",
            "output": {"choices": [{"message": {"role": "assistant", "content": f"tea {number}"}}]},
            "scores": {
                "match": {"value": "CI"[number]},
                "graded": {"value": {"fit": number / 4}},
                "said": {"value": "maybe"},
            },
        }
        for number in range(2)
    ],
}
PROMPTFOO = {
    "evalId": "e",
    "results": {
        "version": 3,
        "results": [
            {
                "provider": {"id": "bot"},
                "testIdx": test,
                "prompt": {"raw": f"what is {test}?"},
                "vars": {"q": test},
                "response": {"output": f"tea {test}"},
                "score": 0.5 + test / 2,
                "namedScores": {"kind": test},
                "gradingResult": {
                    "componentResults": [
                        {"score": 1, "assertion": {"type": "llm-rubric", "provider": "openai:judge"}},
                        {"score": test, "assertion": {"type": "javascript", "metric": "kind"}},
                    ]
                },
            }
            for test in range(2)
        ],
    },
}
DEEPEVAL = {
    "testCases": [
        {
            "name": f"case_{number}",
            "input": f"what is {number}?",
            "actualOutput": f"tea {number}",
            "expectedOutput": "tea",
            "metricsData": [{"name": "Relevancy", "score": number / 2, "evaluationModel": "judge"}],
        }
        for number in range(2)
    ],
    "hyperparameters": {"model": "bot"},
}
HARNESS = [
    {
        "doc_id": number,
        "doc": {},
        "target": "tea",
        "arguments": {"gen_args_0": {"arg_0": f"what is {number}?", "arg_1": {}}},
        "resps": [[f"tea {number}"]],
        "filtered_resps": [f"{number}"],
        "filter": one,
        "metrics": ["exact_match"],
        "exact_match": float(number),
    }
    for one in ("strict", "loose")
    for number in range(2)
]


@pytest.mark.parametrize(
    ("name", "log", "system", "second", "signature"),
    [
        (
            "log.json",
            INSPECT,
            "openai/bot",
            {("match", "score"): 0, ("graded", "fit"): 0.25},
            "Inspect|judge:openai/judge",
        ),
        (
            "log.json",
            PROMPTFOO,
            "bot",
            {("promptfoo", "score"): 1, ("kind", "score"): 1, ("llm-rubric", "score"): 1},
            "promptfoo|judge:openai:judge",
        ),
        ("log.json", DEEPEVAL, "bot", {("Relevancy", "score"): 0.5}, "DeepEval|judge:judge"),
        (
            "my__bot/samples_tea.jsonl",
            HARNESS,
            "my/bot",
            {("exact_match,strict", "score"): 1, ("exact_match,loose", "score"): 1},
            "lm-evaluation-harness",
        ),
    ],
)
def test_logs_of_tools(tmp_path, name, log, system, second, signature):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    is_lines = isinstance(log, list)
    path.write_text("".join(json.dumps(line) + "\n" for line in log) if is_lines else json.dumps(log, indent=1))
    found, signatures = scores(path)
    items = list(dict.fromkeys(item for item, *_ in found))
    assert {key[2:]: value for key, value in found.items() if key[0] == items[1]} == second
    assert {key[1] for key in found} == {system}
    assert signature in signatures.values()
    records = read_records(path)
    assert records.responses["response"].tolist() == ["tea 0", "tea 1"]
    assert records.responses["context_id"].tolist() == items
    last = [history[-1] for history in records.histories]
    assert [one if isinstance(one, str) else one["text"] for one in last] == ["what is 0?", "what is 1?"]
    assert log is PROMPTFOO or records.references == [["tea"], ["tea"]]


def test_a_log_of_likelihoods_holds_scores_and_no_responses(tmp_path):
    path = tmp_path / "samples_arc.jsonl"
    lines = [
        {
            "doc_id": number,
            "filtered_resps": [["-3.2", "False"], ["-1.0", "True"]],
            "arguments": [["a", " b"]],
            "acc": 1.0,
            "target": 1,
        }
        for number in range(2)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert set(scores(path)[0].values()) == {1.0}
    with pytest.raises(ComperdialError, match="response that is not empty"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "log", "message"),
    [
        (
            "log.json",
            {"evalId": "e", "results": {"table": {}}},
            "a log of promptfoo that does not have its documented format",
        ),
        ("log.json", {"eval": {}, "samples": []}, "a log of Inspect without samples"),
        ("log.eval", {}, r"binary form.*inspect log dump .*log\.eval > log\.json"),
    ],
)
def test_logs_that_cannot_be_read(tmp_path, name, log, message):
    path = tmp_path / name
    path.write_text(json.dumps(log))
    with pytest.raises(ComperdialError, match=message):
        scores(path)
