import json

import pytest

from comperdial.core.errors import FileError, SchemaError, UnknownNameError
from comperdial.data import readers
from minidata import mini_items


def read(folder, items, dataset="usr_persona"):
    path = folder / "ratings.json"
    path.write_text(items if isinstance(items, str) else json.dumps(items))
    return readers.read("usr", dataset, {"ratings": path})


def test_every_fact_of_the_file_is_in_a_table(tmp_path):
    items = mini_items()
    tables = read(tmp_path, items)
    assert {name: len(frame) for name, frame in tables.items()} == {
        "systems": 5,
        "contexts": 6,
        "personas": 6,
        "responses": 30,
        "ratings": 30 * 6 * 3,
    }
    kinds = tables["systems"].set_index("system_id")["kind"]
    assert kinds["Original Ground Truth"] == "reference"
    assert kinds["New Human Generated"] == "human"
    assert (kinds == "agent").sum() == 3
    context = tables["contexts"].iloc[2]
    assert [u["speaker"] for u in context["history"]] == ["A", "B", "A"]
    assert context["history"][-1]["text"] == "do you like gardens ?"
    assert context["references"] == ["yes , i have loved gardens since i was a child ."]
    assert context["facts"] == ["i like gardens.", "i am number 2."]
    ratings = tables["ratings"]
    for number, item in enumerate(items):
        for response in item["responses"]:
            rows = ratings[
                (ratings["item_id"] == f"usr_persona-{number:03d}")
                & (ratings["system_id"] == response["model"])
                & (ratings["dimension"] == "Overall")
            ].sort_values("position")
            assert rows["rating"].tolist() == response["Overall"]
            assert rows["annotator_id"].tolist() == item["annotators"]


def test_no_fact_and_topical_facts(tmp_path):
    items = mini_items()
    items[0]["fact"] = "_nofact\n"
    items[1]["fact"] = "did you know ? trains are old .\n"
    tables = read(tmp_path, items, "usr_topical")
    assert tables["contexts"]["facts"].tolist()[:2] == [[], ["did you know ? trains are old ."]]
    assert len(tables["personas"]) == 4


def broken(change):
    items = mini_items()
    change(items)
    return items


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        (json.dumps(mini_items())[:1000], FileError, r"ratings.json, line 1, column .*truncated"),
        ("{}", SchemaError, "expected a JSON list"),
        (broken(lambda i: i[1].pop("fact")), SchemaError, "item 1: no field 'fact'"),
        (
            broken(lambda i: i[0]["responses"][2].pop("Overall")),
            SchemaError,
            "item 0, response 'Dull': no field 'Overall'",
        ),
        (
            broken(lambda i: i[3]["responses"][1]["Overall"].__setitem__(2, 6)),
            SchemaError,
            r"item 3, response 'Copier': rating 6 of 'Overall' by 'cat'; expected a whole number from 1 to 5",
        ),
        (broken(lambda i: i[0]["responses"][0]["Overall"].__setitem__(0, "5")), SchemaError, "rating '5'"),
        (broken(lambda i: i[0]["responses"][0]["Overall"].append(3)), SchemaError, "4 ratings .* expected 3"),
        (
            broken(lambda i: i[2]["responses"][4].update(response=" \n")),
            SchemaError,
            "item 2, response 4: the response is em",
        ),
        (broken(lambda i: i[0].update(responses={})), SchemaError, "field 'responses' holds {}; expected a list"),
        (broken(lambda i: i[0]["responses"].append(i[0]["responses"][1])), SchemaError, "the same key a second time"),
        (broken(lambda i: i[0].update(annotators=[])), SchemaError, r"annotators are \[\]; expected names"),
        (broken(lambda i: i[0].update(annotators=["a", "a", "b"])), SchemaError, "each once"),
        (broken(lambda i: i[1]["responses"].pop(0)), SchemaError, "item 1: 0 responses by 'Original Ground Truth'"),
        (broken(lambda i: i[0].update(context="\n")), SchemaError, r"column 'history' holds .*expected a list of"),
        (broken(lambda i: i.__setitem__(0, 3)), SchemaError, "item 0: holds int; expected a JSON object"),
    ],
)
def test_broken_files_are_named(tmp_path, items, error, message):
    with pytest.raises(error, match=message):
        read(tmp_path, items)


def test_an_unknown_reader(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown reader 'urs'.*Did you mean 'usr'"):
        readers.read("urs", "x", {})
