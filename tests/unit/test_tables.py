"""Files and tables: atomic writes, the first fault reported, and the same bytes for rows in any order."""

import base64
import io
import json
import lzma
import os
import tarfile

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.config.records import ARCHIVE, FOLDER, pack, unpack
from comperdial.core.errors import ComperdialError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import (
    read_json,
    read_jsonl,
    read_table,
    read_text,
    write_json,
    write_table,
    write_text,
)

# Files


def all_of(read):
    return lambda path: list(read(path))


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_text, "a.txt", b"one\ntwo\nth\xffree\n", r"a\.txt, line 3: byte 10 \(0xff\) is not UTF-8; expected UTF-8"),
        *[(read_json, "a.json", '[{"a": 1},\n ' + end, r"a\.json, line 2.*truncated") for end in ('{"b": "te', "tr", "1,")],
        (read_json, "a.json", '[{"a": {"a": 1}},\n {"a": 1,\n  "\\u0061": 2}]', r"a\.json: the key 'a' is given twice"),
        (read_json, "a.json", "1" * 5000, r"cannot be read \("),
        (read_json, "a.json", '"\\ud800"', "lone surrogate"),
        (read_table, "a.jsonl", '{"a": 1}\nnot json\n', "line 2, column 1: not valid JSON"),
        (read_table, "a.jsonl", '{"a": 1}\n[1]\n', "line 2: a JSON list; expected one JSON object per line"),
        (read_table, "a.csv", "a,b\n1,2\n1,2,3\n", "line 3: 3 cells; expected 2, as in the header"),
        (read_table, "a.csv", "", "the file is empty"),
        (read_table, "a.csv", 'a,b\n"1,2\n', "line 2: not valid CSV"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_place(tmp_path, read, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_texts_round_trip_unchanged(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfresponse,n\nNA,1\n"",2\nnull,3\n')
    assert read_table(tmp_path / "a.csv")["response"].tolist() == ["NA", "", "null"]
    (tmp_path / "a.jsonl").write_text('{"a": "x\u2028y"}\n', encoding="utf-8")
    assert read_table(tmp_path / "a.jsonl")["a"].tolist() == ["x\u2028y"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("fifo", "is a pipe"), ("folder", "is a folder"), ("device", "a device or a socket"),
     ],
)  # fmt: skip
def test_only_a_regular_file_is_read_or_replaced(tmp_path, name, message):
    """Reading a pipe could block forever."""
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "device.csv").symlink_to("/dev/full")
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    for use in (read_text, read_json, read_table, load_yaml, all_of(read_jsonl), lambda path: write_text(path, "x")):
        with pytest.raises(FileError, match=rf"{name}\.csv: .*{message}"):
            use(tmp_path / f"{name}.csv")
    assert {path.name: path.lstat() for path in tmp_path.iterdir()} == before


def test_a_link_is_written_through_but_not_into_a_read_only_store(tmp_path):
    target, link = tmp_path / "there.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to("there.json")
    write_json(link, 1)
    assert json.loads(target.read_text()) == 1 and link.is_symlink()
    target.chmod(0o444)
    with pytest.raises(FileError, match=r"link\.json: is a link to a read-only file; .*Remove the link"):
        write_text(link, "x")
    assert json.loads(target.read_text()) == 1


# Tables

RATING = {
    "dataset": "d", "level": "turn", "item_id": "c1", "system_id": "s1", "annotator_id": "ann", "position": 0,
    "dimension": "Overall", "rating": 3.0, "scale_min": 1.0, "scale_max": 5.0, "source": "human",
}  # fmt: skip
CONTEXT = {
    "dataset": "d", "context_id": "c1", "dialogue_id": "d1", "turn": 0, "history": [{"speaker": "A", "text": "hello"}],
    "references": ["hi"], "facts": [],
}  # fmt: skip
RESPONSE = {"dataset": "d", "context_id": "c1", "system_id": "s1", "response": "hi"}
SCORE = {
    "dataset": "d", "level": "turn", "item_id": "c1", "system_id": "s1", "metric": "m", "output": "o", "value": 0.5,
    "signature": "m|v:1",
}  # fmt: skip
SYSTEM = {"dataset": "d", "system_id": "s", "kind": "robot", "track": None, "description": ""}
PERSONA = {"dataset": "d", "dialogue_id": "x", "speaker": "B", "sentences": ["i am x."], "kinds": []}


def check(table, *rows):
    return schema.validate(pd.DataFrame(list(rows)), table, where="file.csv")


def without(row, column):
    return {name: value for name, value in row.items() if name != column}


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("ratings", [RATING, RATING | {"annotator_id": "bob", "rating": 7}],
         "file.csv, record 2 (level=turn, item_id=c1, system_id=s1, annotator_id=bob, dimension=Overall): "
         "rating 7 is outside its scale; expected 1 to 5"),
        ("ratings", [RATING | {"rating": 1e308}], "column 'rating' holds 1e+308; expected a finite number"),
        ("ratings", [RATING | {"position": -1}], "column 'position' holds -1; expected a whole number of 0 or more"),
        ("ratings", [RATING, RATING], "record 2 (level=turn, item_id=c1, system_id=s1, annotator_id=ann"),
        ("responses", [RESPONSE | {"response": 5}], "column 'response' holds 5; expected a response"),
        ("responses", [RESPONSE | {"response": "  "}], "column 'response' holds '  '; expected a response that is not"),
        ("responses", [RESPONSE | {"context_id": str(n), "response": "" if n else "hi"} for n in range(4)], "3 records in all"),
        ("responses", [without(RESPONSE, "response")], "no column 'response'"),
        ("contexts", [CONTEXT | {"history": [{"speaker": "A"}]}], "expected a list of {speaker, text}"),
        ("contexts", [CONTEXT | {"references": [""]}], "expected a list of texts, none of them empty"),
        ("systems", [SYSTEM], "column 'kind' holds 'robot'; expected one of agent, human, reference"),
        ("scores", [SCORE | {"cut": 0}, SCORE | {"item_id": "c2", "cut": None}], "record 2 (level=turn, item_id=c2"),
        ("personas", [PERSONA], "sentences and kinds of different numbers; expected one kind a sentence"),
    ],
)  # fmt: skip
def test_first_table_fault_is_reported(table, rows, message):
    with pytest.raises(ComperdialError) as caught:
        check(table, *rows)
    assert message in str(caught.value)


@given(
    rating=st.floats(allow_nan=False, allow_infinity=False, width=32), low=st.integers(-5, 5), width=st.integers(0, 9)
)
@settings(max_examples=30)
def test_ratings_pass_exactly_when_inside_their_scale(rating, low, width):
    row = RATING | {"rating": rating, "scale_min": float(low), "scale_max": float(low + width)}
    if low <= rating <= low + width:
        assert len(check("ratings", row)) == 1
    else:
        with pytest.raises(ComperdialError):
            check("ratings", row)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_tables_round_trip_in_every_format(tmp_path, suffix):
    """Names that look like numbers are names: 007 is not 7, and 1e5 is not 100000."""
    path = tmp_path / f"t.{suffix}"
    for table, row in (("contexts", CONTEXT), ("ratings", RATING), ("ratings", RATING | {"position": None})):
        schema.write(path, pd.DataFrame([row]), table)
        back = schema.read(path, table).to_dict("records")[0]
        assert {k: None if v is pd.NA else v for k, v in back.items()} == row
    names = ["007", "7", "1e5", "0x1", "NA", "null", "True", "1.5"]
    schema.write(path, pd.DataFrame([RESPONSE | {"context_id": name, "response": name} for name in names]), "responses")
    back = schema.read(path, "responses")
    assert sorted(back["context_id"]) == sorted(back["response"]) == sorted(names)
    # Scores without a `cut` column count as scores of whole inputs.
    write_table(path, pd.DataFrame([SCORE | {"value": 6.389431e-10}]))
    back = schema.read(path, "scores")
    assert back["cut"].tolist() == [0] and back["value"][0] == pytest.approx(6.389431e-10, rel=1e-6)


def test_numeric_ids_become_text_and_optional_columns_may_be_omitted():
    for name in (7, 7.0, "7", "7.0", " 7"):
        assert check("responses", RESPONSE | {"context_id": name})["context_id"].tolist() == ["7"]
    assert check("ratings", without(RATING, "position"))["position"].isna().all()
    with pytest.raises(UnknownNameError, match="Did you mean 'contexts'"):
        schema.table("context")


# Names whose order is one by code point and another by UTF-16 or by a dictionary.
NAMES = ["a", "B", "é", "e\u0301", "\uffff", "\U0001f600", "a b", "ab", "10", "9"]
KEYS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 12))
KEY = list(schema.table("judgements").key)


def judgements(keys):
    """Return a table whose key has texts and a number, and which has values that are missing."""
    same = {"dataset": "d", "level": "turn", "metric": "m", "output": "o", "key": None, "tries": 1}
    rows = [
        same
        | {"item_id": item, "system_id": system, "sample": sample, "rationale": f"{item} {system}"}
        | {"value": None if sample % 3 else sample / 7, "failure": "no number" if sample % 3 else None}
        for item, system, sample in keys
    ]
    return pd.DataFrame(rows, columns=schema.table("judgements").columns)


def whole_of(frame, path):
    schema.write(path, frame, "judgements")
    return path.read_bytes()


@settings(max_examples=8)
@given(keys=st.lists(KEYS, unique=True, min_size=1, max_size=30), size=st.integers(1, 20), start=st.integers(0, 30))
def test_rows_in_any_order_give_the_same_bytes_and_are_read_in_parts(tmp_path_factory, keys, size, start):
    folder = tmp_path_factory.mktemp("tables")
    frame = judgements(keys)
    with schema.writing(folder / "added.parquet", "judgements") as add:
        for first in range(0, len(frame), size):
            add(frame[first : first + size])
    expected = whole_of(frame.sort_values(KEY), folder / "whole.parquet")
    assert (folder / "added.parquet").read_bytes() == expected
    back = schema.read(folder / "whole.parquet", "judgements")
    pd.testing.assert_frame_equal(back, schema.validate(frame, "judgements").sort_values(KEY, ignore_index=True))
    parts = list(schema.read_parts(folder / "whole.parquet", "judgements", size, start))
    assert [len(part) for part in parts] == [min(size, len(frame) - at) for at in range(start, len(frame), size)]
    if parts:
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), back[start:].reset_index(drop=True))


def test_error_or_duplicate_key_leaves_the_file_unchanged(tmp_path):
    path, frame = tmp_path / "t.parquet", judgements([("a", "s", n) for n in range(20)])
    path.write_bytes(b"earlier")
    twice = pytest.raises(SchemaError, match=r"t\.parquet, record .*sample=7\): the same key a second time")
    with twice, schema.writing(path, "judgements") as add:
        add(frame)
        add(frame[7:8])
    with pytest.raises(RuntimeError), schema.writing(path, "judgements") as add:
        add(frame)
        raise RuntimeError
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("t.parquet", b"earlier")]


def test_external_files_are_checked(tmp_path):
    path, frame = tmp_path / "t.parquet", judgements([("a", "s", n) for n in range(9)])
    frame[::-1].to_parquet(path)
    assert schema.read(path, "judgements")["sample"].tolist() == list(range(9)), "sorted"
    frame.assign(metric=["m"] * 5 + [" "] + ["m"] * 3).to_parquet(path)
    with pytest.raises(SchemaError, match=r"t\.parquet, record 6 .*column 'metric' holds ' '"):
        schema.read(path, "judgements")
    content = bytearray(whole_of(frame, path))
    column = pq.read_metadata(path).row_group(0).column(7)
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match=r"t\.parquet: not a readable Parquet file"):
        schema.read(path, "judgements")
    with pytest.raises(FileError, match="no such file"):
        schema.read(tmp_path / "none.parquet", "scores")


def parts_of(folder, frame, count):
    """Write a table in parts: every so many rows of it."""
    paths = [folder / f"{number}.parquet" for number in range(1, count + 1)]
    for number, path in enumerate(paths, 1):
        with schema.writing(path, "judgements", (number, count)) as add:
            add(frame.iloc[number - 1 :: count])
    return paths


def test_parts_merge_into_the_whole(tmp_path):
    frame = judgements([("a", f"{number:02}", 0) for number in range(10)])
    for count in (1, 3, 12):
        schema.merge(parts_of(tmp_path, frame, count)[::-1], tmp_path / "merged.parquet")
        assert (tmp_path / "merged.parquet").read_bytes() == whole_of(frame, tmp_path / "whole.parquet")


def test_incomplete_or_mixed_parts_are_never_merged(tmp_path):
    frame = judgements([("a", str(number), 0) for number in range(10)])
    paths, merged, whole = parts_of(tmp_path, frame, 4), tmp_path / "merged.parquet", tmp_path / "whole.parquet"
    whole_of(frame, whole)
    for match, files in (
        ("cannot be merged: none", []),
        ("cannot be merged: part 1 of 4 of table judgements, part 3 of 4", [paths[0], paths[2]]),
        ("part 1 of 1 of table judgements", [*paths, whole]),
        ("part 1 of 4 of table judgements, part 1 of 4", [*paths, paths[0]]),
    ):
        with pytest.raises(ComperdialError, match=match):
            schema.merge(files, merged)
        assert not merged.exists()


# Snakemake's records of published results


def record_name(output):
    """Name a record as Snakemake does."""
    text = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [text[n : n + 254] for n in range(0, len(text), 254)]
    return "/".join([*(f"@{part}" for part in parts[:-1]), parts[-1]])


def write_records(root, content):
    """Write outputs and their records; DVC versions what is in results/made."""
    files = {"results/made.dvc": "outs:\n- path: made\n"}
    for name, text in content.items():
        files |= {name: "made", f"{FOLDER}/{record_name(name)}": text}
    for name, text in files.items():
        write_text(root / name, text)


def test_records_are_unpacked_elsewhere_once(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    long = "results/made/" + "x" * 200 + "/" + "y" * 200
    write_records(here, {"results/made/a": "1", long: "2", "data/raw/b": "3", "results/local/c": "4"})
    packed = pack(here).read_bytes()
    assert pack(here).read_bytes() == packed and not unpack(here)
    there.mkdir()
    assert not unpack(there), "no archive"
    (there / ARCHIVE).write_bytes(packed)
    assert unpack(there)
    assert [(there / FOLDER / record_name(name)).read_text() for name in ("results/made/a", long)] == ["1", "2"]
    assert sum(path.is_file() for path in (there / FOLDER).rglob("*")) == 2, "what DVC does not own is not packed"
    write_records(there, {"results/made/a": "a run of one's own"})
    assert not unpack(there), "the same archive does not undo what was run since"
    write_records(here, {"results/made/a": "3"})
    (there / ARCHIVE).write_bytes(pack(here).read_bytes())
    assert unpack(there) and (there / FOLDER / record_name("results/made/a")).read_text() == "3"


@pytest.mark.parametrize("name", [None, "../../Snakefile", "a/../../b"])
def test_broken_or_escaping_archive_is_refused(tmp_path, name):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as packed:
        packed.addfile(tarfile.TarInfo(name or "x"))
    (tmp_path / ARCHIVE).write_bytes(lzma.compress(raw.getvalue()) if name else b"nothing")
    with pytest.raises(FileError, match="make publish"):
        unpack(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / ARCHIVE]
