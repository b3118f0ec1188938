"""Scores of tables: the same rows whatever the parts, one metric or many, and no file when something is wrong."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comperdial
import comperdial.models.encoder as encoder_module
import tinymodels
from comperdial import schema
from comperdial.core.errors import ComperdialError, FileError, MissingResourceError, SchemaError
from comperdial.evaluation.aggregate import read_scores
from comperdial.metrics import Batch, Metric, Scores, create, scoring
from comperdial.metrics.score_files import read_records

ROOM = 3
KEY = list(schema.table("scores").key)


@dataclass(frozen=True, kw_only=True)
class Length(Metric):
    """Words of a response, and what its context holds; one word has no score, words above three are cut."""

    kind: ClassVar[str] = "length"
    needs: ClassVar[tuple[str, ...]] = ()
    counts_cuts: bool = True

    @property
    def outputs(self):
        return ("words", "context")

    def compute(self, batch: Batch) -> Scores:
        words = np.array([len(response.split()) for response in batch.responses], dtype=np.float64)
        history = [" ".join(u["text"] for u in history) for history in batch.histories]
        seen = zip(history, batch.references, batch.facts, strict=True)
        context = np.array([len(h) + 10 * len(r) + 100 * len(f) for h, r, f in seen], dtype=np.float64)
        cut = np.maximum(words - ROOM, 0).astype(np.int32)
        words[words == 1] = np.nan
        return Scores({"words": words, "context": context}, cut if self.counts_cuts else None)


CONTEXTS = [
    {
        "dataset": "d",
        "context_id": f"c{number}",
        "dialogue_id": "x",
        "turn": number,
        "history": [{"speaker": "A", "text": "h" * number}] * (number % 2),
        "references": ["r"] * (number % 3),
        "facts": ["f"] * (number // 3),
    }
    for number in range(5)
]
# "b" sorts before "gold": the reference is between scored systems, and at the end of parts.
KINDS = {"a": "agent", "b": "human", "gold": "reference", "z": "agent"}
RESPONSES = [
    {"dataset": "d", "context_id": f"c{n}", "system_id": system, "response": "w " * (1 + (3 * n + 2 * place) % 6)}
    for n in range(5)
    for place, system in enumerate(KINDS)
]
WORDS = {(r["context_id"], r["system_id"]): len(r["response"].split()) for r in RESPONSES if r["system_id"] != "gold"}


def write_tables(folder, responses=RESPONSES, contexts=CONTEXTS, kinds=KINDS):
    """Write a data set's tables; the responses as they are, so that they can be wrong."""
    folder.mkdir(exist_ok=True)
    systems = [
        {"dataset": "d", "system_id": s, "kind": kind, "track": None, "description": ""} for s, kind in kinds.items()
    ]
    schema.write(folder / "systems.parquet", pd.DataFrame(systems), "systems")
    schema.write(folder / "contexts.parquet", pd.DataFrame(contexts), "contexts")
    content = pa.Table.from_pylist(list(responses), schema=schema.table("responses").arrow())
    pq.write_table(content, folder / "responses.parquet")
    return folder


@pytest.fixture
def tables(tmp_path):
    return write_tables(tmp_path / "tables")


def read(path):
    return schema.read(path, "scores")


@pytest.mark.parametrize("counts_cuts", [True, False])
@pytest.mark.parametrize("part", [1, 7])
def test_part_size_does_not_change_the_table(tables, tmp_path, monkeypatch, part, counts_cuts):
    metric = Length(counts_cuts=counts_cuts)
    schema.write(tmp_path / "whole.parquet", scoring.score_tables(metric, "mine", tables), "scores")
    monkeypatch.setattr(scoring, "_PART", part)
    scoring.write_scores(metric, "mine", tables, tmp_path / "parts.parquet")
    whole, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    assert parts.equals(whole)
    scores = read(tmp_path / "parts.parquet")
    pd.testing.assert_frame_equal(scores, scores.sort_values(KEY, ignore_index=True))
    assert set(scores["signature"]) == {metric.signature()}
    words, context = (scores[scores["output"] == o].set_index(["item_id", "system_id"]) for o in ("words", "context"))
    assert words["value"].to_dict() == {item: count for item, count in WORDS.items() if count > 1}
    cut = {item: max(0, count - ROOM) if counts_cuts else 0 for item, count in WORDS.items()}
    assert context["cut"].to_dict() == cut
    # Each response is scored with its own context.
    held = [0, 1 + 10, 20, 3 + 100, 10 + 100]
    assert context["value"].to_dict() == {(item, system): held[int(item[1:])] for item, system in WORDS}


def changed(**values):
    """Return the responses with the last one changed."""
    return [*RESPONSES[:-1], RESPONSES[-1] | values]


@pytest.mark.parametrize(
    ("part", "responses", "message"),
    [
        (4, changed(context_id="c9"), r"1 responses name context_id 'c9', which is in no table"),
        (1000, changed(response=" "), r"record 20 \(context_id=c4, system_id=z\): column 'response'"),
        (4, [*RESPONSES, RESPONSES[0]], r"record 21 \(context_id=c0, system_id=a\): the same key a second time"),
    ],
)
def test_an_error_names_the_response_and_keeps_the_earlier_file(tmp_path, monkeypatch, part, responses, message):
    monkeypatch.setattr(scoring, "_PART", part)
    tables, out = write_tables(tmp_path / "tables"), tmp_path / "out/s.parquet"
    scoring.write_scores(Length(), "mine", tables, out)
    before = out.read_bytes()
    write_tables(tables, responses)
    with pytest.raises(SchemaError, match=message) as caught:
        scoring.write_scores(Length(), "other", tables, out)
    assert str(tables / "responses.parquet") in str(caught.value)
    assert [path.name for path in out.parent.iterdir()] == ["s.parquet"]
    assert out.read_bytes() == before


def test_unreadable_file(tables, tmp_path):
    (tables / "responses.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(FileError, match="not a readable Parquet file"):
        scoring.write_scores(Length(), "mine", tables, tmp_path / "out/s.parquet")
    assert not list(tmp_path.glob("out/*"))


def test_responses_lacking_required_input_have_no_score(tmp_path, monkeypatch, caplog):
    class NeedsFacts(Length):
        needs = ("facts",)

    monkeypatch.setattr(scoring, "_PART", 2)
    contexts = [context | {"facts": [] if context["context_id"] == "c3" else ["f"]} for context in CONTEXTS]
    tables = write_tables(tmp_path / "tables", contexts=contexts)
    scoring.write_scores(NeedsFacts(), "mine", tables, tmp_path / "s.parquet")
    whole = scoring.score_tables(Length(), "mine", tables)
    columns = [*KEY, "value"]
    expected = whole.loc[whole["item_id"] != "c3", columns].sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(read(tmp_path / "s.parquet")[columns], expected)
    assert "mine: 3 of 15 responses have no facts and no score" in caplog.text


def test_user_scores_have_cuts_and_missing_values_are_counted(tmp_path, caplog):
    path = tmp_path / "mine.csv"
    path.write_text("response\na b c d e\na b\nno\n")
    cut = comperdial.score(path, {"mine": Length()}).set_index(["output", "item_id"])["cut"]
    assert cut["words"].to_dict() == {"1": 2, "2": 0}
    assert cut["context"].to_dict() == {"1": 2, "2": 0, "3": 0}
    assert "mine: 1 of 3 responses have no score of words" in caplog.messages


TEXTS = ["do you like tea ?", "i like green tea", "what book did you read", "the sea", "it's good", "yes , tea"]


@pytest.fixture
def several(tmp_path):
    """Six contexts; the first has no history, every third no references."""
    contexts, responses = [], []
    for n in range(6):
        history = [{"speaker": "AB"[turn % 2], "text": TEXTS[turn]} for turn in range(n)]
        references = [] if n % 3 == 2 else [TEXTS[n], "a book about the sea"]
        names = {"dataset": "d", "context_id": f"c{n}"}
        contexts.append(
            names | {"dialogue_id": "x", "turn": n, "history": history, "references": references, "facts": []}
        )
        texts = {"a": f"{TEXTS[-n]} {'again ' * n}", "gold": TEXTS[n], "z": TEXTS[(n + 2) % 6]}
        responses += [names | {"system_id": system, "response": text} for system, text in texts.items()]
    return write_tables(tmp_path / "several", responses, contexts, {"a": "agent", "gold": "reference", "z": "agent"})


@pytest.fixture
def metrics(tmp_path):
    model = {"model": tinymodels.bert(tmp_path / "bert"), "max_length": 12}
    return {
        # Not in the order of their names.
        "rouge": create("rouge"),
        "f1-context": create("with_context", metric="f1"),
        "bertscore": create("bertscore", layer=2, **model),
        "embedding": create("embedding", **model),
        "grounded": create("grounded_cosine", **model),
    }


def test_rows_match_those_of_each_metric_alone(several, metrics, tmp_path, monkeypatch, caplog):
    # The vectors of one text differ between batches in their last digits: kept, all take the same ones.
    monkeypatch.setenv(encoder_module.STORE_VARIABLE, str(tmp_path / "vectors"))
    scoring.score_all(metrics, several, tmp_path / "all.parquet")
    assert caplog.messages.count("rouge: 4 of 12 responses have no references and no score") == 1
    assert caplog.messages.count("grounded: 2 of 12 responses have no history and no score") == 1
    frames = []
    for name, metric in metrics.items():
        scoring.write_scores(metric, name, several, tmp_path / "one.parquet")
        frames.append(read(tmp_path / "one.parquet"))
    scores = read(tmp_path / "all.parquet")
    pd.testing.assert_frame_equal(scores, pd.concat(frames).sort_values(KEY, ignore_index=True))
    items = scores.groupby("metric")["item_id"].agg(set)
    assert items["grounded"] == {"c1", "c2", "c3", "c4", "c5"}
    assert items["bertscore"] == {"c0", "c1", "c3", "c4"}
    monkeypatch.setattr(scoring, "_PART", 4)
    scoring.score_all(dict(reversed(metrics.items())), several, tmp_path / "reversed.parquet")
    pd.testing.assert_frame_equal(read(tmp_path / "reversed.parquet"), scores)


def test_unavailable_metric_is_reported_before_scoring(tables, tmp_path):
    metrics = {"f1": create("f1"), "big": create("bertscore", model=str(tmp_path / "absent"))}
    with pytest.raises(MissingResourceError, match=r"metric 'big': .*absent"):
        scoring.score_all(metrics, tables, tmp_path / "out/s.parquet")
    assert not (tmp_path / "out").exists()


def scores_of(path):
    """Return {(item, system, metric, output): value} of a file, and the signatures."""
    frame = read_scores([path], unnamed=True)
    keys = frame[["item_id", "system_id", "metric", "output"]].itertuples(index=False, name=None)
    return dict(zip(keys, frame["value"], strict=True)), set(frame["signature"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id,model,BLEU,chrF\n1,a,0.1,0.9\n1,b,0.2,\n", {("BLEU", "a"): 0.1, ("BLEU", "b"): 0.2, ("chrF", "a"): 0.9}),
        ("context_id;system;metric;value\n1;a;bleu;0,1\n1;b;bleu;0,2\n", {("bleu", "a"): 0.1, ("bleu", "b"): 0.2}),
        ("context_id,system_id,score\n1,a,0.1\n1,b,NA\n", {("mine", "a"): 0.1}),
        (",context_id,system_id,f1,note\n0,1,a,0.1,good\n1,1,b,0.5,bad\n", {("f1", "a"): 0.1, ("f1", "b"): 0.5}),
    ],
)
def test_long_and_wide_files(tmp_path, content, expected):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    scores, _ = scores_of(path)
    assert {(metric, system): value for (_, system, metric, _), value in scores.items()} == expected


# A log of each tool: the system, the scores of the second item, the signature.
LOGS = {
    "inspect.json": (
        "openai/bot", {("match", "score"): 0, ("graded", "fit"): 0.25}, "Inspect|judge:openai/judge",
    ),
    "promptfoo.json": (
        "bot", {("promptfoo", "score"): 1, ("kind", "score"): 1, ("llm-rubric", "score"): 1}, "promptfoo|judge:openai:judge",
    ),
    "deepeval.json": ("bot", {("Relevancy", "score"): 0.5}, "DeepEval|judge:judge"),
    "my__bot/samples_tea.jsonl": (
        "my/bot", {("exact_match,strict", "score"): 1, ("exact_match,loose", "score"): 1}, "lm-evaluation-harness",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_tool_logs(name):
    system, second, signature = LOGS[name]
    path = Path(__file__).parents[1] / "fixtures/logs" / name
    scores, signatures = scores_of(path)
    items = list(dict.fromkeys(item for item, *_ in scores))
    assert {key[2:]: value for key, value in scores.items() if key[0] == items[1]} == second
    assert {key[1] for key in scores} == {system}
    assert signature in signatures
    records = read_records(path)
    assert records.responses["response"].tolist() == ["tea 0", "tea 1"]
    assert records.responses["context_id"].tolist() == items
    last = [history[-1] for history in records.histories]
    assert [one if isinstance(one, str) else one["text"] for one in last] == ["what is 0?", "what is 1?"]
    assert name == "promptfoo.json" or records.references == [["tea"], ["tea"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.csv", "id,model,bleu\n1,a,0.1\n1,b,high\n", "record 2, column 'bleu': holds 'high'; expected a number"),
        ("mine.csv", "id,bleu\n1,0.1\n", "no column 'system_id', 'value'"),
        ("log.json", '{"evalId": "e", "results": {"table": {}}}', "promptfoo that does not have its documented format"),
        ("log.json", '{"eval": {}, "samples": []}', "a log of Inspect without samples"),
        ("log.eval", "{}", r"binary form.*inspect log dump .*log\.eval > log\.json"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ComperdialError, match=message):
        scores_of(path)
