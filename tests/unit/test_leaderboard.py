"""A metric of one's own on the leaderboard, as docs/overall.md has it: the file to fill in, the checks, the ranking."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.data import readers
from minidata import mini_items, write_mirror

SETS = ("usr_persona", "usr_topical")
METRICS = (("distinct", "distinct-2"), ("f1_context", "f1"), ("density", "density"))


def write_scores(path, dataset, metric, output, level, keys, values):
    rows = [
        (dataset, level, *key, metric, output, value, 0, f"{metric}|v:1")
        for key, value in zip(keys, values, strict=True)
    ]
    schema.write(path, pd.DataFrame(rows, columns=schema.table("scores").columns), "scores")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Return a folder with two rated sets of six contexts, and scores of three metrics of board `responses`."""
    root = tmp_path_factory.mktemp("leaderboard")
    (root / "data").mkdir()
    write_mirror(root, mini_items()).rename(root / "data/sources.yaml")
    (root / "ratings.json").write_text(json.dumps(mini_items()))
    rng = np.random.default_rng(3)
    for dataset in SETS:
        tables = readers.read("usr", dataset, {"ratings": root / "ratings.json"})
        for name, frame in tables.items():
            schema.write(root / f"data/tables/{dataset}/{name}.parquet", frame, name)
        means = tables["ratings"].query("dimension == 'Overall'").groupby(["item_id", "system_id"])["rating"].mean()
        means = means.drop("Original Ground Truth", level="system_id")
        for noise, (metric, output) in enumerate(METRICS, start=1):
            path = root / f"results/{dataset}/scores/{metric}.parquet"
            write_scores(
                path, dataset, metric, output, "turn", means.index, means + noise * rng.normal(size=len(means))
            )
    return root


@pytest.fixture
def here(workplace, tmp_path, monkeypatch, root):
    """Work in a folder of one's own over the shared data."""
    (tmp_path / "studies").symlink_to(root / "studies")
    for name in ("data", "results"):
        (tmp_path / name).symlink_to(workplace / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(capsys, seed=1):
    assert main(["leaderboard", "--template"]) == 0
    Path("template.csv").write_text(capsys.readouterr().out)
    frame = pd.read_csv("template.csv", dtype={"item_id": str})
    return frame.assign(value=np.random.default_rng(seed).normal(size=len(frame)))


def ranked(frame, *options):
    frame.to_csv("mine.csv", index=False)
    return main(["leaderboard", "mine.csv", "--resamples", "0", *options])


def test_from_the_template_to_the_ranking(here, capsys):
    frame = filled(capsys)
    # Six contexts and four systems of each; the references are not evaluated.
    assert dict(frame.groupby("dataset").size()) == dict.fromkeys(SETS, 24)
    assert ranked(frame, "--output", "ranking.html") == 0
    out = capsys.readouterr().out
    assert "mine (yours)" in out and "Distinct-2" in out
    assert "Over 2 of the board's 9 data sets" in out
    assert "mine (yours)" in Path("ranking.html").read_text()
    frame.to_csv("other.csv", index=False)
    assert main(["leaderboard", "mine.csv", "other.csv", "--resamples", "0"]) == 0
    assert "other (yours)" in capsys.readouterr().out
    assert main(["leaderboard", "--resamples", "0"]) == 0
    assert "yours" not in capsys.readouterr().out


@pytest.mark.parametrize(("metric", "output"), METRICS)
def test_the_scores_of_a_ranked_metric_rank_where_it_does(here, capsys, metric, output):
    parts = [schema.read(f"results/{dataset}/scores/{metric}.parquet", "scores") for dataset in SETS]
    assert ranked(pd.concat(parts).drop(columns=["metric", "signature"]), "--output", "ranking.csv") == 0
    ranking = pd.read_csv("ranking.csv")
    columns = ["task", "value", "low", "high", "n", "rank", "coverage"]
    original, copy = (ranking[ranking["metric"] == name][columns].reset_index(drop=True) for name in (metric, "mine"))
    assert len(original) and original["value"].notna().all()
    pd.testing.assert_frame_equal(original, copy)


def changed(row, **values):
    def change(frame):
        frame = frame.astype(object)
        for column, value in values.items():
            frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (changed(4, dataset="usr_personas"), (), r"mine.csv: unknown data set 'usr_personas'.* Did you mean 'usr_persona'"),
        (changed(4, dataset="fed_turn"), (), r"mine.csv: data set 'fed_turn' is not here; .*make reproduce"),
        (changed(0, item_id="usr_persona-00"), (), r"the first: 'usr_persona-00', .*; expected such as 'usr_persona-00"),
        (changed(1, system_id="Cooper"), (), r"1 scores of unknown items .*'Cooper'; expected such as .* of one of .*Copier"),
        (changed(2, value="inf"), (), r"record 3, column 'value'"),
        (changed(2, value="high"), (), r"record 3, column 'value'"),
        (lambda frame: pd.concat([frame, frame.iloc[[7]]]), (), r"mine.csv"),
        (lambda frame: frame.assign(level="dialogue"), (), r"scores of level 'dialogue'; expected 'turn'"),
        (lambda frame: frame.drop(columns="system_id"), (), r"mine.csv: no column 'system_id'"),
        (lambda frame: frame.assign(value=""), (), r"no scores"),
        (lambda frame: frame.assign(metric="density"), (), r"is a metric of the board"),
        (lambda frame: frame, ("--board", "response"), r"Did you mean 'responses'"),
        (lambda frame: frame, ("--output", "ranking.pdf"), r"expected a name ending in"),
    ],
)  # fmt: skip
def test_bad_input_gives_one_message(here, capsys, change, options, message):
    assert ranked(change(filled(capsys)), *options) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert re.search(message, line), line


def test_what_is_missing_is_counted_and_left_out(here, capsys):
    frame = filled(capsys)
    # An empty cell is an item without a score.
    frame.loc[frame["dataset"] == "usr_topical", "value"] = None
    assert ranked(frame) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if re.match(r"usr_\w+ +\d", line)] == [
        ["usr_persona", "24", "24"],
        ["usr_topical", "24", "0"],
    ]
    assert "mine (yours): 50 % of the rated items have a score" in out and "no scores for: spearman, usr_topical" in out
    assert "left out" in next(line for line in out.splitlines() if line.startswith("mine (yours)"))


def test_scores_of_references_are_not_used(here, capsys):
    frame = filled(capsys)
    answers = schema.read("data/tables/usr_persona/responses.parquet", "responses").query(
        "system_id == 'Original Ground Truth'"
    )
    more = answers.assign(item_id=answers["context_id"], level="turn", value=1.0)[list(frame.columns)]
    assert ranked(frame, "--output", "ranking.csv") == ranked(pd.concat([frame, more]), "--output", "again.csv") == 0
    assert Path("ranking.csv").read_bytes() == Path("again.csv").read_bytes()


def test_texts_go_with_the_keys(here, capsys):
    assert main(["leaderboard", "--template", "--board", "references", "--texts", "texts.jsonl"]) == 0
    keys = [line.split(",")[:3] for line in capsys.readouterr().out.splitlines()[1:]]
    texts = [json.loads(line) for line in Path("texts.jsonl").read_text().splitlines()]
    assert [[text[name] for name in ("dataset", "item_id", "system_id")] for text in texts] == keys
    assert all(text["response"] and text["history"] and text["references"] for text in texts)


def test_nothing_here_says_what_makes_it(here, capsys):
    for command in (["leaderboard", "--template", "--board", "dialogues"], ["leaderboard", "--board", "dialogues"]):
        assert main(command) == 1
        out, err = capsys.readouterr()
        assert not out and len(err.splitlines()) == 1
        assert "none of the data sets of board 'dialogues' is here" in err and "snakemake overall" in err


def test_dialogues_are_scored_whole(workplace, tmp_path, monkeypatch, capsys, root):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").symlink_to(root / "studies")
    rng = np.random.default_rng(5)
    names, keys = [f"d{d}" for d in range(20)], [(f"d{d}", "ab"[d % 2]) for d in range(20)]
    turns = [(name, turn) for name in names for turn in range(2)]
    tables = {
        "systems": [("fed_dial", name, "agent", None, "") for name in "ab"],
        "contexts": [
            ("fed_dial", f"{name}-{turn}", name, turn, [{"speaker": "A", "text": "Hello."}], [], []) for name, turn in turns
        ],
        "responses": [("fed_dial", f"{name}-{turn}", dict(keys)[name], f"Turn {turn}.") for name, turn in turns],
        "ratings": [
            ("fed_dial", "dialogue", *key, "gpt-4", None, "overall", float(rng.integers(1, 6)), 1.0, 5.0, "gpt-4") for key in keys
        ],
    }  # fmt: skip
    for name, rows in tables.items():
        frame = pd.DataFrame(rows, columns=schema.table(name).columns)
        schema.write(f"data/tables/fed_dial/{name}.parquet", frame, name)
    scores = rng.normal(size=20)
    write_scores(
        "results/fed_dial/scores/distinct.parquet",
        "fed_dial",
        "distinct",
        "distinct-2",
        "dialogue",
        keys,
        scores,
    )
    catalogue = ["--catalogue", str(workplace / "data/sources.yaml")]
    assert main(["leaderboard", "--template", "--board", "dialogues", "--texts", "texts.jsonl", *catalogue]) == 0
    rows = [line.split(",")[1:3] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [list(key) for key in sorted(keys)]
    assert [json.loads(line)["response"] for line in Path("texts.jsonl").read_text().splitlines()] == [
        "Turn 0.",
        "Turn 1.",
    ] * 20
    frame = pd.DataFrame(keys, columns=["item_id", "system_id"])
    frame = frame.assign(dataset="fed_dial", level="dialogue", value=scores)
    assert ranked(frame, "--board", "dialogues", "--output", "ranking.csv", *catalogue) == 0
    ranking = pd.read_csv("ranking.csv").set_index(["metric", "task"])["value"]
    assert ranking["mine"].to_dict() == ranking["distinct"].to_dict()
