"""The profiles: options that Snakemake knows, rules that exist, and the resources requested from Slurm."""

import os
import re
import subprocess

import pytest
import yaml

# Each needs the plugins of the extra `cluster`.
pytestmark = pytest.mark.ci

CLUSTERS = ("slurm", "kubernetes")


def profile_of(root, name):
    return yaml.safe_load((root / f"profiles/{name}/config.yaml").read_text())


@pytest.mark.parametrize("name", CLUSTERS)
def test_profile_options_are_known_to_snakemake(root, name):
    pytest.importorskip(f"snakemake_executor_plugin_{name}", reason="the extra `cluster` is not installed")
    profile = profile_of(root, name)
    environment = os.environ | {"PYTHONPATH": str(root / "profiles/kubernetes/plugin")}
    usage = subprocess.run(["snakemake", "--help"], env=environment, capture_output=True, text=True).stdout
    assert set(profile) <= set(re.findall(r"--([a-z][a-z-]+)", usage))
    # What makes a pulled or touched file stale, and how many judges ask at a time, is the same everywhere.
    default = profile_of(root, "default")
    for key in ("max-checksum-file-size", "rerun-incomplete", "resources"):
        assert profile[key] == default[key]


def test_profiles_name_rules_that_exist(root):
    """Snakemake ignores a rule that it does not know."""
    text = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    rules = set(re.findall(r"^(?:rule|use rule \w+ as) (\w+)", text, flags=re.MULTILINE))
    for name in CLUSTERS:
        profile = profile_of(root, name)
        named = {*profile["set-resources"], *profile["set-threads"], *(one.split("=")[0] for one in profile["groups"])}
        assert named <= rules, named - rules


def test_job_requests_resources_from_profile_and_command_line(fresh):
    """A stand-in for Slurm, which takes no job, notes what is asked for at each attempt."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra `cluster` is not installed")
    fresh.snakemake("data/tables/usr_persona/responses.parquet")
    programs = fresh.path.parent / "bin"
    programs.mkdir()
    for name in ("sinfo", "squeue", "scontrol", "sacct", "sbatch"):
        refuse = f'echo "$@" >> {programs}/asked; exit 1' if name == "sbatch" else "exit 0"
        (programs / name).write_text(f"#!/bin/sh\n{refuse}\n")
        (programs / name).chmod(0o755)
    said = fresh.run(
        *(
            "snakemake",
            "--workflow-profile",
            "profiles/slurm",
            "--slurm-no-account",
            "--slurm-status-command",
            "squeue",
        ),
        *("--slurm-init-seconds-before-status-checks", "1", "results/usr_persona/scores/f1.parquet"),
        *("--set-resources", "score:mem_mb=700", "score:runtime=10", "--set-threads", "score=2"),
        check=False,
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
    ).stdout
    assert (programs / "asked").exists(), said[-4000:]
    asked = (programs / "asked").read_text().splitlines()
    numbers = [re.search(r"-t (\d+) --mem (\d+) .*--cpus-per-task=(\d+)", line).groups() for line in asked]
    assert numbers == [("10", "700", "2")] * 3, "one attempt and two retries"
