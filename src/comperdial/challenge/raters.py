"""The parameters of simulated raters (``data/demo/raters.yaml``), read and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from comperdial.config.checking import Expected, FromZero, Number, Share, Strict, read_checked, rule


class TurnTruth(Strict):
    """What the truth of a turn is made of."""

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
    """What the truth of a dialogue is made of."""

    long: Number
    dull: Number
    same_opening: Number
    noise: FromZero
    spread: Number


class Rater(Strict):
    """How one rater sees the truth."""

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


class Raters(Strict):
    """The raters and what they rate."""

    skill: dict[str, Share]
    turn: TurnTruth
    dialogue: DialogueTruth
    thresholds: Annotated[
        list[Number], Field(min_length=4, max_length=4), AfterValidator(_rising), Expected("four rising numbers")
    ]
    raters: Annotated[list[Rater], Field(min_length=1)]

    @model_validator(mode="after")
    def _have_names(self) -> Raters:
        names = [rater.id for rater in self.raters]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise rule(f"got {name!r}", "a name that no other rater has", "raters", number, "id")
        return self


def read_raters(path: str | Path) -> Raters:
    """Read the parameters of the raters, and check that all are there, that there is no other, and what each holds.

    Raises
    ------
    ConfigError
        Names the parameter at fault.
    """
    return read_checked(Raters, path)
