"""Simulated raters, for the embedded benchmark only: a documented model, a seed, and a truth that is kept.

They let the whole system run anywhere, and let statistics be checked against a known truth. Nothing they say is a
finding. The parameters are in ``data/demo/raters.yaml``, which explains each; ``docs/demo.md`` explains the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.errors import ConfigError
from comperdial.schema.dimensions import AXES, OVERALL

SOURCE = "simulated"
_WORD = re.compile(r"[a-z']+")
_PARTS = {
    "skill": (),
    "turn": (
        "skill_weight", "relevance_weight", "dialogue_noise", "system_dialogue_noise", "turn_noise", "short_words",
        "short_turn", "long_words", "long_turn",
    ),
    "dialogue": ("long", "dull", "same_opening", "noise", "spread"),
    "thresholds": (),
    "raters": (),
}  # fmt: skip
_RATER = {"id", "slope", "bias", "turn_noise", "dialogue_noise", "mark"}

Tables = dict[str, pd.DataFrame]
Floats = npt.NDArray[np.float64]


def read_raters(path: str | Path) -> dict[str, Any]:
    """Read the parameters of the raters, and check that all are there and no other."""
    model = load_yaml(path)
    where = str(path)
    if set(model) != set(_PARTS):
        raise ConfigError(f"it has {', '.join(model)}", where=where, expected=", ".join(_PARTS))
    for part, names in _PARTS.items():
        if names and set(model[part]) != set(names):
            raise ConfigError(f"{part} has {', '.join(model[part])}", where=where, expected=", ".join(names))
    for number, rater in enumerate(model["raters"], start=1):
        if set(rater) != _RATER:
            raise ConfigError(f"rater {number} has {', '.join(rater)}", where=where, expected=", ".join(sorted(_RATER)))
    if list(model["thresholds"]) != sorted(model["thresholds"]) or len(model["thresholds"]) != 4:
        raise ConfigError(f"thresholds are {model['thresholds']}", where=where, expected="four rising numbers")
    return model


def simulate(
    contexts: pd.DataFrame, responses: pd.DataFrame, skill: Mapping[str, float], model: Mapping[str, Any], *, seed: int
) -> Tables:
    """Rate every response and every dialogue of the systems that have a skill.

    Parameters
    ----------
    contexts, responses
        The tables of that name, of one data set.
    skill
        System -> 0 to 1; systems without one are not rated.
    model
        As :func:`read_raters` gives it.
    seed
        Two streams come of it for each rater, and one for the truth.

    Returns
    -------
    dict
        ``turn_ratings`` and ``dialogue_ratings`` (source ``simulated``), and ``truth``: a table ``scores`` whose metric
        is ``simulated_truth``, with what the raters saw through their noise.
    """
    turns = responses[responses["system_id"].isin(skill)].merge(
        contexts[["context_id", "dialogue_id", "turn", "history", "facts"]], on="context_id"
    )
    turns = turns.sort_values(["dialogue_id", "system_id", "turn"]).reset_index(drop=True)
    rng = np.random.default_rng([seed, 0])
    turns["truth"] = _turn_truth(turns, skill, model["turn"], rng)
    dialogues = _dialogues(turns, model, rng)
    parts: dict[str, list[pd.DataFrame]] = {"turn_ratings": [], "dialogue_ratings": []}
    for number, rater in enumerate(model["raters"], start=1):
        rng = np.random.default_rng([seed, number])
        ratings = _rate(turns["truth"].to_numpy(), rater, "turn_noise", model["thresholds"], rng)
        parts["turn_ratings"].append(_frame(turns, "context_id", rater["id"], OVERALL, ratings, (1, 5)))
        ratings = _rate(dialogues["truth"].to_numpy(), rater, "dialogue_noise", model["thresholds"], rng)
        parts["dialogue_ratings"].append(_frame(dialogues, "dialogue_id", rater["id"], OVERALL, ratings, (1, 5)))
        for axis, marked in _marks(dialogues, ratings, rater["mark"], rng).items():
            unmarked = (~marked).astype(np.float64)
            parts["dialogue_ratings"].append(_frame(dialogues, "dialogue_id", rater["id"], axis, unmarked, (0, 1)))
    tables = {name: schema.validate(pd.concat(frames, ignore_index=True), name) for name, frames in parts.items()}
    signature = f"simulated_truth|seed:{seed}"
    truth = [
        pd.DataFrame(
            {
                "dataset": frame["dataset"],
                "level": level,
                "item_id": frame[item],
                "system_id": frame["system_id"],
                "metric": "simulated_truth",
                "output": "quality",
                "value": frame["truth"].astype(np.float32),
                "signature": signature,
            }
        )
        for level, frame, item in (("turn", turns, "context_id"), ("dialogue", dialogues, "dialogue_id"))
    ]
    return tables | {"truth": schema.validate(pd.concat(truth, ignore_index=True), "scores")}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _content(text: str) -> set[str]:
    # Words of four letters and more stand for content words; a list of stop words would say little more here.
    return {word for word in _words(text) if len(word) > 3}


def _relevance(turns: pd.DataFrame) -> Floats:
    """Return the share of a response's content words that A's last utterance or persona B has, standardised."""
    shares = []
    for response, history, facts in zip(turns["response"], turns["history"], turns["facts"], strict=True):
        said = _content(response)
        known = _content(" ".join([history[-1]["text"], *facts]))
        shares.append(len(said & known) / len(said) if said else 0.0)
    values = pd.Series(shares, index=turns.index)
    of_context = values.groupby(turns["context_id"])
    spread = of_context.transform("std", ddof=0)
    return ((values - of_context.transform("mean")) / spread.where(spread > 0, 1.0)).to_numpy()


def _turn_truth(
    turns: pd.DataFrame, skill: Mapping[str, float], model: Mapping[str, float], rng: np.random.Generator
) -> Floats:
    dialogue = turns["dialogue_id"].astype("category").cat.codes.to_numpy()
    pair = turns.groupby(["dialogue_id", "system_id"], sort=True).ngroup().to_numpy()
    length = turns["response"].map(lambda text: len(_words(text))).to_numpy()
    truth = model["skill_weight"] * (2 * turns["system_id"].map(skill).to_numpy(dtype=np.float64) - 1)
    truth = truth + model["relevance_weight"] * _relevance(turns)
    truth += rng.normal(0, model["dialogue_noise"], dialogue.max() + 1)[dialogue]
    truth += rng.normal(0, model["system_dialogue_noise"], pair.max() + 1)[pair]
    truth += rng.normal(0, model["turn_noise"], len(turns))
    truth += model["short_turn"] * (length < model["short_words"])
    return np.asarray(truth + model["long_turn"] * (length > model["long_words"]))


def _dialogues(turns: pd.DataFrame, model: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """Return one row a system's dialogue: the habits that show across its turns, and its truth."""
    words = turns["response"].map(_words)
    length = words.map(len)
    frame = turns[["dataset", "dialogue_id", "system_id", "truth"]].assign(
        long=length > model["turn"]["long_words"],
        dull=length < model["turn"]["short_words"] + 2,
        opening=words.map(lambda found: " ".join(found[:2])),
    )
    keys = ["dataset", "dialogue_id", "system_id"]
    frame["same_opening"] = frame.duplicated([*keys, "opening"])
    found = frame.groupby(keys, sort=True)[["truth", "long", "dull", "same_opening"]].mean().reset_index()
    weights = model["dialogue"]
    truth = weights["spread"] * found["truth"] + rng.normal(0, weights["noise"], len(found))
    for habit in ("long", "dull", "same_opening"):
        truth += weights[habit] * found[habit]
    return found.assign(truth=truth)


def _rate(
    truth: Floats, rater: Mapping[str, float], noise: str, thresholds: list[float], rng: np.random.Generator
) -> Floats:
    seen = rater["slope"] * truth + rater["bias"] + rng.normal(0, rater[noise], len(truth))
    return np.asarray(1.0 + np.searchsorted(np.asarray(thresholds), seen), dtype=np.float64)


def _marks(
    dialogues: pd.DataFrame, ratings: Floats, readiness: float, rng: np.random.Generator
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return of each axis whether it was marked: only at ratings of 3 or lower, likelier for the habit it is about."""
    likelier = {
        "Engagingness": dialogues["dull"].to_numpy(dtype=np.float64),
        "Humanness": (dialogues["long"] + dialogues["same_opening"]).to_numpy(dtype=np.float64),
    }
    severity = np.clip((4 - ratings) / 3, 0, 1)
    marks = {}
    for axis in AXES:
        chance = readiness * severity * (0.5 + likelier.get(axis, np.zeros(len(ratings))))
        marks[axis] = (rng.random(len(ratings)) < chance) & (ratings <= 3)
    return marks


def _frame(
    items: pd.DataFrame, item: str, annotator: str, dimension: str, ratings: Floats, scale: tuple[int, int]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "dataset": items["dataset"],
            item: items[item],
            "system_id": items["system_id"],
            "annotator_id": annotator,
            "position": None,
            "dimension": dimension,
            "rating": ratings,
            "scale_min": float(scale[0]),
            "scale_max": float(scale[1]),
            "source": SOURCE,
        }
    )
