"""The plain loops over mt-metrics-eval's formulas: its worked examples, scipy, ours, and its files."""

import importlib
import random
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
wmt = importlib.import_module("wmt")


@pytest.fixture(scope="module")
def vectors():
    """Six systems, twelve items, ties on both sides; in the second, gold scores are missing."""
    rng = np.random.default_rng(3)
    gold = rng.integers(1, 6, size=72).astype(float).tolist()
    near, far = ((np.array(gold) + rng.integers(-spread, spread + 1, size=72)).round(1).tolist() for spread in (2, 4))
    gaps = [None if rng.random() < 0.1 else value for value in gold]
    return gold, gaps, near, far


def test_ours_and_the_loops_agree(vectors):
    gold, gaps, near, far = vectors
    found = wmt.compared([("near", gold, near), ("far", gaps, far)], 6)
    assert len(found) == len(wmt.MEASURES) and all(apart < wmt.AGREED for _, apart, *_ in found), found


def test_forms_of_kendall_are_scipy_s_and_their_counts_add_up(vectors):
    gold, _, near, _ = vectors
    assert wmt.tau_b(gold, near) == pytest.approx(stats.kendalltau(gold, near, variant="b").statistic)
    assert wmt.tau_c(gold, near) == pytest.approx(stats.kendalltau(gold, near, variant="c").statistic)
    assert wmt.tau_23(gold, near) == pytest.approx(2 * wmt.acc_23(gold, near) - 1)
    assert wmt.pearson(gold, near) == pytest.approx(stats.pearsonr(gold, near).statistic)
    assert wmt.spearman(gold, near) == pytest.approx(stats.spearmanr(gold, near).statistic)
    assert wmt.pairwise_pearson(gold, near) == pytest.approx(wmt.pearson(gold, near))
    assert np.isnan(wmt.tau_b([1, 1, 1], [1, 2, 3])) and np.isnan(wmt.tau_c([1, 1, 1], [1, 2, 3]))


def test_groups_without_a_gold_score_or_a_value_are_left_out():
    # Items: (1, 2) alike; gold missing; gold tied, which tau-b has no value for.
    gold, metric = [1, None, 3, 2, 5, 3], [0.1, 9, 1, 0.2, 9, 2]
    assert wmt.average(wmt.tau_b, gold, metric, 2, "item") == 1
    assert wmt.average(wmt.acc_23, gold, metric, 2, "item") == 0.5
    assert wmt.agreement(gold, metric) == (9, 10)
    assert wmt.pooled_accuracy([([1, 2], [1, 2]), ([1, 2, 3], [2, 1, 0])]) == 1 / 4


def test_worked_examples_of_mt_metrics_eval():
    # tau_optimization_test.py, and DataTest.testAssignRanks in data_test.py.
    assert wmt.best_epsilon([1, 2, 3, 4], [0, 2, 6, 8], 4, "none") == (1, 0)
    value, epsilon = wmt.best_epsilon([1, 1, 1, 4], [0, 2, 6, 8], 4, "none")
    assert (value, epsilon) == (pytest.approx(4 / 6), 4)
    ones = [[1.0] * 4 for _ in range(4)]
    assert wmt.assign_ranks(ones, 0.5) == [1, 1, 1, 1] and wmt.assign_ranks(ones, 1.0) == [1, 2, 3, 4]
    ones[0][1] = ones[2][3] = 0.0
    assert wmt.assign_ranks(ones, 0.5) == [1, 2, 2, 3]


def test_weights_and_averages_over_tasks():
    tasks = [
        {"lang": "a", "level": "sys"},
        {"lang": "b", "level": "sys"},
        {"lang": "a", "level": "seg"},
        {"lang": "a", "level": "seg"},
    ]
    assert wmt.assign_weights(tasks, ["lang", "level"]) == [0.25, 0.5, 0.125, 0.125]
    assert wmt.assign_weights(tasks, []) == [0.25] * 4
    values = [{"x": 0.8, "y": 0.2, "only": 1.0}, {"x": 0.5, "y": 1.0}]
    found = wmt.average_values(values, [True, False], [0.25, 0.75])
    assert list(found) == ["y", "x"]
    assert found["x"] == pytest.approx(0.25 * 0.8 + 0.75 * 0.75) and found["y"] == pytest.approx(0.25 * 0.2 + 0.75)
    # The shorter list of draws comes again: the differences under the null are .1 + .1, .3 + .1, -.1 + .1.
    draws = [[(0.2, 0.0), (0.6, 0.0), (0.0, 0.2)], [(0.4, 0.0)]]
    assert wmt.average_p(0.15, draws, [True, False], [0.5, 0.5]) == pytest.approx(2 / 3)


def test_tests_find_a_difference_that_is_there_and_none_between_equals(vectors):
    gold, gaps, near, _ = vectors
    noise = np.random.default_rng(4).normal(size=72).tolist()
    for by in ("none", "item"):
        assert wmt.perm_both(wmt.pearson, gaps, near, noise, 6, by, 60, random.Random(1))[0] < 0.05
        # Swaps of two metrics that are the same change nothing.
        assert wmt.perm_both(wmt.pearson, gaps, near, near, 6, by, 20, random.Random(1))[0] == 1
    difference, p = wmt.perm_pairs(gaps, near, noise, 6, "item", 60, random.Random(1))
    assert difference > 0.1 and p < 0.05
    assert wmt.perm_pairs(gaps, near, near, 6, "item", 20, random.Random(1)) == (0, 1)
    rows = [wmt._rows(side, 6) for side in (gold, near, noise)]
    signs = [[random.Random(k).choice((-1.0, 1.0)) for _ in range(12)] for k in range(40)]
    assert wmt.spa(rows[0], rows[0], signs) == 1
    assert wmt.spa_test(rows[0], rows[1], rows[1], signs, 5, random.Random(1)) == (0, 1)


def test_files_are_those_that_the_tool_s_readme_describes(tmp_path):
    systems = [("bad/bot", "agent"), ("good bot", "agent"), ("gold", "reference")]
    tables = {
        "systems": [{"system_id": s, "kind": k, "track": None, "description": ""} for s, k in systems],
        "contexts": [
            {"context_id": c, "dialogue_id": d, "turn": t, "history": [{"speaker": "A", "text": f"say\n {c}"}]}
            | {"references": [f"ref {c}"], "facts": []}
            for c, d, t in (("c2", "one", 1), ("c1", "one", 0), ("c3", "two", 0))
        ],
        "responses": [
            {"context_id": c, "system_id": s, "response": f"{s} {c}"}
            for s, _ in systems
            for c in ("c1", "c2", "c3")
            if (s, c) != ("bad/bot", "c3")
        ],
        "ratings": [
            {
                "level": "turn",
                "item_id": c,
                "system_id": "good bot",
                "annotator_id": a,
                "position": None,
                "dimension": "Makes sense",
            }
            | {"rating": r, "scale_min": 1.0, "scale_max": 5.0, "source": "human"}
            for c, a, r in (("c1", "x", 4.0), ("c1", "y", 5.0), ("c3", "x", 2.0))
        ],
    }
    for name, rows in tables.items():
        frame = pd.DataFrame(rows).assign(dataset="mini")
        schema.write(tmp_path / "tables/mini" / f"{name}.parquet", schema.validate(frame, name), name)
    scores = [
        {
            "dataset": "mini",
            "level": "turn",
            "item_id": c,
            "system_id": s,
            "metric": metric,
            "output": "o",
            "value": n / 2,
        }
        | {"cut": 0, "signature": metric}
        for n, (s, c) in enumerate((s, c) for s in ("good bot", "bad/bot") for c in ("c1", "c2", "c3"))
        for metric in ("all", "some")
        if metric == "all" or c != "c3"
    ]
    frame = schema.validate(pd.DataFrame(scores), "scores")
    schema.write(tmp_path / "scores/mini/f.parquet", frame, "scores")
    lost = wmt.export("mini", tmp_path / "out", tables=tmp_path / "tables", scores=tmp_path / "scores")
    assert lost == ["some:o: 2 of 6 responses have no score"]
    found = {str(path.relative_to(tmp_path / "out/mini")): path.read_text() for path in (tmp_path / "out").rglob("*.*")}
    assert found == {
        "sources/en-en.txt": "say c1\nsay c2\nsay c3\n",
        "documents/en-en.docs": "mini one\nmini one\nmini two\n",
        "references/en-en.ref.txt": "ref c1\nref c2\nref c3\n",
        "system-outputs/en-en/good_bot.txt": "good bot c1\ngood bot c2\ngood bot c3\n",
        "system-outputs/en-en/bad_bot.txt": "bad/bot c1\nbad/bot c2\n\n",
        "human-scores/en-en.Makes_sense.seg.score": "bad_bot\tNone\n" * 3
        + "good_bot\t4.5\ngood_bot\tNone\ngood_bot\t2.0\n",
        "human-scores/en-en.Makes_sense.sys.score": "bad_bot\tNone\ngood_bot\t3.25\n",
        "metric-scores/en-en/all.o-src.seg.score": "bad_bot\t1.5\nbad_bot\t2.0\nbad_bot\t2.5\n"
        "good_bot\t0.0\ngood_bot\t0.5\ngood_bot\t1.0\n",
        "metric-scores/en-en/all.o-src.sys.score": "bad_bot\t2.0\ngood_bot\t0.5\n",
    }
