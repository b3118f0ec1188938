"""What a user adds: a metric, scores from elsewhere, a reader, a study. Each is made and shown, and nothing else is touched."""

import hashlib

import pandas as pd
import yaml

TABLE = "results/usr_persona/tables/correlations.md"


def blocks(page, kind):
    """Return the code blocks of a page."""
    return [part.split("```")[0] for part in page.read_text().split(f"```{kind}\n")[1:]]


def test_a_metric_and_scores_computed_elsewhere(finished):
    """docs/adding-a-metric.md and docs/recorded-scores.md: a module and an entry; a file and an entry."""
    before = finished.outputs()
    page = finished.path / "docs/adding-a-metric.md"
    (finished.path / "src/comperdial/metrics/length_ratio.py").write_text(blocks(page, "python")[0])
    finished.edit("params.yaml", "metrics:\n", blocks(page, "yaml")[0])
    scores = pd.read_parquet(finished.path / "results/usr_persona/scores/f1.parquet").query("output == 'f1'")
    scores = scores.rename(columns={"item_id": "context_id"})[["context_id", "system_id", "value"]]
    scores.iloc[:-6].to_csv(finished.path / "scores.csv", index=False)
    entry = blocks(finished.path / "docs/recorded-scores.md", "yaml")[0].replace(
        "dataset: demo", "dataset: usr_persona"
    )
    finished.edit("params.yaml", "evaluation:\n", f"{entry}evaluation:\n")
    finished.snakemake(TABLE)
    made = {name for name in finished.rewritten(before) if name.startswith("data") or "/scores/" in name}
    assert made == {f"results/usr_persona/scores/{name}.parquet" for name in ("length_ratio", "mine")}
    text = (finished.path / TABLE).read_text()
    assert "Length ratio" in text and "mine score" in text
    assert "recorded|format:table|from:scores.csv|sha256:" in text
    assert "75.0" in text, "of the rated responses have a score"


def test_a_reader(fresh):
    """docs/adding-a-dataset.md: a reader and an entry of the catalogue."""
    page = fresh.path / "docs/adding-a-dataset.md"
    (fresh.path / "src/comperdial/data/readers/mine.py").write_text(blocks(page, "python")[0])
    content = blocks(page, "json")[0].encode()
    place = fresh.path / "mirror/owner/name/data/ratings.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    entry = yaml.safe_load(blocks(page, "yaml")[0])
    entry["files"]["mine_ratings"] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    path = fresh.path / "data/sources.yaml"
    catalogue = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({part: catalogue[part] | entry[part] for part in ("files", "datasets")}))
    fresh.snakemake("results/mine/tables/correlations.md", "--config", "datasets=[mine]")
    assert "My set" in (fresh.path / "results/mine/tables/correlations.md").read_text()


def test_a_study_is_two_files_and_another_shape_a_function(finished):
    """docs/architecture.md: study.yaml and reported.csv, then a function of the study's module."""
    page = finished.path / "docs/architecture.md"
    folder, tables = finished.path / "studies/mine", "results/studies/mine/tables"
    folder.mkdir()
    study = blocks(page, "yaml")[0]
    (folder / "study.yaml").write_text(study)
    (folder / "reported.csv").write_text(blocks(page, "csv")[0])
    before = finished.outputs()
    # The mini configuration runs no METEOR: BLEU instead.
    finished.edit("studies/mine/study.yaml", "metric: meteor_raw, output: meteor", "metric: bleu_raw, output: bleu-4")
    finished.snakemake("mine")
    made = {f"{tables}/mine.{form}" for form in ("md", "tex", "csv", "html")}
    # Its outputs have intervals already, so that no other file changes.
    assert finished.rewritten(before) == made
    assert "0.271" in (finished.path / f"{tables}/mine.md").read_text()

    before = finished.outputs()
    (folder / "reported.csv").write_text(blocks(page, "csv")[0].replace("0.271", "0.272"))
    (finished.path / "src/comperdial/studies/mine.py").write_text(blocks(page, "python")[0])
    with (folder / "study.yaml").open("a") as file:
        file.write(
            "  sizes:\n    function: counts\n    title: Sizes\n    caption: Responses.\n"
            "    inputs: {responses: 'data/tables/{dataset}/responses.parquet'}\n"
        )
    finished.snakemake("mine")
    assert finished.rewritten(before) == made | {name.replace("/mine.", "/sizes.") for name in made}
    assert "0.272" in (finished.path / f"{tables}/mine.md").read_text()
    assert pd.read_csv(finished.path / f"{tables}/sizes.csv")["responses"].eq(6).all()
    assert "Nothing to be done" in finished.snakemake("-n", "mine")
