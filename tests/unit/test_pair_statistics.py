"""Statistics within items, within systems and of pairs of systems: compared with plain recomputation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from comperdial.stats import COEFFICIENTS
from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.jackknife import Replicates, over_units, variances, weighted
from comperdial.stats.pairs import Pairs, best_epsilon, p_better, replicates, sign_flips, system_matrix, within_items
from sampled import crossed

DIALOGUES, TURNS = 5, 2
NONE = float("nan")


def one(scores, ratings, design, items, name, grouping, **options):
    return replicates(scores, ratings, design, items, [name], grouping, **options)[name]


def left_out(design, found):
    """Yield a statistic without each cluster, and the units left."""
    cells = design.dialogues + (design.dialogues.max() + 1) * design.systems
    for codes, without in ((design.systems, found.systems), (design.dialogues, found.dialogues), (cells, found.cells)):
        for place, code in enumerate(np.unique(codes)):
            yield without[:, place], codes != code


@pytest.fixture(scope="module")
def data():
    """Three metrics of 6 systems in 5 dialogues of 2 turns, a tenth of the cells gone, one score missing."""
    rng = np.random.default_rng(1)
    system, dialogue, turn = (axis.ravel() for axis in np.indices((6, DIALOGUES, TURNS)))
    kept = rng.random(len(system)) < 0.9
    system, dialogue, turn = system[kept], dialogue[kept], turn[kept]
    y = rng.integers(1, 6, len(system)).astype(float)
    near, rounded = y + rng.normal(size=len(y)) * 2, np.round(y + rng.normal(size=len(y)) * 3)
    x = np.stack([near, rounded, rng.normal(size=len(y))])
    x[0, 3] = np.nan
    items = np.unique(dialogue * TURNS + turn, return_inverse=True)[1]
    return x, y, Design(system, dialogue), items


def accuracy(scores, ratings, items, epsilon=0.0):
    """Accuracy by its definition."""
    of_item = {}
    for i, j in itertools.combinations(range(len(scores)), 2):
        if items[i] != items[j] or np.isnan([scores[i], scores[j], ratings[i], ratings[j]]).any():
            continue
        scored = 0 if abs(scores[i] - scores[j]) <= epsilon + 1e-12 else np.sign(scores[i] - scores[j])
        of_item.setdefault(items[i], []).append(scored == np.sign(ratings[i] - ratings[j]))
    return float(np.mean([np.mean(pairs) for pairs in of_item.values()])) if of_item else NONE


def plain(x, y, groups, name):
    """Return a statistic of one metric within groups, averaged over those where it is defined."""
    there = ~np.isnan(x)
    x, y, groups = x[there], y[there], groups[there]
    parts = [(x[groups == group], y[groups == group]) for group in np.unique(groups)]
    if name in ("accuracy", "tau_23"):
        value = accuracy(x, y, groups)
        return value if name == "accuracy" else 2 * value - 1
    if name == "pairwise_pearson":
        # The differences of all pairs within groups, taken together.
        a, b = (np.concatenate([np.subtract.outer(a, a).ravel() for a in side]) for side in zip(*parts, strict=True))
        return a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
    if name == "tau_c":
        parts = [part for part in parts if min(len(set(side)) for side in part) > 1]
        return np.nanmean([stats.kendalltau(a, b, variant="c").statistic for a, b in parts])
    return np.nanmean([correlate(a, b, name).value for a, b in parts])


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", [*COEFFICIENTS, "tau_c", "tau_23", "accuracy", "pairwise_pearson"])
def test_leaving_out_equals_recomputing(data, name, grouping):
    x, y, design, items = data
    groups = items if grouping == "item" else design.systems
    found = one(x, y, design, items, name, grouping)
    np.testing.assert_allclose(found.values, [plain(row, y, groups, name) for row in x], atol=1e-12)
    if name in COEFFICIENTS:
        assert found.n.tolist() == within_items(x, y, groups, name)[1].tolist()
    for without, kept in left_out(design, found):
        values = [plain(row, y[kept], groups[kept], name) for row in x[:, kept]]
        np.testing.assert_allclose(without, values, atol=1e-12)


def parts(data, grouping):
    """Return scores, ratings and groups of each metric, or the means of its systems in one group."""
    x, y, design, items = data
    for row in x:
        if grouping == "pooled":
            there = ~np.isnan(row)
            sides = [[side[there & (design.systems == system)].mean() for system in range(6)] for side in (row, y)]
            yield *map(np.array, sides), np.zeros(6)
        else:
            yield row, y, items if grouping == "item" else design.systems


@pytest.mark.parametrize("name", ["kendall", "tau_c", "tau_23", "accuracy", "pairwise_pearson"])
def test_pooled_statistics_use_system_means(data, name):
    expected = [plain(*part, name) for part in parts(data, "pooled")]
    np.testing.assert_allclose(one(*data, name, "pooled").values, expected, atol=1e-12)


@pytest.mark.parametrize("grouping", ["item", "system", "pooled"])
def test_tie_threshold_is_optimal(data, grouping):
    expected = []
    for x, y, groups in parts(data, grouping):
        pairs = []
        for group in np.unique(groups):
            own, rated = x[(groups == group) & ~np.isnan(x)], y[(groups == group) & ~np.isnan(x)]
            i, j = np.triu_indices(len(own), 1)
            pairs += [(own[i] - own[j], np.sign(rated[i] - rated[j]))] if len(i) else []
        thresholds = {0.0, *np.abs(np.concatenate([apart for apart, _ in pairs]))}
        values = [
            np.mean([np.mean(np.sign(apart) * (abs(apart) > least + 1e-12) == order) for apart, order in pairs])
            for least in thresholds
        ]
        expected.append(max(values))
    np.testing.assert_allclose(one(*data, "acc_eq", grouping).values, expected, atol=1e-12)


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", ["pearson", "pairwise_pearson"])
def test_low_variance_without_a_cluster_is_not_constant(name, grouping):
    """One of five systems, or one dialogue, has nearly all of the variance."""
    rng, design = np.random.default_rng(11), crossed(5, 6, 1)
    y = rng.integers(1, 6, 30) + 0.1 * design.systems
    x = np.stack([10.0**-power * rng.random(30) for power in (4, 7, 9)])
    x[:, design.systems == 0] = rng.random((3, 6))
    if grouping == "item":
        for without, kept in itertools.islice(left_out(design, over_units(x, y, design, "pearson")), 5):
            expected = [stats.pearsonr(row[kept], y[kept]).statistic for row in x]
            np.testing.assert_allclose(without, expected, atol=1e-9)
    else:
        design = Design(design.dialogues, design.systems)
    groups = design.dialogues if grouping == "item" else design.systems
    for without, kept in left_out(design, one(x, y, design, design.dialogues, name, grouping)):
        values = [plain(row, y[kept], groups[kept], name) for row in x[:, kept]]
        np.testing.assert_allclose(without, values, atol=1e-9)


def test_sums_of_statistics_leave_out_the_same_cell(data):
    x, y, design, items = data
    full = np.where(np.isnan(x), 1.0, x)
    by_item, by_system = (one(full, y, design, items, "kendall", grouping) for grouping in ("item", "system"))
    units = over_units(full, y, design, "kendall")
    near = []
    for without, kept in left_out(design, weighted([(0.25, by_item), (0.75, by_system)])):
        expected = 0.25 * within_items(full[:, kept], y[kept], items[kept], "kendall")[0]
        expected += 0.75 * within_items(full[:, kept], y[kept], design.systems[kept], "kendall")[0]
        np.testing.assert_allclose(without, expected, atol=1e-12)
        near.append([correlate(row, y[kept], "kendall").value for row in full[:, kept]])
    # Over units a cell counts by its influence: close to the value without it.
    for ours, exact in zip(units.cells, np.transpose(near[6 + DIALOGUES :]), strict=True):
        assert stats.pearsonr(ours, exact).statistic > 0.99


def test_a_jackknife_over_one_kind_of_cluster_is_a_t_test():
    values = np.random.default_rng(7).normal(size=10)
    left = (values.sum() - values) / 9
    none = np.empty((2, 0))
    found = Replicates(np.array([values.mean(), 0]), np.stack([left, 0 * left]), none, none, np.full(2, 10))
    drawn = variances(found)
    p, reach = drawn.test(found.values[:, None] - found.values, drawn.two_way)
    expected = stats.ttest_1samp(values, 0)
    assert p[0, 1] == pytest.approx(expected.pvalue)
    assert reach[0, 1] == pytest.approx(values.mean() - expected.confidence_interval().low)
    assert (p[0, 0], drawn.named) == (1, ["systems"])


@pytest.mark.parametrize("name", ["accuracy", "tau_23", "acc_eq", "spa"])
def test_variance_over_system_pairs_matches_u_statistic(name):
    """Plainly: the square of the mean less the mean product of two pairs without a system in common."""
    rng, systems = np.random.default_rng(3), 7
    design = crossed(systems, 5, 1)
    system, dialogue = design.systems, design.dialogues
    y = system + rng.normal(size=len(system))
    x = np.stack([y + rng.normal(size=len(y)) * noise for noise in (1, 2, 3)])
    found = one(x, y, design, dialogue, name, "pooled", resamples=50)
    ours, whole = (variances(of).parts[0] for of in (found, replace(found, residuals=None)))
    # The value without all systems but two is that of their pair.
    pairs = {}
    for i, j in itertools.combinations(range(systems), 2):
        kept = np.isin(system, [i, j])
        pairs[i, j] = one(x[:, kept], y[kept], design.of(kept), dialogue[kept], "accuracy", "pooled").values
    if name == "tau_23":
        pairs = {key: 2 * value - 1 for key, value in pairs.items()}
    exact = 0
    for a, b in itertools.combinations(range(3), 2):
        apart = {key: value[a] - value[b] for key, value in pairs.items()}
        products = [apart[p] * apart[q] for p, q in itertools.combinations(apart, 2) if not {*p} & {*q}]
        unbiased = np.mean([*apart.values()]) ** 2 - np.mean(products)
        least = whole[a, b] * (systems - 2) / (2 * (systems - 1))
        if name in ("accuracy", "tau_23"):
            assert ours[a, b] == pytest.approx(max(unbiased, least), rel=1e-9)
            exact += unbiased > least
        assert least - 1e-15 <= ours[a, b] < whole[a, b]
    assert exact or name in ("acc_eq", "spa")


# Thresholds of ties


@pytest.mark.parametrize(
    ("scores", "ratings", "epsilon", "value"),
    [
        # Worked examples of google-research/mt-metrics-eval: tau_optimization_test.py and stats_test.py (acc23).
        ([[0, 2, 6, 8]], [[1, 2, 3, 4]], 0, 1),
        ([[0, 2, 6, 8]], [[1, 1, 1, 4]], 4, 4 / 6),
        ([[2, 1, 1.5, 5, 3]], [[1, 2, 2, 3, 4]], 0.5, 0.7),
        (
            [[0, 5, 2, 3, 2], [NONE, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [NONE] * 5],
            [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, NONE, 3, 2], [NONE] * 5],
            1,
            0.4916666666666668,
        ),
        ([[1.0, NONE]], [[2.0, 1.0]], NONE, NONE),
    ],
)
def test_calibration_worked_examples(scores, ratings, epsilon, value):
    x, y = np.array(scores, dtype=float), np.array(ratings, dtype=float)
    items = np.repeat(np.arange(len(x)), x.shape[1])
    best = best_epsilon(x.ravel(), y.ravel(), Pairs.of(items))
    assert best == pytest.approx(epsilon, nan_ok=True)
    assert accuracy(x.ravel(), y.ravel(), items, best) == pytest.approx(value, nan_ok=True)
    design = Design(np.tile(np.arange(x.shape[1]), len(x)), items)
    rated = np.nan_to_num(y.ravel(), nan=99.0)
    found = one(np.where(np.isnan(y.ravel()), np.nan, x.ravel())[None], rated, design, items, "acc_eq", "item")
    assert found.values[0] == pytest.approx(value, nan_ok=True)


# Soft pairwise accuracy


def test_worked_example_p_value():
    # The docstring of compute_pairwise_p_values in mt-metrics-eval's pce.py: one flip of ten reaches the observed 3.0.
    scores = np.array([[0.8, 0.9, 0.7, 1.0, 0.6], [0.2, 0.3, 0.1, 0.4, 0.0]])
    flips = ["++---", "+-+-+", "+-++-", "-+--+", "+++-+", "-+-+-", "+++++", "+-+-+", "+--++", "-+---"]
    signs = np.array([[1.0 if sign == "+" else -1.0 for sign in row] for row in flips])
    found = p_better(scores, scores, signs)
    assert found[0, 1] == 0.1
    assert np.isnan(found[np.tril_indices(2)]).all()


def test_soft_pairwise_accuracy_is_one_less_the_mean_distance_of_the_p_values():
    rng, design = np.random.default_rng(5), crossed(12, 20, 1)
    human = design.systems / 6 + rng.normal(size=240)
    scores = np.stack([human, 3 * human + 1, rng.normal(size=240), human])
    # A metric is judged by the units that it scored.
    scores[3, ::7] = np.nan
    found = one(scores, human, design, design.dialogues, "spa", "pooled", resamples=500, seed=2).values
    assert found[0] == found[1] == found[3] == 1
    signs, sides = sign_flips(20, 500, 2), (scores[2], human)
    p, rated = (p_better(m, m, signs) for m in (system_matrix(s, design.systems, design.dialogues) for s in sides))
    assert found[2] == pytest.approx(1 - np.nanmean(np.abs(p - rated)), abs=1e-12)
