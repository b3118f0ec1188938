"""Statistics within items, within systems and of pairs of systems: against plain recomputation, and their tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from comperdial.stats.correlation import within_items
from comperdial.stats.design import Design
from comperdial.stats.grouped import Groups, jackknife, jackknifed, of_rows, of_units, replicates, variances, weighted
from comperdial.stats.means import paired_means
from comperdial.stats.pairwise import acc_eq, acc_eq_by_item, soft_pairwise_accuracies
from comperdial.stats.perm_both import calibrated, one_sided, swap_systems_of_pairs, swapped_differences
from comperdial.stats.power import components_within

SYSTEMS, DIALOGUES, TURNS = 6, 7, 2


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


def without(data, kept, name, by_item=True):
    x, y, design, items = data
    groups = items if by_item else design.systems
    return within_items(x[:, kept], y[kept], groups[kept], name)[0]


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_leaving_out_is_recomputing(data, name, grouping):
    x, y, design, items = data
    found = replicates(x, y, design, items, name, grouping)
    by_item = grouping == "item"
    values, counts = within_items(x, y, items if by_item else design.systems, name)
    np.testing.assert_allclose(found.values, values, atol=1e-12)
    assert found.n.tolist() == counts.tolist()
    cells = design.dialogues + DIALOGUES * design.systems
    for codes, replicated in (
        (design.systems, found.systems), (design.dialogues, found.dialogues), (cells, found.cells),
    ):  # fmt: skip
        for place, code in enumerate(np.unique(codes)):
            np.testing.assert_allclose(replicated[:, place], without(data, codes != code, name, by_item), atol=1e-12)


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", ["tau_c", "tau_23", "pairwise_pearson"])
def test_leaving_out_of_statistics_of_pairs_is_recomputing(data, name, grouping):
    x, y, design, items = data
    found = replicates(x, y, design, items, name, grouping)
    for codes, replicated in ((design.systems, found.systems), (design.dialogues, found.dialogues)):
        for code in range(codes.max() + 1):
            kept = codes != code
            rest = np.unique(items[kept], return_inverse=True)[1]
            again = replicates(x[:, kept], y[kept], design.of(kept), rest, name, grouping)
            np.testing.assert_allclose(replicated[:, code], again.values, atol=1e-12)


@pytest.mark.parametrize("grouping", ["item", "system"])
@pytest.mark.parametrize("name", ["kendall", "tau_c", "tau_23", "accuracy", "pearson", "pairwise_pearson"])
def test_sums_over_places_are_those_pair_by_pair(data, name, grouping, monkeypatch):
    x, y, design, items = data
    groups = Groups.of(design, items, grouping)
    pair_by_pair = [of_rows(groups.laid_out(row)[None], groups.laid_out(y)[None], name)[0] for row in x]
    for held in (2**18, 12):
        monkeypatch.setattr("comperdial.stats.grouped._RANKED", held)
        found = replicates(x, y, design, items, name, grouping).values
        np.testing.assert_allclose(found, pair_by_pair, rtol=0, atol=1e-12)


def test_values_are_those_of_plain_definitions(data):
    x, y, design, items = data
    full = np.where(np.isnan(x), 1.0, x)
    found = replicates(x, y, design, items, "acc_eq", "item")
    assert found.values.tolist() == pytest.approx([acc_eq_by_item(row, y, items).value for row in x], abs=1e-12)
    found = replicates(x, y, design, items, "spa", "pooled", resamples=300, seed=3).values
    expected = soft_pairwise_accuracies(x, y, design.systems, items, resamples=300, seed=3)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    tau_c = [
        np.nanmean([stats.kendalltau(row[items == i], y[items == i], variant="c").statistic for i in np.unique(items)])
        for row in full
    ]
    np.testing.assert_allclose(replicates(full, y, design, items, "tau_c", "item").values, tau_c, atol=1e-12)
    right = replicates(full, y, design, items, "accuracy", "item").values
    np.testing.assert_allclose(replicates(full, y, design, items, "tau_23", "item").values, 2 * right - 1, atol=1e-12)
    # Of one group, the differences of all pairs correlate as the values do.
    one = np.zeros(len(y), dtype=np.intp)
    pairs = replicates(full, y, design, one, "pairwise_pearson", "item").values
    np.testing.assert_allclose(pairs, [stats.pearsonr(row, y).statistic for row in full], atol=1e-12)


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
    found = replicates(x, y, design, items, name, grouping)
    cells = design.systems * (design.dialogues.max() + 1) + design.dialogues
    for codes, replicated in (
        (design.systems, found.systems),
        (design.dialogues, found.dialogues),
        (cells, found.cells),
    ):
        for place, code in enumerate(np.unique(codes)):
            kept = codes != code
            groups = (items if grouping == "item" else design.systems)[kept]
            for row, value in zip(x[:, kept], replicated[:, place], strict=True):
                assert value == pytest.approx(_plain(row, y[kept], groups, name), abs=1e-9)


def _plain(x, y, groups, name):
    """Pearson's r within groups, averaged, or of all differences within groups together."""
    parts = [(x[groups == group], y[groups == group]) for group in np.unique(groups)]
    if name == "pearson":
        return np.mean([stats.pearsonr(*part).statistic for part in parts])
    sides = [
        np.concatenate([np.subtract.outer(side, side).ravel() for side in of_one])
        for of_one in zip(*parts, strict=True)
    ]
    return sides[0] @ sides[1] / np.sqrt(sides[0] @ sides[0]) / np.sqrt(sides[1] @ sides[1])


def test_leaving_out_all_that_varies_over_units_is_recomputing(tiny_beside_one):
    x, y, design, _ = tiny_beside_one
    found = of_units(x, y, design, "pearson")
    for code in range(5):
        kept = design.systems != code
        expected = [stats.pearsonr(row[kept], y[kept]).statistic for row in x]
        np.testing.assert_allclose(found.systems[:, code], expected, atol=1e-9)


def test_sums_of_statistics_take_the_same_cell_off_each(data):
    """By item and by system, over units: what is left without a cell is without that cell in all of them."""
    x, y, design, items = data
    full = np.where(np.isnan(x), 1.0, x)
    by_item, by_system = (replicates(full, y, design, items, "kendall", grouping) for grouping in ("item", "system"))
    found = weighted([(0.25, by_item), (0.75, by_system)])
    codes = design.systems * DIALOGUES + design.dialogues
    for place, code in enumerate(np.unique(codes)):
        kept = codes != code
        expected = 0.25 * within_items(full[:, kept], y[kept], items[kept], "kendall")[0]
        expected += 0.75 * within_items(full[:, kept], y[kept], design.systems[kept], "kendall")[0]
        np.testing.assert_allclose(found.cells[:, place], expected, atol=1e-12)
    # Over units a cell counts by its influence: whose it is shows in how far off its own that value is, of all cells.
    units = of_units(full, y, design, "kendall").cells
    near = np.stack(
        [without((full, y, design, np.zeros_like(items)), codes != code, "kendall") for code in np.unique(codes)], 1
    )
    for row in range(len(full)):
        assert stats.pearsonr(units[row], near[row]).statistic > 0.99


def test_of_units_is_leaving_out(data):
    x, y, design, _ = data
    full = np.where(np.isnan(x), 1.0, x)
    found = of_units(full, y, design, "spearman")
    for code in range(SYSTEMS):
        kept = design.systems != code
        expected = [stats.spearmanr(row[kept], y[kept]).statistic for row in full]
        np.testing.assert_allclose(found.systems[:, code], expected, atol=1e-12)
    doubled = weighted([(0.5, found), (0.5, found)])
    np.testing.assert_allclose(doubled.dialogues, found.dialogues, atol=1e-12)


def test_swapped_systems_are_recomputed(data):
    x, y, design, items = data
    full = np.where(np.isnan(x), 1.0, x)[:2]
    standard = (full - full.mean(axis=1, keepdims=True)) / full.std(axis=1, keepdims=True)
    far, swaps = 0, list(itertools.product([1, -1], repeat=SYSTEMS))

    def apart(signs):
        turned = np.array(signs)[design.systems] > 0
        both = np.stack([np.where(turned, *standard), np.where(turned, *standard[::-1])])
        first, second = soft_pairwise_accuracies(both, y, design.systems, items, resamples=200, seed=3)
        return abs(first - second)

    observed = apart(swaps[0])
    far = sum(apart(signs) >= observed - 1e-12 for signs in swaps)
    p, _ = swap_systems_of_pairs(full, y, design, items, "spa", resamples=200, seed=3, most=20_000)
    assert p[0, 1] == pytest.approx(far / len(swaps), abs=0.05)
    means, rated = paired_means(full, y, Design(design.systems, design.dialogues, average=True))
    assert calibrated(means, rated[0]).tolist() == pytest.approx([acc_eq(row, rated[0]).value for row in means])


@pytest.mark.parametrize("measure", ["tau_c", "accuracy", "tau_23", "acc_eq", "spa"])
def test_a_metric_does_not_differ_from_itself(data, measure):
    x, y, design, items = data
    twice = np.stack([x[1], x[1], 2 * x[1] + 1])
    p, _ = swap_systems_of_pairs(twice, y, design, items, measure, resamples=50, seed=1)
    assert (p == 1).all()
    if measure != "spa":
        found = replicates(twice, y, design, items, measure, "item")
        assert (jackknife(found)[0] == 1).all()


def test_a_clearly_better_metric_is_found_and_power_grows():
    rng = np.random.default_rng(5)
    system, dialogue = (axis.ravel() for axis in np.indices((12, 30)))
    y = rng.normal(size=len(system))
    x = np.stack([y + rng.normal(size=len(y)) * 0.5, rng.normal(size=len(y))])
    for measure in ("kendall", "acc_eq"):
        found = replicates(x, y, Design(system, dialogue), dialogue, measure, "item")
        p, said = jackknife(found)
        assert p[0, 1] < 0.001
        assert said == "jackknife|systems|dialogues"
        pair = components_within(found, [(0, 1)])[0]
        chances = [pair.power(size, 30) for size in (5, 10, 50)]
        assert chances == sorted(chances)
        drawn = swapped_differences(
            x[0], x[1], y, Design(system, dialogue), dialogue, measure, "item", resamples=200, rng=rng
        )
        assert one_sided(float(found.values[0] - found.values[1]), drawn) < 0.01


def test_fewer_than_four_systems_count_as_given():
    rng = np.random.default_rng(6)
    system, dialogue = (axis.ravel() for axis in np.indices((3, 20)))
    y = rng.normal(size=60)
    found = replicates(rng.normal(size=(2, 60)), y, Design(system, dialogue), dialogue, "kendall", "item")
    assert jackknife(found)[1] == "jackknife|dialogues"


@pytest.mark.parametrize("name", ["accuracy", "tau_23", "acc_eq", "spa"])
def test_the_variance_of_means_over_pairs_of_systems_is_that_of_a_u_statistic(name):
    """Plainly: the square of the mean less the mean product of two pairs without a system in common."""
    rng = np.random.default_rng(3)
    systems = 9
    system, dialogue = (axis.ravel() for axis in np.indices((systems, 5)))
    y = system + rng.normal(size=len(system))
    x = np.stack([y + rng.normal(size=len(y)) * noise for noise in (1, 2, 3)])
    found = replicates(x, y, Design(system, dialogue), dialogue, name, "pooled", resamples=50)
    (ours, count), *_ = variances(found)[0]
    assert count == systems
    whole, _ = jackknifed(found.systems)
    # The value without all systems but two is what their pair says.
    pairs = {}
    for i, j in itertools.combinations(range(systems), 2):
        kept = np.isin(system, [i, j])
        design = Design(np.unique(system[kept], return_inverse=True)[1], dialogue[kept])
        pairs[i, j] = replicates(x[:, kept], y[kept], design, dialogue[kept], "accuracy", "pooled").values
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
