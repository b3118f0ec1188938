"""A recorded judge's single answers, as table ``judgements``."""

from __future__ import annotations

import pandas as pd

from comperdial import schema
from comperdial.data.recorded.base import Rated
from comperdial.judging.answers import find
from comperdial.judging.answers.importing import Ratings, RecordedJudge


def judgements(judge: RecordedJudge, found: Ratings, rated: Rated) -> pd.DataFrame:
    """Return a recorded judge's single answers as table ``judgements``, those to references left out.

    What they cost, and why they are what they are, was not recorded.
    """
    kept = found.singles[~found.singles["system_id"].isin(rated.references)]
    frame = pd.DataFrame(
        {
            "dataset": rated.dataset,
            "level": find(judge.format).level,
            "item_id": kept["item_id"],
            "system_id": kept["system_id"],
            "metric": judge.name,
            "output": kept["dimension"],
            "sample": kept["sample"],
            "tries": 1,
            "value": kept["value"].astype("float32"),
            "failure": kept["failure"],
        }
    )
    names = schema.table("judgements").columns
    return schema.validate(frame.reindex(columns=names), "judgements", where=f"{judge.name}, as table 'judgements'")
