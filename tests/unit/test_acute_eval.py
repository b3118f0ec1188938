"""The study of public preferences: its tables and its curve, on sixty workers who talk to three bots."""

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.studies import acute_eval

BOTS = ("X", "Y", "Z")


@pytest.fixture(scope="module")
def mini(tmp_path_factory, root):
    """X writes most and always wins; Y and Z are alike but for their Likert ratings."""
    rng = np.random.default_rng(1)
    votes, dialogues = [], []
    for worker in range(60):
        name = f"{worker}-talk"
        for bot in BOTS:
            liked = {"X": 5.0, "Y": 3.5, "Z": 2.5}[bot] + rng.normal(0, 0.2)
            about = {"annotator_id": str(worker), "dialogue_id": name, "system_id": bot}
            dialogues.append(about | {"likert": liked, "seconds": 360, "words": 9.0 if bot == "X" else 3.0})
        for first, second in (("X", "Y"), ("X", "Z"), ("Y", "Z")):
            row = dict.fromkeys(schema.table("preferences").columns) | {
                "dataset": "ieval", "pair_id": f"{name}-{first}-{second}", "first_dialogue_id": name,
                "first_system_id": first, "second_dialogue_id": name, "second_system_id": second, "annotator_id": str(worker),
                "question": "overall", "source": "human", "seconds": 36.0,
                "choice": "first" if first == "X" or worker % 2 else "second",
            }  # fmt: skip
            votes.append(row)
    folder = tmp_path_factory.mktemp("data") / "ieval"
    schema.write(folder / "preferences.parquet", schema.validate(pd.DataFrame(votes), "preferences"), "preferences")
    pd.DataFrame(dialogues).to_parquet(folder / "rated_dialogues.parquet")
    inputs = {
        "votes": [folder / "preferences.parquet"],
        "dialogues": [folder / "rated_dialogues.parquet"],
        "statements": [root / "studies/acute_eval/statements.csv"],
    }
    entry = {
        "sets": {"ieval": {"title": "Set", "question": "overall"}},
        "close": [["Y", "Z"], ["X", "Y"]],
        "title": "T",
    }
    entry |= {"caption": "C.", "notes": "N"}
    return inputs, {**load_yaml(root / "studies/acute_eval/study.yaml"), "resamples": 100, "entry": entry}


def test_a_property_of_the_dominant_system_does_not_choose_among_the_others(mini):
    result = acute_eval.metrics(*mini).frame.set_index(["metric", "of"])
    assert result.loc[("words", "all"), "value"] == pytest.approx((120 + 30) / 180)
    assert result.loc[("words", "others"), "value"] == 0.5
    assert result.loc[("the same worker's Likert rating", "all"), "spearman"] == pytest.approx(1)


def test_reported_values_are_in_a_section_of_their_own(mini):
    inputs, study = mini
    entry = study["tables"]["acute_eval"] | {"sets": study["entry"]["sets"]}
    table = acute_eval.overview(inputs, study | {"entry": entry})
    ours, needed, theirs = (section.frame.to_string() for section in table.sections)
    assert "86.7 %" in theirs and "86.7 %" not in ours
    assert table.frame[["pairs", "binomial", "holm"]].values.tolist() == [[3, 2, 2]]
    assert "180" in ours and "210" in needed


def test_a_table_of_preferences_has_every_part(mini):
    table = acute_eval.preferences(*mini)
    matrix, pairs, strengths, summary = (section.frame for section in table.sections)
    assert matrix.iloc[0].dropna().tolist() == ["X", "1.00***", "1.00***"]
    assert pairs["Votes for", "A"].tolist() == ["60", "60", "30"]
    assert strengths["All", "rank"].tolist() == ["#1", "#2", "#2"]
    assert "Without X" in summary.columns.get_level_values(1)
    assert "180 votes of 60 annotators on 3 systems" in table.caption


def test_figures_have_their_numbers(mini):
    inputs, study = mini
    entry = study["figures"]["acute_eval_hours"] | study["entry"]
    curves = acute_eval.hours(inputs, study | {"entry": entry})[1].set_index(["panel", "line", "hours"])["probability"]
    # 20 sessions of six minutes: ratings of Y and Z differ by five times their spread, choices do not.
    assert curves["Set: Y, Z", "Likert", 2.0] == 1
    assert curves["Set: Y, Z", "pairwise", 2.0] < 0.1
    # Five wins of five have p = 1/16.
    assert curves["Set: X, Y", "pairwise", 0.5] == 0
    assert len(acute_eval.matrices(*mini)[1]) == len(acute_eval.strengths(*mini)[1]) == 3
