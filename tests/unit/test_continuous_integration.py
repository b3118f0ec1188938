"""What runs on servers that cannot be reached from here: it is YAML, and the commands that it names exist."""

import os
import re
import tomllib

import pytest
import yaml


def workflows(root):
    found = sorted((root / ".github/workflows").glob("*.yml"))
    assert found
    return {path.name: yaml.safe_load(path.read_text()) for path in found}


def commands(root):
    """Return every command line, with the file that it is in."""
    found = []
    for name, workflow in workflows(root).items():
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"] and job["runs-on"]
            for step in job["steps"]:
                assert ("run" in step) != ("uses" in step), (name, step)
                found += [(name, line) for line in step.get("run", "").splitlines()]
    for line in (root / "Dockerfile").read_text().splitlines():
        found += [("Dockerfile", line.removeprefix("RUN "))] if line.startswith("RUN ") else []
    return found


def test_every_command_of_a_workflow_exists(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), flags=re.M))
    named = []
    for name, line in commands(root):
        for target in re.findall(r"\bmake ([a-z-]+)", line):
            assert target in targets, (name, line)
            named.append(target)
        for path in re.findall(r"(?<![\w/])\.ci/[\w-]+", line):
            assert os.access(root / path, os.X_OK), (name, line)
            named.append(path)
        for path in re.findall(r"\S+\.dvc\b", line):
            assert (root / path).is_file(), (name, line)
    assert {"lint", "test", "setup", "docs", ".ci/try-package"} <= set(named)


def test_what_the_pages_workflow_uploads_is_what_make_docs_builds(root):
    steps = workflows(root)["pages.yml"]["jobs"]["deploy"]["steps"]
    (upload,) = [step for step in steps if step.get("uses", "").startswith("actions/upload-pages-artifact@")]
    assert upload["with"]["path"] == yaml.safe_load((root / "mkdocs.yml").read_text())["site_dir"]
    assert "mkdocs build --strict" in (root / "Makefile").read_text()


def test_tests_and_package_run_on_every_python_that_is_promised(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    claimed = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    jobs = workflows(root)["ci.yml"]["jobs"]
    for job in ("test", "package"):
        versions = jobs[job]["strategy"]["matrix"]["python-version"]
        assert claimed <= set(versions) and f">={min(versions)}" == project["requires-python"]


@pytest.mark.parametrize("name", ["data/raw/", ".venv/", ".git/", "results/local/"])
def test_an_image_takes_nothing_that_is_not_in_git(root, name):
    assert name in (root / ".dockerignore").read_text().splitlines()
