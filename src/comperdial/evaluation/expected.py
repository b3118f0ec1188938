"""The expected scores and their required inputs, to explain why an output has no scores, or only some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.names import Output
from comperdial.evaluation.samples import Sample

# Parts of a context that a score can depend on.
COLUMNS = ("references", "history", "facts")


@dataclass(frozen=True)
class Expected:
    """The outputs of the metrics that were run.

    ``needs`` are the :data:`COLUMNS` that a score of each (metric, output) requires, ``signatures`` are by metric; ``held``
    has a row per context (index): its dialogue_id, and whether each of these columns is filled.
    """

    needs: Mapping[Output, tuple[str, ...]]
    signatures: Mapping[str, str]
    held: pd.DataFrame

    @classmethod
    def of(cls, entries: Mapping[str, Mapping[str, Any]], contexts: pd.DataFrame) -> Expected:
        """Combine the entries of :func:`comperdial.metrics.scoring.expected_of` with a data set's contexts."""
        held = contexts.set_index("context_id")[["dialogue_id", *COLUMNS]]
        held = held.assign(**{column: held[column].map(len) > 0 for column in COLUMNS})
        outputs = {metric: entry["outputs"].items() for metric, entry in entries.items()}
        needs = {(metric, output): tuple(columns) for metric, of in outputs.items() for output, columns in of}
        return cls(needs, {metric: str(entry["signature"]) for metric, entry in entries.items()}, held)

    def without_scores(self, sample: Sample) -> list[Output]:
        """Return the outputs without scores in a sample."""
        return sorted(set(self.needs) - set(sample.names))

    def lacking(self, sample: Sample, name: Output, unscored: npt.NDArray[np.bool_]) -> str | None:
        """Return the inputs of an output that its unscored units lack; None if that is not the reason."""
        columns = self.needs.get(name, ())
        if not columns or not unscored.any():
            return None
        items = [item for (item, _), lacks in zip(sample.units, unscored, strict=True) if lacks]
        # A dialogue has what any of its turns has.
        held = self.held if sample.of_turns else self.held.groupby("dialogue_id")[list(COLUMNS)].any()
        result = held.reindex(items)
        # Only if it is the reason for all of them.
        return " and ".join(column for column in columns if not result[column].fillna(True).any()) or None
