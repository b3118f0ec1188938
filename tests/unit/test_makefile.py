"""What `make` does, with a stand-in for what it starts."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from conftest import ROOT


@pytest.fixture
def make(tmp_path):
    """Return a function that runs `make` in a folder where everything is installed and `snakemake` writes one page."""
    for name in (
        "pyproject.toml",
        "requirements.lock",
        "requirements.hashes.txt",
        "params.yaml",
        "Makefile",
        "workflow/stage.sh",
        "workflow/reproduce.sh",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (0, 0))
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv/.installed").touch()
    page = '[ -z "$MADE" ] || install -D /dev/null "$MADE"'
    failing = 'case "$*" in $FAILS) echo "no index can be reached"; exit 1; esac'
    for name, does in {"snakemake": page, "python": failing, "comperdial": "", "dvc": "", "jupyter": ""}.items():
        (programs / name).write_text(f"#!/bin/sh\nprintf '%s\\n' \"{name} $*\" | tee -a called\n{does}\n")
        (programs / name).chmod(0o755)

    def run(*arguments, made="", fails="nothing"):
        # As from a shell, also where `make test` started the tests: an inner make would name the folders it enters.
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment = outer | {"MADE": made, "FAILS": fails}
        return subprocess.run(["make", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ([], "results/demo/report.html"),
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


# What a shell, make or YAML would run, expand or end a word at.
HOSTILE = [
    "a';touch${IFS}x;'.csv",
    "b$(shell touch x).csv",
    "c`touch${IFS}x`.csv",
    "d$$(touch${IFS}x).csv",
    'e";touch${IFS}x;".csv',
    "f]$(touch${IFS}x)[#.csv",
    "g\\;&|>x.csv",
    "$(file >x,)",
]


@pytest.mark.parametrize("dry", [[], ["-n"]])
@pytest.mark.parametrize("variable", ["DATASETS", "TABLES", "OLD", "datasets"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_run(make, tmp_path, name, variable, dry):
    goal = {"TABLES": "llm-evaluators", "OLD": "plots-diff"}.get(variable, "reproduce")
    done = make(goal, f"{variable}={name}", *dry)
    assert not (tmp_path / "x").exists()
    if variable == "datasets":
        assert done.returncode == 2 and f'DATASETS="{name}"' in done.stderr
        return
    assert done.returncode == 0, done.stderr
    if not dry and variable == "DATASETS":
        (line,) = [line for line in (tmp_path / "called").read_text().splitlines() if line.startswith("snakemake")]
        chosen = yaml.safe_load(line.partition("--config datasets=")[2])
        assert chosen == name.split()
    assert not make("publish", f"DATASETS={name}").stdout and not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_from_the_environment_is_never_run(make, tmp_path, monkeypatch, name):
    monkeypatch.setenv("DATASETS", name)
    assert make("reproduce").returncode == 0
    assert not (tmp_path / "x").exists()


def test_a_file_with_a_quote_in_its_name_is_run_and_its_page_named(make):
    done = make("reproduce", "DATASETS=data/anna's.csv usr_persona", made="results/anna_s/report.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert """snakemake --quiet host reason rules --config datasets=["data/anna's.csv", "usr_persona"]""" in done.stdout
    assert "results/anna_s/report.html" in done.stdout


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
    assert re.search(installed, (tmp_path / "called").read_text()), done.stderr
    assert "jupyter lab notebooks" in done.stdout
    (tmp_path / ".venv/bin/jupyter-lab").touch(0o755)
    (tmp_path / "called").unlink()
    assert "jupyter lab notebooks" in make("notebooks").stdout
    assert not re.search(installed, (tmp_path / "called").read_text())


def test_setting_up_is_a_line_for_each_stage(make, tmp_path):
    (tmp_path / ".venv/.installed").unlink()
    done = make("setup")
    lines = done.stdout.splitlines()
    assert [line[:5] for line in lines] == [f"[{number}/7]" for number in range(1, 8)]
    assert all(re.fullmatch(r".+ \.\.\. \d+ s", line) for line in lines), "nothing that pip or another program said"
    assert (done.returncode, done.stderr) == (0, "")
    assert make("setup").stdout.startswith("make: Nothing to be done")


@pytest.mark.parametrize(
    ("fails", "status", "said"),
    [
        ("*torch==*", 2, "[1/7] Installing torch ... failed after "),
        ("*chitchat*", 0, "[6/7] Fetching the conversations of Chit-Chat ... failed after "),
    ],
)
def test_a_stage_that_fails_shows_why(make, tmp_path, fails, status, said):
    (tmp_path / ".venv/.installed").unlink()
    done = make("setup", fails=fails)
    assert said in done.stdout
    assert "no index can be reached" in done.stderr
    assert done.returncode == status
    assert (tmp_path / ".venv/.installed").exists() == (status == 0)


def test_a_setup_by_hashes_checks_them_before_anything_else_is_installed(make, tmp_path):
    (tmp_path / ".venv/.installed").unlink()
    (tmp_path / "called").unlink(missing_ok=True)
    make("setup", "HASHES=1")
    installed = [line for line in (tmp_path / "called").read_text().splitlines() if "pip install" in line]
    assert "--require-hashes --requirement requirements.hashes.txt" in installed[0] and "--no-deps" in installed[0]
    (tmp_path / ".venv/.installed").unlink()
    (tmp_path / "called").unlink()
    make("setup")
    assert "--require-hashes" not in (tmp_path / "called").read_text()
