"""Statistics within items, within systems and of pairs of systems: against plain recomputation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comperdial.stats.correlation import correlate
from comperdial.stats.design import Design
from comperdial.stats.jackknife import Replicates, over_units, variances, weighted
from comperdial.stats.pairs import Pairs, best_epsilon, p_better, replicates, sign_flips, system_matrix, within_items

SYSTEMS, DIALOGUES, TURNS = 6, 7, 2
NONE = float("nan")
COEFFICIENTS = ["pearson", "spearman", "kendall"]


def one(scores, ratings, design, items, name, grouping, **options):
    return replicates(scores, ratings, design, items, [name], grouping, **options)[name]


@pytest.fixture(scope="module")
def data():
    """Three metrics of 6 systems in 7 dialogues of 2 turns, a tenth of the cells gone, one score missing."""
    rng = np.random.default_rng(1)
    system, dialogue, turn = (axis.ravel() for axis in np.indices((SYSTEMS, DIALOGUES, TURNS)))
    kept = rng.random(len(system)) < 0.9
    system, dialogue, turn = system[kept], dialogue[kept], turn[kept]
    y = rng.integers(1, 6, len(system)).astype(float)
    near, rounded = y + rng.normal(size=len(y)) * 2, np.round(y + rng.normal(size=len(y)) * 3)
    x = np.stack([near, rounded, rng.normal(size=len(y))])
    x[0, 3] = np.nan
    items = np.unique(dialogue * TURNS + turn, return_inverse=True)[1]
    return x, y, Design(system, dialogue), items


def accuracy(scores, ratings, items, epsilon=0.0):
    """Accuracy by the words of its definition."""
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
        sides = (np.concatenate([np.subtract.outer(a, a).ravel() for a in side]) for side in zip(*parts, strict=True))
        a, b = sides
        return a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
    if name == "tau_c":
        values = [
            stats.kendalltau(a, b, variant="c").statistic for a, b in parts if min(map(len, map(set, (a, b)))) > 1
        ]
    else:
        values = [correlate(a, b, name).value for a, b in parts]
    return np.nanmean(values)


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", [*COEFFICIENTS, "tau_c", "tau_23", "accuracy", "pairwise_pearson"])
def test_leaving_out_is_recomputing(data, name, grouping):
    x, y, design, items = data
    found, groups = one(x, y, design, items, name, grouping), items if grouping == "item" else design.systems
    np.testing.assert_allclose(found.values, [plain(row, y, groups, name) for row in x], atol=1e-12)
    if name in COEFFICIENTS:
        values, counts = within_items(x, y, groups, name)
        np.testing.assert_allclose(found.values, values, atol=1e-12)
        assert found.n.tolist() == counts.tolist()
    cells = design.dialogues + DIALOGUES * design.systems
    for codes, left_out in ((design.systems, found.systems), (design.dialogues, found.dialogues), (cells, found.cells)):
        for place, code in enumerate(np.unique(codes)):
            kept = codes != code
            values = [plain(row, y[kept], groups[kept], name) for row in x[:, kept]]
            np.testing.assert_allclose(left_out[:, place], values, atol=1e-12)


def test_soft_accuracy_is_of_systems_only(data):
    with pytest.raises(ValueError, match="compares systems"):
        one(*data, "spa", "item")


@pytest.fixture(scope="module")
def tiny_beside_one():
    """Scores of five systems, one of which alone shares words with the references: without it little is left that varies."""
    rng = np.random.default_rng(11)
    system, dialogue = (axis.ravel() for axis in np.indices((5, 9)))
    y = rng.integers(1, 6, len(system)) + 0.1 * system
    scores = np.stack([10.0**-power * rng.random(len(system)) for power in (4, 7, 9)])
    scores[:, system == 0] = rng.random((3, 9))
    return scores, y, Design(system, dialogue), dialogue


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", ["pearson", "pairwise_pearson"])
def test_what_varies_little_without_a_cluster_is_not_constant(tiny_beside_one, name, grouping):
    x, y, design, items = tiny_beside_one
    if grouping == "system":
        # One dialogue, not one system, has nearly all of the variance.
        design, items = Design(design.dialogues, design.systems), design.systems
    found = one(x, y, design, items, name, grouping)
    cells = design.systems * (design.dialogues.max() + 1) + design.dialogues
    for codes, left_out in ((design.systems, found.systems), (design.dialogues, found.dialogues), (cells, found.cells)):
        for place, code in enumerate(np.unique(codes)):
            kept = codes != code
            groups = (items if grouping == "item" else design.systems)[kept]
            values = [plain(row, y[kept], groups, name) for row in x[:, kept]]
            np.testing.assert_allclose(left_out[:, place], values, atol=1e-9)


def test_leaving_out_all_that_varies_over_units_is_recomputing(tiny_beside_one):
    x, y, design, _ = tiny_beside_one
    found = over_units(x, y, design, "pearson")
    for code in range(5):
        kept = design.systems != code
        expected = [stats.pearsonr(row[kept], y[kept]).statistic for row in x]
        np.testing.assert_allclose(found.systems[:, code], expected, atol=1e-9)


def test_sums_of_statistics_take_the_same_cell_off_each(data):
    """By item and by system, over units: what is left without a cell is without that cell in all of them."""
    x, y, design, items = data
    full = np.where(np.isnan(x), 1.0, x)
    by_item, by_system = (one(full, y, design, items, "kendall", grouping) for grouping in ("item", "system"))
    found = weighted([(0.25, by_item), (0.75, by_system)])
    codes = design.systems * DIALOGUES + design.dialogues
    for place, code in enumerate(np.unique(codes)):
        kept = codes != code
        expected = 0.25 * within_items(full[:, kept], y[kept], items[kept], "kendall")[0]
        expected += 0.75 * within_items(full[:, kept], y[kept], design.systems[kept], "kendall")[0]
        np.testing.assert_allclose(found.cells[:, place], expected, atol=1e-12)
    # Over units a cell counts by its influence: whose it is shows in how far off its own that value is, of all cells.
    units = over_units(full, y, design, "kendall").cells
    left = [codes != code for code in np.unique(codes)]
    near = np.stack([[correlate(row, y[kept], "kendall").value for row in full[:, kept]] for kept in left], 1)
    for row in range(len(full)):
        assert stats.pearsonr(units[row], near[row]).statistic > 0.99


def test_a_jackknife_over_one_kind_of_cluster_is_a_t_test():
    rng = np.random.default_rng(7)
    values = rng.normal(size=10)
    left = (values.sum() - values) / 9
    none = np.empty((2, 0))
    found = Replicates(np.array([values.mean(), 0]), np.stack([left, 0 * left]), none, none, np.full(2, 10))
    drawn = variances(found)
    p, reach = drawn.test(found.values[:, None] - found.values, drawn.two_way)
    expected = stats.ttest_1samp(values, 0)
    assert p[0, 1] == pytest.approx(expected.pvalue)
    assert reach[0, 1] == pytest.approx(values.mean() - expected.confidence_interval().low)
    assert (p[0, 0], drawn.named) == (1, ["systems"])


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
def test_worked_examples_of_calibration(scores, ratings, epsilon, value):
    x, y = np.array(scores, dtype=float), np.array(ratings, dtype=float)
    items = np.repeat(np.arange(len(x)), x.shape[1])
    best = best_epsilon(x.ravel(), y.ravel(), Pairs.of(items))
    assert best == pytest.approx(epsilon, nan_ok=True)
    assert accuracy(x.ravel(), y.ravel(), items, best) == pytest.approx(value, nan_ok=True)
    design = Design(np.tile(np.arange(x.shape[1]), len(x)), items)
    rated = np.nan_to_num(y.ravel(), nan=99.0)
    found = one(np.where(np.isnan(y.ravel()), np.nan, x.ravel())[None], rated, design, items, "acc_eq", "item")
    assert found.values[0] == pytest.approx(value, nan_ok=True)


units = st.lists(
    st.tuples(st.integers(-4, 4) | st.just(NONE), st.integers(1, 4) | st.just(NONE), st.integers(0, 2)),
    min_size=2,
    max_size=14,
)


@settings(max_examples=120, deadline=None)
@given(units, st.sampled_from([1, 3, 7]))
def test_calibration_finds_the_best_threshold_and_the_smallest(drawn, share):
    scores, ratings, items = (np.array(side, dtype=float) for side in zip(*drawn, strict=True))
    # Thirds lie apart like whole numbers.
    found = best_epsilon(scores / share + 1, ratings, Pairs.of(np.unique(items, return_inverse=True)[1]))
    candidates = sorted({0.0, *(abs(a - b) for a, b in itertools.combinations(scores, 2) if not np.isnan(a - b))})
    values = [accuracy(scores, ratings, items, epsilon) for epsilon in candidates]
    if np.isnan(values).all():
        assert np.isnan(found)
        return
    smallest = next(e for e, value in zip(candidates, values, strict=True) if value > max(values) - 1e-12)
    assert found == pytest.approx(smallest / share, abs=1e-12)


# Systems


def test_p_value_of_the_worked_example():
    # The docstring of compute_pairwise_p_values in mt-metrics-eval's pce.py: one flip of ten reaches the observed 3.0.
    scores = np.array([[0.8, 0.9, 0.7, 1.0, 0.6], [0.2, 0.3, 0.1, 0.4, 0.0]])
    signs = np.array(
        [
            [1, 1, -1, -1, -1],
            [1, -1, 1, -1, 1],
            [1, -1, 1, 1, -1],
            [-1, 1, -1, -1, 1],
            [1, 1, 1, -1, 1],
            [-1, 1, -1, 1, -1],
            [1, 1, 1, 1, 1],
            [1, -1, 1, -1, 1],
            [1, -1, -1, 1, 1],
            [-1, 1, -1, -1, -1],
        ],
        dtype=float,
    )
    found = p_better(scores, scores, signs)
    assert found[0, 1] == 0.1
    assert np.isnan(found[np.tril_indices(2)]).all()


def test_p_values_against_a_loop_with_missing_cells():
    rng = np.random.default_rng(1)
    matrix = rng.integers(1, 6, size=(6, 12)).astype(float)
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    matrix[0, :6], matrix[1, 6:] = np.nan, np.nan
    signs = sign_flips(12, 200, 3)
    found = p_better(matrix, matrix, signs)
    for i, j in itertools.combinations(range(6), 2):
        both = ~np.isnan(matrix[i] - matrix[j])
        apart = (matrix[i] - matrix[j])[both]
        sums = [np.sum(row[both] * apart) for row in signs]
        expected = np.mean(np.array(sums) >= apart.sum()) if both.any() else NONE
        assert found[i, j] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(found[0, 1])


def test_soft_pairwise_accuracy_of_good_and_bad_metrics():
    rng = np.random.default_rng(5)
    systems, items = np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12)
    human = np.repeat(np.linspace(0, 2, 12), 20) + rng.normal(size=240)
    scores = np.stack([human, 3 * human + 1, -human, rng.normal(size=240), human])
    # A metric is judged by the units that it scored.
    scores[4, ::7] = np.nan
    found = one(scores, human, Design(systems, items), items, "spa", "pooled", resamples=500, seed=2).values
    assert found[0] == found[1] == found[4] == 1
    assert found[2] < 0.3 < found[3] < 0.9
    # By the definition: one less the mean distance of the p-values of pairs.
    signs = sign_flips(20, 500, 2)
    p, rated = (p_better(m, m, signs) for m in (system_matrix(side, systems, items) for side in (scores[3], human)))
    assert found[3] == pytest.approx(1 - np.nanmean(np.abs(p - rated)), abs=1e-12)
    np.testing.assert_array_equal(
        system_matrix(np.array([1.0, 3, NONE, 5]), np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])),
        [[2, NONE], [NONE, 5]],
    )


def test_a_clearly_better_metric_differs_and_a_copy_does_not():
    rng = np.random.default_rng(5)
    system, dialogue = (axis.ravel() for axis in np.indices((12, 30)))
    y = rng.normal(size=len(system))
    good = y + rng.normal(size=len(y)) * 0.5
    x = np.stack([good, rng.normal(size=len(y)), 2 * good + 1])
    for measure in ("kendall", "tau_c", "accuracy", "tau_23", "acc_eq"):
        found = one(x, y, Design(system, dialogue), dialogue, measure, "item")
        drawn = variances(found)
        p = drawn.test(found.values[:, None] - found.values, drawn.cautious)[0]
        assert p[0, 1] < 0.001
        assert p[0, 2] == 1
        assert drawn.named == ["systems", "dialogues"]


def test_fewer_than_four_systems_count_as_given():
    rng = np.random.default_rng(6)
    system, dialogue = (axis.ravel() for axis in np.indices((3, 20)))
    y = rng.normal(size=60)
    found = one(rng.normal(size=(2, 60)), y, Design(system, dialogue), dialogue, "kendall", "item")
    assert variances(found).named == ["dialogues"]


@pytest.mark.parametrize("name", ["accuracy", "tau_23", "acc_eq", "spa"])
def test_the_variance_of_means_over_pairs_of_systems_is_that_of_a_u_statistic(name):
    """Plainly: the square of the mean less the mean product of two pairs without a system in common."""
    rng = np.random.default_rng(3)
    systems = 9
    system, dialogue = (axis.ravel() for axis in np.indices((systems, 5)))
    y = system + rng.normal(size=len(system))
    x = np.stack([y + rng.normal(size=len(y)) * noise for noise in (1, 2, 3)])
    found = one(x, y, Design(system, dialogue), dialogue, name, "pooled", resamples=50)
    ours = variances(found).parts[0]
    whole = variances(replace(found, residuals=None)).parts[0]
    # The value without all systems but two is what their pair says.
    pairs = {}
    for i, j in itertools.combinations(range(systems), 2):
        kept = np.isin(system, [i, j])
        design = Design(np.unique(system[kept], return_inverse=True)[1], dialogue[kept])
        pairs[i, j] = one(x[:, kept], y[kept], design, dialogue[kept], "accuracy", "pooled").values
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
