"""Mean ratings of systems and their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial.report.systems import system_ratings

CONTEXTS = pd.DataFrame({"context_id": [f"c{n}" for n in range(12)], "dialogue_id": [f"d{n // 3}" for n in range(12)]})


def rated(values: np.ndarray, level: str = "turn", start: str = "c") -> pd.DataFrame:
    """Return ratings of one system, items by raters."""
    return pd.DataFrame(
        [
            {
                "level": level,
                "system_id": "s",
                "item_id": f"{start}{item}",
                "annotator_id": f"r{rater}",
                "rating": value,
            }
            for item, row in enumerate(values)
            for rater, value in enumerate(row)
        ]
    ).assign(scale_min=1.0, scale_max=5.0)


def test_items_count_alike_and_dialogues_are_clusters() -> None:
    values = np.random.default_rng(1).uniform(2, 4, (12, 2))
    # One more rater of one item changes the weight of no item.
    ratings = pd.concat([rated(values), rated(values[:1]).head(1).assign(annotator_id="x", rating=values[0].mean())])
    (row,) = system_ratings(ratings, CONTEXTS).to_dict("records")
    items = values.mean(axis=1)
    assert row["rating"] == pytest.approx(items.mean())
    # Of clusters of one size the interval is that of the clusters' means.
    low, high = stats.t.interval(0.95, 3, items.mean(), stats.sem(items.reshape(4, 3).mean(axis=1)))
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert (row["items"], row["dialogues"], row["raters"]) == (12, 4, 3)


def test_rated_dialogues_are_sampled_themselves_and_one_says_nothing() -> None:
    values = np.array([[1.0], [2.0], [4.0]])
    (row,) = system_ratings(rated(values, "dialogue", "d"), CONTEXTS).to_dict("records")
    assert (row["low"], row["high"]) == pytest.approx((1.0, 5.0)), "cut at the ends of the scale"
    (row,) = system_ratings(rated(values[:1], "dialogue", "d"), CONTEXTS).to_dict("records")
    assert np.isnan([row["low"], row["high"]]).all()
