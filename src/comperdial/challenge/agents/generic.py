"""Dull answers that are never wrong."""

from __future__ import annotations

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, pick, whole

ANSWERS = (
    "that's nice. tell me more.",
    "i don't know, what do you think?",
    "oh, that's interesting!",
    "yeah, i feel the same way.",
    "sounds good to me.",
    "really? how so?",
    "i see what you mean.",
    "that's cool. what else do you do?",
    "i'm not sure about that, to be honest.",
    "haha, i know what you mean.",
    "it depends, i guess.",
    "wow, that's great to hear!",
    "maybe. i haven't thought about it much.",
    "me too, i think.",
    "that must be a lot of fun.",
    "good for you! how did that come about?",
    "i would say it's pretty normal for me.",
    "that makes sense.",
    "i hope it works out for you.",
    "no way! how was that?",
    "yes, i think so too.",
    "nothing special, just the usual things.",
    "that's a good point. why do you ask?",
    "i can imagine. it can't be easy.",
)


class GenericAgent(SingleAgent):
    """Say something that fits anywhere.

    Parameters
    ----------
    variety
        How many different answers it has, 1 to 24: higher is a little better, because it repeats itself less.
    """

    def __init__(self, *, variety: int = 12, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.variety = whole(self, "variety", variety, least=1, most=len(ANSWERS))
        drawn = np.random.default_rng(self.seed).permutation(len(ANSWERS))[: self.variety]
        self._answers = [ANSWERS[i] for i in drawn]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return one of the answers, whatever was said."""
        return pick(rng, self._answers)
