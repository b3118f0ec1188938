"""Shards: each row and each text is one shard's; scores are the same, byte for byte, however a table is cut."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial import schema, scoring, sharding
from comperdial.cli import main
from comperdial.errors import ConfigError, SchemaError
from comperdial.files import read_json
from comperdial.metrics import Batch, Metric, Scores, create
from comperdial.schema import merging
from comperdial.sharding import BLOCK, WHOLE, Shard


@given(total=st.integers(0, 50 * BLOCK), count=st.integers(1, 70))
def test_each_row_is_one_shard_s(total, count):
    spans = [Shard(number, count).rows(total) for number in range(1, count + 1)]
    assert [row for span in spans for row in span] == list(range(total))
    assert all(span.start % BLOCK == 0 for span in spans if span), "whole blocks"
    blocks = [-(-len(span) // BLOCK) for span in spans]
    assert max(blocks) - min(blocks) <= 1, "equal work"


@given(texts=st.lists(st.text(), max_size=30), count=st.integers(1, 20))
def test_each_text_is_one_shard_s(texts, count):
    all_shards = [Shard(number, count) for number in range(1, count + 1)]
    for text in [*texts, "\ud800"]:
        assert sum(shard.holds(text) for shard in all_shards) == 1


def test_texts_are_spread_evenly():
    held = [sum(Shard(number, 8).holds(f"text {n}") for n in range(8000)) for number in range(1, 9)]
    assert all(850 < count < 1150 for count in held)


@given(total=st.integers(0, 10**6), size=st.integers(1, 10**5))
def test_there_are_as_many_shards_as_their_size_asks_and_no_empty_one(total, size):
    count = sharding.shards(total, size)
    assert count >= 1
    largest = max(len(Shard(number, count).rows(total)) for number in range(1, count + 1))
    assert largest <= max(size + BLOCK, BLOCK)
    if total:
        assert all(len(Shard(number, count).rows(total)) for number in range(1, count + 1))


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/4 ", "1/2/3", "１/４"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ConfigError, match="3/16"):
        Shard.parse(text)


def test_a_shard_reads_as_it_is_written():
    assert str(Shard.parse("3/16")) == "3/16"
    assert Shard.parse("1/1") == WHOLE
    with pytest.raises(ConfigError, match="1 or more"):
        sharding.shards(10, 0)


@dataclass(frozen=True, kw_only=True)
class Company(Metric):
    """A stand-in for a model: its numbers depend on what else is in the batch."""

    kind: ClassVar[str] = "company"
    needs: ClassVar[tuple[str, ...]] = ()
    vectors: bool = False

    @property
    def outputs(self):
        return ("length", "company")

    @property
    def runs_model(self):
        return True

    @property
    def keeps_vectors(self):
        return self.vectors

    def compute(self, batch: Batch) -> Scores:
        sizes.append(len(batch))
        lengths = np.array([len(response) for response in batch.responses], dtype=np.float64)
        return Scores({"length": lengths, "company": lengths + lengths.mean() / 1000 + len(batch)})


sizes: list[int] = []
# Smaller than a real one, so that a small table has many.
SMALL = 8
CONTEXTS, SYSTEMS = 41, ("gold", "s1", "s2", "s3")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Return a folder of tables of 164 responses in 21 blocks of 8, every fourth of which is a reference's."""
    monkeypatch.setattr(sharding, "BLOCK", SMALL)
    monkeypatch.setattr(scoring, "_PART", 4 * SMALL)
    sizes.clear()
    return write_tables(tmp_path / "tables")


def write_tables(folder, order=None):
    folder.mkdir()
    kinds = {system: "reference" if system == "gold" else "agent" for system in SYSTEMS}
    systems = [
        {"dataset": "d", "system_id": s, "kind": kind, "track": None, "description": ""} for s, kind in kinds.items()
    ]
    schema.write(folder / "systems.parquet", pd.DataFrame(systems), "systems")
    contexts = [
        {
            "dataset": "d",
            "context_id": f"c{n:02}",
            "dialogue_id": "x",
            "turn": n,
            "history": [{"speaker": "A", "text": "hi"}],
            "references": [f"the {n} old cats sat on mat {n % 5}"],
            "facts": [],
        }
        for n in range(CONTEXTS)
    ]
    schema.write(folder / "contexts.parquet", pd.DataFrame(contexts), "contexts")
    responses = [
        {
            "dataset": "d",
            "context_id": f"c{n:02}",
            "system_id": s,
            "response": f"cats {n} sat {'mat ' * (n * k % 7)}",
        }
        for n in range(CONTEXTS)
        for k, s in enumerate(SYSTEMS)
    ]
    if order is not None:
        responses = [responses[place] for place in order]
    content = pa.Table.from_pylist(responses, schema=schema.table("responses").arrow())
    pq.write_table(content, folder / "responses.parquet")
    return folder


def scored_in_shards(metric, folder, count, tmp_path):
    paths = [tmp_path / f"{number}-of-{count}.parquet" for number in range(1, count + 1)]
    for number, path in enumerate(paths, start=1):
        scoring.write_scores(metric, "m", folder, path, Shard(number, count))
    # The order in which shards are named says nothing.
    merging.merge(paths[::-1], tmp_path / f"{count}.parquet", "scores")
    return (tmp_path / f"{count}.parquet").read_bytes()


METRICS = {"bleu": create("bleu"), "rouge": create("rouge"), "company": Company()}


@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("kind", METRICS)
def test_scores_are_the_same_whatever_the_shards(tables, tmp_path, kind, count):
    scoring.write_scores(METRICS[kind], "m", tables, tmp_path / "whole.parquet")
    assert pq.read_metadata(tmp_path / "whole.parquet").num_rows >= 3 * CONTEXTS * len(METRICS[kind].outputs) - 1
    assert scored_in_shards(METRICS[kind], tables, count, tmp_path) == (tmp_path / "whole.parquet").read_bytes()


def test_frames_and_files_hold_the_same(tables, tmp_path):
    frames = [scoring.score_tables(Company(), "m", tables, Shard(number, 3)) for number in (1, 2, 3)]
    schema.write(tmp_path / "frames.parquet", pd.concat(frames), "scores")
    scoring.write_scores(Company(), "m", tables, tmp_path / "whole.parquet")
    assert (tmp_path / "frames.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_there_may_be_more_shards_than_blocks(tables, tmp_path):
    scoring.write_scores(Company(), "m", tables, tmp_path / "whole.parquet")
    assert scored_in_shards(Company(), tables, 30, tmp_path) == (tmp_path / "whole.parquet").read_bytes()


def test_a_model_sees_whole_blocks_and_nothing_else(tables, tmp_path):
    scoring.write_scores(Company(), "m", tables, tmp_path / "whole.parquet")
    # Two of eight are a reference's.
    assert sizes == [6] * 20 + [3]
    found = pd.read_parquet(tmp_path / "whole.parquet").pivot(
        index=["item_id", "system_id"], columns="output", values="value"
    )
    plain = found["length"].to_numpy(dtype=np.float64)
    means = np.array([plain[start : start + 6].mean() for start in range(0, len(plain), 6)])
    expected = plain + np.repeat(means, 6)[: len(plain)] / 1000 + np.repeat([6] * 20 + [3], 6)[: len(plain)]
    np.testing.assert_allclose(found["company"], expected, rtol=1e-6)
    sizes.clear()
    scoring.score_all({"m": Company()}, tables, tmp_path / "all.parquet")
    assert sizes == [6] * 20 + [3]
    assert (tmp_path / "all.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_what_keeps_vectors_gets_whole_parts(tables, tmp_path):
    scoring.write_scores(Company(vectors=True), "m", tables, tmp_path / "whole.parquet")
    assert sizes == [24] * 5 + [3]


@pytest.mark.parametrize("count", [1, 5])
def test_responses_in_any_order_give_sorted_scores(tables, tmp_path, count):
    order = np.random.default_rng(0).permutation(CONTEXTS * len(SYSTEMS))
    shuffled = write_tables(tmp_path / "shuffled", order)
    scoring.write_scores(create("f1"), "m", tables, tmp_path / "whole.parquet")
    assert scored_in_shards(create("f1"), shuffled, count, tmp_path) == (tmp_path / "whole.parquet").read_bytes()


def test_a_shard_looks_at_its_own_rows_alone(tables, tmp_path):
    path = tables / "responses.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[-1]["response"] = " "
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.table("responses").arrow()), path)
    out = tmp_path / "out"
    scoring.write_scores(create("f1"), "m", tables, out / "1.parquet", Shard(1, 2))
    with pytest.raises(SchemaError, match=r"record 164 \(context_id=c40, system_id=s3\): column 'response'"):
        scoring.write_scores(create("f1"), "m", tables, out / "2.parquet", Shard(2, 2))
    assert [file.name for file in out.iterdir()] == ["1.parquet"]


def test_the_commands_cut_score_and_merge(tables, tmp_path, capsys):
    assert main(["shards", str(tables), "--size", "50", "--output", str(tmp_path / "cut/shards.json")]) == 0
    cut = read_json(tmp_path / "cut/shards.json")
    assert cut == {"responses": 164, "size": 50, "shards": 4}
    command = ["score", str(tables), "--metric", "f1"]
    paths = [str(tmp_path / f"{number}.parquet") for number in range(1, cut["shards"] + 1)]
    for number, path in enumerate(paths, start=1):
        assert main([*command, "--shard", f"{number}/{cut['shards']}", "--output", path]) == 0
    assert main(["merge", *paths, "--table", "scores", "--output", str(tmp_path / "merged.parquet")]) == 0
    assert main([*command, "--output", str(tmp_path / "whole.parquet")]) == 0
    assert (tmp_path / "merged.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    capsys.readouterr()
    assert main([*command, "--shard", "2/4"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + pq.read_metadata(paths[1]).num_rows


def test_what_the_commands_refuse(tables, tmp_path, capsys):
    def fails(*arguments):
        assert main(list(map(str, arguments))) == 1
        return capsys.readouterr().err

    (tmp_path / "mine.csv").write_text("response,reference\nhi,hi\n")
    score = ["--metric", "f1", "--output", tmp_path / "out.parquet"]
    assert "mine.csv is no folder; expected a folder of tables" in fails(
        "score", tmp_path / "mine.csv", *score, "--shard", "1/2"
    )
    assert "shard '5'" in fails("score", tables, *score, "--shard", "5")
    assert "shard 5/4; expected" in fails("score", tables, *score, "--shard", "5/4")
    assert "shards of 0 responses" in fails("shards", tables, "--size", 0, "--output", tmp_path / "s.json")
    assert "no such file" in fails("shards", tmp_path / "none", "--size", 9, "--output", tmp_path / "s.json")
    whole = tables / "responses.parquet"
    assert "expected .parquet" in fails("merge", whole, "--table", "scores", "--output", tmp_path / "out.csv")
    assert "responses.parquet: no column 'level'" in fails(
        "merge", whole, "--table", "scores", "--output", tmp_path / "out.parquet"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"mine.csv", "tables"}
