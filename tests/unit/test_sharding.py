"""Shards: each row and each text is one shard's; scores are the same, byte for byte, however a table is cut."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ConfigError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.metrics import create, scoring


@given(total=st.integers(0, 1000), count=st.integers(1, 70))
def test_each_row_is_one_shards(total, count):
    spans = [Shard(number, count).of(range(total)) for number in range(1, count + 1)]
    assert [row for span in spans for row in span] == list(range(total))
    assert max(map(len, spans)) - min(map(len, spans)) <= 1, "equal work"


@given(texts=st.lists(st.text(), max_size=30), count=st.integers(1, 20))
def test_each_text_is_one_shard_s(texts, count):
    all_shards = [Shard(number, count) for number in range(1, count + 1)]
    for text in [*texts, "\ud800"]:
        assert sum(shard.holds(text) for shard in all_shards) == 1


def test_texts_are_spread_evenly():
    held = [sum(Shard(number, 8).holds(f"text {n}") for n in range(8000)) for number in range(1, 9)]
    assert all(850 < count < 1150 for count in held)


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/4 ", "1/2/3", "１/４"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ConfigError, match="3/16"):
        Shard.parse(text)


def test_a_shard_reads_as_it_is_written():
    assert str(Shard.parse("3/16")) == "3/16"
    assert Shard.parse("1/1") == WHOLE


CONTEXTS, SYSTEMS = 41, ("gold", "s1", "s2", "s3")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Return a folder of tables of 164 responses, every fourth of which is a reference's."""
    monkeypatch.setattr(scoring, "_PART", 32)
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
    schema.merge(paths[::-1], tmp_path / f"{count}.parquet")
    return (tmp_path / f"{count}.parquet").read_bytes()


@pytest.mark.parametrize("count", [3, 16])
@pytest.mark.parametrize("kind", ["bleu", "rouge"])
def test_scores_are_the_same_whatever_the_shards(tables, tmp_path, kind, count):
    metric = create(kind)
    scoring.write_scores(metric, "m", tables, tmp_path / "whole.parquet")
    assert pq.read_metadata(tmp_path / "whole.parquet").num_rows == 3 * CONTEXTS * len(metric.outputs)
    assert scored_in_shards(metric, tables, count, tmp_path) == (tmp_path / "whole.parquet").read_bytes()


def test_frames_and_files_hold_the_same(tables, tmp_path):
    frames = [scoring.score_tables(create("f1"), "m", tables, Shard(number, 3)) for number in (1, 2, 3)]
    schema.write(tmp_path / "frames.parquet", pd.concat(frames), "scores")
    scoring.write_scores(create("f1"), "m", tables, tmp_path / "whole.parquet")
    assert (tmp_path / "frames.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("count", [2, 5])
def test_responses_in_any_order_give_sorted_scores(tables, tmp_path, count):
    order = np.random.default_rng(0).permutation(CONTEXTS * len(SYSTEMS))
    shuffled = write_tables(tmp_path / "shuffled", order)
    scoring.write_scores(create("f1"), "m", tables, tmp_path / "whole.parquet")
    assert scored_in_shards(create("f1"), shuffled, count, tmp_path) == (tmp_path / "whole.parquet").read_bytes()


def test_the_commands_score_and_merge(tables, tmp_path, capsys):
    command = ["score", str(tables), "--metric", "f1"]
    paths = [str(tmp_path / f"{number}.parquet") for number in range(1, 5)]
    for number, path in enumerate(paths, start=1):
        assert main([*command, "--shard", f"{number}/4", "--output", path]) == 0
    assert main(["merge", *paths, "--output", str(tmp_path / "merged.parquet")]) == 0
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
    whole = tables / "responses.parquet"
    assert "expected .parquet" in fails("merge", whole, "--output", tmp_path / "out.csv")
    assert "responses.parquet: not a shard" in fails("merge", whole, "--output", tmp_path / "out.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"mine.csv", "tables"}
