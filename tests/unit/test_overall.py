"""The overall ranking: weights, scales, missing scores, and tests that agree with its clusters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ConfigError
from comperdial.evaluation import samples
from comperdial.evaluation.overall import OVERALL, Board, Task, overall, pairs_of_systems
from comperdial.studies import overall as study

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
                    "level": "turn",
                    "item_id": f"c{item}",
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


def test_a_metric_without_scores_on_a_task_is_left_out(found):
    two = next(samples(*tables("two", 1, without=("good",)), levels=["turn"]))
    board = Board.of("b", ENTRIES)
    frame, tests = overall(board, found | {"two": two}, NAMES, resamples=0)
    good = frame[(frame["metric"] == "good") & (frame["task"] == OVERALL)].iloc[0]
    assert np.isnan(good["value"])
    assert pd.isna(good["rank"])
    assert "no scores for: spearman, two" in good["lacking"]
    assert "good" not in {*tests[tests["task"] == OVERALL]["metric_a"], *tests[tests["task"] == OVERALL]["metric_b"]}


def test_a_data_set_that_is_not_here_lacks_for_all(found):
    frame, _ = overall(Board.of("b", ENTRIES), {"one": found["one"]}, NAMES, resamples=0)
    assert frame[frame["task"] == OVERALL]["value"].isna().all()
    assert frame[frame["task"] == "spearman, one"]["value"].notna().all()


def test_only_accuracies_are_pooled_over_data_sets():
    with pytest.raises(ConfigError, match="`together` for spearman"):
        Board.of("b", [{"measure": "spearman", "together": True, "datasets": ["one", "two"]}])
    assert Task("accuracy", ("one", "two"), "pooled").name == "accuracy, one+two"


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """Rank by the command, and return the inputs of the study's functions."""
    folder = tmp_path_factory.mktemp("overall")
    outputs = [{"label": m.title(), "metric": m, "output": o} for m, o in NAMES]
    about = {"title": "Board", "level": "turn", "source": "human"}
    (folder / "boards.yaml").write_text(
        yaml.safe_dump({"boards": {"b": about | {"tasks": ENTRIES, "outputs": outputs}}})
    )
    (folder / "sources.yaml").write_text("files: {}\ndatasets: {}\n")
    options = {name: str(folder / f"{name}.parquet") for name in ("output", "comparisons", "pairs")}
    for seed, name in enumerate(("one", "two")):
        scores, ratings = tables(name, seed)
        schema.write(folder / f"{name}_scores.parquet", scores, "scores")
        schema.write(folder / name / "ratings.parquet", ratings, "ratings")
        people = ("s0", "s3") if name == "one" else ()
        systems = [(name, f"s{n}", "human" if f"s{n}" in people else "agent", None, "") for n in range(6)]
        frame = pd.DataFrame(systems, columns=schema.table("systems").columns)
        schema.write(folder / name / "systems.parquet", frame, "systems")
        contexts = [(name, f"c{n}", f"c{n}", 0, [], [], []) for n in range(25)]
        frame = pd.DataFrame(contexts, columns=schema.table("contexts").columns)
        schema.write(folder / name / "contexts.parquet", frame, "contexts")
        (folder / f"{name}.json").write_text(json.dumps({"dataset": name, "title": name.title()}))
    arguments = ["--tables", str(folder / "one"), str(folder / "two"), "--resamples", "50"]
    arguments += ["--scores", str(folder / "one_scores.parquet"), str(folder / "two_scores.parquet")]
    arguments += ["--catalogue", str(folder / "sources.yaml")]
    arguments += [text for name, path in options.items() for text in (f"--{name}", path)]
    assert main(["rank", str(folder / "boards.yaml"), "b", *arguments]) == 0
    inputs = {name: [folder / f"{name}.parquet"] for name in ("comparisons", "pairs")}
    inputs |= {"ranking": [folder / "output.parquet"], "boards": [folder / "boards.yaml"]}
    return inputs | {"about": [folder / "one.json", folder / "two.json"]}


def test_the_table_has_each_value_and_says_what_it_rests_on(ranked):
    table, drawn = study.overall(ranked, {}), study.overall_figure(ranked, {"entry": {"title": "T", "notes": ""}})[1]
    (section,) = table.sections
    assert list(section.frame.index) == ["Good", "Fair", "Poor"]
    values = drawn.set_index("label")["value"]
    for label, score in section.frame["Overall", "score"].items():
        assert score.startswith(f"{values[label]:.3f} [")
    assert section.frame["Spearman", "One"].str.fullmatch(r"-?\d\.\d{3}").all()
    text = "Board: 33% of the weight is that of accuracy on 30 pairs of systems (One 15, Two 15), of which 9 include a human"
    assert text in table.notes
    assert any("Holm over 3 tests" in note for note in table.notes)


def test_only_tasks_over_systems_have_pairs(found):
    assert pairs_of_systems(Board.of("b", ENTRIES[:2]), found, {}).empty
