"""Texts of a history, and truncation of a context and response to a model's limit."""

from __future__ import annotations

from collections.abc import Sequence

from comperdial.metrics.base import Utterance

SCOPES = ("all", "last")


def utterances(history: Sequence[Utterance], scope: str) -> list[str]:
    """Return the stripped texts of a history, oldest first, or only the last one, depending on ``scope``."""
    kept = history if scope == "all" else history[-1:]
    return [entry["text"].strip() for entry in kept]


def fit(context: Sequence[int], response: Sequence[int], room: int, least: int = 0) -> tuple[list[int], list[int], int]:
    """Truncate a context and a response to fit a model.

    The context is cut from the left. The response is cut from the right, only if it does not fit by itself.

    Parameters
    ----------
    context, response
        Tokens.
    room
        Maximum number of tokens of both together.
    least
        Number of context tokens to keep (if it has as many) however long the response is.

    Returns
    -------
    tuple
        The context, the response, and the number of tokens removed.
    """
    least = min(least, len(context))
    kept = list(response[: room - least])
    left = min(len(context), room - len(kept))
    return list(context[len(context) - left :]), kept, len(context) + len(response) - left - len(kept)
