"""The learned metric: coefficients that never saw what they score, fits that are plain ridge regression, and one way to score."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.evaluation import fitting
from comperdial.metrics import Batch, create, local, scoring
from comperdial.metrics.local import Features, Fit

METRICS = {"distinct": {"kind": "distinct"}, "f1_context": {"kind": "with_context", "metric": "f1"}}
PARTS = {
    "overlap": ["f1_context:precision"],
    "facts": ["distinct:distinct-1"],
    "controls": ["words", "distinct:distinct-2"],
}
FEATURES = Features(METRICS, PARTS)
SETS = {"one": "a", "two": "a", "three": "b", "four": "c"}
WORDS = ["tea", "sea", "rain", "book", "green", "deep", "good", "day", "like", "said", "you", "they", "read", "cold"]


def texts(rng, count):
    return " ".join(rng.choice(WORDS, count))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Four small data sets with random texts and ratings, and the scores of both metrics on each."""
    root = tmp_path_factory.mktemp("study")
    for seed, name in enumerate(SETS):
        rng = np.random.default_rng(seed)
        ids = [f"{name}-{number}" for number in range(12)]
        contexts = pd.DataFrame(
            {
                "dataset": name,
                "context_id": ids,
                "dialogue_id": ids,
                "turn": 0,
                "history": [[{"speaker": "A", "text": texts(rng, 9)}] for _ in ids],
                "references": [[] for _ in ids],
                "facts": [
                    [texts(rng, 4)] if name in ("one", "three") and place % 4 else [] for place in range(len(ids))
                ],
            }
        )
        systems = pd.DataFrame(
            {"dataset": name, "system_id": ["x", "y"], "kind": "agent", "track": None, "description": "a program"}
        )
        responses = pd.DataFrame(
            [
                {"dataset": name, "context_id": one, "system_id": system, "response": texts(rng, rng.integers(2, 9))}
                for one in ids
                for system in ("x", "y")
            ]
        )
        ratings = responses.drop(columns="response").rename(columns={"context_id": "item_id"}).assign(
            level="turn",
            annotator_id="1", position=None, dimension="overall", scale_min=1.0, scale_max=5.0, source="human",
            rating=rng.integers(1, 6, len(responses)).astype(float),
        )  # fmt: skip
        tables = {"contexts": contexts, "systems": systems, "responses": responses, "ratings": ratings}
        for table, frame in tables.items():
            schema.write(root / "tables" / name / f"{table}.parquet", frame[schema.table(table).columns], table)
        for metric, entry in METRICS.items():
            made = create(entry["kind"], **{key: value for key, value in entry.items() if key != "kind"})
            scoring.write_scores(
                made, metric, root / "tables" / name, root / "results" / name / "scores" / f"{metric}.parquet"
            )
    (root / "features.yaml").write_text(
        yaml.safe_dump(
            {
                "metrics": METRICS,
                "parts": PARTS,
                "fitted_on": {name: {"target": "overall", "group": group} for name, group in SETS.items()},
                "penalties": [0.1, 1],
            }
        )
    )
    return root


def read(root):
    return [
        fitting.FittedSet.read(
            root / "tables" / name,
            {metric: root / "results" / name / "scores" / f"{metric}.parquet" for metric in METRICS}, FEATURES,
            target="overall", group=group,
        )
        for name, group in SETS.items()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def coefficients(study):
    path = study / "coefficients.json"
    path.write_text(json.dumps(fitting.train(read(study), FEATURES, [0.1, 1], date="2026-01-01")))
    return path


def scored(study, coefficients, name):
    return scoring.score_tables(create("local", coefficients=str(coefficients)), "local", study / "tables" / name)


def test_a_data_set_is_scored_by_coefficients_that_never_saw_its_group(study, coefficients, tmp_path):
    other = study / "other.json"
    changed = [
        one if one.group != "a" else fitting.FittedSet(**vars(one) | {"ratings": one.ratings[::-1].copy()})
        for one in read(study)
    ]
    other.write_text(json.dumps(fitting.train(changed, FEATURES, [0.1, 1], date="2026-01-01")))
    for name, group in SETS.items():
        before, after = (scored(study, path, name)["value"].to_numpy() for path in (coefficients, other))
        # Ratings of the group decide all coefficients but those that score the group.
        assert np.array_equal(before, after) == (group == "a")


def test_what_ships_scores_as_the_fits_that_were_evaluated(study, coefficients):
    sets = read(study)
    expected = fitting.held_out(sets, FEATURES, [0.1, 1])
    for one in sets:
        found = scored(study, coefficients, one.dataset).set_index(["item_id", "system_id"])["value"]
        found = found.reindex(pd.MultiIndex.from_frame(one.units))
        np.testing.assert_allclose(found, expected[one.dataset], atol=1e-6)


def test_a_copy_of_a_training_set_is_found_by_its_contexts(study, coefficients, caplog):
    caplog.set_level(logging.INFO)
    contexts = schema.read(study / "tables/one/contexts.parquet", "contexts")
    said = contexts["history"].iloc[0][0]["text"]
    metric = create("local", coefficients=str(coefficients))
    batch = {"responses": ["green tea", "green tea"], "facts": [[], []]}
    same, new = metric.score(
        histories=[["Before that.", said.upper() + " !"], ["An utterance that nobody has ever said before, I think."]], **batch
    )["local"]  # fmt: skip
    assert "1 of 2 responses answer contexts that the model was fitted on" in caplog.text
    # Each is what it is alone: a score depends on no other response.
    assert same == metric.score(["green tea"], histories=[[said]], facts=[[]])["local"][0]
    fits = metric._read.fits
    values = FEATURES.values(
        Batch.checked(["green tea"], histories=[["An utterance that nobody has ever said before, I think."]]),
        {"distinct": {"distinct-1": [1.0], "distinct-2": [0.5]}, "f1_context": {"precision": [0.0]}},
    )
    assert new == pytest.approx(fits[""].score(values, FEATURES.of_facts)[0])


def test_a_fit_is_a_regression_with_an_effect_of_each_set(study):
    sets, penalty = read(study), 0.3
    found = fitting.fit_model(sets, FEATURES, [penalty], parts=["overlap", "controls"]).fit
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
    np.testing.assert_allclose(found.weights[columns], plain[:3], atol=1e-10)
    assert found.weights[1] == 0


def test_facts_count_where_there_are_any_and_nothing_else_may_lack():
    fit = Fit(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.5), np.full(4, 2.0))
    batch = Batch.checked(["one two", "one two"], histories=[["a"], ["a"]], facts=[["f"], []])
    values = FEATURES.values(
        batch, {"distinct": {"distinct-1": [0.7, 0.7], "distinct-2": [0.5, 0.5]}, "f1_context": {"precision": [1, 1]}}
    )
    words = 3 * (np.log(3) - 0.5) / 2
    assert fit.score(values, FEATURES.of_facts) == pytest.approx([0.25 + 0.2 + words, 0.25 + words])
    metric_lacks = FEATURES.values(
        batch, {"distinct": {"distinct-1": [1, 1], "distinct-2": [0.5, np.nan]}, "f1_context": {"precision": [1, 1]}}
    )
    assert np.isnan(fit.score(metric_lacks, FEATURES.of_facts)).tolist() == [False, True]


def test_scores_that_there_are_make_the_same_as_computing_them(study, coefficients, tmp_path, monkeypatch):
    metric = create("local", coefficients=str(coefficients))
    tables = {name: study / "results/one/scores" / f"{name}.parquet" for name in METRICS}
    expected = scored(study, coefficients, "one")

    def refuse(*_):
        raise AssertionError("computed a second time")

    monkeypatch.setattr(type(metric.parts["distinct"]), "compute", refuse)
    monkeypatch.setattr(type(metric.parts["f1_context"]), "compute", refuse)
    local.score_from(metric, "local", study / "tables/one", tables, tmp_path / "found.parquet")
    pd.testing.assert_frame_equal(schema.read(tmp_path / "found.parquet", "scores"), expected, check_exact=True)


def test_it_says_why_it_cannot_run(coefficients, tmp_path):
    assert "comperdial fit" in create("local", coefficients=str(tmp_path / "none.json")).unavailable()
    said = json.loads(coefficients.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps(said | {"signatures": said["signatures"] | {"distinct": "distinct|text:raw|v:1"}}))
    assert "its part distinct is distinct|" in create("local", coefficients=str(other)).unavailable()
    other.write_text(json.dumps(said | {"signatures": {"f1_context": said["signatures"]["f1_context"]}}))
    assert "without scores of its part distinct" in create("local", coefficients=str(other)).unavailable()
    absent = METRICS | {"distinct": {"kind": "sentence_cosine", "model": str(tmp_path / "nowhere")}}
    other.write_text(json.dumps(said | {"metrics": absent}))
    assert create("local", coefficients=str(other)).unavailable().startswith("its part distinct: ")
    other.write_text("{}")
    assert "no coefficients of `local`" in create("local", coefficients=str(other)).unavailable()


def test_libraries_may_differ_and_options_may_not(coefficients, tmp_path, monkeypatch):
    class Part(type(create("distinct"))):
        libraries = ("numpy",)

        def signature(self):
            return self.told

    def told(signature):
        monkeypatch.setattr(Part, "told", signature, raising=False)
        metric = create("local", coefficients=str(other))
        vars(metric)["parts"] = {"distinct": Part()}
        return metric.unavailable()

    said = json.loads(coefficients.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps(said | {"signatures": {"distinct": "distinct|beta:1.2|numpy:1.0.0|v:1"}}))
    assert told("distinct|beta:1.2|numpy:2.4.1|v:1") is None
    assert "fits new ones" in told("distinct|beta:1.3|numpy:1.0.0|v:1")


def test_training_is_one_command_with_the_same_result_each_time(study, tmp_path, capsys):
    command = ["fit", "--features", str(study / "features.yaml"), "--tables", str(study / "tables")]
    command += ["--scores", str(study / "results"), "--output"]
    assert main([*command, str(tmp_path / "first.json")]) == 0
    assert main([*command, str(tmp_path / "second.json")]) == 0
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert main([*command, str(tmp_path / "less.json"), "--leave-out", "overlap"]) == 0
    assert "f1_context" not in (tmp_path / "less.json").read_text()
    assert main([*command, str(tmp_path / "less.json"), "--leave-out", "overlaps"]) == 1
    assert "did you mean" in capsys.readouterr().err.lower()


# What its parts contribute


def test_the_ablation_correlates_held_out_scores_of_all_variants(study, tmp_path):
    command = [
        "ablate",
        "--features",
        study / "features.yaml",
        "--tables",
        study / "tables",
        "--scores",
        study / "results",
    ]
    command += ["--resamples", 50, "--output", tmp_path / "found.parquet", "--pairs", tmp_path / "pairs.parquet"]
    assert main([str(part) for part in command]) == 0
    found = schema.read(tmp_path / "found.parquet", "correlations")
    assert set(found["output"]) == {
        "all parts", *(f"without {part}" for part in PARTS), *(f"{part} alone" for part in PARTS)
    }  # fmt: skip
    assert set(found["coefficient"]) == {"pearson", "spearman"}
    sets = read(study)
    held = fitting.held_out(sets, FEATURES, [0.1, 1])
    of = found[(found["output"] == "all parts") & (found["coefficient"] == "pearson")].set_index("dataset")
    for one in sets:
        expected = np.corrcoef(held[one.dataset], one.ratings)[0, 1]
        assert of.loc[one.dataset, "value"] == pytest.approx(expected, abs=1e-6)
        assert of.loc[one.dataset, "low"] < expected < of.loc[one.dataset, "high"]
    pairs = schema.read(tmp_path / "pairs.parquet", "pairs")
    assert pairs.groupby(["dataset", "coefficient"]).size().max() == 21
