"""The published correlations of a data set, computed again from its tables with pandas and scipy alone."""

from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
TABLES, RESULTS = ROOT / "data/tables/usr_persona", ROOT / "results/usr_persona"
SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
needed = [TABLES / "ratings.parquet", RESULTS / "scores", RESULTS / "correlations.parquet"]

pytestmark = pytest.mark.skipif(
    not all(path.exists() for path in needed), reason="the published tables are not here: `dvc pull`"
)


def test_pooled_coefficients_are_scipy_s():
    published = pd.read_parquet(RESULTS / "correlations.parquet").query(
        "grouping == 'pooled' and coefficient in @SCIPY and n > 0"
    )
    ratings = pd.read_parquet(TABLES / "ratings.parquet").query("source == 'human' and level == 'turn'")
    rated = ratings.groupby(["dimension", "item_id", "system_id"])["rating"].mean().rename("rating")
    scores = pd.concat(pd.read_parquet(path) for path in sorted((RESULTS / "scores").glob("*.parquet")))
    scores = scores[scores["level"] == "turn"]
    tables = {
        name: own.set_index(["item_id", "system_id"])["value"] for name, own in scores.groupby(["metric", "output"])
    }
    checked = 0
    for (target, level, metric, output), rows in published.groupby(["target", "level", "metric", "output"]):
        if (metric, output) not in tables or level == "dialogue":
            continue
        both = pd.concat([tables[metric, output].astype("float64"), rated[target]], axis=1, join="inner").dropna()
        if level == "system":
            # Means that differ by rounding only are ties.
            both = both.groupby("system_id").mean().round(11)
        for row in rows.itertuples():
            made = SCIPY[row.coefficient](both["value"], both["rating"])
            assert (row.n, row.value) == (len(both), pytest.approx(made.statistic, abs=1e-9)), row
            assert row.p == pytest.approx(made.pvalue, abs=1e-6), row
            checked += 1
    assert checked > 100
