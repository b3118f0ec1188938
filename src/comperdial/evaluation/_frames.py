"""Tables by unit: one row a unit, one column an output or an annotator."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from comperdial.aggregate import without_references
from comperdial.errors import SchemaError, UnknownNameError
from comperdial.stats.means import merge_ties

log = logging.getLogger(__name__)

NAME = ["metric", "output"]
# The paper's ``Human`` row: how well turn-level ratings say what the dialogue-level rating is.
HUMAN = ("human", "turns")


def of_dataset(ratings: pd.DataFrame | None, dataset: str) -> pd.DataFrame | None:
    """Return the rows of one data set; None if there are none."""
    if ratings is None:
        return None
    chosen = ratings[ratings["dataset"] == dataset]
    return None if chosen.empty else chosen


def check_targets(targets: Sequence[str] | None, source: str, dataset: str, *ratings: pd.DataFrame | None) -> None:
    """Refuse a source that no ratings of a data set have, and a dimension."""
    tables = [table for table in ratings if table is not None]
    sources = {name for table in tables for name in table["source"].unique()}
    if source not in sources:
        raise UnknownNameError("source of ratings", source, sources, where=f"dataset {dataset!r}")
    known = {name for table in tables for name in table.loc[table["source"] == source, "dimension"].unique()}
    for target in targets or ():
        if target not in known:
            raise UnknownNameError("dimension", target, known, where=f"dataset {dataset!r}")


def check_scores(scores: pd.DataFrame, dataset: str) -> None:
    """Refuse scores that would stand in one column, and warn of those that no level takes."""
    levels = scores[[*NAME, "level"]].drop_duplicates()
    clash = levels[levels["level"].isin(["turn", "dialogue"])]
    clash = clash[clash.duplicated(NAME)]
    if len(clash):
        metric, output = clash.iloc[0][NAME]
        raise SchemaError(
            f"metric {metric!r}, output {output!r} has scores of turns and of dialogues",
            where=f"dataset {dataset!r}",
            expected="one level for each output; a dialogue's score is made of its turns' by itself",
        )
    if (scores["metric"] == HUMAN[0]).any():
        raise SchemaError(
            f"a metric is called {HUMAN[0]!r}",
            where=f"dataset {dataset!r}",
            expected="another name: this one is the raters'",
        )
    if count := int((scores["level"] == "system").sum()):
        log.warning("%s: %d scores of whole systems are not used: systems are averaged here", dataset, count)


def single_ratings(
    ratings: pd.DataFrame | None, item: str, systems: pd.DataFrame | None, source: str
) -> pd.DataFrame | None:
    """Return single ratings: one row an item, system and dimension (index), one column an annotator."""
    if ratings is None:
        return None
    chosen = without_references(ratings, systems)
    chosen = chosen[chosen["source"] == source]
    if chosen.empty:
        return None
    found = chosen.pivot(index=[item, "system_id", "dimension"], columns="annotator_id", values="rating")
    found.index = found.index.set_names(["item_id", "system_id", "dimension"])
    return found


def units_of(single: pd.DataFrame) -> pd.MultiIndex:
    """Return the units, (item_id, system_id), that have a rating."""
    return pd.MultiIndex.from_frame(single.index.to_frame(index=False)[["item_id", "system_id"]].drop_duplicates())


def ratings_by_dialogue(single: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    """Average each annotator's ratings of turns over a dialogue.

    Of a dialogue that not all rated as a whole, the mean of these is not its mean rating: :func:`mean_by_dialogue`.
    """
    units = single.index.to_frame(index=False)
    keys = [units["item_id"].map(dialogue_of).to_numpy(), units["system_id"].to_numpy(), units["dimension"].to_numpy()]
    found = _with_ties(single.groupby(keys).mean(), single.abs().groupby(keys).mean())
    found.index.names = ["item_id", "system_id", "dimension"]
    return found


def mean_by_dialogue(single: pd.DataFrame, dialogue_of: pd.Series) -> pd.Series:
    """Average the mean ratings of turns over a dialogue: one row an item, a system and a dimension."""
    return ratings_by_dialogue(mean_ratings(single).to_frame("rating"), dialogue_of)["rating"]


def mean_ratings(single: pd.DataFrame) -> pd.Series:
    """Average single ratings over annotators."""
    means, sizes = (frame.mean(axis="columns").to_frame("rating") for frame in (single, single.abs()))
    return _with_ties(means, sizes)["rating"]


def mean_scores(scores: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    """Average scores of turns over each dialogue of each system."""
    means, sizes = (by_dialogue(frame, dialogue_of).mean() for frame in (scores, scores.abs()))
    return _with_ties(means, sizes)


def _with_ties(means: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Make means ties, column by column, that differ only in the order of adding."""
    values = merge_ties(means.to_numpy(dtype=np.float64).T, sizes.to_numpy(dtype=np.float64).T).T
    return pd.DataFrame(values, index=means.index, columns=means.columns)


def share_of_turns(scores: pd.DataFrame, rated: pd.DataFrame | None, dialogue_of: pd.Series) -> pd.DataFrame:
    """Return the share of a dialogue's turns, rated ones where there are any, that each output has a score of."""
    counts = by_dialogue(scores.notna(), dialogue_of).sum()
    if rated is None:
        return counts.div(counts.max(axis="columns"), axis="index")
    units = units_of(rated)
    here = scores.reindex(units).notna()
    counts = by_dialogue(here, dialogue_of).sum()
    return counts.div(by_dialogue(pd.DataFrame({"n": 1}, index=units), dialogue_of).sum()["n"], axis="index")


def of_target(single: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return one row a unit: the single ratings of one dimension."""
    rows = single.index.get_level_values("dimension") == target
    return single[rows].reset_index("dimension", drop=True).sort_index()


def wide(scores: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return one row a unit, one column a (metric, output)."""
    return scores.pivot(index=["item_id", "system_id"], columns=NAME, values=column).astype(np.float64)


def by_dialogue(frame: pd.DataFrame, dialogue_of: pd.Series) -> DataFrameGroupBy:
    """Group units of turns by dialogue and system."""
    dialogues = dialogue_of.reindex(frame.index.get_level_values(0)).to_numpy()
    keys = [pd.Index(dialogues, name="item_id"), pd.Index(frame.index.get_level_values(1), name="system_id")]
    return frame.groupby(keys)


def dialogue_names(
    contexts: pd.DataFrame | None, dataset: str, rated: pd.DataFrame | None, scores: pd.DataFrame
) -> pd.Series:
    """Return the dialogue of each context; without a table, each context is a dialogue of its own."""
    found = set(scores.loc[scores["level"] == "turn", "item_id"])
    if rated is not None:
        found |= set(rated.index.get_level_values(0))
    names = pd.Series({name: name for name in sorted(found)}, dtype=object)
    if contexts is not None:
        known = contexts[contexts["dataset"] == dataset].set_index("context_id")["dialogue_id"]
        if unknown := sorted(found - set(known.index)):
            raise SchemaError(
                f"{len(unknown)} contexts are in no table, the first: {unknown[0]!r}",
                where=f"dataset {dataset!r}",
                expected="each context that was rated or scored, in the table `contexts`",
            )
        names.update(known)
    return names
