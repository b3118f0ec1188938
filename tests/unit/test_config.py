"""YAML files that are wrong in ways that PyYAML lets pass, or fails on without saying where."""

import copy
import subprocess
import sys

import pytest
import yaml

from comperdial.challenge.simulation import read_raters
from comperdial.config import line_of, load_yaml
from comperdial.config.checking import Lines
from comperdial.config.parameters import json_schema, read_parameters
from comperdial.config.registry import completed, registered
from comperdial.config.studies import with_studies
from comperdial.core.errors import ComperdialError, ConfigError, FileError, UnknownNameError
from comperdial.data.catalogue import load_catalogue, read_lock
from comperdial.judges.prices import find_price


@pytest.mark.parametrize(
    "read", [load_yaml, load_catalogue, read_lock, read_raters, lambda path: find_price(path, "m")]
)
def test_a_key_that_is_given_twice_is_refused_by_name_and_line(tmp_path, read):
    path = tmp_path / "file.yaml"
    path.write_text("gpt-4:\n- {from: 2024-01-01, input: 10,\n   output: 30, source: s, input: 0}\n")
    with pytest.raises(FileError, match=r"file\.yaml, line 3: .*the key 'input' is given twice"):
        read(path)


def test_merged_keys_may_be_given_again(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: [*b, *a], y: 4}\n")
    assert load_yaml(path)["c"] == {"x": 3, "y": 4}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n  b: 1\n c: 2\n", 3, "not valid YAML"),
        ("a: 1\nb: {from: 2024-02-30}\n", 2, "'2024-02-30': day is out of range"),
        ("a: 1\nb: " + "9" * 5000, 2, "for integer string conversion"),
        ("a: 1\nb: !!python/name:os.system x\n", 2, "could not determine a constructor"),
        ("a: 1\nnull: 2\n", 2, "the key 'null' is not text: put it in quotes"),
        ("a: 1\n.nan: 2\n", 2, r"the key '\.nan' is not text"),
        ("a: 1\nlabels: {Yes: 1, No: 0}\n", 2, "the key 'Yes' is not text"),
        ("a: 1\n? [b]\n: 2\n", 2, "is not text"),
    ],
)  # fmt: skip
def test_the_line_of_what_cannot_be_read_is_named(tmp_path, text, line, message):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=rf"file\.yaml, line {line}: .*{message}"):
        load_yaml(path)


@pytest.mark.parametrize("text", ["a: " + "[" * 5000, 'a: "\\UFFFFFFFF"', "a: x\0y"])
def test_what_breaks_the_parser_is_one_message(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"file\.yaml.*not valid YAML"):
        load_yaml(path)


def test_messages_are_short_and_control_no_terminal():
    error = ComperdialError("it is " + "x" * 10_000, where="a\x1b[31m\n\u202efile", hint="Paste:\na: 1\x07")
    message = str(error)
    assert len(message) < 700
    assert message.startswith(r"a\x1b[31m\n\u202efile: it is xxx")
    assert message.endswith("Paste:\na: 1\\x07")
    assert error.problem == "it is " + "x" * 10_000


# --- what params.yaml may hold ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped(root):
    return completed(load_yaml(root / "params.yaml"))


def test_the_shipped_configuration_is_read_as_it_stands(root, shipped):
    parameters = read_parameters(shipped)
    assert parameters.metrics["bertscore"].options == {"model": "roberta-large", "layer": 17}
    assert parameters.metrics["f1_raw"].datasets == shipped["metrics"]["f1_raw"]["datasets"]
    sent = parameters.judges["gpt-4"].parameters
    assert repr(sent) == "{'temperature': 1.0, 'max_tokens': 256}", "a score's signature has them word for word"
    for path in (root / "tests/configs").glob("*.yaml"):
        read_parameters({**shipped, **load_yaml(path)})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"kind": "f1", "main": "f1", "label": "Word F1"}),
        ({"text": "raw"}, {"kind": "f1", "main": "f1", "label": "Word F1", "text": "raw"}),
        ({"kind": "bleu"}, {"kind": "bleu"}),
    ],
)
def test_a_name_alone_is_the_packages_entry_and_keys_change_it(given, expected):
    assert completed({"metrics": {"f1": given}}) == {"metrics": {"f1": expected}}


def test_a_name_that_the_package_does_not_have_needs_an_entry_of_its_own(shipped):
    with pytest.raises(ConfigError, match=r"metrics\.f2: got null; expected a mapping"):
        read_parameters({**shipped, "metrics": {"f2": None}})


def test_all_entries_of_the_package_can_be_chosen(shipped):
    chosen = {key: dict.fromkeys(registered(key)) for key in ("metrics", "recorded", "recorded_judges", "training")}
    assert all(chosen.values())
    read_parameters({**shipped, **chosen})


def test_the_schema_for_editors_is_that_of_the_models(root):
    assert (root / "params.schema.json").read_text() == json_schema(), "`make params.schema.json` writes it"
    assert (root / "params.yaml").read_text().startswith("# yaml-language-server: $schema=params.schema.json\n")


def test_reading_the_configuration_imports_nothing_that_takes_long():
    code = "import comperdial.config.parameters, sys; sys.exit(bool({'numpy', 'pandas', 'snakemake'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_said_of_a_study_is_checked_with_what_it_says_itself(shipped):
    own = {"perturbed": {"datasets": ["demo"], "strategies": "al", "sample": 3, "seed": 1}}
    with pytest.raises(ConfigError, match=r"perturbed\.strategies: got 'al'; expected `all`, or a list"):
        with_studies({**shipped, "studies": {"llm_evaluators": own}})
    with pytest.raises(UnknownNameError, match=r"unknown study 'usrs'.*Did you mean 'usr'"):
        with_studies({**shipped, "studies": {"usrs": {}}})


def test_a_study_asks_nothing_of_other_data_sets_and_no_judge_that_there_is_not(shipped):
    judging = {**shipped["judging"], "judges": {"default": ["mine"]}}
    judging.pop("asks")
    merged = with_studies({**shipped, "judges": {"mine": {"service": "rules"}}, "judging": judging})["judging"]
    assert merged["asks"]["default"] == list(shipped["judging"]["variants"])
    assert "explicit-turn" in merged["asks"]["llm_evaluators"]
    assert "llm_evaluators" not in merged["judges"]


GONE = object()
MISTAKES = [
    ("judging.budget", "ten", "judging.budget: got 'ten'; expected US dollars, 0 or more"),
    ("judging.bugdet", 5, "judging.bugdet: unknown key 'bugdet'; .*Did you mean 'budget'"),
    ("dataset", [], "dataset: unknown key 'dataset'; .*Did you mean 'datasets'"),
    ("datasets", [], "datasets: got an empty list"),
    ("datasets", ["demo", "demo"], "datasets: 'demo' is given twice"),
    ("metrics.f1.main", 5, r"metrics\.f1\.main: got 5; expected the name of an output"),
    ("evaluation.target", GONE, "evaluation: no 'target'"),
    ("evaluation.levels", ["turn", "dialog"], r"evaluation\.levels\[1\]: got 'dialog'; expected 'turn', 'dialogue' or"),
    ("evaluation.resamples", 1000.0, r"evaluation\.resamples: got 1000\.0; expected a whole number"),
    ("evaluation.resamples", True, r"evaluation\.resamples: got True"),
    ("agreement", [1], "agreement: got a list; expected a mapping"),
    ("metrics.mine", {"knd": "f1"}, r"metrics\.mine: no 'kind'"),
    ("metrics.F1", {"kind": "f1"}, "the name 'F1'; expected lower-case letters"),
    ("metrics.f1.datasets", None, r"metrics\.f1\.datasets: got null; expected a list"),
    ("own_data.mine", {"file": "mine.docx"}, r"own_data\.mine\.file: got 'mine\.docx'; expected a file \.csv"),
    ("challenges.demo.comperdial", "x", r"challenges\.demo: it has comperdial, dialogues, .*expected `dialogues` with"),
    ("challenges.demo.agents", None, r"challenges\.demo\.agents: got null; expected a mapping"),
    ("recorded.unieval_recorded.path", "x.csv", r"recorded\.unieval_recorded: both of `source` and `path`"),
    ("recorded.unieval_recorded.about", "a | b", r"recorded\.unieval_recorded\.about: .*without a bar"),
    ("judging.variants.cpds-s.samples", [1, 3], r"variants\.cpds-s\.samples: got \[1, 3\]; .*largest first"),
]


@pytest.mark.parametrize(("setting", "value", "message"), MISTAKES, ids=[f"{s}-{v!s:.20}" for s, v, _ in MISTAKES])
def test_the_first_thing_wrong_is_named_with_its_line(tmp_path, shipped, setting, value, message):
    config, path = copy.deepcopy(shipped), tmp_path / "params.yaml"
    *parents, key = setting.split(".")
    section = config
    for parent in parents:
        section = section.setdefault(parent, {}) if section.get(parent, 1) is not None else section
    section.pop(key, None) if value is GONE else section.update({key: value})
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    with pytest.raises(ConfigError, match=rf"^{path}, line \d+(, |: ).*{message}"):
        read_parameters(config, lines=Lines(path))


@pytest.mark.parametrize(
    ("keys", "line"),
    [("a", 1), ("by", 3), ("b?", 2), ("c1", 6), ("c1z", 7), ("c1x", 6), ("c9", 4), ("?", 1)],
)
def test_the_line_of_a_setting_or_of_what_lacks_it(tmp_path, keys, line):
    path = tmp_path / "file.yaml"
    path.write_text("a: 1\nb: &b {x: 1,\n  y: 2}\nc:\n- 1\n- {<<: *b,\n   z: 3}\n")
    assert line_of(path, [int(key) if key.isdecimal() else key for key in keys]) == line


def test_what_was_given_on_the_command_line_has_no_line(tmp_path, shipped):
    path, other = tmp_path / "params.yaml", tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(shipped))
    other.write_text("# ours\nfigures: {resamples: few}\n")
    lines = Lines(path, other)
    given = shipped | {"figures": {**shipped["figures"], "resamples": "few"}}
    with pytest.raises(ConfigError, match=rf"^{other}, line 2, figures\.resamples: got 'few'"):
        read_parameters(given, lines=lines)
    given["figures"]["resamples"] = "fewer"
    with pytest.raises(ConfigError, match=r"^--config, figures\.resamples: got 'fewer'"):
        read_parameters(given, lines=lines)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("key", "sk-my-own-secret", "got a value that is not shown .*expected the name of an environment variable"),
        ("base_url", "ftp://me:my-own-secret@here", "got a value that is not shown"),
        ("parameters", {"api_key": "my-own-secret"}, "'api_key' looks like a secret"),
        ("parameters", {"extra": [{"token": "my-own-secret"}]}, "'token' looks like a secret"),
        ("model", ["sk-my-own-secret"], "got a list; expected a text"),
        ("timeout", "sk-my-own-secret", "got a text; expected a number above 0"),
    ],
)
def test_what_may_be_a_key_is_never_shown(shipped, setting, value, message):
    judges = {**shipped["judges"], "gpt-4": {**shipped["judges"]["gpt-4"], setting: value}}
    with pytest.raises(ConfigError, match=rf"judges\.gpt-4\.{setting}: {message}") as caught:
        read_parameters({**shipped, "judges": judges})
    assert "my-own-secret" not in str(caught.value)
