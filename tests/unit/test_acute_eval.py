"""The study of public preferences: properties that choose, curves that find, and a paper's values under their own heading."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.evaluation.preferences import analyse, votes_of, win_matrix
from comperdial.report.preferences import planner_sentence
from comperdial.studies.acute_eval.results import likert_curves, metrics_document, overview_document, pairwise_curves

BOTS = ("X", "Y", "Z")


@pytest.fixture(scope="module")
def study():
    """Sixty workers talk to three bots: X says most and always wins, Y and Z are alike but for their Likert ratings."""
    rng = np.random.default_rng(1)
    votes, ratings, dialogues = [], [], []
    for worker in range(60):
        name = f"{worker}-talk"
        for bot in BOTS:
            said = "word " * (9 if bot == "X" else 3)
            dialogues.append(Dialogue(name, bot, "bot", (("person", "hello there"), ("bot", said.strip()))))
            liked = {"X": 5.0, "Y": 3.5, "Z": 2.5}[bot] + rng.normal(0, 0.2)
            ratings.append(
                {"annotator_id": str(worker), "dialogue_id": name, "system_id": bot, "likert": liked, "seconds": 360}
            )
        for first, second in (("X", "Y"), ("X", "Z"), ("Y", "Z")):
            votes.append(
                {
                    "dataset": "d", "pair_id": f"{name}-{first}-{second}", "first_dialogue_id": name,
                    "first_system_id": first, "second_dialogue_id": name, "second_system_id": second,
                    "annotator_id": str(worker), "question": "overall", "source": "human", "left": None, "control": None,
                    "reason": None, "seconds": 36.0,
                    "choice": "first" if first == "X" or worker % 2 else "second",
                }
            )  # fmt: skip
    table = schema.validate(pd.DataFrame(votes), "preferences")
    return votes_of(table), dialogues, pd.DataFrame(ratings)


def test_a_property_of_the_dominant_system_alone_does_not_choose_among_the_others(study):
    votes, dialogues, ratings = study
    found = metrics_document(votes, dialogues, ratings, "Set", resamples=100, seed=1).tidy.set_index(["metric", "of"])
    assert found.loc[("words", "all"), "value"] == pytest.approx((120 + 30) / 180)
    assert found.loc[("words", "others"), "value"] == 0.5
    assert found.loc[("the same worker's Likert rating", "all"), "spearman"] == pytest.approx(1)


def test_likert_and_pairwise_are_drawn_from_the_same_sessions(study):
    votes, _, ratings = study
    curves = likert_curves(votes, ratings, "Y", "Z", seed=1).set_index(["line", "hours"])["probability"]
    # 20 sessions of six minutes: ratings differ by five times their spread, choices by nothing.
    assert curves["Likert", 2.0] == 1
    assert curves["pairwise", 2.0] < 0.1
    both = likert_curves(votes, ratings, "X", "Y", seed=1).set_index(["line", "hours"])["probability"]
    # Five wins of five have p = 1/16: not significant, however clear.
    assert both["pairwise", 0.5] == 0
    assert both["pairwise", 2.0] == both["Likert", 2.0] == 1


def test_curves_of_all_pairs_rise(study):
    curves = pairwise_curves(study[0], seed=1)
    assert curves["hours"].is_monotonic_increasing
    assert curves["hours"].iloc[0] == pytest.approx(0.1)
    # Two of three pairs differ; the third is found by chance alone.
    assert 2 / 3 <= curves["probability"].iloc[-1] < 0.75


def test_what_is_reported_has_a_heading_of_its_own(study):
    reported = pd.DataFrame({"what": ["Agreement"], "value": ["86.7 %"], "place": ["Question Optimization"]})
    document = overview_document(reported, {"Set": analyse(study[0], resamples=50, seed=1)})
    ours, needed, theirs = document.sections
    assert "Reported" in theirs.title
    assert "86.7 %" in str(theirs.rows)
    assert "86.7" not in str(ours.rows)
    assert ours.rows[0][4] == "2 of 3"
    assert ["0.60", "210"] in [list(row) for row in needed.rows]


def test_the_reported_values_name_their_place(root):
    reported = pd.read_csv(root / "src/comperdial/studies/acute_eval/reported.csv")
    assert reported.notna().all().all()
    assert not reported["what"].duplicated().any()


def test_votes_that_are_all_ties_need_no_planner(study):
    votes = study[0]
    tied = replace(votes, frame=votes.frame.assign(won=0.5))
    assert "All votes are ties" in planner_sentence(win_matrix(tied))
