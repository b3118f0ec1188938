"""What configuration says reaches commands as the words that it is, whatever a shell would make of it."""

import ast
import json
import os
import re
import shlex
import subprocess

import pytest
import yaml
from snakemake.utils import QuotedFormatter, SequenceFormatter

from comperdial.config.parameters import read_parameters
from comperdial.core.errors import ConfigError
from workdir import copy_repository

# An option, what a shell runs, expands or ends a word at, what Snakemake takes for a wildcard, and what Python formats.
HOSTILE = "--help $(touch x) `touch x`; touch x # {wildcards} {dataset} {nothing} 'a' \"b\" \\ * ~ é"


class _Anything:
    """Stands for what a rule has, each part of which is hostile."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, name):
        return self

    def __format__(self, form):
        return HOSTILE


def test_every_command_quotes_all_that_it_is_told(root):
    formatter = SequenceFormatter(element_formatter=QuotedFormatter())
    text = "".join(path.read_text() for path in [root / "Snakefile", *sorted((root / "workflow").rglob("*.smk"))])
    said = re.findall(r"\bshell:\s*(.*)", text)
    # Named once, as a text.
    commands = [ast.literal_eval(re.search(rf'^{name} = (".*")$', text, re.MULTILINE)[1]) for name in {*said}]
    assert len(said) >= 4 and commands
    told = dict.fromkeys(["input", "output", "params", "wildcards", "log"], _Anything())
    for command in commands:
        words = shlex.split(re.sub(r"\{[^}]*\}", "HOSTILE", command))
        expected = [word.replace("HOSTILE", HOSTILE) for word in words]
        assert shlex.split(formatter.format(command, **told)) == expected, command


# What whoever runs `make` says in shell words of their own, and what the Makefile itself sets.
OPERATOR = {"PYTHON", "TORCH", "HASHES", "VENV", "INSTALL", "STAGE", "RUN", "PUBLISHED", "STUDIES"}


def test_no_name_is_text_of_a_recipe(root):
    """Names of files and data sets reach programs by the environment: make would expand them, and a shell run them."""
    makefile = (root / "Makefile").read_text()
    recipes = re.findall(r"^\t.*", makefile.replace("\\\n", " "), re.MULTILINE)
    used = set(re.findall(r"(?<!\$)\$[({]([\w-]+)", "\n".join(recipes))) - {"if"}
    assert used and used <= OPERATOR, used - OPERATOR
    assert not re.search(r"(?<!\$)\$\((shell|eval|call|file|guile)\b", makefile)
    exported = re.search(r"^export (DATASETS.*)$", makefile, re.MULTILINE)[1].split()
    for name in exported:
        assert f"override {name} := $(value {name})\n" in makefile, "make expands it on the way to the environment"


@pytest.mark.parametrize("goal", [["reproduce"], ["-n", "reproduce"]])
def test_make_runs_nothing_that_a_name_says(hostile, goal):
    (hostile.path / ".venv/bin").mkdir(parents=True, exist_ok=True)
    (hostile.path / ".venv/.installed").touch()
    for name in ("a';touch x;'.csv", "b$(shell touch x).csv", HOSTILE):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        subprocess.run(
            ["make", *goal, f"DATASETS={name}"], cwd=hostile.path, env=environment, capture_output=True, check=False
        )
        assert not (hostile.path / "x").exists()


@pytest.fixture(scope="module")
def hostile(root, tmp_path_factory):
    """Return a copy of the repository whose configuration is hostile wherever it may hold a free text."""
    workdir = copy_repository(root, tmp_path_factory.mktemp("hostile") / "repository")
    params = yaml.safe_load((workdir.path / "params.yaml").read_text())
    folder, agents = "$(touch x) 'folder'", "agents; touch x.yaml"
    (workdir.path / folder).mkdir()
    (workdir.path / agents).write_text((workdir.path / "data/demo/agents.yaml").read_text())
    params["challenges"]["mine"] = {
        "title": HOSTILE,
        "target": HOSTILE,
        "dialogues": "data/demo/dialogues.json",
        "submissions": [folder],
        "agents": agents,
        "simulated": {"raters": "data/demo/raters.yaml", "seed": 1},
    }
    params["datasets"].append("mine")
    params["recorded"] = {"mine_recorded": {"dataset": "mine", "format": "table", "path": agents, "about": HOSTILE}}
    params["judging"]["variants"]["cpds-d"]["label"] = HOSTILE
    params["evaluation"] |= {"target": HOSTILE, "source": HOSTILE}
    params["metrics"]["f1"]["label"] = HOSTILE
    (workdir.path / "params.yaml").write_text(yaml.safe_dump(params))
    return workdir


def _within(value):
    return list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def test_a_hostile_configuration_reaches_the_commands_as_it_is(hostile):
    planned = hostile.snakemake("-n", "-p", "tables", "plots")
    lines = re.findall(r"^Shell command: (?:OMP_NUM_THREADS=\d+ )?comperdial (do .*)$", planned, re.MULTILINE)
    said = set()
    for line in lines:
        command, job, arrow, *_ = shlex.split(line)
        assert (command, arrow) == ("do", ">")
        settings = json.loads(job)["settings"]
        said |= {name for name, value in settings.items() if HOSTILE in (value, *_within(value))}
    assert {"title", "target", "main_target", "source", "about", "labels"} <= said, said
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
def test_what_cannot_be_a_name_or_a_path_is_refused(hostile, setting, value, message, tmp_path):
    params = yaml.safe_load((hostile.path / "params.yaml").read_text())
    *parts, last = setting.split(".")
    section = params
    for part in parts:
        section = section[part]
    section[last] = value
    with pytest.raises(ConfigError, match=message):
        read_parameters(params)
