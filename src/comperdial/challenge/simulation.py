"""Simulated raters, only for the bundled demo: a documented model, a seed, and a known truth.

They let the whole system run anywhere and check statistics against a known truth. Their ratings are not findings.
``data/demo/raters.yaml`` explains the parameters, ``docs/demo.md`` the model.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import AfterValidator, Field

from comperdial import schema
from comperdial.config.checking import Expected, FromZero, Number, Share, Strict, read_checked, rule
from comperdial.core.errors import ConfigError
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

SOURCE = "simulated"
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class TurnTruth(Strict):
    """Components of a turn's true quality."""

    skill_weight: Number
    relevance_weight: Number
    dialogue_noise: FromZero
    system_dialogue_noise: FromZero
    turn_noise: FromZero
    short_words: FromZero
    short_turn: Number
    long_words: FromZero
    long_turn: Number


class DialogueTruth(Strict):
    """Components of a dialogue's true quality."""

    long: Number
    dull: Number
    same_opening: Number
    noise: FromZero
    spread: Number


class Rater(Strict):
    """How a rater perceives the truth."""

    id: Annotated[str, Field(pattern=r"\S"), Expected("a name")]
    slope: Number
    bias: Number
    turn_noise: FromZero
    dialogue_noise: FromZero
    mark: Share


def _rising(numbers: list[float]) -> list[float]:
    if sorted(set(numbers)) != numbers:
        raise ValueError
    return numbers


def _named_once(raters: list[Rater]) -> list[Rater]:
    if len({rater.id for rater in raters}) < len(raters):
        raise rule("two raters have the same id", "each id once")
    return raters


_Four = Annotated[
    list[Number], Field(min_length=4, max_length=4), AfterValidator(_rising), Expected("four rising numbers")
]


class Raters(Strict):
    """The raters, and the skills of the rated systems."""

    skill: dict[str, Share]
    turn: TurnTruth
    dialogue: DialogueTruth
    thresholds: _Four
    raters: Annotated[list[Rater], Field(min_length=1), AfterValidator(_named_once)]


def read_raters(path: str | Path) -> Raters:
    """Read the raters' parameters; a :class:`ConfigError` names one that is missing, unknown or out of range."""
    return read_checked(Raters, path)


def rate_tables(folder: str | Path, raters: str | Path, *, seed: int) -> None:
    """Rate the responses in a folder of tables, and write ``ratings`` and ``truth`` into it.

    Raises a :class:`ConfigError` if the folder contains ratings that are not simulated.
    """
    folder = Path(folder)
    model = read_raters(raters)
    if others := {*schema.ratings_in(folder)["source"]} - {SOURCE}:
        problem, where = f"it holds ratings by {', '.join(sorted(others))}", str(folder / "ratings.parquet")
        expected = "no ratings but simulated ones, which may be replaced"
        raise ConfigError(problem, where=where, expected=expected, hint="Simulate in a copy of the folder")
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    if unrated := sorted({*responses["system_id"]} - {*model.skill}):
        logging.getLogger(__name__).warning("not rated, because they have no skill: %s", ", ".join(unrated))
    ratings, truth = simulate(contexts, responses, model, seed=seed)
    schema.write(folder / "ratings.parquet", ratings, "ratings")
    schema.write(folder / "truth.parquet", truth, "scores")


def simulate(
    contexts: pd.DataFrame, responses: pd.DataFrame, model: Raters, *, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rate every response and dialogue of the systems with a skill, for one data set.

    Return table ``ratings`` with source ``simulated``, and the noise-free truth as table ``scores``. Raises a
    :class:`ConfigError` if no system has a skill.
    """
    turns = _turns(contexts, responses[responses["system_id"].isin(model.skill)])
    if turns.empty:
        raise ConfigError("no system that has responses has a skill", where="raters", expected="skills of systems")
    # One stream for the truth, and one per rater.
    rng = np.random.default_rng([seed, 0])
    turns["truth"] = _turn_truth(turns, model, rng)
    frames = {"turn": turns, "dialogue": _dialogues(turns, model, rng)}
    items = {
        level: frame[["dataset", name, "system_id"]].rename(columns={name: "item_id"}).assign(level=level)
        for (level, frame), name in zip(frames.items(), ("context_id", "dialogue_id"), strict=True)
    }
    ratings = []
    for number, rater in enumerate(model.raters, start=1):
        rng = np.random.default_rng([seed, number])
        noises = {"turn": rater.turn_noise, "dialogue": rater.dialogue_noise}
        given = {}
        for level, noise in noises.items():
            truth = frames[level]["truth"].to_numpy()
            seen = rater.slope * truth + rater.bias + rng.normal(0, noise, len(truth))
            given[level, OVERALL] = 1 + np.searchsorted(np.asarray(model.thresholds), seen)
        given |= _marks(frames["dialogue"], given["dialogue", OVERALL], rater.mark, rng)
        for (level, dimension), values in given.items():
            low, high = OVERALL_SCALE if dimension == OVERALL else AXIS_SCALE
            about = {"annotator_id": rater.id, "dimension": dimension, "source": SOURCE}
            ratings.append(items[level].assign(rating=values, scale_min=low, scale_max=high, **about))
    about = {"metric": "simulated_truth", "output": "quality", "signature": f"simulated_truth|seed:{seed}"}
    scores = [items[level].assign(value=frames[level]["truth"].astype(np.float32), **about) for level in frames]
    return (
        schema.validate(pd.concat(ratings, ignore_index=True), "ratings"),
        schema.validate(pd.concat(scores, ignore_index=True), "scores"),
    )


def _turns(contexts: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Return what raters perceive of each response: its length, its first two words, and words shared with the context."""
    turns = responses.merge(contexts[["context_id", "dialogue_id", "turn"]], on="context_id")
    turns = turns.sort_values(["dialogue_id", "system_id", "turn"], ignore_index=True)
    known = {
        context: _content(_words(" ".join([*(u["text"] for u in history[-1:]), *facts])))
        for context, history, facts in contexts[["context_id", "history", "facts"]].itertuples(index=False, name=None)
    }
    words = [_words(text) for text in turns["response"]]
    turns["length"] = [len(response) for response in words]
    turns["opening"] = [" ".join(response[:2]) for response in words]
    contents = zip(map(_content, words), turns["context_id"], strict=True)
    turns["share"] = [len(content & known[context]) / max(1, len(content)) for content, context in contents]
    return turns


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def _content(words: list[str]) -> set[str]:
    # Words of four or more letters stand for content words; a list of stop words would change little.
    return {word for word in words if len(word) > 3}


def _turn_truth(turns: pd.DataFrame, model: Raters, rng: np.random.Generator) -> Floats:
    weights = model.turn
    of_context = turns.groupby("context_id")["share"]
    spread = of_context.transform("std", ddof=0)
    relevance = ((turns["share"] - of_context.transform("mean")) / spread.where(spread > 0, 1.0)).to_numpy()
    skill = turns["system_id"].map(model.skill).to_numpy(dtype=np.float64)
    truth = weights.skill_weight * (2 * skill - 1) + weights.relevance_weight * relevance
    for keys, noise in (
        (["dialogue_id"], weights.dialogue_noise),
        (["dialogue_id", "system_id"], weights.system_dialogue_noise),
    ):
        groups = turns.groupby(keys, sort=True).ngroup().to_numpy()
        truth += rng.normal(0, noise, groups.max() + 1)[groups]
    truth += rng.normal(0, weights.turn_noise, len(turns))
    length = turns["length"].to_numpy()
    truth += weights.short_turn * (length < weights.short_words)
    return np.asarray(truth + weights.long_turn * (length > weights.long_words))


def _dialogues(turns: pd.DataFrame, model: Raters, rng: np.random.Generator) -> pd.DataFrame:
    """Return one row per dialogue of a system: habits visible across its turns, and its truth."""
    keys, habits = ["dataset", "dialogue_id", "system_id"], ["long", "dull", "same_opening"]
    frame = turns[[*keys, "truth"]].assign(
        long=turns["length"] > model.turn.long_words,
        dull=turns["length"] < model.turn.short_words + 2,
        same_opening=turns.duplicated([*keys, "opening"]),
    )
    dialogues = frame.groupby(keys, sort=True)[["truth", *habits]].mean().reset_index()
    weights = model.dialogue
    truth = weights.spread * dialogues["truth"] + rng.normal(0, weights.noise, len(dialogues))
    for habit in habits:
        truth += getattr(weights, habit) * dialogues[habit]
    return dialogues.assign(truth=truth)


def _marks(
    dialogues: pd.DataFrame, ratings: Ints, readiness: float, rng: np.random.Generator
) -> dict[tuple[str, str], Ints]:
    """Return 0 for each axis marked: only at ratings of 3 or lower, with higher probability for the matching habit."""
    likelier = {"Engagingness": dialogues["dull"], "Humanness": dialogues["long"] + dialogues["same_opening"]}
    severity = np.clip((4 - ratings) / 3, 0, 1)
    marks = {}
    for axis in AXES:
        chance = readiness * severity * (0.5 + np.asarray(likelier.get(axis, 0.0)))
        marks["dialogue", axis] = 1 - ((rng.random(len(ratings)) < chance) & (ratings <= 3)).astype(np.int64)
    return marks
