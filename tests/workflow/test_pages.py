"""What a researcher adds, as its page in docs says, or as one file: it is run and shown, and nothing else is touched."""

import hashlib

import pandas as pd
import yaml

TABLE = "results/usr_persona/tables/correlations.md"
TOY = '''"""A study of one table: our correlations beside reported ones."""

import pandas as pd

from comperdial import schema
from comperdial.core.artifact import table
from comperdial.report.document import Document, Section


@table(
    "studies/toy/tables/toy_{dataset}",
    of=lambda plan: plan.rated,
    inputs=lambda plan, dataset: {
        "correlations": f"results/{dataset}/correlations.parquet",
        "reported": "src/comperdial/studies/toy/reported.csv",
    },
    settings=lambda plan, dataset: {"title": plan.title(dataset)},
    category="Toy",
)
def beside(*, correlations, reported, title):
    """Show ours beside theirs."""
    found = schema.read(correlations, "correlations").query("level == 'turn' and grouping == 'pooled' and output == 'f1'")
    found = found.query("coefficient == 'pearson' and target == 'Overall'")
    ours = found[["metric", "value"]].merge(pd.read_csv(reported), on="metric")
    rows = [[row.metric, f"{row.value:.3f}", f"{row.reported:.3f}"] for row in ours.itertuples()]
    return Document(title, "Toy.", [Section("", [("", "metric"), ("r", "ours"), ("r", "theirs")], rows)], ours)
'''


def test_a_metric_and_scores_computed_elsewhere(finished):
    """docs/adding-a-metric.md and docs/recorded-scores.md, followed: a file and an entry each."""
    before = finished.outputs()
    page = (finished.path / "docs/adding-a-metric.md").read_text()
    code, entry = page.split("```python\n")[1].split("```")[0], page.split("```yaml\n")[1].split("```")[0]
    (finished.path / "src/comperdial/metrics/length_ratio.py").write_text(code)
    finished.edit("params.yaml", "metrics:\n", entry)
    scores = pd.read_parquet(finished.path / "results/usr_persona/scores/f1.parquet").query("output == 'f1'")
    scores = scores.rename(columns={"item_id": "context_id"})[["context_id", "system_id", "value"]]
    scores.iloc[:-6].to_csv(finished.path / "scores.csv", index=False)
    entry = (finished.path / "docs/recorded-scores.md").read_text().split("```yaml\n")[1].split("```")[0]
    finished.edit(
        "params.yaml", "evaluation:\n", entry.replace("dataset: demo", "dataset: usr_persona") + "evaluation:\n"
    )
    finished.snakemake(TABLE)
    made = {name for name in finished.rewritten(before) if name.startswith("data") or "/scores/" in name}
    assert made == {f"results/usr_persona/scores/{name}.parquet" for name in ("length_ratio", "mine")}
    text = (finished.path / TABLE).read_text()
    assert "| Length ratio |" in text and "| mine score |" in text
    assert "- mine is recorded|format:table|from:scores.csv|sha256:" in text
    assert "mine score: 75.0% of the rated responses of usr_persona have a score" in text


def test_a_reader(fresh):
    """docs/adding-a-dataset.md, followed: a reader and an entry in the catalogue."""
    page = (fresh.path / "docs/adding-a-dataset.md").read_text()
    (fresh.path / "src/comperdial/data/readers/mine.py").write_text(page.split("```python\n")[1].split("```")[0])
    content = page.split("```json\n")[1].split("```")[0].encode()
    place = fresh.path / "mirror/owner/name/data/ratings.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    entry = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    entry["files"]["mine_ratings"] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    path = fresh.path / "data/sources.yaml"
    catalogue = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({part: catalogue[part] | entry[part] for part in ("files", "datasets")}))
    fresh.snakemake("results/mine/tables/correlations.md", "--config", "datasets=[mine]")
    page = (fresh.path / "results/mine/tables/correlations.md").read_text()
    assert "My set" in page and "| f1 | 0." in page


def test_a_study_is_a_folder(finished):
    before = finished.outputs()
    folder = finished.path / "src/comperdial/studies/toy"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""A toy."""\n')
    (folder / "tables.py").write_text(TOY)
    (folder / "reported.csv").write_text("metric,reported\nf1,0.5\n")
    finished.snakemake("toy")
    assert finished.rewritten(before) == forms("toy_usr_persona")
    ours = pd.read_csv(finished.path / "results/studies/toy/tables/toy_usr_persona.csv").set_index("metric")
    assert (
        f"| f1 | {ours.loc['f1', 'value']:.3f} | 0.500 |"
        in (finished.path / "results/studies/toy/tables/toy_usr_persona.md").read_text()
    )
    # Another table is one file; edited reported values are shown anew, and all else stays.
    before = finished.outputs()
    (folder / "more.py").write_text(TOY.replace("toy_{dataset}", "more_{dataset}").replace("Toy.", "More."))
    (folder / "reported.csv").write_text("metric,reported\nf1,0.6\n")
    finished.snakemake("toy")
    assert finished.rewritten(before) == forms("toy_usr_persona") | forms("more_usr_persona")
    assert "More." in (finished.path / "results/studies/toy/tables/more_usr_persona.md").read_text()
    assert "Nothing to be done" in finished.snakemake("-n")


def forms(name):
    return {f"results/studies/toy/tables/{name}.{form}" for form in ("md", "tex", "csv", "html")}
