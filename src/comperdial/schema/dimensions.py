"""What is rated. ComperDial's raters (A.7) give an overall score, and at dialogue level marks on axes."""

from __future__ import annotations

from collections.abc import Iterable

OVERALL = "Overall"
OVERALL_SCALE = (1.0, 5.0)
# A mark is kept as 0 (marked: a problem) or 1 (not marked), so that higher is better on every dimension.
AXES = ("Fluency", "Coherence", "Consistency", "Engagingness", "Persona consistency", "Humanness")
AXIS_SCALE = (0.0, 1.0)


def main_dimension(wanted: str, rated: Iterable[str]) -> str:
    """Return the dimension that tables and figures are of, if a data set does not name one.

    ``wanted`` where it was rated, or the same name in other letters; else the only dimension, or the first by name.
    """
    names = sorted(set(rated))
    if wanted in names or not names:
        return wanted
    return next((name for name in names if name.casefold() == wanted.casefold()), names[0])


def chosen_dimension(target: str | None, main_target: str | None, rated: Iterable[str]) -> str:
    """Return the rated dimension that is wanted: ``target`` as it is, else :func:`main_dimension` of ``main_target``."""
    return target if target is not None else main_dimension(main_target or OVERALL, rated)
