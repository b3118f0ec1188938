import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import evaluation
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.evaluation import Detail, Subsampling
from comperdial.report.ranking import corrected, with_ranks
from ratedtables import rating_rows, score_rows

SYSTEMS, DIALOGUES, TURNS = 8, 5, 3
RATERS = ("ann", "bob", "cy")


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
    dialogue_of = contexts.set_index("context_id")["dialogue_id"]
    scores = pd.concat(scores, ignore_index=True)
    return {"scores": scores, **ratings, "contexts": contexts, "dialogue_of": dialogue_of}


def all_samples(made, **choice):
    return list(
        evaluation.samples(
            made["scores"], pd.concat([made["turn"], made["dialogue"]]), contexts=made["contexts"], **choice
        )
    )


@pytest.fixture(scope="module")
def found(made):
    return evaluation.correlations(all_samples(made))


def value(found, level, against, metric, coefficient="pearson", grouping="pooled", column="value"):
    rows = found[
        (found["level"] == level) & (found["against"] == against) & (found["metric"] == metric)
        & (found["coefficient"] == coefficient) & (found["grouping"] == grouping)
    ]  # fmt: skip
    assert len(rows) == 1
    return rows[column].iloc[0]


def plain(made, metric):
    """Return scores and mean ratings of turns and dialogues, by pandas alone."""
    scores = made["scores"][made["scores"]["metric"] == metric]
    if metric == "whole":
        return None, scores.set_index(["item_id", "system_id"])["value"].astype(float)
    turns = scores.set_index(["item_id", "system_id"])["value"].astype(float)
    return turns, by_dialogue(turns, made)


def by_dialogue(turns, made):
    whole = turns.reset_index()
    whole["item_id"] = whole["item_id"].map(made["dialogue_of"])
    return whole.groupby(["item_id", "system_id"])[turns.name].mean()


def rated(made):
    turns, whole = (made[level].groupby(["item_id", "system_id"])["rating"].mean() for level in ("turn", "dialogue"))
    return turns, by_dialogue(turns, made), whole


PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("coefficient", PLAIN)
@pytest.mark.parametrize("metric", ["good", "bad", "whole"])
def test_each_level_against_each_kind_of_ratings(made, found, metric, coefficient):
    turns, whole = plain(made, metric)
    rated_turns, averaged, rated_whole = rated(made)
    expected = {
        ("dialogue", "turn"): (whole, averaged),
        ("dialogue", "dialogue"): (whole, rated_whole),
        ("system", "dialogue"): (whole.groupby("system_id").mean(), rated_whole.groupby("system_id").mean()),
        ("system", "turn"): (whole.groupby("system_id").mean(), averaged.groupby("system_id").mean()),
    }
    if turns is not None:
        expected["turn", "turn"] = (turns, rated_turns)
    for (level, against), (x, y) in expected.items():
        statistic, p = PLAIN[coefficient](x, y.reindex(x.index))
        assert value(found, level, against, metric, coefficient) == pytest.approx(statistic, abs=1e-12)
        assert value(found, level, against, metric, coefficient, column="p") == pytest.approx(p, rel=1e-9)
        assert value(found, level, against, metric, coefficient, column="n") == len(x)


def test_a_metric_of_dialogues_has_no_turn_level_and_one_of_turns_has_all(found):
    places = {tuple(row) for row in found[found["metric"] == "whole"][["level", "against"]].to_numpy()}
    assert places == {("dialogue", "turn"), ("dialogue", "dialogue"), ("system", "turn"), ("system", "dialogue")}
    assert ("turn", "turn") in {tuple(row) for row in found[found["metric"] == "good"][["level", "against"]].to_numpy()}


def test_the_human_row_is_mean_ratings_of_turns_against_those_of_dialogues(made, found):
    _, averaged, rated_whole = rated(made)
    assert value(found, "dialogue", "dialogue", "human") == pytest.approx(
        stats.pearsonr(averaged, rated_whole.reindex(averaged.index)).statistic, abs=1e-12
    )
    systems = [series.groupby("system_id").mean() for series in (averaged, rated_whole)]
    assert value(found, "system", "dialogue", "human") == pytest.approx(stats.pearsonr(*systems).statistic, abs=1e-12)
    assert set(found.loc[found["metric"] == "human", "against"]) == {"dialogue"}


def test_ceilings_against_a_plain_loop(made):
    found = evaluation.ceilings(all_samples(made))
    table = made["turn"].pivot(index=["item_id", "system_id"], columns="annotator_id", values="rating")
    for rater in RATERS:
        others = table.drop(columns=rater).mean(axis=1)
        rows = found[(found["annotator_id"] == rater) & (found["level"] == "turn")]
        pooled = rows[(rows["grouping"] == "pooled") & (rows["coefficient"] == "spearman")]
        assert pooled["value"].iloc[0] == pytest.approx(stats.spearmanr(table[rater], others).statistic, abs=1e-12)
        within = [
            stats.pearsonr(one[rater], others.reindex(one.index)).statistic for _, one in table.groupby("item_id")
        ]
        of_items = rows[(rows["grouping"] == "item") & (rows["coefficient"] == "pearson")]
        assert of_items["value"].iloc[0] == pytest.approx(np.mean(within), abs=1e-12)


def test_ceilings_leave_out_what_others_did_not_rate(made):
    alone = made["turn"][(made["turn"]["annotator_id"] == "ann") | (made["turn"]["item_id"] == "d0t0")]
    made = made | {"turn": alone}
    found = evaluation.ceilings(all_samples(made, levels=["turn"]))
    assert set(found.loc[found["grouping"] == "pooled", "n"]) == {SYSTEMS}


def test_detail_is_for_what_it_names(made):
    samples = all_samples(made)
    detail = Detail(outputs=[("good", "o"), ("bad", "o")], resamples=100, seed=1)
    found = evaluation.correlations(samples, detail=detail)
    pooled = found[(found["grouping"] == "pooled") & found["coefficient"].isin(PLAIN)]
    assert set(pooled.loc[pooled["low"].notna(), "metric"]) == {"good", "bad", "human"}
    assert (pooled["low"].dropna() <= pooled.loc[pooled["low"].notna(), "value"]).all()
    assert set(found.loc[found["grouping"] == "item", "metric"]) == {"good", "bad", "human"}
    assert set(found.loc[found["coefficient"].isin(["acc_eq", "spa"]) & (found["grouping"] == "pooled"), "level"]) == {
        "system"
    }
    # The values are the same with and without.
    without = evaluation.correlations(samples)
    pd.testing.assert_series_equal(pooled["value"].reset_index(drop=True), without["value"])
    unknown = Detail(outputs=[("good", "o")], targets=["Fluency"], resamples=100)
    assert evaluation.correlations(samples, detail=unknown)["low"].isna().all()


def test_within_items_is_the_mean_over_contexts_or_dialogues(made):
    found = evaluation.correlations(all_samples(made), detail=Detail(resamples=100))
    turns, whole = plain(made, "good")
    rated_turns, _, rated_whole = rated(made)
    for level, against, x, y in (
        ("turn", "turn", turns, rated_turns),
        ("dialogue", "dialogue", whole, rated_whole),
    ):
        expected = [stats.kendalltau(one, y.reindex(one.index)).statistic for _, one in x.groupby("item_id")]
        assert value(found, level, against, "good", "kendall", "item") == pytest.approx(np.mean(expected), abs=1e-12)
        assert value(found, level, against, "good", "kendall", "item", "n") == len(expected)


def test_comparisons_name_the_better_first_and_ranks_follow(made):
    samples, detail = all_samples(made), Detail(resamples=200)
    found = evaluation.pairs(samples, detail=detail)
    tests = corrected(found)
    assert (tests["difference"] >= 0).all()
    assert (tests["p_adjusted"] >= tests["p"]).all()
    assert "human" not in {*tests["metric_a"], *tests["metric_b"]}
    correlations = with_ranks(evaluation.correlations(samples, detail=detail), found)
    pooled = tests[tests["grouping"] == "pooled"]
    pair = pooled[(pooled["level"] == "turn") & (pooled["coefficient"] == "pearson")].iloc[0]
    assert (pair["metric_a"], pair["metric_b"]) == ("good", "bad")
    difference = value(correlations, "turn", "turn", "good") - value(correlations, "turn", "turn", "bad")
    assert pair["difference"] == pytest.approx(difference, abs=1e-12)
    assert value(correlations, "turn", "turn", "good", column="rank") == 1
    expected = 2 if pair["p_adjusted"] <= 0.05 else 1
    assert value(correlations, "turn", "turn", "bad", column="rank") == expected
    assert correlations.loc[correlations["metric"] == "human", "rank"].isna().all()
    of_good = correlations[(correlations["metric"] == "good") & (correlations["grouping"] == "item")]
    assert of_good["rank"].notna().all()


def test_one_changed_rating_changes_every_kind_of_result(made):
    def everything(turn):
        samples, detail = all_samples(made | {"turn": turn}), Detail(resamples=100)
        few = Subsampling(repeats=2)
        return [
            evaluation.correlations(samples, detail=detail),
            evaluation.ceilings(samples),
            evaluation.pairs(samples, detail=detail),
            evaluation.curves(samples, detail=detail, subsampling=few),
            evaluation.power(samples, detail=detail, subsampling=few),
        ]

    other = made["turn"].copy()
    other.loc[other.index[0], "rating"] += 3
    for before, again, after in zip(everything(made["turn"]), everything(made["turn"]), everything(other), strict=True):
        pd.testing.assert_frame_equal(before, again)
        assert not before.equals(after)


def test_curves_end_at_the_full_data_and_take_judges_samples(made):
    samples = [sample for sample in all_samples(made) if sample.level == "turn"]
    good = made["scores"][made["scores"]["metric"] == "good"]
    rng = np.random.default_rng(0)
    judgements = pd.concat(
        [good.assign(sample=k, value=good["value"] + rng.normal(size=len(good))) for k in range(4)], ignore_index=True
    )
    few = Subsampling("pearson", repeats=5, seed=3)
    found = evaluation.curves(samples, detail=Detail(), subsampling=few, judgements=judgements)
    assert set(found["varied"]) == {"systems", "dialogues", "annotators", "samples"}
    whole = evaluation.correlations(samples)
    for varied, size in (("systems", SYSTEMS), ("dialogues", DIALOGUES), ("annotators", len(RATERS))):
        last = found[(found["varied"] == varied) & (found["metric"] == "bad")].sort_values("size").iloc[-1]
        assert last["size"] == size
        assert last["value"] == pytest.approx(value(whole, "turn", "turn", "bad"), abs=1e-12)
        assert last["agreement"] == pytest.approx(1)
    of_samples = found[found["varied"] == "samples"].sort_values("size")
    assert set(of_samples["metric"]) == {"good"}
    assert list(of_samples["size"]) == [1, 2, 3, 4]
    assert of_samples["value"].is_monotonic_increasing


def test_power_rises_with_what_there_is(made):
    samples = [sample for sample in all_samples(made) if sample.level == "turn"]
    found = evaluation.power(samples, detail=Detail(), subsampling=Subsampling("pearson"))
    assert set(found["varied"]) == {"systems", "dialogues"}
    for _, pair in found.groupby(["grouping", "coefficient", "varied"]):
        assert pair.sort_values("size")["power"].dropna().is_monotonic_increasing


def test_scores_of_nothing_that_was_rated_are_refused(made):
    elsewhere = made | {"scores": made["scores"].assign(item_id="x-" + made["scores"]["item_id"])}
    with pytest.raises(
        SchemaError, match="no score of metric 'good' belongs to a rated response; the first is of 'x-d0t0'"
    ):
        all_samples(elsewhere)
    unrated = made | {"turn": made["turn"][made["turn"]["item_id"] != "d0t0"]}
    unrated["scores"] = made["scores"][made["scores"]["item_id"] == "d0t0"]
    with pytest.raises(SchemaError, match="belongs to a rated response"):
        all_samples(unrated)
    with pytest.raises(SchemaError, match="scores, and no ratings"):
        all_samples(made | {"scores": made["scores"].assign(dataset="other")})


def test_detail_named_by_text():
    assert Detail.named(["f1:f1", "m:a:b"], None, 100, 1).outputs == [("f1", "f1"), ("m:a", "b")]
    assert Detail.named(None, None, 100, 1).outputs is None
    with pytest.raises(ConfigError, match="expected METRIC:OUTPUT"):
        Detail.named(["f1"], None, 100, 1)
    with pytest.raises(ConfigError, match="2 or more"):
        Detail.named(None, None, 1, 1)
    with pytest.raises(ConfigError, match="seed -3; expected 0 or more"):
        Detail.named(None, None, 100, -3)


def test_a_typing_error_is_no_result(made):
    samples = all_samples(made)
    with pytest.raises(UnknownNameError, match=r"unknown output 'good:oo'.* Did you mean 'good:o'"):
        Detail(outputs=[("good", "oo")]).check(samples)
    with pytest.raises(UnknownNameError, match="unknown dimension 'overal'"):
        Detail(targets=["overal"]).check(samples)
    with pytest.raises(UnknownNameError, match="unknown dimension 'overal'"):
        all_samples(made, targets=["overal"])
    with pytest.raises(UnknownNameError, match="source of ratings"):
        all_samples(made, source="humans")


def test_means_that_differ_in_the_order_of_adding_are_ties(made):
    # Thirds: three raters, three turns. The metric is the mean rating of each turn, so it must agree perfectly.
    rng = np.random.default_rng(5)
    turn = made["turn"].assign(rating=rng.integers(1, 6, len(made["turn"])) / 1.0)
    means = turn.groupby(["item_id", "system_id"])["rating"].mean().reset_index(name="value")
    scores = means.assign(dataset="d", level="turn", metric="same", output="o", cut=0, signature="same|v:1")
    samples = all_samples(made | {"turn": turn, "scores": scores})
    found = evaluation.correlations(samples, detail=Detail(resamples=50))
    same = found[(found["metric"] == "same") & (found["against"] == "turn") & found["coefficient"].isin(PLAIN)]
    assert {*zip(same["level"], same["grouping"], strict=True)} >= {("dialogue", "pooled"), ("dialogue", "item")}
    np.testing.assert_allclose(same["value"], 1, atol=1e-12)
    # One sum a unit: no more values than there are sums.
    of_dialogues = next(sample for sample in samples if (sample.level, sample.against) == ("dialogue", "turn"))
    sums = (
        turn.assign(dialogue=turn["item_id"].map(made["dialogue_of"]))
        .groupby(["dialogue", "system_id"])["rating"]
        .sum()
    )
    assert len(np.unique(of_dialogues.ratings)) == sums.nunique()


@pytest.mark.parametrize("coefficient", PLAIN)
def test_ties_are_those_of_the_scores_as_computed(made, coefficient):
    """As sentence BLEU's: most of them tiny, and all the same different."""
    rng = np.random.default_rng(3)
    scores = made["scores"][made["scores"]["metric"] == "bad"].copy()
    scores["value"] = (10.0 ** rng.integers(-15, 1, len(scores)) * rng.integers(1, 4, len(scores))).astype(np.float32)
    tables = made | {"scores": scores}
    found = evaluation.correlations(all_samples(tables, levels=["turn", "dialogue"]))
    turns = plain(tables, "bad")[0]
    expected = PLAIN[coefficient](turns, rated(made)[0].reindex(turns.index))
    assert value(found, "turn", "turn", "bad", coefficient) == pytest.approx(expected.statistic, abs=1e-12)
    assert value(found, "turn", "turn", "bad", coefficient, column="p") == pytest.approx(expected.pvalue, abs=1e-12)


def test_cuts_of_whole_dialogues_are_counted_where_a_dialogue_counts_once_a_turn(made):
    scores = made["scores"].copy()
    assert (evaluation.correlations(all_samples(made))["cut"] == 0).all()
    scores.loc[(scores["metric"] == "whole") & (scores["item_id"] == "d1"), "cut"] = 9
    found = evaluation.correlations(all_samples(made | {"scores": scores}))
    assert value(found, "system", "turn", "whole", column="cut") == SYSTEMS * TURNS
    assert value(found, "system", "dialogue", "whole", column="cut") == SYSTEMS
    assert (found.loc[found["metric"] != "whole", "cut"] == 0).all()


def test_a_dialogue_s_rating_is_the_mean_of_its_turns_whoever_rated_them(made):
    turn = made["turn"].copy()
    first = (turn["item_id"] == "d0t0") & (turn["system_id"] == "s0")
    others = turn["item_id"].isin(["d0t1", "d0t2"]) & (turn["system_id"] == "s0")
    turn = turn[~(first & (turn["annotator_id"] != "ann")) & ~(others & (turn["annotator_id"] == "ann"))]
    turn.loc[first, "rating"], turn.loc[others, "rating"] = 5.0, 1.0
    samples = all_samples(made | {"turn": turn})
    sample = next(sample for sample in samples if (sample.level, sample.against) == ("dialogue", "turn"))
    assert sample.ratings[sample.units.index(("d0", "s0"))] == pytest.approx(7 / 3)
    sample = next(sample for sample in samples if (sample.level, sample.against) == ("dialogue", "dialogue"))
    human = sample.scores[sample.names.index(("human", "turns"))]
    assert human[sample.units.index(("d0", "s0"))] == pytest.approx(7 / 3)


def test_turns_without_a_score_count_against_coverage_at_every_level(made):
    lacking = made["scores"][~((made["scores"]["metric"] == "good") & made["scores"]["item_id"].str.endswith("t0"))]
    found = evaluation.correlations(all_samples(made | {"scores": lacking}))
    shares = found[found["metric"] == "good"].groupby(["level", "against"])["coverage"].first()
    np.testing.assert_allclose(shares, 2 / 3)
    assert set(found.loc[found["metric"] != "good", "coverage"]) == {1.0}


def test_names_that_would_clash_are_refused(made):
    both = pd.concat([made["scores"], made["scores"][made["scores"]["metric"] == "whole"].assign(metric="good")])
    with pytest.raises(SchemaError, match="metric 'good', output 'o' has scores of turns and of dialogues"):
        all_samples(made | {"scores": both})
    with pytest.raises(SchemaError, match="a metric is called 'human'"):
        turns = made["scores"][made["scores"]["level"] == "turn"]
        all_samples(
            made | {"scores": turns.assign(metric="human", output="turns").drop_duplicates(["item_id", "system_id"])}
        )


def test_ratings_of_dialogues_need_the_contexts(made):
    turns = made["scores"][made["scores"]["level"] == "turn"]
    with pytest.raises(SchemaError, match=r"no score belongs to a rated dialogue.*contexts"):
        list(evaluation.samples(turns, pd.concat([made["turn"], made["dialogue"]])))


def test_scores_of_systems_are_said_to_be_unused(made, caplog):
    more = pd.concat([made["scores"], made["scores"].head(3).assign(level="system", metric="other")])
    all_samples(made | {"scores": more})
    assert "3 scores of whole systems are not used" in caplog.text


def test_one_kind_of_ratings_is_enough(made):
    whole = made["scores"][made["scores"]["metric"] == "whole"]
    alone = list(evaluation.samples(whole, made["dialogue"]))
    assert [(sample.level, sample.against) for sample in alone] == [("dialogue", "dialogue"), ("system", "dialogue")]
    against_turns = list(evaluation.samples(whole, made["turn"], contexts=made["contexts"]))
    assert [(s.level, s.against) for s in against_turns] == [("dialogue", "turn"), ("system", "turn")]


def test_scores_that_differ_by_rounding_alone_are_ties_in_every_grouping():
    """0.1 + 0.2 is not 0.3 in the computer, and 0.7 times 3 not 2.1: no ranking may hang on the seventeenth digit."""
    rng = np.random.default_rng(4)
    units = [(f"c{c}", f"s{s}") for c in range(8) for s in range(5)]
    exact = rng.integers(1, 5, len(units)).astype(float)
    noise = np.array([0.0, 1e-16, -1e-16, 2e-16])[rng.integers(0, 4, len(units))]
    rounded = exact / 10 * (1 + noise)
    assert (rounded != exact / 10).any()
    scores = pd.concat([score_rows(units, exact / 10, "exact"), score_rows(units, rounded, "rounded")])
    ratings = rating_rows(units, rng.integers(1, 6, len(units)).astype(float))
    samples = list(evaluation.samples(scores, ratings))
    found = evaluation.correlations(samples, detail=Detail(resamples=100))
    one, other = (found[found["metric"] == name].reset_index(drop=True) for name in ("exact", "rounded"))
    for column in ("value", "low", "high", "loso_value", "p"):
        np.testing.assert_allclose(one[column].astype(float), other[column].astype(float), atol=1e-12)
    tests = evaluation.pairs(samples, detail=Detail(resamples=100))
    assert (tests["difference"].abs() < 1e-12).all() and (tests["p"].dropna() == 1).all()


def test_pairs_of_systems_are_tested_where_they_are_few_or_somebody_asks(monkeypatch, made):
    samples = all_samples(made)
    of_systems = lambda tests: {*tests.loc[(tests["level"] == "system"), "coefficient"]} - {*PLAIN}  # noqa: E731
    assert of_systems(evaluation.pairs(samples, detail=Detail(resamples=100))) == {"accuracy", "spa"}
    asked = Detail(resamples=100, tests=("tau_c", "accuracy"))
    assert of_systems(evaluation.pairs(samples, detail=asked)) == {"accuracy", "spa", "tau_c"}
    monkeypatch.setattr(sys.modules["comperdial.evaluation.correlations"], "FEW_SYSTEMS", 2)
    assert not of_systems(evaluation.pairs(samples, detail=Detail(resamples=100)))
    assert of_systems(evaluation.pairs(samples, detail=asked)) == {"accuracy", "tau_c"}
    # Values are there all the same.
    found = evaluation.correlations(samples, detail=Detail(resamples=100))
    of_pairs = found[
        (found["level"] == "system") & found["coefficient"].isin(["tau_c", "tau_23", "accuracy", "acc_eq", "spa"])
    ]
    assert of_pairs["value"].notna().all() and of_pairs["coefficient"].nunique() == 5


def test_both_tables_at_once_are_each_by_itself(made):
    samples, detail = all_samples(made), Detail(resamples=100)
    values, tests = evaluation.evaluate(samples, detail=detail)
    pd.testing.assert_frame_equal(values, evaluation.correlations(samples, detail=detail))
    pd.testing.assert_frame_equal(tests, evaluation.pairs(samples, detail=detail))


def test_systems_are_given_where_there_are_few_or_params_ask_for_it():
    rng = np.random.default_rng(1)
    names = [(f"c{context}", system) for context in range(12) for system in "ABCDE"]
    scores = pd.concat([score_rows(names, rng.normal(size=len(names)), metric) for metric in "fg"])
    ratings = rating_rows(names, rng.integers(1, 6, len(names)))
    detail = evaluation.Detail(resamples=100, seed=1)
    for systems, fixed, over, test in (
        ("ABCDE", False, "systems and contexts", "jackknife|seed"),
        ("ABCDE", True, "contexts, these systems", "jackknife|dialogues|seed"),
        ("AB", False, "contexts, these systems", "jackknife|dialogues|seed"),
        ("A", False, "contexts", "jackknife|seed"),
    ):
        of = [table[table["system_id"].isin(list(systems))] for table in (scores, ratings)]
        found = list(evaluation.samples(*of, levels=["turn"]))
        found = [sample.with_systems_given() for sample in found] if fixed else found
        pooled = evaluation.correlations(found, detail=detail)
        pooled = pooled[(pooled["grouping"] == "pooled") & pooled["low"].notna()]
        assert set(pooled["over"]) == {over}
        tests = evaluation.pairs(found, detail=detail)
        assert tests.loc[tests["grouping"] == "pooled", "test"].str.startswith(test).all()
        within = tests.loc[tests["grouping"] == "item", "test"]
        assert not within.str.contains("jackknife|systems", regex=False).any() or over == "systems and contexts"
