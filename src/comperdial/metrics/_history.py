"""What a metric reads of the utterances before a response."""

from __future__ import annotations

from collections.abc import Sequence

from comperdial.metrics.base import Utterance

SCOPES = ("all", "last")


def utterances(history: Sequence[Utterance], scope: str) -> list[str]:
    """Return the texts of a history, oldest first, without white space at their ends; only the last one on request."""
    kept = history if scope == "all" else history[-1:]
    return [entry["text"].strip() for entry in kept]


def fit(context: Sequence[int], response: Sequence[int], room: int, least: int = 0) -> tuple[list[int], list[int], int]:
    """Make a context and a response fit a model.

    The context loses tokens from its left. Only when the response does not fit alone does it lose some, from its end.

    Parameters
    ----------
    context, response
        Tokens.
    room
        The most tokens that both may have together.
    least
        How many tokens of the context (if it has as many) stay whatever the response's length.

    Returns
    -------
    tuple
        The context, the response, and how many tokens were cut.
    """
    least = min(least, len(context))
    kept = list(response[: room - least])
    left = min(len(context), room - len(kept))
    return list(context[len(context) - left :]), kept, len(context) + len(response) - left - len(kept)
