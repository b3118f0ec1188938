"""The DAG on a small invented data set: what runs, what does not run again, and what breaks how."""

import json

import pandas as pd
import pytest

SCORES = "results/scores/usr_persona/{}.parquet"
FROM_CORRELATIONS = {
    "results/correlations/usr_persona.parquet",
    *(f"results/tables/usr.{suffix}" for suffix in ("md", "tex", "csv", "html")),
    *(f"results/tables/usr_persona_correlations.{suffix}" for suffix in ("md", "tex", "csv", "html")),
    *(f"results/figures/usr.{suffix}" for suffix in ("png", "pdf", "svg")),
    "results/summary/metrics.json",
    "results/summary/plot.json",
    "results/notebooks/01_reading_the_usr_table.html",
}


def test_nothing_changed_nothing_runs(finished):
    before = finished.outputs()
    assert "Nothing to be done" in finished.snakemake()
    assert finished.rewritten(before) == set()


def test_touched_files_make_nothing_stale(finished):
    before = finished.outputs()
    for name in [*before, "src/comperdial/metrics/bleu.py", "data/paper/usr_rows.yaml"]:
        (finished.path / name).touch()
    assert "Nothing to be done" in finished.snakemake("-n")


def test_a_metric_s_parameter_reruns_it_and_what_comes_of_it_only(finished):
    before = finished.outputs()
    finished.edit("params.yaml", "bleu_raw: {kind: bleu, text: raw}", "bleu_raw: {kind: bleu, text: raw, epsilon: 0.1}")
    finished.snakemake()
    assert finished.rewritten(before) == FROM_CORRELATIONS | {SCORES.format("bleu_raw")}
    assert "epsilon:0.1" in (finished.path / "results/tables/usr.csv").read_text()


def test_an_edit_to_a_metric_s_code_reruns_it(finished):
    with (finished.path / "src/comperdial/metrics/f1.py").open("a") as file:
        file.write("# changed\n")
    listed = finished.snakemake("-n")
    assert "score: " in " ".join(listed.split()) or "score " in listed
    assert SCORES.format("f1") in listed
    assert f"output: {SCORES.format('bleu_raw')}" not in listed


def test_a_new_reported_number_reruns_the_table_only(finished):
    before = finished.outputs()
    finished.edit(
        "data/paper/usr_correlations.csv",
        "yeh2021,usr_persona,turn,BLEU-4,pearson,0.135",
        "yeh2021,usr_persona,turn,BLEU-4,pearson,0.136",
    )
    finished.snakemake()
    tables = {name for name in FROM_CORRELATIONS if "/usr." in name} | {
        "results/notebooks/01_reading_the_usr_table.html"
    }
    assert finished.rewritten(before) == tables


def test_an_added_metric_runs_alone(finished):
    before = finished.outputs()
    finished.edit("params.yaml", "  f1: {kind: f1}\n", "  f1: {kind: f1}\n  chrf: {kind: chrf}\n")
    finished.snakemake()
    assert finished.rewritten(before) == FROM_CORRELATIONS | {SCORES.format("chrf")}


def test_a_metric_added_as_one_file_and_one_line(finished):
    """docs/adding-a-metric.md, followed: the file, the entry in params.yaml, and the metric is in the tables."""
    before = finished.outputs()
    page = (finished.path / "docs/adding-a-metric.md").read_text()
    code, entry = page.split("```python\n")[1].split("```")[0], page.split("```yaml\n")[1].split("```")[0]
    (finished.path / "src/comperdial/metrics/length_ratio.py").write_text(code)
    finished.edit("params.yaml", "metrics:\n", entry)
    finished.snakemake()
    assert finished.rewritten(before) == FROM_CORRELATIONS | {SCORES.format("length_ratio")}
    table = (finished.path / "results/tables/usr_persona_correlations.md").read_text()
    assert "| length_ratio length-ratio |" in table


def test_a_metric_that_cannot_run_is_left_out_by_name(finished):
    table = (finished.path / "results/tables/usr.md").read_text()
    assert "- METEOR: not run: " in table
    assert "expected WordNet 9.9" in table
    assert "| METEOR | Yeh et al. 2021 | – | 0.253 |" in table
    assert "- BERTScore: not run: " in table
    assert "- Word F1: not run: no metric 'f1_raw' in params.yaml" in table
    assert "meteor_raw: not run: " in (finished.path / "results/tables/usr_persona_correlations.md").read_text()
    assert not (finished.path / SCORES.format("meteor_raw")).exists()


def test_the_tidy_frame_says_the_same_as_the_table(finished):
    frame = pd.read_csv(finished.path / "results/tables/usr.csv")
    run = frame.dropna(subset=["ours", "reported"])
    assert (run["ours"] - run["reported"] - run["difference"]).abs().max() < 2e-6
    metrics = json.loads((finished.path / "results/summary/metrics.json").read_text())
    row = frame.query("label == 'BLEU-4' and level == 'turn' and coefficient == 'pearson'").iloc[0]
    assert metrics["usr_persona"]["turn"]["bleu_raw"]["bleu-4"]["pearson"] == pytest.approx(row["ours"], abs=1e-4)
    assert row["n"] == 24, "six contexts by four systems: the references are not scored"


def test_another_folder_gives_the_same_bytes(finished, fresh):
    fresh.snakemake()
    ours, theirs = finished.outputs(), fresh.outputs()
    assert set(ours) == set(theirs)
    different = {name for name in ours if ours[name][1] != theirs[name][1]}
    assert different == set()


def test_datasets_can_be_chosen(finished):
    before = finished.outputs()
    finished.snakemake("--config", "datasets=[usr_topical]")
    made = finished.rewritten(before)
    assert {"results/correlations/usr_topical.parquet", "results/tables/usr.md"} <= made
    assert "Mini usr_persona" not in (finished.path / "results/tables/usr.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[usr_persona]", "[usr_person]", "unknown dataset 'usr_person'"),
        ("kind: bleu,", "kind: blue,", "unknown metric 'blue'; expected one of"),
        ("kind: bleu, text: raw", "kind: bleu, txt: raw", "Did you mean 'text'?"),
        ("levels: [turn, system]", "levels: [turns]", "setting evaluation.levels.0: 'turns'"),
        ("datasets: [usr_persona]", "dataset: [usr_persona]", "Additional properties|'datasets' is a required"),
    ],
)
def test_a_wrong_configuration_is_one_message(fresh, old, new, message):
    fresh.edit("params.yaml", old, new)
    said = fresh.snakemake("-n", check=False)
    assert any(part in said for part in message.split("|")), said
    assert "Traceback" not in said


def test_broken_data_stops_with_its_name_and_leaves_no_output(fresh):
    ratings = fresh.path / "mirror/invented/mini/data/ratings.json"
    ratings.write_bytes(ratings.read_bytes()[:-100])
    done = fresh.run("snakemake", "--cores", "2", check=False)
    assert done.returncode != 0
    assert "ratings.json: source 'mini_ratings' has sha256" in done.stdout
    assert "expected sha256" in done.stdout
    assert "Traceback" not in done.stdout
    assert not [name for name in fresh.outputs() if name.startswith(("data/tables", "results/scores"))]


def test_the_report_is_one_offline_page(finished):
    finished.snakemake("--report", "report.html")
    page = (finished.path / "report.html").read_text()
    assert "usr.html" in page
    assert len(page) > 100_000
