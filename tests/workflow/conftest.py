"""Fixtures: the repository copied, with the workflow not yet run or run through."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workdir import Workdir, copy_repository


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.workflow)


# What depends on a data set. The rest (personas and their tables, diagrams) is made in the tests of challenges.
TARGETS = ("tables", "notebooks", "summaries")


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Workdir:
    """Return a copy in which nothing has been run."""
    return copy_repository(root, tmp_path / "fresh", *TARGETS)


@pytest.fixture(scope="session")
def _finished(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Workdir:
    workdir = copy_repository(root, tmp_path_factory.mktemp("finished") / "repository", *TARGETS)
    workdir.snakemake()
    return workdir


@pytest.fixture
def finished(_finished: Workdir, tmp_path: Path) -> Workdir:
    """Return a copy in which the workflow has run through."""
    shutil.copytree(_finished.path, tmp_path / "finished")
    return Workdir(tmp_path / "finished", TARGETS)
