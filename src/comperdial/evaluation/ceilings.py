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
            own, others = sample.single[[number]], np.delete(sample.single, number, axis=0)
            kept = ~np.isnan(own[0]) & ~np.isnan(others).all(axis=0)
            if not kept.any():
                continue
            own, others, items = own[:, kept], others[:, kept], sample.items[kept]
            theirs = merge_ties(*(np.nanmean(side, axis=0) for side in (others, np.abs(others))))
            # As a sample, which merges ties.
            one = replace(sample, scores=own, ratings=theirs, design=sample.design.of(kept))
            about = sample.key | {"annotator_id": annotator}
            values = coefficients(one.scores, one.ratings, one.design, COEFFICIENTS)[0]
            n = len(np.unique(one.design.systems)) if one.design.average else len(theirs)
            for name, value in zip(COEFFICIENTS, values, strict=True):
                rows.append(about | {"grouping": "pooled", "coefficient": name, "value": value, "n": n})
            for name in COEFFICIENTS if sample.level != "system" else ():
                result, counts = within_items(one.scores, one.ratings, items, name)
                rows.append(about | {"grouping": "item", "coefficient": name, "value": result[0], "n": counts[0]})
    return schema.validate(pd.DataFrame(rows, columns=schema.table("ceilings").columns), "ceilings")
