"""Scoring tables part by part: the same rows whatever the size of a part, and no file when something is wrong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import comperdial
from comperdial import schema
from comperdial.core.errors import FileError, SchemaError
from comperdial.metrics import Batch, Metric, Scores, scoring

ROOM = 3


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
        sizes.append(len(batch))
        words[words == 1] = np.nan
        return Scores({"words": words, "context": context}, cut if self.counts_cuts else None)


# How many responses each call got.
sizes: list[int] = []


@pytest.fixture(autouse=True)
def _sizes():
    sizes.clear()


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
# "b" sorts before "gold": the reference stands between scored systems, and at the end of parts.
KINDS = {"a": "agent", "b": "human", "gold": "reference", "z": "agent"}
RESPONSES = [
    {
        "dataset": "d",
        "context_id": context["context_id"],
        "system_id": system,
        "response": "w " * (1 + (3 * number + 2 * place) % 6),
    }
    for number, context in enumerate(CONTEXTS)
    for place, system in enumerate(KINDS)
]
SCORED = [row for row in RESPONSES if KINDS[row["system_id"]] != "reference"]


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


@pytest.mark.parametrize("counts_cuts", [True, False])
@pytest.mark.parametrize("part", [1, 3, 7, 1000])
def test_parts_of_any_size_give_the_same_table(tables, tmp_path, monkeypatch, part, counts_cuts):
    metric = Length(counts_cuts=counts_cuts)
    schema.write(tmp_path / "whole.parquet", scoring.score_tables(metric, "mine", tables), "scores")
    assert sum(sizes) == len(SCORED), "the whole fits into one part"
    sizes.clear()
    monkeypatch.setattr(scoring, "_PART", part)
    scoring.write_scores(metric, "mine", tables, tmp_path / "parts.parquet")
    assert max(sizes) <= part
    assert sum(sizes) == len(SCORED)
    whole, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    assert parts.equals(whole), "rows, their order, types"
    found = schema.read(tmp_path / "parts.parquet", "scores")
    key = list(schema.table("scores").key)
    pd.testing.assert_frame_equal(found, found.sort_values(key, ignore_index=True))
    words = {(r["context_id"], r["system_id"]): len(r["response"].split()) for r in SCORED}
    of_words = found[found["output"] == "words"].set_index(["item_id", "system_id"])
    assert of_words["value"].to_dict() == {item: count for item, count in words.items() if count > 1}
    of_context = found[found["output"] == "context"].set_index(["item_id", "system_id"])
    assert set(of_context.index) == set(words), "one output of a response may be missing and the other there"
    cut = {item: max(0, count - ROOM) if counts_cuts else 0 for item, count in words.items()}
    assert of_context["cut"].to_dict() == cut
    assert {cut[item] for item in of_words.index} == set(of_words["cut"])
    assert set(found["signature"]) == {metric.signature()}
    assert set(found["metric"]) == {"mine"}


@pytest.mark.parametrize("part", [1, 2, 1000])
def test_each_response_is_scored_with_its_own_context(tables, tmp_path, monkeypatch, part):
    monkeypatch.setattr(scoring, "_PART", part)
    scoring.write_scores(Length(), "mine", tables, tmp_path / "s.parquet")
    found = schema.read(tmp_path / "s.parquet", "scores")
    expected = {
        c["context_id"]: sum(len(u["text"]) for u in c["history"]) + 10 * len(c["references"]) + 100 * len(c["facts"])
        for c in CONTEXTS
    }
    assert len(set(expected.values())) == len(CONTEXTS)
    for row in found[found["output"] == "context"].to_dict("records"):
        assert row["value"] == expected[row["item_id"]]


@pytest.mark.parametrize("responses", [[], [r for r in RESPONSES if r["system_id"] == "gold"]])
def test_nothing_to_score_is_an_empty_table(tmp_path, responses):
    tables = write_tables(tmp_path / "tables", responses)
    whole = scoring.score_tables(Length(), "mine", tables)
    scoring.write_scores(Length(), "mine", tables, tmp_path / "s.parquet")
    for found in (whole, schema.read(tmp_path / "s.parquet", "scores")):
        assert list(found.columns) == schema.table("scores").columns
        assert found.empty
    assert sizes == []


def test_a_metric_that_can_score_nothing_gives_an_empty_table(tmp_path):
    class Nothing(Length):
        @property
        def outputs(self):
            return ("words",)

        def compute(self, batch):
            return Scores({"words": np.full(len(batch), np.nan)}, np.ones(len(batch), dtype=np.int32))

    tables = write_tables(tmp_path / "tables")
    scoring.write_scores(Nothing(), "mine", tables, tmp_path / "s.parquet")
    assert schema.read(tmp_path / "s.parquet", "scores").empty
    assert scoring.score_tables(Nothing(), "mine", tables).empty


def changed(number, **values):
    """Return the responses with one of them changed."""
    return [row | values if place == number else row for place, row in enumerate(RESPONSES)]


LAST = len(RESPONSES) - 1
WRONG = [
    ("an unknown context", changed(LAST, context_id="c9"), r"1 responses name context_id 'c9', which is in no table"),
    ("an unknown system", changed(LAST, system_id="y"), r"1 responses name system_id 'y', which is in no table"),
    ("an empty response", changed(LAST, response=" "), r"record 20 \(context_id=c4, system_id=z\): column 'response'"),
    ("no response", changed(LAST, response=None), r"record 20 \(context_id=c4, system_id=z\): no value in column"),
    (
        "a key that stands in two parts",
        [*RESPONSES, RESPONSES[0]],
        r"record 21 \(context_id=c0, system_id=a\): the same key a second time",
    ),
]


@pytest.mark.parametrize("part", [1, 4, 1000])
@pytest.mark.parametrize(("responses", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_said_and_nothing_written(tmp_path, monkeypatch, part, responses, message):
    monkeypatch.setattr(scoring, "_PART", part)
    tables = write_tables(tmp_path / "tables", responses)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(SchemaError, match=message) as caught:
        scoring.write_scores(Length(), "mine", tables, out / "s.parquet")
    assert str(tables / "responses.parquet") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(out.iterdir()) == []
    with pytest.raises(SchemaError, match=message):
        scoring.score_tables(Length(), "mine", tables)


@pytest.mark.parametrize("responses", [row[1] for row in WRONG], ids=[row[0] for row in WRONG])
def test_scores_of_an_earlier_run_stay_when_something_is_wrong(tmp_path, monkeypatch, responses):
    monkeypatch.setattr(scoring, "_PART", 4)
    out = tmp_path / "out/s.parquet"
    scoring.write_scores(Length(), "mine", write_tables(tmp_path / "tables"), out)
    before = out.read_bytes()
    with pytest.raises(SchemaError):
        scoring.write_scores(Length(), "other", write_tables(tmp_path / "tables", responses), out)
    assert [path.name for path in out.parent.iterdir()] == ["s.parquet"]
    assert out.read_bytes() == before
    scoring.write_scores(Length(), "other", write_tables(tmp_path / "tables"), out)
    assert set(schema.read(out, "scores")["metric"]) == {"other"}


@pytest.mark.parametrize("name", ["responses", "contexts", "systems"])
def test_a_file_that_is_no_parquet_or_not_there(tables, tmp_path, name):
    path = tables / f"{name}.parquet"
    content = path.read_bytes()
    for broken, message in ((b"PAR1 nonsense", "not a readable Parquet file"), (content[:-5], "not a readable")):
        path.write_bytes(broken)
        with pytest.raises(FileError, match=message) as caught:
            scoring.write_scores(Length(), "mine", tables, tmp_path / "out/s.parquet")
        assert str(path) in str(caught.value)
        assert not list(tmp_path.glob("out/*"))
    path.unlink()
    with pytest.raises(FileError, match="no such file"):
        scoring.write_scores(Length(), "mine", tables, tmp_path / "out/s.parquet")
    assert not list(tmp_path.glob("out/*"))


def test_a_file_that_is_damaged_in_the_middle(tmp_path, monkeypatch):
    """Its end, where a Parquet file says what it holds, is whole; a page cannot be read."""
    monkeypatch.setattr(scoring, "_PART", 4)
    tables = write_tables(tmp_path / "tables")
    path = tables / "responses.parquet"
    schema.write(path, schema.read(path, "responses"), "responses")
    last = pq.read_metadata(path).row_group(0).column(3)
    content = bytearray(path.read_bytes())
    content[last.data_page_offset : last.data_page_offset + 12] = b"\xff" * 12
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match="not a readable Parquet file"):
        scoring.write_scores(Length(), "mine", tables, tmp_path / "out/s.parquet")
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("lacking", [{"c3"}, {"c0", "c1", "c2", "c3", "c4"}])
def test_responses_that_lack_what_a_metric_needs_have_no_score(tmp_path, monkeypatch, caplog, lacking):
    class NeedsFacts(Length):
        needs = ("facts",)

    monkeypatch.setattr(scoring, "_PART", 2)
    contexts = [context | {"facts": [] if context["context_id"] in lacking else ["f"]} for context in CONTEXTS]
    tables = write_tables(tmp_path / "tables", contexts=contexts)
    scoring.write_scores(NeedsFacts(), "mine", tables, tmp_path / "s.parquet")
    key = ["item_id", "system_id", "output"]
    found = schema.read(tmp_path / "s.parquet", "scores").sort_values(key)
    whole = scoring.score_tables(Length(), "mine", write_tables(tmp_path / "whole", contexts=contexts))
    expected = whole[~whole["item_id"].isin(lacking)].sort_values(key)
    assert found["item_id"].tolist() == expected["item_id"].tolist()
    assert found["value"].tolist() == expected["value"].tolist()
    assert f"mine: {3 * len(lacking)} of 15 responses have no facts and no score" in caplog.text


def test_an_error_of_the_metric_s_own_leaves_nothing(tables, tmp_path):
    class Failing(Length):
        def compute(self, batch):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scoring.write_scores(Failing(), "mine", tables, tmp_path / "out/s.parquet")
    assert not list(tmp_path.glob("out/*"))


def test_a_file_of_responses_carries_its_cuts(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("response\na b c d e\na b\nno\n")
    found = comperdial.score(path, {"mine": Length()}).set_index(["output", "item_id"])["cut"]
    assert found["words"].to_dict() == {"1": 2, "2": 0}
    assert found["context"].to_dict() == {"1": 2, "2": 0, "3": 0}


def test_a_file_of_which_one_output_has_no_score_is_not_said_to_have_none(tmp_path, caplog):
    path = tmp_path / "mine.csv"
    path.write_text("response\na b\nno\n")
    comperdial.score(path, {"mine": Length()})
    assert caplog.messages == ["mine: 1 of 2 responses have no score of words"]
