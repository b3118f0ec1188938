"""Pairs of a context and a response out of dialogues, as tokens, and the negative responses that training sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comperdial.data.corpora import Dialogue
from comperdial.training.reading import Reader
from comperdial.training.selection import Group

# Ranks among the nearest utterances that a near negative is drawn from: the first are often as good an answer.
_NEAR = (3, 60)
# Utterances whose nearest are looked for.
_POOL = 20_000


@dataclass(frozen=True)
class Negatives:
    """How many negative responses of each kind a context has in training."""

    random: int = 3
    """Utterances of other dialogues of the same corpus."""
    near: int = 2
    """Utterances of the same corpus that are about what was said last."""
    dialogue: int = 1
    """Other utterances of the same dialogue, before or after."""
    altered: int = 2
    """The right response spoilt: words repeated, left out, in disorder, or those of what was said before."""

    @property
    def total(self) -> int:
        """Return how many there are of all kinds."""
        return self.random + self.near + self.dialogue + self.altered


class Pairs:
    """All pairs of a context and the response that followed it, in dialogues as tokens.

    Parameters
    ----------
    dialogues
        What to make pairs of: each utterance but a dialogue's first answers all before it.
    reader
        What makes tokens.
    """

    def __init__(self, dialogues: Sequence[Dialogue], reader: Reader) -> None:
        self.dialogues = dialogues
        self.reader = reader
        texts = [text for dialogue in dialogues for text in dialogue.texts]
        self.utterances = reader.encode(texts)
        sizes = np.array([len(dialogue.texts) for dialogue in dialogues])
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(len(dialogues)), sizes)
        self._facts = [
            {speaker: reader.encode(lines) for speaker, lines in dialogue.facts.items()} for dialogue in dialogues
        ]
        filled = np.array([bool(tokens) for tokens in self.utterances])
        first = np.zeros(len(texts), bool)
        first[self._starts[:-1]] = True
        self.answers = np.flatnonzero(filled & ~first)
        """The utterances that are responses: a pair each."""
        corpora = np.array([dialogue.corpus for dialogue in dialogues])[self.owner]
        self._corpus = np.unique(corpora, return_inverse=True)[1]
        self._peers = [np.flatnonzero((self._corpus == number) & filled) for number in range(self._corpus.max() + 1)]

    def __len__(self) -> int:
        return len(self.answers)

    def has_facts(self, pair: int) -> bool:
        """Say whether the speaker of a pair's response has facts."""
        return bool(self._told(self.answers[pair]))

    def _told(self, utterance: int) -> Sequence[Sequence[int]]:
        dialogue = self.owner[utterance]
        speaker = self.dialogues[dialogue].speakers[utterance - self._starts[dialogue]]
        return self._facts[dialogue].get(speaker, ())

    def context(self, pair: int, *, facts: bool) -> list[int]:
        """Return a pair's context as tokens."""
        answer = self.answers[pair]
        start = self._starts[self.owner[answer]]
        return self.reader.context(self.utterances[start:answer], self._told(answer) if facts else ())[0]

    def response(self, pair: int) -> list[int]:
        """Return a pair's response as tokens."""
        return self.reader.response(self.utterances[self.answers[pair]])[0]

    def tokens(self, pair: int) -> int:
        """Return about how long a pair is, to put pairs of one length together."""
        answer = self.answers[pair]
        start = self._starts[self.owner[answer]]
        return min(self.reader.lengths.history, sum(map(len, self.utterances[start:answer])))

    def group(
        self, pair: int, kinds: Negatives, random: np.random.Generator, *, facts: bool, near: Nearest | None = None
    ) -> Group:
        """Return a context with its response first, and negative ones after it."""
        answer = self.answers[pair]
        right = tuple(self.utterances[answer])
        found: list[tuple[int, ...]] = []

        def add(tokens: Sequence[int]) -> bool:
            new = bool(tokens) and tuple(tokens) != right and tuple(tokens) not in found
            if new:
                found.append(tuple(tokens))
            return new

        start, end = self._starts[self.owner[answer]], self._starts[self.owner[answer] + 1]
        others = [number for number in range(start, end) if number != answer]
        wanted = 0
        for kind, count in (("dialogue", kinds.dialogue), ("altered", kinds.altered), ("near", kinds.near)):
            wanted += count
            for _ in range(4 * count):
                if len(found) >= wanted:
                    break
                if kind == "dialogue":
                    add(self.utterances[random.choice(others)])
                elif kind == "altered":
                    add(altered(right, self.utterances[answer - 1], random))
                elif near is not None:
                    add(self.utterances[near.draw(answer, random)])
        peers = self._peers[self._corpus[answer]]
        for _ in range(100 * kinds.total):
            # What could not be had of another kind is random too.
            if len(found) >= kinds.total:
                break
            other = random.choice(peers)
            if self.owner[other] != self.owner[answer]:
                add(self.utterances[other])
        candidates = [self.reader.response(tokens)[0] for tokens in (right, *found)]
        return Group(self.context(pair, facts=facts), candidates)

    def peers(self, utterance: int) -> npt.NDArray[np.intp]:
        """Return all utterances of the same corpus."""
        return self._peers[self._corpus[utterance]]


def altered(right: Sequence[int], before: Sequence[int], random: np.random.Generator) -> list[int]:
    """Spoil a response as dialogue systems do: repeat, leave out or mix up words, or say again what was said."""
    right, before = list(right), list(before)
    size = len(right)
    way = random.integers(5)
    if way == 0:
        # A stretch of it again and again.
        start = random.integers(size)
        piece = right[start : start + random.integers(1, 5)]
        return right[: start + len(piece)] + piece * int(random.integers(1, 4)) + right[start + len(piece) :]
    if way == 1 and size > 3:
        kept = [token for token in right if random.random() > 0.4]
        return kept or right[:1]
    if way == 2 and size > 3:
        start = random.integers(size - 2)
        piece = right[start : start + 8]
        random.shuffle(piece)
        return right[:start] + piece + right[start + 8 :]
    if way == 3:
        return before + right if random.random() < 0.5 else before
    return right[: max(1, size // 2)] + before[len(before) // 2 :]


class Nearest:
    """Utterances about the same as what was said last, by the mean of word vectors weighted by rarity.

    No model is run: the vectors are those of the encoder's own table, which training does not change.
    """

    def __init__(self, pairs: Pairs, table: npt.NDArray[np.float32], seed: int) -> None:
        self._pairs = pairs
        counts = np.bincount(
            np.concatenate([np.unique(tokens) for tokens in pairs.utterances if tokens]), minlength=len(table)
        )
        self._rarity = np.log(len(pairs.utterances) / (1 + counts)).clip(min=0).astype(np.float32)
        self._table = table
        random = np.random.default_rng([seed, 1])
        self._pools = []
        for number in range(len(pairs._peers)):
            peers = pairs._peers[number]
            pool = np.sort(random.choice(peers, min(_POOL, len(peers)), replace=False))
            self._pools.append((pool, np.stack([self._vector(pairs.utterances[place]) for place in pool])))

    def _vector(self, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
        total = self._rarity[tokens] @ self._table[tokens]
        return np.asarray(total / max(float(np.linalg.norm(total)), 1e-9), dtype=np.float32)

    def draw(self, answer: int, random: np.random.Generator) -> int:
        """Return an utterance of another dialogue that is near the one before ``answer``."""
        pairs = self._pairs
        pool, vectors = self._pools[pairs._corpus[answer]]
        likeness = vectors @ self._vector(pairs.utterances[answer - 1])
        likeness[pairs.owner[pool] == pairs.owner[answer]] = -1
        last = min(_NEAR[1], len(pool))
        nearest = np.argpartition(-likeness, last - 1)[:last]
        # By likeness, and where that is the same, by place.
        ranked = nearest[np.lexsort((nearest, -likeness[nearest]))]
        return int(pool[ranked[random.integers(min(_NEAR[0], last - 1), last)]])
