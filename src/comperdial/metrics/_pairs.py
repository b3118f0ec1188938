"""Compare encoded responses with encoded references: equal pairs once, the best reference counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from comperdial.metrics.base import Batch, Scores
from comperdial.metrics.text import clean
from comperdial.models.encoder import Vectors
from comperdial.models.vectors import Encoded

Compare = Callable[[Encoded, Encoded], tuple[float, ...]]


def compare_pairs(
    batch: Batch,
    vectors: Vectors,
    outputs: Sequence[str],
    text: str,
    compare: Compare,
    progress: Callable[[Iterable[Any], int], Iterable[Any]],
) -> Scores:
    """Score a batch.

    Parameters
    ----------
    batch
        Its responses and references.
    vectors
        Hold all of them, in the form that ``text`` says.
    outputs
        The names of what ``compare`` returns; by the first one, the best of several references is chosen.
    text
        ``normalised`` or ``raw``.
    compare
        Gives the outputs of a response and a reference, NaN where there are none.
    progress
        Shows a bar.
    """
    known: dict[tuple[str, str], tuple[float, ...]] = {}
    rows, cut = [], []
    for response, references in progress(zip(batch.responses, batch.references, strict=True), len(batch)):
        hypothesis = clean(response, text)
        best, best_cut = (np.nan,) * len(outputs), 0
        for reference in (clean(reference, text) for reference in references):
            if (hypothesis, reference) not in known:
                known[hypothesis, reference] = compare(vectors[hypothesis], vectors[reference])
            found = known[hypothesis, reference]
            if np.isnan(best[0]) or found[0] > best[0]:
                best, best_cut = found, vectors[reference].cut
        rows.append(best)
        cut.append(vectors[hypothesis].cut + best_cut)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(outputs))
    return Scores({name: values[:, column] for column, name in enumerate(outputs)}, np.array(cut, np.int32))
