"""The learned metric: coefficients that never saw what they score, fits that are plain ridge regression, and one way to score."""

import json
import logging
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from comperdial.jobs.dag import Jobs

from comperdial import schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError
from comperdial.evaluation import fitting
from comperdial.metrics import Batch, create, local, scoring
from comperdial.metrics.local import Features, Fit
from comperdial.stats.comparison import holm
from comperdial.studies.local_metrics.frame import ablation_scores, contrasts, evaluate, restricted
from making import make

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


# The study


def correlated(**changes):
    row = {"dataset": "one", "level": "turn", "against": "turn", "target": "overall", "metric": "pmi", "output": "pmi"}
    row |= {"grouping": "pooled", "coefficient": "spearman", "value": 0.5, "low": 0.3, "high": 0.7, "p": 0.01, "n": 24}
    row |= {"over": "systems and contexts", "loso_value": None, "loso_system": None}
    return (
        row
        | {"rank": 1, "tests": 3, "rank_wmt": None, "coverage": 1.0, "cut": 0, "lacking": None, "signature": "pmi|v:1"}
        | changes
    )


def made_table(tmp_path):
    rows = [
        correlated(),
        correlated(dataset="two", value=0.3, low=np.nan, high=np.nan, rank=2, loso_value=0.1, loso_system="x"),
        correlated(metric="meteor", output="meteor", value=0.2),
    ]
    for name in ("one", "two"):
        frame = pd.DataFrame([row for row in rows if row["dataset"] == name])
        schema.write(
            tmp_path / f"{name}.parquet", frame.reindex(columns=schema.table("correlations").columns), "correlations"
        )
    parts = [
        correlated(value=0.25, grouping="system", p=np.nan, low=np.nan, high=np.nan, rank=None),
        correlated(value=0.35, rank=None),
    ]
    frame = pd.DataFrame(parts).reindex(columns=schema.table("correlations").columns)
    schema.write(tmp_path / "restricted.parquet", frame, "correlations")
    (tmp_path / "rows.yaml").write_text(
        "rows:\n  - {label: PMI, metric: pmi, output: pmi, figure: true}\n  - {label: METEOR, metric: meteor, output: meteor}\n"
        "  - {label: DEnsity, metric: density, output: density}\n"
    )
    (tmp_path / "costs.csv").write_text(
        "metric,seconds,usd,how,machine,date\npmi,12.3,0,measured,a laptop,2026-01-01\n"
    )
    make(
        "studies.local_metrics.tables:local_metrics",
        tmp_path / "local_metrics",
        {
            "correlations": [tmp_path / "one.parquet", tmp_path / "two.parquet"],
            "restricted": [tmp_path / "restricted.parquet"],
            "rows": tmp_path / "rows.yaml",
            "costs": tmp_path / "costs.csv",
        },
        titles={"one": "Set one", "two": "Set two"},
        not_run={"density": "no weights"},
    )
    return (tmp_path / "local_metrics.md").read_text()


def test_the_table_shows_values_intervals_ranks_costs_and_what_was_not_run(tmp_path):
    page = made_table(tmp_path)
    assert "| PMI | 0.400 | 0.500 [0.30, 0.70] #1 | 0.300‡ #2 |" in page
    # No mean over some of the sets, which would look like one over all.
    assert "| METEOR | – | 0.200 [0.30, 0.70] #1 | – |" in page
    assert "not run: density: no weights" in page
    assert "| PMI | 12.3 | 0.00 | measured |" in page


def test_values_within_systems_and_without_human_responses_stand_below_their_row(tmp_path):
    page = made_table(tmp_path)
    lines = [line for line in page[page.index("Spearman") :].splitlines() if line.startswith("| PMI")]
    assert lines[:3] == [
        "| PMI | 0.400 | 0.500 [0.30, 0.70] #1 | 0.300‡ #2 |",
        "| PMI, within systems | – | 0.250 | – |",
        "| PMI, without human responses | – | 0.350 [0.30, 0.70] | – |",
    ]


def test_responses_of_one_system_and_without_human_ones(study, coefficients, tmp_path):
    shutil.copytree(study / "tables/one", folder := tmp_path / "one")
    scores = scored(study, coefficients, "one")
    how = {"target": "overall", "main_target": None, "resamples": 50, "seed": 1}
    # No system is human: nothing is left out.
    assert set(restricted(folder, scores, [("local", "local")], **how)["grouping"]) == {"system"}
    systems = schema.read(folder / "systems.parquet", "systems").assign(kind=["agent", "human"])
    schema.write(folder / "systems.parquet", systems, "systems")
    found = restricted(folder, scores, [("local", "local")], **how).query("coefficient == 'pearson'")
    found = found.set_index("grouping")["value"]
    ratings = schema.read(folder / "ratings.parquet", "ratings")
    both = scores.merge(ratings, on=["item_id", "system_id"])
    of = {name: np.corrcoef(part["value"], part["rating"])[0, 1] for name, part in both.groupby("system_id")}
    assert found["pooled"] == pytest.approx(of["x"], abs=1e-6)
    assert found["system"] == pytest.approx((of["x"] + of["y"]) / 2, abs=1e-6)


def test_readme_gets_the_short_form(tmp_path):
    made_table(tmp_path)
    page = tmp_path / "README.md"
    page.write_text("Before.\n<!-- local-metrics-table -->\nold\n<!-- /local-metrics-table -->\nAfter.\n")
    assert main(["readme", str(tmp_path / "local_metrics.csv"), "--output", str(page)]) == 0
    assert "| PMI | 0.500 | 0.300‡ | 12.3 | 0.00 |" in page.read_text()
    assert "METEOR" not in page.read_text()
    assert page.read_text().startswith("Before.")
    assert page.read_text().endswith("After.\n")


def test_the_ablation_is_evaluated_as_any_metric_and_gpt_4_beside_it(study, tmp_path):
    sets = read(study)
    scores = ablation_scores(sets, FEATURES, [0.1, 1])
    names = list(scores["one"]["output"].unique())
    assert names == ["all parts", *(f"without {part}" for part in PARTS), *(f"{part} alone" for part in PARTS)]
    shutil.copytree(study / "tables/one", folder := tmp_path / "one")
    ratings = schema.read(folder / "ratings.parquet", "ratings")
    recorded = ratings.assign(dimension="relevance", source="gpt-4", annotator_id="gpt-4", rating=6 - ratings["rating"])
    schema.write(folder / "ratings.parquet", pd.concat([ratings, recorded]), "ratings")
    outputs = [("local", "all parts"), ("gpt-4_recorded", "mean")]
    found = evaluate(folder, scores["one"], outputs, target=None, main_target="Overall", resamples=50, seed=1)
    found = found[found["coefficient"] == "pearson"].set_index("metric")
    assert found.loc["gpt-4_recorded", "value"] == pytest.approx(-1)
    held = fitting.held_out(sets, FEATURES, [0.1, 1])["one"]
    assert found.loc["local", "value"] == pytest.approx(np.corrcoef(held, sets[0].ratings)[0, 1], abs=1e-6)
    assert found.loc["local", "low"] < found.loc["local", "value"] < found.loc["local", "high"]
    assert found.loc["local", "rank"] == 1


def with_a_judge(study, tmp_path, dataset="one"):
    """Return a copy of a data set's tables with recorded ratings of GPT-4 that are people's and a little noise."""
    shutil.copytree(study / "tables" / dataset, folder := tmp_path / dataset)
    ratings = schema.read(folder / "ratings.parquet", "ratings")
    noise = np.random.default_rng(4).normal(0, 0.1, len(ratings))
    recorded = ratings.assign(dimension="relevance", source="gpt-4", annotator_id="gpt-4")
    recorded["rating"] = (recorded["rating"] + noise).clip(recorded["scale_min"], recorded["scale_max"])
    schema.write(folder / "ratings.parquet", pd.concat([ratings, recorded]), "ratings")
    return folder


JUDGE, OVERLAP = ("gpt-4_recorded", "mean"), ("f1_context", "precision")


def test_planned_contrasts_are_tested_as_pairs_of_the_table_and_corrected_over_themselves_alone(study, tmp_path):
    found = {}
    for name in ("one", "two"):
        folder = with_a_judge(study, tmp_path, name)
        scores = pd.concat(
            [schema.read(study / "results" / name / "scores" / f"{metric}.parquet", "scores") for metric in METRICS],
            ignore_index=True,
        )
        drawn = {"target": None, "main_target": "Overall", "resamples": 50, "seed": 1}
        # Named the other way round, a difference has the other sign.
        planned, turned = (
            contrasts(folder, scores, [pair], **drawn).set_index("coefficient")
            for pair in ((JUDGE, OVERLAP), (OVERLAP, JUDGE))
        )
        of_all = evaluate(folder, scores, [JUDGE, OVERLAP, ("distinct", "distinct-2")], **drawn)
        value = of_all[of_all["coefficient"] == "spearman"].set_index("metric")["value"]
        assert of_all["tests"].tolist() == [3] * len(of_all)
        row, back = planned.loc["spearman"], turned.loc["spearman"]
        assert row["difference"] == pytest.approx(value["gpt-4_recorded"] - value["f1_context"])
        assert row["low"] < row["difference"] < row["high"]
        assert (back["difference"], back["low"], back["high"]) == pytest.approx(
            (-row["difference"], -row["high"], -row["low"])
        )
        assert back["p"] == pytest.approx(row["p"])
        found[name] = planned.reset_index()
        schema.write(tmp_path / f"{name}.parquet", found[name][schema.table("contrasts").columns], "contrasts")
    (tmp_path / "rows.yaml").write_text(
        "rows:\n  - {label: Judge, metric: gpt-4_recorded, output: mean}\n"
        "  - {label: Overlap, metric: f1_context, output: precision}\n"
    )
    planned = {"metric": "gpt-4_recorded:mean", "against": "f1_context:precision", "note": "named afterwards"}
    make(
        "studies.local_metrics.tables:local_contrasts_table",
        tmp_path / "contrasts",
        {"contrasts": [tmp_path / "one.parquet", tmp_path / "two.parquet"], "rows": tmp_path / "rows.yaml"},
        titles={"one": "Set one", "two": "Set two", "three": "Set three"},
        planned=[planned | {"datasets": ["two", "one", "three"]}],
    )
    table = pd.read_csv(tmp_path / "contrasts.csv")
    of = table[table["coefficient"] == "spearman"].set_index("dataset")
    p = [frame.set_index("coefficient").loc["spearman", "p"] for frame in (found["two"], found["one"])]
    assert of.loc[["two", "one"], "p_adjusted"].tolist() == pytest.approx(holm(p), rel=0.02)
    # What could not be tested is no test.
    assert set(table["tests"]) == {2}
    assert pd.isna(of.loc["three", "p_adjusted"])
    page = (tmp_path / "contrasts.md").read_text()
    assert "by each coefficient: 2 tests" in page
    assert "not tested on Set three" in page
    assert "f1_context:precision: named afterwards" in page
    assert page.index("| Judge minus Overlap | Set two |") < page.index("| Judge minus Overlap | Set one |")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"metric": "local", "against": "pmi:pmi", "datasets": ["fed_turn"]}, "expected METRIC:OUTPUT"),
        ({"metric": "pmi:pmi", "against": "pmi:pmi", "datasets": ["fed_turn"]}, "against itself"),
        ({"metric": "pmi:pmi", "against": "local:local", "datasets": []}, "datasets"),
        ({"metric": "pmi:pmi", "against": "local:local", "datasets": ["fed_turns"]}, "Did you mean 'fed_turn'"),
        ({"metric": "pmi:pmi", "against": "local:locl", "datasets": ["fed_turn"]}, "Did you mean 'local:local'"),
    ],
)
def test_a_wrong_contrast_is_one_clear_error(root, monkeypatch, entry, said):
    monkeypatch.chdir(root)
    config = load_yaml(root / "params.yaml") | {"studies": {"local_metrics": {"planned_contrasts": [entry]}}}
    with pytest.raises(ConfigError) as caught:
        Jobs(config)
    assert said in str(caught.value)


def test_contrasts_of_a_study_that_shows_none_are_an_error(root, monkeypatch):
    monkeypatch.chdir(root)
    entry = {"metric": "chrf:chrf", "against": "bleu:bleu-4", "datasets": ["usr_persona"]}
    config = load_yaml(root / "params.yaml") | {"studies": {"usr": {"planned_contrasts": [entry]}}}
    with pytest.raises(ConfigError, match="`planned_contrasts`; expected it in local_metrics alone"):
        Jobs(config)


def test_the_study_s_contrasts_are_a_table_of_their_own_and_below_the_study_s(root, monkeypatch):
    monkeypatch.chdir(root)
    jobs = Jobs(load_yaml(root / "params.yaml"))
    files = [
        f"results/studies/local_metrics/{name}_contrasts.parquet"
        for name in ("dailydialog_zhao", "persona_zhao", "conture_turn")
    ]
    for table in ("local_metrics", "local_contrasts"):
        assert set(jobs.inputs_of(f"results/studies/local_metrics/tables/{table}")["contrasts"]) == set(files)
    assert "results/studies/local_metrics/tables/local_contrasts.html" in jobs.targets(study="local_metrics")
