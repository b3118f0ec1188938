"""DVC owns the bytes: publish, clone, pull, and nothing is left to do."""

import json
import re
import shutil
import subprocess

import pytest

from workdir import TARGETS, Workdir

# Pages with the texts of a fetched data set are made where it is fetched, and not passed on.
PASSED_ON = (
    *(target for target in TARGETS if target not in ("notebooks", "sites")),
    *(f"results/notebooks/{name}.html" for name in ("02_which_metric_to_trust", "06_reading_the_usr_table")),
)


def git(workdir, *arguments):
    identity = {
        f"GIT_{who}_{what}": "test@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return workdir.run("git", *arguments, **identity)


@pytest.fixture
def published(finished, root):
    """Return the finished copy as a git repository whose results have been published like `make publish` does."""
    git(finished, "init", "-q", "-b", "main")
    tracked = (path.relative_to(root).as_posix() for path in (root / "results").glob("*.dvc"))
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
    assert not [
        name
        for name in tracked
        if name.startswith(("data/raw", "data/tables/usr")) or re.match(r"results/[^/]+/", name)
    ]
    subprocess.run(["git", "clone", "-q", published.path, tmp_path / "clone"], check=True)
    clone = Workdir(tmp_path / "clone", PASSED_ON)
    shutil.rmtree(published.path / ".dvc/cache")
    clone.run("dvc", "pull")
    ours = {n: c for n, (_, c) in published.outputs().items() if re.match(r"results/(?!local/)", n)}
    theirs = {n: c for n, (_, c) in clone.outputs().items() if n.startswith("results/")}
    assert theirs == ours
    assert not (clone.path / "data/raw").exists(), "what is not ours to pass on stays out of the remote"
    assert "Nothing to be done" in clone.snakemake("-n")
    assert git(clone, "status", "--porcelain").stdout == ""


def test_metrics_and_plots_show_what_changed(published):
    published.edit(
        "params.yaml", "bleu_raw: {kind: bleu, text: raw}", "bleu_raw: {kind: bleu, text: raw, epsilon: 0.1}"
    )
    published.snakemake("results/summary/usr_persona/metrics.json")
    published.run("comperdial", "pack-records")
    published.run("dvc", "commit", "--force", "--quiet")
    published.run("dvc", "push", "--quiet")
    git(published, "add", "-A")
    git(published, "commit", "-qm", "another epsilon")
    said = published.run("dvc", "metrics", "diff", "HEAD~1", "HEAD", "--json").stdout
    # dvc.yaml names the metrics of data sets that this small copy does not have: DVC warns of them first.
    found = json.loads(said[said.index("{") :])
    changed = {name for names in found.get("diff", found).values() for name in names}
    assert any("bleu_raw" in name for name in changed)
    assert not any(".f1." in name for name in changed)
    published.run("dvc", "plots", "diff", "HEAD~1", "HEAD", "--out", "plots")
    assert "bleu_raw" in (published.path / "plots/index.html").read_text()


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
