"""Parquet files: sorted whatever order rows come in, read in parts, trusted only if ours, and merged from parts."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.schema import parquet

# Names whose order is one by code point and another by UTF-16 or by a dictionary.
NAMES = ["a", "B", "é", "e\u0301", "\uffff", "\U0001f600", "a b", "ab", "10", "9"]
KEYS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 12))
KEY = list(schema.table("judgements").key)


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
    return pd.DataFrame(rows, columns=schema.table("judgements").columns)


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def whole_of(frame, path):
    schema.write(path, frame, "judgements")
    return path.read_bytes()


def parts_of(folder, frame, count, made="f1", step=None):
    """Write a table in parts: ranges of it, or row by row in turn."""
    paths = []
    for number in range(1, count + 1):
        paths.append(folder / f"{made}-{number}.parquet")
        ends = [len(frame) * end // count for end in (number - 1, number)]
        own = frame.iloc[number - 1 :: count] if step else frame.iloc[ends[0] : ends[1]]
        with schema.writing(paths[-1], "judgements", (number, count)) as add:
            add(own)
    return paths


@pytest.fixture(scope="module")
def small():
    """Make groups so small that some rows have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP", 16)
        patch.setattr(parquet, "_FEW", 4)
        yield


@settings(deadline=None, max_examples=12)
@given(
    keys=st.lists(KEYS, unique=True, max_size=40), ordered=st.booleans(), sizes=st.lists(st.integers(0, 25), min_size=9)
)
def test_rows_in_any_order_and_parts_give_the_same_bytes(small, tmp_path_factory, keys, ordered, sizes):
    folder = tmp_path_factory.mktemp("sorted")
    frame = judgements(keys)
    if ordered:
        frame = frame.sort_values(KEY, ignore_index=True)
    with schema.writing(folder / "sorted.parquet", "judgements") as add:
        for start, size in zip(np.cumsum([0, *sizes]), [*sizes, len(frame)], strict=True):
            add(frame[start : start + size])
    assert (folder / "sorted.parquet").read_bytes() == whole_of(frame, folder / "whole.parquet")
    assert files_of(folder) == ["sorted.parquet", "whole.parquet"]
    metadata = pq.read_metadata(folder / "sorted.parquet")
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert groups == ([min(16, len(frame) - start) for start in range(0, len(frame), 16)] or [0])
    expected = schema.validate(frame, "judgements").sort_values(KEY, ignore_index=True)
    found = schema.read(folder / "sorted.parquet", "judgements")
    pd.testing.assert_frame_equal(found, expected, check_dtype=len(frame) > 0)


@settings(deadline=None, max_examples=15)
@given(
    total=st.integers(0, 60), size=st.integers(1, 20), start=st.integers(0, 70), length=st.none() | st.integers(0, 70)
)
def test_a_range_of_rows_is_read_in_parts(small, tmp_path_factory, total, size, start, length):
    path = tmp_path_factory.mktemp("range") / "t.parquet"
    whole_of(judgements([(name, "s", n) for n in range(6) for name in NAMES][:total]), path)
    stop = None if length is None else start + length
    expected = schema.read(path, "judgements")[start:stop].reset_index(drop=True)
    found = list(schema.read_parts(path, "judgements", size, start, stop))
    assert [len(part) for part in found] == [min(size, len(expected) - at) for at in range(0, len(expected), size)]
    if found:
        pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), expected)
    assert schema.count(path, "judgements") == total


def test_damage_is_found_where_it_is_read(small, tmp_path):
    path = tmp_path / "t.parquet"
    content = bytearray(whole_of(judgements([("a", "s", n) for n in range(48)]), path))
    for group in (0, 2):
        column = pq.read_metadata(path).row_group(group).column(7)
        at = column.data_page_offset + column.total_compressed_size - 1
        content[at] ^= 1
    path.write_bytes(bytes(content))
    assert sum(map(len, schema.read_parts(path, "judgements", 5, 16, 32))) == 16
    for read in (
        lambda: list(schema.read_parts(path, "judgements", 5, 16, 33)),
        lambda: schema.read(path, "judgements"),
    ):
        with pytest.raises(FileError, match=r"t\.parquet: not a readable Parquet file"):
            read()


def test_what_was_changed_by_hand_is_checked(tmp_path):
    path = tmp_path / "t.parquet"
    whole_of(judgements([("a", "s", n) for n in range(9)]), path)
    for edit in (
        lambda: pq.write_table(
            pq.read_table(path).set_column(4, "metric", pa.array(["m"] * 5 + [" "] + ["m"] * 3)), path
        ),
        lambda: pd.read_parquet(path).assign(metric=["m"] * 5 + [" "] + ["m"] * 3).to_parquet(path),
    ):
        edit()
        with pytest.raises(SchemaError, match=r"t\.parquet, record 6 .*column 'metric' holds ' '"):
            schema.read(path, "judgements")
    schema.write(path, schema.empty("systems"), "systems")
    with pytest.raises(SchemaError, match=r"t\.parquet: no column"):
        schema.read(path, "judgements")


def test_tables_with_lists_are_read_in_parts(tmp_path):
    row = {"dataset": "d", "dialogue_id": "x", "turn": 0, "history": [], "references": ["a", "b"], "facts": []}
    said = [{"speaker": "A", "text": "hi"}]
    frame = pd.DataFrame([row | {"context_id": f"c{n}", "history": said * (n % 3)} for n in range(7)])
    schema.write(tmp_path / "contexts.parquet", frame, "contexts")
    found = pd.concat(schema.read_parts(tmp_path / "contexts.parquet", "contexts", 3), ignore_index=True)
    pd.testing.assert_frame_equal(found, schema.read(tmp_path / "contexts.parquet", "contexts"))


@pytest.mark.parametrize("apart", [1, 30])
def test_a_key_that_is_added_twice_is_found(small, tmp_path, apart):
    frame = judgements([("a", "s", n) for n in range(60)])
    (tmp_path / "sorted.parquet").write_bytes(b"earlier")
    with (
        pytest.raises(SchemaError, match=r"sorted\.parquet: the same key a second time \(.*sample=7\)"),
        schema.writing(tmp_path / "sorted.parquet", "judgements") as add,
    ):
        add(frame[:apart])
        add(frame[7:8])
        add(frame[apart:])
        add(frame[7:8])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("sorted.parquet", b"earlier")]


@pytest.mark.parametrize("step", [False, True])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_parts_merge_into_the_whole(small, tmp_path, count, step):
    """Ranges of a table, some of them empty; and rows in turn."""
    frame = judgements([("a", f"{number:02}", 0) for number in range(40 if count == 3 else 10)])
    paths = parts_of(tmp_path, frame, count, step=step)
    schema.merge(paths[::-1], tmp_path / "merged.parquet")
    assert (tmp_path / "merged.parquet").read_bytes() == whole_of(frame, tmp_path / "whole.parquet")


def test_parts_that_are_not_all_of_one_table_are_never_merged(tmp_path):
    frame = judgements([("a", str(number), 0) for number in range(10)])
    paths = parts_of(tmp_path, frame, 4)
    halves = parts_of(tmp_path, frame, 2, "halves")
    merged, whole, broken = (tmp_path / f"{name}.parquet" for name in ("merged", "whole", "broken"))
    whole_of(frame, whole)
    broken.write_bytes(b"PAR1")
    pd.read_parquet(paths[3]).to_parquet(edited := tmp_path / "edited.parquet")

    def fails(match, *files, error=SchemaError):
        with pytest.raises(error, match=match):
            schema.merge(files, merged)
        assert not merged.exists()

    fails("no parts to merge", error=ConfigError)
    fails("2 of 4 parts missing: 2, 4", paths[0], paths[2])
    fails("part 1 of 1 of table judgements", *paths, whole)
    fails(r"edited\.parquet: not a part", *paths[:3], edited)
    fails("part 1 of 4 of table judgements", *paths, paths[0])
    fails("1 of 2 parts missing: 2", halves[0])
    fails(r"broken\.parquet: not a readable Parquet file", *paths, broken, error=FileError)
    fails("no such file", *paths, tmp_path / "none.parquet", error=FileError)
