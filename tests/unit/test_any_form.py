"""Files of ratings and votes as people have them: what is read, what is proposed, and what is refused."""

import json
import shlex

import pandas as pd
import pytest

from comperdial.cli import main
from comperdial.core.errors import ComperdialError, FileError, SchemaError
from comperdial.data import readers
from comperdial.data.columns import lay_out, markup, strip_markup
from comperdial.data.files import read_file
from comperdial.data.readers.table import read_content
from comperdial.data.votes import read_votes


def written(folder, name, content):
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif name.lower().endswith(("jsonl", "ndjson")):
        path.write_text("".join(json.dumps(record) + "\n" for record in content))
    else:
        path.write_text(json.dumps(content))
    return path


def understood(path, **options):
    return lay_out(read_file(path), path, **options)


def ratings(path, options=None):
    """Return {(context, system, annotator, dimension): rating} of a file."""
    frame = readers.read("table", "mine", {"table": path}, options)["ratings"]
    keys = frame[["item_id", "system_id", "annotator_id", "dimension"]].itertuples(index=False, name=None)
    return dict(zip(keys, frame["rating"], strict=True))


ROWS = "system,response,rating\na,hello,4\nb,hi,1\na,well,3\n"
RECORDS = [
    dict(zip(("system", "response", "rating"), row, strict=True))
    for row in (("a", "hello", 4), ("b", "hi", 1), ("a", "well", 3))
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", ROWS),
        ("MINE.CSV", ROWS),
        ("mine.tsv", ROWS.replace(",", "\t")),
        ("mine.csv", "Our ratings\n\n" + ROWS),
        ("mine.csv", "Our ratings;;\n3 raters;;\n" + ROWS.replace(",", ";")),
        ("mine.csv", ROWS.replace(",", ";")),
        ("mine.csv", b"\xef\xbb\xbf" + ROWS.encode()),
        ("mine.csv", ROWS.encode("utf-16")),
        ("mine.csv", ROWS.replace("hello,4", "hello,4,,").replace("rating\n", "rating,,\n")),
        ("mine.jsonl", RECORDS),
        ("mine.json", RECORDS),
        ("mine.jsonl", json.dumps(RECORDS)),
        ("mine.jsonl", json.dumps(RECORDS, indent=1)),
        ("mine.csv", json.dumps(RECORDS)),
        ("mine.json", {"about": {"version": 1}, "items": RECORDS}),
    ],
)
def test_every_format_holds_the_same_records(tmp_path, name, content):
    assert ratings(written(tmp_path, name, content)) == {
        ("1", "a", "1", "rating"): 4,
        ("2", "b", "1", "rating"): 1,
        ("3", "a", "1", "rating"): 3,
    }


def test_letters_of_windows_and_short_rows_are_reported(tmp_path):
    file = read_file(
        written(tmp_path, "mine.csv", "system,response,rating,note\na,café,4\nb,x,2,ok\n".encode("cp1252"))
    )
    assert file.frame["response"].tolist() == ["café", "x"]
    assert file.frame["note"].tolist() == ["", "ok"]
    assert file.notes == [
        "line 2 is not UTF-8: read as Windows-1252; if letters look wrong, save the file as UTF-8",
        "1 of 2 rows are shorter than the header: the cells that they lack count as empty",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.csv", "a,b\n1,2,3\n", "line 2: 3 cells; expected 2"),
        ("mine.csv", "", "the file is empty"),
        ("mine.csv", "a,a\n1,2\n", "two columns are called 'a'"),
        (
            "mine.csv",
            "Our ratings, 2026\n" + ROWS,
            "line 2: 3 cells; expected 2, as in the header. If line 2 is the header",
        ),
        (
            "mine.csv",
            "Item,,Ann\nsystem,response,rating\na,hello,4\nb,hi,1\n",
            "rows 1 and 2: two header rows.*'Ann rating'",
        ),
        (
            "mine.csv",
            "Item,Item,Ann\nsystem,response,rating\na,hello,4\nb,hi,1\n",
            "rows 1 and 2: two header rows",
        ),
        ("mine.doc", "x", "unknown kind of file"),
        ("mine.xlsx", "x", "not a readable Excel|no workbook|not valid"),
        ("mine.json", "[1, 2]", "no list of JSON objects"),
        ("mine.jsonl", '{"a": 1}\n[2]\n', "line 2: a JSON list"),
        ("mine.parquet", b"PAR1 nothing", "not a readable Parquet file"),
        ("mine.csv", b"\x00\xff\xfe\xff", "not UTF-8"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, message):
    with pytest.raises(ComperdialError, match=message):
        understood(written(tmp_path, name, content))


def test_workbooks(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    assert openpyxl
    texts = pd.DataFrame({"item": [1, 2], "answer_x": ["one text", "two texts"], "answer_y": ["a b", "c d"]})
    sheets = {f"rater{n}": pd.DataFrame({"fluency_x": [n, 2], "fluency_y": [3, n]}) for n in (1, 2)}
    with pd.ExcelWriter(tmp_path / "mine.XLSX", engine="openpyxl") as book:
        for name, frame in {"Texts": texts, **sheets}.items():
            frame.to_excel(book, sheet_name=name, index=False)
    assert ratings(tmp_path / "mine.XLSX") == {
        (item, system, f"rater{n}", "fluency"): value
        for n in (1, 2)
        for item, system, value in (("1", "x", n), ("2", "x", 2), ("1", "y", 3), ("2", "y", n))
    }
    with pd.ExcelWriter(tmp_path / "two.xlsx", engine="openpyxl") as book:
        for name in ("one", "two"):
            pd.DataFrame({name: [1]}).to_excel(book, sheet_name=name, index=False)
    with pytest.raises(FileError, match=r"2 sheets with different columns: one, two.*--sheet 'one'"):
        read_file(tmp_path / "two.xlsx")
    assert read_file(tmp_path / "two.xlsx", "two").frame["two"].tolist() == [1]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("model,model_answer,query,gold,score", ("system_id", "response", "history", "references", "rating")),
        (
            "Model Name,Completion,User Message,Reference,Rating (1-5)",
            ("system_id", "response", "history", "references", "rating"),
        ),
        ("system,summary,document,target,quality_1_5", ("system_id", "response", "history", "references", "rating")),
        (
            "generator,generated_answer_de,question_de,gold_answer_de,overall",
            ("system_id", "response", "history", "references", "rating"),
        ),
        (
            "Input.model_type,Input.summary,Input.dialogue,WorkerId,Answer.Fluency",
            ("system_id", "response", "history", "annotator_id", "rating"),
        ),
    ],
)
def test_names_in_use_are_known(tmp_path, header, columns):
    cells = {"system_id": "abab", "response": ["one text", "two texts", "my text", "no text"], "annotator_id": "1122"}
    cells |= {
        "history": ["what is it now ?"] * 2 + ["who goes there ?"] * 2,
        "references": ["a long gold text"] * 4,
        "rating": "1425",
    }
    lines = [",".join(row) for row in zip(*(cells[ours] for ours in columns), strict=True)]
    layout = understood(written(tmp_path, "mine.csv", "\n".join([header, *lines])))
    assert layout.columns == dict(zip(columns, header.split(","), strict=True))


def test_a_scale_in_a_column_s_name(tmp_path):
    content = "response,Safety Score (1-5),ok_0_1,tone_out_of_7\none text,5,1,3\nmore text,4,0,2\n"
    layout = understood(written(tmp_path, "mine.csv", content))
    assert layout.scales == {"Safety Score": (1, 5), "ok": (0, 1), "tone": (1, 7)}
    assert "all responses are by one, called 'mine'" in layout.notes[0]


def test_what_is_no_rating_by_people_is_not_taken_for_one(tmp_path):
    """Ids, times, metrics, judges, ranks and conditions are numbers, too."""
    content = "id,system,response,rater,seconds,rouge_l,gpt4_score,rank,condition,fluency\n"
    lines = [f"{n},s{n // 2 % 2},some text {n // 2},r{n % 2},{n + 3},0.{n},4,{n},{n // 4},{n % 5}" for n in range(8)]
    layout = understood(written(tmp_path, "mine.csv", content + "\n".join(lines)))
    assert layout.dimensions == {"fluency": "fluency"}
    assert layout.judges == ["gpt4_score"]


def test_what_is_not_sure_is_proposed_and_right_when_pasted(tmp_path):
    content = "Text,Architecture,Rater,cond,a_joy,a_fear\n" + "\n".join(
        f"a text of words {n // 2},{'xy'[n // 2 % 2]},{n % 2},{n // 4},{n % 5},{(n * n) % 5}" for n in range(8)
    )
    path = written(tmp_path, "mine.csv", content)
    with pytest.raises(SchemaError, match="unclear") as caught:
        understood(path)
    words = shlex.split(str(caught.value).partition("--columns ")[2])
    columns = json.loads(words[0])
    assert columns == {
        "response": "Text",
        "system_id": "Architecture",
        "rating": ["a_joy", "a_fear"],
        "annotator_id": "Rater",
    }
    assert understood(path, columns=columns).dimensions == {"a_joy": "a_joy", "a_fear": "a_fear"}


def test_labels_get_numbers(tmp_path):
    content = "system,response,Mistake,tone\na,one text,Yes,calm\nb,two texts,No,calm\n"
    content += "a,more text,To some extent,hot\nb,x y,Yes,hot\n"
    path = written(tmp_path, "mine.csv", content)
    with pytest.raises(SchemaError, match="labels, which need numbers: Mistake") as caught:
        understood(path)
    words = shlex.split(str(caught.value).partition("--columns ")[2].replace(" --labels ", " "))
    columns, labels = map(json.loads, words)
    assert labels == {"Yes": 2, "No": 0, "To some extent": 1}
    assert list(ratings(path, {"columns": columns, "labels": labels}).values()) == [2, 0, 1, 2]


def test_titles_and_remarks_in_workbooks(tmp_path):
    """Titles above the header and sheets of remarks are noted; two rows of names are refused; suggested is a likely sheet."""
    pytest.importorskip("openpyxl")
    table = [["system", "response", "rating"], ["a", "hello", 4], ["b", "hi", 1], ["a", "well", 3]]

    def book(**sheets):
        with pd.ExcelWriter(tmp_path / "mine.xlsx", engine="openpyxl") as writer:
            for name, rows in sheets.items():
                pd.DataFrame(rows).to_excel(writer, sheet_name=name, index=False, header=False)
        return read_file(tmp_path / "mine.xlsx")

    file = book(Guide=[["Guidelines"], ["Be nice."]], Ratings=[["Our ratings"], ["3 raters"], [], *table])
    assert file.frame.columns.tolist() == table[0] and file.frame["rating"].tolist() == [4, 1, 3]
    assert file.notes == [
        "row 4 has the names of columns; above it: Our ratings; 3 raters",
        "sheets of one column, not read: Guide",
    ]
    with pytest.raises(FileError, match="rows 1 and 2: two header rows"):
        book(Ratings=[["Item", "Item", "Ann"], *table])
    more = [["note", "x"], ["1", "2"]]
    with pytest.raises(FileError, match=r"3 sheets with different columns.*--sheet 'Bob'"):
        book(Guide=more, Ann=table, Bob=[[*row, "x"] for row in table])
    file = book(Guide=[["Be nice."]] * 2, Ann=table, Bob=[[*row, f"x{n}"] for n, row in enumerate(table)], Cat=table)
    assert file.frame["sheet"].value_counts().to_dict() == {"Ann": 3, "Bob": 3, "Cat": 3}
    texts = [["item", "system", "response"], [1, "a", "hello"], [2, "b", "hi"]]
    with pytest.raises(FileError, match="sheet 'Ann' has rows that are not in sheet 'Texts'"):
        book(Texts=texts, Ann=[["item", "rating"], [1, 2], [3, 4]], Bob=[["item", "rating"], [1, 2], [2, 4]])


def test_an_option_that_is_given_twice_is_refused(tmp_path, capsys):
    path = written(tmp_path, "mine.csv", ROWS)
    assert main(["validate", str(path), "--sheet", "Ann", "--sheet", "Bob"]) == 2
    assert "--sheet was given twice" in capsys.readouterr().err


def test_a_sheet_that_nobody_filled_in(tmp_path):
    with pytest.raises(SchemaError, match="no column contains human ratings; empty, so not rated yet: quality"):
        understood(written(tmp_path, "mine.csv", "system,response,quality\na,one text,\nb,two texts,\n"))


def test_raters_as_columns(tmp_path):
    path = written(tmp_path, "mine.csv", "context_id,system,response,annotator1,annotator2\nc,a,x,4,5\nc,b,y,1,\n")
    assert ratings(path) == {
        ("c", "a", "annotator1", "rating"): 4,
        ("c", "b", "annotator1", "rating"): 1,
        ("c", "a", "annotator2", "rating"): 5,
    }
    one = written(tmp_path, "one.csv", "system,response,rating_out_of_5(rater1)\na,x,4\nb,y,1\n")
    assert set(ratings(one)) == {("1", "a", "rater1", "rating"), ("2", "b", "rater1", "rating")}


def test_systems_side_by_side(tmp_path):
    content = "question,answer_a,score_a,answer_b,score_b\nwhat is it ?,one text,4,two texts,1\nand now ?,one more,3,two more,2\n"
    assert set(ratings(written(tmp_path, "mine.csv", content)).values()) == {4, 1, 3, 2}
    layout = understood(tmp_path / "mine.csv")
    assert layout.frame["system_id"].tolist() == ["a", "a", "b", "b"]
    assert layout.dimensions == {"score": "score"}


def test_judges_are_told_from_people(tmp_path):
    lines = [f"c{n},s,some text {n},{who},{n % 5}" for n in range(4) for who in ("ann", "gpt-4")]
    path = written(tmp_path, "mine.csv", "\n".join(["context_id,system,response,annotator,rating", *lines]))
    frame = readers.read("table", "mine", {"table": path})["ratings"]
    assert frame.groupby("source")["rating"].size().to_dict() == {"human": 4, "gpt-4": 4}


def test_nested_records(tmp_path):
    """Lists of annotations, maps of systems, and records within both."""
    listed = [
        {
            "id": str(n),
            "dialogue": "a long dialogue",
            "summary": f"text {n} {m}",
            "model_id": m,
            "annotations": [{"fluency": n + 1, "relevance": 3}, {"fluency": 5, "relevance": 2}],
        }
        for n in range(2)
        for m in "AB"
    ]
    found = ratings(written(tmp_path, "listed.jsonl", listed))
    assert found["0", "A", "1", "fluency"] == 1 and found["1", "B", "2", "relevance"] == 2 and len(found) == 16
    mapped = [
        {
            "passage-id": p,
            "questions": {
                q: {
                    s: {"response": f"{s} says {p}{q}", "reviews": [{"worker_id": "w", "overall": len(s)}]}
                    for s in ("x", "yy")
                }
                for q in "01"
            },
        }
        for p in ("p1", "p2")
    ]
    found = ratings(written(tmp_path, "mapped.jsonl", mapped))
    assert found == {(f"{p}/{q}", s, "w", "overall"): len(s) for p in ("p1", "p2") for q in "01" for s in ("x", "yy")}


def test_logs_of_tools_hold_no_ratings(tmp_path):
    log = {
        "evalId": "x",
        "results": {"version": 3, "results": [{"response": {"output": f"text {n}"}, "score": n} for n in range(3)]},
    }
    with pytest.raises(SchemaError, match=r"a log of promptfoo.*--scores"):
        understood(written(tmp_path, "log.json", log))


def test_markup_is_counted_and_removed_on_request(tmp_path):
    content = 'system,response,rating\na,"<p>Tom &amp; Ann</p>",1\nb,"one <v>mark</v>",2\nc,"itâ€™s",3\nd,plain < text > 2,4\n'
    layout = understood(written(tmp_path, "mine.csv", content))
    assert markup(layout) == [
        "1 texts with HTML tags; --strip-markup removes them",
        "1 texts with error marks; --strip-markup removes them",
        "1 texts with HTML entities; --strip-markup removes them",
        "1 texts with wrongly decoded characters; --strip-markup removes them",
    ]
    strip_markup(layout)
    assert layout.frame["response"].tolist() == ["Tom & Ann", "one mark", "it’s", "plain < text > 2"]


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        (
            "mine.csv",
            "model,answer,question,gold,quality (1-5),gpt4_score,tone\na,<b>hi</b> you,hello ?,hey,4,3,\n"
            "b,no and no,hello ?,hey,2,1,\n",
            [
                "mine.csv: a file of rated responses",
                "columns of ratings that are empty: tone",
                "columns system_id is 'model', response is 'answer'",
                "dimension quality: 1 to 5 (as the file says)",
                "markup 1 texts with HTML tags; --strip-markup removes them",
                "judges columns of scores that are not people's: gpt4_score",
                "system a context 1 (dialogue 1, turn 0) history A: hello ? response <b>hi</b> you reference hey",
                "rated quality 4 by 1",
                "Next: comperdial compare mine.csv",
            ],
        ),
        (
            "votes.csv",
            "question_id,model_a,model_b,winner,gpt4_choice\n1,x,y,A,B\n2,v,w,tie,tie\n",
            [
                "votes.csv: votes between two",
                "votes 4 on 2 pairs",
                "votes by human 2, gpt4 2",
                "first x second y vote x by 1 (human) vote y by gpt4 (gpt4)",
                "Next: comperdial preferences votes.csv",
            ],
        ),
        (
            "empty.csv",
            "system,response,quality\na,one text,\nb,two texts,\n",
            [
                "empty.csv: responses without ratings",
                "empty, so not rated yet: quality",
                "Next: comperdial score empty.csv --metrics NAME",
            ],
        ),
        (
            "scores.csv",
            "id,model,bleu,f1\n1,a,.5,.25\n1,b,.2,.1\n",
            [
                "scores.csv: scores of responses",
                "metric bleu: score, 2 scores from 0.2 to 0.5",
                "compare RATINGS --scores scores.csv",
            ],
        ),
        (
            "log.json",
            {
                "testCases": [
                    {
                        "name": "c",
                        "input": "why ?",
                        "actualOutput": "so",
                        "metricsData": [{"name": "fit", "score": 1, "evaluationModel": "j"}],
                    }
                ]
            },
            [
                "log.json: a log of DeepEval",
                "score fit: 1 from 1 to 1, by j",
                "history why ? response so",
                "compare RATINGS --scores log.json",
            ],
        ),
        (
            "ratings.csv",
            "system,response,rating\na,one text,4\nb,two texts,3\n",
            ["ratings.csv: a file of rated responses"],
        ),
    ],
)
def test_validate_shows_what_a_file_is(tmp_path, monkeypatch, capsys, name, content, lines):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, name, content)
    assert main(["validate", name]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for line in lines:
        assert line in printed


@pytest.mark.parametrize(
    ("content", "choices"),
    [
        ("model_a,model_b,winner\nx,y,model_a\nx,y,tie\nx,y,y\n", ["first", "tie", "second"]),
        (
            "question_id,model_1,model_2,winner1,winner2\n1,x,y,model_1,tie\n2,y,x,model_2,model_1\n",
            ["first", "tie", "second", "first"],
        ),
        ("response_a,response_b,preference\none,two,A\none,two,B\none,two,tie\n", ["first", "second", "tie"]),
        ("generator_1,generator_2,preference\nx,y,1.2\nx,y,1.9\nx,y,1.5\n", ["first", "second", "tie"]),
        (
            "prompt,model_a,model_b,winner_model_a,winner_model_b,winner_tie\np,x,y,1,0,0\nq,x,y,0,0,1\n",
            ["first", "tie"],
        ),
        ("left,right,winner\nx,y,left\ny,x,tie\nx,y,y\n", ["first", "tie", "second"]),
        ("winner,loser\nx,y\ny,x\n", ["first", "first"]),
        ("question,response_0,response_1,better_response_id\nq,one,two,0\nr,one,two,1\n", ["first", "second"]),
        ("id,bot1,bot2,who_won\n1,x,y,bot1\n2,x,y,[[B]]\n3,x,y,A>>B\n", ["first", "second", "first"]),
        (
            "id,Model A,Model B,Verdict\n1,x,y,Model B is better\n2,x,y,A=B\n3,x,y,Both are good\n",
            ["second", "tie", "tie"],
        ),
    ],
)
def test_votes(tmp_path, content, choices):
    path = written(tmp_path, "votes.csv", content)
    frame, _ = read_votes(read_file(path), path)
    assert frame["choice"].tolist() == choices
    assert (frame["source"] == "human").all()
    with pytest.raises(SchemaError, match=r"votes between two, no ratings.*comperdial preferences"):
        understood(path)


def test_a_judge_s_vote_in_the_row_of_each_person_counts_once(tmp_path):
    rows = "q,x,y,ann,model_a,model_b\nq,x,y,bob,tie,model_b\nr,x,y,ann,model_a,tie\nr,x,y,bob,model_a,tie\n"
    path = written(tmp_path, "votes.csv", f"question,model_a,model_b,rater,winner,gpt4_winner\n{rows}")
    frame, notes = read_votes(read_file(path), path)
    assert frame[frame["source"] == "gpt4"].set_index("pair_id")["choice"].tolist() == ["second", "tie"]
    assert len(frame) == 6 and frame["pair_id"].nunique() == 2
    assert "votes of gpt4 repeat in the rows of one pair, always the same: each counts once" in notes


def test_votes_that_are_not_clear(tmp_path):
    path = written(tmp_path, "votes.csv", "model_a,model_b,label,judge\nx,y,0,gpt-4\nx,y,1,gpt-4\n")
    with pytest.raises(SchemaError, match=r"unclear votes: 0, 1.*--labels"):
        read_votes(read_file(path), path)
    frame, notes = read_votes(read_file(path), path, {"0": "first", "1": "second"})
    assert frame["choice"].tolist() == ["first", "second"]
    assert frame["source"].tolist() == ["gpt-4", "gpt-4"]
    assert notes == [
        "no column names what was answered: each row is a pair of its own",
        "votes of judges, not of people: gpt-4",
    ]


@pytest.mark.parametrize(
    ("header", "cells", "votes"),
    [
        (
            "winner,gpt4_choice,judge_winner,winner_reason",
            "A,B,tie,because",
            [("1", "human", "first"), ("gpt4", "gpt4", "second"), ("judge", "judge", "tie")],
        ),
        (
            "annotator1_choice,annotator2_choice",
            "A,B",
            [("annotator1", "human", "first"), ("annotator2", "human", "second")],
        ),
        ("fluency_preference,coherence_preference", "A,B", [("1", "fluency", "first"), ("1", "coherence", "second")]),
    ],
)
def test_whose_votes_columns_hold(tmp_path, header, cells, votes):
    path = written(tmp_path, "votes.csv", f"question_id,model_a,model_b,{header}\n1,x,y,{cells}\n")
    frame, _ = read_votes(read_file(path), path)
    column = "question" if "fluency" in header else "source"
    assert list(frame[["annotator_id", column, "choice"]].itertuples(index=False, name=None)) == votes


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("chosen,rejected\nsome text,other text\n", {}, "chosen and rejected, without their systems"),
        ("model_a,model_b,label\nx,y,1\nx,y,-2\n", {}, "record 2: .*unclear votes: -2, 1;"),
        ("one,two,best of both\nx,y,1\n", {}, r"no votes between two.*one, two, best of both.*--columns"),
        ("one,two,vote\nx,y,1\n", {"winner": "vote"}, "unknown column 'winner'"),
        ("one,two,vote\nx,y,1\n", {"choice": "votes"}, "no column 'votes'"),
    ],
)
def test_what_is_no_vote_gets_a_message(tmp_path, content, columns, message):
    path = written(tmp_path, "votes.csv", content)
    with pytest.raises(ComperdialError, match=message):
        read_votes(read_file(path), path, columns=columns)


def test_votes_with_columns_as_the_user_says(tmp_path):
    path = written(tmp_path, "votes.csv", "one,two,best of both,said\nx,y,1,ann\nx,y,2,gpt\nx,x,1,bob\n")
    columns = {"first_system_id": "one", "second_system_id": "two", "choice": "best of both", "annotator_id": "said"}
    frame, notes = read_votes(read_file(path), path, columns=columns)
    assert frame[["annotator_id", "source", "choice"]].to_numpy().tolist() == [
        ["ann", "human", "first"],
        ["gpt", "gpt", "second"],
    ]
    assert "1 votes left out: their two systems are the same, or one has no name" in notes


def test_an_export_of_label_studio(tmp_path):
    tasks = [
        {
            "id": n,
            "data": {"prompt": f"p{n}", "model_a": "x", "model_b": "y"},
            "annotations": [
                {
                    "completed_by": 7,
                    "result": [{"type": "choices", "from_name": "winner", "value": {"choices": [vote]}}],
                }
            ],
        }
        for n, vote in enumerate(["b_winner", "tie"])
    ]
    path = written(tmp_path, "export.json", tasks)
    frame, _ = read_votes(read_file(path), path)
    assert frame[["annotator_id", "choice"]].to_numpy().tolist() == [["7", "second"], ["7", "tie"]]


def answer(name, score, **more):
    return {**more, "response": f"the text {name}", "score": score}


@pytest.mark.parametrize(
    ("content", "systems", "ratings"),
    [
        # Systems and what each answered; the parts of a data set are no systems.
        ({"A": [answer("A1", 4), answer("A2", 5)], "B": [answer("B1", 2)]}, {"A", "B"}, [("1", 4), ("1", 5), ("1", 2)]),
        (
            {"train": [answer("A1", 4, model="A")], "test": [answer("B1", 2, model="B")]},
            {"A", "B"},
            [("1", 4), ("1", 2)],
        ),
        # Each number of a list is a rater's.
        (
            [answer("A1", [4, 5], model="A"), answer("B1", [1, None], model="B")],
            {"A", "B"},
            [("1", 4), ("2", 5), ("1", 1)],
        ),
    ],
)
def test_objects_of_lists_and_lists_of_numbers(tmp_path, content, systems, ratings):
    tables = readers.read("table", "mine", {"table": written(tmp_path, "mine.json", content)}, None)
    assert {*tables["systems"]["system_id"]} == systems
    found = tables["ratings"].sort_values(["system_id", "item_id", "annotator_id"])
    assert sorted(zip(found["annotator_id"], found["rating"], strict=True)) == sorted(ratings)


def test_lists_of_ratings_written_as_text_and_reasons_for_none(tmp_path):
    path = written(tmp_path, "mine.csv", 'system,response,Scores\nx,a,"[3, 5]"\ny,b,"[1, ""N/A (no errors)""]"\n')
    ratings = readers.read("table", "mine", {"table": path}, None)["ratings"]
    assert sorted(zip(ratings["system_id"], ratings["annotator_id"], ratings["rating"], strict=True)) == [
        ("x", "1", 3),
        ("x", "2", 5),
        ("y", "1", 1),
    ]


def test_a_fact_beside_the_dialogue_and_a_metric_s_predictions(tmp_path):
    """The form of UniEval's files: `source` is the dialogue, `context` a fact, `predict_scores` are not people's."""
    rows = [
        {"source": f"hi there \n how are you {n} ?", "context": f"a fact of {n}", "system_output": f"i am fine {n}",
         "system_id": "xy"[n % 2], "scores": {"natural": n}, "predict_scores": {"natural": n / 10}}
        for n in range(6)
    ]  # fmt: skip
    path = written(tmp_path, "mine.json", rows)
    content = read_content("mine", path)
    assert content.layout.judges == ["predict_scores.natural"] and content.layout.dimensions == {
        "scores.natural": "natural"
    }
    context = content.tables["contexts"].iloc[0]
    assert list(context["facts"]) == ["a fact of 0"] and len(context["history"]) == 2


def test_turns_of_user_and_chatbot(tmp_path):
    turns = [{"user": f"what is {n} ?", "chatbot": f"it is {n} , i think", "overall": n % 3} for n in range(4)]
    path = written(tmp_path, "mine.json", [{"dialog_id": 0, "turns": turns}, {"dialog_id": 1, "turns": turns}])
    contexts = readers.read("table", "mine", {"table": path}, None)["contexts"]
    assert contexts["dialogue_id"].nunique() == 2 and sorted(contexts["turn"]) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_what_is_never_proposed_as_a_rating_or_a_response(tmp_path):
    rows = [
        {"prompt": n, "model_x": n, "judge_reason": f"because of {n}", "turn_ind": n, "quiet": n % 3} for n in range(9)
    ]
    with pytest.raises(SchemaError) as error:
        readers.read("table", "mine", {"table": written(tmp_path, "mine.json", rows)}, None)
    assert '{"response": "FILL_IN", "rating": "quiet"' in str(error.value)


def test_labels_by_rater_and_item(tmp_path):
    path = written(tmp_path, "labels.json", {who: {f"item {n}": n % 3 for n in range(30)} for who in ("ann", "bob")})
    frame = read_file(path).frame
    assert list(frame) == ["annotator", "item", "rating"] and len(frame) == 60


@pytest.mark.parametrize(
    ("name", "content", "votes", "note"),
    [
        # Raters as columns, the two systems in one, 0 a tie.
        (
            "votes.json",
            [
                {
                    "idx": n,
                    "cmp_key": key,
                    "response1": f"one {n}",
                    "response2": f"two {n}",
                    "annotator1": vote,
                    "annotator2": 2,
                }
                for n, (key, vote) in enumerate([("x-1_y", 0), ("y_x-1", 1), ("x-1_y", 2), ("y_x-1", 1)])
            ],
            [("x-1", "y", "annotator1", "tie"), ("x-1", "y", "annotator2", "second")],
            None,
        ),
        (
            "gpt4-votes.csv",
            "id,left,right,winner\n1,x,y,left\n2,y,x,tie\n",
            [("x", "y", "gpt4-votes", "first")],
            "votes of a judge, as the file's name says",
        ),
    ],
)
def test_votes_whose_systems_or_rater_are_elsewhere(tmp_path, name, content, votes, note):
    path = written(tmp_path, name, content)
    frame, notes = read_votes(read_file(path), path)
    columns = ["first_system_id", "second_system_id", "annotator_id", "choice"]
    assert list(frame[columns].itertuples(index=False, name=None))[: len(votes)] == votes
    assert note is None or any(line.startswith(note) for line in notes)


def test_two_columns_of_votes_that_name_nobody(tmp_path):
    nested = {"results": {"swap = False": {"winner": "1"}, "swap = True": {"winner": "2"}}}
    rows = [{"input": f"p {n}", "output_1": f"a {n}", "output_2": f"b {n}", "label": 1, **nested} for n in range(3)]
    path = written(tmp_path, "votes.json", rows)
    with pytest.raises(SchemaError, match="several columns contain votes by unknown raters: label, winner"):
        read_votes(read_file(path), path)
    frame, _ = read_votes(read_file(path), path, columns={"choice": "label"})
    assert list(frame["choice"]) == ["first"] * 3


@pytest.mark.parametrize(
    ("cells", "values", "scale"),
    [
        (["4/5", "2/5"], [4, 2], (1, 5)),
        (["7 out of 10", "2 out of 10"], [7, 2], (1, 10)),
        (["80%", "10 %"], [80, 10], (0, 100)),
        (["★★★★☆", "★☆☆☆☆"], [4, 1], (1, 5)),
        (["⭐⭐⭐", "⭐"], [3, 1], (1, 3)),
        (["4 - agree", "1 - strongly disagree"], [4, 1], (1, 4)),
        (["5 (great)", "2 (poor)"], [5, 2], (2, 5)),
    ],
)
def test_ratings_written_otherwise_than_as_a_number(tmp_path, cells, values, scale):
    rows = "".join(f'{system},some text,"{cell}"\n' for system, cell in zip("xy", cells, strict=True))
    path = written(tmp_path, "mine.csv", f"system,response,rating\n{rows}")
    ratings = readers.read("table", "mine", {"table": path}, None)["ratings"]
    assert list(ratings["rating"]) == values and (*ratings.loc[0, ["scale_min", "scale_max"]],) == scale


def test_an_export_of_qualtrics(tmp_path):
    rows = [
        "system,response,rating",
        "System,The text,How good?",
        *['"{""ImportId"":""Q1""}"' + ",,", "x,a,4", "y,b,2"],
    ]
    file = read_file(written(tmp_path, "mine.csv", "\n".join(rows) + "\n"))
    assert file.frame["rating"].tolist() == ["4", "2"] and list(file.rows) == [4, 5]
    assert file.notes == ["an export of Qualtrics: the questions' texts and import ids below the header are no records"]


@pytest.mark.parametrize(
    "names",
    ["R1 R2", "A1 A2", "rater_1_score rater_2_score", "Annotator_1_(1-5) Annotator_2_(1-5)", "score1 score2",
     "Worker_A_rating Worker_B_rating", "quality_1 quality_2", "labeler_1 labeler_2"],
)  # fmt: skip
def test_columns_that_are_raters(tmp_path, names):
    rows = "x,some text,4,5\ny,more text,2,1\nx,other text,5,4\n"
    path = written(tmp_path, "mine.csv", f"system,response,{','.join(names.split())}\n{rows}")
    ratings = readers.read("table", "mine", {"table": path}, None)["ratings"]
    assert ratings["annotator_id"].nunique() == 2 and ratings["dimension"].nunique() == 1 and len(ratings) == 6


def test_raters_that_only_the_user_knows(tmp_path):
    path = written(tmp_path, "mine.csv", "system,response,Anna,Bob\nx,some text,4,5\ny,more text,2,1\n")
    with pytest.raises(SchemaError, match=r'If these are raters.*--columns .*"annotator_id": \['):
        readers.read("table", "mine", {"table": path}, None)
    options = {"columns": {"annotator_id": ["Anna", "Bob"]}}
    ratings = readers.read("table", "mine", {"table": path}, options)["ratings"]
    assert {*ratings["annotator_id"]} == {"Anna", "Bob"} and {*ratings["dimension"]} == {"rating"}


def test_codes_for_no_rating_and_scales_that_are_upside_down(tmp_path):
    path = written(tmp_path, "mine.csv", "system,response,rating\nx,a,-1\nx,b,4\ny,c,2\n")
    with pytest.raises(SchemaError, match=r'look like codes for none: -1 \(1 times\).*--labels \'{"-1": null}'):
        readers.read("table", "mine", {"table": path}, None)
    assert len(readers.read("table", "mine", {"table": path}, {"labels": {"-1": None}})["ratings"]) == 2
    path = written(tmp_path, "mine.csv", "system,response,rating (1 = best)\nx,a,1\nx,b,4\ny,c,5\n")
    assert list(readers.read("table", "mine", {"table": path}, None)["ratings"]["rating"]) == [5, 2, 1]


def test_sources_with_texts_of_their_own_are_systems(tmp_path):
    rows = "".join(f"{q},{who},{who} says {q},{n}\n" for q in "abc" for n, who in enumerate(("gpt-4", "human"), 1))
    path = written(tmp_path, "mine.csv", f"prompt,source,response,rating\n{rows}")
    tables = readers.read("table", "mine", {"table": path}, None)
    assert {*tables["systems"]["system_id"]} == {"gpt-4", "human"} and {*tables["ratings"]["source"]} == {"human"}


@pytest.mark.parametrize(
    "people", [("Anna", "Bob"), ("rater_A", "rater_B"), ("A1", "A2"), ("annotator1_vote", "annotator2_vote")]
)
@pytest.mark.parametrize("judge", ["gpt-4o", "judge_gpt4o", "gpt4o_vote"])
def test_votes_in_columns_of_people_and_judges(tmp_path, people, judge):
    rows = "1,x,y,model_a,tie,model_b\n2,y,x,model_b,model_b,tie\n"
    path = written(tmp_path, "votes.csv", f"id,model_a,model_b,{','.join(people)},{judge}\n{rows}")
    frame, _ = read_votes(read_file(path), path)
    assert frame.groupby("source").size()["human"] == 4 and len(frame) == 6 and frame["annotator_id"].nunique() == 3


def test_votes_nested_beside_the_two_answers(tmp_path):
    rows = [
        {"responses": {"a": {"model": "x", "text": "hi"}, "b": {"model": "y", "text": "ho"}}, "id": n,
         "annotations": [{"annotator": "ann", "winner": "model_a"}], "judges": [{"judge": "gpt-4", "winner": "tie"}]}
        for n in range(3)
    ]  # fmt: skip
    path = written(tmp_path, "votes.jsonl", "\n".join(map(json.dumps, rows)))
    frame, _ = read_votes(read_file(path), path)
    assert frame.groupby(["source", "choice"]).size().to_dict() == {("gpt-4", "tie"): 3, ("human", "first"): 3}


def test_ratings_of_experts_and_of_the_crowd(tmp_path):
    rows = [
        {"id": str(n), "model_id": m, "decoded": f"a text of {m} {n}", "expert_annotations": [{"fluency": 4}, {"fluency": 5}],
         "turker_annotations": [{"fluency": 1}]}
        for n in range(3) for m in "xy"
    ]  # fmt: skip
    path = written(tmp_path, "mine.jsonl", "\n".join(map(json.dumps, rows)))
    ratings = readers.read("table", "mine", {"table": path}, None)["ratings"]
    assert {*ratings["annotator_id"]} == {"expert_annotations 1", "expert_annotations 2", "turker_annotations 1"}


def test_dimensions_with_names_near_those_of_no_ratings(tmp_path):
    path = written(
        tmp_path, "mine.csv", "system,response,attention_score,Mistake_Identification,age\nx,a b,1,2,30\ny,c d,2,1,40\n"
    )
    with pytest.raises(SchemaError) as error:
        readers.read("table", "mine", {"table": path}, None)
    assert '"rating": ["attention_score", "Mistake_Identification"]' in str(error.value)


TALK = [("user", "hi there", ""), ("bot", "hello you", 4), ("user", "and now ?", ""), ("bot", "no idea", 2)]


def test_ratings_by_dimension_in_a_map(tmp_path):
    """Where items are from is not who rated."""
    records = [
        {
            "source": "web",
            "instruction": f"question {n}",
            "meta": {},
            "completions": [
                {
                    "model": m,
                    "response": f"{m} {n}",
                    "annotations": {"helpfulness": {"Rating": n}, "honesty": {"Rating": 2}},
                }
                for m in ("x", "y")
            ],
        }
        for n in (1, 2)
    ]
    path = written(tmp_path, "mine.json", records)
    frame = readers.read("table", "mine", {"table": path})["ratings"]
    assert {*frame["source"]} == {"human"}
    by = frame.groupby(["system_id", "dimension"], observed=True)["rating"].agg(list).to_dict()
    assert by == {(m, one): ratings for m in "xy" for one, ratings in (("helpfulness", [1, 2]), ("honesty", [2, 2]))}


@pytest.mark.parametrize("rating", ["", ",rating"])
def test_numbered_judges_may_be_people(tmp_path, capsys, rating):
    rows = ["a,hello,4,5", "b,hi,1,2", "a,well,3,3"]
    content = "\n".join([f"system,response,judge_1,judge_2{rating}", *(row + (rating and ",3") for row in rows)])
    path = written(tmp_path, "mine.csv", content)
    assert main(["validate", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "judge_1, judge_2: counted as judges that are programs; if they are people, add --columns" in shown
    columns = json.loads(shown.partition("--columns '")[2].partition("'")[0])
    assert {key[2] for key in ratings(path, {"columns": columns})} == {"judge_1", "judge_2"}


def test_two_scores_of_two_answers_are_refused(tmp_path):
    record = {
        "question_id": 1,
        "answer1_id": "a",
        "answer2_id": "b",
        "text": "The first is good.",
        "score": [8, 9],
        "meta": {},
    }
    with pytest.raises(SchemaError, match="two answers and two scores"):
        understood(written(tmp_path, "mine.jsonl", [record] * 3))


def utterances(*dialogues, names="dialogue_id,turn,speaker,text,rating", rest=()):
    """Return a CSV with one utterance a row; ``rest`` are further cells of the rows of each dialogue."""
    lines = [
        ",".join(map(str, (dialogue, turn, *utterance, *(rest[dialogue] if rest else ()))))
        for dialogue, talk in enumerate(dialogues)
        for turn, utterance in enumerate(talk)
    ]
    return "\n".join([names, *lines, ""])


def talk(*ratings, speakers=("user", "bot")):
    return [(speakers[n % 2], f"this is {n}", rating) for n, rating in enumerate(ratings)]


def test_one_utterance_a_row(tmp_path):
    """Utterances of the system are responses, with those before them; users' are none."""
    tables = readers.read("table", "mine", {"table": written(tmp_path, "mine.csv", utterances(TALK, talk("", 1)))})
    assert tables["responses"][["context_id", "response"]].to_numpy().tolist() == [
        ["0-1", "hello you"],
        ["0-3", "no idea"],
        ["1-1", "this is 1"],
    ]
    history = tables["contexts"].set_index("context_id")["history"]
    assert [tuple(one.values()) for one in history["0-3"]] == [
        ("user", "hi there"),
        ("bot", "hello you"),
        ("user", "and now ?"),
    ]
    assert tables["ratings"][["level", "item_id", "rating"]].to_numpy().tolist() == [
        ["turn", "0-1", 4],
        ["turn", "0-3", 2],
        ["turn", "1-1", 1],
    ]


RATED_TURNS = [
    {"role": role, "content": f"this is {n}"} | ({"marks": {"relevance": n, "interest": n + 1}} if n % 2 else {})
    for n, role in enumerate(("user", "assistant") * 2)
]
MESSAGES = [{"role": "user", "content": "hi you"}, {"role": "assistant", "content": "hello"}] * 2
CELL = "User: hi you\nBot: hello\nand welcome\nUser: bye now\nBot: bye"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # Ratings of turns, in the file's order, from two raters, and of systems that the speakers name.
        ("a.csv", utterances(talk("", 4, "", 2)).replace("turn", "x"), {("turn", "0-1"): [4], ("turn", "0-3"): [2]}),
        (
            "a.csv",
            "dialogue_id,turn,speaker,text,rater,rating\n"
            "0,0,user,hi you,,\n0,1,bot,hello,ann,4\n0,1,bot,hello,bob,2\n0,2,user,bye,,\n0,3,bot,no,ann,1\n",
            {("turn", "0-1"): [4, 2], ("turn", "0-3"): [1]},
        ),
        (
            "a.csv",
            "dialogue_id,speaker,text,rater,rating\n"
            "0,user,hi you,,\n0,bot,hello,ann,4\n0,bot,hello,bob,2\n0,user,bye,,\n0,bot,no,ann,1\n",
            {("turn", "0-1"): [4, 2], ("turn", "0-3"): [1]},
        ),
        (
            "a.csv",
            utterances(talk("", 4, "", 2, speakers=("Customer", "gpt-x")), talk("", 1, speakers=("Customer", "lam"))),
            {("turn", "0-1"): [4], ("turn", "0-3"): [2], ("turn", "1-1"): [1]},
        ),
        ("a.csv", utterances(talk("", 4, "", 2, speakers="AB")), {("turn", "0-1"): [4], ("turn", "0-3"): [2]}),
        # Ratings of dialogues: beside all utterances, or those of the system in many dialogues.
        ("a.csv", utterances(talk(4, 4, 4, 4), talk(2, 2)), {("dialogue", "0"): [4], ("dialogue", "1"): [2]}),
        (
            "a.csv",
            utterances(*[talk("", n % 2, "", n % 2) for n in range(6)]),
            {("dialogue", str(n)): [n % 2] for n in range(6)},
        ),
        (
            "a.csv",
            utterances(talk("", "", "", 4), talk("", 2)).replace("rating", "dialogue rating"),
            {("dialogue", "0"): [4], ("dialogue", "1"): [2]},
        ),
        # One response a dialogue: the rating is that response's.
        ("a.csv", utterances(talk(4, 4), talk(2, 2)), {("turn", "0-1"): [4], ("turn", "1-1"): [2]}),
        # Dialogues in cells.
        ("a.jsonl", [{"messages": MESSAGES, "score": n} for n in (3, 1)], "several ratings"),
        (
            "a.jsonl",
            [{"conv_id": n, "messages": MESSAGES, "score": n} for n in (3, 1)],
            {("dialogue", "3"): [3], ("dialogue", "1"): [1]},
        ),
        ("a.csv", f'dialog_id,dialog,rating\nx,"{CELL}",4\n', {("dialogue", "x"): [4]}),
        (
            "a.jsonl",
            [{"conv_id": 1, "dialogue": RATED_TURNS, "overall": 3}],
            {("turn", "1-2"): [1, 2], ("turn", "1-4"): [3, 4], ("dialogue", "1"): [3]},
        ),
        # What may mean two things.
        ("a.csv", utterances(talk("", "", "", 4), talk("", "", "", 2)), "ratings of utterances or of whole"),
        ("a.csv", utterances(talk("", 4, "", 4), talk("", 2, "", 2)), "ratings of utterances or of whole"),
        ("a.csv", utterances(talk(1, "", 2, "")), "ratings of utterances by users"),
        ("a.csv", utterances(talk(1, 2, 3, 4)), "ratings of utterances by users"),
        ("a.csv", utterances(talk(1, 2, 3, 4, speakers="AB")), "which speaker in 'speaker' is the system"),
        ("a.csv", utterances(TALK, TALK).replace("\n1,", "\n0,").replace("you,4", "there,4", 1), "two utterances in one"),
        ("a.csv", 'dialog_id,dialog,rating\n1,"A: hi you\nB: hello",4\n', "which speaker in 'dialog' is the system"),
    ],
)  # fmt: skip
def test_dialogues_are_read_by_turn_or_as_a_whole_or_refused(tmp_path, name, content, expected):
    path = written(tmp_path, name, content)
    if isinstance(expected, str):
        with pytest.raises(SchemaError, match=expected):
            understood(path)
        return
    frame = readers.read("table", "mine", {"table": path})["ratings"]
    assert frame.groupby(["level", "item_id"], observed=True)["rating"].agg(list).to_dict() == expected


def test_what_a_rating_beside_the_last_utterance_rates_can_be_chosen(tmp_path):
    path = written(tmp_path, "mine.csv", utterances(talk("", "", "", 4), talk("", "", "", 2)))
    with pytest.raises(SchemaError) as caught:
        understood(path)
    chosen = [json.loads(part) for part in shlex.split(caught.value.hint) if part.startswith("{")]
    levels = [readers.read("table", "mine", {"table": path}, {"columns": one})["ratings"]["level"] for one in chosen]
    assert [[*one] for one in levels] == [["turn", "turn"], ["dialogue", "dialogue"]]
