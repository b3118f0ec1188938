"""The cosine of a response's and its reference's sentence embeddings, as with SimCSE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from comperdial.metrics._embedding import POOLING, EmbeddingMetric, cosine, sentence
from comperdial.metrics._pairs import compare_pairs
from comperdial.metrics.base import Batch, Scores, check_choice
from comperdial.metrics.text import clean
from comperdial.models.encoder import Encoder, Vectors
from comperdial.models.vectors import Encoded


@dataclass(frozen=True, kw_only=True)
class SentenceCosine(EmbeddingMetric):
    """Cosine of one vector a text, best reference; -1 to 1.

    Source: the SimCSE row of the DEnsity paper (sup-simcse-bert-base-uncased between answer and response). SimCSE's
    supervised models take the pooled output of [CLS] (``pooler``); sentence-transformers' models take the ``mean`` of
    all tokens.
    """

    kind: ClassVar[str] = "sentence_cosine"

    model: str = "sup-simcse-bert-base-uncased"
    pooling: Literal["mean", "cls", "pooler"] = "pooler"
    text: Literal["normalised", "raw"] = "raw"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "text", ("normalised", "raw"))
        check_choice(self, "pooling", POOLING)

    @property
    def encoder(self) -> Encoder:
        """Return what makes the vectors, with the pooled output if that is what is compared."""
        return replace(super().encoder, pooler=self.pooling == "pooler")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the one score."""
        return ("cosine",)

    def texts(self, batch: Batch) -> Iterable[str]:
        """Yield the responses and the references."""
        for response, references in zip(batch.responses, batch.references, strict=True):
            yield from (clean(text, self.text) for text in (response, *references))

    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Compare every response with its references."""

        def of_pair(hypothesis: Encoded, reference: Encoded) -> tuple[float]:
            if hypothesis.special.all() or reference.special.all():
                return (np.nan,)
            return (cosine(sentence(hypothesis, self.pooling), sentence(reference, self.pooling)),)

        return compare_pairs(batch, vectors, self.outputs, self.text, of_pair, self._progress)
