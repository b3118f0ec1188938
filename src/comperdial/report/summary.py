"""The few numbers that ``dvc metrics diff`` and ``dvc plots diff`` compare between two commits."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.files import write_json
from comperdial.data import wordnet
from comperdial.report.correlations import pooled

# Fewer digits than the tables': a difference that shows here should be one worth looking at.
DIGITS = 4


def summarise(correlations: pd.DataFrame, target: str, folder: str | Path, *, simulated: bool = False) -> None:
    """Write ``metrics.json`` (by dataset, level, metric, output), ``plot.json`` and ``environment.json`` into a folder.

    ``target`` is the rated dimension; ``simulated`` names the data set so that nobody takes its numbers for findings.
    """
    nested: dict[str, Any] = {}
    points = []
    result = pooled(correlations[correlations["target"] == target])
    # Each level against its own ratings; systems against those of turns.
    chosen = result[result["against"] == result["level"].replace("system", "turn")]
    keys = ["dataset", "level", "metric", "output", "coefficient"]
    for row in chosen.sort_values(keys).to_dict("records"):
        value = None if pd.isna(row["value"]) else round(float(row["value"]), DIGITS) + 0.0
        dataset, level, metric, output, coefficient = (str(row[key]) for key in keys)
        dataset = f"{dataset} (SIMULATED)" if simulated else dataset
        place = nested.setdefault(dataset, {}).setdefault(level, {}).setdefault(metric, {})
        place.setdefault(output, {})[coefficient] = value
        if (level, coefficient) == ("turn", "spearman"):
            points.append({"metric": f"{dataset}: {metric} {output}", "spearman": value})
    write_json(Path(folder) / "metrics.json", nested)
    write_json(Path(folder) / "plot.json", points)
    write_json(Path(folder) / "environment.json", environment())


def environment() -> dict[str, Any]:
    """Return what the numbers were made with: Python, the libraries that can move them, and WordNet with its origin."""
    result = wordnet.locate()
    return {
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in ("nltk", "numpy", "pandas", "rouge-score", "scipy")},
        "wordnet": {"version": result.version, "source": result.source} if result else None,
    }
