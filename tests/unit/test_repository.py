"""The repository itself: what is in git, what the two lists of dependencies say, what the pages promise."""

import csv
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import yaml
from packaging.specifiers import SpecifierSet

from comperdial import schema
from comperdial.config.parameters import Judge
from comperdial.config.registry import completed
from comperdial.data.catalogue import load_catalogue
from comperdial.judges.tasks import read_judging
from comperdial.metrics import kinds

# The name of a package at conda-forge or bioconda where it is not PyPI's.
CONDA_NAMES = {"torch": "pytorch", "dvc": "dvc", "matplotlib": "matplotlib-base"}


def tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def requirements(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return sorted(requirement for found in lists for requirement in found)


def test_conda_s_environment_is_pip_s(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    entries = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    names = {conda: name for name, conda in CONDA_NAMES.items()}
    found = []
    for entry in [*entries, *pip]:
        name, rest = re.match(r"([\w.-]+)(.*)", entry).groups()
        if name not in ("python", "pip", "-e"):
            found.append(names.get(name, name) + rest)
    assert sorted(found) == requirements(root)
    assert "-e ." in pip
    python = tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"python{python}" in entries


def test_every_requirement_is_pinned_in_the_lock(root):
    locked = dict(
        line.split("==")
        for line in (root / "requirements.lock").read_text().splitlines()
        if line and not line.startswith("#")
    )
    locked = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in locked.items()}
    for requirement in requirements(root):
        assert re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower() in locked, requirement


def test_the_hashes_are_of_the_locked_versions(root):
    text = (root / "requirements.hashes.txt").read_text()
    entries = re.findall(r"^([\w.-]+==\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, flags=re.M)
    lock = [line for line in (root / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    locked = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() + "==" + line.partition("==")[2] for line in lock}
    # Whoever sets up chooses the build of torch.
    assert {name for name, _ in entries} == {line for line in locked if not line.startswith("torch==")}
    # No index and no host of whoever wrote it.
    assert not re.search(r"://|^--", text, flags=re.M)


def test_no_data_of_others_and_no_results_are_in_git(root):
    names = tracked(root)
    assert not [n for n in names if n.startswith(("data/raw/", "data/runs/", ".snakemake/"))]
    assert {n for n in names if n.startswith("data/tables/")} <= {"data/tables/demo.dvc", "data/tables/.gitignore"}
    assert not [n for n in names if n.startswith("results/") and not n.endswith((".dvc", "/.gitignore"))]
    assert not [n for n in names if n.endswith((".parquet", ".pkl", ".pickle", ".bin"))]
    pinned = {source.sha256 for source in load_catalogue(root / "data/sources.yaml").files.values()}
    import hashlib

    assert not [n for n in names if hashlib.sha256((root / n).read_bytes()).hexdigest() in pinned]


def test_the_embedded_remote_stays_small(root):
    sizes = {name: (root / name).stat().st_size for name in tracked(root)}
    assert sum(size for name, size in sizes.items() if name.startswith("data/store/")) < 64_000_000
    assert not {name: size for name, size in sizes.items() if size > 1_000_000 and not name.startswith("data/store/")}


def test_no_path_of_a_machine_and_no_pickle(root):
    code = [
        n
        for n in tracked(root)
        if n.endswith((".py", ".ipynb", ".smk", ".yaml", ".yml", ".md", "Snakefile", "Makefile"))
    ]
    for name in code:
        text = (root / name).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(work|root|home|Users)/\w", text), name
        if name.startswith(("src/", "workflow/")):
            assert not re.search(r"\bimport pickle\b|(?<!\.)\beval\(|shell=True", text), name


def test_the_reference_describes_every_command_metric_table_column_and_key(root):
    def page(name):
        program = [sys.executable, "docs/reference.py", name]
        return subprocess.run(program, cwd=root, capture_output=True, text=True, check=True).stdout

    def rows(text, section):
        return set(re.findall(r"^\| `(\w+)`", text.split(f"\n### {section}\n")[1].split("\n### ")[0], flags=re.M))

    tables = page("data-model.md")
    for name, table in schema.TABLES.items():
        assert rows(tables, name) == set(table.columns)
    assert rows(page("configuration.md"), "Judge") == set(Judge.model_fields)
    metrics = page("metrics.md")
    assert all(f"\n### {kind}\n" in metrics for kind in kinds())
    commands = page("command-line.md")
    assert "\n### judge file\n" in commands and "| `--server, --base-url NAME\\|URL` |" in commands
    assert "| `usr_persona` | USR-Persona | turn |" in page("data-sets.md")


def test_links_between_pages_lead_somewhere(root):
    for page in [root / "README.md", *(root / "docs").glob("*.md"), root / "CONTRIBUTING.md", root / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http", "mailto")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_reported_number_has_a_source(root):
    known = yaml.safe_load((root / "studies/usr/study.yaml").read_text())["tables"]["usr"]["sources"]
    for name in ("agreement", "reported", "grade_correlations", "system_means"):
        path = root / f"studies/usr/{name}.csv"
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                assert row["source"] in known, path
                assert -1 <= float(row["value"]) <= 5


def test_the_rows_of_the_usr_table_find_their_reported_values(root):
    rows = yaml.safe_load((root / "studies/usr/study.yaml").read_text())["tables"]["usr"]["rows"]
    params = completed(yaml.safe_load((root / "params.yaml").read_text()))
    with (root / "studies/usr/reported.csv").open(newline="") as file:
        known = {(row["source"], row["metric"]) for row in csv.DictReader(file)}
    judged = read_judging(params["judges"], params["judging"]).tasks("usr_topical")
    metrics = params["metrics"] | params["recorded"] | params["recorded_judges"] | judged
    for row in rows:
        assert "reported" not in row or (row["source"], row["reported"]) in known, row
        assert "metric" not in row or row["metric"] in metrics, row


def test_every_number_of_the_finding_is_in_the_published_table_that_it_names(root):
    import dvc.api

    finding = (root / "README.md").read_text().split("## Findings")[1].split("![")[0]
    points = finding.split("\n- ")[1:]
    assert len(points) == 3
    for point in points:
        tables = re.findall(r"`(results/[\w/]+\.md)`", point)
        content = " ".join(dvc.api.read(name, repo=str(root)) for name in tables).replace("*", "")
        numbers = re.findall(r"\d+\.\d+(?: \[[^\]]+\])?", point)
        assert tables
        assert [number for number in numbers if number not in content] == []
        said = " ".join(point.split())
        assert [
            (some, n)
            for some, n in re.findall(r"(none|\d+) of the (\d+) pairs", said)
            if f"of {n} pairs of metrics {0 if some == 'none' else some} differ" not in content
        ] == []
        by_wmt = re.search(r"separates (\d+) and (\d+)", said)
        assert by_wmt is None or all(f"{count} by WMT's" in content for count in by_wmt.groups())


def test_the_table_of_results_is_what_the_results_say(root):
    """Each number of the table in docs/results.md is in results/studies/usr/tables/usr.csv as HEAD publishes it."""
    import dvc.api

    content = dvc.api.read("results/studies/usr/tables/usr.csv", repo=str(root))
    page = (root / "docs/results.md").read_text()
    block = page.split("<!-- usr-table -->")[1].split("<!-- /usr-table -->")[0].strip().splitlines()
    found = {(r["label"], r["dataset"], r["level"], r["coefficient"]): r for r in csv.DictReader(content.splitlines())}
    cells = [
        ("usr_topical", "turn", "pearson"),
        ("usr_topical", "turn", "spearman"),
        ("usr_persona", "turn", "pearson"),
        ("usr_persona", "turn", "spearman"),
    ]
    assert len(block) > 8
    for line in block[2:]:
        label, *values = (cell.strip() for cell in line.strip("|").split("|"))
        for cell, value in zip(cells, values, strict=True):
            row = found[(label, *cell)]
            if not row["ours"]:
                assert value == "–" and row["not_run"], (label, cell)
                continue
            expected = f"{float(row['ours']) + 0.0:.3f}" + (r"\*" if float(row["p"]) >= 0.05 else "")
            expected += "‡" if row.get("loso_halved") == "True" else ""
            if row["reported"]:
                expected += f" ({float(row['reported']):.3f}" + (r"\*)" if row["reported_starred"] == "True" else ")")
            assert value == expected, (label, cell)


def test_the_citation_file_has_the_version(root):
    import comperdial

    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] == comperdial.__version__
    assert f"## {comperdial.__version__}" in (root / "CHANGELOG.md").read_text()
    assert json.dumps(project["license"]) == '"MIT"' and citation["license"] == "MIT"


def test_every_pin_installs_on_the_oldest_python(root):
    pins = [line.partition("==")[0] for line in (root / "requirements.lock").read_text().splitlines() if "==" in line]
    needs = {name: metadata.metadata(name)["Requires-Python"] for name in pins if _installed(name)}
    assert len(needs) > 100
    assert {name: spec for name, spec in needs.items() if spec and "3.11.0" not in SpecifierSet(spec)} == {}


def _installed(name):
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def test_the_page_that_dvc_plots_fills_in_loads_nothing(root):
    page = subprocess.run(
        [sys.executable, "workflow/plots_page.py"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert "{plot_divs}" in page and "{refresh_tag}" in page and "vegaEmbed" in page
    assert not re.search(r"<(script|link)\b[^>]*\b(src|href)=", page)


def test_git_ignores_results_published_or_not_and_no_folder_that_holds_dvc_files(root):
    """DVC does not look into a folder that git ignores: `dvc pull` would not see the .dvc files in it."""

    def is_ignored(name):
        return subprocess.run(["git", "check-ignore", "--quiet", name], cwd=root).returncode == 0

    assert all(is_ignored(f"results/{name}") for name in ("demo/x", "mine/report.html", "studies/usr/x", "local/x"))
    assert not any(is_ignored(f"results/{name}") for name in ("demo.dvc", "studies/usr.dvc", "studies"))
