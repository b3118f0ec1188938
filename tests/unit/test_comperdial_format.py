"""ComperDial's own form: reading it through column maps, writing it, and what is said when a map does not fit."""

import copy
import json
import logging
import tempfile
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, kinds_of, make_tables, to_data
from comperdial.cli import main
from comperdial.config.registry import completed
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError
from comperdial.data import export, readers
from comperdial.schema.dimensions import AXES, OVERALL

ROLES = ("data", "dialogue_data", "turn_level", "dialogue_level")
NOISY = [
    "my name is Ana..",
    "I'm 31 years old.",
    "my mother is a nurse.",
    "i am a Sailor of the Sea.",
    "my character trait: Calm.",
    "i regularly or consistently mend sails..",
    "i intend to buy a boat in the future.",
    "i have been to many countries. in the past.",
    "sails are white.",
]
DIALOGUE = Dialogue("100001", {"A": ["my name is bo."], "B": NOISY}, ("hi", "hello", "how are you?", "fine"))
TURNS = [
    {"dialogue_id": 100001, "turn": turn, "system_id": "s", "response": f"r{turn}", "ratings": {"a": 4, "b": 5}}
    for turn in (0, 1)
]
WHOLE = [{"dialogue_id": 100001, "system_id": "s", "ratings": {"a": 3, "b": 2}, "marks": {"a": ["Fluency"], "b": []}}]


def files_in(folder, turns=TURNS, whole=WHOLE, dialogues=(DIALOGUE,), systems=None):
    """Write the four files, and a file of systems if one is given; return them by role."""
    data = [entry if isinstance(entry, dict) else to_data(entry) for entry in dialogues]
    contents = dict(zip(ROLES, (data, data, turns, whole), strict=True))
    if systems is not None:
        contents["systems"] = systems
    found = {}
    for role, content in contents.items():
        found[role] = folder / export.FILES[role]
        found[role].write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return found


def maps(turn=None, whole=None):
    """Return the default maps with some entries changed; None takes one away."""
    found = copy.deepcopy(export.COLUMNS)
    for level, changes in (("turn", turn), ("dialogue", whole)):
        found[level] = {k: v for k, v in (found[level] | (changes or {})).items() if v is not None}
    return found


def read(files, columns=None, **options):
    return readers.read("comperdial", "mine", files, {"columns": columns or export.COLUMNS, **options})


def pasted(error):
    """Return what the message gives to paste into params.yaml, parsed."""
    text = str(error)
    assert text.count("\ncomperdial:\n") == 1
    return yaml.safe_load(text[text.index("\ncomperdial:\n") :])["comperdial"]


def misfit(files, columns=None, **options):
    with pytest.raises(SchemaError) as caught:
        read(files, columns, **options)
    return caught.value


def ratings_of(table, dimension=OVERALL):
    rows = table[table["dimension"] == dimension].sort_values(list(table.columns[1:5]))
    return [
        (who, None if pd.isna(place) else int(place), rating)
        for who, place, rating in rows[["annotator_id", "position", "rating"]].itertuples(index=False, name=None)
    ]


def written(tables):
    """Return tables as they are once written and read."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in tables.items():
            path = Path(folder) / f"{name}.parquet"
            schema.write(path, frame, name)
            found[name] = schema.read(path, name)
    return found


# Round trip

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
ODD = st.sampled_from(
    ["a\u2028b", "\ufeffx", "e\u0301", "👩‍🚀", "‮rtl", "\\u0041", '"', "\x85x", "0", "null", "{}", "\x00z"]
)
WORDS = TEXT | ODD


@st.composite
def benchmarks(draw):
    names = draw(
        st.lists(
            st.sampled_from(["100001", "7", "007", "d-1", "née", "1.50", "-3", "a.b"]),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    dialogues = []
    for name in names:
        texts = draw(st.lists(WORDS, min_size=2, max_size=6).filter(lambda t: len(t) % 2 == 0))
        personas = {s: draw(st.lists(WORDS, min_size=1, max_size=3)) for s in "AB"}
        dialogues.append(Dialogue(name, personas, tuple(texts)))
    systems, responses = {}, {}
    for system in draw(st.lists(st.sampled_from(["s1", "S 2", "é", "4"]), min_size=1, max_size=4, unique=True)):
        track = draw(st.sampled_from([None, "gpu"]))
        systems[system] = {
            "kind": draw(st.sampled_from(["agent", "human"])),
            "track": track,
            "description": draw(st.text("ab\n", max_size=3)),
        }
        responses[system] = {(d.dialogue_id, turn): draw(WORDS) for d in dialogues for turn in range(d.turns)}
    tables = make_tables("mine", dialogues, systems, responses, where="drawn")
    raters = draw(st.lists(st.sampled_from(["ann", "1", "bø b"]), max_size=3, unique=True))
    source = draw(st.sampled_from(["human", "simulated"]))
    turn, whole = [], []
    for system, answers in responses.items():
        for dialogue, number in answers:
            for rater in raters:
                key = {"system_id": system, "annotator_id": rater, "position": None, "source": source}
                overall = draw(st.none() | st.sampled_from([1, 2, 3, 4, 5, 2.5]))
                if overall is not None:
                    row = key | {
                        "level": "turn",
                        "item_id": f"{dialogue}-t{number}",
                        "dimension": OVERALL,
                        "rating": overall,
                    }
                    turn.append(row | {"scale_min": 1, "scale_max": 5})
                if number:
                    continue
                key |= {"level": "dialogue", "item_id": dialogue}
                if (overall := draw(st.none() | st.integers(1, 5))) is not None:
                    whole.append(key | {"dimension": OVERALL, "rating": overall, "scale_min": 1, "scale_max": 5})
                # Marks without a score are allowed by the tables, and must come back too.
                if (marks := draw(st.none() | st.sets(st.sampled_from(AXES)))) is not None:
                    whole += [
                        key | {"dimension": a, "rating": float(a not in marks), "scale_min": 0, "scale_max": 1}
                        for a in AXES
                    ]
    rows = [{"dataset": "mine", **row} for row in [*turn, *whole]]
    tables["ratings"] = schema.validate(pd.DataFrame(rows, columns=schema.table("ratings").columns), "ratings")
    return tables


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(benchmarks())
def test_what_is_written_is_read(tables):
    with tempfile.TemporaryDirectory() as folder:
        export.export(tables, folder, note="drawn")
        found = read({role: Path(folder) / name for role, name in export.FILES.items()})
    assert set(found) == set(tables)
    expected, found = written(tables), written(found)
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(found[name], frame)


def test_a_file_like_the_published_one(tmp_path):
    """As far as it is known: 14 utterances, a number as name, 13 to 19 noisy sentences, dialogues that nobody rated."""
    entry = {
        "dialogue_id": 100001,
        "persona": {
            "A": [*NOISY, "i write. in the past.", "my father died.", "I AM a dancer.", "i am 2."],
            "B": [*NOISY, *NOISY, "i am x.."],
        },
        "dialogue": [{"persona_id": "AB"[i % 2], "text": f"utterance {i}"} for i in range(14)],
    }
    turns = [
        {"dialogue_id": 100001, "turn": k, "system_id": "s", "response": "r", "ratings": {"a": 1}} for k in range(7)
    ]
    tables = read(
        files_in(tmp_path, turns, WHOLE, [entry, DIALOGUE.__class__("100002", DIALOGUE.personas, DIALOGUE.texts)])
    )
    contexts = tables["contexts"]
    assert list(contexts["context_id"]) == [f"100001-t{k}" for k in range(7)], (
        "the dialogue that nobody answered is left"
    )
    assert [len(history) for history in contexts["history"]] == [1, 3, 5, 7, 9, 11, 13]
    assert contexts["references"].iloc[6] == ["utterance 13"]
    assert contexts["facts"].iloc[0] == entry["persona"]["B"], "taken as they are"
    assert [len(s) for s in tables["personas"]["sentences"]] == [13, 19]
    assert set(tables["personas"]["dialogue_id"]) == {"100001"}


def test_noisy_sentences_have_kinds(tmp_path):
    personas = read(files_in(tmp_path))["personas"].set_index("speaker")
    assert personas.loc["B", "sentences"] == NOISY
    kinds = ["name", "age", "family", "head", "characteristic", "routine_habit", "goal_plan", "experience", "other"]
    assert personas.loc["B", "kinds"] == kinds == kinds_of(NOISY)


# What a column map can say


@pytest.mark.parametrize(
    ("values", "columns", "expected"),
    [
        ({"score": 4}, "score", [("1", 0, 4)]),
        ({"score": "4"}, "score", [("1", 0, 4)]),
        ({"score": None}, "score", []),
        ({"score": [4, 5, 3]}, "score", [("1", 0, 4), ("2", 1, 5), ("3", 2, 3)]),
        ({"score": [None, 5, "", float("nan"), 3]}, "score", [("2", 1, 5), ("5", 4, 3)]),
        ({"score": {"bob": 2, "ann": 4.5, "cat": None}}, "score", [("ann", None, 4.5), ("bob", None, 2)]),
        ({"ann": 4, "bob": None, "cat": 1}, ["ann", "bob", "cat"], [("ann", None, 4), ("cat", None, 1)]),
        ({"human": {"overall": [1, 2]}}, "human.overall", [("1", 0, 1), ("2", 1, 2)]),
        ({"human": {"x": {"ann": 1}}}, ["human.x.ann"], [("human.x.ann", None, 1)]),
        ({"a.b": 3, "a": {"b": 4}}, "a.b", [("1", 0, 3)]),
        ({"a": {"b.c": 3}}, "a.b.c", [("1", 0, 3)]),
    ],
)
def test_shapes_of_ratings(tmp_path, values, columns, expected):
    turns = [
        {k: v for k, v in record.items() if k != "ratings"} | (values if not record["turn"] else {}) for record in TURNS
    ]
    tables = read(files_in(tmp_path, turns), maps({"ratings": columns}))
    assert ratings_of(tables["ratings"].query("level == 'turn'")) == expected
    assert len(tables["responses"]) == 2, "a response without ratings stays"


@pytest.mark.parametrize(
    ("values", "columns", "expected"),
    [
        ({"r": 3, "f": "n", "h": ""}, {"ratings": "r", "marks": {"Fluency": "f", "Humanness": "h"}}, [0]),
        ({"r": 3, "f": "N ", "h": None}, {"ratings": "r", "marks": {"Fluency": "f", "Humanness": "h"}}, [0]),
        ({"r": 3, "f": False, "h": 1}, {"ratings": "r", "marks": {"Fluency": "f", "Humanness": "h"}}, [1]),
        ({"r": [3, 4], "f": ["n", None]}, {"ratings": "r", "marks": {"Fluency": "f"}}, [0, 1]),
        # Who did not rate shifts nobody's mark.
        ({"r": [None, 4, 5], "f": ["n", "n", ""]}, {"ratings": "r", "marks": {"Fluency": "f"}}, [0, 1]),
        ({"r": {"x": 3, "y": 4}, "m": {"f": {"y": "n"}}}, {"ratings": "r", "marks": {"Fluency": "m.f"}}, [1, 0]),
        ({"x": 3, "y": 4, "xf": "", "yf": "n"}, {"ratings": ["x", "y"], "marks": {"Fluency": ["xf", "yf"]}}, [1, 0]),
        ({"r": {"x": 3, "y": 4}, "m": {"y": ["fluency"], "x": []}}, {"ratings": "r", "marks": "m"}, [1, 0]),
        ({"r": {"x": 3, "y": 4}, "m": {"y": [], "x": None}}, {"ratings": "r", "marks": "m"}, [1]),
        ({"r": [3, 4], "m": {"2": ["Fluency"]}}, {"ratings": "r", "marks": "m"}, [0]),
        ({"r": {"x": 3}, "m": None}, {"ratings": "r", "marks": "m"}, []),
        ({"r": {"x": 3}, "m": {}}, {"ratings": "r", "marks": None}, []),
    ],
)
def test_shapes_of_marks(tmp_path, values, columns, expected):
    whole = [{"dialogue_id": "100001", "system_id": "s"} | values]
    rated = read(files_in(tmp_path, whole=whole), maps(whole=columns))["ratings"].query("level == 'dialogue'")
    assert [rating for _, _, rating in ratings_of(rated, "Fluency")] == expected
    assert (rated[rated["dimension"] != OVERALL]["scale_max"] == 1).all()


def test_a_position_is_the_same_for_a_score_and_its_marks(tmp_path):
    whole = [{"dialogue_id": 100001, "system_id": "s", "r": [None, 4], "m": {"2": ["Fluency"]}, "f": ["", "n"]}]
    for marks in ("m", {"Fluency": "f"}):
        rated = read(files_in(tmp_path, whole=whole), maps(whole={"ratings": "r", "marks": marks}))["ratings"].query(
            "level == 'dialogue'"
        )
        assert set(rated["position"]) == {1}
        assert set(rated["annotator_id"]) == {"2"}


def test_turns_counted_from_one_and_records_inside_an_object(tmp_path):
    turns = {"meta": {"version": 1}, "all": {"items": [r | {"turn": str(r["turn"] + 1)} for r in TURNS]}}
    tables = read(files_in(tmp_path, turns), maps({"first_turn": 1, "records": "all.items"}))
    assert set(tables["responses"]["context_id"]) == {"100001-t0", "100001-t1"}


@pytest.mark.parametrize(
    ("turn", "whole", "named"),
    [
        ({"first_turn": "1"}, {}, "turn.first_turn: got '1'; expected 0 or 1"),
        ({"response": None}, {}, "params.yaml, comperdial.columns, turn: no 'response'"),
        ({"answer": "x"}, {}, "turn.answer: unknown key 'answer'; .*response"),
        ({"marks": "marks"}, {}, "turn.marks: unknown key 'marks'"),
        ({"ratings": []}, {}, "turn.ratings: got an empty list; expected a field, or a list of fields"),
        ({"turn": {"a": 1}}, {}, "turn.turn: got a mapping; expected the name of a field"),
        ({}, {"marks": {"Fluent": "f"}}, "dialogue.marks.Fluent: unknown axis .*Did you mean 'Fluency'"),
        (
            {},
            {"marks": {"Fluency": ["a", "b"]}},
            "dialogue.marks.Fluency: 2 fields; expected .*as many fields as `ratings`",
        ),
    ],
)
def test_a_wrong_map_is_named(tmp_path, turn, whole, named):
    with pytest.raises(ComperdialError, match=named):
        read(files_in(tmp_path), maps(turn, whole))


@pytest.mark.parametrize("columns", [{"turn": 5, "dialogue": {}}, {"dialogue": export.COLUMNS["dialogue"]}])
def test_no_map_at_all_is_named(tmp_path, columns):
    with pytest.raises(ConfigError, match=r"comperdial\.columns(, turn: got a int; expected a mapping|: no 'turn')"):
        read(files_in(tmp_path), columns)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"turn": 2}, "turn_level_evaluation.json, record 2: dialogue '100001', turn 2; .*`first_turn: 1`"),
        ({"turn": "--1"}, "record 2: 'turn' holds '--1'; expected a whole number"),
        ({"turn": True}, "'turn' holds True"),
        ({"turn": 0}, "record 2: dialogue '100001', turn 0, system 's' twice"),
        ({"dialogue_id": 5}, "record 2: dialogue '5', turn 1"),
        ({"dialogue_id": None}, "'dialogue_id' holds nothing; expected a name"),
        ({"system_id": ""}, "'system_id' holds ''; expected a name"),
        ({"response": " "}, "record 2: 'response' holds ' '; expected a text"),
        ({"ratings": {"a": 6}}, "record 2: rating 6; expected a number from 1 to 5"),
        ({"ratings": {"a": "good"}}, "rating 'good'"),
        ({"ratings": {"a": True}}, "rating True"),
        ({"ratings": {"a": {"b": 1}}}, "rating {'b': 1}"),
        ({"ratings": "inf"}, "rating 'inf'"),
        ({"ratings_source": 3}, "ratings_source is 3"),
    ],
)
def test_a_wrong_record_is_named(tmp_path, change, named):
    with pytest.raises(SchemaError, match=named):
        read(files_in(tmp_path, [TURNS[0], TURNS[1] | change]))


def test_a_field_that_one_record_lacks_is_named(tmp_path):
    with pytest.raises(SchemaError, match="record 2: 'response' holds nothing; expected a text"):
        read(files_in(tmp_path, [TURNS[0], {k: v for k, v in TURNS[1].items() if k != "response"}]))


@pytest.mark.parametrize(
    ("change", "columns", "named"),
    [
        ({"dialogue_id": 5}, {}, "record 1: dialogue '5', system 's'; expected one that has responses"),
        ({"system_id": "S"}, {}, "record 1: dialogue '100001', system 'S'; expected one that has responses"),
        ({"marks": ["Fluency"]}, {}, "marks are"),
        ({"marks": {"a": "n"}}, {}, "marks of 'a' are 'n'; expected a list of axes"),
        ({"marks": {"a": ["Wit"]}}, {}, "axis 'Wit'; expected Fluency"),
        ({"f": "n"}, {"marks": {"Fluency": "f"}}, "record 1, Fluency: one mark, 'n', for 2 ratings"),
        ({"ratings": [1, 2], "f": ["n"]}, {"marks": {"Fluency": "f"}}, "1 marks; expected 2"),
        ({"ratings": 2, "f": 3}, {"marks": {"Fluency": "f"}}, "the mark 3; expected"),
    ],
)
def test_a_wrong_record_of_a_dialogue_is_named(tmp_path, change, columns, named):
    with pytest.raises(SchemaError, match=named):
        read(files_in(tmp_path, whole=[WHOLE[0] | change]), maps(whole=columns))


def test_a_dialogue_rated_twice_is_named(tmp_path):
    with pytest.raises(SchemaError, match="record 2: dialogue '100001', system 's' twice"):
        read(files_in(tmp_path, whole=WHOLE * 2))


@pytest.mark.parametrize("content", [[], "text", 5, ["a"], [TURNS[0], 3]])
def test_no_records(tmp_path, content):
    error = misfit(files_in(tmp_path, content))
    assert export.FILES["turn_level"] in str(error)


# A map that does not fit

RENAMED = {"dialogue_id": "dialogId", "turn": "turn_index", "system_id": "model_name", "response": "generated_response"}


def renamed(records, names):
    return [{names.get(k, k): v for k, v in record.items()} for record in records]


def with_ratings(record, **ratings):
    return {k: v for k, v in record.items() if k != "ratings"} | ratings


@pytest.mark.parametrize(
    ("turn_names", "shape"),
    [
        (RENAMED | {"ratings": "human_scores"}, lambda r: r),
        (RENAMED | {"ratings": "annotations"}, lambda r: with_ratings(r, ratings=list(r["ratings"].values()))),
        (RENAMED | {"ratings": "score"}, lambda r: with_ratings(r, ratings=r["ratings"]["a"])),
        (RENAMED, lambda r: with_ratings(r, **{"rating: #1": "4", "unit": "no"})),
        ({"dialogue_id": "id", "system_id": "agent"}, lambda r: r | {"turn": r["turn"] + 1, "persona": "x"}),
        ({"system_id": "bot"}, lambda r: with_ratings(r, score1=4, score2=None if r["turn"] else 5, q={"score1": 1})),
        ({"response": "output"}, lambda r: with_ratings(r, context="a text of the history", meta={"ratings": [1]})),
    ],
)
def test_the_map_to_paste_works(tmp_path, turn_names, shape):
    turns = renamed(map(shape, TURNS), turn_names)
    whole = renamed(
        WHOLE, {"dialogue_id": "dialog_id", "system_id": "system", "ratings": "overall", "marks": "aspects"}
    )
    files = files_in(tmp_path, turns, whole)
    error = misfit(files, counts={"systems": 99})
    text = str(error)
    for level in ("turn_level", "dialogue_level"):
        assert f"{export.FILES[level]}, each field with an example:" in text, "one message for both files"
    for field, value in turns[0].items():
        assert f"  {field}: {value!r}" in text
    for field in set(turn_names) - set(turns[0]):
        assert f"'{field}'" in text.split("; expected")[0]
    found = pasted(error)
    assert found["counts"] == {"systems": 99}
    tables = read(files, found["columns"])
    assert set(tables["responses"]["context_id"]) == {"100001-t0", "100001-t1"}
    assert set(tables["ratings"].query("level == 'turn'")["item_id"]) == {"100001-t0", "100001-t1"}
    assert (tables["ratings"].query("level == 'dialogue'")["dimension"] == "Fluency").sum() == 2


def test_a_map_to_paste_for_records_inside_an_object(tmp_path):
    turns = {"version": [1], "data": {"items": renamed(TURNS, RENAMED)}}
    files = files_in(tmp_path, turns)
    error = misfit(files)
    assert "no list of records" in error.problem
    assert "no field 'dialogue_id', 'turn', 'system_id', 'response'" in error.problem
    columns = pasted(error)["columns"]
    assert columns["turn"]["records"] == "data.items"
    assert columns["dialogue"] == export.COLUMNS["dialogue"], "what fits stays"
    assert len(read(files, columns)["ratings"].query("level == 'turn'")) == 4
    # And the other way round: a list, and a map that looks inside an object.
    columns["turn"]["records"] = "nowhere"
    files = files_in(tmp_path, renamed(TURNS, RENAMED))
    again = pasted(misfit(files, columns))["columns"]
    assert "records" not in again["turn"]
    assert len(read(files, again)["ratings"].query("level == 'turn'")) == 4


def test_axes_in_fields_of_their_own_are_proposed(tmp_path):
    whole = [{"dialogue_id": 100001, "system_id": "s", "ratings": [3, 4]}]
    whole[0] |= {axis.lower().replace(" ", "_"): ["n", ""] for axis in AXES}
    files = files_in(tmp_path, whole=whole)
    columns = pasted(misfit(files))["columns"]
    assert columns["dialogue"]["marks"]["Persona consistency"] == "persona_consistency"
    rated = read(files, columns)["ratings"].query("level == 'dialogue'")
    assert rated[rated["dimension"] != OVERALL].groupby("annotator_id")["rating"].sum().to_dict() == {"1": 0, "2": 6}


def test_marks_that_no_field_looks_like_are_left_out(tmp_path):
    files = files_in(tmp_path, whole=[{k: v for k, v in WHOLE[0].items() if k != "marks"}])
    columns = pasted(misfit(files))["columns"]
    assert "marks" not in columns["dialogue"]
    assert set(read(files, columns)["ratings"].query("level == 'dialogue'")["dimension"]) == {OVERALL}


def test_what_cannot_be_told_is_left_to_fill_in(tmp_path):
    turns = [{"k1": 100001, "k2": "abc", "k3": [{"who": "a", "score": 3}], "k4": None}]
    error = misfit(files_in(tmp_path, turns))
    turn = pasted(error)["columns"]["turn"]
    assert turn["dialogue_id"] == "k1", "its values are the dialogues' names"
    assert {turn[name] for name in ("turn", "system_id", "response", "ratings")} == {"???"}
    # A map with ??? in it does not fit, and says so once more.
    assert pasted(misfit(files_in(tmp_path, turns), pasted(error)["columns"]))["columns"]["turn"] == turn


def test_many_fields_are_counted_and_long_values_cut(tmp_path):
    error = misfit(files_in(tmp_path, [{f"f{k}": "x" * 500 for k in range(50)}]))
    assert "… and 10 more" in str(error)
    assert "x" * 70 not in str(error)


# Counts, sources


def test_counts_that_differ_are_said(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    read(files_in(tmp_path), counts={"systems": 99, "dialogues": 1, "turns": 10395, "rated_dialogues": 1})
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == ["mine: 1 systems, the paper counts 99", "mine: 2 turns, the paper counts 10395"]
    assert "mine: 1 rated dialogues, the paper counts 1" in [r.getMessage() for r in caplog.records]


def test_dialogue_files_that_differ_are_said(tmp_path, caplog):
    files = files_in(tmp_path)
    assert not caplog.records
    read(files)
    assert not caplog.records
    other = to_data(DIALOGUE)
    other["dialogue"][3]["text"] = "well"
    files["dialogue_data"].write_text(json.dumps([other]))
    assert read(files)["contexts"]["references"].tolist() == [["hello"], ["well"]]
    assert "ComperDial_dialogue_data.json: dialogue '100001' is another one than in" in caplog.text


def simulated(tables, source="simulated"):
    return tables | {"ratings": tables["ratings"].assign(source=source)}


def test_simulated_ratings_are_never_read_as_people_s(tmp_path):
    tables = simulated(read(files_in(tmp_path)))
    out = tmp_path / "out"
    export.export(tables, out, note="SIMULATED")
    files = {role: out / name for role, name in export.FILES.items()}
    assert json.loads(files["systems"].read_text())["source"] == "simulated"
    without = {role: path for role, path in files.items() if role != "systems"}
    for given_files in (files, without):
        found = read(given_files)
        assert set(found["ratings"]["source"]) == {"simulated"}
    about = json.loads(files["systems"].read_text()) | {"source": "human"}
    files["systems"].write_text(json.dumps(about))
    with pytest.raises(SchemaError, match="ratings_source is 'simulated'; expected 'human'"):
        read(files)


def test_people_s_records_say_nothing_more(tmp_path):
    export.export(read(files_in(tmp_path)), tmp_path / "out")
    assert "ratings_source" not in (tmp_path / "out" / export.FILES["turn_level"]).read_text()


def test_an_exported_set_is_read_by_its_own_maps(tmp_path):
    tables = read(files_in(tmp_path))
    export.export(tables, tmp_path / "out")
    files = {role: tmp_path / "out" / name for role, name in export.FILES.items()}
    found = read(files, maps({"response": "output"}, {"marks": "n"}))
    pd.testing.assert_frame_equal(found["responses"], tables["responses"])
    files["turn_level"].write_text(files["turn_level"].read_text().replace('"response"', '"output"'))
    error = misfit(files)
    assert "file of systems" in str(error)
    assert pasted(error)["columns"]["turn"]["response"] == "output"


# What cannot be exported


def test_other_data_sets_cannot_be_exported(usr_tables, tmp_path):
    for name, tables in usr_tables.items():
        with pytest.raises(SchemaError, match=f"data set '{name}': ComperDial's format cannot represent this data set"):
            export.export(tables, tmp_path / name)
        assert not (tmp_path / name).exists(), "nothing is written by halves"


def changed(tables, table, **values):
    frame = tables[table].copy()
    for column, value in values.items():
        frame[column] = pd.Series([value] * len(frame), index=frame.index)
    return tables | {table: frame}


CHANGES = {
    "no reference": lambda t: changed(t, "contexts", references=[]),
    "two references": lambda t: changed(t, "contexts", references=["a", "b"]),
    "other facts": lambda t: changed(t, "contexts", facts=["a"]),
    "another history": lambda t: changed(t, "contexts", history=[{"speaker": "A", "text": "x"}]),
    "a turn is missing": lambda t: (
        t
        | {name: t[name].iloc[1:] for name in ("contexts", "responses")}
        | {"ratings": t["ratings"].query("item_id != '100001-t0'")}
    ),
    "a persona is missing": lambda t: t | {"personas": t["personas"].iloc[:1]},
    "no response": lambda t: t | {"responses": t["responses"].iloc[:0]},
    "ratings of another system": lambda t: changed(t, "ratings", system_id="other"),
    "ratings of another item": lambda t: changed(t, "ratings", item_id="other"),
    "responses in no context": lambda t: changed(t, "responses", context_id="other"),
    "responses of no system": lambda t: t | {"systems": t["systems"].assign(system_id="other")},
    "two sources": lambda t: t | {"ratings": t["ratings"].assign(source=["judge", *t["ratings"]["source"][1:]])},
    "another dimension": lambda t: changed(t, "ratings", dimension="Fluency"),
    "another scale": lambda t: changed(t, "ratings", scale_max=7.0),
    # Axes that were not asked for would come back as not marked.
    "an axis was not asked for": lambda t: t | {"ratings": t["ratings"].query("dimension != 'Humanness'")},
    "half a mark": lambda t: (
        t | {"ratings": t["ratings"].assign(rating=lambda f: f["rating"].where(f["dimension"] != "Humanness", 0.5))}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_form_does_not_hold_is_an_error(tmp_path, change):
    tables = read(files_in(tmp_path))
    with pytest.raises(SchemaError, match=r"data set 'mine': ComperDial's format cannot represent this data set: \w+"):
        export.export(CHANGES[change](tables), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Commands


def test_export_and_import_commands(tmp_path, capsys):
    tables, there, back = tmp_path / "tables", tmp_path / "there", tmp_path / "back"
    for name, frame in simulated(read(files_in(tmp_path))).items():
        schema.write(tables / f"{name}.parquet", frame, name)
    assert main(["export", str(tables), "--output", str(there), "--note", "SIMULATED"]) == 0
    assert {path.name for path in there.iterdir()} == set(export.FILES.values())
    assert json.loads((there / export.FILES["systems"]).read_text())["note"] == "SIMULATED"
    assert main(["import", str(there), "--name", "mine", "--output", str(back)]) == 0
    for path in tables.iterdir():
        assert (back / path.name).read_bytes() == path.read_bytes(), path.name
    assert {path.name for path in back.iterdir()} == {path.name for path in tables.iterdir()}
    # Without the file of systems it is still one; without a rated file it is none.
    (there / export.FILES["systems"]).unlink()
    columns = json.dumps(export.COLUMNS)
    assert main(["import", str(there), "--name", "mine", "--columns", columns, "--output", str(back)]) == 0
    (there / export.FILES["turn_level"]).unlink()
    capsys.readouterr()
    assert main(["import", str(there), "--name", "mine", "--output", str(tmp_path / "none")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"comperdial: error: {there}: no ComperDial_turn_level_evaluation.json; expected")
    assert not (tmp_path / "none").exists()
    (tables / "personas.parquet").unlink()
    assert main(["export", str(tables), "--output", str(tmp_path / "none")]) == 1
    assert "personas.parquet: no such file" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_misfit_on_the_command_line(tmp_path, capsys):
    files_in(tmp_path, renamed(TURNS, RENAMED))
    assert main(["import", str(tmp_path), "--name", "mine", "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert len(pd.Series(error.splitlines()).loc[lambda lines: lines.str.startswith("comperdial: error:")]) == 1
    assert (
        yaml.safe_load(error[error.index("\ncomperdial:\n") :])["comperdial"]["columns"]["turn"]["turn"] == "turn_index"
    )


# docs/comperdial-format.md


@pytest.fixture
def page(root):
    text = (root / "docs/comperdial-format.md").read_text()
    blocks = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    return text, dict(zip(("dialogues", "theirs", "ours"), blocks, strict=True))


def test_the_page_s_misfit_and_its_map(page, root, tmp_path):
    text, blocks = page
    theirs = blocks["theirs"]
    files = files_in(tmp_path, theirs["turn"], theirs["dialogue"], blocks["dialogues"])
    block = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])["comperdial"]
    error = misfit(files, counts=block["counts"])
    assert pasted(error) == block
    tables = read(files, block["columns"])
    assert ratings_of(tables["ratings"].query("level == 'turn'")) == [
        ("human.score_1", None, 4),
        ("human.score_1", None, 5),
        ("human.score_2", None, 3),
    ]
    assert [rating for *_, rating in ratings_of(tables["ratings"].query("level == 'dialogue'"), "Fluency")] == [1, 0]
    params = completed(yaml.safe_load((root / "params.yaml").read_text()))
    assert params["comperdial"]["columns"] == export.COLUMNS, "the defaults read what `comperdial export` writes"
    assert set(params["comperdial"]) == set(block)
    assert params["comperdial"]["counts"] == block["counts"]


def test_the_page_s_form_is_the_one_written(page, tmp_path):
    text, blocks = page
    ours = blocks["ours"]
    turns = [ours["turn"], ours["turn"] | {"turn": 1, "response": "To the north.", "ratings": {}}]
    tables = read(files_in(tmp_path, turns, [ours["dialogue"]], blocks["dialogues"], ours["systems"]))
    export.export(tables, tmp_path / "out", note="Rated in our lab in May.")
    out = {role: json.loads((tmp_path / "out" / name).read_text()) for role, name in export.FILES.items()}
    assert out["data"] == out["dialogue_data"] == blocks["dialogues"]
    assert out["turn_level"] == turns
    assert out["dialogue_level"] == [ours["dialogue"]]
    assert out["systems"] == ours["systems"]
    for name in export.FILES.values():
        assert f"`{name}`" in text
    for field in {*ours["turn"], *ours["dialogue"], *ours["systems"], "ratings_source"} - {"note", "systems"}:
        assert f"`{field}`" in text
