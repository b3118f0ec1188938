"""Rated dimensions. ComperDial's raters (A.7) give an overall score, and marks on axes for dialogues."""

from __future__ import annotations

from collections.abc import Iterable

OVERALL = "Overall"
OVERALL_SCALE = (1.0, 5.0)
# Marks are stored as 0 (marked as a problem) or 1 (not marked), so that higher is better in every dimension.
AXES = ("Fluency", "Coherence", "Consistency", "Engagingness", "Persona consistency", "Humanness")
AXIS_SCALE = (0.0, 1.0)


def main_dimension(wanted: str, rated: Iterable[str]) -> str:
    """Return the main dimension of a data set that does not name one.

    This is ``wanted`` if it was rated, ignoring case; else the only dimension, or the first by name.
    """
    names = sorted(set(rated))
    if wanted in names or not names:
        return wanted
    return next((name for name in names if name.casefold() == wanted.casefold()), names[0])


def chosen_dimension(target: str | None, main_target: str | None, rated: Iterable[str]) -> str:
    """Return ``target`` if given, else :func:`main_dimension` of ``main_target``."""
    return target if target is not None else main_dimension(main_target or OVERALL, rated)
