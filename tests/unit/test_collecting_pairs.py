"""Pairs of dialogues: reading, design, questions, collection, import."""

import csv
import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.pairs.collection import write_collection
from comperdial.challenge.pairs.design import make_design, split_evenly
from comperdial.challenge.pairs.dialogues import Dialogue, read_dialogues, write_dialogues
from comperdial.challenge.pairs.importing import read_votes
from comperdial.challenge.pairs.page import page_data
from comperdial.challenge.pairs.questions import candidates, chosen, read_questions
from comperdial.challenge.pairs.reading import Material, pair_of, read_controls, read_material
from comperdial.challenge.pairs.simulation import simulate_votes
from comperdial.challenge.pairs.trying import difference, try_questions
from comperdial.cli import main
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError

QUESTION = chosen(read_questions(), ["overall"])
SYSTEMS = ("koala", "quokka", "wombat", "zebra")


def dialogue(system, number, said=None):
    return Dialogue(f"d{number}", system, "B", (("A", f"hello {number}"), ("B", said or f"i am {system} in {number}")))


def material(systems=SYSTEMS, each=12, controls=1):
    dialogues = [dialogue(system, n) for system in systems for n in range(each)]
    good, bad = (
        [dialogue("person", f"c{n}") for n in range(controls)],
        [dialogue("parrot", f"c{n}") for n in range(controls)],
    )
    pairs = [pair_of(one, other, one) for one, other in zip(good, bad, strict=True)]
    return Material({d.key: d for d in dialogues}, controls=pairs)


def collected(folder, *, annotators=4, pairs_each=6, questions=QUESTION, **options):
    found = material(**options)
    design = make_design(found, questions, annotators=annotators, pairs_each=pairs_each, seed=1)
    write_collection(folder, design, name="mini", seed=1)
    return design


def skills(systems=SYSTEMS):
    return {system: place / (len(systems) - 1) for place, system in enumerate(systems)}


def files_of(folder):
    return sorted((folder / "answers").glob("*.json"))


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


# --- Reading


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def parlai_pair(answer=None, *, onboarding=False, ids=True):
    def log(name, text):
        said = [{"id": "human_evaluator", "text": "hi"}, {"id": name, "text": text}]
        return {"speakers": [name, "human_evaluator"], "dialogue": said} | ({"id": f"log-{name}"} if ids else {})

    record = {"is_onboarding": onboarding, "speakers_to_eval": ["modelb", "modela"]}
    record["dialogue_dicts"] = [log("modelb", "yes , tea"), log("modela", "no no no")]
    return record | ({"correct_answer": answer} if answer else {})


def test_our_dialogues(tmp_path):
    write_dialogues(tmp_path / "d.jsonl", material().dialogues.values())
    assert read_material([tmp_path / "d.jsonl"]).dialogues == material().dialogues


def test_parlai_s_pairs(tmp_path):
    path = write_jsonl(tmp_path / "pairings.jsonl", [parlai_pair("modelb", onboarding=True), parlai_pair()])
    found = read_material([path])
    assert [(p.systems, p.answer) for p in found.controls] == [(("modela", "modelb"), "second")]
    assert [(p.systems, p.answer) for p in found.pairs] == [(("modela", "modelb"), None)]
    assert found.pairs[0].first.said_by_judged() == ["no no no"]
    assert set(found.dialogues) == {("log-modela", "modela"), ("log-modelb", "modelb")}


def test_parlai_s_self_chats_judge_the_second_speaker(tmp_path):
    turn = [{"id": "T_1", "text": "hi"}, {"id": "T_2", "text": "hello"}]
    path = write_jsonl(tmp_path / "model1.blended.jsonl", [{"dialog": [turn, turn]}, {"dialog": [turn]}])
    found = read_material([path]).dialogues
    assert list(found) == [("model1-001", "model1"), ("model1-002", "model1")]
    assert found["model1-001", "model1"].said_by_judged() == ["hello", "hello"]


TEA = (("A", "tea ?"), ("B", "tea , please"), ("A", "milk ?"), ("B", "no"), ("A", "ok"), ("B", "thanks"))
OTHER = [("A", "tea ?"), ("B", "rum !"), ("A", "milk ?"), ("B", "neat"), ("A", "ok")]


def tables(folder, histories):
    """A dialogue in which one system gives three responses, each to one of the histories."""
    rows = {
        "systems": [{"system_id": "zebra", "kind": "agent", "track": None, "description": ""}],
        "contexts": [
            {"context_id": f"x-{t}", "dialogue_id": "x", "turn": t, "references": [], "facts": [],
             "history": [{"speaker": s, "text": text} for s, text in history]} for t, history in enumerate(histories)
        ],
        "responses": [
            {"context_id": f"x-{t}", "system_id": "zebra", "response": TEA[2 * t + 1][1]} for t in range(len(histories))
        ],
    }  # fmt: skip
    for name, records in rows.items():
        schema.write(folder / f"{name}.parquet", pd.DataFrame([{"dataset": "t"} | row for row in records]), name)
    return folder


@pytest.mark.parametrize(
    ("histories", "own"),
    [
        ([TEA[:1], TEA[:3], TEA[:5]], True),
        ([TEA[:1], TEA[1:3], TEA[2:5]], True),
        ([OTHER[:1], OTHER[:3], OTHER[:5]], False),
    ],
    ids=["its own history", "the end of its own history", "another's history"],
)
def test_a_folder_of_tables(histories, own, tmp_path, caplog):
    found = read_material([tables(tmp_path, histories)]).dialogues["x", "zebra"]
    assert found == Dialogue("x", "zebra", "B", TEA)
    assert ("in 1 of 1 dialogues the partner answers somebody else" in caplog.text) is not own


def test_turns_that_do_not_join(tmp_path, caplog):
    with pytest.raises(SchemaError, match="holds no whole dialogue"):
        read_material([tables(tmp_path, [TEA[:1], [("A", "what else ?")]])])
    assert "1 dialogues left out, because turns are missing or do not join (the first: x by zebra)" in caplog.text


def test_parlai_s_own_files():
    folder = Path(os.environ.get("COMPERDIAL_MIRROR", "nowhere"), "facebookresearch/ParlAI/parlai/crowdsourcing/tasks")
    folder /= "acute_eval/task_config"
    if not folder.is_dir():
        pytest.skip("ParlAI's files are not here")
    found = read_material([folder / "pairings.jsonl"])
    assert [p.systems for p in found.pairs] == [("modela", "modelb")]
    assert [(p.systems, p.answer) for p in found.controls] == [(("modela", "modelc"), "first")]
    assert [(p.systems, p.answer) for p in read_controls(folder / "onboarding.json", {})] == [
        (("bad_model", "human_as_model"), "second")
    ]
    chats = read_material(sorted((folder / "self_chats").glob("*.jsonl"))).dialogues
    assert Counter(system for _, system in chats) == {"model1": 5, "model2": 5}
    assert {d.judged for d in chats.values()} == {"TransformerGenerator_2"}
    # Ids of crowd workers reach nothing of ours.
    assert "HUMAN" not in str(found)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (parlai_pair(onboarding=True), "a control without an answer"),
        (parlai_pair("modelz"), "the answer is 'modelz'; expected one of 'modelb' and 'modela'"),
        ({"dialogue_dicts": [], "speakers_to_eval": []}, "not two speakers with two dialogues"),
        (parlai_pair() | {"speakers_to_eval": ["modelb", "nobody"]}, "the judged speaker 'nobody' says nothing"),
    ],
)
def test_a_pair_that_is_wrong(record, message, tmp_path):
    path = write_jsonl(tmp_path / "p.jsonl", [parlai_pair(), record])
    with pytest.raises(SchemaError, match=re.escape(message)) as caught:
        read_material([path])
    assert "p.jsonl, line 2" in str(caught.value)


def test_a_control_of_parlai_needs_an_answer(tmp_path):
    path = write_jsonl(tmp_path / "controls.jsonl", [parlai_pair()])
    with pytest.raises(SchemaError, match=r"controls\.jsonl, line 1: a control without an answer"):
        read_controls(path, {})


def test_controls_of_our_own(tmp_path):
    path = tmp_path / "controls.csv"
    head = "better_dialogue_id,better_system_id,worse_dialogue_id,worse_system_id\n"
    path.write_text(f"{head}d1,zebra,d2,koala\n")
    (pair,) = read_controls(path, material().dialogues)
    assert (pair.first.key, pair.second.key, pair.answer) == (("d2", "koala"), ("d1", "zebra"), "second")
    for row, message in (
        (",,d2,koala", "a control without an answer"),
        ("d1,zebra,d99,koala", "dialogue 'd99' of 'koala' does not exist"),
        ("d1,zebra,d1,zebra", "compared with itself"),
    ):
        path.write_text(f"{head}{row}\n")
        with pytest.raises(SchemaError, match=f"record 1: .*{message}"):
            read_controls(path, material().dialogues)


def test_pairs_as_given_and_dialogues_are_not_mixed(tmp_path):
    write_dialogues(tmp_path / "d.jsonl", material().dialogues.values())
    write_jsonl(tmp_path / "p.jsonl", [parlai_pair()])
    with pytest.raises(SchemaError, match="another file holds pairs"):
        read_material([tmp_path / "d.jsonl", tmp_path / "p.jsonl"])


# --- Design


@settings(max_examples=40)
@given(
    systems=st.integers(2, 5), each=st.integers(4, 14), annotators=st.integers(1, 9), pairs_each=st.integers(1, 4),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_the_rules_of_a_design(systems, each, annotators, pairs_each, seed):
    found = material([f"s{n}" for n in range(systems)], each)
    design = make_design(found, QUESTION, annotators=annotators, pairs_each=pairs_each, seed=seed)
    shown, lefts, compared = defaultdict(Counter), Counter(), Counter()
    for who, tasks in design.annotators().items():
        assert len(tasks) == pairs_each + 1
        assert [task.is_control for task in tasks] == [True] + [False] * pairs_each
        texts = [d.utterances for task in tasks for d in (task.pair.first, task.pair.second)]
        assert len(set(texts)) == len(texts), "nobody sees a dialogue twice"
        sides = Counter(task.left for task in tasks)
        assert abs(sides["first"] - sides["second"]) <= 1
        for task in tasks[1:]:
            shown["pair"][task.pair.id] += 1
            compared[task.pair.systems] += 1
            lefts[task.pair.systems] += 1 if task.left == "first" else -1
            for d in (task.pair.first, task.pair.second):
                shown[d.system_id][d.key] += 1
        assert who
    assert all(abs(balance) <= 1 for balance in lefts.values())
    assert max(compared.values()) - min(compared.values()) <= 1
    if annotators * pairs_each >= systems * (systems - 1) / 2:
        assert len(compared) == systems * (systems - 1) / 2
    pairs = shown.pop("pair")
    if max(compared.values()) <= each * each / 2 or (systems == 2 and pairs_each == each >= annotators):
        assert max(pairs.values()) == 1, "each pair once"
    for uses in shown.values():
        # Each dialogue once while there are enough.
        assert max(uses.values()) == 1 or sum(uses.values()) > each
    reused = {system for system, uses in shown.items() if max(uses.values()) > 1}
    assert reused == {
        system for system in shown if f"dialogues of {system} are shown more than once" in str(design.broken)
    }


def test_each_question_has_annotators_of_its_own_and_the_same_pairs():
    questions = chosen(read_questions(), ["overall", "humanness"])
    design = make_design(material(), questions, annotators=3, pairs_each=4)
    by_question = defaultdict(list)
    for task in design.tasks:
        by_question[task.question.name].append((task.pair.id, task.left))
    assert by_question["overall"] == by_question["humanness"]
    assert {len({t.question.name for t in tasks}) for tasks in design.annotators().values()} == {1}
    assert list(design.annotators()) == ["a01", "a02", "a03", "a04", "a05", "a06"]


def test_the_same_seed_gives_the_same_design_and_another_another():
    def design(seed):
        return make_design(material(), QUESTION, annotators=3, pairs_each=4, seed=seed)

    assert design(1) == design(1)
    assert design(1) != design(2)


def test_too_few_dialogues_are_said_and_nobody_sees_one_twice():
    few = material(("koala", "zebra"), 3)
    design = make_design(few, QUESTION, annotators=4, pairs_each=3)
    assert design.broken == [
        "3 of 9 pairs are shown more than once, at most 2 times",
        "3 of 3 dialogues of koala are shown more than once, at most 4 times: 12 are needed",
        "3 of 3 dialogues of zebra are shown more than once, at most 4 times: 12 are needed",
    ]
    with pytest.raises(
        ConfigError,
        match="after 3 pairs, an annotator has seen a dialogue of every pair that is left; expected at most 3 pairs each",
    ):
        make_design(few, QUESTION, annotators=4, pairs_each=4)


def test_one_dialogue_of_each_of_four_systems_serves_two_pairs():
    design = make_design(material(each=1), QUESTION, annotators=5, pairs_each=2)
    assert len(design.tasks) == 15


def test_equal_words_are_one_dialogue():
    # Both speakers of one chat between two bots are judged: whoever reads one has read the other.
    said = (("p", "hi"), ("q", "ho"))
    chats = [Dialogue("chat", "p", "p", said), Dialogue("chat", "q", "q", said)]
    with pytest.raises(ConfigError, match="no two dialogues to compare"):
        make_design(Material({d.key: d for d in chats}), QUESTION, annotators=1, pairs_each=1)


def test_pairs_that_are_given_are_shown_as_they_are(tmp_path):
    control = json.loads(
        json.dumps(parlai_pair("modelb", onboarding=True, ids=False)).replace("yes", "oh").replace("no", "ow")
    )
    path = write_jsonl(tmp_path / "p.jsonl", [control, parlai_pair()])
    design = make_design(read_material([path]), QUESTION, annotators=2, pairs_each=1)
    assert [task.pair.first.dialogue_id for task in design.tasks if not task.is_control] == ["log-modela"] * 2


def test_a_system_against_itself():
    design = make_design(material(controls=0), QUESTION, annotators=4, pairs_each=3, compare=[("zebra", "zebra")])
    assert {task.pair.systems for task in design.tasks} == {("zebra", "zebra")}
    assert len({task.pair.id for task in design.tasks}) == 12
    with pytest.raises(UnknownNameError, match="Did you mean 'zebra'"):
        make_design(material(), QUESTION, annotators=1, pairs_each=1, compare=[("zebre", "koala")])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60), st.integers(0, 9))
def test_edges_are_split_evenly_at_each_end(edges, seed):
    halves = split_evenly(edges, np.random.default_rng(seed))
    balance = Counter()
    for (one, other), half in zip(edges, halves, strict=True):
        balance["left", one] += 1 if half else -1
        balance["right", other] += 1 if half else -1
    assert all(abs(value) <= 1 for value in balance.values())
    degrees = Counter(end for one, other in edges for end in (("left", one), ("right", other)))
    assert all(balance[end] == 0 for end, degree in degrees.items() if degree % 2 == 0)


# --- Questions


def test_the_bank_has_as_many_candidates_as_the_paper_tried_and_says_whose_they_are():
    bank = read_questions()
    counts = {family: len(candidates(bank, family)) for family in bank if family != "overall"}
    assert counts == {"engagingness": 3, "interestingness": 4, "humanness": 3, "knowledgeability": 3}
    assert all(q.text and "Speaker 1" in q.left and "Speaker 2" in q.right for qs in bank.values() for q in qs)


def test_a_bank_of_one_s_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("kindness:\n  - {name: kind, question: 'Who is kinder?', left: Speaker 1, right: Speaker 2}\n")
    assert [q.text for q in chosen(read_questions(path), ["kind"])] == ["Who is kinder?"]
    with pytest.raises(UnknownNameError, match=r"unknown question 'kin'.*Did you mean 'kind'"):
        chosen(read_questions(path), ["kin"])
    path.write_text(path.read_text() + "  - {name: kind, question: 'Who?', left: 1st, right: 2nd}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml, line 3.*'kind' is there already"):
        read_questions(path)


def preferences(counts):
    """Votes on questions: how many chose zebra over koala."""
    rows = [
        {"dataset": "q", "pair_id": "p", "first_dialogue_id": "d", "first_system_id": "koala", "second_dialogue_id": "d",
         "second_system_id": "zebra", "annotator_id": f"{question}-{n}", "question": question,
         "choice": "second" if n < yes else "first", "left": "first", "control": None, "reason": None, "seconds": None,
         "source": "human"}
        for question, (yes, of) in counts.items() for n in range(of)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_best_question_and_whether_it_is_better_than_the_next():
    tried = try_questions(preferences({"one": (14, 20), "two": (20, 20), "three": (6, 20)}), "zebra")
    assert [(t.question, t.hits, t.agreement.n) for t in tried] == [("two", 20, 20), ("one", 14, 20), ("three", 6, 20)]
    # Wilson's interval of 14 of 20, computed apart.
    p, n, z = 0.7, 20, 1.959964
    centre, half = (
        (p + z * z / 2 / n) / (1 + z * z / n),
        z / (1 + z * z / n) * (p * (1 - p) / n + z * z / 4 / n / n) ** 0.5,
    )
    assert (tried[1].agreement.low, tried[1].agreement.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    # Hypergeometric: all six dissenters in one of two groups of 20, twice.
    from math import comb

    assert difference(tried[0], tried[1]) == pytest.approx(2 * comb(20, 6) / comb(40, 6))


def test_without_a_known_answer_the_majority_counts():
    tried = try_questions(preferences({"one": (14, 20), "three": (6, 20)}))
    assert [(t.question, t.hits) for t in tried] == [("one", 14), ("three", 14)]


def test_questions_need_one_vote_a_person():
    frame = preferences({"one": (2, 2)}).assign(annotator_id="x", pair_id=["p", "r"])
    with pytest.raises(SchemaError, match="annotator 'x' has two votes on question 'one'"):
        try_questions(frame, "zebra")


# --- Collection


def test_tasks_do_not_say_who_speaks_or_which_is_a_control(tmp_path):
    design = collected(tmp_path)
    shown = [page_data(path.read_text()) for path in (tmp_path / "pages").glob("*.html")]
    assert len(shown) == 4
    texts = {text for d in design.dialogues() for _, text in d.utterances}
    for data in shown:
        for task in data["tasks"]:
            assert set(task) == {"item", "left", "right"}
            assert {text for side in ("left", "right") for _, text in task[side]} <= texts
    keys = {row["item"]: row for row in csv.DictReader((tmp_path / "key.csv").open())}
    assert len(keys) == len(design.tasks)
    dialogues = read_dialogues(tmp_path / "dialogues.jsonl")
    for data in shown:
        for task in data["tasks"]:
            row = keys[task["item"]]
            for side in ("left", "right"):
                place = row["left"] if side == "left" else {"first": "second", "second": "first"}[row["left"]]
                expected = dialogues[row[f"{place}_dialogue_id"], row[f"{place}_system_id"]]
                assert [text for _, text in task[side]] == [text for _, text in expected.utterances]
                assert [judged for judged, _ in task[side]] == [s == expected.judged for s, _ in expected.utterances]


def test_a_key_is_never_written_over(tmp_path):
    collected(tmp_path)
    with pytest.raises(FileError, match="there is a key already"):
        collected(tmp_path)


def test_label_studio_s_tasks_show_texts_as_text(tmp_path):
    evil = "<script>alert(1)</script> & <b>ok</b>"
    dialogues = [dialogue("koala", 1, evil), dialogue("zebra", 1)]
    found = Material({d.key: d for d in dialogues})
    write_collection(tmp_path, make_design(found, QUESTION, annotators=1, pairs_each=1), name="m", ties=True)
    (task,) = json.loads((tmp_path / "label_studio/overall/a01.json").read_text())
    shown = task["data"]["left"] + task["data"]["right"]
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;ok&lt;/b&gt;" in shown
    view = ET.parse(tmp_path / "label_studio/overall/config.xml").getroot()
    assert [c.get("alias") for c in view.iter("Choice")] == ["left", "right", "tie"]
    assert {h.get("value") for h in view.iter("HyperText")} == {"$left", "$right"}
    assert view.find("Choices").get("required") == "true"
    assert "<script>" not in (tmp_path / "pages/a01.html").read_text().split('id="data">')[1].split("</script>")[0]


# --- Import


def simulated(folder, **options):
    collected(folder)
    simulate_votes(folder, skills(), seed=5, **options)
    return folder


def test_votes_become_preferences(tmp_path):
    simulated(tmp_path)
    votes = read_votes(files_of(tmp_path), tmp_path / "key.csv")
    assert len(votes.kept) == 4 * 7
    assert votes.said == []
    assert votes.removed.empty
    saved = {v["item"]: v for path in files_of(tmp_path) for v in json.loads(path.read_text())["votes"]}
    rows = {(r["annotator_id"], r["pair_id"]): r for r in votes.kept.to_dict("records")}
    for key in csv.DictReader((tmp_path / "key.csv").open()):
        row, vote = rows[key["annotator_id"], key["pair_id"]], saved[key["item"]]
        assert (row["choice"] == row["left"]) == (vote["choice"] == "left")
        assert (row["reason"], row["seconds"], row["source"]) == ("SIMULATED", vote["seconds"], "human")
    controls = votes.kept[votes.kept["control"].notna()]
    assert len(controls) == 4
    assert (controls["choice"] == controls["control"]).all()


@pytest.fixture
def answered(tmp_path):
    return simulated(tmp_path)


def imported(folder, **options):
    return read_votes(files_of(folder), folder / "key.csv", **options)


def flip(vote):
    vote["choice"] = {"left": "right", "right": "left"}[vote["choice"]]


def test_who_fails_the_control_is_removed_by_name_and_nothing_is_lost(answered):
    change(answered / "answers/a02.json", lambda c: flip(c["votes"][0]))
    votes = imported(answered)
    (said,) = votes.said
    assert re.fullmatch(r"a02: removed with 7 votes: failed the control \w{12} \(chose parrot, expected person\)", said)
    assert set(votes.removed["annotator_id"]) == {"a02"}
    assert len(votes.kept) + len(votes.removed) == 28
    assert votes.removed["removed"].str.startswith("failed the control").all()


def test_who_skips_the_control_is_removed(answered):
    change(answered / "answers/a02.json", lambda c: c["votes"].pop(0))
    assert imported(answered).said == [
        "a02: 6 of 7 pairs answered",
        "a02: removed with 6 votes: did not answer the control",
    ]


def test_who_never_gives_a_reason(answered):
    change(answered / "answers/a03.json", lambda c: [v.update(reason=" ") for v in c["votes"]])
    assert imported(answered).said == ["a03: never gave a reason (kept)"]
    votes = imported(answered, need_reasons=True)
    assert votes.said == ["a03: removed with 7 votes: never gave a reason"]
    assert set(votes.removed["annotator_id"]) == {"a03"}
    change(answered / "answers/a03.json", lambda c: c["votes"][4].update(reason="kinder"))
    assert imported(answered, need_reasons=True).said == []


def test_unfinished_and_missing_answers_are_named(answered):
    change(answered / "answers/a01.json", lambda c: c["votes"].pop())
    (answered / "answers/a04.json").unlink()
    votes = imported(answered)
    assert votes.said == ["a01: 6 of 7 pairs answered", "no answers of a04"]
    assert len(votes.kept) == 20


def _copy(folder):
    (folder / "answers/a01 (1).json").write_bytes((folder / "answers/a01.json").read_bytes())


BAD = {
    "a pair that does not exist": (
        lambda f: change(f / "answers/a01.json", lambda c: c["votes"][2].update(item="0123456789ab")),
        r"a01\.json, vote 3: a vote on the pair '0123456789ab', which does not exist; expected the pairs of .*key\.csv",
    ),
    "a truncated file": (
        lambda f: (f / "answers/a01.json").write_text((f / "answers/a01.json").read_text()[:300]),
        r"a01\.json, line \d+, column \d+: the JSON ends in the middle: the file is truncated",
    ),
    "a second vote": (
        lambda f: change(f / "answers/a01.json", lambda c: c["votes"].append(c["votes"][1])),
        r"a01\.json, vote 8: a second vote on the pair '\w+' by annotator 'a01'; .*the first is in .*a01\.json, vote 2",
    ),
    "two files of one annotator": (_copy, r"a second vote .* by annotator 'a01'.*give the one with more votes"),
    "no choice": (
        lambda f: change(f / "answers/a01.json", lambda c: c["votes"][0].update(choice=None)),
        r"a01\.json, vote 1: a vote without a choice; expected left, right or tie",
    ),
    "an unknown choice": (
        lambda f: change(f / "answers/a01.json", lambda c: c["votes"][0].update(choice="both")),
        r"vote 1: the choice is 'both'",
    ),
    "another's task": (
        lambda f: change(f / "answers/a01.json", lambda c: c.update(annotator="a02")),
        r"a task of 'a01' in the file of 'a02'",
    ),
    "another file": (
        lambda f: (f / "answers/a01.json").write_text('{"votes": 3}'),
        r"a01\.json: no file of answers; expected what a page saved, or an export of Label Studio",
    ),
    "a strange time": (
        lambda f: change(f / "answers/a01.json", lambda c: c["votes"][0].update(seconds=-1)),
        r"vote 1: 'seconds' is -1",
    ),
    "another key": (
        lambda f: (f / "key.csv").write_text("item,system\nx,y\n"),
        r"key\.csv: the columns are item, system; expected the key\.csv of `comperdial annotate pairs`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_answers_get_one_message(what, answered, capsys):
    break_it, message = BAD[what]
    break_it(answered)
    output = answered / "preferences.csv"
    files = [str(path) for path in files_of(answered)]
    arguments = [
        "annotate",
        "import",
        *files,
        "--key",
        str(answered / "key.csv"),
        "--level",
        "pair",
        "--output",
        str(output),
    ]
    assert main(arguments) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("comperdial: error: ")
    assert re.search(message, error), error
    assert not output.exists()


def label_studio(folder, annotator, form="json", user=7):
    """An export of the annotator's project, as Label Studio writes it: choices by alias, text areas as lists."""
    tasks = json.loads((folder / f"label_studio/overall/{annotator}.json").read_text())
    votes = {v["item"]: v for v in json.loads((folder / f"answers/{annotator}.json").read_text())["votes"]}
    out = []
    for number, task in enumerate(tasks, start=1):
        vote = votes[task["data"]["item"]]
        if form == "min":
            out.append(
                {"id": number, "annotation_id": number, "annotator": user, "lead_time": vote["seconds"], **task["data"],
                 "choice": vote["choice"], "reason": "one line" if number % 2 else {"text": ["two", "lines"]}}
            )  # fmt: skip
            continue
        result = [
            {"from_name": "choice", "to_name": "left", "type": "choices", "value": {"choices": [vote["choice"]]}},
            {"from_name": "reason", "to_name": "left", "type": "textarea", "value": {"text": ["because"]}},
        ]
        annotation = {"id": number, "completed_by": user, "lead_time": vote["seconds"], "was_cancelled": False}
        out.append({"id": number, "data": task["data"], "annotations": [annotation | {"result": result}]})
    return out


@pytest.mark.parametrize("form", ["json", "min"])
def test_label_studio_s_exports_give_the_same_table(form, answered):
    for n, path in enumerate(files_of(answered)):
        (answered / f"{path.stem}.json").write_text(json.dumps(label_studio(answered, path.stem, form, user=n + 1)))
    exports = [answered / path.name for path in files_of(answered)]
    expected, found = imported(answered).kept, read_votes(exports, answered / "key.csv").kept
    columns = [name for name in expected if name != "reason"]
    key = ["annotator_id", "pair_id"]
    pd.testing.assert_frame_equal(
        found.sort_values(key)[columns].reset_index(drop=True),
        expected.sort_values(key)[columns].reset_index(drop=True),
    )
    assert set(found["reason"]) == ({"because"} if form == "json" else {"one line", "two\nlines"})


def test_one_file_of_tasks_is_one_person_s(answered):
    export = label_studio(answered, "a01")
    export[3]["annotations"][0]["completed_by"] = 8
    (answered / "a01.json").write_text(json.dumps(export))
    with pytest.raises(SchemaError, match="the tasks of 'a01' were done by '7' and '8'"):
        read_votes([answered / "a01.json"], answered / "key.csv")


def test_a_skipped_pair_is_no_vote(answered):
    export = label_studio(answered, "a01")
    export[3]["annotations"][0] |= {"was_cancelled": True, "result": []}
    (answered / "a01.json").write_text(json.dumps(export))
    votes = read_votes([answered / "a01.json"], answered / "key.csv")
    assert "a01: 6 of 7 pairs answered" in votes.said


# --- A study with SIMULATED annotators, from dialogues to the order of the systems


def bradley_terry(frame):
    """Log strengths by Zermelo's iteration: win counts in, nothing of ours used."""
    winner = np.where(frame["choice"] == "first", frame["first_system_id"], frame["second_system_id"])
    loser = np.where(frame["choice"] == "first", frame["second_system_id"], frame["first_system_id"])
    names = sorted(set(winner) | set(loser))
    wins = pd.crosstab(winner, loser).reindex(index=names, columns=names, fill_value=0).to_numpy(float)
    strength = np.ones(len(names))
    for _ in range(500):
        games = (wins + wins.T) / (strength[:, None] + strength[None, :])
        strength = wins.sum(1) / games.sum(1)
        strength /= np.exp(np.log(strength).mean())
    return dict(zip(names, np.log(strength), strict=True))


def test_a_simulated_study_recovers_the_true_order_and_loses_nothing(tmp_path):
    systems = ("ape", "bear", "cat", "dog", "emu")
    found = material(systems, 60)
    design = make_design(found, QUESTION, annotators=40, pairs_each=10, seed=2)
    write_collection(tmp_path, design, name="simulated", seed=2)
    simulate_votes(tmp_path, skills(systems), sharpness=4, careless=0.2, seed=9)
    votes = imported(tmp_path)
    assert len(votes.kept) + len(votes.removed) == len(design.tasks) == 440
    careless = {p.stem for p in files_of(tmp_path) if not any(v["reason"] for v in json.loads(p.read_text())["votes"])}
    removed = set(votes.removed["annotator_id"])
    assert removed
    assert removed <= careless, "nobody who cares fails a control"
    strict = imported(tmp_path, need_reasons=True)
    assert set(strict.removed["annotator_id"]) == careless
    real = strict.kept[strict.kept["control"].isna()]
    strengths = bradley_terry(real)
    assert sorted(strengths, key=strengths.get) == list(systems)
    # Neighbours differ by sharpness / 4 = 1 in log strength.
    gaps = np.diff([strengths[name] for name in systems])
    assert np.abs(gaps - 1).max() < 0.7
    assert abs((real["left"] == "first").mean() - 0.5) < 0.03


# --- Commands


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    return status, capsys.readouterr().out


def test_trying_questions_from_the_command_line(tmp_path, capsys):
    pair = write_jsonl(tmp_path / "pair.jsonl", [parlai_pair("modelb", onboarding=True)])
    status, said = run(capsys, "annotate", "try-questions", pair, "--family", "humanness", "--output", tmp_path / "try")
    assert status == 0
    assert "60 annotators, 60 tasks and 0 controls, 1 pair of 2 dialogues" in said
    assert "3 wordings; known to be better: modelb" in said
    keys = list(csv.DictReader((tmp_path / "try/key.csv").open()))
    assert Counter((row["question"], row["left"]) for row in keys) == Counter(
        {(f"humanness{n}", side): 10 for n in ("", "-2", "-3") for side in ("first", "second")}
    )
    assert {row["control"] for row in keys} == {""}
    (tmp_path / "roster.yaml").write_text(
        "agents:\n- {id: modela, kind: echo, skill: 0.1}\n- {id: modelb, kind: echo, skill: 0.6}\n"
    )
    assert run(capsys, "annotate", "simulate-votes", tmp_path / "try", "--roster", tmp_path / "roster.yaml")[0] == 0
    files = files_of(tmp_path / "try")
    table = tmp_path / "preferences.parquet"
    key = ("--key", tmp_path / "try/key.csv")
    assert run(capsys, "annotate", "import", *files, *key, "--level", "pair", "--output", table)[0] == 0
    status, said = run(capsys, "annotate", "best-question", table, "--better", "modelb")
    assert status == 0
    assert re.search(
        r"best: humanness\S*, (not )?significantly better than humanness\S* \(Fisher's exact test, p = ", said
    )


def test_a_study_from_the_command_line(tmp_path, capsys):
    write_dialogues(tmp_path / "d.jsonl", material().dialogues.values())
    (tmp_path / "controls.csv").write_text(
        "better_dialogue_id,better_system_id,worse_dialogue_id,worse_system_id\nd1,zebra,d1,koala\n"
    )
    arguments = ("annotate", "pairs", tmp_path / "d.jsonl", "--annotators", 4, "--pairs-each", 3)
    status, said = run(capsys, *arguments, "--controls", tmp_path / "controls.csv", "--output", tmp_path / "round1")
    assert status == 0
    assert said.splitlines() == [
        f"{tmp_path / 'round1'}: 4 annotators, 12 tasks and 4 controls, 12 pairs of 26 dialogues"
    ]
    roster = "agents:\n" + "".join(
        f"- {{id: {name}, kind: echo, skill: {value}}}\n" for name, value in skills().items()
    )
    (tmp_path / "roster.yaml").write_text(roster)
    status, said = run(capsys, "annotate", "simulate-votes", tmp_path / "round1", "--roster", tmp_path / "roster.yaml")
    assert "4 files of SIMULATED annotators" in said
    change(tmp_path / "round1/answers/a01.json", lambda c: flip(c["votes"][0]))
    table = tmp_path / "preferences.csv"
    status, said = run(
        capsys, "annotate", "import", *files_of(tmp_path / "round1"), "--key", tmp_path / "round1/key.csv",
        "--level", "pair", "--output", table,
    )  # fmt: skip
    assert status == 0
    assert "a01: removed with 4 votes: failed the control" in said
    assert "9 votes and 3 controls of 3 annotators" in said
    assert len(schema.read(table, "preferences")) == 12
    assert len(pd.read_csv(tmp_path / "preferences_removed.csv")) == 4


def test_other_levels_have_no_reasons(tmp_path, capsys):
    arguments = ["annotate", "import", "x.json", "--key", "k", "--level", "turn", "--output", "o.csv", "--need-reasons"]
    assert main(arguments) == 1
    assert "--need-reasons: given with another level" in capsys.readouterr().err
