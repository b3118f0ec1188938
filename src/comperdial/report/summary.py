"""The key numbers that ``dvc metrics diff`` and ``dvc plots diff`` compare between two commits."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.files import write_json
from comperdial.data import wordnet
from comperdial.report.correlations import pooled

# Fewer digits than in tables: a visible difference should matter.
DIGITS = 4


def summarise(correlations: pd.DataFrame, target: str, folder: str | Path, *, simulated: bool = False) -> None:
    """Write ``metrics.json`` (by dataset, level, metric, output), ``plot.json`` and ``environment.json`` to a folder.

    ``target`` is the rated dimension; ``simulated`` marks the data set's name, so that its numbers are not taken for results.
    """
    nested: dict[str, Any] = {}
    points = []
    result = pooled(correlations[correlations["target"] == target])
    # Each level with its own ratings; systems with those of turns.
    chosen = result[result["against"] == result["level"].replace("system", "turn")]
    keys = ["dataset", "level", "metric", "output", "coefficient"]
    for *key, value in chosen.sort_values(keys)[[*keys, "value"]].itertuples(index=False, name=None):
        dataset, level, metric, output, coefficient = map(str, key)
        dataset = f"{dataset} (SIMULATED)" if simulated else dataset
        rounded = None if pd.isna(value) else round(float(value), DIGITS) + 0.0
        of_metric = nested.setdefault(dataset, {}).setdefault(level, {}).setdefault(metric, {})
        of_metric.setdefault(output, {})[coefficient] = rounded
        if (level, coefficient) == ("turn", "spearman"):
            points.append({"metric": f"{dataset}: {metric} {output}", "spearman": rounded})
    database = wordnet.locate()
    environment = {
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in ("nltk", "numpy", "pandas", "rouge-score", "scipy")},
        "wordnet": {"version": database.version, "source": database.source} if database else None,
    }
    for name, content in {"metrics": nested, "plot": points, "environment": environment}.items():
        write_json(Path(folder) / f"{name}.json", content)
