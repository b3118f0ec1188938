"""Merging and sorting tables: the bytes of what one process writes, in memory that does not grow."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.errors import ConfigError, FileError, SchemaError
from comperdial.schema import merging, parts
from comperdial.sharding import Shard

# Names whose order is one by code point and another by UTF-16 or by a dictionary.
NAMES = ["a", "B", "é", "e\u0301", "\uffff", "\U0001f600", "a b", "ab", "10", "9"]
KEYS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 12))


def judgements(keys):
    """Return a table whose key has texts and a number, and which has values that are missing."""
    rows = [
        {
            "dataset": "d",
            "level": "turn",
            "item_id": item,
            "system_id": system,
            "metric": "m",
            "output": "o",
            "sample": sample,
            "key": None,
            "tries": 1,
            "value": None if sample % 3 else sample / 7,
            "failure": "no number" if sample % 3 else None,
            "rationale": f"{item} {system}",
            "input_tokens": None if sample % 2 else sample,
            "output_tokens": None,
            "cost": None,
        }
        for item, system, sample in keys
    ]
    if not rows:
        return schema.empty("judgements")
    return schema.validate(pd.DataFrame(rows), "judgements")


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def whole_of(frame, path, name="judgements"):
    """Write a frame by the plain way: all of it, sorted by pandas."""
    with schema.writing_parts(path, name) as add:
        add(frame)
    return path.read_bytes()


@pytest.fixture(scope="module")
def small():
    """Make groups, runs and batches so small that some rows have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_GROUP", 16)
        patch.setattr(parts, "_DECODED", 3)
        patch.setattr(parts, "_FEW", 4)
        patch.setattr(merging, "_HELD", 12)
        patch.setattr(merging, "_LEAST", 2)
        patch.setattr(merging, "_RUN", 10)
        patch.setattr(merging, "_OPEN", 3)
        yield


@settings(deadline=None, max_examples=25)
@given(keys=st.lists(KEYS, unique=True, max_size=70), data=st.data())
def test_shards_cut_anyhow_merge_into_the_whole(small, tmp_path_factory, keys, data):
    folder = tmp_path_factory.mktemp("merge")
    frame = judgements(keys)
    count = data.draw(st.integers(1, 8))
    which = pd.Series([data.draw(st.integers(0, count - 1)) for _ in keys], dtype="int64")
    paths = [folder / f"{number}.parquet" for number in range(count)]
    for number, path in enumerate(paths):
        whole_of(frame[(which == number).to_numpy()], path)
    expected = whole_of(frame, folder / "whole.parquet")
    before = files_of(folder)
    merging.merge(paths, folder / "merged.parquet", "judgements")
    assert (folder / "merged.parquet").read_bytes() == expected
    assert files_of(folder) == sorted([*before, "merged.parquet"]), "nothing else is left"
    # Onto one of the tables.
    merging.merge(paths, paths[0], "judgements")
    assert paths[0].read_bytes() == expected


@settings(deadline=None, max_examples=25)
@given(keys=st.lists(KEYS, unique=True, max_size=70), data=st.data())
def test_rows_in_any_order_are_written_sorted(small, tmp_path_factory, keys, data):
    folder = tmp_path_factory.mktemp("sorted")
    frame = judgements(keys)
    if data.draw(st.booleans()):
        frame = frame.sort_values(list(schema.table("judgements").key), ignore_index=True)
    with merging.writing_sorted(folder / "sorted.parquet", "judgements") as add:
        start = 0
        while start < len(frame):
            size = data.draw(st.integers(0, 25))
            add(frame[start : start + size])
            start += size
    assert (folder / "sorted.parquet").read_bytes() == whole_of(frame, folder / "whole.parquet")
    assert files_of(folder) == ["sorted.parquet", "whole.parquet"]


@settings(deadline=None, max_examples=20)
@given(keys=st.lists(KEYS, unique=True, min_size=1, max_size=70), size=st.integers(1, 70))
def test_bytes_do_not_depend_on_the_parts(small, tmp_path_factory, keys, size):
    folder = tmp_path_factory.mktemp("parts")
    frame = judgements(keys).sort_values(list(schema.table("judgements").key))
    with schema.writing_parts(folder / "parts.parquet", "judgements") as add:
        for start in range(0, len(frame), size):
            add(frame[start : start + size])
    assert (folder / "parts.parquet").read_bytes() == whole_of(frame, folder / "whole.parquet")
    metadata = pq.read_metadata(folder / "parts.parquet")
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert groups == [min(16, len(frame) - start) for start in range(0, len(frame), 16)]


@settings(deadline=None, max_examples=25)
@given(
    total=st.integers(0, 60), size=st.integers(1, 20), start=st.integers(0, 70), length=st.none() | st.integers(0, 70)
)
def test_a_range_of_rows_is_read_in_parts(small, tmp_path_factory, total, size, start, length):
    path = tmp_path_factory.mktemp("range") / "t.parquet"
    frame = judgements([(name, "s", n) for n in range(6) for name in NAMES][:total])
    whole_of(frame, path)
    stop = None if length is None else start + length
    expected = schema.read(path, "judgements")[start:stop].reset_index(drop=True)
    found = list(schema.read_parts(path, "judgements", size, start, stop))
    assert [len(part) for part in found] == [min(size, len(expected) - at) for at in range(0, len(expected), size)]
    if found:
        pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), expected)
    assert schema.count(path, "judgements") == total


def test_row_groups_out_of_range_are_not_read(small, tmp_path):
    path = tmp_path / "t.parquet"
    frame = judgements([("a", "s", n) for n in range(48)])
    whole_of(frame, path)
    content = bytearray(path.read_bytes())
    for group in (0, 2):
        column = pq.read_metadata(path).row_group(group).column(7)
        at = column.dictionary_page_offset or column.data_page_offset
        content[at : at + 12] = b"\xff" * 12
    path.write_bytes(bytes(content))
    assert sum(map(len, schema.read_parts(path, "judgements", 5, 16, 32))) == 16
    with pytest.raises(FileError, match="not a readable Parquet file"):
        list(schema.read_parts(path, "judgements", 5, 16, 33))


def test_tables_with_lists_are_read_in_parts(tmp_path):
    row = {"dataset": "d", "dialogue_id": "x", "turn": 0, "history": [], "references": ["a", "b"], "facts": []}
    said = [{"speaker": "A", "text": "hi"}]
    frame = pd.DataFrame([row | {"context_id": f"c{n}", "history": said * (n % 3)} for n in range(7)])
    schema.write(tmp_path / "contexts.parquet", frame, "contexts")
    found = pd.concat(schema.read_parts(tmp_path / "contexts.parquet", "contexts", 3), ignore_index=True)
    pd.testing.assert_frame_equal(found, schema.read(tmp_path / "contexts.parquet", "contexts"))


def test_a_key_that_two_tables_hold_is_named_with_both(small, tmp_path):
    paths = [tmp_path / f"{name}.parquet" for name in ("one", "two", "three")]
    for number, path in enumerate(paths):
        whole_of(judgements([("a", "s", 3 * n + number) for n in range(12)]), path)
    whole_of(judgements([("a", "s", n) for n in (1, 25, 40)]), paths[1])
    (tmp_path / "merged.parquet").write_bytes(b"earlier")
    before = files_of(tmp_path)
    whole_of(judgements([("a", "s", n) for n in (2, 26, 40)]), paths[2])
    message = r"two\.parquet and .*three\.parquet: the same key a second time \(dataset=d, .*item_id=a, .*sample=40\)"
    with pytest.raises(SchemaError, match=message):
        merging.merge(paths, tmp_path / "merged.parquet", "judgements")
    with pytest.raises(SchemaError, match="the same key a second time"):
        merging.merge([paths[0], paths[0]], tmp_path / "merged.parquet", "judgements")
    assert files_of(tmp_path) == before
    assert (tmp_path / "merged.parquet").read_bytes() == b"earlier"


@pytest.mark.parametrize("apart", [1, 30])
def test_a_key_that_is_added_twice_is_found(small, tmp_path, apart):
    """In the same run, or in two."""
    frame = judgements([("a", "s", n) for n in range(60)])
    with (
        pytest.raises(SchemaError, match=r"sorted\.parquet: the same key a second time \(.*sample=7\)"),
        merging.writing_sorted(tmp_path / "sorted.parquet", "judgements") as add,
    ):
        add(frame[:apart])
        add(frame[7:8])
        add(frame[apart:])
        add(frame[7:8])
    assert files_of(tmp_path) == []


def test_an_error_leaves_no_temporary_files(small, tmp_path):
    (tmp_path / "sorted.parquet").write_bytes(b"earlier")
    frame = judgements([("a", "s", n) for n in range(60)])
    with pytest.raises(RuntimeError), merging.writing_sorted(tmp_path / "sorted.parquet", "judgements") as add:
        for start in range(50, -1, -10):
            add(frame[start : start + 10])
        assert len(list(tmp_path.rglob("*.parquet"))) > 3, "runs wait in files"
        raise RuntimeError
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("sorted.parquet", b"earlier")]


def test_rows_that_come_in_order_are_one_run(small, tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "_merged", None)
    frame = judgements([("a", "s", n) for n in range(60)])
    with merging.writing_sorted(tmp_path / "sorted.parquet", "judgements") as add:
        for start in range(0, 60, 7):
            add(frame[start : start + 7][::-1])
    assert (tmp_path / "sorted.parquet").read_bytes() == whole_of(frame, tmp_path / "whole.parquet")


def test_what_cannot_be_merged_is_said(small, tmp_path):
    out = tmp_path / "out/merged.parquet"
    with pytest.raises(ConfigError, match="no tables to merge"):
        merging.merge([], out, "scores")
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    whole_of(judgements([("a", "s", n) for n in range(9)]), good)
    rows = judgements([("b", "s", n) for n in range(9)])

    def fails(match, content, error=SchemaError):
        pq.write_table(parts.to_arrow(content, schema.table("judgements")), bad)
        with pytest.raises(error, match=match):
            merging.merge([good, bad], out, "judgements")
        assert files_of(out.parent) == []

    order = [0, 1, 2, 3, 4, 6, 5, 7, 8]
    fails(r"bad\.parquet, record 7: not after the record before it; expected records sorted by", rows.iloc[order])
    fails(r"bad\.parquet, record 4: not after the record", rows.iloc[[0, 1, 2, 2, 3]])
    fails(r"bad\.parquet, record 6 .*column 'metric' holds ' '", rows.assign(metric=["m"] * 5 + [" "] + ["m"] * 3))
    fails(r"bad\.parquet, record 2 .*no value in column 'output'", rows.assign(output=["o", None] + ["o"] * 7))
    fails(r"bad\.parquet, record 1 .*either a value or why", rows.assign(failure="no"))
    fails(r"bad\.parquet, record 3 .*column 'value' holds inf", rows.assign(value=[0, 0, float("inf")] + [0] * 6))
    for name in ("systems", "scores"):
        # Without rows too.
        schema.write(bad, schema.empty(name), name)
        with pytest.raises(SchemaError, match=r"bad\.parquet: no column"):
            merging.merge([good, bad], out, "judgements")
    bad.write_bytes(b"PAR1")
    with pytest.raises(FileError, match=r"bad\.parquet: not a readable Parquet file"):
        merging.merge([good, bad], out, "judgements")
    with pytest.raises(FileError, match="no such file"):
        merging.merge([good, tmp_path / "none.parquet"], out, "judgements")
    assert files_of(out.parent) == []


def test_tables_of_other_types_of_texts_merge_too(tmp_path):
    """As pandas writes them: they are valid, if not as we store them."""
    frame = judgements([(name, "s", n) for name in sorted(NAMES) for n in range(3)])
    half = len(frame) // 2
    content = pa.Table.from_pandas(frame[half:], preserve_index=False)
    assert content.schema.types != schema.table("judgements").arrow().types
    pq.write_table(content, tmp_path / "theirs.parquet")
    whole_of(frame[:half], tmp_path / "ours.parquet")
    merging.merge([tmp_path / "theirs.parquet", tmp_path / "ours.parquet"], tmp_path / "m.parquet", "judgements")
    assert (tmp_path / "m.parquet").read_bytes() == whole_of(frame, tmp_path / "whole.parquet")


@pytest.mark.parametrize("mixed", [True, False])
def test_memory_does_not_grow_with_the_tables(tmp_path, monkeypatch, mixed):
    monkeypatch.setattr(parts, "_GROUP", 200)
    monkeypatch.setattr(parts, "_DECODED", 50)
    monkeypatch.setattr(merging, "_HELD", 400)
    monkeypatch.setattr(merging, "_LEAST", 50)
    row = {"dataset": "d", "level": "turn", "system_id": "s", "metric": "m", "output": "o", "value": 0.5}

    def most_held(rows):
        ids = [f"{n:06}" for n in range(rows)]
        frame = schema.validate(pd.DataFrame({**row, "item_id": ids, "signature": "s" * 500}), "scores")
        paths = [tmp_path / f"{number}.parquet" for number in range(4)]
        for number, path in enumerate(paths):
            own = frame[number::4] if mixed else frame[number * rows // 4 : (number + 1) * rows // 4]
            whole_of(own, path, "scores")
        del frame, own
        before = pa.total_allocated_bytes()
        held = []
        spy = merging._merged

        def watched(*arguments):
            for content in spy(*arguments):
                held.append(pa.total_allocated_bytes() - before)
                yield content

        with monkeypatch.context() as patch:
            patch.setattr(merging, "_merged", watched)
            merging.merge(paths, tmp_path / "merged.parquet", "scores")
        assert pq.read_metadata(tmp_path / "merged.parquet").num_rows == rows
        assert len(held) > rows / 1000
        return max(held)

    few, many = most_held(4_000), most_held(32_000)
    # Of eight times as many rows, whose texts alone are 16 MB.
    assert many < 3 * few
    assert many < 32_000 * 500 / 4


def shards_of(folder, frame, count, made="f1"):
    """Write a table as shards, row by row in turn."""
    paths = []
    for number in range(1, count + 1):
        paths.append(folder / f"{made}-{number}.parquet")
        with merging.writing_sorted(paths[-1], "judgements", Shard(number, count), made) as add:
            add(frame.iloc[number - 1 :: count])
    return paths


def test_shards_say_which_they_are_and_what_is_made_of_all_does_not(tmp_path):
    frame = judgements([("a", str(number), 0) for number in range(10)])
    paths = shards_of(tmp_path, frame, 3)
    assert pq.read_metadata(paths[1]).metadata[b"comperdial.shard"] == b"2/3"
    merging.merge(paths[::-1], tmp_path / "merged.parquet", "judgements")
    assert (tmp_path / "merged.parquet").read_bytes() == whole_of(frame, tmp_path / "whole.parquet")
    with merging.writing_sorted(tmp_path / "one.parquet", "judgements", Shard(1, 1), "f1") as add:
        add(frame)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_shards_that_are_not_all_of_one_thing_are_never_merged(tmp_path):
    frame = judgements([("a", str(number), 0) for number in range(10)])
    paths = shards_of(tmp_path, frame, 4)
    others = shards_of(tmp_path, frame, 4, "f1|text:raw")
    merged = tmp_path / "merged.parquet"
    with pytest.raises(SchemaError, match="2 of 4 shards missing: 2, 4"):
        merging.merge([paths[0], paths[2]], merged, "judgements")
    with pytest.raises(SchemaError, match=r"shards of different things: f1, and f1\|text:raw"):
        merging.merge([*paths[:3], others[3]], merged, "judgements")
    whole_of(frame, tmp_path / "whole.parquet")
    with pytest.raises(SchemaError, match=r"whole.parquet: no shard"):
        merging.merge([*paths, tmp_path / "whole.parquet"], merged, "judgements")
    # Of another cut into shards: they take the places of two.
    halves = shards_of(tmp_path, frame, 2)
    with pytest.raises(SchemaError, match=r"shard [34]/4"):
        merging.merge([*halves, *paths[2:]], merged, "judgements")
    assert not merged.exists()


def test_a_shard_that_was_written_in_several_runs_says_so_too(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "_RUN", 4)
    frame = judgements([("a", str(number), 0) for number in range(9, -1, -1)])
    with merging.writing_sorted(tmp_path / "1.parquet", "judgements", Shard(1, 2), "f1") as add:
        for row in range(len(frame)):
            add(frame.iloc[[row]])
    assert pq.read_metadata(tmp_path / "1.parquet").metadata[b"comperdial.shard"] == b"1/2"
    with pytest.raises(SchemaError, match="1 of 2 shards missing: 2"):
        merging.merge([tmp_path / "1.parquet"], tmp_path / "merged.parquet", "judgements")
