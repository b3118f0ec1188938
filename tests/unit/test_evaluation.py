"""From scores and ratings to tables of results: every number compared with plain pandas and scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.evaluation import Detail, Subsampling, aggregate
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.results import correlate
from comperdial.evaluation.samples import Tables
from comperdial.report.ranking import contrasts, corrected, of_outputs, with_ranks
from comperdial.stats.multiple import holm
from ratedtables import rating_rows, score_rows

SYSTEMS, DIALOGUES, TURNS = 8, 5, 3
RATERS = ("ann", "bob", "cy")
PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
UNIT = ["item_id", "system_id"]


@pytest.fixture(scope="module")
def made():
    """Eight systems in five dialogues of three turns: two metrics of turns, one of dialogues, both levels rated."""
    rng = np.random.default_rng(7)
    truth = rng.normal(size=(SYSTEMS, 1, 1)) + 0.5 * rng.normal(size=(SYSTEMS, DIALOGUES, TURNS))
    turns = [(f"d{d}t{t}", f"s{s}") for s in range(SYSTEMS) for d in range(DIALOGUES) for t in range(TURNS)]
    wholes = [(f"d{d}", f"s{s}") for s in range(SYSTEMS) for d in range(DIALOGUES)]
    parts = {"turn": (turns, truth.ravel(), 0.4), "dialogue": (wholes, truth.mean(axis=2).ravel(), 0.3)}

    def noisy(level, noise):
        return parts[level][1] + noise * rng.normal(size=len(parts[level][0]))

    scores = [score_rows(turns, np.float32(noisy("turn", noise)), name) for name, noise in (("good", 0.3), ("bad", 3))]
    scores.append(score_rows(wholes, np.float32(noisy("dialogue", 0.2)), "whole", level="dialogue"))
    ratings = {
        level: pd.concat([rating_rows(units, noisy(level, noise), rater, level) for rater in RATERS], ignore_index=True)
        for level, (units, _, noise) in parts.items()
    }
    contexts = [("d", f"d{d}t{t}", f"d{d}") for d in range(DIALOGUES) for t in range(TURNS)]
    contexts = pd.DataFrame(contexts, columns=["dataset", "context_id", "dialogue_id"])
    return {"scores": pd.concat(scores, ignore_index=True), **ratings, "contexts": contexts}


def all_samples(made, **choice):
    ratings = pd.concat([made["turn"], made["dialogue"]])
    return list(evaluation.samples(made["scores"], ratings, contexts=made["contexts"], **choice))


@pytest.fixture(scope="module")
def found(made):
    return evaluation.correlations(all_samples(made))


def value(found, level, against, metric, coefficient="pearson", grouping="pooled", column="value"):
    wanted = {"level": level, "against": against, "metric": metric, "coefficient": coefficient, "grouping": grouping}
    return found.loc[(found[[*wanted]] == pd.Series(wanted)).all(axis=1), column].item()


def by_dialogue(turns):
    return turns.groupby([turns.index.get_level_values(0).str[:2], "system_id"]).mean()


def plain(made, metric):
    """Return scores and ratings of a metric at each level and kind of ratings, by pandas alone."""
    scores = made["scores"][made["scores"]["metric"] == metric].set_index(UNIT)["value"].astype(float)
    turns, rated_whole = (made[level].groupby(UNIT)["rating"].mean() for level in ("turn", "dialogue"))
    whole = scores if metric == "whole" else by_dialogue(scores)
    sides = {
        ("dialogue", "turn"): (whole, by_dialogue(turns)),
        ("dialogue", "dialogue"): (whole, rated_whole),
        ("system", "turn"): (whole.groupby("system_id").mean(), by_dialogue(turns).groupby("system_id").mean()),
        ("system", "dialogue"): (whole.groupby("system_id").mean(), rated_whole.groupby("system_id").mean()),
    }
    return sides if metric == "whole" else sides | {("turn", "turn"): (scores, turns)}


@pytest.mark.parametrize("metric", ["good", "bad", "whole"])
def test_each_level_against_each_kind_of_ratings(made, found, metric):
    sides = plain(made, metric)
    for (level, against), (x, y) in sides.items():
        y = y.reindex(x.index)
        for name, of in PLAIN.items():
            row = {column: value(found, level, against, metric, name, column=column) for column in ("value", "p", "n")}
            expected = of(x, y)
            assert row == pytest.approx({"value": expected.statistic, "p": expected.pvalue, "n": len(x)}, abs=1e-9)
            # The lowest value without a system, and that system.
            systems = x.index.get_level_values("system_id")
            left = {s: of(x[systems != s], y[systems != s]).statistic for s in systems.unique()}
            assert value(found, level, against, metric, name, column="loso_value") == pytest.approx(min(left.values()))
            assert value(found, level, against, metric, name, column="loso_system") == min(left, key=left.get)
    assert {*zip(*(found.loc[found["metric"] == metric, name] for name in ("level", "against")), strict=True)} == {
        *sides
    }


def test_ceilings_match_a_plain_loop(made):
    found = evaluation.ceilings(all_samples(made))
    table = made["turn"].pivot(index=UNIT, columns="annotator_id", values="rating")
    for rater in RATERS:
        others = table.drop(columns=rater).mean(axis=1)
        rows = found[(found["annotator_id"] == rater) & (found["level"] == "turn")]
        rows = rows.set_index(["grouping", "coefficient"])["value"]
        assert rows["pooled", "spearman"] == pytest.approx(stats.spearmanr(table[rater], others).statistic, abs=1e-12)
        within = [stats.pearsonr(one[rater], others.loc[one.index]).statistic for _, one in table.groupby("item_id")]
        assert rows["item", "pearson"] == pytest.approx(np.mean(within), abs=1e-12)
    alone = made["turn"][(made["turn"]["annotator_id"] == "ann") | (made["turn"]["item_id"] == "d0t0")]
    found = evaluation.ceilings(all_samples(made | {"turn": alone}, levels=["turn"]))
    assert set(found.loc[found["grouping"] == "pooled", "n"]) == {SYSTEMS}, "what others did not rate is left out"


def test_detail_covers_the_named_outputs(made, found):
    cells = [("turn", "turn"), ("dialogue", "dialogue"), ("system", "turn")]
    samples = [sample for sample in all_samples(made) if (sample.level, sample.against) in cells]
    detail = Detail(outputs=[("good", "o"), ("bad", "o")], resamples=50, seed=1)
    values, tests = evaluation.evaluate(samples, detail=detail)
    pooled = values[(values["grouping"] == "pooled") & values["coefficient"].isin(PLAIN)]
    known = pooled[pooled["low"].notna()]
    assert set(known["metric"]) == set(values.loc[values["grouping"] == "item", "metric"]) == {"good", "bad", "human"}
    assert (known["low"] <= known["value"]).all() and set(known["over"]) == {"systems and contexts"}
    same = found[[cell in cells for cell in zip(found["level"], found["against"], strict=True)]]
    np.testing.assert_array_equal(pooled["value"], same["value"])
    x, y = plain(made, "good")["turn", "turn"]
    within = [stats.kendalltau(one, y.loc[one.index]).statistic for _, one in x.groupby("item_id")]
    assert value(values, "turn", "turn", "good", "kendall", "item") == pytest.approx(np.mean(within), abs=1e-12)
    # Pairs: the better first, nobody but metrics, and ranks that follow from the corrected p.
    tests = corrected(tests)
    assert (tests["difference"] >= 0).all() and (tests["p_adjusted"] >= tests["p"]).all()
    assert "human" not in {*tests["metric_a"], *tests["metric_b"]}
    assert {"accuracy", "spa"} <= set(tests.loc[tests["level"] == "system", "coefficient"])
    ranked = with_ranks(values, tests)
    pair = tests.query("level == 'turn' and coefficient == 'pearson' and grouping == 'pooled'").iloc[0]
    ranks = [value(ranked, "turn", "turn", name, column="rank") for name in ("good", "bad")]
    assert (pair["metric_a"], ranks) == ("good", [1, 2 if pair["p_adjusted"] <= 0.05 else 1])
    difference = value(values, "turn", "turn", "good") - value(values, "turn", "turn", "bad")
    assert pair["difference"] == pytest.approx(difference, abs=1e-12)


def test_curves_end_at_full_data_and_power_is_for_the_difference(made, found):
    detail, few = Detail(outputs=[("good", "o"), ("bad", "o")], resamples=20), Subsampling(repeats=2)
    samples = all_samples(made, levels=["turn"])
    curves, again = (evaluation.curves(samples, detail=detail, subsampling=few) for _ in range(2))
    pd.testing.assert_frame_equal(curves, again)
    whole = curves[(curves["varied"] == "systems") & (curves["size"] == SYSTEMS) & (curves["metric"] == "good")]
    expected = [value(found, "turn", "turn", "good", name) for name in whole["coefficient"]]
    assert len(whole) and whole["value"].tolist() == pytest.approx(expected, abs=1e-12)
    power = evaluation.power(samples, detail=detail, subsampling=few)
    (name,) = power["coefficient"].unique()
    apart = value(found, "turn", "turn", "good", name) - value(found, "turn", "turn", "bad", name)
    np.testing.assert_allclose(power["difference"].abs(), apart, atol=1e-12)
    assert power["power"].between(0.05, 1).all()


def test_missing_values_are_dropped_on_both_sides_and_counted(made):
    scores = made["scores"]
    scores = scores[~((scores["metric"] == "good") & scores["item_id"].str.endswith("t0"))]
    found = evaluation.correlations(all_samples(made | {"scores": scores}))
    shares = found[found["metric"] == "good"].groupby(["level", "against"])["coverage"].first()
    np.testing.assert_allclose(shares, 2 / 3)
    x, y = plain(made | {"scores": scores}, "good")["turn", "turn"]
    assert value(found, "turn", "turn", "good") == pytest.approx(stats.pearsonr(x, y.loc[x.index]).statistic)
    # A system without scores counts, unless it is a reference; so do cut inputs.
    scores = made["scores"].assign(cut=(made["scores"]["item_id"] == "d1t1") * 40)
    scores = scores[~((scores["metric"] == "good") & (scores["system_id"] == "s3"))]
    systems = pd.DataFrame({"dataset": "d", "system_id": [f"s{n}" for n in range(SYSTEMS)], "kind": "agent"})
    for kind, coverage in (("agent", 7 / 8), ("reference", 1)):
        systems.loc[3, "kind"] = kind
        samples = all_samples(made | {"scores": scores}, levels=["turn", "dialogue"], systems=systems)
        found = evaluation.correlations(samples)
        for level, n in (("turn", 105), ("dialogue", 35)):
            row = found[(found["metric"] == "good") & (found["level"] == level)].iloc[0]
            assert (row["coverage"], row["cut"], row["n"]) == (pytest.approx(coverage), 7, n)


def test_judges_people_and_data_sets_are_never_mixed(made):
    ratings = made["turn"]
    judge = ratings.assign(source="gpt", annotator_id="gpt", rating=1.0)
    samples = all_samples(made | {"turn": pd.concat([ratings, judge, ratings.assign(dataset="other", rating=0.0)])})
    for one, other in zip(samples, all_samples(made), strict=True):
        np.testing.assert_array_equal(one.ratings, other.ratings)


def test_ties_ignore_rounding(made):
    """0.1 + 0.2 is not 0.3 in the computer; sentence BLEU's scores are mostly tiny and all the same different."""
    rng = np.random.default_rng(3)
    good, bad = (made["scores"][made["scores"]["metric"] == name].copy() for name in ("good", "bad"))
    bad["value"] = (10.0 ** rng.integers(-15, 1, len(bad)) * rng.integers(1, 4, len(bad))).astype(np.float32)
    exact = rng.integers(1, 5, len(good)) / 10
    noise = np.array([0.0, 1e-16, -1e-16, 2e-16])[rng.integers(0, 4, len(good))]
    scores = pd.concat([bad, good.assign(value=exact), good.assign(value=exact * (1 + noise), metric="rounded")])
    values, tests = evaluation.evaluate(
        all_samples(made | {"scores": scores}, levels=["turn"]), detail=Detail(resamples=50)
    )
    x, y = plain({**made, "scores": bad}, "bad")["turn", "turn"]
    expected = stats.kendalltau(x, y.loc[x.index]).statistic
    assert value(values, "turn", "turn", "bad", "kendall") == pytest.approx(expected)
    one, other = (values[values["metric"] == name].reset_index(drop=True) for name in ("good", "rounded"))
    for column in ("value", "low", "loso_value", "p"):
        np.testing.assert_allclose(one[column].astype(float), other[column].astype(float), atol=1e-12)
    same = tests[~tests[["metric_a", "metric_b"]].isin(["bad"]).any(axis=1)]
    assert (same["difference"].abs() < 1e-12).all() and (same["p"].dropna() == 1).all()


@pytest.mark.parametrize(
    ("systems", "fixed", "over", "test"),
    [
        ("ABCDE", False, "systems and contexts", "jackknife|seed"),
        ("ABCDE", True, "contexts, these systems", "jackknife|dialogues|seed"),
        ("AB", False, "contexts, these systems", "jackknife|dialogues|seed"),
        ("A", False, "contexts", "jackknife|seed"),
    ],
)
def test_systems_are_fixed_if_few_or_on_request(systems, fixed, over, test):
    rng = np.random.default_rng(1)
    names = [(f"c{context}", system) for context in range(12) for system in systems]
    scores = pd.concat([score_rows(names, rng.normal(size=len(names)), metric) for metric in "fg"])
    samples = evaluation.samples(scores, rating_rows(names, rng.integers(1, 6, len(names))), levels=["turn"])
    samples = [sample.with_systems_given() if fixed else sample for sample in samples]
    values, tests = evaluation.evaluate(samples, detail=Detail(resamples=50, seed=1))
    assert set(values.loc[(values["grouping"] == "pooled") & values["low"].notna(), "over"]) == {over}
    assert tests.loc[tests["grouping"] == "pooled", "test"].str.startswith(test).all()


@pytest.mark.parametrize(("count", "known"), [(2, False), (3, True)])
def test_it_takes_three_systems_to_correlate_their_means(made, count, known):
    few = made["scores"]["system_id"].isin([f"s{n}" for n in range(count)]) | (made["scores"]["metric"] != "good")
    found = evaluation.correlations(all_samples(made | {"scores": made["scores"][few]}, levels=["system"]))
    assert found.loc[found["metric"] == "good", "value"].notna().eq(known).all()


@pytest.mark.parametrize(
    ("change", "choice", "message"),
    [
        ({"item_id": "x"}, {}, "no score of metric 'bad' belongs to a rated response; the first is of 'x'"),
        ({"dataset": "other"}, {}, "scores, and no ratings"),
        ({"metric": "human", "output": "turns"}, {}, "a metric is called 'human'"),
        ({"level": "dialogue"}, {}, "has scores of turns and of dialogues"),
        ({}, {"targets": ["overal"]}, "unknown dimension 'overal'"),
        ({}, {"source": "humans"}, "source of ratings"),
    ],
)
def test_scores_without_matching_ratings_are_refused(made, change, choice, message):
    scores = made["scores"][made["scores"]["metric"] != "whole"].copy()
    chosen = (scores["metric"] == "bad") & ((scores["system_id"] == "s0") | ("level" not in change))
    changed = scores[chosen].assign(**change)
    if "item_id" in change:
        changed = changed.drop_duplicates("system_id")
    kept = scores[~chosen] if "dataset" not in change else scores[:0]
    with pytest.raises((SchemaError, UnknownNameError), match=message):
        all_samples(made | {"scores": pd.concat([kept, changed])}, **choice)


def test_a_context_is_in_one_dialogue(tmp_path):
    (tmp_path / "contexts.csv").write_text("context_id,dialogue_id\n01,1\n01,2\n")
    with pytest.raises(SchemaError, match="context '01' is in two rows"):
        aggregate.read_contexts(tmp_path / "contexts.csv")


# The results of a data set


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of tables, and beside it a file of scores."""
    root, rng = tmp_path_factory.mktemp("set"), np.random.default_rng(5)
    names = ("a", "b", "c", "d", "human")
    units = [(f"c{d}", system) for d in range(12) for system in names]
    truth = rng.normal(size=len(units)) + np.tile(np.arange(5), 12) / 2
    systems = [("mine", name, "human" if name == "human" else "agent", None, "") for name in names]
    contexts = [("mine", f"c{d}", f"c{d}", 0, [{"speaker": "u", "text": "Hello"}], [], []) for d in range(12)]
    tables = {
        "systems": pd.DataFrame(systems, columns=schema.table("systems").columns),
        "contexts": pd.DataFrame(contexts, columns=schema.table("contexts").columns),
        "ratings": pd.concat(
            rating_rows(units, truth + rng.normal(size=len(units)), name, source=source, dataset="mine")
            for name, source in (("r1", "human"), ("r2", "human"), ("g", "gpt-4"))
        ),
    }
    for name, frame in tables.items():
        schema.write(root / f"tables/{name}.parquet", frame, name)
    noise = {"good": 0.5, "fair": 1.0, "poor": 3.0, "shown": 1.5}
    scores = [score_rows(units, truth + n * rng.normal(size=len(units)), m, dataset="mine") for m, n in noise.items()]
    schema.write(root / "scores.parquet", pd.concat(scores), "scores")
    return root / "tables"


@pytest.fixture(scope="module")
def results(folder):
    expected = {"lost": {"signature": "lost", "outputs": {"o": ["references"]}}}
    return correlate(
        Tables.read(folder, [folder.parent / "scores.parquet"]), outputs=["good:o", "fair:o", "poor:o"],
        compared=["shown:o", "gpt-4_recorded:mean"], restricted=["shown:o"], raters=["gpt-4"], resamples=50,
        main_target="overall", expected=Expected.of(expected, schema.read(folder / "contexts.parquet", "contexts")),
    )  # fmt: skip


def test_main_outputs_have_all_results_and_shown_ones_have_intervals(results, folder):
    turns = results.correlations.query("level == 'turn' and grouping == 'pooled'").set_index(["coefficient", "metric"])
    pearson, kendall = turns.loc["pearson"], turns.loc["kendall"]
    assert pearson["value"].drop("lost").notna().all()
    assert {*pearson.index[pearson["low"].notna()]} == {"good", "fair", "poor", "shown", "gpt-4_recorded"}
    assert {*kendall.index[kendall["low"].notna()]} == {"good", "fair", "poor"}
    assert pearson.loc["lost", ["coverage", "lacking"]].tolist() == [0, "references"]
    few = results.correlations.query("level == 'system' and coefficient == 'spearman'").set_index("metric")
    assert few["p_exact"].drop("lost").notna().all()
    shown = results.pairs.query("metric_a == 'shown' or metric_b == 'shown'")
    assert {*shown["coefficient"]} == {"pearson", "spearman"} and {*shown["level"]} == {"turn"}
    # Restricted outputs are correlated within systems and without people, too.
    units = schema.read(folder.parent / "scores.parquet", "scores").query("metric == 'shown'").set_index(UNIT)
    ratings = schema.read(folder / "ratings.parquet", "ratings").query("source == 'human'")
    both = pd.DataFrame({"score": units["value"], "rating": ratings.groupby(UNIT)["rating"].mean()})
    within = [stats.spearmanr(one["score"], one["rating"]).statistic for _, one in both.groupby("system_id")]
    agents = both.drop("human", level="system_id")
    for grouping, name, expected in (
        ("system", "spearman", np.mean(within)),
        ("agents", "pearson", stats.pearsonr(agents["score"], agents["rating"]).statistic),
    ):
        assert value(results.correlations, "turn", "turn", "shown", name, grouping) == pytest.approx(expected, abs=1e-9)


def test_ranks_and_contrasts_are_corrected_over_given_rows(results):
    for outputs, tests in ((["good:o", "fair:o", "poor:o"], 3), (["good:o", "shown:o"], 1)):
        ranked = with_ranks(of_outputs(results.correlations, outputs), results.pairs)
        assert value(ranked, "turn", "turn", "good", column="tests") == tests
        assert value(ranked, "turn", "turn", "good", column="rank") == 1
    planned = [
        {"metric": "poor:o", "against": "good:o", "datasets": ["mine"]},
        {"metric": "good:o", "against": "shown:o", "datasets": ["mine", "other"]},
    ]
    made = contrasts(results.pairs[results.pairs["level"] == "turn"], planned)
    pearson = made[made["coefficient"] == "pearson"]
    assert list(pearson["dataset"]) == ["mine", "mine", "other"]
    assert pearson["difference"].iloc[0] < 0 and pearson["low"].iloc[0] < pearson["high"].iloc[0]
    np.testing.assert_allclose(pearson["p_adjusted"][:2], holm(pearson["p"].to_numpy()[:2]))
    assert set(pearson["tests"]) == {2} and pearson["p"].isna().to_list() == [False, False, True]
