"""Rows of the tables `scores` and `ratings` for tests, from units and values."""

import pandas as pd


def score_rows(units, values, metric="m", level="turn", **more):
    """Return scores of units, (item, system) each."""
    frame = pd.DataFrame(list(units), columns=["item_id", "system_id"])
    same = {"dataset": "d", "level": level, "metric": metric, "output": "o", "cut": 0, "signature": f"{metric}|v:1"}
    return frame.assign(value=list(values), **(same | more))


def rating_rows(units, values, annotator="ann", level="turn", **more):
    """Return one annotator's ratings of units, (item, system) each."""
    frame = pd.DataFrame(list(units), columns=["item_id", "system_id"])
    same = {"dataset": "d", "level": level, "annotator_id": annotator, "position": None, "dimension": "Overall"}
    same |= {"scale_min": -200.0, "scale_max": 200.0, "source": "human"}
    return frame.assign(rating=list(values), **(same | more))
