"""Supports `comperdial audit` with one rater: what people reach, in src/comperdial/auditing/human_agreement.csv.

For each data set in data/tables with known raters (`snakemake data/tables/NAME/ratings.parquet`): Pearson's correlation of one
rater with the mean of the others, over all raters and items, for the dimension closest to overall quality.
"""

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
    own = ratings[(ratings["source"] == "human") & (ratings["dimension"] == dimension)]
    people = own.pivot_table("rating", ["item_id", "system_id"], "annotator_id", observed=True).to_numpy(np.float64)
    rater, others, items = own_and_rest(people)
    value = round(float(np.corrcoef(rater, others)[0, 1]), 4)
    return {"level": own["level"].iloc[0], "dimension": dimension, "items": len(set(items)), "pearson": value}


if __name__ == "__main__":
    rows = []
    for name, dimension in DIMENSIONS.items():
        ratings = schema.read(Path("data/tables") / name / "ratings.parquet", "ratings")
        rows.append({"dataset": name, **row(ratings, dimension)})
    pd.DataFrame(rows).to_csv(KNOWN, index=False, lineterminator="\n")
    print(KNOWN.read_text())
