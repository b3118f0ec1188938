"""What `make` does, with a stand-in for what it starts."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT


@pytest.fixture
def make(tmp_path):
    """Return a function that runs `make` in a folder where everything is installed and `snakemake` writes one page."""
    for name in ("pyproject.toml", "requirements.lock", "params.yaml", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (0, 0))
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv/.installed").touch()
    page = '[ -z "$MADE" ] || install -D /dev/null "$MADE"'
    for name, does in {"snakemake": page, "python": "", "jupyter": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*"\n{does}\n')
        (programs / name).chmod(0o755)

    def run(*arguments, made=""):
        return subprocess.run(
            ["make", *arguments], cwd=tmp_path, env=os.environ | {"MADE": made}, capture_output=True, text=True
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ([], "results/report/demo.html"),
        (["DATASETS=usr_persona usr_topical"], "results/local/usr_topical.html"),
        (["DATASETS=dailydialog_zhao"], "results/local/dailydialog_zhao.html"),
    ],
)
def test_the_run_ends_by_naming_pages_that_exist(make, tmp_path, arguments, made):
    done = make("reproduce", *arguments, made=made)
    assert done.returncode == 0, done.stderr
    named = re.findall(r"results/[\w./*-]+", done.stdout)
    assert made in named
    assert not [name for name in named if name != made and not (tmp_path / name).exists()]


@pytest.mark.parametrize("name", ["datasets", "dataset", "DATASET"])
def test_a_misspelt_choice_of_data_sets_does_not_run_the_demo(make, name):
    done = make("reproduce", f"{name}=usr_persona usr_topical")
    assert done.returncode == 2
    assert 'make reproduce DATASETS="usr_persona usr_topical"' in done.stderr
    assert "snakemake" not in done.stdout


def test_notebooks_open_in_jupyterlab_which_is_installed_where_it_is_missing(make, tmp_path):
    installed = r"python -m pip install .*--constraint requirements.lock .*\.\[jupyter\]"
    done = make("notebooks")
    assert done.returncode == 0
    assert re.search(installed, done.stdout), done.stderr
    assert "jupyter lab notebooks" in done.stdout
    (tmp_path / ".venv/bin/jupyter-lab").touch(0o755)
    again = make("notebooks")
    assert not re.search(installed, again.stdout)
    assert "jupyter lab notebooks" in again.stdout
