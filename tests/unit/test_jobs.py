"""What there is to make, and what a change makes stale: the plan of the shipped params.yaml and of small changes of it."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from docutils.core import publish_doctree

from comperdial import studies
from comperdial.config import line_of, load_yaml
from comperdial.config.checking import Lines
from comperdial.config.registry import completed
from comperdial.core.artifact import ARTIFACTS, table
from comperdial.core.closure import code_digests, names_of_version
from comperdial.core.errors import ComperdialError
from comperdial.jobs.dag import Jobs

OF_A_SET = {"systems", "alpha", "correlations", "measures", "comparisons", "power", "curves"}
DRAWN = {"heatmap", "scatter", "slope", "length_bias", "curves"}
# Made of no data set.
OF_NONE = {f"studies/comperdial/tables/table_{number}" for number in ("01", "07", "09", "10", "11", "14")}
FIGURES = {f"results/demo/figures/{kind}" for kind in (*DRAWN, "judge_agreement")}
CORRELATED = {"results/demo/correlations.parquet"}


@pytest.fixture
def config(root, tmp_path, monkeypatch):
    """Return the shipped configuration, read where no results lie and no models but the one that a package brings."""
    for name in ("data", "notebooks", "src"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))
    return completed(load_yaml(root / "params.yaml"))


def with_(config, setting, value):
    """Return a configuration with another value of a setting, `section/name` or `section/name/option`."""
    made = copy.deepcopy(config)
    *parts, last = setting.split("/")
    section = made
    for part in parts:
        section = section[part]
    section[last] = value
    return made


def targets(config, **asked):
    """Return the tables, figures and pages that `snakemake` makes, as `folder/name`."""
    found = [target.removeprefix("results/").rpartition(".")[0] for target in Jobs(config).targets(**asked)]
    assert len(found) == len(set(found))
    return set(found)


def jobs_of(config):
    """Return what `snakemake` alone makes: each job's JSON by its first file, or by its path without suffix."""
    jobs = Jobs(config)
    makers = {}
    for artifact in [*jobs.artifacts.values(), *jobs.rendered]:
        for names in artifact.of(jobs.plan):
            files = [pattern.format(**names) for pattern in artifact.outputs.values()]
            makers |= dict.fromkeys(files, (artifact, names, files[0]))
    found, waiting = {}, jobs.targets()
    while waiting:
        file = waiting.pop()
        artifact, names, first = makers.get(file) or makers.get(str(Path(file).with_suffix("")), (None, {}, ""))
        if artifact and first not in found:
            found[first] = jobs.told(artifact, names)
            for value in json.loads(found[first])["inputs"].values():
                waiting += [value] if isinstance(value, str) else value
    return found


def stale(before, after):
    """Return what is made anew for what its own job is told; what is made of that follows by its inputs."""
    return changed(_jobs_of(json.dumps(before)), jobs_of(after))


@cache
def _jobs_of(config):
    return jobs_of(json.loads(config))


def changed(before, after):
    return {file for file, job in after.items() if before.get(file) != job}


# What there is to make


def test_the_demo_gives_the_paper_s_tables_under_their_numbers(config):
    found = targets(config)
    assert found >= {"demo/report"} | {
        f"studies/comperdial/tables/table_{number:02}" for number in range(1, 16) if number != 6
    }
    assert found >= {f"demo/tables/{kind}" for kind in (*OF_A_SET, "judges")} | {
        f"demo/figures/{kind}" for kind in DRAWN
    }
    assert "notebooks/01_the_benchmark_at_a_glance" in found
    assert not [name for name in found if "usr" in name or "llm_evaluators" in name or name.startswith("local/")]


def test_the_usr_sets_keep_their_texts(config):
    both = targets(with_(config, "datasets", ["usr_persona", "usr_topical"]))
    assert both >= OF_NONE
    # Pages with fetched texts are not passed on; the benchmark's numbers are not theirs; answers were recorded of one.
    assert {"local/usr_persona", "local/usr_topical", "usr_persona/tables/table_04"} <= both
    assert "usr_topical/tables/recorded_judges" in both
    assert not both & {"usr_persona/report", "studies/comperdial/tables/table_04", "usr_persona/tables/table_05"}


def test_a_file_of_one_s_own_needs_no_references_facts_or_second_rater(config, tmp_path):
    (tmp_path / "My own.csv").write_text(
        "system,history,response,dimension,rating\na,hi,ho,warmth,2\nb,hi,he,warmth,3\n"
    )
    found = targets(with_(config, "datasets", ["My own.csv"]))
    assert found >= {f"my_own/tables/{kind}" for kind in OF_A_SET} | {f"my_own/figures/{kind}" for kind in DRAWN}
    assert "my_own/report" in found, "what is one's own is no fetched text"
    told = json.loads(jobs_of(with_(config, "datasets", ["My own.csv"]))["data/tables/my_own/systems.parquet"])
    assert told["settings"]["reader"] == "table" and told["inputs"] == {"raw": ["My own.csv"]}


def test_a_challenge_without_ratings_is_scored_and_not_correlated(config):
    entry = {"title": "Unrated", "dialogues": "data/demo/dialogues.json", "submissions": ["data/demo/submissions"]}
    found = with_(with_(config, "challenges/unrated", entry), "datasets", ["unrated"])
    named = {name for name in targets(found) if "unrated" in name}
    assert named == {
        "unrated/report",
        *(f"unrated/tables/{kind}" for kind in ("systems", "table_02", "table_08", "table_12")),
    }
    assert not [file for file in jobs_of(found) if file.endswith("/correlations.parquet")]


def test_a_study_is_made_when_it_is_asked_for(config):
    study = targets(config, study="llm_evaluators")
    assert study >= {
        f"studies/llm_evaluators/tables/{name}"
        for name in ("fed_dial_robustness", *(f"llm_evaluators_table_{number}" for number in range(1, 10)))
    }
    assert not study & targets(config)
    # Any data set is perturbed on request, and that is part of no target.
    jobs = Jobs(config)
    assert "results/demo/tables/robustness" in jobs.stems
    assert not {"demo/tables/robustness"} & (study | targets(config))
    fewer = with_(config, "studies/llm_evaluators", {"datasets": ["fed_dial"], "perturbed": None})
    assert "studies/llm_evaluators/tables/fed_dial_robustness" not in targets(fewer, study="llm_evaluators")


@pytest.mark.parametrize("shards", [1, 3])
def test_each_file_has_one_maker_and_each_input_a_maker_or_lies_there(config, shards):
    jobs = Jobs(with_(with_(config, "shards", {"default": shards}), "datasets", ["demo", "usr_persona", "usr_topical"]))
    made = Counter()
    inputs = set()
    for artifact in [*jobs.artifacts.values(), *jobs.rendered]:
        for names in artifact.of(jobs.plan):
            made.update(pattern.format(**names) for pattern in artifact.outputs.values())
            for value in artifact.inputs(jobs.plan, **names).values():
                inputs |= {value} if isinstance(value, str) else {*value}
    assert [file for file, count in made.items() if count > 1] == []
    assert [
        f for f in inputs if f not in made and str(Path(f).with_suffix("")) not in made and not Path(f).exists()
    ] == []


def test_shards_are_counted_by_data_set_and_a_metric_s_are_merged(config):
    jobs = Jobs(with_(config, "shards", {"default": 1, "demo": 3}))
    merged = json.loads(jobs.told(jobs.artifacts["merge_scores"], {"dataset": "demo", "metric": "f1"}))
    shards = [f"results/shards/scores/demo/f1/{number}-of-3.parquet" for number in (1, 2, 3)]
    assert merged["inputs"]["shards"] == shards
    assert all(jobs.artifacts[rule].temporary for rule in ("score_shard", "judge_shard"))
    assert "demo" not in jobs.constraints(jobs.artifacts["score"])["dataset"].split("|")


def test_a_caption_says_what_it_says_whatever_is_in_a_title(config):
    title = "1. My_ *data* |of| `2024`_ \\n [1]_ http://x.y :b:`c`"
    jobs = Jobs(with_(config, "challenges/demo/title", title))
    shown = publish_doctree(jobs.caption_of("results/demo/tables/systems"), settings_overrides={"report_level": 5})
    assert title in shown.astext() and len(shown.children) == len(shown[0].children) == 1


# What a change makes stale


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        # The other figures do not show it.
        (
            "metrics/f1/label",
            "Another",
            {f"results/demo/figures/{kind}" for kind in ("heatmap", "length_bias", "curves")}
            | {
                f"results/demo/tables/{kind}"
                for kind in ("correlations", "measures", "comparisons", "power", "systems")
            }
            | {"results/demo/report"},
        ),
        ("figures/heatmap", ["f1:f1"], {"results/demo/figures/heatmap"}),
        ("tables/systems", ["f1:f1"], {"results/demo/tables/systems", "results/demo/report"}),
        ("agreement/seed", 7, {"results/demo/tables/alpha"}),
        (
            "evaluation/seed",
            7,
            CORRELATED
            | {"results/demo/curves.parquet"}
            | {f"results/demo/figures/{kind}" for kind in ("length_bias", "judge_agreement")},
        ),
        ("evaluation/systems", "fixed", CORRELATED | {"results/demo/curves.parquet"}),
        ("evaluation/systems", "sampled", set()),
        (
            "metrics/f1/text",
            "raw",
            CORRELATED | {"results/demo/scores/f1.parquet", "results/studies/comperdial/tables/table_14"},
        ),
        ("judging/variants/cpds-s/scale", [1, 7], {"results/demo/scores/cpds-s_rules.parquet"}),
        ("challenges/demo/simulated/seed", 7, {"data/tables/demo/ratings.parquet"}),
        ("judging/budget", 7, set()),
        ("judges/mine", {"service": "rules"}, set()),
        ("judges/gpt-4/concurrency", 7, set()),
        ("resources", {"default": {"mem_mb": 7}}, set()),
        ("studies/llm_evaluators", {"seed": 7}, set()),
        ("personas/seed", 7, set()),
    ],
)
def test_a_setting_makes_stale_what_uses_it(config, setting, value, expected):
    assert stale(config, with_(config, setting, value)) == expected


def test_an_added_metric_leaves_other_scores_alone(config):
    found = stale(config, with_(config, "metrics/mine", {"kind": "f1"}))
    assert found >= CORRELATED | {"results/demo/scores/mine.parquet", "results/studies/comperdial/tables/table_14"}
    assert [file for file in found if "/scores/" in file] == ["results/demo/scores/mine.parquet"]
    assert not found & FIGURES, "it is not among those that are looked at in detail"
    assert "results/demo/tables/systems" not in found, "nor shown there"


def test_another_prompt_asks_again_and_another_submission_makes_the_tables_again(config, root, tmp_path):
    (tmp_path / "own.md").write_text((root / "src/comperdial/judges/prompts/cpds_simple.md").read_text())
    asked = with_(config, "judging/variants/cpds-s/prompt", "own.md")
    before = jobs_of(asked)
    (tmp_path / "own.md").write_text((tmp_path / "own.md").read_text().replace("Judge", "Rate"))
    assert changed(before, jobs_of(asked)) == {"results/demo/scores/cpds-s_rules.parquet"}
    (tmp_path / "more").mkdir()
    brought = with_(config, "challenges/demo/submissions", ["data/demo/submissions", "more"])
    before = jobs_of(brought)
    # A name that Snakemake cannot have as an input is noticed all the same.
    (tmp_path / "more/bra{ce}.jsonl").write_text("{}")
    assert changed(before, jobs_of(brought)) == {"data/tables/demo/systems.parquet"}


def test_a_recorded_file_s_new_checksum_takes_it_again(config, root, tmp_path):
    shutil.copy(root / "data/sources.yaml", tmp_path / "sources.yaml")
    both = with_(with_(config, "catalogue", str(tmp_path / "sources.yaml")), "datasets", ["usr_topical"])
    before = jobs_of(both)
    text = (tmp_path / "sources.yaml").read_text()
    for source in ("unieval_topical_predictions", "chiang2023_geval_coherence"):
        digest = re.search(rf"{source}:.*?sha256: (\w+)", text, re.DOTALL)[1]
        text = text.replace(digest, "f" * 64)
    (tmp_path / "sources.yaml").write_text(text)
    taken = {f"results/usr_topical/scores/{name}.parquet" for name in ("unieval_recorded", "gpt-3.5-turbo_geval")}
    assert {file for file in changed(before, jobs_of(both)) if file.startswith("results")} == taken


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("demo/tables/correlations", {"document"}),
        ("studies/comperdial/tables/table_13", {"document"}),
        ("studies/llm_evaluators/tables/llm_evaluators_table_2", {"document"}),
        ("demo/figures/heatmap", {"plots/style"}),
    ],
)
def test_an_edit_of_what_draws_makes_no_table_stale_and_the_reverse(config, name, used):
    told = json.loads(Jobs(config).job_of(f"results/{name}"))
    code = code_digests(*names_of_version(told["code"]))
    parts = ("document", "of_dataset", "plots/style", "plots/drawn")
    assert {part for part in parts if f"src/comperdial/report/{part}.py" in code} == used


def test_what_is_perturbed_depends_on_all_that_is_read(config):
    jobs = Jobs(config)
    for dataset in ("demo", "dailydialog_zhao"):
        told = json.loads(jobs.told(jobs.artifacts["perturb"], {"dataset": dataset}))
        assert f"data/tables/{dataset}/personas.parquet" in told["inputs"]["tables"]


def test_all_that_is_made_of_simulated_ratings_is_told_so(config):
    jobs = Jobs(config)
    told = {target: json.loads(jobs.job_of(target.rpartition(".")[0]))["settings"] for target in jobs.targets()}
    others = {target for target, settings in told.items() if settings.get("source") != "simulated"}
    assert others == {f"results/{name}.html" for name in OF_NONE}


def test_what_is_told_of_a_job_names_no_folder_of_this_machine(config, tmp_path, root):
    told = "".join(jobs_of(config).values())
    assert not [name for name in (str(tmp_path), str(root), sys.prefix) if name in told]


# What is wrong


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("datasets", ["demon"], "unknown dataset 'demon'"),
        ("datasets", ["comperdial"], "Run `comperdial fetch comperdial` once"),
        ("datasets", ["none.csv"], "none.csv: no such file"),
        ("metrics/f1", {"kind": "f2"}, "unknown metric 'f2'"),
        ("metrics/f1", {"kind": "f1", "txt": "raw"}, "Did you mean 'text'?"),
        ("metrics/embedding-minilm/model", "all-MiniLM", "unknown model 'all-MiniLM'"),
        ("studies/ussr", {}, "unknown study 'ussr'"),
        ("tables/systems", ["f1:f2"], "unknown output of f1 'f2'"),
        ("metrics/f1/main", "f2", "unknown output of f1 'f2'"),
        ("challenges/usr_persona", {"title": "T", "comperdial": "x"}, "two data sets are called 'usr_persona'"),
        ("challenges/demo/agents", "data/agents.yaml", "data/agents.yaml: no such file or folder"),
        ("challenges/demo/agents", "data/prices.yaml", "prices.yaml, line 10: unknown key"),
        (
            "recorded/bleu",
            {"dataset": "demo", "format": "table", "path": "x", "about": "y"},
            "'bleu' is the name of a metric",
        ),
        ("recorded_judges/f1", {"dataset": "demo", "format": "gpt4_rounds"}, "recorded_judges.f1"),
        ("evaluation/systems", "few", "evaluation.systems"),
    ],
)
def test_wrong_configuration_is_one_message(config, setting, value, message):
    with pytest.raises(ComperdialError) as raised:
        Jobs(with_(config, setting, value))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "value", "wrong", "message"),
    [
        ("metrics/f1", {"kind": "f1", "txt": "raw"}, "kind", "metrics.f1: unknown option of metric 'f1': 'txt'"),
        ("metrics/f1", {"kind": "f1", "main": "f2"}, "main", "metrics.f1.main: unknown output of f1 'f2'"),
        ("own_data/mine", {"file": "mine.csv", "target": "warmness"}, "target", "target: unknown dimension 'warmness'"),
        ("own_data/mine", {"file": "mine.csv", "source": "gpt"}, "source", "mine.source: unknown source 'gpt'"),
    ],
)
def test_what_is_wrong_has_its_line(config, tmp_path, setting, value, wrong, message):
    (tmp_path / "mine.csv").write_text("system,history,response,dimension,rating\na,hi,ho,warmth,2\n")
    said = with_({**config, "own_data": {}}, setting, value)
    said["datasets"] = [*said["own_data"], "demo"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(said, sort_keys=False))
    with pytest.raises(ComperdialError) as raised:
        Jobs(said, lines=Lines("params.yaml"))
    assert f"params.yaml, line {line_of('params.yaml', [*setting.split('/'), wrong])}, " in str(raised.value)
    assert message in str(raised.value)


def test_a_metric_that_was_removed_is_named_wherever_it_is_left(config):
    del config["metrics"]["meteor"]
    with pytest.raises(ComperdialError) as raised:
        Jobs(config)
    places = re.findall(r"params.yaml, ([a-z_.]+)", str(raised.value).partition(": ")[0])
    named = [
        f"figures.{name}" for name, shown in config["figures"].items() if isinstance(shown, list) and "meteor" in shown
    ]
    assert len(named) > 1 and {place.rstrip(".0123456789") for place in places} == {*named, "tables.systems"}


def test_a_study_brings_metrics_of_its_own(config, root, tmp_path, monkeypatch):
    folder = tmp_path / "studies"
    shutil.copytree(root / "src/comperdial/studies", folder, ignore=lambda *_: ["__pycache__"])
    (folder / "mine").mkdir()
    monkeypatch.setattr(studies, "FOLDER", folder)

    def made(text):
        (folder / "mine/study.yaml").write_text(f"title: Mine\n{text}")
        return Jobs(config).plan

    plan = made("datasets: [usr_persona]\nmetrics: {f1: null, f1_mine: {kind: f1, text: raw, main: f1, label: Mine}}\n")
    assert {"f1", "f1_mine"} <= plan.scores_by_metric("usr_persona").keys()
    assert "f1_mine" not in plan.scores_by_metric("demo")
    assert plan.labels_of("usr_persona", ["f1_mine:f1"])["f1_mine:f1"] == "Mine"
    for text, message in (
        ("metrics: {f2: null}", "study mine, metrics: unknown metric 'f2'"),
        ("metrics: {f1: {kind: f1, text: raw}}", "'f1' is the name of another one"),
        ("perturbed: {datasets: [], strategies: all, sample: 1, seed: 1}", "study mine: `perturbed`"),
    ):
        with pytest.raises(ComperdialError, match=re.escape(message)):
            made(text)
    monkeypatch.setitem(ARTIFACTS, "studies.mine.tables:mine", None)
    maker = type("mine", (), {"__module__": "comperdial.studies.mine.tables"})
    table("mine_{dataset}", of=lambda plan: plan.sets_of["mine"])(maker)
    with pytest.raises(ComperdialError, match=r"studies/mine/study\.yaml, datasets: unknown dataset 'usr_person'"):
        made("datasets: [usr_person]\n")


def test_a_data_set_with_the_name_of_a_folder_of_results_is_refused(config, tmp_path):
    (tmp_path / "studies.csv").write_text("system,history,response,dimension,rating\na,hi,ho,warmth,2\n")
    with pytest.raises(ComperdialError, match=r"'studies' is a folder of results.*Rename"):
        Jobs(with_(config, "datasets", ["studies.csv"]))


@pytest.mark.parametrize("name", ["local", "distinct", "f1_context"])
def test_a_metric_of_a_study_may_stand_in_params_too(config, root, name):
    """The same metric under the same name is one metric, in general tables and in the study's."""
    own = load_yaml(root / "src/comperdial/studies/local_metrics/study.yaml")["metrics"][name]
    entry = {key: value for key, value in own.items() if key != "apart"}
    plan = Jobs(with_(config, f"metrics/{name}", entry | {"label": "Mine"})).plan
    assert plan.config["metrics"][name]["label"] == "Mine"
    assert "apart" not in plan.config["metrics"][name]
    with pytest.raises(ComperdialError, match=f"'{name}' is the name of another one"):
        Jobs(with_(config, f"metrics/{name}", {"kind": "f1"}))


def test_local_scores_a_users_file_and_not_the_demo(config, tmp_path):
    rows = "system,history,response,dimension,rating\na,hi,ho,warmth,2\nb,hi,hello,warmth,3\n"
    (tmp_path / "mine.csv").write_text(rows)
    plan = Jobs(with_(config, "datasets", ["demo", "mine.csv"])).plan
    assert plan.is_wanted("mine", "local")
    assert not plan.is_wanted("demo", "local")
    # Where its parts cannot run it is named, with the reason.
    assert plan.has_scores("mine", "local") != ("local" in plan.not_run(["mine"]))


# What it costs


def test_planning_loads_no_library_of_the_jobs(root, tmp_path):
    """Each `snakemake` plans, and each job that it starts on a cluster plans again."""
    code = """
import sys
from comperdial import studies
from comperdial.config import line_of, load_yaml
from comperdial.config.checking import Lines
from comperdial.core.artifact import ARTIFACTS, table
from comperdial.data.catalogue import load_catalogue
from comperdial.jobs.dag import Jobs
jobs = Jobs(load_yaml("params.yaml"))
for stem in jobs.stems:
    jobs.job_of(stem)
print(*sorted({"torch", "transformers", "matplotlib", "scipy", "sklearn", "nltk"} & sys.modules.keys()))
"""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "COMPERDIAL_MODELS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_metric_made_of_others_scores_takes_them_as_inputs(config, tmp_path):
    """What `local` looks at is not computed a second time, where the data set has scores of it made in the same way."""
    weights = {name: {"weight": 1, "mean": 0, "scale": 1} for name in ("words", "distinct:distinct-1", "f1_raw:f1")}
    said = {
        "metrics": {"distinct": {"kind": "distinct"}, "f1_raw": {"kind": "f1"}},
        "parts": {"controls": list(weights)},
        # Raw text in params.yaml, normalised text here.
        "signatures": {
            "distinct": "distinct|text:normalised|over:words|v:1",
            "f1_raw": "f1|text:normalised|unit:word|v:1",
        },
        "fits": {"": {"features": weights}},
        "contexts": {},
    }
    (tmp_path / "coefficients.json").write_text(json.dumps(said))
    made = with_(config, "metrics/mine", {"kind": "local", "coefficients": str(tmp_path / "coefficients.json")})
    jobs = Jobs(with_(made, "datasets", ["usr_persona"]))
    told = json.loads(jobs.told(jobs.artifacts["score_from_parts"], {"dataset": "usr_persona", "metric": "mine"}))
    assert told["inputs"]["parts"] == ["results/usr_persona/scores/distinct.parquet"]
    assert told["settings"]["names"] == ["distinct"]
    assert "mine" not in {names["metric"] for names in jobs.artifacts["score"].of(jobs.plan)}
