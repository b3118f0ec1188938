"""Claim: what an audit with one rater is set beside (src/comperdial/auditing/human_agreement.csv) is what people reach.

Of each data set in data/tables whose raters are known: Pearson's correlation of one rater with the mean of the others, over all
raters and items, of the dimension that is nearest to overall quality. Run it after `snakemake data/tables/NAME/ratings.parquet`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.auditing.agreement import own_and_rest
from comperdial.auditing.audit import KNOWN

DIMENSIONS = {
    "usr_persona": "Overall", "usr_topical": "Overall", "fed_dial": "overall", "grade_convai2": "coherence",
    "grade_dailydialog": "coherence", "grade_empathetic": "coherence",
}  # fmt: skip


def row(ratings: pd.DataFrame, dimension: str) -> dict[str, object]:
    """Return the correlation of one rater with the mean of the others, in one dimension of human ratings."""
    own = ratings[(ratings["source"] == "human") & (ratings["dimension"] == dimension)]
    people = own.pivot_table("rating", ["item_id", "system_id"], "annotator_id", observed=True).to_numpy(np.float64)
    rater, others, items = own_and_rest(people)
    value = round(float(np.corrcoef(rater, others)[0, 1]), 4)
    return {"level": own["level"].iloc[0], "dimension": dimension, "items": len(set(items)), "pearson": value}


if __name__ == "__main__":
    rows = [
        {"dataset": name, **row(schema.read(Path("data/tables") / name / "ratings.parquet", "ratings"), dimension)}
        for name, dimension in DIMENSIONS.items()
    ]
    pd.DataFrame(rows).to_csv(KNOWN, index=False, lineterminator="\n")
    print(KNOWN.read_text())
