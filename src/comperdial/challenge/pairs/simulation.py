"""SIMULATED annotators that fill in a design's pages: to try a study before people are asked. Never a finding."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np

from comperdial.challenge.pairs.page import FORMAT, page_data
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import read_table, read_text, write_json


def simulate_votes(
    folder: str | Path, skills: Mapping[str, float], *, sharpness: float = 6.0, careless: float = 0.0, seed: int = 0
) -> list[Path]:
    """Fill in all pages of a design and save what each page would: ``answers/ANNOTATOR.json``.

    The left speaker is chosen with probability 1 / (1 + exp(-sharpness (skill left - skill right))), as Bradley and
    Terry's model has it; the answer of a control is known. Careless annotators choose by chance and give no reasons.

    Parameters
    ----------
    folder
        What :func:`comperdial.challenge.pairs.collection.write_collection` wrote.
    skills
        Of each system, 0 worst to 1 best: the truth that an analysis is to recover.
    sharpness
        How much a difference in skill shows.
    careless
        Share of annotators, 0 to 1.
    seed
        Determines all choices.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    ConfigError
        When a compared system has no skill.
    """
    folder = Path(folder)
    if not 0 <= careless <= 1 or not 0 <= sharpness < math.inf:
        raise ConfigError(
            f"careless is {careless}, sharpness {sharpness}", expected="a share from 0 to 1, a number of 0 or more"
        )
    tasks = {row["item"]: row for row in read_table(folder / "key.csv").to_dict("records")}
    written = []
    for number, path in enumerate(sorted((folder / "pages").glob("*.html"))):
        data = page_data(read_text(path))
        rng = np.random.default_rng([seed, number])
        is_careless = bool(rng.random() < careless)
        votes = []
        for shown in data["tasks"]:
            if shown["item"] not in tasks:
                raise SchemaError(
                    f"item {shown['item']!r} is not in the key", where=str(path), expected="its own key.csv"
                )
            task = tasks[shown["item"]]
            p_left = 0.5 if is_careless else _probability(task, skills, sharpness)
            choice = "left" if rng.random() < p_left else "right"
            reason = "" if is_careless else "SIMULATED"
            seconds = round(float(rng.lognormal(4, 0.5)), 1)
            votes.append({"item": shown["item"], "choice": choice, "reason": reason, "seconds": seconds})
        saved = {"format": FORMAT, "design": data["design"], "annotator": data["annotator"], "votes": votes}
        written.append(folder / "answers" / f"{data['annotator']}.json")
        write_json(written[-1], saved)
    return written


def _probability(task: Mapping[Hashable, str], skills: Mapping[str, float], sharpness: float) -> float:
    left = task["left"]
    if task["control"]:
        return float(task["control"] == left)
    right = "second" if left == "first" else "first"
    for side in (left, right):
        if task[f"{side}_system_id"] not in skills:
            raise ConfigError(
                f"system {task[f'{side}_system_id']!r} has no skill",
                expected="a skill for each system that is compared",
            )
    gap = skills[task[f"{left}_system_id"]] - skills[task[f"{right}_system_id"]]
    return 1 / (1 + math.exp(-sharpness * gap))
