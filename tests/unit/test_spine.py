"""What configuration selects, what tables are made of, and which edits of code make results stale."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from comperdial.config import line_of, load_yaml
from comperdial.config.checking import Lines
from comperdial.config.registry import completed
from comperdial.config.studies import DATASET, inputs_of, read_study, shown_outputs
from comperdial.core.code import code
from comperdial.core.errors import ComperdialError, FileError
from comperdial.selection import Selection, check_targets, describe

OWN = "system,history,response,dimension,rating\na,hi,ho,warmth,2\nb,hi,hello there,warmth,3\n"


@pytest.fixture
def config(root, tmp_path, monkeypatch):
    """Return the shipped configuration, read in a folder without results and without models."""
    for name in ("data", "src"):
        (tmp_path / name).symlink_to(root / name)
    shutil.copytree(root / "studies", tmp_path / "studies")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))
    return completed(load_yaml(root / "params.yaml"))


def with_(config, setting, value):
    """Return a configuration with another value of `section/name/option`."""
    made = copy.deepcopy(config)
    *parts, last = setting.split("/")
    section = made
    for part in parts:
        section = section.setdefault(part, {})
    section[last] = value
    return made


# What configuration selects


def test_the_demo_is_rated_and_scored_and_says_what_cannot_run(config):
    selected = Selection(config)
    assert selected.chosen == ["demo"] and selected.simulated == ["demo"]
    assert selected.levels["demo"] == ["turn", "dialogue"]
    assert {"f1", "rouge", "cpds-s_rules"} <= {*selected.scorers("demo")}
    assert "bertscore" not in selected.scorers("demo")
    assert selected.not_run("demo")["bertscore"].startswith("model 'roberta-large' is not present")
    assert {"usr_persona", "usr_topical", "fed_dial"} <= {*selected.datasets}, "those of studies can be asked for"


def test_a_users_file_is_a_data_set(config, tmp_path):
    for suffix, text in {".csv": OWN, ".TSV": OWN.replace(",", "\t")}.items():
        (tmp_path / f"My own{suffix}").write_text(text)
        selected = Selection(with_(config, "datasets", [f"My own{suffix}"]))
        assert selected.own["my_own"] == {"file": f"My own{suffix}", "title": "My own"}
    assert selected.levels["my_own"] == ["turn"] and selected.source("my_own") == "human"
    assert not selected.is_public("my_own")
    assert not {"llm_evaluators"} & {name for name, sets in selected.sets_of.items() if "my_own" in sets}


def test_about_json_holds_what_tables_need_and_no_name_of_this_machine(config, root, tmp_path):
    (tmp_path / "mine.csv").write_text(OWN)
    for dataset in ("demo", "usr_persona", "mine"):
        about = describe(Selection(with_(config, "datasets", ["demo", "mine.csv"])), dataset)
        text = json.dumps(about)
        assert {"title", "source", "levels", "labels", "outputs", "not_run", "judges"} <= about.keys()
        assert {name.rpartition(":")[0] for name in about["outputs"]} <= {*about["scorers"]}
        assert not [name for name in (str(tmp_path), str(root), sys.prefix) if name in text]


def test_a_metric_of_a_study_scores_its_data_sets_alone(config, tmp_path):
    (tmp_path / "studies/mine").mkdir()
    file = tmp_path / "studies/mine/study.yaml"

    def read(text):
        file.write_text(f"title: Mine\n{text}")
        return Selection(config)

    selected = read("datasets: [usr_persona]\nmetrics: {f1: null, f1_mine: {kind: f1, main: f1, label: Mine}}\n")
    assert {"f1", "f1_mine"} <= {*selected.scorers("usr_persona")}
    assert "f1_mine" not in selected.scorers("demo")
    assert selected.labels("usr_persona")["f1_mine"] == "Mine"
    for text, message in (
        ("metrics: {f2: null}", "study mine, metrics: unknown metric 'f2'"),
        ("metrics: {f1: {kind: f1, text: raw}}", "the name 'f1' is already used"),
        ("dataset: []", "Did you mean 'datasets'?"),
    ):
        with pytest.raises(ComperdialError, match=re.escape(message)):
            read(text)


def test_a_combined_metric_takes_scores_that_were_computed_in_the_same_way(config, tmp_path):
    weights = {name: {"weight": 1, "mean": 0, "scale": 1} for name in ("words", "distinct:distinct-1", "f1_raw:f1")}
    coefficients = {
        "metrics": {"distinct": {"kind": "distinct"}, "f1_raw": {"kind": "f1"}},
        "parts": {"controls": list(weights)},
        # Raw text in the registry, normalised text here.
        "signatures": {
            "distinct": "distinct|text:normalised|over:words|v:1",
            "f1_raw": "f1|text:normalised|unit:word|v:1",
        },
        "fits": {"": {"features": weights}},
        "contexts": {},
    }
    (tmp_path / "coefficients.json").write_text(json.dumps(coefficients))
    selected = Selection(with_(config, "metrics/mine", {"kind": "local", "coefficients": "coefficients.json"}))
    assert selected.parts_of("usr_persona", "mine") == ["distinct"]


def test_selecting_loads_no_library_that_computes(root, tmp_path):
    """Snakemake selects at each start, and for each job that it starts on a cluster."""
    script = (
        "import sys; from comperdial.selection import Selection, describe; s = Selection.read(); "
        "[describe(s, name) for name in s.datasets]; "
        "print(*sorted({'torch', 'transformers', 'matplotlib', 'scipy', 'sklearn', 'nltk'} & sys.modules.keys()))"
    )
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "COMPERDIAL_MODELS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


# What is wrong in configuration


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("datasets", ["demon"], "unknown dataset 'demon'"),
        ("datasets", ["comperdial"], "Run `comperdial fetch comperdial` once"),
        ("datasets", ["none.csv"], "none.csv: no such file"),
        ("datasets", ["studies.csv"], "'studies' is a folder of results"),
        ("metrics/f1", {"kind": "f2"}, "unknown metric 'f2'"),
        ("metrics/embedding-minilm/model", "all-MiniLM", "unknown model 'all-MiniLM'"),
        ("metrics/f1/main", "f2", "unknown output of f1 'f2'"),
        ("studies/usr", {"dataset": []}, "Did you mean 'datasets'?"),
        ("studies/ussr", {}, "unknown study 'ussr'"),
        ("tables/systems", ["f1:f2"], "unknown output of f1 'f2'"),
        ("challenges/usr_persona", {"title": "T", "comperdial": "x"}, "two data sets are called 'usr_persona'"),
        ("challenges/demo/agents", {"x": "agent.py:Mine"}, "agent.py: no such file or folder"),
        ("challenges/demo/agents", {"a b": "agent.py"}, "the name 'a b'"),
        ("recorded/f1", {"dataset": "demo", "format": "table", "path": "x", "about": "y"}, "is the name of a metric"),
        ("evaluation/systems", "few", "evaluation.systems"),
    ],
)
def test_wrong_configuration_is_one_message(config, tmp_path, setting, value, message):
    (tmp_path / "studies.csv").write_text(OWN)
    with pytest.raises(ComperdialError) as raised:
        Selection(with_(config, setting, value))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "value", "wrong", "message"),
    [
        ("metrics/f1", {"kind": "f1", "txt": "raw"}, "kind", "metrics.f1: unknown option of metric 'f1': 'txt'"),
        ("metrics/f1", {"kind": "f1", "main": "f2"}, "main", "metrics.f1.main: unknown output of f1 'f2'"),
        ("studies/usr", {"datasets": ["usr_person"]}, "datasets", "studies.usr.datasets: unknown dataset 'usr_person'"),
        ("own_data/mine", {"file": "mine.csv", "target": "warmness"}, "target", "target: unknown dimension 'warmness'"),
        ("own_data/mine", {"file": "mine.csv", "source": "gpt"}, "source", "mine.source: unknown source 'gpt'"),
    ],
)
def test_a_message_names_the_line(config, tmp_path, setting, value, wrong, message):
    (tmp_path / "mine.csv").write_text(OWN)
    changed = with_({**config, "own_data": {}}, setting, value)
    changed["datasets"] = [*changed["own_data"], "demo"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(changed, sort_keys=False))
    with pytest.raises(ComperdialError) as raised:
        Selection(changed, lines=Lines("params.yaml"))
    assert f"params.yaml, line {line_of('params.yaml', [*setting.split('/'), wrong])}, " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/demon/report.html", "results/demon/report.html: unknown dataset 'demon'.*Did you mean 'demo'"),
        ("data/tables/x/ratings.parquet", "unknown dataset 'x'; expected one of alt_test_10k_prompts"),
        (
            "results/ieval/report.html",
            "ieval is not selected.*Run `snakemake --config 'datasets=.ieval.' -- results/ie",
        ),
        ("demo", "demo: a data set is no target.*Run `snakemake --config 'datasets=.demo.'` for"),
    ],
)
def test_a_target_of_a_data_set_that_is_not_selected_is_named(config, target, message):
    selected = Selection(config)
    fine = ["-n", "results/demo/report.html", "results/studies/usr/x", "data/tables/llmfao/x", "comperdial", "tables"]
    check_targets(selected, fine)
    with pytest.raises(ComperdialError, match=message):
        check_targets(selected, [*fine, target])


# What tables are made of


def test_patterns_of_inputs_become_files():
    entry = {
        "inputs": {
            "about": "results/{dataset}/about.json",
            "scores": ["results/{dataset}/scores/{scorer}.parquet", "more.parquet"],
            "reported": "studies/x/reported.csv",
        }
    }
    inputs = inputs_of(entry, ["a", "b"], lambda dataset, what: [f"{what}_of_{dataset}"])
    assert inputs == {
        "about": ["results/a/about.json", "results/b/about.json"],
        "scores": [
            "results/a/scores/scorer_of_a.parquet",
            "results/b/scores/scorer_of_b.parquet",
            "more.parquet",
        ],
        "reported": ["studies/x/reported.csv"],
    }


def test_outputs_that_rows_and_contrasts_name_are_compared():
    study = {
        "metrics": {"f1": {"metric": "not a row", "output": "f1"}},
        "tables": {"t": {"sections": [{"rows": [{"metric": "bleu", "output": "bleu-4"}, {"metric": "not shown"}]}]}},
        "planned_contrasts": [{"metric": "rouge:rouge-l", "against": "f1:f1"}],
    }
    assert [*shown_outputs(study)] == ["bleu:bleu-4", "rouge:rouge-l", "f1:f1"]


def test_each_study_names_files_that_are_beside_it(config, tmp_path):
    selected = Selection(config)
    for name, study in {**selected.studies, DATASET: read_study(DATASET)}.items():
        for kind in ("tables", "figures"):
            for entry in (study.get(kind) or {}).values():
                files = inputs_of(entry, ["demo"], lambda *_: ["one"])
                beside = [path for paths in files.values() for path in paths if path.startswith("studies/")]
                assert [path for path in beside if not (tmp_path / path).exists()] == [], name


# Code

MODULE = '''"""What it is for."""

LIMIT = 3


def f(x: int) -> int:
    """Return a number."""
    return x * LIMIT
'''


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("What it is for", "Something else", False),
        ("Return a number", "Return another number", False),
        ("    return x", "    # Why.\n\n    return x", False),
        ("x * LIMIT", "(x *  LIMIT)", False),
        ("LIMIT = 3", "LIMIT = 4", True),
        ("x * LIMIT", "x + LIMIT", True),
        ("x: int", "x: int = 1", True),
    ],
)
def test_statements_make_stale_and_words_do_not(tmp_path, old, new, stale):
    hashes = []
    for text in (MODULE, MODULE.replace(old, new)):
        folder = tmp_path / str(len(hashes))
        (folder / "stats").mkdir(parents=True)
        (folder / "stats/a.py").write_text(text)
        (folder / "report.py").write_text("x = 1\n")
        hashes.append([code("stats", root=folder), code("stats/*.py", "report.py", root=folder)])
        assert code("report.py", root=folder) == code("report.py", root=tmp_path / "0")
    assert [before != after for before, after in zip(*hashes, strict=True)] == [stale, stale]


def test_other_files_and_their_names_count_as_they_are(tmp_path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/a.md").write_text("Rate it.")
    before = code("prompts", root=tmp_path)
    shutil.copytree(tmp_path / "prompts", tmp_path / "1/prompts")
    (tmp_path / "1/prompts/__pycache__").mkdir()
    (tmp_path / "1/prompts/__pycache__/a.pyc").write_text("made here")
    assert code("prompts", root=tmp_path / "1") == before
    shutil.copytree(tmp_path / "prompts", tmp_path / "2/prompts")
    (tmp_path / "2/prompts/a.md").rename(tmp_path / "2/prompts/b.md")
    assert code("prompts", root=tmp_path / "2") != before
    with pytest.raises(FileError, match="no such file or folder"):
        code("promts", root=tmp_path)
