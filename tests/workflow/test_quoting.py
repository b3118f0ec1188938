"""What configuration says reaches commands as the words that it is, whatever a shell would make of it."""

import ast
import re
import shlex
from collections import Counter

import pytest
import yaml
from snakemake.utils import QuotedFormatter, SequenceFormatter

from comperdial.cli import make_parser
from comperdial.config.parameters import read_parameters
from comperdial.errors import ConfigError
from workdir import copy_repository

# An option, what a shell runs, expands or ends a word at, what Snakemake takes for a wildcard, and what Python formats.
HOSTILE = "--help $(touch x) `touch x`; touch x # {wildcards} {dataset} {nothing} 'a' \"b\" \\ * ~ é"
# A number, and a command that functions put together, which tests of shards run.
SAFE = ("threads", "params.merge")


class _Anything:
    """Stands for what a rule has, each part of which is hostile."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, name):
        return self

    def __format__(self, form):
        return HOSTILE


def _commands(root):
    """Return the shell command of every rule there is, by file."""
    for path in [root / "Snakefile", *sorted((root / "workflow").rglob("*.smk"))]:
        text = path.read_text()
        blocks = re.findall(r"\n    shell:\n((?:        [f\"'].*\n)+)", f"{text}\n")
        assert len(blocks) == len(re.findall(r"\bshell\b\s*[:(]", text)), (
            f"{path.name}: a shell command written otherwise"
        )
        yield from ((path.name, ast.literal_eval(f"({block})")) for block in blocks)


def test_every_rule_quotes_all_that_its_command_is_told(root):
    formatter = SequenceFormatter(element_formatter=QuotedFormatter())
    rules = list(_commands(root))
    assert len(rules) > 40
    told = dict.fromkeys(["input", "output", "params", "wildcards", "log"], _Anything())
    for file, command in rules:
        for field in SAFE:
            command = command.replace(f"{{{field}}}", "safe")
        words = shlex.split(re.sub(r"\{[^}]*\}", "HOSTILE", command))
        expected = [word.replace("HOSTILE", HOSTILE) for word in words]
        assert shlex.split(formatter.format(command, **told)) == expected, f"{file}: {command}"


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
    params["figures"]["labels"] = {"f1:f1": HOSTILE}
    (workdir.path / "params.yaml").write_text(yaml.safe_dump(params))
    return workdir


def test_a_hostile_configuration_reaches_the_commands_as_it_is(hostile):
    planned = hostile.snakemake("-n", "-p")
    parser = make_parser()
    said = Counter()
    for line in re.findall(r"^Shell command: (?:OMP_NUM_THREADS=\d+ )?comperdial (.*)$", planned, re.MULTILINE):
        words = shlex.split(line)
        words = words[: next(n for n, word in enumerate(words) if re.fullmatch("2?>", word))]
        # Ends the test where the parser does not take them.
        options = vars(parser.parse_args(words))
        said.update(
            name for name, value in options.items() if HOSTILE in (value, *(value if isinstance(value, list) else ()))
        )
        said.update(name for name, value in options.items() if isinstance(value, dict) and HOSTILE in value.values())
    assert {"title", "target", "main_target", "detail_target", "source", "about", "labels", "titles"} <= set(said), said
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
