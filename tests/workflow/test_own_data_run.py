"""A researcher's own rated responses, one line of configuration, with everything else as it ships."""

import csv
import os
import re

import pandas as pd
import pytest

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


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    """Run the page of the data set, which takes its figures, and a table, as `make reproduce` does."""
    workdir = copy_repository(root, tmp_path_factory.mktemp("own") / "repository", shipped=True)
    write_warmth(workdir.path / "It's warm.csv")
    workdir.targets = ("results/it_s_warm/report.html", "results/it_s_warm/tables/correlations.html")
    workdir.choice = ("--config", 'datasets=["It\'s warm.csv"]')
    workdir.snakemake(*workdir.targets, *workdir.choice)
    return workdir


def test_one_line_gives_the_whole_report(run):
    """What the data lack is a row that says so."""
    tables, figures = run.path / "results/it_s_warm/tables", run.path / "results/it_s_warm/figures"
    assert "It's warm" in (run.path / "results/it_s_warm/report.html").read_text().replace("&#x27;", "'").replace(
        "&#39;", "'"
    )
    page = (tables / "correlations.md").read_text()
    assert "It's warm" in page and "warmth" in page
    assert re.search(r"^- Not run: \d+ metrics and judges: ", page, re.M)
    assert re.search(r"^- .*BLEU-4.*: it_s_warm has no references where warmth was rated", page, re.M)
    assert re.search(r"^- .*Grounded cosine.*: it_s_warm has no facts where warmth was rated", page, re.M)
    found = pd.read_parquet(run.path / "results/it_s_warm/correlations.parquet")
    there = found[found["value"].notna() & (found["level"] == "turn")]
    assert set(zip(there["metric"], there["output"], strict=True)) == {("grounded-cosine-minilm", "context")}
    pooled = found[found["value"].notna() & (found["grouping"] == "pooled")]
    assert dict(zip(pooled["level"], pooled["n"], strict=True)) == {"turn": 30, "system": 3}
    assert "no agreement to measure, no human ceiling" in (tables / "alpha.md").read_text()
    for kind in ("heatmap", "scatter", "length_bias", "slope", "curves"):
        assert (figures / f"{kind}.png").is_file()
    # Vectors outlive the jobs that made them.
    assert list((run.path / "data/embeddings").glob("*.sqlite"))


def test_an_edited_file_reruns_what_is_made_of_it(run):
    assert "Nothing to be done" in run.snakemake("-n", *run.targets, *run.choice)
    path = run.path / "It's warm.csv"
    # Replaced by a file with an older date and as many bytes, as `cp -p` does.
    content = path.read_bytes()
    path.write_bytes(content.replace(b",5", b",3"))
    os.utime(path, (1e9, 1e9))
    assert "logs/read/it_s_warm.log" in run.snakemake("-n", *run.targets, *run.choice)
    path.write_bytes(content)
    assert "Nothing to be done" in run.snakemake("-n", *run.targets, *run.choice)
    path.write_text(path.read_text().replace(",5", ",4"))
    assert "logs/read/it_s_warm.log" in run.snakemake("-n", *run.targets, *run.choice)
    path.write_text(path.read_text().replace("response", "column 3", 1))
    output = run.snakemake("-n", *run.choice, check=False)
    assert "Error: " in output and "response" in output and "Traceback" not in output


def test_japanese_data_run_without_the_metrics_for_english(root, tmp_path):
    """docs/adding-a-dataset.md, its section on languages: metrics for English are rows that say why they were not run."""
    workdir = copy_repository(root, tmp_path / "repository", shipped=True)
    page = (root / "docs/adding-a-dataset.md").read_text().split("### Languages other than English")[1]
    (workdir.path / "japanese.csv").write_text(page.split("```csv\n")[1].split("```")[0])
    workdir.snakemake("results/japanese/tables/correlations.html", "--config", "datasets=[japanese.csv]")
    page = (workdir.path / "results/japanese/tables/correlations.md").read_text()
    reason = "English only, and the responses are in other scripts (Japanese (Hiragana, Katakana, Han) 100 %)"
    assert re.search(rf"^- .*; METEOR; .*: {re.escape(reason)}", page, re.MULTILINE)
    scored = {path.stem for path in (workdir.path / "results/japanese/scores").glob("*.parquet")}
    assert {"f1", "bleu", "rouge", "chrf"} <= scored and not {"meteor", "bertscore-minilm", "density"} & scored
    for name, tag in {"f1": "|split:characters|", "rouge": "|tokens:unicode|", "chrf": ""}.items():
        scores = pd.read_parquet(workdir.path / f"results/japanese/scores/{name}.parquet")
        assert scores["value"].max() > 0.3 and all(tag in text for text in scores["signature"])
