"""An agent that denies its own persona, or what it said before."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import chance, fraction, pick
from comperdial.challenge.agents._persona import facts
from comperdial.challenge.agents._text import said_by_b, sentences
from comperdial.challenge.agents._wrap import WrappingAgent

# The first that fits is denied.
_DENIALS = (
    (r"\bi(?:'m| am) (?!not\b)", "i'm not "),
    (r"\bi(?:'ve| have) (?=been\b|had\b|done\b|always\b)", "i have never "),
    (r"\bi have (?=an? |my |two |three |four |some )", "i don't have "),
    (r"\bi (?:really |also )?(?:love|like|enjoy) ", "i can't stand "),
    (r"\bi was ", "i was never "),
    (r"\bi(?:'ll| will| plan to| hope to| want to) ", "i would never "),
    (r"\bi (?=work |live |play |go |take |run |watch |teach |write |read |cook |train |study |travel )", "i never "),
    (r"\bmy (\w+) (?:is|'s) ", r"my \1 is not "),
)
_OPENINGS = ("", "well, ", "to be honest, ", "honestly, ")


class ContradictingAgent(WrappingAgent):
    """Deny a first-person statement of the base's response, or else a persona sentence or an earlier utterance.

    Parameters
    ----------
    rate
        Probability of a contradiction: higher is worse.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self, *, base: str, rate: float = 0.5, options: Mapping[str, object] | None = None, seed: int = 0
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.rate = fraction(self, "rate", rate)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response, as it is or contradicting."""
        response = self.base_answer(conversation)
        if not chance(rng, self.rate):
            return response
        if (denied := _denied(response)) is not None:
            return denied
        # A question denies nothing, and an earlier utterance may be one.
        said = [s.rstrip(".! ") for text in said_by_b(conversation) for s in sentences(text) if not s.endswith("?")]
        known = [fact.text for fact in facts(conversation) if fact.topic not in ("name", "trait")]
        if not known + said:
            return f"no, that's not true at all. {response}"
        statement = pick(rng, known + said).lower()
        denial = _denied(statement) or f"i never said that {statement}"
        return f"{response} {pick(rng, _OPENINGS)}{denial}."


def _denied(text: str) -> str | None:
    """Return the text with its first first-person statement turned round, or None where there is none."""
    for pattern, denial in _DENIALS:
        if re.search(pattern, text.lower()):
            return re.sub(pattern, denial, text.lower(), count=1)
    return None
