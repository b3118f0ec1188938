"""Pairs of dialogues: reading, design, projects for Label Studio, import of the votes."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from itertools import groupby
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.label_studio import export_pairs, read_votes
from comperdial.challenge.pairs import (
    Dialogue,
    Pair,
    chosen,
    make_design,
    read_all,
    read_controls,
    read_dialogues,
    read_questions,
    write_dialogues,
)
from comperdial.cli import main
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError

QUESTION = chosen(read_questions(), ["overall"])
SYSTEMS = ("koala", "quokka", "wombat", "zebra")


def dialogue(system, number, spoken=None):
    return Dialogue(
        f"d{number}", system, "B", (("A", f"hello {number}"), ("B", spoken or f"i am {system} in {number}"))
    )


def dialogues_of(systems=SYSTEMS, each=12):
    return {one.key: one for system in systems for one in (dialogue(system, n) for n in range(each))}


CONTROL = Pair.of(dialogue("person", "c"), dialogue("parrot", "c"), dialogue("person", "c"))


def design_of(dialogues=None, questions=QUESTION, controls=(CONTROL,), **options):
    return make_design(dialogues or dialogues_of(), questions, controls=controls, **options)


# Reading


def test_a_file_of_dialogues(tmp_path):
    write_dialogues(tmp_path / "d.jsonl", dialogues_of().values())
    assert read_all([tmp_path / "d.jsonl", tmp_path / "d.jsonl"]) == dialogues_of()
    line = {"dialogue_id": "d1", "system_id": "zebra", "judged": "B", "utterances": [{"speaker": "B", "text": "hi"}]}
    for change, message in (
        ({"judged": "C"}, "line 1: the judged speaker 'C' has no utterances; expected one of B"),
        ({"utterances": []}, "line 1: utterances is"),
        ({"utterances": [{"speaker": "B", "text": " "}]}, "line 1: utterances.0.text is ' '"),
        ({"system_id": 3}, "line 1: system_id is 3"),
        ({}, "'d1' of 'zebra' appears twice with different texts"),
    ):
        (tmp_path / "e.jsonl").write_text(json.dumps(line | change) + "\n")
        with pytest.raises(SchemaError, match=message):
            read_all([tmp_path / "d.jsonl", tmp_path / "e.jsonl"])


CONTROLS = "better_dialogue_id,better_system_id,worse_dialogue_id,worse_system_id\n"


def test_controls(tmp_path):
    path = tmp_path / "controls.csv"
    path.write_text(f"{CONTROLS}d1,zebra,d2,koala\n")
    (pair,) = read_controls(path, dialogues_of())
    assert (pair.first.key, pair.second.key, pair.answer) == (("d2", "koala"), ("d1", "zebra"), "second")
    for row, message in (
        (",,d2,koala", "dialogue '' of '' does not exist"),
        ("d1,zebra,d99,koala", "dialogue 'd99' of 'koala' does not exist"),
        ("d1,zebra,d1,zebra", "compared with itself"),
    ):
        path.write_text(f"{CONTROLS}{row}\n")
        with pytest.raises(SchemaError, match=f"record 1: .*{message}"):
            read_controls(path, dialogues_of())


def test_questions(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("kindness:\n  - {name: kind, question: 'Who is kinder?', left: Speaker 1, right: Speaker 2}\n")
    assert [question.text for question in chosen(read_questions(path), ["kind"])] == ["Who is kinder?"]
    with pytest.raises(UnknownNameError, match=r"unknown question 'kin'.*Did you mean 'kind'"):
        chosen(read_questions(path), ["kin"])


# Design


def systems_of(pair):
    return pair.first.system_id, pair.second.system_id


@settings(max_examples=30, deadline=None)
@given(
    systems=st.integers(2, 5), each=st.integers(4, 14), annotators=st.integers(1, 9), pairs_each=st.integers(1, 4),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_rules_of_a_design(systems, each, annotators, pairs_each, seed):
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


def test_each_question_has_its_own_annotators_and_the_same_pairs():
    questions = chosen(read_questions(), ["overall", "humanness"])
    design = design_of(questions=questions, annotators=3, pairs_each=4)
    asked = defaultdict(list)
    for task in design.tasks:
        asked[task.question.name].append((task.pair.id, task.left))
    assert asked["overall"] == asked["humanness"]
    assert list(dict.fromkeys(task.annotator for task in design.tasks)) == ["a01", "a02", "a03", "a04", "a05", "a06"]


def test_limits_of_a_design():
    few = dialogues_of(("koala", "zebra"), 3)
    pairs, used = design_of(few, annotators=4, pairs_each=3).notes
    assert re.fullmatch("[34] of [89] pairs are shown more than once, at most 2 times", pairs)
    assert used == "6 of 6 dialogues are shown more than once, at most 4 times"
    with pytest.raises(ConfigError, match="after 3 pairs, an annotator has seen a dialogue of every remaining pair"):
        design_of(few, annotators=4, pairs_each=4)
    # Both speakers of one chat between two bots are judged: it is one dialogue to its readers.
    spoken = (("p", "hi"), ("q", "ho"))
    chats = [Dialogue("chat", "p", "p", spoken), Dialogue("chat", "q", "q", spoken)]
    with pytest.raises(ConfigError, match="no two dialogues to compare"):
        design_of({one.key: one for one in chats}, annotators=1, pairs_each=1)


def test_chosen_comparisons():
    design = design_of(annotators=4, pairs_each=3, compare=[("zebra", "zebra")])
    pairs = [task.pair for task in design.tasks if not task.pair.answer]
    assert {systems_of(pair) for pair in pairs} == {("zebra", "zebra")} and len({pair.id for pair in pairs}) == 12
    with pytest.raises(UnknownNameError, match="Did you mean 'zebra'"):
        design_of(annotators=1, pairs_each=1, compare=[("zebre", "koala")])


# Label Studio: export, answers as it exports them, import


def test_tasks_name_no_system_and_show_texts_as_text(tmp_path):
    evil = "<script>alert(1)</script> & <b>ok</b>"
    result = {one.key: one for one in (dialogue("koala", 1, evil), dialogue("zebra", 1))}
    design = design_of(result, controls=(), annotators=1, pairs_each=1)
    export_pairs(tmp_path, design, name="m", ties=True)
    (task,) = json.loads((tmp_path / "overall/a01.json").read_text())
    assert set(task["data"]) == {"item", "left", "right"}
    shown = task["data"]["left"] + task["data"]["right"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;ok&lt;/b&gt;" in shown and "<script>" not in shown
    (key,) = csv.DictReader((tmp_path / "key.csv").open())
    assert key["item"] == task["data"]["item"]
    assert ("script" in task["data"]["left"]) == (key["left"] == "first")
    assert list(read_dialogues(tmp_path / "dialogues.jsonl")) == [("d1", "koala"), ("d1", "zebra")]
    view = ET.parse(tmp_path / "overall/config.xml").getroot()
    assert [choice.get("alias") for choice in view.iter("Choice")] == ["left", "right", "tie"]
    assert {text.get("value") for text in view.iter("HyperText")} == {"$left", "$right"}
    with pytest.raises(FileError, match="holds files already"):
        export_pairs(tmp_path, design, name="m")


def answers(folder, annotator, *, wrong=False, reason="because"):
    """Write an export of an annotator's project: the later system in the alphabet wins; ``wrong``, the other one."""
    key = {row["item"]: row for row in csv.DictReader((folder / "key.csv").open())}
    out = []
    for number, task in enumerate(json.loads((folder / f"overall/{annotator}.json").read_text()), start=1):
        choice = "right" if (key[task["data"]["item"]]["left"] == "first") != wrong else "left"
        user = int(annotator[1:])
        result = [
            {"from_name": "choice", "to_name": "left", "type": "choices", "value": {"choices": [choice]}},
            {"from_name": "reason", "to_name": "left", "type": "textarea", "value": {"text": [reason]}},
        ]
        annotation = {"id": number, "completed_by": user, "lead_time": 9.5, "was_cancelled": False, "result": result}
        out.append({"id": number, "data": task["data"], "annotations": [annotation]})
    path = folder / f"{annotator}.json"
    path.write_text(json.dumps(out))
    return path


@pytest.fixture
def study(tmp_path):
    design = design_of(annotators=4, pairs_each=6, seed=1)
    export_pairs(tmp_path, design, name="mini", seed=1)
    return tmp_path


def test_votes_become_preferences(study):
    votes = read_votes([answers(study, f"a0{n}") for n in (1, 2, 3, 4)], study / "key.csv")
    assert len(votes.kept) == 4 * 7 and votes.removed.empty and votes.notes == []
    assert set(votes.kept["choice"]) == {"second"} and set(votes.kept["left"]) == {"first", "second"}
    assert votes.kept["control"].notna().sum() == 4
    assert set(votes.kept["reason"]) == {"because"} and set(votes.kept["seconds"]) == {9.5}


def test_who_is_removed(study):
    exports = [answers(study, "a01"), answers(study, "a02", wrong=True), answers(study, "a03", reason=" ")]
    votes = read_votes(exports, study / "key.csv")
    nothing, failed = votes.notes
    assert nothing == "a04: answered nothing"
    assert re.fullmatch(r"a02: removed: failed the control \w{12}", failed)
    assert set(votes.removed["annotator_id"]) == {"a02"} and len(votes.kept) == 14
    strict = read_votes(exports, study / "key.csv", need_reasons=True)
    assert "a03: removed: never gave a reason" in strict.notes
    export_ = json.loads(exports[0].read_text())
    export_[0]["annotations"][0] |= {"was_cancelled": True, "result": []}
    exports[0].write_text(json.dumps(export_))
    notes = read_votes(exports, study / "key.csv").notes
    assert notes[:2] == ["a01: 6 of 7 pairs answered", "a04: answered nothing"]
    assert notes[2] == "a01: removed: did not answer the control"


BAD = {
    "another key": (lambda tasks: tasks[2]["data"].update(item="0123"), "record 3.*: item '0123' is not in .*key.csv"),
    "no choice": (
        lambda tasks: tasks[0]["annotations"][0]["result"].pop(0),
        "annotation 1 .*: the choice is missing",
    ),
    "unknown choice": (
        lambda tasks: tasks[0]["annotations"][0]["result"][0]["value"].update(choices=["both"]),
        "the choice is 'both'; expected left, right or tie",
    ),
    "two people": (
        lambda tasks: tasks[3]["annotations"][0].update(completed_by=8),
        "the tasks of 'a01' were done by '1' and '8'",
    ),
    "second vote": (lambda tasks: tasks.append(tasks[1]), "duplicate annotation of item"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_exports(what, study):
    path = answers(study, "a01")
    tasks = json.loads(path.read_text())
    BAD[what][0](tasks)
    path.write_text(json.dumps(tasks))
    with pytest.raises(SchemaError, match=BAD[what][1]):
        read_votes([path], study / "key.csv")


def test_a_study_from_the_command_line(tmp_path, capsys):
    def run(*arguments):
        return main(["annotate", *map(str, arguments)]), capsys.readouterr()

    write_dialogues(tmp_path / "d.jsonl", dialogues_of().values())
    (tmp_path / "controls.csv").write_text(f"{CONTROLS}d1,zebra,d1,koala\n")
    folder = tmp_path / "round1"
    arguments = ("--annotators", 4, "--pairs-each", 3, "--controls", tmp_path / "controls.csv")
    status, printed = run("pairs", tmp_path / "d.jsonl", *arguments, "--output", folder)
    assert status == 0
    assert printed.out == f"{folder}: 16 tasks of 4 annotators, 4 of them controls; 12 pairs of 24 dialogues\n"
    exports = [answers(folder, f"a0{n}", wrong=n == 1) for n in (1, 2, 3, 4)]
    table = tmp_path / "preferences.csv"
    options = ("--key", folder / "key.csv", "--output", table)
    status, printed = run("import", *exports, *options, "--level", "pair")
    assert status == 0
    assert "a01: removed: failed the control" in printed.out
    assert "12 votes of 3 annotators, 3 of them on controls" in printed.out
    assert len(schema.read(table, "preferences")) == 12
    assert len(pd.read_csv(tmp_path / "preferences_removed.csv")) == 4
    status, printed = run("import", *exports, *options, "--level", "turn", "--need-reasons")
    assert status == 1 and "--need-reasons: given with another level" in printed.err
