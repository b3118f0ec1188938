"""The notebooks: they run, on little data too, and no result is typed into them."""

import ast
import itertools
import json
import logging
import re
import shutil

import jupytext
import numpy as np
import pandas as pd
import pytest

from comperdial import metric, schema
from comperdial.challenge.dialogues import make_tables, read_dialogues
from comperdial.core.errors import MissingResourceError
from comperdial.metrics.scoring import score_tables
from comperdial.report import notebook, reading, showing
from comperdial.report.render import SIMULATED
from conftest import ROOT
from ratedtables import rating_rows
from resulttables import correlation, pair

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
RATERS = ("r1", "r2", "r3")
METRICS = {"f1": "f1", "chrf": "chrf", "bleu": "bleu-1", "rouge": "rougeL-f"}
# Made up, as if by a model and by a judge: name -> output, the metric whose values it has, signature.
OTHERS = {
    "grounded-cosine-minilm": ("sum", "f1", "grounded_cosine|model:all-MiniLM-L6-v2@0"),
    "cpds-d_rules": ("humanness", "chrf", "cpdscore|prompt:cpds_detail@0|judge:rules"),
}
SYSTEMS = {
    "copier": lambda dialogue, turn: dialogue.history(turn)[-1]["text"],
    "dull": lambda dialogue, turn: "i do not know",
    "human-1": lambda dialogue, turn: f"well, {dialogue.reference(turn)}",
    "looper": lambda dialogue, turn: dialogue.personas["B"][turn],
    "speaker": lambda dialogue, turn: f"{dialogue.reference(turn)} and {dialogue.personas['B'][0]}",
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


def write_results(folder, names):
    """Write the five tables of an evaluation, with made-up numbers."""
    made = {name: [] for name in ("correlations", "ceilings", "pairs", "curves", "power")}
    for level, against in reading.CELLS:
        of = {"level": level, "against": against, "target": "Overall", "coefficient": "spearman", "n": 5}
        rated = of | {"dataset": "demo", "grouping": "pooled", "value": 0.9}
        made["ceilings"] += [rated | {"annotator_id": rater} for rater in RATERS]
        of_systems, groupings = (("acc_eq", "spa"), ["pooled"]) if level == "system" else ((), ["pooled", "item"])
        for place, (name, output, signature) in enumerate(names):
            one = correlation("demo", name, output, 0.75 - place / 10, signature=signature, **of)
            for coefficient in ("pearson", "spearman", "kendall", *of_systems):
                made["correlations"] += [
                    one | {"coefficient": coefficient, "grouping": grouping} for grouping in groupings
                ]
            curve = one | {"agreement": 0.5, "repeats": 10}
            sizes = [(varied, size) for varied in ("systems", "dialogues") for size in (2, 3)]
            made["curves"] += [curve | {"varied": varied, "size": size} for varied, size in sizes]
            for other, output_b, _ in names[place + 1 :]:
                apart = pair("demo", f"{name}:{output}", f"{other}:{output_b}", 0.1, 0.04, **of)
                made["pairs"].append(apart)
                if level == "turn":
                    made["power"].append(apart | {"varied": "systems", "size": 5, "power": 0.3})
    for name, rows in made.items():
        frame = pd.DataFrame(rows).reindex(columns=schema.table(name).columns)
        schema.write(folder / f"{name}.parquet", frame, name)
    (folder / "about.json").write_text(json.dumps({"apart": [], "outputs": []}))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a repository with two of the demo's dialogues, five systems, and made-up results."""
    root, rng = tmp_path_factory.mktemp("small"), np.random.default_rng(7)
    tables_in, results = root / "data/tables/demo", root / "results/demo"
    for folder in (root / "data/demo", tables_in, results / "scores", results / "judgements", results / "tables"):
        folder.mkdir(parents=True)
    (root / "params.yaml").write_text("tables: {benchmark: demo}\n")
    chosen = json.loads((ROOT / "data/demo/dialogues.json").read_text())[:2]
    (root / "data/demo/dialogues.json").write_text(json.dumps(chosen))
    dialogues = read_dialogues(root / "data/demo/dialogues.json")
    about = {"track": None, "description": ""}
    about = {name: about | {"kind": "human" if "human" in name else "agent"} for name in SYSTEMS}
    responses = {
        name: {(d.dialogue_id, turn): answer(d, turn) for d in dialogues for turn in range(d.turns)}
        for name, answer in SYSTEMS.items()
    }
    tables = make_tables("demo", dialogues, about, responses, where="test")
    items = {"turn": tables["contexts"]["context_id"], "dialogue": tables["contexts"]["dialogue_id"].unique()}
    same = {"dataset": "demo", "scale_min": 1.0, "scale_max": 5.0, "source": "simulated"}
    ratings = []
    for level, rater in itertools.product(items, RATERS):
        units = [*itertools.product(items[level], SYSTEMS)]
        values = np.tile(np.arange(len(SYSTEMS)), len(items[level])) + rng.normal(size=len(units))
        ratings.append(rating_rows(units, np.clip(np.round(values) + 1, 1, 5), rater, level, **same))
    tables["ratings"] = pd.concat(ratings)
    for name, table in tables.items():
        schema.write(tables_in / f"{name}.parquet", table, name)
    made = {
        name: score_tables(metric(name), name, tables_in).query("output == @output") for name, output in METRICS.items()
    }
    for name, (output, like, signature) in OTHERS.items():
        made[name] = made[like].assign(metric=name, output=output, signature=signature)
    for name, frame in made.items():
        schema.write(results / f"scores/{name}.parquet", frame, "scores")
    write_results(results, [tuple(f[["metric", "output", "signature"]].iloc[0]) for f in made.values()])
    judged = made["cpds-d_rules"].assign(rationale="It says something.")
    judged.to_parquet(results / "judgements/cpds-d_rules.parquet")
    statistics = [("alpha_ordinal", None), *(("bias", rater) for rater in RATERS)]
    rows = [(level, *one) for level in items for one in statistics]
    alpha = pd.DataFrame(rows, columns=["level", "statistic", "annotator_id"])
    alpha.assign(dimension="Overall", value=0.5, low=0.4, high=0.6).to_csv(results / "tables/alpha.csv", index=False)
    return root


@pytest.fixture
def copy(small, tmp_path):
    """Return a function: a table of the results and a change of it -> the root of a copy with that change."""

    def changed(changes):
        root = shutil.copytree(small, tmp_path / "copy")
        for name, change in changes.items():
            path = root / f"{name}.parquet"
            change(pd.read_parquet(path)).to_parquet(path, index=False)
        return root

    return changed


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_result_is_typed_in_and_the_ipynb_is_in_step_without_outputs(source):
    """A result has decimals; text and code have none but in thresholds, which are numbers and not text."""
    for text in cells(source, "markdown"):
        assert not re.search(r"\d\.\d", re.sub(r"`[^`]*`", "", text)), text
    for code in cells(source, "code"):
        values = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        assert not [text for text in values if isinstance(text, str) and re.search(r"\d\.\d\d", text)]
    expected, found = (
        [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in jupytext.read(path).cells]
        for path in (source, source.with_suffix(".ipynb"))
    )
    assert found == expected, "`make format` brings it in step"
    assert not any(cell.get("outputs") for cell in jupytext.read(source.with_suffix(".ipynb")).cells)


@pytest.mark.parametrize(
    ("name", "texts"),
    [("01", []), ("02", []), ("03", []), ("05", []),
     ("04", ["my_system", "Nobody has rated it", "left out: unfinished"])],
)  # fmt: skip
def test_it_runs_on_little_data(small, monkeypatch, name, texts):
    shown = run(name, small, monkeypatch)
    assert SIMULATED in shown[0] and all(isinstance(page, showing.Page) or name == "05" for page in shown)
    assert [text for text in texts if text not in "".join(map(str, shown))] == []


RESULTS = "results/demo/"
NONE = {f"{RESULTS}{name}": lambda frame: frame.head(0) for name in ("pairs", "curves", "power")}


@pytest.mark.parametrize(
    ("name", "changes", "shown", "hidden"),
    [
        ("02", {f"{RESULTS}correlations": lambda frame: frame[frame["metric"] == "bleu"], **NONE},
         ["What is missing: compared metrics.", "No learning curves"], []),
        ("04", {f"{RESULTS}scores/chrf": lambda frame: frame.assign(signature="chrf|beta:3")},
         ["another signature: chrf."], ['<td class="text">chrf']),
        # People's dialogues are not ours to pass on: one utterance and the response.
        ("03", {"data/tables/demo/ratings": lambda frame: frame.assign(source="human")}, [], ["told of itself", SIMULATED]),
    ],
)  # fmt: skip
def test_a_page_shows_what_the_results_hold(copy, monkeypatch, name, changes, shown, hidden):
    page = "".join(map(str, run(name, copy(changes), monkeypatch)))
    assert [text for text in shown if text not in page] == [] and [text for text in hidden if text in page] == []


@pytest.mark.ci
def test_it_is_executed_as_a_page(small, monkeypatch):
    """One of them, with the kernel and all; the others go through the workflow."""
    monkeypatch.setenv(reading.DATASET_VARIABLE, "demo")
    text = notebook.execute(ROOT / "notebooks/02_which_metric_to_trust.py", folder=small)
    assert SIMULATED in text and "<svg" in text and "http://" not in text.replace("http://www.w3.org", "")


def test_target_and_source_are_as_chosen_and_a_missing_result_is_named(copy, small, monkeypatch):
    def add(frame):
        people = frame[frame["level"] == "turn"].head(7).assign(source="human", dimension="Engaging")
        return pd.concat([frame, people])

    monkeypatch.chdir(copy({"data/tables/demo/ratings": add}))
    for name in (reading.TARGET_VARIABLE, reading.SOURCE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    bench = reading.here("demo")
    assert (bench.target, bench.source, bench.simulated) == ("Overall", "simulated", True)
    monkeypatch.setenv(reading.TARGET_VARIABLE, "Engaging")
    monkeypatch.setenv(reading.SOURCE_VARIABLE, "human")
    assert len(reading.here("demo").ratings()) == 7 and not reading.here("demo").simulated
    with pytest.raises(
        MissingResourceError, match=r"none/correlations\.parquet is missing.*make reproduce DATASETS=none"
    ):
        reading.Reading(small, "none").result()


def test_what_is_shown_is_escaped_and_what_is_missing_is_a_dash():
    page = showing.show(pd.DataFrame({"text": ["<b>", None], "value": [0.1234, np.nan], "n": [12345, 1]}), index=False)
    assert "&lt;b&gt;" in page and "0.12" in page and "12,345" in page and page.count("–") == 2
    assert showing.quoted("a  b\n<c>") == "a b &lt;c&gt;" and showing.quoted("word " * 100, 20).endswith(" …")
