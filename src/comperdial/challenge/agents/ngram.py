"""A word n-gram model of the corpus and of B's persona."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, positive, whole
from comperdial.challenge.agents._corpus import read_pairs
from comperdial.challenge.agents._persona import facts

Counts = dict[tuple[str, ...], Counter[str]]

_START, _END = "<s>", "</s>"
_LONGEST = 25
_SHORTEST = 4
# A dozen persona sentences stand against hundreds of responses.
_PERSONA_WEIGHT = 5


class NgramAgent(SingleAgent):
    """Babble: each word is drawn after the longest known stretch of words before it.

    Parameters
    ----------
    corpus
        JSONL file of {"context", "response"}; the responses are learnt.
    order
        1 to 4: how many words make an n-gram. Higher is better: 1 is a bag of words, 4 mostly quotes.
    temperature
        Above 1 evens the probabilities out, which is worse; below 1 keeps to frequent words.
    """

    def __init__(self, *, corpus: str, order: int = 3, temperature: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.order = whole(self, "order", order, least=1, most=4)
        self.temperature = positive(self, "temperature", temperature)
        self._counts = _count((pair.response for pair in read_pairs(corpus)), self.order)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a random walk from a start of a sentence to an end."""
        own = _count((fact.text + "." for fact in facts(conversation)), self.order)
        tokens = [_START] * (self.order - 1)
        first = len(tokens)
        while len(tokens) - first < _LONGEST:
            token = self._draw(tokens, own, rng, may_end=len(tokens) - first >= _SHORTEST)
            if token == _END:
                break
            tokens.append(token)
        # No space before a punctuation mark, and none of them at the beginning.
        return re.sub(r" ([^\w' ])", r"\1", " ".join(tokens[first:])).lstrip(" .,!?;:")

    def _draw(self, tokens: list[str], own: Counts, rng: np.random.Generator, *, may_end: bool) -> str:
        """Return the next word; the context is shortened until a word is known to follow it."""
        for length in range(self.order - 1, -1, -1):
            context = tuple(tokens[len(tokens) - length :])
            found = self._counts.get(context, Counter()).copy()
            for word, n in own.get(context, Counter()).items():
                found[word] += n * _PERSONA_WEIGHT
            if not may_end:
                del found[_END]
            if found:
                weights = np.array(list(found.values()), dtype=float) ** (1 / self.temperature)
                return str(rng.choice(list(found), p=weights / weights.sum()))
        return _END


def _count(texts: Iterable[str], order: int) -> Counts:
    """Count which words follow each stretch of up to ``order`` - 1 words."""
    counts: Counts = defaultdict(Counter)
    for text in texts:
        tokens = [_START] * (order - 1) + re.findall(r"[\w']+|[^\w\s]", text.lower()) + [_END]
        for i in range(order - 1, len(tokens)):
            for length in range(order):
                counts[tuple(tokens[i - length : i])][tokens[i]] += 1
    return counts
