"""How a context and a response become an encoder's tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from comperdial.core.errors import ConfigError

_JOINED = re.compile(r"\s+(?=n?\s?['\u2019]\s?(?:t|s|re|ve|ll|d|m)\b)", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with white space as usual and contractions in one piece: data sets differ in both."""
    return _JOINED.sub("", " ".join(text.split()))


@dataclass(frozen=True)
class Lengths:
    """The most tokens of each part of an input: facts lose their end, the history its beginning, a response its end."""

    history: int = 72
    facts: int = 56
    response: int = 40


@dataclass(frozen=True)
class Reader:
    """How a context and a response become an encoder's tokens: ``[CLS] facts [SEP] turn [SEP] … [SEP]``, ``text [SEP]``."""

    tokenizer: Any
    lengths: Lengths

    @cached_property
    def _ends(self) -> tuple[int, int]:
        first, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        if first is None or end is None:
            raise ConfigError("the encoder's tokenizer has no [CLS] or no [SEP]", expected="an encoder such as BERT")
        return first, end

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts, without special ones."""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer([plain(text) for text in texts], add_special_tokens=False)["input_ids"]
        return found

    def context(self, history: Sequence[Sequence[int]], facts: Sequence[Sequence[int]] = ()) -> tuple[list[int], int]:
        """Return the tokens of a context, made of those of its utterances and facts, and how many were cut."""
        first, end = self._ends
        said = [token for utterance in history for token in (*utterance, end)]
        told = [token for fact in facts for token in fact]
        cut = max(0, len(said) - self.lengths.history) + max(0, len(told) - self.lengths.facts)
        return [
            first,
            *([*told[: self.lengths.facts], end] if told else []),
            *said[max(0, len(said) - self.lengths.history) :],
        ], cut

    def response(self, tokens: Sequence[int]) -> tuple[list[int], int]:
        """Return the tokens of a response, and how many were cut."""
        kept = list(tokens[: self.lengths.response - 1])
        return [*kept, self._ends[1]], len(tokens) - len(kept)
