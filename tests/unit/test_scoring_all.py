"""Many metrics in one process: the rows that each gives alone, whatever is lacking, and each text encoded once."""

import logging

import pandas as pd
import pytest

import comperdial.models.encoder as encoder_module
import tinymodels
from comperdial import schema
from comperdial.core.errors import MissingResourceError, SchemaError
from comperdial.metrics import create, scoring
from comperdial.models.encoder import STORE_VARIABLE

SAID = ["do you like tea ?", "i like green tea", "what book did you read", "the sea", "it's good", "yes , tea"]
KEY = list(schema.table("scores").key)


@pytest.fixture
def tables(tmp_path):
    """Six contexts; the first has no history, every third no references, no facts but in the last."""
    folder = tmp_path / "tables"
    contexts, responses = [], []
    for number in range(6):
        history = [{"speaker": "AB"[turn % 2], "text": SAID[turn]} for turn in range(number)]
        references = [] if number % 3 == 2 else [SAID[number], "a book about the sea"]
        facts = ["i read"] if number == 5 else []
        contexts.append(
            {"context_id": f"c{number}", "dialogue_id": "x", "turn": number, "history": history}
            | {"references": references, "facts": facts}
        )
        for system in ("a", "gold", "z"):
            said = f"{SAID[-number]} {'again ' * number}" if system == "a" else SAID[(number + 2) % 6]
            responses.append({"context_id": f"c{number}", "system_id": system, "response": said})
    systems = [
        {"system_id": name, "kind": "reference" if name == "gold" else "agent", "track": None, "description": ""}
        for name in ("a", "gold", "z")
    ]
    for name, rows in (("contexts", contexts), ("responses", responses), ("systems", systems)):
        schema.write(folder / f"{name}.parquet", pd.DataFrame(rows).assign(dataset="d"), name)
    return folder


def without_lacking(folder, target):
    """Write the same tables without the responses whose context has no history or references."""
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    contexts = contexts[contexts["history"].map(bool) & contexts["references"].map(bool)]
    responses = schema.read(folder / "responses.parquet", "responses")
    schema.write(target / "contexts.parquet", contexts, "contexts")
    schema.write(
        target / "responses.parquet", responses[responses["context_id"].isin(contexts["context_id"])], "responses"
    )
    schema.write(target / "systems.parquet", schema.read(folder / "systems.parquet", "systems"), "systems")
    return target


@pytest.fixture
def metrics(tmp_path, monkeypatch):
    # The vectors of one text differ between batches in their last digits: kept, all take the same ones.
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "vectors"))
    model = {"model": tinymodels.bert(tmp_path / "bert"), "max_length": 12}
    mean = model | {"pooling": "mean"}
    return {
        # Not in the order of their names.
        "rouge": create("rouge"),
        "f1": create("f1"),
        "f1-context": create("with_context", metric="f1"),
        "distinct": create("distinct"),
        "bertscore": create("bertscore", layer=2, **model),
        "embedding": create("embedding", **model),
        "cosine": create("sentence_cosine", text="normalised", **mean),
        "cosine-context": create("with_context", metric="sentence_cosine", options={"text": "normalised"} | mean),
        "grounded": create("grounded_cosine", **model),
    }


def read(path):
    return schema.read(path, "scores")


@pytest.mark.parametrize("part", [3, 1000])
def test_the_rows_that_each_metric_gives_alone(tables, metrics, tmp_path, monkeypatch, part):
    monkeypatch.setattr(scoring, "_PART", part)
    whole = without_lacking(tables, tmp_path / "whole")
    scoring.score_all(metrics, whole, tmp_path / "all.parquet")
    frames = []
    for name, metric in metrics.items():
        scoring.write_scores(metric, name, whole, tmp_path / "one.parquet")
        frames.append(read(tmp_path / "one.parquet"))
    expected = pd.concat(frames).sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(read(tmp_path / "all.parquet"), expected)
    assert set(expected["metric"]) == set(metrics)


def test_what_lacks_something_is_left_out_counted_and_nothing_else(tables, metrics, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "comperdial.metrics.scoring")
    scoring.score_all(metrics, tables, tmp_path / "all.parquet")
    found = read(tmp_path / "all.parquet")
    without_references = {"c2", "c5"}
    items = {name: set(found.loc[found["metric"] == name, "item_id"]) for name in metrics}
    everything = {f"c{number}" for number in range(6)}
    assert items["distinct"] == everything
    for name in ("rouge", "f1", "bertscore", "embedding", "cosine"):
        assert items[name] == everything - without_references
    for name in ("f1-context", "cosine-context", "grounded"):
        assert items[name] == everything - {"c0"}
    said = [record.getMessage() for record in caplog.records]
    assert said.count("f1: 4 of 12 responses have no references and no score") == 1
    assert said.count("grounded: 2 of 12 responses have no history and no score") == 1
    assert len(said) == 8, "one line a metric that lacked something"
    # What is left does not change because others are left out.
    scoring.score_all(metrics, without_lacking(tables, tmp_path / "w"), tmp_path / "w.parquet")
    some = read(tmp_path / "w.parquet")
    both = found.merge(some[[*KEY, "value"]], on=KEY, suffixes=("", "_alone"))
    assert len(both) == len(some)
    assert (both["value"] == both["value_alone"]).all()


def test_a_metric_that_scores_nothing_adds_no_rows(tables, tmp_path, caplog):
    contexts = schema.read(tables / "contexts.parquet", "contexts")
    schema.write(tables / "contexts.parquet", contexts.assign(references=[[]] * len(contexts)), "contexts")
    scoring.score_all({"f1": create("f1"), "d": create("distinct")}, tables, tmp_path / "all.parquet")
    assert set(read(tmp_path / "all.parquet")["metric"]) == {"d"}
    scoring.score_all({"f1": create("f1")}, tables, tmp_path / "none.parquet")
    assert read(tmp_path / "none.parquet").empty
    assert "f1: 12 of 12 responses have no references and no score" in caplog.text


def test_equal_runs_give_equal_bytes_whatever_the_order_of_metrics(tables, metrics, tmp_path, monkeypatch):
    scoring.score_all(metrics, tables, tmp_path / "1.parquet")
    scoring.score_all(dict(reversed(metrics.items())), tables, tmp_path / "2.parquet")
    monkeypatch.setattr(scoring, "_PART", 4)
    scoring.score_all(metrics, tables, tmp_path / "3.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    pd.testing.assert_frame_equal(read(tmp_path / "3.parquet"), read(tmp_path / "1.parquet"))


def test_each_text_is_encoded_once_for_all_metrics(tables, metrics, tmp_path, monkeypatch):
    """Also where several metrics come back to an encoder with the next part, and nowhere is told to keep vectors."""
    monkeypatch.delenv(STORE_VARIABLE)
    encoder_module._open.clear()
    monkeypatch.setattr(scoring, "_PART", 4)
    seen = []
    encode = encoder_module.Vectors._encode

    def watched(self, texts):
        wanted = list(texts)
        seen.extend((self.encoder.keep, text) for text in wanted)
        return encode(self, wanted)

    monkeypatch.setattr(encoder_module.Vectors, "_encode", watched)
    scoring.score_all(metrics, tables, tmp_path / "all.parquet")
    assert len(seen) > 20
    assert len(seen) == len(set(seen))


def test_a_metric_that_cannot_run_is_named_before_anything_is_scored(tables, tmp_path):
    metrics = {"f1": create("f1"), "big": create("bertscore", model=str(tmp_path / "absent"))}
    with pytest.raises(MissingResourceError, match=r"metric 'big': .*absent"):
        scoring.score_all(metrics, tables, tmp_path / "out/s.parquet")
    assert not (tmp_path / "out").exists()


def test_what_is_wrong_with_a_response_is_said_by_its_names(tables, tmp_path):
    responses = schema.read(tables / "responses.parquet", "responses")
    schema.write(tables / "responses.parquet", responses.assign(context_id="c9").head(1), "responses")
    with pytest.raises(SchemaError, match="context_id 'c9', which is in no table"):
        scoring.score_all({"f1": create("f1")}, tables, tmp_path / "out/s.parquet")
    assert not (tmp_path / "out").exists()
