"""What `comperdial compare` compares where nobody says: the metrics of params.yaml that run here in a few minutes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.metrics.named import metric_named

COSTS = Path(__file__).parents[1] / "metrics/local_costs.csv"
# Processor time that one metric may take without being named.
_MOST_SECONDS = 180


def default_metrics(entries: Mapping[str, Mapping[str, Any]], responses: int) -> tuple[list[str], list[str]]:
    """Choose metrics for a file.

    Parameters
    ----------
    entries
        The metrics of a params.yaml.
    responses
        How many the file has.

    Returns
    -------
    tuple
        What to compare, as METRIC or METRIC:OUTPUT: the main outputs of metrics that score every data set, can run here,
        and take up to three minutes of processor time; and a line for each that takes longer, or of which nobody measured
        how long it takes: how it is included. A line says why `local` cannot run.
    """
    seconds = _seconds()
    names, lines = [], []
    for name, entry in entries.items():
        if not entry.get("main") or entry.get("datasets") or entry.get("apart"):
            continue
        metric = metric_named(name, entries)
        if why := metric.unavailable():
            # The papers' models are not here as a rule; of this one the parts come with the repository.
            lines += [f"{name}: not run: {why}"] if metric.kind == "local" else []
            continue
        each = seconds.get(name) if metric.runs_model else 0.0
        if each is not None and each * responses <= _MOST_SECONDS:
            main = [entry["main"]] if isinstance(entry["main"], str) else entry["main"]
            names += [name if output == metric.outputs[0] else f"{name}:{output}" for output in main]
            continue
        how_long = "nobody has measured how long it takes"
        if each is not None:
            how_long = f"about {each * responses / 60:,.0f} min of processor time for {responses:,} responses"
        lines.append(f"{name}: left out, {how_long}; `--metrics {name}` includes it")
    return names, lines


def _seconds() -> dict[str, float]:
    """Return the processor seconds that a metric takes for a response, where they were measured."""
    import pandas as pd

    costs = pd.read_csv(COSTS).dropna(subset=["seconds"])
    return dict(zip(costs["metric"], costs["seconds"] / 1000, strict=True))
