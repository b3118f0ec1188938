"""Simulated raters, for the embedded benchmark only: a documented model, a seed, and a truth that is kept.

They let the whole system run anywhere, and let statistics be checked against a known truth. Nothing they say is a
finding. The parameters are in ``data/demo/raters.yaml``, which explains each; ``docs/demo.md`` explains the model.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq

from comperdial import schema
from comperdial.challenge.raters import Rater, Raters, TurnTruth, read_raters
from comperdial.challenge.roster import read_roster
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE
from comperdial.schema.parquet import readable

SOURCE = "simulated"
RATED = ("ratings", "truth")
# Responses that are held at once.
_PART = 16_384
_WORD = re.compile(r"[a-z']+")

__all__ = ["RATED", "SOURCE", "Simulated", "rate", "rate_tables", "read_raters", "simulate", "sources"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Simulated:
    """What raters say, as numbers: some tens of bytes a response, of which tables are made part by part.

    Attributes
    ----------
    dataset
        The data set's name.
    names
        What ``context``, ``dialogue`` and ``system`` count in ``items``: sorted names.
    items
        Level -> one row an item that was rated, with its codes and its truth.
    ratings
        Level -> (annotator, dimension) -> the rating of each item.
    unrated
        Systems that have responses and no skill.
    signature
        Of the truth.
    """

    dataset: str
    names: Mapping[str, npt.NDArray[np.object_]]
    items: Mapping[str, pd.DataFrame]
    ratings: Mapping[str, Mapping[tuple[str, str], npt.NDArray[np.int8]]]
    unrated: tuple[str, ...]
    signature: str

    def parts(self, table: str, rows: int = 32_768) -> Iterator[pd.DataFrame]:
        """Yield ``ratings`` or ``truth`` (table ``scores``), sorted, some rows at a time."""
        for level in ("dialogue", "turn"):
            if table == "truth":
                for part, key in self._ordered(level, rows):
                    about = {"metric": "simulated_truth", "output": "quality"}
                    value = part["truth"].to_numpy().astype(np.float32)
                    frame = key.assign(value=value, cut=0, signature=self.signature, **about)
                    yield schema.validate(frame, "scores")
                continue
            said = sorted(self.ratings[level].items())
            who = pd.DataFrame([names for names, _ in said], columns=["annotator_id", "dimension"])
            scales = [OVERALL_SCALE if dimension == OVERALL else AXIS_SCALE for dimension in who["dimension"]]
            who["scale_min"], who["scale_max"] = zip(*scales, strict=True)
            for part, key in self._ordered(level, max(1, rows // len(said))):
                frame = key.loc[key.index.repeat(len(said))].reset_index(drop=True)
                of_all = who.loc[np.tile(who.index, len(part))].reset_index(drop=True)
                rating = np.stack([values[part.index] for _, values in said], axis=1).ravel().astype(np.float64)
                frame = frame.join(of_all).assign(position=None, rating=rating, source=SOURCE)
                yield schema.validate(frame, "ratings")

    def _ordered(self, level: str, rows: int) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """Yield items in the order of their names, some at a time, and their names."""
        item = "context" if level == "turn" else level
        items = self.items[level].sort_values([item, "system"])
        for first in range(0, len(items), rows):
            part = items[first : first + rows]
            key = {"item_id": self.names[item][part[item]], "system_id": self.names["system"][part["system"]]}
            yield part, pd.DataFrame({"dataset": self.dataset, "level": level, **key})


def simulate(
    contexts: pd.DataFrame, responses: pd.DataFrame, skill: Mapping[str, float], model: Raters, *, seed: int
) -> dict[str, pd.DataFrame]:
    """Rate as :func:`rate` does, and return the tables ``ratings`` and ``truth`` whole."""
    rated = rate(contexts, [responses], skill, model, seed=seed)
    return {name: pd.concat(rated.parts(name), ignore_index=True) for name in RATED}


def sources(path: Path) -> set[str]:
    """Return whose ratings a table of ratings holds; the other columns are not read."""
    found: set[str] = set()
    with readable(path, "ratings"), pq.ParquetFile(path) as file:
        if "source" not in file.schema_arrow.names:
            raise SchemaError("no column 'source'", where=str(path), expected="table 'ratings'")
        for batch in file.iter_batches(columns=["source"]):
            found |= set(batch["source"].unique().to_pylist())
    return found


def rate(
    contexts: pd.DataFrame,
    responses: Iterable[pd.DataFrame],
    skill: Mapping[str, float],
    model: Raters,
    *,
    seed: int,
) -> Simulated:
    """Rate every response and every dialogue of the systems that have a skill.

    Parameters
    ----------
    contexts, responses
        The tables of that name, of one data set; the responses in parts, of which one is held at a time.
    skill
        System -> 0 to 1; systems without one are not rated.
    model
        As :func:`read_raters` gives it.
    seed
        Two streams come of it for each rater, and one for the truth.

    Returns
    -------
    Simulated
        The ratings (source ``simulated``), and the truth that the raters saw through their noise.

    Raises
    ------
    ConfigError
        When none of the systems has a skill.
    """
    turns, names, dataset, unrated = _read(contexts, responses, skill)
    rng = np.random.default_rng([seed, 0])
    turns["truth"] = _turn_truth(turns, np.array([skill[name] for name in names["system"]]), model.turn, rng)
    dialogues = _dialogues(turns, model, rng)
    ratings: dict[str, dict[tuple[str, str], npt.NDArray[np.int8]]] = {"turn": {}, "dialogue": {}}
    for number, rater in enumerate(model.raters, start=1):
        rng = np.random.default_rng([seed, number])
        given = _rate(turns["truth"].to_numpy(), rater, "turn_noise", model.thresholds, rng)
        ratings["turn"][rater.id, OVERALL] = given
        given = _rate(dialogues["truth"].to_numpy(), rater, "dialogue_noise", model.thresholds, rng)
        ratings["dialogue"][rater.id, OVERALL] = given
        for axis, marked in _marks(dialogues, given, rater.mark, rng).items():
            ratings["dialogue"][rater.id, axis] = (~marked).astype(np.int8)
    items = {"turn": turns[["context", "system", "truth"]], "dialogue": dialogues[["dialogue", "system", "truth"]]}
    return Simulated(dataset, names, items, ratings, unrated, f"simulated_truth|seed:{seed}")


def _read(
    contexts: pd.DataFrame, parts: Iterable[pd.DataFrame], skill: Mapping[str, float]
) -> tuple[pd.DataFrame, dict[str, npt.NDArray[np.object_]], str, tuple[str, ...]]:
    """Return what raters see of each response, as numbers, and the names that these stand for."""
    columns = (contexts[name] for name in ("context_id", "history", "facts"))
    known = {
        context: _content(" ".join([*(u["text"] for u in history[-1:]), *facts]))
        for context, history, facts in zip(*columns, strict=True)
    }
    openings: dict[str, int] = {}
    unrated: set[str] = set()
    dataset = ""
    found = []
    names = {"system": np.array(sorted(skill), dtype=object)}
    for name in ("context", "dialogue"):
        names[name] = np.array(sorted(set(contexts[f"{name}_id"])), dtype=object)
    places = contexts.set_index("context_id")[["dialogue_id", "turn"]]
    for responses in parts:
        has_skill = responses["system_id"].isin(skill)
        unrated |= set(responses.loc[~has_skill, "system_id"])
        rated = responses[has_skill & responses["context_id"].isin(places.index)]
        dataset = dataset or next(iter(rated["dataset"]), "")
        words = [_words(text) for text in rated["response"]]
        content = [{word for word in said if len(word) > 3} for said in words]
        opening = [openings.setdefault(" ".join(said[:2]), len(openings)) for said in words]
        place = places.loc[rated["context_id"]]
        frame = {
            "context": np.searchsorted(names["context"], rated["context_id"].to_numpy(dtype=object)),
            "dialogue": np.searchsorted(names["dialogue"], place["dialogue_id"].to_numpy(dtype=object)),
            "system": np.searchsorted(names["system"], rated["system_id"].to_numpy(dtype=object)),
            "turn": place["turn"].to_numpy(),
            "length": [len(said) for said in words],
            "opening": opening,
        }
        share = [
            len(said & known[context]) / len(said) if said else 0.0
            for said, context in zip(content, rated["context_id"], strict=True)
        ]
        found.append(pd.DataFrame(frame, dtype=np.int32).assign(share=np.array(share, dtype=np.float64)))
    turns = pd.concat(found, ignore_index=True) if found else pd.DataFrame()
    if turns.empty:
        raise ConfigError(
            "no system that has responses has a skill",
            where="simulated raters",
            expected="skills in the raters' file, or a roster with them",
        )
    turns = turns.sort_values(["dialogue", "system", "turn"]).reset_index(drop=True)
    return turns, names, dataset, tuple(sorted(unrated))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _content(text: str) -> set[str]:
    # Words of four letters and more stand for content words; a list of stop words would say little more here.
    return {word for word in _words(text) if len(word) > 3}


def _relevance(turns: pd.DataFrame) -> Floats:
    """Return the share of a response's content words that A's last utterance or persona B has, standardised."""
    of_context = turns.groupby("context")["share"]
    spread = of_context.transform("std", ddof=0)
    return ((turns["share"] - of_context.transform("mean")) / spread.where(spread > 0, 1.0)).to_numpy()


def _turn_truth(turns: pd.DataFrame, skill: Floats, model: TurnTruth, rng: np.random.Generator) -> Floats:
    dialogue = turns["dialogue"].rank(method="dense").to_numpy(dtype=np.int64) - 1
    pair = turns.groupby(["dialogue", "system"], sort=True).ngroup().to_numpy()
    length = turns["length"].to_numpy()
    truth = model.skill_weight * (2 * skill[turns["system"]] - 1)
    truth = truth + model.relevance_weight * _relevance(turns)
    truth += rng.normal(0, model.dialogue_noise, dialogue.max() + 1)[dialogue]
    truth += rng.normal(0, model.system_dialogue_noise, pair.max() + 1)[pair]
    truth += rng.normal(0, model.turn_noise, len(turns))
    truth += model.short_turn * (length < model.short_words)
    return np.asarray(truth + model.long_turn * (length > model.long_words))


def _dialogues(turns: pd.DataFrame, model: Raters, rng: np.random.Generator) -> pd.DataFrame:
    """Return one row a system's dialogue: the habits that show across its turns, and its truth."""
    keys = ["dialogue", "system"]
    frame = turns[[*keys, "truth"]].assign(
        long=turns["length"] > model.turn.long_words,
        dull=turns["length"] < model.turn.short_words + 2,
        same_opening=turns.duplicated([*keys, "opening"]),
    )
    found = frame.groupby(keys, sort=True)[["truth", "long", "dull", "same_opening"]].mean().reset_index()
    weights = model.dialogue
    truth = weights.spread * found["truth"] + rng.normal(0, weights.noise, len(found))
    for habit in ("long", "dull", "same_opening"):
        truth += getattr(weights, habit) * found[habit]
    return found.assign(truth=truth)


def _rate(
    truth: Floats, rater: Rater, noise: str, thresholds: list[float], rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    seen = rater.slope * truth + rater.bias + rng.normal(0, getattr(rater, noise), len(truth))
    return np.asarray(1 + np.searchsorted(np.asarray(thresholds), seen), dtype=np.int8)


def _marks(
    dialogues: pd.DataFrame, ratings: npt.NDArray[np.int8], readiness: float, rng: np.random.Generator
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


def rate_tables(folder: str | Path, raters: str | Path, roster: str | Path | None, *, seed: int) -> None:
    """Rate a folder of tables, and write the ratings and their truth into it.

    Parameters
    ----------
    folder
        Holds ``contexts`` and ``responses``.
    raters
        A YAML file as ``data/demo/raters.yaml``.
    roster
        Whose agents' skills to take, beside those that ``raters`` says.
    seed
        Of all that is drawn.

    Raises
    ------
    ConfigError
        When the folder holds ratings that are not simulated.
    """
    folder = Path(folder)
    model = read_raters(raters)
    skill = (read_roster(roster).skills if roster else {}) | model.skill
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    responses = schema.read_parts(folder / "responses.parquet", "responses", _PART)
    rated = rate(contexts, responses, skill, model, seed=seed)
    if rated.unrated:
        logging.getLogger(__name__).warning("not rated, for want of a skill: %s", ", ".join(rated.unrated))
    path = folder / "ratings.parquet"
    if path.exists() and (others := sources(path) - {SOURCE}):
        raise ConfigError(
            f"it holds ratings by {', '.join(sorted(others))}",
            where=str(path),
            expected="no ratings but simulated ones, which may be replaced",
            hint="Simulate in a copy of the folder",
        )
    for name in RATED:
        with schema.writing(folder / f"{name}.parquet", "scores" if name == "truth" else name) as add:
            for part in rated.parts(name):
                add(part)
