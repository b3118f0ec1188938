"""Agreement of raters and judges: authors' worked examples, their code on public data, and the packages that others use."""

import json
import math
import os
from importlib.resources import files
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from comperdial.stats import agreement, breakdown
from comperdial.stats.agreement import MEASUREMENTS, alpha_interval, krippendorff_alpha
from comperdial.stats.alternative_test import alternative_test
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import corrected_mean, labels_needed, rogan_gladen

MIRROR = Path(os.environ.get("COMPERDIAL_MIRROR", "/nowhere"))
WEIGHTINGS = ("identity", "linear", "quadratic")

# Krippendorff's alpha

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", sections A to D; a dot is a missing value.
MEG_OWEN = ["0100000010", "1110010000"]
BEN_GERRY = ["aabbdcccedda", "babbbccceddd"]
FOUR = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def items_x_raters(rows):
    """Return the ratings as numbers; letters count from a = 1."""
    code = {".": math.nan} | {c: float(c) for c in "0123456789"} | {c: float(n) for n, c in enumerate("abcde", 1)}
    return np.array([[code[c] for c in row] for row in rows]).T


@pytest.mark.parametrize(
    ("rows", "level", "published"),
    [(MEG_OWEN, "nominal", "0.095"), (BEN_GERRY, "nominal", "0.692"), (FOUR, "nominal", "0.743"),
     (FOUR, "ordinal", "0.815"), (FOUR, "interval", "0.849"), (FOUR, "ratio", "0.797")],
)  # fmt: skip
def test_krippendorff_2011_worked_examples(rows, level, published):
    table = items_x_raters(rows)
    assert f"{krippendorff_alpha(table, level):.3f}" == published
    assert alpha_interval(table, level, rng=np.random.default_rng(1), resamples=9)[0] == krippendorff_alpha(
        table, level
    )


ratings = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.one_of(st.integers(1, 5).map(float), st.just(math.nan)),
)


@settings(max_examples=40)
@given(ratings, st.sampled_from(MEASUREMENTS), st.randoms(use_true_random=False))
def test_alpha_of_any_ratings(table, level, random):
    value, low, high = alpha_interval(table, level, rng=np.random.default_rng(3), resamples=20)
    assert math.isnan(low) or low <= high <= 1 + 1e-12
    # Neither the order of items and raters nor an empty one matters, nor a change of scale that the level ignores.
    rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    wider = np.full((table.shape[0] + 1, table.shape[1] + 1), np.nan)
    wider[:-1, :-1] = table[np.ix_(rows, columns)]
    changes = {"interval": wider * 3 - 2, "ratio": wider * 3, "ordinal": np.exp(wider), "nominal": (wider * 2) % 5}
    for other in (wider, changes[level]):
        assert krippendorff_alpha(other, level) == pytest.approx(value, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("level", MEASUREMENTS)
@pytest.mark.filterwarnings("error")
def test_perfect_agreement_is_one_and_undefined_is_missing(level):
    table = np.repeat([[1.0], [2.0], [5.0], [2.0]], 3, axis=1)
    table[1, 0] = np.nan
    assert alpha_interval(table, level, rng=np.random.default_rng(0), resamples=50) == (1, 1, 1)
    for undefined in (np.empty((0, 3)), np.full((4, 3), 2.0), [[1, np.nan], [np.nan, 2]], [[1], [2]]):
        made = alpha_interval(undefined, level, rng=np.random.default_rng(0), resamples=5)
        assert np.isnan(made).all()


@pytest.mark.parametrize("level", MEASUREMENTS)
def test_interval_matches_library_on_repeated_clusters(level):
    rng = np.random.default_rng(1)
    table = np.clip(np.round(rng.normal(3, 1, (40, 1)) + rng.normal(0, 1, (40, 4))), 1, 5)
    table[rng.random(table.shape) < 0.3] = np.nan
    table[0], table[1] = np.nan, [2, np.nan, np.nan, np.nan]
    labels = rng.integers(0, 9, len(table))
    found = alpha_interval(table, level, rng=np.random.default_rng(2), resamples=30, clusters=labels)
    kept, again, expected = agreement.is_pairable(table), np.random.default_rng(2), []
    names = np.unique(labels[kept])
    for _ in range(30):
        drawn = [table[kept & (labels == names[one])] for one in again.integers(len(names), size=len(names))]
        expected.append(krippendorff.alpha(np.concatenate(drawn).T, level_of_measurement=level))
    assert found[1:] == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=1e-12)
    assert found[0] == pytest.approx(krippendorff.alpha(table.T, level_of_measurement=level), abs=1e-12)


def test_pairwise_agreement_is_the_mean_over_pairs_of_columns():
    table = np.array([[1, 2, 1], [2, 3, 3], [3, 1, 2], [4, 5, 4]], dtype=float)
    expected = np.mean([np.corrcoef(table[:, i], table[:, j])[0, 1] for i, j in [(0, 1), (0, 2), (1, 2)]])
    assert agreement.pairwise_agreement(table, "pearson") == pytest.approx(expected)


# The votes of PandaLM, which are the example that ships: values of irrCAC and ppi-python


@pytest.fixture(scope="module")
def pandalm():
    """Return the votes of three people, and those of each judge: 1 for the first, 0 for the second, 0.5 for neither."""
    frame = pd.read_csv(files("comperdial") / "examples/pandalm.csv", keep_default_na=False)
    coded = frame.filter(like="winner").replace({"model_a": 1, "tie": 0.5, "model_b": 0, "": np.nan}).astype(float)
    return coded[["winner1", "winner2", "winner3"]].to_numpy(), coded.filter(like="_winner").to_dict("series")


@pytest.mark.parametrize(("scoring", "epsilon"), [("accuracy", 0.1), ("accuracy", 0.3), ("rmse", 0.15)])
def test_alternative_test_matches_definition(pandalm, scoring, epsilon):
    people, judges = pandalm
    judge, people = judges["pandalm-7b_winner"].to_numpy(), people.copy()
    people[:50, 0] = np.nan

    def score(label, others):
        others = others[~np.isnan(others)]
        return (others == label).mean() if scoring == "accuracy" else -(((others - label) ** 2).mean() ** 0.5)

    found = alternative_test(judge, dict(zip("abc", people.T, strict=True)), epsilon=epsilon, scoring=scoring)
    p, advantage = [], []
    for at in range(3):
        rows = [(labels[at], labels[np.arange(3) != at], own) for labels, own in zip(people, judge, strict=True)]
        sides = [(score(own, rest), score(one, rest)) for one, rest, own in rows if not np.isnan(one)]
        advantage.append(np.mean([ours >= theirs for ours, theirs in sides]))
        apart = [float(theirs >= ours) - (ours >= theirs) for ours, theirs in sides]
        p.append(stats.ttest_1samp(apart, epsilon, alternative="less").pvalue)
    assert found.p == pytest.approx(p, abs=1e-12) and found.average_advantage == pytest.approx(np.mean(advantage))
    assert found.rejected.tolist() == (stats.false_discovery_control(p, method="by") <= 0.05).tolist()
    assert found.passed == (found.rejected.sum() >= 2)


def test_few_items_are_excluded_and_constant_difference_has_p():
    people = {"a": np.ones(40), "b": np.ones(40), "c": np.r_[np.ones(10), np.full(30, np.nan)]}
    result = alternative_test(np.ones(40), people, epsilon=0.1)
    assert (result.annotators, result.left_out, result.p.tolist()) == (("a", "b"), ("c",), [0.0, 0.0])
    assert np.isnan(alternative_test(np.ones(5), {"a": np.ones(5)}).winning_rate)


def test_kappa_and_ac(pandalm):
    people, judges = pandalm
    scale = [0, 0.5, 1]
    pair = np.array([people[:, 0], judges["gpt-3.5-turbo_winner"]])
    kappas = [weighted_kappa(*pair, scale, way) for way in WEIGHTINGS]
    assert kappas == pytest.approx([0.479371, 0.533952, 0.566511], abs=1e-6)
    both = pair[:, ~np.isnan(pair).any(axis=0)]
    acs = [[gwet_ac(table, scale, way) for way in WEIGHTINGS] for table in (both, people.T)]
    assert acs[0] == pytest.approx([0.597281, 0.566943, 0.542237], abs=1e-6)
    assert acs[1] == pytest.approx([0.886445, 0.876026, 0.867075], abs=1e-6)
    assert np.isnan(weighted_kappa([3, 3, 3], [3, 3, 3], range(1, 6)))


@pytest.mark.parametrize(
    ("judge", "n", "weight", "lam", "value", "low", "high"),
    [
        ("gpt-3.5-turbo", 100, 0, 0, 0.45833, 0.36317, 0.55350),
        ("gpt-3.5-turbo", 100, 1, 1, 0.40499, 0.31954, 0.49043),
        ("gpt-3.5-turbo", 100, None, 0.60466, 0.42608, 0.35176, 0.50039),
        ("pandalm-7b", 200, None, 0.48484, 0.46696, 0.41733, 0.51659),
    ],
)
def test_corrected_means(pandalm, judge, n, weight, lam, value, low, high):
    people, judges = pandalm
    y, f = people.mean(axis=1), judges[f"{judge}_winner"].fillna(0.5).to_numpy()
    made = corrected_mean(y[:n], f[:n], f[n:], weight=weight, normal=True)
    assert (made.weight, made.value, made.low, made.high) == pytest.approx((lam, value, low, high), abs=6e-6)


@pytest.mark.parametrize(
    ("judge", "n", "value", "low", "high"),
    [("gpt-3.5-turbo", 100, 0.33158, 0.19782, 0.46534), ("pandalm-7b", 200, 0.45055, 0.31422, 0.58688)],
)
def test_rogan_gladen(pandalm, judge, n, value, low, high):
    people, judges = pandalm
    y, f = ((people == 1).sum(axis=1) >= 2).astype(float), (judges[f"{judge}_winner"] == 1).to_numpy(dtype=float)
    made = rogan_gladen(y[:n], f[:n], f[n:])
    assert (made.value, made.low, made.high) == pytest.approx((value, low, high), abs=6e-6)
    assert rogan_gladen([1, 0, 1, 0], [0, 1, 0, 1], [1, 0]) is None


@pytest.mark.skipif(not MIRROR.is_dir(), reason="the public files are not here")
def test_face_clusters():
    found = [next((MIRROR / "informagi/face").rglob(name)) for name in ("crs_arena_eval.json", "face_run.json")]
    rows = []
    for place, (one, other) in enumerate(zip(*(json.loads(path.read_text()) for path in found), strict=True)):
        judged = {turn["turn_ind"]: turn.get("turn_level_pred", {}).get("relevance") for turn in other.get("turns", [])}
        for turn in one["dialogue"]:
            label = (turn.get("turn_level_aggregated") or {}).get("relevance")
            if label is not None and judged.get(turn["turn_ind"]) is not None:
                rows.append((place, label, judged[turn["turn_ind"]]))
    place, y, f = np.array(rows, dtype=float).T
    first = place <= np.unique(place)[49]
    assert (first.sum(), (~first).sum()) == (213, 2002)
    made = corrected_mean(y[first], f[first], f[~first], place[first], place[~first])
    expected = (0.917191, 0.575353, 0.056162, 0.46249, 0.68822)
    assert (made.weight, made.value, made.error, made.low, made.high) == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(
    ("half", "s", "rho", "total", "n"),
    [(0.15, 1.13091, 0.73162, 466, 135.45), (0.10, 0.45155, 0.59264, 999, 52.26), (0.05, 0.45155, 0.59264, 999, 228.43),
     (0.05, 1.13091, 0.73162, 466, np.inf), (0.10, 0.45155, 0, 10**9, 78.33)],
)  # fmt: skip
def test_labels_needed(half, s, rho, total, n):
    assert labels_needed(half, s, rho, total) == pytest.approx(n, abs=0.05)


# Breakdown detection

# Of ten people: O, T and X.
PEOPLE = np.array([[8, 1, 1], [2, 5, 3], [5, 5, 0], [0, 0, 10], [5, 2, 3]]) / 10


def test_gold_labels_and_the_majority_baseline():
    assert breakdown.gold_labels(PEOPLE).tolist() == ["O", "T", "O", "X", "O"]
    assert breakdown.gold_labels(PEOPLE, 0.6).tolist() == ["O", "O", "O", "X", "O"]
    label, mean = breakdown.majority(PEOPLE)
    assert (label, mean.tolist()) == ("O", pytest.approx([0.4, 0.26, 0.34]))


def test_breakdown_detection_measures_by_hand():
    result = breakdown.evaluate(PEOPLE, ["O", "X", "T", "X", "X"], PEOPLE)
    assert (result.n, result.gold, result.accuracy) == (5, (3, 1, 1), pytest.approx(2 / 5))
    # One of three predicted, one of one gold.
    assert result.f1_x == pytest.approx(1 / 2)
    # Half is no majority: gold T or X are the second and the fourth, of four predicted.
    assert result.f1_tx == pytest.approx(2 * 2 / (2 + 4))
    assert (*result.js, *result.mse) == (0,) * 6
    # Nothing in common, and the same; O+T are one class, and T+X.
    result = breakdown.evaluate([[1, 0, 0], [0, 0, 1]], "O", [0, 0, 1])
    assert result.js == pytest.approx((0.5, 0.5, 0.5)) and result.mse == pytest.approx((1 / 3, 1 / 2, 1 / 2))
    assert breakdown.evaluate([[0, 1, 0]], "T", [0, 0, 1]).js == pytest.approx((1, 0, 1))
