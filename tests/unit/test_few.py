"""What tables say of a correlation of a few systems, what is bold, and what a metric is called."""

import numpy as np
import pytest
from scipy import stats

from comperdial.report.about import label
from comperdial.stats.correlation import MOST_EXACT as MOST
from comperdial.stats.correlation import exact_p


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_exact_p_is_scipy_s_over_all_orders(coefficient):
    x, y = np.array([1.0, 2.0, 2.0, 5.0, 4.0]), np.array([0.3, 0.1, 0.5, 0.9, 0.8])
    known = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[coefficient]

    def strength(order):
        return np.abs(known(x, order).statistic)

    options = {"permutation_type": "pairings", "n_resamples": np.inf, "alternative": "greater"}
    theirs = stats.permutation_test((y,), strength, **options)
    assert exact_p(x, y, coefficient) == pytest.approx(theirs.pvalue)


def test_exact_p_of_a_perfect_ranking_and_where_there_is_none():
    assert exact_p([1, 2, 3, 4], [1, 2, 3, 4], "spearman") == pytest.approx(2 / 24)
    assert exact_p([1, 2, 3, 4, np.nan], [4, 3, 2, 1, 9], "kendall") == pytest.approx(2 / 24)
    assert np.isnan(exact_p([1, 1, 1], [1, 2, 3], "pearson"))
    assert np.isnan(exact_p(range(MOST + 1), range(MOST + 1), "pearson"))


def row(metric, value, **changes):
    made = {"dataset": "d", "level": "system", "against": "turn", "target": "Overall", "metric": metric, "output": "o"}
    made |= {"grouping": "pooled", "coefficient": "spearman", "value": value, "low": None, "high": None, "p": 0.01}
    made |= {"loso_value": None, "loso_system": None, "n": 5, "rank": None, "coverage": 1.0, "cut": 0, "lacking": None}
    return made | {"signature": f"{metric}|v:1"} | changes


@pytest.mark.parametrize(
    ("output", "labels", "called"),
    [
        (("chrf", "chrf"), {}, "chrf"),
        (("chrf_raw", "chrf"), {"chrf_raw": "chrF (raw text)"}, "chrF (raw text)"),
        (("bleu", "bleu-2"), {}, "bleu-2"),
        (("f1", "recall"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1, recall"),
        (("f1", "f1"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1"),
        (("m", "o"), {}, "m o"),
    ],
)
def test_an_output_has_one_name(output, labels, called):
    assert label(output, labels) == called
