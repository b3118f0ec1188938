"""Annotation by people: rating tasks and pairs of dialogues for Label Studio, and the import of its exports.

``tests/fixtures/label_studio_*`` are exports of Label Studio 1.23.2 on localhost, of the tasks that ``export`` makes of
:func:`mini_tables` with seed 5: annotated through its API by three invented people, or (``browser``) by one of them in
its pages.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.label_studio import export_pairs, export_ratings, read_ratings, read_votes
from comperdial.challenge.pairs import (
    Dialogue,
    Pair,
    chosen,
    make_design,
    read_all,
    read_controls,
    read_questions,
    write_dialogues,
)
from comperdial.cli import main
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import read_json, read_table
from comperdial.schema.dimensions import AXES

LEVELS = {"turn": "context_id", "dialogue": "dialogue_id"}
SYSTEMS = {"Zebra-9B": "agent", "Quokka-7B": "agent", "Gold": "reference"}
ANSWERS = {
    "Zebra-9B": ["i <3 tea & <b>cake</b> , do you ?", "me too !\n<script>alert('x')</script> &amp; more"],
    "Quokka-7B": ["i do not know .", '日本 is nice , "they" say $response'],
    "Gold": ["yes , tea at five !", "i went to the sea ."],
}
TALK = [("A", "do you like tea ?"), ("B", "yes , tea at five !"), ("A", "where did you go in <i>may</i> ?")]


def mini_tables(dialogues=1):
    """Invented dialogues of two turns, two systems and a reference."""
    systems = [{"system_id": name, "kind": kind, "track": None, "description": ""} for name, kind in SYSTEMS.items()]
    tables = {"systems": systems, "contexts": [], "personas": [], "responses": []}
    for dialogue in (f"dlg-{number}" for number in range(dialogues)):
        for speaker, sentence in {"A": "i run a <tea> shop .", "B": "i like the sea ."}.items():
            row = {"dialogue_id": dialogue, "speaker": speaker, "sentences": [sentence], "kinds": ["profile"]}
            tables["personas"].append(row)
        for turn in (0, 1):
            context = {"context_id": f"{dialogue}-t{turn}", "dialogue_id": dialogue, "turn": turn}
            context["history"] = [{"speaker": s, "text": text} for s, text in TALK[: 2 * turn + 1]]
            tables["contexts"].append(context | {"references": [ANSWERS["Gold"][turn]], "facts": ["i like the sea ."]})
            for system, answers in ANSWERS.items():
                row = {"context_id": context["context_id"], "system_id": system, "response": answers[turn]}
                tables["responses"].append(row)
    return {name: pd.DataFrame([{"dataset": "mini"} | row for row in rows]) for name, rows in tables.items()}


def exported(folder, tables=None, **options):
    """Export tables to ``folder/out``; return how many tasks there are."""
    for name, frame in (mini_tables() if tables is None else tables).items():
        schema.write(folder / f"tables/{name}.parquet", frame, name)
    return export_ratings(folder / "tables", folder / "out", **options)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Real exports from Label Studio


def fixture(name):
    return Path(__file__).parents[1] / f"fixtures/label_studio_{name}"


# What was given for each item, by annotators 1, 2 and 3; None was skipped.
GIVEN = {
    "turn.json": {
        "c7a00458be7b": (1, 2, 3), "3e9a0f86af11": (3, 4, None), "1c44f4a16b0e": (5, 1, 2), "03d97cd183ff": (2, None, None),
    },
    # One task was scored 4 with the mouse, one 2 with the keyboard, one skipped and one left alone.
    "turn_browser.json": {"c7a00458be7b": (None, 4, None), "3e9a0f86af11": (None, 2, None)},
    "dialogue.json": {
        "cebb663da554": ((1, {"Persona consistency"}), (2, {"Engagingness", "Humanness"}), (3, set())),
        "7efe326560d4": ((3, {"Fluency"}), (4, {"Engagingness", "Humanness"}), None),
    },
}  # fmt: skip


def expected_of(name):
    """Return the ratings of a fixture: (item's ids, annotator, dimension) -> rating."""
    level = name.partition("_")[0].removesuffix(".json")
    keys = {row["item"]: row for row in read_table(fixture(f"{level}_key.csv")).to_dict("records")}
    found = {}
    for item, answers in GIVEN[name].items():
        for who, answer in zip("123", answers, strict=True):
            key = (keys[item][LEVELS[level]], keys[item]["system_id"], who)
            score, marked = answer if isinstance(answer, tuple) else (answer, None)
            if score:
                found[(*key, "Overall")] = score
                found |= {(*key, axis): int(axis not in marked) for axis in AXES} if marked is not None else {}
    return level, found


def ratings_of(frame):
    keys = frame[["item_id", "system_id", "annotator_id", "dimension"]].itertuples(index=False, name=None)
    return dict(zip(keys, frame["rating"], strict=True))


@pytest.mark.parametrize("name", GIVEN)
def test_real_exports(name):
    level, expected = expected_of(name)
    frame = read_ratings([fixture(name)], fixture(f"{level}_key.csv"), level)
    assert ratings_of(frame) == expected
    assert set(frame["source"]) == {"human"} and set(frame["level"]) == {level}
    scales = set(zip(frame["dimension"] == "Overall", frame["scale_min"], frame["scale_max"], strict=True))
    assert scales == {(True, 1, 5)} | ({(False, 0, 1)} if level == "dialogue" else set())


def test_fixtures_match_exported_tasks(tmp_path):
    """Every byte of what annotators see: personas, histories, texts that look like HTML; and the keys."""
    assert exported(tmp_path, seed=5) == {"turn": 4, "dialogue": 2}
    for level in LEVELS:
        out = tmp_path / "out" / level
        assert (out / "key.csv").read_bytes() == fixture(f"{level}_key.csv").read_bytes()
        made, theirs = read_json(out / "tasks.json"), read_json(fixture(f"{level}.json"))
        assert [task["data"] for task in made] == [task["data"] for task in theirs]
        config = ET.fromstring((out / "config.xml").read_text())
        shown = {tag.get("name"): tag.get("value") for tag in config.iter("HyperText")}
        assert shown == {name: f"${name}" for name in made[0]["data"] if name != "item"}
        choices = {tag.get("name"): tag for tag in config.iter("Choices")}
        assert all(result["from_name"] in choices for t in theirs for a in t["annotations"] for result in a["result"])
        assert [choice.get("alias") for choice in choices["overall"]] == list("12345")


# Export of ratings


def test_tasks_do_not_reveal_the_system(tmp_path):
    exported(tmp_path, mini_tables(dialogues=2), systems=list(SYSTEMS))
    names = [*SYSTEMS, "mini", "dlg-", "reference", "agent"]
    shown = b"".join(content for name, content in files(tmp_path / "out").items() if not name.endswith("key.csv"))
    assert [name for name in names if name.encode() in shown] == []
    key = read_table(tmp_path / "out/turn/key.csv").set_index("item")
    # Nor does the order: it is not that of the ids or the systems.
    items = [task["data"]["item"] for task in read_json(tmp_path / "out/turn/tasks.json")]
    order = key.loc[items, ["context_id", "system_id"]]
    for columns in (["context_id", "system_id"], ["system_id", "context_id"]):
        assert order.to_numpy().tolist() != order.sort_values(columns).to_numpy().tolist()


def test_turns_are_in_order_and_speakers_are_escaped(tmp_path):
    tables = mini_tables()
    for name in ("contexts", "responses"):
        tables[name] = tables[name].replace({"context_id": {"dlg-0-t0": "z", "dlg-0-t1": "a"}})
    tables["personas"].at[0, "speaker"] = "<i>A"
    exported(tmp_path, tables)
    for task in read_json(tmp_path / "out/dialogue/tasks.json"):
        shown = (TALK[0][1], "Flow 2 of 2", "where did you go in &lt;i&gt;may&lt;/i&gt; ?")
        places = [task["data"]["flows"].index(text) for text in shown]
        assert places == sorted(places) and "<b>&lt;i&gt;A</b>" in task["data"]["personas"]


def test_export_depends_only_on_seed_and_content(tmp_path):
    options = {"systems": ["Gold", "Zebra-9B"], "sample": 2}
    assert exported(tmp_path, mini_tables(dialogues=5), **options, seed=1) == {"turn": 8, "dialogue": 4}
    turns, dialogues = (read_table(tmp_path / "out" / level / "key.csv") for level in LEVELS)
    assert set(turns["system_id"]) == {"Gold", "Zebra-9B"}
    sampled = {name[:5] for name in turns["context_id"]}
    assert sampled == set(dialogues["dialogue_id"]), "the same dialogues at both levels"
    for name, more in (("b", {"seed": 1}), ("c", {"seed": 2}), ("d", {"seed": 1, "levels": ["dialogue"]})):
        export_ratings(tmp_path / "tables", tmp_path / name, **options, **more)
    assert files(tmp_path / "b") == files(tmp_path / "out")
    assert not set(read_table(tmp_path / "c/turn/key.csv")["item"]) & set(turns["item"])
    assert files(tmp_path / "d/dialogue") == files(tmp_path / "b/dialogue") and not (tmp_path / "d/turn").exists()


@pytest.mark.parametrize(
    ("options", "unknown", "error", "message"),
    [
        ({"systems": ["Zebra-9b"]}, None, UnknownNameError, "unknown system 'Zebra-9b'.*Did you mean 'Zebra-9B'"),
        ({"sample": 2}, None, ConfigError, "a sample of 2 dialogues; expected 1 to 1"),
        ({}, "dlg-0-t0", SchemaError, "context 'c9' and system 'Gold', of which one is in no table"),
    ],
)
def test_failed_export_leaves_no_files(tmp_path, options, unknown, error, message):
    tables = mini_tables()
    tables["responses"] = tables["responses"].replace({unknown: "c9"})
    with pytest.raises(error, match=message):
        exported(tmp_path, tables, **options)
    assert not (tmp_path / "out").exists()


def test_incomplete_dialogues_are_skipped_and_used_folders_refused(tmp_path, caplog):
    tables = mini_tables(dialogues=2)
    assert exported(tmp_path, tables | {"responses": tables["responses"].iloc[1:]}) == {"turn": 7, "dialogue": 3}
    assert "1 dialogues left out" in caplog.text and "dlg-0 by Zebra-9B" in caplog.text
    with pytest.raises(FileError, match=r"turn: holds files already; .* Export to another folder"):
        exported(tmp_path)


# Import of ratings


def import_changed(folder, change):
    """Import a real export after a change of its first task and that task's first annotation."""
    tasks = read_json(fixture("dialogue.json"))
    change(tasks[0], tasks[0]["annotations"][0])
    (folder / "export.json").write_text(json.dumps(tasks))
    return ratings_of(read_ratings([folder / "export.json"], fixture("dialogue_key.csv"), "dialogue"))


def test_non_ratings_are_skipped_and_annotator_may_be_an_object(tmp_path):
    def change(task, given):
        comment = {"from_name": "comment", "to_name": "flows", "type": "textarea", "value": {"text": ["hm"]}}
        prediction = {"result": [*given["result"]]}
        given.update(completed_by={"id": 1, "email": "x@example.org"}, result=[comment, *given["result"]])
        task.update(predictions=[prediction], drafts=[prediction])

    assert import_changed(tmp_path, change) == expected_of("dialogue.json")[1]


def overall(given):
    return next(one["value"]["choices"] for one in given["result"] if one["from_name"] == "overall")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task, given: task["data"].update(item="i9"), r"item 'i9' is not in .*key.csv; .*Use the key.csv"),
        (lambda task, given: overall(given).__setitem__(0, "6"), "overall score '6'; expected a score from 1 to 5"),
        (lambda task, given: given.update(result=[]), "by annotator '1': overall score missing; .*Answer or skip"),
        (lambda task, given: task["annotations"].append(given), "by annotator '1': duplicate annotation of item"),
        (lambda task, given: task.pop("annotations"), "record 1: annotations is missing"),
    ],
)
def test_what_cannot_be_imported(tmp_path, change, message):
    with pytest.raises(SchemaError, match=message):
        import_changed(tmp_path, change)


def test_the_commands(tmp_path, capsys):
    exported(tmp_path)
    out, target = tmp_path / "again", tmp_path / "ratings.csv"
    assert main(f"annotate export {tmp_path}/tables --output {out} --level dialogue --seed 5".split()) == 0
    key = ["--key", str(out / "dialogue/key.csv"), "--level", "dialogue", "--output", str(target)]
    assert main(["annotate", "import", str(fixture("dialogue.json")), *key]) == 0
    assert f"{target}: 35 records of 7 dimensions\n" in capsys.readouterr().out
    assert ratings_of(schema.read(target, "ratings")) == expected_of("dialogue.json")[1]


# Pairs of dialogues: reading

QUESTION = chosen(read_questions(), ["overall"])
ANIMALS = ("koala", "quokka", "wombat", "zebra")


def dialogue(system, number, text=None):
    return Dialogue(f"d{number}", system, "B", (("A", f"hello {number}"), ("B", text or f"i am {system} in {number}")))


def dialogues_of(systems=ANIMALS, each=12):
    return {one.key: one for system in systems for one in (dialogue(system, n) for n in range(each))}


CONTROL = Pair.of(dialogue("person", "c"), dialogue("parrot", "c"), dialogue("person", "c"))


def design_of(dialogues=None, questions=QUESTION, controls=(CONTROL,), **options):
    return make_design(dialogues or dialogues_of(), questions, controls=controls, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judged": "C"}, "line 1: the judged speaker 'C' has no utterances; expected one of B"),
        ({"utterances": [{"speaker": "B", "text": " "}]}, "line 1: utterances.0.text is ' '"),
        ({}, "'d1' of 'zebra' appears twice with different texts"),
    ],
)
def test_dialogue_files(tmp_path, change, message):
    write_dialogues(tmp_path / "d.jsonl", dialogues_of().values())
    assert read_all([tmp_path / "d.jsonl", tmp_path / "d.jsonl"]) == dialogues_of()
    line = {"dialogue_id": "d1", "system_id": "zebra", "judged": "B", "utterances": [{"speaker": "B", "text": "hi"}]}
    (tmp_path / "e.jsonl").write_text(json.dumps(line | change) + "\n")
    with pytest.raises(SchemaError, match=message):
        read_all([tmp_path / "d.jsonl", tmp_path / "e.jsonl"])


CONTROLS = "better_dialogue_id,better_system_id,worse_dialogue_id,worse_system_id\n"


def test_controls_and_questions(tmp_path):
    path = tmp_path / "controls.csv"
    path.write_text(f"{CONTROLS}d1,zebra,d2,koala\n")
    (pair,) = read_controls(path, dialogues_of())
    assert (pair.first.key, pair.second.key, pair.answer) == (("d2", "koala"), ("d1", "zebra"), "second")
    for row, message in ((",,d2,koala", "dialogue '' of '' does not"), ("d1,zebra,d1,zebra", "compared with itself")):
        path.write_text(f"{CONTROLS}{row}\n")
        with pytest.raises(SchemaError, match=f"record 1: .*{message}"):
            read_controls(path, dialogues_of())
    path.write_text("kindness:\n  - {name: kind, question: 'Who is kinder?', left: Speaker 1, right: Speaker 2}\n")
    assert [question.text for question in chosen(read_questions(path), ["kind"])] == ["Who is kinder?"]
    with pytest.raises(UnknownNameError, match=r"unknown question 'kin'.*Did you mean 'kind'"):
        chosen(read_questions(path), ["kin"])


# Pairs of dialogues: design


def systems_of(pair):
    return pair.first.system_id, pair.second.system_id


@settings(max_examples=12)
@drawn(
    systems=st.integers(2, 5), each=st.integers(4, 14), annotators=st.integers(1, 9), pairs_each=st.integers(1, 4),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_design_rules(systems, each, annotators, pairs_each, seed):
    result = dialogues_of([f"s{n}" for n in range(systems)], each)
    design = design_of(result, annotators=annotators, pairs_each=pairs_each, seed=seed)
    assert design == design_of(result, annotators=annotators, pairs_each=pairs_each, seed=seed)
    shown, lefts, compared = defaultdict(Counter), Counter(), Counter()
    for _, group in groupby(design.tasks, key=lambda task: task.annotator):
        tasks = list(group)
        assert [task.pair.answer is not None for task in tasks] == [True] + [False] * pairs_each
        texts = [side.utterances for task in tasks for side in (task.pair.first, task.pair.second)]
        assert len(set(texts)) == len(texts), "nobody sees a dialogue twice"
        for task in tasks[1:]:
            shown["pair"][task.pair.id] += 1
            compared[systems_of(task.pair)] += 1
            lefts[systems_of(task.pair)] += 1 if task.left == "first" else -1
            for side in (task.pair.first, task.pair.second):
                shown[side.system_id][side.key] += 1
    assert all(abs(balance) <= 1 for balance in lefts.values())
    assert max(compared.values()) - min(compared.values()) <= 1
    pairs = shown.pop("pair")
    if max(compared.values()) <= each * each / 2:
        assert max(pairs.values()) == 1, "each pair once"
    reused = {system for system, uses in shown.items() if max(uses.values()) > 1}
    assert all(sum(shown[system].values()) > each for system in reused), "each dialogue once while there are enough"
    assert bool(reused) == ("dialogues are shown more than once" in str(design.notes))


def test_design_questions_limits_and_chosen_comparisons():
    design = design_of(questions=chosen(read_questions(), ["overall", "humanness"]), annotators=3, pairs_each=4)
    asked = defaultdict(list)
    for one in design.tasks:
        asked[one.question.name].append((one.pair.id, one.left))
    assert asked["overall"] == asked["humanness"] and len({one.annotator for one in design.tasks}) == 6
    few = dialogues_of(("koala", "zebra"), 3)
    notes = design_of(few, annotators=4, pairs_each=3).notes
    assert notes[1] == "6 of 6 dialogues are shown more than once, at most 4 times"
    with pytest.raises(ConfigError, match="after 3 pairs, an annotator has seen a dialogue of every remaining pair"):
        design_of(few, annotators=4, pairs_each=4)
    # Both speakers of one chat between two bots are judged: it is one dialogue to its readers.
    chats = [Dialogue("chat", name, name, (("p", "hi"), ("q", "ho"))) for name in "pq"]
    with pytest.raises(ConfigError, match="no two dialogues to compare"):
        design_of({one.key: one for one in chats}, annotators=1, pairs_each=1)
    design = design_of(annotators=4, pairs_each=3, compare=[("zebra", "zebra")])
    assert {systems_of(one.pair) for one in design.tasks if not one.pair.answer} == {("zebra", "zebra")}


# Pairs of dialogues: Label Studio


def answers(folder, annotator, *, wrong=False, reason="because"):
    """Write an export of an annotator's project: the later system in the alphabet wins; ``wrong``, the other one."""
    key = {row["item"]: row for row in csv.DictReader((folder / "key.csv").open())}
    out = []
    for number, one in enumerate(read_json(folder / f"overall/{annotator}.json"), start=1):
        choice = "right" if (key[one["data"]["item"]]["left"] == "first") != wrong else "left"
        result = [
            {"from_name": "choice", "to_name": "left", "type": "choices", "value": {"choices": [choice]}},
            {"from_name": "reason", "to_name": "left", "type": "textarea", "value": {"text": [reason]}},
        ]
        given = {"completed_by": int(annotator[1:]), "lead_time": 9.5, "was_cancelled": False, "result": result}
        out.append({"id": number, "data": one["data"], "annotations": [{"id": number, **given}]})
    path = folder / f"{annotator}.json"
    path.write_text(json.dumps(out))
    return path


@pytest.fixture
def study(tmp_path):
    export_pairs(tmp_path, design_of(annotators=4, pairs_each=6, seed=1), name="mini", seed=1)
    return tmp_path


def test_removed_annotators(study):
    exports = [answers(study, "a01"), answers(study, "a02", wrong=True), answers(study, "a03", reason=" ")]
    votes = read_votes(exports, study / "key.csv")
    nothing, failed = votes.notes
    assert nothing == "a04: answered nothing" and re.fullmatch(r"a02: removed: failed the control \w{12}", failed)
    assert set(votes.removed["annotator_id"]) == {"a02"} and len(votes.kept) == 14
    assert "a03: removed: never gave a reason" in read_votes(exports, study / "key.csv", need_reasons=True).notes
    content = json.loads(exports[0].read_text())
    content[0]["annotations"][0] |= {"was_cancelled": True, "result": []}
    exports[0].write_text(json.dumps(content))
    notes = read_votes(exports, study / "key.csv").notes
    assert notes[0] == "a01: 6 of 7 pairs answered" and notes[2] == "a01: removed: did not answer the control"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda task, given: given["result"][0]["value"].update(choices=["both"]),
            "the choice is 'both'; expected left",
        ),
        (lambda task, given: given.update(completed_by=8), "the tasks of 'a01' were done by '1' and '8'"),
    ],
)
def test_bad_exports_of_votes(study, change, message):
    path = answers(study, "a01")
    tasks = read_json(path)
    change(tasks[1], tasks[1]["annotations"][0])
    path.write_text(json.dumps(tasks))
    with pytest.raises(SchemaError, match=message):
        read_votes([path], study / "key.csv")


def test_pair_study_from_the_command_line(tmp_path, capsys):
    evil = "<script>alert(1)</script> & <b>ok</b>"
    dialogues = dialogues_of() | {one.key: one for one in [dialogue("koala", 1, evil)]}
    write_dialogues(tmp_path / "d.jsonl", dialogues.values())
    (tmp_path / "controls.csv").write_text(f"{CONTROLS}d1,zebra,d1,koala\n")
    folder, table = tmp_path / "round1", tmp_path / "preferences.csv"
    command = f"annotate pairs {tmp_path}/d.jsonl --annotators 4 --pairs-each 3 --controls {tmp_path}/controls.csv"
    assert main([*command.split(), "--output", str(folder)]) == 0
    assert "16 tasks of 4 annotators, 4 of them controls; 12 pairs of 24 dialogues" in capsys.readouterr().out
    shown = [one["data"] for path in folder.glob("overall/a0*.json") for one in read_json(path)]
    assert {*map(frozenset, shown)} == {frozenset({"item", "left", "right"})}, "no task names its systems"
    texts = "".join(data["left"] + data["right"] for data in shown)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;ok&lt;/b&gt;" in texts and "<script>" not in texts
    exports = [str(answers(folder, f"a0{n}", wrong=n == 1)) for n in (1, 2, 3, 4)]
    command = ["annotate", "import", *exports, "--key", str(folder / "key.csv"), "--output", str(table), "--level"]
    assert main([*command, "pair"]) == 0
    assert "12 votes of 3 annotators, 3 of them on controls" in capsys.readouterr().out
    kept = schema.read(table, "preferences")
    assert len(kept) == 12 and set(kept["choice"]) == {"second"} and set(kept["left"]) == {"first", "second"}
    assert set(kept["reason"]) == {"because"} and set(kept["seconds"]) == {9.5}
    assert len(pd.read_csv(tmp_path / "preferences_removed.csv")) == 4
    assert main([*command, "turn", "--need-reasons"]) == 1
