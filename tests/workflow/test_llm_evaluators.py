"""The study of LLMs as dialogue evaluators on small invented data: what is made, and what an edit makes stale."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

import ministudy
from comperdial import schema
from ministudy import DIALOGUE_DIMENSIONS, ROUNDS, TOPICS
from workdir import copied, copy_repository, planned

FOLDER = "results/llm_evaluators"
# Asked for by name: the set is not among those that the configuration perturbs.
ASKED = "results/tables/dailydialog_zhao_robustness.html"
SETS = ("dailydialog_zhao", "fed_dial")
PAIRS = ("turn_perturbations", "dialogue_perturbations", "fed_dial_perturbed", "dailydialog_zhao_perturbed")
CORRELATIONS = {f"{FOLDER}/correlations.parquet", f"{FOLDER}/rounds.parquet"}
RATIOS = {f"{FOLDER}/{name}_ratios.parquet" for name in PAIRS}
SCORES = {f"{FOLDER}/scores/{name}.parquet" for name in (*SETS, *PAIRS)}
NOT_RUN = (
    "- bertscore_raw: not run: model 'roberta-large' is not present",
    "- explicit-dialogue_gpt-4: not run: not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0",
    "- explicit-turn_gpt-4: not run: not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0",
)


def forms(folder, suffixes, *stems):
    return {f"results/{folder}/{stem}.{suffix}" for stem in stems for suffix in (*suffixes, "provenance.json")}


def tables(*names):
    return forms("tables", ("html", "md", "tex", "csv"), *(f"llm_evaluators_{name}" for name in names))


def numbered(*numbers):
    return tables(*(f"table_{number}" for number in numbers))


ROBUSTNESS = forms("tables", ("html", "md", "tex", "csv"), "fed_dial_robustness", "dailydialog_zhao_robustness")
FIGURE = forms("figures", ("png", "pdf", "svg", "csv"), "llm_evaluators_figure_3")
# What is made of scores, by way of correlations and ratios.
FROM_CORRELATIONS = numbered(2, 3, 4, 5, 6) | tables("correlations")
FROM_SCORES = FROM_CORRELATIONS | numbered(8) | ROBUSTNESS


@pytest.fixture(scope="module")
def _unrun(root, tmp_path_factory):
    workdir = copy_repository(root, tmp_path_factory.mktemp("study") / "repository", "llm_evaluators", ASKED)
    ministudy.write_study(workdir, root)
    return workdir


@pytest.fixture(scope="module")
def _studied(_unrun, tmp_path_factory):
    workdir = copied(_unrun, tmp_path_factory.mktemp("studied") / "repository")
    workdir.snakemake()
    return workdir


@pytest.fixture
def unrun(_unrun, tmp_path):
    """Return a copy in which nothing has been run."""
    return copied(_unrun, tmp_path / "unrun")


@pytest.fixture
def studied(_studied, tmp_path):
    """Return a copy in which the study has run through."""
    return copied(_studied, tmp_path / "studied")


def page(workdir, name):
    return (workdir.path / f"results/tables/{name}.md").read_text()


def correlations(workdir):
    return schema.read(workdir.path / f"{FOLDER}/correlations.parquet", "dimension_correlations")


def test_the_study_is_made_whole_and_once(studied):
    made = studied.outputs()
    results = {name for name in made if re.match(r"results/(tables|figures)/\w", name)}
    wanted = numbered(*range(1, 10)) | tables("correlations", "rounds") | ROBUSTNESS | FIGURE
    assert results == wanted, "and no figure 4: its data set is not there"
    assert set(made) >= CORRELATIONS | RATIOS | SCORES
    assert [name for name, (_, content) in made.items() if str(studied.path.parents[1]).encode() in content] == []
    assert "Nothing to be done" in studied.snakemake()
    assert studied.rewritten(made) == set()


def test_people_and_gpt_4_are_correlated_apart(studied):
    """With means of what was rated, as it was written to the files, and of the scores of a dialogue's responses."""
    scores = schema.read(studied.path / f"{FOLDER}/scores/fed_dial.parquet", "scores")
    mine = scores.query("metric == 'f1_context' and output == 'f1'")
    assert len(mine) == 2 * len(TOPICS)
    by_dialogue = mine.groupby(mine["item_id"].str.rsplit("-", n=1).str[0])["value"].mean()
    values = by_dialogue[[f"fed_dial-{number:04d}" for number in range(len(TOPICS))]].reset_index(drop=True)
    rounds, people = ministudy.rounds(), ministudy.people()
    frame = correlations(studied).query("dataset == 'fed_dial' and metric == 'f1_context' and output == 'f1'")
    found = frame.set_index(["source", "dimension", "coefficient"])["value"]
    assert len(found) == 2 * len(DIALOGUE_DIMENSIONS) * 3
    differ = 0
    for dimension, (short, name) in DIALOGUE_DIMENSIONS.items():
        ratings = {
            "human": pd.Series([np.mean(item["annotations"][name]) for item in people]),
            "gpt-4": pd.DataFrame([rounds[f"{short}_{number + 1}"] for number in range(ROUNDS)]).mean(),
        }
        for source, means in ratings.items():
            for coefficient in ("pearson", "spearman", "kendall"):
                expected = values.corr(means, method=coefficient)
                assert found[source, dimension, coefficient] == pytest.approx(expected, abs=1e-9), (source, dimension)
        differ += abs(found["human", dimension, "pearson"] - found["gpt-4", dimension, "pearson"]) > 0.1
    assert differ >= 3, "the invented ratings of the two are not alike"
    by_source = correlations(studied).query("dataset == 'dailydialog_zhao'").groupby("source")["dimension"].unique()
    assert {*by_source["human"]} == {"relevance", "overall"}
    assert {*by_source["gpt-4"]} == {"specificity", "interestingness", "understandability"}
    cells = re.findall(
        r"\| Word F1 with the context \| (?:people|GPT-4) \|(.*)", page(studied, "llm_evaluators_table_2")
    )
    for source, cell in zip(("human", "gpt-4"), cells, strict=True):
        assert f"{found[source, 'informativeness', 'pearson']:.3f}" in cell


def test_what_cannot_run_is_named_and_the_rest_runs(studied):
    for name in ("table_2", "table_3", "table_8", "correlations"):
        text = page(studied, f"llm_evaluators_{name}")
        assert all(line in text for line in NOT_RUN), name
    metrics = {*correlations(studied)["metric"]}
    judges = {"explicit-turn_rules", "explicit-dialogue_rules"}
    ensembles = {
        *(f"ensemble-dimensions:{name}" for name in judges),
        "ensemble-models:turn",
        "ensemble-models:dialogue",
    }
    assert metrics == {"f1", "distinct", "f1_context", "gpt-4_fed_dial"} | judges | ensembles
    ratios = schema.read(studied.path / f"{FOLDER}/turn_perturbations_ratios.parquet", "ratios")
    assert {*ratios["metric"]} == {"distinct", "f1_context", "explicit-turn_rules"}, "no pair has references"
    assert {*ratios["perturbation"]} == {"pronouns", "dullness"}


def test_any_set_has_its_robustness_when_asked(studied):
    ratios = schema.read(studied.path / f"{FOLDER}/dailydialog_zhao_perturbed_ratios.parquet", "ratios")
    # A dialogue of one response is no dialogue to be spoiled.
    assert {*ratios["perturbation"]} == {"contradiction"}
    assert "f1" in {*ratios["metric"]}, "the pairs keep their context's references"
    assert "## Mini turns: a drop above δ" in page(studied, "dailydialog_zhao_robustness")


def test_a_metric_s_option_reruns_scores_and_what_is_made_of_them(studied):
    old = "f1_context: {kind: with_context, metric: f1}"
    studied.edit("params.yaml", old, old.replace("}", ", of: history}"))
    assert planned(studied) == SCORES | CORRELATIONS | RATIOS | FROM_SCORES | numbered(1) | tables("rounds")


def test_a_label_reruns_tables_only(studied):
    studied.edit("params.yaml", "Word F1 with the context", "F1 of the context")
    assert planned(studied) == FROM_SCORES | FIGURE


def test_a_broken_line_is_one_message_and_costs_its_own_set_only(studied):
    before = studied.outputs()
    lines = ministudy.turn_lines()
    lines[3] = (*lines[3][:2], " ", lines[3][3])
    ministudy.replaced(studied, "mini_dailydialog_zhao_texts", ministudy.text(lines))
    said = studied.snakemake("--keep-going", check=False)
    place = f"data/raw/{ministudy.REPOSITORY}/"
    assert len(re.findall(rf"{place}\S*texts, line 4: an utterance is empty", said)) == 1, said
    assert "Traceback" not in said
    after = studied.outputs()
    tables_of_it = {name for name in before if name.startswith("data/tables/dailydialog_zhao/")}
    assert before.keys() - after.keys() == tables_of_it, "Snakemake removes what a job is to make anew"
    raw = f"data/raw/{ministudy.REPOSITORY}/data/mini_dailydialog_zhao_texts"
    assert studied.rewritten(before) == {raw}


def test_without_a_study_the_rest_is_planned(unrun, root):
    """With null as with no section at all, which is what the other workflow tests run."""
    config = yaml.safe_load((root / "tests/configs/mini.yaml").read_text())
    (unrun.path / "params.yaml").write_text(yaml.safe_dump(config | {"llm_evaluators": None}))
    rest = replace(unrun, targets=("tables",))
    assert "results/tables/usr_persona_correlations.html" in rest.snakemake("-n")


def test_with_null_for_the_study_there_is_nothing_to_do(unrun):
    path = unrun.path / "params.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"llm_evaluators": None}))
    said = replace(unrun, targets=("llm_evaluators",)).snakemake("-n")
    # The target alone, which is of nothing.
    assert re.search(r"^total +1$", said, re.MULTILINE), said
