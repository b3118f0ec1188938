"""The repository itself: files in git, dependency lists, and what `make` and the CI workflows run."""

import hashlib
import os
import re
import shutil
import subprocess
import tomllib

import pytest
import yaml

import comperdial
from comperdial.data.catalogue import load_catalogue
from conftest import ROOT

# The name of a package at conda-forge or bioconda where it is not PyPI's.
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}


@pytest.fixture(scope="module")
def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


# Dependencies


def test_dependency_lists_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    required = sorted(requirement for found in lists for requirement in found)
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    found = []
    for entry in [*conda, *pip]:
        name, rest = re.match(r"([\w.-]+)(.*)", entry).groups()
        if name not in ("python", "pip", "-e"):
            found.append(CONDA_NAMES.get(name, name) + rest)
    assert sorted(found) == required and f"python{project['requires-python']}" in conda
    lock = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")]
    locked = {plain(line.partition("==")[0]): line.partition("==")[2] for line in lock}
    assert {plain(re.match(r"[\w.-]+", one)[0]) for one in required} <= {*locked}
    hashes = (ROOT / "requirements.hashes.txt").read_text()
    entries = re.findall(r"^([\w.-]+)==(\S+) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", hashes, flags=re.M)
    # Whoever sets up chooses the build of torch.
    assert dict(entries) == {name: version for name, version in locked.items() if name != "torch"}
    assert not re.search(r"://|^--", hashes, flags=re.M), "no index and no host of whoever wrote it"


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] == comperdial.__version__
    assert f"## {comperdial.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert project["license"] == citation["license"] == "MIT"


# What is in git


def test_git_has_no_third_party_data_and_no_results(tracked):
    assert not [n for n in tracked if n.startswith(("data/raw/", "data/runs/", ".snakemake/"))]
    assert {n for n in tracked if n.startswith("data/tables/")} <= {"data/tables/demo.dvc", "data/tables/.gitignore"}
    assert not [n for n in tracked if n.startswith("results/") and not n.endswith((".dvc", "/.gitignore"))]
    assert not [n for n in tracked if n.endswith((".parquet", ".pkl", ".pickle", ".bin"))]
    pinned = {source.sha256 for source in load_catalogue(ROOT / "data/sources.yaml").files.values()}
    assert not [n for n in tracked if hashlib.sha256((ROOT / n).read_bytes()).hexdigest() in pinned]
    sizes = {name: (ROOT / name).stat().st_size for name in tracked}
    assert sum(size for name, size in sizes.items() if name.startswith("data/store/")) < 64_000_000
    assert not {name: size for name, size in sizes.items() if size > 1_000_000 and not name.startswith("data/store/")}


def test_no_machine_paths_no_pickle_and_no_eval(tracked):
    endings = (".py", ".ipynb", ".smk", ".yaml", ".yml", ".md", "Snakefile", "Makefile")
    for name in (name for name in tracked if name.endswith(endings)):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(work|root|home|Users)/\w", text), name
        if name.startswith(("src/", "workflow/")):
            assert not re.search(r"\bimport pickle\b|(?<!\.)\beval\(|shell=True", text), name


def test_relative_links_resolve():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert target.startswith(("http", "mailto")) or (page.parent / target).exists(), f"{page.name}: {target}"


def test_git_ignores_results_but_not_dvc_folders():
    """DVC does not look into a folder that git ignores: `dvc pull` would not see the .dvc files in it."""
    ignored = dict.fromkeys(("demo/x", "mine/report.html", "studies/usr/x"), True)
    for name, expected in (ignored | dict.fromkeys(("demo.dvc", "studies/usr.dvc", "studies"), False)).items():
        done = subprocess.run(["git", "check-ignore", "--quiet", f"results/{name}"], cwd=ROOT)
        assert (done.returncode == 0) == expected, name


# What CI runs


def test_ci_commands_exist_and_all_pythons_are_tested():
    workflows = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
    steps = [step for one in workflows.values() for job in one["jobs"].values() for step in job["steps"]]
    text = "\n".join(step.get("run", "") for step in steps) + (ROOT / "Dockerfile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert {"lint", "test", "setup"} <= set(re.findall(r"\bmake ([a-z][a-z-]+)", text)) <= targets
    for path in re.findall(r"(?<![\w/])\.ci/[\w-]+", text):
        assert os.access(ROOT / path, os.X_OK), path
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    for job in ("test", "package"):
        versions = workflows["ci.yml"]["jobs"][job]["strategy"]["matrix"]["python-version"]
        assert claimed <= set(versions) and f">={min(versions)}" == project["requires-python"]


# make


@pytest.fixture
def make(tmp_path):
    """Return a function that runs `make` in a folder where everything is installed and `snakemake` writes one page."""
    for name in ("pyproject.toml", "requirements.lock", "requirements.hashes.txt", "params.yaml", "Makefile",
                 "workflow/stage.sh", "workflow/reproduce.sh"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (0, 0))
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (tmp_path / ".venv/.installed").touch()
    page = '[ -z "$MADE" ] || install -D /dev/null "$MADE"'
    failing = 'case "$*" in $FAILS) echo "no index can be reached"; exit 1; esac'
    for name, does in {"snakemake": page, "python": failing, "comperdial": "", "dvc": ""}.items():
        (programs / name).write_text(f"#!/bin/sh\nprintf '%s\\n' \"{name} $*\" | tee -a called\n{does}\n")
        (programs / name).chmod(0o755)

    def run(*arguments, made="", fails="nothing"):
        # As from a shell, also where `make test` started the tests: an inner make would name the folders it enters.
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment = outer | {"MADE": made, "FAILS": fails}
        return subprocess.run(["make", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    ("datasets", "made"),
    [
        ("usr_persona usr_topical", "results/local/usr_topical.html"),
        ("data/anna's.csv usr_persona", "results/anna_s/report.html"),
    ],
)
def test_a_run_ends_by_naming_pages_that_exist(make, tmp_path, datasets, made):
    done = make("reproduce", f"DATASETS={datasets}", made=made)
    named = re.findall(r"results/[\w./*-]+", done.stdout)
    assert (done.returncode, done.stderr) == (0, "") and made in named
    assert not [name for name in named if name != made and not (tmp_path / name).exists()]


# What a shell, make or YAML would run, expand or end a word at.
HOSTILE = ["a';touch${IFS}x;'.csv", "b$(shell touch x).csv", "d$$(touch${IFS}x)`touch${IFS}x`.csv",
           'e";touch${IFS}x;".csv', "g\\;&|>x.csv"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_run(make, tmp_path, monkeypatch, name):
    assert make("reproduce", f"DATASETS={name}").returncode == 0
    (line,) = [line for line in (tmp_path / "called").read_text().splitlines() if line.startswith("snakemake")]
    assert yaml.safe_load(line.partition("--config datasets=")[2]) == name.split()
    for arguments in (("llm-evaluators", f"TABLES={name}"), ("plots-diff", f"OLD={name}")):
        assert make(*arguments).returncode == 0
    done = make("reproduce", f"datasets={name}")
    assert done.returncode == 2 and f'DATASETS="{name}"' in done.stderr, "a misspelt choice does not run the demo"
    monkeypatch.setenv("DATASETS", name)
    assert make("reproduce").returncode == 0
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("fails", "status", "message"),
    [
        ("nothing", 0, "[7/7]"),
        ("*torch==*", 2, "[1/7] Installing torch ... failed after "),
        ("*chitchat*", 0, "[6/7] Fetching the Chit-Chat conversations ... failed after "),
    ],
)
def test_setup_prints_a_line_per_stage_and_shows_errors(make, tmp_path, fails, status, message):
    (tmp_path / ".venv/.installed").unlink()
    done = make("setup", "HASHES=1", fails=fails)
    assert message in done.stdout and done.returncode == status
    assert ("no index can be reached" in done.stderr) == (fails != "nothing")
    assert (tmp_path / ".venv/.installed").exists() == (status == 0)
    first = next(line for line in (tmp_path / "called").read_text().splitlines() if "pip install" in line)
    assert "--require-hashes --requirement requirements.hashes.txt" in first and "--no-deps" in first
