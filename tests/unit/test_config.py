"""params.yaml and studies: what they may hold, what they select, and which edits of code make results stale."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.parameters import json_schema, read_parameters
from comperdial.config.registry import completed, registered
from comperdial.config.studies import DATASET, inputs_of, read_study, shown_outputs
from comperdial.core.code import code
from comperdial.core.errors import ComperdialError, ConfigError, FileError
from comperdial.selection import Selection, check_targets, describe

# YAML


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  b: 1\n c: 2\n", ", line 3: .*not valid YAML"),
        ("a: 1\nb: !!python/name:os.system x\n", ", line 2: .*could not determine a constructor"),
        ("a: 1\nlabels: {Yes: 1, No: 0}\n", ", line 2: .*the key 'Yes' is not text"),
        ("a:\n- {b: 1, c: 2,\n   b: 3}\n", ", line 3: .*the key 'b' is given twice"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"file\.yaml" + message):
        load_yaml(path)


def test_messages_are_short_and_free_of_control_characters():
    error = ComperdialError("it is " + "x" * 10_000, where="a\x1b[31m\n\u202efile", hint="Paste:\na: 1\x07")
    message = str(error)
    assert len(message) < 700 and message.endswith("Paste:\na: 1\\x07")
    assert message.startswith(r"a\x1b[31m\n\u202efile: it is xxx")


# What params.yaml may hold


@pytest.fixture(scope="module")
def shipped(root):
    return completed(load_yaml(root / "params.yaml"))


def test_shipped_configuration_and_package_entries_are_read(root, shipped):
    parameters = read_parameters(shipped)
    assert parameters.metrics["bertscore"].options == {"model": "roberta-large", "layer": 17}
    sent = parameters.judges["gpt-4"].parameters
    assert repr(sent) == "{'temperature': 1.0, 'max_tokens': 256}", "a score's signature has them word for word"
    for path in (root / "tests/configs").glob("*.yaml"):
        read_parameters({**shipped, **load_yaml(path)})
    changed = completed({"metrics": {"f1": {"text": "raw"}, "x": {"kind": "f1"}}})["metrics"]
    assert changed == {"f1": {"kind": "f1", "main": "f1", "label": "Word F1", "text": "raw"}, "x": {"kind": "f1"}}
    chosen = {key: dict.fromkeys(registered(key)) for key in ("metrics", "recorded", "recorded_judges", "training")}
    assert all(chosen.values())
    read_parameters({**shipped, **chosen})
    assert (root / "params.schema.json").read_text() == json_schema(), "`make params.schema.json` writes it"


def with_(config, setting, value):
    """Return a configuration with another value of `section/name/option`."""
    made = copy.deepcopy(config)
    *parts, last = setting.split("/")
    section = made
    for part in parts:
        section = section.setdefault(part, {})
    section[last] = value
    return made


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("judging/budget", "ten", "judging.budget: got 'ten'; expected US dollars, 0 or more"),
        ("judging/bugdet", 5, "judging.bugdet: unknown key 'bugdet'; .*Did you mean 'budget'"),
        ("judging/variants/cpds-s/samples", [1, 3], r"variants\.cpds-s\.samples: got \[1, 3\]; .*largest first"),
        ("datasets", ["demo", "demo"], "datasets: 'demo' is given twice"),
        ("personas/graph", "-graph.json", "personas.graph: got"),
        ("metrics/f1/main", 5, r"metrics\.f1\.main: got 5; expected the name of an output"),
        ("metrics/mine", {"knd": "f1"}, r"metrics\.mine: no 'kind'"),
        ("evaluation/resamples", 1000.0, r"evaluation\.resamples: got 1000\.0; expected a whole number"),
        ("own_data/mine", {"file": "mine.docx"}, r"own_data\.mine\.file: got 'mine\.docx'; expected a file \.csv"),
        (
            "challenges/demo/comperdial",
            "x",
            r"challenges\.demo: it has comperdial, dialogues, .*expected `dialogues` with",
        ),
        ("recorded/unieval_recorded/path", "x.csv", r"recorded\.unieval_recorded: both of `source` and `path`"),
        # What may be a key is never shown.
        (
            "judges/gpt-4/key",
            "sk-own-secret",
            "got a value that is not shown .*expected the name of an environment var",
        ),
        ("judges/gpt-4/base_url", "ftp://me:own-secret@here", "got a value that is not shown"),
        ("judges/gpt-4/parameters", {"api_key": "own-secret"}, "'api_key' looks like a secret"),
        ("judges/gpt-4/model", ["own-secret"], "got a list; expected a text"),
    ],
)
def test_the_first_mistake_is_named_with_its_line(tmp_path, shipped, setting, value, message):
    config, path = with_(shipped, setting, value), tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    with pytest.raises(ConfigError, match=rf"^{path}, line \d+(, |: ).*{message}") as caught:
        read_parameters(config, lines=Lines(path))
    assert "own-secret" not in str(caught.value)


def test_mistakes_in_other_files_or_command_line_are_located(tmp_path, shipped):
    path, other = tmp_path / "params.yaml", tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(shipped))
    other.write_text("# ours\nfigures: {resamples: few}\n")
    for value, where in (("few", f"{other}, line 2"), ("fewer", "--config")):
        given = shipped | {"figures": {**shipped["figures"], "resamples": value}}
        with pytest.raises(ConfigError, match=rf"^{where}, figures\.resamples: got '{value}'"):
            read_parameters(given, lines=Lines(path, other))


# What is selected

OWN = "system,history,response,dimension,rating\na,hi,ho,warmth,2\nb,hi,hello there,warmth,3\n"


@pytest.fixture
def config(root, shipped, tmp_path, monkeypatch):
    """Return the shipped configuration, read in a folder with a user's file, without results and without models."""
    for name in ("data", "src"):
        (tmp_path / name).symlink_to(root / name)
    shutil.copytree(root / "studies", tmp_path / "studies")
    for name in ("mine.csv", "studies.csv"):
        (tmp_path / name).write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))
    return copy.deepcopy(shipped)


def test_data_sets_their_metrics_and_unavailable_parts(config, root, tmp_path):
    selected = Selection(config)
    assert selected.chosen == ["demo"] and selected.simulated == ["demo"]
    assert selected.levels["demo"] == ["turn", "dialogue"]
    assert {"f1", "rouge", "cpds-s_rules"} <= {*selected.scorers("demo")}
    assert "bertscore" not in selected.scorers("demo")
    assert selected.not_run("demo")["bertscore"].startswith("model 'roberta-large' is not present")
    (tmp_path / "My own.TSV").write_text(OWN.replace(",", "\t"))
    selected = Selection(with_(config, "datasets", ["demo", "My own.TSV"]))
    assert selected.own["my_own"] == {"file": "My own.TSV", "title": "My own"} and "my_own" not in selected.public
    assert selected.levels["my_own"] == ["turn"] and selected.source("my_own") == "human"
    for dataset in ("demo", "usr_persona", "my_own"):
        about = describe(selected, dataset)
        assert {name.rpartition(":")[0] for name in about["outputs"]} <= {*about["scorers"]}
        assert not [name for name in (str(tmp_path), str(root), sys.prefix) if name in json.dumps(about)]


def test_study_metric_scores_only_the_studys_data_sets(config, tmp_path):
    (tmp_path / "studies/mine").mkdir()
    file = tmp_path / "studies/mine/study.yaml"
    file.write_text(
        "title: Mine\ndatasets: [usr_persona]\nmetrics: {f1: null, f1_mine: {kind: f1, main: f1, label: Mine}}\n"
    )
    selected = Selection(config)
    assert {"f1", "f1_mine"} <= {*selected.scorers("usr_persona")} and "f1_mine" not in selected.scorers("demo")
    for text, message in (
        ("metrics: {f2: null}", "study mine, metrics: unknown metric 'f2'"),
        ("metrics: {f1: {kind: f1, text: raw}}", "the name 'f1' is already used"),
        ("dataset: []", "Did you mean 'datasets'?"),
        ("tables: {mine: {title: Mine, coeficients: [pearson]}}", "Did you mean 'coefficients'?"),
    ):
        file.write_text(f"title: Mine\n{text}")
        with pytest.raises(ComperdialError, match=re.escape(message)):
            Selection(config)


def test_selecting_imports_no_heavy_library(root, tmp_path):
    """Snakemake selects at each start, and for each job that it starts on a cluster."""
    script = (
        "import sys; from comperdial.selection import Selection, describe; s = Selection.read(); describe(s, 'demo'); "
        "print(*sorted({'torch', 'transformers', 'matplotlib', 'scipy.stats', 'sklearn', 'nltk'} & sys.modules.keys()))"
    )
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "COMPERDIAL_MODELS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("datasets", ["demon"], "unknown dataset 'demon'"),
        ("datasets", ["comperdial"], "Run `comperdial fetch comperdial` once"),
        ("datasets", ["studies.csv"], "'studies' is a folder of results"),
        ("metrics/f1", {"kind": "f2"}, "unknown metric 'f2'"),
        ("metrics/f1", {"kind": "f1", "txt": "raw"}, "metrics.f1: unknown option of metric 'f1': 'txt'"),
        ("own_data", {"mine": {"file": "mine.csv", "target": "warmness"}}, "target: unknown dimension 'warmness'"),
        ("challenges/usr_persona", {"title": "T", "comperdial": "x"}, "two data sets are called 'usr_persona'"),
        ("challenges/demo/agents", {"x": "agent.py:Mine"}, "agent.py: no such file or folder"),
    ],
)
def test_invalid_configuration_gives_one_message(config, setting, value, message):
    changed = with_(config, setting, value)
    if setting == "own_data":
        changed["datasets"] = ["mine", "demo"]
    with pytest.raises(ComperdialError) as raised:
        Selection(changed)
    assert message in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("results/demon/report.html", "results/demon/report.html: unknown dataset 'demon'.*Did you mean 'demo'"),
        ("results/ieval/report.html", "ieval is not selected.*Run `snakemake --config 'datasets=.ieval.' -- resul"),
    ],
)
def test_target_for_unselected_data_set_is_reported(config, target, message):
    fine = ["-n", "results/demo/report.html", "results/studies/usr/x", "data/tables/llmfao/x", "comperdial", "tables"]
    check_targets(Selection(config), fine)
    with pytest.raises(ComperdialError, match=message):
        check_targets(Selection(config), [*fine, target])


def test_study_files_exist_and_row_outputs_are_compared(config, tmp_path):
    for study in [*Selection(config).studies.values(), read_study(DATASET)]:
        entries = [entry for kind in ("tables", "figures") for entry in (study.get(kind) or {}).values()]
        inputs = [files for entry in entries for files in inputs_of(entry, ["demo"], lambda *_: ["x"]).values()]
        paths = [path for files in inputs for path in files if path.startswith("studies/")]
        assert [path for path in paths if not (tmp_path / path).exists()] == []
    rows = [{"metric": "bleu", "output": "bleu-4"}, {"metric": "not shown"}]
    contrasts = [{"metric": "rouge:rouge-l", "against": "f1:f1"}]
    study = {"tables": {"t": {"sections": [{"rows": rows}]}}, "planned_contrasts": contrasts}
    assert [*shown_outputs(study)] == ["bleu:bleu-4", "rouge:rouge-l", "f1:f1"]


# Code


def test_edited_code_makes_results_stale_but_edited_text_does_not(tmp_path):
    def hashed(text, name="a.py"):
        root = tmp_path / str(len([*tmp_path.iterdir()]))
        (root / "stats/__pycache__").mkdir(parents=True)
        (root / "stats/__pycache__/a.pyc").write_text(root.name)
        (root / "stats" / name).write_text(text)
        return code("stats", root=root), code("stats/*", root=root)

    text = 'LIMIT = 3\n\n\ndef f(x: int) -> int:\n    """Return a number."""\n    return x * LIMIT\n'
    before = hashed(text)
    assert hashed(text.replace("a number", "another")) == hashed(text.replace("LIMIT\n", "LIMIT  # Why.\n")) == before
    assert not {*hashed(text.replace("LIMIT = 3", "LIMIT = 4"))} & {*before}
    # Other files count as they are, with their names.
    assert len({hashed("Rate it.", "a.md"), hashed("Rate it. ", "a.md"), hashed("Rate it.", "b.md")}) == 3
    with pytest.raises(FileError, match="no such file or folder"):
        code("promts", root=tmp_path)
