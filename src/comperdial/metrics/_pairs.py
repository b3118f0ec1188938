"""Base class of metrics that compare an encoded response with encoded references."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from comperdial.metrics._embedding import EmbeddingMetric
from comperdial.metrics.base import Batch, Scores, check_choice
from comperdial.metrics.text import clean
from comperdial.models.encoder import Vectors
from comperdial.models.vectors import Encoded


@dataclass(frozen=True, kw_only=True)
class PairMetric(EmbeddingMetric):
    """A metric of a response and a reference; with several references, the best main output counts."""

    text: Literal["normalised", "raw"] = "normalised"
    """``normalised`` as in ComperDial's Table 14, or ``raw``: the text as it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "text", ("normalised", "raw"))

    @abstractmethod
    def pair(self, hypothesis: Encoded, reference: Encoded) -> tuple[float, ...]:
        """Return the outputs of one response and one reference, NaN for missing values."""

    def texts(self, batch: Batch) -> Iterable[str]:
        """Yield the responses and the references."""
        for response, references in zip(batch.responses, batch.references, strict=True):
            yield from (clean(text, self.text) for text in (response, *references))

    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Compare every response with its references; identical pairs are compared once."""
        known: dict[tuple[str, str], tuple[float, ...]] = {}
        rows, cut = [], []
        items = zip(batch.responses, batch.references, strict=True)
        for response, references in self._progress(items, len(batch)):
            hypothesis = clean(response, self.text)
            best, best_cut = (np.nan,) * len(self.outputs), 0
            for reference in (clean(reference, self.text) for reference in references):
                if (hypothesis, reference) not in known:
                    known[hypothesis, reference] = self.pair(vectors[hypothesis], vectors[reference])
                found = known[hypothesis, reference]
                if np.isnan(best[0]) or found[0] > best[0]:
                    best, best_cut = found, vectors[reference].cut
            rows.append(best)
            cut.append(vectors[hypothesis].cut + best_cut)
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.outputs))
        return Scores({name: values[:, column] for column, name in enumerate(self.outputs)}, np.array(cut, np.int32))
