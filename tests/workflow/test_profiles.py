"""The profiles, and the table `resources` of params.yaml: what jobs get, and that it changes nothing else."""

import os
import re
import subprocess

import pytest
import yaml

# Each asks snakemake of the plugins of the extra `cluster`.
pytestmark = pytest.mark.ci

SHARD = "results/shards/scores/usr_persona/{}/1-of-2.parquet"


@pytest.fixture
def tabled(fresh, root):
    """Return the mini configuration with a table of resources."""
    text = (root / "tests/configs/slurm.yaml").read_text()
    (fresh.path / "params.yaml").write_text((fresh.path / "params.yaml").read_text() + text)
    return fresh


def requests(workdir, target, *options):
    """Return what is asked of Slurm at each attempt to make something: one that takes no job notes it down."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra `cluster` is not installed")
    workdir.snakemake("data/tables/usr_persona/responses.parquet")
    programs = workdir.path.parent / "bin"
    programs.mkdir()
    for name in ("sinfo", "squeue", "scontrol", "sacct", "sbatch"):
        refuse = f'echo "$@" >> {programs}/asked; exit 1' if name == "sbatch" else "exit 0"
        (programs / name).write_text(f"#!/bin/sh\n{refuse}\n")
        (programs / name).chmod(0o755)
    said = workdir.run(
        *("snakemake", "--workflow-profile", "profiles/slurm", "--slurm-no-account"),
        *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "1", target, *options),
        check=False,
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
    ).stdout
    assert (programs / "asked").exists(), said[-4000:]
    asked = (programs / "asked").read_text().splitlines()
    numbers = [re.search(r"-t (\d+) --mem (\d+) .*--cpus-per-task=(\d+)", line) for line in asked]
    return [tuple(map(int, found.groups())) for found in numbers]


@pytest.mark.parametrize("name", ["slurm", "kubernetes"])
def test_a_profile_has_options_that_snakemake_knows(root, name):
    pytest.importorskip(f"snakemake_executor_plugin_{name}", reason="the extra `cluster` is not installed")
    profile = yaml.safe_load((root / f"profiles/{name}/config.yaml").read_text())
    plugin = {"PYTHONPATH": str(root / "profiles/kubernetes/plugin")}
    usage = subprocess.run(["snakemake", "--help"], env=os.environ | plugin, capture_output=True, text=True).stdout
    known = set(re.findall(r"--([a-z][a-z-]+)", usage))
    assert set(profile) <= known
    # What makes a pulled or touched file stale is the same everywhere.
    default = yaml.safe_load((root / "profiles/default/config.yaml").read_text())
    assert {key: profile[key] for key in ("max-checksum-file-size", "rerun-incomplete")} == {
        key: default[key] for key in ("max-checksum-file-size", "rerun-incomplete")
    }


def test_a_rule_without_an_entry_of_its_metric_gets_the_default(tabled):
    assert requests(tabled, SHARD.format("f1"), "--retries", "0") == [(10, 700, 1)]


def test_a_metric_s_entry_goes_first_and_a_retry_gets_twice_as_much(tabled):
    assert requests(tabled, SHARD.format("bleu_raw")) == [(10, 800, 1), (20, 1600, 1), (40, 3200, 1)]


def test_the_command_line_goes_before_the_table(tabled):
    options = ("--retries", "0", "--set-resources", "score_shard:mem_mb=50", "--set-threads", "score_shard=2")
    assert requests(tabled, SHARD.format("bleu_raw"), *options) == [(10, 50, 2)]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("rules: {scor_shard: {mem_mb: 1}}", "unknown rule 'scor_shard'.*'score_shard'"),
        ("services: {transformer: {mem_mb: 1}}", "unknown service 'transformer'.*'transformers'"),
        ("default: {mem_mb: lots}", "mem_mb.*whole number of megabytes"),
    ],
)
def test_what_the_table_says_wrong_is_one_error(fresh, entry, problem):
    (fresh.path / "params.yaml").write_text((fresh.path / "params.yaml").read_text() + f"resources: {{{entry}}}\n")
    said = fresh.snakemake("--dry-run", "tables", check=False)
    assert re.search(f"Wrong configuration.*resources.*{problem}", said), said
    assert "Traceback" not in said


def test_a_metric_that_runs_a_model_and_has_no_entry_gets_all_cores_unless_its_rule_says(tabled):
    """As before there was a table: two large models side by side may not fit into a machine's memory."""
    metric = "  minilm: {kind: embedding, model: all-MiniLM-L6-v2}\n"
    tabled.edit("params.yaml", "metrics:\n  f1:", f"metrics:\n{metric}  f1:")
    asked = ("--dry-run", "--printshellcmds", "--cores", "7", SHARD.format("minilm"), SHARD.format("f1"))
    # A dry run tells a command, and how many threads it gets only where the command does.
    tabled.edit("workflow/rules/jobs.smk", 'DO = "comperdial', 'DO = "echo {threads} && comperdial')

    def threads():
        return sorted(re.findall(r'echo (\d+) && .*"metric":"([\w-]+)"', tabled.snakemake(*asked)))

    assert threads() == [("1", "f1"), ("7", "minilm")]
    tabled.edit("params.yaml", "score_shard: {", "score_shard: {cores: 3, ")
    assert threads() == [("3", "f1"), ("3", "minilm")]
