"""The few numbers that ``dvc metrics diff`` and ``dvc plots diff`` compare between two commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.files import write_json

# Fewer digits than the tables': a difference that shows here should be one worth looking at.
DIGITS = 4


def summarise(correlations: pd.DataFrame, target: str, folder: str | Path) -> None:
    """Write ``metrics.json`` (nested by dataset, level, metric, output) and ``plot.json`` (a list of records).

    Parameters
    ----------
    correlations
        Table ``correlations``.
    target
        The rated dimension.
    folder
        Where to write.
    """
    nested: dict[str, Any] = {}
    points = []
    chosen = correlations[correlations["target"] == target]
    for row in chosen.sort_values(["dataset", "level", "metric", "output", "coefficient"]).itertuples():
        value = None if pd.isna(row.value) else round(float(row.value), DIGITS) + 0.0
        place = nested.setdefault(row.dataset, {}).setdefault(row.level, {}).setdefault(row.metric, {})
        place.setdefault(row.output, {})[row.coefficient] = value
        if row.coefficient == "spearman":
            name = f"{row.dataset}: {row.metric} {row.output}"
            points.append({"metric": name, "level": row.level, "spearman": value})
    write_json(Path(folder) / "metrics.json", nested)
    write_json(Path(folder) / "plot.json", [p for p in points if p["level"] == "turn"])
