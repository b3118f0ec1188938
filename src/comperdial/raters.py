"""The parameters of simulated raters (``data/demo/raters.yaml``), read and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml
from comperdial.errors import ConfigError
from comperdial.names import RATED_LEVELS

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
    for part in RATED_LEVELS:
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
        least = 0.0 if names is None or name == "mark" or name.endswith(("noise", "_words")) else -math.inf
        most = 1.0 if names is None or name == "mark" else math.inf
        if not _is_number(value) or not least <= value <= most:
            wanted = {(0.0, 1.0): "a number from 0 to 1", (0.0, math.inf): "a number of 0 or more"}
            raise ConfigError(
                f"{name} is {value!r}", where=where, expected=wanted.get((least, most), "a number that is finite")
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
