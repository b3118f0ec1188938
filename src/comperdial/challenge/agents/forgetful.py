"""An agent that forgets who it is, or what it has said already."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import chance, fraction, pick, whole
from comperdial.challenge.agents._wrap import WrappingAgent


class ForgetfulAgent(WrappingAgent):
    """Answer from a cut context, or repeat what the base answered at an earlier turn.

    Parameters
    ----------
    rate
        Probability of forgetting: higher is worse. Half of the times it repeats itself, where there is an earlier turn;
        else it answers without the persona.
    window
        How many of the last utterances it still knows when it has forgotten the persona: lower is worse.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self,
        *,
        base: str,
        rate: float = 0.5,
        window: int = 1,
        options: Mapping[str, object] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.rate = fraction(self, "rate", rate)
        self.window = whole(self, "window", window, least=1)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response to the conversation, to what is left of it, or to an earlier turn."""
        if not chance(rng, self.rate):
            return self.base_answer(conversation)
        dialogue = conversation["dialogue"]
        # The histories are gold, so the base's own earlier responses can be had again from their beginnings.
        earlier = [n for n in range(1, len(dialogue)) if dialogue[n - 1]["persona_id"] == "A"]
        if chance(rng, 0.5) and earlier:
            return self.base_answer({**conversation, "dialogue": dialogue[: pick(rng, earlier)]})
        return self.base_answer({**conversation, "persona B": [], "dialogue": dialogue[-self.window :]})
