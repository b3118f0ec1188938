"""ComperDial's own form: reading it through column maps, writing it, and messages when a map does not fit."""

import copy
import json
from itertools import cycle, product

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, make_tables, to_data
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SchemaError
from comperdial.data import export, readers
from comperdial.schema.dimensions import AXES, OVERALL

ROLES = ("data", "dialogue_data", "turn_level", "dialogue_level")
# Sentences as noisy as the published ones, and what each is.
NOISY = {
    "my name is Ana..": "name", "I'm 31 years old.": "age", "my mother is a nurse.": "family",
    "i am a Sailor of the Sea.": "head", "my character trait: Calm.": "characteristic",
    "i regularly or consistently mend sails..": "routine_habit", "i intend to buy a boat in the future.": "goal_plan",
    "i have been to many countries. in the past.": "experience", "sails are white.": "other",
}  # fmt: skip
DIALOGUE = Dialogue("100001", {"A": ["my name is bo."], "B": [*NOISY]}, ("hi", "hello", "how are you?", "fine"))
TURNS = [
    {"dialogue_id": 100001, "turn": turn, "system_id": "s", "response": f"r{turn}", "ratings": {"a": 4, "b": 5}}
    for turn in (0, 1)
]
WHOLE = [{"dialogue_id": 100001, "system_id": "s", "ratings": {"a": 3, "b": 2}, "marks": {"a": ["Fluency"], "b": []}}]


def files_in(folder, turns=TURNS, whole=WHOLE, dialogues=(DIALOGUE,)):
    """Write the four files; return them by role."""
    data = [to_data(entry) for entry in dialogues]
    found = {}
    for role, content in zip(ROLES, (data, data, turns, whole), strict=True):
        found[role] = folder / export.FILES[role]
        found[role].write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return found


def written_to(folder):
    return {role: folder / name for role, name in export.FILES.items()}


def maps(turn=None, whole=None):
    """Return the default maps with some entries changed; None takes one away."""
    found = copy.deepcopy(export.COLUMNS)
    for level, changes in (("turn", turn), ("dialogue", whole)):
        found[level] = {k: v for k, v in (found[level] | (changes or {})).items() if v is not None}
    return found


def read(files, columns=None, **options):
    return readers.read("comperdial", "mine", files, {"columns": columns or export.COLUMNS, **options})


def proposed(files, columns=None, **options):
    """Return the message about a map that does not fit, and what it gives to paste into params.yaml."""
    with pytest.raises(SchemaError) as caught:
        read(files, columns, **options)
    text = str(caught.value)
    return text, yaml.safe_load(text[text.index("\ncomperdial:\n") :])["comperdial"]


def ratings_of(tables, level, dimension=OVERALL):
    found = tables["ratings"].query("level == @level and dimension == @dimension")
    found = found.sort_values(["item_id", "system_id", "annotator_id"])[["annotator_id", "position", "rating"]]
    return [(who, None if pd.isna(place) else int(place), rating) for who, place, rating in found.to_numpy()]


# Written and read again

ODD = ["a\u2028b", "\ufeffx", "e\u0301", "👩‍🚀", "‮rtl", "\\u0041", '"', "\x85x", "0", "null", "{}", "\x00z", " b "]


def odd_tables(source):
    """Return the tables of dialogues with odd names and texts, answered by two systems, and rated in part."""
    texts = cycle(ODD)
    dialogues = [
        Dialogue(name, {"A": [next(texts)], "B": [next(texts), next(texts)]}, tuple(next(texts) for _ in range(turns)))
        for name, turns in (("007", 4), ("7", 2), ("née", 2), ("-3", 2), ("1.50", 6))
    ]
    systems = {
        "S 2": {"kind": "agent", "track": "gpu", "description": "a\nb"},
        "é": {"kind": "human", "track": None, "description": ""},
    }
    answers = {
        name: {(d.dialogue_id, turn): next(texts) for d in dialogues for turn in range(d.turns)} for name in systems
    }
    tables = make_tables("mine", dialogues, systems, answers, where="here")
    rows = []
    for number, (system, rater, dialogue) in enumerate(product(systems, ("ann", "1", "bø b"), dialogues)):
        name, turns = dialogue.dialogue_id, min(number % 3, dialogue.turns)
        rated = [("turn", f"{name}-t{turn}", OVERALL, 2.5, 1, 5) for turn in range(turns)]
        rated += [("dialogue", name, OVERALL, 1 + number % 5, 1, 5)] * (number % 2)
        # Marks without a score are allowed by the tables, and must come back too.
        rated += [("dialogue", name, axis, float(axis != AXES[number % 6]), 0, 1) for axis in AXES * (number % 4 > 1)]
        same = {"dataset": "mine", "system_id": system, "annotator_id": rater, "position": None, "source": source}
        columns = ("level", "item_id", "dimension", "rating", "scale_min", "scale_max")
        rows += [same | dict(zip(columns, row, strict=True)) for row in rated]
    ratings = pd.DataFrame(rows, columns=schema.table("ratings").columns)
    return tables | {"ratings": schema.validate(ratings, "ratings")}


def stored(folder, tables):
    """Return tables as they are once written and read."""
    for name, frame in tables.items():
        schema.write(folder / f"{name}.parquet", frame, name)
    return {name: schema.read(folder / f"{name}.parquet", name) for name in tables}


@pytest.mark.parametrize("source", ["human", "simulated"])
def test_round_trip(tmp_path, source):
    tables = odd_tables(source)
    export.export(tables, tmp_path / "out", note="odd")
    found = stored(tmp_path / "found", read(written_to(tmp_path / "out")))
    assert set(found) == set(tables)
    for name, frame in stored(tmp_path / "expected", tables).items():
        pd.testing.assert_frame_equal(found[name], frame)


def test_reading(tmp_path):
    """A dialogue that nobody answered is left out, and noisy sentences stay as they are."""
    other = Dialogue("100002", DIALOGUE.personas, DIALOGUE.texts)
    tables = read(files_in(tmp_path, dialogues=[DIALOGUE, other]))
    contexts = tables["contexts"].set_index("context_id")
    assert list(contexts.index) == ["100001-t0", "100001-t1"]
    assert [len(history) for history in contexts["history"]] == [1, 3]
    assert contexts.loc["100001-t1", "references"] == ["fine"] and contexts.loc["100001-t1", "facts"] == [*NOISY]
    persona = tables["personas"].set_index("speaker").loc["B"]
    assert (persona["sentences"], persona["kinds"]) == ([*NOISY], [*NOISY.values()])


# Column maps


@pytest.mark.parametrize(
    ("values", "ratings", "marks", "expected"),
    [
        # The expected ratings, by annotator and place; or the ratings of Fluency that the marks give.
        ({"r": 4}, "r", None, [("1", 0, 4)]),
        ({"r": [None, 5, "", float("nan"), 3]}, "r", None, [("2", 1, 5), ("5", 4, 3)]),
        ({"r": {"bob": 2, "ann": 4.5, "cat": None}}, "r", None, [("ann", None, 4.5), ("bob", None, 2)]),
        ({"ann": 4, "bob": None, "cat": 1}, ["ann", "bob", "cat"], None, [("ann", None, 4), ("cat", None, 1)]),
        ({"human": {"overall": [1, 2]}}, "human.overall", None, [("1", 0, 1), ("2", 1, 2)]),
        ({"a.b": 3, "a": {"b": 4}}, "a.b", None, [("1", 0, 3)]),
        ({"r": 3, "f": "N ", "h": None}, "r", {"Fluency": "f", "Humanness": "h"}, [0]),
        ({"r": 3, "f": False, "h": 1}, "r", {"Fluency": "f", "Humanness": "h"}, [1]),
        # Who did not rate shifts nobody's mark.
        ({"r": [None, 4, 5], "f": ["n", "n", ""]}, "r", {"Fluency": "f"}, [0, 1]),
        ({"r": {"x": 3, "y": 4}, "m": {"f": {"y": "n"}}}, "r", {"Fluency": "m.f"}, [1, 0]),
        ({"x": 3, "y": 4, "xf": "", "yf": "n"}, ["x", "y"], {"Fluency": ["xf", "yf"]}, [1, 0]),
        ({"r": {"x": 3, "y": 4}, "m": {"y": ["fluency"], "x": []}}, "r", "m", [1, 0]),
        ({"r": [3, 4], "m": {"2": ["Fluency"]}}, "r", "m", [0]),
    ],
)
def test_shapes_of_ratings_and_marks(tmp_path, values, ratings, marks, expected):
    whole = [{"dialogue_id": "100001", "system_id": "s"} | values]
    tables = read(files_in(tmp_path, whole=whole), maps(whole={"ratings": ratings, "marks": marks}))
    if marks is None:
        assert ratings_of(tables, "dialogue") == expected
    else:
        assert [rating for *_, rating in ratings_of(tables, "dialogue", "Fluency")] == expected


@pytest.mark.parametrize(
    ("level", "change", "columns", "named"),
    [
        ("turn", {}, {"first_turn": "1"}, "turn.first_turn: got '1'; expected 0 or 1"),
        ("turn", {}, {"answer": "x"}, "turn.answer: unknown key 'answer'; .*response"),
        ("turn", {"turn": 2}, {}, "turn_level_evaluation.json, record 2: dialogue '100001', turn 2; .*`first_turn: 1`"),
        ("turn", {"turn": 0}, {}, "record 2: dialogue '100001', turn 0, system 's' twice"),
        ("turn", {"system_id": ""}, {}, "'system_id' holds ''; expected a name"),
        ("turn", {"ratings": {"a": 6}}, {}, "record 2: rating 6; expected a number from 1 to 5"),
        (
            "whole",
            {},
            {"marks": {"Fluency": ["a", "b"]}},
            "marks.Fluency: 2 fields; expected .*as many fields as `ratings`",
        ),
        ("whole", {"dialogue_id": 5}, {}, "record 1: dialogue '5', system 's'; expected one that has responses"),
        ("whole", {"marks": {"a": ["Wit"]}}, {}, "axis 'Wit'; expected Fluency"),
        ("whole", {"f": "n"}, {"marks": {"Fluency": "f"}}, "record 1, Fluency: one mark, 'n', for 2 ratings"),
        ("whole", {"ratings": [1, 2], "f": ["n"]}, {"marks": {"Fluency": "f"}}, "1 marks; expected 2"),
    ],
)
def test_invalid_map_or_record_is_reported(tmp_path, level, change, columns, named):
    records = {"turn": TURNS, "whole": WHOLE}
    records[level] = [*records[level][:-1], records[level][-1] | change]
    with pytest.raises(ComperdialError, match=named):
        read(files_in(tmp_path, records["turn"], records["whole"]), maps(**{level: columns}))


# A map that does not fit

RENAMED = {"dialogue_id": "dialogId", "turn": "turn_index", "system_id": "model_name", "response": "generated_response"}


def renamed(records, names):
    return [{names.get(k, k): v for k, v in record.items()} for record in records]


def test_map_template(tmp_path):
    whole = renamed(WHOLE, {"dialogue_id": "dialog_id", "marks": "aspects"})
    files = files_in(tmp_path, {"version": [1], "data": {"items": renamed(TURNS, RENAMED)}}, whole)
    text, block = proposed(files, counts={"systems": 99})
    for level in ("turn_level", "dialogue_level"):
        assert f"{export.FILES[level]}, each field with an example:" in text, "one message for both files"
    assert "\n  model_name: 's'\n" in text
    missing = {**dict.fromkeys(RENAMED, "???"), "ratings": "ratings", "first_turn": 0, "records": "data.items"}
    assert block["columns"]["turn"] == missing
    assert block["columns"]["dialogue"] == {
        "dialogue_id": "???", "system_id": "system_id", "ratings": "ratings", "marks": "???",
    }  # fmt: skip
    assert block["counts"] == {"systems": 99}
    block["columns"]["turn"] |= RENAMED
    block["columns"]["dialogue"] |= {"dialogue_id": "dialog_id", "marks": "aspects"}
    tables = read(files, block["columns"])
    assert set(tables["ratings"].query("level == 'turn'")["item_id"]) == {"100001-t0", "100001-t1"}
    assert len(ratings_of(tables, "dialogue", "Fluency")) == 2


def test_differing_counts_and_dialogue_files_give_a_warning(tmp_path, caplog):
    files = files_in(tmp_path)
    read(files, counts={"systems": 99, "dialogues": 1, "turns": 2})
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["mine: 1 systems, the paper counts 99"]
    other = to_data(DIALOGUE)
    other["dialogue"][3]["text"] = "well"
    files["dialogue_data"].write_text(json.dumps([other]))
    assert read(files)["contexts"]["references"].tolist() == [["hello"], ["well"]]
    assert "ComperDial_dialogue_data.json: dialogue '100001' is another one than in" in caplog.text


# Export


def test_simulated_ratings_are_never_read_as_human(tmp_path):
    tables = read(files_in(tmp_path))
    simulated = tables | {"ratings": tables["ratings"].assign(source="simulated")}
    export.export(simulated, tmp_path / "out", note="SIMULATED")
    files = written_to(tmp_path / "out")
    assert set(read({k: path for k, path in files.items() if k != "systems"})["ratings"]["source"]) == {"simulated"}
    about = json.loads(files["systems"].read_text())
    files["systems"].write_text(json.dumps(about | {"source": "human"}))
    with pytest.raises(SchemaError, match="ratings_source is 'simulated'; expected 'human'"):
        read(files)


def changed(tables, table, **values):
    frame = tables[table].copy()
    for column, value in values.items():
        frame[column] = pd.Series([value] * len(frame), index=frame.index)
    return tables | {table: frame}


CHANGES = {
    "no reference": lambda t: changed(t, "contexts", references=[]),
    "another history": lambda t: changed(t, "contexts", history=[{"speaker": "A", "text": "x"}]),
    "ratings of another system": lambda t: changed(t, "ratings", system_id="other"),
    "responses in no context": lambda t: changed(t, "responses", context_id="other"),
    "two sources": lambda t: t | {"ratings": t["ratings"].assign(source=["judge", *t["ratings"]["source"][1:]])},
    "another scale": lambda t: changed(t, "ratings", scale_max=7.0),
    # Axes that were not asked for would come back as not marked.
    "an axis was not asked for": lambda t: t | {"ratings": t["ratings"].query("dimension != 'Humanness'")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_the_format_cannot_hold_is_an_error(tmp_path, change):
    tables = read(files_in(tmp_path))
    with pytest.raises(SchemaError, match=r"data set 'mine': ComperDial's format cannot represent this data set: \w+"):
        export.export(CHANGES[change](tables), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is written in part"


def test_the_commands(tmp_path, capsys):
    tables, there, back = tmp_path / "tables", tmp_path / "there", tmp_path / "back"
    for name, frame in read(files_in(tmp_path)).items():
        schema.write(tables / f"{name}.parquet", frame, name)
    assert main(["export", str(tables), "--output", str(there), "--note", "Rated in May."]) == 0
    assert json.loads((there / export.FILES["systems"]).read_text())["note"] == "Rated in May."
    command = ["import", str(there), "--name", "mine", "--output"]
    assert main([*command, str(back)]) == 0
    assert {p.name: p.read_bytes() for p in back.iterdir()} == {p.name: p.read_bytes() for p in tables.iterdir()}
    files_in(there, renamed(TURNS, RENAMED))
    assert main(["import", str(there), "--name", "mine", "--output", str(tmp_path / "none")]) == 1
    error = capsys.readouterr().err
    pasted = yaml.safe_load(error[error.index("\ncomperdial:\n") :])["comperdial"]
    assert error.startswith("comperdial: error:") and pasted["columns"]["turn"]["turn"] == "???"
    (there / export.FILES["turn_level"]).unlink()
    assert main([*command, str(tmp_path / "none")]) == 1
    assert f"{there}: no ComperDial_turn_level_evaluation.json; expected" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
