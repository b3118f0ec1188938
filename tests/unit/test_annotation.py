"""Annotation by people: tasks for Label Studio and its exports.

``tests/fixtures/label_studio_*`` are exports of Label Studio 1.23.2 on localhost, of the tasks that ``export`` makes of
:func:`mini_tables` with seed 5: annotated through its API by three invented people, or (``browser``) by one of them in
its pages. ``docs/annotation.md`` says more.
"""

import json
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.label_studio import export_ratings, read_ratings
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import read_json, read_table
from comperdial.schema.dimensions import AXES

LEVELS = {"turn": "context_id", "dialogue": "dialogue_id"}

SYSTEMS = {"Zebra-9B": "agent", "Quokka-7B": "agent", "Gold": "reference"}
ANSWERS = {
    "Zebra-9B": ["i <3 tea & <b>cake</b> , do you ?", "me too !\n<script>alert('x')</script> &amp; more"],
    "Quokka-7B": ["i do not know .", '日本 is nice , "they" say $response'],
    "Gold": ["yes , tea at five !", "i went to the sea ."],
}
SAID = [("A", "do you like tea ?"), ("B", "yes , tea at five !"), ("A", "where did you go in <i>may</i> ?")]


def mini_tables(dialogues=1):
    """Invented dialogues of two turns, two systems and a reference."""
    tables = {"systems": [], "contexts": [], "personas": [], "responses": []}
    for name, kind in SYSTEMS.items():
        tables["systems"].append({"system_id": name, "kind": kind, "track": None, "description": ""})
    for number in range(dialogues):
        dialogue = f"dlg-{number}"
        personas = {"A": ["i run a <tea> shop ."], "B": ["i like the sea ."]}
        for speaker, sentences in personas.items():
            row = {"dialogue_id": dialogue, "speaker": speaker, "sentences": sentences, "kinds": ["profile"]}
            tables["personas"].append(row)
        for turn in (0, 1):
            history = [{"speaker": s, "text": text} for s, text in SAID[: 2 * turn + 1]]
            context = {"context_id": f"{dialogue}-t{turn}", "dialogue_id": dialogue, "turn": turn, "history": history}
            tables["contexts"].append(context | {"references": [ANSWERS["Gold"][turn]], "facts": ["i like the sea ."]})
            for system, answers in ANSWERS.items():
                row = {"context_id": context["context_id"], "system_id": system, "response": answers[turn]}
                tables["responses"].append(row)
    return {name: pd.DataFrame([{"dataset": "mini"} | row for row in rows]) for name, rows in tables.items()}


def write_tables(folder, tables=None):
    for name, frame in (tables or mini_tables()).items():
        schema.write(folder / f"{name}.parquet", frame, name)
    return folder


FIXTURES = Path(__file__).parents[1] / "fixtures"
# What was given for each item through the API, by annotators 1, 2 and 3; None was skipped.
TURN_GIVEN = {
    "c7a00458be7b": (1, 2, 3),
    "3e9a0f86af11": (3, 4, None),
    "1c44f4a16b0e": (5, 1, 2),
    "03d97cd183ff": (2,),
}
DIALOGUE_GIVEN = {
    "cebb663da554": ((1, {"Persona consistency"}), (2, {"Engagingness", "Humanness"}), (3, set())),
    "7efe326560d4": ((3, {"Fluency"}), (4, {"Engagingness", "Humanness"}), None),
}


def fixture(name):
    return FIXTURES / f"label_studio_{name}"


def ratings_of(frame, level):
    """Ratings as a mapping from item's ids, annotator and dimension."""
    assert set(frame["level"]) == {level}
    columns = ["dataset", "item_id", "system_id", "annotator_id", "dimension"]
    return dict(zip(frame[columns].itertuples(index=False, name=None), frame["rating"], strict=True))


def keys_of(path, level):
    frame = read_table(path)
    return {row["item"]: ("mini", row[LEVELS[level]], row["system_id"]) for row in frame.to_dict("records")}


def expected_turn():
    keys = keys_of(fixture("turn_key.csv"), "turn")
    return {
        (*keys[item], str(who), "Overall"): score
        for item, scores in TURN_GIVEN.items()
        for who, score in enumerate(scores, start=1)
        if score
    }


def expected_dialogue():
    keys = keys_of(fixture("dialogue_key.csv"), "dialogue")
    expected = {}
    for item, answers in DIALOGUE_GIVEN.items():
        for who, answer in zip("123", answers, strict=True):
            if answer:
                expected[(*keys[item], who, "Overall")] = answer[0]
                expected |= {(*keys[item], who, axis): int(axis not in answer[1]) for axis in AXES}
    return expected


# --- What Label Studio really exports


def test_a_real_export_of_turns():
    frame = read_ratings([fixture("turn.json")], fixture("turn_key.csv"), "turn")
    assert ratings_of(frame, "turn") == expected_turn()
    assert set(frame["source"]) == {"human"}
    assert frame["position"].isna().all()
    assert set(zip(frame["scale_min"], frame["scale_max"], strict=True)) == {(1, 5)}


def test_a_real_export_of_dialogues():
    frame = read_ratings([fixture("dialogue.json")], fixture("dialogue_key.csv"), "dialogue")
    assert ratings_of(frame, "dialogue") == expected_dialogue()
    axes = frame[frame["dimension"] != "Overall"]
    assert set(zip(axes["scale_min"], axes["scale_max"], strict=True)) == {(0, 1)}


def test_a_real_export_of_what_was_clicked():
    """One task was scored 4 with the mouse, one 2 with the keyboard, one skipped and one left alone."""
    frame = read_ratings([fixture("turn_browser.json")], fixture("turn_key.csv"), "turn")
    keys = keys_of(fixture("turn_key.csv"), "turn")
    assert ratings_of(frame, "turn") == {
        (*keys["c7a00458be7b"], "2", "Overall"): 4,
        (*keys["3e9a0f86af11"], "2", "Overall"): 2,
    }


def test_the_fixtures_are_of_the_tasks_that_export_makes(tmp_path):
    """Every byte of what annotators see: personas, histories, texts that look like HTML; and the keys."""
    export_ratings(write_tables(tmp_path / "tables"), tmp_path / "out", seed=5)
    for level in LEVELS:
        assert (tmp_path / "out" / level / "key.csv").read_bytes() == fixture(f"{level}_key.csv").read_bytes()
        made = [task["data"] for task in read_json(tmp_path / "out" / level / "tasks.json")]
        assert made == [task["data"] for task in read_json(fixture(f"{level}.json"))]
        config = ET.fromstring((tmp_path / "out" / level / "config.xml").read_text())
        names = {tag.get("name") for tag in config.iter("Choices")}
        for task in read_json(fixture(f"{level}.json")):
            assert all(r["from_name"] in names for a in task["annotations"] for r in a["result"])


# --- Export


def exported(tmp_path, tables=None, **options):
    folder = write_tables(tmp_path / "tables", tables)
    counts = export_ratings(folder, tmp_path / "out", **options)
    return counts, tmp_path / "out"


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_exported(tmp_path):
    counts, out = exported(tmp_path, mini_tables(dialogues=3))
    assert counts == {"turn": 12, "dialogue": 6}
    assert sorted(str(name) for name in files(out)) == [
        *(f"{level}/{name}" for level in ("dialogue", "turn") for name in FILES),
    ]
    for level in LEVELS:
        key = read_table(out / level / "key.csv")
        tasks = read_json(out / level / "tasks.json")
        assert sorted(task["data"]["item"] for task in tasks) == key["item"].tolist()
        assert key["item"].is_unique
        assert key["item"].str.fullmatch("[0-9a-f]{12}").all()
        assert set(key["system_id"]) == {"Zebra-9B", "Quokka-7B"}


FILES = ("config.xml", "guidelines.md", "key.csv", "tasks.json")


def test_nothing_tells_which_system_it_is(tmp_path):
    _, out = exported(tmp_path, mini_tables(dialogues=2), systems=list(SYSTEMS))
    for path in [*out.rglob("*.xml"), *out.rglob("tasks.json"), *out.rglob("guidelines.md")]:
        content = path.read_text()
        for name in [*SYSTEMS, "mini", "dlg-", "reference", "agent"]:
            assert name not in content, (path, name)
    tasks = read_json(out / "turn/tasks.json")
    assert {frozenset(task) for task in tasks} == {frozenset({"data"})}
    assert {frozenset(t["data"]) for t in tasks} == {frozenset({"item", "personas", "history", "response"})}
    # Nor does the order: it is not that of the key, the ids or the systems.
    key = read_table(out / "turn/key.csv").set_index("item")
    order = key.loc[[task["data"]["item"] for task in tasks], ["context_id", "system_id"]]
    for columns in (["context_id", "system_id"], ["system_id", "context_id"]):
        assert order.to_numpy().tolist() != order.sort_values(columns).to_numpy().tolist()


@pytest.mark.parametrize("level", LEVELS)
def test_the_interface_shows_the_tasks_and_offers_what_the_import_reads(tmp_path, level):
    _, out = exported(tmp_path)
    config = ET.fromstring((out / level / "config.xml").read_text())
    data = read_json(out / level / "tasks.json")[0]["data"]
    shown = {tag.get("name"): tag.get("value") for tag in config.iter("HyperText")}
    assert shown == {name: f"${name}" for name in data if name != "item"}
    choices = {tag.get("name"): tag for tag in config.iter("Choices")}
    assert all(tag.get("toName") in shown for tag in choices.values())
    assert [choice.get("alias") for choice in choices["overall"]] == list("12345")
    assert choices["overall"].get("required") == "true"
    assert [choice.get("value") for choice in choices.get("reasons", [])] == list(AXES) * (level == "dialogue")


def test_flows_come_in_the_order_of_turns_and_speakers_are_escaped(tmp_path):
    tables = mini_tables()
    for name in ("contexts", "responses"):
        tables[name] = tables[name].replace({"context_id": {"dlg-0-t0": "z", "dlg-0-t1": "a"}})
    tables["personas"].at[0, "speaker"] = "<i>A"
    _, out = exported(tmp_path, tables, levels=["dialogue"])
    for task in read_json(out / "dialogue/tasks.json"):
        flows = task["data"]["flows"]
        assert (
            flows.index(SAID[0][1])
            < flows.index("Flow 2 of 2")
            < flows.index("where did you go in &lt;i&gt;may&lt;/i&gt; ?")
        )
        assert "<b>&lt;i&gt;A</b>" in task["data"]["personas"]


def test_facts_and_nothing_known(tmp_path):
    tables = mini_tables()
    del tables["personas"]
    tables["contexts"].at[0, "history"] = []
    tables["contexts"].at[0, "facts"] = []
    _, out = exported(tmp_path, tables)
    pages = [task["data"] for task in read_json(out / "turn/tasks.json")]
    assert sum("Nothing is known about the speakers." in data["personas"] for data in pages) == 2
    assert sum("Facts that B may draw on" in data["personas"] for data in pages) == 2
    assert sum("(Nothing was said before.)" in data["history"] for data in pages) == 2


def test_the_seed_and_the_content_determine_all(tmp_path):
    tables = mini_tables(dialogues=4)
    folder = write_tables(tmp_path / "tables", tables)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export_ratings(folder, tmp_path / name, seed=seed, sample=2)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    one, other = (set(read_table(tmp_path / name / "turn/key.csv")["item"]) for name in "ac")
    assert not one & other
    # What is drawn for one level does not depend on whether the other is exported too.
    export_ratings(folder, tmp_path / "d", seed=1, sample=2, levels=["dialogue"])
    assert files(tmp_path / "d/dialogue") == files(tmp_path / "a/dialogue")
    assert not (tmp_path / "d/turn").exists()


def test_systems_and_sample(tmp_path):
    folder = write_tables(tmp_path / "tables", mini_tables(dialogues=5))
    counts = export_ratings(folder, tmp_path / "out", systems=["Gold", "Zebra-9B"], sample=2)
    assert counts == {"turn": 8, "dialogue": 4}
    turns, dialogues = (read_table(tmp_path / "out" / level / "key.csv") for level in ("turn", "dialogue"))
    assert set(turns["system_id"]) == {"Gold", "Zebra-9B"}
    assert {name[:5] for name in turns["context_id"]} == set(dialogues["dialogue_id"])
    assert (dialogues.groupby("dialogue_id").size() == 2).all(), "each dialogue is rated for both systems"


def test_a_dialogue_with_a_missing_response_is_left_out(tmp_path, caplog):
    tables = mini_tables(dialogues=2)
    tables["responses"] = tables["responses"].iloc[1:]
    counts, _ = exported(tmp_path, tables)
    assert counts == {"turn": 7, "dialogue": 3}
    assert "1 dialogues left out" in caplog.text
    assert "dlg-0 by Zebra-9B" in caplog.text


def stray(column, value):
    def change(tables):
        tables["responses"].at[0, column] = value

    return change


@pytest.mark.parametrize(
    ("options", "change", "error", "message"),
    [
        ({"systems": ["Zebra-9b"]}, None, UnknownNameError, "unknown system 'Zebra-9b'.*Did you mean 'Zebra-9B'"),
        ({"sample": 0}, None, ConfigError, "a sample of 0 dialogues; expected 1 to 1"),
        ({"sample": 2}, None, ConfigError, "a sample of 2 dialogues; expected 1 to 1"),
        ({}, stray("context_id", "c9"), SchemaError, "context 'c9' and system 'Zebra-9B', of which one is in no table"),
        ({}, stray("system_id", "s9"), SchemaError, "context 'dlg-0-t0' and system 's9', of which one is in no table"),
        ({}, lambda t: t.pop("contexts"), FileError, "contexts.parquet: no such file"),
        (
            {},
            lambda t: t.update(responses=t["responses"].query("system_id == 'Gold'")),
            SchemaError,
            "nothing to rate at level 'turn'",
        ),
    ],
)
def test_what_cannot_be_exported(tmp_path, options, change, error, message):
    tables = mini_tables()
    if change:
        change(tables)
    with pytest.raises(error, match=message):
        exported(tmp_path, tables, **options)
    assert not (tmp_path / "out").exists(), "nothing is left behind"


@pytest.mark.parametrize("name", ["key.csv", "tasks.json"])
def test_a_used_folder_is_never_written_into(tmp_path, name):
    mine = tmp_path / "out/turn" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    with pytest.raises(FileError, match=r"turn: holds files already; .* Export to another folder"):
        exported(tmp_path)
    assert files(tmp_path / "out") == {Path("turn") / name: b"mine\n"}


def test_levels_may_be_exported_one_by_one(tmp_path):
    _, out = exported(tmp_path, levels=["turn"])
    export_ratings(tmp_path / "tables", out, levels=["dialogue"])
    assert {"turn/key.csv", "dialogue/key.csv"} <= set(map(str, files(out)))


# --- Import


def annotation(number=7, who=1, score="4", reasons=(), **more):
    result = [{"from_name": "overall", "to_name": "flows", "type": "choices", "value": {"choices": [score]}}]
    if reasons:
        value = {"choices": list(reasons)}
        result.append({"from_name": "reasons", "to_name": "flows", "type": "choices", "value": value})
    return {"id": number, "completed_by": who, "result": result, "was_cancelled": False} | more


def task(*annotations, item="i1", **more):
    return {"id": 5, "data": {"item": item}, "annotations": list(annotations), "predictions": []} | more


def load(folder, *exports, level="dialogue", key=None):
    folder.mkdir(exist_ok=True)
    names = []
    for number, content in enumerate(exports):
        path = folder / f"export{number}.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        names.append(path)
    default = f"item,dataset,{LEVELS[level]},system_id\ni1,d,x1,s1\ni2,d,x2,s1\n"
    (folder / "key.csv").write_text(key or default)
    return read_ratings(names, folder / "key.csv", level)


def test_an_annotator_may_be_an_object(tmp_path):
    frame = load(
        tmp_path, [task(annotation(1, who=4)), task(annotation(2, who={"id": 4, "email": "x@example.org"}), item="i2")]
    )
    assert set(zip(frame["item_id"], frame["annotator_id"], strict=True)) == {("x1", "4"), ("x2", "4")}


def test_what_is_no_rating_is_left_out(tmp_path):
    prediction = {"result": annotation(score="1")["result"]}
    skipped = annotation(8, who=2, was_cancelled=True, result=[])
    comment = {"from_name": "comment", "to_name": "flows", "type": "textarea", "value": {"text": ["hm"]}}
    rated = annotation()
    rated["result"].append(comment)
    frame = load(
        tmp_path,
        [
            task(rated, skipped, predictions=[prediction], drafts=[{"result": []}]),
            task(annotation(9, who=2, was_cancelled=True, completed_by=None), item="i2"),
        ],
        level="turn",
    )
    assert frame["rating"].tolist() == [4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no task was answered"),
        ('[{"id": 1', "the file is truncated"),
        ([3], "export0.json, record 1: it is 3"),
        ([{"id": 5, "data": {"item": "i1"}}], "record 1: annotations is missing"),
        ([task(annotation(), data={})], "record 1: data.item is missing"),
        ([task(annotations=None)], "annotations is None"),
        ([task(annotation(), item="i9")], r"item 'i9' is not in .*key.csv; .*Use the key.csv"),
        (
            [task(annotation(score="6"))],
            "annotation 7 by annotator '1': overall score '6'; expected a score from 1 to 5",
        ),
        ([task(annotation(score=4))], "tag 'overall': choices.0 is 4"),
        ([task(annotation(result=[]))], "annotation 7 by annotator '1': overall score missing; .*Answer or skip"),
        ([task(annotation(reasons=["Fluent"]))], "reason 'Fluent'; expected some of Fluency, Coherence"),
        ([task(annotation(who=None))], "record 1: completed_by.int is None"),
        ([task(annotation(number=None))], "record 1: id.int is None"),
        ([task(annotation(lead_time=-1))], "lead_time is -1"),
        ([task(annotation(result=2 * annotation()["result"]))], "overall score '4' and '4'; expected a score"),
        ([task(annotation(7), annotation(9))], "annotation 9 by annotator '1': duplicate annotation of item 'i1'"),
        ([task(annotation(7, was_cancelled=True))], "no task was answered"),
    ],
)
def test_what_cannot_be_imported(tmp_path, content, message):
    with pytest.raises(ComperdialError, match=message):
        load(tmp_path, content)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("item,dataset,context_id,system_id\ni1,d,x1,s1\n", "key.csv: the columns are item, .*dialogue_id"),
        ("item,dataset,dialogue_id,system_id\ni1,d,x1,s1\ni1,d,x2,s1\n", "record 2: .*a duplicate item"),
        ("item,dataset,dialogue_id,system_id\ni1,d,,s1\n", "record 1: an empty cell"),
    ],
)
def test_a_wrong_key(tmp_path, key, message):
    with pytest.raises(ComperdialError, match=message):
        load(tmp_path, [task(annotation())], key=key)


# --- There and back


def as_json(given):
    """Write what was given as Label Studio does in its JSON form."""
    number = 0
    tasks = []
    for item, answers in given.items():
        annotations = []
        for who, (score, reasons) in answers.items():
            number += 1
            annotations.append(annotation(number, who, str(score), reasons))
        tasks.append(task(*annotations, item=item))
    return tasks


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_exported_rated_and_imported(data):
    names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
    systems = data.draw(st.lists(names, min_size=2, max_size=3, unique=True))
    renaming = dict(zip(SYSTEMS, systems + ["spare"] * 2, strict=False))
    tables = mini_tables(dialogues=2)
    for table in ("systems", "responses"):
        frame = tables[table]
        tables[table] = frame[frame["system_id"] != "Gold"].assign(system_id=lambda f: f["system_id"].map(renaming))
    level = data.draw(st.sampled_from(sorted(LEVELS)))
    reasons = st.lists(st.sampled_from(AXES), unique=True) if level == "dialogue" else st.just([])
    with tempfile.TemporaryDirectory() as folder:
        _, out = exported(Path(folder), tables, levels=[level], seed=data.draw(st.integers(0, 2**40)))
        keys = keys_of(out / level / "key.csv", level)
        people = st.dictionaries(st.integers(1, 99), st.tuples(st.integers(1, 5), reasons), min_size=1, max_size=3)
        given = {task["data"]["item"]: data.draw(people) for task in read_json(out / level / "tasks.json")}
        expected = {}
        for item, answers in given.items():
            for who, (score, marked) in answers.items():
                expected[(*keys[item], str(who), "Overall")] = score
                if level == "dialogue":
                    expected |= {(*keys[item], str(who), axis): int(axis not in marked) for axis in AXES}
        path = Path(folder) / "export.json"
        path.write_text(json.dumps(as_json(given)))
        frame = read_ratings([path], out / level / "key.csv", level)
        assert ratings_of(frame, level) == expected


# --- The command line


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_the_commands(tmp_path, capsys, suffix):
    def run(*arguments):
        assert main(["annotate", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    folder, out = write_tables(tmp_path / "tables"), tmp_path / "out"
    assert run("export", folder, "--output", tmp_path / "both", "--systems", "Gold", "Quokka-7B").count(" tasks") == 2
    spoken = run("export", folder, "--output", out, "--level", "dialogue", "--seed", 5, "--sample", 1)
    assert spoken == f"{out / 'dialogue'}: 2 tasks\n"
    assert not (out / "turn").exists()
    target = tmp_path / f"ratings.{suffix}"
    key = out / "dialogue" / "key.csv"
    spoken = run("import", fixture("dialogue.json"), "--key", key, "--level", "dialogue", "--output", target)
    assert spoken == f"{target}: 35 records of 7 dimensions\n"
    assert ratings_of(schema.read(target, "ratings"), "dialogue") == expected_dialogue()
