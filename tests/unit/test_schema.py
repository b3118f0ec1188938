import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
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
        ("contexts", [CONTEXT | {"turn": 1.5}], "column 'turn' holds 1.5; expected a turn counted from 0"),
        (
            "systems",
            [{"dataset": "d", "system_id": "s", "kind": "robot", "track": None, "description": ""}],
            "column 'kind' holds 'robot'; expected one of agent, human, reference",
        ),
        ("scores", [SCORE | {"cut": -1}], "column 'cut' holds -1; expected a count"),
        ("scores", [SCORE | {"cut": 0.5}], "column 'cut' holds 0.5; expected a count"),
        ("scores", [SCORE | {"cut": 0}, SCORE | {"item_id": "c2", "cut": None}], "record 2 (level=turn, item_id=c2"),
        ("scores", [SCORE | {"cut": None}], "no value in column 'cut'; expected a count"),
        (
            "personas",
            [{"dataset": "d", "dialogue_id": "x", "speaker": "B", "sentences": ["i am x."], "kinds": []}],
            "1 sentences and 0 kinds; expected one kind a sentence",
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


def test_row_order_does_not_change_the_bytes(tmp_path):
    rows = [RESPONSE | {"context_id": str(n)} for n in range(20)]
    schema.write(tmp_path / "a.parquet", pd.DataFrame(rows), "responses")
    schema.write(tmp_path / "b.parquet", pd.DataFrame(rows[::-1]), "responses")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_list_column_of_a_csv_must_be_json(tmp_path):
    path = tmp_path / "contexts.csv"
    path.write_text("dataset,context_id,dialogue_id,turn,history,references,facts\nd,c,d,0,hello,[],[]\n")
    with pytest.raises(SchemaError, match=r"record 1: column 'history' holds 'hello' .*expected a JSON list"):
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
    found = schema.read(path, "scores")
    assert list(found.columns) == schema.table("scores").columns
    assert found["cut"].tolist() == [0]
    schema.write(path, found.assign(cut=7), "scores")
    again = schema.read(path, "scores")
    assert again["cut"].tolist() == [7], "what the file says counts"
    assert again["cut"].dtype == found["cut"].dtype


def test_only_what_has_a_default_may_be_left_out():
    missing = {"value": 0.5, "p": 0.1, "n": 3, "coverage": 1.0, "signature": "m|v:1", "target": "Overall"}
    row = {k: v for k, v in SCORE.items() if k in schema.table("correlations").columns} | missing | {"lacking": None}
    with pytest.raises(SchemaError, match=r"no column .*'cut'; expected the columns of table 'correlations'"):
        check("correlations", row | {"coefficient": "pearson"})
    left_out = [f.name for spec in schema.TABLES.values() for f in spec.fields if f.default is not None]
    assert left_out == ["cut"], "a column that reads as a number nobody wrote is a decision, taken once"


def test_parts_of_a_file_are_the_file(tmp_path):
    path = tmp_path / "responses.parquet"
    rows = [RESPONSE | {"context_id": f"{n:02}", "response": "hi " * (n + 1)} for n in range(10)]
    schema.write(path, pd.DataFrame(rows), "responses")
    whole = schema.read(path, "responses")
    for size in (1, 3, 10, 99):
        parts = list(schema.read_parts(path, "responses", size))
        assert [len(part) for part in parts] == [min(size, 10 - start) for start in range(0, 10, size)]
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)


def test_a_table_that_others_wrote_is_checked_and_sorted_before_its_first_part(tmp_path):
    path = tmp_path / "responses.parquet"
    rows = [RESPONSE | {"context_id": name} for name in ("a", "b", "c", "a")]
    write_table(path, pd.DataFrame(rows))
    with pytest.raises(SchemaError, match=r"record 4 \(context_id=a, system_id=s1\): the same key a second time"):
        next(schema.read_parts(path, "responses", 2))
    write_table(path, pd.DataFrame([*rows[2:0:-1], rows[0]]))
    parts = schema.read_parts(path, "responses", 2)
    assert [list(part["context_id"]) for part in parts] == [["a", "b"], ["c"]]


def test_written_part_by_part_it_is_what_is_written_at_once(tmp_path):
    rows = [RESPONSE | {"context_id": f"{n:02}", "system_id": s} for n in range(6) for s in ("a", "b")]
    schema.write(tmp_path / "once.parquet", pd.DataFrame(rows), "responses")
    with schema.writing(tmp_path / "parts.parquet", "responses") as add:
        for start in (0, 4, 8):
            # Each part the wrong way round.
            add(pd.DataFrame(rows[start : start + 4][::-1]))
    once, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("once", "parts"))
    assert parts.equals(once, check_metadata=True)
    with schema.writing(tmp_path / "none.parquet", "contexts"):
        pass
    none = schema.read(tmp_path / "none.parquet", "contexts")
    assert (list(none.columns), len(none)) == (schema.table("contexts").columns, 0)


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


def test_ratings_of_an_earlier_version_ask_for_another_reading(tmp_path):
    assert schema.ratings_in(tmp_path).empty
    (tmp_path / "turn_ratings.parquet").touch()
    for read in (schema.ratings_in, lambda folder: schema.read(folder / "ratings.parquet", "ratings")):
        with pytest.raises(ComperdialError, match=r"turn_ratings.parquet .* expected one table, ratings.parquet.*Read"):
            read(tmp_path)


def test_a_column_whose_name_stands_twice_is_refused(tmp_path):
    path = tmp_path / "contexts.parquet"
    schema.write(path, pd.DataFrame([CONTEXT]), "contexts")
    content = pq.read_table(path)
    for name in ("turn", "facts"):
        pq.write_table(content.append_column(name, content.column(name)), path)
        # Arrow may refuse it first.
        with pytest.raises(ComperdialError, match=r"contexts\.parquet: (not a readable|a column's name stands twice)"):
            schema.read(path, "contexts")
        with pytest.raises(SchemaError, match="a column's name stands twice"):
            list(schema.read_parts(path, "contexts", 10))


def test_correlations_of_earlier_versions_have_no_exact_p(tmp_path):
    frame = schema.empty("correlations").drop(columns="p_exact")
    row = {
        "dataset": "d",
        "level": "turn",
        "against": "turn",
        "target": "t",
        "metric": "m",
        "output": "o",
        "grouping": "pooled",
    }
    row |= {"coefficient": "spearman", "value": 0.5, "n": 9, "coverage": 1.0, "cut": 0, "signature": "m|v:1"}
    frame = pd.concat([frame, pd.DataFrame([row])]).astype({"n": "int32", "cut": "int32"})
    frame.to_parquet(tmp_path / "old.parquet")
    found = schema.read(tmp_path / "old.parquet", "correlations")
    assert found["p_exact"].isna().all()
