"""Single responses with mean ratings, in small files written by hand."""

import json

import pytest

from comperdial.core.errors import ComperdialError, SchemaError, UnknownNameError
from comperdial.data import readers
from minidata import mini_items

DIMENSIONS = ("relevance", "specificity", "interestingness", "understandability", "overall")
USR = {
    "understandability": "Understandable",
    "relevance": "Maintains Context",
    "interestingness": "Engaging",
    "overall": "Overall",
}


def write(folder, lines, key, values=None, **others):
    """Write a text file and five files of ratings; return the files by role."""
    files = {"texts": folder / "texts.txt"}
    files["texts"].write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    for dimension in DIMENSIONS:
        files[dimension] = folder / f"{dimension}.json"
        numbers = (values or {}).get(dimension, [1.0] * len(lines))
        files[dimension].write_text(json.dumps({"other-set": [1.0], key: numbers}))
    for role, content in others.items():
        files[role] = folder / f"{role}.json"
        files[role].write_text(json.dumps(content))
    return files


def read(folder, *arguments, **others):
    return readers.read("comp_turns", "mini", write(folder, *arguments, **others))


# Zhao


def zhao(contexts=2):
    """Return six responses a context, the ground truth first."""
    return [
        (f"PERSONAZHAO-{number * 6 + slot:06d}", "Hello.", f"Topic {number}?", f"Answer {number}.{slot}")
        for number in range(contexts)
        for slot in range(6)
    ]


def test_slots_are_systems_and_the_truth_is_a_reference_of_the_others_only(tmp_path):
    values = {"overall": [1 + place / 4 for place in range(12)]}
    tables = read(tmp_path, zhao(), "persona-zhao", values)
    assert tables["systems"]["system_id"].tolist() == [f"slot-{slot}" for slot in range(6)]
    assert tables["systems"]["kind"].tolist() == ["human", *["agent"] * 5]
    assert "negative" in tables["systems"]["description"].iloc[5]
    contexts = tables["contexts"].set_index("context_id")
    assert sorted(contexts.index) == ["mini-0000", "mini-0000-truth", "mini-0001", "mini-0001-truth"]
    assert contexts["references"]["mini-0001"] == ["Answer 1.0"]
    assert contexts["references"]["mini-0001-truth"] == []
    assert set(contexts["dialogue_id"]) == {"mini-0000", "mini-0001"}
    assert contexts["history"]["mini-0001"] == [
        {"speaker": "B", "text": "Hello."},
        {"speaker": "A", "text": "Topic 1?"},
    ]
    ratings = tables["ratings"]
    assert len(ratings) == 5 * 12
    assert ratings.groupby("dimension")["source"].first().to_dict() == {
        **dict.fromkeys(DIMENSIONS, "gpt-4"),
        "overall": "human",
    }
    found = ratings.set_index(["dimension", "item_id", "system_id"])["rating"]
    assert found["overall", "mini-0001-truth", "slot-0"] == 2.5
    assert found["overall", "mini-0001", "slot-5"] == 3.75
    assert set(ratings["annotator_id"]) == {"mean"}


def changed(lines, place, *fields):
    lines[place] = (lines[place][0], *fields)
    return lines


@pytest.mark.parametrize(
    ("lines", "values", "message"),
    [
        (zhao()[:7], None, r"texts.txt: 7 lines; expected a multiple of 6"),
        (changed(zhao(), 3, "Hello.", "Another topic?", "Yes."), None, "line 4: the context differs; expected that of"),
        (changed(zhao(), 3, "Hello.", " ", "Yes."), None, "line 4: an utterance is empty"),
        ([*zhao()[:5], ("PERSONAUSR-000005", "a", "b")], None, "line 6: the id is 'PERSONAUSR-000005'"),
        ([("X-1", "a", "b")], None, "line 1: ids begin with 'X'; expected one of PERSONAUSR"),
        ([("PERSONAZHAO-1",)], None, "line 1: no id or no utterance"),
        ([], None, "the file is empty"),
        (zhao(), {"overall": [1.0] * 11}, "11 ratings of 'persona-zhao'; expected 12"),
        (
            zhao(),
            {"relevance": [*[1.0] * 11, 5.5]},
            r"entry 11: rating 5.5 of 'relevance'; expected a number from 1 to 5",
        ),
        (zhao(), {"relevance": [*[1.0] * 11, None]}, "entry 11: rating None"),
        (zhao(), {"relevance": [*[1.0] * 11, True]}, "entry 11: rating True"),
        (zhao(), {"overall": {}}, "field 'persona-zhao' holds {}"),
    ],
)
def test_what_is_no_such_set_is_refused(tmp_path, lines, values, message):
    with pytest.raises(SchemaError, match=message):
        read(tmp_path, lines, "persona-zhao", values)


def test_a_file_without_the_set_is_named(tmp_path):
    with pytest.raises(ComperdialError, match=r"relevance.json: no field 'persona-zhao'|no field 'persona-zhao'"):
        read(tmp_path, zhao(), "persona-other")


# USR


def usr(**values):
    """Return lines and ratings as comp-analysis has them of the invented set: the ground truth is the last."""
    items = mini_items()
    lines, means = [], {dimension: [] for dimension in USR}
    for item in items:
        answers = item["responses"]
        for answer in [*answers[1:], answers[0]]:
            context = item["context"].strip().split("\n")
            lines.append((f"TOPICALUSR-{len(lines):06d}", *context, answer["response"].strip()))
            for dimension, theirs in USR.items():
                means[dimension].append(sum(answer[theirs]) / len(answer[theirs]))
    return lines, "topical-usr", {**means, **values}


def test_usr_s_own_file_gives_systems_references_facts_and_means(tmp_path):
    lines, key, values = usr()
    tables = read(tmp_path, lines, key, values, original=mini_items())
    assert len(tables["responses"]) == 30
    contexts = tables["contexts"].set_index("context_id")
    assert len(contexts) == 12
    assert contexts["references"]["mini-002"] == ["yes , i have loved gardens since i was a child ."]
    assert contexts["references"]["mini-002-truth"] == []
    assert contexts["facts"]["mini-002-truth"] == contexts["facts"]["mini-002"] == ["i like gardens.", "i am number 2."]
    assert contexts["history"]["mini-002"][-1]["speaker"] == "A"
    kinds = tables["systems"].set_index("system_id")["kind"]
    assert kinds["Original Ground Truth"] == kinds["New Human Generated"] == "human"
    assert len(tables["personas"]) == 6
    ratings = tables["ratings"].set_index(["dimension", "item_id", "system_id"])
    answer = mini_items()[2]["responses"][0]
    found = ratings.loc[("overall", "mini-002-truth", "Original Ground Truth")]
    assert found["rating"] == pytest.approx(sum(answer["Overall"]) / 3)
    assert (found["scale_min"], found["scale_max"], found["source"]) == (1, 5, "human")
    assert ratings.loc["specificity"]["source"].unique().tolist() == ["gpt-4"]


def test_what_is_not_usr_s_is_refused(tmp_path):
    lines, key, values = usr()
    wrong = [*lines[:4], (lines[4][0], *lines[3][1:]), *lines[5:]]
    with pytest.raises(SchemaError, match=r"line 5: the texts differ; expected context 'mini-000', system 'Original"):
        read(tmp_path, wrong, key, values, original=mini_items())
    with pytest.raises(SchemaError, match=r"25 lines; expected 30|30 ratings of"):
        read(tmp_path, lines[:25], key, values, original=mini_items())
    off = [*values["overall"][:-1], values["overall"][-1] + 0.1]
    with pytest.raises(SchemaError, match=r"overall.json, 'topical-usr': entry 29 is .*the mean of 'Overall'"):
        read(tmp_path, lines, key, {**values, "overall": off}, original=mini_items())


# FED and ConTurE

DIALOGUE = {
    "model": "Meena",
    "dialog": [
        {"speaker": "human" if place % 2 == 0 else "model", "text": text}
        for place, text in enumerate(["Hi!", "Hello.", "How are you?", "Fine. Italy: nice.", "Good."])
    ],
}
FED = [
    ("FEDTURN-000000", "Hi!", "Hello."),
    ("FEDTURN-000001", "Hi!", "Hello.", "How are you?", "Fine.  Italy: nice."),
    ("FEDTURN-000002", "Hi!", "Hello.", "How are you?", "Fine. Italy: nice.", "Good.", "Bye!"),
]
IN_SCALE = {dimension: [0.5, 1.0, 0.0] for dimension in DIMENSIONS}


def test_fed_s_models_come_from_the_rated_dialogues(tmp_path):
    tables = read(tmp_path, FED, "fed-turn", IN_SCALE, dialogues=[DIALOGUE])
    assert tables["responses"]["response"].tolist() == ["Hello.", "Fine.  Italy: nice.", "Bye!"]
    assert set(tables["responses"]["system_id"]) == {"Meena"}
    contexts = tables["contexts"]
    assert contexts["context_id"].tolist() == ["mini-0000-0", "mini-0000-1", "mini-0000-2"]
    assert contexts["turn"].tolist() == [0, 1, 2]
    assert [u["speaker"] for u in contexts["history"].iloc[2]] == list("ABABA")
    ratings = tables["ratings"]
    assert set(ratings["source"]) == {"human"}
    assert ratings.groupby("dimension")["scale_max"].first().to_dict() == {
        "relevance": 2, "specificity": 2, "interestingness": 2, "understandability": 1, "overall": 4,
    }  # fmt: skip
    people = read(tmp_path, FED, "fed-turn", IN_SCALE, dialogues=[{**DIALOGUE, "model": "Human"}])
    assert people["systems"]["kind"].tolist() == ["human"]


def test_texts_that_are_not_fed_s_are_refused(tmp_path):
    for place, line in (
        (1, ("FEDTURN-000001", "Hi!", "Hello.", "Who are you?", "Fine. Italy: nice.")),
        (1, ("FEDTURN-000001", "Hi!", "Hello.", "How are you?")),
        (2, (*FED[2], "and more", "still")),
    ):
        lines = [*FED[:place], line, *FED[place + 1 :]]
        with pytest.raises(SchemaError, match=rf"line {place + 1}: the texts differ; expected the beginning of"):
            read(tmp_path, lines, "fed-turn", IN_SCALE, dialogues=[DIALOGUE])
    with pytest.raises(SchemaError, match="not 1 dialogues"):
        read(tmp_path, FED, "fed-turn", IN_SCALE, dialogues=[DIALOGUE, DIALOGUE])
    with pytest.raises(SchemaError, match=r"rating 1\.5 of 'understandability'; expected a number from 0 to 1"):
        values = {**IN_SCALE, "understandability": [1.0, 1.5, 1.0]}
        read(tmp_path, FED, "fed-turn", values, dialogues=[DIALOGUE])


def test_conture_s_ids_name_dialogue_and_turn(tmp_path):
    lines = [
        ("CONTURE-000000-0001", "Hi.", "<EMPTY>"),
        ("CONTURE-000000-0003", "Hi.", "<EMPTY>", "Hello?", "User: yes."),
        ("CONTURE-000007-0017", "a", "b", "c", "d"),
    ]
    values = {"overall": [0, 1, 2]}
    tables = read(tmp_path, lines, "conture-turn", values)
    contexts = tables["contexts"]
    assert contexts["context_id"].tolist() == ["mini-0000-0", "mini-0000-1", "mini-0007-8"]
    # A rated response stays as it stands; in a history the mark is no utterance.
    assert tables["responses"]["response"].tolist() == ["<EMPTY>", "User: yes.", "d"]
    assert [(u["speaker"], u["text"]) for u in contexts["history"].iloc[1]] == [("A", "Hi."), ("A", "Hello?")]
    for wrong in ("CONTURE-000000-0002", "CONTURE-000000"):
        with pytest.raises(SchemaError, match=f"line 1: the id is '{wrong}'"):
            read(tmp_path, [(wrong, "a", "b")], "conture-turn", {"overall": [1]})


def test_readers_are_found_by_name():
    assert {"comp_turns", "comp_dialogues", "comp_perturbations"} <= set(readers.readers())
    assert not any(name.startswith("_") for name in readers.readers())
    with pytest.raises(UnknownNameError, match="comp_turns"):
        readers.read("comp_turn", "mini", {})
