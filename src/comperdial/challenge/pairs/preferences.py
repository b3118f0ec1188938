"""Table ``preferences`` as people have it: columns of which nothing is known may be left out or empty."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.files import read_table


def read_preferences(path: str | Path) -> pd.DataFrame:
    """Read and check table ``preferences``: a Parquet, CSV or JSONL file.

    Raises
    ------
    SchemaError
        Names the row at fault: a choice outside the pair, an annotator who sees a pair twice, a missing column.
    """
    return checked_preferences(read_table(path), str(path))


def checked_preferences(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a frame as table ``preferences``; what is missing of columns that may be empty is empty."""
    spec = schema.table("preferences")
    optional = {
        field.name: frame[field.name].replace("", None) if field.name in frame else None
        for field in spec.fields
        if field.nullable
    }
    return schema.validate(frame.assign(**optional), "preferences", where=where)
