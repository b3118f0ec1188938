"""Cosine of a response with the last utterances and with its facts or persona; unsupervised, without references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from comperdial.metrics._embedding import EmbeddingMetric, Vector, cosine, sentence
from comperdial.metrics.base import Batch, Bounds, Scores, Utterance, check_choice, check_number
from comperdial.models.encoder import Vectors


@dataclass(frozen=True, kw_only=True)
class GroundedCosine(EmbeddingMetric):
    """Cosines of a response with the last utterances and with the facts, -1 to 1 each, and their sum.

    This is our own inexpensive baseline. ``context`` compares the response with the last ``utterances``, joined by
    spaces, and ``fact`` with all facts or the persona, joined by spaces. A text's vector is the mean of its tokens, as in
    sentence-transformers. A context that is too long is cut from the left. Without facts, a response has only
    ``context``.
    """

    kind: ClassVar[str] = "grounded_cosine"
    needs: ClassVar[tuple[str, ...]] = ("histories",)

    model: str = "all-MiniLM-L6-v2"
    utterances: int = 3
    """How many of the last utterances count as context; what is too long of it is cut at its beginning."""
    pooling: Literal["mean", "cls"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "utterances", 1, 1000)
        check_choice(self, "pooling", ("mean", "cls"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the sum, the cosine with the context and the cosine with the facts."""
        return ("sum", "context", "fact")

    def needed_by(self, output: str) -> tuple[str, ...]:
        """Add the facts if the output uses them."""
        return ("histories",) if output == "context" else ("histories", "facts")

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return -1 to 1 for the two cosines, and -2 to 2 for their sum."""
        return {"sum": (-2.0, 2.0), "context": (-1.0, 1.0), "fact": (-1.0, 1.0)}

    def texts(self, batch: Batch) -> Iterable[str]:
        """Yield the responses and facts."""
        yield from map(str.strip, batch.responses)
        yield from filter(None, map(self._facts, batch.facts))

    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Compare every response with its context and its facts; each text's vector is computed once."""
        contexts = replace(self.encoder, keep="end").vectors()
        contexts.add(filter(None, map(self._context, batch.histories)))
        known: dict[tuple[str, bool], tuple[Vector, int]] = {}

        def vector(text: str, *, is_context: bool = False) -> tuple[Vector, int]:
            if (text, is_context) not in known:
                encoded = (contexts if is_context else vectors)[text]
                known[text, is_context] = sentence(encoded, self.pooling), encoded.cut
            return known[text, is_context]

        values = np.full((len(batch), 3), np.nan)
        cut = np.zeros(len(batch), dtype=np.int32)
        items = zip(batch.responses, batch.histories, batch.facts, strict=True)
        for row, (response, history, facts) in enumerate(self._progress(items, len(batch))):
            own, cut[row] = vector(response.strip())
            for column, text in ((1, self._context(history)), (2, self._facts(facts))):
                if text:
                    other, excess = vector(text, is_context=column == 1)
                    values[row, column] = cosine(own, other)
                    cut[row] += excess
        values[:, 0] = values[:, 1] + values[:, 2]
        return Scores({name: values[:, column] for column, name in enumerate(self.outputs)}, cut)

    def _context(self, history: Sequence[Utterance]) -> str:
        return " ".join(utterance["text"].strip() for utterance in history[-self.utterances :])

    def _facts(self, facts: Sequence[str]) -> str:
        return " ".join(fact.strip() for fact in facts)
