"""A researcher's own data, with the configuration as it ships: a file in one line, and a reader of one's own."""

import csv
import hashlib

import pandas as pd
import pytest
import yaml

from workdir import copy_repository

QUESTIONS = ("how are you ?", "do you like tea ?", "and trains ?", "who are you ?", "where do you live ?") * 2
ANSWERS = {"kind": "i am glad that you ask , {} you are lovely", "dull": "no {}", "odd": "fish swim {} in the sea"}


def write_warmth(path):
    """Thirty responses of three systems: no references, no facts, one rater, a dimension that no paper has."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["system", "history", "response", "dimension", "rating"])
        for number, question in enumerate(QUESTIONS):
            for system, answer in ANSWERS.items():
                rating = {"kind": 4, "dull": 1, "odd": 2}[system] + (number + len(system)) % 2
                said = answer.format(question.split()[-2] * (1 + number // 5))
                rows.writerow([system, f"{question} {number}", said, "warmth", rating])


def add_page_s_data_set(workdir):
    page = (workdir.path / "docs/adding-a-dataset.md").read_text()
    (workdir.path / "src/comperdial/datasets/mine.py").write_text(page.split("```python\n")[1].split("```")[0])
    content = page.split("```json\n")[1].split("```")[0].encode()
    place = workdir.path / "mirror/owner/name/data/ratings.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    entry = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    entry["files"]["mine_ratings"] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    path = workdir.path / "data/sources.yaml"
    catalogue = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({part: catalogue[part] | entry[part] for part in ("files", "datasets")}))


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    """Both data sets, run as `make reproduce` runs them."""
    workdir = copy_repository(root, tmp_path_factory.mktemp("own") / "repository", shipped=True)
    write_warmth(workdir.path / "warmth.csv")
    workdir.edit("params.yaml", "own_data: {}", "own_data: {warm: {file: warmth.csv, title: How warm}}")
    add_page_s_data_set(workdir)
    workdir.choice = ("--config", "datasets=[warm, mine]", "mirror=mirror")
    workdir.snakemake(*workdir.choice)
    return workdir


def test_one_line_gives_the_whole_report(run):
    """Tables, figures and the page; what the data lack is a row that says so."""
    tables, figures = run.path / "results/tables", run.path / "results/figures"
    assert "How warm" in (run.path / "results/report/warm.html").read_text()
    page = (tables / "warm_correlations.md").read_text()
    assert "Correlation of every output of every metric with the mean human rating (warmth) on How warm." in page
    assert "| bleu bleu-4 | not run | not run | not run |" in page
    assert "- bleu bleu-4: not run: warm has no references where warmth was rated\n" in page
    assert "- grounded-cosine-minilm sum: not run: warm has no facts where warmth was rated\n" in page
    found = pd.read_parquet(run.path / "results/correlations/warm.parquet")
    there = found[found["value"].notna() & (found["level"] == "turn")]
    assert set(zip(there["metric"], there["output"], strict=True)) == {("grounded-cosine-minilm", "context")}
    assert there.loc[there["grouping"] == "pooled", "low"].notna().all(), "what there is gets intervals"
    pooled = found[found["value"].notna() & (found["grouping"] == "pooled")]
    assert dict(zip(pooled["level"], pooled["n"], strict=True)) == {"turn": 30, "system": 3}
    assert "no agreement to measure, no human ceiling" in (tables / "warm_alpha.md").read_text()
    for kind in ("heatmap", "scatter", "length_bias", "slope", "curves"):
        assert (figures / f"warm_{kind}.png").is_file()
    assert "ComperDial" not in (tables / "warm_systems.md").read_text()


def test_a_reader_added_as_its_page_says(run):
    page = (run.path / "results/tables/mine_correlations.md").read_text()
    assert "| f1 f1 | 0." in page
    assert "- grounded-cosine-minilm sum: not run: mine has no facts where Overall was rated\n" in page
    assert "My set" in (run.path / "results/local/mine.html").read_text()


def test_a_file_named_as_a_data_set_goes_by_its_name(run):
    page = (run.path / "docs/adding-a-dataset.md").read_text()
    (run.path / "Page's own.csv").write_text(page.split("```csv\n")[1].split("```")[0])
    choice = ("--config", 'datasets=["Page\'s own.csv"]')
    assert "results/report/page_s_own.html" in run.snakemake("-n", *choice)
    run.snakemake("data/tables/page_s_own/turn_ratings.parquet", *choice)
    assert set(pd.read_parquet(run.path / "data/tables/page_s_own/turn_ratings.parquet")["dimension"]) == {"warmth"}


def test_a_second_run_has_nothing_to_do_and_an_edited_file_reruns_what_it_is_made_of(run):
    assert "Nothing to be done" in run.snakemake("-n", *run.choice)
    (run.path / "warmth.csv").write_text((run.path / "warmth.csv").read_text().replace(",5", ",4"))
    stale = run.snakemake("-n", "--quiet", "rules", *run.choice)
    assert "read_own_data" in stale
    assert "ingest" not in stale


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{file: none.csv}", "none.csv: no such file"),
        ("{file: warmth.csv, colums: {}}", "colums"),
        ("{file: warmth.csv, columns: {response: reply}}", "reply"),
    ],
)
def test_a_wrong_entry_is_one_message(run, entry, message):
    before = (run.path / "params.yaml").read_text()
    run.edit("params.yaml", "own_data: {warm: {file: warmth.csv, title: How warm}}", f"own_data: {{warm: {entry}}}")
    try:
        said = run.snakemake("-n", "--config", "datasets=[warm]", check=False)
    finally:
        (run.path / "params.yaml").write_text(before)
    assert "Wrong configuration" in said
    assert message in said
    assert "Traceback" not in said
