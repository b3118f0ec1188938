"""How much of a recorded judge's answers can be read, and how its ratings agree with people's, file by file."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from comperdial.aggregate import mean_ratings
from comperdial.errors import SchemaError
from comperdial.judging.answers.importing import Ratings
from comperdial.stats.correlation import correlate

COLUMNS = [
    "metric", "dimension", "target", "items", "answers", "unread", "why", "n", "pearson", "kendall", "owners_pearson",
    "owners_kendall",
]  # fmt: skip


def coverage(name: str, found: Ratings, human: pd.DataFrame, targets: Mapping[str, str]) -> pd.DataFrame:
    """Count a recorded judge's answers, and correlate its means with the mean human ratings.

    Parameters
    ----------
    name
        The judge's.
    found
        What its answers say: of all items, references included, as the studies that publish such answers have them.
    human
        Table ``turn_ratings``.
    targets
        For each of the judge's dimensions the rated dimension it is held against.

    Returns
    -------
    DataFrame
        One row a dimension: :data:`COLUMNS`. ``why`` counts the reasons of answers that could not be read. ``pearson``
        pools all items; ``kendall`` is tau-b within each context, averaged over the contexts where it is defined, as
        Chiang and Lee 2023 have it; ``owners_…`` are the same of the answers as those who published them read them.
    """
    rated = mean_ratings(human).reset_index("dataset", drop=True)
    rows = []
    for dimension, group in found.values.groupby("dimension", sort=False):
        if dimension not in targets:
            raise SchemaError(f"no rated dimension for {dimension!r}", expected="one for each of the judge's")
        target = targets[str(dimension)]
        keys = pd.MultiIndex.from_frame(group[["item_id", "system_id"]])
        human_means = rated[target].reindex(keys).to_numpy()
        pairs, theirs = (
            pd.DataFrame(
                {"judge": group[reading].to_numpy(), "people": human_means, "context": group["item_id"]}
            ).dropna()
            for reading in ("value", "owners")
        )
        failures = found.failures[found.failures["dimension"] == dimension]["failure"].value_counts()
        rows.append(
            {
                "metric": name,
                "dimension": dimension,
                "target": target,
                "items": len(group),
                "answers": int(group["answers"].sum()),
                "unread": int(group["answers"].sum() - group["parsed"].sum()),
                "why": "; ".join(f"{count} {why}" for why, count in failures.items()),
                "n": len(pairs),
                "pearson": _pooled(pairs),
                "kendall": _within(pairs),
                "owners_pearson": _pooled(theirs),
                "owners_kendall": _within(theirs),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _pooled(pairs: pd.DataFrame) -> float:
    return correlate(pairs["judge"], pairs["people"], "pearson").value


def _within(pairs: pd.DataFrame) -> float:
    """Return tau-b within each context, averaged over the contexts where it is defined."""
    found = [correlate(part["judge"], part["people"], "kendall").value for _, part in pairs.groupby("context")]
    return float(pd.Series(found, dtype="float64").mean())
