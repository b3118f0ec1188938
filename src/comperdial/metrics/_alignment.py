"""METEOR's alignment of a response's words with a reference's, the same as nltk's.

nltk matches equal words, then of the words left those with equal stems, then of the stems left those that WordNet has
as synonyms; each time from the last word of the response to the first, each word with the last one of the reference
that is still free. Equal words have equal stems, so the first two steps can be taken for each stem by itself, and most
stems stand in one of the two texts only.

Sets of places in a text are whole numbers, one bit a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from comperdial.metrics._stems import stem

Pair = tuple[int, int]
Synonyms = Callable[[str], frozenset[str]]


class Words:
    """A text's words in lower case, and the places of each stem."""

    __slots__ = ("places", "words")

    def __init__(self, tokens: Sequence[str]) -> None:
        self.words = tuple(token.lower() for token in tokens)
        self.places: dict[str, int] = {}
        for place, word in enumerate(self.words):
            found = stem(word)
            self.places[found] = self.places.get(found, 0) | 1 << place

    def __len__(self) -> int:
        return len(self.words)


def align(hypothesis: Words, reference: Words, synonyms: Synonyms) -> list[Pair]:
    """Return the matched places of response and reference, sorted by the response's."""
    aligned: list[Pair] = []
    # The free places of each stem.
    ours, theirs = dict(hypothesis.places), dict(reference.places)
    for shared in hypothesis.places.keys() & reference.places.keys():
        left, right = ours.pop(shared), theirs.pop(shared)
        pairs = _match(left, right, hypothesis.words, reference.words)
        aligned += pairs
        # Of a stem, the shorter side is used up.
        if free := left & ~sum(1 << place for place, _ in pairs):
            ours[shared] = free
        elif free := right & ~sum(1 << place for _, place in pairs):
            theirs[shared] = free
    aligned += _match_synonyms(ours, theirs, synonyms)
    aligned.sort()
    return aligned


def _match(left: int, right: int, words: Sequence[str], others: Sequence[str]) -> list[Pair]:
    """Match the places of one stem: equal words first, then what is left."""
    if not (left & left - 1 or right & right - 1):
        return [(left.bit_length() - 1, right.bit_length() - 1)]
    free: dict[str, list[int]] = {}
    for place in sorted(_from_last(right)):
        free.setdefault(others[place], []).append(place)
    pairs, rest = [], []
    for place in _from_last(left):
        if same := free.get(words[place]):
            pairs.append((place, same.pop()))
        else:
            rest.append(place)
    # One of the two may be longer: what is over stays free.
    remaining = sorted((place for places in free.values() for place in places), reverse=True)
    return pairs + list(zip(rest, remaining, strict=False))


def _match_synonyms(ours: dict[str, int], theirs: dict[str, int], synonyms: Synonyms) -> list[Pair]:
    """Match stems with synonyms; uses up the free places of the reference's."""
    candidates = []
    for word, places in ours.items():
        found = synonyms(word)
        if not found.isdisjoint(theirs):
            near = [other for other in theirs if other in found]
            candidates += [(place, near) for place in _from_last(places)]
    pairs = []
    for place, near in sorted(candidates, reverse=True):
        # The larger number has the later last place.
        last = max(near, key=theirs.__getitem__)
        if theirs[last]:
            other = theirs[last].bit_length() - 1
            theirs[last] -= 1 << other
            pairs.append((place, other))
    return pairs


def _from_last(places: int) -> Iterator[int]:
    while places:
        place = places.bit_length() - 1
        yield place
        places -= 1 << place


def chunks(aligned: Sequence[Pair]) -> int:
    """Return how many runs the matched places fall into: places that follow one another in both texts are one run."""
    return 1 + sum((k, m) != (i + 1, j + 1) for (i, j), (k, m) in pairwise(aligned))
