"""What a page says of its data set and of the metrics on it: counts, agreement, correlations, comparisons, systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.errors import SchemaError
from comperdial.files import read_table
from comperdial.report.document import number
from comperdial.report.site.packing import Packer, Spec, table
from comperdial.stats.correlation import ALPHA, is_starred

_CELL = ["level", "against", "target", "grouping", "coefficient"]
_ALPHA_COLUMNS = ("level", "dimension", "annotator_id", "statistic", "value", "low", "high")


def correlations(packer: Packer, frame: pd.DataFrame) -> Spec:
    """Pack table ``correlations``: values with three decimals, and which of them a paper would mark."""
    rows = frame.sort_values([*_CELL, "metric", "output"])
    numbers = ["value", "low", "high", "rank", "n", "coverage", "cut"]
    columns: dict[str, Any] = {name: rows[name].astype("str").tolist() for name in [*_CELL, "metric", "output"]}
    columns |= {name: rows[name].astype("float64").to_numpy() for name in numbers}
    # A p that is shown rounded could not say on which side of the limit it lies.
    starred = [float(is_starred(p)) for p in rows["p"].astype("float64")]
    digits = {"value": 3, "low": 3, "high": 3, "rank": 0, "n": 0, "coverage": 3, "cut": 0, "starred": 0}
    return table(packer, columns | {"starred": starred}, digits)


def ceilings(packer: Packer, frame: pd.DataFrame | None) -> Spec | None:
    """Pack the mean over the annotators of table ``ceilings``, and how many there are, for each cell of a table."""
    if frame is None or frame.empty:
        return None
    means = frame.groupby(_CELL)["value"].agg(["mean", "count"]).reset_index()
    columns: dict[str, Any] = {name: means[name].astype("str").tolist() for name in _CELL}
    values = {"value": means["mean"].to_numpy(), "annotators": means["count"].to_numpy()}
    return table(packer, columns | values, {"value": 3, "annotators": 0})


def comparisons(packer: Packer, frame: pd.DataFrame | None) -> Spec | None:
    """Pack table ``comparisons``; ``told`` is 2 where the corrected p is below 0.05, 1 where only the plain one is."""
    if frame is None or frame.empty:
        return None
    names = ["level", "against", "target", "coefficient", "metric_a", "output_a", "metric_b", "output_b"]
    rows = frame.sort_values(names)
    columns: dict[str, Any] = {name: rows[name].astype("str").tolist() for name in [*names, "test"]}
    columns |= {name: rows[name].to_numpy(dtype=np.float64) for name in ("difference", "p", "p_adjusted", "n")}
    told = (rows["p"] < ALPHA).astype(int) + ((rows["p"] < ALPHA) & (rows["p_adjusted"] < ALPHA)).astype(int)
    columns["told"] = told.where(rows["p"].notna()).to_numpy(dtype=np.float64)
    return table(packer, columns, {"difference": 3, "p": 4, "p_adjusted": 4, "n": 0, "told": 0})


def signatures(frame: pd.DataFrame) -> dict[str, str]:
    """Return how each metric was made, by its name."""
    return dict(sorted(zip(frame["metric"].astype("str"), frame["signature"].astype("str"), strict=True)))


def alphas(path: Path | None) -> list[dict[str, Any]]:
    """Return Krippendorff's alpha of each level and dimension from the CSV file of its table."""
    if path is None:
        return []
    frame = read_table(path)
    if list(frame.columns) == ["note"]:
        # There was nothing to measure.
        return []
    if missing := [column for column in _ALPHA_COLUMNS if column not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=str(path), expected=", ".join(_ALPHA_COLUMNS))
    chosen = frame[(frame["annotator_id"] == "") & frame["statistic"].str.startswith("alpha_")]
    return [
        {
            "level": row["level"],
            "dimension": row["dimension"],
            "kind": str(row["statistic"]).removeprefix("alpha_"),
            **{name: number(float(row[name]) if row[name] else None) for name in ("value", "low", "high")},
        }
        for row in chosen.to_dict("records")
    ]


def systems(packer: Packer, frame: pd.DataFrame, fixed: Sequence[str], outputs: Mapping[str, str]) -> Spec:
    """Pack the frame of :func:`comperdial.report.systems.systems_frame`: numbers with three decimals.

    ``fixed`` are its columns that hold no scores, ``outputs`` the others with what the page calls them.
    """
    numbers = {"responses": 0, "turn_rating": 3, "dialogue_rating": 3}
    texts = [name for name in fixed if name not in numbers]
    columns: dict[str, Any] = {
        name: [value if isinstance(value, str) and value else None for value in frame[name]] for name in texts
    }
    columns |= {name: frame[name].to_numpy(dtype=np.float64) for name in numbers}
    found = table(packer, columns, numbers)
    scores = [
        {"name": label, "of": packer.numbers(frame[name].to_numpy(dtype=np.float64), 3)}
        for name, label in outputs.items()
    ]
    return found | {"scores": scores}
