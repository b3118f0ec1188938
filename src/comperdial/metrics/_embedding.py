"""Base class of metrics that compare embeddings, and cosine similarity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comperdial.metrics._model import NeedsModel
from comperdial.metrics.base import Batch, Scores, check_number
from comperdial.models import encoder
from comperdial.models.encoder import Encoder, Vectors
from comperdial.models.vectors import Encoded

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class EmbeddingMetric(NeedsModel):
    """A metric of token vectors; metrics with the same encoder share a cache, so each text is encoded once."""

    layer: int = -1
    """Which hidden states: 1 is the first layer's, -1 the last one's."""
    max_length: int = 512
    """The most tokens of a text; what is beyond is cut off at its end, and counted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "max_length", 3, 1_000_000)

    @property
    def keeps_vectors(self) -> bool:
        """Return True."""
        return True

    def unavailable(self) -> str | None:
        """Return why the package or model is unavailable, or None; a layer that the model lacks raises an error."""
        reason = super().unavailable()
        if not reason:
            self.encoder.namespace()
        return reason

    @property
    def encoder(self) -> Encoder:
        """Return the encoder of the texts."""
        return Encoder(self.model, self.layer, self.dtype, self.max_length)

    @abstractmethod
    def texts(self, batch: Batch) -> Iterable[str]:
        """Yield every text of a batch that the metric needs encoded."""

    @abstractmethod
    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Score a batch from the vectors of its texts."""

    def compute(self, batch: Batch) -> Scores:
        """Encode the texts that are not cached, and compare."""
        vectors = self.encoder.vectors()
        vectors.add(self.texts(batch))
        return self.compare(batch, vectors)

    def signature(self) -> str:
        """Append the version of the encoder's code."""
        return f"{super().signature()}|encoder:{encoder.VERSION}"


def own(encoded: Encoded) -> Vector:
    """Return the vectors of a text's tokens, without special tokens."""
    return encoded.vectors[~encoded.special]


def unit(vectors: Vector) -> Vector:
    """Scale vectors (along the last axis) to length 1; zero vectors are unchanged."""
    norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norm == 0, 1, norm), dtype=np.float32)


def cosines(one: Vector, other: Vector) -> Vector:
    """Return the cosines between the vectors of two texts, -1 to 1, as an n x m array.

    It avoids BLAS, which splits large products over threads: the last digits would depend on the number of threads.
    """
    return np.clip(np.einsum("ik,jk->ij", unit(one), unit(other)), -1, 1)


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors, -1 to 1."""
    return float(np.clip(np.dot(unit(one), unit(other)), -1, 1))


POOLING = ("mean", "cls", "pooler")


def sentence(encoded: Encoded, pooling: str) -> Vector:
    """Return one vector for a text: the mean of all tokens (special ones included), the first, or the pooled output."""
    if pooling == "mean":
        return encoded.vectors.mean(axis=0)
    return encoded.vectors[0 if pooling == "cls" else -1]
