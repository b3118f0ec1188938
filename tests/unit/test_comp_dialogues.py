"""Whole dialogues rated in five rounds, in small files written by hand; and the rounds as a judge's answers."""

import json

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data import readers
from comperdial.data.catalogue import load_catalogue
from comperdial.data.recorded.base import Rated
from comperdial.judges.recorded.taking import RecordedJudge, coverage, judgements, ratings, scores

SHORT = {"coherence": "coh", "diversity": "div", "engagingness": "eng", "informativeness": "inf", "overall": "ovr"}
FED_NAMES = ("Coherent", "Likeable", "Diverse", "Informative", "Overall")
LINES = [
    ("FEDDIAL-000000", "human: Hi!", "model: Hello.", "human: So?", "model: model: it is a label.", "human: Bye."),
    ("FEDDIAL-000001", "human: Hi!", "model: Good day."),
    ("FEDDIAL-000002", "human: Oh", "model: <EMPTY>", "human: What?", "model: Sorry."),
]


def rounds(count=3, **changes):
    """Return five rounds; round r of dialogue d has 1 + (d + r) % 5 of every dimension."""
    made = {
        f"{short}_{number}": [float(1 + (place + number - 1) % 5) for place in range(count)]
        for short in SHORT.values()
        for number in range(1, 6)
    }
    return made | changes


def rated(lines=LINES, **changes):
    """Return what people rated, as FED's file has it."""
    made = [
        {
            "model": ("Meena", "Human", "Mitsuku")[number % 3],
            "dialog": [dict(zip(("speaker", "text"), field.split(": ", 1), strict=True)) for field in line[1:]],
            "annotations": {name: [0, 1, 2, number % 3] for name in FED_NAMES},
        }
        for number, line in enumerate(lines)
    ]
    made[1] |= changes
    return made


def write(folder, lines=LINES, content=None, people=None):
    files = {"texts": folder / "texts.txt", "rounds": folder / "rounds.json"}
    files["texts"].write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    files["rounds"].write_text(json.dumps(rounds(len(lines)) if content is None else content))
    if people is not None:
        files["ratings"] = folder / "people.json"
        files["ratings"].write_text(json.dumps(people))
    return files


def read(folder, *arguments, **options):
    return readers.read("comp_dialogues", "mini", write(folder, *arguments, **options))


def test_every_turn_of_the_chatbot_is_a_response(tmp_path):
    tables = read(tmp_path, people=rated())
    responses = tables["responses"].set_index("context_id")
    assert responses["response"].to_dict() == {
        "mini-0000-0": "Hello.",
        "mini-0000-1": "model: it is a label.",
        "mini-0001-0": "Good day.",
        "mini-0002-1": "Sorry.",
    }
    assert responses["system_id"].tolist() == ["Meena", "Meena", "Human", "Mitsuku"]
    assert tables["systems"]["kind"].tolist() == ["agent", "human", "agent"]
    contexts = tables["contexts"].set_index("context_id")
    said = [(u["speaker"], u["text"]) for u in contexts["history"]["mini-0000-1"]]
    assert said == [("A", "Hi!"), ("B", "Hello."), ("A", "So?")]
    # Where the chatbot said nothing there is neither response nor history, but the turn counts.
    assert contexts["turn"]["mini-0002-1"] == 1
    assert [u["text"] for u in contexts["history"]["mini-0002-1"]] == ["Oh", "What?"]
    assert len(tables["ratings"].query("level == 'turn'")) == len(tables["personas"]) == 0


def test_people_s_ratings_and_gpt_4_s_are_kept_apart(tmp_path):
    found = read(tmp_path, people=rated())["ratings"].query("level == 'dialogue'")
    assert len(found) == 3 * 5 * 5 + 3 * 5 * 4
    machine, people = (found[found["source"] == source] for source in ("gpt-4", "human"))
    assert sorted(machine["annotator_id"].unique()) == [f"round-{number}" for number in range(1, 6)]
    assert not set(machine["annotator_id"]) & set(people["annotator_id"])
    values = machine.set_index(["item_id", "annotator_id", "dimension"])["rating"]
    assert values["mini-0001", "round-5", "overall"] == 1
    assert values["mini-0002", "round-2", "coherence"] == 4
    assert people.groupby("dimension")["scale_max"].first().to_dict() == {**dict.fromkeys(SHORT, 2), "overall": 4}
    means = people.groupby(["item_id", "dimension"])["rating"].mean()
    assert means["mini-0002", "engagingness"] == 1.25


def test_only_rated_dialogues_are_taken_and_colours_are_systems(tmp_path):
    lines = [(f"IEVAL-{number:06d}", "A: Hi!", f"B: {number}") for number in range(9)]
    tables = read(tmp_path, lines, rounds(3, indices=[6, 8, 1]))
    assert tables["responses"]["response"].tolist() == ["1", "6", "8"]
    assert tables["responses"]["system_id"].tolist() == ["Purple", "Green", "Pink"]
    values = (
        tables["ratings"].query("level == 'dialogue'").set_index(["item_id", "annotator_id", "dimension"])["rating"]
    )
    assert [values[f"mini-000{line}", "round-1", "overall"] for line in (6, 8, 1)] == [1, 2, 3]


def test_a_dialogue_may_begin_with_the_chatbot(tmp_path):
    tables = read(tmp_path, [("PERSONASEE-000000", "model: Hi!", "human_evaluator: Hello.")])
    assert tables["contexts"]["history"].tolist() == [[]]
    assert tables["systems"]["system_id"].tolist() == ["chatbot"]


SILENT = [("FEDDIAL-000000", "human: Hi!", "model: <EMPTY>")]


@pytest.mark.parametrize(
    ("lines", "content", "people", "message"),
    [
        (
            [("FEDDIAL-000000", "Hi!", "model: Hello.")],
            None,
            None,
            "line 1: utterance 1 begins 'Hi!'; expected human: or",
        ),
        ([("FEDDIAL-000000", "User: Hi!")], None, None, "utterance 1 begins 'User: Hi!'"),
        (SILENT, None, None, "line 1: the chatbot says nothing"),
        (LINES, rounds(2), None, "2 ratings a round; expected 3, one a line of texts"),
        (LINES, rounds(2, indices=[0, 3]), None, "`indices` names line 3; expected lines below 3"),
        (LINES, rounds(3, div_2=[1, 2, 6]), None, "entry 2: rating 6 of 'diversity'; expected a number from 1 to 5"),
        (LINES, rounds(3, div_2=[1, 2]), None, "div_2: 2 ratings; expected 3, as in coh_1"),
        (LINES, None, {}, "people.json: no list"),
        (LINES, None, rated()[:1], "people.json, dialogue 1: no such dialogue"),
        (LINES, None, rated(dialog=[]), "dialogue 1: the texts differ"),
        (LINES, None, rated(annotations={}), "no field 'Coherent'"),
        (LINES, None, rated(annotations={name: [] for name in FED_NAMES}), "dialogue 1: no rating of 'Coherent'"),
        (
            LINES,
            None,
            rated(annotations={name: [3] for name in FED_NAMES}),
            "rating 3 of 'coherence'; expected .* 0 to 2",
        ),
    ],
)
def test_what_is_no_such_set_is_refused(tmp_path, lines, content, people, message):
    with pytest.raises(SchemaError, match=message):
        read(tmp_path, lines, content, people)


# The rounds as a recorded judge


def judge(files):
    return RecordedJudge(
        "gpt-4_mini", "gpt4_rounds", "gpt-4", "rounds", {"rounds": files["rounds"]}, {"rounds": "o/r@abcdef0/r.json"}
    )


def test_rounds_are_scores_and_judgements_of_the_tables_dialogues(tmp_path):
    files = write(tmp_path, people=rated())
    tables = readers.read("comp_dialogues", "mini", files)
    known = Rated(tables["contexts"], tables["responses"], tables["systems"])
    said = ratings(judge(files), known)
    assert len(said.singles) == 3 * 25
    found = scores(judge(files), said, known)
    assert len(found) == 3 * 5
    assert (set(found["level"]), set(found["output"])) == ({"dialogue"}, set(SHORT))
    keys = found[["item_id", "system_id"]].drop_duplicates().to_numpy().tolist()
    assert keys == [["mini-0000", "Meena"], ["mini-0001", "Human"], ["mini-0002", "Mitsuku"]]
    assert (found["value"] == 3).all()
    single = judgements(judge(files), said, known)
    assert sorted(single["sample"].unique()) == list(range(5))
    counted = coverage("gpt-4_mini", said, tables["ratings"].query("level == 'dialogue'"), {})
    assert counted["n"].tolist() == [3] * 5
    machine = tables["ratings"].query("level == 'dialogue'").query("source == 'gpt-4'")
    alone = coverage("gpt-4_mini", said, machine, {})
    assert alone["n"].tolist() == [0] * 5
    assert alone["pearson"].isna().all()
    with pytest.raises(UnknownNameError, match="coherence: unknown rated dimension 'Coherence'"):
        coverage("gpt-4_mini", said, tables["ratings"].query("level == 'dialogue'"), {"coherence": "Coherence"})


def test_coverage_correlates_with_people_s_means(tmp_path):
    content = rounds() | {f"ovr_{number}": [1.0, 2.0, 4.0] for number in range(1, 6)}
    files = write(tmp_path, content=content, people=rated())
    tables = readers.read("comp_dialogues", "mini", files)
    known = Rated(tables["contexts"], tables["responses"], tables["systems"])
    counted = coverage("x", ratings(judge(files), known), tables["ratings"].query("level == 'dialogue'"), {})
    # People's means rise by a quarter from dialogue to dialogue; the rounds by 1 and 2.
    expected = pd.Series([1.0, 2.0, 4.0]).corr(pd.Series([0.75, 1.0, 1.25]))
    assert counted.set_index("dimension")["pearson"]["overall"] == pytest.approx(expected)


def test_a_dialogue_that_is_in_no_table_is_refused(tmp_path):
    files = write(tmp_path, people=rated())
    tables = readers.read("comp_dialogues", "mini", files)
    contexts = tables["contexts"].query("dialogue_id != 'mini-0001'")
    responses = tables["responses"][tables["responses"]["context_id"].isin(contexts["context_id"])]
    with pytest.raises(SchemaError, match=r"entry 1: dialogue 'mini-0001' has responses of no system"):
        ratings(judge(files), Rated(contexts, responses, tables["systems"]))


def test_the_tables_can_be_written_and_read(tmp_path):
    for name, frame in read(tmp_path, people=rated()).items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
        assert len(schema.read(tmp_path / f"{name}.parquet", name)) == len(frame)


# What the catalogue says of levels


def test_a_data_set_may_say_what_is_rated(tmp_path, root):
    known = load_catalogue(root / "data/sources.yaml").datasets
    assert known["comperdial"].levels == ("turn", "dialogue")
    assert known["usr_topical"].levels == ("turn",)
    assert known["fed_dial"].levels == ("dialogue",)
    assert known["fed_turn"].levels == ("turn",)
    assert known["turn_perturbations"].levels == ()
    path = tmp_path / "sources.yaml"
    for wrong in ("turn", ["system"], ["dialogue", "turn"], ["turn", "turn"], None):
        entry = {"reader": "usr", "title": "X", "files": {}, "levels": wrong}
        path.with_name(f"{wrong}.yaml").write_text(yaml.safe_dump({"files": {}, "datasets": {"x": entry}}))
        with pytest.raises(ConfigError, match=r"datasets\.x\.levels.*: got"):
            load_catalogue(path.with_name(f"{wrong}.yaml"))
