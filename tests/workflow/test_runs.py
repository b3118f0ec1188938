"""Runs of a small invented data set: what is made, what is made again and what is not, and what stops a run how."""

import os
import re
import signal
import sys

import pandas as pd
import pytest

from comperdial import schema
from minidata import mini_items, write_mirror
from workdir import planned

SCORES = "results/usr_persona/scores/{}.parquet"
MADE_OF_CORRELATIONS = (
    "studies/usr/tables/usr",
    "studies/comperdial/tables/table_04",
    "usr_persona/tables/correlations",
)


def forms(stem, *suffixes):
    return {f"results/{stem}.{suffix}" for suffix in suffixes}


def tables(*names):
    return {file for name in names for file in forms(name, "md", "tex", "csv", "html")}


CORRELATED = {f"results/usr_persona/{name}.parquet" for name in ("correlations", "ceilings", "comparisons")}
FROM_SCORES = (
    CORRELATED
    | tables(*MADE_OF_CORRELATIONS)
    | forms("usr_persona/figures/heatmap", "png", "pdf", "svg", "csv")
    | {f"results/usr_persona/summary/{name}.json" for name in ("metrics", "plot", "environment")}
)


def test_a_run_names_no_machine_and_is_done(finished):
    made = finished.outputs()
    for name, (_, content) in made.items():
        assert str(finished.path.parents[1]).encode() not in content and sys.prefix.encode() not in content, name
    assert "Nothing to be done" in finished.snakemake()
    assert finished.rewritten(made) == set()
    for name in [*made, "src/comperdial/metrics/bleu.py", "src/comperdial/studies/usr/rows.yaml"]:
        (finished.path / name).touch()
    assert "Nothing to be done" in finished.snakemake("-n")


def test_what_cannot_run_is_left_out_by_name_and_costs_nothing_else(finished):
    table = (finished.path / "results/studies/usr/tables/usr.md").read_text()
    assert "- not run: METEOR: this is WordNet 3.0; expected WordNet 9.9\n" in table
    assert "| METEOR | Yeh et al. 2021 | not run | 0.253 |" in table
    assert "- not run: BERTScore: model 'roberta-large' is not present\n" in table
    page = (finished.path / "results/usr_persona/tables/correlations.md").read_text()
    assert "- not run: cpds-d by gpt-4: not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0\n" in page
    assert "| cpds-d by rules | " in page and "judge:rules" in page
    made = {path.stem for path in (finished.path / SCORES).parent.glob("*.parquet")}
    assert made == {"f1", "bleu_raw", "cpds-d_rules"}


def test_a_metric_s_option_reruns_it_and_what_comes_of_it_only(finished):
    before = finished.outputs()
    finished.edit("params.yaml", "kind: bleu, text: raw", "kind: bleu, text: raw, epsilon: 0.1")
    finished.snakemake()
    assert finished.rewritten(before) == FROM_SCORES | {SCORES.format("bleu_raw")}
    assert "epsilon:0.1" in (finished.path / "results/studies/usr/tables/usr.csv").read_text()


def test_a_metric_s_comment_reruns_nothing_and_its_arithmetic_what_comes_of_it(finished):
    finished.edit("src/comperdial/metrics/bleu.py", "    precisions = ", "    # As nltk does.\n    precisions = ")
    assert "Nothing to be done" in finished.snakemake("-n")
    finished.edit("src/comperdial/metrics/bleu.py", "/ max(1, length - before)", "/ max(2, length - before)")
    assert planned(finished) == FROM_SCORES | {SCORES.format("bleu_raw")}


def test_one_changed_rating_changes_every_table_of_it(finished):
    """No cell is typed by hand: each correlation with what was rated is another one, and the one that it should be."""
    key = ["level", "against", "metric", "output", "coefficient"]

    def table_4():
        frame = pd.read_csv(finished.path / "results/studies/comperdial/tables/table_04.csv").dropna(subset=["ours"])
        return frame.query("coefficient == 'pearson'").set_index(key)["ours"]

    made, before = finished.outputs(), table_4()
    items = mini_items()
    response = items[0]["responses"][1]
    assert response["model"] == "Copier" and response["Overall"][0] == 3
    response["Overall"][0] = 5
    write_mirror(finished.path, items).replace(finished.path / "data/sources.yaml")
    finished.snakemake(*(f"results/{name}.html" for name in (*MADE_OF_CORRELATIONS, "usr_persona/tables/judges")))
    after = table_4()
    assert list(before.index) == list(after.index) and len(before) >= 6
    assert (before != after).all(), before[before == after]
    now = finished.outputs()
    assert all(now[f"results/{name}.csv"][1] != made[f"results/{name}.csv"][1] for name in MADE_OF_CORRELATIONS)
    # What is rated by nobody stays what it was.
    for name in (SCORES.format("f1"), "results/usr_persona/tables/judges.csv"):
        assert now[name][1] == made[name][1]
    ratings = schema.read(finished.path / "data/tables/usr_persona/ratings.parquet", "ratings")
    people = ratings.query("dimension == 'Overall'").groupby(["context_id", "system_id"])["rating"].mean()
    scores = schema.read(finished.path / SCORES.format("f1"), "scores").query("output == 'f1'")
    paired = scores.set_index(["item_id", "system_id"])["value"].rename_axis(people.index.names)
    expected = paired.corr(people.reindex(paired.index))
    assert after["turn", "turn", "f1", "f1", "pearson"] == pytest.approx(expected, abs=1e-4)


# The command itself, but that it ends the whole run where a metric is to be written.
KILLING = """#!/bin/sh
case "$*" in *'"make":"jobs.scores:score"'*'"metric":"f1"'*)
  printf half > results/usr_persona/scores/f1.parquet
  kill -KILL -{group}
esac
exec {command} "$@"
"""


def test_a_killed_run_goes_on_where_it_was_and_gives_the_bytes_of_another(fresh, finished):
    """A fresh copy in a folder of its own, killed with its jobs while a file is half written."""
    programs = fresh.path.parent / "bin"
    programs.mkdir()
    command = fresh.run("sh", "-c", "command -v comperdial").stdout.strip()
    script = (
        "import os, sys; os.setpgid(0, 0); os.environ['GROUP'] = str(os.getpid()); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    (programs / "comperdial").write_text(KILLING.format(group="$GROUP", command=command))
    (programs / "comperdial").chmod(0o755)
    killed = fresh.run(
        *(sys.executable, "-c", script, "snakemake", "--cores", "1", *fresh.targets),
        check=False,
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout[-2000:]
    assert (fresh.path / SCORES.format("f1")).read_bytes() == b"half"
    refused = fresh.snakemake(check=False)
    [said] = [line for line in refused.splitlines() if "Another run holds this folder" in line]
    assert "snakemake --unlock" in said
    assert "holds this folder" not in fresh.snakemake("--unlock")
    fresh.snakemake()
    theirs, ours = finished.outputs(), fresh.outputs()
    assert set(ours) == set(theirs)
    assert [name for name in theirs if ours[name][1] != theirs[name][1]] == []


def test_broken_data_stops_with_its_name_and_leaves_no_output(fresh):
    ratings = fresh.path / "mirror/invented/mini/data/ratings.json"
    ratings.write_bytes(ratings.read_bytes()[:-100])
    said = fresh.snakemake(check=False)
    assert "ratings.json: source 'mini_ratings' has sha256" in said and "expected sha256" in said
    assert "Traceback" not in said
    assert not [name for name in fresh.outputs() if name.startswith("data/tables") or "/scores/" in name]


def test_progress_is_a_line_for_each_finished_step(finished):
    finished.edit("params.yaml", "kind: bleu, text: raw", "kind: bleu, text: raw, epsilon: 0.1")
    said = finished.snakemake("--logger=comperdial", "results/studies/usr/tables/usr.html").splitlines()
    first = next(
        number for number, line in enumerate(said) if line.startswith("3 steps; one after the other they took")
    )
    assert [re.sub(r"\d+:\d\d elapsed(, .* left)? +", "", line) for line in said[first + 1 :]] == [
        "[1/3] usr_persona: bleu_raw: Score a data set with a metric",
        "[2/3] usr_persona: Correlate all scores of a data set with its ratings: values, intervals, ceilings and tests",
        "[3/3] Render the table studies/usr/tables/usr",
    ]
    assert "Nothing to be done" in finished.snakemake("--logger=comperdial", "results/studies/usr/tables/usr.html")


def test_progress_shows_errors_in_full(fresh):
    (fresh.path / "mirror/invented/mini/data/ratings.json").write_text("[]")
    done = fresh.run("snakemake", "--cores", "1", "--logger=comperdial", *fresh.targets, check=False)
    assert done.returncode == 1
    for text in ("Error in rule fetch:", "log: logs/fetch/", "expected sha256", "Complete log(s): "):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  f1: {kind: f1,",
            "  f1: {kind: chrf}\n  f1: {kind: f1,",
            "params.yaml, line 14: not valid YAML (the key 'f1' is",
        ),
        ("kind: bleu, text: raw", "kind: bleu, txt: raw", "Did you mean 'text'?"),
        ("agreement:", "resources: {rules: {scor: {mem_mb: 1}}}\nagreement:", "unknown rule 'scor'"),
    ],
)
def test_a_wrong_configuration_is_one_message(fresh, old, new, message):
    fresh.edit("params.yaml", old, new)
    said = fresh.snakemake("-n", check=False)
    assert "Wrong configuration" in said and message in said
    assert "Traceback" not in said
