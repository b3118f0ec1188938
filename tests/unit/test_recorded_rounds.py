"""GPT-4's five rounds of whole dialogues as a recorded judge."""

import json

import pandas as pd
import pytest

from comperdial.core.errors import SchemaError
from comperdial.data import readers
from comperdial.data.recorded import Rated
from comperdial.judges.recorded import Recorded

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


def judge(files, *, ratings=None, **tables):
    known = Rated(*(tables[name] for name in ("contexts", "responses", "systems")), ratings)
    return Recorded.read("gpt-4_mini", "gpt4_rounds", {"rounds": files["rounds"]}, known)


def test_rounds_are_scores_and_judgements_of_the_tables_dialogues(tmp_path):
    files = write(tmp_path, people=rated())
    tables = readers.read("comp_dialogues", "mini", files)
    made = judge(files, **tables)
    result = made.scores("s")
    assert len(made.answers) == 3 * 25 and len(result) == 3 * 5
    assert (set(result["level"]), set(result["output"])) == ({"dialogue"}, set(SHORT))
    keys = result[["item_id", "system_id"]].drop_duplicates().to_numpy().tolist()
    assert keys == [["mini-0000", "Meena"], ["mini-0001", "Human"], ["mini-0002", "Mitsuku"]]
    assert (result["value"] == 3).all()
    assert sorted(made.judgements()["sample"].unique()) == list(range(5))
    assert made.coverage()["n"].tolist() == [3] * 5
    alone = judge(files, **tables | {"ratings": tables["ratings"].query("source == 'gpt-4'")}).coverage()
    assert alone["n"].tolist() == [0] * 5 and alone["pearson"].isna().all()


def test_coverage_correlates_with_people_s_means(tmp_path):
    content = rounds() | {f"ovr_{number}": [1.0, 2.0, 4.0] for number in range(1, 6)}
    files = write(tmp_path, content=content, people=rated())
    counted = judge(files, **readers.read("comp_dialogues", "mini", files)).coverage()
    # People's means rise by a quarter from dialogue to dialogue; the rounds by 1 and 2.
    expected = pd.Series([1.0, 2.0, 4.0]).corr(pd.Series([0.75, 1.0, 1.25]))
    assert counted.set_index("dimension")["pearson"]["overall"] == pytest.approx(expected)


def test_a_dialogue_that_is_in_no_table_is_refused(tmp_path):
    files = write(tmp_path, people=rated())
    tables = readers.read("comp_dialogues", "mini", files)
    contexts = tables["contexts"].query("dialogue_id != 'mini-0001'")
    responses = tables["responses"][tables["responses"]["context_id"].isin(contexts["context_id"])]
    with pytest.raises(SchemaError, match=r"entry 1: dialogue 'mini-0001' has responses of no system"):
        judge(files, **tables | {"contexts": contexts, "responses": responses})
