"""How much of a recorded judge's answers can be read, and how its ratings agree with people's, file by file."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from comperdial.core.errors import UnknownNameError
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
        Table ``turn_ratings``, or ``dialogue_ratings`` of a judge of dialogues; people's ratings are taken from it.
    targets
        For the judge's dimensions the rated dimension each is held against, where it has another name.

    Returns
    -------
    DataFrame
        One row a dimension: :data:`COLUMNS`. ``why`` counts the reasons of answers that could not be read. ``pearson``
        pools all items; ``kendall`` is tau-b within each context, averaged over the contexts where it is defined, as
        Chiang and Lee 2023 have it; ``owners_…`` are the same of the answers as those who published them read them.
        Where people rated nothing, there is nothing to correlate with: ``n`` is 0.

    Raises
    ------
    UnknownNameError
        When people rated, but not what a dimension is held against.
    """
    item = "dialogue_id" if "dialogue_id" in human else "context_id"
    people = human[human["source"] == "human"]
    rated = people.groupby([item, "system_id", "dimension"])["rating"].mean()
    known = sorted(people["dimension"].unique())
    rows = []
    for dimension, group in found.values.groupby("dimension", sort=False):
        target = targets.get(str(dimension), str(dimension))
        if known and target not in known:
            raise UnknownNameError("rated dimension", target, known, where=f"{name}, {dimension}")
        keys = pd.MultiIndex.from_frame(group[["item_id", "system_id"]].assign(dimension=target))
        human_means = rated.reindex(keys).to_numpy()
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
