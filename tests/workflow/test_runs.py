"""Runs of a small invented data set: outputs, reruns after a change, user additions, and errors."""

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
TABLE = "results/usr_persona/tables/correlations.md"
FROM_SCORES = (
    {f"results/usr_persona/{name}.parquet" for name in ("correlations", "ceilings", "pairs")}
    | {f"results/usr_persona/tables/correlations.{form}" for form in ("md", "tex", "csv", "html")}
    | {f"results/studies/usr/tables/usr.{form}" for form in ("md", "tex", "csv", "html")}
    | {f"results/usr_persona/figures/heatmap.{form}" for form in ("png", "pdf", "svg", "csv")}
    | {f"results/usr_persona/summary/{name}.json" for name in ("metrics", "plot", "environment")}
)


def test_run_completes_without_machine_names_and_lists_skipped(finished):
    made = finished.outputs()
    for name, (_, content) in made.items():
        assert str(finished.path.parents[1]).encode() not in content and sys.prefix.encode() not in content, name
    page = (finished.path / TABLE).read_text()
    for reason in (
        "this is WordNet 3.0; expected WordNet 9.9", "model 'roberta-large' is not present",
        "not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0",
    ):  # fmt: skip
        assert reason in page
    assert "cpds-d by rules" in page and "judge:rules" in page
    scored = {path.stem for path in (finished.path / SCORES).parent.glob("*.parquet")}
    assert scored == {"f1", "bleu_raw", "cpds-d_rules"}
    reported = (finished.path / "results/studies/usr/tables/usr.md").read_text()
    assert re.search(r"\| METEOR .* 0\.253 ", reported.split("with reported values, not run here")[1])
    # New times and comments change nothing.
    for name in [*made, "src/comperdial/metrics/bleu.py", "studies/usr/study.yaml"]:
        (finished.path / name).touch()
    finished.edit("src/comperdial/metrics/bleu.py", "    precisions = ", "    # A comment.\n    precisions = ")
    assert "Nothing to be done" in finished.snakemake("-n")


@pytest.mark.parametrize(
    ("file", "old", "new", "rerun"),
    [
        ("params.yaml", "kind: bleu, text: raw", "kind: bleu, text: raw, epsilon: 0.1", {SCORES.format("bleu_raw")}),
        ("src/comperdial/stats/correlation.py", "ALPHA = 0.05", "ALPHA = 0.04",
         {f"results/usr_persona/tables/judges.{form}" for form in ("md", "tex", "csv", "html")}),
        ("src/comperdial/metrics/bleu.py", "/ max(1, length - before)", "/ max(2, length - before)",
         {SCORES.format("bleu_raw")}),
    ],
)  # fmt: skip
def test_changed_option_or_code_reruns_its_outputs(finished, file, old, new, rerun):
    finished.edit(file, old, new)
    assert planned(finished) == FROM_SCORES | rerun


def test_one_changed_rating_changes_the_correlations_as_it_should(finished):
    made = finished.outputs()
    items = mini_items()
    response = items[0]["responses"][1]
    assert response["model"] == "Copier" and response["Overall"][0] == 3
    response["Overall"][0] = 5
    write_mirror(finished.path, items).replace(finished.path / "data/sources.yaml")
    # data/raw has the file with the old checksum: nothing replaces it but this command, which the error names.
    finished.run("comperdial", "fetch", "mini_ratings", COMPERDIAL_MIRROR="mirror")
    finished.snakemake("results/usr_persona/correlations.parquet")
    assert finished.outputs()[SCORES.format("f1")][1] == made[SCORES.format("f1")][1]
    ratings = schema.read(finished.path / "data/tables/usr_persona/ratings.parquet", "ratings")
    people = ratings.query("dimension == 'Overall'").groupby(["item_id", "system_id"])["rating"].mean()
    scores = schema.read(finished.path / SCORES.format("f1"), "scores").query("output == 'f1'")
    scores = scores.set_index(["item_id", "system_id"])["value"]
    found = pd.read_parquet(finished.path / "results/usr_persona/correlations.parquet")
    found = found.query("metric == 'f1' and output == 'f1' and target == 'Overall' and coefficient == 'pearson'")
    found = found.query("level == 'turn' and grouping == 'pooled'")
    assert found["value"].tolist() == [pytest.approx(scores.corr(people.reindex(scores.index)), abs=1e-9)]


METRIC = '''
from dataclasses import dataclass

from comperdial.metrics.base import OverlapMetric


@dataclass(frozen=True, kw_only=True)
class LengthRatio(OverlapMetric):
    """Words of the response over words of the reference, at most 1."""

    kind = "length_ratio"
    outputs = ("length-ratio",)

    def pair(self, hypothesis, reference):
        return (min(1.0, len(hypothesis.split()) / len(reference.split())),)
'''
INPUTS = {
    **{name: f"results/{{dataset}}/{name}.parquet" for name in ("correlations", "pairs")},
    "about": "results/{dataset}/about.json", "reported": "studies/mine/reported.csv",
}  # fmt: skip
STUDY = {
    "title": "My study", "datasets": ["usr_persona"],
    "tables": {
        "mine": {
            "title": "Overlap", "caption": "Correlations.", "inputs": INPUTS, "levels": {"turn": "turn"},
            "rows": [
                {"label": "BLEU", "metric": "bleu_raw", "output": "bleu-4", "reported": "METEOR", "source": "yeh2021"},
                {"label": "Word F1", "metric": "f1", "output": "f1"},
            ],
        },
        "sizes": {
            "function": "counts", "title": "Sizes", "caption": "Responses.",
            "inputs": {"responses": "data/tables/{dataset}/responses.parquet"},
        },
    },
}  # fmt: skip
REPORTED = """source,place,dataset,level,dimension,metric,output,coefficient,value,starred,note
yeh2021,,usr_persona,turn,Overall,METEOR,,spearman,0.271,false,
"""
FUNCTION = """
import pandas as pd

from comperdial import schema
from comperdial.report.render import Section, Table


def counts(inputs, study):
    responses = pd.concat(schema.read(path, "responses") for path in inputs["responses"])
    frame = responses.groupby(["dataset", "system_id"]).size().rename("responses").reset_index()
    cells = frame.astype(str).set_index(["dataset", "system_id"])
    cells.columns = pd.MultiIndex.from_product([[""], cells.columns])
    entry = study["entry"]
    return Table(title=entry["title"], caption=entry["caption"], frame=frame, sections=[Section("", cells)], notes=[])
"""


def test_adding_metric_scores_or_study_rescores_nothing_else(finished):
    """A module and an entry; a file and an entry; two files and a function for a table of another shape."""
    before = finished.outputs()
    (finished.path / "src/comperdial/metrics/length_ratio.py").write_text(METRIC)
    entry = "metrics:\n  length_ratio: {kind: length_ratio, text: raw, main: length-ratio, label: Length ratio}\n"
    finished.edit("params.yaml", "metrics:\n", entry)
    scores = pd.read_parquet(finished.path / SCORES.format("f1")).query("output == 'f1'")
    scores = scores.rename(columns={"item_id": "context_id"})[["context_id", "system_id", "value"]]
    scores.iloc[:-6].to_csv(finished.path / "scores.csv", index=False)
    recorded = "recorded:\n  mine: {dataset: usr_persona, format: table, path: scores.csv, about: a test}\n"
    finished.edit("params.yaml", "evaluation:\n", f"{recorded}evaluation:\n")
    (finished.path / "studies/mine").mkdir()
    (finished.path / "studies/mine/study.yaml").write_text(yaml.safe_dump(STUDY))
    (finished.path / "studies/mine/reported.csv").write_text(REPORTED)
    (finished.path / "src/comperdial/studies/mine.py").write_text(FUNCTION)
    finished.snakemake(TABLE, "mine")
    made = {name for name in finished.rewritten(before) if name.startswith("data") or "/scores/" in name}
    assert made == {SCORES.format(name) for name in ("length_ratio", "mine")}
    page = (finished.path / TABLE).read_text()
    assert "Length ratio" in page and "recorded|format:table|from:scores.csv|sha256:" in page
    assert "75.0" in page, "of the rated responses have a score"
    tables = finished.path / "results/studies/mine/tables"
    assert {path.suffix for path in tables.glob("mine.*")} == {".md", ".tex", ".csv", ".html"}
    assert "0.271" in (tables / "mine.md").read_text()
    assert pd.read_csv(tables / "sizes.csv")["responses"].eq(6).all()


@pytest.mark.ci
def test_parts_give_identical_bytes_and_only_failed_part_reruns(finished):
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
    output = finished.run("snakemake", "--cores", "2", "--keep-going", target, check=False, PATH=path).stdout
    assert "this node is gone" in output
    parts = finished.path / "results/usr_persona/parts/f1"
    assert {path.name for path in parts.iterdir()} == {"1-of-3.parquet", "3-of-3.parquet"}
    fault.unlink()
    output = finished.snakemake(target)
    assert "logs/score_part/usr_persona/f1/2-of-3.log" in output and "f1/1-of-3.log" not in output
    assert (finished.path / target).read_bytes() == whole
    assert not [*parts.glob("*.parquet")], "parts are gone once they are merged"


def test_broken_data_or_configuration_gives_one_message(fresh):
    ratings = fresh.path / "mirror/invented/mini/data/ratings.json"
    ratings.write_bytes(ratings.read_bytes()[:-100])
    output = fresh.snakemake("data/tables/usr_persona/ratings.parquet", check=False)
    assert "Error in rule read:" in output and "Traceback" not in output
    assert "ratings.json: source 'mini_ratings' has sha256" in output
    assert not [name for name in fresh.outputs() if name.startswith("data/tables")]
    fresh.edit("params.yaml", "kind: bleu, text: raw", "kind: bleu, txt: raw")
    output = fresh.snakemake("-n", check=False)
    assert "\nError: params.yaml, line 1" in output and "Did you mean 'text'?" in output
    assert "Traceback" not in output and "common.smk" not in output
