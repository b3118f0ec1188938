"""Ratings: agreement of raters, their biases, mean ratings of systems, and the cases of ComperDial's Table 13."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.evaluation import ratings
from comperdial.report.systems import system_ratings
from comperdial.stats.agreement import krippendorff_alpha
from ratedtables import rating_rows

AGENTS = ["s1", "s2", "s3", "s4"]
CONTEXTS = pd.DataFrame(
    [("d", f"{name}-{turn}", name) for name in "xyz" for turn in range(2)],
    columns=["dataset", "context_id", "dialogue_id"],
)


def rated(values, level="turn", **more):
    """Return ratings: {(item, system): one for each rater, None where there is none}."""
    raters = zip(*values.values(), strict=True)
    rows = [rating_rows(values, row, f"r{n}", level, **more) for n, row in enumerate(raters, 1)]
    return pd.concat(rows, ignore_index=True).dropna(subset="rating")


def simulated():
    rng, values = np.random.default_rng(0), {}
    for context in CONTEXTS["context_id"]:
        for system in AGENTS:
            row = np.clip(np.round(rng.normal(3, 1) + rng.normal(0, 0.7, 3)), 1, 5)
            values[context, system] = [None if rng.random() < 0.2 else value for value in row]
    return values


def test_each_alpha_matches_its_ratings():
    values = simulated()
    turns = rated(values)
    judge = turns.assign(source="judge", annotator_id="j" + turns["annotator_id"], rating=1.0)
    other = turns.assign(dimension="Fluency", rating=1.0)
    both = pd.concat([turns, judge, other])
    found = ratings.alphas(both, CONTEXTS, seed=3, resamples=30)
    table = np.array([[math.nan if v is None else v for v in row] for row in values.values()])
    kept = table[(~np.isnan(table)).sum(axis=1) >= 2]
    for metric in ("ordinal", "interval"):
        row = found[(found["dimension"] == "Overall") & (found["metric"] == metric)].iloc[0]
        assert row["value"] == pytest.approx(krippendorff_alpha(table, metric), abs=1e-12)
        assert row["low"] < row["value"] < row["high"]
        # Turns are resampled by dialogue and system.
        counts = len(kept), (~np.isnan(kept)).sum(), 3, 3 * 4
        assert tuple(row[["items", "ratings", "annotators", "clusters"]]) == counts
    # No variation, no alpha; and what a dimension gets does not depend on the others.
    assert found.loc[found["dimension"] == "Fluency", ["value", "low", "high"]].isna().all(axis=None)
    alone = ratings.alphas(turns, CONTEXTS, seed=3, resamples=30)
    pd.testing.assert_frame_equal(alone, found[found["dimension"] == "Overall"].reset_index(drop=True))
    with pytest.raises(UnknownNameError, match="unknown source of ratings 'robot'"):
        ratings.alphas(both, CONTEXTS, seed=3, source="robot")
    with pytest.raises(SchemaError, match="rated context 'x-0' of data set 'd' is unknown"):
        ratings.alphas(turns, CONTEXTS[1:], seed=3)


def test_annotator_biases_by_hand():
    rows = {("x-0", "s1"): (1, 2, None), ("x-0", "s2"): (3, 2, 4), ("x-0", "s3"): (5, 4, None)}
    found = ratings.annotator_bias(rated(rows | {("x-1", "s1"): (2, None, None)})).set_index("annotator_id")
    first, third = found.loc["r1"], found.loc["r3"]
    # The others' means are 2, 3, 4; the item that r1 alone rated does not count.
    assert (first["n"], first["mean"], first["bias"]) == (3, 3.0, 0.0)
    # Own variance 4; of the others r2's squares are 8/3 with 2 degrees, r3's none with 0.
    assert first["spread"] == pytest.approx(math.sqrt(4 / (8 / 3 / 2)))
    assert first["spearman"] == pytest.approx(1)
    assert (third["n"], third["bias"]) == (1, 1.5) and math.isnan(third["spread"]) and math.isnan(third["spearman"])
    assert found.loc["r2", "bias"] == pytest.approx((1 - 1.5 - 1) / 3)


def test_table13_selects_dialogue_with_lowest_systems():
    everybody = [(d, s) for d in "xy" for s in [*AGENTS, "person"]]
    turns = rated({(f"{d}-{t}", s): (3, 4, 5) for d, s in everybody for t in range(2)})
    # y has the lowest single system, x the lowest three; the person is lowest of all.
    lower = {("x", "s1"): -2, ("x", "s2"): -1, ("x", "s3"): -1, ("x", "person"): -3, ("y", "s1"): -2.5}
    both = pd.concat([turns, rated({unit: [4 + lower.get(unit, 0)] * 3 for unit in everybody}, "dialogue")])
    systems = pd.DataFrame({"dataset": "d", "system_id": [*AGENTS, "person"], "kind": ["agent"] * 4 + ["human"]})
    columns = ["dialogue_id", "system_id", "difference"]
    for count, expected in ((3, [["x", "s1", -2], ["x", "s2", -1], ["x", "s3", -1]]), (1, [["y", "s1", -2.5]])):
        cases = ratings.table13_cases(both, CONTEXTS, systems=systems, count=count)
        assert cases[columns].values.tolist() == expected
    # Turns count alike however many rated them.
    turns = rated({("x-0", "s1"): (1, None), ("x-1", "s1"): (4, 4)})
    case = ratings.table13_cases(pd.concat([turns, rated({("x", "s1"): (2, 2)}, "dialogue")]), CONTEXTS).iloc[0]
    assert (case["turn_rating"], case["dialogue_rating"], case["difference"]) == (2.5, 2, -0.5)
    with pytest.raises(SchemaError, match="no dialogue of a system has ratings at both levels"):
        ratings.table13_cases(turns, CONTEXTS)


def test_agreement_by_position_needs_positions():
    table = rated({(f"x-{n}", "s1"): (n % 3 + 1, n % 3 + 2) for n in range(6)})
    table["position"] = table["annotator_id"].map({"r1": 0, "r2": 1})
    found = ratings.agreement(table)
    assert found["value"].tolist() == pytest.approx([1.0, 1.0]) and found["n"].tolist() == [6, 6]
    with pytest.raises(SchemaError, match="the positions of dimension 'Overall' are not one a rater"):
        ratings.agreement(table.assign(position=None))


# Mean ratings of systems


def test_items_have_equal_weight_and_dialogues_are_clusters():
    rows = [(f"c{n}", f"d{n // 3}") for n in range(12)]
    contexts = pd.DataFrame(rows, columns=["context_id", "dialogue_id"])
    values = np.random.default_rng(1).uniform(2, 4, (12, 2))
    table = rated({(f"c{n}", "s"): row for n, row in enumerate(values)}, scale_min=1.0, scale_max=5.0)
    # One more rater of one item changes the weight of no item.
    table = pd.concat([table, table[:1].assign(annotator_id="x", rating=values[0].mean())])
    (row,) = system_ratings(table, contexts).to_dict("records")
    items = values.mean(axis=1)
    # Of clusters of one size the interval is that of the clusters' means.
    low, high = stats.t.interval(0.95, 3, items.mean(), stats.sem(items.reshape(4, 3).mean(axis=1)))
    assert (row["rating"], row["low"], row["high"]) == pytest.approx((items.mean(), low, high))
    assert (row["items"], row["dialogues"], row["raters"]) == (12, 4, 3)


@pytest.mark.parametrize(("values", "ends"), [([1.0, 2.0, 4.0], (1.0, 5.0)), ([1.0], (np.nan, np.nan))])
def test_rated_dialogues_are_clusters_and_intervals_stay_within_scale(values, ends):
    table = rated({(f"d{n}", "s"): (v,) for n, v in enumerate(values)}, "dialogue", scale_min=1.0, scale_max=5.0)
    (row,) = system_ratings(table, CONTEXTS).to_dict("records")
    assert (row["low"], row["high"]) == pytest.approx(ends, nan_ok=True)
