"""DVC stores the files: after publish, clone and pull nothing is left to do; a user's own results stay private."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from workdir import TARGETS, Workdir

OWN = "system,history,response,dimension,rating\n" + "".join(
    f"{system},{number},{text} {number},warmth,{rating}\n"
    for number in range(3)
    for system, text, rating in (("a", "hi", 1 + number % 2), ("b", "hello you", 3), ("c", "so it is", 2 + number))
)
OWN_TARGETS = ("results/mine/tables/alpha.html", "results/personas/personas.json")


def git(workdir, *arguments):
    identity = {
        f"GIT_{who}_{what}": "test@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return workdir.run("git", *arguments, **identity)


@pytest.fixture
def published(finished, root):
    """Return the finished copy as a git repository whose results have been published like `make publish` does."""
    finished.snakemake("results/personas/personas.json")
    git(finished, "init", "-q", "-b", "main")
    tracked = (path.relative_to(root).as_posix() for path in (root / "results").rglob("*.dvc"))
    for name in ("provenance.dvc", *(name for name in tracked if (finished.path / name).with_suffix("").is_dir())):
        text = re.sub(
            r"(?m)^- md5: .*\n|^  (md5|size|nfiles): .*\n",
            lambda m: "- " if m[0][0] == "-" else "",
            (root / name).read_text(),
        )
        (finished.path / name).write_text(text.replace("-   ", "- "))
    finished.run("comperdial", "pack-records")
    finished.run("dvc", "commit", "--force", "--quiet")
    finished.run("dvc", "push", "--quiet")
    git(finished, "add", "-A")
    git(finished, "commit", "-qm", "published")
    return finished


@pytest.mark.ci
def test_clone_own_data_pull_and_nothing_to_do(published, tmp_path):
    tracked = git(published, "ls-files").stdout.split()
    assert not [name for name in tracked if name.startswith(("data/raw", "data/tables/usr"))]
    suffixes = {Path(name).suffix or name for name in tracked if name.startswith("results/")}
    assert suffixes <= {".dvc", "results/.gitignore"}
    subprocess.run(["git", "clone", "-q", published.path, tmp_path / "clone"], check=True)
    clone = Workdir(tmp_path / "clone", TARGETS)
    shutil.rmtree(published.path / ".dvc/cache")

    # In README's order: first one's own file, then what is published.
    (clone.path / "mine.csv").write_text(OWN)
    own = ("--config", "datasets=[mine.csv]")
    clone.snakemake(*OWN_TARGETS, *own)
    mine = {name: made for name, made in clone.outputs().items() if "/mine/" in name}
    assert mine
    clone.run("dvc", "pull")
    now = clone.outputs()
    assert {name: made for name, made in now.items() if "/mine/" in name} == mine
    ours = {name: content for name, (_, content) in published.outputs().items() if name.startswith("results/")}
    theirs = {name: content for name, (_, content) in now.items() if name.startswith("results/") and name not in mine}
    assert theirs == {name: content for name, content in ours.items() if not name.startswith("results/local/")}
    assert not (clone.path / "data/raw").exists(), "what is not ours to pass on stays out of the remote"
    assert "Nothing to be done" in clone.snakemake("-n")
    assert "Nothing to be done" in clone.snakemake("-n", *OWN_TARGETS, *own)
    assert git(clone, "status", "--porcelain").stdout == "", "a user's own file is not offered for a commit"

    summary = "results/usr_persona/summary/metrics.json"
    clone.edit(summary, '"bleu-4"', '"bleu-5"')
    said = clone.run("dvc", "metrics", "diff", "HEAD", "--json").stdout
    # dvc.yaml names metrics of data sets that this small copy lacks: DVC warns of them first.
    found = json.loads(said[said.index("{") :])
    assert all("bleu" in name for name in found.get("diff", found)[summary])


@pytest.mark.ci
def test_published_results(root, tmp_path):
    """HEAD of this very repository: clone, pull, and nothing is left to do."""
    subprocess.run(["git", "clone", "-q", root, tmp_path / "clone"], check=True)
    if not (tmp_path / "clone/provenance.dvc").exists():
        pytest.fail("HEAD publishes no results: run `make publish` and commit")
    clone = Workdir(tmp_path / "clone")
    clone.run("dvc", "pull")
    assert (clone.path / "data/tables/demo/truth.parquet").is_file(), "the demo's tables are published too"
    planned = clone.snakemake("-n")
    assert "Nothing to be done" in planned, planned[-3000:]
    # With the models that `make setup` brings, as a user has them.
    environment = os.environ | {"PYTHONPATH": str(clone.path / "src")}
    done = subprocess.run(
        ["snakemake", "-n", "overall"], cwd=clone.path, env=environment, capture_output=True, text=True
    )
    assert "Nothing to be done" in done.stdout + done.stderr, (done.stdout + done.stderr)[-3000:]
