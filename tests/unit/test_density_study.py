"""The study of DEnsity: what is reported against the paper's text, ours next to it, paired tests, pairs and figures."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from comperdial.jobs.dag import Jobs

from comperdial import jobs, schema
from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.core.files import write_json
from comperdial.data.catalogue import load_catalogue
from comperdial.metrics import create
from comperdial.metrics.named import ABOUT
from comperdial.report.inputs import read_reported
from comperdial.studies import with_studies
from comperdial.studies.density.documents import difference_frame, frame_of
from comperdial.studies.density.figures import histogram_frame
from comperdial.studies.density.results import STRATEGIES, drawn, rows
from making import make

STUDY = "src/comperdial/studies/density"
SETS = ["dailydialog_zhao", "usr_persona", "grade_dailydialog", "grade_convai2"]


@pytest.fixture(scope="module", autouse=True)
def declared():
    jobs.discover()


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
    known = read(root, "correlations")
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
        for name, group in own.groupby(own["metric"] + own["contrastive"], sort=False):
            written = name.removesuffix("yes").removesuffix("no")
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


def test_the_rows_name_reported_values_and_scores_that_there_are(root):
    known = read(root, "correlations")
    metrics = with_studies(completed(load_yaml(root / "params.yaml")))["metrics"]
    for part, places in (("responses", {"Table 1"}), ("dialogues", {"Table 4"})):
        named = [row for section in rows()[part] for row in section["rows"]]
        assert len({row["label"] for row in named}) == len(named)
        reported = {row["reported"] for row in named if "reported" in row}
        # People have a row of their own.
        assert reported == set(known.loc[known["place"].isin(places), "metric"]) - {"Human"}
        for row in named:
            assert ("metric" in row) != ("not_run" in row), row
    outputs = [
        (row["metric"], row["output"])
        for part in ("responses", "dialogues")
        for s in rows()[part]
        for row in s["rows"]
        if "metric" in row
    ]
    outputs += [(m, o) for _, m in rows()["ablation"]["metrics"] for _, o in rows()["ablation"]["outputs"]]
    outputs += [tuple(name.split(":")) for key in ("adversarial", "scatter") for name, _ in rows()[key]]
    for metric, output in outputs:
        options = {key: value for key, value in metrics[metric].items() if key not in ("kind", *ABOUT)}
        assert output in create(metrics[metric]["kind"], **options).outputs, (metric, output)


# The tables


SECTIONS = [
    {
        "section": "Reference-based",
        "rows": [
            {"label": "Same", "metric": "same", "output": "o", "reported": "Same"},
            {"label": "Printed", "reported": "Printed", "not_run": "no weights"},
            {"label": "Absent", "metric": "absent", "output": "o"},
        ],
    },
    {"section": "Density", "rows": [{"label": "Ours", "metric": "density", "output": "density"}]},
]


def correlation(metric, output="o", dataset="d", value=0.5, **more):
    row = {"dataset": dataset, "coefficient": "pearson", "metric": metric, "output": output, "value": value}
    row |= {"low": 0.4, "high": 0.6, "p": 0.001, "n": 9, "coverage": 1.0, "cut": 0, "lacking": None, "signature": "s"}
    return row | more


def test_a_difference_stands_where_the_metric_is_the_same_and_a_row_says_why_it_is_empty():
    ours = pd.DataFrame([correlation("same"), correlation("density", "density"), correlation("same", dataset="e")])
    reported = pd.DataFrame(
        [{"dataset": "d", "coefficient": "pearson", "metric": name, "value": 0.3} for name in ("Same", "Printed")]
    )
    found = frame_of(
        ours,
        reported,
        SECTIONS,
        datasets=["d", "e"],
        metrics=["same", "density", "absent"],
        not_run={"absent": "no model"},
    )
    found = found[found["coefficient"] == "pearson"].set_index(["dataset", "label"])
    assert found.loc[("d", "Same"), ["ours", "reported", "difference"]].tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert np.isnan(found.loc[("d", "Ours"), "difference"])
    assert found["not_run"].dropna().to_dict() == {
        ("d", "Printed"): "no weights",
        ("d", "Absent"): "no model",
        ("e", "Absent"): "no model",
        ("e", "Ours"): "no scores of e",
    }
    # Of a data set that the paper lacks, rows about its metrics alone say nothing.
    assert ("e", "Printed") not in found.index


def pair(a, b, difference, p, coefficient="pearson"):
    row = {"dataset": "d", "coefficient": coefficient, "metric_a": a[0], "output_a": a[1], "metric_b": b[0]}
    row |= {"output_b": b[1], "difference": difference, "low": difference - 0.1, "high": difference + 0.1}
    return row | {"p": p, "p_perm_both": p / 2, "n": 9}


def test_tests_are_of_density_minus_the_other_with_holm_in_each_kind():
    density = ("density", "density")
    sections = [
        {
            "section": "Reference-based",
            "rows": [{"label": f"R{n}", "metric": f"r{n}", "output": "o"} for n in (1, 2, 3)],
        },
        {"section": "Other", "rows": [{"label": "X", "metric": "x", "output": "o"}]},
    ]
    found = difference_frame(
        pd.DataFrame(
            [
                pair(density, ("r1", "o"), 0.3, 0.01),
                pair(("r2", "o"), density, 0.2, 0.04),
                pair(density, ("r3", "o"), 0.1, np.nan),
                pair(density, ("x", "o"), 0.5, 0.03),
                pair(("r1", "o"), ("r2", "o"), 0.6, 0.001),
            ]
        ),
        sections,
        ["d"],
    ).set_index("label")
    assert found["difference"].to_dict() == pytest.approx({"R1": 0.3, "R2": -0.2, "R3": 0.1, "X": 0.5})
    assert found.loc["R2", ["low", "high"]].tolist() == pytest.approx([-0.3, -0.1])
    # A pair without a test is no test that is corrected for, and another kind is another family.
    assert found["holm_p"].dropna().to_dict() == pytest.approx({"R1": 0.02, "R2": 0.04, "X": 0.03})
    assert found["perm_both_holm_p"].dropna().to_dict() == pytest.approx({"R1": 0.01, "R2": 0.02, "X": 0.015})


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Make the correlations and tests of an invented set on which DEnsity is good, f1 is bad and lacks the human system."""
    folder = tmp_path_factory.mktemp("density")
    random = np.random.default_rng(3)
    systems = ["slot-0", "slot-1", "slot-2", "slot-3"]
    units = [(f"c{number}", system) for number in range(24) for system in systems]
    ratings = np.array([1.0 + (systems.index(system) + place) % 5 for place, (_, system) in enumerate(units)])
    tables = {
        "systems": [("d", name, "human" if name == "slot-0" else "agent", None, "") for name in systems],
        "contexts": [("d", f"c{n}", f"c{n}", 0, [{"speaker": "A", "text": "Hi."}], [], []) for n in range(24)],
        "ratings": [
            ("d", "turn", *unit, "1", None, "overall", value, 1.0, 5.0, "human")
            for unit, value in zip(units, ratings, strict=True)
        ],
    }
    scores = [
        ("d", "turn", *unit, metric, output, value + noise * random.normal(), 0, f"{metric}|v:1")
        for metric, output, noise in (("density", "density", 0.6), ("density", "classifier", 2.0), ("f1", "f1", 8.0))
        for unit, value in zip(units, ratings, strict=True)
        if metric == "density" or unit[1] != "slot-0"
    ]
    for name, content in (tables | {"scores": scores}).items():
        schema.write(folder / f"{name}.parquet", pd.DataFrame(content, columns=schema.table(name).columns), name)
    made = {name: str(folder / f"made_{name}.parquet") for name in ("correlations", "differences", "ceilings")}
    inputs = {name: str(folder / f"{name}.parquet") for name in tables} | {"scores": [str(folder / "scores.parquet")]}
    settings = {"source": "human", "target": "overall", "shown": ["density:density", "density:classifier", "f1:f1"]}
    settings |= {"expected": {}, "resamples": 50, "seed": 1}
    jobs.do(
        {
            "make": "studies.density.results:density_correlations",
            "inputs": inputs,
            "outputs": made,
            "settings": settings,
        }
    )
    return made | {"folder": folder, "inputs": inputs}


def cells(path, section, label):
    """Return the row of a section of a table's Markdown whose metric is so called."""
    text = path.with_suffix(".md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if f"| {label} |" in line
    ]
    return found[0]


def test_the_tables_show_values_tests_and_what_was_not_run(evaluated, root, tmp_path):
    shared = {"datasets": ["d"], "titles": {"d": "Set D"}}
    told = {"metrics": ["density", "f1"], "not_run": {"f1": "-"}}
    stem = tmp_path / "t1"
    make(
        "studies.density.tables:table_1", stem,
        {"correlations": [Path(evaluated["correlations"])], "reported": root / STUDY / "correlations.csv"},
        sections=rows()["responses"], **shared, **told,
    )  # fmt: skip
    value = float(cells(stem, "Set D", "DEnsity, MiniLM, one model")[2].split()[0])
    ratings = pd.read_parquet(evaluated["inputs"]["ratings"]).set_index(["item_id", "system_id"])["rating"]
    scores = (
        pd.read_parquet(evaluated["inputs"]["scores"][0])
        .query("output == 'density'")
        .set_index(["item_id", "system_id"])
    )
    assert value == pytest.approx(np.corrcoef(ratings, scores["value"].loc[ratings.index])[0, 1], abs=5e-4)
    assert cells(stem, "Set D", "PMI, SmolLM2")[2] == "not run"
    assert "PMI, SmolLM2; PMI per token, SmolLM2: no metric 'pmi' in params.yaml" in stem.with_suffix(".md").read_text()

    stem = tmp_path / "tests"
    make(
        "studies.density.tables:paired_tests",
        stem,
        {"differences": [Path(evaluated["differences"])]},
        sections=rows()["responses"],
        why=None,
        **shared,
    )
    summary = cells(stem, "DEnsity above", "Reference-based")
    assert summary[:5] == ["Set D", "Reference-based", "1 of 1", "1", "1"]
    frame = pd.read_csv(f"{stem}.csv").set_index(["label", "coefficient"])
    # Over the responses that both have a score of: not those of the human system.
    assert frame.loc[("Word F1", "pearson"), "n"] == 72
    assert frame.loc[("Word F1", "pearson"), "difference"] > 0.3


def test_without_density_s_scores_the_tests_say_so(evaluated, tmp_path):
    found = pd.read_parquet(evaluated["differences"])
    path = tmp_path / "none.parquet"
    found[found["metric_a"] != "density"].to_parquet(path)
    make(
        "studies.density.tables:paired_tests", tmp_path / "tests", {"differences": [path]},
        sections=rows()["responses"], datasets=["d"], titles={"d": "Set D"}, why="trained model 'density' is not present",
    )  # fmt: skip
    assert "no scores of DEnsity (trained model 'density' is not present)" in (tmp_path / "tests.md").read_text()


def test_the_ablation_compares_the_two_models(evaluated, root, tmp_path):
    # What is here the model without the contrastive loss is f1, which is worse.
    ablation = {"metrics": [["yes", "density"], ["no", "density"]], "outputs": [["Maha.", "density"]]}
    pairs = pd.read_parquet(evaluated["differences"])
    other = pairs.assign(
        **{f"metric_{side}": pairs[f"metric_{side}"].replace("f1", "density-selection") for side in "ab"}
    )
    other = other.assign(**{f"output_{side}": other[f"output_{side}"].replace("f1", "density") for side in "ab"})
    other.to_parquet(tmp_path / "differences.parquet")
    ablation["metrics"][1][1] = "density-selection"
    make(
        "studies.density.tables:table_2", tmp_path / "t2",
        {
            "correlations": [Path(evaluated["correlations"])],
            "differences": [tmp_path / "differences.parquet"],
            "reported": root / STUDY / "correlations.csv",
        },
        ablation=ablation, datasets=["d"], titles={"d": "Set D"}, metrics=["density"], not_run={},
    )  # fmt: skip
    assert cells(tmp_path / "t2", "What the contrastive loss changes", "Maha.")[2].startswith("+")
    assert "without contrastive loss" in (tmp_path / "t2.md").read_text()


def test_the_selection_table_reads_the_cards_and_keeps_the_paper_s_apart(root, tmp_path):
    found = {"all": {"n": 40, "recall_at_1": 0.7, "mrr": 0.81}}
    write_json(tmp_path / "card.json", {"held-out": found})
    make(
        "studies.density.tables:table_5", tmp_path / "t5",
        {"reported": root / STUDY / "selection.csv", "cards": [tmp_path / "card.json"]},
        trained=["density"], losses=rows()["ablation"]["metrics"], not_run={"density-selection": "not trained"},
    )  # fmt: skip
    text = (tmp_path / "t5.md").read_text()
    assert "| with contrastive loss | 0.700 | 0.810 |" in text
    assert "| without contrastive loss, not run | – | – |" in text
    assert "| with contrastive loss | 0.906 | 0.940 | 0.860 | 0.915 |" in text
    assert "without contrastive loss: not run: not trained" in text


# Pairs and figures


def test_pairs_are_drawn_whole_and_alike_on_each_run():
    names = [f"{kind}-{number:04d}" for kind in (*STRATEGIES, "dullness") for number in range(9)]
    contexts = pd.DataFrame({"dialogue_id": [name for name in names for _ in range(2)]})
    found = drawn(contexts, list(STRATEGIES), 4, np.random.default_rng(5))
    kinds = found["dialogue_id"].str.rpartition("-")[0]
    assert kinds.value_counts().to_dict() == dict.fromkeys(STRATEGIES, 8)
    assert found["dialogue_id"].value_counts().eq(2).all()
    assert found.equals(drawn(contexts, list(STRATEGIES), 4, np.random.default_rng(5)))


def test_pairs_are_scored_and_counted(tmp_path):
    said = [
        ("repetition-1", "I like tea.", "I like like like tea."),
        ("repetition-2", "Go on.", "Go on on on."),
        ("speaker-1", "No no.", "Yes."),
    ]
    contexts = [
        ("p", f"{name}-{side}-0", name, 0, [], [], []) for name, *_ in said for side in ("original", "perturbed")
    ]
    responses = [
        ("p", f"{name}-{side}-0", side, text)
        for name, *texts in said
        for side, text in zip(("original", "perturbed"), texts, strict=True)
    ]
    systems = [("p", side, "agent", None, "") for side in ("original", "perturbed")]
    for name, content in {"contexts": contexts, "responses": responses, "systems": systems}.items():
        schema.write(tmp_path / f"{name}.parquet", pd.DataFrame(content, columns=schema.table(name).columns), name)
    outputs = {name: str(tmp_path / f"made_{name}.parquet") for name in ("scores", "ratios")}
    settings = {
        "metrics": {"distinct": {"kind": "distinct"}},
        "signatures": [],
        "strategies": ["repetition", "speaker"],
        "sample": 9,
        "seed": 1,
    }
    inputs = {name: str(tmp_path / f"{name}.parquet") for name in ("systems", "contexts", "responses")}
    jobs.do(
        {"make": "studies.density.results:density_pairs", "inputs": inputs, "outputs": outputs, "settings": settings}
    )
    found = schema.read(outputs["ratios"], "ratios").query("output == 'distinct-1'").set_index("perturbation")
    assert found["ratio"].to_dict() == {"repetition": 1.0, "speaker": 0.0}
    wanted = [["distinct:distinct-1", "Distinct"]]
    make("studies.density.figures:figure_3", tmp_path / "f3", {"ratios": [Path(outputs["ratios"])]}, wanted=wanted)
    shown = pd.read_csv(tmp_path / "f3.csv")
    assert shown[["kind", "accuracy", "n"]].to_numpy().tolist() == [
        ["Repetition", 1.0, 2],
        ["Speaker-sensitiveness", 0.0, 1],
    ]
    # Without a trained model there is nothing to show, which is said.
    make("studies.density.figures:figure_5", tmp_path / "f5", {"scores": Path(outputs["scores"])})
    assert "no scores of DEnsity" in (tmp_path / "f5.csv").read_text()


def test_histograms_count_each_side_and_how_much_they_share():
    def scores(metric, answers, others):
        sides = [("original", value) for value in answers] + [("perturbed", value) for value in others]
        return [(f"random_response-{n}-{s}-0", s, metric, "density", v) for n, (s, v) in enumerate(sides)]

    frame = pd.DataFrame(
        [*scores("density", [1.0, 2.0], [-4.0, -5.0, -6.0]), *scores("density-selection", [1.0, 2.0], [1.0, 2.0])],
        columns=["item_id", "system_id", "metric", "output", "value"],
    )
    found = histogram_frame(frame, bins=7)
    counts = found.groupby(["metric", "side"])["count"].sum()
    assert counts["density"].to_dict() == {"original": 2, "perturbed": 3}
    assert counts["density-selection"].to_dict() == {"original": 2, "perturbed": 2}
    assert found.groupby("metric")["overlap"].first().to_dict() == {"density": 0.0, "density-selection": 1.0}


def test_the_scatter_passes_on_no_single_rating(evaluated, tmp_path):
    inputs = {name: Path(path) for name, path in evaluated["inputs"].items() if name != "scores"}
    make(
        "studies.density.figures:figure_4", tmp_path / "f4", inputs | {"scores": [Path(evaluated["inputs"]["scores"][0])]},
        wanted=[["density:density", "DEnsity"], ["pmi:pmi", "PMI"]], title="Set D", seed=1, source="human", target="overall",
    )  # fmt: skip
    shown = pd.read_csv(tmp_path / "f4.csv")
    assert shown["label"].tolist() == ["DEnsity"]
    assert "n" in shown and len(shown) == 1
    assert "<image" in (tmp_path / "f4.svg").read_text()


# What there is to make


def test_the_target_makes_the_tables_and_figures_and_another_catalogue_none(root, tmp_path, monkeypatch):
    for name in ("data", "notebooks", "src"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    config = completed(load_yaml(root / "params.yaml"))
    found = {Path(target).stem for target in Jobs(config).targets(study="density")}
    assert found == {
        *(f"density_table_{number}" for number in range(1, 6)),
        "density_tests",
        *(f"density_figure_{n}" for n in (3, 4, 5)),
    }
    assert not {name for name in Jobs(config).targets() if "density_" in name}
    assert load_catalogue(root / "data/sources.yaml").datasets.keys() >= set(
        load_yaml(root / STUDY / "study.yaml")["datasets"]
    )
    read_reported(
        root / STUDY / "examples.csv",
        ("source", "place", "example", "context_id", "system_id", "metric"),
        given=("score", "rank"),
    )
