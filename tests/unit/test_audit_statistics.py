"""Golden values of public data (AltTest, PandaLM, FACE), as the authors' code and the named packages have them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from comperdial.stats.alternative_test import alternative_test
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import classical, corrected_mean, labels_needed, rogan_gladen

MIRROR = Path(os.environ.get("COMPERDIAL_MIRROR", "/nowhere"))
need = pytest.mark.skipif(not MIRROR.is_dir(), reason="the public files are not here")


def alttest(name, judge):
    folder = MIRROR / "nitaytech/AltTest"
    folder = next(folder.rglob(f"{name}/human_annotations.json")).parent
    people, judges = (json.loads((folder / f"{who}_annotations.json").read_text()) for who in ("human", "llm"))
    items = sorted({item for labels in people.values() for item in labels})
    values = sorted({str(label) for labels in [*people.values(), judges[judge]] for label in labels.values()})
    numeric = all(value.lstrip("-").isdigit() for value in values)

    def coded(labels):
        return [
            float("nan") if item not in labels else float(labels[item]) if numeric else values.index(str(labels[item]))
            for item in items
        ]

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
    ("name", "one", "only", "scale", "kappas", "acs"),
    [
        ("summeval", "first", "", 5, (0.060971, 0.219120, 0.366784), (0.056697, 0.386615, 0.628403)),
        ("summeval", "first", "coherence", 5, (0.080131, 0.248921, 0.410110), (0.114953, 0.484998, 0.724715)),
        ("cebab_stars", "w197", "", 5, (0.523038, 0.742957, 0.882381), (0.525314, 0.746866, 0.885490)),
    ],
)
def test_kappa_and_ac(name, one, only, scale, kappas, acs):
    labels, people, items = alttest(name, "gpt-4o")
    rater = next(iter(people.values())) if one == "first" else people[one]
    kept = [place for place, item in enumerate(items) if only in item]
    judge, rater = np.array(labels)[kept], np.array(rater)[kept]
    ways = ("identity", "linear", "quadratic")
    values = np.arange(1, scale + 1)
    assert [weighted_kappa(rater, judge, values, way) for way in ways] == pytest.approx(kappas, abs=1e-6)
    both = ~np.isnan(rater) & ~np.isnan(judge)
    assert [gwet_ac([rater[both], judge[both]], values, way) for way in ways] == pytest.approx(acs, abs=1e-6)


@need
@pytest.mark.parametrize(
    ("name", "acs"),
    [("10k_prompts", (0.230405, 0.513550, 0.692975)), ("cebab_stars", (0.360731, 0.567211, 0.712214))],
)
def test_ac_of_many_raters_with_gaps(name, acs):
    _, people, _ = alttest(name, "gpt-4o")
    ways = ("identity", "linear", "quadratic")
    assert [gwet_ac(list(people.values()), range(1, 6), way) for way in ways] == pytest.approx(acs, abs=1e-6)


def test_a_constant_rater_has_no_kappa():
    assert np.isnan(weighted_kappa([3, 3, 3], [3, 3, 3], range(1, 6)))
    with pytest.raises(ValueError, match="7 is no category"):
        weighted_kappa([7], [1], range(1, 6))


def pandalm(judge):
    folder = next((MIRROR / "WeOpenML/PandaLM").rglob("testset-v1.json")).parent
    pairs = json.loads((folder / "testset-v1.json").read_text())
    file, key = {"gpt-3.5": ("gpt-3.5-turbo", "gpt_result"), "pandalm-7b": ("pandalm-7b", "pandalm_result")}[judge]
    judged = json.loads((folder / f"{file}-testset-v1.json").read_text())
    value = {"1": 1.0, "2": 0.0}
    people = np.array([[value.get(str(pair[f"annotator{n}"]), 0.5) for n in (1, 2, 3)] for pair in pairs])
    return people, np.array([value.get(str(one[key]), 0.5) for one in judged]), pairs


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
    ],
)
def test_win_rates_of_pandalm(judge, n, weight, lam, value, low, high):
    people, judged, _ = pandalm(judge)
    y = people.mean(axis=1)
    made = corrected_mean(y[:n], judged[:n], judged[n:], weight=weight, normal=True)
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
    people, judged, _ = pandalm(judge)
    y, f = ((people == 1).sum(axis=1) >= 2).astype(float), (judged == 1).astype(float)
    made = rogan_gladen(y[:n], f[:n], f[n:])
    assert (made.value, made.low, made.high) == pytest.approx((value, low, high), abs=6e-6)
    assert rogan_gladen([1, 0, 1, 0], [0, 1, 0, 1], [1, 0]) is None


def face():
    folder = MIRROR / "informagi/face"
    return [json.loads(next(folder.rglob(name)).read_text()) for name in ("crs_arena_eval.json", "face_run.json")]


@need
@pytest.mark.parametrize(
    ("n", "weight", "lam", "value", "low", "high"),
    [
        (100, 0, 0, 0.87000, 0.66887, 1.07113),
        (100, None, 1, 0.89797, 0.74445, 1.05149),
        (200, None, 0.93890, 0.96146, 0.83250, 1.09042),
    ],
)
def test_means_of_face(n, weight, lam, value, low, high):
    pairs = [(one["dial_level_aggregated"], other.get("dial_level_pred")) for one, other in zip(*face(), strict=True)]
    y, f = np.array(
        [(one["dialogue_overall"], other["dialogue_overall"]) for one, other in pairs if other], dtype=float
    ).T
    made = corrected_mean(y[:n], f[:n], f[n:], weight=weight, normal=True)
    assert (made.weight, made.value, made.low, made.high) == pytest.approx((lam, value, low, high), abs=6e-6)


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
    for place, (one, other) in enumerate(zip(*face(), strict=True)):
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
    [
        (0.15, 1.13091, 0.73162, 466, 135.45),
        (0.10, 0.45155, 0.59264, 999, 52.26),
        (0.05, 0.45155, 0.59264, 999, 228.43),
        (0.05, 1.13091, 0.73162, 466, np.inf),
        (0.10, 0.45155, 0, 10**9, 78.33),
    ],
)
def test_labels_needed(half, s, rho, total, n):
    assert labels_needed(half, s, rho, total) == pytest.approx(n, abs=0.05)


def test_small_samples_have_wider_intervals():
    rng = np.random.default_rng(1)
    y = rng.normal(size=30)
    f, rest = y + rng.normal(size=30), rng.normal(size=300)
    plain, repaired = (corrected_mean(y, f, rest, normal=normal) for normal in (True, False))
    assert repaired.value == plain.value and repaired.width > plain.width
    alone = corrected_mean(y, f, rest, range(30), range(30, 330))
    assert alone.error == pytest.approx(repaired.error, rel=0.1)
    assert classical(y).value == pytest.approx(y.mean())
