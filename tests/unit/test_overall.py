"""The overall ranking: weights, scales, missing scores, and tests that agree with its clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial.core.errors import ConfigError
from comperdial.evaluation import samples
from comperdial.evaluation.overall import OVERALL, Board, Task, overall, pairs_of_systems
from comperdial.studies.overall.show import draw_overall, overall_document

ENTRIES = [
    {"measure": "spearman", "datasets": ["one", "two"]},
    {"measure": "acc_eq", "grouping": "item", "datasets": ["one", "two"]},
    {"measure": "accuracy", "grouping": "pooled", "together": True, "datasets": ["one", "two"]},
]
NAMES = [("good", "o"), ("fair", "o"), ("poor", "o")]


def tables(dataset, seed, without=()):
    rng = np.random.default_rng(seed)
    scores, ratings = [], []
    for item in range(25):
        for system in range(6):
            truth = rng.normal() + system / 3
            key = {"dataset": dataset, "system_id": f"s{system}"}
            ratings.append(
                key
                | {
                    "context_id": f"c{item}",
                    "annotator_id": "a",
                    "dimension": "Overall",
                    "rating": truth,
                    "position": None,
                }
                | {"scale_min": -9.0, "scale_max": 9.0, "source": "human"}
            )
            for (metric, output), noise in zip(NAMES, (0.4, 1.0, 20.0), strict=True):
                if metric not in without:
                    named = {"level": "turn", "item_id": f"c{item}", "metric": metric, "output": output}
                    scores.append(key | named | {"value": truth + noise * rng.normal(), "cut": 0, "signature": "s"})
    return pd.DataFrame(scores), pd.DataFrame(ratings)


@pytest.fixture(scope="module")
def found():
    return {name: next(samples(*tables(name, seed), levels=["turn"])) for seed, name in enumerate(("one", "two"))}


def test_the_score_is_the_weighted_mean_of_tasks(found):
    frame, _ = overall(Board.of("b", ENTRIES), found, NAMES, resamples=0)
    good = frame[frame["metric"] == "good"].set_index("task")
    sample = found["one"]
    expected = stats.spearmanr(sample.scores[sample.names.index(("good", "o"))], sample.ratings).statistic
    assert good.loc["spearman, one", "value"] == pytest.approx(expected)
    tasks = good.drop(OVERALL)
    scaled = np.where(tasks["coefficient"] == "spearman", (tasks["value"] + 1) / 2, tasks["value"])
    assert tasks["weight"].tolist() == pytest.approx([1 / 6] * 4 + [1 / 3])
    assert good.loc[OVERALL, "value"] == pytest.approx(float(tasks["weight"] @ scaled))
    assert good.loc[OVERALL, "low"] < good.loc[OVERALL, "value"] < good.loc[OVERALL, "high"]
    assert good.loc[OVERALL, "n"] == 5


def test_clusters_follow_their_tests_by_both_rules(found):
    frame, tests = overall(Board.of("b", ENTRIES), found, NAMES, resamples=200)
    whole = frame[frame["task"] == OVERALL].set_index("metric")
    assert whole["value"].to_dict() == pytest.approx(whole["value"].sort_values(ascending=False).to_dict())
    assert whole.loc["poor", "rank"] > whole.loc["good", "rank"] == 1
    of_pairs = tests[tests["task"] == OVERALL]
    for rank, p in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
        for pair in of_pairs.to_dict("records"):
            same = whole.loc[pair["metric_a"], rank] == whole.loc[pair["metric_b"], rank]
            assert not (same and pair[p] <= 0.05)


def test_a_metric_without_a_task_is_left_out_or_given_the_worst(found):
    two = next(samples(*tables("two", 1, without=("good",)), levels=["turn"]))
    board = Board.of("b", ENTRIES)
    frame, tests = overall(board, found | {"two": two}, NAMES, resamples=0)
    good = frame[(frame["metric"] == "good") & (frame["task"] == OVERALL)].iloc[0]
    assert np.isnan(good["value"])
    assert pd.isna(good["rank"])
    assert "no scores for: spearman, two" in good["lacking"]
    assert "good" not in {*tests[tests["task"] == OVERALL]["metric_a"], *tests[tests["task"] == OVERALL]["metric_b"]}
    frame, _ = overall(board, found | {"two": two}, NAMES, resamples=0, missing="worst")
    good = frame[(frame["metric"] == "good") & (frame["task"] == OVERALL)].iloc[0]
    assert 0 < good["value"] < 1
    assert good["lacking"].startswith("given the worst value of: ")


def test_a_data_set_that_is_not_here_lacks_for_all(found):
    frame, _ = overall(Board.of("b", ENTRIES), {"one": found["one"]}, NAMES, resamples=0)
    assert frame[frame["task"] == OVERALL]["value"].isna().all()
    assert frame[frame["task"] == "spearman, one"]["value"].notna().all()


def test_only_accuracies_are_pooled_over_data_sets():
    with pytest.raises(ConfigError, match="`together` for spearman"):
        Board.of("b", [{"measure": "spearman", "together": True, "datasets": ["one", "two"]}])
    assert Task("accuracy", ("one", "two"), "pooled").name == "accuracy, one+two"


def test_table_and_figure_name_each_value_by_its_metric(found):
    frame, tests = overall(Board.of("b", ENTRIES), found, NAMES, resamples=50)
    entry = {"title": "Board", "source": "human", "tasks": ENTRIES}
    boards = {"b": entry | {"outputs": [{"label": m.title(), "metric": m, "output": o} for m, o in NAMES]}}
    drawn = draw_overall(frame, boards)[1]
    whole = frame[frame["task"] == OVERALL].set_index("metric")["value"]
    assert dict(zip(drawn["label"], drawn["value"], strict=True)) == {
        "Good": whole["good"],
        "Fair": whole["fair"],
        "Poor": whole["poor"],
    }
    document = overall_document(frame, tests, {"one": "One", "two": "Two"}, boards)
    rows = {row[0]: row[1] for row in document.sections[0].rows}
    assert [*rows] == ["Good", "Fair", "Poor"]
    assert all(rows[name.title()].startswith(f"{value:.3f} [") for name, value in whole.items())


def test_the_table_says_how_few_pairs_of_systems_accuracy_rests_on_and_how_many_have_a_human(found):
    board = Board.of("b", ENTRIES)
    kinds = {"one": {f"s{number}": "agent" for number in range(6)} | {"s0": "human", "s3": "human"}}
    pairs = pairs_of_systems(board, found, kinds)
    assert pairs[["dataset", "systems", "pairs", "with_human"]].to_numpy().tolist() == [
        ["one", 6, 15, 9],
        ["two", 6, 15, 0],
    ]
    assert pairs_of_systems(Board.of("b", ENTRIES[:2]), found, kinds).empty
    frame, tests = overall(board, found, NAMES, resamples=0)
    entry = {"title": "Board", "source": "human", "tasks": ENTRIES}
    boards = {"b": entry | {"outputs": [{"label": m.title(), "metric": m, "output": o} for m, o in NAMES]}}
    document = overall_document(frame, tests, {"one": "One", "two": "Two"}, boards, pairs)
    said = "Board: 33% of the weight is that of accuracy on 30 pairs of systems (One 15, Two 15), of which 9 include a human"
    assert said in document.notes
    assert any("Holm over 3 tests" in note for note in document.notes)
