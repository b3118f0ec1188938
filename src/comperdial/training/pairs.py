"""Tokenized pairs of a context and a response from dialogues, with random negative responses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from comperdial.config.parameters import TrainingLengths
from comperdial.core.errors import ConfigError
from comperdial.data.corpora import Dialogue
from comperdial.training.selection import Group, Tokens

_SPLIT_CONTRACTION = re.compile(r"\s+(?=n?\s?['\u2019]\s?(?:t|s|re|ve|ll|d|m)\b)", re.IGNORECASE)


class Reader:
    """Converts a context and a response to tokens: ``[CLS] facts [SEP] turn [SEP] … [SEP]`` and ``text [SEP]``.

    Long inputs are cut: facts and responses at the end, histories at the beginning.
    """

    def __init__(self, tokenizer: Any, lengths: TrainingLengths) -> None:  # noqa: ANN401 - transformers'
        self.tokenizer, self.lengths = tokenizer, lengths
        self._first, self._end = tokenizer.cls_token_id, tokenizer.sep_token_id
        if self._first is None or self._end is None:
            raise ConfigError("the encoder's tokenizer has no [CLS] or no [SEP]", expected="an encoder such as BERT")

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts, without special ones; normalizes white space and split contractions."""
        plain = [_SPLIT_CONTRACTION.sub("", " ".join(text.split())) for text in texts]
        tokens: list[list[int]] = self.tokenizer(plain, add_special_tokens=False)["input_ids"] if plain else []
        return tokens

    def context(self, history: Sequence[Tokens], facts: Sequence[Tokens] = ()) -> tuple[list[int], int]:
        """Return the tokens of a context from those of its utterances and facts, and the number cut."""
        turns = [token for utterance in history for token in (*utterance, self._end)]
        known = [token for fact in facts for token in fact]
        too_many = max(0, len(turns) - self.lengths.history)
        before = [*known[: self.lengths.facts], self._end] if known else []
        return [self._first, *before, *turns[too_many:]], too_many + max(0, len(known) - self.lengths.facts)

    def response(self, tokens: Tokens) -> tuple[list[int], int]:
        """Return the tokens of a response, and the number cut."""
        kept = tokens[: self.lengths.response - 1]
        return [*kept, self._end], len(tokens) - len(kept)


class Pair(NamedTuple):
    """An utterance, the preceding ones, and its speaker's facts, as tokens without special ones."""

    dialogue: int
    corpus: str
    history: Sequence[Tokens]
    facts: Sequence[Tokens]
    answer: Tokens


class Pairs(list[Pair]):
    """All pairs of a context and its response: every utterance except a dialogue's first."""

    def __init__(self, dialogues: Sequence[Dialogue], reader: Reader) -> None:
        super().__init__()
        self.reader = reader
        # By corpus, the utterances to draw negatives from, with their dialogue numbers.
        self._peers: dict[str, list[tuple[int, Tokens]]] = defaultdict(list)
        tokens = iter(reader.encode([text for dialogue in dialogues for text in dialogue.texts]))
        for number, dialogue in enumerate(dialogues):
            own = list(islice(tokens, len(dialogue.texts)))
            facts = {speaker: reader.encode(lines) for speaker, lines in dialogue.facts.items()}
            for place, (speaker, utterance) in enumerate(zip(dialogue.speakers, own, strict=True)):
                if utterance:
                    self._peers[dialogue.corpus].append((number, utterance))
                if utterance and place:
                    self.append(Pair(number, dialogue.corpus, own[:place], facts.get(speaker, ()), utterance))

    def context(self, pair: Pair, *, facts: bool) -> list[int]:
        """Return a pair's context as tokens."""
        return self.reader.context(pair.history, pair.facts if facts else ())[0]

    def response(self, pair: Pair) -> list[int]:
        """Return a pair's response as tokens."""
        return self.reader.response(pair.answer)[0]

    def group(self, pair: Pair, negatives: int, random: np.random.Generator, *, facts: bool) -> Group:
        """Return a context with its response first, followed by utterances of other dialogues of the same corpus."""
        candidates, peers = [pair.answer], self._peers[pair.corpus]
        for _ in range(100 * negatives):
            if len(candidates) > negatives:
                break
            dialogue, other = peers[random.choice(len(peers))]
            if dialogue != pair.dialogue and other not in candidates:
                candidates.append(other)
        return Group(self.context(pair, facts=facts), [self.reader.response(tokens)[0] for tokens in candidates])
