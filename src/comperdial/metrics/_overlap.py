"""Base classes of metrics that compare the words or characters of a response with those of references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np

from comperdial.core.scripts import Writing
from comperdial.metrics.base import Batch, OverlapMetric, Scores, check_choice
from comperdial.metrics.text import clean


@dataclass(frozen=True, kw_only=True)
class ReferenceMetric(OverlapMetric):
    """An overlap metric that ignores references that are empty after normalisation, such as ``!!!``.

    A response without any other reference has no score. With several references, the best main output counts; ties are
    broken by the next output, so the order of references does not matter.
    """

    def best(self, hypothesis: Any, references: Sequence[Any]) -> Sequence[float]:  # noqa: ANN401
        """Return the outputs for the best reference."""
        return max(tuple(self.pair(hypothesis, reference)) for reference in references)

    def compute(self, batch: Batch) -> Scores:
        """Score each response; NaN if no reference is left."""

        @lru_cache(maxsize=1024)
        def is_filled(text: str) -> bool:
            return bool(clean(text, self.text))

        kept = [[text for text in references if is_filled(text)] for references in batch.references]
        held = np.array([len(references) > 0 for references in kept], dtype=np.bool_)
        batch = replace(batch, references=kept)
        if held.all():
            return self.compare_all(batch)
        found = self.compare_all(batch.only(held))
        values = {output: np.full(len(batch), np.nan) for output in found}
        for output, column in found.items():
            values[output][held] = column
        return Scores(values)

    def compare_all(self, batch: Batch) -> Scores:
        """Score each response against all its references, including those that are empty after normalisation."""
        return super().compute(batch)


class SplitsWords:
    """A word metric that splits texts in scripts without spaces into characters (:func:`comperdial.core.scripts.words`).

    The split does not depend on ``split``, which only adds it to the signature for data with such texts.
    """

    split: Literal["words", "characters"] = "words"

    def suited_to(self, writing: Writing) -> Self:
        """Return the metric with a signature that states how texts in this writing system are split."""
        return replace(self, split="characters") if writing.without_spaces else self  # type: ignore[type-var]

    def signature(self) -> str:
        """Add the split to the signature only if it is ``characters``."""
        return super().signature().replace("|split:words", "")  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class WordMetric(SplitsWords, ReferenceMetric):
    """A metric that compares the words of a response with those of its references."""

    split: Literal["words", "characters"] = "words"
    """``characters`` says in the signature that texts in scripts without spaces are split into characters; it is set for
    data that have such texts, and changes no score."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "split", ("words", "characters"))
