"""What is left of a correlation without one of the systems: against a plain loop, in tables, and in what readers see."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.evaluation.dimensions import dimension_correlations
from comperdial.evaluation.samples import Tables

PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def plain(x, y, name):
    """Correlate as scipy does, without what is missing; NaN where nothing is left to correlate."""
    there = ~(np.isnan(x) | np.isnan(y))
    x, y = x[there], y[there]
    return np.nan if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0 else PLAIN[name](x, y).statistic


def tables(systems, contexts=6, dialogue_of=lambda c: f"d{c // 2}", dataset="d"):
    """Return scores of two metrics and ratings: the first agrees with people on system s0 against the rest alone."""
    rng = np.random.default_rng(5)
    scores, ratings = [], []
    for c in range(contexts):
        for s in range(systems):
            truth = (5.0 if s == 0 else 0.0) + rng.normal()
            values = {"easy": (5.0 if s == 0 else 0.0) + rng.normal(), "fair": truth + 0.2 * rng.normal()}
            for metric, value in values.items():
                scores.append((dataset, "turn", f"c{c}", f"s{s}", metric, "o", np.float32(value), 0, f"{metric}|v:1"))
            ratings.append((dataset, "turn", f"c{c}", f"s{s}", "ann", None, "overall", truth, -20.0, 20.0, "human"))
    places = [(dataset, f"c{c}", dialogue_of(c)) for c in range(contexts)]
    frames = {
        name: schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)
        for name, rows in (("scores", scores), ("ratings", ratings))
    }
    return (
        frames["scores"],
        frames["ratings"],
        pd.DataFrame(places, columns=["dataset", "context_id", "dialogue_id"]),
    )


@pytest.fixture(scope="module")
def six():
    return tables(6)


@pytest.fixture(scope="module")
def found(six):
    samples = list(evaluation.samples(six[0], six[1], contexts=six[2]))
    return evaluation.correlations(samples, detail=evaluation.Detail(resamples=50))


@pytest.mark.parametrize("level", ["turn", "dialogue", "system"])
def test_each_level_leaves_out_each_system_in_turn(six, found, level):
    units = six[0].merge(six[1], on=["item_id", "system_id"])
    units["dialogue_id"] = units["item_id"].map(six[2].set_index("context_id")["dialogue_id"])
    key = {"turn": ["item_id", "system_id"], "dialogue": ["dialogue_id", "system_id"], "system": ["system_id"]}[level]
    for metric in ("easy", "fair"):
        means = (
            units[units["metric"] == metric]
            .groupby(key)[["value", "rating"]]
            .mean()
            .reset_index()
            .astype({"value": float})
        )
        for name in PLAIN:
            left = {
                system: plain(rest["value"].to_numpy(), rest["rating"].to_numpy(), name)
                for system in sorted(set(means["system_id"]))
                for rest in [means[means["system_id"] != system]]
            }
            worst = min(left, key=left.get)
            row = found.query("level == @level and metric == @metric and coefficient == @name and grouping == 'pooled'")
            assert (row["loso_value"].item(), row["loso_system"].item()) == (
                pytest.approx(left[worst], abs=1e-9),
                worst,
            )
    assert found.loc[found["grouping"] == "item", "loso_system"].isna().all()


def test_a_study_leaves_out_systems_that_its_intervals_do_not_resample():
    scores, ratings, contexts = tables(3)
    known = Tables(scores, ratings, contexts)
    one = {"system_id": "chatbot"}
    apart = contexts.assign(dataset="e")
    unknown = [frame[frame["system_id"] == "s1"].assign(dataset="e", **one) for frame in (scores, ratings)]
    sets = [known, Tables(*unknown, apart)]
    made = pd.concat(dimension_correlations(one_set, resamples=0) for one_set in sets)
    assert set(made.loc[made["metric"] == "easy", "loso_system"].dropna()) == {"s0"}
    assert made.groupby("dataset")["loso_system"].count().to_dict() == {"d": 6, "e": 0}
