"""What captions and titles say of the data: which data set, and whose the ratings are."""

from __future__ import annotations

# What every caption made from the embedded benchmark ends with.
SIMULATED = (
    "SIMULATED: the systems, the raters and their ratings are programs; nothing here is a finding about people, "
    "systems or metrics."
)


def with_suffix(text: str, suffix: str) -> str:
    """Append to a caption what is to be said of the data, for example that they are simulated."""
    return f"{text} {suffix}".strip()


def rated_by(source: str) -> str:
    """Return what a caption ends with, given whose the ratings are: nothing where they are people's."""
    if source == "human":
        return ""
    return SIMULATED if source == "simulated" else f"The ratings are those of {source}, not people's."
