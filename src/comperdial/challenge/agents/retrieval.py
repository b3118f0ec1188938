"""Retrieval: the response of the corpus whose context is most like this one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, chance, fraction, one_of, pick, whole
from comperdial.challenge.agents._corpus import read_pairs
from comperdial.challenge.agents._text import words

SCORINGS = ("bm25", "tfidf")
_K1, _B = 1.2, 0.75  # the usual values of Okapi BM25


class RetrievalAgent(SingleAgent):
    """Answer with the response of the best matching pair of a corpus; it knows no persona.

    Parameters
    ----------
    corpus
        JSONL file of {"context", "response"}.
    share
        Fraction of the corpus that it has, drawn with the seed: higher is better.
    noise
        Probability of a random response instead of the best one: higher is worse.
    scoring
        "bm25" or "tfidf" (cosine).
    window
        How many of the last utterances are the query; 1 keeps to the point.
    """

    def __init__(
        self,
        *,
        corpus: str,
        share: float = 1.0,
        noise: float = 0.0,
        scoring: str = "bm25",
        window: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        self.share = fraction(self, "share", share)
        self.noise = fraction(self, "noise", noise)
        self.window = whole(self, "window", window, least=1)
        pairs = read_pairs(corpus)
        kept = np.random.default_rng(self.seed).permutation(len(pairs))[: max(1, round(self.share * len(pairs)))]
        self._pairs = [pairs[i] for i in sorted(kept)]
        index = {"bm25": _bm25, "tfidf": _tfidf}[one_of(self, "scoring", scoring, SCORINGS)]
        self._documents = index([Counter(words(pair.context)) for pair in self._pairs])

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the best response, or any."""
        if chance(rng, self.noise):
            return pick(rng, self._pairs).response
        query = words(" ".join(utterance["text"] for utterance in conversation["dialogue"][-self.window :]))
        scores = [sum(document.get(word, 0.0) for word in query) for document in self._documents]
        return self._pairs[int(np.argmax(scores))].response


def _bm25(documents: list[Counter[str]]) -> list[dict[str, float]]:
    """Return what each word of each document adds to its BM25 score when a query holds the word."""
    mean = sum(document.total() for document in documents) / len(documents)
    frequency = Counter(word for document in documents for word in document)

    def weight(document: Counter[str], word: str) -> float:
        rarity = math.log(1 + (len(documents) - frequency[word] + 0.5) / (frequency[word] + 0.5))
        length = _K1 * (1 - _B + _B * document.total() / mean)
        return rarity * document[word] * (_K1 + 1) / (document[word] + length)

    return [{word: weight(document, word) for word in document} for document in documents]


def _tfidf(documents: list[Counter[str]]) -> list[dict[str, float]]:
    """Return what each word adds to the cosine of TF-IDF vectors, up to the query's length, which moves no rank."""
    frequency = Counter(word for document in documents for word in document)
    rarity = {word: math.log((1 + len(documents)) / (1 + n)) + 1 for word, n in frequency.items()}
    weights = []
    for document in documents:
        norm = math.sqrt(sum((n * rarity[word]) ** 2 for word, n in document.items())) or 1.0
        weights.append({word: n * rarity[word] ** 2 / norm for word, n in document.items()})
    return weights
