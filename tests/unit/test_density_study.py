"""The study of DEnsity: what is reported against the paper's text, ours next to it, paired tests, and pairs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.config.studies import shown_outputs
from comperdial.core.errors import NothingToShowError
from comperdial.evaluation.ratios import drawn
from comperdial.report import correlations, render
from comperdial.selection import Selection
from comperdial.stats.multiple import holm
from comperdial.studies import density

STUDY = "studies/density"
STRATEGIES = ["random_response", "repetition", "speaker", "contradiction"]
SETS = ["dailydialog_zhao", "usr_persona", "grade_dailydialog", "grade_convai2"]


@pytest.fixture(scope="module")
def paper():
    folder = os.environ.get("COMPERDIAL_PAPERS")
    mirror = os.environ.get("COMPERDIAL_MIRROR")
    places = [Path(folder)] if folder else [Path(mirror).parent / "papers"] if mirror else []
    found = [path for place in places if (path := place / "density.txt").is_file()]
    if not found:
        pytest.skip("the paper's text is not at hand: set COMPERDIAL_PAPERS to its folder")
    return found[0].read_text(encoding="utf-8")


def between(text, start, end):
    return text[text.index(start) : text.index(end, text.index(start))]


def read(root, name):
    return pd.read_csv(root / STUDY / f"{name}.csv", dtype=str, keep_default_na=False)


# What is reported


def test_tables_1_2_and_4_are_the_papers(root, paper):
    known = read(root, "reported")
    printed = {
        "Table 1": between(paper, "DailyDialog Zhao ConvAI2 USR", "Table 1: The"),
        "Table 2": between(paper, "DailyDialog Zhao DailyDialog GRADE Scoring", "Table 2: Results"),
        "Table 4": between(paper, "Turn-level Metrics USR-Retrieval", "Table 4: The"),
    }
    for place, text in printed.items():
        own = known[known["place"] == place]
        # The rows are in the text's order: name, then one number a column.
        numbers = [float(one) for one in re.findall(r"-?\d+\.\d+", text)]
        assert [100 * float(value) for value in own["value"]] == pytest.approx(numbers), place
        for name, group in own.groupby("metric", sort=False):
            written = name.partition(",")[0]
            first = f"{100 * float(group['value'].iloc[0]):.2f}".rstrip("0")
            # Of people's number the text also names the year of its source.
            assert re.search(rf"{re.escape(written)}\D*(?:2021\D*)?{re.escape(first)}", text), (place, name)
    first = known[known["place"] == "Table 1"]
    for _, group in first.groupby("metric"):
        assert group["dataset"].tolist() == [name for name in SETS for _ in range(2)]
        assert group["coefficient"].tolist() == ["pearson", "spearman"] * 4


def test_tables_3_and_5_are_the_papers(root, paper):
    examples = read(root, "examples")
    text = between(paper, "A: Do you want any meat", "Table 3: Sample")
    found = re.findall(r"(BLEU|USL-H|USR-R|GPT2-Coh\.|Human|DEnsity) (\d\.\d\d) \((\d\.\d\d)\)", text)
    assert [tuple(row) for row in examples[["metric", "score", "rank"]].to_numpy()] == found
    assert examples["example"].tolist() == [str(number) for number in range(1, 5) for _ in range(6)]
    selection = read(root, "selection")
    numbers = re.findall(r"\d+\.\d+", between(paper, "Model R@1 MRR R@1 MRR", "Table 5: Performance"))
    assert [100 * float(value) for value in selection["value"]] == pytest.approx([float(one) for one in numbers])
    assert selection["measure"].tolist() == ["recall@1", "MRR"] * 4


def test_the_rows_name_scores_that_there_are(root, monkeypatch):
    monkeypatch.chdir(root)
    selection = Selection.read()
    study = selection.studies["density"]
    figures = ("density_figure_3", "density_figure_4")
    named = {*shown_outputs(study), *(name for figure in figures for name in study["figures"][figure]["outputs"])}
    for metric, output in (name.split(":") for name in named):
        assert output in selection.metrics[metric].outputs, (metric, output)
    known = read(root, "reported")
    for table, places in (
        ("density_table_1", "Table 1"),
        ("density_table_2", "Table 2"),
        ("density_table_4", "Table 4"),
    ):
        rows = study["tables"][table]["rows"]
        assert len({(row["section"], row["label"]) for row in rows}) == len(rows)
        reported = {row["reported"] for row in rows if "reported" in row}
        assert reported == set(known.loc[known["place"] == places, "metric"])


# The tables

ROWS = [
    {"section": "Reference-based", "label": "BLEU", "metric": "bleu", "output": "score", "reported": "BLEU"},
    {"section": "Reference-based", "label": "chrF", "metric": "chrf", "output": "score"},
    {"section": "Reference-based", "label": "GloVe", "reported": "EmbAvg.", "not_run": "no vectors"},
    {"section": "Density", "label": "DEnsity", "metric": "density", "output": "density"},
    {"section": "Density", "label": "Selection", "metric": "density-selection", "output": "density"},
]


def result(dataset: str, metric: str, value: float, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(schema.table("correlations").columns) | {
        "dataset": dataset, "level": "turn", "against": "turn", "target": "overall", "metric": metric,
        "output": "density" if "density" in metric else "score", "grouping": "pooled", "coefficient": "pearson",
        "value": value, "low": 0.1, "high": 0.6, "p": 0.2, "n": 30, "coverage": 1.0, "cut": 0, "signature": metric,
    } | more  # fmt: skip


def pair(dataset: str, a: str, b: str, difference: float, p: float) -> dict[str, Any]:
    return dict.fromkeys(schema.table("pairs").columns) | {
        "dataset": dataset, "level": "turn", "against": "turn", "target": "overall", "grouping": "pooled",
        "coefficient": "pearson", "metric_a": a, "output_a": "density" if "density" in a else "score", "metric_b": b,
        "output_b": "density" if "density" in b else "score", "difference": difference, "low": difference - 0.1,
        "high": difference + 0.1, "p": p, "n": 30, "test": "jackknife",
    }  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    results = [
        result("one", "bleu", 0.3), result("one", "chrf", 0.5), result("one", "density", 0.4),
        result("one", "density-selection", 0.35), result("two", "bleu", 0.2),
        result("two", "density", np.nan, n=0, coverage=0.0, lacking="facts", low=np.nan, high=np.nan),
    ]  # fmt: skip
    pairs = [
        pair("one", "density", "bleu", 0.1, 0.01), pair("one", "chrf", "density", 0.1, 0.03),
        pair("one", "density", "density-selection", 0.05, 0.2), pair("two", "bleu", "chrf", 0.1, 0.9),
    ]  # fmt: skip
    inputs: dict[str, list[Path]] = {"correlations": [], "pairs": [], "about": [], "reported": [tmp_path / "known.csv"]}
    for dataset in ("one", "two"):
        about = {
            "dataset": dataset, "title": f"Set {dataset}", "source": "human", "target": "overall", "main_target": None,
            "labels": {}, "not_run": {}, "recorded_of": {}, "metrics": ["bleu", "chrf", "density"], "outputs": ["bleu:score"],
            "judges": {},
        }  # fmt: skip
        (tmp_path / f"{dataset}.json").write_text(json.dumps(about))
        inputs["about"].append(tmp_path / f"{dataset}.json")
        for name, records in (("correlations", results), ("pairs", pairs)):
            path = tmp_path / f"{dataset}_{name}.parquet"
            schema.write(path, pd.DataFrame([row for row in records if row["dataset"] == dataset]), name)
            inputs[name].append(path)
    inputs["reported"][0].write_text(
        "source,place,dataset,level,against,dimension,metric,output,coefficient,value,starred,note\n"
        "p,Table 1,one,turn,turn,overall,BLEU,,pearson,0.25,,\np,Table 1,one,turn,turn,overall,EmbAvg.,,pearson,0.1,,\n"
    )
    entry = {
        "title": "T", "caption": "C.", "rows": ROWS, "source": "p", "levels": {"turn": "turn"}, "section_by": "dataset",
        "coefficients": ["pearson"], "models": ["density", "density-selection"], "inputs": inputs,
    }  # fmt: skip
    return inputs, {"name": "density", "title": "DEnsity", "datasets": ["one", "two"], "entry": entry}


def test_ours_are_next_to_the_paper_s_and_a_row_says_why_it_is_empty(made):
    page = render.markdown(correlations.correlations(*made))
    assert "| Reference-based | BLEU | 0.300\\* [0.10, 0.60] | 0.250 | +0.050 |" in page
    assert "| Reference-based | GloVe | 0.100 |" in page.partition("with reported values, not run here")[2]
    assert "Not run: GloVe: no vectors" in page and "two has no facts where overall was rated" in page
    # A row about the paper alone is left out of a set of which it reports nothing.
    assert page.count("| Reference-based | GloVe |") == 1


def test_tests_are_of_density_minus_the_other_with_holm_in_each_kind(made):
    inputs, study = made
    table = density.tests(inputs, study)
    of = table.frame.set_index("label")
    assert of["difference"].to_dict() == pytest.approx({"BLEU": 0.1, "chrF": -0.1, "Selection": 0.05})
    assert (of.loc["chrF", "low"], of.loc["chrF", "high"]) == pytest.approx((-0.2, 0.0))
    assert of.loc[["BLEU", "chrF"], "holm_p"].tolist() == pytest.approx(holm([0.01, 0.03]).tolist())
    assert of.loc["Selection", "holm_p"] == pytest.approx(0.2)
    page = render.markdown(table)
    assert "| Set one | Reference-based | 1 of 2 | 1 | chrF (-0.100) |" in page
    assert "Set two has no scores of DEnsity" in page
    with pytest.raises(NothingToShowError, match="no scores of DEnsity"):
        density.tests(inputs | {"pairs": inputs["pairs"][1:]}, study)


def test_the_ablation_compares_the_two_models(made):
    inputs, study = made
    rows = [
        {"section": section, "label": "Maha.", "metric": metric, "output": "density", "reported": "BLEU"}
        for section, metric in (("with", "density"), ("without", "density-selection"))
    ]
    table = density.ablation(inputs, study | {"entry": study["entry"] | {"rows": rows}})
    page = render.markdown(table)
    assert "| Set one | Maha. | +0.050 [-0.05, 0.15] | 0.200 |" in page
    assert "| with | Maha. | 0.400\\* [0.10, 0.60] | 0.250 |" in page
    assert table.frame["difference"].dropna().tolist() == pytest.approx([0.05])


# Pairs


def test_pairs_are_drawn_whole_and_alike_on_each_run():
    names = [f"{kind}-{number:04d}" for kind in (*STRATEGIES, "dullness") for number in range(9)]
    contexts = pd.DataFrame({"dialogue_id": [name for name in names for _ in range(2)]})
    found = drawn(contexts, list(STRATEGIES), 4, np.random.default_rng(5))
    kinds = found["dialogue_id"].str.rpartition("-")[0]
    assert kinds.value_counts().to_dict() == dict.fromkeys(STRATEGIES, 8)
    assert found["dialogue_id"].value_counts().eq(2).all()
    assert found.equals(drawn(contexts, list(STRATEGIES), 4, np.random.default_rng(5)))


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """Three pairs of an answer and a worse one, scored by ``comperdial score-pairs``."""
    texts = [
        ("repetition-1", "I like tea.", "I like like like tea."),
        ("repetition-2", "Go on.", "Go on on on."),
        ("speaker-1", "No no.", "Yes."),
    ]
    sides = ("original", "perturbed")
    tables = {
        "contexts": [("p", f"{name}-{side}-0", name, 0, [], [], []) for name, *_ in texts for side in sides],
        "responses": [
            ("p", f"{name}-{side}-0", side, text) for name, *of in texts for side, text in zip(sides, of, strict=True)
        ],
        "systems": [("p", side, "agent", None, "") for side in sides],
    }
    for name, rows in tables.items():
        schema.write(tmp_path / f"{name}.parquet", pd.DataFrame(rows, columns=schema.table(name).columns), name)
    command = ["score-pairs", tmp_path, "--metrics", "distinct", "--kinds", "repetition", "speaker", "--sample", 9]
    command += ["--seed", 1, "--output", tmp_path / "scores.parquet", "--ratios", tmp_path / "ratios.parquet"]
    assert main([str(part) for part in command]) == 0
    return tmp_path


def test_pairs_are_scored_and_counted(scored, capsys):
    found = schema.read(scored / "ratios.parquet", "ratios").query("output == 'distinct-1'").set_index("perturbation")
    assert found["ratio"].to_dict() == {"repetition": 1.0, "speaker": 0.0}
    given = [str(scored / "scores.parquet"), "--tables", str(scored), "--output", str(scored / "out.csv")]
    assert main(["ratios", *given, "--bounds", '{"distinkt": {"distinct-1": [0, 1]}}']) == 1
    assert "unknown output 'distinkt:distinct-1'" in capsys.readouterr().err
    entry = {"outputs": {"distinct:distinct-1": "Distinct"}, "title": "T", "notes": "", "panels": {"made": "Made"}}
    entry |= {"kinds": {"repetition": "Repetition", "speaker": "Speaker-sensitiveness"}, "bins": 7}
    _, shown = density.adversarial({"ratios": [scored / "ratios.parquet"]}, {"entry": entry})
    rows = [["Repetition", 1.0, 2], ["Speaker-sensitiveness", 0.0, 1]]
    assert shown[["kind", "accuracy", "n"]].to_numpy().tolist() == rows
    with pytest.raises(NothingToShowError, match="no scores of DEnsity"):
        density.histograms({"scores": [scored / "scores.parquet"]}, {"entry": entry})


def test_histograms_count_each_side_and_how_much_they_share(tmp_path):
    def scores(metric, answers, others):
        sides = [("original", value) for value in answers] + [("perturbed", value) for value in others]
        rows = [(f"random_response-{n}-{s}-0", s, metric, "density", v) for n, (s, v) in enumerate(sides)]
        return pd.DataFrame(rows, columns=["item_id", "system_id", "metric", "output", "value"])

    both = [scores("density", [1.0, 2.0], [-4.0, -5.0, -6.0]), scores("density-selection", [1.0, 2.0], [1.0, 2.0])]
    frame = pd.concat(both).assign(dataset="p", level="turn", cut=0, signature="density|v:1")
    schema.write(tmp_path / "scores.parquet", frame[list(schema.table("scores").columns)], "scores")
    entry = {"bins": 7, "title": "T", "notes": "{answers} answers"}
    _, found = density.histograms({"scores": [tmp_path / "scores.parquet"]}, {"entry": entry})
    counts = found.groupby(["metric", "side"])["count"].sum()
    assert counts["density"].to_dict() == {"original": 2, "perturbed": 3}
    assert counts["density-selection"].to_dict() == {"original": 2, "perturbed": 2}
    assert found.groupby("metric")["overlap"].first().to_dict() == {"density": 0.0, "density-selection": 1.0}


def test_examples_have_normalised_scores_and_ranks(tmp_path):
    units = [("c1", "a"), ("c1", "b"), ("c2", "a"), ("c2", "b")]
    names = {"dataset": "one", "level": "turn"}
    ratings = [
        dict.fromkeys(schema.table("ratings").columns)
        | names
        | {
            "item_id": item,
            "system_id": system,
            "annotator_id": who,
            "dimension": "overall",
            "rating": float(place + up),
        }
        | {"scale_min": 0.0, "scale_max": 9.0, "source": "human"}
        for place, (item, system) in enumerate(units)
        for who, up in (("x", 0), ("y", 1))
    ]
    scores = [
        names
        | {
            "item_id": item,
            "system_id": system,
            "metric": "f1",
            "output": "f1",
            "value": value,
            "cut": 0,
            "signature": "f1",
        }
        for (item, system), value in zip(units, [0.2, 0.2, 0.4, 0.3], strict=True)
    ]
    for name, records in {"ratings": ratings, "scores": scores}.items():
        schema.write(tmp_path / f"{name}.parquet", pd.DataFrame(records)[list(schema.table(name).columns)], name)
    about = {"dataset": "one", "title": "One", "source": "human", "target": None, "main_target": None}
    (tmp_path / "about.json").write_text(json.dumps(about | {"not_run": {"fed": "no model"}}))
    columns = "source,place,example,context_id,system_id,metric,score,rank\n"
    (tmp_path / "known.csv").write_text(f"{columns}p,Table 3,1,c1,b,Human,0.3,0.4\np,Table 3,1,c1,b,F1,0.1,\n")
    rows = [
        {"label": "People", "reported": "Human"},
        {"label": "Word F1", "metric": "f1", "output": "f1", "reported": "F1"},
        {"label": "FED", "metric": "fed", "output": "fed"},
    ]
    files = {"ratings": "ratings.parquet", "scores": "scores.parquet", "about": "about.json", "reported": "known.csv"}
    inputs = {name: [tmp_path / file] for name, file in files.items()}
    study = {"datasets": ["one"], "entry": {"title": "T", "caption": "Of {title}.", "rows": rows}}
    table = density.examples(inputs, study)
    lines = render.markdown(table).splitlines()
    assert "| People | 0.30 | 0.40 | 0.33 | 0.50 |" in lines and "| Word F1 | 0.10 | – | 0.00 | 0.38 |" in lines
    assert table.caption == "Of One." and "- Not run: FED: no model" in lines
