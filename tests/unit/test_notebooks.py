"""The notebooks: they run, on little data too, and no result stands in them by hand."""

import ast
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from functools import cache

import jupytext
import numpy as np
import pandas as pd
import pytest

from comperdial import metric, schema
from comperdial.challenge.dialogues import make_tables, read_dialogues
from comperdial.cli import main
from comperdial.core.errors import MissingResourceError
from comperdial.metrics.scoring import score_tables
from comperdial.report import notebook, reading, showing
from comperdial.report.render import SIMULATED
from conftest import ROOT

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
SYSTEMS = ("copier", "dull", "human-1", "looper", "speaker")
RATERS = ("r1", "r2", "r3")
METRICS = {"f1": "f1", "chrf": "chrf", "bleu": "bleu-1", "rouge": "rougeL-f"}
# Made up, as if by a model and by a judge.
OTHERS = {"grounded-cosine-minilm": ("sum", "f1"), "cpds-d_rules": ("humanness", "chrf")}
SIGNATURES = {
    "cpds-d_rules": "cpdscore|prompt:cpds_detail@0|judge:rules",
    "grounded-cosine-minilm": "grounded_cosine|model:all-MiniLM-L6-v2@0",
}


@pytest.fixture(autouse=True)
def logging_as_before():
    """A notebook may silence logging; what runs in this process after it must not be silent too."""
    yield
    logging.disable(logging.NOTSET)


def cells(source, kind):
    return [cell.source for cell in jupytext.read(source).cells if cell.cell_type == kind]


def run(name, root, monkeypatch, dataset="demo"):
    """Run a notebook's code in this process, and return what it shows."""
    monkeypatch.chdir(root)
    monkeypatch.setenv(reading.DATASET_VARIABLE, dataset)
    monkeypatch.delenv(reading.TARGET_VARIABLE, raising=False)
    monkeypatch.delenv(reading.SOURCE_VARIABLE, raising=False)
    (source,) = (path for path in SOURCES if path.stem.startswith(name))
    space, shown = {"__name__": "notebook"}, []
    for code in cells(source, "code"):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, source.name, "exec"), space)  # our own notebooks
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), source.name, "eval"), space))
    return shown


@pytest.fixture(scope="module")
def shown_before(small):
    """Return a function: a notebook's name -> what it showed when it was first run on little data."""

    @cache
    def shown(name):
        with pytest.MonkeyPatch.context() as patch:
            return run(name, small, patch)

    return shown


def rated(level, items, rng):
    return [
        {
            "dataset": "demo", "level": level, "item_id": item, "system_id": system, "annotator_id": rater, "position": None,
            "dimension": "Overall", "rating": float(np.clip(round(place + rng.normal()) + 1, 1, 5)),
            "scale_min": 1.0, "scale_max": 5.0, "source": "simulated",
        }
        for item in items
        for place, system in enumerate(SYSTEMS)
        for rater in RATERS
    ]  # fmt: skip


def write_results(root, names, rng):
    """Write the five tables of an evaluation, with made-up numbers."""
    keys = [
        {"dataset": "demo", "level": level, "against": against, "target": "Overall"} for level, against in reading.CELLS
    ]
    correlations, ceilings, pairs, curves, power = [], [], [], [], []
    for key in keys:
        system = key["level"] == "system"
        for name, output, signature in names:
            for coefficient in ("pearson", "spearman", "kendall", *(("acc_eq", "spa") if system else ())):
                for grouping in ("pooled",) if system else ("pooled", "item"):
                    value = rng.uniform(0.1, 0.8)
                    correlations.append(
                        key
                        | {"metric": name, "output": output, "grouping": grouping, "coefficient": coefficient}
                        | {"value": value, "low": value - 0.1, "high": value + 0.1, "p": 0.01, "n": 5}
                        | {"loso_value": None, "loso_system": None}
                        | {
                            "coverage": 1.0,
                            "cut": 0,
                            "lacking": None,
                            "signature": signature,
                        }
                    )
            curves += [
                key
                | {"coefficient": "spearman", "varied": varied, "size": size, "metric": name, "output": output}
                | {"value": 0.5, "low": 0.4, "high": 0.6, "agreement": 0.5, "repeats": 10}
                for varied in ("systems", "dialogues")
                for size in (2, 3)
            ]
        ceilings += [
            key | {"grouping": "pooled", "coefficient": "spearman", "annotator_id": rater, "value": 0.9, "n": 5}
            for rater in RATERS
        ]
        for at, (a, output_a, _) in enumerate(names):
            for b, output_b, _ in names[at + 1 :]:
                pair = {"metric_a": a, "output_a": output_a, "metric_b": b, "output_b": output_b, "difference": 0.1}
                tests = {
                    "p": 0.04,
                    "n": 5,
                    "test": "made up",
                }
                pairs.append(key | {"grouping": "pooled", "coefficient": "spearman"} | pair | tests)
                if key["level"] == "turn":
                    power.append(
                        key
                        | {"grouping": "pooled", "coefficient": "spearman", "varied": "systems", "size": 5}
                        | pair
                        | {"power": 0.3}
                    )
    folder = root / "results/demo"
    tables = {"correlations": correlations, "ceilings": ceilings, "pairs": pairs}
    for name, rows in (tables | {"curves": curves, "power": power}).items():
        schema.write(
            folder / f"{name}.parquet",
            pd.DataFrame(rows).reindex(columns=schema.table(name).columns),
            name,
        )
    (folder / "about.json").write_text(json.dumps({"apart": [], "outputs": []}))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a repository with two of the demo's dialogues, five systems, and made-up results."""
    root = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(7)
    (root / "params.yaml").write_text("tables: {benchmark: demo}\n")
    (root / "data/demo").mkdir(parents=True)
    chosen = json.loads((ROOT / "data/demo/dialogues.json").read_text())[:2]
    (root / "data/demo/dialogues.json").write_text(json.dumps(chosen))
    dialogues = read_dialogues(root / "data/demo/dialogues.json")
    says = {
        "copier": lambda dialogue, turn: dialogue.history(turn)[-1]["text"],
        "dull": lambda dialogue, turn: "i do not know",
        "human-1": lambda dialogue, turn: f"well, {dialogue.reference(turn)}",
        "looper": lambda dialogue, turn: dialogue.personas["B"][turn],
        "speaker": lambda dialogue, turn: f"{dialogue.reference(turn)} and {dialogue.personas['B'][0]}",
    }
    about = {name: {"kind": "human" if "human" in name else "agent", "track": None, "description": ""} for name in says}
    responses = {
        name: {(d.dialogue_id, turn): answer(d, turn) for d in dialogues for turn in range(d.turns)}
        for name, answer in says.items()
    }
    folder = root / "data/tables/demo"
    folder.mkdir(parents=True)
    tables = make_tables("demo", dialogues, about, responses, where="test")
    for name, table in tables.items():
        schema.write(folder / f"{name}.parquet", table, name)
    rows = rated("turn", tables["contexts"]["context_id"], rng)
    rows += rated("dialogue", tables["contexts"]["dialogue_id"].unique(), rng)
    schema.write(folder / "ratings.parquet", pd.DataFrame(rows), "ratings")
    scores = root / "results/demo/scores"
    scores.mkdir(parents=True)
    made = {
        name: score_tables(metric(name), name, folder).query("output == @output") for name, output in METRICS.items()
    }
    for name, (output, like) in OTHERS.items():
        made[name] = made[like].assign(metric=name, output=output, signature=SIGNATURES[name])
    for name, frame in made.items():
        schema.write(scores / f"{name}.parquet", frame, "scores")
    write_results(
        root, [(f["metric"].iloc[0], f["output"].iloc[0], f["signature"].iloc[0]) for f in made.values()], rng
    )
    judged = made["cpds-d_rules"].assign(rationale="It says something.")
    (root / "results/demo/judgements").mkdir(parents=True)
    judged.to_parquet(root / "results/demo/judgements/cpds-d_rules.parquet")
    rows = [
        {
            "level": level,
            "dimension": "Overall",
            "annotator_id": rater,
            "statistic": statistic,
            "value": 0.5,
            "low": 0.4,
            "high": 0.6,
        }
        for level in ("turn", "dialogue")
        for statistic, raters in {"alpha_ordinal": [None], "bias": RATERS}.items()
        for rater in raters
    ]
    (root / "results/demo/tables").mkdir()
    pd.DataFrame(rows).to_csv(root / "results/demo/tables/alpha.csv", index=False)
    return root


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_result_is_typed_in(source):
    """A result has decimals; text and code have none but in thresholds, which are numbers and not text."""
    for text in cells(source, "markdown"):
        assert not re.search(r"\d\.\d", re.sub(r"`[^`]*`", "", text)), text
    for code in cells(source, "code"):
        written = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        assert not [text for text in written if isinstance(text, str) and re.search(r"\d\.\d\d", text)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_has_an_ipynb_in_step_without_outputs(source):
    paired = source.with_suffix(".ipynb")
    assert paired.is_file(), "`make format` writes it"
    expected, found = (
        [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in jupytext.read(path).cells]
        for path in (source, paired)
    )
    assert found == expected, "`make format` brings it in step"
    assert not any(cell.get("outputs") for cell in jupytext.read(paired).cells), "`make format` clears outputs"


def test_executed_from_any_folder_it_finds_its_repository_and_says_what_to_run(tmp_path):
    """In the repository there is nothing but the configuration: the sentence, and none of our code."""
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    for folder in (repository / "notebooks", elsewhere):
        folder.mkdir(parents=True)
    (repository / "params.yaml").write_text("tables: {benchmark: demo}\n")
    page = shutil.copy(ROOT / "notebooks/07_checking_the_demo.ipynb", repository / "notebooks")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", page, "--output-dir", elsewhere]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 1
    said = f"{repository}: results/demo/tables/systems.csv is missing. Run `make reproduce`, or `dvc pull` there"
    assert said in done.stderr
    assert "reading.py" not in done.stderr


def test_a_copy_outside_of_the_repository_reads_the_one_that_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert reading.here("demo").root == ROOT


@pytest.mark.parametrize("name", ["01", "02", "03", "04", "05"])
def test_it_runs_on_little_data_and_shows_the_same_again(small, shown_before, monkeypatch, name):
    shown = shown_before(name)
    assert SIMULATED in shown[0]
    assert all(isinstance(page, showing.Page) or name == "05" for page in shown)
    assert [str(page) for page in shown] == [str(page) for page in run(name, small, monkeypatch)]


def test_it_is_executed_as_a_page(small, monkeypatch):
    """One of them, with the kernel and all; the others go through the workflow."""
    monkeypatch.setenv(reading.DATASET_VARIABLE, "demo")
    text = notebook.execute(ROOT / "notebooks/02_which_metric_to_trust.py", folder=small)
    assert text.count("SIMULATED") >= 1
    assert "<svg" in text and "http://" not in text.replace("http://www.w3.org", "")
    assert len(text.encode()) < 80_000


def test_a_changed_result_changes_the_page(small, shown_before, monkeypatch, tmp_path):
    before = "".join(map(str, shown_before("02")))
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy/results/demo/correlations.parquet"
    found = pd.read_parquet(path)
    at = (found["metric"] == "bleu") & (found["coefficient"] == "spearman")
    found.loc[at, ["value", "low", "high"]] = [0.987, 0.98, 0.99]
    found.to_parquet(path, index=False)
    after = "".join(map(str, run("02", tmp_path / "copy", monkeypatch)))
    assert "0.99" not in before and "bleu-1" in after and "0.99" in after


def test_the_system_of_the_page_is_placed_and_said_to_be_unrated(shown_before):
    shown = "".join(map(str, shown_before("04")))
    assert "my_system" in shown
    assert "Nobody has rated it" in shown
    assert "left out: unfinished" in shown


@pytest.mark.parametrize(
    ("name", "dataset", "needs"),
    [
        ("02", "usr_persona", "results/usr_persona/power.parquet"),
        ("03", "usr_topical", "data/raw/d223302"),
        ("06", "usr_topical", "results/studies/usr/tables/usr.csv"),
        ("07", "demo", "results/demo/tables/systems.csv"),
    ],
)
def test_it_runs_on_the_results_that_are_here(monkeypatch, name, dataset, needs):
    if not (ROOT / needs).exists() or not (ROOT / f"results/{dataset}/ceilings.parquet").exists():
        pytest.skip(f"{needs} is not here: `make reproduce` makes it")
    if not (ROOT / f"data/tables/{dataset}").is_dir():
        pytest.skip(f"the results of {dataset} were pulled, and its tables are not ours to pass on")
    shown = "".join(map(str, run(name, ROOT, monkeypatch, dataset)))
    assert (SIMULATED in shown) == (dataset == "demo")


def test_people_s_dialogues_are_quoted_in_part_only(small, monkeypatch, tmp_path):
    """Those of others are not ours to pass on: one utterance and the response."""
    shutil.copytree(small, tmp_path / "copy")
    for path in (tmp_path / "copy/data/tables/demo").glob("ratings.parquet"):
        pd.read_parquet(path).assign(source="human").to_parquet(path, index=False)
    shown = "".join(map(str, run("03", tmp_path / "copy", monkeypatch)))
    assert "<small>persona: " not in shown
    assert SIMULATED not in shown


@pytest.mark.parametrize("count", [1, 3])
def test_where_no_pair_was_compared_the_page_says_so(small, monkeypatch, tmp_path, count):
    """With one metric, and with several that no test was run on."""
    shutil.copytree(small, tmp_path / "copy")
    folder = tmp_path / "copy/results/demo"
    found = pd.read_parquet(folder / "correlations.parquet")
    kept = found[found["metric"].isin(["bleu", "chrf", "f1"][:count])]
    kept.to_parquet(folder / "correlations.parquet", index=False)
    for name in ("pairs", "curves", "power"):
        path = folder / f"{name}.parquet"
        pd.read_parquet(path).head(0).to_parquet(path, index=False)
    shown = "".join(map(str, run("02", tmp_path / "copy", monkeypatch)))
    assert "What is missing: compared metrics." in shown
    assert "No learning curves" in shown and "bleu-1" in shown


def test_one_metric_with_a_rank_is_shown(small, monkeypatch, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    folder = tmp_path / "copy/results/demo"
    found = pd.read_parquet(folder / "correlations.parquet")
    found[found["metric"] == "bleu"].to_parquet(folder / "correlations.parquet", index=False)
    pd.read_parquet(folder / "pairs.parquet").head(0).to_parquet(folder / "pairs.parquet", index=False)
    shown = "".join(map(str, run("02", tmp_path / "copy", monkeypatch)))
    assert "What is missing: tested pairs." in shown


def test_where_no_judge_has_values_the_page_says_so(small, monkeypatch, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy/results/demo/correlations.parquet"
    found = pd.read_parquet(path)
    found.loc[found["metric"] == "cpds-d_rules", "value"] = np.nan
    found.to_parquet(path, index=False)
    shown = run("03", tmp_path / "copy", monkeypatch)
    assert "What is missing: a judge" in shown[1]


def test_a_metric_with_other_settings_is_left_out(small, shown_before, monkeypatch, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy/results/demo/scores/chrf.parquet"
    pd.read_parquet(path).assign(signature="chrf|beta:3").to_parquet(path, index=False)
    shown = "".join(map(str, run("04", tmp_path / "copy", monkeypatch)))
    assert "another signature: chrf." in shown
    assert '<td class="text">chrf' not in shown
    assert "another signature: none." in "".join(map(str, shown_before("04")))


def test_target_and_source_are_as_chosen(small, monkeypatch, tmp_path):
    shutil.copytree(small, tmp_path / "copy")
    path = tmp_path / "copy/data/tables/demo/ratings.parquet"
    found = pd.read_parquet(path)
    pd.concat([found, found[found["level"] == "turn"].head(7).assign(source="human", dimension="Engaging")]).to_parquet(
        path
    )
    monkeypatch.chdir(tmp_path / "copy")
    for name in (reading.TARGET_VARIABLE, reading.SOURCE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    bench = reading.here("demo")
    assert (bench.target, bench.source, bench.simulated, len(bench.ratings())) == (
        "Overall", "simulated", True, len(found[found["level"] == "turn"]),
    )  # fmt: skip
    monkeypatch.setenv(reading.TARGET_VARIABLE, "Engaging")
    assert reading.here("demo").ratings().empty and reading.here("demo").simulated
    monkeypatch.setenv(reading.SOURCE_VARIABLE, "human")
    bench = reading.here("demo")
    assert not bench.simulated and len(bench.ratings()) == 7
    assert "Engaging" in bench.opening() and bench.correlations().empty


def test_its_page_is_of_the_data_set_target_and_source_it_was_told(monkeypatch, tmp_path):
    names = (reading.DATASET_VARIABLE, reading.TARGET_VARIABLE, reading.SOURCE_VARIABLE)
    for name in names:
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(notebook, "execute", lambda source: " ".join(os.environ[name] for name in names))
    source, page = tmp_path / "page.py", tmp_path / "page.html"
    source.write_text("# %%\n")
    options = ["--dataset", "demo", "--target", "Engaging", "--source", "simulated", "--output", str(page)]
    assert main(["notebook", str(source), *options]) == 0
    assert page.read_text() == "demo Engaging simulated"


def test_a_missing_result_is_named(small):
    with pytest.raises(
        MissingResourceError, match=r"none/correlations\.parquet is missing.*make reproduce DATASETS=none"
    ):
        reading.Reading(small, "none").result()


def test_metrics_are_told_apart_by_their_signatures():
    signatures = {
        "f1|text:raw|v:1": ("counts words", "with"),
        "grounded_cosine|model:all-MiniLM-L6-v2@0|v:1": ("small encoder", "without"),
        "bertscore|model:roberta-large@0|v:1": ("large model", "with"),
        "cpdscore|prompt:cpds_detail_ref@0|judge:rules": ("asks a judge", "with"),
        "cpdscore|prompt:cpds_detail@0|judge:rules": ("asks a judge", "without"),
        "recorded-judge|format:chiang2023|prompt:geval": ("recorded", "without"),
        "recorded|format:unieval": ("recorded", "–"),
        "human|ratings:turn|annotators:6": ("people", "–"),
        "length_of_mine|v:1": ("–", "–"),
    }
    found = reading.traits(pd.DataFrame({"signature": list(signatures)}))
    assert [tuple(row) for row in found.to_numpy()] == list(signatures.values())


def test_what_is_shown_is_escaped_and_what_is_missing_is_a_dash():
    page = showing.show(pd.DataFrame({"text": ["<b>", None], "value": [0.1234, np.nan], "n": [12345, 1]}), index=False)
    assert "&lt;b&gt;" in page and "0.12" in page and "12,345" in page
    assert page.count("–") == 2
    assert showing.quoted("a  b\n<c>") == "a b &lt;c&gt;"
    assert showing.quoted("word " * 100, 20).endswith(" …")
    assert showing.span(0.5, float("nan"), float("nan")) == "0.50"
