"""A researcher's own rated file, read by the reader ``table``."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import evaluation, schema
from comperdial.challenge.label_studio import export_ratings
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.core.files import write_table
from comperdial.data import readers
from comperdial.data.readers.table import COLUMNS, rated


def read(folder, content, options=None, name="mine.csv"):
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, list):
        path.write_text("".join(json.dumps(record) + "\n" for record in content))
    else:
        path.write_text(content, encoding="utf-8")
    return readers.read("table", "mine", {"table": path}, options)


def rows(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))


def test_three_columns_are_enough(tmp_path, caplog):
    tables = read(tmp_path, "system,response,rating\na,hello,4\nb,hi,1\na,well,3.5\n")
    assert rows(tables["systems"], "system_id", "kind") == [("a", "agent"), ("b", "agent")]
    assert rows(tables["contexts"], "context_id", "dialogue_id", "turn", "history", "references", "facts") == [
        (name, name, 0, [], [], []) for name in "123"
    ]
    assert rows(tables["responses"], "context_id", "system_id", "response") == [
        ("1", "a", "hello"),
        ("2", "b", "hi"),
        ("3", "a", "well"),
    ]
    ratings = tables["ratings"].query("level == 'turn'")
    assert rows(ratings, "annotator_id", "dimension", "rating", "scale_min", "scale_max", "source") == [
        ("1", "rating", rating, 1, 4, "human") for rating in (4, 1, 3.5)
    ]
    assert len(tables["ratings"].query("level == 'dialogue'")) == len(tables["personas"]) == 0
    assert "no scale is given for rating: used is the range of the ratings, 1 to 4" in caplog.text


def test_contexts_are_told_apart_by_what_they_hold(tmp_path):
    tables = read(
        tmp_path,
        "history,reference,facts,system,response,rating\n"
        '"hi\nand you?",fine,"[""likes tea"", ""is 30""]",a,good,4\n'
        '"hi\nand you?",fine,"[""likes tea"", ""is 30""]",b,bad,2\n'
        '"[""hi"", ""and you?""]",great,[sighs] no,a,good,5\n'
        ",,,a,good,5\n",
    )
    assert rows(tables["responses"], "context_id", "system_id") == [("1", "a"), ("1", "b"), ("2", "a"), ("3", "a")]
    history = [{"speaker": "B", "text": "hi"}, {"speaker": "A", "text": "and you?"}]
    assert rows(tables["contexts"], "history", "references", "facts") == [
        (history, ["fine"], ["likes tea", "is 30"]),
        (history, ["great"], ["[sighs] no"]),
        ([], [], []),
    ]


def test_several_rating_columns_are_dimensions_and_other_names_are_mapped(tmp_path):
    options = {"columns": {"response": "reply", "rating": ["warmth", "humour"]}, "scale": {"warmth": [1, 5]}}
    tables = read(tmp_path, "reply,System,warmth,humour\nx,a,4,0\ny,a,,1\nz,b,NA,\n", options)
    assert rows(
        tables["ratings"].query("level == 'turn'"), "item_id", "dimension", "rating", "scale_min", "scale_max"
    ) == [
        ("1", "warmth", 4, 1, 5),
        ("1", "humour", 0, 0, 1),
        ("2", "humour", 1, 0, 1),
    ]
    assert len(tables["responses"]) == 3, "a response that nobody rated is one all the same"
    one = read(tmp_path, "response,system,warmth\nx,a,4\n", {"columns": {"rating": "warmth"}})
    assert rows(one["ratings"].query("level == 'turn'"), "dimension") == [("warmth",)]
    kind = read(tmp_path, "response,system,kind\nx,a,4\n", {"columns": {"rating": ["kind"]}})
    assert rows(kind["ratings"].query("level == 'turn'"), "dimension", "rating") == [("kind", 4)]


def test_a_row_without_a_response_rates_the_dialogue(tmp_path):
    content = (
        "dialogue_id,turn,system,response,annotator,dimension,rating,scale_min,scale_max\n"
        "d1,0,a,hello,ann,Overall,4,1,5\nd1,0,a,hello,bob,Overall,2,1,5\nd1,1,a,bye,ann,Overall,5,1,5\n"
        "d1,,a,,ann,Overall,3,1,5\nd1,,a,,ann,Fluency,1,0,1\nd1,2,a,,,,,,\n"
    )
    tables = read(tmp_path, content)
    assert rows(tables["contexts"], "context_id", "dialogue_id", "turn") == [("1", "d1", 0), ("2", "d1", 1)]
    assert rows(tables["ratings"].query("level == 'turn'"), "item_id", "annotator_id", "rating") == [
        ("1", "ann", 4),
        ("1", "bob", 2),
        ("2", "ann", 5),
    ]
    assert rows(
        tables["ratings"].query("level == 'dialogue'"), "item_id", "system_id", "dimension", "rating", "scale_max"
    ) == [
        ("d1", "a", "Overall", 3, 5),
        ("d1", "a", "Fluency", 1, 1),
    ]
    assert rated(tmp_path / "mine.csv") == (("turn", "dialogue"), {"Overall", "Fluency"}, {"human"})
    lines = content.splitlines(keepends=True)
    (tmp_path / "turns.csv").write_text("".join(lines[:4]))
    assert rated(tmp_path / "turns.csv").levels == ("turn",)
    (tmp_path / "none.csv").write_text("response,system,rating\nx,a,\n")
    assert rated(tmp_path / "none.csv").levels == ()


def test_several_responses_of_one_system_to_one_context(tmp_path):
    tables = read(
        tmp_path,
        "context_id,dialogue_id,turn,reference,system,response,rating\n"
        "c1,d,2,r,a,one,1\nc1,d,2,r,b,other,2\nc1,d,2,r,a,two,3\nc1,d,2,r,a,three,4\nc2,d,3,r,a,four,5\n",
    )
    names = ["c1", "c1 (2)", "c1 (3)"]
    assert rows(tables["contexts"], "context_id", "dialogue_id", "turn", "references") == [
        *((name, "d", 2, ["r"]) for name in names),
        ("c2", "d", 3, ["r"]),
    ]
    assert rows(tables["responses"], "context_id", "system_id", "response") == [
        ("c1", "a", "one"),
        ("c1 (2)", "a", "two"),
        ("c1 (3)", "a", "three"),
        ("c1", "b", "other"),
        ("c2", "a", "four"),
    ]
    assert rows(tables["ratings"].query("level == 'turn'"), "item_id", "rating") == [
        ("c1", 1), ("c1", 2), ("c1 (2)", 3), ("c1 (3)", 4), ("c2", 5),
    ]  # fmt: skip


def test_several_responses_to_one_context_all_count(tmp_path, caplog):
    values = {"a": [[1, 4, 2], [5, 3, 3]], "b": [[2], [1]], "c": [[3], [3]]}
    lines = [
        f"d,{turn},q{turn},{system},answer {value} of {number},{value}"
        for system, by_turn in values.items()
        for turn, ratings in enumerate(by_turn)
        for number, value in enumerate(ratings)
    ]
    tables = read(tmp_path, "\n".join(["dialogue_id,turn,history,system,response,rating", *lines]))
    for name, frame in tables.items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    scores = tables["responses"].rename(columns={"context_id": "item_id", "response": "value"})
    scores["value"] = scores["value"].map(lambda text: float(text.split()[1]) ** 2 + len(text) % 2)
    scores = scores.assign(level="turn", metric="m", output="o", cut=0, signature="s")
    samples = evaluation.samples(scores, tables["ratings"].query("level == 'turn'"), contexts=tables["contexts"])
    found = evaluation.correlations(samples, detail=evaluation.Detail(resamples=20)).set_index(
        ["level", "grouping", "coefficient"]
    )
    both = scores.merge(tables["ratings"], on=["level", "item_id", "system_id"])
    assert found.loc[("turn", "pooled", "pearson"), "value"] == pytest.approx(both["value"].corr(both["rating"]))
    by_system = both.groupby("system_id")[["value", "rating"]].mean()
    for level in ("dialogue", "system"):
        # There is one dialogue.
        assert found.loc[(level, "pooled", "pearson"), "value"] == pytest.approx(by_system.corr().iloc[0, 1])
    # Only the two contexts that all systems answered can be correlated within.
    assert found.loc[("turn", "item", "pearson"), "n"] == 2
    of_items = [
        group["value"].corr(group["rating"]) for _, group in both.groupby("item_id") if group["rating"].nunique() > 1
    ]
    assert found.loc[("turn", "item", "pearson"), "value"] == pytest.approx(sum(of_items) / 2)
    assert export_ratings(tmp_path, tmp_path / "tasks", levels=["dialogue"], seed=1) == {"dialogue": 3}
    assert "left out" not in caplog.text


def test_a_system_called_reference_is_a_system_unless_its_kind_says_otherwise(tmp_path):
    lines = "context_id,system,response,rating\n1,reference,x,2\n1,b,y,1\n"
    assert set(read(tmp_path, lines)["systems"]["kind"]) == {"agent"}
    lines = "context_id,system,response,rating,kind\n1,reference,x,2,reference\n1,b,y,1,\n2,b,z,1,\n"
    tables = read(tmp_path, lines)
    assert rows(tables["systems"], "system_id", "kind") == [("reference", "reference"), ("b", "agent")]
    assert rows(tables["contexts"], "references") == [(["x"],), ([],)], "what is answered there is the reference"


def test_a_column_that_is_not_used_is_named_with_what_may_be_meant(tmp_path, caplog):
    caplog.set_level("INFO")
    read(tmp_path, b"system,contxt,context,response,refrence,topic,rating\na,1,hi,x,r,t,3\nb,1,hi,y,r,t,2\n")
    assert "columns not used: contxt, refrence (did you mean reference?), topic" in caplog.text


def test_what_spreadsheets_do_to_a_file(tmp_path):
    plain = "context_id,annotator,system,response,rating\n1,7,a,x,3.5\n1,8,a,x,2\n2,7,a,y,1\n"
    odd = (
        b"\xef\xbb\xbfContext ID;Annotator;System;Response;Rating;;\r\n1.0;7.0;a;x;3,5;;\r\n1;8;a;x;2;;\r\n"
        b"2;7;a;y;1;;\r\n;;;;;;\r\n;;;;;;\r\n"
    )
    assert_same(read(tmp_path, odd), read(tmp_path, plain))
    frame = pd.DataFrame({"context_id": [1.0, 1.0, 2.0, None], "annotator": [7, 8, 7, 7], "system": "a"})
    frame = frame.assign(response=["x", "x", "y", None], rating=[3.5, 2, 1, None])
    write_table(tmp_path / "mine.parquet", frame)
    assert_same(readers.read("table", "mine", {"table": tmp_path / "mine.parquet"}), read(tmp_path, plain))


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda texts: str(np.array(texts)),
        lambda texts: repr(np.array(texts)),
        lambda texts: repr(np.array(texts, dtype=object)),
        lambda texts: str(list(np.array(texts))),
        lambda texts: repr(tuple(texts)),
        lambda texts: "[" + ", ".join(f"np.str_({text!r})" for text in texts) + "]",
    ],
    ids=["list", "array", "array's repr", "objects", "texts of numpy", "tuple", "np.str_"],
)
def test_a_list_in_a_cell_is_the_list_however_it_was_printed(tmp_path, write):
    """Numpy prints no commas, breaks long lines, and changes quotes where a text has an apostrophe."""
    texts = ["It's a boat.", 'She calls it "Ann".', "[rocks] and sand", "a line\nand another", "b\\c, d"] * 3
    rows = [
        {"context_id": f"c{number}", "system": system, "response": f"{system} {number}", "rating": number}
        | dict.fromkeys(("references", "facts", "history"), texts[number:])
        for number in range(4)
        for system in ("a", "b")
    ]
    lists = read(tmp_path, rows, name="mine.jsonl")
    cells = pd.DataFrame(rows)
    for column in ("references", "facts", "history"):
        cells[column] = cells[column].map(write)
    assert_same(read(tmp_path, cells.to_csv(index=False)), lists)


def test_lists_of_speakers_and_of_other_lists_as_pandas_prints_them(tmp_path):
    said = [{"speaker": "A", "text": "What's up?"}, {"speaker": "B", "text": "Not much."}]
    row = {"context_id": "c", "system": "a", "response": "x", "rating": 1, "history": said}
    lists = read(tmp_path, [row], name="mine.jsonl")
    for written in (str(said), str(np.array(said, dtype=object))):
        assert_same(read(tmp_path, pd.DataFrame([row | {"history": written}]).to_csv(index=False)), lists)


@pytest.mark.parametrize(
    "text", ["[laughs] ok", "[laughs]", "(smiles)", "['tis late]", "[1] is a note", "array of rocks"]
)
def test_a_text_that_begins_like_a_list_is_a_text(tmp_path, text):
    found = read(tmp_path, f"system,response,references,rating\na,x,{text},1\nb,y,{text},2\n")
    assert found["contexts"]["references"].map(list).tolist() == [[text]]


@pytest.mark.parametrize("text", ["NA", "N/A", "null", "None", "nan", "NaN", "#N/A", "-"])
@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv.csv", "mine.jsonl"])
def test_columns_of_texts_and_names_hold_texts(tmp_path, text, name):
    """Only an empty cell is missing; of a rating such a word is."""
    columns = ("dialogue_id", "context_id", "system", "annotator", "response", "references", "facts", "history")
    rows = [dict.fromkeys(columns, text) | {"rating": 1, "scale_min": 1, "scale_max": 5}]
    rows += [rows[0] | {"annotator": "b", "rating": text}, rows[0] | {"system": "s", "response": "x", "rating": 2}]
    cells = pd.DataFrame(rows)
    written = rows if name.endswith("jsonl") else cells.to_csv(index=False, sep="\t" if "tsv" in name else ",")
    found = read(tmp_path, written, name=name)
    assert rows and found["ratings"].query("level == 'dialogue'").empty
    assert found["ratings"].query("level == 'turn'")[["system_id", "annotator_id", "rating"]].to_numpy().tolist() in (
        [[text, text, 1.0], ["s", text, 2.0]],
        [["s", text, 2.0], [text, text, 1.0]],
    )
    (context,) = found["contexts"].to_dict("records")
    assert (list(context["references"]), list(context["facts"])) == ([text], [text])
    assert [said["text"] for said in context["history"]] == [text]
    assert set(found["responses"]["response"]) == {text, "x"}


def test_names_that_are_numbers_are_the_same_names_in_every_file(tmp_path):
    csv = read(tmp_path, "context_id,system,response,rating\n1,1.0,x,1\n1,1.5,y,2\n1,007,z,3\n")
    assert csv["responses"]["system_id"].tolist() == ["1", "1.5", "007"]
    numbers = [{"context_id": 1.0, "system": s, "response": r, "rating": n} for s, r, n in ((1, "x", 1), (1.5, "y", 2))]
    jsonl = read(tmp_path, [*numbers, {**numbers[0], "system": "007", "response": "z", "rating": 3}], name="mine.jsonl")
    assert_same(jsonl, csv)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        order = list(schema.table(name).key)
        pd.testing.assert_frame_equal(
            found[name].sort_values(order, ignore_index=True), frame.sort_values(order, ignore_index=True)
        )


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("response,system\nx,a\n", {}, "mine.csv: no column contains human ratings.*the file has: response, system"),
        (
            "reply,bot,x,y\nhello you,a,1,2\nhi,b,2,3\nwell well,a,3,1\n",
            {},
            r'--columns .{"response": "reply", "rating": \["x", "y"\], "system_id": "bot"}',
        ),
        ("response,system,rating\nx,a,1\n", {"columns": {"rating": "warmth"}}, "no column 'warmth', which `columns`"),
        ("response,system,rating\nx,a,1\n", {"columns": {"rated": "rating"}}, "Did you mean 'rating'"),
        ("x,y,rating\nx,a,1\n", {"columns": {"response": "x", "system_id": "x"}}, "`columns` contains 'x' twice"),
        ("response,system,rating\nx,a,1\n", {"column": {}}, "unknown option 'column'"),
        ("response,system,rating\nx,a,1\n", {"columns": {"response": 1}}, "expected our name -> the file's"),
        ("response,system,rating\nx,a,1\n,b,2\n", {}, "record 2: a rating, and no response"),
        ("response,system,rating\nx,a,1\ny,,2\n", {}, "record 2: no system"),
        ("response,system,rating\nx,a,good\n", {}, "record 1, column 'rating': holds 'good'; expected a number"),
        ('response,system,rating\nx,a,"1,000"\n', {}, "record 1, column 'rating': holds '1,000'"),
        ("response,system,rating\nx,a,5\ny,a,7\n", {"scale": [1, 5]}, r"record 2: rating 7 .*expected 1 to 5"),
        ("response,system,rating,scale_min,scale_max\nx,a,0,1,5\n", {}, "record 1: rating 0 .*expected 1 to 5"),
        ("response,system,rating,scale_min,scale_max\nx,a,1,1,\n", {}, "record 1: a scale from 1.0 to None"),
        ("response,system,rating\nx,a,5\n", {"scale": {"warm": [1, 5]}}, "unknown dimension 'warm'"),
        ("response,system,rating\nx,a,5\n", {"scale": [5, 1]}, r"scale: \[5, 1\]; expected \[lowest, highest\]"),
        (
            "context_id,response,system,rating\nc,x,a,5\nc,x,a,4\n",
            {},
            "record 2: a response has several ratings .* record 1 .*expected a column `annotator_id`",
        ),
        (
            "context_id,response,system,rating,annotator\nc,x,a,5,ann\nc,x,a,4,ann\n",
            {},
            "record 2: a response has several ratings .*by annotator 'ann': record 1",
        ),
        ("response,system,rating,annotator\nx,a,5,\n", {}, "record 1: no annotator"),
        ("response,system,rating,dimension\nx,a,5,\n", {}, "record 1: a rating, and no dimension"),
        (
            "context_id,history,response,system,rating\nc,hi,x,a,5\nc,ho,y,b,4\n",
            {},
            "record 2: context 'c' has another history than in record 1",
        ),
        ("response,system,rating,turn\nx,a,5,first\n", {}, "record 1, column 'turn': holds 'first'; expected a whole"),
        ('response,system,rating,facts\nx,a,5,"[1]"\n', {}, "record 1, column 'facts': one entry is 1"),
        ('response,system,rating,history\nx,a,5,"[{}]"\n', {}, "record 1, column 'history': one entry is {}"),
        ("response,system,rating,kind\nx,a,5,robot\n", {}, "record 1, column 'kind': 'robot'; expected one of agent"),
        ("response,system,rating,reference,references\nx,a,5,y,z\n", {}, "columns 'reference' and 'references'"),
        ("response,system,rating,dialogue_id\n,a,5,d\n", {}, "no responses"),
        ("response,system,rating\n", {}, "no records"),
        (
            "response,system,w,h,dimension\nx,a,5,1,z\n",
            {"columns": {"rating": ["w", "h"]}},
            "a column 'dimension' beside",
        ),
        ([{"response": 7, "system": "a", "rating": 1}], {}, "record 1, column 'response': holds 7; expected a text"),
        ([{"response": "x", "system": [1], "rating": 1}], {}, r"record 1, column 'system_id': holds \[1\]"),
        (f"response,system,rating\nx,a,{'9' * 400}\n", {}, "record 1, column 'rating': holds '9999"),
        ([{"response": "x", "system": "a", "rating": 10**400}], {}, "record 1, column 'rating': holds 1000"),
        ("response,system,rating\nx,a,1e308\n", {}, "record 1, column 'rating': holds '1e308'; expected a number"),
        ("response,system,rating\nx,a,-inf\n", {}, "record 1, column 'rating': holds '-inf'"),
        (
            "response,system,rating,references\nx,a,1,\"['it's', 'so']\"\n",
            {},
            "record 1, column 'references': holds .* not a readable list; expected a list as JSON",
        ),
        (
            "response,system,rating,references\nx,a,1,['one' 'two' ... 'nine']\n",
            {},
            "record 1, column 'references': holds .* not a readable list",
        ),
    ],
)
def test_faults_are_named(tmp_path, content, options, message):
    with pytest.raises(ComperdialError, match=message) as caught:
        read(tmp_path, content, options, "mine.csv" if isinstance(content, str) else "mine.jsonl")
    assert "\n" not in str(caught.value)


def test_a_file_is_read_into_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("reply,system,rating\nx,a,4\ny,b,2\n")
    options = ["--columns", '{"response": "reply"}', "--scale", "1", "5"]
    assert main(["read", "mine.csv", *options]) == 0
    assert main(["read", "mine.csv", "--name", "other", "--output", "there", *options]) == 0
    for folder, name in (("data/tables/mine", "mine"), ("there", "other")):
        tables = {path.stem for path in (tmp_path / folder).iterdir()}
        assert tables == {"systems", "contexts", "personas", "responses", "ratings"}
        assert set(schema.read(tmp_path / folder / "ratings.parquet", "ratings")["dataset"]) == {name}
    assert main(["read", "absent.csv"]) == 1
    assert "absent.csv" in capsys.readouterr().err
    assert main(["score", "there", "--metric", "distinct"]) == 0


TEXT = st.text("abc é[,;\"'\n", min_size=1, max_size=8).map(lambda text: f"x{text}y")
NAME = st.sampled_from(["a", "b-1", "7", "Ünal", "x y"])


@st.composite
def records(draw):
    """Draw contexts, and what some systems answered, rated by some annotators on two dimensions."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        context = {
            "context_id": f"c{number}",
            "dialogue_id": draw(st.sampled_from(["d1", "d2"])),
            "turn": number,
            "history": draw(st.lists(TEXT, max_size=2)),
            "references": draw(st.lists(TEXT, max_size=2)),
            "facts": draw(st.lists(TEXT, max_size=2)),
        }
        for system in draw(st.lists(NAME, min_size=1, max_size=3, unique=True)):
            response = draw(TEXT)
            raters = draw(st.lists(NAME, min_size=1, max_size=2, unique=True))
            made += [
                context
                | {"system_id": system, "response": response, "annotator_id": rater}
                | {name: draw(st.none() | st.sampled_from([1, 2.5, 5])) for name in ("warmth", "wit")}
                for rater in raters
            ]
    return made


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=records(), data=st.data())
def test_every_way_of_writing_a_file_reads_back_the_same(tmp_path, records, data):
    scale = {"scale": [1, 5]}
    wide = {"columns": {"rating": ["warmth", "wit"]}}
    long = [
        {name: value for name, value in record.items() if name not in ("warmth", "wit")}
        | {"dimension": dimension, "rating": record[dimension]}
        for record in records
        for dimension in ("warmth", "wit")
    ]
    found = []
    for made, options in ((records, scale | wide), (long, scale)):
        columns = data.draw(st.permutations(list(made[0])))
        frame = pd.DataFrame(made)[columns]
        for suffix in (".csv", ".jsonl", ".parquet"):
            path = tmp_path / f"mine{suffix}"
            written = frame
            if suffix == ".csv":
                lists = {name: frame[name].map(json.dumps) for name in ("history", "references", "facts")}
                written = frame.assign(**lists)
            write_table(path, written)
            found.append(readers.read("table", "mine", {"table": path}, options))
    for tables in found[1:]:
        assert_same(tables, found[0])
    expected = {
        (r["context_id"], r["system_id"], r["annotator_id"], name, r[name])
        for r in records
        for name in ("warmth", "wit")
        if r[name] is not None
    }
    columns = ["item_id", "system_id", "annotator_id", "dimension", "rating"]
    assert set(rows(found[0]["ratings"].query("level == 'turn'"), *columns)) == expected
    assert set(rows(found[0]["responses"], "context_id", "system_id", "response")) == {
        (r["context_id"], r["system_id"], r["response"]) for r in records
    }


def test_validate_says_what_it_understood(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(
        "question,reply,bot,warmth,seconds\nhi?,yes,a,4,9\nhi?,no,b,1,7\nyou?,me,a,5,3\nyou?,you,b,,2\n"
    )
    columns = {"response": "reply", "system_id": "bot", "history": "question", "rating": "warmth"}
    assert main(["validate", "mine.csv", "--columns", json.dumps(columns)]) == 0
    said = capsys.readouterr().out
    for line in (
        "rows        4",
        "systems     2, with responses each: a 2, b 2",
        "contexts    2 in 2 dialogues; no column context_id",
        "with        references 0, history 2, facts 0 of 2 contexts",
        "ratings     3 of responses, 0 of dialogues",
        "annotators  1 (no column annotator_id)",
        "dimension   warmth: 1 to 5 (as in the data; if it is another: --scale LOW HIGH",
        "levels      turn\n",
        "not used    columns seconds",
        "- no references: not run: bertscore, bleu",
        "- 2 rated systems, fewer than three: no system level",
        "- no item with ratings by two annotators: no agreement, and no ceiling",
    ):
        assert line in said
    assert "no history" not in said
    (tmp_path / "params.yaml").write_text("metrics:\n  mine: {kind: bleu, text: raw, datasets: [x]}\n")
    assert main(["validate", "mine.csv", "--columns", json.dumps(columns), "--scale", "1", "4"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "record 3: rating 5 of 'warmth' is outside its scale; expected 1 to 4" in captured.err
    assert main(["validate", "mine.csv", "--columns", json.dumps(columns), "--scale", "0", "6"]) == 0
    said = capsys.readouterr().out
    assert "warmth: 0 to 6 (as the option says)" in said
    assert "- no references: not run: mine\n" in said


def test_the_page_of_a_file_of_ratings(root, tmp_path, monkeypatch, capsys):
    """docs/adding-a-dataset.md: what `validate` says of its file, and the columns that there are."""
    page = (root / "docs/adding-a-dataset.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(page.split("```csv\n")[1].split("```")[0])
    assert main(["validate", "mine.csv"]) == 0
    assert capsys.readouterr().out == page.split("```text\n")[1].split("```")[0]
    assert main(["validate", "mine.csv", "--params", str(root / "params.yaml")]) == 0, "as the repository ships it"
    assert "What there will not be" in capsys.readouterr().out
    listed = page.split("| column |")[1].split("\n\n")[0]
    names = {name for line in listed.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert names - {"reference", "system", "annotator"} == set(COLUMNS)
    assert main(["read", "mine.csv"]) == 0
    assert main(["score", "data/tables/mine", "--metric", "f1", "--output", "f1.parquet"]) == 0
    assert main(["correlate", "f1.parquet", "--ratings", "data/tables/mine/ratings.parquet"]) == 0
    assert "mine,turn,turn,warmth,f1,f1,pooled,spearman," in capsys.readouterr().out
