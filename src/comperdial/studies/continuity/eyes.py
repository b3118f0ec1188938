"""The items that whose eye is asked of: their scores by simple metrics, and their ratings by role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.data.readers.ieval import MOODS, IEval
from comperdial.evaluation.perspective import INTERLOCUTOR, OUTSIDERS, SIMPLE, simple_scores


@dataclass(frozen=True)
class Items:
    """Responses or dialogues that every role rated: scores, ratings by role, and what intervals resample."""

    level: str
    scores: pd.DataFrame
    ratings: Mapping[str, npt.NDArray[np.float64]]
    clusters: npt.NDArray[Any]


def rated_items(folder: Path, said: Mapping[str, str], ieval: Path) -> Items:
    """Read a data set's items.

    Parameters
    ----------
    folder
        Its tables; ``annotators`` says which role each has, else all are what ``said`` says.
    said
        ``tokens``, ``dimension``; ``outsiders``: the source whose ratings are outsiders', if no table says it; ``interlocutor``:
        ``ieval`` where the ratings of those who chatted are iEval's.
    ieval
        iEval's file of ratings.
    """
    ratings = schema.read(folder / "ratings.parquet", "ratings")
    level, item = ("turn", "context_id") if (ratings["level"] == "turn").any() else ("dialogue", "dialogue_id")
    ratings = ratings[ratings["level"] == level].rename(columns={"item_id": item})
    key = [item, "system_id"]
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    scores = simple_scores(responses, contexts, "characters" if said["tokens"] == "characters" else "words")
    dialogue = contexts.set_index("context_id")["dialogue_id"]
    if level == "dialogue":
        # How far into a dialogue its middle is says how long it is.
        scores = scores.groupby(key)[list(SIMPLE)].mean().reset_index()
    ratings = ratings[ratings["dimension"] == said["dimension"]]
    roles = _roles(folder, ratings, said)
    by_role = {
        str(role): part.groupby(key)["rating"].agg(["mean", "size"]) for role, part in ratings.groupby(roles.to_numpy())
    }
    if said.get("interlocutor") == "ieval":
        by_role[INTERLOCUTOR] = _liked(by_role[OUTSIDERS].index, ieval)
    frame = scores
    for role, one in by_role.items():
        # Whoever lacks some of the raters is left out: their mean would be of other people.
        complete = one[one["size"] == one["size"].max()] if level == "turn" else one
        frame = frame.merge(complete["mean"].rename(role).reset_index(), on=key)
    if frame.empty:
        raise SchemaError("no item that every role rated", where=str(folder), expected="ratings of the same items")
    who = frame[item].map(dialogue) if level == "turn" else frame[item]
    if said.get("interlocutor") == "ieval":
        who = who.map(_worker)
    return Items(
        level, frame[list(SIMPLE)], {role: frame[role].to_numpy(np.float64) for role in by_role}, who.to_numpy()
    )


def _roles(folder: Path, ratings: pd.DataFrame, said: Mapping[str, str]) -> pd.Series:
    """Return the role of each rating's annotator; ratings of another source than the one named have none."""
    if "outsiders" in said:
        return ratings["source"].map({said["outsiders"]: OUTSIDERS})
    annotators = schema.read(folder / "annotators.parquet", "annotators").set_index("annotator_id")["role"]
    return ratings["annotator_id"].map(annotators).map({"interlocutor": INTERLOCUTOR, "outsider": OUTSIDERS})


def _place(dialogue_id: str) -> int:
    """Return the line of a dialogue in Zhang et al.'s file: eight of each worker, four bots about each of two things."""
    return int(dialogue_id.rpartition("-")[2])


def _worker(dialogue_id: str) -> int:
    return _place(dialogue_id) // 8 + 1


def _liked(items: pd.Index[Any], ratings: Path) -> pd.DataFrame:
    """Return how the person who chatted rated each dialogue: the mean of nine statements, 1 to 5, higher is better."""
    said = IEval("ieval", {"ratings": ratings}).ratings().set_index(["dialogue_id", "system_id"])["likert"]
    names = [(f"{_worker(dialogue)}-{MOODS[_place(dialogue) % 8 // 4]}", system) for dialogue, system in items]
    return pd.DataFrame({"mean": said.loc[names].to_numpy(np.float64), "size": 1}, index=items)
