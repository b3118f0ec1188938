"""benchmarks/wmt.py: plain loops over mt-metrics-eval's formulas agree with its examples, with scipy and with ours."""

import importlib

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema
from conftest import ROOT
from ratedtables import rating_rows, score_rows


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


def test_files_are_as_the_readme_of_mt_metrics_eval_describes(wmt, tmp_path):
    units = [(c, s) for s in ("good bot", "bad/bot") for c in ("c1", "c2", "c3")]
    contexts = [("mini", c, "one", 0, [{"speaker": "A", "text": f"say\n {c}"}], [f"ref {c}"], []) for c, _ in units[:3]]
    rated = [("c1", "good bot"), ("c3", "good bot")]
    tables = {
        "systems": [("mini", s, "agent", None, "") for s in ("good bot", "bad/bot")],
        "contexts": contexts,
        "responses": [("mini", c, s, f"{s} {c}") for c, s in units[:-1]],
        "ratings": pd.concat(rating_rows(rated, values, who, dataset="mini") for who, values in (("x", [4, 2]), ("y", [5, 2]))),
    }  # fmt: skip
    for name, rows in tables.items():
        frame = rows if name == "ratings" else pd.DataFrame(rows, columns=schema.table(name).columns)
        schema.write(tmp_path / f"tables/mini/{name}.parquet", schema.validate(frame, name), name)
    scores = pd.concat(
        [score_rows(units, range(6), "all", dataset="mini"), score_rows(units[:2], [1, 2], dataset="mini")]
    )
    schema.write(tmp_path / "scores/mini/f.parquet", schema.validate(scores, "scores"), "scores")
    lost = wmt.export("mini", tmp_path / "out", tables=tmp_path / "tables", scores=tmp_path / "scores")
    assert lost == ["m:o: 4 of 6 responses have no score"]
    found = {str(path.relative_to(tmp_path / "out/mini")): path.read_text() for path in (tmp_path / "out").rglob("*.*")}
    bad, good = "bad_bot\t3.0\nbad_bot\t4.0\nbad_bot\t5.0\n", "good_bot\t0.0\ngood_bot\t1.0\ngood_bot\t2.0\n"
    expected = {
        "sources/en-en.txt": "say c1\nsay c2\nsay c3\n",
        "documents/en-en.docs": "mini one\n" * 3,
        "references/en-en.ref.txt": "ref c1\nref c2\nref c3\n",
        "system-outputs/en-en/bad_bot.txt": "bad/bot c1\nbad/bot c2\n\n",
        "human-scores/en-en.Overall.seg.score": "bad_bot\tNone\n" * 3
        + "good_bot\t4.5\ngood_bot\tNone\ngood_bot\t2.0\n",
        "human-scores/en-en.Overall.sys.score": "bad_bot\tNone\ngood_bot\t3.25\n",
        "metric-scores/en-en/all.o-src.seg.score": bad + good,
        "metric-scores/en-en/all.o-src.sys.score": "bad_bot\t4.0\ngood_bot\t1.0\n",
    }
    assert {name: found[name] for name in expected} == expected
