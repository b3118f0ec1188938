"""Runs of a small invented data set: what is made, what a change reruns, and what stops a run."""

import os
import re
import sys

import pandas as pd
import pytest
import yaml

from comperdial import schema
from minidata import mini_items, write_mirror
from workdir import planned

SCORES = "results/usr_persona/scores/{}.parquet"
CORRELATED = {f"results/usr_persona/{name}.parquet" for name in ("correlations", "ceilings", "pairs")}
FROM_SCORES = (
    CORRELATED
    | {f"results/usr_persona/tables/correlations.{form}" for form in ("md", "tex", "csv", "html")}
    | {f"results/studies/usr/tables/usr.{form}" for form in ("md", "tex", "csv", "html")}
    | {f"results/usr_persona/figures/heatmap.{form}" for form in ("png", "pdf", "svg", "csv")}
    | {f"results/usr_persona/summary/{name}.json" for name in ("metrics", "plot", "environment")}
)


def test_a_run_is_done_and_names_no_machine(finished):
    made = finished.outputs()
    for name, (_, content) in made.items():
        assert str(finished.path.parents[1]).encode() not in content and sys.prefix.encode() not in content, name
    for name in [*made, "src/comperdial/metrics/bleu.py", "studies/usr/study.yaml"]:
        (finished.path / name).touch()
    assert "Nothing to be done" in finished.snakemake("-n")


def test_what_cannot_run_is_named_and_the_rest_runs(finished):
    page = (finished.path / "results/usr_persona/tables/correlations.md").read_text()
    for reason in (
        "this is WordNet 3.0; expected WordNet 9.9",
        "model 'roberta-large' is not present",
        "not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0",
    ):
        assert reason in page
    assert "cpds-d by rules" in page and "judge:rules" in page
    made = {path.stem for path in (finished.path / SCORES).parent.glob("*.parquet")}
    assert made == {"f1", "bleu_raw", "cpds-d_rules"}
    table = (finished.path / "results/studies/usr/tables/usr.md").read_text()
    assert re.search(r"\| METEOR .* 0\.253 ", table.split("with reported values, not run here")[1])


def test_a_metric_s_option_reruns_its_scores_and_what_follows(finished):
    before = finished.outputs()
    finished.edit("params.yaml", "kind: bleu, text: raw", "kind: bleu, text: raw, epsilon: 0.1")
    finished.snakemake()
    made = finished.rewritten(before)
    assert made == FROM_SCORES | {SCORES.format("bleu_raw")}
    assert "epsilon:0.1" in (finished.path / "results/usr_persona/tables/correlations.md").read_text()


def test_code_reruns_what_it_makes_and_comments_nothing(finished):
    for name, line in (("metrics/bleu.py", "    precisions = "), ("stats/correlation.py", "ALPHA = ")):
        finished.edit(f"src/comperdial/{name}", line, f"{' ' * (len(line) - len(line.lstrip()))}# A comment.\n{line}")
    assert "Nothing to be done" in finished.snakemake("-n")
    finished.edit("src/comperdial/stats/correlation.py", "ALPHA = 0.05", "ALPHA = 0.04")
    assert planned(finished) == FROM_SCORES
    finished.edit("src/comperdial/stats/correlation.py", "ALPHA = 0.04", "ALPHA = 0.05")
    finished.edit("src/comperdial/metrics/bleu.py", "/ max(1, length - before)", "/ max(2, length - before)")
    assert planned(finished) == FROM_SCORES | {SCORES.format("bleu_raw")}


def test_one_changed_rating_changes_the_correlations_as_it_should(finished):
    made = finished.outputs()
    items = mini_items()
    response = items[0]["responses"][1]
    assert response["model"] == "Copier" and response["Overall"][0] == 3
    response["Overall"][0] = 5
    write_mirror(finished.path, items).replace(finished.path / "data/sources.yaml")
    # data/raw has the file with the old checksum: nothing replaces it but this command, which the error names.
    finished.run("comperdial", "fetch", "mini_ratings", COMPERDIAL_MIRROR="mirror")
    finished.snakemake("results/studies/usr/tables/usr.html", "results/usr_persona/tables/judges.html")
    now = finished.outputs()
    for name in (SCORES.format("f1"), "results/usr_persona/tables/judges.csv"):
        assert now[name][1] == made[name][1]
    assert now["results/studies/usr/tables/usr.csv"][1] != made["results/studies/usr/tables/usr.csv"][1]
    ratings = schema.read(finished.path / "data/tables/usr_persona/ratings.parquet", "ratings")
    people = ratings.query("dimension == 'Overall'").groupby(["item_id", "system_id"])["rating"].mean()
    scores = schema.read(finished.path / SCORES.format("f1"), "scores").query("output == 'f1'")
    scores = scores.set_index(["item_id", "system_id"])["value"]
    expected = scores.corr(people.reindex(scores.index))
    found = pd.read_parquet(finished.path / "results/usr_persona/correlations.parquet")
    found = found.query("metric == 'f1' and output == 'f1' and target == 'Overall' and coefficient == 'pearson'")
    found = found.query("level == 'turn' and grouping == 'pooled'")
    assert found["value"].tolist() == [pytest.approx(expected, abs=1e-9)]


def test_parts_give_the_bytes_of_a_whole_and_one_that_fails_runs_again_alone(finished):
    target = SCORES.format("f1")
    whole = (finished.path / target).read_bytes()
    params = yaml.safe_load((finished.path / "params.yaml").read_text())
    (finished.path / "params.yaml").write_text(yaml.safe_dump(params | {"shards": {"default": 1, "usr_persona": 3}}))
    # The command itself, except that the second part fails as long as a file is there.
    fault, programs = finished.path / "fault", finished.path / "bin"
    fault.touch()
    programs.mkdir()
    command = finished.run("sh", "-c", "command -v comperdial").stdout.strip()
    failing = f"case \"$*\" in *2-of-3*) if [ -e {fault} ]; then echo 'this node is gone' >&2; exit 1; fi;; esac"
    (programs / "comperdial").write_text(f'#!/bin/sh\n{failing}\nexec {command} "$@"\n')
    (programs / "comperdial").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    said = finished.run("snakemake", "--cores", "2", "--keep-going", target, check=False, PATH=path).stdout
    assert "this node is gone" in said
    parts = finished.path / "results/usr_persona/parts/f1"
    assert {path.name for path in parts.iterdir()} == {"1-of-3.parquet", "3-of-3.parquet"}
    fault.unlink()
    said = finished.snakemake(target)
    assert "logs/score_part/usr_persona/f1/2-of-3.log" in said and "f1/1-of-3.log" not in said
    assert (finished.path / target).read_bytes() == whole
    assert not [*parts.glob("*.parquet")], "parts are gone once they are merged"
    assert "Nothing to be done" in finished.snakemake("-n", target)


def test_broken_data_stops_with_its_name_and_leaves_no_output(fresh):
    ratings = fresh.path / "mirror/invented/mini/data/ratings.json"
    ratings.write_bytes(ratings.read_bytes()[:-100])
    said = fresh.snakemake(check=False)
    assert "Error in rule read:" in said
    assert "ratings.json: source 'mini_ratings' has sha256" in said and "expected sha256" in said
    assert "Traceback" not in said
    assert not [name for name in fresh.outputs() if name.startswith("data/tables") or "/scores/" in name]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  f1: {kind: f1,", "  f1: {kind: chrf}\n  f1: {kind: f1,", "not valid YAML (the key 'f1' is"),
        ("kind: bleu, text: raw", "kind: bleu, txt: raw", "Did you mean 'text'?"),
    ],
)
def test_a_wrong_configuration_is_one_message(fresh, old, new, message):
    fresh.edit("params.yaml", old, new)
    said = fresh.snakemake("-n", check=False)
    assert "\nError: params.yaml, line 1" in said and message in said
    assert "Traceback" not in said and "common.smk" not in said
