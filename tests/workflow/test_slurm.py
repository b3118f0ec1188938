"""The DAG on a real Slurm of one node, through profiles/slurm: the bytes of a local run, whatever is killed."""

import os
import re
import shutil
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
# A folder with the results of `make reproduce DATASETS="usr_persona usr_topical"`; .ci/run names it.
LOCAL_RUN = "COMPERDIAL_LOCAL_RUN"


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
    """Start snakemake with the profile; what it says goes to a file in the folder."""
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
    """Return the mini data set, scored in two parts."""
    (fresh.path / "params.yaml").write_text((fresh.path / "params.yaml").read_text() + "shards: {default: 2}\n")
    without_gpu(fresh, mem_mb=700)
    return fresh


def without_gpu(workdir: Workdir, mem_mb: int) -> None:
    """Ask for memory that a node of this machine has, and for no GPU."""
    profile = workdir.path / "profiles/slurm/config.yaml"
    text = re.sub(r'mem_mb: (\d+|"[^"]*")', f"mem_mb: {mem_mb}", profile.read_text())
    profile.write_text(re.sub(r', gpu: (\d+|"[^"]*")', "", text))


def test_killed_jobs_and_a_killed_node_lose_nothing(sharded, cluster, tmp_path):
    local = copied(sharded, tmp_path / "local")
    local.targets = ("tables",)
    local.snakemake()

    first = submitted(sharded, cluster, "tables", COMPERDIAL_MODELS=str(tmp_path / "models"))
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
    assert not (sharded.path / "results/usr_persona/tables/correlations.csv").exists()

    cluster.start_slurmd()
    made = set(content(sharded))
    second = submitted(sharded, cluster, "tables", COMPERDIAL_MODELS=str(tmp_path / "models"))
    assert second.wait(900) == 0, said(sharded)[-4000:]
    # What lay there whole was kept, and all of it is what one machine makes.
    assert made <= set(content(local)) | {name for name in made if "/parts/" in name}
    assert content(sharded) == content(local)


def test_a_data_set_s_results_are_the_local_run_s(root, cluster, tmp_path):
    if not (local := os.environ.get(LOCAL_RUN)):
        pytest.skip(f"{LOCAL_RUN} names no folder with the USR main job's results")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    workdir = Workdir(tmp_path / "main")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not name.startswith(("results/", "data/store/", "tests/")) and (root / name).is_file():
            (workdir.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, workdir.path / name)
    # Trained models come with `dvc pull`.
    shutil.copytree(root / "data/models", workdir.path / "data/models", dirs_exist_ok=True)
    without_gpu(workdir, mem_mb=6000)
    # One of the two sets: each job of Slurm starts Snakemake anew, which takes longer than most jobs.
    run = submitted(workdir, cluster, "--config", "datasets=[usr_persona]")
    assert run.wait(2400) == 0, said(workdir)[-4000:]
    made = {name: found for name, found in content(workdir).items() if name.startswith("results/")}
    assert {"results/usr_persona/tables/correlations.csv", "results/usr_persona/correlations.parquet"} <= set(made)
    there = {name for name in made if (Path(local) / name).is_file()}
    assert set(made) == there
    assert [name for name in sorted(made) if (Path(local) / name).read_bytes() != made[name]] == []
