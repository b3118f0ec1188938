"""DVC owns the bytes: publish, clone, pull, and nothing is left to do."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from workdir import TARGETS, Workdir


def git(workdir, *arguments):
    identity = {
        f"GIT_{who}_{what}": "test@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return workdir.run("git", *arguments, **identity)


@pytest.fixture
def published(finished, root):
    """Return the finished copy as a git repository whose results have been published like `make publish` does."""
    git(finished, "init", "-q", "-b", "main")
    tracked = (path.relative_to(root).as_posix() for path in (root / "results").rglob("*.dvc"))
    made = (name for name in tracked if (finished.path / name).with_suffix("").is_dir())
    for name in ("provenance.dvc", *made):
        text = (root / name).read_text()
        (finished.path / name).write_text(
            re.sub(
                r"(?m)^- md5: .*\n|^  (md5|size|nfiles): .*\n", lambda m: "- " if m[0][0] == "-" else "", text
            ).replace("-   ", "- ")
        )
    finished.run("comperdial", "pack-records")
    finished.run("dvc", "commit", "--force", "--quiet")
    finished.run("dvc", "push", "--quiet")
    git(finished, "add", "-A")
    git(finished, "commit", "-qm", "published")
    return finished


def test_clone_pull_nothing_to_do(published, tmp_path):
    tracked = git(published, "ls-files").stdout.split()
    assert not [name for name in tracked if name.startswith(("data/raw", "data/tables/usr"))]
    assert {Path(name).suffix or name for name in tracked if name.startswith("results/")} <= {
        ".dvc",
        "results/.gitignore",
    }
    subprocess.run(["git", "clone", "-q", published.path, tmp_path / "clone"], check=True)
    clone = Workdir(tmp_path / "clone", TARGETS)
    shutil.rmtree(published.path / ".dvc/cache")
    clone.run("dvc", "pull")
    ours = {n: c for n, (_, c) in published.outputs().items() if re.match(r"results/(?!local/)", n)}
    theirs = {n: c for n, (_, c) in clone.outputs().items() if n.startswith("results/")}
    assert theirs == ours
    assert not (clone.path / "data/raw").exists(), "what is not ours to pass on stays out of the remote"
    assert "Nothing to be done" in clone.snakemake("-n")
    assert git(clone, "status", "--porcelain").stdout == ""
    summary = "results/usr_persona/summary/metrics.json"
    clone.edit(summary, '"bleu-4"', '"bleu-5"')
    said = clone.run("dvc", "metrics", "diff", "HEAD", "--json").stdout
    # dvc.yaml names the metrics of data sets that this small copy does not have: DVC warns of them first.
    found = json.loads(said[said.index("{") :])
    assert all("bleu" in name for name in found.get("diff", found)[summary]), "what changed is told"


@pytest.mark.ci
def test_what_this_repository_publishes(root, tmp_path):
    """HEAD of this very repository: clone, pull, and nothing is left to do."""
    subprocess.run(["git", "clone", "-q", root, tmp_path / "clone"], check=True)
    if not (tmp_path / "clone/provenance.dvc").exists():
        pytest.fail("HEAD publishes no results: run `make publish` and commit")
    clone = Workdir(tmp_path / "clone")
    clone.run("dvc", "pull")
    assert (clone.path / "data/tables/demo/truth.parquet").is_file(), "the demo's tables are published too"
    planned = clone.snakemake("-n")
    assert "Nothing to be done" in planned, planned[-3000:]
    # The one study whose numbers are published beside its tables; with the models that `make setup` brings, as a user has them.
    environment = os.environ | {"PYTHONPATH": str(clone.path / "src")}
    done = subprocess.run(
        ["snakemake", "-n", "overall"], cwd=clone.path, env=environment, capture_output=True, text=True
    )
    planned = done.stdout + done.stderr
    assert "Nothing to be done" in planned, planned[-3000:]
