"""A temporary copy of the repository with a small invented data set, and helpers to run commands in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from comperdial.data.sources import MIRROR_VARIABLE
from minidata import mini_items, write_mirror

# Some of each kind of what depends on a data set: all of it takes a minute.
TARGETS = (
    "results/studies/usr/tables/usr.html",
    *(f"results/usr_persona/tables/{name}.html" for name in ("correlations", "judges")),
    "results/usr_persona/figures/heatmap.png",
    "results/usr_persona/summary/metrics.json",
)

# Studies of data sets that are not in the small catalogue.
STUDIES = ("studies/llm_evaluators/", "studies/local_metrics/")


@dataclass
class Workdir:
    """A folder to run commands in."""

    path: Path
    # What `snakemake` makes when a test names no target; empty: the workflow's own default.
    targets: tuple[str, ...] = ()

    def run(self, *command: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k != MIRROR_VARIABLE} | variables
        # The copy's own package runs, so that an edit to its code takes effect.
        environment["PYTHONPATH"] = str(self.path / "src")
        # No models but the one that a package brings, whatever this machine has.
        environment["COMPERDIAL_MODELS"] = str(self.path.parent / "models")
        done = subprocess.run(
            command, cwd=self.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert not check or done.returncode == 0, done.stdout[-4000:]
        return done

    def snakemake(self, *options: str, check: bool = True) -> str:
        targets = () if any(not option.startswith("-") for option in options) else self.targets
        return self.run("snakemake", "--cores", "2", *targets, *options, check=check).stdout

    def outputs(self) -> dict[str, tuple[int, bytes]]:
        """Return every file that the workflow makes, with the time it was written and its content."""
        folders = [self.path / "data/raw", self.path / "data/tables", self.path / "results"]
        files = [file for folder in folders for file in folder.rglob("*") if file.is_file() and file.suffix != ".dvc"]
        return {str(f.relative_to(self.path)): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}

    def rewritten(self, before: dict[str, tuple[int, bytes]]) -> set[str]:
        """Return the outputs written since ``before``."""
        return {name for name, (when, _) in self.outputs().items() if name not in before or before[name][0] != when}

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        (self.path / name).write_text(text.replace(old, new))


def planned(workdir: Workdir) -> set[str]:
    """Return the output files that a run would write, except parts, which are temporary."""
    rows = [line.split("\t") for line in workdir.snakemake("--summary").splitlines() if line.count("\t") == 5]
    assert rows[0][0] == "output_file"
    return {row[0] for row in rows[1:] if row[5] != "no update" and "/parts/" not in row[0]}


def copied(workdir: Workdir, target: Path) -> Workdir:
    """Return a copy of a copy, so that all tests see the same files whatever is edited meanwhile."""
    shutil.copytree(workdir.path, target)
    return Workdir(target, workdir.targets)


def copy_repository(root: Path, target: Path, *targets: str, shipped: bool = False) -> Workdir:
    """Copy what git has or would take, without the published results.

    A small data set and a configuration for it are put in, and studies of other sets are left out, unless the copy is to
    be as it ships.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        made = name.startswith("results/") and name != "results/.gitignore"
        if made or name.startswith(("data/store/", "tests/")) or name.endswith(".dvc") or not (root / name).is_file():
            continue
        if name.startswith(STUDIES) and not shipped:
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target / name)
    if shipped:
        return Workdir(target, targets)
    catalogue = write_mirror(target, mini_items())
    catalogue.rename(target / "data/sources.yaml")
    shutil.copy2(root / "tests/configs/mini.yaml", target / "params.yaml")
    return Workdir(target, targets)
