"""A user's own file of votes between two systems, in any form."""

import json

import pytest

from comperdial.core.errors import ComperdialError, SchemaError
from comperdial.data.columns import lay_out
from comperdial.data.files import read_file
from comperdial.data.votes import read_votes
from ownfiles import rows, write


def votes(path, *arguments, **options):
    return read_votes(read_file(path), path, *arguments, **options)


@pytest.mark.parametrize(
    ("content", "choices"),
    [
        ("model_a,model_b,winner\nx,y,model_a\nx,y,tie\nx,y,y\n", "first tie second"),
        ("question_id,model_1,model_2,winner1,winner2\n1,x,y,model_1,tie\n2,y,x,model_2,model_1\n", "first tie second first"),
        ("response_a,response_b,preference\none,two,A\none,two,B\none,two,tie\n", "first second tie"),
        ("prompt,model_a,model_b,winner_model_a,winner_model_b,winner_tie\np,x,y,1,0,0\nq,x,y,0,0,1\n", "first tie"),
        ("winner,loser\nx,y\ny,x\n", "first first"),
        ("question,response_0,response_1,better_response_id\nq,one,two,0\nr,one,two,1\n", "first second"),
        ("id,bot1,bot2,who_won\n1,x,y,bot1\n2,x,y,[[B]]\n3,x,y,A>>B\n", "first second first"),
    ],
)  # fmt: skip
def test_forms(tmp_path, content, choices):
    path = write(tmp_path, "votes.csv", content)
    frame, _ = votes(path)
    assert frame["choice"].tolist() == choices.split()
    assert (frame["source"] == "human").all()
    with pytest.raises(SchemaError, match=r"votes between two, no ratings.*comperdial preferences"):
        lay_out(read_file(path), path)


LABEL_STUDIO = [
    {"id": n, "data": {"prompt": f"p{n}", "model_a": "x", "model_b": "y"},
     "annotations": [{"completed_by": 7, "result": [{"type": "choices", "from_name": "winner", "value": {"choices": [vote]}}]}]}
    for n, vote in enumerate(["b_winner", "tie"])
]  # fmt: skip
NESTED = [
    {"responses": {"a": {"model": "x", "text": "hi"}, "b": {"model": "y", "text": "ho"}}, "id": n,
     "annotations": [{"annotator": "ann", "winner": "model_a"}], "judges": [{"judge": "gpt-4", "winner": "tie"}]}
    for n in range(2)
]  # fmt: skip
# Both systems in one column, 0 for a tie.
TWO_IN_ONE = [
    {"idx": n, "cmp_key": key, "response1": f"one {n}", "response2": f"two {n}", "annotator1": vote, "annotator2": 2}
    for n, (key, vote) in enumerate([("x-1_y", 0), ("y_x-1", 1), ("x-1_y", 2), ("y_x-1", 1)])
]


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected", "note"),
    [
        ("export.json", LABEL_STUDIO, "annotator_id choice", [("7", "second"), ("7", "tie")], ""),
        ("votes.jsonl", NESTED, "source annotator_id choice", [("human", "ann", "first"), ("gpt-4", "gpt-4", "tie")] * 2, ""),
        ("votes.json", TWO_IN_ONE, "first_system_id second_system_id annotator_id choice",
         [("x-1", "y", "annotator1", "tie"), ("x-1", "y", "annotator2", "second")], ""),
        ("v.csv", "question_id,model_a,model_b,winner,gpt4_choice,judge_winner,winner_reason\n1,x,y,A,B,tie,because\n",
         "annotator_id source choice", [("1", "human", "first"), ("gpt4", "gpt4", "second"), ("judge", "judge", "tie")], ""),
        ("v.csv", "question_id,model_a,model_b,fluency_preference,coherence_preference\n1,x,y,A,B\n", "question choice",
         [("fluency", "first"), ("coherence", "second")], ""),
        ("v.csv", "question,model_a,model_b,rater,winner,gpt4_winner\nq,x,y,ann,model_a,model_b\nq,x,y,bob,tie,model_b\n",
         "source choice", [("human", "first"), ("human", "tie"), ("gpt4", "second")], "votes of gpt4 repeat in the rows of one"),
    ],
)  # fmt: skip
def test_rater_detection(tmp_path, name, content, columns, expected, note):
    frame, notes = votes(write(tmp_path, name, content))
    found = rows(frame, *columns.split())[: len(expected)]
    assert sorted(found) == sorted(expected) if len(frame) == len(expected) else found == expected
    assert not note or any(line.startswith(note) for line in notes)


@pytest.mark.parametrize("people", ["Anna,Bob", "annotator1_vote,annotator2_vote"])
def test_human_and_judge_columns(tmp_path, people):
    lines = "1,x,y,model_a,tie,model_b\n2,y,x,model_b,model_b,tie\n"
    frame, _ = votes(write(tmp_path, "votes.csv", f"id,model_a,model_b,{people},judge_gpt4o\n{lines}"))
    assert frame.groupby("source").size()["human"] == 4 and len(frame) == 6 and frame["annotator_id"].nunique() == 3


def test_labels_and_columns_given_by_user(tmp_path):
    path = write(tmp_path, "votes.csv", "model_a,model_b,label,judge\nx,y,0,gpt-4\nx,y,1,gpt-4\n")
    with pytest.raises(SchemaError, match=r"unclear votes: 0, 1.*--labels"):
        votes(path)
    frame, notes = votes(path, {"0": "first", "1": "second"})
    assert rows(frame, "source", "choice") == [("gpt-4", "first"), ("gpt-4", "second")]
    assert "votes of judges, not of people: gpt-4" in notes
    path = write(tmp_path, "votes.csv", "one,two,best of both,said\nx,y,1,ann\nx,y,2,gpt\nx,x,1,bob\n")
    columns = {"first_system_id": "one", "second_system_id": "two", "choice": "best of both", "annotator_id": "said"}
    frame, notes = votes(path, columns=columns)
    assert rows(frame, "annotator_id", "source", "choice") == [("ann", "human", "first"), ("gpt", "gpt", "second")]
    assert "1 votes left out: their two systems are the same, or one has no name" in notes


SWAPPED = {"results": {"swap = False": {"winner": "1"}, "swap = True": {"winner": "2"}}}
NOBODY = [{"input": f"p {n}", "output_1": f"a {n}", "output_2": f"b {n}", "label": 1, **SWAPPED} for n in range(3)]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("chosen,rejected\nsome text,other text\n", {}, "chosen and rejected, without their systems"),
        ("model_a,model_b,label\nx,y,1\nx,y,-2\n", {}, "record 2: .*unclear votes: -2, 1;"),
        ("one,two,best of both\nx,y,1\n", {}, r"no votes between two.*one, two, best of both.*--columns"),
        ("one,two,vote\nx,y,1\n", {"choice": "votes"}, "no column 'votes'"),
        (json.dumps(NOBODY), {}, "several columns contain votes by unknown raters: label, winner"),
    ],
)
def test_mistakes_are_reported(tmp_path, content, columns, message):
    with pytest.raises(ComperdialError, match=message):
        votes(write(tmp_path, "votes.csv", content), columns=columns)
