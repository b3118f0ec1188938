"""Our statistics are those of google-research/mt-metrics-eval: its published formulas as plain loops, with ties and gaps.

Scores are grouped by system: all items of the first, then all of the second. A gold score of None is missing.
"""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from comperdial.stats.design import Design
from comperdial.stats.pairs import replicates, sign_flips

SYSTEMS, ITEMS, RESAMPLES, SEED = 6, 12, 200, 2024
NAN = float("nan")


def groups(gold, metric, systems, by):
    """Return gold and metric scores of each system, of each item, or of all (``none``), without missing gold scores."""
    items, everything = len(gold) // systems, range(len(gold))
    places = {
        "none": [everything],
        "system": [everything[s * items : (s + 1) * items] for s in range(systems)],
        "item": [everything[i::items] for i in range(items)],
    }[by]
    kept = [[place for place in group if gold[place] is not None] for group in places]
    return [([gold[place] for place in group], [metric[place] for place in group]) for group in kept if len(group) > 1]


def sign(value, epsilon=0.0):
    return (value > epsilon) - (value < -epsilon)


def orders(gold, metric):
    """Return the order of each pair, 1, 0 (tied) or -1, by gold and by metric scores."""
    return [(sign(gold[i] - gold[j]), sign(metric[i] - metric[j])) for i, j in combinations(range(len(gold)), 2)]


def tau_b(gold, metric):
    pairs = orders(gold, metric)
    untied = math.prod(sum(side != 0 for side in sides) for sides in zip(*pairs, strict=True))
    return sum(g * m for g, m in pairs) / math.sqrt(untied) if untied else NAN


def tau_c(gold, metric):
    distinct = min(len(set(gold)), len(set(metric)))
    concordant = sum(g * m for g, m in orders(gold, metric))
    return 2 * concordant / (len(gold) ** 2 * (distinct - 1) / distinct) if distinct > 1 else NAN


def acc_23(gold, metric):
    """Return the share of pairs that are ordered alike, or tied on both sides."""
    pairs = orders(gold, metric)
    return sum(g == m for g, m in pairs) / len(pairs)


def tau_23(gold, metric):
    return 2 * acc_23(gold, metric) - 1


def best_epsilon(gold, metric, systems, by):
    """Return the highest average accuracy that one epsilon reaches, and the smallest epsilon that reaches it."""
    parts = [
        [(sign(g[i] - g[j]), m[i] - m[j]) for i, j in combinations(range(len(g)), 2)]
        for g, m in groups(gold, metric, systems, by)
    ]
    best, chosen = -math.inf, 0.0
    for epsilon in sorted({0.0} | {abs(apart) for part in parts for _, apart in part}):
        right = [sum(order == sign(apart, epsilon) for order, apart in part) / len(part) for part in parts]
        if sum(right) / len(parts) > best + 1e-12:
            best, chosen = sum(right) / len(parts), epsilon
    return best, chosen


def cosine(one, other):
    spread = math.fsum(a * a for a in one) * math.fsum(b * b for b in other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / math.sqrt(spread) if spread else NAN


def pearson(gold, metric):
    constant = len(set(gold)) == 1 or len(set(metric)) == 1
    return (
        NAN
        if constant
        else cosine(*([value - math.fsum(side) / len(side) for value in side] for side in (gold, metric)))
    )


def spearman(gold, metric):
    return pearson(
        *([sum(o < v for o in side) + sum(o == v for o in side) / 2 for v in side] for side in (gold, metric))
    )


def pairwise_pearson(gold, metric):
    return cosine(*([a - b for a in side for b in side] for side in (gold, metric)))


def spa(gold, metric):
    """Return soft pairwise accuracy: 1 less the mean distance of people's p and the metric's over pairs of systems."""
    flips = sign_flips(ITEMS, RESAMPLES, SEED).tolist()

    def p(scores, one, other):
        apart = [scores[one * ITEMS + at] - scores[other * ITEMS + at] for at in range(ITEMS)]
        least = sum(apart) - 1e-9
        return sum(sum(s * d for s, d in zip(flip, apart, strict=True)) >= least for flip in flips) / len(flips)

    pairs = list(combinations(range(SYSTEMS), 2))
    return 1 - sum(abs(p(gold, i, j) - p(metric, i, j)) for i, j in pairs) / len(pairs)


def loops(formula, by, gold, metric):
    """Average a formula over groups, or compute it over the means of systems (``pooled``)."""
    if formula is spa:
        return spa(gold, metric)
    if by == "pooled":
        parts = groups(gold, metric, SYSTEMS, "system")
        gold, metric = ([math.fsum(part[side]) / len(part[side]) for part in parts] for side in (0, 1))
    if formula is best_epsilon:
        return best_epsilon(gold, metric, SYSTEMS, "none" if by == "pooled" else by)[0]
    if by == "pooled":
        return formula(gold, metric)
    values = [value for part in groups(gold, metric, SYSTEMS, by) if not math.isnan(value := formula(*part))]
    return sum(values) / len(values) if values else 0.0


def ours(measure, by, gold, metric):
    ratings = np.array([NAN if value is None else value for value in gold])
    systems, items = np.divmod(np.arange(len(ratings)), ITEMS)
    rated = ~np.isnan(ratings)
    design = Design(systems[rated], np.unique(items[rated], return_inverse=True)[1])
    units = np.array([metric])[:, rated], ratings[rated], design, design.dialogues
    return replicates(*units, [measure], by, resamples=RESAMPLES, seed=SEED)[measure].values[0]


@pytest.mark.parametrize(
    ("measure", "formula", "groupings"),
    [
        ("pearson", pearson, ["item", "system"]),
        ("spearman", spearman, ["item", "system"]),
        ("kendall", tau_b, ["item", "system", "pooled"]),
        ("tau_c", tau_c, ["item", "system", "pooled"]),
        ("tau_23", tau_23, ["item", "system"]),
        ("accuracy", acc_23, ["item", "system", "pooled"]),
        ("pairwise_pearson", pairwise_pearson, ["pooled"]),
        ("acc_eq", best_epsilon, ["item", "system", "pooled"]),
        ("spa", spa, ["pooled"]),
    ],
)
@pytest.mark.parametrize(("spread", "gaps"), [(2, 0.0), (4, 0.1)])
def test_ours_are_the_formulas(measure, formula, groupings, spread, gaps):
    if gaps and measure == "spa":
        pytest.skip("the tool needs all gold scores")
    rng = np.random.default_rng(3)
    gold = rng.integers(1, 6, size=SYSTEMS * ITEMS).astype(float)
    metric = (gold + rng.integers(-spread, spread + 1, size=len(gold))).tolist()
    gold = [None if rng.random() < gaps else value for value in gold.tolist()]
    for by in groupings:
        assert ours(measure, by, gold, metric) == pytest.approx(loops(formula, by, gold, metric), abs=1e-9), by


def test_the_loops_are_right():
    rng = np.random.default_rng(4)
    gold, metric = rng.integers(1, 6, size=(2, 40)).astype(float).tolist()
    assert tau_b(gold, metric) == pytest.approx(stats.kendalltau(gold, metric, variant="b").statistic)
    assert tau_c(gold, metric) == pytest.approx(stats.kendalltau(gold, metric, variant="c").statistic)
    assert pairwise_pearson(gold, metric) == pytest.approx(stats.pearsonr(gold, metric).statistic)
    # Worked examples of mt-metrics-eval's tau_optimization_test.py.
    assert best_epsilon([1, 2, 3, 4], [0, 2, 6, 8], 4, "none") == (1, 0)
    assert best_epsilon([1, 1, 1, 4], [0, 2, 6, 8], 4, "none") == (pytest.approx(4 / 6), 4)
