"""Pairs of a context and a response from dialogues, as an encoder's tokens, with random negative responses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from comperdial.config.parameters import TrainingLengths
from comperdial.core.errors import ConfigError
from comperdial.data.corpora import Dialogue
from comperdial.training.selection import Group

_SPLIT_CONTRACTION = re.compile(r"\s+(?=n?\s?['\u2019]\s?(?:t|s|re|ve|ll|d|m)\b)", re.IGNORECASE)


class Reader:
    """Turns a context and a response into tokens: ``[CLS] facts [SEP] turn [SEP] … [SEP]`` and ``text [SEP]``.

    What is too long is cut: facts and a response at their end, the history at its beginning.
    """

    def __init__(self, tokenizer: Any, lengths: TrainingLengths) -> None:  # noqa: ANN401 - transformers'
        self.tokenizer, self.lengths = tokenizer, lengths
        self._first, self._end = tokenizer.cls_token_id, tokenizer.sep_token_id
        if self._first is None or self._end is None:
            raise ConfigError("the encoder's tokenizer has no [CLS] or no [SEP]", expected="an encoder such as BERT")

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts, without special ones; white space and split contractions are normalised."""
        if not texts:
            return []
        plain = [_SPLIT_CONTRACTION.sub("", " ".join(text.split())) for text in texts]
        tokens: list[list[int]] = self.tokenizer(plain, add_special_tokens=False)["input_ids"]
        return tokens

    def context(self, history: Sequence[Sequence[int]], facts: Sequence[Sequence[int]] = ()) -> tuple[list[int], int]:
        """Return the tokens of a context, made of those of its utterances and facts, and how many were cut."""
        turns = [token for utterance in history for token in (*utterance, self._end)]
        known = [token for fact in facts for token in fact]
        too_many = max(0, len(turns) - self.lengths.history)
        before = [*known[: self.lengths.facts], self._end] if known else []
        return [self._first, *before, *turns[too_many:]], too_many + max(0, len(known) - self.lengths.facts)

    def response(self, tokens: Sequence[int]) -> tuple[list[int], int]:
        """Return the tokens of a response, and how many were cut."""
        kept = tokens[: self.lengths.response - 1]
        return [*kept, self._end], len(tokens) - len(kept)


class Pairs:
    """All pairs of a context and the response that followed it: each utterance but a dialogue's first answers all before."""

    def __init__(self, dialogues: Sequence[Dialogue], reader: Reader) -> None:
        self.reader, self.dialogues = reader, dialogues
        self.utterances = reader.encode([text for dialogue in dialogues for text in dialogue.texts])
        sizes = [len(dialogue.texts) for dialogue in dialogues]
        self.dialogue_of = np.repeat(np.arange(len(dialogues)), sizes)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])[self.dialogue_of]
        self._facts: list[Sequence[Sequence[int]]] = []
        for dialogue in dialogues:
            facts = {speaker: reader.encode(lines) for speaker, lines in dialogue.facts.items()}
            self._facts += [facts.get(speaker, ()) for speaker in dialogue.speakers]
        filled = np.array([bool(tokens) for tokens in self.utterances])
        self.answers = np.flatnonzero(filled & (self._starts != np.arange(len(filled))))
        """The utterances that are responses: a pair each."""
        corpora = np.array([dialogue.corpus for dialogue in dialogues])[self.dialogue_of]
        self._corpus = np.unique(corpora, return_inverse=True)[1]
        self._peers = [np.flatnonzero((self._corpus == number) & filled) for number in range(self._corpus.max() + 1)]

    def __len__(self) -> int:
        return len(self.answers)

    def has_facts(self, pair: int) -> bool:
        """Return whether the speaker of a pair's response has facts."""
        return bool(self._facts[self.answers[pair]])

    def context(self, pair: int, *, facts: bool) -> list[int]:
        """Return a pair's context as tokens."""
        answer = self.answers[pair]
        history = self.utterances[self._starts[answer] : answer]
        return self.reader.context(history, self._facts[answer] if facts else ())[0]

    def response(self, pair: int) -> list[int]:
        """Return a pair's response as tokens."""
        return self.reader.response(self.utterances[self.answers[pair]])[0]

    def length(self, pair: int) -> int:
        """Return about how many tokens a pair's context has, to put pairs of similar length together."""
        answer = self.answers[pair]
        return min(self.reader.lengths.history, sum(map(len, self.utterances[self._starts[answer] : answer])))

    def group(self, pair: int, negatives: int, random: np.random.Generator, *, facts: bool) -> Group:
        """Return a context with its response first, and after it utterances of other dialogues of the same corpus."""
        answer = self.answers[pair]
        candidates = [self.utterances[answer]]
        peers = self._peers[self._corpus[answer]]
        for _ in range(100 * negatives):
            if len(candidates) > negatives:
                break
            other = random.choice(peers)
            if self.dialogue_of[other] != self.dialogue_of[answer] and self.utterances[other] not in candidates:
                candidates.append(self.utterances[other])
        return Group(self.context(pair, facts=facts), [self.reader.response(tokens)[0] for tokens in candidates])
