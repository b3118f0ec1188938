"""An agent that never stops talking."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import pick, whole
from comperdial.challenge.agents._persona import facts
from comperdial.challenge.agents._wrap import WrappingAgent

_PLATITUDES = (
    "life is what you make of it, as they say.",
    "you never know what tomorrow brings.",
    "at the end of the day, everybody is different.",
    "it is what it is.",
    "good things take time, i always say.",
    "there are two sides to every story.",
    "hard work always pays off in the end.",
    "you only live once, after all.",
    "time really flies when you are having fun.",
    "everything happens for a reason, i believe.",
)


class VerboseAgent(WrappingAgent):
    """Append persona sentences and platitudes, in turn, to the base's response.

    Parameters
    ----------
    sentences
        How many are appended, 0 or more: higher is worse.
    base, options
        The agent inside, see :class:`~comperdial.challenge.agents._wrap.WrappingAgent`.
    """

    def __init__(
        self, *, base: str, sentences: int = 2, options: Mapping[str, object] | None = None, seed: int = 0
    ) -> None:
        super().__init__(base=base, options=options, seed=seed)
        self.sentences = whole(self, "sentences", sentences, least=0)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response and what nobody asked for."""
        known = [f"{fact.text}." for fact in facts(conversation)]
        said = [self.base_answer(conversation)]
        for i in range(self.sentences):
            wanted = known if i % 2 == 0 and known else _PLATITUDES
            # Nothing twice while there is something left.
            said.append(pick(rng, [sentence for sentence in wanted if sentence not in said] or wanted))
        return " ".join(said)
