"""Paths and texts of the configuration reach commands as single words, whatever a shell would make of them."""

import os
import re
import shlex
import subprocess

import pytest
import yaml

from comperdial.config.parameters import read_parameters
from comperdial.core.errors import ConfigError
from workdir import copy_repository

# An option, what a shell runs, expands or ends a word at, a wildcard of Snakemake, and what Python formats.
HOSTILE = "--help $(touch x) `touch x`; touch x # {wildcards} {dataset} {nothing} 'a' \"b\" \\ * ~ é"
FOLDER, AGENT = "$(touch x) 'folder'", "agent; touch x.py"
TARGETS = ("tables", "plots", "pages", "results/mine/scores/mine_recorded.parquet", "results/mine/curves.parquet")


@pytest.fixture(scope="module")
def hostile(root, tmp_path_factory):
    """Return a copy of the repository whose configuration is hostile wherever it may hold a free text."""
    workdir = copy_repository(root, tmp_path_factory.mktemp("hostile") / "repository")
    params = yaml.safe_load((workdir.path / "params.yaml").read_text())
    (workdir.path / FOLDER).mkdir()
    (workdir.path / AGENT).write_text("class UserAgent: ...\n")
    params["challenges"]["mine"] = {
        "title": HOSTILE,
        "target": HOSTILE,
        "dialogues": "data/demo/dialogues.json",
        "submissions": [FOLDER],
        "agents": {"mine": AGENT},
        "simulated": {"raters": "data/demo/raters.yaml", "seed": 1},
    }
    params["datasets"].append("mine")
    params["recorded"] = {"mine_recorded": {"dataset": "mine", "format": "table", "path": AGENT, "about": HOSTILE}}
    params["judging"]["variants"]["cpds-d"]["label"] = HOSTILE
    params["evaluation"] |= {"target": HOSTILE, "source": HOSTILE}
    params["metrics"]["f1"]["label"] = HOSTILE
    (workdir.path / "params.yaml").write_text(yaml.safe_dump(params))
    return workdir


def test_a_hostile_configuration_reaches_the_commands_as_it_is(hostile):
    planned = hostile.snakemake("-n", "-p", *TARGETS)
    commands = re.findall(r"^Shell command: (.*)$", planned, re.MULTILINE)
    assert len(commands) > 10, planned[-3000:]
    words = [word for command in commands for word in shlex.split(command)]
    assert {HOSTILE, FOLDER, AGENT} <= {*words}
    # Split by a shell, no word is a piece of a hostile one.
    assert not {"x", "touch", "x.py", "'folder'", "$(touch", "agent;"} & {*words}
    assert not (hostile.path / "x").exists()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("catalogue", "{x}.yaml", "catalogue: got"),
        ("personas.graph", "-graph.json", "personas.graph: got"),
        ("challenges.mine.submissions", ["a{b}"], r"challenges.mine.submissions\[0\]: got"),
        ("tables.systems", ["--outputs:x"], r"tables.systems\[0\]: got"),
        ("datasets", ["$(touch x)"], r"datasets\[0\]: got"),
        ("metrics", {"$(touch x)": {"kind": "f1"}}, "metrics.*: the name"),
    ],
)
def test_what_cannot_be_a_name_or_a_path_is_refused(hostile, setting, value, message):
    params = yaml.safe_load((hostile.path / "params.yaml").read_text())
    *parts, last = setting.split(".")
    section = params
    for part in parts:
        section = section[part]
    section[last] = value
    with pytest.raises(ConfigError, match=message):
        read_parameters(params)


# What the Makefile itself sets, and what a person gives in shell words of their own.
OPERATOR = {"PYTHON", "TORCH", "HASHES", "VENV", "INSTALL", "STAGE", "RUN", "PUBLISHED", "STUDIES"}


def test_no_name_is_text_of_a_recipe(root):
    """Names of files and data sets reach programs by the environment: make would expand them, and a shell run them."""
    makefile = (root / "Makefile").read_text()
    recipes = re.findall(r"^\t.*", makefile.replace("\\\n", " "), re.MULTILINE)
    used = set(re.findall(r"(?<!\$)\$[({]([\w-]+)", "\n".join(recipes))) - {"if"}
    assert used and used <= OPERATOR, used - OPERATOR
    exported = re.search(r"^export (DATASETS.*)$", makefile, re.MULTILINE)[1].split()
    for name in exported:
        assert f"override {name} := $(value {name})\n" in makefile, "make expands it on the way to the environment"


def test_make_runs_nothing_that_a_name_says(hostile):
    (hostile.path / ".venv/bin").mkdir(parents=True, exist_ok=True)
    (hostile.path / ".venv/.installed").touch()
    for name in ("a';touch x;'.csv", "b$(shell touch x).csv", HOSTILE):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        command = ["make", "-n", "reproduce", f"DATASETS={name}"]
        subprocess.run(command, cwd=hostile.path, env=environment, capture_output=True, check=False)
        assert not (hostile.path / "x").exists()
