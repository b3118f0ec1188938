"""Agreement of one person with the others, table ``ceilings``: what a metric can be expected to reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.evaluation.samples import Sample
from comperdial.stats import COEFFICIENTS
from comperdial.stats.coefficients import coefficients
from comperdial.stats.means import merge_ties
from comperdial.stats.pairs import within_items


def ceilings(samples: Iterable[Sample]) -> pd.DataFrame:
    """Correlate the ratings of each annotator with the mean of the others', pooled and within items.

    Units without a rating by the annotator or by others are ignored, and so are annotators without common units; ``n`` is as in
    table ``correlations``. A metric can exceed this ceiling: it is compared with the mean of all annotators, which is less
    noisy than the mean of the others, and one person is noisier than both.
    """
    rows: list[dict[str, Any]] = []
    for sample in samples:
        for number, annotator in enumerate(sample.annotators):
            one = without(sample, number)
            if one is not None:
                rows += [sample.key | {"annotator_id": annotator} | row for row in _of_annotator(one)]
    return schema.validate(pd.DataFrame(rows, columns=schema.table("ceilings").columns), "ceilings")


def without(sample: Sample, annotator: int) -> Sample | None:
    """Return a sample with one annotator's ratings as scores and the mean of the others as ratings."""
    own, others = sample.single[annotator], np.delete(sample.single, annotator, axis=0)
    kept = ~np.isnan(own) & ~np.isnan(others).all(axis=0)
    if not kept.any():
        return None
    return replace(
        sample,
        names=(("human", "annotator"),),
        scores=own[np.newaxis, kept],
        single=others[:, kept],
        ratings=merge_ties(*(np.nanmean(side, axis=0) for side in (others[:, kept], np.abs(others[:, kept])))),
        design=sample.design.of(kept),
        items=sample.items[kept],
        units=tuple(unit for unit, chosen in zip(sample.units, kept, strict=True) if chosen),
        coverage=(1.0,),
        cut=(0,),
        signatures=("human",),
    )


def _of_annotator(sample: Sample) -> list[dict[str, Any]]:
    values = coefficients(sample.scores, sample.ratings, sample.design, COEFFICIENTS)[0]
    n = len(np.unique(sample.design.systems)) if sample.design.average else len(sample.ratings)
    rows = [
        {"grouping": "pooled", "coefficient": name, "value": value, "n": n}
        for name, value in zip(COEFFICIENTS, values, strict=True)
    ]
    if sample.level != "system":
        for name in COEFFICIENTS:
            result, counts = within_items(sample.scores, sample.ratings, sample.items, name)
            rows.append({"grouping": "item", "coefficient": name, "value": result[0], "n": counts[0]})
    return rows
