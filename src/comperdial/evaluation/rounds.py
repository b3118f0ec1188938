"""How annotators, or the rounds of a judge, agree with each other: table ``rounds``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.evaluation.rated import RatedSet
from comperdial.evaluation.samples import of_target
from comperdial.stats.correlation import correlate


def rounds(sets: Iterable[RatedSet]) -> pd.DataFrame:
    """Correlate the ratings of each two annotators of a source.

    Zhang et al. (2024, "Fill Up Missing Annotations With GPT-4") report the mean over pairs of Pearson's.

    Parameters
    ----------
    sets
        Data sets; one that has only mean ratings, or one annotator, gives no rows.

    Returns
    -------
    DataFrame
        Table ``rounds``: a pair in the order of names, with the number of items that both rated; pairs without such an
        item are left out. A coefficient is missing where a side does not vary.
    """
    rows = []
    for one in sorted(sets, key=lambda rated: rated.dataset):
        for source in one.sources:
            single = one.single(source)
            if single is None:
                continue
            for dimension in sorted(single.index.get_level_values("dimension").unique()):
                table = of_target(single, dimension).dropna(axis="columns", how="all")
                values = {str(name): table[name].to_numpy(dtype=np.float64) for name in table.columns}
                for a, b in combinations(sorted(values), 2):
                    pearson, spearman = (correlate(values[a], values[b], name) for name in ("pearson", "spearman"))
                    if not pearson.n:
                        continue
                    rows.append(
                        {
                            "dataset": one.dataset,
                            "source": source,
                            "dimension": dimension,
                            "annotator_a": a,
                            "annotator_b": b,
                            "pearson": pearson.value,
                            "spearman": spearman.value,
                            "n": pearson.n,
                        }
                    )
    return schema.validate(pd.DataFrame(rows, columns=schema.table("rounds").columns), "rounds")
