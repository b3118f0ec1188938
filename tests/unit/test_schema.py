"""Tables: the first fault is named; files come back; rows in any order and in parts give the same bytes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.core.errors import ComperdialError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import write_table

RATING = {
    "dataset": "d",
    "level": "turn",
    "item_id": "c1",
    "system_id": "s1",
    "annotator_id": "ann",
    "position": 0,
    "dimension": "Overall",
    "rating": 3.0,
    "scale_min": 1.0,
    "scale_max": 5.0,
    "source": "human",
}
CONTEXT = {
    "dataset": "d",
    "context_id": "c1",
    "dialogue_id": "d1",
    "turn": 0,
    "history": [{"speaker": "A", "text": "hello"}],
    "references": ["hi"],
    "facts": [],
}
RESPONSE = {"dataset": "d", "context_id": "c1", "system_id": "s1", "response": "hi"}
SCORE = {
    "dataset": "d",
    "level": "turn",
    "item_id": "c1",
    "system_id": "s1",
    "metric": "m",
    "output": "o",
    "value": 0.5,
    "signature": "m|v:1",
}


def check(table, *rows):
    return schema.validate(pd.DataFrame(list(rows)), table, where="file.csv")


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        (
            "ratings",
            [RATING, RATING | {"annotator_id": "bob", "rating": 7}],
            "file.csv, record 2 (level=turn, item_id=c1, system_id=s1, annotator_id=bob, dimension=Overall): "
            "rating 7 is outside its scale; expected 1 to 5",
        ),
        ("ratings", [RATING | {"rating": "good"}], "column 'rating' holds 'good'; expected a finite number"),
        ("ratings", [RATING | {"rating": None}], "no value in column 'rating'; expected a finite number"),
        (
            "ratings",
            [RATING | {"position": -1}],
            "column 'position' holds -1; expected a whole number of 0 or more",
        ),
        ("ratings", [RATING | {"rating": float("inf")}], "column 'rating' holds inf; expected a finite number"),
        ("ratings", [RATING | {"position": 1.5}], "column 'position' holds 1.5; expected a whole number"),
        ("responses", [RESPONSE | {"response": ["hi"]}], "column 'response' holds ['hi']; expected a response"),
        ("responses", [RESPONSE | {"response": 5}], "column 'response' holds 5; expected a response"),
        ("responses", [RESPONSE | {"system_id": True}], "column 'system_id' holds True; expected a name"),
        ("responses", [RESPONSE | {"system_id": float("inf")}], "column 'system_id' holds inf; expected a name"),
        ("ratings", [RATING | {"rating": 1e308}], "column 'rating' holds 1e+308; expected a finite number"),
        ("ratings", [RATING, RATING], "record 2 (level=turn, item_id=c1, system_id=s1, annotator_id=ann"),
        ("responses", [RESPONSE | {"response": "  "}], "column 'response' holds '  '; expected a response that is not"),
        ("responses", [RESPONSE | {"response": None}], "no value in column 'response'"),
        ("contexts", [CONTEXT | {"history": [{"speaker": "A"}]}], "expected a list of {speaker, text}"),
        ("contexts", [CONTEXT | {"references": [""]}], "expected a list of texts, none of them empty"),
        ("contexts", [CONTEXT | {"turn": 1.5}], "column 'turn' holds 1.5; expected a whole number of 0 or more"),
        (
            "systems",
            [{"dataset": "d", "system_id": "s", "kind": "robot", "track": None, "description": ""}],
            "column 'kind' holds 'robot'; expected one of agent, human, reference",
        ),
        ("scores", [SCORE | {"cut": -1}], "column 'cut' holds -1; expected a whole number of 0 or more"),
        ("scores", [SCORE | {"cut": 0.5}], "column 'cut' holds 0.5; expected a whole number of 0 or more"),
        ("scores", [SCORE | {"cut": 0}, SCORE | {"item_id": "c2", "cut": None}], "record 2 (level=turn, item_id=c2"),
        ("scores", [SCORE | {"cut": None}], "no value in column 'cut'; expected a whole number of 0 or more"),
        (
            "personas",
            [{"dataset": "d", "dialogue_id": "x", "speaker": "B", "sentences": ["i am x."], "kinds": []}],
            "sentences and kinds of different numbers; expected one kind a sentence",
        ),
    ],
)
def test_the_first_fault_is_named(table, rows, message):
    with pytest.raises(SchemaError) as caught:
        check(table, *rows)
    assert message in str(caught.value)


def test_how_many_more_are_wrong_is_said():
    rows = [RESPONSE | {"context_id": str(n), "response": "" if n else "hi"} for n in range(4)]
    with pytest.raises(SchemaError, match=r"record 2 .*3 records in all"):
        check("responses", *rows)


def test_a_missing_column_names_those_that_are_there():
    with pytest.raises(SchemaError, match=r"no column 'response'.*It has: dataset, context_id"):
        check("responses", {k: v for k, v in RESPONSE.items() if k != "response"})


def test_an_unknown_column_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"'respons'.*Did you mean 'response'"):
        check("responses", RESPONSE | {"respons": "x"})


def test_an_unknown_table_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'contexts'"):
        schema.table("context")


def test_ids_that_look_like_numbers_become_text():
    for name in (7, 7.0, "7", "7.0", " 7"):
        assert check("responses", RESPONSE | {"context_id": name})["context_id"].tolist() == ["7"]
    assert check("responses", RESPONSE | {"context_id": 1.5})["context_id"].tolist() == ["1.5"]


def test_names_survive_every_format(tmp_path):
    """Names that look like numbers are names: 007 is not 7, and 1e5 is not 100000."""
    names = ["007", "7", "1e5", "0x1", "NA", "null", "True", "1.5"]
    frame = pd.DataFrame([RESPONSE | {"context_id": name, "response": name} for name in names])
    for suffix in ("parquet", "csv", "jsonl"):
        schema.write(tmp_path / f"r.{suffix}", frame, "responses")
        back = schema.read(tmp_path / f"r.{suffix}", "responses")
        assert sorted(back["context_id"]) == sorted(names)
        assert sorted(back["response"]) == sorted(names)


def test_small_numbers_survive_every_format(tmp_path):
    row = SCORE | {"value": 6.389431e-10}
    for suffix in ("parquet", "csv", "jsonl"):
        schema.write(tmp_path / f"s.{suffix}", pd.DataFrame([row]), "scores")
        assert schema.read(tmp_path / f"s.{suffix}", "scores")["value"][0] == pytest.approx(6.389431e-10, rel=1e-6)


def test_a_file_that_fails_is_not_written(tmp_path):
    with pytest.raises(SchemaError):
        schema.write(tmp_path / "responses.parquet", pd.DataFrame([RESPONSE | {"response": ""}]), "responses")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("table", "row"),
    [("contexts", CONTEXT), ("ratings", RATING), ("ratings", RATING | {"position": None})],
)
def test_tables_come_back_from_every_format(tmp_path, table, row, suffix):
    path = tmp_path / f"t.{suffix}"
    schema.write(path, pd.DataFrame([row]), table)
    back = schema.read(path, table).to_dict("records")[0]
    assert {k: None if v is pd.NA else v for k, v in back.items()} == row


def test_an_empty_table_keeps_its_columns(tmp_path):
    schema.write(tmp_path / "p.parquet", pd.DataFrame(columns=schema.table("personas").columns), "personas")
    back = schema.read(tmp_path / "p.parquet", "personas")
    assert list(back.columns) == schema.table("personas").columns
    assert back.empty


def test_a_list_column_of_a_csv_must_be_json(tmp_path):
    path = tmp_path / "contexts.csv"
    path.write_text("dataset,context_id,dialogue_id,turn,history,references,facts\nd,c,d,0,hello,[],[]\n")
    with pytest.raises(FileError, match=r"record 1, column 'history'.* not valid JSON .*expected a JSON list"):
        schema.read(path, "contexts")


def test_a_broken_parquet_file_is_named(tmp_path):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(FileError, match="not a readable Parquet file"):
        schema.read(path, "scores")
    with pytest.raises(FileError, match="no such file"):
        schema.read(tmp_path / "none.parquet", "scores")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_scores_that_do_not_say_what_was_cut_are_of_whole_inputs(tmp_path, suffix):
    path = tmp_path / f"scores.{suffix}"
    write_table(path, pd.DataFrame([SCORE]))
    back = schema.read(path, "scores")
    assert list(back.columns) == schema.table("scores").columns
    assert back["cut"].tolist() == [0]
    schema.write(path, back.assign(cut=7), "scores")
    again = schema.read(path, "scores")
    assert again["cut"].tolist() == [7], "what the file says counts"
    assert again["cut"].dtype == back["cut"].dtype


def test_a_table_that_others_wrote_is_checked_and_sorted_before_its_first_part(tmp_path):
    path = tmp_path / "responses.parquet"
    rows = [RESPONSE | {"context_id": name} for name in ("a", "b", "c", "a")]
    write_table(path, pd.DataFrame(rows))
    with pytest.raises(SchemaError, match=r"record 4 \(context_id=a, system_id=s1\): the same key a second time"):
        next(schema.read_parts(path, "responses", 2))
    write_table(path, pd.DataFrame([*rows[2:0:-1], rows[0]]))
    parts = schema.read_parts(path, "responses", 2)
    assert [list(part["context_id"]) for part in parts] == [["a", "b"], ["c"]]


def test_an_error_between_two_parts_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "responses.parquet"
    rows = schema.validate(pd.DataFrame([RESPONSE]), "responses")
    for before in (None, b"an earlier file"):
        if before:
            path.write_bytes(before)
        with pytest.raises(RuntimeError), schema.writing(path, "responses") as add:
            add(rows)
            raise RuntimeError
        assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == (
            [("responses.parquet", before)] if before else []
        )


@given(
    rating=st.floats(allow_nan=False, allow_infinity=False, width=32),
    low=st.integers(-5, 5),
    width=st.integers(0, 9),
)
def test_ratings_pass_exactly_when_inside_their_scale(rating, low, width):
    row = RATING | {"rating": rating, "scale_min": float(low), "scale_max": float(low + width)}
    if low <= rating <= low + width:
        assert len(check("ratings", row)) == 1
    else:
        with pytest.raises(ComperdialError):
            check("ratings", row)


def test_a_column_whose_name_stands_twice_is_refused(tmp_path):
    path = tmp_path / "contexts.parquet"
    schema.write(path, pd.DataFrame([CONTEXT]), "contexts")
    content = pq.read_table(path)
    for name in ("turn", "facts"):
        pq.write_table(content.append_column(name, content.column(name)), path)
        # Arrow may refuse it first.
        with pytest.raises(ComperdialError, match=r"contexts\.parquet: (not a readable|two columns have one name)"):
            schema.read(path, "contexts")


def test_what_may_be_missing_may_be_left_out():
    assert check("ratings", {k: v for k, v in RATING.items() if k != "position"})["position"].isna().all()
    with pytest.raises(SchemaError, match=r"no column 'scale_max'; expected the columns of table 'ratings'"):
        check("ratings", {k: v for k, v in RATING.items() if k != "scale_max"})


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
        patch.setattr(schema, "_GROUP", 16)
        patch.setattr(schema, "_FEW", 4)
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
    back = schema.read(folder / "sorted.parquet", "judgements")
    pd.testing.assert_frame_equal(back, expected, check_dtype=len(frame) > 0)


@settings(deadline=None, max_examples=15)
@given(
    total=st.integers(0, 60), size=st.integers(1, 20), start=st.integers(0, 70), length=st.none() | st.integers(0, 70)
)
def test_a_range_of_rows_is_read_in_parts(small, tmp_path_factory, total, size, start, length):
    path = tmp_path_factory.mktemp("range") / "t.parquet"
    whole_of(judgements([(name, "s", n) for n in range(6) for name in NAMES][:total]), path)
    stop = None if length is None else start + length
    expected = schema.read(path, "judgements")[start:stop].reset_index(drop=True)
    back = list(schema.read_parts(path, "judgements", size, start, stop))
    assert [len(part) for part in back] == [min(size, len(expected) - at) for at in range(0, len(expected), size)]
    if back:
        pd.testing.assert_frame_equal(pd.concat(back, ignore_index=True), expected)
    assert schema.count(path, "judgements") == total


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


@pytest.mark.parametrize("apart", [1, 30])
def test_a_key_that_is_added_twice_is_found(small, tmp_path, apart):
    frame = judgements([("a", "s", n) for n in range(60)])
    (tmp_path / "sorted.parquet").write_bytes(b"earlier")
    with (
        pytest.raises(SchemaError, match=r"sorted\.parquet, record .*sample=7\): the same key a second time"),
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


def test_damage_is_found(tmp_path):
    path = tmp_path / "t.parquet"
    content = bytearray(whole_of(judgements([("a", "s", n) for n in range(48)]), path))
    column = pq.read_metadata(path).row_group(0).column(7)
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match=r"t\.parquet: not a readable Parquet file"):
        schema.read(path, "judgements")


def test_parts_that_are_not_all_of_one_table_are_never_merged(tmp_path):
    frame = judgements([("a", str(number), 0) for number in range(10)])
    paths = parts_of(tmp_path, frame, 4)
    halves = parts_of(tmp_path, frame, 2, "halves")
    merged, whole, broken = (tmp_path / f"{name}.parquet" for name in ("merged", "whole", "broken"))
    whole_of(frame, whole)
    broken.write_bytes(b"PAR1")
    pd.read_parquet(paths[3]).to_parquet(edited := tmp_path / "edited.parquet")
    for match, *files in (
        ("cannot be merged: none",),
        ("cannot be merged: part 1 of 4 of table judgements, part 3 of 4", paths[0], paths[2]),
        ("part 1 of 1 of table judgements", *paths, whole),
        ("edited.parquet: not a part", *paths[:3], edited),
        ("part 1 of 4 of table judgements, part 1 of 4", *paths, paths[0]),
        ("cannot be merged: part 1 of 2", halves[0]),
        ("broken.parquet: not a readable Parquet file", *paths, broken),
        ("no such file", *paths, tmp_path / "none.parquet"),
    ):
        with pytest.raises(ComperdialError, match=match):
            schema.merge(files, merged)
        assert not merged.exists()
