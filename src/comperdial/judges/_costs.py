"""What a call costs, before and after it is answered."""

from __future__ import annotations

from collections.abc import Sequence

from comperdial.judges.base import Completion, Message
from comperdial.judges.prices import FREE, Price, most_input


def worst_cost(price: Price | None, longest: int | None, chat: Sequence[Message]) -> float:
    """Return the most US dollars that a call can cost whose answer has ``longest`` tokens at most; 0 if not known."""
    return 0.0 if price is None or price is FREE else price.of(most_input(chat), longest or 0)


def cost_of(price: Price | None, longest: int | None, chat: Sequence[Message], completion: Completion) -> float | None:
    """Return what an answer cost; the most it can have cost, if the service does not count; None if nobody knows."""
    if price is None or price is FREE:
        return None if price is None else 0.0
    if completion.input_tokens is None or completion.output_tokens is None:
        return None if longest is None else worst_cost(price, longest, chat)
    return price.of(completion.input_tokens, completion.output_tokens)
