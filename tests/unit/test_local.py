"""The learned metric: coefficients that never saw what they score, plain ridge regression, and the study about it."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.config.studies import read_study
from comperdial.core.errors import UnknownNameError
from comperdial.evaluation import fitting
from comperdial.metrics import Batch, create, local, scoring
from comperdial.metrics.local import Features, Fit
from comperdial.report import render
from comperdial.studies import local_metrics
from resulttables import correlation, pair, write_results, write_rows

METRICS = {"distinct": {"kind": "distinct"}, "f1_context": {"kind": "with_context", "metric": "f1"}}
PARTS = {
    "overlap": ["f1_context:precision"],
    "facts": ["distinct:distinct-1"],
    "controls": ["words", "distinct:distinct-2"],
}
FEATURES, PENALTIES = Features(METRICS, PARTS), [0.1, 1]
SETS = {"one": "a", "two": "a", "three": "b", "four": "c"}
WORDS = ["tea", "sea", "rain", "book", "green", "deep", "good", "day", "like", "went", "you", "they", "read", "cold"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Four small data sets with random texts and ratings, and the scores of both metrics on each."""
    root = tmp_path_factory.mktemp("study")
    for seed, name in enumerate(SETS):
        rng = np.random.default_rng(seed)

        def words(count, rng=rng):
            return " ".join(rng.choice(WORDS, count))

        contexts, responses = [], []
        for n in range(12):
            facts = [words(4)] if name in ("one", "three") and n % 4 else []
            history = [{"speaker": "A", "text": words(9)}]
            contexts.append((name, f"{name}-{n}", f"{name}-{n}", 0, history, [], facts))
            responses += [(name, f"{name}-{n}", system, words(rng.integers(2, 9))) for system in "xy"]
        systems = [(name, system, "agent", None, "a program") for system in "xy"]
        rated = [
            (name, "turn", item, system, "1", None, "overall", float(rng.integers(1, 6)), 1.0, 5.0, "human")
            for _, item, system, _ in responses
        ]
        folder = root / "tables" / name
        write_rows(folder, contexts=contexts, responses=responses, systems=systems, ratings=rated)
        for metric, made in FEATURES.made().items():
            output = root / "results" / name / "scores" / f"{metric}.parquet"
            scoring.write_scores(made, metric, folder, output)
    fitted_on = {name: {"target": "overall", "group": group} for name, group in SETS.items()}
    content = {"metrics": METRICS, "parts": PARTS, "fitted_on": fitted_on, "penalties": PENALTIES}
    (root / "features.yaml").write_text(yaml.safe_dump(content))
    return root


@pytest.fixture(scope="module")
def sets(study):
    return [
        fitting.FittedSet.read(
            study / "tables" / name,
            {metric: study / "results" / name / "scores" / f"{metric}.parquet" for metric in METRICS}, FEATURES,
            target="overall", group=group,
        )
        for name, group in SETS.items()
    ]  # fmt: skip


def write_coefficients(path, sets):
    path.write_text(json.dumps(fitting.train(sets, FEATURES, PENALTIES, date="2026-01-01")))
    return path


@pytest.fixture(scope="module")
def coefficients(study, sets):
    return write_coefficients(study / "coefficients.json", sets)


def scored(study, coefficients, name):
    return scoring.score_tables(create("local", coefficients=str(coefficients)), "local", study / "tables" / name)


def test_coefficients_never_saw_the_group_they_score(study, sets, coefficients):
    expected = fitting.held_out(sets, FEATURES, PENALTIES)
    changed = [
        one if one.group != "a" else fitting.FittedSet(**vars(one) | {"ratings": one.ratings[::-1].copy()})
        for one in sets
    ]
    other = write_coefficients(study / "other.json", changed)
    for one in sets:
        before, after = (scored(study, path, one.dataset) for path in (coefficients, other))
        values = before.set_index(["item_id", "system_id"])["value"].reindex(pd.MultiIndex.from_frame(one.units))
        np.testing.assert_allclose(values, expected[one.dataset], atol=1e-6)
        # Ratings of the group decide all coefficients but those that score the group.
        assert before["value"].equals(after["value"]) == (one.group == "a")


def test_a_context_of_the_training_data_is_recognised(study, coefficients, caplog):
    caplog.set_level("INFO")
    text = schema.read(study / "tables/one/contexts.parquet", "contexts")["history"].iloc[0][0]["text"]
    new = "An utterance that nobody has ever made before, I think."
    metric = create("local", coefficients=str(coefficients))
    scores = metric.score(["green tea"] * 2, histories=[["Before that.", text.upper() + " !"], [new]], facts=[[], []])
    assert "1 of 2 responses answer contexts that the model was fitted on" in caplog.text
    # Each is what it is alone: a score depends on no other response.
    alone = [metric.score(["green tea"], histories=[[one]], facts=[[]])["local"][0] for one in (text, new)]
    assert scores["local"].tolist() == alone
    assert alone[0] != pytest.approx(alone[1], abs=1e-6)


def test_a_fit_is_a_ridge_regression_with_an_effect_of_each_set(sets):
    penalty = 0.3
    fit = fitting.fit_model(sets, FEATURES, [penalty], parts=["overlap", "controls"]).fit
    # Plain: dummies of sets, weights so that each set counts alike, features in units of their spread within sets.
    columns = [0, 2, 3]
    values = np.concatenate([one.values[:, columns] for one in sets])
    place = np.repeat(range(4), [len(one.values) for one in sets])
    ratings = np.concatenate([(one.ratings - one.ratings.mean()) / one.ratings.std() for one in sets])
    scale = np.sqrt(np.mean([values[place == number].var(axis=0) for number in range(4)], axis=0))
    design = np.concatenate([values / scale, np.eye(4)[place]], axis=1)
    weights = 1 / np.bincount(place)[place] / 4
    ridge = np.diag([penalty] * 3 + [0] * 4)
    plain = np.linalg.solve(design.T @ (design * weights[:, None]) + ridge, design.T @ (weights * ratings))
    np.testing.assert_allclose(fit.weights[columns], plain[:3], atol=1e-10)
    assert fit.weights[1] == 0


def test_facts_are_optional_and_all_else_is_required():
    fit = Fit(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.5), np.full(4, 2.0))
    batch = Batch.checked(["one two", "one two"], histories=[["a"], ["a"]], facts=[["f"], []])

    def score(last):
        distinct = {"distinct-1": [0.7, 0.7], "distinct-2": [0.5, last]}
        values = FEATURES.values(batch, {"distinct": distinct, "f1_context": {"precision": [1, 1]}})
        return fit.score(values, FEATURES.of_facts)

    words = 3 * (np.log(3) - 0.5) / 2
    assert score(0.5) == pytest.approx([0.25 + 0.2 + words, 0.25 + words])
    assert np.isnan(score(np.nan)).tolist() == [False, True]


def test_existing_scores_of_the_parts_are_used(study, coefficients, tmp_path, monkeypatch):
    metric, expected = create("local", coefficients=str(coefficients)), scored(study, coefficients, "one")
    for part in metric.parts.values():
        monkeypatch.setattr(type(part), "compute", None)
    tables = {name: study / "results/one/scores" / f"{name}.parquet" for name in METRICS}
    local.score_from(metric, "local", study / "tables/one", tables, tmp_path / "scores.parquet")
    pd.testing.assert_frame_equal(schema.read(tmp_path / "scores.parquet", "scores"), expected, check_exact=True)


def test_coefficients_belong_to_certain_scores(coefficients, tmp_path):
    def why(**changes):
        (tmp_path / "other.json").write_text(json.dumps(known | changes))
        return create("local", coefficients=str(tmp_path / "other.json")).unavailable()

    known = json.loads(coefficients.read_text())
    signatures = known["signatures"]
    assert "comperdial fit" in create("local", coefficients=str(tmp_path / "none.json")).unavailable()
    assert "its part distinct is distinct|" in why(signatures=signatures | {"distinct": "distinct|text:raw|v:1"})
    assert "without scores of its part distinct" in why(signatures={"f1_context": signatures["f1_context"]})
    assert "no coefficients of `local`" in why(fits={})
    # Another version of a library moves last digits alone.
    bleu = create("bleu").signature()
    overlap = {"metrics": {"bleu": {"kind": "bleu"}}, "parts": {"overlap": ["bleu:bleu-1"]}}
    fits = {left: {"features": {"bleu:bleu-1": {"weight": 1, "mean": 0, "scale": 1}}} for left in known["fits"]}
    version = bleu.rpartition("nltk:")[2].partition("|")[0]
    assert why(**overlap, fits=fits, signatures={"bleu": bleu.replace(f"nltk:{version}", "nltk:1.0")}) is None
    assert "fits new ones" in why(**overlap, fits=fits, signatures={"bleu": bleu.replace("1e-12", "0.1")})


def test_fit_command_is_deterministic(study, tmp_path, capsys):
    def fit(name, *more):
        files = ["--features", study / "features.yaml", "--tables", study / "tables", "--scores", study / "results"]
        return main([*map(str, ["fit", *files, "--output", tmp_path / name]), *more])

    assert fit("first.json") == fit("second.json") == fit("less.json", "--leave-out", "overlap") == 0
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert "f1_context" not in (tmp_path / "less.json").read_text()
    assert fit("less.json", "--leave-out", "overlaps") == 1
    assert "did you mean" in capsys.readouterr().err.lower()


def test_ablate_correlates_held_out_scores_for_all_variants(study, sets, tmp_path):
    files = {"features": "features.yaml", "tables": "tables", "scores": "results"}
    command = ["ablate", "--resamples", "50", "--output", str(tmp_path / "c.parquet")]
    command += [word for name, file in files.items() for word in (f"--{name}", str(study / file))]
    assert main([*command, "--pairs", str(tmp_path / "pairs.parquet")]) == 0
    rows = schema.read(tmp_path / "c.parquet", "correlations")
    parts = {text.format(part) for part in PARTS for text in ("without {}", "{} alone")}
    assert set(rows["output"]) == {"all parts", *parts}
    held = fitting.held_out(sets, FEATURES, PENALTIES)
    rows = rows[(rows["output"] == "all parts") & (rows["coefficient"] == "pearson")].set_index("dataset")
    for one in sets:
        expected = np.corrcoef(held[one.dataset], one.ratings)[0, 1]
        assert rows.loc[one.dataset, "value"] == pytest.approx(expected, abs=1e-6)
    assert schema.read(tmp_path / "pairs.parquet", "pairs").groupby(["dataset", "coefficient"]).size().max() == 21


ROWS = [
    {"label": "local", "metric": "local", "output": "local", "figure": True},
    {"label": "METEOR", "metric": "meteor", "output": "meteor"},
    {"label": "GPT-4 (recorded)", "metric": "gpt-4_recorded", "output": "mean"},
    {"label": "DEnsity", "metric": "density", "output": "density"},
]
PLANNED = {"metric": "gpt-4_recorded:mean", "against": "local:local", "datasets": ["two", "one"], "note": "later"}


@pytest.fixture
def made(tmp_path, root, monkeypatch):
    monkeypatch.chdir(root)
    same = {"coefficient": "spearman", "n": 24, "p": 0.01}

    def result(dataset, metric, value, output=None, **more):
        return correlation(dataset, metric, output or metric, value, **same | more)

    none = {"low": np.nan, "high": np.nan}
    results = [
        result("one", "local", 0.5),
        result("one", "local", 0.25, grouping="system", **none | {"n": 2, "p": np.nan}),
        result("one", "local", 0.35, grouping="agents", n=20),
        result("one", "meteor", 0.2),
        result("one", "f1", 0.7),
        result("one", "density", np.nan, **none | {"n": 0, "coverage": 0.0}),
        result("two", "local", 0.3, loso_value=0.1, loso_system="y"),
        result("two", "gpt-4_recorded", 0.6, "mean"),
        result("two", "local", 0.7, target="style"),
        result("two", "local", 0.7, level="system"),
    ]
    pairs = [
        pair("one", "local:local", "meteor:meteor", 0.3, 0.001, coefficient="spearman"),
        pair("one", "f1:f1", "local:local", 0.4, 0.9, coefficient="spearman"),
        pair("two", "gpt-4_recorded:mean", "local:local", 0.3, 0.04, coefficient="spearman"),
    ]
    inputs = write_results(tmp_path, results, pairs, not_run={"density": "no weights"})
    inputs["costs"] = [tmp_path / "costs.csv"]
    inputs["costs"][0].write_text("metric,seconds,usd,how,machine,date\nlocal,12.3,0,measured,a laptop,2026-01-01\n")
    entry = {"name": "local_metrics", "rows": ROWS, "title": "T", "caption": "C."}
    entry["columns"] = read_study("local_metrics")["tables"]["local_metrics"]["columns"]
    study = {"name": "local_metrics", "datasets": ["one", "two"], "planned_contrasts": [PLANNED], "entry": entry}
    return inputs, study | {"tables": {"local_metrics": entry}}


def test_the_table_has_values_ranks_and_restrictions(made):
    table = local_metrics.table(*made)
    page = render.markdown(table)
    assert "| local | 0.400 | **0.500 [0.30, 0.70] #1** | 0.300‡ [0.10, 0.50] #2 |" in page
    assert "| local, within systems | – | 0.250 | – |" in page
    assert "| local, without human responses | – | 0.350 [0.15, 0.55] | – |" in page
    # No mean over some of the sets, which would look like one over all; another metric's pairs are not corrected for.
    assert "| METEOR | – | 0.200 [0.00, 0.40] #2 | – |" in page
    assert "over all pairs of its rows: 1 test" in page
    frame = table.frame.set_index(["label", "dataset"])
    # Within systems n counts responses, as in the row above.
    assert frame.loc[("local, within systems", "one"), "n"] == 24


def test_planned_contrasts_are_signed_and_corrected_together(made):
    inputs, study = made
    rows = local_metrics.contrasts(inputs, study).frame.set_index("dataset")
    assert rows.loc["two", "difference"] == pytest.approx(0.3)
    assert rows.loc["two", "p_adjusted"] == pytest.approx(0.04)
    assert pd.isna(rows.loc["one", "p"])
    with pytest.raises(UnknownNameError, match="Did you mean 'local:local'"):
        local_metrics.contrasts(inputs, study | {"planned_contrasts": [PLANNED | {"against": "local:locl"}]})
