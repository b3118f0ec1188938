"""A user's own file of ratings in any form: reading, proposals and errors."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, FileError, SchemaError
from comperdial.core.files import write_table
from comperdial.data.columns import lay_out, markup, strip_markup
from comperdial.data.files import read_file
from comperdial.data.readers.table import rated
from ownfiles import ratings, rows, tables, write


def understood(path, **options):
    return lay_out(read_file(path), path, **options)


def read(folder, content, name="mine.csv", **options):
    return tables(write(folder, name, content), **options)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        order = list(schema.table(name).key)
        pd.testing.assert_frame_equal(
            found[name].sort_values(order, ignore_index=True), frame.sort_values(order, ignore_index=True)
        )


# Kinds of files

ROWS = "system,response,rating\na,hello,4\nb,hi,1\na,well,3\n"
RECORDS = [
    dict(zip(("system", "response", "rating"), row, strict=True))
    for row in (("a", "hello", 4), ("b", "hi", 1), ("a", "well", 3))
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", ROWS),
        ("mine.tsv", ROWS.replace(",", "\t")),
        ("mine.csv", "Our ratings;;\n3 raters;;\n" + ROWS.replace(",", ";")),
        ("mine.csv", ROWS.encode("utf-16")),
        ("mine.jsonl", RECORDS),
        ("mine.csv", json.dumps(RECORDS)),
        ("mine.json", RECORDS),
        ("mine.jsonl", json.dumps(RECORDS, indent=1)),
        ("mine.json", {"about": {"version": 1}, "items": RECORDS}),
    ],
)
def test_every_kind_of_file_holds_the_same_records(tmp_path, name, content):
    assert ratings(write(tmp_path, name, content)) == {"1 a 1 rating": 4, "2 b 1 rating": 1, "3 a 1 rating": 3}


def test_windows_letters_and_short_rows_are_noted(tmp_path):
    content = "system,response,rating,note\na,café,4\nb,x,2,ok\n".encode("cp1252")
    file = read_file(write(tmp_path, "mine.csv", content))
    assert rows(file.frame, "response", "note") == [("café", ""), ("x", "ok")]
    encoding, short = file.notes
    assert "line 2 is not UTF-8: read as Windows-1252" in encoding and short.startswith("1 of 2 rows are shorter")


TABLE = [["system", "response", "rating"], ["a", "hello", 4], ["b", "hi", 1], ["a", "well", 3]]


@pytest.fixture
def book(tmp_path):
    """Return a function: sheets by name, as rows of cells -> the path of a workbook."""
    pytest.importorskip("openpyxl")

    def write_book(**sheets):
        with pd.ExcelWriter(tmp_path / "mine.XLSX", engine="openpyxl") as writer:
            for name, cells in sheets.items():
                width = max(map(len, cells))
                filled = [[*row, *[None] * (width - len(row))] for row in cells]
                pd.DataFrame(filled).to_excel(writer, sheet_name=name, index=False, header=False)
        return tmp_path / "mine.XLSX"

    return write_book


def test_a_workbook_of_texts_and_a_sheet_for_each_rater(book):
    texts = [["item", "answer_x", "answer_y"], [1, "one text", "a b"], [2, "two texts", "c d"]]
    sheets = {f"rater{n}": [["fluency_x", "fluency_y"], [n, 3], [2, n]] for n in (1, 2)}
    assert ratings(book(Texts=texts, **sheets)) == {
        f"{item} {system} rater{n} fluency": value
        for n in (1, 2)
        for item, system, value in (("1", "x", n), ("2", "x", 2), ("1", "y", 3), ("2", "y", n))
    }


def test_workbook_titles_remarks_and_several_sheets(book):
    file = read_file(book(Guide=[["Guidelines"], ["Be nice."]], Ratings=[["Our ratings"], ["3 raters"], [], *TABLE]))
    assert file.frame.columns.tolist() == TABLE[0] and file.frame["rating"].tolist() == [4, 1, 3]
    assert file.notes[0] == "row 4 has the names of columns; above it: Our ratings; 3 raters"
    assert file.notes[1] == "sheets of one column, not read: Guide"
    wider = [[*row, f"x{n}"] for n, row in enumerate(TABLE)]
    file = read_file(book(Guide=[["Be nice."]] * 2, Ann=TABLE, Bob=wider, Cat=TABLE))
    assert file.frame["sheet"].value_counts().to_dict() == {"Ann": 3, "Bob": 3, "Cat": 3}
    assert read_file(book(one=[["one"], [1]], two=[["two"], [1]]), "two").frame["two"].tolist() == [1]


def test_incompatible_sheets_are_refused(book):
    with pytest.raises(FileError, match=r"2 sheets with different columns: one, two.*--sheet 'one'"):
        read_file(book(one=[["one"], [1]], two=[["two"], [1]]))
    raters = {"Ann": [["item", "rating"], [1, 2], [3, 4]], "Bob": [["item", "rating"], [1, 2], [2, 4]]}
    with pytest.raises(FileError, match="sheet 'Ann' has rows that are not in sheet 'Texts'"):
        read_file(book(Texts=[["item", "system", "response"], [1, "a", "hello"], [2, "b", "hi"]], **raters))


def test_qualtrics_export_has_two_extra_header_rows(tmp_path):
    lines = ["system,response,rating", "System,The text,How good?", '"{""ImportId"":""Q1""}",,', "x,a,4", "y,b,2"]
    file = read_file(write(tmp_path, "mine.csv", "\n".join(lines) + "\n"))
    assert file.frame["rating"].tolist() == ["4", "2"] and list(file.rows) == [4, 5]
    assert file.notes[0].startswith("an export of Qualtrics")


def test_spreadsheet_artefacts(tmp_path):
    head = "context_id,annotator,system,response,rating\n"
    plain = read(tmp_path, f"{head}1,7,a,x,3.5\n1,8,a,x,2\n2,7,a,y,1\n")
    odd = (
        "Context ID;Annotator;System;Response;Rating;;\r\n1.0;7.0;a;x;3,5;;\r\n1;8;a;x;2;;\r\n2;7;a;y;1;;\r\n;;;;;;\r\n"
    )
    assert_same(read(tmp_path, odd.encode("utf-8-sig")), plain)
    frame = pd.DataFrame({"context_id": [1.0, 1.0, 2.0, None], "annotator": [7, 8, 7, 7], "system": "a"})
    write_table(tmp_path / "mine.parquet", frame.assign(response=["x", "x", "y", None], rating=[3.5, 2, 1, None]))
    assert_same(tables(tmp_path / "mine.parquet"), plain)


# Meaning of columns


def test_common_column_names_are_recognised(tmp_path):
    header = "Input.model_type,Input.summary,Input.dialogue,WorkerId,Gold (text),Answer.Fluency"
    lines = ["a,one text,what now ?,1,a gold text,4", "b,two texts,what now ?,1,a gold text,2", "a,x y,who ?,2,gold,5"]
    layout = understood(write(tmp_path, "mine.csv", "\n".join([header, *lines])))
    columns = "system_id response history annotator_id references rating"
    assert layout.columns == dict(zip(columns.split(), header.split(","), strict=True))


def test_a_program_may_be_an_annotator_or_a_system(tmp_path):
    lines = "".join(f"c{n},s,text {n},{who},{n}\n" for n in range(4) for who in ("ann", "gpt-4"))
    found = read(tmp_path, f"context_id,system,response,annotator,rating\n{lines}")
    assert found["ratings"].groupby("source").size().to_dict() == {"human": 4, "gpt-4": 4}
    lines = "".join(f"{q},{who},{who} on {q},r,{n}\n" for n, q in enumerate("abc") for who in ("gpt-4", "human"))
    found = read(tmp_path, f"prompt,source,response,rater,rating\n{lines}")
    assert {*found["ratings"]["source"]} == {"human"} and {*found["systems"]["system_id"]} == {"gpt-4", "human"}


def test_labels_by_rater_and_item(tmp_path):
    path = write(tmp_path, "labels.json", {who: {f"item {n}": n % 3 for n in range(30)} for who in ("ann", "bob")})
    frame = read_file(path).frame
    assert list(frame) == ["annotator", "item", "rating"] and len(frame) == 60


def answer(name, score, **more):
    return {**more, "response": f"the text {name}", "score": score}


IN_A_MAP = [
    {"source": "web", "instruction": f"question {n}", "meta": {},
     "completions": [{"model": m, "response": f"{m} {n}", "annotations": {"helpfulness": {"Rating": n}, "honesty": {"Rating": 2}}}
                     for m in "xy"]}
    for n in (1, 2)
]  # fmt: skip
EXPERTS = [
    {"id": "1", "model_id": m, "decoded": f"a text of {m}", "expert_annotations": [{"fluency": 4}, {"fluency": 5}],
     "turker_annotations": [{"fluency": 1}]}
    for m in "xy"
]  # fmt: skip
MAPPED = [
    {"passage-id": p, "questions": {q: {s: {"response": f"{s} says {p}{q}", "reviews": [{"worker_id": "w", "overall": len(s)}]}
                                        for s in ("x", "yy")} for q in "01"}}
    for p in ("p1", "p2")
]  # fmt: skip
FORMS = {
    "maps of systems in maps of questions": (
        "m.jsonl", MAPPED, {f"{p}/{q} {s} w overall": len(s) for p in ("p1", "p2") for q in "01" for s in ("x", "yy")},
    ),
    "a number in the name of each rater's column": (
        "m.csv", "system,response,score1,score2\nx,some text,4,5\ny,more text,5,4\n",
        {"1 x 1 rating": 4, "1 x 2 rating": 5, "2 y 1 rating": 5, "2 y 2 rating": 4},
    ),
    "raters as columns": (
        "m.csv", "context_id,system,response,annotator1,annotator2\nc,a,x,4,5\nc,b,y,1,\n",
        {"c a annotator1 rating": 4, "c b annotator1 rating": 1, "c a annotator2 rating": 5},
    ),
    "systems side by side": (
        "m.csv", "question,answer_a,score_a,answer_b,score_b\nwhat is it ?,one text,4,two texts,1\nand now ?,a b,3,c d,2\n",
        {"1 a 1 score": 4, "1 b 1 score": 1, "2 a 1 score": 3, "2 b 1 score": 2},
    ),
    "a map of dimensions": (
        "m.json", IN_A_MAP,
        {f"{n} {m} 1 {what}": value for n in (1, 2) for m in "xy" for what, value in (("helpfulness", n), ("honesty", 2))},
    ),
    "experts and the crowd": (
        "m.jsonl", EXPERTS,
        {f"1 {m} {who} fluency": value for m in "xy" for who, value in
         (("expert_annotations 1", 4), ("expert_annotations 2", 5), ("turker_annotations 1", 1))},
    ),
    "systems and what each answered": (
        "m.json", {"A": [answer("A1", 4), answer("A2", 5)], "B": [answer("B1", 2)]},
        {"1 A 1 score": 4, "2 A 1 score": 5, "3 B 1 score": 2},
    ),
    "a number for each rater in a list": (
        "m.json", [answer("A1", [4, 5], model="A"), answer("B1", [1, None], model="B")],
        {"1 A 1 score": 4, "1 A 2 score": 5, "2 B 1 score": 1},
    ),
    "a scale upside down": (
        "m.csv", "system,response,rating (1 = best)\nx,a,1\nx,b,4\ny,c,5\n",
        {"1 x 1 rating (1 = best)": 5, "2 x 1 rating (1 = best)": 2, "3 y 1 rating (1 = best)": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms(tmp_path, form):
    name, content, expected = FORMS[form]
    assert ratings(write(tmp_path, name, content)) == expected


@pytest.mark.parametrize(
    ("cells", "values", "scale"),
    [
        (["4/5", "2/5"], [4, 2], (1, 5)),
        (["80%", "10 %"], [80, 10], (0, 100)),
        (["★★★★☆", "★☆☆☆☆"], [4, 1], (1, 5)),
        (["5 (great)", "2 (poor)"], [5, 2], (2, 5)),
    ],
)
def test_non_numeric_ratings(tmp_path, cells, values, scale):
    lines = "".join(f'{system},some text,"{cell}"\n' for system, cell in zip("xy", cells, strict=True))
    found = tables(write(tmp_path, "mine.csv", f"system,response,rating\n{lines}"))["ratings"]
    assert list(found["rating"]) == values and (*found.loc[0, ["scale_min", "scale_max"]],) == scale


def test_scale_in_a_column_name(tmp_path):
    content = "response,Safety Score (1-5),ok_0_1,tone_out_of_7\none text,5,1,3\nmore text,4,0,2\n"
    layout = understood(write(tmp_path, "mine.csv", content))
    assert layout.scales == {"Safety Score": (1, 5), "ok": (0, 1), "tone": (1, 7)}
    assert "all responses are by one, called 'mine'" in layout.notes[0]


def test_ids_times_metrics_judges_ranks_and_conditions_are_not_ratings(tmp_path):
    lines = [f"{n},s{n // 2 % 2},some text {n // 2},r{n % 2},{n + 3},0.{n},4,{n},{n // 4},{n % 5}" for n in range(8)]
    header = "id,system,response,rater,seconds,rouge_l,gpt4_score,rank,condition,fluency"
    layout = understood(write(tmp_path, "mine.csv", "\n".join([header, *lines])))
    assert layout.dimensions == {"fluency": "fluency"} and layout.judges == ["gpt4_score"]


def test_numbered_judges_may_be_people(tmp_path, capsys):
    path = write(tmp_path, "mine.csv", "system,response,judge_1,judge_2\na,hello,4,5\nb,hi,1,2\na,well,3,3\n")
    assert main(["validate", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "judge_1, judge_2: counted as judges that are programs; if they are people, add --columns" in shown
    columns = json.loads(shown.partition("--columns '")[2].partition("'")[0])
    assert {key.split()[2] for key in ratings(path, columns=columns)} == {"judge_1", "judge_2"}


def test_facts_next_to_the_dialogue_and_metric_predictions(tmp_path):
    """The form of UniEval's files: `source` is the dialogue, `context` a fact, `predict_scores` are not people's."""
    records = [
        {"source": f"hi there \n how are you {n} ?", "context": f"a fact of {n}", "system_output": f"i am fine {n}",
         "system_id": "xy"[n % 2], "scores": {"natural": n}, "predict_scores": {"natural": n / 10}}
        for n in range(6)
    ]  # fmt: skip
    path = write(tmp_path, "mine.json", records)
    layout = understood(path)
    assert (layout.judges, layout.dimensions) == (["predict_scores.natural"], {"scores.natural": "natural"})
    context = tables(path)["contexts"].iloc[0]
    assert list(context["facts"]) == ["a fact of 0"] and len(context["history"]) == 2


def test_markup_is_counted_and_removed_on_request(tmp_path):
    content = 'system,response,rating\na,"<p>Tom &amp; Ann</p>",1\nb,"one <v>mark</v>",2\nc,"itâ€™s",3\nd,plain < text > 2,4\n'
    layout = understood(write(tmp_path, "mine.csv", content))
    assert [line.removeprefix("1 texts with ").partition(";")[0] for line in markup(layout)] == [
        "HTML tags", "error marks", "HTML entities", "wrongly decoded characters",
    ]  # fmt: skip
    strip_markup(layout)
    assert layout.frame["response"].tolist() == ["Tom & Ann", "one mark", "it’s", "plain < text > 2"]


# Uncertain readings are proposed


def proposed(path):
    """Return the message about a file, and the JSON that it gives to paste: --columns, and --labels if it has one."""
    with pytest.raises(SchemaError) as caught:
        tables(path)
    text = str(caught.value)
    parts = shlex.split(text.partition("--columns ")[2])
    return text, [json.loads(part.rstrip(".")) for part in parts if part[0] == "{"]


SURE = "Text,Architecture,Rater,cond,a_joy,a_fear\n" + "\n".join(
    f"a text of words {n // 2},{'xy'[n // 2 % 2]},{n % 2},{n // 4},{n % 5},{(n * n) % 5}" for n in range(8)
)
QUIET = [
    {"prompt": n, "model_x": n, "judge_reason": f"because of {n}", "turn_ind": n, "quiet": n % 3} for n in range(9)
]


@pytest.mark.parametrize(
    ("name", "content", "message", "columns"),
    [
        ("m.csv", SURE, "no column is clearly the response",
         {"response": "Text", "system_id": "Architecture", "rating": ["a_joy", "a_fear"], "annotator_id": "Rater"}),
        ("m.csv", "system,response,Anna,Bob\nx,some text,4,5\ny,more text,2,1\n", "If these are raters",
         {"rating": ["Anna", "Bob"]}),
        ("m.json", QUIET, "", {"response": "FILL_IN", "rating": "quiet"}),
    ],
)  # fmt: skip
def test_proposed_columns(tmp_path, name, content, message, columns):
    path = write(tmp_path, name, content)
    text, (found, *_) = proposed(path)
    assert message in text and found.items() >= columns.items()
    if "FILL_IN" not in found.values():
        assert {*tables(path, columns=found)["ratings"]["dimension"]} == {*found["rating"]}


def test_labels_get_proposed_numbers(tmp_path):
    lines = ["a,one text,Yes,calm", "b,two texts,No,calm", "a,more text,To some extent,hot", "b,x y,Yes,hot"]
    path = write(tmp_path, "mine.csv", "\n".join(["system,response,Mistake,tone", *lines]))
    text, (columns, labels) = proposed(path)
    assert "labels, which need numbers: Mistake" in text and labels == {"Yes": 2, "No": 0, "To some extent": 1}
    assert list(ratings(path, columns=columns, labels=labels).values()) == [2, 0, 1, 2]


def test_missing_rating_codes(tmp_path):
    path = write(tmp_path, "mine.csv", "system,response,rating\nx,a,-1\nx,b,4\ny,c,2\n")
    with pytest.raises(SchemaError, match=r'look like codes for none: -1 \(1 times\).*--labels \'{"-1": null}'):
        tables(path)
    assert ratings(path, labels={"-1": None}) == {"2 x 1 rating": 4, "3 y 1 rating": 2}


# Dialogues


def utterances(*dialogues):
    """Return a CSV with one utterance a row."""
    lines = [
        ",".join(map(str, (number, turn, *utterance)))
        for number, dialogue in enumerate(dialogues)
        for turn, utterance in enumerate(dialogue)
    ]
    return "\n".join(["dialogue_id,turn,speaker,text,rating", *lines, ""])


def talk(*marks, speakers=("user", "bot")):
    return [(speakers[n % 2], f"this is {n}", mark) for n, mark in enumerate(marks)]


TALK = [("user", "hi there", ""), ("bot", "hello you", 4), ("user", "and now ?", ""), ("bot", "no idea", 2)]


def test_one_utterance_per_row(tmp_path):
    """The system's utterances are responses, with the preceding ones as history; the user's are not."""
    found = tables(write(tmp_path, "mine.csv", utterances(TALK, talk("", 1))))
    assert rows(found["responses"], "context_id", "response") == [
        ("0-1", "hello you"), ("0-3", "no idea"), ("1-1", "this is 1"),
    ]  # fmt: skip
    history = found["contexts"].set_index("context_id")["history"]["0-3"]
    assert [tuple(one.values()) for one in history] == [speech[:2] for speech in TALK[:3]]
    assert rows(found["ratings"], "level", "item_id", "rating") == [
        ("turn", "0-1", 4), ("turn", "0-3", 2), ("turn", "1-1", 1),
    ]  # fmt: skip


RATED_TURNS = [
    {"role": role, "content": f"this is {n}"} | ({"marks": {"relevance": n, "interest": n + 1}} if n % 2 else {})
    for n, role in enumerate(("user", "assistant") * 2)
]
MESSAGES = [{"role": "user", "content": "hi you"}, {"role": "assistant", "content": "hello"}] * 2
CELL = "User: hi you\nBot: hello\nand welcome\nUser: bye now\nBot: bye"
WITHOUT_TURN = "0,user,hi you,,\n0,bot,hello,ann,4\n0,bot,hello,bob,2\n0,user,bye,,\n0,bot,no,ann,1\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # Ratings of turns, in the file's order, from two raters, and of systems that the speakers name.
        ("a.csv", utterances(talk("", 4, "", 2)).replace("turn", "x"), {("turn", "0-1"): [4], ("turn", "0-3"): [2]}),
        ("a.csv", f"dialogue_id,speaker,text,rater,rating\n{WITHOUT_TURN}", {("turn", "0-1"): [4, 2], ("turn", "0-3"): [1]}),
        ("a.csv", utterances(talk("", 4, "", 2, speakers=("Customer", "gpt-x")), talk("", 1, speakers=("Customer", "lam"))),
         {("turn", "0-1"): [4], ("turn", "0-3"): [2], ("turn", "1-1"): [1]}),
        ("a.csv", utterances(talk("", 4, "", 2, speakers="AB")), {("turn", "0-1"): [4], ("turn", "0-3"): [2]}),
        # Ratings of dialogues: on all utterances, or those of the system in many dialogues.
        ("a.csv", utterances(talk(4, 4, 4, 4), talk(2, 2)), {("dialogue", "0"): [4], ("dialogue", "1"): [2]}),
        ("a.csv", utterances(*[talk("", n % 2, "", n % 2) for n in range(6)]),
         {("dialogue", str(n)): [n % 2] for n in range(6)}),
        # One response a dialogue: the rating is that response's.
        ("a.csv", utterances(talk(4, 4), talk(2, 2)), {("turn", "0-1"): [4], ("turn", "1-1"): [2]}),
        # Dialogues in cells.
        ("a.jsonl", [{"conv_id": n, "messages": MESSAGES, "score": n} for n in (3, 1)],
         {("dialogue", "3"): [3], ("dialogue", "1"): [1]}),
        ("a.csv", f'dialog_id,dialog,rating\nx,"{CELL}",4\n', {("dialogue", "x"): [4]}),
        ("a.jsonl", [{"conv_id": 1, "dialogue": RATED_TURNS, "overall": 3}],
         {("turn", "1-2"): [1, 2], ("turn", "1-4"): [3, 4], ("dialogue", "1"): [3]}),
        # Ambiguous files.
        ("a.csv", utterances(talk("", "", "", 4), talk("", "", "", 2)), "ratings of utterances or of whole"),
        ("a.csv", utterances(talk("", 4, "", 4), talk("", 2, "", 2)), "ratings of utterances or of whole"),
        ("a.csv", utterances(talk(1, 2, 3, 4)), "ratings of utterances by users"),
        ("a.csv", utterances(talk(1, 2, 3, 4, speakers="AB")), "which speaker in 'speaker' is the system"),
        ("a.csv", utterances(TALK, TALK).replace("\n1,", "\n0,").replace("you,4", "there,4", 1), "two utterances in one"),
    ],
)  # fmt: skip
def test_dialogues_are_read_by_turn_or_as_a_whole_or_refused(tmp_path, name, content, expected):
    path = write(tmp_path, name, content)
    if isinstance(expected, str):
        with pytest.raises(SchemaError, match=expected):
            understood(path)
        return
    found = tables(path)["ratings"]
    assert found.groupby(["level", "item_id"], observed=True)["rating"].agg(list).to_dict() == expected


def test_target_of_rating_on_last_utterance_can_be_chosen(tmp_path):
    path = write(tmp_path, "mine.csv", utterances(talk("", "", "", 4), talk("", "", "", 2)))
    _, chosen = proposed(path)
    assert [[*tables(path, columns=one)["ratings"]["level"]] for one in chosen] == [["turn"] * 2, ["dialogue"] * 2]


# Into tables


def turns(found):
    return found["ratings"].query("level == 'turn'")


def test_three_columns_are_enough(tmp_path, caplog):
    found = read(tmp_path, "system,response,rating\na,hello,4\nb,hi,1\na,well,3.5\n")
    assert rows(found["systems"], "system_id", "kind") == [("a", "agent"), ("b", "agent")]
    empty = [(name, name, 0, [], [], []) for name in "123"]
    assert rows(found["contexts"], "context_id", "dialogue_id", "turn", "history", "references", "facts") == empty
    assert rows(
        found["ratings"], "level", "annotator_id", "dimension", "rating", "scale_min", "scale_max", "source"
    ) == [("turn", "1", "rating", rating, 1, 4, "human") for rating in (4, 1, 3.5)]
    assert "no scale is given for rating: used is the range of the ratings, 1 to 4" in caplog.text


def test_contexts_differ_by_content(tmp_path):
    found = read(
        tmp_path,
        "history,reference,facts,system,response,rating\n"
        '"hi\nand you?",fine,"[""likes tea"", ""is 30""]",a,good,4\n'
        '"hi\nand you?",fine,"[""likes tea"", ""is 30""]",b,bad,2\n'
        '"[""hi"", ""and you?""]",great,[sighs] no,a,good,5\n,,,a,good,5\n',
    )
    assert rows(found["responses"], "context_id", "system_id") == [("1", "a"), ("1", "b"), ("2", "a"), ("3", "a")]
    history = [{"speaker": "B", "text": "hi"}, {"speaker": "A", "text": "and you?"}]
    assert rows(found["contexts"], "history", "references", "facts") == [
        (history, ["fine"], ["likes tea", "is 30"]), (history, ["great"], ["[sighs] no"]), ([], [], []),
    ]  # fmt: skip


def test_columns_and_scales_given_by_user(tmp_path):
    options = {"columns": {"response": "reply", "rating": ["warmth", "humour"]}, "scale": {"warmth": [1, 5]}}
    found = read(tmp_path, "reply,System,warmth,humour\nx,a,4,0\ny,a,,1\nz,b,NA,\n", **options)
    assert rows(turns(found), "item_id", "dimension", "rating", "scale_min", "scale_max") == [
        ("1", "warmth", 4, 1, 5), ("1", "humour", 0, 0, 1), ("2", "humour", 1, 0, 1),
    ]  # fmt: skip
    assert len(found["responses"]) == 3, "also a response that nobody rated"
    kind = read(tmp_path, "response,system,kind\nx,a,4\n", columns={"rating": ["kind"]})
    assert rows(turns(kind), "dimension", "rating") == [("kind", 4)]


def test_a_row_without_a_response_rates_the_dialogue(tmp_path):
    content = (
        "dialogue_id,turn,system,response,annotator,dimension,rating,scale_min,scale_max\n"
        "d1,0,a,hello,ann,Overall,4,1,5\nd1,0,a,hello,bob,Overall,2,1,5\nd1,1,a,bye,ann,Overall,5,1,5\n"
        "d1,,a,,ann,Overall,3,1,5\nd1,,a,,ann,Fluency,1,0,1\nd1,2,a,,,,,,\n"
    )
    found = read(tmp_path, content)
    assert rows(found["contexts"], "context_id", "dialogue_id", "turn") == [("1", "d1", 0), ("2", "d1", 1)]
    assert rows(found["ratings"], "level", "item_id", "annotator_id", "dimension", "rating", "scale_max") == [
        ("turn", "1", "ann", "Overall", 4, 5), ("turn", "1", "bob", "Overall", 2, 5), ("turn", "2", "ann", "Overall", 5, 5),
        ("dialogue", "d1", "ann", "Overall", 3, 5), ("dialogue", "d1", "ann", "Fluency", 1, 1),
    ]  # fmt: skip
    assert rated(tmp_path / "mine.csv") == (("turn", "dialogue"), {"Overall", "Fluency"}, {"human"})
    path = write(tmp_path, "turns.csv", "".join(content.splitlines(keepends=True)[:4]))
    assert rated(path).levels == ("turn",)
    assert rated(write(tmp_path, "none.csv", "response,system,rating\nx,a,\n")).levels == ()


def test_several_responses_from_one_system_to_one_context(tmp_path):
    head = "context_id,dialogue_id,turn,reference,system,response,rating\n"
    found = read(tmp_path, f"{head}c1,d,2,r,a,one,1\nc1,d,2,r,b,other,2\nc1,d,2,r,a,two,3\nc2,d,3,r,a,four,5\n")
    contexts = [(name, "d", 2, ["r"]) for name in ("c1", "c1 (2)")]
    assert rows(found["contexts"], "context_id", "dialogue_id", "turn", "references") == [
        *contexts,
        ("c2", "d", 3, ["r"]),
    ]
    assert rows(found["responses"], "context_id", "system_id", "response") == [
        ("c1", "a", "one"), ("c1 (2)", "a", "two"), ("c1", "b", "other"), ("c2", "a", "four"),
    ]  # fmt: skip
    assert rows(turns(found), "item_id", "rating") == [("c1", 1), ("c1", 2), ("c1 (2)", 3), ("c2", 5)]


def test_unused_column_is_reported_with_suggestion(tmp_path, caplog):
    caplog.set_level("INFO")
    read(tmp_path, "system,contxt,context,response,refrence,topic,rating\na,1,hi,x,r,t,3\nb,1,hi,y,r,t,2\n")
    assert "columns not used: contxt, refrence (did you mean reference?), topic" in caplog.text


# Texts and names in cells


@pytest.mark.parametrize(
    "as_text",
    [
        str,
        lambda texts: str(np.array(texts)),
        lambda texts: repr(np.array(texts, dtype=object)),
        lambda texts: "[" + ", ".join(f"np.str_({text!r})" for text in texts) + "]",
    ],
    ids=["list", "array", "array's repr", "np.str_"],
)
def test_list_in_a_cell_is_parsed_in_any_notation(tmp_path, as_text):
    """Numpy prints no commas, breaks long lines, and changes quotes where a text has an apostrophe."""
    texts = ["It's a boat.", 'She calls it "Ann".', "[rocks] and sand", "a line\nand another", "b\\c, d"] * 3
    records = [
        {"context_id": f"c{number}", "system": system, "response": f"{system} {number}", "rating": number}
        | dict.fromkeys(("references", "facts", "history"), texts[number:])
        for number in range(2)
        for system in ("a", "b")
    ]
    cells = pd.DataFrame(records)
    for column in ("references", "facts", "history"):
        cells[column] = cells[column].map(as_text)
    assert_same(read(tmp_path, cells.to_csv(index=False)), read(tmp_path, records, "mine.jsonl"))


@pytest.mark.parametrize("text", ["NA", "null", "-"])
def test_words_for_missing_are_valid_texts_but_not_ratings(tmp_path, text):
    lines = f"c,{text},{text},a,{text},1\nc,{text},{text},b,{text},{text}\nc,s,x,a,{text},2\n"
    found = read(tmp_path, f"context_id,system,response,annotator,references,rating\n{lines}")
    assert sorted(rows(found["ratings"], "system_id", "annotator_id", "rating")) == sorted(
        [(text, "a", 1), ("s", "a", 2)]
    )
    assert found["contexts"]["references"].tolist() == [[text]]


# Mistakes

HEAD = "response,system,rating"
LOG = {"evalId": "x", "results": {"version": 3, "results": [{"response": {"output": "a text"}, "score": 1}] * 3}}
TWO_ANSWERS = {"question_id": 1, "answer1_id": "a", "answer2_id": "b", "text": "The first.", "score": [8, 9]}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2,3\n", {}, "line 2: 3 cells; expected 2"),
        ("a,a\n1,2\n", {}, "two columns are called 'a'"),
        ("Our ratings, 2026\n" + ROWS, {}, "line 2: 3 cells; expected 2, as in the header. If line 2 is the he"),
        ("Item,,Ann\n" + ROWS, {}, "rows 1 and 2: two header rows.*'Ann rating'"),
        (b"\x00\xff\xfe\xff", {}, "not UTF-8"),
        ([1, 2], {}, "line 1: a JSON int"),
        (b"PAR1 nothing", {"name": "mine.parquet"}, "not a readable Parquet file"),
        ("x", {"name": "mine.xlsx"}, "not a readable Excel|no workbook|not valid"),
        ("x", {"name": "mine.doc"}, "unknown kind of file"),
        (json.dumps(LOG), {"name": "log.json"}, "a log of promptfoo.*--scores"),
        ([TWO_ANSWERS] * 3, {}, "two answers and two scores"),
        ("response,system\nx,a\n", {}, "mine.csv: no column contains human ratings.*the file has: response, system"),
        (f"{HEAD}\nx,a,1\n", {"columns": {"rating": "warmth"}}, "no column 'warmth', which `columns`"),
        (f"{HEAD}\nx,a,1\n,b,2\n", {}, "record 2: a rating, and no response"),
        (f"{HEAD}\nx,a,1\ny,,2\n", {}, "record 2: no system"),
        (f"{HEAD}\nx,a,good\n", {}, "record 1, column 'rating': holds 'good'; expected a number"),
        (f"{HEAD}\nx,a,5\ny,a,7\n", {"scale": [1, 5]}, r"record 2: rating 7 .*expected 1 to 5"),
        (f"{HEAD},context_id,annotator\nx,a,5,c,ann\nx,a,4,c,ann\n", {}, "record 2: .* several ratings .*by annotator 'ann'"),
        (f"{HEAD},context_id,history\nx,a,5,c,hi\ny,b,4,c,ho\n", {}, "record 2: context 'c' has another history"),
        (f"{HEAD},kind\nx,a,5,robot\n", {}, "record 1, column 'kind': 'robot'; expected one of agent"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_in_one_line(tmp_path, content, options, message):
    name = "mine.jsonl" if isinstance(content, list) else "mine.csv"
    with pytest.raises(ComperdialError, match=message) as caught:
        read(tmp_path, content, **{"name": name} | options)
    assert "\n" not in str(caught.value)


# comperdial validate


FIT = {"name": "fit", "score": 1, "evaluationModel": "j"}
DEEPEVAL = {"testCases": [{"name": "c", "input": "why ?", "actualOutput": "so", "metricsData": [FIT]}]}
RATED = "question,reply,bot,warmth,gpt4_score\nhi?,<b>yes</b>,a,4,9\nhi?,no,b,1,7\nyou?,me,a,5,3\nyou?,you,b,,2\n"


@pytest.mark.parametrize(
    ("content", "columns", "lines"),
    [
        ("question_id,model_a,model_b,winner,gpt4_choice\n1,x,y,A,B\n2,v,w,tie,tie\n", {}, [
            "mine.csv: votes between two", "votes 4 on 2 pairs", "votes by human 2, gpt4 2",
            "Next: comperdial preferences mine.csv",
        ]),
        ("id,model,bleu,f1\n1,a,.5,.25\n1,b,.2,.1\n", {}, [
            "mine.csv: scores of responses", "metric bleu: score, 2 scores from 0.2 to 0.5",
            "compare RATINGS --scores mine.csv",
        ]),
        (json.dumps(DEEPEVAL), {}, ["mine.csv: a log of DeepEval", "score fit: 1 from 1 to 1, by j"]),
        (RATED, {"response": "reply", "system_id": "bot", "history": "question", "rating": "warmth"}, [
            "ratings 3 of responses, 0 of dialogues", "with references 0, history 2, facts 0 of 2 contexts",
            "dimension warmth: 1 to 5 (as in the data", "markup 1 texts with HTML tags; --strip-markup removes them",
            "- no references: not run: bertscore, bleu", "- 2 rated systems, fewer than three: no system level",
        ]),
    ],
)  # fmt: skip
def test_validate_describes_file_and_unavailable_results(tmp_path, monkeypatch, capsys, content, columns, lines):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "mine.csv", content)
    assert main(["validate", "mine.csv", *(["--columns", json.dumps(columns)] if columns else [])]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert [line for line in lines if line not in printed] == []


def test_a_file_is_read_into_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "mine.csv", "reply,system,reference,rating\nx y,a,x z,4\ny,b,y,2\n")
    options = ["--columns", '{"response": "reply"}', "--scale", "1", "5"]
    assert main(["read", "mine.csv", *options]) == 0
    assert main(["read", "mine.csv", "--name", "other", "--output", "there", *options]) == 0
    for folder, name in (("data/tables/mine", "mine"), ("there", "other")):
        names = {path.stem for path in (tmp_path / folder).iterdir()}
        assert names == {"systems", "contexts", "personas", "responses", "ratings"}
        assert set(schema.read(tmp_path / folder / "ratings.parquet", "ratings")["dataset"]) == {name}
