"""The DAG on a real Slurm of one node, through profiles/slurm: the same bytes as a local run, even after kills."""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from comperdial.data.sources import MIRROR_VARIABLE
from slurmcluster import Cluster, lacking
from workdir import Workdir, copied

pytestmark = pytest.mark.ci

# What this Slurm lacks, which a cluster has: a database of jobs to ask, and somebody to bill.
HERE = ("--cores", "2", "--slurm-status-command", "squeue", "--slurm-no-account")
QUICK = ("--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "5")
# Three jobs: the plugin asks Slurm after 3, 13, 23, … seconds whether a job has ended.
TARGET = "results/usr_persona/scores/f1.parquet"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := lacking():
        if os.environ.get("COMPERDIAL_REQUIRE_SLURM"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Sockets' paths are short.
    with tempfile.TemporaryDirectory(prefix="slurm", dir="/tmp") as folder:
        started = Cluster(Path(folder))
        try:
            started.start()
            yield started
        finally:
            started.stop()


def submitted(workdir: Workdir, cluster: Cluster, *options: str, **variables: str) -> subprocess.Popen[str]:
    """Start snakemake with the profile; its output goes to a file in the folder."""
    environment = os.environ | cluster.variables | {"PYTHONPATH": str(workdir.path / "src")} | variables
    if (workdir.path / "mirror").is_dir():
        environment.pop(MIRROR_VARIABLE, None)
    with (workdir.path / "slurm-run.log").open("a") as log:
        return subprocess.Popen(
            ["snakemake", "--workflow-profile", "profiles/slurm", *HERE, *QUICK, *options],
            cwd=workdir.path,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )


def said(workdir: Workdir) -> str:
    return (workdir.path / "slurm-run.log").read_text()


def until(ready, process: subprocess.Popen[str], workdir: Workdir, seconds: float = 300):
    """Wait for something to come while snakemake runs, and return it."""
    end = time.monotonic() + seconds
    while not (found := ready()):
        assert process.poll() is None, f"snakemake ended before that:\n{said(workdir)[-4000:]}"
        assert time.monotonic() < end, f"that did not come in {seconds} s:\n{said(workdir)[-4000:]}"
        time.sleep(0.2)
    return found


def content(workdir: Workdir) -> dict[str, bytes]:
    return {name: found for name, (_, found) in workdir.outputs().items()}


@pytest.fixture
def sharded(fresh: Workdir) -> Workdir:
    """Return the mini data set with its tables, to be scored in two parts."""
    (fresh.path / "params.yaml").write_text((fresh.path / "params.yaml").read_text() + "shards: {default: 2}\n")
    fresh.snakemake("data/tables/usr_persona/responses.parquet")
    without_gpu(fresh, mem_mb=700)
    return fresh


def without_gpu(workdir: Workdir, mem_mb: int) -> None:
    """Ask for memory that a node of this machine has, and for no GPU."""
    profile = workdir.path / "profiles/slurm/config.yaml"
    text = re.sub(r'mem_mb: (\d+|"[^"]*")', f"mem_mb: {mem_mb}", profile.read_text())
    profile.write_text(re.sub(r', gpu: (\d+|"[^"]*")', "", text))


def test_killed_jobs_and_a_killed_node_lose_nothing(sharded, cluster, tmp_path):
    local = copied(sharded, tmp_path / "local")
    local.snakemake(TARGET)

    first = submitted(sharded, cluster, TARGET, COMPERDIAL_MODELS=str(tmp_path / "models"))
    try:
        killed = until(cluster.running, first, sharded)[0]
        cluster.ask("scancel", killed)
        until(lambda: "Trying to restart job" in said(sharded), first, sharded)
        # The node's daemon goes in the middle of another job, and the user gives up on that run.
        until(lambda: [job for job in cluster.running() if job != killed], first, sharded)
        cluster.kill("slurmd")
        first.send_signal(signal.SIGINT)
        assert first.wait(300) != 0
    finally:
        first.kill()
    assert not (sharded.path / TARGET).exists()

    cluster.start_slurmd()
    made = set(content(sharded))
    second = submitted(sharded, cluster, TARGET, COMPERDIAL_MODELS=str(tmp_path / "models"))
    assert second.wait(900) == 0, said(sharded)[-4000:]
    # Complete outputs were kept, and all match a run on one machine.
    assert made <= set(content(local)) | {name for name in made if "/parts/" in name}
    assert content(sharded) == content(local)
