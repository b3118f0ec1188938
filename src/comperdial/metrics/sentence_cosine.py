"""Cosine of the sentence embeddings of a response and its reference, as with SimCSE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from comperdial.metrics._embedding import POOLING, cosine, sentence
from comperdial.metrics._pairs import PairMetric
from comperdial.metrics.base import Bounds, check_choice
from comperdial.models.encoder import Encoder
from comperdial.models.vectors import Encoded


@dataclass(frozen=True, kw_only=True)
class SentenceCosine(PairMetric):
    """Cosine of one vector per text, for the best reference; -1 to 1.

    Source: the SimCSE row of the DEnsity paper (sup-simcse-bert-base-uncased on response and reference). ``pooler`` is
    the pooled output of [CLS], as in supervised SimCSE; ``mean`` is the mean of all tokens including [CLS] and [SEP], as
    in sentence-transformers; ``cls`` is the vector of [CLS].
    """

    kind: ClassVar[str] = "sentence_cosine"
    limits: ClassVar[Bounds | None] = (-1.0, 1.0)

    model: str = "sup-simcse-bert-base-uncased"
    text: Literal["normalised", "raw"] = "raw"
    pooling: Literal["mean", "cls", "pooler"] = "pooler"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "pooling", POOLING)

    @property
    def encoder(self) -> Encoder:
        """Return the encoder of the texts, with the pooled output if that is compared."""
        return replace(super().encoder, pooler=self.pooling == "pooler")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("cosine",)

    def pair(self, hypothesis: Encoded, reference: Encoded) -> tuple[float, ...]:
        """Return the cosine of one pair."""
        if hypothesis.special.all() or reference.special.all():
            return (np.nan,)
        return (cosine(sentence(hypothesis, self.pooling), sentence(reference, self.pooling)),)
