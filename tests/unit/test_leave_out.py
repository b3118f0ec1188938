"""What is left of a correlation without one of the systems: against a plain loop, in tables, and in what readers see."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.evaluation.dimensions import dimension_correlations
from comperdial.evaluation.rated import RatedSet
from comperdial.stats.leave_out import lowest_without, without_each_group

PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def plain(x, y, name):
    """Correlate as scipy does, without what is missing; NaN where nothing is left to correlate."""
    there = ~(np.isnan(x) | np.isnan(y))
    x, y = x[there], y[there]
    return np.nan if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0 else PLAIN[name](x, y).statistic


def drawn(seed):
    """Draw scores with ties, gaps, outliers, one group that alone varies, and one that has no scores."""
    rng = np.random.default_rng(seed)
    count, n = int(rng.integers(2, 8)), int(rng.integers(16, 60))
    groups = rng.permutation(np.r_[np.arange(count), rng.integers(0, count, n - count)])
    x = rng.normal(size=(6, n))
    x[1] = rng.integers(0, 3, n)
    x[2] = np.where(groups == 0, 1e9 * x[2], x[2])
    x[3] = np.where(groups == 1, x[3], 0.3)
    x[4, rng.random(n) < 0.4] = np.nan
    x[5, groups == 0] = np.nan
    y = rng.integers(1, 4, n) / 3 if seed % 2 else rng.normal(size=n)
    return x, np.where(rng.random(n) < 0.05, np.nan, y), groups


@pytest.mark.parametrize("name", PLAIN)
def test_without_each_group_is_the_rest_correlated_anew(name):
    for seed in range(12):
        x, y, groups = drawn(seed)
        expected = np.full((len(x), groups.max() + 1), np.nan)
        for row, group in np.ndindex(expected.shape):
            if (~np.isnan(x[row] + y) & (groups == group)).any():
                expected[row, group] = plain(x[row, groups != group], y[groups != group], name)
        found = without_each_group(x, y, groups, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        order = np.random.default_rng(seed).permutation(len(y))
        np.testing.assert_allclose(without_each_group(x[:, order], y[order], groups[order], name), found, atol=1e-12)
        mirrored = without_each_group(-1e-160 * x, y, groups, name)
        np.testing.assert_allclose(mirrored, -found, atol=1e-12)


def test_many_units_of_few_groups_give_the_same():
    rng = np.random.default_rng(2)
    x, y, groups = rng.normal(size=(1, 2400)), rng.normal(size=2400), np.arange(2400) % 2
    found = without_each_group(x, y, groups, "kendall")[0]
    expected = [plain(x[0, groups != group], y[groups != group], "kendall") for group in (0, 1)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_lowest_is_seen_from_the_sign_of_all_and_names_who_carries_everything():
    groups = np.repeat([0, 1, 2, 3], 3)
    y = np.tile([1.0, 2.0, 3.0], 4) + groups
    rising = y + np.where(groups == 2, [0, 9, 0] * 4, 0)
    alone = np.where(groups == 1, y, 0.0)
    x = np.stack([rising, -rising, alone, np.where(groups > 1, np.nan, y), y])
    values = [plain(row, y, "pearson") for row in x[:4]] + [0.0]
    left = without_each_group(x, y, groups, "pearson")
    value, at = lowest_without(values, x, y, groups, "pearson", fewest=2)
    assert at[0] == at[1] == left[0].argmin()
    assert (value[0], value[1]) == (left[0].min(), left[1].max())
    assert (at[2], np.isnan(value[2])) == (1, True)
    nothing = lowest_without([], x[:0], y, groups, "kendall")
    assert [len(part) for part in nothing] == [0, 0]
    # Scores of two groups only, and a coefficient of 0, which cannot fall.
    assert at[3:].tolist() == [-1, -1] and np.isnan(value[3:]).all()


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
    known = RatedSet("d", "turn", ratings, contexts)
    one = {"system_id": "chatbot"}
    apart = contexts.assign(dataset="e")
    unknown = [frame[frame["system_id"] == "s1"].assign(dataset="e", **one) for frame in (scores, ratings)]
    sets = [(known, scores), (RatedSet("e", "turn", unknown[1], apart), unknown[0])]
    made = pd.concat(dimension_correlations(*one_set, resamples=0) for one_set in sets)
    assert set(made.loc[made["metric"] == "easy", "loso_system"].dropna()) == {"s0"}
    assert made.groupby("dataset")["loso_system"].count().to_dict() == {"d": 6, "e": 0}
