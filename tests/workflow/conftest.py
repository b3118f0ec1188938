"""Fixtures: a copy of the repository before and after a full run."""

from __future__ import annotations

from pathlib import Path

import pytest

from workdir import TARGETS, Workdir, copied, copy_repository


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.workflow)


@pytest.fixture(scope="session")
def _pristine(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Workdir:
    return copy_repository(root, tmp_path_factory.mktemp("pristine") / "repository", *TARGETS)


@pytest.fixture
def fresh(_pristine: Workdir, tmp_path: Path) -> Workdir:
    """Return a copy in which nothing has been run."""
    return copied(_pristine, tmp_path / "fresh")


@pytest.fixture(scope="session")
def _finished(_pristine: Workdir, tmp_path_factory: pytest.TempPathFactory) -> Workdir:
    workdir = copied(_pristine, tmp_path_factory.mktemp("finished") / "repository")
    workdir.snakemake()
    return workdir


@pytest.fixture
def finished(_finished: Workdir, tmp_path: Path) -> Workdir:
    """Return a copy in which the workflow has run through."""
    return copied(_finished, tmp_path / "finished")
