"""N-grams of texts, counted once per text, and the number that two texts share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache


class Ngrams:
    """A text's tokens (the characters of a str, or a tuple of words) and its n-grams, which are counted lazily."""

    __slots__ = ("_counts", "_masks", "tokens")

    def __init__(self, tokens: str | tuple[str, ...]) -> None:
        self.tokens = tokens
        self._counts: dict[int, Mapping[Sequence[str], int]] = {}
        self._masks: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def total(self, order: int) -> int:
        """Return the number of n-grams of the given order."""
        return max(0, len(self.tokens) - order + 1)

    def counts(self, order: int) -> Mapping[Sequence[str], int]:
        """Return the count of each n-gram of the given order; n-grams of order 1 are the tokens themselves."""
        if order not in self._counts:
            tokens = self.tokens
            grams = tokens if order == 1 else (tokens[i : i + order] for i in range(self.total(order)))
            self._counts[order] = Counter(grams)
        return self._counts[order]

    def masks(self) -> dict[str, int]:
        """Return for each token an integer whose set bits are the token's positions."""
        if self._masks is None:
            self._masks = {}
            for place, token in enumerate(self.tokens):
                self._masks[token] = self._masks.get(token, 0) | 1 << place
        return self._masks


class _Union:
    """Several texts as one: the count of an n-gram is its maximum over the texts."""

    def __init__(self, texts: Sequence[Ngrams]) -> None:
        self._texts = texts
        self._counts: dict[int, Mapping[Sequence[str], int]] = {}

    def counts(self, order: int) -> Mapping[Sequence[str], int]:
        if order not in self._counts:
            most: dict[Sequence[str], int] = {}
            for text in self._texts:
                for gram, count in text.counts(order).items():
                    most[gram] = max(count, most.get(gram, 0))
            self._counts[order] = most
        return self._counts[order]


# Keyed by identity: all responses to a context share its references.
@lru_cache(maxsize=256)
def _union(texts: tuple[Ngrams, ...]) -> _Union:
    return _Union(texts)


def matches(hypothesis: Ngrams, references: Sequence[Ngrams], highest: int) -> list[int]:
    """Return, for each order from 1 to ``highest``, the number of the hypothesis's n-grams found in the references.

    The count of each n-gram is clipped to its maximum over the references, as in BLEU; with one reference this is the
    overlap of two multisets.
    """
    limits = references[0] if len(references) == 1 else _union(tuple(references))
    tokens = hypothesis.tokens
    limit = limits.counts(1)
    found: dict[int, Sequence[str]] = {place: token for place, token in enumerate(tokens) if token in limit}
    shared = [_clipped(found, limit)]
    for order in range(2, highest + 1):
        if found:
            limit = limits.counts(order)
            # An n-gram can match only if its first n - 1 tokens match.
            found = {i: gram for i in found if (gram := tokens[i : i + order]) in limit}
        shared.append(_clipped(found, limit))
    return shared


def _clipped(found: Mapping[int, Sequence[str]], limit: Mapping[Sequence[str], int]) -> int:
    grams = found.values()
    if len(set(grams)) == len(grams):
        return len(grams)
    return sum(min(count, limit[gram]) for gram, count in Counter(grams).items())


def longest_common_subsequence(hypothesis: Ngrams, reference: Ngrams) -> int:
    """Return the length of the longest common subsequence of two texts' tokens.

    Source: Hyyrö 2004, "Bit-parallel LCS-length computation revisited": each row of the dynamic-programming table is
    an integer, whose zero bits mark where the length grows.
    """
    masks = reference.masks()
    row = full = (1 << len(reference)) - 1
    for token in hypothesis.tokens:
        mask = masks.get(token)
        if mask:
            matched = row & mask
            row = (row + matched | row - matched) & full
    return len(reference) - row.bit_count()
