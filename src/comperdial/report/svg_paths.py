"""Outlines in few characters: what an SVG's `d` says, rounded, in relative steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"([MLHVCQZmlhvcqz])|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
_OTHER = re.compile(r"[^MLHVCQZmlhvcqz\d\s.,eE+-]")
_TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "Z": 0}

# A command in capitals and its points, absolute, x and y in turn.
Step = tuple[str, tuple[float, ...]]


def steps(path: str) -> list[Step] | None:
    """Return a path's steps (M, L, C, Q, Z) with absolute points; None if it has others, such as arcs."""
    if _OTHER.search(path):
        return None
    return list(_steps(path))


def _steps(path: str) -> Iterator[Step]:
    at = start = (0.0, 0.0)
    for command, numbers in _commands(path):
        name = command.upper()
        if name == "Z":
            at = start
            yield "Z", ()
            continue
        base = at if command.islower() else (0.0, 0.0)
        if name == "H":
            points: tuple[float, ...] = (base[0] + numbers[0], at[1])
        elif name == "V":
            points = (at[0], base[1] + numbers[0])
        else:
            points = tuple(number + base[place % 2] for place, number in enumerate(numbers))
        at = points[-2:]  # type: ignore[assignment]
        if name == "M":
            start = at
        yield ("L" if name in "HV" else name), points


def _commands(path: str) -> Iterator[tuple[str, list[float]]]:
    """Go through the commands, those that need not be written again too."""
    command = ""
    numbers: list[float] = []
    for letter, number in _TOKEN.findall(path):
        if letter:
            command, numbers = letter, []
            if letter in "Zz":
                yield letter, []
            continue
        numbers.append(float(number))
        if len(numbers) == _TAKES[command.upper()]:
            yield command, numbers
            numbers = []
            # What follows a first point without a letter are lines.
            command = {"M": "L", "m": "l"}.get(command, command)


def shortened(path: str, decimals: int, scale: float = 1.0) -> str:
    """Write a path in relative steps, every point rounded where it lies, so that errors do not add up.

    ``scale`` multiplies all points before. What has other commands than matplotlib's is returned as it is.
    """
    found = steps(path)
    if found is None:
        return path
    unit = 10**decimals
    at = start = (0, 0)
    parts: list[str] = []
    said = ""
    for place, (name, points) in enumerate(found):
        if name == "Z":
            parts.append("z")
            at, said = start, "z"
            continue
        whole = [round(point * scale * unit) for point in points]
        last = (whole[-2], whole[-1])
        if name == "L":
            # Z draws the line back to the start itself.
            if last == start and place + 1 < len(found) and found[place + 1][0] == "Z":
                continue
            if last == at and said and said != "M":
                continue
        if name == "M" and not parts:
            letter, numbers = "M", whole
        else:
            letter, numbers = name.lower(), [number - at[n % 2] for n, number in enumerate(whole)]
            if letter == "l" and 0 in numbers:
                letter, numbers = ("h", numbers[:1]) if numbers[1] == 0 else ("v", numbers[1:])
        parts += ([] if letter == said and letter not in "Mm" else [letter]) + [
            short(number / unit, decimals) for number in numbers
        ]
        at, said = last, letter
        if name == "M":
            start = last
    return joined(parts)


def short(value: float, decimals: int) -> str:
    """Write a number without zeros that say nothing: ``-.5``."""
    text = f"{round(value, decimals) + 0.0:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if text in ("-0", ""):
        return "0"
    return re.sub(r"^(-?)0\.", r"\1.", text)


def joined(parts: list[str]) -> str:
    """Put letters and numbers together with no more spaces than tell two numbers apart."""
    return re.sub(r" ?([A-Za-z]) ?| (?=-)", r"\1", " ".join(parts))


def bounds(path: str) -> tuple[float, float, float, float] | None:
    """Return the box (left, top, right, bottom) that a path's points lie in, None where that is not known."""
    found = steps(path)
    points = [points for _, points in found or () if points]
    if not points:
        return None
    x = [value for numbers in points for value in numbers[::2]]
    y = [value for numbers in points for value in numbers[1::2]]
    return min(x), min(y), max(x), max(y)
