"""Agreement of raters and judges: authors' worked examples, their code on public data, and the packages that others use."""

import json
import math
import os
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from comperdial.stats import agreement, breakdown
from comperdial.stats.agreement import MEASUREMENTS, alpha_interval, krippendorff_alpha
from comperdial.stats.alternative_test import alternative_test
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import corrected_mean, labels_needed, rogan_gladen

MIRROR = Path(os.environ.get("COMPERDIAL_MIRROR", "/nowhere"))
need = pytest.mark.skipif(not MIRROR.is_dir(), reason="the public files are not here")
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
def test_worked_examples_of_krippendorff_2011(rows, level, published):
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
def test_the_interval_is_that_of_the_library_on_repeated_clusters(level):
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


# The alternative annotator test, kappa and AC: values of the authors' code and of irrCAC


def alttest(name, judge):
    folder = next((MIRROR / "nitaytech/AltTest").rglob(f"{name}/human_annotations.json")).parent
    people, judges = (json.loads((folder / f"{who}_annotations.json").read_text()) for who in ("human", "llm"))
    items = sorted({item for labels in people.values() for item in labels})
    values = sorted({str(label) for labels in [*people.values(), judges[judge]] for label in labels.values()})
    numeric = all(value.lstrip("-").isdigit() for value in values)

    def coded(labels):
        code = float if numeric else lambda label: values.index(str(label))
        return [code(labels[item]) if item in labels else math.nan for item in items]

    return coded(judges[judge]), {who: coded(labels) for who, labels in people.items()}, items


@need
@pytest.mark.parametrize(
    ("name", "judge", "scoring", "epsilon", "wins", "tested", "rho"),
    [
        ("wax", "gpt-4o", "accuracy", 0.1, 4, 8, 0.73002),
        ("wax", "mistral-v03", "accuracy", 0.1, 0, 8, 0.49771),
        ("mtbench", "gpt-4o", "accuracy", 0.2, 0, 3, 0.77281),
        ("mtbench", "gpt-4o", "accuracy", 0.3, 3, 3, 0.77281),
        ("framing", "gpt-4o", "accuracy", 0.15, 4, 4, 0.91787),
        ("framing", "llama-31", "accuracy", 0.15, 2, 4, 0.80148),
        ("framing", "gemini_flash", "accuracy", 0.0, 0, 4, 0.83365),
        ("summeval", "mistral-v03", "rmse", 0.2, 0, 3, 0.62297),
        ("cebab_stars", "gpt-4o", "rmse", 0.1, 9, 10, 0.89859),
        ("cebab_stars", "gpt-4o", "accuracy", 0.1, 10, 10, 0.90046),
        ("cebab_stars", "mistral-v03", "rmse", 0.1, 5, 10, 0.82907),
        ("10k_prompts", "gpt-4o-mini", "rmse", 0.15, 12, 13, 0.79678),
    ],
)
def test_alternative_test(name, judge, scoring, epsilon, wins, tested, rho):
    labels, people, _ = alttest(name, judge)
    result = alternative_test(labels, people, epsilon=epsilon, scoring=scoring)
    assert (int(result.rejected.sum()), len(result.annotators)) == (wins, tested)
    assert result.average_advantage == pytest.approx(rho, abs=5e-6)
    assert result.passed == (wins / tested >= 0.5)


def test_few_items_are_left_out_and_a_constant_difference_has_a_p():
    people = {"a": np.ones(40), "b": np.ones(40), "c": np.r_[np.ones(10), np.full(30, np.nan)]}
    result = alternative_test(np.ones(40), people, epsilon=0.1)
    assert (result.annotators, result.left_out, result.p.tolist()) == (("a", "b"), ("c",), [0.0, 0.0])
    assert np.isnan(alternative_test(np.ones(5), {"a": np.ones(5)}).winning_rate)


@need
@pytest.mark.parametrize(
    ("name", "one", "only", "kappas", "acs"),
    [
        ("summeval", "first", "", (0.060971, 0.219120, 0.366784), (0.056697, 0.386615, 0.628403)),
        ("summeval", "first", "coherence", (0.080131, 0.248921, 0.410110), (0.114953, 0.484998, 0.724715)),
        ("cebab_stars", "w197", "", (0.523038, 0.742957, 0.882381), (0.525314, 0.746866, 0.885490)),
        ("10k_prompts", None, "", None, (0.230405, 0.513550, 0.692975)),
        ("cebab_stars", None, "", None, (0.360731, 0.567211, 0.712214)),
    ],
)
def test_kappa_and_ac(name, one, only, kappas, acs):
    labels, people, items = alttest(name, "gpt-4o")
    table = np.array(list(people.values()))
    if one:
        rater = next(iter(people.values())) if one == "first" else people[one]
        table = np.array([rater, labels])[:, [only in item for item in items]]
        assert [weighted_kappa(*table, range(1, 6), way) for way in WEIGHTINGS] == pytest.approx(kappas, abs=1e-6)
        table = table[:, ~np.isnan(table).any(axis=0)]
    assert [gwet_ac(table, range(1, 6), way) for way in WEIGHTINGS] == pytest.approx(acs, abs=1e-6)


def test_a_constant_rater_has_no_kappa():
    assert np.isnan(weighted_kappa([3, 3, 3], [3, 3, 3], range(1, 6)))


# Means corrected by a judge: values of ppi-python


def pandalm(judge):
    folder = next((MIRROR / "WeOpenML/PandaLM").rglob("testset-v1.json")).parent
    file, key = {"gpt-3.5": ("gpt-3.5-turbo", "gpt_result"), "pandalm-7b": ("pandalm-7b", "pandalm_result")}[judge]
    pairs, judged = (json.loads((folder / f"{name}testset-v1.json").read_text()) for name in ("", f"{file}-"))
    value = {"1": 1.0, "2": 0.0}
    people = np.array([[value.get(str(pair[f"annotator{n}"]), 0.5) for n in (1, 2, 3)] for pair in pairs])
    return people, np.array([value.get(str(one[key]), 0.5) for one in judged])


def face():
    """Return the dialogues of people's and the judge's file, in pairs."""
    files = [next((MIRROR / "informagi/face").rglob(name)) for name in ("crs_arena_eval.json", "face_run.json")]
    return list(zip(*(json.loads(file.read_text()) for file in files), strict=True))


@need
@pytest.mark.parametrize(
    ("judge", "n", "weight", "lam", "value", "low", "high"),
    [
        ("gpt-3.5", 100, 0, 0, 0.45833, 0.36317, 0.55350),
        ("gpt-3.5", 100, 1, 1, 0.40499, 0.31954, 0.49043),
        ("gpt-3.5", 100, None, 0.60466, 0.42608, 0.35176, 0.50039),
        ("gpt-3.5", 200, None, 0.44038, 0.45378, 0.40194, 0.50563),
        ("pandalm-7b", 100, 1, 1, 0.47721, 0.40240, 0.55202),
        ("pandalm-7b", 100, None, 0.65326, 0.47066, 0.40168, 0.53965),
        ("pandalm-7b", 200, None, 0.48484, 0.46696, 0.41733, 0.51659),
        ("face", 100, 0, 0, 0.87000, 0.66887, 1.07113),
        ("face", 100, None, 1, 0.89797, 0.74445, 1.05149),
        ("face", 200, None, 0.93890, 0.96146, 0.83250, 1.09042),
    ],
)
def test_corrected_means(judge, n, weight, lam, value, low, high):
    if judge == "face":
        pairs = [(one["dial_level_aggregated"], other.get("dial_level_pred")) for one, other in face()]
        y, f = np.array([[side["dialogue_overall"] for side in pair] for pair in pairs if pair[1]], dtype=float).T
    else:
        people, f = pandalm(judge)
        y = people.mean(axis=1)
    made = corrected_mean(y[:n], f[:n], f[n:], weight=weight, normal=True)
    assert (made.weight, made.value, made.low, made.high) == pytest.approx((lam, value, low, high), abs=6e-6)


@need
@pytest.mark.parametrize(
    ("judge", "n", "value", "low", "high"),
    [
        ("gpt-3.5", 100, 0.33158, 0.19782, 0.46534),
        ("gpt-3.5", 200, 0.32764, 0.20370, 0.45159),
        ("pandalm-7b", 100, 0.52732, 0.39129, 0.66335),
        ("pandalm-7b", 200, 0.45055, 0.31422, 0.58688),
    ],
)
def test_rogan_gladen(judge, n, value, low, high):
    people, judged = pandalm(judge)
    y, f = ((people == 1).sum(axis=1) >= 2).astype(float), (judged == 1).astype(float)
    made = rogan_gladen(y[:n], f[:n], f[n:])
    assert (made.value, made.low, made.high) == pytest.approx((value, low, high), abs=6e-6)
    assert rogan_gladen([1, 0, 1, 0], [0, 1, 0, 1], [1, 0]) is None


@need
@pytest.mark.parametrize(
    ("aspect", "rest", "lam", "value", "error", "low", "high"),
    [
        ("relevance", 2002, 0.917191, 0.575353, 0.056162, 0.46249, 0.68822),
        ("interestingness", 2007, 0.793169, 0.767562, 0.072656, 0.62155, 0.91357),
    ],
)
def test_clusters_of_face(aspect, rest, lam, value, error, low, high):
    rows = []
    for place, (one, other) in enumerate(face()):
        judged = {turn["turn_ind"]: turn.get("turn_level_pred", {}).get(aspect) for turn in other.get("turns", [])}
        for turn in one["dialogue"]:
            label = (turn.get("turn_level_aggregated") or {}).get(aspect)
            if label is not None and judged.get(turn["turn_ind"]) is not None:
                rows.append((place, label, judged[turn["turn_ind"]]))
    place, y, f = np.array(rows, dtype=float).T
    first = place <= np.unique(place)[49]
    assert (first.sum(), (~first).sum()) == (213, rest)
    made = corrected_mean(y[first], f[first], f[~first], place[first], place[~first])
    expected = (lam, value, error, low, high)
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


def test_measures_of_breakdown_detection_by_hand():
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
