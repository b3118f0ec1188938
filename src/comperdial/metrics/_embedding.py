"""What metrics that compare embeddings have in common: an encoder, whose work they share, and cosines."""

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
    """A metric of token vectors; all with the same encoder share one store, where each text is encoded once."""

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
        """Say so when a package or the model is not on this machine; a layer that the model lacks is an error."""
        reason = super().unavailable()
        if not reason:
            self.encoder.namespace()
        return reason

    @property
    def encoder(self) -> Encoder:
        """Return what makes the vectors."""
        return Encoder(self.model, self.layer, self.dtype, self.max_length)

    @abstractmethod
    def texts(self, batch: Batch) -> Iterable[str]:
        """Yield every text of a batch that the metric looks at, as it is to be encoded."""

    @abstractmethod
    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Score a batch whose texts are encoded."""

    def compute(self, batch: Batch) -> Scores:
        """Encode what is not in the store yet, and compare."""
        vectors = self.encoder.vectors()
        vectors.add(self.texts(batch))
        return self.compare(batch, vectors)

    def signature(self) -> str:
        """Add the version of the encoder's code."""
        return f"{super().signature()}|encoder:{encoder.VERSION}"


def own(encoded: Encoded) -> Vector:
    """Return the vectors of a text's own tokens, without the ones that the model adds."""
    return encoded.vectors[~encoded.special]


def unit(vectors: Vector) -> Vector:
    """Scale vectors (the last axis) to length 1; a zero vector stays."""
    norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norm == 0, 1, norm), dtype=np.float32)


def cosines(one: Vector, other: Vector) -> Vector:
    """Return the cosine of each vector of one text with each of another, -1 to 1: n x m.

    By numpy alone: BLAS shares larger products among threads, and their number moves the last digits.
    """
    return np.clip(np.einsum("ik,jk->ij", unit(one), unit(other)), -1, 1)


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors, -1 to 1."""
    return float(np.clip(np.dot(unit(one), unit(other)), -1, 1))


POOLING = ("mean", "cls", "pooler")


def sentence(encoded: Encoded, pooling: str) -> Vector:
    """Make one vector of a text: the mean of all tokens (also the model's own), the first, or the pooled."""
    if pooling == "mean":
        return encoded.vectors.mean(axis=0)
    return encoded.vectors[0 if pooling == "cls" else -1]
