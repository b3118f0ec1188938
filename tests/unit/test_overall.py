"""The overall ranking, and a user's metric on the leaderboard, as in docs/leaderboard.md."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ConfigError
from comperdial.data import readers
from comperdial.evaluation import samples
from comperdial.evaluation.overall import OVERALL, Board, overall, pairs_of_systems
from comperdial.studies import overall as study
from minidata import mini_items, write_mirror
from ratedtables import rating_rows, score_rows

ENTRIES = [
    {"measure": "spearman", "datasets": ["one", "two"]},
    {"measure": "acc_eq", "grouping": "item", "datasets": ["one", "two"]},
    {"measure": "accuracy", "grouping": "pooled", "together": True, "datasets": ["one", "two"]},
]
NAMES = [("good", "o"), ("fair", "o"), ("poor", "o")]


def sample_of(dataset, seed, without=()):
    rng, units = np.random.default_rng(seed), [(f"c{item}", f"s{system}") for item in range(25) for system in range(6)]
    truth = rng.normal(size=150) + np.tile(np.arange(6), 25) / 3
    scores = [
        score_rows(units, truth + noise * rng.normal(size=150), name, dataset=dataset)
        for (name, _), noise in zip(NAMES, (0.4, 1.0, 20.0), strict=True)
        if name not in without
    ]
    return next(samples(pd.concat(scores), rating_rows(units, truth, dataset=dataset), levels=["turn"]))


@pytest.fixture(scope="module")
def found():
    return {name: sample_of(name, seed) for seed, name in enumerate(("one", "two"))}


def test_the_score_is_the_weighted_mean_of_tasks_and_clusters_follow_their_tests(found):
    frame, tests = overall(Board.of("b", ENTRIES), found, NAMES, resamples=100)
    good = frame[frame["metric"] == "good"].set_index("task")
    sample = found["one"]
    expected = stats.spearmanr(sample.scores[sample.names.index(("good", "o"))], sample.ratings).statistic
    assert good.loc["spearman, one", "value"] == pytest.approx(expected)
    tasks, whole = good.drop(OVERALL), good.loc[OVERALL]
    scaled = np.where(tasks["coefficient"] == "spearman", (tasks["value"] + 1) / 2, tasks["value"])
    assert tasks["weight"].tolist() == pytest.approx([1 / 6] * 4 + [1 / 3])
    assert whole["value"] == pytest.approx(float(tasks["weight"] @ scaled))
    assert whole["low"] < whole["value"] < whole["high"] and whole["n"] == 5
    board = frame[frame["task"] == OVERALL].set_index("metric")
    assert board.loc["poor", "rank"] > board.loc["good", "rank"] == 1
    for rank, p in (("rank", "p_adjusted"), ("rank_wmt", "p_wmt")):
        for pair in tests[tests["task"] == OVERALL].to_dict("records"):
            same = board.loc[pair["metric_a"], rank] == board.loc[pair["metric_b"], rank]
            assert not (same and pair[p] <= 0.05)


def test_metric_lacking_a_task_is_not_ranked(found):
    board = Board.of("b", ENTRIES)
    frame, tests = overall(board, found | {"two": sample_of("two", 1, ["good"])}, NAMES, resamples=0)
    good = frame[(frame["metric"] == "good") & (frame["task"] == OVERALL)].iloc[0]
    assert np.isnan(good["value"]) and pd.isna(good["rank"]) and "no scores for: spearman, two" in good["lacking"]
    assert "good" not in {*tests.loc[tests["task"] == OVERALL, ["metric_a", "metric_b"]].stack()}


def test_pairs_of_systems_are_counted_and_only_accuracies_are_pooled(found):
    kinds = {"one": {"s0": "human", "s3": "human"}, "two": {}}
    pairs = pairs_of_systems(Board.of("b", ENTRIES), found, kinds)
    assert pairs[["dataset", "pairs", "with_human"]].values.tolist() == [["one", 15, 9], ["two", 15, 0]]
    with pytest.raises(ConfigError, match="`together` for spearman"):
        Board.of("b", [{"measure": "spearman", "together": True, "datasets": ["one", "two"]}])


def test_the_table_of_the_study_has_each_value(found, tmp_path):
    outputs = [{"label": name.title(), "metric": name, "output": output} for name, output in NAMES]
    about = {"title": "Board", "level": "turn", "source": "human", "tasks": ENTRIES, "outputs": outputs}
    (tmp_path / "boards.yaml").write_text(yaml.safe_dump({"boards": {"b": about}}))
    board = Board.of("b", ENTRIES)
    ranking, tests = overall(board, found, NAMES, resamples=0)
    frames = {"overall": ranking, "overall_comparisons": tests, "overall_pairs": pairs_of_systems(board, found, {})}
    inputs = {"boards": [tmp_path / "boards.yaml"], "about": [tmp_path / f"{name}.json" for name in found]}
    for key, (name, frame) in zip(("ranking", "comparisons", "pairs"), frames.items(), strict=True):
        inputs[key] = [tmp_path / f"{name}.parquet"]
        schema.write(inputs[key][0], frame, name)
    for name, path in zip(found, inputs["about"], strict=True):
        path.write_text(json.dumps({"dataset": name, "title": name.title()}))
    table = study.overall(inputs, {})
    (section,) = table.sections
    assert list(section.frame.index) == ["Good", "Fair", "Poor"]
    best = ranking[(ranking["metric"] == "good") & (ranking["task"] == OVERALL)]["value"].item()
    assert section.frame["Overall", "score"]["Good"].startswith(f"{best:.3f}")
    assert any("accuracy for 30 pairs of systems (One 15, Two 15)" in note for note in table.notes)


# The leaderboard

SETS = ("usr_persona", "usr_topical")
METRICS = (("distinct", "distinct-2"), ("f1_context", "f1"), ("density", "density"))


def write_scores(dataset, metric, output, keys, values, level="turn"):
    table = score_rows(keys, values, metric, output=output, dataset=dataset, level=level)
    schema.write(f"results/{dataset}/scores/{metric}.parquet", table, "scores")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Return a folder with two rated sets of six contexts, and scores of three metrics of board `responses`."""
    root, rng = tmp_path_factory.mktemp("leaderboard"), np.random.default_rng(3)
    (root / "data").mkdir()
    write_mirror(root, mini_items()).rename(root / "data/sources.yaml")
    (root / "ratings.json").write_text(json.dumps(mini_items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for dataset in SETS:
            tables = readers.read("usr", dataset, {"ratings": root / "ratings.json"})
            for name, frame in tables.items():
                schema.write(f"data/tables/{dataset}/{name}.parquet", frame, name)
            means = tables["ratings"].query("dimension == 'Overall'").groupby(["item_id", "system_id"])["rating"].mean()
            means = means.drop("Original Ground Truth", level="system_id")
            for noise, (metric, output) in enumerate(METRICS, start=1):
                write_scores(dataset, metric, output, means.index, means + noise * rng.normal(size=len(means)))
    return root


@pytest.fixture
def here(workplace, tmp_path, monkeypatch, root):
    """Work in a folder of one's own over the shared data."""
    (tmp_path / "studies").symlink_to(root / "studies")
    for name in ("data", "results"):
        (tmp_path / name).symlink_to(workplace / name)
    monkeypatch.chdir(tmp_path)


def own_scores():
    """Return random scores of everything that the template asks for."""
    parts = []
    for dataset in SETS:
        table = schema.read(f"results/{dataset}/scores/distinct.parquet", "scores")
        parts.append(table[["dataset", "level", "item_id", "system_id"]])
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(value=np.random.default_rng(1).normal(size=len(frame)))


def ranked(frame, *options):
    frame.to_csv("mine.csv", index=False)
    return main(["leaderboard", "mine.csv", "--resamples", "0", *options])


def test_from_the_template_to_the_ranking(here, capsys):
    assert main(["leaderboard", "--template", "--texts", "texts.jsonl"]) == 0
    Path("template.csv").write_text(capsys.readouterr().out)
    frame = pd.read_csv("template.csv", dtype={"item_id": str})
    key = ["dataset", "item_id", "system_id"]
    # Six contexts and four systems of each; the references are not evaluated.
    expected = own_scores()[key].sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(frame[key].sort_values(key, ignore_index=True), expected)
    texts = [json.loads(line) for line in Path("texts.jsonl").read_text().splitlines()]
    assert [[text[name] for name in key] for text in texts] == frame[key].values.tolist()
    # An empty cell is an item without a score.
    values = own_scores()["value"].where(frame["dataset"] == "usr_persona")
    assert ranked(frame.assign(value=values)) == 0
    out = capsys.readouterr().out
    assert "mine (yours): 50 % of the rated items have a score" in out and "no scores for: spearman, usr_topical" in out
    assert "Distinct-2" in out and "Over 2 of the board's 9 data sets" in out


def test_resubmitted_scores_get_the_same_rank(here):
    own = pd.concat([schema.read(f"results/{dataset}/scores/density.parquet", "scores") for dataset in SETS])
    own = own.drop(columns=["metric", "signature"])
    # Scores of references are not used.
    answers = schema.read("data/tables/usr_persona/responses.parquet", "responses")
    answers = answers[answers["system_id"] == "Original Ground Truth"].rename(columns={"context_id": "item_id"})
    more = answers.assign(level="turn", value=1.0)[["dataset", "level", "item_id", "system_id", "value"]]
    assert ranked(pd.concat([own, more]), "--output", "ranking.csv") == 0
    ranking = pd.read_csv("ranking.csv")
    columns = ["task", "value", "low", "high", "n", "rank", "coverage"]
    original, copy = (
        ranking[ranking["metric"] == name][columns].reset_index(drop=True) for name in ("density", "mine")
    )
    assert len(original) and original["value"].notna().all()
    pd.testing.assert_frame_equal(original, copy)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"dataset": "usr_personas"}, (), r"mine.csv: unknown data set 'usr_personas'.* Did you mean 'usr_persona'"),
        ({"dataset": "fed_turn"}, (), r"mine.csv: data set 'fed_turn' is not here"),
        ({"item_id": "usr_persona-00"}, (), r"the first: 'usr_persona-00', .*; expected such as 'usr_persona-00"),
        ({"value": "high"}, (), r"record 1, column 'value'"),
        ({"level": "dialogue"}, (), r"scores of level 'dialogue'; expected 'turn'"),
        ({"metric": "density"}, (), r"is a metric of the board"),
        ({}, ("--board", "response"), r"Did you mean 'responses'"),
    ],
)
def test_bad_input_gives_one_message(here, capsys, change, options, message):
    assert ranked(own_scores()[:1].assign(**change), *options) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert re.search(message, line), line
