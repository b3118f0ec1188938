"""Simulated raters, for the embedded benchmark only: a documented model, a seed, and a truth that is kept.

They let the whole system run anywhere, and let statistics be checked against a known truth. Nothing they say is a
finding. The parameters are in ``data/demo/raters.yaml``, which explains each; ``docs/demo.md`` explains the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.errors import ConfigError
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

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
_RATER = ("slope", "bias", "turn_noise", "dialogue_noise", "mark")

Tables = dict[str, pd.DataFrame]
Floats = npt.NDArray[np.float64]


def read_raters(path: str | Path) -> dict[str, Any]:
    """Read the parameters of the raters, and check that all are there, that there is no other, and what each holds.

    Raises
    ------
    ConfigError
        Names the parameter at fault.
    """
    model = load_yaml(path)
    _check_names(model, _PARTS, str(path))
    _check_numbers(model["skill"], None, f"{path}, skill")
    for part in ("turn", "dialogue"):
        _check_numbers(model[part], _PARTS[part], f"{path}, {part}")
    steps = model["thresholds"]
    if not isinstance(steps, list) or len(steps) != 4 or not all(map(_is_number, steps)) or sorted(set(steps)) != steps:
        raise ConfigError(f"thresholds are {steps}", where=str(path), expected="four rising numbers")
    if not isinstance(model["raters"], list) or not model["raters"]:
        raise ConfigError(f"raters are {model['raters']!r:.100}", where=str(path), expected="a list of at least one")
    names: list[str] = []
    for number, rater in enumerate(model["raters"], start=1):
        where = f"{path}, rater {number}"
        name = rater.get("id", "-") if isinstance(rater, dict) else "-"
        if not isinstance(name, str) or not name.strip() or name in names:
            raise ConfigError(f"id is {name!r}", where=where, expected="a name that no other rater has")
        names.append(name)
        _check_names(rater, ("id", *_RATER), where)
        _check_numbers({key: value for key, value in rater.items() if key != "id"}, _RATER, where)
    return model


def _check_names(found: Any, names: Iterable[str], where: str) -> None:  # noqa: ANN401
    expected = ", ".join(names)
    if not isinstance(found, dict):
        raise ConfigError(f"holds {found!r:.100}", where=where, expected=expected)
    if missing := [name for name in names if name not in found]:
        raise ConfigError(f"no {missing[0]!r}", where=where, expected=expected)
    if unknown := [name for name in found if name not in set(names)]:
        raise ConfigError(f"{unknown[0]!r} is unknown", where=where, expected=expected)


def _check_numbers(found: Any, names: tuple[str, ...] | None, where: str) -> None:  # noqa: ANN401
    """Check a mapping of numbers: of these names, or (skills) of any names to numbers from 0 to 1."""
    _check_names(found, names if names is not None else (found if isinstance(found, dict) else ("a skill",)), where)
    for name, value in found.items():
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is no name", where=where, expected="names, quoted where they are numbers")
        least = 0.0 if names is None or name == "mark" or name.endswith(("noise", "_words")) else -math.inf
        most = 1.0 if names is None or name == "mark" else math.inf
        if not _is_number(value) or not least <= value <= most:
            wanted = {(0.0, 1.0): "a number from 0 to 1", (0.0, math.inf): "a number of 0 or more"}
            raise ConfigError(
                f"{name} is {value!r}", where=where, expected=wanted.get((least, most), "a number that is finite")
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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

    Raises
    ------
    ConfigError
        When none of the systems has a skill.
    """
    if not responses["system_id"].isin(skill).any():
        raise ConfigError(
            "no system that has responses has a skill",
            where="simulated raters",
            expected="skills in the raters' file, or a roster with them",
        )
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
        parts["turn_ratings"].append(_frame(turns, "context_id", rater["id"], OVERALL, ratings, OVERALL_SCALE))
        ratings = _rate(dialogues["truth"].to_numpy(), rater, "dialogue_noise", model["thresholds"], rng)
        parts["dialogue_ratings"].append(_frame(dialogues, "dialogue_id", rater["id"], OVERALL, ratings, OVERALL_SCALE))
        for axis, marked in _marks(dialogues, ratings, rater["mark"], rng).items():
            unmarked = (~marked).astype(np.float64)
            parts["dialogue_ratings"].append(_frame(dialogues, "dialogue_id", rater["id"], axis, unmarked, AXIS_SCALE))
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
        known = _content(" ".join([*(u["text"] for u in history[-1:]), *facts]))
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
    items: pd.DataFrame, item: str, annotator: str, dimension: str, ratings: Floats, scale: tuple[float, float]
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
            "scale_min": scale[0],
            "scale_max": scale[1],
            "source": SOURCE,
        }
    )
