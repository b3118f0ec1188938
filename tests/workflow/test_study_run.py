"""The study of LLMs as dialogue evaluators on small invented data, run for one table of each kind."""

import re

import numpy as np
import pandas as pd
import pytest

import ministudy
from comperdial import schema
from ministudy import DIALOGUE_DIMENSIONS, ROUNDS, TOPICS
from workdir import copy_repository

FOLDER = "results/studies/llm_evaluators"
TABLE, ROBUSTNESS = (f"{FOLDER}/tables/{name}" for name in ("llm_evaluators_table_2", "fed_dial_robustness"))


@pytest.fixture(scope="module")
def studied(root, tmp_path_factory):
    workdir = copy_repository(root, tmp_path_factory.mktemp("study") / "repository")
    ministudy.write_study(workdir, root)
    workdir.snakemake(f"{TABLE}.html", f"{ROBUSTNESS}.html")
    return workdir


def test_people_and_gpt_4_are_correlated_apart(studied):
    """With means of what was rated, as it was written to the files, and of the scores of a dialogue's responses."""
    scores = schema.read(studied.path / "results/fed_dial/study_scores.parquet", "scores")
    mine = scores.query("metric == 'f1_context' and output == 'f1'")
    assert len(mine) == 2 * len(TOPICS)
    by_dialogue = mine.groupby(mine["item_id"].str.rsplit("-", n=1).str[0])["value"].mean()
    values = by_dialogue[[f"fed_dial-{number:04d}" for number in range(len(TOPICS))]].reset_index(drop=True)
    rounds, people = ministudy.rounds(), ministudy.people()
    correlations = schema.read(studied.path / f"{FOLDER}/correlations.parquet", "dimension_correlations")
    frame = correlations.query("dataset == 'fed_dial' and metric == 'f1_context' and output == 'f1'")
    found = frame.set_index(["source", "dimension", "coefficient"])["value"]
    assert len(found) == 2 * len(DIALOGUE_DIMENSIONS) * 3
    for dimension, (short, name) in DIALOGUE_DIMENSIONS.items():
        ratings = {
            "human": pd.Series([np.mean(item["annotations"][name]) for item in people]),
            "gpt-4": pd.DataFrame([rounds[f"{short}_{number + 1}"] for number in range(ROUNDS)]).mean(),
        }
        for source, means in ratings.items():
            expected = values.corr(means, method="pearson")
            assert found[source, dimension, "pearson"] == pytest.approx(expected, abs=1e-9), (source, dimension)
    by_source = correlations.query("dataset == 'dailydialog_zhao'").groupby("source")["dimension"].unique()
    assert {*by_source["human"]} == {"relevance", "overall"}
    page = (studied.path / f"{TABLE}.md").read_text()
    cells = re.findall(r"\| Word F1 with the context \| (?:people|GPT-4) \|(.*)", page)
    for source, cell in zip(("human", "gpt-4"), cells, strict=True):
        assert f"{found[source, 'informativeness', 'pearson']:.3f}" in cell


def test_what_cannot_run_is_named_and_the_rest_runs(studied):
    page = (studied.path / f"{TABLE}.md").read_text()
    assert re.search(r"^- not run: .*\bbertscore_raw\b.*: model 'roberta-large' is not present", page, re.M)
    for judge in ("explicit-turn_gpt-4", "explicit-dialogue_gpt-4"):
        assert re.search(
            rf"^- not run: [^:]*\b{judge}\b[^:]*: not asked: gpt-4-turbo-2024-04-09 costs money", page, re.M
        )
    correlations = schema.read(studied.path / f"{FOLDER}/correlations.parquet", "dimension_correlations")
    judges = {"explicit-turn_rules", "explicit-dialogue_rules"}
    ensembles = {
        *(f"ensemble-dimensions:{name}" for name in judges),
        "ensemble-models:turn",
        "ensemble-models:dialogue",
    }
    assert {*correlations["metric"]} == {"f1", "distinct", "f1_context", "gpt-4_fed_dial"} | judges | ensembles
    ratios = schema.read(studied.path / f"{FOLDER}/fed_dial_perturbed_ratios.parquet", "ratios")
    assert {*ratios["perturbation"]} == {"contradiction", "generic_utterances"}


def test_a_broken_line_is_one_message_and_costs_its_own_set_only(studied):
    before = studied.outputs()
    lines = ministudy.turn_lines()
    lines[3] = (*lines[3][:2], " ", lines[3][3])
    ministudy.replaced(studied, "mini_dailydialog_zhao_texts", ministudy.text(lines))
    said = studied.snakemake("--keep-going", f"{TABLE}.html", f"{ROBUSTNESS}.html", check=False)
    raw = f"data/raw/{ministudy.REPOSITORY}/data/mini_dailydialog_zhao_texts"
    assert len(re.findall(rf"{raw}, line 4: an utterance is empty", said)) == 1, said
    assert "Traceback" not in said
    assert studied.rewritten(before) == {raw}
