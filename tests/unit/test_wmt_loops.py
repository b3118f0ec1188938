"""benchmarks/wmt.py: plain loops over mt-metrics-eval's formulas agree with its examples, with scipy and with ours."""

import importlib

import numpy as np
import pytest
from scipy import stats

from conftest import ROOT


@pytest.fixture
def wmt(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("wmt")


@pytest.fixture(scope="module")
def vectors():
    """Six systems, twelve items, ties on both sides; in the second, gold scores are missing."""
    rng = np.random.default_rng(3)
    gold = rng.integers(1, 6, size=72).astype(float)
    near, far = ((gold + rng.integers(-spread, spread + 1, size=72)).tolist() for spread in (2, 4))
    gaps = [None if rng.random() < 0.1 else value for value in gold.tolist()]
    return gold.tolist(), gaps, near, far


def test_ours_and_the_loops_agree(wmt, vectors):
    gold, gaps, near, far = vectors
    found = wmt.compared([("near", gold, near), ("far", gaps, far)], 6)
    assert len(found) == len(wmt.MEASURES) and all(apart < wmt.AGREED for _, apart, *_ in found), found
    assert wmt.tau_b(gold, near) == pytest.approx(stats.kendalltau(gold, near, variant="b").statistic)
    assert wmt.tau_c(gold, near) == pytest.approx(stats.kendalltau(gold, near, variant="c").statistic)
    assert wmt.pairwise_pearson(gold, near) == pytest.approx(stats.pearsonr(gold, near).statistic)


def test_worked_examples_of_mt_metrics_eval(wmt):
    # tau_optimization_test.py, and DataTest.testAssignRanks in data_test.py.
    assert wmt.best_epsilon([1, 2, 3, 4], [0, 2, 6, 8], 4, "none") == (1, 0)
    assert wmt.best_epsilon([1, 1, 1, 4], [0, 2, 6, 8], 4, "none") == (pytest.approx(4 / 6), 4)
    ones = [[1.0] * 4 for _ in range(4)]
    assert wmt.assign_ranks(ones, 0.5) == [1, 1, 1, 1] and wmt.assign_ranks(ones, 1.0) == [1, 2, 3, 4]
    ones[0][1] = ones[2][3] = 0.0
    assert wmt.assign_ranks(ones, 0.5) == [1, 2, 2, 3]
    langs = [{"lang": "a", "level": "sys"}, {"lang": "b", "level": "sys"}, *[{"lang": "a", "level": "seg"}] * 2]
    assert wmt.assign_weights(langs, ["lang", "level"]) == [0.25, 0.5, 0.125, 0.125]
